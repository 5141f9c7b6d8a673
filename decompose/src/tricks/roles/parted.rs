//! Writes a staged loop as a loop for each of its roles ([`written`]).

use super::uses::{Kept, Ring, Role, Split};
use crate::access::ops::WARP;
use crate::build::{barrier, block, define_threads, indices, layout_expr, plain, sync, within};
use crate::layouts::tv::mode;
use crate::names::Names;
use crate::plan::roles::{Filling, Handed, Roles};
use crate::tricks::turns::{modulo, plus, referred, staged};
use carbyne_ir::ast::visit::{Of, Part, Walk, parts};
use carbyne_ir::ast::*;
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::{Memory, Scalar};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What takes the place of a loop.
pub(crate) struct Written {
    /// Before the statement of the kernel's body that it stands in.
    pub(crate) before: Vec<Stmt>,
    /// The loops.
    pub(crate) stmts: Vec<Stmt>,
    pub(crate) roles: Roles,
}

/// Rings that the same roles fill, and the same ones read.
struct Channel<'a> {
    rings: Vec<&'a Ring>,
    full: String,
    empty: String,
}

impl Channel<'_> {
    /// The first and the last statement of the loop's body in which a role writes, or reads, one of
    /// the rings.
    fn range(&self, role: usize, write: bool) -> Option<(usize, usize)> {
        let of =
            |r: &&Ring| if write { r.writers.get(&role) } else { r.readers.get(&role) }.copied();
        let each = self.rings.iter().filter_map(of);
        each.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)))
    }

    fn writers(&self) -> impl Iterator<Item = usize> + '_ {
        self.rings.iter().take(1).flat_map(|r| r.writers.keys().copied())
    }

    fn readers(&self) -> impl Iterator<Item = usize> + '_ {
        self.rings.iter().take(1).flat_map(|r| r.readers.keys().copied())
    }
}

/// The loops of the roles.
///
/// # Errors
/// Why it stays one loop.
pub(crate) fn written(
    split: &Split,
    stmt: &Stmt,
    defined: &HashMap<&str, usize>,
    names: &mut Names,
) -> Result<Written, Kept> {
    let StmtKind::For { body, .. } = &stmt.kind else { return Err(Kept::because("it is no loop")) };
    let mut channels: Vec<Channel<'_>> = vec![];
    for ring in &split.rings {
        let same = |c: &&mut Channel<'_>| {
            let keys = |m: &BTreeMap<usize, (usize, usize)>| m.keys().copied().collect::<Vec<_>>();
            c.rings.first().is_some_and(|r| {
                keys(&r.writers) == keys(&ring.writers) && keys(&r.readers) == keys(&ring.readers)
            })
        };
        match channels.iter_mut().find(same) {
            Some(channel) => channel.rings.push(ring),
            None => {
                let (full, empty) = (names.fresh("full"), names.fresh("empty"));
                channels.push(Channel { rings: vec![ring], full, empty });
            }
        }
    }
    let mut new = Written { before: vec![], stmts: vec![], roles: Roles::default() };
    // The rings, by the names that they have in the loop.
    let mut renamed: BTreeMap<String, String> = BTreeMap::new();
    for ring in &split.rings {
        let own = body.stmts.iter().find(|s| s.id.key() == ring.allocation);
        let Some(mut allocation) = own.cloned() else {
            return Err(Kept::because("a tensor that roles hand over is not declared in the loop"));
        };
        let StmtKind::Allocate { name, ty } = &mut allocation.kind else { continue };
        let own = match defined.get(name.text.as_str()) {
            Some(1) => name.text.clone(),
            _ => names.fresh(&name.text),
        };
        if renamed.insert(name.text.clone(), own.clone()).is_some() {
            let why = "two tensors that roles hand over have one name";
            return Err(Kept::because(why).unless("give each of them a name of its own"));
        }
        name.text = own;
        ty.levels.insert(0, crate::build::dims(&[split.depth], false));
        allocation.blank_above = false;
        new.before.push(allocation);
    }
    let inits = initialized(split, &channels, &mut new.before);
    let mut writer = Writer { split, stmt, renamed: &renamed, channels: &channels, names };
    let mut arrivals: Vec<Vec<Filling>> = channels.iter().map(|_| vec![]).collect();
    for (i, role) in split.roles.iter().enumerate() {
        let out = writer.role(i, role)?;
        let key = out.stmt.id.key();
        new.roles.loops.insert(out.of_loop);
        if i > 0 {
            new.roles.beside.insert(key);
        }
        for (channel, at) in out.arrivals {
            let threads = role.threads.count();
            arrivals[channel].push(Filling { at, within: key, threads });
        }
        new.stmts.push(out.stmt);
    }
    for ((channel, init), arrivals) in channels.iter().zip(inits).zip(arrivals) {
        let rings = channel.rings.iter().map(|r| r.allocation).collect();
        new.roles.handed.push(Handed { rings, init, arrivals });
    }
    Ok(new)
}

