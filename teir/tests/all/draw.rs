//! Draws random operations of TEIR (the Tiled Execution IR) with strategies of proptest. All drawn
//! operations are well formed.

use carbyne_ir::testing;
use carbyne_teir::{
    Axis, DataType, Dim, Exec, First, Last, Main, Operation, Primitives, Schedule, Tensor,
};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed};

/// Properties take their seed and their number of cases from the environment, as all of carbyne do.
pub(crate) fn config(usual: u32) -> Config {
    let seed = RngSeed::Fixed(testing::seed());
    Config {
        cases: testing::cases(usual),
        rng_seed: seed,
        failure_persistence: None,
        ..Config::default()
    }
}

/// An axis outside of tiles.
fn outer() -> impl Strategy<Value = (Dim, Exec, u64)> {
    (select(Dim::ALL), select(&[Exec::Seq, Exec::Seq, Exec::Shared][..]), 1..=3u64)
}

#[derive(Clone, Debug)]
struct Drawn {
    primitives: Primitives,
    outer: Vec<(Dim, Exec, u64)>,
    tile: Vec<(Dim, u64)>,
    order: Vec<u16>,
    packing: Vec<[u16; 3]>,
    gaps: Vec<[u64; 3]>,
    broadcast: Vec<bool>,
}

fn primitives() -> impl Strategy<Value = Primitives> {
    const MAINS: &[Main] = &[Main::None, Main::Copy, Main::Gemm, Main::Brgemm, Main::Gemm];
    (select(DataType::ALL), select(First::ALL), select(MAINS), select(Last::ALL)).prop_map(
        |(data_type, prim_first, prim_main, prim_last)| Primitives {
            data_type,
            prim_first,
            prim_main,
            prim_last,
        },
    )
}

/// A well-formed operation of at most nine axes, with tiles of at most `most` along an axis.
pub(crate) fn operation(most: u64) -> impl Strategy<Value = Operation> {
    let tile = (select(&[Dim::C, Dim::M, Dim::N][..]), 1..=most);
    let keys = proptest::collection::vec(any::<u16>(), 16);
    (
        primitives(),
        proptest::collection::vec(outer(), 0..=4),
        proptest::collection::vec(tile, 4),
        keys,
        proptest::collection::vec(any::<[u16; 3]>(), 16),
        proptest::collection::vec([0..2u64, 0..2u64, 0..2u64], 16),
        proptest::collection::vec(proptest::bool::weighted(0.1), 16),
    )
        .prop_map(|(primitives, outer, tile, order, packing, gaps, broadcast)| {
            build(Drawn { primitives, outer, tile, order, packing, gaps, broadcast })
        })
}

fn build(drawn: Drawn) -> Operation {
    let main = drawn.primitives.prim_main;
    let tile: Vec<(Dim, u64)> = match main {
        Main::Gemm | Main::Brgemm => {
            let dims = [Dim::M, Dim::N, Dim::K, Dim::K];
            let n = if main == Main::Gemm { 3 } else { 4 };
            dims.into_iter().zip(drawn.tile.iter().map(|t| t.1)).take(n).collect()
        }
        _ => drawn.tile[..1 + drawn.tile[3].1 as usize % 3].to_vec(),
    };
    let outer = drawn.outer.iter().map(|(dim, exec, size)| match (dim, main) {
        // Copies along K are in an order.
        (Dim::K, Main::Copy) => (*dim, Exec::Seq, *size),
        _ => (*dim, *exec, *size),
    });
    let tile = tile.into_iter().map(|(dim, size)| (dim, Exec::Prim, size));
    let mut axes: Vec<(u16, Axis)> = outer
        .chain(tile)
        .zip(&drawn.order)
        .map(|((dim, exec, size), key)| (*key, Axis { dim, exec, size, strides: [0; 3] }))
        .collect();
    axes.sort_by_key(|(key, _)| *key);
    let mut axes: Vec<Axis> = axes.into_iter().map(|(_, axis)| axis).collect();
    for tensor in Tensor::ALL {
        let t = tensor as usize;
        let mut order: Vec<usize> = (0..axes.len()).filter(|i| axes[*i].dim.has(tensor)).collect();
        order.sort_by_key(|i| drawn.packing[*i][t]);
        let mut stride = 1;
        for i in order {
            if tensor != Tensor::Out && drawn.broadcast[i] {
                continue;
            }
            stride += drawn.gaps[i][t];
            axes[i].strides[t] = stride;
            stride *= axes[i].size;
        }
    }
    Operation { schedule: Schedule::of_axes(&axes), primitives: drawn.primitives }
}
