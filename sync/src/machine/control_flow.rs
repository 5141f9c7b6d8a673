//! Executes statements one after another, for threads in lockstep: loops and conditions here,
//! specs, barriers and synchronization statements by the other files.

use super::*;
use crate::expr::Ex;
use carbyne_ir::limits::MAX_COUNTER;
use carbyne_ir::program::Condition;

impl<'p, 'a> Machine<'p, 'a> {
    pub(super) fn groups_of(&mut self, id: ThreadsId, env: &Env, site: u32) -> Goes<Rc<Groups>> {
        let offset = self.fixed(self.p.threads[id].offset, env).same().unwrap_or(NOTHING);
        if let Some(found) = self.groups.get(&(id, offset)) {
            return Ok(Rc::clone(found));
        }
        match Groups::of(self.exprs, id, env, self.elected) {
            Ok(groups) => {
                let groups = Rc::new(groups);
                self.groups.insert((id, offset), Rc::clone(&groups));
                Ok(groups)
            }
            Err(why) => self.lost(site, why),
        }
    }

    /// Looks up how a list of statements affects the threads that execute it.
    fn body_effects(&mut self, stmts: &'p [Stmt]) -> BodyEffects {
        let (p, plan) = (self.p, self.plan);
        let known = self.insides.entry(first_of(stmts));
        *known.or_insert_with(|| BodyEffects::of(p, plan, stmts))
    }

    /// Lets the warps without any of these threads continue after the statement.
    pub(super) fn send_on(&mut self, lockstep: &mut Lockstep<'p>, stay: &Mask) {
        let warps = lockstep.all().warps() & !stay.warps();
        if let Some(mut other) = lockstep.part(warps) {
            other.advance();
            self.put(other);
        }
    }

