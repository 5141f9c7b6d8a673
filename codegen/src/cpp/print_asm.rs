//! Inline PTX as text: the instruction as string literals, one line for each list of operands.

use super::ast::{Asm, Expr};
use super::print_expr::{Doc, Level, expr, separated};
use pretty::{Arena, DocAllocator};

/// Longest string literal; longer instructions are broken after the opcode.
const MAX_LITERAL: usize = 84;

pub(super) fn asm<'a>(a: &'a Arena<'a>, asm: &Asm) -> Doc<'a> {
    let operands = !asm.outputs.is_empty() || !asm.inputs.is_empty();
    if !operands {
        let clobber = if asm.memory { " ::: \"memory\"" } else { "" };
        return a.text(format!("asm volatile({}{clobber});", literal(&asm.text, true)));
    }
    let mut lines: Vec<Doc<'a>> = asm.text.lines().flat_map(|line| broken(a, line)).collect();
    let mut colons = vec![list(a, &asm.outputs), list(a, &asm.inputs)];
    if asm.memory {
        colons.push(a.text(" \"memory\""));
    } else if asm.inputs.is_empty() {
        colons.pop();
    }
    lines.extend(colons.into_iter().map(|c| a.text(":").append(c)));
    a.text("asm volatile(")
        .append(a.hardline().append(a.intersperse(lines, a.hardline())).nest(4))
        .append(");")
}

/// The literals of one instruction, broken after the opcode where it is long.
fn broken<'a>(a: &'a Arena<'a>, line: &str) -> Vec<Doc<'a>> {
    match line.split_once(' ') {
        Some((opcode, rest)) if line.len() > MAX_LITERAL => {
            vec![a.text(literal(&format!("{opcode} "), false)), a.text(literal(rest, true))]
        }
        _ => vec![a.text(literal(line, true))],
    }
}

fn list<'a>(a: &'a Arena<'a>, operands: &[(String, Expr)]) -> Doc<'a> {
    if operands.is_empty() {
        return a.nil();
    }
    let one = |(constraint, e): &(String, Expr)| {
        a.text(literal(constraint, false))
            .append("(")
            .append(expr(a, e, Level::Any).nest(4))
            .append(")")
    };
    a.text(" ").append(separated(a, operands.iter().map(one))).nest(2)
}

/// A C++ string literal. Only printable ASCII stands in it as it is.
pub(super) fn literal(text: &str, newline: bool) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            // Three octal digits end by themselves, whatever follows.
            c if c.is_ascii() => out.push_str(&format!("\\{:03o}", c as u32)),
            _ => out.push('?'),
        }
    }
    out.push_str(if newline { "\\n\"" } else { "\"" });
    out
}

#[cfg(test)]
mod tests {
    use super::{Asm, Expr, asm, literal};
    use pretty::Arena;

    #[test]
    fn each_instruction_has_its_line() {
        let a = Arena::new();
        let text = format!("{{\n.reg .b32 x;\nmov.b32 {}, %0;\n}}", "x".repeat(90));
        let inputs = vec![("r".to_owned(), Expr::Int(1))];
        let doc = asm(&a, &Asm { text, outputs: vec![], inputs, memory: true });
        let lines: Vec<String> =
            doc.pretty(100).to_string().lines().map(|l| l.trim().to_owned()).collect();
        assert_eq!(
            lines[1..5],
            [r#""{\n""#, r#"".reg .b32 x;\n""#, r#""mov.b32 ""#, lines[4].as_str()]
        );
        assert!(lines[4].ends_with(r#"x, %0;\n""#), "{lines:?}");
    }

    #[test]
    fn literals_cannot_be_left() {
        assert_eq!(literal("mov %0;", true), "\"mov %0;\\n\"");
        assert_eq!(literal("a\"); f(\"\\\n1", false), "\"a\\\"); f(\\\"\\\\\\0121\"");
    }
}
