//! Tests that no text that resolves makes the simulator panic or hang. Correct programs are changed
//! at random places, and each text that still resolves runs on a small budget, verified or not.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::testing;
use carbyne_simulate::{Options, simulate};
use std::time::{Duration, Instant};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
}

/// Splits a text into numbers, names and all other characters.
fn words(text: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    for c in text.chars() {
        let word = c.is_ascii_alphanumeric() || c == '_';
        match out.last_mut() {
            Some(last) if word && last.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                last.push(c)
            }
            _ => out.push(c.to_string()),
        }
    }
    out
}

const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "31",
    "32",
    "33",
    "1000000",
    "9223372036854775807",
    "2147483648",
    "65536",
];
const WORDS: [&str; 20] = [
    "f64", "f32", "f16", "i4", "u1", "bool", "e4m3", "GL", "SH", "RF", "MatMul", "Move", "Init",
    "set", "mine", "add", "sum", "cast", "b128", "x2",
];

fn change(words: &mut Vec<String>, random: &mut Random) {
    let at = random.below(words.len());
    let number = words[at].chars().all(|c| c.is_ascii_digit());
    let is_word = words[at].chars().all(|c| c.is_ascii_alphanumeric());
    match random.below(8) {
        0 => drop(words.remove(at)),
        1 => {
            let copy = words[random.below(words.len())].clone();
            words[at] = copy;
        }
        2 | 3 if is_word && !number => words[at] = WORDS[random.below(WORDS.len())].to_owned(),
        _ => {
            let numbers: Vec<usize> = (0..words.len())
                .filter(|i| words[*i].chars().all(|c| c.is_ascii_digit()))
                .collect();
            if let Some(i) = numbers.get(random.below(numbers.len())) {
                words[*i] = NUMBERS[random.below(NUMBERS.len())].to_owned();
            }
        }
    }
}

/// Runs changed texts for a while; returns the number of texts that resolved and that ran to their
/// end.
fn storm(seeds: &[String], seed: u64, time: Duration) -> (usize, usize) {
    let table = AtomTable::new(Arch::Sm80);
    let mut random = Random(seed | 1);
    let options = Options { budget: 100_000, blocks: Some(2), ..Options::default() };
    let start = Instant::now();
    let (mut resolved, mut ran) = (0, 0);
    while start.elapsed() < time {
        let mut text = words(&seeds[random.below(seeds.len())]);
        for _ in 0..=random.below(3) {
            change(&mut text, &mut random);
        }
        let text = text.concat();
        let Ok(module) = carbyne_ir::text::parse(&text) else { continue };
        let Ok(program) = carbyne_ir::resolve::resolve(&module, &text) else { continue };
        resolved += 1;
        let began = Instant::now();
        let done = std::panic::catch_unwind(|| simulate(&program, &table, &options).is_ok());
        match done {
            Ok(fine) => ran += usize::from(fine),
            Err(_) => panic!("seed {seed} panics on:\n{text}"),
        }
        assert!(began.elapsed() < testing::SOON, "seed {seed} is slow on:\n{text}");
    }
    (resolved, ran)
}

#[test]
fn changed_programs_end_with_an_answer() {
    let folders = ["../examples", "../examples/tile"];
    let mut seeds: Vec<String> = folders
        .iter()
        .flat_map(|f| std::fs::read_dir(format!("{}/{f}", env!("CARGO_MANIFEST_DIR"))).unwrap())
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "cby"))
        .map(|p| std::fs::read_to_string(p).unwrap())
        .map(|t| t.replace("256", "128").replace("1024", "128").replace("8192", "512"))
        .collect();
    seeds.sort();
    seeds.push(include_str!("../robust.cby").to_owned());
    let seed = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let seconds = std::env::var("SECONDS_EACH").ok().and_then(|s| s.parse().ok());
    let seconds = seconds.unwrap_or(testing::count(2, 60));
    let (resolved, ran) = storm(&seeds, seed, Duration::from_secs(seconds));
    assert!(resolved > 20 && ran > 5, "{resolved} programs resolved, {ran} ran");
}
