//! Gives the statements of a kernel to parts of a block: registers to one of them, and what has
//! none to either.

use std::collections::BTreeSet;

/// Two parts of a block.
pub(super) struct Parts {
    /// Of the part that has the registers.
    first: i64,
    most: i64,
    /// Of the other.
    others: i64,
    /// Which statements the other has.
    choice: u8,
}

impl Parts {
    /// A part of so many threads beside one or two warps; none where all execute all.
    pub(super) fn of(roles: u8, threads: i64) -> Option<Self> {
        let others = 32 * (1 + i64::from(roles / 2 % 2));
        let first = if roles.is_multiple_of(2) { 0 } else { others };
        (roles > 0).then_some(Parts { first, most: threads, others, choice: roles / 4 })
    }

    /// Threads of the block.
    pub(super) fn threads(&self) -> i64 {
        self.most + self.others
    }

    /// A kernel with its statements given to the parts.
    pub(super) fn given(&self, kernel: &str) -> String {
        let (a, b) = (self.first, self.first + self.most);
        let (c, d) = if a > 0 { (0, a) } else { (b, b + self.others) };
        let parts = format!("  #most = #cta[{a}..{b}]\n  #others = #cta[{c}..{d}]\n");
        let registers: BTreeSet<&str> = kernel
            .lines()
            .filter(|l| l.contains("Allocate %") && l.contains(".RF"))
            .filter_map(|l| l.trim().strip_prefix("Allocate ")?.split(':').next())
            .collect();
        let mut out = String::new();
        for (i, line) in kernel.lines().enumerate() {
            let mut names = line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '%'));
            let held = names.any(|name| registers.contains(name));
            let others = !held && (usize::from(self.choice) + i * 7).is_multiple_of(3);
            let own = if others { "#others" } else { "#most" };
            match i {
                0 => out += line,
                // A spec with a body is one of all, whose statements have threads of their own.
                _ if line.trim_end().ends_with('{') => out += line,
                _ => out += &line.replace("#cta", own),
            }
            out.push('\n');
            if i == 0 {
                out += &parts;
            }
        }
        out
    }
}
