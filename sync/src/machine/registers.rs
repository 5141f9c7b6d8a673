//! Registers of asynchronous MatMuls.

use super::*;

impl<'p, 'a> Machine<'p, 'a> {
    #[expect(clippy::too_many_arguments, reason = "one access, and what is known of it")]
    pub(super) fn register_operand(
        &mut self,
        strand: &Strand<'p>,
        leaf: &'a LeafPlan,
        r: usize,
        o: &'a OperandPlan,
        does: Does,
        visibility: Visibility,
        active: &Mask,
        site: u32,
    ) -> Goes<()> {
        let view = &self.plan.views[o.view];
        let n = self.plan.registers[r].1 as usize;
        let bases = self.place(view.offset, &strand.env, view.space);
        let is_async = visibility == Visibility::WgmmaGroup;
        for w in 0..32 {
            let lanes = active.0[w];
            if lanes == 0 {
                continue;
            }
            let first = w * 32 + lanes.trailing_zeros() as usize;
            let who = self.who(strand.rank, first, Proxy::Generic);
            let warp = (who.thread / 32) as usize;
            let mut offsets: Vec<i64> = match &bases {
                Value::Same(v) => vec![*v],
                Value::Each(_) => {
                    (0..32).filter(|l| lanes >> l & 1 == 1).map(|l| bases.of(w * 32 + l)).collect()
                }
            };
            offsets.sort_unstable();
            offsets.dedup();
            let all: Vec<usize> = match view.spread {
                true => (0..n).collect(),
                false => offsets
                    .iter()
                    .flat_map(|o| view.places.iter().map(move |p| o.saturating_add(*p)))
                    .filter_map(|at| usize::try_from(at).ok().filter(|at| *at < n))
                    .collect(),
            };
            self.spend(all.len() as u64)?;
            let class = self.clocks.class(who.thread);
            let batches = &class.queue(Engine::MatMuls).batches;
            let open = class.queue(Engine::MatMuls).open();
            let fence = self.fences[warp];
            if is_async && fence == 0 {
                self.pairs.fault(
                    site,
                    None,
                    "no `wgmma.fence` stands before the asynchronous MatMul",
                    "write `wgmma.fence` before it",
                    true,
                );
                return Err(Stop::Fault);
            }
            for at in all {
                let cell = &mut self.registers[r][warp * n + at];
                let waited = |batch: u32| {
                    batches.get(batch as usize).filter(|b| b.done > 0).map(|b| b.waited_at)
                };
                let (writing, write_site, shape) = cell.writing;
                let written = (writing > 0).then(|| waited(writing - 1));
                let read = (cell.reading.0 > 0).then(|| waited(cell.reading.0 - 1));
                let pair = |pairs: &mut Pairs, first: (u32, Does), wait: Option<u32>| {
                    pairs.own(
                        first,
                        (site, does),
                        view.buffer.0,
                        who.thread,
                        AgentKind::MatMul,
                        AgentKind::Thread,
                        wait.ok_or(Missing::Wait),
                        &self.at,
                    );
                };
                if !is_async {
                    if let Some(wait) = written {
                        pair(&mut self.pairs, (write_site, Does::Write), wait);
                        if wait.is_some() {
                            cell.writing.0 = 0;
                        }
                    }
                    if let (Some(wait), Does::Write) = (read, does) {
                        let site = cell.reading.1;
                        pair(&mut self.pairs, (site, Does::Read), wait);
                        if wait.is_some() {
                            cell.reading.0 = 0;
                        }
                    }
                    (cell.last, cell.last_site) = (self.serial, site);
                    continue;
                }
                let in_flight = written == Some(None);
                if in_flight {
                    if writing - 1 != open && shape != leaf.shape {
                        pair(&mut self.pairs, (write_site, Does::Write), None);
                    }
                } else if cell.last > 0 {
                    let fenced = cell.last < fence;
                    let ordered = match fenced {
                        true => Ok(u32::MAX),
                        false => Err(Missing::RegisterFence),
                    };
                    let first = (cell.last_site, Does::Write);
                    self.pairs.own(
                        first,
                        (site, does),
                        view.buffer.0,
                        who.thread,
                        AgentKind::Thread,
                        AgentKind::MatMul,
                        ordered,
                        &self.at,
                    );
                }
                match does {
                    Does::Read => cell.reading = (open + 1, site),
                    _ => cell.writing = (open + 1, site, leaf.shape),
                }
            }
        }
        Ok(())
    }
}
