//! Defines [`Fact`], a missing fact about symbols, such as `K % 64 == 0`, as the text format writes
//! it. The layout algebra and the solver return it if they cannot decide a question without it.
//! Errors show it, so that a person can add it after `where`. `program/facts.rs` has the facts that
//! a module states.

use std::fmt;

/// A fact about symbols in the syntax of the text format: `K % 64 == 0`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Fact {
    /// `value % divisor == 0`
    Divides {
        /// The divisor.
        divisor: String,
        /// The value divided.
        value: String,
    },
    /// `smaller < larger`
    Less {
        /// The smaller side.
        smaller: String,
        /// The larger side.
        larger: String,
    },
    /// `smaller <= larger`
    AtMost {
        /// The smaller or equal side.
        smaller: String,
        /// The larger or equal side.
        larger: String,
    },
    /// `left == right`
    Equal {
        /// One side.
        left: String,
        /// The other side.
        right: String,
    },
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Before `%` a sum needs parentheses, after it a product, too. Comparisons bind weaker than
        // both.
        let within = |s: &str, weak: &[char]| {
            if s.contains(weak) { format!("({s})") } else { s.to_owned() }
        };
        match self {
            Fact::Divides { divisor, value } => {
                let value = within(value, &[' ']);
                write!(f, "{value} % {} == 0", within(divisor, &[' ', '*', '/', '%']))
            }
            // `M > 8` reads better than `8 < M`.
            Fact::Less { smaller, larger } if smaller.parse::<i64>().is_ok() => {
                write!(f, "{larger} > {smaller}")
            }
            Fact::Less { smaller, larger } => write!(f, "{smaller} < {larger}"),
            Fact::AtMost { smaller, larger } => write!(f, "{smaller} <= {larger}"),
            Fact::Equal { left, right } => write!(f, "{left} == {right}"),
        }
    }
}

/// Facts as the text format writes them after `where`: `N % 8 == 0, K % 8 == 0`.
#[must_use]
pub fn listed(facts: &[Fact]) -> String {
    facts.iter().map(Fact::to_string).collect::<Vec<_>>().join(", ")
}
