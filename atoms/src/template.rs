//! Defines [`Template`], the CUDA or PTX text of an atom, with a placeholder `{name}` for each
//! operand and number. This file parses templates and fills them in.
//!
//! Further placeholders (A, B, D and S stand for any operand; S is the source of a copy or
//! function):
//! - `{D.2}`: register 2 of D. The first one is 0.
//! - `{A.major}`: the immediate for the major of A: 0 for K-major, 1 for MN-major.
//! - `{S.array}`: the array that contains an operand in memory.
//! - `{S.at}`: the index in this array of the executing thread's first element, in elements of the
//!   operand's type.
//! - `{S.before}`: the number of elements from the beginning of the aligned vector that contains
//!   this element ([`crate::AtomOperand::around`]) to the element.
//! - `{B.reciprocal}`: 1 divided by the literal B, rounded once to its type.
//!
//! `{accumulate}` is 1 for a MatMul and 0 for a `MatMul.set`.
//!
//! Invariant: single braces in a template delimit placeholders and nothing else. `{{` and `}}` are
//! braces of the instruction text. A line break separates the instructions of a sequence.

/// The CUDA text of an atom.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Template {
    /// A C++ statement: `{D} = __hfma({A}, {B}, {D});`. An operand is printed as an lvalue of the
    /// type [`crate::AtomOperand::cxx`] that covers all values of the executing thread. A literal
    /// is printed as an expression of this type.
    Cuda(&'static str),
    /// A PTX instruction: `ldmatrix.sync.aligned.m8n8.x4.shared.b16 {D}, [{S}];`. A register
    /// operand is printed as a list of registers in braces (`{%0, %1}`), even if there is only one.
    /// An operand in memory is printed as the register that holds the executing thread's address or
    /// the descriptor.
    Ptx(&'static str),
    /// PTX instructions on scalars: `tanh.approx.f32 {D}, {S};`, `red.global.add.f32 [{D}], {S};`.
    /// It differs from [`Template::Ptx`] in that a register operand is one register without braces.
    /// A read operand may share the register of a written one. Therefore a written operand may
    /// serve as a temporary only after the last use of all read operands.
    PtxScalar(&'static str),
}

/// A piece of a template.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part<'a> {
    /// Literal text.
    Text(&'a str),
    /// The name of an operand.
    Operand(&'a str),
    /// A register of the operand.
    Register(&'a str, usize),
    /// The immediate for the major of the operand.
    Major(&'a str),
    /// The array that contains the operand.
    Array(&'a str),
    /// The index in the array of the operand's first element.
    At(&'a str),
    /// The number of elements from the beginning of the aligned vector to the operand.
    Before(&'a str),
    /// The reciprocal of the literal operand.
    Reciprocal(&'a str),
    /// 1 to add the products to D, 0 to set D to them.
    Accumulate,
}

impl<'a> Part<'a> {
    /// Parses the name inside of a placeholder.
    fn named(name: &'a str) -> Self {
        match name.rsplit_once('.') {
            Some((operand, "major")) => Part::Major(operand),
            Some((operand, "array")) => Part::Array(operand),
            Some((operand, "at")) => Part::At(operand),
            Some((operand, "before")) => Part::Before(operand),
            Some((operand, "reciprocal")) => Part::Reciprocal(operand),
            Some((operand, number)) => match number.parse() {
                Ok(i) => Part::Register(operand, i),
                Err(_) => Part::Operand(name),
            },
            None if name == "accumulate" => Part::Accumulate,
            None => Part::Operand(name),
        }
    }
}

impl Template {
    /// The text with its placeholders.
    pub fn text(&self) -> &'static str {
        match self {
            Template::Cuda(text) | Template::Ptx(text) | Template::PtxScalar(text) => text,
        }
    }

    /// Whether the text is PTX.
    pub fn is_ptx(&self) -> bool {
        matches!(self, Template::Ptx(_) | Template::PtxScalar(_))
    }

    /// The pieces in order. An unpaired brace is plain text; no atom of a table has one.
    pub fn parts(&self) -> Vec<Part<'static>> {
        let mut parts = Vec::new();
        let mut rest = self.text();
        while let Some(at) = rest.find(['{', '}']) {
            let (before, after) = rest.split_at(at);
            let doubled = after.starts_with("{{") || after.starts_with("}}");
            let name = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let (part, tail) = match name {
                _ if doubled => (Part::Text(&after[..1]), &after[2..]),
                Some((name, tail)) => (Part::named(name), tail),
                None => break,
            };
            if !before.is_empty() {
                parts.push(Part::Text(before));
            }
            parts.push(part);
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest));
        }
        parts
    }

    /// The names of operands in the order of their first appearance.
    pub fn placeholders(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for part in self.parts() {
            if let Part::Operand(name)
            | Part::Register(name, _)
            | Part::Array(name)
            | Part::Reciprocal(name) = part
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        names
    }

    /// The text with `operand(name)` in place of each placeholder.
    pub fn render(&self, mut operand: impl FnMut(&str) -> String) -> String {
        let mut out = String::new();
        for part in self.parts() {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Operand(name) => out.push_str(&operand(name)),
                Part::Register(name, i) => out.push_str(&operand(&format!("{name}.{i}"))),
                Part::Major(name) => out.push_str(&operand(&format!("{name}.major"))),
                Part::Array(name) => out.push_str(&operand(&format!("{name}.array"))),
                Part::At(name) => out.push_str(&operand(&format!("{name}.at"))),
                Part::Before(name) => out.push_str(&operand(&format!("{name}.before"))),
                Part::Reciprocal(name) => out.push_str(&operand(&format!("{name}.reciprocal"))),
                Part::Accumulate => out.push_str(&operand("accumulate")),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendering() {
        let t = Template::Cuda("{D} = __hfma({A}, {B}, {D});");
        assert_eq!(t.placeholders(), ["D", "A", "B"]);
        assert_eq!(t.render(str::to_lowercase), "d = __hfma(a, b, d);");
        let t = Template::Ptx("mma {D}, {A}, {accumulate}, {A.major};");
        assert_eq!(t.placeholders(), ["D", "A"]);
        assert_eq!(t.render(str::to_lowercase), "mma d, a, accumulate, a.major;");
        assert_eq!(Template::Ptx("a {b").parts(), [Part::Text("a {b")]);
        assert_eq!(Template::Ptx("").parts(), []);
        let t = Template::Ptx("mov {D.0}, {S}; mov {D.1}, {S};");
        assert_eq!(t.placeholders(), ["D", "S"]);
        assert_eq!(t.render(str::to_lowercase), "mov d.0, s; mov d.1, s;");
        let braces = Template::Ptx("{{ mov {D}, {{{S}}}; }}");
        assert_eq!(braces.placeholders(), ["D", "S"]);
        assert_eq!(braces.render(str::to_lowercase), "{ mov d, {s}; }");
    }
}
