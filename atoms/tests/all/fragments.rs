//! Compares the table's thread-value layouts with the formulas of the PTX ISA, lane by lane.
//!
//! The formulas are those of the sections about the fragments of `mma`, about `ldmatrix`, and about
//! the register fragments of `wgmma`, in the variables of the ISA. They share nothing with the
//! table. One test compares two atoms: `ldmatrix.x4` delivers the fragment of A that `mma` needs.

use carbyne_atoms::{Arch, Atom, AtomTable};
use carbyne_ir::ast::SpecKind;

fn atom(name: &str) -> Atom {
    AtomTable::new(Arch::Sm90a).get(name).expect("the atom exists").clone()
}

/// Asserts that value `i` of lane `lane` of an operand is the element that `formula` gives, as
/// (first mode, second mode).
#[track_caller]
fn check(atom: &Atom, operand: &str, formula: impl Fn(i64, i64) -> (i64, i64)) {
    let operand = atom.operand(operand).expect("the operand exists");
    for lane in 0..atom.group {
        for i in 0..operand.n_values() {
            let (x, y) = formula(lane, i);
            let found = operand.tv.at(lane + atom.group * i);
            let cell = format!("{}.{} lane {lane} value {i}", atom.name, operand.name);
            assert_eq!(found, x + operand.tile[0] * y, "{cell} is ({x},{y})");
        }
    }
}

fn group_id(lane: i64) -> i64 {
    lane >> 2
}

fn thread_in_group(lane: i64) -> i64 {
    lane % 4
}

fn accumulator(lane: i64, i: i64) -> (i64, i64) {
    let row = if i < 2 { group_id(lane) } else { group_id(lane) + 8 };
    (row, thread_in_group(lane) * 2 + (i & 1))
}

#[test]
fn m16n8k16() {
    for name in ["mma.m16n8k16.f32.f16", "mma.m16n8k16.f16.f16", "mma.m16n8k16.f32.bf16"] {
        let mma = atom(name);
        check(&mma, "A", |lane, i| {
            let upper = (0..2).contains(&i) || (4..6).contains(&i);
            let row = if upper { group_id(lane) } else { group_id(lane) + 8 };
            let col = thread_in_group(lane) * 2 + (i & 1);
            (row, if i < 4 { col } else { col + 8 })
        });
        check(&mma, "B", |lane, i| {
            let row = thread_in_group(lane) * 2 + (i & 1);
            (if i < 2 { row } else { row + 8 }, group_id(lane))
        });
        check(&mma, "D", accumulator);
    }
}

#[test]
fn m16n8k8() {
    for name in ["mma.m16n8k8.f32.f16", "mma.m16n8k8.f16.f16", "mma.m16n8k8.f32.bf16"] {
        let mma = atom(name);
        check(&mma, "A", accumulator);
        check(&mma, "B", |lane, i| (thread_in_group(lane) * 2 + i, group_id(lane)));
        check(&mma, "D", accumulator);
    }
}

/// Checks factors with `per` consecutive elements along k in a register: 8-bit and 4-bit types.
fn check_packed(mma: &Atom, per: i64) {
    let tall = mma.operand("A").expect("exists").tile[0] == 16;
    check(mma, "A", |lane, i| {
        let register = i / per;
        let row = group_id(lane) + if tall { 8 * (register % 2) } else { 0 };
        let half = if tall { register / 2 } else { register };
        (row, thread_in_group(lane) * per + i % per + 4 * per * half)
    });
    check(mma, "B", |lane, i| {
        (thread_in_group(lane) * per + i % per + 4 * per * (i / per), group_id(lane))
    });
    check(mma, "D", accumulator);
}

#[test]
fn eight_and_four_bits() {
    for name in [
        "mma.m8n8k16.i32.i8",
        "mma.m16n8k16.i32.u8.i8",
        "mma.m16n8k32.i32.i8.u8",
        "mma.m16n8k16.f16.e4m3",
        "mma.m16n8k16.f32.e5m2",
        "mma.m16n8k32.f32.e4m3.e5m2",
    ] {
        check_packed(&atom(name), 4);
    }
    for name in ["mma.m8n8k32.i32.i4", "mma.m16n8k32.i32.u4", "mma.m16n8k64.i32.i4.u4"] {
        check_packed(&atom(name), 8);
    }
}

#[test]
fn one_value_per_register() {
    for name in [
        "mma.m16n8k4.f32.tf32",
        "mma.m16n8k8.f32.tf32",
        "mma.m8n8k4.f64.f64",
        "mma.m16n8k4.f64.f64",
        "mma.m16n8k8.f64.f64",
        "mma.m16n8k16.f64.f64",
    ] {
        check_packed(&atom(name), 1);
    }
}

