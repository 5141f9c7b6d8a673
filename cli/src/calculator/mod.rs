//! Evaluates expressions of layout algebra, such as `composition((6,2):(8,2), (4,3):(3,1))`: the
//! layout calculator.
//!
//! Reading order: `value` (kinds of values), `operation` (a row of the operation table), `ops` (the
//! table), `scan` and `parse` (from text to syntax trees), `scope` (symbols and facts), `eval`,
//! `fault` (reasons why an operation fails), `refusal` (their messages), `json` (the calculator for
//! other programs), `table` (a layout's offsets as a grid).
//!
//! Invariant: the layout library computes the result of every operation. The calculator reads,
//! checks kinds and prints. Invariant: no line causes a panic, an endless wait, or unbounded use of
//! memory.

mod eval;
mod fault;
pub(crate) mod json;
mod operation;
mod ops;
mod parse;
mod refusal;
mod scan;
mod scope;
pub(crate) mod table;
mod value;

pub(crate) use eval::Session;

use operation::Operation;
use std::fmt::Write;

/// The output of `carbyne layout --list`: every operation with its operands, its meaning and an
/// example.
pub(crate) fn list() -> String {
    let mut out = String::new();
    for (heading, family) in ops::FAMILIES {
        let gap = if out.is_empty() { "" } else { "\n" };
        let _ = writeln!(out, "{gap}{heading}");
        for op in family {
            let _ = writeln!(out, "  {}{}\n      {}", op.signature(), also(op, ""), op.doc);
            let _ = writeln!(out, "      {} = {}", op.example.0, op.example.1);
        }
    }
    out
}

/// The page `docs/layout.md`.
#[must_use]
pub fn markdown() -> String {
    let mut page = String::from(INTRODUCTION);
    for (heading, family) in ops::FAMILIES {
        let _ = write!(
            page,
            "\n## {heading}\n\n| operation | gives | example |\n| --- | --- | --- |\n"
        );
        for op in family {
            let (expression, result) = op.example;
            let _ = writeln!(
                page,
                "| `{}`{} | {} | `{expression}` is `{result}` |",
                op.signature(),
                also(op, "`"),
                op.doc
            );
        }
    }
    page
}

/// The aliases of an operation, to print behind its signature.
fn also(op: &Operation, quote: &str) -> String {
    let mut said = vec![];
    if !op.aliases.is_empty() {
        let names: Vec<String> = op.aliases.iter().map(|a| format!("{quote}{a}{quote}")).collect();
        said.push(format!("also {}", names.join(", ")));
    }
    if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) }
}

const INTRODUCTION: &str = "\
# The layout calculator

Generated from the table in `cli/src/calculator/ops`; do not edit.

```sh
cargo run --release -- layout 'composition((6,2):(8,2), (4,3):(3,1))'   # ((2,2),3):((24,2),8)
cargo run --release -- layout 'A = (4,8):(8,1); A o right_inverse(A)'   # (8,4):(1,8)
cargo run --release -- layout --table '(4,8):(8,1)'                     # all values as a grid
cargo run --release -- layout --eval 'Sw<1,0,2> o 0 o 8:1'              # all values as a list
cargo run --release -- layout - < lines.txt                             # one answer per line
cargo run --release -- layout --json < requests.jsonl                   # JSON for other programs
cargo run --release -- layout --list                                    # this page as text
```

## Syntax

| text | meaning |
| --- | --- |
| `8`, `-1`, `_8` | an integer; CuTe prints integers that are known at compile time as `_8` |
| `(4,(2,2))` | a tuple: a shape, a stride, a coordinate, a profile; `(4)` and `4` differ |
| `(1,_)` | a coordinate whose second mode is open |
| `(4,8):(8,1)` | a layout; parentheses around a layout only group |
| `(4,8):(1@0,1@1)` | a layout whose strides go along basis vectors; `2@1@0` is nested |
| `8` where a layout is wanted | `8:1` |
| `[8, 4:2, _]` | a tiler by mode; `_` leaves a mode unchanged. \
    `(8,4)` where a tiler is wanted is `[8,4]`, as in CuTe |
| `Sw<3,4,3> o 0 o (8,64):(64,1)` | a swizzled layout: swizzle, offset, layout |
| `A o B`, `A ∘ B` | `composition(A, B)` |
| `A = (4,8):(8,1); size(A)` | a name for a value; \
    with `layout -` the name is valid for the following lines |
| `M*4 + 1`, `(M + 127)/128` | arithmetic as in programs: \
    `+`, `-`, `*`, `/` and `%`, both rounding down, and `min`, `max`, `ceil_div` |
| `(M,4):(4,1) where M % 8 == 0` | a layout over symbols, \
    with facts about the symbols at the end of the line |
| `M = 16; (M,4):(4,1) where M % 8 == 0` | the layout for `M` = 16; the facts must hold for 16 |
| `A(1,2)`, `A(_,2)` | for a bound layout `A`: the index of a coordinate, or a slice |
| `// ...`, `# ...` | a comment, to the end of the line |

Indices run column-major: the first mode is the fastest. The calculator refuses an operation that
has no exact answer, with the place and an error code that `carbyne explain` explains. With
`layout -`, it answers a refused line with `error CODE` and prints the message to standard error. It
answers the following lines, and exits with code 1.

**Symbols** are at least 1, unless a fact states another lower bound: `where i >= 0, i < M`. An
answer over symbols holds for all values that satisfy the facts. If another fact is needed, the
error L0108 names this fact. Operations that count elements (`is_injective`, `layout_eval`,
operations on swizzled layouts) need numbers. With `layout -`, names and facts are valid for the
following lines.

With `--json`, every line is a request such as
`{\"id\":1,\"op\":\"composition\",\"args\":[\"(6,2):(8,2)\",\"(4,3):(3,1)\"]}`. Strings are
expressions, arrays are tuples or tilers by mode, `null` is `_`. Facts of an expression hold for the
whole request. Every line has one answer:

- a string: a layout with its facts, or a number over symbols such as `\"M*4\"`,
- an integer, a boolean or an array,
- `{\"skip\":true}` for an unknown operation,
- an object with `error`, `code`, `message`, `help`, and with `span`, the range of wrong bytes in
  the string.
";
