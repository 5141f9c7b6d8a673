//! Compares the thread-value layouts and types of atoms with CuTe's traits, if the file
//! `shared/golden/atoms.jsonl` is present.
//!
//! Each line of the file describes one trait. The mnemonic of an atom's instruction, or the name of
//! the trait, selects the line. Tensor-core MatMuls and Moves must have a trait, except some
//! MatMuls of 8-bit floats; other atoms may have none. CuTe writes B as N×K, so its B layouts are
//! transposed here. Its copies count bits, so units are expanded to bits.

use carbyne_atoms::{Arch, Atom, AtomOp, AtomOperand, AtomTable, Extent, Template, Visibility};
use carbyne_ir::layout::Layout;
use serde_json::Value;
use std::path::Path;

const FILE: &str = "../../shared/golden/atoms.jsonl";

fn golden() -> Option<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().map(|l| serde_json::from_str(l).expect("a golden line is JSON")).collect())
}

fn layout(line: &Value, key: &str) -> Layout {
    let text = line[key].as_str().unwrap_or_default();
    text.parse().unwrap_or_else(|e| panic!("{}.{key} `{text}`: {e}", line["name"]))
}

/// The parts of a copy's mnemonic, sorted: the traits write `x4.m8n8`, the ISA writes `m8n8.x4`.
fn mnemonic(text: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = text.split('.').collect();
    parts.sort_unstable();
    parts
}

/// Whether a golden line describes the atom's instruction.
fn same_instruction(atom: &Atom, line: &Value) -> bool {
    if let Some(name) = bulk_traits(atom) {
        return line["name"] == name;
    }
    let kind = if matches!(atom.op, AtomOp::MatMul { .. }) { "mma" } else { "copy" };
    let spec = atom.op.spec_kind().is_some();
    if !spec || line["kind"] != kind || !line["params"].is_null() {
        return false;
    }
    match (atom.template, line["ptx"].as_str()) {
        (Template::Ptx(text), Some(ptx)) => {
            let own = text.split(' ').next().unwrap_or_default();
            let bits_agree = || {
                let source = &atom.operands[0];
                layout(line, "SrcLayout").size() == source.n_threads() * source.bits_per_thread()
            };
            // `wgmma` has two forms with equal text, which differ in the place of A.
            let a_is_described = atom.operands[0].matrix_rule().is_some();
            let same_place = (line["A_operand"] == "smem_desc") == a_is_described;
            if kind == "mma" {
                own == ptx && same_place
            } else {
                mnemonic(own) == mnemonic(ptx) && bits_agree()
            }
        }
        (Template::Cuda(_), None) => {
            let bits = atom.operands.first().map_or(0, AtomOperand::bits_per_thread);
            atom.op == AtomOp::Move && line["name"] == format!("UniversalCopy<{bits}b>")
        }
        _ => false,
    }
}

/// Asserts that both layouts give the same element for every (t, v).
fn compare(atom: &Atom, operand: &AtomOperand, expected: impl Fn(i64) -> i64, size: i64) {
    assert_eq!(operand.tv.size(), size, "{}.{}", atom.name, operand.name);
    for i in 0..size {
        let cell = format!("{}.{} at {i}", atom.name, operand.name);
        assert_eq!(operand.tv.at(i), expected(i), "{cell}");
    }
}

/// Compares the tile of a descriptor. Both layouts cover the whole tile, but count its elements in
/// different orders: n + N*k in the traits, k + K*n in the atom.
fn compare_described(atom: &Atom, operand: &AtomOperand, expected: &Layout) {
    let transposed = operand.name == "B";
    let (rows, cols, n) = (operand.tile[0], operand.tile[1], operand.n_threads());
    assert_eq!(expected.size(), operand.tv.size(), "{}.{}", atom.name, operand.name);
    // Stride 0 means that all threads are equal, so that two of them are enough.
    let threads = |layout: &Layout| layout.mode(0).expect("two modes");
    assert!((0..n).all(|t| threads(expected).at(t) == 0 && threads(&operand.tv).at(t) == 0));
    for (t, v) in (0..expected.size() / n).flat_map(|v| [(0, v), (n - 1, v)]) {
        let swapped = |index: i64| index / cols + rows * (index % cols);
        let (value, want) = match transposed {
            true => (swapped(v), swapped(expected.at(t + n * v))),
            false => (v, expected.at(t + n * v)),
        };
        let cell = format!("{}.{} thread {t} value {v}", atom.name, operand.name);
        assert_eq!(operand.tv.at(t + n * value), want, "{cell}");
    }
}

/// The name of a type in the traits: `s8` for `i8`.
fn traits_name(scalar: &str) -> String {
    match scalar.strip_prefix('i') {
        Some(bits) => format!("s{bits}"),
        None => scalar.to_owned(),
    }
}

