//! Enumerates the values of a strategy's parameters that its conditions and the pins of the text
//! allow ([`enumerate`]), within a [`Budget`].

use super::library::Theirs;
use crate::numbers::{Numbers, eval};
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::{
    self, Attr, AttrValue, BinOp, Choices, Chosen, CmpOp, Compare, Def, Expr, ExprKind, Key,
    ResultType, SpecKind, Strategy, TupleExpr, TypeAttr,
};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;
use carbyne_ir::text;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

/// The remaining budget of a strategy, for one kernel or for its samples: no text makes the search
/// endless.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// Operations of conditions and of values, and names that are given numbers.
    steps: usize,
    /// Instances.
    instances: usize,
    /// Specs and tensors of the instances that are written.
    written: usize,
    /// Whose the strategy is, if it is a user's.
    theirs: Option<Theirs>,
    /// The limit that was exceeded, and the help for it; none so far.
    over: Option<(String, String)>,
}

/// Instances of a strategy that a user has written, at most; of ours there are a third as many.
const MOST: usize = 4096;
/// The limit of built-in strategies; users are not told of it.
const MOST_OF_OURS: usize = 100_000;
/// Steps, at most.
const MOST_STEPS: usize = 1 << 21;
/// The same for all samples of a strategy.
const MOST_STEPS_OF_SAMPLES: usize = 1 << 22;
/// Steps of a name of an instance, which is kept.
const NAMED: usize = 16;
/// Specs and tensors of all instances that are looked at; those that are written count several
/// times.
const MOST_WRITTEN: usize = 1 << 18;
/// The same of one.
const MOST_OF_ONE: usize = 2048;
/// How many times as long it takes to write an instance as to bound it.
const WRITTEN: usize = 4;

impl Budget {
    /// Of one kernel.
    pub(crate) fn new(theirs: Option<&Theirs>) -> Self {
        let theirs = theirs.cloned();
        let (steps, instances, written) = match theirs {
            Some(_) => (MOST_STEPS, MOST, MOST_WRITTEN),
            None => (usize::MAX, MOST_OF_OURS, usize::MAX),
        };
        Budget { steps, instances, written, theirs, over: None }
    }

    /// Of all samples.
    pub(crate) fn of_samples(theirs: Option<&Theirs>) -> Self {
        let own = Budget::new(theirs);
        Budget { steps: own.steps.max(MOST_STEPS_OF_SAMPLES), ..own }
    }

    /// As many instances again.
    pub(crate) fn renew(&mut self) {
        self.instances = Budget::new(self.theirs.as_ref()).instances;
    }

    /// X0010 where the strategy of a user is too large.
    pub(crate) fn check(&self, span: Span) -> Result<(), Box<Diagnostic>> {
        let (Some(theirs), Some((what, help))) = (&self.theirs, &self.over) else { return Ok(()) };
        let d = Diagnostic::new(Code::StrategyTooLarge, span, format!("{theirs} is too large"));
        Err(Box::new(d.label(what.clone()).help(help.clone())))
    }

    /// Whether it is.
    pub(crate) fn is_over(&self) -> bool {
        self.theirs.is_some() && self.over.is_some()
    }

    /// Counts the specs and tensors of one instance, more where it was written for this.
    pub(crate) fn look(&mut self, n: usize, is_written: bool) {
        let times = if is_written { WRITTEN } else { 1 };
        if !take(&mut self.written, times * n) || self.theirs.is_some() && n > MOST_OF_ONE {
            let what = "its instances have too many specs and tensors".to_owned();
            let help = "use loops, or give its parameters fewer values".to_owned();
            self.over.get_or_insert((what, help));
        }
    }

    /// Counts an instance.
    fn instance(&mut self, param: &str) -> bool {
        take(&mut self.instances, 1)
            || self.ends(format!("its parameters have more than {MOST} combinations"), param)
    }

    /// Counts steps.
    fn step(&mut self, n: usize, param: &str) -> bool {
        let what = "finding out which combinations of its parameters satisfy its conditions takes \
                    too long";
        take(&mut self.steps, n) || self.ends(what.to_owned(), param)
    }

