//! How an atom is written: text with a placeholder `{name}` for each operand and number.
//!
//! Besides operands there are `{D.2}`, register 2 of operand D (the first is 0), `{A.major}`, the
//! immediate of the major that operand A has (0 where it is K-major, 1 where it is MN-major),
//! `{S.array}`, `{S.at}` and `{S.before}`, the array of an operand in memory, where in it the
//! executing thread's first element is, and how far behind a multiple of as many bytes as are read
//! around it ([`crate::AtomOperand::around`]), in elements of the operand's type, `{B.reciprocal}`,
//! 1 divided by the literal that fills B, rounded once to its type, and `{accumulate}`, 1 in a
//! MatMul and 0 in a `MatMul.set`.
//!
//! Invariant: single braces in a template delimit placeholders and nothing else; `{{` and `}}` are
//! braces of the instruction text. A line break stands between instructions of a sequence.

/// The text of an atom.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Template {
    /// A C++ statement: `{D} = __hfma({A}, {B}, {D});`. An operand prints as an lvalue of the type
    /// [`crate::AtomOperand::cxx`] that covers all values of the executing thread (a literal as an
    /// expression of that type).
    Cuda(&'static str),
    /// A PTX instruction: `ldmatrix.sync.aligned.m8n8.x4.shared.b16 {D}, [{S}];`. A register
    /// operand prints as its list of registers in braces (`{%0, %1}`, also where it is only one),
    /// an operand in memory as the register that holds the executing thread's address, or its
    /// descriptor.
    Ptx(&'static str),
    /// PTX instructions on scalars: `tanh.approx.f32 {D}, {S};`, `red.global.add.f32 [{D}], {S};`.
    /// As [`Template::Ptx`], but a register operand is one register and prints without braces. A
    /// written operand may serve as a temporary only after the last use of every read one, which
    /// may share its register.
    PtxScalar(&'static str),
}

/// A piece of a template.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part<'a> {
    /// Printed as it stands.
    Text(&'a str),
    /// The name of an operand.
    Operand(&'a str),
    /// One of the registers of that operand.
    Register(&'a str, usize),
    /// The immediate of that operand's major.
    Major(&'a str),
    /// The array that holds that operand.
    Array(&'a str),
    /// The index of its first element in the array.
    At(&'a str),
    /// How many elements the aligned vector that holds it begins before it.
    Before(&'a str),
    /// The reciprocal of the literal that fills that operand.
    Reciprocal(&'a str),
    /// 1 where the products are added to D, 0 where they replace it.
    Accumulate,
}

impl<'a> Part<'a> {
    /// What a placeholder of that name stands for.
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

    /// The pieces in order. A brace without its partner is plain text; no atom of a table has one.
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

    /// The text with every placeholder replaced by what `operand` says of the name in it.
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
