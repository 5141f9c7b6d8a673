//! Chooses an instance of a strategy for a kernel-level spec ([`Choosing::choose`]). All instances
//! that match are enumerated and ranked by a lower bound from the arithmetic of their tiles;
//! `trials.rs` solves the layouts of those whose bound beats the best.

use super::alike::{self, Alike};
use super::between;
use super::candidates::{Candidate, Choosing, GivenUp, Ranked, Ranking, Reason, WithBodies, shown};
use super::extents;
use super::graph::{Graph, Opaque};
use super::larger::{self, Larger};
use super::matched::Match;
use super::padded;
use super::params::{self, Budget, Pins};
use super::pattern::Pattern;
use super::symbols::Symbols;
use super::trials::{MOST_LISTED, Trials, Wanted};
use super::write::{Executors, Instance};
use crate::access::matmul_atoms::matmul_rows;
use crate::access::ops;
use crate::cost::constants::FITTED;
use crate::cost::constants::WORSE;
use crate::names::Names;
use crate::numbers::Numbers;
use crate::origins;
use carbyne_atoms::{Atom, AtomOp, limits};
use carbyne_ir::ast::visit::{Part, Walk, parts};
use carbyne_ir::ast::{
    AttrValue, Chosen, Def, Expr, ExprKind, Key, Module, Role, Spec, Stmt, StmtKind, TupleExpr,
};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::walk::Step;
use carbyne_ir::program::{self, Program, SpecId};
use carbyne_ir::{ast, resolve};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Instances of a strategy that are looked at where none has groups of threads that multiply.
const HOPELESS: usize = 8;

/// Instances that are not usual of which one match is looked at, where no other can be.
const MOST_UNUSUAL: usize = 512;

/// Ways of leaving modes to the grid that are looked at, of one strategy.
const MOST_SLICES: usize = 12;

/// How many instances are tried to be written of symbols, and how many that can be are solved then.
const MOST_SYMBOLIC: usize = 64;
/// The same of each strategy behind these.
const MOST_OF_OTHERS: usize = 8;
const MOST_SYMBOLIC_SOLVED: usize = 8;

/// What replaces a kernel-level spec.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planned {
    /// Declarations, and the kernels with their bodies, without short forms.
    pub stmts: Vec<Stmt>,
    /// The ranking of the kernel, then those of kernels that the chosen instance leaves to other
    /// strategies.
    pub rankings: Vec<Ranking>,
}

/// What instances are written of symbols from.
struct Over<'a> {
    /// The module as it is, with symbols.
    of: &'a Module,
    symbols: &'a Symbols,
    wanted: Wanted<'a>,
    matches: &'a [Match<'a>],
    candidates: &'a [Candidate],
}

impl Over<'_> {
    /// All instances in the order in which they are taken: the best, those of which most is known,
    /// by what they take, then the others.
    fn ranked(&self, best: usize, ranking: &Ranking) -> Vec<usize> {
        let cycles: HashMap<&str, f64> = ranking
            .instances
            .iter()
            .filter(|r| r.refused.is_none())
            .filter_map(|r| Some((r.by.as_str(), r.cycles?)))
            .collect();
        let mut all: Vec<usize> = (0..self.candidates.len()).collect();
        let key = |i: &usize| {
            let c = &self.candidates[*i];
            let own = cycles.get(c.by.as_str()).copied();
            (*i != best, own.is_none(), own.map_or(0, f64::to_bits))
        };
        all.sort_by_key(key);
        all
    }

    /// Those of them that are tried: the first, and behind them the first of each strategy. Where
    /// one instance of a strategy cannot be written, others often cannot, either.
    fn tried(&self, best: usize, ranking: &Ranking) -> Vec<usize> {
        let mut all = self.ranked(best, ranking);
        let name = |i: usize| &self.matches[self.candidates[i].of].def.name.text;
        let others = all.split_off(all.len().min(MOST_SYMBOLIC));
        let mut found: HashMap<&String, usize> = HashMap::new();
        all.extend(others.into_iter().filter(|i| {
            let n = found.entry(name(*i)).or_default();
            *n += 1;
            *n <= MOST_OF_OTHERS
        }));
        all
    }
}

