//! Tests the Moves of decomposed examples: each has the widest possible instruction, and no access
//! has more bank conflicts than necessary. To find the fewest conflicts, the tests try all swizzles
//! with the layout that was found, and with rows and columns of any padding up to 128 bytes. They
//! take the possible instructions and the number of conflicts from the solver's own functions
//! (`candidates`, `wavefronts`). Also tests that the solver does not discard a cheaper choice
//! unexamined.

use carbyne_atoms::{AtomTable, limits};
use carbyne_decompose::certificate::Relation;
use carbyne_decompose::internals::copy::{Candidate, Side, candidates};
use carbyne_decompose::internals::smem::{Access, Banks, Run, unify, wavefronts};
use carbyne_decompose::{Decomposed, checked};
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::program::{Program, SpecId, TensorId};
use carbyne_ir::scalar::Memory;
use carbyne_ir::text;
use std::collections::BTreeMap;

/// A Move between memory and registers, or within memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The Move, as in the text.
    pub(crate) name: String,
    pub(crate) atom: &'static str,
    /// Bytes of one thread and instruction.
    pub(crate) bytes: i64,
    /// The most bytes of any row that moves the operands where they lie.
    pub(crate) widest: i64,
    /// Wavefronts of a phase of the shared side, on average; none without one.
    pub(crate) ways: Option<f64>,
    /// The least over all swizzles, and over all paddings of rows and of columns.
    pub(crate) least: Option<f64>,
}

/// The tile-level examples, by name.
pub(crate) fn examples() -> BTreeMap<String, String> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/tile");
    let files = std::fs::read_dir(dir).expect("the examples").map(|f| f.expect("a file").path());
    files
        .filter(|f| f.extension().is_some_and(|e| e == "cby"))
        .map(|f| {
            let name = f.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&f).expect("readable"))
        })
        .collect()
}

/// The Moves of a decomposition.
pub(crate) fn moves(d: &Decomposed, table: &AtomTable) -> Vec<Row> {
    let tile = text::parse(&d.tile_level).expect("parses");
    let tile = checked(&tile, &d.tile_level).expect("well formed");
    let limits = limits(table.arch);
    let banks = Banks { n: limits.smem_banks, bytes: limits.bank_bytes };
    let mut touched: BTreeMap<String, Vec<(usize, Layout)>> = BTreeMap::new();
    let mut rows: Vec<Row> = vec![];
    let mut all: Vec<(Option<String>, usize, Vec<Candidate>)> = vec![];
    for c in &d.certificates {
        let Relation::Copy { f, g, .. } = &c.relation else { continue };
        let (from, to) = ends(&tile, c.spec);
        let memory = |t: TensorId| tile.buffer_of(t).memory;
        if memory(from) == Some(Memory::Rf) && memory(to) == Some(Memory::Rf) {
            continue;
        }
        // Threads read elements that they hold in registers from there; the result has no tensor of
        // them.
        let is_there = |t: TensorId| {
            let name = &tile.buffer_of(t).name;
            memory(t) != Some(Memory::Rf) || d.program.buffers.iter().any(|(_, b)| b.name == *name)
        };
        if !is_there(from) || !is_there(to) {
            continue;
        }
        let threads = block(&tile, c.spec);
        let side = |t: TensorId| match memory(t) {
            Some(Memory::Rf) => Side::Registers(spread(d, &tile, t)),
            _ => Side::Memory,
        };
        let found = candidates(&tile, c.spec, side(from), side(to), table, threads);
        let bits = tile.scalar_of(from).bits();
        let width = |n: i64| n * bits / 8;
        let found = found.unwrap_or_else(|_| panic!("no candidates of `{}`", c.atom));
        let n = f.mode(1).and_then(|v| v.mode(0)).map_or(1, |v| v.size());
        let own = found.iter().position(|o| o.atom == c.atom && o.f == *f && o.g == *g);
        let own = own.unwrap_or_else(|| panic!("`{}` is not among its candidates", c.atom));
        rows.push(Row {
            name: format!("{} -> {}", tile.tensor_name(from), tile.tensor_name(to)),
            atom: c.atom,
            bytes: width(n),
            widest: 0,
            ways: None,
            least: None,
        });
        let shared = [from, to].into_iter().find(|t| memory(*t) == Some(Memory::Sh));
        all.push((shared.map(|t| tile.buffer_of(t).name.clone()), own, found));
        for (t, tv) in [(from, f), (to, g)] {
            if memory(t) == Some(Memory::Sh) {
                let name = tile.buffer_of(t).name.clone();
                touched.entry(name).or_default().push((rows.len() - 1, tv.clone()));
            }
        }
    }
    // Of rows that move the operands where they lie, those count that leave the other accesses of a
    // shared tensor as they are.
    for (i, (shared, own, found)) in all.iter().enumerate() {
        let bits = |c: &Candidate| c.n * rows[i].bytes / found[*own].n;
        let fits = |c: &&Candidate| {
            let Some(name) = shared else { return true };
            let shape = shape(d, name);
            let others =
                all.iter().enumerate().filter(|(j, o)| *j != i && o.0.as_ref() == Some(name));
            let runs = others.flat_map(|(_, (_, own, found))| runs_of(&found[*own]));
            let runs: Vec<Run> = runs.chain(runs_of(c)).collect();
            unify(&shape, 0, &runs).is_ok()
        };
        rows[i].widest = found.iter().filter(fits).map(bits).max().unwrap_or(0);
    }
    for (name, accesses) in touched {
        let (_, buffer) =
            d.program.buffers.iter().find(|(_, b)| b.name == name).expect("the shared tensor");
        let bits = buffer.scalar.bits();
        let stage = stage(d, &name);
        let lists: Vec<Access> = accesses.iter().map(|(_, tv)| access(tv, bits)).collect();
        let count =
            |layout: &Layout, s: Option<Swizzle>| wavefronts(layout, s, bits, &lists, banks);
        let own = lists.iter().map(|list| {
            let own = wavefronts(&stage, buffer.swizzle, bits, std::slice::from_ref(list), banks);
            own / phases(list, banks)
        });
        let own: Vec<f64> = own.collect();
        let ideal: f64 = lists.iter().map(|a| phases(a, banks)).sum();
        // Nothing takes less than a wavefront a phase.
        let least = match own.iter().all(|ways| *ways == 1.0) {
            true => ideal,
            false => least_of(&alternatives(&stage, &accesses, bits), count, ideal),
        };
        for ((row, _), own) in accesses.iter().zip(own) {
            let row = &mut rows[*row];
            row.ways = Some(row.ways.unwrap_or(0.0).max(own));
            row.least = Some(row.least.unwrap_or(0.0).max(least / ideal));
        }
    }
    rows
}

