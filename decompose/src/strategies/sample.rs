//! Writes small programs that test a strategy ([`Sample`]): its meaning, with operations in place
//! of its sub-specs, and sizes and parameters that its conditions allow.

use super::params::{self, Budget, Pins};
use crate::numbers::Numbers;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::visit::Walk;
use carbyne_ir::ast::{
    self, Call, Def, Expr, ExprKind, Operand, ResultType, StmtKind, TupleExpr, TypeAttr,
};
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A program that one strategy decomposes with certain parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The strategy and its parameters, in the form of `by=`.
    pub by: String,
    /// The program, whose kernel is pinned to them.
    pub text: String,
    /// The number of multiprocessors. It is small in some samples, so that blocks take several
    /// tiles.
    pub sms: i64,
    /// Sizes, types and multiprocessors: `M=64, E=f16, SMS=2`.
    pub given: String,
}

/// Elements of the largest operand, at most.
const LARGEST: i64 = 1 << 18;

/// Extents that are tried.
const EXTENTS: &[i64] = &[64, 128, 32, 256, 16, 512, 96, 8, 1024, 4096];

/// Extents that are tried where there is but one: several tiles for each block.
const LENGTHS: &[i64] = &[4096, 256, 16384, 64, 1024, 96, 65536, 512, 32, 128];

/// Extents that are tried where a strategy takes none of these: rows of them begin anywhere.
const ODD: &[i64] = &[131, 72, 133, 66, 257, 130, 64, 100];

/// The same of strategies for long rows.
const LONG: &[i64] = &[3, 33003, 2, 32776];

/// Types that are tried for the first operand and what else has a parameter, accumulators last.
const TYPES: &[(Scalar, Scalar)] = &[
    (Scalar::F16, Scalar::F32),
    (Scalar::F32, Scalar::F32),
    (Scalar::Bf16, Scalar::F32),
    (Scalar::F64, Scalar::F64),
    (Scalar::I32, Scalar::I32),
];

/// Types that are tried where a strategy takes too few of these.
const MORE_TYPES: &[(Scalar, Scalar)] = &[(Scalar::E4m3, Scalar::F32), (Scalar::Tf32, Scalar::F32)];

/// Samples of integers, the last of the types: most strategies are for floats.
const MOST_OF_INTEGERS: usize = 2;

/// Programs of one type that are none, until no more of it are tried.
const MOST_MALFORMED: usize = 128;

