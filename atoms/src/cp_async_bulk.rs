//! Bulk copies between global and shared memory by one thread: of consecutive bytes, and of boxes of
//! tensor maps.
//!
//! Into shared memory they complete on an mbarrier, out of it in the thread's bulk group. Costs are those
//! of a unit of 16 bytes.

use crate::arch::{Arch, ArchReq};
use crate::dsl::{GL, ONE, SH, atom, computed, r, w};
use crate::limits::limits;
use crate::row::{
    AsmClass, Atom, AtomNumber, AtomOp, AtomOperand, Elem, Extent, NumberForm, Visibility,
};
use carbyne_ir::ast::CacheHint;
use carbyne_ir::scalar::Memory;
use std::sync::OnceLock;

const RUN: &str = "PTX ISA, Data Movement and Conversion Instructions: cp.async.bulk";
const BOX: &str = "PTX ISA, Data Movement and Conversion Instructions: cp.async.bulk.tensor";

/// Bytes that one phase of an mbarrier counts, in whole units (PTX ISA, Contents of the mbarrier object).
const MOST: i64 = (1 << 20) - 16;
/// Modes of a tensor map (CUDA Driver API, Tensor Map Object Management).
const MOST_MODES: usize = 5;
/// Alignment of a box in shared memory, in bytes.
const BOX_ALIGN: i64 = 128;
const COORDINATES: [&str; MOST_MODES] = ["c0", "c1", "c2", "c3", "c4"];

/// What tells one bulk row from another.
#[derive(Copy, Clone, PartialEq)]
struct Variant {
    extent: Extent,
    load: bool,
    multicast: bool,
    cache: CacheHint,
}

impl Variant {
    fn all() -> Vec<Variant> {
        let mut all = vec![];
        for extent in std::iter::once(Extent::Run).chain((1..=MOST_MODES).map(Extent::Box)) {
            for (load, multicast) in [(true, false), (true, true), (false, false)] {
                let of = |cache: &CacheHint| Variant { extent, load, multicast, cache: *cache };
                all.extend(CacheHint::ALL.iter().map(of));
            }
        }
        all
    }

    /// Name and template.
    fn texts(self) -> (String, String) {
        let dims = match self.extent {
            Extent::Box(n) => format!(".tensor.{n}d"),
            Extent::Tile | Extent::Run => String::new(),
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
        let name = format!("cp.async.bulk{dims}.{to}{name_cast}{suffix}");
        let head = format!("cp.async.bulk{dims}.{target}{cast}");
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

/// Every variant with its name and template, composed once.
fn rows() -> &'static [(Variant, String, String)] {
    static ROWS: OnceLock<Vec<(Variant, String, String)>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let row = |v: Variant| {
            let (name, text) = v.texts();
            (v, name, text)
        };
        Variant::all().into_iter().map(row).collect()
    })
}

pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let unit = Elem::Bits(128);
    let cost = limits(arch).bulk_copy();
    rows()
        .iter()
        .map(|(v, name, text)| {
            let (from, to) = if v.load { (GL, SH) } else { (SH, GL) };
            let align = |memory: &[Memory]| match v.extent {
                Extent::Box(_) if memory == SH => BOX_ALIGN,
                _ => unit.bits() / 8,
            };
            let operands = [r(("S", unit, from, &[1], ONE)), w(("D", unit, to, &[1], ONE))]
                .map(|o| AtomOperand { align: align(o.memory), ..o });
            let cite = if v.extent == Extent::Run { RUN } else { BOX };
            let row = atom(name, ArchReq::Since(Arch::Sm90), AtomOp::Move, cost)
                .operands(operands)
                .numbers(v.numbers())
                .extent(v.extent)
                .cached(v.cache)
                .completes(if v.load { Visibility::Mbarrier } else { Visibility::BulkGroup })
                .ptx(text)
                .cite(cite);
            match v.cache {
                CacheHint::Normal => row,
                _ => row.sequence("the cache policy is made first", "none"),
            }
        })
        .collect()
}
