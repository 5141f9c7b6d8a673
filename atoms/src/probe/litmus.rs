//! Writes litmus kernels: programs whose results show that a synchronization statement works, for
//! tests of its atom on a device.
//!
//! In the tests of barriers and mbarriers, a thread writes a number to shared memory and then adds
//! it again and again, which takes time. Another thread reads the sum after the statement. If it
//! reads too early, it sees another sum. Statements that wait for groups of copies or MatMuls are
//! tested with copies or MatMuls whose results are read. Statements for clusters are tested with
//! two blocks that copy to each other.
//!
//! Some statements act only on timing, on registers, or as hints. No result shows their effect:
//! [`Unobservable::Statement`].

use super::choice::Choice;
use super::operand::{Passing, ProbeOperand};
use super::outcome::{Probe, Unobservable};
use super::tile;
use super::writer::{Writer, copy, cta, lanes, on, one, operands_of, spec, threads, views};
use crate::atom::{Atom, AtomOp, BarrierScope, Elem, Extent, OperandAccess, Visibility};
use crate::table::{AtomTable, SyncForm};
use carbyne_ir::ast::*;
use carbyne_ir::build::statements::*;
use carbyne_ir::build::{Num, Tensor};
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::{Memory, Scalar};

/// Elements of the caller's tensors: one per participating thread.
const N: i64 = 32;
/// The number of times that a number is added before the statement.
const TIMES: i64 = 200;

/// The litmus kernel of a statement's atom.
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
        AtomOp::Barrier(BarrierScope::Block) => l(128).hand_over(&cta(), 128, &kernel),
        AtomOp::Barrier(BarrierScope::Warp) => l(64).hand_over(&part(32, 1), 32, &kernel),
        AtomOp::Barrier(BarrierScope::Lanes) => l(64).hand_over(&part(8, 1), 8, &kernel),
        AtomOp::Barrier(BarrierScope::Warps) => l(128).hand_over(&part(64, 1), 64, &kernel),
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
            | SyncOp::ClusterWait => l(32).in_cluster(SyncOp::ClusterArrive, &kernel),
            SyncOp::ClusterArriveRelaxed => l(32).in_cluster(op, &kernel),
            SyncOp::AsyncCommit | SyncOp::AsyncWait => l(64).two_groups(&kernel),
            SyncOp::BulkCommit | SyncOp::BulkWait | SyncOp::FenceAsync => {
                l(64).bulk(SyncOp::BulkWait, &kernel)
            }
            SyncOp::BulkWaitRead => l(64).bulk(op, &kernel),
            SyncOp::WgmmaFence | SyncOp::WgmmaCommit | SyncOp::WgmmaWait => {
                let waits = |r: &&Atom| r.visibility.holds_registers();
                let found = table.atoms().iter().find(waits).ok_or(Unobservable::Statement(
                    "the architecture has no atom for which it waits",
                ))?;
                tile::tile_probe(found, table, choice, kernel, None)
            }
            SyncOp::RegistersInc | SyncOp::RegistersDec => {
                Err(Unobservable::Statement("no result shows the number of registers of a thread"))
            }
            SyncOp::GridWait | SyncOp::GridLaunch => Err(Unobservable::Statement(
                "it acts on overlapping grids, but a probe launches one grid at a time",
            )),
            SyncOp::Prefetch => Err(Unobservable::Statement("it is a hint; no result shows it")),
        },
        AtomOp::Move
        | AtomOp::Accumulate(_)
        | AtomOp::MatMul { .. }
        | AtomOp::Unary(_)
        | AtomOp::Binary(_)
        | AtomOp::Select
        | AtomOp::Reduction(_)
        | AtomOp::Shfl(_)
        | AtomOp::Init => Err(Unobservable::Statement("it is not a synchronization statement")),
    }
}

/// Checks that the table chooses this atom for its statement with the number in the litmus kernel.
fn is_chosen(atom: &Atom, table: &AtomTable) -> Result<(), Unobservable> {
    let AtomOp::Sync(op) = atom.op else { return Ok(()) };
    let one = |n: i64| Some((Some(n), Some(n), n.max(1)));
    let number = atom.numbers.first().map(|n| n.least.max(n.multiple.min(n.most)));
    let found = table.sync(op, number.and_then(one), SyncForm::of(atom));
    match found {
        Ok(chosen) if chosen.name != atom.name => Err(Unobservable::Shadowed(chosen.name)),
        _ => Ok(()),
    }
}

/// `#cta.tile([n])[i]`
fn part(n: i64, i: i64) -> Tensor {
    cta().tile([n]).at([i])
}

/// `%name.tile([1])[at]`
fn element(name: &str, at: &Num) -> Tensor {
    Tensor::of(name).tile([1]).at([at])
}

