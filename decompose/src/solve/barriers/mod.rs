//! Barriers, commits and waits from dependences on memory that threads share.
//!
//! The body is followed in the order of execution (`trace`), loops as often as they run (of long ones the
//! first and the last turns), with the elements of shared memory, and of tensors in global memory that the
//! kernel writes, that each leaf touches, and the thread that does (`touch`). Two accesses of one element
//! conflict where one of them writes, unless one thread does both; between them stands a barrier.
//!
//! What an asynchronous copy writes is there once its group is waited for and a barrier has passed the news
//! on; till then nothing else may touch it, and nobody may write what the copy reads. Groups are committed
//! where a run of such copies ends, outside of an `if` around them, so that every turn of a loop commits one;
//! where that is too late, because the copy is needed before, the group ends there. A wait leaves as many
//! groups in flight as every turn allows, and nothing is in flight when the block ends. A barrier is put only
//! where nothing before settles the conflict, and what a loop needs that only reads is put before the loop.
//!
//! What is not known is settled as if it were so: offsets that depend on what nothing bounds meet every element,
//! a condition on blocks or symbols may hold or not, a loop of unknown length runs any number of times, buffers that share
//! addresses (`reuses=`, `at=`) share all of them. A body that takes too long to follow waits for everything and has a
//! barrier before every access.
//!
//! Leaves that a person wrote for single threads are ordered as they are written, by barriers of the text and by
//! whole-block operations between them, which come after everything before them: the latter are gone once the
//! operation is decomposed, so that a barrier takes their place where one is needed. No statement is put inside of what has
//! no operation of the block in it, save waits for copies that the text does not call asynchronous; and a barrier stands
//! only where all threads of the block pass. Where that is impossible the operation is refused.

mod body;
mod state;
mod touch;
mod trace;

use super::Solution;
use body::{Asynchronous, Planner};
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::NodeKey;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind};
use std::collections::BTreeMap;
use touch::Found;
use trace::{Need, Trace};

/// What is put at a place.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sync {
    /// Before the statement: the asynchronous copies since the last commit are one group.
    pub commit_before: bool,
    /// Before the statement, after that: a wait that leaves so many groups in flight.
    pub wait: Option<i64>,
    /// Before the statement, after the wait: a barrier.
    pub barrier: bool,
    /// After the statement: the asynchronous copies since the last commit are one group.
    pub commit: bool,
    /// After the statement, after that: a wait for all groups.
    pub drain: bool,
}

/// Where synchronization is put: at a statement that has specs in it, or that synchronizes.
pub(crate) type Place = NodeKey;

/// The synchronization that the chosen instructions need.
///
/// # Errors
/// A barrier is needed where not all threads of the block pass.
pub(crate) fn plan(
    p: &Program,
    kernel: SpecId,
    solution: &Solution,
    table: &AtomTable,
) -> Result<BTreeMap<Place, Sync>, Box<Diagnostic>> {
    let mut out = BTreeMap::new();
    let Some(body) = &p.specs[kernel].body else { return Ok(out) };
    let mut planner = Planner::new(p, kernel, solution, table);
    // Where no operation of the block has been taken apart, the text orders all but what it does not call
    // asynchronous.
    let unsaid = planner.asynchronous.values().any(|a| *a == Asynchronous::Unsaid);
    if !unsaid && !body.iter().any(|s| planner.has_operation(s)) {
        return Ok(out);
    }
    // Barriers inside of operations stand wherever these do.
    for stmt in p.walk(body).stmts() {
        if let StmtKind::Spec(id) = stmt.kind
            && planner.exchanges(id)
            && !planner.info(stmt).converged
        {
            return Err(planner.diverged(id));
        }
    }
    planner.commits(body, &mut out);
    let mut found = Found::default();
    // Every run adds a barrier, lowers a wait, or ends a group earlier, or is the last.
    while let Ok(need) = Trace::run(&planner, body, &out, &mut found) {
        let Some(need) = need else { return Ok(out) };
        if !planner.settle(need, body, &mut out)? {
            break;
        }
    }
    out.clear();
    planner.everywhere(body, &mut out)?;
    if planner.copies_asynchronously()
        && let Some((last, _)) = planner.last(body)
    {
        let at: &mut Sync = out.entry(last.node.key()).or_default();
        (at.commit, at.drain) = (true, true);
    }
    Ok(out)
}

