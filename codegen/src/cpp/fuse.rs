//! Fuses unrolled loops over the values of a thread, so that kernels need fewer registers.
//!
//! Lowering prints one spec after another: all values are converted, then all are scaled, then all
//! are stored. If the CUDA compiler schedules so many statements, it keeps too many values at the
//! same time and spills registers. This pass fuses such loops part by part. A part has as many
//! values as the widest access, at least four: a vector is loaded, converted, scaled and stored,
//! then the next one. Loads of memory that no fused statement writes come one part ahead, unless
//! all of them are from shared memory.
//!
//! Two statements change their order only if neither accesses a register or memory that the other
//! one writes. This is checked for every iteration with its indices.

mod accesses;
mod expressions;

use super::ast::{Binary, Expr, For, Stmt, StmtKind, Type, Word};
use super::prune::{each_expr, names};
use accesses::{Iteration, Place, Scope};
use expressions::{declared, each_mut, is_storage, plus, substitute, times, uses_of};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The number of values of a part if all accesses are of single values.
const PART: i64 = 4;
/// The least number of loops to fuse. Fewer loops are a copy through registers, for which it is
/// best to load everything before the first store.
const LOOPS: usize = 3;
/// The least number of arrays that only the run uses for which fusing pays off although other
/// statements read a result of the run.
const PASSING: usize = 2;
/// The most iterations of fused loops, in total.
const MOST: usize = 1 << 13;
/// The most loops and statements that are fused.
const ITEMS: usize = 256;
/// The pragma of an unrolled loop.
const UNROLL: &str = "pragma unroll";

/// Fuses loops in these statements and in their bodies.
pub fn fuse(stmts: &mut Vec<Stmt>) {
    let mut taken = HashSet::new();
    each_expr(stmts, &mut |e| names(e, &mut taken));
    let numbered = (2..).map(|n| format!("part_{n}"));
    let free = std::iter::once("part".to_owned()).chain(numbered).find(|n| !taken.contains(n));
    let whole = Whole { var: free.unwrap_or_default().into(), leaves: false };
    statements(stmts, &Scope::default(), &whole);
}

/// The settings for all statements.
struct Whole {
    /// The name of the variable of loops over parts.
    var: Word,
    /// Whether to fuse loops although other statements read their values.
    leaves: bool,
}

/// A loop or a statement.
#[derive(Clone)]
struct Item {
    /// The comments before it.
    head: Vec<Stmt>,
    stmt: Stmt,
    iterations: Vec<Iteration>,
}

/// The meaning of names, and the number of uses of those declared here.
type Names<'a> = (&'a Scope, &'a HashMap<String, usize>);

/// Consecutive loops and the statements between them.
#[derive(Default)]
struct Run {
    original: Vec<Stmt>,
    declared: Vec<Stmt>,
    /// Names declared by blocks whose statements have all been taken.
    inner: HashSet<String>,
    /// Arrays of coordinates and conditions.
    conditions: HashSet<String>,
    items: Vec<Item>,
}

fn statements(stmts: &mut Vec<Stmt>, outer: &Scope, whole: &Whole) {
    let mut scope = outer.clone();
    let (mut out, mut run, mut head) = (vec![], Run::default(), vec![]);
    // Names declared here and by blocks that have been dissolved.
    let mut taken: HashSet<String> = stmts.iter().filter_map(declared).collect();
    let mut uses = uses_of(stmts);
    uses.retain(|name, _| taken.contains(name));
    for mut stmt in std::mem::take(stmts) {
        scope.declare(&stmt);
        let joined = match &stmt.kind {
            StmtKind::Comment(_) => {
                head.push(stmt);
                continue;
            }
            StmtKind::Declare(d) if is_storage(d) => {
                run.original.extend(head.drain(..).chain([stmt.clone()]));
                run.declares(stmt);
                continue;
            }
            StmtKind::Block(body) => run.open(&scope, &mut taken, &head, &stmt, body),
            _ => run.take(&scope, &head, &stmt),
        };
        if joined {
            head.clear();
            continue;
        }
        let first = match &stmt.kind {
            StmtKind::Block(body) => run.first_of(&scope, body),
            _ => None,
        };
        match first {
            Some((items, mut rest)) => {
                // The statements before the block are fused with its first loops, if possible.
                let alone = std::mem::replace(&mut run.items, items);
                if run.fused(&mut out, (&scope, &uses), whole) {
                    statements(&mut rest, &scope, whole);
                    stmt.kind = StmtKind::Block(rest);
                } else {
                    run.items = alone;
                    run.end(&mut out, (&scope, &uses), whole);
                    within(&mut stmt, &scope, whole);
                }
            }
            None => {
                run.end(&mut out, (&scope, &uses), whole);
                if !matches!(stmt.kind, StmtKind::Block(_)) && run.take(&scope, &head, &stmt) {
                    head.clear();
                    continue;
                }
                within(&mut stmt, &scope, whole);
            }
        }
        run = Run::default();
        out.extend(head.drain(..).chain([stmt]));
    }
    run.end(&mut out, (&scope, &uses), whole);
    out.append(&mut head);
    *stmts = out;
}

