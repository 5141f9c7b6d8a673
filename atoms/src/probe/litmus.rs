//! Litmus kernels: programs whose results show that a statement between specs worked.
//!
//! One thread of a pair brings a number to shared memory and takes its time about it: it adds the number to what is
//! there again and again, so that whoever looks too early sees another sum. The other thread takes the sum after the
//! statement. Statements of groups of copies and MatMuls stand around copies and MatMuls whose results are taken.
//!
//! Of what acts on time, registers or hints alone nothing can be seen: [`Unobservable::Statement`].

use super::operand::{Passing, ProbeOperand};
use super::writer::Writer;
use super::{Choice, Probe, Unobservable, probe};
use crate::atom::{Atom, AtomOp, BarrierScope, Elem, Extent, OperandAccess, Visibility};
use crate::table::AtomTable;
use carbyne_ir::ast::{AccumulateOp, CacheHint, SyncOp};
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::{Memory, Scalar};
use std::fmt;

/// Elements of the caller's tensors: one for each thread that takes part.
const N: i64 = 32;
/// How often a number is added before the statement.
const TIMES: i64 = 200;

/// A litmus of a statement's atom.
///
/// # Errors
/// [`Unobservable::Statement`] with the reason, [`Unobservable::Shadowed`].
pub(super) fn litmus(
    atom: &Atom,
    table: &AtomTable,
    choice: Choice,
    kernel: String,
) -> Result<Probe, Unobservable> {
    is_chosen(atom, table)?;
    let l = |threads| Litmus::new(atom, table, choice, threads);
    match atom.op {
        AtomOp::Barrier(BarrierScope::Block) => l(128).hand_over("#cta", 128, &kernel),
        AtomOp::Barrier(BarrierScope::Warp) => l(64).hand_over("#cta.tile([32])[1]", 32, &kernel),
        AtomOp::Barrier(BarrierScope::Lanes) => l(64).hand_over("#cta.tile([8])[1]", 8, &kernel),
        AtomOp::Barrier(BarrierScope::Warps) => l(128).hand_over("#cta.tile([64])[1]", 64, &kernel),
        AtomOp::Elect => l(64).elect(&kernel),
        AtomOp::Sync(op) => match op {
            SyncOp::MbarrierInit | SyncOp::MbarrierArrive | SyncOp::MbarrierWait
                if atom.number("rank").is_none() =>
            {
                l(64).through_mbarrier(false, &kernel)
            }
            SyncOp::MbarrierAsyncArrive => l(64).through_mbarrier(true, &kernel),
            SyncOp::MbarrierInit
            | SyncOp::MbarrierArrive
            | SyncOp::MbarrierWait
            | SyncOp::MbarrierExpect
            | SyncOp::FenceMbarrierInit
            | SyncOp::ClusterArrive
            | SyncOp::ClusterWait => l(32).in_cluster("cluster.arrive", &kernel),
            SyncOp::ClusterArriveRelaxed => l(32).in_cluster("cluster.arrive_relaxed", &kernel),
            SyncOp::AsyncCommit | SyncOp::AsyncWait => l(64).two_groups(&kernel),
            SyncOp::BulkCommit | SyncOp::BulkWait | SyncOp::FenceAsync => {
                l(64).bulk("bulk.wait(0)", &kernel)
            }
            SyncOp::BulkWaitRead => l(64).bulk("bulk.wait_read(0)", &kernel),
            SyncOp::WgmmaFence | SyncOp::WgmmaCommit | SyncOp::WgmmaWait => {
                let waits = |r: &&Atom| r.visibility == Visibility::WgmmaGroup;
                let found = table.atoms().iter().find(waits).ok_or(Unobservable::Statement(
                    "no atom of the architecture is waited for by it",
                ))?;
                probe(found, table, choice).map(|p| renamed(p, kernel))
            }
            SyncOp::RegistersInc | SyncOp::RegistersDec => Err(Unobservable::Statement(
                "how many registers a thread may use shows in no result",
            )),
            SyncOp::GridWait | SyncOp::GridLaunch => Err(Unobservable::Statement(
                "it acts on grids that are launched to overlap, and one is launched at a time",
            )),
            SyncOp::Prefetch => {
                Err(Unobservable::Statement("it is a hint, which shows in no result"))
            }
        },
        AtomOp::Move
        | AtomOp::Accumulate(_)
        | AtomOp::MatMul { .. }
        | AtomOp::Unary(_)
        | AtomOp::Binary(_)
        | AtomOp::Select
        | AtomOp::Reduction(_)
        | AtomOp::Shfl(_)
        | AtomOp::Init => Err(Unobservable::Statement("it is no statement")),
    }
}

