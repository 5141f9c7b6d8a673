//! Tests MatMuls of many sizes, layouts, types, names and pins, to show that none of these is
//! hard-coded. The simulator compares every body with its meaning.

use crate::support::{MatMul, decomposed, run, run_random, sm_80};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::text;

fn check(case: &MatMul) {
    let src = case.text();
    let table = sm_80();
    let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
    assert_eq!(text::parse(&d.text).expect("parses"), d.module, "{src}");
    for report in [run(&d.program, &table), run_random(&d.program, &table)] {
        let report = report.unwrap_or_else(|e| panic!("{src}{}\n{e:?}", d.text));
        let kernel = &report.kernels[0];
        assert!(kernel.complete && kernel.checked && kernel.unchecked.is_empty(), "{src}");
        let (m, n, k) = case.size;
        let products = (m * n * k) as u64;
        // Tiles may reach over the ends of small sizes.
        match [m, n, k].iter().all(|size| size % 16 == 0) {
            true => assert_eq!(kernel.multiply_adds, products, "{src}"),
            false => assert!(kernel.multiply_adds >= products, "{src}"),
        }
    }
}

#[test]
fn sizes_that_no_tile_divides() {
    let sizes = [(100, 100, 100), (1, 1, 1), (3, 17, 5), (65, 63, 33)];
    let tables = [sm_80(), AtomTable::new(Arch::Sm90a), AtomTable::new(Arch::Sm70)];
    let cases = sizes.into_iter().enumerate().map(|(i, size)| (size, &tables[i % 2]));
    for (size, table) in cases.chain(tables.iter().map(|table| ((129, 8, 257), table))) {
        let src = MatMul { size, ..MatMul::default() }.text();
        let d = decomposed(&src, table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
        let report = run(&d.program, table);
        let report = report.unwrap_or_else(|e| panic!("{src}{}\n{e:?}", d.text));
        assert!(report.kernels[0].complete && report.kernels[0].checked, "{src}");
    }
}

#[test]
fn every_storage_order() {
    for bits in 0..8 {
        check(&MatMul {
            transposed: [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0],
            ..MatMul::default()
        });
    }
}

#[test]
fn uneven_tiles_in_every_storage_order() {
    for (k, depth) in [(32, 16), (96, 48)] {
        for bits in 0..4 {
            check(&MatMul {
                size: (96, 160, k),
                transposed: [bits & 1 != 0, bits & 2 != 0, false],
                pins: format!("tile=(96,160,{depth}) warps=3"),
                ..MatMul::default()
            });
        }
    }
}

#[test]
fn element_types() {
    for (factors, out, acc) in [
        ("f16", "f16", "f16"),
        ("f16", "f32", "f32"),
        ("bf16", "bf16", "f32"),
        ("bf16", "f32", "f32"),
        ("f32", "f32", "f32"),
        ("f64", "f64", "f64"),
        ("tf32", "f32", "f32"),
        ("i8", "i32", "i32"),
    ] {
        check(&MatMul { factors, out, acc, ..MatMul::default() });
    }
}

#[test]
fn accumulates_into_c_unless_set() {
    check(&MatMul { set: false, ..MatMul::default() });
    check(&MatMul { set: false, out: "f32", ..MatMul::default() });
}

#[test]
fn names_of_the_solver_are_free() {
    check(&MatMul { names: ["acc", "sA", "grid"], ..MatMul::default() });
    check(&MatMul { names: ["i", "k", "bm"], ..MatMul::default() });
}

#[test]
fn smallest_and_odd_sizes() {
    for size in [(16, 8, 16), (48, 24, 32), (16, 56, 112), (80, 8, 16)] {
        check(&MatMul { size, ..MatMul::default() });
    }
}

#[test]
fn pinned_threads_are_kept() {
    let src = "carbyne 2\n%A:[64,32].f16.GL\n%B:[32,64].f16.GL\n%C:[64,64].f16.GL\n\
               #g:[(2,1):(1,2)].block\n#t:[64].thread\n\
               MatMul.set @mm <<<#g, #t>>> (%A, %B) -> (%C) acc=f32\n";
    let table = sm_80();
    let d = decomposed(src, &table).expect("decomposes");
    assert!(d.text.contains("BM=32, BN=64,"), "{}", d.text);
    run(&d.program, &table).expect("runs");
}

#[test]
fn the_same_text_gives_the_same_bytes() {
    let src = MatMul::default().text();
    let table = sm_80();
    let once = decomposed(&src, &table).expect("decomposes").text;
    assert_eq!(once, decomposed(&src, &table).expect("decomposes").text);
    // A decomposed text has nothing left to decompose.
    assert_eq!(once, decomposed(&once, &table).expect("decomposes").text);
}

/// An atom that only one architecture has does not break the others.
#[test]
fn every_architecture_that_multiplies_halves() {
    let case = MatMul { size: (128, 128, 64), ..MatMul::default() };
    for arch in [Arch::Sm75, Arch::Sm80, Arch::Sm86, Arch::Sm89, Arch::Sm90, Arch::Sm90a] {
        let table = AtomTable::new(arch);
        let d = decomposed(&case.text(), &table).unwrap_or_else(|e| panic!("{arch}: {e:?}"));
        let report = run(&d.program, &table).unwrap_or_else(|e| panic!("{arch}: {e:?}"));
        assert!(report.kernels[0].checked && report.kernels[0].unchecked.is_empty(), "{arch}");
    }
}

#[test]
fn rows_too_short_to_copy_asynchronously_go_through_registers() {
    // One element between rows: no two elements of a row are aligned in every row.
    let src = "carbyne 2\n%A:[(64,32):(33,1)].f16.GL\n%B:[32,64].f16.GL\n%C:[64,64].f16.GL\n\
               MatMul.set @mm (%A, %B) -> (%C) acc=f32\n";
    let table = sm_80();
    let d = decomposed(src, &table).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    assert!(
        d.text.contains("atom=ld.global.b16") && d.text.contains("atom=cp.async"),
        "{}",
        d.text
    );
    let report = run(&d.program, &table).unwrap_or_else(|e| panic!("{}\n{e:?}", d.text));
    assert!(report.kernels[0].complete && report.kernels[0].unchecked.is_empty());
}