/// Processes the bodies of a statement that is not in a run.
fn within(stmt: &mut Stmt, scope: &Scope, whole: &Whole) {
    match &mut stmt.kind {
        StmtKind::For(f) if f.pragma != Some(UNROLL) => statements(&mut f.body, scope, whole),
        StmtKind::If { then, otherwise, .. } if !stmt.alone => {
            statements(then, scope, whole);
            statements(otherwise, scope, whole);
        }
        StmtKind::Block(body) => statements(body, scope, whole),
        _ => {}
    }
}

impl Run {
    fn declares(&mut self, stmt: Stmt) {
        if let StmtKind::Declare(d) = &stmt.kind
            && matches!(d.ty.name.as_ref(), "int" | "bool")
        {
            self.conditions.insert(d.name.to_string());
        }
        self.declared.push(stmt);
    }

    /// Takes a statement, if that preserves the result.
    fn take(&mut self, scope: &Scope, head: &[Stmt], stmt: &Stmt) -> bool {
        let Some(item) = Item::new(scope, head, stmt) else { return false };
        self.items.push(item);
        if order(&self.items).is_none() {
            self.items.pop();
            return false;
        }
        self.original.extend(head.iter().chain([stmt]).cloned());
        true
    }

    /// Takes all statements of a block. Its declarations then precede the run, so their names must
    /// be unique.
    fn open(
        &mut self,
        scope: &Scope,
        taken: &mut HashSet<String>,
        head: &[Stmt],
        block: &Stmt,
        body: &[Stmt],
    ) -> bool {
        let own: Vec<String> = body.iter().filter_map(declared).collect();
        if own.iter().any(|name| taken.contains(name)) {
            return false;
        }
        let mut scope = scope.clone();
        let (n_items, n_declared) = (self.items.len(), self.declared.len());
        let mut comments = head.to_vec();
        comments.extend(block.comment.clone().map(|c| Stmt::new(StmtKind::Comment(c))));
        let joined = body.iter().all(|stmt| match &stmt.kind {
            StmtKind::Comment(_) => {
                comments.push(stmt.clone());
                true
            }
            StmtKind::Declare(d) => {
                let fresh = !scope.knows(&d.name) && !self.mentions(&d.name);
                scope.declare(stmt);
                self.declares(stmt.clone());
                fresh && is_storage(d)
            }
            _ => {
                let item = Item::new(&scope, &std::mem::take(&mut comments), stmt);
                item.is_some_and(|item| {
                    self.items.push(item);
                    true
                })
            }
        });
        if joined && order(&self.items).is_some() {
            taken.extend(own.iter().cloned());
            self.inner.extend(own);
            self.original.extend(head.iter().chain([block]).cloned());
            return true;
        }
        self.items.truncate(n_items);
        self.declared.truncate(n_declared);
        false
    }

    /// Extends the run by the first statements of a block, which do not use its declarations.
    /// Returns the items and the rest of the block, or none if there is no loop among the first
    /// statements.
    fn first_of(&self, scope: &Scope, body: &[Stmt]) -> Option<(Vec<Item>, Vec<Stmt>)> {
        let mut items = self.items.clone();
        let (mut own, mut rest, mut comments) = (HashSet::new(), vec![], vec![]);
        let mut left = body.len();
        for (n, stmt) in body.iter().enumerate() {
            match &stmt.kind {
                StmtKind::Comment(_) => comments.push(stmt.clone()),
                StmtKind::Declare(d) => {
                    own.insert(d.name.to_string());
                    rest.push(stmt.clone());
                }
                _ => {
                    let mut used = HashSet::new();
                    each_expr(std::slice::from_ref(stmt), &mut |e| names(e, &mut used));
                    let item = Item::new(scope, &comments, stmt);
                    let n_items = items.len();
                    items.extend(item.filter(|_| used.is_disjoint(&own)));
                    if items.len() == n_items || order(&items).is_none() {
                        items.truncate(n_items);
                        left = n;
                        break;
                    }
                    comments.clear();
                }
            }
        }
        rest.append(&mut comments);
        rest.extend_from_slice(&body[left..]);
        let is_loop = |item: &Item| matches!(item.stmt.kind, StmtKind::For(_));
        items[self.items.len()..].iter().any(is_loop).then_some((items, rest))
    }