/// Mbarriers of the stages: their allocations and initialization, and a barrier of the block. The
/// statements that initialize those of full stages.
fn initialized(split: &Split, channels: &[Channel<'_>], out: &mut Vec<Stmt>) -> Vec<NodeKey> {
    let (mut inits, mut stmts, mut outputs) = (vec![], vec![], vec![]);
    for channel in channels {
        for name in [&channel.full, &channel.empty] {
            out.push(plain(name, &[split.depth], Scalar::Mbarrier, Memory::Sh));
            outputs.push(View::of(name));
        }
        let sum = |roles: &mut dyn Iterator<Item = usize>, of: &dyn Fn(&Role) -> i64| -> i64 {
            roles.filter_map(|r| split.roles.get(r)).map(of).sum()
        };
        let full = sum(&mut channel.writers(), &|r| r.threads.count());
        let empty = sum(&mut channel.readers(), &|r| match whole_warps(r) {
            true => r.threads.count() / WARP,
            false => r.threads.count(),
        });
        let init = |name: &str, n: i64| {
            sync(SyncOp::MbarrierInit, Some(View::of(name)), Some(Expr::int(n)))
        };
        let first = init(&channel.full, full);
        inits.push(first.id.key());
        stmts.extend([first, init(&channel.empty, empty)]);
    }
    out.push(within(&split.first, vec![], outputs, stmts));
    out.push(barrier(None));
    inits
}

/// Whether a role is consecutive whole warps.
fn whole_warps(role: &Role) -> bool {
    role.threads.warps().is_some_and(|(_, n)| n == role.threads.count())
}

struct Writer<'a> {
    split: &'a Split,
    stmt: &'a Stmt,
    renamed: &'a BTreeMap<String, String>,
    channels: &'a [Channel<'a>],
    names: &'a mut Names,
}

/// What a role executes.
struct Own {
    stmt: Stmt,
    of_loop: NodeKey,
    /// By channel, where it says that a stage is full.
    arrivals: Vec<(usize, NodeKey)>,
}

