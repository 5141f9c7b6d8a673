//! Finds the roles of a staged loop ([`Split`]): which threads execute which statements, and which
//! tensors they hand to each other.

use crate::access::ops;
use crate::access::sum::depends;
use crate::order::touched::{Mask, members};
use crate::tricks::turns::{sum, turns};
use carbyne_ir::ast::visit::Walk;
use carbyne_ir::ast::{BinOp, Expr, ExprKind, NodeKey, SpecKind, Stmt, StmtKind, View, ViewOp};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{self, BufferId, Program, SpecId, TensorId};
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::Span;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Why a loop is not parted, and where.
pub(crate) struct Kept {
    pub(crate) why: String,
    pub(crate) places: Vec<(Span, String)>,
    /// What would let it be parted.
    pub(crate) action: &'static str,
}

/// What roles may share.
const SHARE: &str = "let roles share only tensors in SH that are declared in the loop";

impl Kept {
    pub(crate) fn because(why: &str) -> Self {
        Kept { why: why.to_owned(), places: vec![], action: SHARE }
    }

    /// Because of what could not be ordered.
    pub(crate) fn of<'a>(unordered: impl Iterator<Item = &'a Diagnostic>) -> Self {
        let mut out = Kept::because("roles access the same elements, or may do so");
        for d in unordered {
            out.places.push((d.span, d.message.clone()));
            out.places.extend(d.related.iter().cloned());
        }
        out
    }

    fn at(why: &str, span: Span, what: &str) -> Self {
        Kept { places: vec![(span, what.to_owned())], ..Kept::because(why) }
    }

    /// The same with what would let it be parted.
    pub(crate) fn unless(self, action: &'static str) -> Self {
        Kept { action, ..self }
    }
}

/// Why a loop is not parted.
pub(crate) enum Refused {
    /// It stays one.
    Kept(Kept),
    /// It is wrong.
    Wrong(Box<Diagnostic>),
}

impl From<Kept> for Refused {
    fn from(kept: Kept) -> Self {
        Refused::Kept(kept)
    }
}

/// A loop that roles share.
pub(crate) struct Split {
    /// In the order of their first statements.
    pub(crate) roles: Vec<Role>,
    pub(crate) rings: Vec<Ring>,
    /// Allocations of tensors that one role has for itself, or nobody uses.
    pub(crate) private: BTreeMap<NodeKey, Option<usize>>,
    /// Stages of a ring.
    pub(crate) depth: i64,
    /// As many as the text says, which may be more than there are iterations.
    pub(crate) stages: i64,
    /// How many iterations come before this one, of all executions of the loop.
    pub(crate) turn: Expr,
    /// The statement of the kernel's body that the loop stands in, or itself.
    pub(crate) outermost: NodeKey,
    /// Blocks and the first thread.
    pub(crate) first: (View, View),
}

/// Threads that execute some of the statements.
pub(crate) struct Role {
    pub(crate) threads: Mask,
    /// Blocks and threads, as they are written.
    pub(crate) exec: (View, View),
    /// The specs that it executes, with the statement of the loop's body that each stands in.
    pub(crate) units: BTreeMap<NodeKey, usize>,
}

/// A tensor that some roles write and others read.
pub(crate) struct Ring {
    pub(crate) allocation: NodeKey,
    /// By role, the first and the last statement of the loop's body in which it writes.
    pub(crate) writers: BTreeMap<usize, (usize, usize)>,
    /// The same of those that read.
    pub(crate) readers: BTreeMap<usize, (usize, usize)>,
}

/// An access of a buffer.
struct Use {
    role: usize,
    /// The statement of the loop's body.
    top: usize,
    write: bool,
    read: bool,
    /// Whether it is a copy to shared memory, which may be under way for some time.
    copy: bool,
    span: Span,
}