/// The layout that was found for one stage of a shared tensor.
fn stage(d: &Decomposed, name: &str) -> Layout {
    let buffer = d.program.buffers.iter().find(|(_, b)| b.name == name).expect("the tensor").1;
    let levels = &d.program.tensors[buffer.tensor].levels;
    levels.last().and_then(Layout::to_fixed).expect("a known layout")
}

/// Extents of all modes of a shared tensor, those of stages first.
fn shape(d: &Decomposed, name: &str) -> Vec<i64> {
    let buffer = d.program.buffers.iter().find(|(_, b)| b.name == name).expect("the tensor").1;
    let levels = d.program.tensors[buffer.tensor].levels.iter();
    let levels = levels.map(|l| l.to_fixed().expect("a known layout"));
    levels.flat_map(|l| l.modes().iter().map(Layout::size).collect::<Vec<_>>()).collect()
}

fn runs_of(c: &Candidate) -> Vec<Run> {
    c.src_run.iter().chain(&c.dst_run).filter(|r| !r.is_empty()).cloned().collect()
}

fn ends(p: &Program, id: SpecId) -> (TensorId, TensorId) {
    let spec = &p.specs[id];
    (spec.input_tensors().next().expect("a source"), *spec.outputs.first().expect("a destination"))
}

fn block(p: &Program, id: SpecId) -> i64 {
    let exec = p.specs[id].exec.expect("threads");
    p.threads[exec.threads].concat().to_fixed().expect("known threads").size()
}

/// The thread-value layout that was found for a register tensor.
fn spread(d: &Decomposed, tile: &Program, t: TensorId) -> Layout {
    let name = &tile.buffer_of(t).name;
    let found = d.program.buffers.iter().find(|(_, b)| b.name == *name).expect("the tensor").1;
    let dist = d.program.tensors[found.tensor].dist.as_ref();
    dist.and_then(|d| d.tv.as_ref()).and_then(|tv| tv.to_fixed()).expect("a thread-value layout")
}