    /// Whether the run uses or declares a name.
    fn mentions(&self, name: &str) -> bool {
        let of = |place: &Place| match place {
            Place::Value(n, _) | Place::Single(n, _) | Place::Memory(n) => n == name,
        };
        let mut accesses = self.items.iter().flat_map(|i| &i.iterations).flat_map(|t| &t.accesses);
        accesses.any(|(place, _)| of(place))
            || self
                .declared
                .iter()
                .any(|s| matches!(&s.kind, StmtKind::Declare(d) if d.name == name))
    }

    /// Whether other statements read values that the run computes, and few of its values are used
    /// by the run only. Values read elsewhere are kept in any case, so fusing gains little.
    fn leaves_values(&self, (scope, uses): Names<'_>) -> bool {
        let stmts: Vec<Stmt> = self.items.iter().map(|item| item.stmt.clone()).collect();
        let own = uses_of(&stmts);
        let iterations = self.items.iter().flat_map(|i| &i.iterations).flat_map(|t| &t.accesses);
        let written: HashSet<&String> = iterations
            .filter_map(|(place, writes)| match place {
                Place::Value(name, _) if *writes => Some(name),
                _ => None,
            })
            .collect();
        let is_left = |array: &&&String| {
            let aliases = scope.aliases.iter().filter(|(_, (of, _))| of == **array);
            let mut names = aliases.map(|(name, _)| name).chain([**array]);
            let of = |uses: &HashMap<String, usize>, n| uses.get(n).copied().unwrap_or_default();
            let known = self.inner.contains(**array);
            !known && (!uses.contains_key(**array) || names.any(|n| of(&own, n) != of(uses, n)))
        };
        let left = written.iter().filter(is_left).count();
        // Coordinates and conditions are computed where they are needed.
        let is_value = |array: &&&String| !self.conditions.contains(**array);
        let passing = written.iter().filter(|a| !is_left(a)).filter(is_value).count();
        left > 0 && passing < PASSING
    }

    /// Ends the run: appends its loops fused, or unchanged.
    fn end(&mut self, out: &mut Vec<Stmt>, names: Names<'_>, whole: &Whole) {
        if !self.fused(out, names, whole) {
            out.append(&mut self.original);
        }
        *self = Run::default();
    }

    /// The loops whose next part may precede the other loops' current part: loads of memory that
    /// nothing here writes. Empty if all memory read is shared memory, whose latency is low.
    fn ahead(&self) -> HashSet<usize> {
        let accesses = |item: &Item| -> Vec<(Place, bool)> {
            item.iterations.iter().flat_map(|t| t.accesses.iter().cloned()).collect()
        };
        let all: Vec<Vec<(Place, bool)>> = self.items.iter().map(accesses).collect();
        let written: HashSet<&Place> =
            all.iter().flatten().filter(|(_, writes)| *writes).map(|(place, _)| place).collect();
        let (mut ahead, mut touched, mut far) = (HashSet::new(), HashSet::new(), false);
        for (k, (item, own)) in self.items.iter().zip(&all).enumerate() {
            let arrays: HashSet<&String> =
                own.iter().filter_map(|(place, _)| array(place)).collect();
            let is_load = own.iter().all(|(place, writes)| match place {
                Place::Value(..) => *writes,
                Place::Single(..) | Place::Memory(_) => !written.contains(place),
            });
            let mut memory = own.iter().filter_map(|(place, _)| match place {
                Place::Memory(name) => Some(name),
                _ => None,
            });
            let is_loop = matches!(item.stmt.kind, StmtKind::For(_));
            if is_loop && is_load && arrays.is_disjoint(&touched) && memory.clone().next().is_some()
            {
                far |= memory.any(|name| !name.is_empty());
                ahead.insert(k);
            } else {
                touched.extend(arrays);
            }
        }
        if far { ahead } else { HashSet::new() }
    }

