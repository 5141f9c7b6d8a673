//! Searches for the nearest change of the text after which a row implements a leaf ([`find`]):
//! changes that follow from the mismatch are applied, and the changed leaf is compared with the row
//! again.
//!
//! Invariant: a fix that is given has been applied and has made the row match, and no other leaf
//! that names an instruction has lost it.

use super::edit::{Edit, Fix};
use super::site::Site;
use crate::access::leaves::{around, leaves};
use crate::access::matching;
use crate::access::matching::Mismatch;
use crate::driver::unstated_facts;
use crate::resolved::checked;
use carbyne_atoms::bulk::BulkMismatch;
use carbyne_atoms::{Atom, AtomTable, OperandAccess};
use carbyne_ir::ast::{
    Attr, Dims, Expr, ExprKind, Key, Module, Operand, TensorType, TupleExpr, TypeAttr, View,
};
use carbyne_ir::leaf::listed;
use carbyne_ir::program::SpecId;
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::Span;
use carbyne_ir::text;
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// Changes in a row that a fix may take.
const STEPS: usize = 5;
/// Texts that are tried for one fix.
const TRIES: usize = 200;

/// A change: what it does, and where.
type Change = (String, Vec<Edit>);

/// Looks for a fix after which `atom` implements the leaf `id` of the text.
/// `left` are the texts that may be tried.
pub(super) fn find(
    src: &str,
    id: SpecId,
    atom: &Atom,
    first: &Mismatch,
    table: &AtomTable,
    left: &mut usize,
) -> Option<Fix> {
    let may = TRIES.min(*left);
    let mut tries = may;
    let asked = Asked { src, id, atom, table, before: OnceCell::new() };
    let found = search(&asked, first, &Fix::default(), &mut tries);
    *left -= may - tries;
    found
}

/// The leaf of a text that a row is to implement.
struct Asked<'a> {
    src: &'a str,
    id: SpecId,
    atom: &'a Atom,
    table: &'a AtomTable,
    /// The leaves of the text that the instructions that they name implement.
    before: OnceCell<Option<BTreeSet<SpecId>>>,
}

impl Asked<'_> {
    /// The fix, with the row's name in the place of another that the leaf states; none where it
    /// takes an instruction from another leaf.
    fn whole(&self, fix: Fix) -> Option<Fix> {
        let now = fix.apply(self.src)?;
        let module = text::parse(&now).ok()?;
        let site = Site::find(&module, self.id)?;
        let stated = site.spec.attr(Key::Atom).and_then(Attr::as_word);
        let stated = stated.filter(|word| *word != self.atom.name);
        let fix = match stated {
            None => fix,
            Some(word) => {
                let attr = format!("atom={word}");
                let at = site.span.start as usize + cut(&now, site.span).find(&attr)?;
                let name = format!("atom={}", self.atom.name);
                let edit = Edit::new(Span::new(at, at + attr.len()), name.clone());
                fix.then(self.src, format!("write `{name}`"), &[edit])?
            }
        };
        let lost = |before: &BTreeSet<SpecId>, after: &BTreeSet<SpecId>| {
            before.iter().any(|leaf| *leaf != self.id && !after.contains(leaf))
        };
        let before = self.before.get_or_init(|| self.implemented(self.src)).as_ref()?;
        (!lost(before, &self.implemented(&fix.apply(self.src)?)?)).then_some(fix)
    }

    /// The leaves that the instructions that they name implement.
    fn implemented(&self, src: &str) -> Option<BTreeSet<SpecId>> {
        let module = text::parse(src).ok()?;
        let program = checked(&module, src).ok()?;
        let holds = |(id, path): &(SpecId, Vec<SpecId>)| {
            let row = program.specs[*id].atom.as_deref().and_then(|name| self.table.get(name));
            row.is_some_and(|row| matching::match_atom(&program, *id, path, row).is_ok())
        };
        Some(leaves(&program).into_iter().filter(holds).map(|(id, _)| id).collect())
    }
}

