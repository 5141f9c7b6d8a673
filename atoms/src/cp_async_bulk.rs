//! Lists the atoms of `cp.async.bulk` and `cp.reduce.async.bulk`: bulk copies between global and
//! shared memory that one thread issues, of contiguous bytes or of boxes of tensor maps. Atoms
//! differ in extent, direction and cache hint, and in whether a copy reaches several blocks
//! (`multicast`).
//!
//! Copies to shared memory complete on an mbarrier. Copies from shared memory complete in the
//! thread's bulk group. Costs are those of a unit of 16 bytes. `cp.reduce` adds to global memory,
//! or keeps the minimum or maximum. Its PTX text names the scalar type for contiguous bytes; for
//! boxes the tensor map states it.

use crate::arch::{Arch, ArchReq};
use crate::atom::{
    AsmClass, Atom, AtomNumber, AtomOp, AtomOperand, Elem, Extent, NumberForm, Rounding, Visibility,
};
use crate::convert_through::ptx_name;
use crate::dsl::{GL, ONE, SH, atom, computed, r, rw, w};
use crate::limits::limits;
use crate::red;
use carbyne_ir::ast::{AccumulateOp, CacheHint};
use carbyne_ir::scalar::Memory;
use carbyne_ir::scalar::Scalar::{self, Bf16, F16, F32, F64, I32, U32, U64};
use std::sync::OnceLock;

const VECTOR: &str = "PTX ISA, Data Movement and Conversion Instructions: cp.async.bulk";
const BOX: &str = "PTX ISA, Data Movement and Conversion Instructions: cp.async.bulk.tensor";
const REDUCE_VECTOR: &str =
    "PTX ISA, Data Movement and Conversion Instructions: cp.reduce.async.bulk";
const REDUCE_BOX: &str =
    "PTX ISA, Data Movement and Conversion Instructions: cp.reduce.async.bulk.tensor";

/// The largest number of bytes that one phase of an mbarrier counts, in whole units (PTX ISA,
/// Contents of the mbarrier object).
const MOST: i64 = (1 << 20) - 16;
/// Maximum number of modes of a tensor map (CUDA Driver API, Tensor Map Object Management).
const MOST_MODES: usize = 5;
/// Alignment of a contiguous vector, in bytes.
const VECTOR_ALIGN: i64 = 16;
/// Alignment of a box in shared memory, in bytes.
const BOX_ALIGN: i64 = 128;
const COORDINATES: [&str; MOST_MODES] = ["c0", "c1", "c2", "c3", "c4"];

/// The properties in which bulk atoms differ.
#[derive(Copy, Clone, PartialEq)]
struct Variant {
    extent: Extent,
    load: bool,
    multicast: bool,
    cache: CacheHint,
    /// The operation and type of a reduction; `None` for a copy.
    reduces: Option<(AccumulateOp, Scalar)>,
}

const REDUCTIONS: [(AccumulateOp, Scalar); 11] = [
    (AccumulateOp::Add, F32),
    (AccumulateOp::Add, F16),
    (AccumulateOp::Add, Bf16),
    (AccumulateOp::Add, I32),
    (AccumulateOp::Add, U32),
    (AccumulateOp::Add, U64),
    (AccumulateOp::Add, F64),
    (AccumulateOp::Min, I32),
    (AccumulateOp::Min, U32),
    (AccumulateOp::Max, I32),
    (AccumulateOp::Max, U32),
];

impl Variant {
    fn all() -> Vec<Variant> {
        let mut all = vec![];
        for extent in std::iter::once(Extent::Vector).chain((1..=MOST_MODES).map(Extent::Box)) {
            for (load, multicast) in [(true, false), (true, true), (false, false)] {
                let reduces = None;
                let of =
                    |cache: &CacheHint| Variant { extent, load, multicast, cache: *cache, reduces };
                all.extend(CacheHint::ALL.iter().map(of));
            }
            // Tensor maps do not support sums of f64.
            let has = |r: &&(AccumulateOp, Scalar)| extent == Extent::Vector || r.1 != F64;
            all.extend(REDUCTIONS.iter().filter(has).map(|r| Variant {
                extent,
                load: false,
                multicast: false,
                cache: CacheHint::Normal,
                reduces: Some(*r),
            }));
        }
        all
    }

