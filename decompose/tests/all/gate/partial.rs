//! Generates random programs whose tiles do not divide the extents: copies through shared memory
//! and registers, operations and reductions on rows, and products. Extents are near multiples of
//! the tiles. They are constants, or symbols, of which the program is decomposed once.
//!
//! Every program has a `means` block, so that its generated body is compared with the meaning, too.
//!
//! Invariant: a random number of 0 selects the simplest choice everywhere, and among extents one
//! that the tile divides. Simplifying a program that fails makes its numbers smaller.

use carbyne_atoms::Arch;
use carbyne_simulate::Inputs;
use carbyne_testkit::gate::Subject;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const ARCHS: [Arch; 8] = [
    Arch::Sm80,
    Arch::Sm90a,
    Arch::Sm75,
    Arch::Sm80,
    Arch::Sm90a,
    Arch::Sm86,
    Arch::Sm89,
    Arch::Sm90,
];
/// Threads of a block.
const THREADS: [i64; 8] = [128, 32, 64, 128, 256, 128, 96, 64];
/// Extents of tiles.
const TILES: [i64; 8] = [16, 32, 64, 16, 32, 48, 128, 24];

/// A program, where it runs, and on what.
#[derive(Clone, Debug)]
pub(super) struct Partial {
    /// Which architecture, schedule, inputs and number of threads.
    setting: (u8, u8, u8, u8),
    /// Whether extents are symbols.
    symbols: u8,
    /// Which tiles, and which sizes around them.
    tiles: [u8; 3],
    sizes: [u8; 3],
    /// Which strides tensors have, in the order in which they are declared.
    layouts: Vec<u8>,
    scalar: u8,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// A copy.
    Copy { batch: u8, transposed: u8, hops: Vec<u8> },
    /// Operations on tiles: blocks of whole rows, blocks along both modes, or a loop along the
    /// rows.
    Rows { how: u8, steps: Vec<u8> },
    /// A product, with operations before and behind it.
    Product {
        batch: u8,
        stages: u8,
        places: (u8, u8),
        left: u8,
        right: u8,
        steps: Vec<u8>,
        store: u8,
    },
    /// A product of a product, summed in a loop along the mode that both have.
    Chained { stages: u8, places: (u8, u8), right: u8, divided: u8 },
}

pub(super) fn partial() -> impl Strategy<Value = Partial> {
    let hops = vec(0..8u8, 0..4);
    let steps = |most| vec(0..16u8, 0..most);
    let product = (0..4u8, 0..4u8, (0..4u8, 0..4u8), 0..6u8, 0..6u8, steps(3), 0..4u8);
    let form = prop_oneof![
        3 => (0..4u8, 0..4u8, hops)
            .prop_map(|(batch, transposed, hops)| Form::Copy { batch, transposed, hops }),
        4 => (0..6u8, steps(5)).prop_map(|(how, steps)| Form::Rows { how, steps }),
        5 => product.prop_map(|(batch, stages, places, left, right, steps, store)| Form::Product {
            batch, stages, places, left, right, steps, store,
        }),
    ];
    let form = prop_oneof![
        12 => form,
        2 => (0..4u8, (0..4u8, 0..4u8), 0..6u8, 0..2u8).prop_map(
            |(stages, places, right, divided)| Form::Chained { stages, places, right, divided }
        ),
    ];
    let setting = (0..8u8, 0..8u8, any::<u8>(), 0..8u8);
    let extents = ([0..8u8, 0..8u8, 0..8u8], [0..20u8, 0..20u8, 0..20u8]);
    (setting, 0..3u8, extents, vec(0..8u8, 6), 0..8u8, form).prop_map(
        |(setting, symbols, (tiles, sizes), layouts, scalar, form)| Partial {
            setting,
            symbols,
            tiles,
            sizes,
            layouts,
            scalar,
            form,
        },
    )
}

fn of<T: Copy>(table: &[T], i: u8) -> T {
    table[usize::from(i) % table.len()]
}

fn is_prime(n: i64) -> bool {
    n > 1 && (2..n).take_while(|d| d * d <= n).all(|d| n % d != 0)
}