fn search(asked: &Asked<'_>, wrong: &Mismatch, fix: &Fix, tries: &mut usize) -> Option<Fix> {
    let Asked { src, id, atom, .. } = *asked;
    if fix.steps.len() == STEPS {
        return None;
    }
    let now = fix.apply(src)?;
    let module = text::parse(&now).ok()?;
    let site = Site::find(&module, id)?;
    let changes = changes((&module, &site), &now, atom, wrong);
    let mut nearer = vec![];
    for (step, edits) in changes {
        if *tries == 0 {
            return None;
        }
        *tries -= 1;
        let Some(next) = fix.then(src, step, &edits) else { continue };
        match outcome(&next.apply(src)?, id, atom) {
            Some(Ok(())) => {
                if let Some(whole) = asked.whole(next) {
                    return Some(whole);
                }
            }
            Some(Err(m)) if progress(&m) > progress(wrong) => nearer.push((next, m)),
            _ => {}
        }
    }
    nearer.into_iter().find_map(|(next, m)| search(asked, &m, &next, tries))
}

/// Larger is nearer; of two alignments the larger.
fn progress(m: &Mismatch) -> (u32, i64, i64) {
    let (rank, apart) = m.nearness();
    (rank, apart, if let Mismatch::Align { found, .. } = m { *found } else { 0 })
}

/// Whether the row implements the leaf of a text; none where the text is refused.
fn outcome(src: &str, id: SpecId, atom: &Atom) -> Option<Result<(), Mismatch>> {
    let module = text::parse(src).ok()?;
    let program = checked(&module, src).ok()?;
    if usize::from(id) >= program.specs.len() {
        return None;
    }
    let path = around(&program, id)?;
    Some(matching::match_atom(&program, id, &path, atom).map(drop))
}

/// Changes that a mismatch suggests.
fn changes(
    (module, site): (&Module, &Site<'_>),
    src: &str,
    atom: &Atom,
    wrong: &Mismatch,
) -> Vec<Change> {
    let mut all: Vec<Change> = stated(module, wrong).into_iter().collect();
    all.extend(other_changes(site, src, atom, wrong));
    all
}

/// The facts about symbols that a mismatch lacks.
fn stated(module: &Module, wrong: &Mismatch) -> Option<Change> {
    let facts = wrong.facts();
    let edits = unstated_facts::edits(module, facts).filter(|edits| !edits.is_empty())?;
    let edits = edits.into_iter().map(|(span, text)| Edit::new(span, text)).collect();
    Some((format!("state `where {}`", listed(facts)), edits))
}

fn other_changes(site: &Site<'_>, src: &str, atom: &Atom, wrong: &Mismatch) -> Vec<Change> {
    match wrong {
        Mismatch::Scalar { operand, want, found, .. } => {
            scalar(site, src, view_of(site, atom, operand), want, found)
        }
        Mismatch::Memory { operand, want, .. } => {
            memory(site, src, view_of(site, atom, operand), want)
        }
        Mismatch::Threads { .. } => threads(site, atom),
        Mismatch::Values { want, found, shared: false, .. } => values(site, src, *want, *found),
        Mismatch::Order { operand, .. } => order(site, src, view_of(site, atom, operand)),
        Mismatch::Align { operand, want, .. } => {
            align(site, src, view_of(site, atom, operand), *want)
        }
        Mismatch::Bulk(BulkMismatch::Cache(want)) => cache(site, want.as_str()),
        Mismatch::Values { shared: true, .. }
        | Mismatch::Op { .. }
        | Mismatch::Arity { .. }
        | Mismatch::FromMemory { .. }
        | Mismatch::Literal { .. }
        | Mismatch::Divisor { .. }
        | Mismatch::Descriptor { .. }
        | Mismatch::Uniform { .. }
        | Mismatch::Partial { .. }
        | Mismatch::Bulk(_)
        | Mismatch::Accumulates => vec![],
        Mismatch::Relation { .. } => relation(site),
    }
}

/// What fills a row's operand.
fn view_of<'m>(site: &Site<'m>, atom: &Atom, operand: &str) -> Option<&'m View> {
    let at = atom.operands.iter().position(|o| o.name == operand)?;
    let read = |o: &&carbyne_atoms::AtomOperand| o.access == OperandAccess::Read;
    let written = atom.operands[at].access != OperandAccess::Read;
    let before = atom.operands[..at].iter().filter(|o| read(o) != written).count();
    if written {
        return site.spec.outputs.get(before);
    }
    match site.spec.inputs.get(before)? {
        Operand::View(v) => Some(v),
        Operand::Number(_) | Operand::Value(_) => None,
    }
}