/// The roles of a loop, with the statements around it; none where it has one.
pub(crate) fn split(p: &Program, around: &[&Stmt], stmt: &Stmt) -> Result<Option<Split>, Refused> {
    let StmtKind::For { body, .. } = &stmt.kind else { return Ok(None) };
    let Some((kernel, loops)) = around.split_first() else { return Ok(None) };
    let specs = p.specs_by_node();
    let Some(kernel_id) = specs.get(&kernel.id.key()).copied() else { return Ok(None) };
    let stmts: HashMap<NodeKey, &program::Stmt> =
        p.walk_body(kernel_id).stmts().map(|s| (s.node.key(), s)).collect();
    let all = Mask::first(ops::block_threads(p, kernel_id));
    let mut found = Found { p, specs: &specs, stmts: &stmts, all, units: vec![] };
    found.units(&body.stmts, None)?;
    let Some(roles) = found.roles()? else { return Ok(None) };
    let uses = found.uses(&roles);
    let (rings, private) = rings(p, &body.stmts, &uses)?;
    if rings.is_empty() {
        let why = "no role reads what another writes in the loop";
        let action = "let a role read what another copies to a tensor in SH of the loop";
        return Err(Kept::because(why).unless(action).into());
    }
    shared(p, &rings, &uses)?;
    found.later_writes(kernel_id, stmt, (loops, &roles), &uses)?;
    for role in &roles {
        let of = |s: &Stmt| match &s.kind {
            StmtKind::ThreadDef { name, .. } => name.text == role.exec.1.base.text,
            _ => false,
        };
        if let Some(own) = Walk::new(&body.stmts).stmts().find(|s| of(s)) {
            let why = "a role is named inside of the loop";
            return Err(Kept::at(why, own.span, "it is named here")
                .unless("name roles before the loop")
                .into());
        }
    }
    let (turn, trips) = found.turn(loops, stmt)?;
    let StmtKind::Spec(spec) = &kernel.kind else { return Ok(None) };
    let Some(program::StmtKind::For { stages, .. }) = stmts.get(&stmt.id.key()).map(|s| &s.kind)
    else {
        return Ok(None);
    };
    let depth = trips.map_or(*stages, |n| n.min(*stages));
    if depth < 2 {
        return Ok(None);
    }
    let Some((blocks, threads)) = spec.both() else {
        return Err(Kept::because("the kernel does not state which threads execute it")
            .unless("write `<<<#grid, #cta>>>` at the kernel")
            .into());
    };
    let modes = p.specs[kernel_id].exec.map_or(1, |e| p.threads[e.threads].concat().modes().len());
    let zeros = vec![Some(Expr::int(0)); modes.max(1)];
    let first = threads.clone().then(ViewOp::Index(zeros));
    Ok(Some(Split {
        roles,
        rings,
        private,
        depth,
        stages: *stages,
        turn,
        outermost: loops.first().unwrap_or(&stmt).id.key(),
        first: (blocks.clone(), first),
    }))
}

/// A spec of the loop that one role executes.
struct Unit<'a> {
    stmt: &'a Stmt,
    id: SpecId,
    top: usize,
    threads: Mask,
}

struct Found<'a> {
    p: &'a Program,
    specs: &'a HashMap<NodeKey, SpecId>,
    stmts: &'a HashMap<NodeKey, &'a program::Stmt>,
    /// The threads of the block.
    all: Mask,
    units: Vec<Unit<'a>>,
}