/// A size around that of a tile: whole tiles, one more or less, primes, multiples of 8, 1.
fn size(tile: i64, i: u8) -> i64 {
    let prime = |down: bool| {
        let mut from = if down { tile - 1 } else { 2 * tile };
        while !is_prime(from) {
            from += if down { -1 } else { 1 };
        }
        from
    };
    match i {
        0 => tile,
        1 | 2 => tile - 1,
        3 | 4 => tile + 1,
        5 => 1,
        6 => prime(true),
        7 => prime(false),
        8 | 9 => tile + 8,
        10 => tile - 8,
        11 => 2 * tile - 1,
        12 => 2 * tile + 1,
        13 => 2 * tile + 8,
        14 => 3,
        15 => 8,
        16 => tile / 2,
        17 => 2 * tile,
        18 => tile + 2,
        _ => 2 * tile + tile / 2,
    }
}

/// The parts of a program that are written so far.
struct Writer<'a> {
    case: &'a Partial,
    arch: Arch,
    /// Values of `M`, `N` and `K`.
    sizes: BTreeMap<&'static str, i64>,
    tiles: BTreeMap<&'static str, i64>,
    declared: Vec<String>,
    inputs: Vec<String>,
    outputs: Vec<String>,
    body: String,
    means: String,
    features: Vec<&'static str>,
    names: usize,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.body, "  {line}");
    }

    fn mean(&mut self, line: &str) {
        let _ = writeln!(self.means, "  {line}");
    }

    fn new_name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("%{prefix}{}", self.names)
    }

    /// Declares a tensor of the caller. Rows and columns are names of extents, or 1.
    fn declare(&mut self, name: &str, (rows, columns): (&str, &str), batch: bool, scalar: &str) {
        let layout = of(&self.case.layouts, self.declared.len() as u8);
        let value = |n: &str| self.sizes.get(n).copied().unwrap_or(1);
        let symbolic = self.case.symbols == 1;
        // Strides that are multiples of 8, though the extents are none.
        let padded = |n: &str| match symbolic {
            true => format!("({n} + 15) / 8 * 8"),
            false => format!("{}", (value(n) + 15) / 8 * 8),
        };
        let (by_rows, step, many) = match layout {
            0..=2 => (true, columns.to_owned(), rows),
            3 => (false, rows.to_owned(), columns),
            4 | 5 => (true, padded(columns), rows),
            6 => (false, padded(rows), columns),
            _ => (true, format!("{columns} + 3"), rows),
        };
        let ty = if rows == "1" || columns == "1" {
            if batch { format!("[2,{rows},{columns}]") } else { format!("[{rows},{columns}]") }
        } else {
            if step != columns {
                self.features.push(if by_rows { "padded rows" } else { "columns" });
            }
            let strides = match by_rows {
                true => format!("{step},1"),
                false => format!("1,{step}"),
            };
            match batch {
                true => format!("[(2,{rows},{columns}):(({step}) * {many},{strides})]"),
                false => format!("[({rows},{columns}):({strides})]"),
            }
        };
        self.declared.push(format!("%{name}:{ty}.{scalar}.GL"));
    }

    fn input(&mut self, name: &str, extents: (&str, &str), batch: bool, scalar: &str) {
        self.declare(name, extents, batch, scalar);
        self.inputs.push(format!("%{name}"));
    }

    fn output(&mut self, name: &str, extents: (&str, &str), batch: bool, scalar: &str) {
        self.declare(name, extents, batch, scalar);
        self.outputs.push(format!("%{name}"));
    }
}

