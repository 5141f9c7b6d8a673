//! Tuples and layouts as text: `((2,2),8):((1,16),2)`.
//!
//! Invariant: `parse(print(x)) == x`, and blanks are ignored. Nesting and length are bounded before
//! anything is built, so no text can exhaust the stack or memory.

use super::{Layout, LayoutError};
use crate::tuple::{IntTuple, MAX_DEPTH, MAX_NODES};
use std::fmt;
use std::str::FromStr;

impl<L: fmt::Display> fmt::Display for Layout<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.shape, self.stride)
    }
}

impl FromStr for Layout<i64> {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let mut cursor = Cursor::new(text);
        let shape = cursor.tuple(0)?;
        cursor.expect(b':', "`:` and a stride")?;
        let stride = cursor.tuple(0)?;
        cursor.end()?;
        Layout::new(shape, stride)
    }
}

impl FromStr for IntTuple<i64> {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let mut cursor = Cursor::new(text);
        let tuple = cursor.tuple(0)?;
        cursor.end()?;
        Ok(tuple)
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

    fn tuple(&mut self, depth: usize) -> Result<IntTuple<i64>, LayoutError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(LayoutError::TooLarge { what: "a tuple", limit: MAX_NODES });
        }
        if !self.eat(b'(') {
            return self.number().map(IntTuple::Leaf);
        }
        if depth >= MAX_DEPTH {
            return Err(LayoutError::TooDeep { limit: MAX_DEPTH });
        }
        let mut modes = Vec::new();
        if self.eat(b')') {
            return Ok(IntTuple::Tuple(modes));
        }
        loop {
            modes.push(self.tuple(depth + 1)?);
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

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), LayoutError> {
        if self.eat(byte) { Ok(()) } else { Err(LayoutError::Parse { at: self.at, expected }) }
    }

    fn end(&mut self) -> Result<(), LayoutError> {
        self.skip_blanks();
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(LayoutError::Parse { at: self.at, expected: "the end" })
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let here = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(here);
        here
    }

    fn skip_blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }
}