fn compare_mma(atom: &Atom, line: &Value) {
    for (operand, key) in atom.operands.iter().zip(["ALayout", "BLayout", "CLayout"]) {
        let expected = layout(line, key);
        if operand.matrix_rule().is_some() {
            compare_described(atom, operand, &expected);
            continue;
        }
        let at = |i| {
            let index = expected.at(i);
            // The golden line gives n + N*k, the atom k + K*n.
            let (n_rows, n_cols) = (operand.tile[0], operand.tile[1]);
            if operand.name == "B" { index / n_cols + n_rows * (index % n_cols) } else { index }
        };
        compare(atom, operand, at, expected.size());
    }
    for (operand, key) in atom.operands.iter().zip(["A", "B", "D"]) {
        let found = traits_name(&operand.elem.to_string());
        assert_eq!(line[key], found, "{}.{}", atom.name, operand.name);
    }
}

fn compare_copy(atom: &Atom, line: &Value) {
    for (operand, key) in atom.operands.iter().zip(["SrcLayout", "DstLayout"]) {
        let expected = layout(line, key);
        let (bits, n_threads) = (operand.elem.bits(), operand.n_threads());
        assert_eq!(operand.tv.size() * bits, expected.size(), "{}.{}", atom.name, operand.name);
        for i in 0..expected.size() {
            let (t, bit) = (i % n_threads, i / n_threads);
            let unit = operand.tv.at(t + n_threads * (bit / bits));
            let cell = format!("{}.{} thread {t} bit {bit}", atom.name, operand.name);
            assert_eq!(unit * bits + bit % bits, expected.at(i), "{cell}");
        }
    }
}

/// The trait of a bulk atom. Its layouts are for any number of bits; the test uses 4 KiB.
fn bulk_traits(atom: &Atom) -> Option<&'static str> {
    Some(match (atom.extent, atom.visibility, atom.number("mask").is_some()) {
        (Extent::Tile, ..) => return None,
        (Extent::Vector, Visibility::Mbarrier, _) => "SM90_BULK_COPY_G2S",
        (Extent::Vector, ..) => "SM90_BULK_COPY_S2G",
        (Extent::Box(_), Visibility::Mbarrier, false) => "SM90_TMA_LOAD",
        (Extent::Box(_), Visibility::Mbarrier, true) => "SM90_TMA_LOAD_MULTICAST",
        (Extent::Box(_), ..) => "SM90_TMA_STORE",
    })
}

/// Asserts that one thread names all bits in order.
fn compare_bulk(atom: &Atom, line: &Value) {
    const BITS: i64 = 8 << 12;
    for (operand, key) in atom.operands.iter().zip(["SrcLayout", "DstLayout"]) {
        let text = line[key].as_str().unwrap_or_default();
        let expected: Layout =
            text.replace("NumBitsPerTMA", &BITS.to_string()).parse().expect("a layout");
        let unit = operand.elem.bits();
        assert_eq!((operand.n_threads(), operand.n_values()), (1, 1), "{}", atom.name);
        for bit in 0..BITS {
            // Units are consecutive, as `Extent` says.
            let at = (operand.tv.at(0) + bit / unit) * unit + bit % unit;
            assert_eq!(expected.at(bit), at, "{}.{} bit {bit}", atom.name, operand.name);
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "reports whether and how many atoms were compared")]
fn atoms_agree_with_the_golden_traits() {
    let Some(lines) = golden() else {
        eprintln!("skipped: no golden vectors at {FILE} beside the crate");
        return;
    };
    let table = AtomTable::new(Arch::Sm90a);
    let (mut compared, mut left_out) = (Vec::new(), Vec::new());
    for atom in table.atoms() {
        let matching: Vec<&Value> = lines.iter().filter(|l| same_instruction(atom, l)).collect();
        for line in &matching {
            assert_eq!(layout(line, "ThrID").size(), atom.group, "{}", atom.name);
            for t in 0..atom.group {
                assert_eq!(layout(line, "ThrID").at(t), atom.thread_layout.at(t), "{}", atom.name);
            }
            match atom.op {
                AtomOp::MatMul { .. } => compare_mma(atom, line),
                _ if atom.extent != Extent::Tile => compare_bulk(atom, line),
                _ => compare_copy(atom, line),
            }
        }
        if matching.is_empty() { &mut left_out } else { &mut compared }.push(atom.name);
    }
    eprintln!("{} atoms compared; not in the traits: {}", compared.len(), left_out.join(", "));
    assert!(!compared.is_empty());
    // The traits cover every atom of these kinds, except 8-bit floats with k = 16, whose fragments
    // are those of 8-bit integers.
    let as_int8 = |atom: &Atom| {
        let fragments = |r: &Atom| [0, 1, 2].map(|i| r.operands[i].tv.clone());
        let int8 = table.get("mma.m16n8k16.i32.i8").expect("the atom exists");
        atom.op == int8.op
            && atom.operands[0].elem.bits() == 8
            && fragments(atom) == fragments(int8)
            && compared.contains(&int8.name)
    };
    for atom in table.atoms() {
        let tensor_core = matches!(atom.op, AtomOp::MatMul { .. }) && atom.is_collective();
        if tensor_core || atom.op == AtomOp::Move {
            let done = compared.contains(&atom.name) || as_int8(atom);
            assert!(done, "`{}` was not compared", atom.name);
        }
    }
}