    pub(super) fn step(&mut self, lockstep: &mut Lockstep<'p>) -> Goes<Step> {
        let Some(frame) = lockstep.frames.last() else { return Ok(Step::Ended) };
        let mask = frame.mask;
        let Some(stmt) = lockstep.stmt() else { return self.leave(lockstep) };
        let site = self.plan.site(stmt);
        match &stmt.kind {
            StmtKind::Indices(_) | StmtKind::Allocate(_) => {}
            StmtKind::Element { var, tensor } if self.exprs.is_held(*var) => {
                if let Some(value) = self.exprs.element(*tensor) {
                    self.holds(lockstep, *var, &value, &mask);
                }
            }
            StmtKind::Element { .. } => {}
            StmtKind::Step { counter, var, value } => {
                self.stays_in_range(lockstep, *value, site)?;
                // A declaration gives no thread an earlier value.
                let threads = if counter == var { lockstep.holders() } else { mask };
                let value = self.exprs.ready(*value);
                self.holds(lockstep, *counter, &value, &threads);
            }
            StmtKind::Spec(id) => return self.spec(lockstep, *id, site),
            StmtKind::For { also, body, .. } => {
                let bounds = self.exprs.trip_counts.bounds(stmt);
                let Some((var, bounds)) = bounds else { return Ok(Step::Ended) };
                return self.enter_loop(lockstep, site, var, bounds, (also, body));
            }
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.exprs.trip_counts.condition_of(stmt, cond);
                return self.enter_branch(lockstep, site, cond, then, otherwise);
            }
            StmtKind::Barrier(None) => {
                return self.block_barrier(lockstep, site);
            }
            StmtKind::Barrier(Some(threads)) if self.p.threads[*threads].own > 0 => {
                return self.own_barrier(lockstep, *threads, &mask, site);
            }
            StmtKind::Barrier(Some(threads)) => {
                let named = self.groups_of(*threads, &lockstep.env, site)?.mask;
                if !mask.and(&named).is_empty() {
                    return self.named_barrier(lockstep, named, site);
                }
            }
            StmtKind::Sync(sync) => return self.sync_stmt(lockstep, sync, site),
        }
        lockstep.advance();
        Ok(Step::On)
    }

    /// Refuses a value of a counter above the limit.
    fn stays_in_range(&mut self, lockstep: &Lockstep<'p>, dim: Dim, site: u32) -> Goes<()> {
        let mask = lockstep.mask();
        let value = self.exprs.value(dim, &lockstep.env);
        let most = (Dim::Const(MAX_COUNTER), &Value::Same(MAX_COUNTER));
        let within = self.holding(&lockstep.env, &mask, (dim, &value), CmpOp::Le, most);
        let beyond = within.map(|within| mask.without(&within));
        let Some(first) = beyond.and_then(|beyond| beyond.threads().next()) else { return Ok(()) };
        self.at.put(&lockstep.env, &Mask::of(first));
        let what = format!("the counter would be {}", value.of(first));
        let help = format!(
            "a counter has values from 0 to {MAX_COUNTER}: count in smaller steps, and compute \
             larger numbers from the counter"
        );
        self.stop(site, None, &what, &help)
    }

    /// Gives a variable a value, for some of the threads that hold it.
    fn holds(&mut self, lockstep: &mut Lockstep<'p>, var: VarId, value: &Ex, threads: &Mask) {
        let by = self.steps_of(value, &lockstep.env, true);
        let value = self.exprs.eval(value, &lockstep.env);
        let holders = lockstep.holders();
        lockstep.env.set_of(threads, &holders, var, &value, by);
    }

    /// Enters a loop.
    fn enter_loop(
        &mut self,
        lockstep: &mut Lockstep<'p>,
        site: u32,
        var: VarId,
        (start, end_dim, step): (Dim, Dim, i64),
        (also, body): (&[Condition], &'p [Stmt]),
    ) -> Goes<Step> {
        let mask = lockstep.mask();
        let (first, end) =
            (self.exprs.value(start, &lockstep.env), self.exprs.value(end_dim, &lockstep.env));
        let Some(mut going) =
            self.holding(&lockstep.env, &mask, (start, &first), CmpOp::Lt, (end_dim, &end))
        else {
            return self.lost(site, "the bounds of the loop are unknown");
        };
        if !also.is_empty() {
            let by = self.steps_of(&self.exprs.ready(start), &lockstep.env, true);
            lockstep.env.set(var, first.clone(), by);
            let Some(all) = self.all_hold(&lockstep.env, &going, also) else {
                return self.lost(site, "a condition of the loop is unknown");
            };
            going = all;
            if going != mask {
                lockstep.env.remove(var);
            }
        }
        if going.is_empty() {
            self.leaves(var);
            lockstep.advance();
            return Ok(Step::On);
        }
        if going != mask && self.body_effects(body).may_wait {
            self.send_on(lockstep, &going);
        }
        let end_by = self.steps_of(&self.exprs.ready(end_dim), &lockstep.env, false);
        let by = self.steps_of(&self.exprs.ready(start), &lockstep.env, true);
        lockstep.env.set(var, first, by);
        let kind = Kind::Loop { trip: 0, var, end, end_by, step: step.max(1) };
        lockstep.frames.push(Frame { stmts: body, at: 0, mask: going, kind });
        Ok(Step::On)
    }

    /// The threads for which all conditions hold; none if a side is unknown.
    fn all_hold(&mut self, env: &Env, mask: &Mask, cond: &[Condition]) -> Option<Mask> {
        let mut yes = *mask;
        for (lhs, op, rhs) in cond {
            let (a, b) = (self.exprs.value(*lhs, env), self.exprs.value(*rhs, env));
            yes = yes.and(&self.holding(env, mask, (*lhs, &a), *op, (*rhs, &b))?);
        }
        Some(yes)
    }

    /// Enters the sides of a condition that threads take.
    fn enter_branch(
        &mut self,
        lockstep: &mut Lockstep<'p>,
        site: u32,
        cond: &[Condition],
        then: &'p [Stmt],
        otherwise: &'p [Stmt],
    ) -> Goes<Step> {
        let mask = lockstep.mask();
        let Some(mut yes) = self.all_hold(&lockstep.env, &mask, cond) else {
            return self.lost(site, "the condition is unknown");
        };
        let mut no = mask.without(&yes);
        if !yes.is_empty()
            && !no.is_empty()
            && (self.body_effects(then).may_wait || self.body_effects(otherwise).may_wait)
        {
            // Warps whose lanes all take the same side split off.
            for warps in [no.warps() & !yes.warps(), yes.warps() & !no.warps()] {
                if let Some(mut other) = lockstep.part(warps) {
                    branch(&mut other, &yes, &no, then, otherwise);
                    self.put(other);
                }
            }
            let mine = lockstep.mask();
            (yes, no) = (yes.and(&mine), no.and(&mine));
        }
        branch(lockstep, &yes, &no, then, otherwise);
        Ok(Step::On)
    }

    /// A barrier of all threads of the block.
    fn block_barrier(&mut self, lockstep: &mut Lockstep<'p>, site: u32) -> Goes<Step> {
        let mask = lockstep.mask();
        let absent = Mask::first(self.n_threads).without(&mask);
        if !absent.is_empty() {
            if self.may_come(lockstep, &absent) {
                lockstep.status = Status::Meets;
                return Ok(Step::Waits);
            }
            let what = format!("{} threads of the block do not reach the barrier", absent.len());
            let around = self.around(lockstep, &Mask::first(self.n_threads));
            self.at.put(&lockstep.env, &mask);
            return self.stop(
                site,
                around.map(|at| (at, SOME_ENTER)),
                &what,
                "move the barrier out of the condition or the role, or name its threads: \
                 `barrier(#threads)`",
            );
        }
        self.barrier(lockstep.rank, &mask, site);
        lockstep.advance();
        Ok(Step::On)
    }

    /// Leaves a list after its last statement.
    pub(super) fn leave(&mut self, lockstep: &mut Lockstep<'p>) -> Goes<Step> {
        let Some(frame) = lockstep.frames.last_mut() else { return Ok(Step::Ended) };
        let next = match &mut frame.kind {
            Kind::Root => return Ok(Step::Ended),
            Kind::Loop { .. } => return self.turn(lockstep),
            Kind::Body => None,
            Kind::Branch { second, otherwise } => {
                *second = true;
                otherwise.take()
            }
        };
        match next {
            Some((stmts, mask)) => (frame.stmts, frame.at, frame.mask) = (stmts, 0, mask),
            None => lockstep.leave(),
        }
        Ok(Step::On)
    }

    /// Begins the next iteration of a loop, or leaves the loop.
    fn turn(&mut self, lockstep: &mut Lockstep<'p>) -> Goes<Step> {
        let around = lockstep.frames.len().checked_sub(2).and_then(|i| lockstep.frames.get(i));
        let also: &[Condition] = match around.and_then(|f| f.stmts.get(f.at)).map(|s| &s.kind) {
            Some(StmtKind::For { also, .. }) => also,
            _ => &[],
        };
        let env = &mut lockstep.env;
        let Some(frame) = lockstep.frames.last_mut() else { return Ok(Step::Ended) };
        let Kind::Loop { var, end, end_by, step, .. } = &mut frame.kind else {
            return Ok(Step::Ended);
        };
        let (var, step) = (*var, *step);
        let (old, by) = match env.get(var) {
            Some(held) => (held.value.clone(), held.by),
            None => (Value::Same(NOTHING), Steps::UNKNOWN),
        };
        let next = old.plus(step);
        self.watch.compares(&frame.mask, (&next, end), CmpOp::Lt, |along| {
            (Increment::along(by, along), Increment::along(*end_by, along))
        });
        let goes = |next: i64, end: i64| next != NOTHING && next < end;
        let mut going = match (&next, &*end) {
            // Further iterations without effect are left out.
            (Value::Same(next), Value::Same(end))
                if !goes(*next, *end)
                    || self.plan.is_once(frame.stmts)
                    || self.body_effects(frame.stmts).is_silent =>
            {
                Mask::default()
            }
            (Value::Same(_), Value::Same(_)) => frame.mask,
            _ => {
                let mut going = Mask::default();
                let threads = frame.mask.threads();
                threads.filter(|t| goes(next.of(*t), end.of(*t))).for_each(|t| going.insert(t));
                going
            }
        };
        if !also.is_empty() {
            env.set(var, next.clone(), by);
            let (body, env) = (frame.stmts, env.clone());
            going = match self.all_hold(&env, &going, also) {
                Some(all) => all,
                None => {
                    let site = body.first().map_or(0, |s| self.plan.site(s));
                    return self.lost(site, "a condition of the loop is unknown");
                }
            };
        }
        let env = &mut lockstep.env;
        let Some(frame) = lockstep.frames.last_mut() else { return Ok(Step::Ended) };
        let Kind::Loop { trip, end, .. } = &mut frame.kind else { return Ok(Step::Ended) };
        if going.is_empty() {
            env.remove(var);
            lockstep.leave();
            self.leaves(var);
            return Ok(Step::On);
        }
        if self.exprs.nest_of(var) == Some(Nest::Outer) {
            self.tested = self.tested.max(next.same().unwrap_or(i64::MAX - 1));
        }
        let left = match (&next, &*end) {
            (Value::Same(at), Value::Same(end)) => {
                end.saturating_sub(*at).unsigned_abs() / step.unsigned_abs()
            }
            _ => u64::MAX,
        };
        env.set(var, next, by);
        *trip += 1;
        frame.at = 0;
        let body = first_of(frame.stmts);
        self.rounds.turned = Some(Turned { body, var, turn: *trip, left });
        if going != frame.mask {
            let warps = match self.body_effects(frame.stmts).may_wait {
                true => lockstep.all().warps() & !going.warps(),
                false => 0,
            };
            if let Some(mut other) = lockstep.part(warps) {
                other.env.remove(var);
                other.leave();
                self.put(other);
            }
            if let Some(frame) = lockstep.frames.last_mut() {
                frame.mask = going;
            }
        }
        Ok(Step::On)
    }

    pub(super) fn spec(
        &mut self,
        lockstep: &mut Lockstep<'p>,
        id: SpecId,
        site: u32,
    ) -> Goes<Step> {
        let spec = &self.p.specs[id];
        let mask = lockstep.mask();
        let Some(exec) = spec.exec else {
            return self.lost(site, "the spec has no executor");
        };
        let groups = self.groups_of(exec.threads, &lockstep.env, site)?;
        let active = mask.and(&groups.mask);
        if let Some(body) = &spec.body {
            if active.is_empty() {
                lockstep.advance();
                return Ok(Step::On);
            }
            if active != mask && self.body_effects(body).may_wait {
                self.send_on(lockstep, &active);
            }
            lockstep.frames.push(Frame { stmts: body, at: 0, mask: active, kind: Kind::Body });
            return Ok(Step::On);
        }
        if !active.is_empty()
            && let Some(leaf) = self.plan.leaves.get(&id)
        {
            let missing = missing(leaf, &groups, &active);
            if !missing.is_empty() {
                if self.may_come(lockstep, &missing) {
                    lockstep.status = Status::Meets;
                    return Ok(Step::Waits);
                }
                let what = format!(
                    "{} threads of the executing groups do not reach the spec",
                    missing.len()
                );
                self.at.put(&lockstep.env, &active);
                return self.stop(
                    site,
                    None,
                    &what,
                    "move the spec out of the condition, or let the threads that reach it execute \
                     it",
                );
            }
            if leaf.matters {
                self.leaf(&Act { lockstep, mask: active, site }, leaf, &groups)?;
            }
        }
        lockstep.advance();
        Ok(Step::On)
    }
}