    /// The name and the template.
    fn texts(self) -> (String, String) {
        let dims = match self.extent {
            Extent::Box(n) => format!(".tensor.{n}d"),
            Extent::Tile | Extent::Vector => String::new(),
        };
        let (to, target, end) = match self.load {
            true => (
                "shared.global",
                "shared::cluster.global.mbarrier::complete_tx::bytes",
                ", [{bar}]",
            ),
            false => ("global.shared", "global.shared::cta.bulk_group", ""),
        };
        let (cast, mask) =
            if self.multicast { (".multicast::cluster", ", {mask}") } else { ("", "") };
        let boxed = |tensor: &str, n: usize| {
            let at: Vec<String> = COORDINATES[..n].iter().map(|c| format!("{{{c}}}")).collect();
            format!("[{tensor}, {{{{{}}}}}]", at.join(", "))
        };
        let operands = match (self.extent, self.load) {
            (Extent::Box(n), true) => format!("[{{D}}], {}", boxed("{S}", n)),
            (Extent::Box(n), false) => format!("{}, [{{S}}]", boxed("{D}", n)),
            _ => "[{D}], [{S}], {bytes}".to_owned(),
        };
        let (suffix, policy) = match self.cache {
            CacheHint::Normal => (String::new(), None),
            hint => (format!(".{hint}"), Some(hint)),
        };
        let name_cast = if self.multicast { ".multicast" } else { "" };
        let (verb, op, operation) = match self.reduces {
            None => ("cp", String::new(), String::new()),
            Some((op, scalar)) => {
                let flush = if matches!(scalar, F16 | Bf16) { ".noftz" } else { "" };
                let ty = ptx_name(scalar);
                // `.add.noftz.f16`. The tensor map states the type of a box.
                let operation = match self.extent {
                    Extent::Box(_) => format!(".{op}"),
                    Extent::Tile | Extent::Vector => format!(".{op}{flush}.{ty}"),
                };
                ("cp.reduce", format!(".{op}.{ty}"), operation)
            }
        };
        let name = format!("{verb}.async.bulk{dims}.{to}{name_cast}{op}{suffix}");
        // For a box the operation stands before the completion mechanism.
        let target = match (target.strip_suffix(".bulk_group"), self.extent) {
            (Some(way), Extent::Box(_)) => format!("{way}{operation}.bulk_group"),
            _ => format!("{target}{operation}"),
        };
        let head = format!("{verb}.async.bulk{dims}.{target}{cast}");
        let text = match policy {
            None => format!("{head} {operands}{end}{mask};"),
            Some(hint) => format!(
                "{{{{\n.reg .b64 policy;\n\
                 createpolicy.fractional.L2::{hint}.b64 policy, 1.0;\n\
                 {head}.L2::cache_hint {operands}{end}{mask}, policy;\n}}}}"
            ),
        };
        (name, text)
    }

    fn numbers(self) -> Vec<AtomNumber> {
        let mut numbers = match self.extent {
            Extent::Box(n) => {
                let at = |name: &&'static str| computed(name, (i32::MIN.into(), i32::MAX.into()));
                COORDINATES[..n].iter().map(at).collect()
            }
            _ => vec![AtomNumber { multiple: 16, ..computed("bytes", (16, MOST)) }],
        };
        if self.multicast {
            let form = NumberForm::Register(AsmClass::H);
            numbers.push(AtomNumber { form, ..computed("mask", (1, 0xffff)) });
        }
        numbers
    }
}

/// All variants with their names and templates, which are composed once.
fn atoms() -> &'static [(Variant, String, String)] {
    static ATOMS: OnceLock<Vec<(Variant, String, String)>> = OnceLock::new();
    ATOMS.get_or_init(|| {
        let atom = |v: Variant| {
            let (name, text) = v.texts();
            (v, name, text)
        };
        Variant::all().into_iter().map(atom).collect()
    })
}

pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let cost = limits(arch).bulk_copy();
    atoms()
        .iter()
        .map(|(v, name, text)| {
            let (from, to) = if v.load { (GL, SH) } else { (SH, GL) };
            let unit = v.reduces.map_or(Elem::Bits(128), |(_, scalar)| Elem::Scalar(scalar));
            let align = |memory: &[Memory]| match v.extent {
                Extent::Box(_) if memory == SH => BOX_ALIGN,
                _ => VECTOR_ALIGN,
            };
            let target = ("D", unit, to, &[1][..], ONE);
            let target = if v.reduces.is_some() { rw(target) } else { w(target) };
            let operands = [r(("S", unit, from, &[1], ONE)), target]
                .map(|o| AtomOperand { align: align(o.memory), ..o });
            let cite = match (v.extent, v.reduces) {
                (Extent::Vector, None) => VECTOR,
                (_, None) => BOX,
                (Extent::Vector, Some(_)) => REDUCE_VECTOR,
                (_, Some(_)) => REDUCE_BOX,
            };
            let op = v.reduces.map_or(AtomOp::Move, |(op, _)| AtomOp::Accumulate(op));
            let rounding = v.reduces.map_or(Rounding::Exact, |(op, s)| red::rounding(op, s));
            let atom = atom(name, ArchReq::Since(Arch::Sm90), op, cost)
                .operands(operands)
                .numbers(v.numbers())
                .extent(v.extent)
                .cached(v.cache)
                .completes(if v.load { Visibility::Mbarrier } else { Visibility::BulkGroup })
                .ptx(text)
                .rounded(rounding)
                .cite(cite);
            match v.cache {
                CacheHint::Normal => atom,
                _ => atom.sequence("a cache policy is created first", "none"),
            }
        })
        .collect()
}