    fn ends(&mut self, what: String, param: &str) -> bool {
        let own = self.theirs.as_ref().map_or("", |theirs| &theirs.name);
        let help = format!("give `{param}` fewer values, or pin it: `by=@{own}[{param}=..]`");
        self.over.get_or_insert((what, help));
        false
    }
}

/// Takes so many of what is left; whether there were as many.
fn take(left: &mut usize, n: usize) -> bool {
    let rest = left.checked_sub(n);
    *left = rest.unwrap_or(0);
    rest.is_some()
}

/// Values of one range.
const MOST_VALUES: usize = 4096;

/// What became of the enumeration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Enumerated {
    /// Parameters and what the match gave, by name.
    pub instances: Vec<Numbers>,
    /// The condition that ended most branches, if there are no instances.
    pub unmet: Option<Unmet>,
    /// Whether those that are not usual are left out.
    pub usual: bool,
}

/// A condition that no values satisfy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unmet {
    /// The unmet condition, as an error says it.
    pub text: String,
    /// Whether it contains a remainder.
    pub divides: bool,
    /// Whether it depends on a number that the text states.
    pub is_pinned: bool,
}

/// The numbers of a tuple, as they are written.
pub(crate) fn leaves(tuple: &TupleExpr) -> Vec<&Expr> {
    let (mut todo, mut out) = (vec![tuple], vec![]);
    while let Some(t) = todo.pop() {
        match t {
            TupleExpr::Leaf(e) => out.push(e),
            TupleExpr::Tuple(all) => todo.extend(all.iter().rev()),
        }
    }
    out
}

/// What a value is compared with, in the order of the conditions.
struct Condition<'a> {
    lhs: Cow<'a, Expr>,
    op: CmpOp,
    rhs: Cow<'a, Expr>,
    /// The number of the decomposed text that demands it.
    pin: Option<Pinned>,
}

/// A number of an attribute: which one, and of how many.
#[derive(Copy, Clone)]
struct Pinned {
    key: Key,
    at: usize,
    of: usize,
}

impl fmt::Display for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.of, NTH.get(self.at)) {
            (1, _) | (_, None) => write!(f, "`{}=`", self.key),
            (_, Some(nth)) => write!(f, "the {nth} number of `{}=`", self.key),
        }
    }
}

/// Words that count the numbers of an attribute.
const NTH: [&str; 4] = ["first", "second", "third", "fourth"];

impl<'a> Condition<'a> {
    /// A condition of a strategy.
    fn of(c: &'a Compare) -> Self {
        let (lhs, rhs) = (Cow::Borrowed(&c.lhs), Cow::Borrowed(&c.rhs));
        Condition { lhs, op: c.op, rhs, pin: None }
    }

    /// The text demands that `lhs` is `n`.
    fn pinned(pin: Pinned, lhs: Expr, n: i64) -> Self {
        let (lhs, rhs) = (Cow::Owned(lhs), Cow::Owned(Expr::int(n)));
        Condition { lhs, op: CmpOp::Eq, rhs, pin: Some(pin) }
    }

    /// The parameter that a pin gives a value, the value, and where it stands.
    fn stated(&self) -> Option<(&str, i64, Pinned)> {
        match &self.lhs.kind {
            ExprKind::Name(n) => Some((n, eval(&self.rhs, &Numbers::new())?, self.pin?)),
            _ => None,
        }
    }