/// An instance that is written of symbols.
struct Written {
    module: Module,
    /// What was looked at for kernels that it leaves to others.
    more: Vec<Ranking>,
    /// Which it is.
    taken: usize,
    /// Why it is not the best one, where it is another.
    refused: Option<Reason>,
}

/// Why no layouts are found of an instance that is written of symbols.
enum Unsolved {
    /// A block has less shared memory.
    Shared,
    Errors(Diagnostics),
}

/// What was looked at.
struct Looked<'a> {
    /// The match whose instances are looked at.
    of: usize,
    candidates: &'a mut Vec<Candidate>,
    refused: &'a mut Vec<Ranked>,
    /// Why strategies are out.
    refusals: &'a mut BTreeMap<String, Reason>,
    /// Why tiles of matches are.
    tiles: &'a mut BTreeMap<(usize, Vec<i64>), Reason>,
}

/// What an instance takes at least.
pub(super) struct Bound {
    pub(super) cycles: f64,
    spills: bool,
}

impl Choosing<'_> {
    /// The best instance for a kernel-level spec.
    ///
    /// # Errors
    /// That no strategy applies, and why; pins that cannot hold.
    pub(crate) fn choose(
        &self,
        id: SpecId,
        stmt: &Stmt,
        names: &mut Names,
    ) -> Result<Planned, Box<Diagnostic>> {
        let StmtKind::Spec(written) = &stmt.kind else { return Ok(Planned::default()) };
        names.share();
        let (of_symbols, own) = (stmt, self.module.items.iter().find(|s| s.id.same(stmt.id)));
        // Said of the numbers that stand for symbols, if they do.
        let stmt = own.unwrap_or(stmt);
        let spec = &self.program.specs[id];
        super::in_place::check(self.program, id)?;
        self.accumulates(id)?;
        let mut graph = match Graph::of(self.program, id, written) {
            Ok(graph) => graph,
            Err(why) => {
                let stmts = match why {
                    Opaque::ViewOfResult(value) if self.symbols.is_none() => {
                        between::kernels(self.program, id, stmt, value, names)
                    }
                    _ => None,
                };
                let stmts = stmts.ok_or_else(|| self.opaque(id, &why))?;
                return Ok(Planned { stmts, ..Planned::default() });
            }
        };
        if let Some((_, symbols)) = self.symbols {
            graph.symbols = symbols.bounds();
            if graph.chosen_around {
                return Err(self.opaque(id, &Opaque::ChosenAround));
            }
        }
        let (executors, pins) = (self.executors(id, written), self.pins(id, written));
        let mut refusals: BTreeMap<String, Reason> = BTreeMap::new();
        let matches = self.matches(&graph, &pins, names, &mut refusals);
        let mut candidates: Vec<Candidate> = vec![];
        let (kernel, span) = (spec.name.clone().unwrap_or_default(), spec.span);
        let mut ranking = Ranking { kernel, span, ..Ranking::default() };
        let mut refused: Vec<Ranked> = vec![];
        let (mut usual, mut tiles) = (vec![], BTreeMap::new());
        let mut looked = Looked {
            of: 0,
            candidates: &mut candidates,
            refused: &mut refused,
            refusals: &mut refusals,
            tiles: &mut tiles,
        };
        let mut budgets: BTreeMap<&str, Budget> = BTreeMap::new();
        for (of, m) in matches.iter().enumerate() {
            looked.of = of;
            let name = &m.def.name.text;
            let Some(strategy) = m.def.strategy.as_deref() else { continue };
            let theirs = m.file.theirs(name);
            let budget = budgets.entry(name).or_insert_with(|| Budget::new(theirs));
            let mut variants = vec![];
            for given in padded::variants(m, &self.given(m), self.symbols.map(|s| s.1)) {
                match params::enumerate(m.def, strategy, &given, &pins, budget) {
                    Ok(all) => variants.push((given, all)),
                    Err(why) => {
                        looked.refusals.entry(name.clone()).or_insert_with(|| why.into());
                    }
                }
            }
            budget.check(span)?;
            // What is not usual of one way to round extents up may be usual of another.
            if variants.iter().any(|(_, all)| all.usual && !all.instances.is_empty()) {
                variants.retain(|(_, all)| all.usual);
            }
            let least = padded::least(m.def, &variants);
            for ((given, all), least) in variants.into_iter().zip(least) {
                if all.instances.is_empty() {
                    let why = all.unmet.map_or(Reason::NoValues, Reason::Unmet);
                    looked.refusals.entry(name.clone()).or_insert(why);
                }
                ranking.counts.0 +=
                    self.look(m, &least, stmt, (executors.as_ref(), names), &mut looked, budget);
                budget.check(span)?;
                if all.usual {
                    usual.push((of, given, all.instances));
                }
            }
        }
        if looked.candidates.is_empty() {
            // What is not usual, where nothing else can be.
            for (of, given, instances) in usual {
                let m = &matches[of];
                let Some(strategy) = m.def.strategy.as_deref() else { continue };
                let Some(budget) = budgets.get_mut(m.def.name.text.as_str()) else { continue };
                let more = params::unusual(m.def, strategy, &given, (&pins, budget), &instances);
                budget.check(span)?;
                let Ok(mut more) = more else { continue };
                more.instances.truncate(MOST_UNUSUAL);
                looked.of = of;
                let all = &more.instances;
                ranking.counts.0 +=
                    self.look(m, all, stmt, (executors.as_ref(), names), &mut looked, budget);
                budget.check(span)?;
            }
        }
        // What spills, and what is left to others, is taken where nothing else is left.
        candidates.sort_by(|a, b| {
            (a.unknown, a.spills)
                .cmp(&(b.unknown, b.spills))
                .then(a.bound.total_cmp(&b.bound))
                .then(a.of.cmp(&b.of))
        });
        // Two forms of a graph may be the same to a strategy.
        let mut seen = HashSet::new();
        candidates.retain(|c| seen.insert((c.by.clone(), c.bound.to_bits())));
        let wanted =
            Wanted { stmt, executors: executors.as_ref(), names: &names.clone(), pins: &pins };
        let mut trials = Trials::new(self, wanted, &matches, &candidates);
        let best = trials.best(&mut ranking, &mut refusals);
        let made = best.map(|(module, more, best)| {
            let Some((of, symbols)) = self.symbols else { return Ok((module, more, best)) };
            let wanted = Wanted { stmt: of_symbols, ..wanted };
            let over = Over { of, symbols, wanted, matches: &matches, candidates: &candidates };
            let Written { module, more, taken, refused } = self.symbolic(&over, best, &ranking)?;
            if taken != best {
                trials.take(taken, &mut ranking, &mut refusals);
                ranking.given_up =
                    refused.and_then(|why| Self::given_up(&over, best, taken, &why, &ranking));
            }
            Ok((module, more, taken))
        });
        let errors = trials.errors.take();
        if let Some(Ok((_, _, i))) = made {
            let m = &matches[candidates[i].of];
            ranking.theirs = m.file.theirs(&m.def.name.text).cloned();
            let (candidates, refused, ranked, pins) = (&candidates[..], &tiles, &ranking, &pins);
            let all = Larger { m, candidates, best: i, refused, ranking: ranked, pins };
            ranking.larger = self.larger(&all);
        }
        ranking.instances.extend(refused);
        for (name, why) in &refusals {
            if candidates.iter().any(|c| matches[c.of].def.name.text == *name) {
                continue;
            }
            if matches!(why, Reason::Unlike(why) if why.is_of_meaning()) {
                ranking.unlike.insert(name.clone());
            }
            ranking.others.push((name.clone(), why.to_string()));
        }
        let (module, mut more) = match made {
            Some(Ok((module, more, _))) => (module, more),
            Some(Err(d)) => return Err(d),
            None => {
                let free = self.symbols.is_none();
                let cut = free.then(|| between::cut(self.program, id, stmt, names)).flatten();
                let stmts =
                    cut.ok_or_else(|| self.nothing(id, wanted, &refusals, errors, &matches))?;
                return Ok(Planned { stmts, ..Planned::default() });
            }
        };
        if let Some(stmts) = self.cheaper_apart(id, stmt, &ranking, names) {
            return Ok(Planned { stmts, ..Planned::default() });
        }
        let of_symbols = self.symbols.iter().flat_map(|(of, _)| &of.items);
        let own: HashSet<_> =
            self.module.items.iter().chain(of_symbols).map(|s| s.id.key()).collect();
        let mut stmts: Vec<Stmt> = module
            .items
            .into_iter()
            .filter(|s| !own.contains(&s.id.key()) || s.id.same(stmt.id))
            .collect();
        if let Some(first) = stmts.first_mut() {
            first.blank_above = true;
        }
        // What the instance defines is in use from now on.
        names.add_specs(&stmts);
        for stmt in Walk::new(&stmts).stmts() {
            parts(stmt, &mut |part| {
                if let Part::Defined(name, _) = part {
                    names.fresh(&name.text);
                }
            });
        }
        let mut todo: Vec<&mut Stmt> = stmts.iter_mut().collect();
        while let Some(own) = todo.pop() {
            if !own.id.same(stmt.id) {
                own.from = Some(stmt.id);
            }
            todo.extend(own.kind.blocks_mut().flat_map(|b| &mut b.stmts));
        }
        origins::inherit(&mut stmts, stmt.id, written.span);
        more.iter_mut().filter(|r| r.span.is_nowhere()).for_each(|r| r.span = span);
        more.insert(0, ranking);
        Ok(Planned { stmts, rankings: more })
    }

    /// One kernel for each output, where these take less time together than the best one of all
    /// outputs.
    fn cheaper_apart(
        &self,
        id: SpecId,
        stmt: &Stmt,
        ranking: &Ranking,
        names: &mut Names,
    ) -> Option<Vec<Stmt>> {
        if self.symbols.is_some() {
            return None;
        }
        let parts = between::of_each_output(self.program, id, stmt, &mut names.clone())?;
        let mut module = self.module.clone();
        let at = module.items.iter().position(|s| s.id.same(stmt.id))?;
        module.items.splice(at..=at, parts);
        let (_, rankings) = (self.plan)(&module, names).ok()?;
        let cycles = |r: &Ranking| r.instances.first()?.cycles;
        let apart: f64 = rankings.iter().map(cycles).sum::<Option<f64>>()?;
        if apart >= cycles(ranking)? {
            return None;
        }
        between::of_each_output(self.program, id, stmt, names)
    }

    /// The best instance, or the best of the others, that can be written of symbols, and whose
    /// layouts are found then: what a block holds may be other things than with numbers.
    fn symbolic(
        &self,
        over: &Over<'_>,
        best: usize,
        ranking: &Ranking,
    ) -> Result<Written, Box<Diagnostic>> {
        let (mut refused, mut unsolved, mut solved) = (None, None, 0);
        let mut missing: Option<String> = None;
        // Why the best one is not taken.
        let mut given_up = None;
        for i in over.tried(best, ranking) {
            let by = &over.candidates[i].by;
            let mut keep = |why: Reason| {
                refused.get_or_insert_with(|| format!("{by}: {why}"));
                given_up.get_or_insert(why);
            };
            let module = match self.over_symbols(over, i) {
                Ok(module) => module,
                Err(why) => {
                    missing = missing.or_else(|| fact_wanted(&why));
                    keep(why);
                    continue;
                }
            };
            if solved == MOST_SYMBOLIC_SOLVED {
                break;
            }
            solved += 1;
            match self.solved_over(over, module, i) {
                Ok((module, more)) => {
                    return Ok(Written { module, more, taken: i, refused: given_up });
                }
                Err(Unsolved::Shared) => keep(Reason::SymbolicShared),
                Err(Unsolved::Errors(errors)) => {
                    given_up.get_or_insert_with(|| errors.clone().into());
                    unsolved.get_or_insert(errors);
                }
            }
        }
        if let Some(d) = unsolved.and_then(|errors| errors.into_iter().next()) {
            return Err(Box::new(d));
        }
        let stmt = over.wanted.stmt;
        let spec = match &stmt.kind {
            StmtKind::Spec(spec) => spec.span,
            _ => stmt.span,
        };
        let why = refused.unwrap_or_default();
        let all = over.matches.iter().map(|m| self.unbounded(&m.graph)).find(|all| !all.is_empty());
        let empty = over.matches.iter().map(|m| self.maybe_empty(&m.graph));
        let bounds = empty.chain(all).find(|all| !all.is_empty()).map(|all| all.join(", "));
        let message = "no strategy works for all sizes of the symbols";
        Err(Box::new(Diagnostic::new(Code::NoStrategy, spec, message).label(why).help(
            match (missing.or(bounds), over.symbols.unbounded()) {
                (Some(fact), _) => format!("state `where {fact}`, or write the body"),
                (None, Some((of, true))) => {
                    format!("state an upper bound, `where {of} <= 65536`, or write the body")
                }
                (None, Some((of, false))) => format!(
                    "state a divisor of the symbol, `where {of} % 8 == 0`, or write the body"
                ),
                (None, None) => "write the body".to_owned(),
            },
        )))
    }

    /// The module of an instance, written of symbols; or why there is none.
    fn over_symbols(&self, over: &Over<'_>, i: usize) -> Result<Module, Reason> {
        let c = &over.candidates[i];
        let m = &over.matches[c.of];
        let written = over.symbols.written(m, &c.numbers).ok_or(Reason::Parted)?;
        let of_numbers = Instance::of(m, &c.numbers);
        let instance = Instance { symbols: written, sizes: Some(over.symbols), ..of_numbers };
        let choosing = Choosing { module: over.of, symbols: None, ..*self };
        let module = choosing.module_of(&instance, over.wanted)?;
        resolve::resolve_elaborated(&module, self.src).map_err(Reason::Symbolic)?;
        let mut kernels = module.items.iter().filter(|s| matches!(s.kind, StmtKind::Spec(_)));
        match kernels.any(|s| over.symbols.are_in(s)) {
            true => Err(Reason::SymbolicSize),
            false => Ok(module),
        }
    }

    /// The same with the bodies of its kernels, where their layouts are found.
    fn solved_over(
        &self,
        over: &Over<'_>,
        module: Module,
        i: usize,
    ) -> Result<WithBodies, Unsolved> {
        let c = &over.candidates[i];
        if !c.unknown && extents::is_apart(over.matches[c.of].def) {
            // Its kernels are looked at one by one.
            return (self.plan)(&module, over.wanted.names).map_err(Unsolved::Errors);
        }
        match (self.solve)(&module, true) {
            Ok(trial) if self.fits(trial.shared) => Ok((module, vec![])),
            Ok(_) => Err(Unsolved::Shared),
            Err(errors) => Err(Unsolved::Errors(errors)),
        }
    }

    /// The report about the best instance, if the chosen one is worse by more than the error of
    /// estimates.
    fn given_up(
        over: &Over<'_>,
        best: usize,
        taken: usize,
        why: &Reason,
        ranking: &Ranking,
    ) -> Option<GivenUp> {
        let of = |i: usize| {
            let ranked = ranking.instances.iter().find(|r| r.by == over.candidates[i].by)?;
            ranked.cycles.or(ranked.bound)
        };
        let (cycles, own) = (of(best)?, of(taken)?);
        if own <= cycles * WORSE {
            return None;
        }
        let by = over.candidates[best].by.clone();
        Some(GivenUp { by, cycles, why: why.to_string(), facts: vec![] })
    }

    /// Bounds instances of a match; how many there were.
    fn look(
        &self,
        m: &Match<'_>,
        instances: &[Numbers],
        stmt: &Stmt,
        (executors, names): (Option<&Executors>, &Names),
        looked: &mut Looked<'_>,
        budget: &mut Budget,
    ) -> usize {
        // Groups of threads that no instruction has are those of all instances.
        let mut hopeless = 0;
        let mut alike = Alike::default();
        for (n, numbers) in instances.iter().enumerate() {
            if hopeless == HOPELESS {
                return n;
            }
            let instance = Instance::of(m, numbers);
            if !self.left_out.is_empty() && self.left_out.contains(&shown(&instance)) {
                continue;
            }
            let bound = self.bound(&instance, stmt, (executors, names), &mut alike, budget);
            if budget.is_over() {
                return n;
            }
            match bound {
                Ok(Bound { cycles, spills }) => {
                    hopeless = HOPELESS + 1;
                    let (of, numbers, bound) = (looked.of, numbers.clone(), cycles);
                    let by = shown(&instance);
                    let unknown = instance.is_apart() && !instance.prepares();
                    looked.candidates.push(Candidate { of, numbers, by, bound, spills, unknown });
                }
                Err(why) => {
                    hopeless += usize::from(hopeless < HOPELESS && why.is_hopeless());
                    let said = looked.refusals.entry(m.def.name.text.clone());
                    let said = said.or_insert_with(|| why.clone());
                    if said.is_early() {
                        *said = why.clone();
                    }
                    let at = (looked.of, larger::tile(m.def, numbers));
                    looked.tiles.entry(at).or_insert_with(|| why.clone());
                    if looked.refused.len() < MOST_LISTED {
                        let (by, bound, cycles, refused) =
                            (shown(&instance), None, None, Some(why.to_string()));
                        let spills = false;
                        let partial = false;
                        looked.refused.push(Ranked { by, bound, cycles, spills, partial, refused });
                    }
                }
            }
        }
        instances.len()
    }

    /// All ways in which strategies implement the graph.
    fn matches<'s>(
        &'s self,
        graph: &Graph,
        pins: &Pins,
        names: &mut Names,
        refusals: &mut BTreeMap<String, Reason>,
    ) -> Vec<Match<'s>> {
        let mut forms = vec![graph.clone()];
        forms.extend(graph.joined());
        let mut out = vec![];
        // One of a name: that of the file that was added last.
        let mut seen = HashSet::new();
        for file in self.strategies.files() {
            for def in &file.strategies {
                let name = &def.name.text;
                if !seen.insert(name) {
                    continue;
                }
                if pins.strategy.as_ref().is_some_and(|s| s != name) {
                    continue;
                }
                let pattern = match Pattern::of(def) {
                    Ok(pattern) => pattern,
                    Err(why) => {
                        refusals.insert(name.clone(), why.into());
                        continue;
                    }
                };
                let Some(rank) = rank_of(def) else { continue };
                for (i, form) in forms.iter().enumerate() {
                    // What can be joined is.
                    if i + 1 < forms.len()
                        && rank <= forms[i + 1].rank()
                        && !has_matmul(form)
                        && form.rank() > rank
                    {
                        continue;
                    }
                    for sliced in slices(form, rank, names) {
                        match pattern.find(def, &sliced) {
                            Ok(all) => {
                                for found in all {
                                    out.push(Match { def, file, graph: sliced.clone(), found });
                                }
                            }
                            Err(why) => {
                                refusals.entry(name.clone()).or_insert(why.into());
                            }
                        }
                    }
                }
            }
        }
        out
    }

    /// What the match says of the numbers of a strategy, and what the machine does.
    pub(super) fn given(&self, m: &Match<'_>) -> Numbers {
        let mut given: Numbers = m.found.numbers.clone();
        for (name, scalar) in &m.found.types {
            given.insert(name.clone(), scalar.bits());
        }
        params::of_machine(&mut given, self.table, self.machine.sms);
        given
    }

    /// The module of one kernel, that of an instance, without short forms.
    pub(super) fn module_of(
        &self,
        instance: &Instance<'_>,
        wanted: Wanted<'_>,
    ) -> Result<Module, Reason> {
        let Wanted { stmt, executors, names, pins } = wanted;
        let module = self.short_module_of(instance, stmt, executors, &mut names.clone())?;
        let mut module = resolve::elaborate(&module, self.src)?;
        module.separate();
        if let Some(atom) = &pins.atom {
            super::atom::pin(&mut module.items, stmt, atom, self.table)?;
        }
        Ok(module)
    }

    /// The same as it is written.
    fn short_module_of(
        &self,
        instance: &Instance<'_>,
        stmt: &Stmt,
        executors: Option<&Executors>,
        names: &mut Names,
    ) -> Result<Module, Reason> {
        let stmts = instance.write(stmt, executors, names)?;
        // Sub-specs first: no name of the module is in scope there.
        let others = self.module.items.iter().filter(|s| !matches!(s.kind, StmtKind::Spec(_)));
        let items = instance.file.parts.iter().chain(others).cloned().chain(stmts).collect();
        let (header, footer) = (vec![], vec![]);
        Ok(Module { header, items, footer })
    }

    /// Cycles that an instance takes at least.
    pub(super) fn bound(
        &self,
        instance: &Instance<'_>,
        stmt: &Stmt,
        (executors, names): (Option<&Executors>, &Names),
        alike: &mut Alike,
        budget: &mut Budget,
    ) -> Result<Bound, Reason> {
        let form = alike::form(instance.def, &instance.file.parts, instance.numbers);
        if let Some(program) = form.as_ref().and_then(|form| alike.program(form)) {
            budget.look(program.specs.len() + program.tensors.len(), false);
            return self.least(program);
        }
        let module = self.short_module_of(instance, stmt, executors, &mut names.clone())?;
        let program = resolve::resolve_read(&module, self.src).inspect_err(|_| {
            budget.look(Walk::new(&module.items).stmts().count(), true);
        })?;
        budget.look(program.specs.len() + program.tensors.len(), true);
        let least = self.least(&program);
        if let Some(form) = form {
            alike.keep(form, program);
        }
        least
    }

    /// Cycles that the kernels of a program take at least.
    fn least(&self, program: &Program) -> Result<Bound, Reason> {
        self.binds(program)?;
        let (mut sum, mut spills) = (0.0, false);
        for kernel in &program.kernels {
            let spec = &program.specs[*kernel];
            sum += match &spec.body {
                Some(_) => {
                    let least = self.model.bound(program, *kernel)?;
                    spills |= least.spills();
                    least.cycles
                }
                // Other strategies decompose it: it reads and writes its operands, at least.
                None => {
                    let tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
                    let bits = tensors.map(|t| {
                        let n = ops::whole(program, t).map_or(0, |l| l.size());
                        n.saturating_mul(program.scalar_of(t).bits())
                    });
                    bits.sum::<i64>() as f64 / 8.0 / self.machine.dram_bytes_per_cycle()
                }
            };
        }
        Ok(Bound { cycles: sum + self.behind(program.kernels.len()), spills })
    }

    /// Whether a block has so many bytes of shared memory.
    pub(super) fn fits(&self, shared: i64) -> bool {
        limits(self.table.arch).has_shared(shared)
    }

    /// Cycles of the launches of so many kernels: every one but the first is launched behind
    /// another.
    fn behind(&self, kernels: usize) -> f64 {
        kernels.saturating_sub(1) as f64 * self.machine.cycles(FITTED.launch_us)
    }

    /// The same of the kernels of a module.
    pub(super) fn launches(&self, module: &Module) -> f64 {
        let kernels = module.items.iter().filter(|s| matches!(s.kind, StmtKind::Spec(_)));
        self.behind(kernels.count())
    }

    /// That some instruction multiplies what each product of registers does, by the groups of
    /// threads that it says.
    fn binds(&self, p: &Program) -> Result<(), Reason> {
        for kernel in &p.kernels {
            for step in p.walk_body(*kernel) {
                if let Step::Enter(program::Stmt { kind: program::StmtKind::Sync(sync), .. }) = step
                    && self.table.atoms().iter().all(|a| a.op != AtomOp::Sync(sync.op))
                {
                    return Err(Reason::NoSync { arch: self.table.arch, op: sync.op });
                }
            }
        }
        for (_, spec) in p.specs.iter().filter(|(_, s)| s.body.is_none()) {
            if !matches!(spec.kind, ast::SpecKind::MatMul | ast::SpecKind::MatMulSet) {
                continue;
            }
            self.multiplies(p, spec)?;
            let (Some(warps), Some(exec)) = (spec.ints(Key::Warps), spec.exec) else { continue };
            let tensors: Vec<_> =
                spec.input_tensors().chain(spec.outputs.iter().copied()).collect();
            let [a, b, c] = tensors[..] else { continue };
            let (Some(ea), Some(ec)) = (ops::extents(p, a), ops::extents(p, c)) else { continue };
            let ([m, k], [_, n], [wm, wn, ..]) = (&ea[..], &ec[..], warps) else { continue };
            let threads = p.threads[exec.threads].concat().to_fixed().map_or(0, |l| l.size());
            let groups = warps.iter().fold(1i64, |all, w| all.saturating_mul(*w));
            let [sa, sb, sc] = [a, b, c].map(|t| p.scalar_of(t));
            let rows = matmul_rows(self.table, sa, sb, spec.acc.unwrap_or(sc));
            let fits = |atom: &&Atom| match atom.op {
                AtomOp::MatMul { m: im, n: inn, k: ik, .. } => {
                    atom.group.saturating_mul(groups) == threads
                        && m % im.saturating_mul(*wm) == 0
                        && n % inn.saturating_mul(*wn) == 0
                        && k % ik == 0
                }
                _ => false,
            };
            let (of, group) = ((sa, sb), threads / groups.max(1));
            if !rows.iter().any(|r| r.group == group) {
                return Err(Reason::NoGroup { of, group });
            }
            if !rows.iter().any(fits) {
                return Err(Reason::NoTile { tile: [*m, *n, *k], of, group });
            }
        }
        Ok(())
    }

    /// That some instruction multiplies these types.
    fn multiplies(&self, p: &Program, spec: &program::Spec) -> Result<(), Reason> {
        let tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
        let [a, b, c] = tensors.map(|t| p.scalar_of(t)).collect::<Vec<_>>()[..] else {
            return Ok(());
        };
        match matmul_rows(self.table, a, b, spec.acc.unwrap_or(c)).is_empty() {
            true => Err(Reason::NoProduct(a, b)),
            false => Ok(()),
        }
    }

    fn executors(&self, id: SpecId, written: &Spec) -> Option<Executors> {
        let (blocks, threads) = written.both()?;
        let exec = self.program.specs[id].exec?;
        let grid = self.program.threads[exec.blocks].concat().to_fixed()?;
        let grid = grid.modes().iter().map(Layout::size).collect();
        let all = self.program.threads[exec.threads].concat().to_fixed()?.size();
        Some(Executors { exec: (blocks.clone(), threads.clone()), grid, threads: all })
    }

    fn pins(&self, id: SpecId, written: &Spec) -> Pins {
        let spec = &self.program.specs[id];
        let mut pins = Pins { atom: spec.atom.clone(), ..Pins::default() };
        let numbers = Key::with(Role::Pin).filter_map(|key| Some((key, spec.ints(key)?.to_vec())));
        pins.attrs.extend(numbers);
        let by = written.attr(Key::By);
        match by.map(|a| &a.value) {
            Some(AttrValue::Chosen(chosen)) => pins.by(chosen),
            Some(AttrValue::Tuple(TupleExpr::Leaf(Expr {
                kind: ExprKind::Name(name), ..
            }))) => {
                let name = ast::Name::new(name.trim_start_matches('@'));
                pins.by(&Chosen { name: Some(name), values: vec![], span: written.span });
            }
            _ => {}
        }
        pins
    }
}

