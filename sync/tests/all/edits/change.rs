//! Applies edits to modules, for the test of random edits: finds the statements at which an edit is
//! possible, and applies one edit.

use carbyne_ir::ast::visit::{self, PartMut};
use carbyne_ir::ast::{
    BinOp, Block, Expr, ExprKind, Module, Name, Stmt, StmtKind, SyncArg, SyncOp, Tiler, View,
    ViewOp,
};
use std::collections::BTreeSet;

/// The kinds of edits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Delete,
    Move,
    Weaken,
    Parity,
    Stage,
    Turn,
    Step,
    Number,
}

impl Kind {
    pub(crate) const ALL: [Kind; 8] = [
        Kind::Delete,
        Kind::Move,
        Kind::Weaken,
        Kind::Parity,
        Kind::Stage,
        Kind::Turn,
        Kind::Step,
        Kind::Number,
    ];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Kind::Delete => "a statement left out",
            Kind::Move => "a statement moved by one",
            Kind::Weaken => "a weaker wait or barrier",
            Kind::Parity => "the other parity",
            Kind::Stage => "another stage of a ring",
            Kind::Turn => "another turn",
            Kind::Step => "another step of the tiles",
            Kind::Number => "another number of blocks",
        }
    }
}

/// The action of an edit.
#[derive(Clone, Debug, PartialEq)]
enum How {
    Delete,
    Earlier,
    Later,
    /// Adds this to the last number of the statement.
    Add(i64),
    /// Replaces a barrier by one barrier per warp.
    Warps,
    Parity,
    /// Changes the step of a loop.
    Step(Way),
    /// Changes each index with this text, in the statement and its body.
    Index(String, Way),
    /// Changes the stage index of a ring of this length.
    Ring(String, i64),
}

/// The change of a number.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Way {
    More,
    Less,
    Double,
    /// Changes the left side of a remainder.
    Shift,
    /// Changes the right side of a remainder.
    Longer,
    Shorter,
}

/// An edit of the statement with this number.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) kind: Kind,
    at: usize,
    how: How,
}

fn synchronizes(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Barrier(_) => true,
        StmtKind::Sync { op, .. } => {
            !matches!(op, SyncOp::Prefetch | SyncOp::RegistersInc | SyncOp::RegistersDec)
        }
        _ => false,
    }
}

/// Visits the lists of statements, outer ones first, with the number of the first statement of
/// each.
fn lists(
    stmts: &mut Vec<Stmt>,
    next: &mut usize,
    visit: &mut dyn FnMut(&mut Vec<Stmt>, usize) -> bool,
) -> bool {
    let first = *next;
    *next += stmts.len();
    if visit(stmts, first) {
        return true;
    }
    stmts.iter_mut().any(|s| bodies(&mut s.kind, next, visit))
}

fn bodies(
    kind: &mut StmtKind,
    next: &mut usize,
    visit: &mut dyn FnMut(&mut Vec<Stmt>, usize) -> bool,
) -> bool {
    kind.bodies_mut().any(|b: &mut Block| lists(&mut b.stmts, next, visit))
}

/// A text that identifies an expression.
fn written(e: &Expr) -> String {
    match &e.kind {
        ExprKind::Int(n) => n.to_string(),
        ExprKind::Real(n) | ExprKind::Name(n) => n.clone(),
        ExprKind::Bin(op, a, b) => format!("({} {op:?} {})", written(a), written(b)),
        ExprKind::Neg(a) => format!("-{}", written(a)),
        ExprKind::Sqrt(a) => format!("sqrt {}", written(a)),
    }
}

/// The number of stages of a ring, if it is declared as a literal.
fn ring_of(view: &View, text: &str) -> Option<i64> {
    let from = format!("Allocate %{}:[", view.base.text);
    let rest = &text[text.find(&from)? + from.len()..];
    let number = &rest[..rest.find(']')?];
    number.parse().ok().filter(|n| (2..=16).contains(n))
}

/// Calls `visit` with each index of a statement and of the statements in its body, and with the
/// view of an index into a tensor.
fn indices(stmt: &mut Stmt, visit: &mut dyn FnMut(&mut Expr, Option<&View>)) {
    if matches!(stmt.kind, StmtKind::For { .. }) {
        return;
    }
    match &mut stmt.kind {
        StmtKind::Let(all) => all.iter_mut().for_each(|(_, e)| visit(e, None)),
        StmtKind::Sync { args, .. } => {
            for arg in args {
                if let SyncArg::Number(e) = arg {
                    visit(e, None);
                }
            }
        }
        StmtKind::If { cond, .. } => {
            for c in cond {
                visit(&mut c.lhs, None);
                visit(&mut c.rhs, None);
            }
        }
        _ => {}
    }
    visit::parts_mut(stmt, &mut |part| {
        let PartMut::View(view, _) = part else { return };
        let of = View { ops: vec![], ..view.clone() };
        let mut first = true;
        for op in &mut view.ops {
            if let ViewOp::Index(all) = op {
                for e in all.iter_mut().flatten() {
                    visit(e, first.then_some(&of));
                    first = false;
                }
            }
            first = false;
        }
    });
    if matches!(stmt.kind, StmtKind::Spec(_)) {
        let inner = stmt.kind.bodies_mut().flat_map(|b| &mut b.stmts);
        inner.for_each(|s| inside(s, visit));
    }
}