    /// The condition as an error needs it.
    fn unmet(&self, def: &Def, given: &Numbers, all: &[Condition<'_>]) -> Unmet {
        let sides = [&*self.lhs, &*self.rhs];
        let (lhs, rhs) = (text::print_number(&self.lhs), text::print_number(&self.rhs));
        let mut divides = false;
        for e in sides {
            each(e, &mut |e| divides |= matches!(e.kind, ExprKind::Bin(BinOp::Mod, ..)));
        }
        let is_named = |name: &str| sides.iter().any(|e| names(e, name));
        let mut known = known_in(def, given, &is_named);
        let text = match self.pin {
            Some(pin) => {
                let needed = match eval(&self.lhs, given).map(|n| n.to_string()) {
                    Some(n) if n == lhs => n,
                    Some(n) => {
                        known.insert(0, format!("`{lhs}`"));
                        n
                    }
                    None => format!("`{lhs}`"),
                };
                let why =
                    if known.is_empty() { "".into() } else { format!(" ({})", known.join("; ")) };
                format!("{pin} is {rhs}, but the strategy needs {needed}{why}")
            }
            None => {
                let stated = all.iter().filter_map(Condition::stated);
                let stated = stated.filter(|(name, ..)| is_named(name));
                known.extend(stated.map(|(name, n, pin)| format!("{name} = {n}, {pin}")));
                let here = if known.is_empty() { "" } else { "; here " };
                let op = self.op;
                let known = known.join("; ");
                format!("no values of its parameters satisfy `{lhs} {op} {rhs}`{here}{known}")
            }
        };
        let pinned = |c: &Condition<'_>| c.stated().is_some_and(|(name, ..)| is_named(name));
        Unmet { text, divides, is_pinned: self.pin.is_some() || all.iter().any(pinned) }
    }
}

/// What `tile=`, `warps=` and `by=` of a text demand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins {
    /// Attributes that the strategy must give, with these numbers.
    pub attrs: Vec<(Key, Vec<i64>)>,
    /// Parameters.
    pub values: Vec<(String, i64)>,
    /// The strategy.
    pub strategy: Option<String>,
    /// The atom that a leaf of the spec's kind is implemented by.
    pub atom: Option<String>,
}

impl Pins {
    /// Adds what `by=` says.
    pub(crate) fn by(&mut self, chosen: &Chosen) {
        self.strategy = chosen.name.as_ref().map(|n| n.text.clone());
        for (name, value) in &chosen.values {
            if let Some(n) = eval(value, &Numbers::new()) {
                self.values.push((name.text.clone(), n));
            }
        }
    }
}

/// Why a strategy cannot be as a text says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unpinned {
    #[error("it has no parameter `{0}`; its parameters: {1}")]
    NoParameter(String, String),
    #[error("it does not define `{0}=`")]
    NoAttribute(Key),
    #[error("`{0}=` has {1} numbers, not {2}")]
    Count(Key, usize, usize),
    #[error("another strategy is pinned")]
    Another,
}

/// Names in a sentence.
fn or_none(names: &[&str]) -> String {
    match names {
        [] => "none at all".to_owned(),
        all => all.join(", "),
    }
}

/// Every instance, in the order of the parameters' values.
///
/// # Errors
/// Pins that have nothing to pin.
pub(crate) fn enumerate(
    def: &Def,
    strategy: &Strategy,
    given: &Numbers,
    pins: &Pins,
    budget: &mut Budget,
) -> Result<Enumerated, Unpinned> {
    let usual = enumerated(def, strategy, given, pins, true, budget)?;
    // Where pins alone exclude what is usual, another match may have it.
    let mut none = || {
        let free = Pins { values: vec![], attrs: vec![], ..pins.clone() };
        enumerated(def, strategy, given, &free, true, budget).map(|all| all.instances.is_empty())
    };
    match usual.instances.is_empty() && !strategy.habits.is_empty() && none()? {
        true => enumerated(def, strategy, given, pins, false, budget),
        false => Ok(Enumerated { usual: !strategy.habits.is_empty(), ..usual }),
    }
}

/// Adds what strategies may ask of the machine.
pub(crate) fn of_machine(given: &mut Numbers, table: &AtomTable, sms: i64) {
    let groups = table.implementing(SpecKind::MatMul).map(|a| a.group);
    given.insert(ast::MULTIPROCESSORS.to_owned(), sms);
    given.insert(ast::WIDEST_GROUP.to_owned(), groups.max().unwrap_or(1));
    let shared = carbyne_atoms::limits(table.arch).max_smem_per_block;
    given.insert(ast::BLOCK_SHARED.to_owned(), shared);
}

/// Those that are not usual, where none that is can be.
///
/// # Errors
/// Pins that have nothing to pin.
pub(crate) fn unusual(
    def: &Def,
    strategy: &Strategy,
    given: &Numbers,
    (pins, budget): (&Pins, &mut Budget),
    usual: &[Numbers],
) -> Result<Enumerated, Unpinned> {
    let mut all = enumerated(def, strategy, given, pins, false, budget)?;
    let usual: BTreeSet<&Numbers> = usual.iter().collect();
    all.instances.retain(|i| !usual.contains(i));
    Ok(all)
}