impl Writer<'_> {
    fn role(&mut self, index: usize, role: &Role) -> Result<Own, Kept> {
        let StmtKind::For { var, start, end, step, unroll, body, .. } = &self.stmt.kind else {
            return Err(Kept::because("it is no loop"));
        };
        let (split, depth) = (self.split, self.split.depth);
        // Which stage, and how often it was used before.
        let mut all = vec![];
        let turn = match &split.turn.kind {
            ExprKind::Name(_) => split.turn.clone(),
            _ => {
                let name = self.names.fresh("q");
                all.push(Stmt::new(StmtKind::Let(vec![(Name::new(&name), split.turn.clone())])));
                Expr::name(&name)
            }
        };
        let stage = modulo(turn.clone(), depth);
        let used = Expr::bin(BinOp::Div, turn, Expr::int(depth));
        let full = modulo(used.clone(), 2);
        // A fresh barrier passes parity 1.
        let empty = modulo(plus(used, 1), 2);
        let mut head = vec![];
        let lead = self.lead(role, index, &mut head);
        let mut arrivals = vec![];
        for (i, own) in body.stmts.iter().enumerate() {
            let mut after = vec![];
            for (c, channel) in self.channels.iter().enumerate() {
                let of = |name: &str| Some(staged(name, &stage));
                let wait = |name: &str, parity: &Expr| {
                    sync(SyncOp::MbarrierWait, of(name), Some(parity.clone()))
                };
                if let Some((first, last)) = channel.range(index, true) {
                    if i == first {
                        all.push(wait(&channel.empty, &empty));
                    }
                    if i == last {
                        let at = sync(SyncOp::MbarrierAsyncArrive, of(&channel.full), None);
                        arrivals.push((c, at.id.key()));
                        after.push(at);
                    }
                }
                if let Some((first, last)) = channel.range(index, false) {
                    if i == first {
                        all.push(wait(&channel.full, &full));
                    }
                    if i == last {
                        let at = sync(SyncOp::MbarrierArrive, of(&channel.empty), None);
                        match &lead {
                            Some((warp, exec)) => {
                                after.push(barrier(Some(warp.clone())));
                                let used = vec![View::of(&channel.empty)];
                                after.push(within(exec, used, vec![], vec![at]));
                            }
                            None => after.push(at),
                        }
                    }
                }
            }
            self.own(own, role, index, &mut all);
            all.append(&mut after);
        }
        needed(&mut all);
        let mut uses =
            Substitution { budget: crate::tricks::pipeline::BUDGET, ..Default::default() };
        for (name, ring) in self.renamed {
            uses.data.insert(name.clone(), Given::View(staged(ring, &stage)));
        }
        let many = |_| {
            let kept = Kept::because("the loop is too large to be written out");
            kept.unless("make the loop's body smaller")
        };
        uses.in_place(&mut all).map_err(many)?;
        let (inputs, outputs) = operands(&all);
        let kind = StmtKind::For {
            var: var.clone(),
            start: start.clone(),
            end: end.clone(),
            also: vec![],
            step: step.clone(),
            unroll: *unroll,
            stages: None,
            body: block(all),
        };
        let of_loop = Stmt::derived(kind, self.stmt);
        let key = of_loop.id.key();
        head.push(of_loop);
        let stmt = within(&role.exec, inputs, outputs, head);
        Ok(Own { stmt, of_loop: key, arrivals })
    }

    /// A statement of the loop, as far as it is a role's.
    fn own(&self, stmt: &Stmt, role: &Role, index: usize, out: &mut Vec<Stmt>) {
        let copy = |kind: StmtKind| Stmt {
            blank_above: stmt.blank_above,
            leading: stmt.leading.clone(),
            trailing: stmt.trailing.clone(),
            ..Stmt::derived(kind, stmt)
        };
        match &stmt.kind {
            StmtKind::Spec(_) | StmtKind::Allocate { .. } => {
                let key = stmt.id.key();
                let private = self.split.private.get(&key) == Some(&Some(index));
                if private || role.units.contains_key(&key) {
                    out.push(stmt.clone());
                }
            }
            StmtKind::For { .. } | StmtKind::If { .. } => {
                let mut kind = stmt.kind.clone();
                let mut any = false;
                for block in kind.blocks_mut() {
                    let mut inner = vec![];
                    block.stmts.iter().for_each(|s| self.own(s, role, index, &mut inner));
                    needed(&mut inner);
                    any |= inner.iter().any(|s| !is_definition(s));
                    block.stmts = inner;
                }
                if any {
                    out.push(copy(kind));
                }
            }
            kind if is_definition(stmt) => out.push(copy(kind.clone())),
            _ => {}
        }
    }

    /// The barrier of a warp, and who says for it that a stage is empty; none where each thread
    /// says it for itself.
    fn lead(
        &mut self,
        role: &Role,
        index: usize,
        head: &mut Vec<Stmt>,
    ) -> Option<(View, (View, View))> {
        if !whole_warps(role) || self.channels.iter().all(|c| c.range(index, false).is_none()) {
            return None;
        }
        let (blocks, threads) = role.exec.clone();
        let base = match threads.ops.is_empty() {
            true => threads,
            false => {
                let name = self.names.fresh("role");
                head.push(define_threads(&name, threads));
                View::of(name)
            }
        };
        let warps = role.threads.count() / WARP;
        let at = |i: Expr| ViewOp::Index(vec![Some(i)]);
        if warps == 1 {
            return Some((base.clone(), (blocks, base.then(at(Expr::int(0))))));
        }
        let (group, leads, own) =
            (self.names.fresh("warps"), self.names.fresh("leads"), self.names.fresh("w"));
        let of_warp = Tiler::Sizes(vec![Some(Expr::int(WARP))]);
        head.push(define_threads(&group, base.clone().then(ViewOp::Tile(of_warp))));
        let own = format!("@{own}");
        head.push(indices(&[&own], View::of(&group)));
        let each: Layout = mode(warps, WARP);
        let firsts = Tiler::Modes(vec![Some(layout_expr(&each))]);
        head.push(define_threads(&leads, base.then(ViewOp::Tile(firsts)).then(at(Expr::int(0)))));
        Some((View::of(&group).then(at(Expr::name(&own))), (blocks, View::of(&leads))))
    }
}