fn inside(stmt: &mut Stmt, visit: &mut dyn FnMut(&mut Expr, Option<&View>)) {
    indices(stmt, visit);
    if matches!(stmt.kind, StmtKind::For { .. } | StmtKind::If { .. }) {
        let inner = stmt.kind.bodies_mut().flat_map(|b| &mut b.stmts);
        inner.for_each(|s| inside(s, visit));
    }
}

/// Visits an expression and its operands, operands first.
fn each(e: &mut Expr, visit: &mut dyn FnMut(&mut Expr)) {
    match &mut e.kind {
        ExprKind::Bin(_, a, b) => {
            each(a, visit);
            each(b, visit);
        }
        ExprKind::Neg(a) | ExprKind::Sqrt(a) => each(a, visit),
        ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Name(_) => {}
    }
    visit(e);
}

/// The possible changes of an index.
fn ways(e: &Expr, blocks: (i64, &str)) -> Vec<(Kind, Way)> {
    match &e.kind {
        ExprKind::Bin(BinOp::Mod, _, n) => {
            let is_ring = match &n.kind {
                ExprKind::Int(n) => (2..=16).contains(n),
                ExprKind::Name(n) => n == "ST",
                _ => false,
            };
            let all = [Way::Shift, Way::Longer, Way::Shorter];
            all.into_iter().filter(|_| is_ring).map(|w| (Kind::Stage, w)).collect()
        }
        ExprKind::Bin(BinOp::Add | BinOp::Sub, a, n)
            if matches!(n.kind, ExprKind::Int(1..)) && !matches!(a.kind, ExprKind::Int(_)) =>
        {
            vec![(Kind::Turn, Way::More), (Kind::Turn, Way::Less)]
        }
        _ if is_number(e, blocks) => {
            [Way::More, Way::Less, Way::Double].map(|w| (Kind::Number, w)).to_vec()
        }
        _ => vec![],
    }
}

/// Whether an expression is the number of blocks of a persistent kernel.
fn is_number(e: &Expr, blocks: (i64, &str)) -> bool {
    match &e.kind {
        ExprKind::Int(n) => *n == blocks.0 && *n > 1,
        ExprKind::Name(n) => *n == blocks.1 && blocks.0 > 0,
        _ => false,
    }
}

fn moved(e: &Expr, by: i64) -> Expr {
    match &e.kind {
        ExprKind::Int(n) => Expr::int(n + by),
        _ if by < 0 => Expr::bin(BinOp::Sub, e.clone(), Expr::int(-by)),
        _ => Expr::bin(BinOp::Add, e.clone(), Expr::int(by)),
    }
}

fn edited(e: &Expr, way: Way) -> Expr {
    let side = |op: &BinOp, a: Expr, b: Expr| Expr::bin(*op, a, b);
    match (way, &e.kind) {
        (Way::Shift, ExprKind::Bin(op, a, b)) => side(op, moved(a, 1), (**b).clone()),
        (Way::Longer, ExprKind::Bin(op, a, b)) => side(op, (**a).clone(), moved(b, 1)),
        (Way::Shorter, ExprKind::Bin(op, a, b)) => side(op, (**a).clone(), moved(b, -1)),
        (Way::More, ExprKind::Bin(op @ (BinOp::Add | BinOp::Sub), a, b)) => {
            side(op, (**a).clone(), moved(b, 1))
        }
        (Way::Less, ExprKind::Bin(op @ (BinOp::Add | BinOp::Sub), a, b)) => {
            side(op, (**a).clone(), moved(b, -1))
        }
        (Way::Double, _) => Expr::bin(BinOp::Mul, e.clone(), Expr::int(2)),
        (Way::Less, _) => moved(e, -1),
        _ => moved(e, 1),
    }
}

