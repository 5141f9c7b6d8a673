//! Parses and prints tuples and layouts: `((2,2),8):((1,16),2)`, `(4,5):(1@0,1@1)`,
//! `Sw<3,4,3> o 0 o (8,64):(64,1)`.
//!
//! Invariant: `parse(print(x)) == x`; blanks are ignored. Nesting and length are checked before
//! anything is built, so no text exhausts the stack or memory.

use super::{Basis, ComposedLayout, CoordLayout, Layout, LayoutError, Stride, Swizzle};
use crate::leaf::Leaf;
use crate::tuple::{IntTuple, MAX_DEPTH, MAX_NODES};
use std::fmt;
use std::str::FromStr;

impl<L: Leaf + fmt::Display, D: Stride<L> + fmt::Display> fmt::Display for Layout<L, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.shape(), self.stride())
    }
}

impl FromStr for Layout<i64> {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let mut cursor = Cursor::new(text);
        let layout = cursor.layout()?;
        cursor.end()?;
        Ok(layout)
    }
}

impl FromStr for CoordLayout<i64> {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let mut cursor = Cursor::new(text);
        let shape = cursor.tuple(0, &mut Cursor::number)?;
        cursor.expect(b':', "`:` and a stride")?;
        let stride = cursor.tuple(0, &mut Cursor::basis)?;
        cursor.end()?;
        Layout::with_strides(&shape, &stride)
    }
}

impl FromStr for IntTuple<i64> {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let mut cursor = Cursor::new(text);
        let tuple = cursor.tuple(0, &mut Cursor::number)?;
        cursor.end()?;
        Ok(tuple)
    }
}

impl FromStr for Swizzle {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let mut cursor = Cursor::new(text);
        let swizzle = cursor.swizzle()?;
        cursor.end()?;
        Ok(swizzle)
    }
}

impl FromStr for ComposedLayout<i64> {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let mut cursor = Cursor::new(text);
        let mut twists = Vec::new();
        while cursor.peek() == Some(b'S') {
            let swizzle = cursor.swizzle()?;
            cursor.expect(b'o', "`o` and an offset")?;
            let offset = cursor.number()?;
            cursor.expect(b'o', "`o` and a layout")?;
            twists.push((swizzle, offset));
            if twists.len() > super::composed::MAX_TWISTS {
                let limit = super::composed::MAX_TWISTS;
                return Err(LayoutError::TooLarge { what: "a chain of swizzles", limit });
            }
        }
        let layout = cursor.layout()?;
        cursor.end()?;
        let start = ComposedLayout::from(layout);
        twists.into_iter().rev().try_fold(start, |inner, (swizzle, offset)| {
            ComposedLayout::twisted(swizzle, offset, &inner)
        })
    }
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    nodes: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Cursor { text: text.as_bytes(), at: 0, nodes: 0 }
    }

    fn layout(&mut self) -> Result<Layout, LayoutError> {
        let shape = self.tuple(0, &mut Cursor::number)?;
        self.expect(b':', "`:` and a stride")?;
        let stride = self.tuple(0, &mut Cursor::number)?;
        Layout::new(shape, stride)
    }

    fn tuple<T>(
        &mut self,
        depth: usize,
        leaf: &mut impl FnMut(&mut Self) -> Result<T, LayoutError>,
    ) -> Result<IntTuple<T>, LayoutError> {
        if depth == 0 {
            self.nodes = 0;
        }
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(LayoutError::TooLarge { what: "a tuple", limit: MAX_NODES });
        }
        if !self.eat(b'(') {
            return leaf(self).map(IntTuple::Leaf);
        }
        if depth >= MAX_DEPTH {
            return Err(LayoutError::TooDeep { limit: MAX_DEPTH });
        }
        let mut modes = Vec::new();
        if self.eat(b')') {
            return Ok(IntTuple::Tuple(modes));
        }
        loop {
            modes.push(self.tuple(depth + 1, leaf)?);
            if !self.eat(b',') {
                self.expect(b')', "`,` or `)`")?;
                return Ok(IntTuple::Tuple(modes));
            }
        }
    }

    fn number(&mut self) -> Result<i64, LayoutError> {
        self.skip_blanks();
        let start = self.at;
        if self.text.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        let digits = std::str::from_utf8(&self.text[start..self.at]).unwrap_or("");
        if digits.is_empty() || digits == "-" {
            return Err(LayoutError::Parse { at: start, expected: "a number or `(`" });
        }
        digits.parse().map_err(|_| LayoutError::Overflow { what: "a number in the text" })
    }

    /// `2@1@0`: two steps along mode 1 of mode 0.
    fn basis(&mut self) -> Result<Basis, LayoutError> {
        let value = self.number()?;
        let mut path = Vec::new();
        while self.eat(b'@') {
            let at = self.at;
            let axis = usize::try_from(self.number()?);
            path.insert(0, axis.map_err(|_| LayoutError::Parse { at, expected: "a mode" })?);
            if path.len() > super::stride::MAX_AXES {
                return Err(LayoutError::TooDeep { limit: super::stride::MAX_AXES });
            }
        }
        Basis::along(value, &path)
    }

    /// `Sw<3,4,3>`
    fn swizzle(&mut self) -> Result<Swizzle, LayoutError> {
        self.expect(b'S', "`Sw<`")?;
        self.expect(b'w', "`Sw<`")?;
        self.expect(b'<', "`<`")?;
        let mut fields = [0i64; 3];
        for (k, field) in fields.iter_mut().enumerate() {
            *field = self.number()?;
            let (end, wanted) = if k == 2 { (b'>', "`>`") } else { (b',', "`,`") };
            self.expect(end, wanted)?;
        }
        let [bits, base, shift] = fields;
        Swizzle::of_fields(bits, base, shift)
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), LayoutError> {
        if self.eat(byte) { Ok(()) } else { Err(LayoutError::Parse { at: self.at, expected }) }
    }

    fn end(&mut self) -> Result<(), LayoutError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(LayoutError::Parse { at: self.at, expected: "the end" }),
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_blanks();
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let here = self.peek() == Some(byte);
        self.at += usize::from(here);
        here
    }

    fn skip_blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }
}