/// Whether a statement does nothing but give a name.
fn is_definition(stmt: &Stmt) -> bool {
    matches!(
        stmt.kind,
        StmtKind::DataDef { .. }
            | StmtKind::ThreadDef { .. }
            | StmtKind::Indices { .. }
            | StmtKind::Element { .. }
            | StmtKind::Let(_)
    )
}

/// Removes definitions that nothing behind them uses.
pub(crate) fn needed(stmts: &mut Vec<Stmt>) {
    let mut used: HashSet<(String, Of)> = HashSet::new();
    let mut kept = vec![];
    for mut stmt in std::mem::take(stmts).into_iter().rev() {
        if let StmtKind::Let(list) = &mut stmt.kind {
            let mut all = std::mem::take(list);
            all.reverse();
            for (name, value) in all {
                if used.contains(&(name.text.clone(), Of::Number)) {
                    let own = Stmt::new(StmtKind::Let(vec![(name, value)]));
                    referred(&own, &mut |name, of| {
                        used.insert((name.to_owned(), of));
                    });
                    if let StmtKind::Let(own) = own.kind {
                        list.extend(own);
                    }
                }
            }
            list.reverse();
            if list.is_empty() {
                continue;
            }
        } else if is_definition(&stmt) {
            let mut any = false;
            parts(&stmt, &mut |part| {
                if let Part::Defined(name, of) = part {
                    any |= used.contains(&(name.text.clone(), *of));
                }
            });
            if !any {
                continue;
            }
        }
        for inner in Walk::new(std::slice::from_ref(&stmt)).stmts() {
            referred(inner, &mut |name, of| {
                used.insert((name.to_owned(), of));
            });
        }
        kept.push(stmt);
    }
    kept.reverse();
    *stmts = kept;
}

/// Tensors from outside that statements read, and those that they write.
pub(crate) fn operands(stmts: &[Stmt]) -> (Vec<View>, Vec<View>) {
    let mut inside: HashMap<&str, &str> = HashMap::new();
    let (mut read, mut written): (Vec<&str>, Vec<&str>) = (vec![], vec![]);
    for stmt in Walk::new(stmts).stmts() {
        match &stmt.kind {
            StmtKind::DataDef { name, view, .. } => {
                inside.insert(&name.text, &view.base.text);
            }
            StmtKind::Allocate { name, .. } => {
                inside.insert(&name.text, "");
            }
            _ => {}
        }
    }
    for stmt in stmts.iter().flat_map(|s| outermost(s)) {
        let mut to: BTreeSet<&str> = BTreeSet::new();
        if let StmtKind::Spec(spec) = &stmt.kind {
            for view in &spec.outputs {
                written.push(&view.base.text);
                to.insert(&view.base.text);
            }
            for input in &spec.inputs {
                if let Operand::View(view) = input {
                    read.push(&view.base.text);
                    to.remove(view.base.text.as_str());
                }
            }
        }
        parts(stmt, &mut |part| {
            if let Part::View(view, Of::Data) = part
                && !to.contains(view.base.text.as_str())
            {
                read.push(&view.base.text);
            }
        });
    }
    let named = |list: Vec<&str>| -> Vec<View> {
        let mut out: Vec<&str> = vec![];
        for mut name in list {
            // A chain of views is no longer than there are names.
            for _ in 0..=inside.len() {
                match inside.get(name) {
                    Some(of) => name = of,
                    None => break,
                }
            }
            if !name.is_empty() && !out.contains(&name) {
                out.push(name);
            }
        }
        out.into_iter().map(View::of).collect()
    };
    (named(read), named(written))
}

/// A statement and those in it, but not those in specs.
fn outermost(stmt: &Stmt) -> Vec<&Stmt> {
    let mut out = vec![];
    let mut todo = vec![stmt];
    while let Some(stmt) = todo.pop() {
        out.push(stmt);
        if !matches!(stmt.kind, StmtKind::Spec(_)) {
            let inner: Vec<&Stmt> = stmt.kind.bodies().flat_map(|b| &b.stmts).collect();
            todo.extend(inner.into_iter().rev());
        }
    }
    out
}
