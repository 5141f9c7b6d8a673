//! Writes the error for a kernel-level spec that no strategy decomposes ([`Choosing::nothing`]),
//! with reasons and help.

use super::graph::{self, Opaque};
use super::params::{self, Budget, Pins};
use super::scalars;
use super::trials::Wanted;
use super::{between, pattern};
use crate::access::matmul_atoms::matmul_rows;
use crate::numbers::Numbers;
use crate::numbers::eval;
use crate::strategies::candidates::{Choosing, Reason};
use crate::strategies::matched::Match;
use carbyne_atoms::{Atom, bind};
use carbyne_ir::ast::{self, AttrValue, Expr, ExprKind, Key, TupleExpr};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics, nearest};
use carbyne_ir::program::{MeansInput, MeansOp, MeansStep, SpecId};
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::text::print_number;
use std::collections::{BTreeMap, BTreeSet};

/// Reasons of strategies that are named.
const MOST_NOTES: usize = 3;
/// A length of rows that a block can hold.
const HELD: i64 = 8192;
/// The largest bound of rows over symbols that strategies have.
const MOST_HELD: i64 = 65536;
/// Larger bounds of rows are multiples of this, so that the threads of a block share them.
const SHARED_BY: i64 = 16384;

/// What extents are padded to multiples of, as little as does.
const PADDED: [i64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// Why a value has no elements around it.
const NOT_PADDED: &str = "a padded value must be an operand with one stride per mode, or computed \
                          from such operands element by element";

const PRODUCTS: &str = "write a kernel for each product and pass results between them in tensors \
                        in GL, or write one body, as examples/attention_causal.cby does";

fn listed(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

impl Choosing<'_> {
    /// Refuses a product that would silently sum up in a type of few bits, and types that no
    /// instruction multiplies.
    pub(super) fn accumulates(&self, id: SpecId) -> Result<(), Box<Diagnostic>> {
        let (p, spec) = (self.program, &self.program.specs[id]);
        if !matches!(spec.kind, ast::SpecKind::MatMul | ast::SpecKind::MatMulSet) {
            return Ok(());
        }
        let tensors: Vec<_> = spec.input_tensors().chain(spec.outputs.iter().copied()).collect();
        let [a, b, c] = tensors[..] else { return Ok(()) };
        let [sa, sb, sc] = [a, b, c].map(|t| p.scalar_of(t));
        let acc = spec.acc.unwrap_or(sc);
        if spec.attr(Key::Acc).is_none() && acc.bits() < 32 && acc.is_float() {
            let message =
                format!("the MatMul does not say in which type it accumulates into {acc}");
            // One thread alone multiplies in any type, ten times slower; that is advised to nobody.
            let fast = |s: Scalar| matmul_rows(self.table, sa, sb, s).iter().any(|r| r.group > 1);
            let own = if fast(acc) { format!(", or `acc={acc}`") } else { String::new() };
            let help = format!("write `acc=f32` for single precision{own}");
            return Err(Box::new(Diagnostic::new(Code::NoStrategy, spec.span, message).help(help)));
        }
        if !matmul_rows(self.table, sa, sb, acc).is_empty() {
            return Ok(());
        }
        // Rows that accumulate as asked are nearer than those that do not.
        let differs = |atom: &Atom| {
            atom.operands.iter().zip([sa, sb, acc]).find_map(|(o, s)| bind::scalar(s, o).err())
        };
        let wrong = |acc: Scalar| -> Vec<_> {
            let in_registers = |a: &&Atom| a.operands.iter().all(|o| o.allows(Memory::Rf));
            let rows = self.table.implementing(ast::SpecKind::MatMul).filter(in_registers);
            rows.filter(|a| a.writes().all(|o| o.is_of(acc)))
                .filter_map(|a| Some((a.name, differs(a)?)))
                .collect()
        };
        let mut rejected = wrong(acc);
        if rejected.is_empty() {
            rejected = wrong(Scalar::F32);
        }
        // The most multiply-adds first among equals.
        rejected.reverse();
        let d = bind::no_atom(p, id, self.table, &rejected);
        let plain = [a, b, c].iter().all(|t| p.buffer_of(*t).tensor == *t);
        Err(Box::new(match self.multiplied(id, [a, b, c], acc).filter(|_| plain) {
            Some(help) => d.help(help),
            None => d.help(
                "give the factors another type; `carbyne atoms --spec MatMul` lists the types",
            ),
        }))
    }

    pub(super) fn opaque(&self, id: SpecId, why: &Opaque) -> Box<Diagnostic> {
        let spec = &self.program.specs[id];
        let help = match why {
            Opaque::NotGlobal(_) => "declare it at the top, in GL",
            Opaque::Symbolic(_) => &self.sizes_wanted(),
            Opaque::Meaningless => "add a `means` block, or write its body",
            Opaque::ChosenAround => "pad an operand itself, with 0, or write the body",
            Opaque::ViewOfResult(_) | Opaque::Coordinates => {
                "write two kernels, with that result in a tensor in GL between them, or write the \
                 body"
            }
            Opaque::Products(_) => PRODUCTS,
            Opaque::Kind(_) => {
                "write its body: tiles, Moves and leaves; the solver fills in layouts and atoms"
            }
        };
        let d = Diagnostic::new(Code::NoStrategy, spec.span, why.to_string()).help(help);
        let reshaped = match why {
            Opaque::ViewOfResult(value) => self.seen_as_another_shape(id, *value),
            _ => None,
        };
        let d = match reshaped.map(|step| &step.op) {
            Some(MeansOp::Pad { .. }) => Diagnostic { message: NOT_PADDED.to_owned(), ..d },
            _ => d,
        };
        let d = match reshaped {
            Some(MeansStep { span, .. }) => Diagnostic { span: *span, ..d }
                .label("no strategy computes this line")
                .related(spec.span, "in the meaning of this spec"),
            None => d,
        };
        Box::new(match (why, self.unsized_for) {
            (Opaque::Symbolic(_), Some(unsized_for)) => {
                d.label(format!("no sizes can be tried for the symbols: {unsized_for}"))
            }
            _ => d,
        })
    }

    /// The line of a meaning that sees a value as another shape.
    fn seen_as_another_shape(&self, id: SpecId, value: usize) -> Option<&MeansStep> {
        let means = self.program.specs[id].means.as_ref()?;
        let is_view = |s: &&MeansStep| {
            matches!(s.op, MeansOp::View { .. } | MeansOp::Gather { .. } | MeansOp::Pad { .. })
        };
        let mut views = means.steps.iter().filter(is_view);
        views.find(|s| s.inputs.contains(&MeansInput::Value(value)))
    }

    /// The help for a spec that reduces along several modes, each of which a block would have to
    /// hold whole: the lines to move into another spec.
    fn crossed(&self, id: SpecId) -> Option<String> {
        let means = self.program.specs[id].means.as_ref()?;
        let along = |step: &MeansStep| between::reduced(step).cloned();
        let read = |v: usize| means.steps.iter().any(|s| s.inputs.contains(&MeansInput::Value(v)));
        // Lines that no other line reads can be moved.
        let mut last = means.steps.iter().rev().filter(|s| !read(s.output));
        let own = last.find_map(along)?;
        let other = means.steps.iter().filter_map(along).find(|axes| *axes != own)?;
        let moved = |s: &&MeansStep| !read(s.output) && along(s).as_ref() == Some(&own);
        // Lines that reduce along another mode, and that moved lines depend on.
        let mut needed: Vec<usize> = means.steps.iter().filter(moved).map(|s| s.output).collect();
        let mut cut = BTreeSet::new();
        for step in means.steps.iter().rev() {
            if !needed.contains(&step.output) {
                continue;
            }
            if along(step).is_some_and(|axes| axes != own) {
                cut.insert(step.line);
                continue;
            }
            needed.extend(step.inputs.iter().filter_map(|input| match input {
                MeansInput::Value(v) => Some(*v),
                _ => None,
            }));
        }
        let modes =
            |axes: &[usize]| axes.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let lines = |lines: BTreeSet<u32>| {
            let all: Vec<String> = lines.iter().map(u32::to_string).collect();
            format!("line{} {}", if all.len() == 1 { "" } else { "s" }, listed(&all))
        };
        let own_lines = lines(means.steps.iter().filter(moved).map(|s| s.line).collect());
        let read = match cut.is_empty() {
            true => String::new(),
            false => format!(
                ", which reads the results of {} from tensors in GL that this one writes, too",
                lines(cut)
            ),
        };
        Some(format!(
            "the spec reduces along axis {} and along axis {}, but a block can hold only one of \
             them completely: move {own_lines} into another spec{read}",
            modes(&other),
            modes(&own),
        ))
    }

    /// What to state where no numbers stand for the symbols.
    fn sizes_wanted(&self) -> String {
        let (p, typical) = (self.program, |name: &str| format!("{name}=4096"));
        let names = p.symbols.iter().map(|s| p.arena.var_info(*s).name).take(4);
        let mut all: Vec<String> = names.map(|name| typical(&name)).collect();
        if all.is_empty() {
            all.push(typical("M"));
        }
        format!(
            "state sizes that satisfy all facts, `typical {}`, or facts that allow smaller sizes, \
             or write the body",
            all.join(", ")
        )
    }

    /// The error where no instance can be.
    pub(super) fn nothing(
        &self,
        id: SpecId,
        wanted: Wanted<'_>,
        refusals: &BTreeMap<String, Reason>,
        errors: Option<Diagnostics>,
        matched: &[Match<'_>],
    ) -> Box<Diagnostic> {
        let (spec, pins) = (&self.program.specs[id], wanted.pins);
        if let Some(d) = errors.and_then(|e| e.into_iter().next()) {
            // What is generated stands where the spec does.
            let span = if d.span.is_nowhere() { spec.span } else { d.span };
            return Box::new(Diagnostic { span, ..d });
        }
        let pinned = !pins.attrs.is_empty() || !pins.values.is_empty() || pins.strategy.is_some();
        let known = |name: &str| self.strategies.iter().any(|(def, _)| def.name.text == name);
        if let Some(name) = pins.strategy.as_ref().filter(|n| !known(n)) {
            let near = nearest(name, self.strategies.iter().map(|(def, _)| def.name.text.as_str()));
            let help = match near {
                Some(near) => format!("did you mean `@{near}`?"),
                None => "`carbyne strategies` lists them; `--strategy FILE` adds yours".to_owned(),
            };
            let message = format!("there is no strategy `@{name}`");
            let d = Diagnostic::new(Code::NoStrategy, spec.span, message);
            return Box::new(d.label(format!("`by=@{name}` names it")).help(help));
        }
        let products = graph::products(self.program, id);
        if matched.is_empty() && products > 1 {
            return self.opaque(id, &Opaque::Products(products));
        }
        let by = pins.strategy.as_ref().map(|name| format!("`by=@{name}`"));
        let keys = pins.attrs.iter().map(|(key, _)| format!("`{key}=`")).chain(by.clone());
        let exec = spec.exec.as_ref().map(|_| "`<<<..>>>`".to_owned());
        let written: Vec<String> = keys.chain(exec).collect();
        let (code, message, label) = match &pins.atom {
            Some(atom) => {
                let message = format!("no strategy decomposes this {} with `{atom}`", spec.kind);
                (Code::AtomMismatch, message, format!("`atom={atom}` is pinned here"))
            }
            None if pinned || spec.exec.is_some() => {
                let message = match &by {
                    Some(by) => format!("{by} does not decompose this {}", spec.kind),
                    None => format!("no strategy decomposes this {} as it is pinned", spec.kind),
                };
                (Code::PinsConflict, message, format!("pinned here: {}", listed(&written)))
            }
            None => {
                let message = format!("no strategy decomposes this {}", spec.kind);
                (Code::NoStrategy, message, "without a body, it is left to a strategy".to_owned())
            }
        };
        let mut d = Diagnostic::new(code, spec.span, message).label(label);
        // Those that mean something else are named where nothing else is.
        let unlike = |name: &str| matched.iter().all(|m| m.def.name.text != name);
        let all = refusals.iter().all(|(name, _)| unlike(name));
        let said = refusals.iter().filter(|(name, _)| all || !unlike(name));
        d.notes = self.reasons(said);
        let is_divisor = |why: &Reason| matches!(why, Reason::Unmet(unmet) if unmet.divides);
        let divides = refusals.values().any(is_divisor);
        let unbounded =
            matched.iter().map(|m| self.unbounded(&m.graph)).find(|all| !all.is_empty());
        let unmultiplied = matched.iter().find_map(|m| self.unmultiplied(&m.graph));
        let padded = (code == Code::NoStrategy && divides).then(|| self.padded(matched)).flatten();
        if let Some(names) = unbounded.filter(|_| code == Code::NoStrategy) {
            return Box::new(d.help(format!(
                "state a bound for the reduced sizes, which a block must hold completely: `where \
                 {}`; or write the body with a loop over tiles",
                names.join(", ")
            )));
        }
        if let Some(help) = self.crossed(id).filter(|_| code == Code::NoStrategy) {
            return Box::new(d.help(help));
        }
        Box::new(
            d.help(match (code, divides) {
                (Code::NoStrategy, _) if unmultiplied.is_some() => unmultiplied.unwrap_or_default(),
                (Code::NoStrategy, true) => match padded {
                    Some(help) => help,
                    None => {
                        "pad the extents, so that tiles divide them, or write its body".to_owned()
                    }
                },
                (Code::NoStrategy, false) => {
                    "write its body: tiles, Moves and leaves; the solver fills in layouts and atoms"
                        .to_owned()
                }
                (Code::AtomMismatch, _) => {
                    "remove `atom=`; `carbyne strategies` lists what each strategy accepts"
                        .to_owned()
                }
                _ => match self.nearest(matched, wanted) {
                    Some(near) => format!("write `{near}`, with which there is a solution"),
                    None => format!(
                        "remove or change {}; `carbyne strategies` lists what each strategy \
                         accepts",
                        match &written[..] {
                            [] => "the values of `by=`".to_owned(),
                            all => all.join(" or "),
                        }
                    ),
                },
            }),
        )
    }

    /// Why strategies cannot be, those first that the text has to do with: a note for all that have
    /// one reason, and one for those that are not named.
    fn reasons<'r>(&self, all: impl Iterator<Item = (&'r String, &'r Reason)>) -> Vec<String> {
        let mut by_reason: Vec<(&Reason, String, Vec<String>)> = vec![];
        for (name, why) in all {
            let (said, name) = match self.strategies.theirs(name) {
                Some(theirs) => (why.to_string(), theirs.to_string()),
                None => (why.to_string(), format!("@{name}")),
            };
            match by_reason.iter_mut().find(|(_, other, _)| *other == said) {
                Some((.., names)) => names.push(name),
                None => by_reason.push((why, said, vec![name])),
            }
        }
        by_reason.sort_by_key(|(why, ..)| why.rank());
        let more: usize = by_reason.iter().skip(MOST_NOTES).map(|(.., names)| names.len()).sum();
        let note = |(_, said, names): &(&Reason, String, Vec<String>)| match &names[..] {
            [a, b, rest @ ..] if rest.len() > 1 => {
                format!("{a}, {b} and {} others: {said}", rest.len())
            }
            names => format!("{}: {said}", listed(names)),
        };
        let mut notes: Vec<String> = by_reason.iter().take(MOST_NOTES).map(note).collect();
        match more {
            0 => {}
            1 => notes.push("1 other strategy does not fit, either".to_owned()),
            n => notes.push(format!("{n} other strategies do not fit, either")),
        }
        notes
    }

    /// The bounds that sizes along which something is reduced would have to have, where they have
    /// none or a larger one, or one that threads do not share.
    pub(super) fn unbounded(&self, graph: &graph::Graph) -> Vec<String> {
        let Some((_, symbols)) = self.symbols else { return vec![] };
        let bounds = reduced(graph).into_iter().filter_map(|extent| {
            let name = symbols.expression(extent).map(print_number)?;
            let least = symbols.least(extent).unwrap_or(0);
            let bound = match graph.most(extent) {
                Some(most)
                    if most <= 2 * SHARED_BY || most % SHARED_BY == 0 && most <= MOST_HELD =>
                {
                    None
                }
                Some(most) if most <= MOST_HELD => {
                    Some(most.div_euclid(SHARED_BY) * SHARED_BY + SHARED_BY)
                }
                _ => [HELD, MOST_HELD].into_iter().find(|bound| least <= *bound),
            };
            Some(format!("{name} <= {}", bound?))
        });
        // Each once.
        bounds.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// What would have to be positive along which something is reduced, of what a block can hold.
    pub(super) fn maybe_empty(&self, graph: &graph::Graph) -> Vec<String> {
        let Some((_, symbols)) = self.symbols else { return vec![] };
        let is_held = |n: &i64| graph.most(*n).is_some_and(|most| most <= MOST_HELD);
        let is_empty = |n: &i64| symbols.least(*n).unwrap_or(0) < 1;
        let empty = reduced(graph).into_iter().filter(is_held).filter(is_empty);
        let names = empty.filter_map(|n| symbols.expression(n).map(print_number));
        // Each once.
        names.map(|n| format!("{n} > 0")).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Which extents would have to be how large for a strategy that means the same: those that take
    /// the least.
    fn padded(&self, matched: &[Match<'_>]) -> Option<String> {
        let all = matched.iter().filter_map(|m| Some((m, self.padded_for(m)?)));
        let (_, name, more) = all
            .map(|(m, (size, more))| (size, &m.def.name.text, more))
            .min_by(|a, b| a.0.total_cmp(&b.0))?;
        let said: Vec<String> = more.iter().map(|(from, to)| format!("{from} to {to}")).collect();
        Some(format!(
            "pad {}, so that tiles of `@{name}` divide the tensors, or write its body",
            listed(&said)
        ))
    }

    /// The same of one strategy: how many elements operands have then, as a part of those that they
    /// have now.
    fn padded_for(&self, m: &Match<'_>) -> Option<(f64, Vec<(String, i64)>)> {
        let strategy = m.def.strategy.as_deref()?;
        let given = self.given(m);
        let mut budget = Budget::new(m.file.theirs(&m.def.name.text));
        let mut fits = |sizes: &Numbers| {
            let all = params::enumerate(m.def, strategy, sizes, &Pins::default(), &mut budget);
            all.is_ok_and(|all| all.instances.first().is_some_and(|n| self.has_group(m, n)))
        };
        let names = m.def.inputs.iter().chain(&m.def.outputs).filter_map(|(_, ty)| ty.as_ref());
        let extents: BTreeSet<&str> = names
            .flat_map(|ty| ty.levels.iter().flat_map(|l| &l.modes))
            .filter_map(|mode| match mode {
                TupleExpr::Leaf(Expr { kind: ExprKind::Name(n), .. }) => Some(n.as_str()),
                _ => None,
            })
            .collect();
        let names: Vec<&str> = m.def.params.iter().map(|p| p.name.text.as_str()).collect();
        let names: Vec<&str> = names.into_iter().filter(|n| extents.contains(n)).collect();
        let up = |n: i64, step: i64| n.checked_add(step - 1).map(|n| n / step * step);
        for step in PADDED {
            let mut sizes = given.clone();
            for name in &names {
                let n = sizes.get_mut(*name)?;
                *n = up(*n, step)?;
            }
            if sizes == given || !fits(&sizes) {
                continue;
            }
            // As little as does, of each.
            for name in &names {
                for less in PADDED.into_iter().take_while(|s| *s <= step) {
                    let own = up(given[*name], less)?;
                    let before = sizes.insert((*name).to_owned(), own)?;
                    if fits(&sizes) {
                        break;
                    }
                    sizes.insert((*name).to_owned(), before);
                }
            }
            let more = names.iter().filter(|n| sizes[**n] != given[**n]);
            let more: Vec<(String, i64)> =
                more.map(|n| (format!("{n} from {}", given[*n]), sizes[*n])).collect();
            let size = names.iter().map(|n| sizes[*n] as f64 / given[*n].max(1) as f64).product();
            return Some((size, more)).filter(|(_, more)| !more.is_empty());
        }
        None
    }

    /// Whether an instruction multiplies by groups of as many threads as the instance has, where it
    /// is a product.
    pub(super) fn has_group(&self, m: &Match<'_>, numbers: &Numbers) -> bool {
        let matmul =
            |s: &&graph::Step| matches!(s.kind, ast::SpecKind::MatMul | ast::SpecKind::MatMulSet);
        let Some(step) = m.graph.steps.iter().find(matmul) else { return true };
        let strategy = m.def.strategy.as_deref();
        let Some(ast::Exec::Launch(launch)) = strategy.and_then(|s| s.exec.as_ref()) else {
            return false;
        };
        let ast::Group::New { modes, .. } = &launch.threads else { return false };
        let threads = modes.iter().map(|(_, e)| eval(e, numbers)).product::<Option<i64>>();
        let warps = strategy.and_then(|s| ast::Attr::among(&s.attrs, Key::Warps));
        let Some(AttrValue::Tuple(warps)) = warps.map(|a| &a.value) else { return false };
        let groups = params::leaves(warps).into_iter().map(|e| eval(e, numbers));
        let (Some(threads), Some(groups)) = (threads, groups.product::<Option<i64>>()) else {
            return false;
        };
        let [graph::Input::Value(a), graph::Input::Value(b)] = step.inputs[..] else {
            return false;
        };
        let [a, b] = [a, b].map(|v| scalars::scalar_of(&m.graph, v));
        let acc = step.scalar.unwrap_or_else(|| pattern::accumulates(&m.graph, step));
        let rows = matmul_rows(self.table, a, b, acc);
        // One thread alone multiplies numbers, not tiles: its groups are the threads along both
        // modes.
        rows.iter().any(|r| r.group == threads / groups.max(1))
    }
}

/// The extents along which something is reduced.
fn reduced(graph: &graph::Graph) -> Vec<i64> {
    let of = |step: &graph::Step| match (step.reduces(), step.inputs.first()) {
        (Some(_), Some(graph::Input::Value(v))) => {
            step.axes.iter().map(|axis| graph.values[*v].extents[*axis]).collect()
        }
        _ => vec![],
    };
    graph.steps.iter().flat_map(of).collect()
}