/// The addresses of the lanes of each warp, one list for each instruction.
fn access(tv: &Layout, bits: i64) -> Access {
    let (threads, inst) = (tv.mode(0).expect("T").size(), inst(tv));
    let rest = tv.size() / threads / inst;
    let lists = (0..threads).step_by(32).flat_map(|first| (0..rest).map(move |r| (first, r)));
    let lanes = lists
        .map(|(first, r)| {
            let last = (first + 32).min(threads);
            (first..last).map(|t| tv.at(t + threads * inst * r)).collect()
        })
        .collect();
    Access { lanes, bytes: (inst * bits / 8).max(1), weight: 1.0 }
}

fn inst(tv: &Layout) -> i64 {
    tv.mode(1).and_then(|v| v.mode(0)).map_or(1, |v| v.size())
}

/// Phases of an access: each takes a wavefront, whatever the layout.
fn phases(a: &Access, banks: Banks) -> f64 {
    let of = |lanes: &Vec<i64>| {
        let mut lanes = lanes.clone();
        if a.bytes >= 16 {
            lanes.sort_unstable();
            lanes.dedup();
        }
        lanes.len().div_ceil(banks.lanes_per_phase(a.bytes)) as f64
    };
    a.lanes.iter().map(of).sum()
}

/// The layout that was found, and its rows and its columns with every padding up to 128 bytes,
/// where what each thread accesses at once is consecutive and aligned.
fn alternatives(found: &Layout, accesses: &[(usize, Layout)], bits: i64) -> Vec<Layout> {
    let modes: Vec<i64> = found.modes().iter().map(Layout::size).collect();
    let mut out = vec![found.clone()];
    if let [rows, columns] = modes[..] {
        for pad in 0..=128 * 8 / bits {
            for (r, c) in [(columns + pad, 1), (1, rows + pad)] {
                let l: Layout = format!("({rows},{columns}):({r},{c})").parse().expect("a layout");
                out.push(l);
            }
        }
    }
    out.retain(|l| {
        accesses.iter().all(|(_, tv)| {
            let (threads, n) = (tv.mode(0).expect("T").size(), inst(tv));
            (0..tv.size() / n).all(|i| {
                let first = i % threads + i / threads * threads * n;
                let at = |v: i64| l.at(tv.at(first + threads * v));
                at(0) % n == 0 && (1..n).all(|v| at(v) == at(0) + v)
            })
        })
    });
    out
}

/// The least count of any layout and swizzle; no further ones are tried where one is `ideal`.
fn least_of(
    layouts: &[Layout],
    count: impl Fn(&Layout, Option<Swizzle>) -> f64,
    ideal: f64,
) -> f64 {
    let mut least = f64::INFINITY;
    for layout in layouts {
        for swizzle in swizzles() {
            least = least.min(count(layout, swizzle));
            if least <= ideal {
                return least;
            }
        }
    }
    least
}

fn swizzles() -> impl Iterator<Item = Option<Swizzle>> {
    let fields =
        (1..=5).flat_map(|b| (0..=6).flat_map(move |base| (b..=8).map(move |s| (b, base, s))));
    std::iter::once(None).chain(fields.filter_map(|(b, m, s)| Swizzle::new(b, m, s).ok().map(Some)))
}

#[test]
fn every_move_is_the_widest_and_no_access_conflicts_more_than_it_must() {
    let mut n = 0;
    for (name, src) in examples() {
        let module = text::parse(&src).expect("parses");
        for arch in carbyne_ir::testing::one_of(&name, &["sm_75", "sm_80", "sm_90a"]) {
            let table = AtomTable::new(arch.parse().expect("an architecture"));
            let d = carbyne_decompose::decompose(&module, &src, &table)
                .unwrap_or_else(|e| panic!("{name}: {e:?}"));
            for row in moves(&d, &table) {
                n += 1;
                assert_eq!(row.bytes, row.widest, "{arch} {name}: {row:?}");
                assert!(row.ways <= row.least, "{arch} {name}: {row:?}");
            }
        }
    }
    assert!(n > carbyne_ir::testing::count(50, 150), "{n} moves");
}

#[test]
fn nothing_cheaper_is_pruned() {
    use carbyne_decompose::Search;
    let table = AtomTable::new("sm_80".parse().expect("an architecture"));
    for (name, src) in examples() {
        let module = text::parse(&src).expect("parses");
        let cheapest = |exhaustive: bool| {
            let search = Search { exhaustive, budget: 200_000, ..Search::default() };
            let d = carbyne_decompose::decompose_with(&module, &src, &table, search);
            d.unwrap_or_else(|e| panic!("{name}: {e:?}")).leaves[0].estimate
        };
        assert_eq!(cheapest(false), cheapest(true), "{name}");
    }
}