/// Enters the side of a condition that threads take first.
pub(super) fn branch<'p>(
    lockstep: &mut Lockstep<'p>,
    yes: &Mask,
    no: &Mask,
    then: &'p [Stmt],
    otherwise: &'p [Stmt],
) {
    let mine = lockstep.mask();
    let (yes, no) = (yes.and(&mine), no.and(&mine));
    let (stmts, mask, kind) = if yes.is_empty() {
        (otherwise, no, Kind::Branch { second: true, otherwise: None })
    } else {
        let next = (!no.is_empty()).then_some((otherwise, no));
        (then, yes, Kind::Branch { second: false, otherwise: next })
    };
    lockstep.frames.push(Frame { stmts, at: 0, mask, kind });
}

/// The threads that are absent although others of their group, or of their window of warps, are
/// present.
fn missing(leaf: &LeafPlan, groups: &Groups, active: &Mask) -> Mask {
    let mut missing = Mask::default();
    match &leaf.how {
        How::Atom { size: 1, .. } | How::Bulk(_) => {}
        How::Atom { places, .. } => return active.absent(&groups.mask, places.len() / 32),
        How::Meaning => {
            for group in &groups.groups {
                let group = || group.iter().map(|t| usize::from(*t));
                if group().any(|t| active.has(t)) {
                    group().filter(|t| !active.has(*t)).for_each(|t| missing.insert(t));
                }
            }
        }
    }
    missing
}
