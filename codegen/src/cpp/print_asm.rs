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
    let mut lines = match asm.text.split_once(' ') {
        _ if asm.text.contains('\n') => {
            asm.text.lines().map(|line| a.text(literal(line, true))).collect()
        }
        Some((opcode, rest)) if asm.text.len() > MAX_LITERAL => {
            vec![a.text(literal(&format!("{opcode} "), false)), a.text(literal(rest, true))]
        }
        _ => vec![a.text(literal(&asm.text, true))],
    };
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
    use super::literal;

    #[test]
    fn literals_cannot_be_left() {
        assert_eq!(literal("mov %0;", true), "\"mov %0;\\n\"");
        assert_eq!(literal("a\"); f(\"\\\n1", false), "\"a\\\"); f(\\\"\\\\\\0121\"");
    }
}