impl Planner<'_> {
    /// Whether a statement issues asynchronous copies, other than in loops of its own.
    fn issues(&self, stmt: &Stmt) -> bool {
        let info = self.info(stmt);
        if info.place.is_some_and(|p| self.inside.contains(&p)) {
            return false;
        }
        match &stmt.kind {
            StmtKind::Spec(id) if self.p.specs[*id].body.is_none() => self.issues_copy(*id),
            StmtKind::For { .. } if info.operation => false,
            _ => {
                let (first, second) = self.p.inside(stmt);
                first.iter().chain(second).any(|s| self.issues(s))
            }
        }
    }

    /// Commits after every run of statements that issue asynchronous copies.
    fn commits(&self, stmts: &[Stmt], out: &mut BTreeMap<Place, Sync>) {
        if self.by_hand {
            return;
        }
        for (i, stmt) in stmts.iter().enumerate() {
            let place = self.info(stmt).place;
            if let Some(place) = place.filter(|_| self.issues(stmt)) {
                // An allocation does nothing.
                let mut rest = stmts[i + 1..].iter();
                let next = rest.find(|s| !matches!(s.kind, StmtKind::Allocate(_)));
                let goes_on = next.is_some_and(|next| self.issues(next));
                if !goes_on || self.ends.contains(&place) {
                    out.entry(place).or_default().commit = true;
                }
                continue;
            }
            let (first, second) = self.p.inside(stmt);
            self.commits(first, out);
            self.commits(second, out);
        }
    }

    /// Puts what is needed, or ends a group earlier and begins again. Whether anything has changed.
    fn settle(
        &mut self,
        need: Need,
        body: &[Stmt],
        out: &mut BTreeMap<Place, Sync>,
    ) -> Result<bool, Box<Diagnostic>> {
        if need.barrier && !need.converged {
            return Err(self.diverged(need.leaf));
        }
        if let Some((issuer, path)) = &need.open
            && !self.by_hand
            && !need.at_end
            && self.end_group(issuer, path)
        {
            out.clear();
            self.commits(body, out);
            return Ok(true);
        }
        let at: &mut Sync = out.entry(need.place).or_default();
        let before = *at;
        if need.at_end {
            at.drain = true;
            at.commit |= need.open.is_some();
        } else {
            at.commit_before |= need.open.is_some();
            at.barrier |= need.barrier;
            if let Some(n) = need.wait {
                at.wait = Some(at.wait.map_or(n, |m| m.min(n)));
            }
        }
        Ok(*at != before)
    }

    /// Ends the group of a copy before a statement that needs it; whether that is news. Both are given by the
    /// statements around them, from the outside in.
    fn end_group(&mut self, issuer: &[Place], needs: &[Place]) -> bool {
        let common = issuer.iter().zip(needs).take_while(|(a, b)| a == b).count();
        let mut news = false;
        for place in &issuer[..common.min(issuer.len().saturating_sub(1))] {
            news |= self.inside.insert(*place);
        }
        if let Some(own) = issuer.get(common) {
            news |= self.ends.insert(*own);
        }
        news
    }

    fn diverged(&self, leaf: SpecId) -> Box<Diagnostic> {
        let spec = &self.p.specs[leaf];
        let message = format!(
            "this {} needs a barrier, which may not stand inside of a condition on threads",
            spec.kind
        );
        Box::new(
            Diagnostic::new(Code::NotDecomposed, spec.span, message)
                .label("the whole block executes it")
                .help("take it out of the condition, which holds for all threads or for none"),
        )
    }

    /// Waits and barriers before every access.
    fn everywhere(
        &self,
        stmts: &[Stmt],
        out: &mut BTreeMap<Place, Sync>,
    ) -> Result<(), Box<Diagnostic>> {
        let waits = self.copies_asynchronously();
        let full = Sync {
            commit_before: waits,
            wait: waits.then_some(0),
            barrier: true,
            ..Sync::default()
        };
        let unsaid = self.asynchronous.values().any(|a| *a == Asynchronous::Unsaid);
        for stmt in stmts {
            let info = self.info(stmt);
            if let Some(place) = info.place.filter(|_| unsaid && synchronizes(stmt)) {
                out.insert(place, Sync { barrier: false, ..full });
            }
            let Some(place) = info.place.filter(|_| info.matters) else { continue };
            let leaf = match &stmt.kind {
                StmtKind::Spec(id) => self.p.specs[*id].body.is_none().then_some(*id),
                _ => None,
            };
            match (info.by_hand, leaf) {
                // Before all of what was written by hand, or before an operation.
                (Some((outermost, _)), _) if outermost != place => {
                    if leaf.is_some() && waits {
                        out.insert(place, Sync { barrier: false, ..full });
                    }
                }
                (None, None) => {}
                _ if info.converged => drop(out.insert(place, full)),
                _ => return Err(self.diverged(self.first(stmt).unwrap_or(self.kernel))),
            }
            let (first, second) = self.p.inside(stmt);
            self.everywhere(first, out)?;
            self.everywhere(second, out)?;
        }
        Ok(())
    }
}

/// Whether a statement is a barrier or another synchronization of the text.
fn synchronizes(stmt: &Stmt) -> bool {
    matches!(stmt.kind, StmtKind::Barrier(_) | StmtKind::Sync(_))
}
