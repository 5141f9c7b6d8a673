//! Parses the header of a `.npy` file, such as
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`. It is a Python dictionary with
//! these three keys, each once, in any order.

use super::error::ArrayError;

/// The contents of a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header<'h> {
    /// The element type, `<f4`.
    pub(super) descr: &'h str,
    /// Whether the first mode is the fastest.
    pub(super) fortran_order: bool,
    /// The extents, the slowest first; in Fortran order, the fastest first.
    pub(super) shape: Vec<u64>,
}

impl<'h> Header<'h> {
    /// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`; keys may be in any
    /// order.
    ///
    /// # Errors
    /// [`ArrayError::Format`]: the text is not such a dictionary, or a key is missing, unknown or
    /// duplicate.
    pub(super) fn read(text: &'h str) -> Result<Self, ArrayError> {
        let mut rest = Rest(text);
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        rest.sign('{')?;
        while !rest.take('}') {
            let key = rest.string()?;
            rest.sign(':')?;
            let again = match key {
                "descr" => descr.replace(rest.string()?).is_some(),
                "fortran_order" => fortran_order.replace(rest.truth()?).is_some(),
                "shape" => shape.replace(rest.tuple()?).is_some(),
                _ => return Err(ArrayError::Format("its header has an unknown key")),
            };
            if again {
                return Err(ArrayError::Format("its header has a duplicate key"));
            }
            if !rest.take(',') {
                rest.sign('}')?;
                break;
            }
        }
        if !rest.0.trim().is_empty() {
            return Err(ArrayError::Format("its header continues after the dictionary"));
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => {
                Ok(Header { descr, fortran_order, shape })
            }
            _ => Err(ArrayError::Format("its header lacks a type, an order or a shape")),
        }
    }
}

/// The text that is still to be read.
struct Rest<'h>(&'h str);

impl<'h> Rest<'h> {
    /// Consumes a character if it is next, and returns whether it was.
    fn take(&mut self, sign: char) -> bool {
        let rest = self.0.trim_start().strip_prefix(sign);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn sign(&mut self, sign: char) -> Result<(), ArrayError> {
        match self.take(sign) {
            true => Ok(()),
            false => {
                Err(ArrayError::Format("its header is not a dictionary of type, order and shape"))
            }
        }
    }

    /// Reads a string between two equal quotes.
    fn string(&mut self) -> Result<&'h str, ArrayError> {
        let quote = if self.take('"') { '"' } else { '\'' };
        if quote == '\'' {
            self.sign(quote)?;
        }
        let (text, rest) =
            self.0.split_once(quote).ok_or(ArrayError::Format("its header is cut off"))?;
        self.0 = rest;
        Ok(text)
    }

    fn truth(&mut self) -> Result<bool, ArrayError> {
        let rest = self.0.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = rest.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(ArrayError::Format("its order is neither True nor False"))
    }

    /// Reads `()`, `(3,)` or `(3, 4)`.
    fn tuple(&mut self) -> Result<Vec<u64>, ArrayError> {
        const NONE: ArrayError = ArrayError::Format("its shape is not a tuple of extents");
        let mut all = vec![];
        if !self.take('(') {
            return Err(NONE);
        }
        while !self.take(')') {
            let rest = self.0.trim_start();
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at(end);
            all.push(digits.parse().map_err(|_| NONE)?);
            self.0 = after;
            // A single number in parentheses is not a tuple.
            if all.len() > MAX_MODES || !self.take(',') && (all.len() == 1 || !self.is_next(')')) {
                return Err(NONE);
            }
        }
        Ok(all)
    }

    fn is_next(&self, sign: char) -> bool {
        self.0.trim_start().starts_with(sign)
    }
}

/// The largest number of modes of an array, as in numpy.
pub(super) const MAX_MODES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_headers_of_numpy() {
        let three = Header { descr: "<f4", fortran_order: false, shape: vec![3, 4] };
        for text in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n",
            "{'shape':(3,4),'fortran_order':False,'descr':'<f4'}",
            "{ \"descr\" : \"<f4\" , 'shape' : ( 3 , 4 , ) , 'fortran_order' : False , }",
        ] {
            assert_eq!(Header::read(text).as_ref(), Ok(&three), "{text}");
        }
        for (text, shape) in [("()", vec![]), ("(7,)", vec![7]), ("(0, 2)", vec![0, 2])] {
            let text = format!("{{'descr': '|b1', 'fortran_order': True, 'shape': {text}, }}");
            let header = Header { descr: "|b1", fortran_order: true, shape };
            assert_eq!(Header::read(&text).as_ref(), Ok(&header), "{text}");
        }
    }

    #[test]
    fn refuses_other_headers() {
        let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
        assert!(Header::read(good).is_ok());
        for n in 0..good.len() {
            assert!(Header::read(&good[..n]).is_err(), "{}", &good[..n]);
        }
        for (from, to, why) in [
            ("'shape'", "'shape': (1,), 'shape'", "duplicate"),
            ("'descr'", "'descr': '<f8', 'descr'", "duplicate"),
            ("'fortran_order'", "'fortran_order': True, 'fortran_order'", "duplicate"),
            ("'shape'", "'other': (1,), 'shape'", "unknown key"),
            ("'shape'", "'shapes'", "unknown key"),
            ("'shape': (3, 4), ", "", "lacks"),
            ("'descr': '<f4', ", "", "lacks"),
            ("False", "0", "neither"),
            ("False", "Falsehood", "dictionary"),
            ("(3, 4)", "(3)", "shape is not a tuple"),
            ("(3, 4)", "(3 4)", "shape is not a tuple"),
            ("(3, 4)", "(,)", "shape is not a tuple"),
            ("(3, 4)", "(-3, 4)", "shape is not a tuple"),
            ("(3, 4)", "(99999999999999999999, 4)", "shape is not a tuple"),
            ("(3, 4)", "3", "shape is not a tuple"),
            ("}", "} }", "after the dictionary"),
            ("}", "}, {'shape': (1,)}", "after the dictionary"),
        ] {
            let text = good.replacen(from, to, 1);
            let error = Header::read(&text).expect_err(&text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