/// Whether the atom is the one that the table takes for its statement, with a number that the litmus has.
fn is_chosen(atom: &Atom, table: &AtomTable) -> Result<(), Unobservable> {
    let AtomOp::Sync(op) = atom.op else { return Ok(()) };
    let one = |n: i64| Some((Some(n), Some(n), n.max(1)));
    let number = atom.numbers.first().map(|n| n.least.max(n.multiple.min(n.most)));
    let found = table.sync(op, number.and_then(one), atom.number("rank").is_some());
    match found {
        Ok(chosen) if chosen.name != atom.name => Err(Unobservable::Shadowed(chosen.name)),
        _ => Ok(()),
    }
}

fn renamed(made: Probe, kernel: String) -> Probe {
    let text = made.text.replace(&format!("@{} ", made.kernel), &format!("@{kernel} "));
    Probe { text, kernel, ..made }
}

struct Litmus<'a> {
    w: Writer<'a>,
    blocks: i64,
    /// Elements of the input and of the output.
    len: (i64, i64),
}

impl<'a> Litmus<'a> {
    fn new(atom: &'a Atom, table: &'a AtomTable, choice: Choice, threads: i64) -> Self {
        let text = String::new();
        let choice = Choice { blocks: 1, threads, ..choice };
        let w = Writer { atom, table, choice, threads, groups: 1, repeat: None, text };
        Litmus { w, blocks: 1, len: (N, N) }
    }

    fn line(&mut self, depth: usize, text: impl fmt::Display) {
        self.w.line(depth, text);
    }

    /// The head of the kernel.
    fn begin(&mut self, kernel: &str) {
        let ((n, m), threads) = (self.len, self.w.threads);
        self.line(0, "carbyne 1");
        self.line(0, format_args!("%inS:[{n}].u32.GL"));
        self.line(0, format_args!("%outD:[{m}].u32.GL"));
        match self.blocks {
            1 => self.line(0, "#grid:[1].block"),
            n => {
                self.line(0, format_args!("#all:[{n}].block"));
                self.line(0, format_args!("#grid:[1].[{n}].block = #all.tile([{n}])"));
            }
        }
        self.line(0, format_args!("#cta:[{threads}].thread"));
        self.line(0, format_args!("Spec @{kernel} <<<#grid, #cta>>> (%inS) -> (%outD) {{"));
        self.line(1, "#first:[].thread = #cta[0]");
    }

    fn end(mut self, kernel: &str) -> Result<Probe, Unobservable> {
        self.line(0, "}");
        let operand = |name, access, tensor: &str, n: i64| {
            let tv = Layout::col_major(vec![n]).map_err(|e| Unobservable::Layout(e.to_string()))?;
            let named = Some(tensor.to_owned());
            let (input, output) =
                if access == OperandAccess::Read { (named, None) } else { (None, named) };
            let (scalar, tile, passing) = (Scalar::U32, vec![n], Passing::Whole);
            Ok(ProbeOperand { name, access, scalar, input, output, tv, tile, passing, blocks: 1 })
        };
        let operands = vec![
            operand("S", OperandAccess::Read, "inS", self.len.0)?,
            operand("D", OperandAccess::Write, "outD", self.len.1)?,
        ];
        let (kernel, text) = (kernel.to_owned(), self.w.text);
        let (blocks, threads) = (self.blocks, self.w.threads);
        Ok(Probe { text, kernel, operands, blocks, threads, set: false })
    }