/// The values that are tried of what an expression names; its own where it is no parameter.
pub(crate) fn tried(def: &Def, e: &Expr, known: &Numbers) -> Vec<i64> {
    let param = match &e.kind {
        ExprKind::Name(n) => def.params.iter().find(|p| p.name.text == *n),
        _ => None,
    };
    match param.and_then(|p| p.choices.as_ref()) {
        Some(choices) => values(choices, known),
        None => eval(e, known).into_iter().collect(),
    }
}

/// The condition against which pins of a strategy are.
pub(crate) fn against(def: &Def, given: &Numbers, pins: &Pins, mut budget: Budget) -> String {
    let Some(strategy) = def.strategy.as_deref() else { return String::new() };
    for (habits, what) in [(false, ""), (true, "not tried, because it is unusual: ")] {
        match enumerated(def, strategy, given, pins, habits, &mut budget) {
            Ok(all) if all.instances.is_empty() => {
                return match all.unmet {
                    Some(c) => format!("{what}{}", c.text),
                    None => "it has no values to choose".to_owned(),
                };
            }
            Ok(_) => {}
            Err(why) => return why.to_string(),
        }
    }
    "an instance like it was refused".to_owned()
}

/// The numbers in a condition of a strategy that the match and the machine give, as an error names
/// them.
fn known_in(def: &Def, given: &Numbers, is_named: &dyn Fn(&str) -> bool) -> Vec<String> {
    let operands = || def.inputs.iter().chain(&def.outputs);
    let machine = [
        (ast::MULTIPROCESSORS, "the multiprocessors of the GPU"),
        (ast::WIDEST_GROUP, "the most threads that execute one MMA instruction here"),
        (ast::BLOCK_SHARED, "the bytes of shared memory that a block can have"),
    ];
    let machine = machine.into_iter().filter(|(name, _)| is_named(name));
    let machine =
        machine.filter_map(|(name, what)| Some(format!("{name} = {}, {what}", given.get(name)?)));
    let known = def.params.iter().filter(|p| p.choices.is_none());
    let known = known.filter(|p| is_named(&p.name.text)).filter_map(|p| {
        let (name, n) = (&p.name.text, given.get(&p.name.text)?);
        let typed = |ty: &ResultType| match ty.attrs.first() {
            Some(TypeAttr::Scalar(s)) => s.text == *name,
            _ => false,
        };
        let of = operands().find(|(_, ty)| ty.as_ref().is_some_and(typed));
        Some(match of.filter(|_| p.is_type) {
            Some((operand, _)) => {
                format!("{name} = {n}, the bits of the type of %{}", operand.text)
            }
            None => format!("{name} = {n}"),
        })
    });
    known.chain(machine).collect()
}