/// All edits of a module whose persistent grid has this number of blocks (0: not persistent).
pub(crate) fn sites(module: &Module, blocks: i64, text: &str) -> Vec<Site> {
    let (mut copy, mut out) = (module.clone(), vec![]);
    // The name of the number, if it has one.
    let blocks = (blocks, if text.contains(", P = ") { "P" } else { "G" });
    lists(&mut copy.items, &mut 0, &mut |list, first| {
        for (i, stmt) in list.iter_mut().enumerate() {
            let mut add = |kind, how| out.push(Site { kind, at: first + i, how });
            if synchronizes(stmt) {
                add(Kind::Delete, How::Delete);
                add(Kind::Move, How::Earlier);
                add(Kind::Move, How::Later);
            }
            match &mut stmt.kind {
                StmtKind::Barrier(_) => add(Kind::Weaken, How::Warps),
                StmtKind::Sync { op, .. } => match op {
                    SyncOp::AsyncWait
                    | SyncOp::WgmmaWait
                    | SyncOp::BulkWait
                    | SyncOp::BulkWaitRead => add(Kind::Weaken, How::Add(1)),
                    SyncOp::MbarrierInit => add(Kind::Weaken, How::Add(-1)),
                    SyncOp::MbarrierWait => add(Kind::Parity, How::Parity),
                    _ => {}
                },
                StmtKind::For { start, .. } if !matches!(start.kind, ExprKind::Int(_)) => {
                    for way in [Way::More, Way::Less, Way::Double] {
                        add(Kind::Step, How::Step(way));
                    }
                }
                _ => {}
            }
            // Statements at the top level declare sizes and types.
            let is_item = first == 0;
            let mut seen = BTreeSet::new();
            indices(stmt, &mut |e, view| {
                if is_item {
                    return;
                }
                if let Some(n) = view.and_then(|v| ring_of(v, text)) {
                    let key = written(e);
                    if seen.insert(format!("ring {key}")) {
                        add(Kind::Stage, How::Ring(key, n));
                    }
                }
                each(e, &mut |e| {
                    let key = written(e);
                    for (kind, way) in ways(e, blocks) {
                        if seen.insert(format!("{kind:?} {way:?} {key}")) {
                            add(kind, How::Index(key.clone(), way));
                        }
                    }
                });
            });
        }
        false
    });
    out
}

/// The module with one edit; none if nothing changes.
pub(crate) fn apply_edit(module: &Module, site: &Site) -> Option<Module> {
    let (mut copy, mut done) = (module.clone(), false);
    lists(&mut copy.items, &mut 0, &mut |list, first| {
        if !(first..first + list.len()).contains(&site.at) {
            return false;
        }
        let i = site.at - first;
        done = match &site.how {
            How::Delete => {
                list.remove(i);
                if list.is_empty() {
                    // An empty body is another error.
                    let nothing = vec![(Name::new("left_out"), Expr::int(0))];
                    list.push(Stmt::new(StmtKind::Let(nothing)));
                }
                true
            }
            How::Earlier => i > 0 && exchange(list, i - 1),
            How::Later => i + 1 < list.len() && exchange(list, i),
            How::Warps => warps(list, i),
            _ => within(&mut list[i], &site.how),
        };
        true
    });
    done.then_some(copy)
}

fn exchange(list: &mut [Stmt], i: usize) -> bool {
    list.swap(i, i + 1);
    true
}

/// Replaces a barrier of all threads by one barrier per warp.
fn warps(list: &mut Vec<Stmt>, i: usize) -> bool {
    let StmtKind::Barrier(of) = &list[i].kind else { return false };
    let mut all = of.clone().unwrap_or_else(|| View::of("cta"));
    let Some(tiler) = tiles_of_32() else { return false };
    all.ops.push(ViewOp::Tile(tiler));
    let (name, index) = (Name::new("each_warp"), Name::new("@its_warp"));
    let mut one = View::of("each_warp");
    one.ops.push(ViewOp::Index(vec![Some(Expr::name("@its_warp"))]));
    let new = [
        StmtKind::ThreadDef { name, ty: None, view: all },
        StmtKind::Indices { names: vec![index], threads: View::of("each_warp") },
        StmtKind::Barrier(Some(one)),
    ];
    list.splice(i..=i, new.into_iter().map(Stmt::new));
    true
}

fn tiles_of_32() -> Option<Tiler> {
    let module = carbyne_ir::text::parse("carbyne 2\n#w = #cta.tile([32])\n").ok()?;
    let StmtKind::ThreadDef { view, .. } = &module.items.last()?.kind else { return None };
    match view.ops.first()? {
        ViewOp::Tile(tiler) => Some(tiler.clone()),
        _ => None,
    }
}

fn within(stmt: &mut Stmt, how: &How) -> bool {
    let mut done = false;
    match how {
        How::Add(_) | How::Parity => {
            let StmtKind::Sync { args, .. } = &mut stmt.kind else { return false };
            let Some(SyncArg::Number(n)) = args.last_mut() else { return false };
            *n = match how {
                How::Add(by) => moved(n, *by),
                _ => Expr::bin(BinOp::Mod, moved(n, 1), Expr::int(2)),
            };
            done = true;
        }
        How::Step(way) => {
            let StmtKind::For { step, .. } = &mut stmt.kind else { return false };
            *step = edited(step, *way);
            done = true;
        }
        How::Index(key, way) => indices(stmt, &mut |e, _| {
            each(e, &mut |e| {
                if written(e) == *key {
                    (*e, done) = (edited(e, *way), true);
                }
            });
        }),
        How::Ring(key, n) => indices(stmt, &mut |e, view| {
            if view.is_some() && written(e) == *key {
                (*e, done) = (Expr::bin(BinOp::Mod, moved(e, 1), Expr::int(*n)), true);
            }
        }),
        How::Delete | How::Earlier | How::Later | How::Warps => {}
    }
    done
}