/// A shared tensor of `n` numbers, aligned to 128 bytes if bulk copies access it.
fn shared(n: i64, aligned: bool) -> Stmt {
    let attrs = if aligned { vec![TypeAttr::Align(Expr::int(128))] } else { vec![] };
    allocation("x", dims(&[n], false), Scalar::U32, Memory::Sh, attrs)
}

/// The register through which a thread moves numbers.
fn register() -> Stmt {
    plain("r", &[1], Scalar::U32, Memory::Rf)
}

fn mbarrier(name: &str) -> Stmt {
    plain(name, &[1], Scalar::Mbarrier, Memory::Sh)
}

/// `Spec <<<#grid, #threads>>> (..) -> (..) { .. }`
fn by<const R: usize, const W: usize>(
    threads: &str,
    reads: [&str; R],
    writes: [&str; W],
    stmts: Vec<Stmt>,
) -> Stmt {
    within(&on(&Tensor::of(threads)), views(reads), views(writes), stmts)
}

/// A statement without operands.
fn bare(op: SyncOp) -> Stmt {
    sync(op, None, None)
}

/// A statement with a number.
fn with(op: SyncOp, n: i64) -> Stmt {
    sync(op, None, Some(Expr::int(n)))
}

/// A statement on an mbarrier.
fn at_barrier(op: SyncOp, name: &str, n: i64) -> Stmt {
    sync(op, Some(View::of(name)), Some(Expr::int(n)))
}

struct Litmus<'a> {
    w: Writer<'a>,
    blocks: i64,
    /// Elements of the input and of the output.
    len: (i64, i64),
}

impl<'a> Litmus<'a> {
    fn new(atom: &'a Atom, table: &'a AtomTable, choice: Choice, threads: i64) -> Self {
        let choice = Choice { blocks: 1, threads, ..choice };
        Litmus { w: Writer { atom, table, choice, threads, groups: 1 }, blocks: 1, len: (N, N) }
    }

    /// The kernel with these statements.
    fn kernel(self, kernel: &str, stmts: Vec<Stmt>) -> Result<Probe, Unobservable> {
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
        let blocks = |name, n| declare(name, dims(&[n], false), ThreadScalar::Block);
        let grid = match self.blocks {
            1 => vec![blocks("grid", 1)],
            n => {
                let cluster = Tensor::of("all").tile([n]);
                let levels: [&[i64]; 2] = [&[1], &[n]];
                let cluster = stated_threads("grid", &levels, ThreadScalar::Block, cluster.into());
                vec![blocks("all", n), cluster]
            }
        };
        let mut body = vec![threads("first", &[], &cta().at([0]))];
        body.extend(stmts);
        let head = spec(SpecKind::Generic, &cta(), operands_of(["inS"]), views(["outD"]));
        let text = self.w.module(&operands, grid, kernel, head, body);
        let (kernel, blocks, threads) = (kernel.to_owned(), self.blocks, self.w.threads);
        Ok(Probe { text, kernel, operands, blocks, threads, set: false })
    }