    /// Appends the fused loops, if fusing is possible and pays off.
    fn fused(&mut self, out: &mut Vec<Stmt>, names: Names<'_>, whole: &Whole) -> bool {
        let is_loop = |item: &&Item| matches!(item.stmt.kind, StmtKind::For(_));
        let Some(part) = order(&self.items) else { return false };
        let parts: Vec<_> = self.items.iter().map(|item| item.parts(part)).collect();
        let Some(last) = parts.iter().filter_map(|p| p.last()?.0).max() else { return false };
        if self.items.iter().filter(is_loop).count() < LOOPS
            || !whole.leaves && self.leaves_values(names)
        {
            return false;
        }
        out.append(&mut self.declared);
        for (item, _) in self.items.iter().zip(&parts).filter(|(_, p)| p[0].0.is_none()) {
            out.extend(item.head.iter().chain([&item.stmt]).cloned());
        }
        let iterations_in = |k: usize, c: i64| -> Option<Range<usize>> {
            let parts: &Vec<(Option<i64>, Range<usize>)> = &parts[k];
            parts.iter().find(|(of, _)| *of == Some(c)).map(|(_, iterations)| iterations.clone())
        };
        let ahead = self.ahead();
        let mut told = vec![false; self.items.len()];
        let mut first = 0;
        while first <= last {
            // The parts that differ only in their position form one loop.
            let follows = |c: i64| {
                self.items.iter().enumerate().all(|(k, item)| {
                    match (iterations_in(k, c - 1), iterations_in(k, c)) {
                        (None, None) => true,
                        (Some(a), Some(b)) => {
                            matches!(item.stmt.kind, StmtKind::For(_)) && a.len() == b.len()
                        }
                        _ => false,
                    }
                })
            };
            let mut end = first + 1;
            while end <= last && follows(end) {
                end += 1;
            }
            let (mut loads, mut next, mut body) = (vec![], vec![], vec![]);
            for (k, item) in self.items.iter().enumerate() {
                let Some(iterations) = iterations_in(k, first) else { continue };
                let to = if ahead.contains(&k) { &mut loads } else { &mut body };
                if !std::mem::replace(&mut told[k], true) {
                    to.extend(item.head.iter().cloned());
                }
                if ahead.contains(&k) && end - first > 1 {
                    to.extend(item.part(iterations.clone(), (first, first + 1), &whole.var));
                    next.extend(item.part(iterations, (first - 1, end - 1), &whole.var));
                } else {
                    to.extend(item.part(iterations, (first, end), &whole.var));
                }
            }
            out.append(&mut loads);
            if end - first == 1 {
                out.append(&mut body);
            } else {
                if !next.is_empty() {
                    let after = plus(Expr::name(whole.var.clone()), 1);
                    let cond = after.binary(Binary::Lt, Expr::Int(end));
                    let kind = StmtKind::If { cond, then: next, otherwise: vec![] };
                    body.insert(0, Stmt::new(kind));
                }
                out.push(Stmt::new(StmtKind::For(For {
                    pragma: Some(UNROLL),
                    ty: Type::named("int"),
                    var: whole.var.clone(),
                    start: Expr::Int(first),
                    end: Expr::Int(end),
                    also: None,
                    step: 1,
                    body,
                })));
            }
            first = end;
        }
        true
    }
}

/// The array of registers over which loops iterate.
fn array(place: &Place) -> Option<&String> {
    match place {
        Place::Value(name, _) => Some(name),
        Place::Single(..) | Place::Memory(_) => None,
    }
}