impl Partial {
    /// The program and how it is judged; what occurs in it.
    pub(super) fn render(&self) -> (Subject, Vec<&'static str>) {
        let (arch, schedule, seed, threads) = self.setting;
        let names = ["M", "N", "K"];
        let products = matches!(self.form, Form::Product { .. } | Form::Chained { .. });
        let tile = |i: usize| match of(&TILES, self.tiles[i]) {
            // Tiles of products are whole instructions, and not many of them.
            24 | 128 if products => 64,
            n => n,
        };
        let arch = of(&ARCHS, arch);
        let threads = match of(&THREADS, threads) {
            96 if products => 128,
            n => n,
        };
        let mut w = Writer {
            case: self,
            arch,
            sizes: names
                .iter()
                .enumerate()
                .map(|(i, n)| (*n, size(tile(i), self.sizes[i])))
                .collect(),
            tiles: names.iter().enumerate().map(|(i, n)| (*n, tile(i))).collect(),
            declared: vec![],
            inputs: vec![],
            outputs: vec![],
            body: String::new(),
            means: String::new(),
            features: vec![],
            names: 0,
        };
        if let Form::Chained { .. } = self.form {
            // One tile is as long as the rows of both results.
            let most = w.sizes.get_mut("K").expect("a size");
            *most = (*most).min(w.tiles["K"]);
        }
        let (grid, exact) = match &self.form {
            Form::Copy { batch, transposed, hops } => w.copy(*batch == 3, *transposed == 3, hops),
            Form::Rows { how, steps } => w.rows(*how, steps),
            Form::Product { batch, stages, places, left, right, steps, store } => {
                w.product(*batch == 3, *stages, *places, (*left, *right), steps, *store)
            }
            Form::Chained { stages, places, right, divided } => {
                w.chained(*stages, *places, *right, *divided == 1)
            }
        };
        let used: Vec<&str> = names.into_iter().filter(|n| *n != "K" || products).collect();
        let mut text = String::new();
        let all = |sep: &str| {
            let all: Vec<String> = used.iter().map(|n| format!("{n}{sep}{}", w.sizes[n])).collect();
            all
        };
        if used.iter().any(|n| w.sizes[n] % w.tiles[n] != 0) {
            w.features.push("a size that its tile does not divide");
        }
        match self.symbols {
            1 => {
                w.features.push("sizes that are symbols");
                let facts: Vec<String> = used
                    .iter()
                    .map(|n| {
                        // A block of whole rows needs to know how long they are.
                        let most = if w.body.contains(&format!("ceil_div({n},"))
                            || grid.contains(&format!("ceil_div({n},"))
                        {
                            4096
                        } else {
                            w.tiles[n]
                        };
                        let vectors = if w.sizes[n] % 8 == 0 {
                            format!(", {n} % 8 == 0")
                        } else {
                            String::new()
                        };
                        format!("{n} > 0, {n} <= {most}{vectors}")
                    })
                    .collect();
                let _ = writeln!(text, "carbyne 2");
                let _ = writeln!(
                    text,
                    "sym {} where {} typical {}",
                    used.join(", "),
                    facts.join(", "),
                    all("=").join(", ")
                );
            }
            _ => {
                let _ = writeln!(text, "carbyne 2\nlet {}", all(" = ").join(", "));
            }
        }
        w.declared.iter().for_each(|d| {
            let _ = writeln!(text, "{d}");
        });
        let _ = write!(
            text,
            "Spec @k <<<#grid:[{grid}], #cta:[{}]>>> ({}) -> ({}) means {{\n{}}} {{\n{}}}\n",
            threads,
            w.inputs.join(", "),
            w.outputs.join(", "),
            w.means,
            w.body,
        );
        let exact =
            if exact { w.outputs.iter().map(|o| o[1..].to_owned()).collect() } else { vec![] };
        let symbols = match self.symbols {
            1 => used.iter().map(|n| ((*n).to_owned(), w.sizes[n])).collect(),
            _ => BTreeMap::new(),
        };
        let subject = Subject {
            text,
            arch,
            inputs: Inputs::Ints(u64::from(seed)),
            schedule: (schedule > 0).then_some(u64::from(schedule)),
            exact,
            overflows: false,
            symbols,
        };
        w.features.sort_unstable();
        w.features.dedup();
        (subject, w.features)
    }
}

/// How one tile of a matrix is written.
fn tile(name: &str, batch: bool, extents: (&str, &str), at: (&str, &str)) -> String {
    let batch = if batch { "[@b, _, _]" } else { "" };
    format!("%{name}{batch}.tile([{},{}])[{}, {}]", extents.0, extents.1, at.0, at.1)
}