fn cut(src: &str, span: Span) -> &str {
    src.get(span.start as usize..span.end as usize).unwrap_or("")
}

/// Where `].scalar` stands in a type: the scalar's own place.
fn scalar_place(src: &str, ty: &TensorType) -> Option<Span> {
    let text = cut(src, ty.span);
    let word = ty.scalar.as_str();
    let at = text.rfind(&format!("].{word}"))? + 2 + ty.span.start as usize;
    Some(Span::new(at, at + word.len()))
}

fn scalar(site: &Site<'_>, src: &str, view: Option<&View>, want: &str, found: &str) -> Vec<Change> {
    let Ok(_) = want.parse::<Scalar>() else { return vec![] };
    let change = |types: &[&TensorType]| -> Change {
        let mut edits: Vec<Edit> = vec![];
        for ty in types.iter().filter(|ty| ty.scalar.as_str() == found) {
            let Some(place) = scalar_place(src, ty) else { continue };
            if !edits.iter().any(|e| e.span.is_at(place)) {
                edits.push(Edit::new(place, want));
            }
        }
        (format!("make the elements {want}"), edits)
    };
    let of = |v: &&View| site.declared(v).map(|(ty, _)| ty);
    let own: Vec<&TensorType> = view.iter().filter_map(of).collect();
    let operands: Vec<&TensorType> = site.views().iter().filter_map(of).collect();
    let all: Vec<&TensorType> = site.types().collect();
    vec![change(&own), change(&operands), change(&all)]
}

fn memory(site: &Site<'_>, src: &str, view: Option<&View>, want: &str) -> Vec<Change> {
    let Some((ty, true)) = view.and_then(|v| site.declared(v)) else { return vec![] };
    let (Some(place), Some(now)) = (scalar_place(src, ty), ty.memory) else { return vec![] };
    let tail = Span { start: place.end, end: ty.span.end };
    let to = |memory: &str| {
        // A thread-value layout is of registers, a swizzle of shared memory.
        let kept: Vec<String> = ty
            .attrs
            .iter()
            .filter(|a| matches!(a, TypeAttr::Open))
            .map(|_| "{?}".to_owned())
            .collect();
        let edits = vec![Edit::new(tail, format!(".{memory}{}", kept.concat()))];
        (format!("allocate {} in {memory}", view_name(site, view)), edits)
    };
    want.split(" or ").filter(|m| *m != "GL" && *m != now.as_str()).map(to).collect()
}

fn view_name(site: &Site<'_>, view: Option<&View>) -> String {
    view.map_or(String::new(), |v| format!("%{}", site.declared_name(v)))
}

fn threads(site: &Site<'_>, atom: &Atom) -> Vec<Change> {
    let Some((_, view)) = site.spec.both() else { return vec![] };
    let mut out = vec![];
    for base in site.threads() {
        let text = match atom.group {
            1 => format!("#{base}.scalar()"),
            n if atom.thread_layout.cosize() == n => format!("#{base}.tile([{n}])"),
            _ => {
                let l = &atom.thread_layout;
                format!("#{base}.tile([{}:{}])", l.shape(), l.stride())
            }
        };
        let title = format!("run it on `{text}`");
        out.push((title, vec![Edit::new(view.span, text)]));
    }
    out
}

