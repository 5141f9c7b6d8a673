//! Keeps the programs of instances that are alike ([`Alike`]), so that each is resolved once.
//! Instances of one match are alike if their programs differ in the stages of loops and in `warps=`
//! alone. One of them is written and resolved; the numbers of the others are put into its program.
//!
//! The values of all other expressions of the strategy and of its sub-specs, in the order of the
//! text, are the key of a [`Form`].

use super::params::leaves;
use crate::numbers::{Numbers, eval};
use carbyne_ir::ast::visit::{Part, Walk, parts};
use carbyne_ir::ast::{Attr, AttrValue, Def, Exec, Expr, ExprKind, Group, Key, Stmt, StmtKind};
use carbyne_ir::limits::MAX_STAGES;
use carbyne_ir::program::{self, Program, SpecId};
use std::collections::{HashMap, HashSet};

/// Sub-specs that use one another, at most.
const MOST_CALLS: usize = 8;

/// What an instance makes of a match.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Form {
    /// What decides which instances are alike.
    key: Vec<i64>,
    /// Stages, where these are several, and warps, in the order of the text.
    numbers: Vec<i64>,
}

/// Programs of instances of one match.
#[derive(Default)]
pub(super) struct Alike {
    programs: HashMap<Vec<i64>, Program>,
}

impl Alike {
    /// The program of an instance, if one that is alike has been resolved.
    pub(super) fn program(&mut self, form: &Form) -> Option<&Program> {
        let program = self.programs.get_mut(&form.key)?;
        let kernels = program.kernels.clone();
        let mut left = form.numbers.iter().copied();
        kernels.into_iter().try_for_each(|kernel| put(program, kernel, &mut left))?;
        left.next().is_none().then_some(program)
    }

    /// Keeps the program of an instance for those that are alike.
    pub(super) fn keep(&mut self, form: Form, program: Program) {
        let mut found = vec![];
        for kernel in &program.kernels {
            for step in program.walk_body(*kernel) {
                let program::walk::Step::Enter(stmt) = step else { continue };
                match &stmt.kind {
                    program::StmtKind::For { stages: n @ 2.., .. } => found.push(*n),
                    program::StmtKind::Spec(id) => {
                        found.extend(program.specs[*id].ints(Key::Warps).into_iter().flatten());
                    }
                    _ => {}
                }
            }
        }
        if found == form.numbers {
            self.programs.insert(form.key, program);
        }
    }
}

/// Puts numbers in the places of those of a spec's body; none where there are not as many.
// The parser bounds how deep statements lie in one another.
fn put(p: &mut Program, id: SpecId, left: &mut impl Iterator<Item = i64>) -> Option<()> {
    let Some(mut body) = p.specs[id].body.take() else { return Some(()) };
    let done = put_all(p, &mut body, left);
    p.specs[id].body = Some(body);
    done
}

fn put_all(
    p: &mut Program,
    stmts: &mut [program::Stmt],
    left: &mut impl Iterator<Item = i64>,
) -> Option<()> {
    for stmt in stmts {
        match &mut stmt.kind {
            program::StmtKind::Spec(id) => {
                let all = p.specs[*id].ints.iter_mut().filter(|(key, _)| *key == Key::Warps);
                for n in all.flat_map(|(_, numbers)| numbers) {
                    *n = left.next().filter(|n| *n >= 1)?;
                }
                put(p, *id, left)?;
            }
            program::StmtKind::For { stages, body, .. } => {
                if *stages > 1 {
                    *stages = left.next().filter(|n| (2..=MAX_STAGES).contains(n))?;
                }
                put_all(p, body, left)?;
            }
            program::StmtKind::If { then, otherwise, .. } => {
                put_all(p, then, left)?;
                put_all(p, otherwise, left)?;
            }
            program::StmtKind::Allocate(_)
            | program::StmtKind::Indices(_)
            | program::StmtKind::Element { .. }
            | program::StmtKind::Step { .. }
            | program::StmtKind::Barrier(_)
            | program::StmtKind::Sync(_) => {}
        }
    }
    Some(())
}