/// The same, with what usually holds, or without.
fn enumerated(
    def: &Def,
    strategy: &Strategy,
    given: &Numbers,
    pins: &Pins,
    habits: bool,
    budget: &mut Budget,
) -> Result<Enumerated, Unpinned> {
    let conditions = conditions(def, strategy, pins, habits)?;
    // A pin may be another value than those that are tried.
    let stated = conditions.iter().filter_map(Condition::stated).map(|(name, n, _)| (name, n));
    // The first of several.
    let stated: BTreeMap<&str, i64> = stated.collect::<Vec<_>>().into_iter().rev().collect();
    let choices: Vec<(&str, &Choices)> = def
        .params
        .iter()
        .filter_map(|p| p.choices.as_ref().map(|c| (p.name.text.as_str(), c)))
        .collect();
    let (due, costs) = due(&conditions, &choices);
    // What is named where there is too much: the parameter of most values.
    let most = choices.iter().rev().max_by_key(|(_, all)| count(all, given)).map_or("", |c| c.0);
    let mut out = Enumerated::default();
    let mut ended = vec![0u64; conditions.len()];
    let mut known = given.clone();
    let mut check = |known: &Numbers, at: usize| -> bool {
        due[at].iter().all(|i| {
            let c = &conditions[*i];
            let (a, b) = (eval(&c.lhs, known), eval(&c.rhs, known));
            let ok = matches!((a, b), (Some(a), Some(b)) if c.op.holds(a, b));
            ended[*i] += u64::from(!ok);
            ok
        })
    };
    // Conditions are made ready, too.
    let ready = conditions.len() + choices.len();
    if budget.step(ready + costs[0], most) && check(&known, 0) {
        // Values that are left to try, of each parameter that is chosen.
        let mut stack: Vec<std::vec::IntoIter<i64>> = vec![];
        'all: loop {
            let depth = stack.len();
            if depth == choices.len() {
                if !budget.instance(most) || !budget.step(NAMED * known.len(), most) {
                    break;
                }
                out.instances.push(known.clone());
            } else {
                let (name, all) = choices[depth];
                let all = match stated.get(name) {
                    Some(n) => vec![*n],
                    None if budget.step(count(all, &known), most) => values(all, &known),
                    None => break,
                };
                stack.push(all.into_iter());
            }
            // On to the next value of the innermost parameter that has one.
            loop {
                let level = stack.len();
                match stack.last_mut().map(Iterator::next) {
                    Some(Some(v)) => {
                        known.insert(choices[level - 1].0.to_owned(), v);
                        if !budget.step(costs[level], most) {
                            break 'all;
                        }
                        if check(&known, level) {
                            break;
                        }
                    }
                    Some(None) => {
                        stack.pop();
                        known.remove(choices[level - 1].0);
                    }
                    None => break 'all,
                }
            }
        }
    }
    if out.instances.is_empty() {
        let met = conditions.iter().zip(&ended).filter(|(_, n)| **n > 0);
        let unmet = met.max_by_key(|(_, n)| **n);
        out.unmet = unmet.map(|(c, _)| c.unmet(def, given, &conditions));
    }
    Ok(out)
}

/// All conditions on the parameters: the pins of the text, the conditions of the strategy and, if
/// `habits`, its habits.
fn conditions<'a>(
    def: &'a Def,
    strategy: &'a Strategy,
    pins: &Pins,
    habits: bool,
) -> Result<Vec<Condition<'a>>, Unpinned> {
    if pins.strategy.as_ref().is_some_and(|s| *s != def.name.text) {
        return Err(Unpinned::Another);
    }
    let mut conditions: Vec<Condition<'_>> = vec![];
    for &(key, ref numbers) in &pins.attrs {
        conditions.extend(pinned_attr(strategy, key, numbers)?);
    }
    for (name, n) in &pins.values {
        if !def.params.iter().any(|p| p.name.text == *name && !p.is_type) {
            let chosen = def.params.iter().filter(|p| p.choices.is_some());
            let all: Vec<&str> = chosen.map(|p| p.name.text.as_str()).collect();
            return Err(Unpinned::NoParameter(name.clone(), or_none(&all)));
        }
        let pin = Pinned { key: Key::By, at: 0, of: 1 };
        conditions.push(Condition::pinned(pin, Expr::name(name), *n));
    }
    conditions.extend(strategy.conditions.iter().map(Condition::of));
    if habits {
        // A pin overrides a habit.
        let pinned = |c: &&Compare| match &c.lhs.kind {
            ExprKind::Name(name) => c.op == CmpOp::Eq && pins.values.iter().any(|(n, _)| n == name),
            _ => false,
        };
        conditions.extend(strategy.habits.iter().filter(|c| !pinned(c)).map(Condition::of));
    }
    Ok(conditions)
}