impl super::library::Strategies {
    /// Makes at most `most` programs for an architecture that the strategy with this name should
    /// decompose. They differ in sizes, types, parameters and in the operations that stand for the
    /// sub-specs of the strategy.
    ///
    /// # Errors
    /// X0010, at the place of the strategy, if its parameters have too many combinations.
    pub fn samples(
        &self,
        name: &str,
        table: &AtomTable,
        most: usize,
    ) -> Result<Vec<Sample>, Box<Diagnostic>> {
        let Some((def, _)) = self.iter().find(|(def, _)| def.name.text == name) else {
            return Ok(vec![]);
        };
        let mut budget = Budget::of_samples(self.theirs(name));
        for extents in [EXTENTS, ODD, LONG] {
            let found = samples_of(def, table, most, extents, &mut budget);
            budget.check(def.span)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(vec![])
    }
}

/// Samples with these extents, where a strategy has several.
fn samples_of(
    def: &Def,
    table: &AtomTable,
    most: usize,
    extents: &[i64],
    budget: &mut Budget,
) -> Vec<Sample> {
    let sms = carbyne_atoms::machine(table.arch).sms;
    let Some(strategy) = &def.strategy else { return vec![] };
    let shapes: Vec<&str> = def
        .params
        .iter()
        .filter(|p| p.choices.is_none() && !p.is_type)
        .map(|p| p.name.text.as_str())
        .filter(|name| !is_stride(def, name))
        .collect();
    let extents = if shapes.len() == 1 { LENGTHS } else { extents };
    let mut out: Vec<Sample> = vec![];
    // Fewer of each when there are many sizes; floats again where other types have not as many.
    let again = &TYPES[..TYPES.len() - 1];
    let turns: Vec<_> = TYPES.iter().chain(again).chain(MORE_TYPES).collect();
    for (turn, (scalar, wide)) in turns.iter().enumerate() {
        let types = types(def, *scalar, *wide);
        let (mut of_type, mut malformed) = (0, 0);
        let left = TYPES.len().saturating_sub(turn).max(1);
        let room = (most.saturating_sub(out.len()) / left).max(1);
        let room = if turn + 1 == TYPES.len() { room.min(MOST_OF_INTEGERS) } else { room };
        // Each type begins with other sizes.
        let all = extents.len().pow(shapes.len().min(3) as u32);
        for at in (0..all).map(|i| (i + turn * all * 2 / 5) % all) {
            if of_type >= room || out.len() >= most || malformed >= MOST_MALFORMED {
                break;
            }
            if budget.is_over() {
                return vec![];
            }
            // Sizes in an order in which all of them are soon met.
            let mut given = Numbers::new();
            for (i, name) in shapes.iter().enumerate() {
                let digit = at / extents.len().pow(i.min(2) as u32) % extents.len();
                given.insert((*name).to_owned(), extents[digit]);
            }
            for (name, scalar) in &types {
                given.insert(name.clone(), scalar.bits());
            }
            // Which operands have their columns consecutive.
            let turned = at * 5 / 3;
            for (i, (_, ty)) in def.inputs.iter().enumerate() {
                laid_out(ty.as_ref(), turned >> i & 1 == 1, &mut given);
            }
            for (_, ty) in &def.outputs {
                laid_out(ty.as_ref(), false, &mut given);
            }
            if !small(def, &given) {
                continue;
            }
            // Two instances, others for other sizes: one for a small machine, whose blocks take
            // several tiles, one for the card.
            let few = [1, 1, 2, 3][at % 4];
            for (sms, spread) in [(few, 7), (sms, 13)] {
                params::of_machine(&mut given, table, sms);
                budget.renew();
                let all = params::enumerate(def, strategy, &given, &Pins::default(), budget);
                let Some(instances) = all.ok().map(|all| all.instances) else { continue };
                let Some(numbers) = instances.get(at * spread % instances.len().max(1)) else {
                    continue;
                };
                for chain in 0..2 {
                    if let Some(text) = text(def, &given, &types, numbers, chain)
                        && out.iter().all(|s| s.text != text)
                        && of_type < room
                    {
                        if !is_well_formed(&text) {
                            malformed += 1;
                            continue;
                        }
                        let by = by(def, numbers);
                        let given = said(&shapes, &given, &types, sms);
                        out.push(Sample { by, text, sms, given });
                        of_type += 1;
                    }
                }
            }
        }
    }
    out
}

/// Whether what a strategy means is a program with these sizes and types: the exponential of an
/// integer is none.
fn is_well_formed(text: &str) -> bool {
    let module = carbyne_ir::text::parse(text);
    module.is_ok_and(|module| crate::checked(&module, text).is_ok())
}

/// Sizes, types and the machine of a sample.
fn said(shapes: &[&str], given: &Numbers, types: &BTreeMap<String, Scalar>, sms: i64) -> String {
    let sizes = shapes.iter().filter_map(|name| Some(format!("{name}={}", given.get(*name)?)));
    let types = types.iter().map(|(name, scalar)| format!("{name}={scalar}"));
    let all: Vec<String> =
        sizes.chain(types).chain([format!("{}={sms}", ast::MULTIPROCESSORS)]).collect();
    all.join(", ")
}

/// What stands for type parameters: that of accumulators, which `acc=` names, and of values that
/// sub-specs give, is wide.
fn types(def: &Def, scalar: Scalar, wide: Scalar) -> BTreeMap<String, Scalar> {
    let operand = |name: &str| {
        def.inputs.iter().chain(&def.outputs).any(|(_, ty)| {
            let first = ty.as_ref().and_then(|ty| ty.attrs.first());
            matches!(first, Some(TypeAttr::Scalar(n)) if n.text == name)
        })
    };
    let of = |p: &ast::Param| {
        let name = p.name.text.clone();
        let own = if operand(&name) { scalar } else { wide };
        (name, own)
    };
    def.params.iter().filter(|p| p.is_type).map(of).collect()
}

fn strides(ty: Option<&ResultType>) -> impl Iterator<Item = &TupleExpr> {
    ty.into_iter().flat_map(|ty| &ty.levels).flat_map(|l| l.strides.iter().flatten())
}

/// Whether a parameter is what operands lie by.
fn is_stride(def: &Def, name: &str) -> bool {
    let is = |t: &TupleExpr| match t {
        TupleExpr::Leaf(Expr { kind: ExprKind::Name(n), .. }) => n == name,
        _ => false,
    };
    def.inputs.iter().chain(&def.outputs).any(|(_, ty)| strides(ty.as_ref()).any(is))
}

/// Gives the strides of an operand that names them numbers: its last mode is consecutive, or its
/// first.
fn laid_out(ty: Option<&ResultType>, turned: bool, given: &mut Numbers) {
    let Some(own) = extents(ty, given) else { return };
    let mut order: Vec<usize> = (0..own.len()).collect();
    if !turned {
        order.reverse();
    }
    let mut step = 1i64;
    let mut all = vec![0; own.len()];
    for m in order {
        all[m] = step;
        step = step.saturating_mul(own[m]);
    }
    for (stride, n) in strides(ty).zip(all) {
        if let TupleExpr::Leaf(Expr { kind: ExprKind::Name(name), .. }) = stride {
            given.insert(name.clone(), n);
        }
    }
}

fn extents(ty: Option<&ResultType>, given: &Numbers) -> Option<Vec<i64>> {
    let modes = ty?.levels.iter().flat_map(|l| &l.modes);
    modes
        .map(|m| match m {
            TupleExpr::Leaf(Expr { kind: ExprKind::Name(n), .. }) => given.get(n).copied(),
            TupleExpr::Leaf(Expr { kind: ExprKind::Int(n), .. }) => Some(*n),
            _ => None,
        })
        .collect()
}

/// Whether no operand has too many elements.
fn small(def: &Def, given: &Numbers) -> bool {
    def.inputs.iter().chain(&def.outputs).all(|(_, ty)| {
        extents(ty.as_ref(), given).is_some_and(|e| {
            e.iter().try_fold(1i64, |n, e| n.checked_mul(*e)).is_some_and(|n| n <= LARGEST)
        })
    })
}

fn by(def: &Def, numbers: &Numbers) -> String {
    let chosen = def.params.iter().filter(|p| p.choices.is_some());
    let values =
        chosen.filter_map(|p| Some(format!("{}={}", p.name.text, numbers.get(&p.name.text)?)));
    let values: Vec<String> = values.collect();
    match &values[..] {
        [] => format!("@{}", def.name.text),
        values => format!("@{}[{}]", def.name.text, values.join(", ")),
    }
}

fn list(extents: &[i64]) -> String {
    extents.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// The program.
fn text(
    def: &Def,
    given: &Numbers,
    types: &BTreeMap<String, Scalar>,
    numbers: &Numbers,
    chain: usize,
) -> Option<String> {
    let first = def.outputs.first()?;
    let result = first.1.as_ref()?;
    let mut out = format!("carbyne 2\n\n{}", operands(def, given, types)?);
    let kind = scalar(result, types)?;
    let mut body = Body {
        def,
        given,
        result: &first.0.text,
        own: extents(Some(result), given)?,
        kind,
        chain,
        more: vec![],
        text: String::new(),
    };
    for stmt in Walk::new(&def.means.as_ref()?.stmts).stmts() {
        match &stmt.kind {
            StmtKind::Call(call) => body.call(call)?,
            _ => body.other(stmt, types)?,
        }
    }
    let mut inputs: Vec<String> = def.inputs.iter().map(|(n, _)| format!("%{}", n.text)).collect();
    for (name, extents) in &body.more {
        let _ = writeln!(out, "%{name}:[{}].{kind}.GL", list(extents));
        inputs.push(format!("%{name}"));
    }
    let outputs: Vec<String> = def.outputs.iter().map(|(n, _)| format!("%{}", n.text)).collect();
    let _ = write!(
        out,
        "\nSpec @sample ({}) -> ({}) by={} means {{\n{}}}\n",
        inputs.join(", "),
        outputs.join(", "),
        by(def, numbers),
        body.text
    );
    Some(out)
}

/// The type of a formal operand.
fn scalar(ty: &ResultType, types: &BTreeMap<String, Scalar>) -> Option<Scalar> {
    match ty.attrs.first() {
        Some(TypeAttr::Scalar(n)) => types.get(&n.text).copied(),
        _ => ty.scalar,
    }
}

/// The declarations of the operands of a strategy.
fn operands(def: &Def, given: &Numbers, types: &BTreeMap<String, Scalar>) -> Option<String> {
    let mut out = String::new();
    for (name, ty) in def.inputs.iter().chain(&def.outputs) {
        let ty = ty.as_ref()?;
        let own = list(&extents(Some(ty), given)?);
        let by: Option<Vec<i64>> = strides(Some(ty))
            .map(|t| match t {
                TupleExpr::Leaf(Expr { kind: ExprKind::Name(n), .. }) => given.get(n).copied(),
                TupleExpr::Leaf(Expr { kind: ExprKind::Int(n), .. }) => Some(*n),
                _ => None,
            })
            .collect();
        let own = match by?.as_slice() {
            [] => own,
            by => format!("({own}):({})", list(by)),
        };
        let _ = writeln!(out, "%{}:[{own}].{}.GL", name.text, scalar(ty, types)?);
    }
    Some(out)
}

/// The `means` block of a sample.
struct Body<'a> {
    def: &'a Def,
    given: &'a Numbers,
    /// The first output: its name, extents and type.
    result: &'a str,
    own: Vec<i64>,
    kind: Scalar,
    chain: usize,
    /// Operands that chains read beside those of the strategy.
    more: Vec<(String, Vec<i64>)>,
    text: String,
}

impl Body<'_> {
    /// The extents of a row of the result.
    fn row(&self) -> Vec<i64> {
        let own = &self.own;
        own.iter().enumerate().map(|(i, e)| if i + 1 == own.len() { *e } else { 1 }).collect()
    }