    /// The atom of one thread that moves 32 bits between these memories.
    fn word(&self, from: Memory, to: Memory) -> Result<&'static str, Unobservable> {
        self.w.plain_move(from, to, 32)
    }

    /// `Move.add <<<#grid, #threads>>> (%r) -> (%x.tile([1])[at])`
    fn add(&self, threads: &Tensor, at: &Num) -> Result<Stmt, Unobservable> {
        let adds = |r: &&Atom| {
            let one = r.operands.iter().all(|o| o.elem == Elem::Scalar(Scalar::U32));
            r.op == AtomOp::Accumulate(AccumulateOp::Add)
                && one
                && r.operands.iter().any(|o| o.memory.iter().all(|m| m.is_shared()))
                && r.extent == Extent::Tile
        };
        let add = self.w.table.atoms().iter().find(adds).map(|r| r.name);
        let add = add.ok_or(Unobservable::NoMove(Memory::Rf, Memory::Sh, 32))?;
        let (kind, place) = (SpecKind::Accumulate(AccumulateOp::Add), element("x", at).into());
        Ok(leaf(kind, &on(threads), vec![View::of("r")], place, vec![word(Key::Atom, add)]))
    }

    /// The thread `who` writes its number at `at`, slowly.
    fn produce(&self, who: &str, at: &Num) -> Result<Vec<Stmt>, Unobservable> {
        let (who, r) = (Tensor::of(who), Tensor::of("r"));
        let (load, store) =
            (self.word(Memory::Gl, Memory::Rf)?, self.word(Memory::Rf, Memory::Sh)?);
        Ok(vec![
            copy(&who, &element("inS", at), &r, load),
            copy(&who, &r, &element("x", at), store),
            counted("k", (1, TIMES), Unroll::Never, vec![self.add(&who, at)?]),
        ])
    }

    /// The thread `who` reads the number at `from`.
    fn consume(&self, who: &str, from: &Num, to: &Num) -> Result<[Stmt; 2], Unobservable> {
        let (who, r) = (Tensor::of(who), Tensor::of("r"));
        let (load, store) =
            (self.word(Memory::Sh, Memory::Rf)?, self.word(Memory::Rf, Memory::Gl)?);
        Ok([copy(&who, &element("x", from), &r, load), copy(&who, &r, &element("outD", to), store)])
    }

    /// Each of `n` threads reads the number of the opposite thread, after a barrier of all of them.
    fn hand_over(mut self, group: &Tensor, n: i64, kernel: &str) -> Result<Probe, Unobservable> {
        self.len = (n, n);
        let mut stmts = vec![
            threads("g", &[n], group),
            threads("g1", &[], &lanes("g")),
            indices(&["@i"], View::of("g")),
            shared(n, false),
            register(),
        ];
        let (i, whole) = (Num::of("@i"), *group == cta());
        let mut steps = self.produce("g1", &i)?;
        steps.push(barrier((!whole).then(|| View::of("g"))));
        steps.extend(self.consume("g1", &(Num::from(n - 1) - &i), &i)?);
        match whole {
            true => stmts.extend(steps),
            false => stmts.push(by("g", ["inS"], ["x", "r", "outD"], steps)),
        }
        self.kernel(kernel, stmts)
    }

    /// One warp writes, another warp reads after all threads of the first have arrived at an
    /// mbarrier. With `copies` asynchronous copies write and arrive.
    fn through_mbarrier(self, copies: bool, kernel: &str) -> Result<Probe, Unobservable> {
        let (i, j) = (Num::of("@i"), Num::of("@j"));
        let produced = match copies {
            true => vec![
                copy(&Tensor::of("p1"), &element("inS", &i), &element("x", &i), self.async_copy()?),
                sync(SyncOp::MbarrierAsyncArrive, Some(View::of("b")), None),
            ],
            false => {
                let mut steps = self.produce("p1", &i)?;
                let mut arrive = at_barrier(SyncOp::MbarrierArrive, "b", 1);
                if SyncForm::of(self.w.atom).after
                    && let StmtKind::Sync { args, .. } = &mut arrive.kind
                {
                    args.push(SyncArg::After(View::of("r")));
                }
                steps.push(arrive);
                steps
            }
        };
        let mut consumed = vec![at_barrier(SyncOp::MbarrierWait, "b", 0)];
        consumed.extend(self.consume("c1", &(Num::from(N - 1) - &j), &j)?);
        let stmts = vec![
            threads("p", &[32], &part(32, 0)),
            threads("p1", &[], &lanes("p")),
            threads("c", &[32], &part(32, 1)),
            threads("c1", &[], &lanes("c")),
            indices(&["@i"], View::of("p")),
            indices(&["@j"], View::of("c")),
            shared(N, false),
            register(),
            mbarrier("b"),
            by("first", [], ["b"], vec![at_barrier(SyncOp::MbarrierInit, "b", N)]),
            barrier(None),
            by("p", ["inS", "b"], ["x", "r"], produced),
            by("c", ["x", "b"], ["r", "outD"], consumed),
        ];
        self.kernel(kernel, stmts)
    }

    fn async_copy(&self) -> Result<&'static str, Unobservable> {
        let copies = |r: &&Atom| {
            r.visibility.is_async_copy()
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

    /// A thread starts two groups of copies, and waits for the first group, then for the second.
    fn two_groups(mut self, kernel: &str) -> Result<Probe, Unobservable> {
        let (atom, n) = (self.async_copy()?, self.w.threads);
        self.len = (2 * n, 2 * n);
        let mut stmts = vec![
            threads("one", &[], &lanes("cta")),
            indices(&["@t"], View::of("cta")),
            shared(2 * n, false),
            register(),
        ];
        let places = [Num::of("@t"), Num::from(n) + Num::of("@t")];
        for at in &places {
            stmts.push(copy(&one(), &element("inS", at), &element("x", at), atom));
            stmts.push(bare(SyncOp::AsyncCommit));
        }
        for (left, at) in [1, 0].into_iter().zip(&places) {
            stmts.push(with(SyncOp::AsyncWait, left));
            stmts.extend(self.consume("one", at, at)?);
        }
        self.kernel(kernel, stmts)
    }

    /// One warp writes a row. After a fence and a barrier a bulk copy stores it. After the wait the
    /// source is overwritten, or the target read, which shows that the wait works.
    fn bulk(mut self, wait: SyncOp, kernel: &str) -> Result<Probe, Unobservable> {
        let atom = self.bulk_copy(false, false)?;
        let (n, store) = (self.w.threads, self.word(Memory::Rf, Memory::Sh)?);
        self.len = (n, n);
        let (t, x, first) = (Num::of("@t"), Tensor::of("x"), Tensor::of("first"));
        let mut stmts = vec![
            threads("one", &[], &lanes("cta")),
            indices(&["@t"], View::of("cta")),
            shared(n, true),
            register(),
        ];
        stmts.extend(self.produce("one", &t)?);
        let away = copy(&first, &x, &Tensor::of("outD"), atom);
        stmts.extend([
            bare(SyncOp::FenceAsync),
            barrier(None),
            by("first", ["x"], ["outD"], vec![away, bare(SyncOp::BulkCommit), with(wait, 0)]),
            barrier(None),
            // The source of the copy may be overwritten now.
            copy(&one(), &Tensor::of("r"), &element("x", &t), store),
        ]);
        if wait == SyncOp::BulkWaitRead {
            stmts.push(by("first", ["x"], ["x"], vec![with(SyncOp::BulkWait, 0)]));
        }
        self.kernel(kernel, stmts)
    }

    /// Two blocks. Each copies one half to both blocks, and arrives at the mbarriers of both.
    fn in_cluster(mut self, last: SyncOp, kernel: &str) -> Result<Probe, Unobservable> {
        let atom = self.bulk_copy(true, true)?;
        (self.blocks, self.len) = (2, (N, 2 * N));
        let (r, t) = (Num::of("@r"), Num::of("@t"));
        let half = |of: &str| Tensor::of(of).tile([N / 2]).at([&r]).into();
        let attrs = vec![
            view(Key::Bar, View::of("full")),
            number(Key::Multicast, 3),
            word(Key::Atom, atom),
        ];
        let first = on(&Tensor::of("first"));
        let peer = Tensor::of("done").then(ViewOp::Peer(Expr::name("p")));
        let arrive = sync(SyncOp::MbarrierArrive, Some(peer.into()), Some(Expr::int(1)));
        let mut stmts = vec![
            threads("one", &[], &lanes("cta")),
            indices(&["@r"], View::of("all")),
            indices(&["@t"], View::of("cta")),
            shared(N, true),
            register(),
            mbarrier("full"),
            mbarrier("done"),
            by(
                "first",
                [],
                ["full", "done"],
                vec![
                    at_barrier(SyncOp::MbarrierInit, "full", 1),
                    at_barrier(SyncOp::MbarrierInit, "done", 2),
                    bare(SyncOp::FenceMbarrierInit),
                ],
            ),
            bare(SyncOp::ClusterArrive),
            bare(SyncOp::ClusterWait),
            by(
                "first",
                ["inS", "full", "done"],
                ["x"],
                vec![
                    at_barrier(SyncOp::MbarrierExpect, "full", 4 * N),
                    leaf(SpecKind::Move, &first, vec![half("inS")], half("x"), attrs),
                    counted("p", (0, 2), Unroll::Default, vec![arrive]),
                ],
            ),
            at_barrier(SyncOp::MbarrierWait, "full", 0),
            at_barrier(SyncOp::MbarrierWait, "done", 0),
        ];
        stmts.extend(self.consume("one", &t, &(Num::from(N) * &r + &t))?);
        // A block must not end while other blocks access its shared memory.
        stmts.extend([bare(last), bare(SyncOp::ClusterWait)]);
        self.kernel(kernel, stmts)
    }

    /// One lane of a warp is elected. The sum shows that only one lane has added.
    fn elect(self, kernel: &str) -> Result<Probe, Unobservable> {
        let (i, k, e) = (Num::of("@i"), Num::of("k"), Tensor::of("e"));
        let load = self.word(Memory::Gl, Memory::Rf)?;
        let added = vec![copy(&e, &element("inS", &k), &Tensor::of("r"), load), self.add(&e, &k)?];
        let consumed = self.consume("w1", &(Num::from(N - 1) - &i), &i)?;
        let stmts = vec![
            threads("w", &[32], &part(32, 1)),
            threads("w1", &[], &lanes("w")),
            threads("e", &[], &Tensor::of("w").then(ViewOp::Elect)),
            indices(&["@i"], View::of("w")),
            shared(N, false),
            register(),
            by("w", ["inS"], ["x", "r"], self.produce("w1", &i)?),
            barrier(None),
            by("e", ["inS"], ["x", "r"], vec![counted("k", (0, N), Unroll::Never, added)]),
            barrier(None),
            by("w", ["x"], ["r", "outD"], consumed.into()),
        ];
        self.kernel(kernel, stmts)
    }
}