/// The number of values of a part, if all loops may be processed part by part.
fn order(items: &[Item]) -> Option<i64> {
    let iterations = || items.iter().flat_map(|i| &i.iterations);
    let mut counts = iterations().filter_map(|t| t.values);
    let values = counts.next();
    if items.len() > ITEMS || counts.any(|n| Some(n) != values) || iterations().count() > MOST {
        return None;
    }
    let widest = iterations().map(|t| t.width).max().unwrap_or(1).max(PART);
    let part = if values.unwrap_or(0) % widest == 0 { widest } else { 1 };
    // Before: the textual order. After: by part, then in textual order.
    let mut after = vec![];
    for (k, item) in items.iter().enumerate() {
        let mut before = None;
        for (t, iteration) in item.iterations.iter().enumerate() {
            let mut parts = iteration.accesses.iter().filter_map(|(place, _)| match place {
                Place::Value(_, at) => Some(at / part),
                _ => None,
            });
            let of = parts.next();
            if parts.any(|p| Some(p) != of) || of < before {
                return None;
            }
            before = of;
            after.push((of, k, t));
        }
    }
    let mut sorted: Vec<usize> = (0..after.len()).collect();
    sorted.sort_by_key(|n| after[*n]);
    let mut position = vec![0; after.len()];
    for (to, from) in sorted.into_iter().enumerate() {
        position[from] = to;
    }
    // For each place, the last positions of a write and of any access in the iterations so far.
    let mut last: HashMap<&Place, (Option<usize>, Option<usize>)> = HashMap::new();
    for (iteration, at) in iterations().zip(position) {
        for (place, writes) in &iteration.accesses {
            let (written, accessed) = last.entry(place).or_default();
            if (if *writes { *accessed } else { *written }) > Some(at) {
                return None;
            }
            if *writes {
                *written = (*written).max(Some(at));
            }
            *accessed = (*accessed).max(Some(at));
        }
    }
    Some(part)
}

impl Item {
    /// A statement with its accesses, if they are known.
    fn new(scope: &Scope, head: &[Stmt], stmt: &Stmt) -> Option<Item> {
        let mut iterations = vec![];
        match &stmt.kind {
            StmtKind::For(f) => {
                let (Expr::Int(start), Expr::Int(end)) = (&f.start, &f.end) else { return None };
                let n = (end - start).checked_div(f.step)?;
                if f.pragma != Some(UNROLL) || f.also.is_some() || n <= 0 || n as usize > MOST {
                    return None;
                }
                for at in (*start..*end).step_by(usize::try_from(f.step).ok()?) {
                    let mut iteration = Iteration { at, ..Iteration::default() };
                    let stmts = f.body.iter().filter(|s| !matches!(s.kind, StmtKind::Comment(_)));
                    for stmt in stmts {
                        scope.statement(stmt, Some((&f.var, at)), &mut iteration)?;
                    }
                    // A loop over single values does not iterate over an array.
                    iteration.values?;
                    iterations.push(iteration);
                }
            }
            _ => {
                let mut iteration = Iteration::default();
                scope.statement(stmt, None, &mut iteration)?;
                iterations.push(iteration);
            }
        }
        Some(Item { head: head.to_vec(), stmt: stmt.clone(), iterations })
    }

    /// The iterations of each part, in order; none as the part of single values.
    fn parts(&self, part: i64) -> Vec<(Option<i64>, Range<usize>)> {
        let mut all: Vec<(Option<i64>, Range<usize>)> = vec![];
        for (n, iteration) in self.iterations.iter().enumerate() {
            let of = iteration.accesses.iter().find_map(|(place, _)| match place {
                Place::Value(_, at) => Some(at / part),
                _ => None,
            });
            match all.last_mut() {
                Some((last, iterations)) if *last == of => iterations.end = n + 1,
                _ => all.push((of, n..n + 1)),
            }
        }
        all
    }

    /// The statements of consecutive parts that are alike. `iterations` are the iterations of the
    /// first part, `parts` is the range of parts, and `var` counts them.
    fn part(&self, iterations: Range<usize>, parts: (i64, i64), var: &Word) -> Vec<Stmt> {
        let StmtKind::For(f) = &self.stmt.kind else { return vec![self.stmt.clone()] };
        let n = iterations.len() as i64;
        let first = self.iterations[iterations.start].at;
        // The value of the loop variable in the first iteration of the part.
        let per = n * f.step;
        let at = if parts.1 - parts.0 == 1 {
            Expr::Int(first)
        } else {
            plus(times(Expr::name(var.clone()), per), first - parts.0 * per)
        };
        if n == 1 {
            let mut body = f.body.clone();
            body.iter_mut().for_each(|s| each_mut(s, &mut |e| substitute(e, &f.var, &at)));
            return body;
        }
        let end = plus(at.clone(), per);
        let kind = StmtKind::For(For { start: at, end, ..f.clone() });
        vec![Stmt { kind, ..self.stmt.clone() }]
    }
}

#[cfg(test)]
mod tests;