    /// The modes of an operand that have several elements and one in the result.
    fn reduced(&self, from: &str) -> Vec<i64> {
        let mut inputs = self.def.inputs.iter();
        let ty = inputs.find(|(name, _)| name.text == from).and_then(|(_, ty)| ty.as_ref());
        let modes = extents(ty, self.given).unwrap_or_default();
        let modes = modes.iter().zip(&self.own).enumerate();
        modes.filter(|(_, (n, left))| n != left && **left == 1).map(|(i, _)| i as i64).collect()
    }

    /// Copies a statement that uses no sub-spec.
    fn other(&mut self, stmt: &ast::Stmt, types: &BTreeMap<String, Scalar>) -> Option<()> {
        let mut stmt = stmt.clone();
        let mut by = ast::Substitution { budget: 1 << 16, ..ast::Substitution::default() };
        by.types = types.iter().map(|(n, s)| (n.clone(), *s)).collect();
        by.head(&mut stmt).ok()?;
        let module = ast::Module { header: vec![], items: vec![stmt], footer: vec![] };
        let printed = carbyne_ir::text::print(&module);
        self.text.push_str(printed.strip_prefix("carbyne 2\n")?);
        Some(())
    }

    /// Writes a statement in place of a use of a sub-spec.
    fn call(&mut self, call: &Call) -> Option<()> {
        let (chain, mut body) = (self.chain, String::new());
        let [to] = &call.outputs[..] else { return None };
        let from = call.inputs.iter().find_map(|o| match o {
            Operand::View(view) => Some(view.base.text.clone()),
            Operand::Number(_) | Operand::Value(_) => None,
        });
        let declared = call.declared.first().and_then(Option::as_ref);
        let made = extents(declared, self.given);
        let last = to.base.text == self.result;
        let to = &to.base.text;
        match (from, made) {
            (Some(from), Some(made)) if call.inputs.len() == 1 && made.contains(&1) => {
                let axes: Vec<i64> =
                    (0..made.len() as i64).filter(|i| made[*i as usize] == 1).collect();
                let axes = if axes.len() == 1 { list(&axes) } else { format!("({})", list(&axes)) };
                let op = if chain == 0 { "sum" } else { "max" };
                let _ = writeln!(body, "  %{to} = {op}(%{from}, axis={axes})");
            }
            (Some(from), None) if last && !self.reduced(&from).is_empty() => {
                let axes = self.reduced(&from);
                let axes = if axes.len() == 1 { list(&axes) } else { format!("({})", list(&axes)) };
                let factor = match chain {
                    0 => String::new(),
                    _ => format!(" * max(%{from}, axis={axes})"),
                };
                let _ = writeln!(body, "  %{to} = sum(%{from}{factor}, axis={axes})");
            }
            (Some(from), _) if chain == 0 || (self.kind == Scalar::I32 && !last) => {
                let _ = writeln!(body, "  %{to} = move(%{from})");
            }
            (Some(from), _) if last => {
                self.more.push(("row".to_owned(), self.row()));
                let _ = writeln!(body, "  %{to} = relu(%{from} + %row)");
            }
            (Some(from), _) => {
                let _ = writeln!(body, "  %{to} = %{from} * %{from}");
            }
            (None, _) if chain == 0 => {
                self.more.push(("first".to_owned(), self.own.clone()));
                let _ = writeln!(body, "  %{to} = move(%first)");
            }
            (None, _) => {
                self.more.push(("first".to_owned(), self.own.clone()));
                self.more.push(("row".to_owned(), self.row()));
                let _ = writeln!(body, "  %{to} = max(%first * %row, %first)");
            }
        }
        self.text.push_str(&body);
        Some(())
    }
}
