//! Executes shuffles (`Shfl`) without an atom: each thread of a group of at most 32 receives the
//! registers of another thread of the group. It keeps its own if the source does not exist.

use super::Runner;
use super::arith::source_lane;
use super::errors::{self, ElementAccess};
use crate::plan::{Checked, LeafSpec, Mask, Partition, Source};
use carbyne_ir::ast::ShflOp;
use carbyne_ir::diag::{Code, Diagnostic};

impl Runner<'_> {
    /// Every lane receives the values of another lane, or keeps its own if the source lane does not
    /// exist.
    pub(super) fn shuffle(
        &mut self,
        leaf: &LeafSpec,
        op: ShflOp,
        lane: i64,
        partition: &Partition,
        active: &Mask,
    ) -> Checked<()> {
        let kernel = self.kernel;
        let (&[Source::View(from)], &[to]) = (&leaf.inputs[..], &leaf.outputs[..]) else {
            return Err(refuse(self, leaf, "it needs one input and one output"));
        };
        let (source, target) = (&kernel.views[from], &kernel.views[to]);
        if source.size != target.size || source.dist.is_some() || target.dist.is_some() {
            return Err(refuse(self, leaf, "its operands are not plain registers of each thread"));
        }
        for group in self.whole_groups(partition, active, leaf.site)? {
            if group.len() > 32 {
                return Err(refuse(
                    self,
                    leaf,
                    "a group of more than 32 threads cannot exchange registers",
                ));
            }
            let mut received = Vec::new();
            for j in 0..group.len() {
                let thread = usize::from(group[source_lane(op, j, lane, group.len())]);
                let who = self.who(thread / 32, leaf.site);
                let base = self.base(source, thread, leaf.site)?;
                for e in 0..source.size as usize {
                    let at = source.place(&base, e);
                    match self.blocks[self.rank].read(source, at, thread, &who) {
                        Ok(value) => received.push(value),
                        Err(failure) => {
                            let access = ElementAccess { view: from, at, write: false, thread };
                            let block = self.env.block;
                            return errors::failed(kernel, block, &who, &access, &failure);
                        }
                    }
                }
            }
            let mut values = received.into_iter();
            for t in group {
                let thread = usize::from(*t);
                let who = self.who(thread / 32, leaf.site);
                let base = self.base(target, thread, leaf.site)?;
                for (e, value) in (0..target.size as usize).zip(&mut values) {
                    let at = target.place(&base, e);
                    if let Err(failure) =
                        self.blocks[self.rank].write(target, at, value, thread, &who, false)
                    {
                        let access = ElementAccess { view: to, at, write: true, thread };
                        return errors::failed(kernel, self.env.block, &who, &access, &failure);
                    }
                }
            }
        }
        Ok(())
    }
}

fn refuse(runner: &Runner<'_>, leaf: &LeafSpec, why: &str) -> Box<Diagnostic> {
    let span = runner.kernel.sites[leaf.site as usize].span;
    Box::new(
        Diagnostic::new(Code::NoDenotation, span, "the exchange cannot be executed")
            .label(why.to_owned())
            .help("exchange plain registers within tiles of a warp"),
    )
}
