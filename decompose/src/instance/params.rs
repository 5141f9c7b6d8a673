//! Values of a strategy's parameters: all that its conditions and the pins of the text allow.

use carbyne_atoms::AtomTable;
use carbyne_ir::ast::{
    self, AttrValue, BinOp, Choices, Chosen, CmpOp, Compare, Def, Expr, ExprKind, ResultType,
    SpecKind, Strategy, TupleExpr, TypeAttr,
};
use carbyne_ir::text;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers by name.
pub(crate) type Numbers = BTreeMap<String, i64>;

/// Most instances of one strategy that are enumerated, so that no text makes this endless.
const MOST: usize = 100_000;

/// What became of the enumeration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Enumerated {
    /// Parameters and what the match gave, by name.
    pub instances: Vec<Numbers>,
    /// How many branches each condition ended, as it is written; in the order in which they were met.
    pub ended: Vec<(String, u64)>,
    /// Whether there were more.
    pub cut_off: bool,
    /// Whether those that are not usual are left out.
    pub usual: bool,
}

/// The value of an expression; none where a name is unknown, a number no integer, or too large.
pub(crate) fn eval(e: &Expr, known: &Numbers) -> Option<i64> {
    // Operators and operands in postfix order, so that no text nests too deep.
    enum Todo<'a> {
        Visit(&'a Expr),
        Bin(BinOp),
        Neg,
    }
    let (mut todo, mut done) = (vec![Todo::Visit(e)], vec![]);
    while let Some(next) = todo.pop() {
        match next {
            Todo::Visit(e) => match &e.kind {
                ExprKind::Int(n) => done.push(*n),
                ExprKind::Name(name) => done.push(*known.get(name)?),
                ExprKind::Real(_) | ExprKind::Sqrt(_) => return None,
                ExprKind::Neg(a) => todo.extend([Todo::Neg, Todo::Visit(a)]),
                ExprKind::Bin(op, a, b) => {
                    todo.extend([Todo::Bin(*op), Todo::Visit(b), Todo::Visit(a)]);
                }
            },
            Todo::Neg => {
                let a = done.pop()?;
                done.push(a.checked_neg()?);
            }
            Todo::Bin(op) => {
                let (b, a) = (done.pop()?, done.pop()?);
                done.push(binary(op, a, b)?);
            }
        }
    }
    done.pop()
}

fn binary(op: BinOp, a: i64, b: i64) -> Option<i64> {
    let floor = |a: i64, b: i64| {
        let q = a.checked_div(b)?;
        if a % b != 0 && (a < 0) != (b < 0) { q.checked_sub(1) } else { Some(q) }
    };
    match op {
        BinOp::Add => a.checked_add(b),
        BinOp::Sub => a.checked_sub(b),
        BinOp::Mul => a.checked_mul(b),
        BinOp::Div => floor(a, b),
        BinOp::Mod => a.checked_sub(floor(a, b)?.checked_mul(b)?),
        BinOp::Min => Some(a.min(b)),
        BinOp::Max => Some(a.max(b)),
        BinOp::CeilDiv => floor(a.checked_add(b.checked_sub(1)?)?, b),
    }
}