/// A loop over parts of as many values as the row takes.
fn values(site: &Site<'_>, src: &str, want: i64, found: i64) -> Vec<Change> {
    if want < 1 || found <= want || found % want != 0 {
        return vec![];
    }
    let turns = found / want;
    let mut edits = vec![];
    let (start, end) = (site.span.start as usize, site.span.end as usize);
    let mut var = "part".to_owned();
    while src.contains(&var) {
        var.push('_');
    }
    let line = format!("for ({var} = 0; {var} < {turns}; {var} += 1) unroll {{ ");
    edits.push(Edit::new(Span::new(start, start), line));
    for view in site.views() {
        let text = cut(src, view.span);
        let part = format!("{text}.reshape([{want},{turns}]:[1,{want}])[_, {var}]");
        edits.push(Edit::new(view.span, part));
    }
    edits.push(Edit::new(Span::new(end, end), " }"));
    vec![(format!("repeat it for {turns} parts of {want} values"), edits)]
}

/// Compact orders of a tensor's modes.
fn order(site: &Site<'_>, src: &str, view: Option<&View>) -> Vec<Change> {
    let mut out = vec![];
    let name = view_name(site, view);
    let Some((ty, _)) = view.and_then(|v| site.declared(v)) else { return out };
    let Some(dims) = ty.levels.last() else { return out };
    let constants: Option<Vec<i64>> = dims.modes.iter().map(constant).collect();
    let Some(extents) = constants.filter(|e| (1..=3).contains(&e.len())) else { return out };
    for fastest in (0..extents.len()).rev() {
        let mut strides = vec![0; extents.len()];
        let mut next = 1i64;
        let rest = (0..extents.len()).rev().filter(|m| *m != fastest);
        for m in std::iter::once(fastest).chain(rest) {
            strides[m] = next;
            next = next.saturating_mul(extents[m]);
        }
        let text = level(&extents, &strides);
        if text != cut(src, dims.span) {
            let title = format!("lay {name} out with mode {fastest} consecutive");
            out.push((title, vec![Edit::new(dims.span, text)]));
        }
    }
    // What swizzles below the run stands in its way.
    out.extend(swizzled(ty, src, &name, 16));
    out
}

/// `[(64,32):(32,1)]`, `[64:1]`
fn level(extents: &[i64], strides: &[i64]) -> String {
    let join = |v: &[i64]| v.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    match extents {
        [one] => format!("[{one}:{}]", join(strides)),
        _ => format!("[({}):({})]", join(extents), join(strides)),
    }
}

fn constant(t: &TupleExpr) -> Option<i64> {
    match t {
        TupleExpr::Leaf(e) => match e.kind {
            ExprKind::Int(v) => Some(v),
            _ => None,
        },
        TupleExpr::Tuple(_) => None,
    }
}

/// The swizzle with a base of as many bytes.
fn swizzled(ty: &TensorType, src: &str, name: &str, bytes: i64) -> Option<Change> {
    let of = ty.attrs.iter().find_map(|a| match a {
        TypeAttr::Swizzle(of) => Some(of),
        _ => None,
    })?;
    let number = |e: &Expr| match e.kind {
        ExprKind::Int(n) => u32::try_from(n).ok(),
        _ => None,
    };
    let [b, m, s] = &**of;
    let (b, m, s) = (number(b)?, number(m)?, number(s)?);
    let base = bytes.max(1).ilog2();
    if m >= base {
        return None;
    }
    let at = cut(src, ty.span).find("swizzle=(")? + ty.span.start as usize;
    let end = at + cut(src, ty.span)[at - ty.span.start as usize..].find(')')? + 1;
    let text = format!("swizzle=({b},{base},{s})");
    let title = format!("let the swizzle of {name} keep {bytes} bytes together");
    Some((title, vec![Edit::new(Span::new(at, end), text)]))
}

fn align(site: &Site<'_>, src: &str, view: Option<&View>, want: i64) -> Vec<Change> {
    let mut out = vec![];
    let name = view_name(site, view);
    let Some((ty, _)) = view.and_then(|v| site.declared(v)) else { return out };
    out.extend(based(ty, src, &name, want));
    out.extend(swizzled(ty, src, &name, want));
    if let Some(padded) = ty.levels.last().and_then(|d| padded(d, src, ty.scalar, want)) {
        out.push((format!("pad the strides of {name} to {want} bytes"), vec![padded]));
    }
    out
}