/// Conditions under which an attribute of the strategy has these numbers.
fn pinned_attr<'a>(
    strategy: &'a Strategy,
    key: Key,
    numbers: &[i64],
) -> Result<Vec<Condition<'a>>, Unpinned> {
    let alone = Pinned { key, at: 0, of: 1 };
    let tuple = match Attr::among(&strategy.attrs, key).map(|a| &a.value) {
        Some(AttrValue::Tuple(tuple)) => tuple,
        Some(AttrValue::Word(word)) if numbers.len() == 1 => {
            return Ok(vec![Condition::pinned(alone, Expr::name(word), numbers[0])]);
        }
        _ => return Err(Unpinned::NoAttribute(key)),
    };
    let own = leaves(tuple);
    if key == Key::Warps && numbers.len() == 1 && own.len() > 1 {
        let all = own.iter().map(|e| (*e).clone());
        let product =
            all.reduce(|a, b| Expr::bin(BinOp::Mul, a, b)).unwrap_or_else(|| Expr::int(1));
        return Ok(vec![Condition::pinned(alone, product, numbers[0])]);
    }
    if own.len() != numbers.len() {
        return Err(Unpinned::Count(key, numbers.len(), own.len()));
    }
    let of = own.len();
    let each = own.into_iter().zip(numbers).enumerate();
    Ok(each.map(|(at, (e, n))| Condition::pinned(Pinned { key, at, of }, e.clone(), *n)).collect())
}

/// The conditions to check after each number of chosen parameters, and the steps that this takes. A
/// condition is checked as soon as the last of its names is known.
fn due(
    conditions: &[Condition<'_>],
    choices: &[(&str, &Choices)],
) -> (Vec<Vec<usize>>, Vec<usize>) {
    let level: HashMap<&str, usize> =
        choices.iter().enumerate().map(|(i, (name, _))| (*name, i + 1)).collect();
    let mut due: Vec<Vec<usize>> = vec![vec![]; choices.len() + 1];
    let mut costs = vec![1usize; choices.len() + 1];
    for (i, c) in conditions.iter().enumerate() {
        let (mut last, mut cost) = (0, 0);
        for e in [&*c.lhs, &*c.rhs] {
            each(e, &mut |e| {
                cost += 1;
                if let ExprKind::Name(name) = &e.kind {
                    last = last.max(level.get(name.as_str()).copied().unwrap_or(0));
                }
            });
        }
        due[last].push(i);
        costs[last] += cost;
    }
    (due, costs)
}

/// Looks at an expression and all that it is made of.
fn each<'a>(e: &'a Expr, look: &mut dyn FnMut(&'a Expr)) {
    let mut todo = vec![e];
    while let Some(e) = todo.pop() {
        look(e);
        match &e.kind {
            ExprKind::Bin(_, a, b) => todo.extend([&**a, &**b]),
            ExprKind::Neg(a) | ExprKind::Sqrt(a) => todo.push(a),
            ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Name(_) => {}
        }
    }
}

/// Whether an expression names a number.
pub(super) fn names(e: &Expr, name: &str) -> bool {
    let mut found = false;
    each(e, &mut |e| found |= matches!(&e.kind, ExprKind::Name(n) if n == name));
    found
}

/// Steps that it takes to find the values of a parameter: at least as many as there are.
fn count(choices: &Choices, known: &Numbers) -> usize {
    match choices {
        Choices::Among(tuple) => {
            let mut n = 0;
            leaves(tuple).into_iter().for_each(|e| each(e, &mut |_| n += 1));
            n
        }
        Choices::Range { start, end, .. } => {
            let n = eval(start, known).zip(eval(end, known)).map(|(a, b)| b.saturating_sub(a));
            usize::try_from(n.unwrap_or(0)).unwrap_or(0).min(MOST_VALUES) + 1
        }
    }
}

/// The values of a parameter, where others are known.
fn values(choices: &Choices, known: &Numbers) -> Vec<i64> {
    match choices {
        Choices::Among(tuple) => {
            let mut seen = BTreeSet::new();
            let all = leaves(tuple).into_iter().filter_map(|e| eval(e, known));
            all.filter(|v| seen.insert(*v)).collect()
        }
        Choices::Range { start, end, step } => {
            let step = step.as_ref().map_or(Some(1), |e| eval(e, known)).unwrap_or(0);
            let (Some(start), Some(end)) = (eval(start, known), eval(end, known)) else {
                return vec![];
            };
            if step < 1 {
                return vec![];
            }
            let mut all = vec![];
            let mut at = start;
            while at < end && all.len() < MOST_VALUES {
                all.push(at);
                match at.checked_add(step) {
                    Some(next) => at = next,
                    None => break,
                }
            }
            all
        }
    }
}