fn holds(op: CmpOp, a: i64, b: i64) -> bool {
    match op {
        CmpOp::Lt => a < b,
        CmpOp::Le => a <= b,
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
        CmpOp::Ge => a >= b,
        CmpOp::Gt => a > b,
    }
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
struct Condition {
    lhs: Expr,
    op: CmpOp,
    rhs: Expr,
    text: String,
    /// Whether the text that is decomposed demands it.
    pin: bool,
}

/// What `tile=`, `warps=` and `by=` of a text demand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins {
    /// Attributes that the strategy must give, with these numbers.
    pub attrs: Vec<(String, Vec<i64>)>,
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
    #[error("it has no parameter `{0}`, but {1}")]
    NoParameter(String, String),
    #[error("it says nothing of `{0}=`")]
    NoAttribute(String),
    #[error("`{0}=` has {1} numbers, not {2}")]
    Count(String, usize, usize),
    #[error("it is another one")]
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
) -> Result<Enumerated, Unpinned> {
    let usual = enumerated(def, strategy, given, pins, true)?;
    // Where pins alone exclude what is usual, another match may have it.
    let none = || {
        let free = Pins { values: vec![], attrs: vec![], ..pins.clone() };
        enumerated(def, strategy, given, &free, true).map(|all| all.instances.is_empty())
    };
    match usual.instances.is_empty() && !strategy.habits.is_empty() && none()? {
        true => enumerated(def, strategy, given, pins, false),
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
    pins: &Pins,
    usual: &[Numbers],
) -> Result<Enumerated, Unpinned> {
    let mut all = enumerated(def, strategy, given, pins, false)?;
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
pub(crate) fn against(def: &Def, given: &Numbers, pins: &Pins) -> String {
    let Some(strategy) = def.strategy.as_deref() else { return String::new() };
    let most = |all: &Enumerated| all.ended.iter().max_by_key(|(_, n)| *n).map(|(c, _)| c.clone());
    for (habits, what) in [(false, "no values satisfy"), (true, "not tried, as it is not usual:")] {
        match enumerated(def, strategy, given, pins, habits) {
            Ok(all) if all.instances.is_empty() => {
                return match most(&all) {
                    Some(c) => format!("{what} `{c}`"),
                    None => "it has no values to choose".to_owned(),
                };
            }
            Ok(_) => {}
            Err(why) => return why.to_string(),
        }
    }
    "an instance like it was refused".to_owned()
}

/// That nothing satisfies a condition of a strategy, with the numbers in it that the match gives.
pub(crate) fn unsatisfied(def: &Def, given: &Numbers, condition: &str) -> String {
    let words: BTreeSet<&str> =
        condition.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let operands = || def.inputs.iter().chain(&def.outputs);
    let known = def.params.iter().filter(|p| p.choices.is_none());
    let known = known.filter(|p| words.contains(p.name.text.as_str())).filter_map(|p| {
        let (name, n) = (&p.name.text, given.get(&p.name.text)?);
        let typed = |ty: &ResultType| matches!(ty.attrs.first(), Some(TypeAttr::Scalar(s)) if s.text == *name);
        let of = operands().find(|(_, ty)| ty.as_ref().is_some_and(typed));
        Some(match of.filter(|_| p.is_type) {
            Some((operand, _)) => format!("{name} = {n}, the bits of the type of %{}", operand.text),
            None => format!("{name} = {n}"),
        })
    });
    let known: Vec<String> = known.collect();
    match &known[..] {
        [] => format!("no values of its parameters satisfy `{condition}`"),
        known => {
            format!("no values of its parameters satisfy `{condition}`: {}", known.join(", "))
        }
    }
}

/// The same, with what usually holds, or without.
fn enumerated(
    def: &Def,
    strategy: &Strategy,
    given: &Numbers,
    pins: &Pins,
    habits: bool,
) -> Result<Enumerated, Unpinned> {
    let mut conditions: Vec<Condition> = vec![];
    let of = |c: &Compare| Condition {
        lhs: c.lhs.clone(),
        op: c.op,
        rhs: c.rhs.clone(),
        text: format!("{} {} {}", text::print_number(&c.lhs), c.op, text::print_number(&c.rhs)),
        pin: false,
    };
    if pins.strategy.as_ref().is_some_and(|s| *s != def.name.text) {
        return Err(Unpinned::Another);
    }
    for (key, numbers) in &pins.attrs {
        let attr = strategy.attrs.iter().find(|a| a.key.text == *key);
        let Some(AttrValue::Tuple(tuple)) = attr.map(|a| &a.value) else {
            match attr.map(|a| &a.value) {
                Some(AttrValue::Word(word)) if numbers.len() == 1 => {
                    conditions.push(pinned(key, Expr::name(word), numbers[0]));
                    continue;
                }
                _ => return Err(Unpinned::NoAttribute(key.clone())),
            }
        };
        let own = leaves(tuple);
        if key == "warps" && numbers.len() == 1 && own.len() > 1 {
            let all = own.iter().map(|e| (*e).clone());
            let product =
                all.reduce(|a, b| Expr::bin(BinOp::Mul, a, b)).unwrap_or_else(|| Expr::int(1));
            conditions.push(pinned(key, product, numbers[0]));
            continue;
        }
        if own.len() != numbers.len() {
            return Err(Unpinned::Count(key.clone(), numbers.len(), own.len()));
        }
        for (e, n) in own.into_iter().zip(numbers) {
            conditions.push(pinned(key, e.clone(), *n));
        }
    }
    for (name, n) in &pins.values {
        if !def.params.iter().any(|p| p.name.text == *name && !p.is_type) {
            let chosen = def.params.iter().filter(|p| p.choices.is_some());
            let all: Vec<&str> = chosen.map(|p| p.name.text.as_str()).collect();
            return Err(Unpinned::NoParameter(name.clone(), or_none(&all)));
        }
        conditions.push(pinned("by", Expr::name(name), *n));
    }
    conditions.extend(strategy.conditions.iter().map(of));
    if habits {
        // What is pinned is not what it usually is.
        let pinned = |c: &&Compare| match &c.lhs.kind {
            ExprKind::Name(name) => c.op == CmpOp::Eq && pins.values.iter().any(|(n, _)| n == name),
            _ => false,
        };
        conditions.extend(strategy.habits.iter().filter(|c| !pinned(c)).map(of));
    }
    // A pin may be another value than those that are tried.
    let stated = |name: &str| {
        conditions.iter().find_map(|c| match &c.lhs.kind {
            ExprKind::Name(n) if n == name && c.pin => eval(&c.rhs, &Numbers::new()),
            _ => None,
        })
    };
    let stated: BTreeMap<&str, i64> = def
        .params
        .iter()
        .filter_map(|p| Some((p.name.text.as_str(), stated(&p.name.text)?)))
        .collect();
    // Each condition is looked at as soon as the last of its names is known.
    let choices: Vec<(&str, &Choices)> = def
        .params
        .iter()
        .filter_map(|p| p.choices.as_ref().map(|c| (p.name.text.as_str(), c)))
        .collect();
    let mut due: Vec<Vec<usize>> = vec![vec![]; choices.len() + 1];
    for (i, c) in conditions.iter().enumerate() {
        let named = |name: &str| names(&c.lhs, name) || names(&c.rhs, name);
        let last = choices.iter().rposition(|(name, _)| named(name));
        due[last.map_or(0, |l| l + 1)].push(i);
    }
    let mut out = Enumerated::default();
    let mut ended = vec![0u64; conditions.len()];
    let mut known = given.clone();
    let mut check = |known: &Numbers, at: usize| -> bool {
        due[at].iter().all(|i| {
            let c = &conditions[*i];
            let (a, b) = (eval(&c.lhs, known), eval(&c.rhs, known));
            let ok = matches!((a, b), (Some(a), Some(b)) if holds(c.op, a, b));
            ended[*i] += u64::from(!ok);
            ok
        })
    };
    if check(&known, 0) {
        // Values that are left to try, of each parameter that is chosen.
        let mut stack: Vec<std::vec::IntoIter<i64>> = vec![];
        let mut steps = 0usize;
        loop {
            let depth = stack.len();
            if depth == choices.len() {
                out.instances.push(known.clone());
                if out.instances.len() >= MOST {
                    out.cut_off = true;
                    break;
                }
            } else {
                let (name, all) = choices[depth];
                let all = match stated.get(name) {
                    Some(n) => vec![*n],
                    None => values(all, &known),
                };
                stack.push(all.into_iter());
            }
            // On to the next value of the innermost parameter that has one.
            let mut moved = false;
            while let Some(next) = stack.last_mut().map(Iterator::next) {
                match next {
                    Some(v) => {
                        steps += 1;
                        let level = stack.len();
                        known.insert(choices[level - 1].0.to_owned(), v);
                        if check(&known, level) {
                            moved = true;
                            break;
                        }
                    }
                    None => {
                        stack.pop();
                        if let Some((name, _)) = choices.get(stack.len()) {
                            known.remove(*name);
                        }
                    }
                }
                if steps > 20 * MOST {
                    out.cut_off = true;
                    stack.clear();
                }
            }
            if !moved {
                break;
            }
        }
    }
    let met = conditions.iter().zip(&ended).filter(|(_, n)| **n > 0);
    out.ended = met.map(|(c, n)| (c.text.clone(), *n)).collect();
    Ok(out)
}

fn pinned(key: &str, lhs: Expr, n: i64) -> Condition {
    let text = format!("`{key}=` asks for {} == {n}", text::print_number(&lhs));
    Condition { text, lhs, op: CmpOp::Eq, rhs: Expr::int(n), pin: true }
}

/// Whether an expression names a number.
pub(super) fn names(e: &Expr, name: &str) -> bool {
    let mut todo = vec![e];
    while let Some(e) = todo.pop() {
        match &e.kind {
            ExprKind::Name(n) if n == name => return true,
            ExprKind::Bin(_, a, b) => todo.extend([&**a, &**b]),
            ExprKind::Neg(a) | ExprKind::Sqrt(a) => todo.push(a),
            ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Name(_) => {}
        }
    }
    false
}

/// The values of a parameter, where others are known.
fn values(choices: &Choices, known: &Numbers) -> Vec<i64> {
    match choices {
        Choices::Among(tuple) => {
            let mut all: Vec<i64> = vec![];
            for v in leaves(tuple).into_iter().filter_map(|e| eval(e, known)) {
                if !all.contains(&v) {
                    all.push(v);
                }
            }
            all
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
            while at < end && all.len() < 4096 {
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