    /// The atom of one thread that moves 32 bits between these memories.
    fn word(&self, from: Memory, to: Memory) -> Result<&'static str, Unobservable> {
        self.w.plain_move(from, to, 32)
    }

    /// Brings the thread's number to its place, slowly.
    fn produce(&mut self, depth: usize, who: &str, at: &str) -> Result<(), Unobservable> {
        let (load, store) =
            (self.word(Memory::Gl, Memory::Rf)?, self.word(Memory::Rf, Memory::Sh)?);
        let adds = |r: &&Atom| {
            let one = r.operands.iter().all(|o| o.elem == Elem::Scalar(Scalar::U32));
            r.op == AtomOp::Accumulate(AccumulateOp::Add)
                && one
                && r.operands.iter().any(|o| o.memory == [Memory::Sh])
                && r.extent == Extent::Tile
        };
        let add = self.w.table.atoms().iter().find(adds).map(|r| r.name);
        let add = add.ok_or(Unobservable::NoMove(Memory::Rf, Memory::Sh, 32))?;
        let number = format!("%inS.tile([1])[{at}]");
        let place = format!("%x.tile([1])[{at}]");
        self.line(depth, format_args!("Move <<<#grid, {who}>>> ({number}) -> (%r) atom={load}"));
        self.line(depth, format_args!("Move <<<#grid, {who}>>> (%r) -> ({place}) atom={store}"));
        self.line(depth, format_args!("for (k = 1; k < {TIMES}; k += 1) nounroll {{"));
        self.line(
            depth + 1,
            format_args!("Move.add <<<#grid, {who}>>> (%r) -> ({place}) atom={add}"),
        );
        self.line(depth, "}");
        Ok(())
    }

    /// Takes what stands at a place.
    fn consume(
        &mut self,
        depth: usize,
        who: &str,
        from: &str,
        to: &str,
    ) -> Result<(), Unobservable> {
        let (load, store) =
            (self.word(Memory::Sh, Memory::Rf)?, self.word(Memory::Rf, Memory::Gl)?);
        let (from, to) = (format!("%x.tile([1])[{from}]"), format!("%outD.tile([1])[{to}]"));
        self.line(depth, format_args!("Move <<<#grid, {who}>>> ({from}) -> (%r) atom={load}"));
        self.line(depth, format_args!("Move <<<#grid, {who}>>> (%r) -> ({to}) atom={store}"));
        Ok(())
    }

    /// Each of `n` threads takes what the one opposite brought, behind a barrier of them all.
    fn hand_over(mut self, group: &str, n: i64, kernel: &str) -> Result<Probe, Unobservable> {
        self.len = (n, n);
        self.begin(kernel);
        self.line(1, format_args!("#g:[{n}].thread = {group}"));
        self.line(1, "#g1:[].thread = #g.scalar()");
        self.line(1, "@i = #g.indices()");
        self.line(1, format_args!("Allocate %x:[{n}].u32.SH"));
        self.line(1, "Allocate %r:[1].u32.RF");
        let whole = group == "#cta";
        let (depth, barrier) = if whole { (1, "barrier") } else { (2, "barrier(#g)") };
        if !whole {
            self.line(1, "Spec <<<#grid, #g>>> (%inS) -> (%x, %r, %outD) {");
        }
        self.produce(depth, "#g1", "@i")?;
        self.line(depth, barrier);
        self.consume(depth, "#g1", &format!("{} - @i", n - 1), "@i")?;
        if !whole {
            self.line(1, "}");
        }
        self.end(kernel)
    }

    /// One warp brings, the other takes, when all of the first have arrived; `copies`: by asynchronous copies
    /// that arrive for it.
    fn through_mbarrier(mut self, copies: bool, kernel: &str) -> Result<Probe, Unobservable> {
        self.begin(kernel);
        for (name, warp) in [("p", 0), ("c", 1)] {
            self.line(1, format_args!("#{name}:[32].thread = #cta.tile([32])[{warp}]"));
            self.line(1, format_args!("#{name}1:[].thread = #{name}.scalar()"));
        }
        self.line(1, "@i = #p.indices()");
        self.line(1, "@j = #c.indices()");
        self.line(1, format_args!("Allocate %x:[{N}].u32.SH"));
        self.line(1, "Allocate %r:[1].u32.RF");
        self.line(1, "Allocate %b:[1].mbarrier.SH");
        self.line(1, "Spec <<<#grid, #first>>> () -> (%b) {");
        self.line(2, format_args!("mbarrier.init(%b, {N})"));
        self.line(1, "}");
        self.line(1, "barrier");
        self.line(1, "Spec <<<#grid, #p>>> (%inS, %b) -> (%x, %r) {");
        if copies {
            let copy = self.async_copy()?;
            self.line(
                2,
                format_args!(
                    "Move <<<#grid, #p1>>> (%inS.tile([1])[@i]) -> (%x.tile([1])[@i]) atom={copy}"
                ),
            );
            self.line(2, "mbarrier.async_arrive(%b)");
        } else {
            self.produce(2, "#p1", "@i")?;
            self.line(2, "mbarrier.arrive(%b, 1)");
        }
        self.line(1, "}");
        self.line(1, "Spec <<<#grid, #c>>> (%x, %b) -> (%r, %outD) {");
        self.line(2, "mbarrier.wait(%b, 0)");
        self.consume(2, "#c1", &format!("{} - @j", N - 1), "@j")?;
        self.line(1, "}");
        self.end(kernel)
    }

    fn async_copy(&self) -> Result<&'static str, Unobservable> {
        let copies = |r: &&Atom| {
            r.visibility == Visibility::AsyncGroup
                && r.numbers.is_empty()
                && r.operands.iter().all(|o| o.bits_per_thread() == 32)
        };
        let found = self.w.table.atoms().iter().find(copies).map(|r| r.name);
        found.ok_or(Unobservable::NoMove(Memory::Gl, Memory::Sh, 32))
    }

    fn bulk_copy(&self, load: bool, multicast: bool) -> Result<&'static str, Unobservable> {
        let way = if load { Visibility::Mbarrier } else { Visibility::BulkGroup };
        let copies = |r: &&Atom| {
            r.op == AtomOp::Move
                && (r.extent, r.visibility, r.cache) == (Extent::Vector, way, CacheHint::Normal)
                && r.number("mask").is_some() == multicast
        };
        let found = self.w.table.atoms().iter().find(copies).map(|r| r.name);
        found.ok_or(Unobservable::NoMove(Memory::Gl, Memory::Sh, 128))
    }

    /// A thread has two groups of copies under way, and waits for the first, then for the other.
    fn two_groups(mut self, kernel: &str) -> Result<Probe, Unobservable> {
        let (copy, n) = (self.async_copy()?, self.w.threads);
        self.len = (2 * n, 2 * n);
        self.begin(kernel);
        self.line(1, "#one:[].thread = #cta.scalar()");
        self.line(1, "@t = #cta.indices()");
        self.line(1, format_args!("Allocate %x:[{}].u32.SH", 2 * n));
        self.line(1, "Allocate %r:[1].u32.RF");
        let places = ["@t".to_owned(), format!("{n} + @t")];
        for at in &places {
            self.line(
                1,
                format_args!("Move <<<#grid, #one>>> (%inS.tile([1])[{at}]) -> (%x.tile([1])[{at}]) atom={copy}"),
            );
            self.line(1, "async.commit");
        }
        for (left, at) in [1, 0].into_iter().zip(&places) {
            self.line(1, format_args!("async.wait({left})"));
            self.consume(1, "#one", at, at)?;
        }
        self.end(kernel)
    }

    /// One warp brings a row, a bulk copy takes it away behind fence and barrier; what its source or its target
    /// is used for after the wait shows that it was waited for.
    fn bulk(mut self, wait: &str, kernel: &str) -> Result<Probe, Unobservable> {
        let copy = self.bulk_copy(false, false)?;
        let (n, store) = (self.w.threads, self.word(Memory::Rf, Memory::Sh)?);
        self.len = (n, n);
        self.begin(kernel);
        self.line(1, "#one:[].thread = #cta.scalar()");
        self.line(1, "@t = #cta.indices()");
        self.line(1, format_args!("Allocate %x:[{n}].u32.SH{{align=128}}"));
        self.line(1, "Allocate %r:[1].u32.RF");
        self.produce(1, "#one", "@t")?;
        self.line(1, "fence.async");
        self.line(1, "barrier");
        self.line(1, "Spec <<<#grid, #first>>> (%x) -> (%outD) {");
        self.line(2, format_args!("Move <<<#grid, #first>>> (%x) -> (%outD) atom={copy}"));
        self.line(2, "bulk.commit");
        self.line(2, wait);
        self.line(1, "}");
        self.line(1, "barrier");
        // What it read may be overwritten now.
        self.line(
            1,
            format_args!("Move <<<#grid, #one>>> (%r) -> (%x.tile([1])[@t]) atom={store}"),
        );
        if wait.contains("read") {
            self.line(1, "Spec <<<#grid, #first>>> (%x) -> (%x) {");
            self.line(2, "bulk.wait(0)");
            self.line(1, "}");
        }
        self.end(kernel)
    }

    /// Two blocks, each of which copies half of what both take, and arrives at both.
    fn in_cluster(mut self, last: &str, kernel: &str) -> Result<Probe, Unobservable> {
        let copy = self.bulk_copy(true, true)?;
        (self.blocks, self.len) = (2, (N, 2 * N));
        let half = N / 2;
        self.begin(kernel);
        self.line(1, "#one:[].thread = #cta.scalar()");
        self.line(1, "@r = #all.indices()");
        self.line(1, "@t = #cta.indices()");
        self.line(1, format_args!("Allocate %x:[{N}].u32.SH{{align=128}}"));
        self.line(1, "Allocate %r:[1].u32.RF");
        self.line(1, "Allocate %full:[1].mbarrier.SH");
        self.line(1, "Allocate %done:[1].mbarrier.SH");
        self.line(1, "Spec <<<#grid, #first>>> () -> (%full, %done) {");
        self.line(2, "mbarrier.init(%full, 1)");
        self.line(2, "mbarrier.init(%done, 2)");
        self.line(2, "fence.mbarrier_init");
        self.line(1, "}");
        self.line(1, "cluster.arrive");
        self.line(1, "cluster.wait");
        self.line(1, "Spec <<<#grid, #first>>> (%inS, %full, %done) -> (%x) {");
        self.line(2, format_args!("mbarrier.expect(%full, {})", 4 * N));
        self.line(
            2,
            format_args!("Move <<<#grid, #first>>> (%inS.tile([{half}])[@r]) -> (%x.tile([{half}])[@r]) bar=%full multicast=3 atom={copy}"),
        );
        self.line(2, "for (p = 0; p < 2; p += 1) {");
        self.line(3, "mbarrier.arrive(%done.peer(p), 1)");
        self.line(2, "}");
        self.line(1, "}");
        self.line(1, "mbarrier.wait(%full, 0)");
        self.line(1, "mbarrier.wait(%done, 0)");
        self.consume(1, "#one", "@t", &format!("{N} * @r + @t"))?;
        // A block whose shared memory others still reach must not end.
        self.line(1, last);
        self.line(1, "cluster.wait");
        self.end(kernel)
    }

    /// One lane of a warp is elected: what only it adds is there once.
    fn elect(mut self, kernel: &str) -> Result<Probe, Unobservable> {
        self.begin(kernel);
        self.line(1, "#w:[32].thread = #cta.tile([32])[1]");
        self.line(1, "#w1:[].thread = #w.scalar()");
        self.line(1, "#e:[].thread = #w.elect()");
        self.line(1, "@i = #w.indices()");
        self.line(1, format_args!("Allocate %x:[{N}].u32.SH"));
        self.line(1, "Allocate %r:[1].u32.RF");
        self.line(1, "Spec <<<#grid, #w>>> (%inS) -> (%x, %r) {");
        self.produce(2, "#w1", "@i")?;
        self.line(1, "}");
        self.line(1, "barrier");
        let add = self.w.text.rsplit("atom=").next().unwrap_or_default();
        let add = add.split_whitespace().next().unwrap_or_default().to_owned();
        let load = self.word(Memory::Gl, Memory::Rf)?;
        self.line(1, "Spec <<<#grid, #e>>> (%inS) -> (%x, %r) {");
        self.line(2, format_args!("for (k = 0; k < {N}; k += 1) nounroll {{"));
        self.line(3, format_args!("Move <<<#grid, #e>>> (%inS.tile([1])[k]) -> (%r) atom={load}"));
        self.line(3, format_args!("Move.add <<<#grid, #e>>> (%r) -> (%x.tile([1])[k]) atom={add}"));
        self.line(2, "}");
        self.line(1, "}");
        self.line(1, "barrier");
        self.line(1, "Spec <<<#grid, #w>>> (%x) -> (%r, %outD) {");
        self.consume(2, "#w1", &format!("{} - @i", N - 1), "@i")?;
        self.line(1, "}");
        self.end(kernel)
    }
}