#[test]
fn quad_pairs() {
    for (name, a_by_rows, b_by_rows) in [
        ("mma.m8n8k4.row.col.f32.f16", true, false),
        ("mma.m8n8k4.row.row.f16.f16", true, true),
        ("mma.m8n8k4.col.col.f16.f16", false, false),
        ("mma.m8n8k4.col.row.f32.f16", false, true),
    ] {
        let mma = atom(name);
        let lane_of = |t: i64| mma.thread_layout.at(t);
        // The lower quad holds the first four rows or columns, the upper quad the others.
        let upper = |lane: i64| 4 * (lane / 16);
        let by_threads = |t: i64, i: i64| (lane_of(t) % 4 + upper(lane_of(t)), i);
        let by_values = |t: i64, i: i64| (i + upper(lane_of(t)), lane_of(t) % 4);
        check(&mma, "A", |t, i| if a_by_rows { by_threads(t, i) } else { by_values(t, i) });
        check(&mma, "B", |t, i| {
            let (n, k) = if b_by_rows { by_values(t, i) } else { by_threads(t, i) };
            (k, n)
        });
        let halves = mma.operand("D").is_some_and(|d| d.elem.bits() == 16);
        check(&mma, "D", |t, i| {
            let lane = lane_of(t);
            if halves {
                return by_threads(t, i);
            }
            let row = (lane & 1) + (i & 2) + upper(lane);
            (row, (i & 4) + (lane & 2) + (i & 1))
        });
    }
}

#[test]
fn ldmatrix() {
    for (n_matrices, plain, trans) in [
        (1, "ldmatrix.x1.b16", "ldmatrix.x1.trans.b16"),
        (2, "ldmatrix.x2.b16", "ldmatrix.x2.trans.b16"),
        (4, "ldmatrix.x4.b16", "ldmatrix.x4.trans.b16"),
    ] {
        let (plain, trans) = (atom(plain), atom(trans));
        // Row `lane % 8` of matrix `lane / 8`; lanes beyond the last matrix repeat.
        let address = |lane: i64, i| (i, lane % (8 * n_matrices));
        check(&plain, "S", address);
        check(&trans, "S", address);
        // Register r holds two consecutive elements of row `lane / 4` of matrix r.
        check(&plain, "D", |lane, i| {
            (thread_in_group(lane) * 2 + i % 2, 8 * (i / 2) + group_id(lane))
        });
        // Transposed: two consecutive elements of column `lane / 4`.
        check(&trans, "D", |lane, i| {
            (group_id(lane), 8 * (i / 2) + thread_in_group(lane) * 2 + i % 2)
        });
    }
}

/// A fragment of `mma` that one `ldmatrix.x4` loads needs no exchange between lanes. A\[m,k\] is
/// stored row by row, with matrices in the order (m, k), (m+8, k), (m, k+8), (m+8, k+8).
#[test]
fn ldmatrix_x4_delivers_the_a_fragment() {
    let (load, mma) = (atom("ldmatrix.x4.b16"), atom("mma.m16n8k16.f32.f16"));
    let target = load.operand("D").expect("exists");
    let a = mma.operand("A").expect("exists");
    for i in 0..target.tv.size() {
        let (col, row) = (target.tv.at(i) % 8, target.tv.at(i) / 8);
        let (matrix, row) = (row / 8, row % 8);
        let (m, k) = (row + 8 * (matrix % 2), col + 8 * (matrix / 2));
        assert_eq!(a.tv.at(i), m + 16 * k);
    }
}

/// The register fragments of wgmma (PTX ISA, Register Fragments): those of mma.m16n8k.., for four
/// warps with 16 rows each and n / 8 blocks of 8 columns.
#[test]
fn warpgroups() {
    let row_of = |t: i64, i: i64| 16 * (t / 32) + group_id(t % 32) + 8 * (i % 2);
    let table = AtomTable::new(Arch::Sm90a);
    let mut n = 0;
    for wgmma in table.implementing(SpecKind::MatMul).filter(|r| r.group == 128) {
        check(wgmma, "D", |t, i| {
            (row_of(t, i / 2), 8 * (i / 4) + 2 * thread_in_group(t) + (i & 1))
        });
        n += 1;
        let a = wgmma.operand("A").expect("exists");
        if a.matrix_rule().is_some() {
            continue;
        }
        // Consecutive elements along k share a register. The second half of k follows both halves
        // of m.
        let per = 32 / a.elem.bits();
        check(wgmma, "A", |t, i| {
            let register = i / per;
            let k = thread_in_group(t) * per + i % per + 4 * per * (register / 2);
            (row_of(t, register), k)
        });
    }
    assert_eq!(n, 912);
}
