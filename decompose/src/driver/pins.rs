//! Names the pins that are to blame if a module has no solution: a minimal set of pins that cannot
//! hold together ([`blame_each`]). It also lists and removes the pins of a module.
//!
//! The set is found by removing pins one by one (a deletion-based minimal unsatisfiable subset): if
//! there is still no solution without a pin, it has no part in the conflict. The remaining set is
//! minimal: without any one of its pins there is a solution.

use crate::driver::attempt::{Attempt, attempt};
use crate::driver::decomposed::Options;
use crate::driver::tiles::Staging;
use crate::layouts::solver::Search;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::visit::each_mut;
use carbyne_ir::ast::{Key, Module, Role, Spec, Stmt, StmtKind, TensorType, TypeAttr};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::span::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Texts of more pins than this are not searched for a conflict.
const MOST: usize = 64;
/// Choices that are looked at in all.
const BUDGET: u64 = 4_000;

/// Something that a text states.
#[derive(Clone, Debug)]
pub struct Pin {
    /// What, in words.
    pub what: String,
    /// An action that removes it.
    pub remedy: String,
    /// Where.
    pub span: Span,
}

/// The pins of a module, in text order.
pub fn list(module: &Module) -> Vec<Pin> {
    let mut walk = Walk { without: BTreeSet::new(), pins: vec![] };
    walk.module(module.clone());
    walk.pins
}

/// The module without these of its pins, counted in text order.
pub fn without(module: &Module, pins: &BTreeSet<usize>) -> Module {
    let mut walk = Walk { without: pins.clone(), pins: vec![] };
    walk.module(module.clone())
}

/// Names the pins of each kernel that cannot hold together, if it is they for which there is no
/// solution.
pub(crate) fn blame_each(
    module: &Module,
    src: &str,
    table: &AtomTable,
    options: &Options,
    errors: Diagnostics,
) -> Diagnostics {
    let is_kernel = |s: &Stmt| matches!(s.kind, StmtKind::Spec(_));
    let around = |at: Span| {
        let holds = |s: &Stmt| is_kernel(s) && s.span.start <= at.start && at.end <= s.span.end;
        module.items.iter().position(holds)
    };
    let mut of: BTreeMap<Option<usize>, Diagnostics> = BTreeMap::new();
    for d in errors.into_vec() {
        of.entry(around(d.span)).or_default().push(d);
    }
    let mut out = Diagnostics::default();
    for (kernel, errors) in of {
        let found = match kernel {
            // Kernels are decomposed one by one: pins of one have no part in what another lacks.
            Some(at) => {
                let mut alone = module.clone();
                let mut n = 0..;
                alone.items.retain(|s| n.next() == Some(at) || !is_kernel(s));
                blame(&alone, src, table, options, errors)
            }
            None => blame(module, src, table, options, errors),
        };
        found.into_vec().into_iter().for_each(|d| out.push(d));
    }
    out
}

/// Names the pins that cannot hold together, if it is they for which there is no solution.
fn blame(
    module: &Module,
    src: &str,
    table: &AtomTable,
    options: &Options,
    errors: Diagnostics,
) -> Diagnostics {
    let solver = |d: &Diagnostic| {
        matches!(
            d.code,
            Code::NoAtom | Code::AtomMismatch | Code::PinsConflict | Code::NotDecomposed
        ) || d.code == Code::NoStrategy
    };
    if !errors.iter().all(solver) {
        return errors;
    }
    let pins = list(module);
    if pins.is_empty() || pins.len() > MOST {
        return errors;
    }
    let each = (BUDGET / pins.len() as u64).clamp(100, 1_000);
    let search = Search {
        budget: options.search.budget.min(each),
        top: 1,
        exhaustive: false,
        ..options.search
    };
    let options = &Options { search, ..options.clone() };
    let status = |gone: &BTreeSet<usize>| status(&without(module, gone), src, table, options);
    let mut gone = BTreeSet::new();
    let mut needed = vec![];
    for (i, pin) in pins.iter().enumerate() {
        gone.insert(i);
        match status(&gone) {
            Status::Unsolvable => {}
            Status::Solvable => {
                gone.remove(&i);
                needed.push(pin);
            }
            Status::Broken => {
                gone.remove(&i);
            }
        }
    }
    let Some((first, others)) = needed.split_first() else { return errors };
    let mut out = Diagnostics::default();
    let mut list = errors.into_vec().into_iter();
    let Some(mut original) = list.next() else { return out };
    if others.is_empty() {
        // The reason stands in the error itself.
        let why = format!("without {} there is a solution", first.what);
        original.related.push((first.span, why));
        out.push(original);
        list.for_each(|d| out.push(d));
        return out;
    }
    let mut d = Diagnostic::new(
        Code::PinsConflict,
        first.span,
        format!("{} pins contradict each other", needed.len()),
    )
    .label(first.what.clone());
    for pin in others {
        d = d.related(pin.span, pin.what.clone());
    }
    let label = if original.is_labeled() { format!(": {}", original.label) } else { "".into() };
    d.notes = original.notes;
    if d.notes.is_empty() {
        d = d.note(format!("with all of them: {}{label}", original.message));
    }
    let ways: Vec<&str> = needed.iter().map(|pin| pin.remedy.as_str()).collect();
    let ways = ways.join(", or ");
    out.push(match original.help {
        // It may remove a pin already.
        Some(help) if help.starts_with("remove") => d.help(ways),
        Some(help) if help.starts_with("write") => d.help(ways).better(help),
        Some(help) => d.help(help).better(ways),
        None => d.help(ways),
    });
    out
}