impl<'a> Found<'a> {
    /// Notes the specs of statements; `top` is the one of the loop's body that they stand in.
    fn units(&mut self, stmts: &'a [Stmt], top: Option<usize>) -> Result<(), Refused> {
        for (i, stmt) in stmts.iter().enumerate() {
            let top = top.unwrap_or(i);
            match &stmt.kind {
                StmtKind::Spec(spec) => {
                    let Some(id) = self.specs.get(&stmt.id.key()).copied() else { continue };
                    let Some(threads) = self.threads(id) else {
                        let why = "the threads that execute a spec depend on the iteration or the \
                                   thread";
                        let action = "select its threads with constants";
                        return Err(Kept::at(why, spec.span, "this one").unless(action).into());
                    };
                    if let Some(body) = spec.body.as_ref().filter(|_| threads == self.all) {
                        let part = Walk::new(&body.stmts).stmts().find_map(|s| {
                            let id = self.specs.get(&s.id.key())?;
                            let part = self.threads(*id).is_none_or(|own| own != self.all);
                            part.then_some(self.p.specs[*id].span)
                        });
                        if let Some(part) = part {
                            let why =
                                "the whole block executes a spec that contains parts of roles";
                            let action = "put the statements of each role into the loop itself";
                            let mut kept = Kept::at(why, spec.span, "the spec").unless(action);
                            kept.places
                                .push((part, "a part of the block executes this".to_owned()));
                            return Err(kept.into());
                        }
                    }
                    self.units.push(Unit { stmt, id, top, threads });
                }
                StmtKind::For { .. } | StmtKind::If { .. } => {
                    let before = self.units.len();
                    for block in stmt.kind.bodies() {
                        self.units(&block.stmts, Some(top))?;
                    }
                    if self.units.len() > before && self.parts(stmt) {
                        let first = self.units.get(before);
                        let part = first.filter(|u| u.threads != self.all).map(|u| u.id);
                        if let Some(id) = part {
                            return Err(Refused::Wrong(self.parting(stmt, id)));
                        }
                    }
                }
                StmtKind::Barrier(_) | StmtKind::Sync { .. } => {
                    let why = "it has its own synchronization";
                    let action = "remove the synchronization, which is generated";
                    return Err(Kept::at(why, stmt.span, "here").unless(action).into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether threads part at a condition, or at the bounds of a loop.
    fn parts(&self, stmt: &Stmt) -> bool {
        let thread = |d: &Dim| depends(self.p, *d).thread;
        match self.stmts.get(&stmt.id.key()).map(|s| &s.kind) {
            Some(program::StmtKind::If { cond, .. }) => {
                cond.iter().any(|(a, _, b)| thread(a) || thread(b))
            }
            Some(program::StmtKind::For { start, end, .. }) => thread(start) || thread(end),
            _ => false,
        }
    }

    fn parting(&self, stmt: &Stmt, id: SpecId) -> Box<Diagnostic> {
        let spec = &self.p.specs[id];
        let message = format!("the threads that execute this {} diverge before it", spec.kind);
        Box::new(
            Diagnostic::new(Code::NotDecomposed, spec.span, message)
                .label("a role executes it as one group")
                .related(stmt.span, "this depends on the thread")
                .help("let the condition or the bounds of the loop be the same for all threads"),
        )
    }

    /// The threads that execute a spec, whatever the iteration.
    fn threads(&self, id: SpecId) -> Option<Mask> {
        members(self.p, self.p.specs[id].exec?.threads, &HashMap::new())
    }

    /// The roles; none where all statements have the same.
    fn roles(&self) -> Result<Option<Vec<Role>>, Refused> {
        let mut roles: Vec<(Role, Span)> = vec![];
        for unit in &self.units {
            let span = self.p.specs[unit.id].span;
            let StmtKind::Spec(spec) = &unit.stmt.kind else { continue };
            let at = match roles.iter().position(|(r, _)| r.threads == unit.threads) {
                Some(at) => at,
                None => {
                    let threads = unit.threads.clone();
                    let Some((blocks, own)) = spec.both() else {
                        let why = "a spec does not state which threads execute it";
                        let action = "state its threads: `<<<#role>>>`";
                        return Err(Kept::at(why, span, "this one").unless(action).into());
                    };
                    // Each thread for itself, or one of each warp, are of the role all the same.
                    let mut own = own.clone();
                    while matches!(own.ops.last(), Some(ViewOp::Scalar | ViewOp::Elect)) {
                        own.ops.pop();
                    }
                    let exec = (blocks.clone(), own);
                    roles.push((Role { threads, exec, units: BTreeMap::new() }, span));
                    roles.len() - 1
                }
            };
            roles[at].0.units.insert(unit.stmt.id.key(), unit.top);
        }
        for (i, (a, at)) in roles.iter().enumerate() {
            if let Some((_, other)) = roles[..i].iter().find(|(b, _)| b.threads.meets(&a.threads)) {
                let why = "some threads have several roles";
                let action =
                    "give roles threads that no other has, like `#cta[0..96]` and `#cta[96..128]`";
                let mut kept = Kept::at(why, *other, "these threads").unless(action);
                kept.places.push((*at, "and these have some in common".to_owned()));
                return Err(kept.into());
            }
        }
        let roles: Vec<Role> = roles.into_iter().map(|(r, _)| r).collect();
        Ok((roles.len() > 1).then_some(roles))
    }

    /// Refuses that a role writes, behind the loop, what it has copied from: the mbarriers of
    /// stages tell others that a copy is complete, and not those who issued it.
    fn later_writes(
        &self,
        kernel: SpecId,
        stmt: &Stmt,
        (around, roles): (&[&Stmt], &[Role]),
        uses: &BTreeMap<BufferId, Vec<Use>>,
    ) -> Result<(), Refused> {
        let p = self.p;
        let inside: BTreeSet<NodeKey> =
            Walk::new(std::slice::from_ref(stmt)).stmts().map(|s| s.id.key()).collect();
        let mut after = around.iter().any(|s| matches!(s.kind, StmtKind::For { .. }));
        for s in p.walk_body(kernel).stmts() {
            if inside.contains(&s.node.key()) {
                after = true;
                continue;
            }
            let program::StmtKind::Spec(id) = s.kind else { continue };
            if !after || p.specs[id].body.is_some() {
                continue;
            }
            let who = self.threads(id);
            for t in &p.specs[id].outputs {
                let buffer = p.tensors[*t].buffer;
                if !p.buffers[buffer].is_global() {
                    continue;
                }
                let own = |u: &&Use| {
                    let threads = roles.get(u.role).map(|r| &r.threads);
                    let meets = threads.zip(who.as_ref()).is_none_or(|(a, b)| a.meets(b));
                    u.copy && u.read && meets
                };
                if let Some(copy) = uses.get(&buffer).and_then(|all| all.iter().find(own)) {
                    let why = "a role writes what its copies in the loop may still read";
                    let mut kept = Kept::at(why, p.specs[id].span, "it writes here")
                        .unless("write to another tensor, or let other threads write");
                    kept.places.push((copy.span, "this copy may be under way".to_owned()));
                    return Err(kept.into());
                }
            }
        }
        Ok(())
    }

    /// What the roles access.
    fn uses(&self, roles: &[Role]) -> BTreeMap<BufferId, Vec<Use>> {
        let p = self.p;
        let mut out: BTreeMap<BufferId, Vec<Use>> = BTreeMap::new();
        for unit in &self.units {
            let Some(role) = roles.iter().position(|r| r.threads == unit.threads) else { continue };
            let inside = Walk::new(std::slice::from_ref(unit.stmt)).stmts();
            let leaves = inside.filter_map(|s| self.specs.get(&s.id.key()));
            for id in leaves.filter(|id| p.specs[**id].body.is_none()) {
                let spec = &p.specs[*id];
                let adds = spec.kind.reads_output();
                let read = spec.input_tensors().map(|t| (t, false, true));
                let write = spec.outputs.iter().map(|t| (*t, true, adds));
                let shared = |t: &TensorId| p.buffer_of(*t).is_shared();
                let copy = spec.kind == SpecKind::Move && spec.outputs.iter().any(shared);
                for (t, write, read) in read.chain(write) {
                    let (top, span) = (unit.top, spec.span);
                    out.entry(p.tensors[t].buffer).or_default().push(Use {
                        role,
                        top,
                        write,
                        read,
                        copy,
                        span,
                    });
                }
            }
        }
        out
    }

    /// How many iterations of all loops come before one of the innermost, and how many there are,
    /// where that is known.
    fn turn(&self, around: &[&Stmt], stmt: &Stmt) -> Result<(Expr, Option<i64>), Refused> {
        let mut turn: Option<Expr> = None;
        let mut all = Some(1i64);
        for outer in around.iter().copied().chain([stmt]) {
            let (
                StmtKind::For { var, start, end, .. },
                Some(program::StmtKind::For { start: from, end: to, step, .. }),
            ) = (&outer.kind, self.stmts.get(&outer.id.key()).map(|s| &s.kind))
            else {
                let why = "something other than loops is around it";
                let action = "move the loop out of it";
                return Err(Kept::at(why, outer.span, "this is around it").unless(action).into());
            };
            if depends(self.p, *from).thread || depends(self.p, *to).thread {
                let why = "the threads of a role diverge at the bounds of a loop";
                let action = "let the bounds be the same for all threads";
                return Err(Kept::at(why, outer.span, "this one").unless(action).into());
            }
            let n = ops::trips(*from, *to, *step);
            all = all.zip(n).and_then(|(a, n)| a.checked_mul(n));
            let own = turns(Expr::name(&var.text), start, *step);
            turn = Some(match turn {
                None => own,
                Some(before) => {
                    let fixed = |d: &Dim| !depends(self.p, *d).loops;
                    let each = match (n, &start.kind) {
                        (Some(n), _) => Expr::int(n),
                        (None, ExprKind::Int(0)) if fixed(to) && *step == 1 => end.clone(),
                        _ => {
                            let why = "its number of iterations depends on the loops around it";
                            let action = "give the inner loop a known number of iterations";
                            return Err(Kept::at(why, outer.span, "this loop")
                                .unless(action)
                                .into());
                        }
                    };
                    sum(Expr::bin(BinOp::Mul, before, each), own)
                }
            });
        }
        Ok((turn.unwrap_or_else(|| Expr::int(0)), all))
    }
}

type Rings = (Vec<Ring>, BTreeMap<NodeKey, Option<usize>>);

/// Tensors that are declared in the loop: those that roles hand over, and those that one has for
/// itself.
fn rings(
    p: &Program,
    body: &[Stmt],
    uses: &BTreeMap<BufferId, Vec<Use>>,
) -> Result<Rings, Refused> {
    let buffers = p.buffers_by_node();
    let (mut out, mut private) = (vec![], BTreeMap::new());
    for stmt in Walk::new(body).stmts() {
        let StmtKind::Allocate { ty, .. } = &stmt.kind else { continue };
        let Some(id) = buffers.get(&stmt.id.key()).copied() else { continue };
        let (buffer, key) = (&p.buffers[id], stmt.id.key());
        let all = uses.get(&id).map_or(&[][..], Vec::as_slice);
        let Some(first) = all.first() else {
            private.insert(key, None);
            continue;
        };
        let shared = buffer.is_of_block();
        let wrong = |span: Span, message: String, label: &str, help: &str| {
            Refused::Wrong(Box::new(
                Diagnostic::new(Code::Role, span, message)
                    .label(label)
                    .related(buffer.span, "it is declared here, anew for each iteration")
                    .help(help),
            ))
        };
        if shared && !all.iter().any(|u| u.write) {
            let message = format!("no role fills `%{}`", buffer.name);
            let help = "let a role write it before, or declare it before the loop";
            return Err(wrong(first.span, message, "a role waits for it here", help));
        }
        if shared && !all.iter().any(|u| u.read) {
            let message = format!("no role waits for the writes to `%{}`", buffer.name);
            let help = "let a role read it, or remove it";
            return Err(wrong(first.span, message, "a role fills it here", help));
        }
        if all.iter().all(|u| u.role == first.role) {
            private.insert(key, Some(first.role));
            continue;
        }
        let other = all.iter().find(|u| u.role != first.role).map_or(first, |u| u);
        if !shared {
            let message =
                format!("two roles use `%{}`, which one of them holds in registers", buffer.name);
            return Err(Refused::Wrong(Box::new(
                Diagnostic::new(Code::Role, other.span, message)
                    .label("threads can access only their own registers")
                    .related(first.span, "other threads use it here")
                    .help("declare it in SH, or let the same threads execute both"),
            )));
        }
        let kept = |why: &str, action: &'static str| -> Refused {
            let mut kept = Kept::at(why, first.span, "one role accesses it here").unless(action);
            kept.places.push((other.span, "another one here".to_owned()));
            kept.into()
        };
        if !body.iter().any(|s| s.id.same(stmt.id)) {
            return Err(kept(
                "a tensor that roles hand over is declared in a statement of the loop",
                "declare it in the loop itself",
            ));
        }
        if buffer.reuses.is_some() || buffer.at.is_some() || ty.levels.len() != 1 {
            return Err(kept(
                "the place of a tensor that roles hand over is stated",
                "declare it with one level, without `reuses=` and `at=`",
            ));
        }
        if buffer.scalar == Scalar::Mbarrier {
            return Err(kept(
                "roles share an mbarrier",
                "remove it: those of stages are generated",
            ));
        }
        let range = |of: &dyn Fn(&Use) -> bool| {
            let mut out: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
            for u in all.iter().filter(|u| of(u)) {
                let known = out.entry(u.role).or_insert((u.top, u.top));
                *known = (known.0.min(u.top), known.1.max(u.top));
            }
            out
        };
        let (writers, readers) = (range(&|u| u.write), range(&|u| u.read));
        let written = writers.values().map(|(_, last)| *last).max();
        let read = readers.values().map(|(first, _)| *first).min();
        if written >= read {
            return Err(kept(
                "a tensor that roles hand over is written after it was read",
                "let roles write it before others read it",
            ));
        }
        out.push(Ring { allocation: key, writers, readers });
    }
    Ok((out, private))
}

/// Refuses what roles share that no ring hands over.
fn shared(p: &Program, rings: &[Ring], uses: &BTreeMap<BufferId, Vec<Use>>) -> Result<(), Refused> {
    let of_ring: BTreeSet<NodeKey> = rings.iter().map(|r| r.allocation).collect();
    for (id, all) in uses {
        let buffer = &p.buffers[*id];
        let touched = buffer.is_global() || buffer.is_of_block();
        if !touched || of_ring.contains(&buffer.node.key()) {
            continue;
        }
        let clash = all.iter().filter(|u| u.write).find_map(|w| {
            // Whether they write different elements is told when layouts are known.
            all.iter().find(|u| u.role != w.role && u.read).map(|u| (w, u))
        });
        let own = all.iter().filter(|u| u.write).find_map(|w| {
            let copy = all.iter().find(|u| u.role == w.role && u.read && u.copy);
            copy.filter(|_| buffer.is_global()).map(|u| (w, u))
        });
        if let Some((write, copy)) = own {
            let why = "a role writes what its copies read while others use them";
            let mut kept = Kept::at(why, write.span, "it writes here")
                .unless("write to another tensor, or let a separate role copy");
            kept.places.push((copy.span, "this copy may be under way".to_owned()));
            return Err(kept.into());
        }
        if let Some((write, other)) = clash {
            let why = format!("`%{}` is declared before the loop, and roles share it", buffer.name);
            let mut kept = Kept::at(&why, write.span, "one role writes it here");
            kept.places.push((other.span, "another one accesses it here".to_owned()));
            return Err(kept.into());
        }
    }
    Ok(())
}