/// The form of an instance; none where something is not known before it is resolved. `file` has the
/// sub-specs that the strategy uses.
pub(super) fn form(def: &Def, file: &[Stmt], numbers: &Numbers) -> Option<Form> {
    let strategy = def.strategy.as_deref()?;
    let mut forming = Forming { def, file, out: Form::default(), seen: HashSet::new() };
    match &strategy.exec {
        None => {}
        Some(Exec::Launch(launch)) => {
            for group in [&launch.blocks, &launch.threads] {
                let Group::New { modes, .. } = group else { return None };
                modes.iter().for_each(|(_, extent)| forming.expr(extent, numbers));
            }
        }
        Some(Exec::Both(..) | Exec::Threads(_)) => return None,
    }
    for attr in strategy.attrs.iter().filter(|a| !matches!(a.key, Some(Key::Tile | Key::Warps))) {
        match &attr.value {
            AttrValue::Word(word) => forming.out.key.extend(numbers.get(word)),
            AttrValue::Tuple(tuple) => {
                leaves(tuple).into_iter().for_each(|e| forming.expr(e, numbers));
            }
            AttrValue::View(_) | AttrValue::Text(_) | AttrValue::Chosen(_) => return None,
        }
    }
    forming.stmts(&def.body.stmts, numbers, MOST_CALLS)?;
    Some(forming.out)
}

struct Forming<'a> {
    def: &'a Def,
    file: &'a [Stmt],
    out: Form,
    /// Expressions that are parts of others whose values are known.
    seen: HashSet<*const Expr>,
}

impl Forming<'_> {
    fn stmts(&mut self, stmts: &[Stmt], known: &Numbers, calls: usize) -> Option<()> {
        for stmt in Walk::new(stmts).stmts() {
            match &stmt.kind {
                StmtKind::For { stages: Some(stages), .. } => {
                    let n = eval(stages, known)?;
                    self.out.numbers.extend(Some(n).filter(|n| *n > 1));
                    self.out.key.push(i64::from(n > 1));
                    self.skip(stages);
                }
                StmtKind::Spec(spec) => {
                    for attr in &spec.attrs {
                        self.warps(attr, known)?;
                    }
                    for stmt in
                        spec.means.iter().flat_map(|b| Walk::new(&b.stmts).with_means().stmts())
                    {
                        self.parts(stmt, known);
                    }
                }
                StmtKind::Call(call) if !self.def.is_hole(&call.name.text) => {
                    let of = |s: &&Stmt| match &s.kind {
                        StmtKind::Def(def) => def.name.text == call.name.text,
                        _ => false,
                    };
                    let found = self.file.iter().find(of).map(|s| &s.kind);
                    let (Some(StmtKind::Def(def)), Some(calls)) = (found, calls.checked_sub(1))
                    else {
                        return None;
                    };
                    let mut own = Numbers::new();
                    for (param, arg) in def.params.iter().zip(&call.args) {
                        if let Some(n) = eval(arg, known) {
                            own.insert(param.name.text.clone(), n);
                            self.skip(arg);
                        }
                    }
                    self.parts(stmt, known);
                    self.stmts(&def.body.stmts, &own, calls)?;
                    continue;
                }
                _ => {}
            }
            self.parts(stmt, known);
        }
        Some(())
    }

    /// Warps that a spec says.
    fn warps(&mut self, attr: &Attr, known: &Numbers) -> Option<()> {
        if attr.key != Some(Key::Warps) {
            return Some(());
        }
        let AttrValue::Tuple(tuple) = &attr.value else { return None };
        for e in leaves(tuple) {
            self.out.numbers.push(eval(e, known)?);
            self.skip(e);
        }
        Some(())
    }

    /// What a statement itself is written of.
    fn parts(&mut self, stmt: &Stmt, known: &Numbers) {
        parts(stmt, &mut |part| match part {
            Part::Expr(e) => self.expr(e, known),
            Part::Attr(Attr { value: AttrValue::Word(word), .. }) => {
                self.out.key.extend(known.get(word));
            }
            _ => {}
        });
        self.seen.clear();
    }

    /// The value of an expression, unless it is a part of one whose value is known.
    fn expr(&mut self, e: &Expr, known: &Numbers) {
        if self.seen.contains(&std::ptr::from_ref(e)) {
            return;
        }
        match eval(e, known) {
            Some(n) => {
                self.out.key.push(n);
                self.skip(e);
            }
            None => self.out.key.push(i64::MIN),
        }
    }

    /// An expression and its parts are not looked at again.
    fn skip(&mut self, e: &Expr) {
        let mut todo = vec![e];
        while let Some(e) = todo.pop() {
            self.seen.insert(std::ptr::from_ref(e));
            match &e.kind {
                ExprKind::Bin(_, a, b) => todo.extend([&**a, &**b]),
                ExprKind::Neg(a) | ExprKind::Sqrt(a) => todo.push(a),
                ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Name(_) => {}
            }
        }
    }
}