enum Status {
    Solvable,
    Unsolvable,
    /// What is left is no program, or nobody knows.
    Broken,
}

fn status(module: &Module, src: &str, table: &AtomTable, options: &Options) -> Status {
    let (given, unordered, staging) = (module, &[], Staging::ALL);
    match attempt(Attempt { given, module, src, table, options, unordered, staging }) {
        Ok(_) => Status::Solvable,
        Err(e) if e.iter().any(|d| d.code == Code::Budget) => Status::Broken,
        Err(e) if e.iter().all(|d| d.code.as_str().starts_with('D')) => Status::Unsolvable,
        Err(_) => Status::Broken,
    }
}

struct Walk {
    without: BTreeSet<usize>,
    pins: Vec<Pin>,
}

impl Walk {
    fn module(&mut self, mut module: Module) -> Module {
        each_mut(&mut module.items, &mut |stmt| match &mut stmt.kind {
            StmtKind::Allocate { name, ty } => self.allocation(&name.text, ty),
            StmtKind::Spec(spec) if spec.body.is_none() => self.leaf(spec),
            _ => {}
        });
        module
    }

    /// Counts a pin; whether it goes. `remedy` is an action that removes it.
    fn pin(&mut self, what: String, remedy: String, span: Span) -> bool {
        self.pins.push(Pin { what, remedy, span });
        self.without.contains(&(self.pins.len() - 1))
    }

    fn allocation(&mut self, name: &str, ty: &mut TensorType) {
        let open = ty.attrs.contains(&TypeAttr::Open);
        if let Some(i) = ty.attrs.iter().position(|a| matches!(a, TypeAttr::Tv(..))) {
            let span = match &ty.attrs[i] {
                TypeAttr::Tv(layout, _) => layout.span,
                _ => ty.span,
            };
            let remedy = format!("write `{{?}}` in place of `{{tv=..}}` at %{name}");
            if self.pin(format!("the thread-value layout of %{name}"), remedy, span) {
                ty.attrs[i] = TypeAttr::Open;
            }
        }
        if !ty.memory.is_some_and(Memory::is_shared) || ty.scalar == Scalar::Mbarrier {
            return;
        }
        if let Some(i) = ty.attrs.iter().position(|a| matches!(a, TypeAttr::Swizzle(..)))
            && self.pin(
                format!("the swizzle of %{name}"),
                format!("remove `swizzle=` at %{name}"),
                ty.span,
            )
        {
            ty.attrs.remove(i);
        }
        let strided = ty.levels.iter().any(|l| l.strides.is_some());
        let remedy = match strided {
            true => format!("remove the strides of %{name} and write `{{?}}` after its memory"),
            false => format!("write `{{?}}` after the memory of %{name}"),
        };
        if !open && self.pin(format!("the layout of %{name}"), remedy, ty.span) {
            ty.levels.iter_mut().for_each(|l| l.strides = None);
            ty.attrs.retain(|a| !matches!(a, TypeAttr::Swizzle(..)));
            ty.attrs.push(TypeAttr::Open);
        }
    }

    fn leaf(&mut self, spec: &mut Spec) {
        // Of strategies that do not fit, the choice among them says why.
        for key in Key::with(Role::Pin).filter(|key| *key != Key::By) {
            let Some(i) = spec.attrs.iter().position(|a| a.key == Some(key)) else { continue };
            let what = format!("`{key}=` of the {}", spec.kind);
            let attr = &spec.attrs[i];
            let value = attr.as_word().map_or(0, |w| w.len() as u32 + 1);
            let span = Span { end: attr.name.span.end + value, ..attr.name.span };
            if self.pin(what, format!("remove `{key}=`"), span) {
                spec.attrs.remove(i);
            }
        }
        let of_kernel = spec.name.is_some();
        if let Some((blocks, threads)) = spec.both().filter(|_| of_kernel)
            && self.pin(
                format!("`<<<..>>>` of the {}", spec.kind),
                "remove `<<<..>>>`".to_owned(),
                blocks.span.to(threads.span),
            )
        {
            spec.exec = None;
        }
    }
}
