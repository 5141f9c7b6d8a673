//! Checks accesses to the registers of asynchronous MatMuls (`wgmma`), which hold the accumulator,
//! or A.
//!
//! While a MatMul is in flight, no thread may access its accumulator or its A: `wgmma.wait` must
//! come first (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions: wgmma.wait_group).
//! Another MatMul may read the A, and one with an accumulator of the same shape may add to the
//! accumulator.
//! After a thread has accessed a register, a `wgmma.fence` must come before a MatMul uses it. Each
//! such order is a pair of the report.

use super::*;
use crate::plan::View;

impl<'p, 'a> Machine<'p, 'a> {
    pub(super) fn register_operand(
        &mut self,
        act: &Act<'_, 'p>,
        leaf: &'a LeafPlan,
        r: usize,
        view: &'a View,
        does: Does,
    ) -> Goes<()> {
        let (site, shape) = (act.site, leaf.shape);
        let n = self.plan.registers[r].1 as usize;
        let bases = self.place(view.offset, &act.lockstep.env, view.space);
        let is_async = leaf.visibility.holds_registers();
        // The accumulator is read, too, but not as a factor.
        let is_own = |o: &OperandPlan| o.writes && self.plan.views[o.view].buffer == view.buffer;
        let is_factor = does == Does::Read && !leaf.operands.iter().any(is_own);
        for (first, lanes) in act.mask.by_warp() {
            let thread = self.global_thread(act.lockstep.rank, first);
            let warp = (thread / 32) as usize;
            let own = (first / 32 * 32..).take(32).filter(|t| lanes >> (t % 32) & 1 == 1);
            let mut offsets: Vec<i64> = match &bases {
                Value::Same(v) => vec![*v],
                Value::Each(..) => own.map(|t| bases.of(t)).collect(),
            };
            offsets.sort_unstable();
            offsets.dedup();
            let all = if view.spread { 0..n } else { 0..0 };
            if view.spread {
                offsets.clear();
            }
            self.spend((all.len() + offsets.len() * view.places.len()) as u64)?;
            let (fence, fence_site) = self.fences[warp];
            if is_async && fence == 0 {
                let what = "no `wgmma.fence` stands before the asynchronous MatMul";
                return self.stop(site, None, what, "write `wgmma.fence` before it");
            }
            let open = self.clocks.class(thread).queue(Engine::MatMuls).open();
            let buffer = view.buffer.0;
            let access = RegisterAccess {
                site,
                does,
                buffer,
                thread,
                fence,
                fence_site,
                open,
                shape,
                is_async,
                is_factor,
            };
            let mut last = None;
            let places =
                offsets.iter().flat_map(|o| view.places.iter().map(|p| o.saturating_add(*p)));
            let places = places.filter_map(|at| usize::try_from(at).ok().filter(|at| *at < n));
            all.chain(places).for_each(|at| self.uses(r, warp * n + at, &access, &mut last));
        }
        Ok(())
    }

    /// For a batch of asynchronous MatMuls, the statement that has waited for it and the commit of
    /// its group.
    fn waited(&self, thread: u32, batch: u32) -> Option<(u32, u32)> {
        let batches = &self.clocks.class(thread).queue(Engine::MatMuls).batches;
        batches.get(batch as usize).filter(|b| b.done > 0).map(|b| (b.waited_at, b.committed_at))
    }

    /// Records a pair: an asynchronous MatMul used a register, and a thread or another MatMul uses
    /// it next.
    fn after_matmul(
        &mut self,
        first: (u32, Does),
        wait: Option<(u32, u32)>,
        access: &RegisterAccess,
    ) {
        let way = |(at, committed): (u32, u32)| Way {
            steps: vec![at],
            with: vec![committed],
            distance: None,
        };
        let agents = (AgentKind::MatMul, AgentKind::Thread);
        let pair = (first, (access.site, access.does), (access.buffer, access.buffer), agents);
        self.pairs.own(pair, access.thread, wait.map(way).ok_or(Missing::Wait), &self.at);
    }

    /// Uses a register. In a run of registers with equal state, the first one determines the new
    /// state of all.
    fn uses(
        &mut self,
        r: usize,
        at: usize,
        access: &RegisterAccess,
        last: &mut Option<[Register; 2]>,
    ) {
        let before = self.registers[r][at];
        if let Some([was, becomes]) = last
            && *was == before
        {
            self.registers[r][at] = *becomes;
            return;
        }
        match access.is_async {
            true => self.matmul_uses(r, at, access),
            false => self.thread_uses(r, at, access),
        }
        *last = Some([before, self.registers[r][at]]);
    }

    /// A thread uses a register.
    fn thread_uses(&mut self, r: usize, at: usize, access: &RegisterAccess) {
        let Register { writing: (writing, write_site, _), reading: (reading, read_site), .. } =
            self.registers[r][at];
        if writing > 0 {
            let wait = self.waited(access.thread, writing - 1);
            self.after_matmul((write_site, Does::Write), wait, access);
            if wait.is_some() {
                self.registers[r][at].writing.0 = 0;
            }
        }
        if reading > 0 {
            let wait = self.waited(access.thread, reading - 1);
            self.after_matmul((read_site, Does::Read), wait, access);
            if wait.is_some() {
                self.registers[r][at].reading.0 = 0;
            }
        }
        let cell = &mut self.registers[r][at];
        (cell.last, cell.last_site) = (self.serial, access.site);
    }

    /// An asynchronous MatMul uses a register.
    fn matmul_uses(&mut self, r: usize, at: usize, access: &RegisterAccess) {
        let Register {
            writing: (writing, write_site, shape),
            reading: (reading, read_site),
            last,
            last_site,
        } = self.registers[r][at];
        let in_flight = |batch: u32| batch > 0 && self.waited(access.thread, batch - 1).is_none();
        let (is_written, is_used) = (in_flight(writing), in_flight(reading));
        if is_used && access.does != Does::Read {
            self.after_matmul((read_site, Does::Read), None, access);
        }
        if is_written {
            if access.is_factor || writing - 1 != access.open && shape != access.shape {
                self.after_matmul((write_site, Does::Write), None, access);
            }
        } else if last > 0 {
            let ordered = match last < access.fence {
                true => Ok(Way { steps: vec![access.fence_site], ..Way::default() }),
                false => Err(Missing::RegisterFence),
            };
            let (first, second) = ((last_site, Does::Write), (access.site, access.does));
            let agents = (AgentKind::Thread, AgentKind::MatMul);
            let pair = (first, second, (access.buffer, access.buffer), agents);
            self.pairs.own(pair, access.thread, ordered, &self.at);
        }
        let cell = &mut self.registers[r][at];
        match access.does {
            Does::Read if access.is_factor => cell.reading = (access.open + 1, access.site),
            Does::Read => {}
            _ => cell.writing = (access.open + 1, access.site, access.shape),
        }
    }
}

/// An access to registers of a warp.
struct RegisterAccess {
    site: u32,
    does: Does,
    buffer: u32,
    thread: u32,
    /// The serial number of the warp's last `wgmma.fence`.
    fence: u32,
    fence_site: u32,
    /// The open batch.
    open: u32,
    shape: (i64, i64),
    is_async: bool,
    /// Whether it reads a factor of a MatMul.
    is_factor: bool,
}
