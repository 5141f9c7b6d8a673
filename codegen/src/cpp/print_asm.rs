//! Prints `asm` statements (inline PTX): the instruction as string literals, and one line per list
//! of operands.

use super::ast::{Asm, Expr};
use super::print_expr::{Doc, Level, expr, separated};
use pretty::{Arena, DocAllocator};

/// The longest string literal; longer instructions are broken after the opcode.
const MAX_LITERAL: usize = 84;
/// The longest list of operands; longer lists are broken between two operands.
const MAX_OPERANDS: usize = 92;

pub(super) fn asm<'a>(a: &'a Arena<'a>, asm: &Asm) -> Doc<'a> {
    let operands = !asm.outputs.is_empty() || !asm.inputs.is_empty();
    if !operands {
        let clobber = if asm.memory { " ::: \"memory\"" } else { "" };
        return a.text(format!("asm volatile({}{clobber});", literal(&asm.text, true)));
    }
    let pieces = |line| {
        let pieces = broken(line);
        let last = pieces.len() - 1;
        pieces.into_iter().enumerate().map(move |(i, p)| (p, i == last))
    };
    let mut lines: Vec<Doc<'a>> =
        asm.text.lines().flat_map(pieces).map(|(p, last)| a.text(literal(&p, last))).collect();
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

/// Breaks a long instruction into pieces: the opcode, then as many operands as fit.
fn broken(text: &str) -> Vec<String> {
    let (opcode, mut rest) = match text.split_once(' ') {
        Some(parts) if text.len() > MAX_LITERAL => parts,
        _ => return vec![text.to_owned()],
    };
    let mut pieces = vec![format!("{opcode} ")];
    while rest.len() > MAX_OPERANDS {
        // An operand that is too long by itself is not broken.
        let fits = rest.char_indices().take_while(|(i, _)| *i <= MAX_OPERANDS - 2);
        let comma = fits.filter(|(_, c)| *c == ',').map(|(i, _)| i).last();
        let Some(comma) = comma.or_else(|| rest.find(',')) else { break };
        let end = if rest[comma + 1..].starts_with(' ') { comma + 2 } else { comma + 1 };
        pieces.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
    pieces.push(rest.to_owned());
    pieces
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

/// A C++ string literal. Only printable ASCII characters are unescaped.
pub(super) fn literal(text: &str, newline: bool) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            // Three octal digits end an escape, whatever character follows.
            c if c.is_ascii() => out.push_str(&format!("\\{:03o}", c as u32)),
            _ => out.push('?'),
        }
    }
    out.push_str(if newline { "\\n\"" } else { "\"" });
    out
}

#[cfg(test)]
mod tests {
    use super::{Asm, Expr, MAX_OPERANDS, asm, broken, literal};
    use pretty::Arena;

    #[test]
    fn long_instructions_are_broken_between_operands() {
        assert_eq!(broken("mov %0, %1;"), ["mov %0, %1;"]);
        let registers: Vec<String> = (0..128).map(|i| format!("%{i}")).collect();
        let text = format!("wgmma {{{}}}, %128;", registers.join(", "));
        let pieces = broken(&text);
        assert_eq!(pieces.concat(), text);
        assert!(pieces.len() > 2 && pieces.iter().all(|p| p.len() <= MAX_OPERANDS), "{pieces:?}");
        let long = format!("op {}", "x".repeat(200));
        assert_eq!(broken(&long).concat(), long);
    }

    #[test]
    fn each_instruction_has_its_line() {
        let a = Arena::new();
        let text = format!("{{\n.reg .b32 x;\nmov.b32 {}, %0;\n}}", "x".repeat(80));
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
