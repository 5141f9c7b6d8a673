//! Tests damaged programs: `check`, `fmt`, `compile`, `simulate` and `draw` end soon, and never
//! with an internal error (the exit code is at most 2). The commands after `check` get only texts
//! that are well formed.
//!
//! By default 180 damaged texts are tried, 5000 in a run of all tests, or as many as `DAMAGED`
//! says. The number of the first failure is reported; `DAMAGED_FROM=1234` starts with this number.

use crate::support::{carbyne, none, root, texts_under};
use carbyne_ir::testing;
use std::time::Instant;

/// Pseudorandom numbers from a seed.
struct Random(u64);

impl Random {
    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        // The generator and finalizer of splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % n.max(1) as u64) as usize
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// Splits a text into words, numbers, signs and blanks.
fn words(text: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for c in text.chars() {
        match out.last_mut() {
            Some(last) if is_word(c) && last.chars().all(is_word) => last.push(c),
            _ => out.push(c.to_string()),
        }
    }
    out
}

/// Replacements for words: numbers at limits, and words of the language.
const REPLACEMENTS: [&str; 30] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "16",
    "32",
    "33",
    "128",
    "1024",
    "4096",
    "9223372036854775807",
    "_",
    "f16",
    "f32",
    "i4",
    "bf16",
    "GL",
    "SH",
    "RF",
    "thread",
    "block",
    "Move",
    "MatMul",
    "Init",
    "barrier",
    "{?}",
    ".mine",
    ".scalar()",
    "K",
];

/// The text with up to four words removed, doubled, exchanged or replaced.
fn damaged(text: &str, random: &mut Random) -> String {
    let mut words = words(text);
    for _ in 0..=random.below(4) {
        let at = random.below(words.len());
        // Do not damage blanks and the version.
        if words[at].trim().is_empty() || at < 3 {
            continue;
        }
        match random.below(6) {
            0 => drop(words.remove(at)),
            1 => words.insert(at, words[at].clone()),
            2 => {
                let other = random.below(words.len());
                words.swap(at, other);
            }
            3 => {
                let other = random.below(words.len());
                words[at] = words[other].clone();
            }
            _ => words[at] = random.of(&REPLACEMENTS).to_owned(),
        }
    }
    words.concat()
}

#[test]
fn every_command_survives_them() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let first = variable("DAMAGED_FROM").unwrap_or(0);
    let n = variable("DAMAGED").unwrap_or(testing::count(180, 5000));
    let mut files = texts_under(&root().join("examples"));
    files.extend(texts_under(&root().join("cli/tests/filetests")));
    files.extend(texts_under(&root().join("codegen/tests/kernels")));
    let texts: Vec<String> = files.iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
    let commands: [&[&str]; 6] = [
        &["check", "-"],
        &["fmt", "-", "--expand"],
        &["compile", "-", "--arch", "sm_80"],
        &["compile", "-", "--arch", "sm_70"],
        &["simulate", "-", "--arch", "sm_80", "--blocks", "1", "--budget", "100000"],
        &["draw", "-", "--tensor", "%A"],
    ];
    let mut n_valid = 0;
    let mut wrong = vec![];
    for i in first..first + n {
        let mut random = Random(i);
        let text = damaged(&texts[random.below(texts.len())], &mut random);
        for (c, command) in commands.iter().enumerate() {
            let began = Instant::now();
            let ran = carbyne(command, &text);
            let took = began.elapsed();
            n_valid += usize::from(c == 0 && ran.code == 0);
            if ran.code > 2 || took > testing::SOON {
                wrong.push(format!(
                    "DAMAGED_FROM={i} {}: exit code {} after {took:?}\n{}\n{text}",
                    command.join(" "),
                    ran.code,
                    ran.stderr,
                ));
            }
            // A text that is not well formed remains so for the other commands.
            if c == 0 && ran.code != 0 {
                break;
            }
        }
        if wrong.len() > 4 {
            break;
        }
    }
    assert!(
        n_valid as u64 * 20 >= n,
        "only {n_valid} of {n} texts are well formed: too much damage"
    );
    none(wrong);
}
