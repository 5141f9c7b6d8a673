//! A calculator for layout algebra: `composition((6,2):(8,2), (4,3):(3,1))` and what it is worth.
//!
//! Reading order: `value` (what there is), `operation` (a row of the table), `ops` (the table),
//! `parse`, `scope` (symbols and facts), `eval`, `fault` (why there is no answer), `refusal` (how
//! that is said), `json` (the same for programs), `table` (values as a grid).
//!
//! Invariant: every operation is one call of the library; the calculator reads, checks kinds and
//! prints. Invariant: no line makes this panic, wait, or take memory without bound.

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

/// What `carbyne layout --list` prints: every operation with its operands, its meaning and an
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

/// What there is to say besides the signature.
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
cargo run --release -- layout 'composition((6,2):(8,2), (4,3):(3,1))'            # ((2,2),3):((24,2),8)
cargo run --release -- layout 'A = (4,8):(8,1); A o right_inverse(A)'            # (8,4):(1,8)
cargo run --release -- layout --table '(4,8):(8,1)'                              # all values, as a grid
cargo run --release -- layout --eval 'Sw<1,0,2> o 0 o 8:1'                       # all values, as a list
cargo run --release -- layout - < lines.txt                                      # answers line by line
cargo run --release -- layout --json < requests.jsonl                            # the same for programs
cargo run --release -- layout --list                                             # this page, as text
```

## What is written how

| text | is |
| --- | --- |
| `8`, `-1`, `_8` | an integer; `_8` is how CuTe prints one that is known at compile time |
| `(4,(2,2))` | a tuple: a shape, a stride, a coordinate, a profile; `(4)` and `4` differ |
| `(1,_)` | a coordinate whose second mode is open |
| `(4,8):(8,1)` | a layout; parentheses around it only group |
| `(4,8):(1@0,1@1)` | a layout whose strides go along basis vectors; `2@1@0` is nested |
| `8` where a layout is wanted | `8:1` |
| `[8, 4:2, _]` | a tiler by mode; `_` leaves a mode alone. `(8,4)` where a tiler is wanted is `[8,4]`, as in CuTe |
| `Sw<3,4,3> o 0 o (8,64):(64,1)` | a swizzled layout: swizzle, offset, layout |
| `A o B`, `A ∘ B` | `composition(A, B)` |
| `A = (4,8):(8,1); size(A)` | a name for a value; with `layout -` it lasts for the lines that follow |
| `M*4 + 1`, `(M + 127)/128` | arithmetic as in programs: `+`, `-`, `*`, `/` and `%`, both rounding down, and `min`, `max`, `ceil_div` |
| `(M,4):(4,1) where M % 8 == 0` | a layout over symbols; the facts at the end of the line name them |
| `M = 16; (M,4):(4,1) where M % 8 == 0` | the same layout with 16 in the place of `M`; the facts must hold for 16 |
| `A(1,2)`, `A(_,2)` | of a bound layout the index of a coordinate, or a slice |
| `// ...`, `# ...` | a comment, to the end of the line |

Indices run column-major: the first mode is the fastest. What has no exact answer is refused, with the place and a code
that `carbyne explain` knows. A line of `layout -` that is refused has the answer `error CODE` and its message on standard error;
the lines after it are answered, and the exit code is 1.

**Symbols** are 1 or more, unless a fact states a least value: `where i >= 0, i < M`. An answer over symbols holds for all values that
the facts allow; if it needs another fact, the error L0108 names this fact. Operations that count elements (`is_injective`,
`layout_eval`, operations on swizzled layouts) need numbers. With `layout -`, names and facts last for the lines that follow.

With `--json` every line is a request such as `{\"id\":1,\"op\":\"composition\",\"args\":[\"(6,2):(8,2)\",\"(4,3):(3,1)\"]}`. Strings are
expressions, arrays tuples or tilers by mode, `null` is `_`. Facts of an expression hold for the whole request. Every line has one answer: a string (a layout with its facts, or a number over symbols: `\"M*4\"`), an integer, a boolean,
an array, `{\"skip\":true}` for an operation that there is not, or an object with `error`, `code`, `message`, `help`, and as `span` the
range of bytes in the string that is wrong.
";