/// An `align=` of the type, instead of what is there.
fn based(ty: &TensorType, src: &str, name: &str, want: i64) -> Option<Change> {
    let text = cut(src, ty.span);
    let start = ty.span.start as usize;
    let title = format!("align {name} to {want} bytes");
    let open = text.rfind('{').filter(|_| text.ends_with('}'));
    let edit = match open {
        None => {
            let end = ty.span.end as usize;
            Edit::new(Span::new(end, end), format!("{{align={want}}}"))
        }
        Some(open) => match text[open..].find("align=") {
            Some(at) => {
                let from = open + at + "align=".len();
                let len = text[from..].find([',', '}', ' '])?;
                Edit::new(Span::new(start + from, start + from + len), want.to_string())
            }
            None => {
                let at = start + text.len() - 1;
                Edit::new(Span::new(at, at), format!(", align={want}"))
            }
        },
    };
    Some((title, vec![edit]))
}

/// Strides rounded up until every one of several elements keeps the alignment.
fn padded(dims: &Dims, src: &str, scalar: Scalar, want: i64) -> Option<Edit> {
    let extents: Vec<i64> = dims.modes.iter().map(constant).collect::<Option<_>>()?;
    let strides: Vec<i64> = match &dims.strides {
        Some(s) => s.iter().map(constant).collect::<Option<_>>()?,
        None => (0..extents.len()).map(|m| extents[m + 1..].iter().product()).collect(),
    };
    let unit = want.checked_mul(8)? / scalar.bits();
    if unit < 2 {
        return None;
    }
    let up = |s: &i64| if *s > 1 { (s + unit - 1) / unit * unit } else { *s };
    let new: Vec<i64> = strides.iter().map(up).collect();
    let text = level(&extents, &new);
    (new != strides && text != cut(src, dims.span)).then(|| Edit::new(dims.span, text))
}

/// Thread-value layouts with two strides exchanged, or one in another place.
fn relation(site: &Site<'_>) -> Vec<Change> {
    let mut out = vec![];
    for view in site.views() {
        let Some((ty, _)) = site.declared(view) else { continue };
        let Some(tv) = ty.attrs.iter().find_map(|a| match a {
            TypeAttr::Tv(layout, _) => Some(layout),
            _ => None,
        }) else {
            continue;
        };
        let (mut extents, mut strides) = (vec![], vec![]);
        leaves_of(&tv.shape, &mut extents);
        leaves_of(&tv.stride, &mut strides);
        let name = &site.declared_name(view);
        let title = |from: i64, to: i64| format!("give %{name} the stride {to} instead of {from}");
        for (i, (place, from)) in strides.iter().enumerate() {
            for (other, to) in &strides[i + 1..] {
                if to != from {
                    let edits = vec![
                        Edit::new(*place, to.to_string()),
                        Edit::new(*other, from.to_string()),
                    ];
                    out.push((format!("exchange the strides {from} and {to} of %{name}"), edits));
                }
            }
        }
        // A stride goes where another digit ends.
        let mut ends = vec![1];
        ends.extend(extents.iter().zip(&strides).map(|((_, n), (_, s))| n.saturating_mul(*s)));
        ends.sort_unstable();
        ends.dedup();
        for (place, from) in &strides {
            for to in ends.iter().filter(|to| *to != from) {
                out.push((title(*from, *to), vec![Edit::new(*place, to.to_string())]));
            }
        }
    }
    out
}

/// The literals of a tuple, with their places.
fn leaves_of(t: &TupleExpr, out: &mut Vec<(Span, i64)>) {
    match t {
        TupleExpr::Leaf(e) => {
            if let ExprKind::Int(v) = e.kind {
                out.push((e.span, v));
            }
        }
        TupleExpr::Tuple(ts) => ts.iter().for_each(|t| leaves_of(t, out)),
    }
}

fn cache(site: &Site<'_>, want: &str) -> Vec<Change> {
    let Some(attr) = site.spec.attr(Key::Cache) else { return vec![] };
    let Some(now) = attr.as_word() else { return vec![] };
    let start = attr.name.span.start as usize;
    let span = Span::new(start, start + "cache=".len() + now.len());
    vec![(format!("write `cache={want}`"), vec![Edit::new(span, format!("cache={want}"))])]
}
