//! Decomposes the kernels of the test of random edits, for small grids, so that the blocks of
//! persistent kernels process several tiles.

use crate::support::root;
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::text;

/// The values of the symbols of a launch.
pub(crate) type Sizes = Vec<(&'static str, i64)>;

pub(crate) const GROUPS: [&str; 5] = [
    "symbolic kernels",
    "ragged kernels",
    "persistent kernels and clusters",
    "roles and causal masks",
    "persistent loops of 1 to 7 blocks",
];

pub(crate) struct Kernel {
    pub(crate) group: &'static str,
    what: String,
    pub(crate) arch: Arch,
    /// The text before it is decomposed.
    source: String,
    /// Replacements after it is decomposed.
    exchange: Vec<(&'static str, &'static str)>,
    /// The launches with which the kernel is executed.
    pub(crate) sizes: Vec<Sizes>,
    /// The number of blocks of a persistent grid; 0 for other kernels.
    pub(crate) blocks: i64,
}

impl Kernel {
    pub(crate) fn name(&self) -> String {
        format!("{} for {}", self.what, self.arch)
    }

    /// The decomposed text.
    pub(crate) fn text(&self) -> String {
        let (name, src) = (self.name(), &self.source);
        let module = text::parse(src).unwrap_or_else(|e| panic!("{name}: {e}"));
        let found = carbyne_decompose::decompose(&module, src, &AtomTable::new(self.arch));
        let mut text = found.unwrap_or_else(|e| panic!("{name}: {e}")).text;
        for (from, to) in &self.exchange {
            assert!(text.contains(from), "{name}: {from} is not there");
            text = text.replace(from, to);
        }
        let left = ["132", "264"].iter().find(|n| !self.exchange.is_empty() && text.contains(**n));
        assert!(left.is_none(), "{name}: {left:?} is left");
        text
    }
}

/// An example with replacements, all of which must match.
fn example(name: &str, exchange: &[(&str, &str)]) -> String {
    let path = root().join("examples").join(name).with_extension("cby");
    let mut src = std::fs::read_to_string(path).unwrap();
    for (from, to) in exchange {
        assert!(src.contains(from), "{name}: {from} is not there");
        src = src.replace(from, to);
    }
    src
}

const BOTH: [Arch; 2] = [Arch::Sm80, Arch::Sm90a];

pub(crate) fn kernels() -> Vec<Kernel> {
    let mut out = vec![];
    let mut add = |group: usize,
                   what: &str,
                   archs: &[Arch],
                   source: String,
                   exchange: &[(&'static str, &'static str)],
                   sizes: &[&[(&'static str, i64)]],
                   blocks: i64| {
        for arch in archs {
            out.push(Kernel {
                group: GROUPS[group],
                what: what.to_owned(),
                arch: *arch,
                source: source.clone(),
                exchange: exchange.to_vec(),
                sizes: sizes.iter().map(|s| s.to_vec()).collect(),
                blocks,
            });
        }
    };
    let gemm = |by: &str| {
        let to = format!("MatMul.set @gemm_any (%A, %B) -> (%C) acc=f32 by=@{by}");
        example("gemm_any", &[("MatMul.set @gemm_any (%A, %B) -> (%C) acc=f32", &to)])
    };
    let [m, n, k] = ["M", "N", "K"];
    add(
        0,
        "gemm_any",
        &[Arch::Sm80],
        gemm("ring[BM=32, BN=32, BK=32, KS=16, WM=1, WN=2, S=3]"),
        &[],
        &[&[(m, 61), (n, 37), (k, 136)], &[(m, 32), (n, 64), (k, 32)]],
        0,
    );
    let [b, h, s, t] = ["B", "H", "S", "T"];
    let of_keys: [&[_]; 2] =
        [&[(b, 1), (h, 1), (s, 70), (t, 200)], &[(b, 1), (h, 1), (s, 64), (t, 64)]];
    add(0, "attention_any", &BOTH, example("attention_any", &[]), &[], &of_keys, 0);
    let rows: [&[_]; 2] = [&[(m, 3), (n, 1000)], &[(m, 1), (n, 64)]];
    add(0, "softmax_any", &BOTH, example("softmax_any", &[]), &[], &rows, 0);
    add(0, "layernorm_any", &BOTH, example("layernorm_any", &[]), &[], &rows, 0);
    add(1, "attention_ragged", &BOTH, example("attention_ragged", &[]), &[], &of_keys, 0);
    let of_pages: [&[_]; 2] =
        [&[(b, 1), (h, 1), ("NP", 3), ("P", 5)], &[(b, 2), (h, 1), ("NP", 1), ("P", 2)]];
    let source = example("attention_paged", &[("PS = 64", "PS = 16")]);
    add(1, "attention_paged", &BOTH, source, &[], &of_pages, 0);
    let numbers = ("BM = 128, BN = 128, BK = 64, P = 132", "BM = 128, BN = 64, BK = 64, P = 3");
    let g = "G";
    let of_groups: [&[_]; 2] =
        [&[(t, 200), (g, 2), (n, 136), (k, 136)], &[(t, 40), (g, 2), (n, 72), (k, 72)]];
    add(1, "grouped_gemm", &BOTH, example("grouped_gemm", &[numbers]), &[], &of_groups, 3);
    // Two clusters of two blocks.
    let pairs = [
        ("#grid:[132]", "#grid:[4]"),
        ("G=132", "G=4"),
        ("[66:2]", "[2:2]"),
        (" * 132", " * 4"),
        (" / 132", " / 4"),
        (" += 132", " += 4"),
    ];
    let of_tiles: [&[_]; 2] = [&[(m, 300), (n, 70), (k, 136)], &[(m, 520), (n, 40), (k, 64)]];
    let sm_90a = [Arch::Sm90a];
    add(2, "pairs", &sm_90a, gemm("wgmma_pairs[BN=64, ST=3]"), &pairs, &of_tiles, 4);
    let single = [
        ("#grid:[132]", "#grid:[2]"),
        ("G=132", "G=2"),
        (" * 132", " * 2"),
        (" / 132", " / 2"),
        (" += 132", " += 2"),
    ];
    let double = [&single[..], &[(" += 264", " += 4")]].concat();
    let of_tiles: [&[_]; 2] = [&[(m, 300), (n, 130), (k, 136)], &[(m, 600), (n, 40), (k, 64)]];
    add(2, "ring", &sm_90a, gemm("wgmma_ring[BN=64, ST=3]"), &single, &of_tiles, 2);
    add(2, "ping-pong", &sm_90a, gemm("wgmma_pingpong[BN=64, ST=3]"), &double, &of_tiles, 2);
    let one = (
        "M = 512, N = 768, K = 384, G = 3, BAND = 2",
        "M = 256, N = 256, K = 192, G = 1, BAND = 2",
    );
    let source = example("hopper_gemm_roles", &[one]);
    add(2, "hopper_gemm_roles", &sm_90a, source, &[], &[&[]], 1);
    let small =
        [("M = 256, N = 512, K = 256", "M = 128, N = 64, K = 384"), ("BN = 256", "BN = 64")];
    add(3, "gemm_roles", &BOTH, example("gemm_roles", &small), &[], &[&[]], 0);
    let small = ("B = 2, H = 16, S = 4096, T = S, D = 128", "B = 1, H = 1, S = 192, T = S, D = 64");
    add(3, "attention_causal", &BOTH, example("attention_causal", &[small]), &[], &[&[]], 0);
    for (what, source) in OWN {
        for blocks in 1..=7 {
            let source = source.replace("G = 3", &format!("G = {blocks}"));
            let sizes: [&[_]; 2] = match source.contains("sym M, K") {
                true => [&[(m, 700), (k, 160)], &[(m, 260), (k, 32)]],
                false => [&[(m, 90)], &[(m, 40)]],
            };
            let what = format!("{what} of {blocks} blocks");
            add(4, &what, &BOTH, source, &[], &sizes, blocks);
        }
    }
    out
}

const OWN: [(&str, &str); 5] = [
    ("rows", include_str!("rows.cby")),
    ("product", include_str!("product.cby")),
    ("groups", include_str!("groups.cby")),
    ("stages", include_str!("stages.cby")),
    ("roles", include_str!("roles.cby")),
];
