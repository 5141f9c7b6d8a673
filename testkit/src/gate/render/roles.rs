//! Distributes the statements of a random kernel to two parts of a block, for example to 128
//! threads and one warp, so that decomposition has to synchronize them. Statements that use
//! registers go to one part, the others to either.

use std::collections::BTreeSet;

/// Two parts of a block.
pub(super) struct Parts {
    /// The first thread of the part with the registers, and its number of threads.
    first: i64,
    most: i64,
    /// The number of threads of the other part.
    others: i64,
    /// Selects the statements of the other part.
    choice: u8,
}

impl Parts {
    /// A part with `threads` threads and a part of one or two warps. `None` if all threads execute
    /// everything.
    pub(super) fn from_choice(roles: u8, threads: i64) -> Option<Self> {
        let others = 32 * (1 + i64::from(roles / 2 % 2));
        let first = if roles.is_multiple_of(2) { 0 } else { others };
        (roles > 0).then_some(Parts { first, most: threads, others, choice: roles / 4 })
    }

    /// The number of threads of the block.
    pub(super) fn threads(&self) -> i64 {
        self.most + self.others
    }

    /// The kernel with its statements distributed to the parts.
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
                // All threads execute a spec with a body; the statements in the body name their own
                // threads.
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