impl Writer<'_> {
    fn copy(&mut self, batch: bool, transposed: bool, hops: &[u8]) -> (String, bool) {
        let scalar = of(&["f16", "f32", "f16", "i8", "i32", "bf16", "u8", "f64"], self.case.scalar);
        let (m, n) = (self.tiles["M"], self.tiles["N"]);
        self.input("A", ("M", "N"), batch, scalar);
        let to = if transposed { ("N", "M") } else { ("M", "N") };
        self.output("B", to, batch, scalar);
        let (bm, bn) = (m.to_string(), n.to_string());
        let from = tile("A", batch, (&bm, &bn), ("@i", "@j"));
        let to = match transposed {
            true => tile("B", batch, (&bn, &bm), ("@j", "@i")) + ".transpose()",
            false => tile("B", batch, (&bm, &bn), ("@i", "@j")),
        };
        self.mean(match (transposed, batch) {
            (false, _) => "%B = move(%A)",
            (true, false) => "%B = move(%A.transpose())",
            (true, true) => "%B = move(%A.permute([0,2,1]))",
        });
        self.features.push(if transposed { "a transpose" } else { "a copy" });
        self.line(&format!("%from = {from}"));
        self.line(&format!("%to = {to}"));
        let mut at = "%from".to_owned();
        for (i, hop) in hops.iter().enumerate() {
            // A part of a tile that need not divide it; of the caller's tensors alone.
            let (p, q) = of(&[(m, n / 2), (m / 2, n), (8, 8), (m / 2, n / 2)], *hop);
            let place = if hop % 2 == 0 { "SH" } else { "RF" };
            match hop {
                4..=6 if i == 0 => {
                    let s = self.new_name("s");
                    self.features.push("parts of a tile");
                    self.line(&format!("Allocate {s}:[{m},{n}].{scalar}.{place}{{?}}"));
                    // Registers are written by whole tiles.
                    if place == "SH" {
                        self.line(&format!("for (p = 0; p < {}; p += 1) {{", m / p));
                        self.line(&format!("  for (q = 0; q < {}; q += 1) {{", n / q));
                        self.line(&format!(
                            "    Move ({at}.tile([{p},{q}])[p, q]) -> ({s}.tile([{p},{q}])[p, q])"
                        ));
                        self.line("  }");
                        self.line("}");
                    } else {
                        self.line(&format!("Move ({at}) -> ({s})"));
                    }
                    at = s;
                }
                _ => {
                    let s = self.new_name("s");
                    self.line(&format!("Move ({at}) -> ({s}:{place})"));
                    at = s;
                }
            }
        }
        match hops.first() {
            Some(7) if hops.len() == 1 => {
                // Parts of which none divides the tile go by themselves.
                self.features.push("parts that do not divide a tile");
                self.body.truncate(self.body.find("  Move").unwrap_or(0));
                let (p, q) = (12, 32);
                self.line(&format!("for (p = 0; p < {}; p += 1) {{", (m + p - 1) / p));
                self.line(&format!("  for (q = 0; q < {}; q += 1) {{", (n + q - 1) / q));
                self.line(&format!("    Move (%from.tile([{p},{q}])[p, q]) -> (%x)"));
                self.line(&format!("    Move (%x) -> (%to.tile([{p},{q}])[p, q])"));
                self.line("  }");
                self.line("}");
            }
            _ => self.line(&format!("Move ({at}) -> (%to)")),
        }
        let batch = if batch { ", @b < 2" } else { "" };
        (format!("@i < ceil_div(M, {m}), @j < ceil_div(N, {n}){batch}"), true)
    }

    fn rows(&mut self, how: u8, steps: &[u8]) -> (String, bool) {
        let half = self.case.scalar % 4 == 1;
        let scalar = if half { "f16" } else { "f32" };
        let (m, n) = (self.tiles["M"], self.tiles["N"]);
        let (bm, bn) = (m.to_string(), n.to_string());
        let long = matches!(how, 4 | 5);
        if how <= 2 {
            // One tile is as long as a row.
            let most = self.sizes.get_mut("N").expect("a size");
            *most = (*most).min(n);
        }
        self.input("X", ("M", "N"), false, scalar);
        let j = match how {
            0..=2 => "0",
            3 => "@j",
            _ => "j",
        };
        if long {
            self.line(&format!("%r:[{m},1].f32 = {}", if how == 4 { "0" } else { "-inf" }));
            self.line(&format!("for (j = 0; j < ceil_div(N, {n}); j += 1) {{"));
        }
        let from = tile("X", false, (&bm, &bn), ("@i", j));
        self.line(&format!("Move ({from}) -> (%x)"));
        if half {
            self.line("%w = cast(%x, f32)");
            self.mean("%w = cast(%X, f32)");
        }
        let mut at = if half {
            ("%w".to_owned(), "%w".to_owned())
        } else {
            ("%x".to_owned(), "%X".to_owned())
        };
        for (i, step) in steps.iter().enumerate() {
            at = self.step(*step, i, at, how <= 2, ("@i", j), (m, n));
        }
        let (value, meaning) = at;
        if long {
            let op = if how == 4 { "sum" } else { "max" };
            self.features.push("a reduction in a loop");
            self.line(&match how {
                4 => format!("%r = %r + sum({value}, axis=1)"),
                _ => format!("%r = max(%r, max({value}, axis=1))"),
            });
            self.line("}");
            self.output("R", ("M", "1"), false, "f32");
            let to = tile("R", false, (&bm, "1"), ("@i", "0"));
            self.line(&format!("Move (%r) -> ({to})"));
            self.mean(&format!("%R = {op}({meaning}, axis=1)"));
            return (format!("@i < ceil_div(M, {m})"), false);
        }
        if how == 2 {
            self.features.push("a reduction that is stored");
            self.output("R", ("M", "1"), false, "f32");
            let to = tile("R", false, (&bm, "1"), ("@i", "0"));
            self.line(&format!("{to} = sum({value}, axis=1)"));
            self.mean(&format!("%R = sum({meaning}, axis=1)"));
        }
        self.features.push("rows");
        self.output("Y", ("M", "N"), false, "f32");
        let to = tile("Y", false, (&bm, &bn), ("@i", j));
        self.line(&format!("{to} = {value} * 2"));
        self.mean(&format!("%Y = {meaning} * 2"));
        let along = if how == 3 { format!(", @j < ceil_div(N, {n})") } else { String::new() };
        (format!("@i < ceil_div(M, {m}){along}"), false)
    }

    /// An operation on a value and on what it means.
    fn step(
        &mut self,
        step: u8,
        i: usize,
        (value, meaning): (String, String),
        whole: bool,
        at: (&str, &str),
        (m, n): (i64, i64),
    ) -> (String, String) {
        let new = self.new_name("v");
        let (bm, bn) = (m.to_string(), n.to_string());
        // Some bring rows together, where a block has whole ones.
        let text: fn(&str) -> String = match (step, whole) {
            (0, _) => |v| format!("{v} * 2"),
            (1, _) => |v| format!("{v} + 1"),
            (2, _) => |v| format!("exp(min({v}, 2))"),
            (3, _) => |v| format!("relu({v} - 1)"),
            (4, true) => |v| format!("{v} - max({v}, axis=1)"),
            (5, true) => |v| format!("{v} - sum({v}, axis=1) * 0.3"),
            (6, true) => |v| format!("{v} / (sum({v} * {v}, axis=1) + 1)"),
            (7, true) => |v| format!("{v} - min({v}, axis=1)"),
            (4..=7, false) => |v| format!("sigmoid({v})"),
            (8..=11, _) => {
                let (name, extents, tiles, at, feature) = match step {
                    8 | 9 => ("B", ("1", "N"), ("1", &*bn), ("0", at.1), "a row for all"),
                    10 => ("S", ("M", "1"), (&*bm, "1"), (at.0, "0"), "a column for all"),
                    _ => ("Z", ("M", "N"), (&*bm, &*bn), at, "a second matrix"),
                };
                let text: fn(&str, &str) -> String = match step {
                    8 | 9 => |v, b| format!("{v} + {b}"),
                    10 => |v, b| format!("{v} * {b}"),
                    _ => |v, b| format!("max({v}, {b})"),
                };
                let name = format!("{name}{i}");
                self.input(&name, extents, false, "f32");
                self.features.push(feature);
                self.line(&format!("Move ({}) -> (%b{i})", tile(&name, false, tiles, at)));
                self.line(&format!("{new} = {}", text(&value, &format!("%b{i}"))));
                self.mean(&format!("{new} = {}", text(&meaning, &format!("%{name}"))));
                return (new.clone(), new);
            }
            (12 | 13, _) => {
                // A value keeps its meaning in another memory.
                self.features.push("through shared memory");
                let s = self.new_name("s");
                self.line(&format!("Move ({value}) -> ({s}:SH)"));
                self.line(&format!("Move ({s}) -> ({new})"));
                return (new, meaning);
            }
            (14, true) => |v| format!("select({v}.iota(1) < 5, {v}, 3)"),
            (15, true) => |v| format!("{v} + max(exp(min({v}, 1)), axis=1)"),
            _ => |v| format!("{v} + 3"),
        };
        if step > 3 && whole {
            self.features.push("a reduction in rows");
        }
        let (body, means) = (text(&value), text(&meaning));
        self.line(&format!("{new} = {body}"));
        self.mean(&format!("{new} = {means}"));
        (new.clone(), new)
    }

    fn product(
        &mut self,
        batch: bool,
        stages: u8,
        places: (u8, u8),
        (left, right): (u8, u8),
        steps: &[u8],
        store: u8,
    ) -> (String, bool) {
        let (factor, sum) = of(
            &[
                ("f16", "f32"),
                ("f16", "f32"),
                ("bf16", "f32"),
                ("f16", "f32"),
                ("i8", "i32"),
                ("f32", "f32"),
                ("f16", "f32"),
                ("f16", "f32"),
            ],
            self.case.scalar,
        );
        let factor = if self.arch == Arch::Sm75 && factor == "bf16" { "f16" } else { factor };
        let (m, n, k) = (self.tiles["M"], self.tiles["N"], self.tiles["K"]);
        // An instruction multiplies 32 of a byte each.
        let k = if factor == "i8" { k.max(32) / 32 * 32 } else { k };
        let (bm, bn, bk) = (m.to_string(), n.to_string(), k.to_string());
        self.input("A", ("M", "K"), batch, factor);
        self.input("B", ("K", "N"), batch, factor);
        self.features.push(if batch { "a batched product" } else { "a product" });
        let stages = match stages {
            0 | 1 => String::new(),
            n => {
                self.features.push("`stages=`");
                format!(" stages={n}")
            }
        };
        self.line(&format!("%c:[{m},{n}].{sum} = 0"));
        self.line(&format!("for (k = 0; k < ceil_div(K, {k}); k += 1){stages} {{"));
        let place = |p: u8| if p == 3 { "" } else { ":SH" };
        let a = tile("A", batch, (&bm, &bk), ("@i", "k"));
        let b = tile("B", batch, (&bk, &bn), ("k", "@j"));
        self.line(&format!("Move ({a}) -> (%a{})", place(places.0)));
        self.line(&format!("Move ({b}) -> (%b{})", place(places.1)));
        let mut factors = vec![];
        for (of, name, how) in [("A", "a", left), ("B", "b", right)] {
            let text: fn(&str) -> String = match how {
                4 if factor != "i8" => |v| format!("{v} + 1"),
                5 if factor != "i8" => |v| format!("exp(min({v}, 1))"),
                _ => {
                    factors.push((format!("%{name}"), format!("%{of}")));
                    continue;
                }
            };
            self.features.push("a factor that is computed");
            let new = self.new_name("f");
            let from = self.new_name("g");
            self.line(&format!("{from} = move(%{name})"));
            self.line(&format!("{new} = {}", text(&from)));
            self.mean(&format!("{new} = {}", text(&format!("%{of}"))));
            factors.push((new.clone(), new));
        }
        let [(a, ma), (b, mb)] = &factors[..] else { unreachable!("two factors") };
        self.line(&format!("MatMul ({a}, {b}) -> (%c)"));
        self.line("}");
        self.mean(&format!("%c = matmul({ma}, {mb})"));
        let mut at = ("%c".to_owned(), "%c".to_owned());
        if sum == "f32" && !batch {
            for (i, step) in steps.iter().enumerate() {
                at = self.step(*step, i, at, false, ("@i", "@j"), (m, n));
            }
        }
        let (mut value, mut meaning) = at;
        let out = match (store, sum) {
            (1 | 2, "f32") => {
                self.line(&format!("%o = cast({value}, f16)"));
                self.mean(&format!("%o = cast({meaning}, f16)"));
                (value, meaning) = ("%o".to_owned(), "%o".to_owned());
                "f16"
            }
            _ => sum,
        };
        if store >= 2 {
            self.line(&format!("Move ({value}) -> (%shared:SH)"));
            self.line("Move (%shared) -> (%rows)");
            value = "%rows".to_owned();
            self.features.push("a product through shared memory");
        }
        self.output("C", ("M", "N"), batch, out);
        let to = tile("C", batch, (&bm, &bn), ("@i", "@j"));
        self.line(&format!("Move ({value}) -> ({to})"));
        self.mean(&format!("%C = move({meaning})"));
        let batch = if batch { ", @b < 2" } else { "" };
        (format!("@i < ceil_div(M, {m}), @j < ceil_div(N, {n}){batch}"), false)
    }

    fn chained(
        &mut self,
        stages: u8,
        places: (u8, u8),
        right: u8,
        divided: bool,
    ) -> (String, bool) {
        let (m, n, k) = (self.tiles["M"], self.tiles["N"], self.tiles["K"]);
        let (bm, bn, bk) = (m.to_string(), n.to_string(), k.to_string());
        self.input("A", ("M", "K"), false, "f16");
        self.input("B", ("K", "N"), false, "f16");
        self.input("V", ("N", "K"), false, "f16");
        self.features.push("a product of a product");
        let stages = if stages > 1 { format!(" stages={stages}") } else { String::new() };
        let place = |p: u8| if p == 3 { "" } else { ":SH" };
        self.line(&format!("%o:[{m},{k}].f32 = 0"));
        if divided {
            self.line(&format!("%max:[{m},1].f32 = -inf"));
            self.line(&format!("%sum:[{m},1].f32 = 0"));
        }
        self.line(&format!("Move ({}) -> (%a)", tile("A", false, (&bm, &bk), ("@i", "0"))));
        self.line(&format!("for (j = 0; j < ceil_div(N, {n}); j += 1){stages} {{"));
        let b = tile("B", false, (&bk, &bn), ("0", "j"));
        let v = tile("V", false, (&bn, &bk), ("j", "0"));
        self.line(&format!("Move ({b}) -> (%b{})", place(places.0)));
        self.line(&format!("Move ({v}) -> (%v{})", place(places.1)));
        self.line("%c = matmul(%a, %b)");
        self.mean("%c = matmul(%A, %B)");
        let (v, means) = match right {
            3 | 4 => {
                self.line("%u = move(%v)");
                self.line("%w = %u + 1");
                self.mean("%w = %V + 1");
                ("%w", "%w")
            }
            _ => ("%v", "%V"),
        };
        if divided {
            self.line("%top = max(max(%c, axis=1), %max)");
            self.line("%p = exp(%c - %top)");
            self.line("%old = exp(%max - %top)");
            self.line("%sum = %sum * %old + sum(%p, axis=1)");
            self.line("%o = %o * %old");
            self.line("%max = move(%top)");
            self.mean("%e = exp(%c - max(%c, axis=1))");
            self.mean("%p = %e / sum(%e, axis=1)");
        } else {
            self.line("%p = exp(min(%c, 2))");
            self.mean("%p = exp(min(%c, 2))");
        }
        self.line("%half = cast(%p, f16)");
        self.line(&format!("MatMul (%half, {v}) -> (%o)"));
        self.line("}");
        self.mean(&format!("%O = matmul(%p, {means})"));
        self.output("O", ("M", "K"), false, "f32");
        let to = tile("O", false, (&bm, &bk), ("@i", "0"));
        self.line(&match divided {
            true => format!("{to} = %o / %sum"),
            false => format!("Move (%o) -> ({to})"),
        });
        (format!("@i < ceil_div(M, {m})"), false)
    }
}

/// The program without the last tile of a mode, where the sizes are constants and that tile is
/// neither whole nor the first.
pub(super) fn without(text: &str) -> Option<String> {
    let value = |name: &str| -> Option<i64> {
        let (_, after) = text.lines().find(|l| l.starts_with("let "))?.split_once(name)?;
        after.trim_start_matches(" = ").split([',', ' ']).next()?.parse().ok()
    };
    text.match_indices("ceil_div(").find_map(|(at, _)| {
        let (args, _) = text[at + "ceil_div(".len()..].split_once(')')?;
        let (name, tile) = args.split_once(", ")?;
        let (size, tile) = (value(name)?, tile.parse::<i64>().ok()?);
        (size > tile && size % tile != 0)
            .then(|| text.replacen(&format!("ceil_div({args})"), &format!("{name} / {tile}"), 1))
    })
}
