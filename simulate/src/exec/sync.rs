//! Synchronization statements: groups of copies, mbarriers, the barrier of a cluster.

use super::Runner;
use super::blame::{self, Access};
use super::cluster::Outgoing;
use crate::plan::{Checked, Mask, SyncNode};
use crate::state::{Arrival, BarrierFault, Unmet};
use carbyne_atoms::AtomNumber;
use carbyne_ir::ast::SyncOp;
use carbyne_ir::diag::{Code, Diagnostic};

impl Runner<'_> {
    /// Executes the statement for the active threads, in their order.
    pub(super) fn sync(&mut self, sync: &SyncNode, active: &Mask) -> Checked<()> {
        self.whole_warps(sync, active)?;
        for t in active.threads() {
            let number = match &sync.number {
                Some(index) => self.index(index, t, sync.site)?,
                None => 0,
            };
            if let Some(takes) = sync.takes.filter(|n| !n.takes(Some(number), Some(number), number))
            {
                return Err(self.wrong_number(sync, t, number, &takes));
            }
            match sync.op {
                SyncOp::AsyncCommit => self.block.commit(t),
                SyncOp::AsyncWait => self.block.wait(t, usize::try_from(number).unwrap_or(0)),
                SyncOp::ClusterArrive => self.cluster(sync, t, |b, t| b.arrive_cluster(t, true))?,
                SyncOp::ClusterArriveRelaxed => {
                    self.cluster(sync, t, |b, t| b.arrive_cluster(t, false))?;
                }
                SyncOp::ClusterWait => self.cluster(sync, t, |b, t| b.wait_cluster(t))?,
                SyncOp::MbarrierInit
                | SyncOp::MbarrierArrive
                | SyncOp::MbarrierExpect
                | SyncOp::MbarrierWait
                | SyncOp::MbarrierAsyncArrive => self.mbarriers(sync, t, number)?,
                // What completes at its issue needs no wait; what is told to hardware has no meaning.
                SyncOp::BulkCommit
                | SyncOp::BulkWait
                | SyncOp::BulkWaitRead
                | SyncOp::WgmmaFence
                | SyncOp::WgmmaCommit
                | SyncOp::WgmmaWait
                | SyncOp::FenceMbarrierInit
                | SyncOp::FenceAsync
                | SyncOp::RegistersInc
                | SyncOp::RegistersDec
                | SyncOp::GridWait
                | SyncOp::GridLaunch
                | SyncOp::Prefetch => {}
            }
        }
        Ok(())
    }

    /// The groups that execute the statement together are active as a whole or not at all.
    fn whole_warps(&self, sync: &SyncNode, active: &Mask) -> Checked<()> {
        if sync.group < 32 {
            return Ok(());
        }
        for warps in active.0.chunks(sync.group / 32) {
            let n: usize = warps.iter().map(|lanes| lanes.count_ones() as usize).sum();
            if n > 0 && n < sync.group {
                return Err(super::diverged(self.kernel, sync.site, sync.group - n));
            }
        }
        Ok(())
    }

    /// One thread's statement on every mbarrier of its view.
    fn mbarriers(&mut self, sync: &SyncNode, thread: usize, number: i64) -> Checked<()> {
        let Some(view) = sync.view else { return Ok(()) };
        let write = sync.op == SyncOp::MbarrierInit;
        let rank = match &sync.peer {
            Some(rank) => usize::try_from(self.index(rank, thread, sync.site)?).ok(),
            None => None,
        };
        for e in 0..usize::try_from(self.kernel.views[view].size).unwrap_or(0) {
            let found = self.mbarrier_at(view, e, thread, sync.site, write)?;
            let Some((byte, name)) = found else { continue };
            if let Some(rank) = rank.filter(|r| *r != self.rank) {
                let (site, arrival) = (sync.site, Arrival::Arrivals(number));
                self.outgoing.push(Outgoing { rank, site, thread, byte, name, arrival });
                continue;
            }
            let done = self.block.mbarrier(sync.op, byte, thread, number);
            done.map_err(|fault| self.barrier_fault(sync.site, thread, &name, fault))?;
        }
        Ok(())
    }

    /// The byte in shared memory and the name of an mbarrier, which the thread is about to use. The init
    /// counts as a write that everything else must come after.
    pub(super) fn mbarrier_at(
        &mut self,
        view: usize,
        element: usize,
        thread: usize,
        site: u32,
        write: bool,
    ) -> Checked<Option<(usize, String)>> {
        let kernel = self.kernel;
        let index = view;
        let view = &kernel.views[index];
        let at = self.index(&view.offset, thread, site)?.saturating_add(view.element(element));
        let mut who = self.block.clocks.warp(thread / 32, site);
        who.thread = thread as u16;
        let accessed = match write {
            true => self.block.write(view, at, 0, thread, &who, false).map(|_| ()),
            false => self.block.read(view, at, thread, &who).map(|_| ()),
        };
        if let Err(failure) = accessed {
            let access = Access { view: index, at, write, thread };
            return blame::failed(kernel, self.block.env.block, &who, &access, &failure);
        }
        let byte = self.block.byte_offset(view, at).and_then(|b| usize::try_from(b).ok());
        Ok(byte.map(|byte| (byte, kernel.element_name(index, at))))
    }

    fn cluster(
        &mut self,
        sync: &SyncNode,
        thread: usize,
        act: impl Fn(&mut crate::state::Block<'_>, usize) -> Result<(), BarrierFault>,
    ) -> Checked<()> {
        act(&mut self.block, thread)
            .map_err(|fault| self.barrier_fault(sync.site, thread, "the cluster's barrier", fault))
    }

    fn wrong_number(
        &self,
        sync: &SyncNode,
        thread: usize,
        number: i64,
        takes: &AtomNumber,
    ) -> Box<Diagnostic> {
        let span = self.kernel.sites[sync.site as usize].span;
        Box::new(
            Diagnostic::new(
                Code::BarrierMisuse,
                span,
                format!("`{}` with {} {number}", sync.op, takes.name),
            )
            .label(format!("block {}, thread {thread}", self.block.env.block))
            .help(format!("it takes {takes}")),
        )
    }

    pub(super) fn barrier_fault(
        &self,
        site: u32,
        thread: usize,
        name: &str,
        fault: BarrierFault,
    ) -> Box<Diagnostic> {
        let span = self.kernel.sites[site as usize].span;
        let by = format!("block {}, thread {thread}", self.block.env.block);
        Box::new(match fault {
            BarrierFault::Unmet(Unmet { phase, arrivals, bytes }) => Diagnostic::new(
                Code::UnmetWait,
                span,
                format!("a thread waits for phase {phase} of {name}, which nothing completes"),
            )
            .label(format!("{by}: {arrivals} arrivals and {bytes} bytes are missing"))
            .help(
                "statements run in text order for the whole block: what completes the phase \
                 stands before the wait",
            ),
            BarrierFault::Misuse { what, help } => {
                Diagnostic::new(Code::BarrierMisuse, span, format!("{name} {what}"))
                    .label(by)
                    .help(help)
            }
        })
    }
}
