//! What is wrong where no thread can go on, and where all have come to their ends.

use super::*;

impl<'p, 'a> Machine<'p, 'a> {
    pub(super) fn ends(&mut self) -> Goes<()> {
        let mut left = vec![];
        for class in &self.clocks.classes {
            if let Some(site) = class.queue(Engine::Copies).left(false) {
                left.push((site, "the block may end while an asynchronous copy to its shared memory is under way", "write `async.commit` and `async.wait(0)` before the end"));
            }
            if let Some(site) = class.queue(Engine::Bulk).left(true) {
                left.push((
                    site,
                    "the block may end while an asynchronous copy still reads its shared memory",
                    "write `bulk.commit` and `bulk.wait_read(0)` before the end",
                ));
            }
            if let Some(site) = class.queue(Engine::MatMuls).left(false) {
                left.push((
                    site,
                    "the block may end while an asynchronous MatMul still reads its shared memory",
                    "write `wgmma.commit` and `wgmma.wait(0)` before the end",
                ));
            }
        }
        for m in &self.mbarriers {
            if let Some(site) = m.unwaited {
                left.push((site, "the block may end while a copy to its shared memory is under way, for whose phase nobody waits", "write `mbarrier.wait` for its phase before the end"));
            } else if m.current.bytes.is_some() && m.bytes != 0 {
                let site = m.current.bytes.unwrap_or(0);
                left.push((site, "the last phase of an mbarrier is not complete: bytes are missing, or none expected", "compare the bytes of `mbarrier.expect` with the copies"));
            }
        }
        for (site, what, help) in left {
            self.fault(site, None, what, help, true);
        }
        let mut early = vec![];
        for ((rank, thread, site), time) in &self.remote {
            let agent = self.clocks.class(*thread).agent;
            let knows = |c: &crate::clocks::Class| {
                c.members.first().is_some_and(|t| *t as usize / self.clocks.per == *rank)
                    && c.knows.seen.get(agent) >= *time
            };
            if !self.clocks.classes.iter().any(knows) {
                early.push(*site);
            }
        }
        early.dedup();
        for site in early {
            self.fault(
                site,
                None,
                "a block may end while another still accesses its shared memory",
                "write `cluster.arrive` and `cluster.wait` before the end",
                true,
            );
        }
        Ok(())
    }

    /// Nobody can go on.
    pub(super) fn stuck(&mut self) -> Goes<()> {
        let order = |a: &&Strand<'_>, b: &&Strand<'_>| a.compare(b).then(a.rank.cmp(&b.rank));
        let mut all: Vec<&Strand<'p>> = self.strands.iter().collect();
        all.sort_by(order);
        let mut said: Vec<(u32, Status, Mask)> = vec![];
        for s in all {
            let Some(stmt) = s.stmt() else { continue };
            let site = self.plan.site(stmt);
            if !said.iter().any(|(other, ..)| *other == site) {
                said.push((site, s.status.clone(), s.mask()));
            }
        }
        for (i, (site, status, _)) in said.iter().enumerate() {
            let other = said.iter().enumerate().find(|(j, _)| *j != i).map(|(_, s)| s.0);
            let (what, help) = match status {
                Status::Barrier(named) => (
                    format!("not all {} threads that the barrier names come to it", named.len()),
                    "let all of them come to it, or name those that do",
                ),
                Status::Meets => (
                    "the other threads that it needs do not come to it".to_owned(),
                    "move it out of the condition or the role",
                ),
                Status::Waits | Status::Ready => (
                    "nothing ends the wait: the phase that it is for is never complete".to_owned(),
                    "compare arrivals and bytes of the phase with who arrives, and the parity with the round",
                ),
            };
            self.pairs.fault(*site, other, &what, help, true);
        }
        Err(Stop::Fault)
    }
}