fn has_matmul(graph: &Graph) -> bool {
    graph.steps.iter().any(|s| matches!(s.kind, ast::SpecKind::MatMul | ast::SpecKind::MatMulSet))
}

/// Modes of the strategy's first output.
fn rank_of(def: &Def) -> Option<usize> {
    let ty = def.outputs.first()?.1.as_ref()?;
    Some(ty.levels.iter().map(|l| l.modes.len()).sum())
}

/// The graph with as many modes, the others left to the grid.
fn slices(graph: &Graph, rank: usize, names: &mut Names) -> Vec<Graph> {
    let own = graph.rank();
    if own == rank {
        return vec![graph.clone()];
    }
    if own < rank {
        return vec![];
    }
    let n = own - rank;
    let coordinates: Vec<String> = (0..n)
        .map(|i| {
            let mut own = names.clone();
            own.fresh(&if i == 0 { "@l".to_owned() } else { format!("@l{i}") })
        })
        .collect();
    let mut out = vec![];
    // Subsets of modes, those that leave the last ones first.
    let mut chosen: Vec<usize> = (0..n).collect();
    loop {
        out.extend(graph.sliced(&chosen, &coordinates));
        if out.len() >= MOST_SLICES {
            return out;
        }
        let Some(i) = (0..n).rev().find(|i| chosen[*i] + (n - i) < own) else { return out };
        chosen[i] += 1;
        for k in i + 1..n {
            chosen[k] = chosen[k - 1] + 1;
        }
    }
}

/// The fact about a symbol with which an instance would be written, where the help of an error
/// names one.
fn fact_wanted(why: &Reason) -> Option<String> {
    let Reason::Symbolic(errors) = why else { return None };
    errors.iter().find_map(|d| {
        let (_, rest) = d.help.as_ref()?.split_once("`where ")?;
        rest.split_once('`').map(|(fact, _)| fact.to_owned())
    })
}
