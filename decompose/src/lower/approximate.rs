//! Replaces operations on tiles by cheaper ones ([`apply`]) whose additional error disappears when
//! the result is rounded to a narrower type; [`precision`] decides where it does.
//!
//! Rewrites, with L for log2(e) and c for a positive constant:
//! - exp(x − y), x being computed of a product of matrices, becomes exp2(x·L − y·L), where the
//!   compiler makes one fused multiply-add of the first product and the difference. The other
//!   product is one for each element of y, which are few if y is a maximum of rows.
//! - If x = c·z, or z / c, x is left out: exp2(z·(c·L) − y·L). The other readers of x must be
//!   maxima and minima, for which max(c·z) = c·max(z), exactly and rounding included, or selections
//!   between x and −inf, in which z takes the place of x.
//! - x / y, where each element of y divides several and x is added up of products of matrices,
//!   becomes x·(1/y).
//! - 1 / y becomes the reciprocal of y, which is rounded alike, so that this is always done.
//!
//! Law: the results are the same, rounding aside. The relative error of the exponential from x and
//! y is at most 2⁻²³·(|x| + 1.5·|y|), and that of exp2; −inf stays −inf, and −inf − −inf stays NaN.
//! A quotient takes subnormal divisors for zeros, as instructions that approximate do.
//!
//! The first three rewrites apply where [`Precision::hides`] that error, for operands up to ±89. A
//! kernel that has a constant beyond 10⁴, such as a mask of -1e9, keeps its exponentials.
//! `math=exact` and atoms that are pinned keep their operations.

use crate::access::ops;
use crate::access::precision;
use crate::access::precision::{Flow, Precision};
use crate::build;
use crate::names::Names;
use crate::origins::inherit;
use carbyne_ir::ast::visit::{self, Rewriter};
use carbyne_ir::ast::{
    BinaryOp, Module, NodeKey, Operand as Written, ReduceOp, Spec, SpecKind, Stmt, StmtKind,
    UnaryOp, View,
};
use carbyne_ir::program::{self, BufferId, Operand, Program, SpecId, TensorId};
use carbyne_ir::scalar::{Memory, Scalar};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One ulp of binary32 at 1.
const ULP: f64 = 1.0 / 8_388_608.0;
/// The error of the exponential of operands up to ±89, that of exp2 included.
const EXPONENTIAL: f64 = (2.5 * 89.0 + 2.0) * ULP;
/// The error of a product by an approximate reciprocal.
const BY_RECIPROCAL: f64 = 2.0 * ULP;
/// Constants beyond are no scores but marks, such as -1e9 where a mask hides one: differences of
/// equal ones must be 0.
const MARK: f64 = 1e4;
/// Factors beyond, or below its reciprocal, may leave the range.
const LARGE: f64 = 1e38;

/// The module with such operations; none where there are none. `p` is what it resolves to.
pub(crate) fn apply(tree: &Module, p: &Program, names: &mut Names) -> Option<Module> {
    let mut changes = BTreeMap::new();
    for &kernel in &p.kernels {
        let flow = precision::flow(p, kernel);
        let precision = flow.precision(kernel);
        let tiles: BTreeSet<SpecId> = ops::collect(p, kernel).iter().map(|op| op.spec).collect();
        if tiles.is_empty() {
            continue;
        }
        let mut places = BTreeMap::new();
        let body = p.specs[kernel].body.as_deref().unwrap_or(&[]);
        let mut blocks = 0;
        place(p, body, &mut blocks, &mut places);
        Finder { p, flow: &flow, precision: &precision, tiles: &tiles, places, out: &mut changes }
            .find();
    }
    if changes.is_empty() {
        return None;
    }
    let mut tree = tree.clone();
    let (specs, gone, said) = (p.specs_by_node(), BTreeMap::new(), vec![]);
    let unused = unused(p, &changes);
    let mut by = Change { p, changes, names, specs, gone, said, unused };
    tree.items = visit::rewrite(tree.items, &mut by);
    Some(tree)
}

/// What becomes of a spec.
#[derive(Clone, Debug)]
enum Become {
    /// exp of a difference: exp2 of it.
    Power,
    /// The difference of products: of the first operand with this number, of the second with
    /// log2(e).
    Exponent(f64),
    /// Nothing: others read what it read.
    Nothing,
    /// The same, and then its result as that spec makes of an element.
    Then(SpecId),
    /// A product with the reciprocal of its second operand.
    Product,
    /// The reciprocal of its second operand, which is what it is.
    Reciprocal,
    /// The same, of other operands.
    Same,
}

/// The change of each spec, and for a spec that reads another value: the index of this input, and
/// the spec whose first operand replaces it.
type Changes = BTreeMap<SpecId, (Become, Option<(usize, SpecId)>)>;

/// The allocations of tensors that nothing reads or writes any more.
fn unused(p: &Program, changes: &Changes) -> BTreeSet<NodeKey> {
    let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
    let buffer = |t: TensorId| p.tensors[t].buffer;
    let body = |kernel: &SpecId| p.specs[*kernel].body.as_deref().unwrap_or(&[]);
    for id in p.kernels.iter().flat_map(|k| p.walk(body(k)).specs()) {
        let spec = &p.specs[id];
        let (goes, other) = match changes.get(&id) {
            Some((change, other)) => (matches!(change, Become::Nothing), *other),
            None => (false, None),
        };
        for (i, operand) in spec.inputs.iter().enumerate() {
            let Operand::Tensor(t) = operand else { continue };
            before.insert(buffer(*t));
            match other.filter(|(input, _)| *input == i) {
                Some((_, scale)) => after.extend(p.specs[scale].input_tensors().map(buffer)),
                None if !goes => drop(after.insert(buffer(*t))),
                None => {}
            }
        }
        let outputs = spec.outputs.iter().map(|t| buffer(*t));
        before.extend(outputs.clone());
        after.extend(outputs.filter(|_| !goes));
    }
    let stmts = p.kernels.iter().flat_map(|k| p.walk(body(k)).stmts());
    let allocated = stmts.filter_map(|stmt| match stmt.kind {
        program::StmtKind::Allocate(t) => Some((buffer(t), stmt.node.key())),
        _ => None,
    });
    let reused: BTreeSet<BufferId> = p.buffers.iter().filter_map(|(_, b)| b.reuses).collect();
    let is_unused = |b: &BufferId| before.contains(b) && !after.contains(b) && !reused.contains(b);
    allocated.filter(|(b, _)| is_unused(b)).map(|(_, node)| node).collect()
}

/// The block and the place in it of each leaf.
fn place(
    p: &Program,
    stmts: &[program::Stmt],
    blocks: &mut usize,
    out: &mut BTreeMap<SpecId, (usize, usize)>,
) {
    let own = *blocks;
    for (i, stmt) in stmts.iter().enumerate() {
        if let program::StmtKind::Spec(id) = &stmt.kind {
            out.insert(*id, (own, i));
        }
        let (first, second) = p.inside(stmt);
        for inner in [first, second].into_iter().filter(|inner| !inner.is_empty()) {
            *blocks += 1;
            place(p, inner, blocks, out);
        }
    }
}

/// Finds what can be changed in a kernel.
struct Finder<'a> {
    p: &'a Program,
    flow: &'a Flow<'a>,
    precision: &'a Precision,
    tiles: &'a BTreeSet<SpecId>,
    places: BTreeMap<SpecId, (usize, usize)>,
    out: &'a mut Changes,
}

impl Finder<'_> {
    fn find(self) {
        let all: Vec<SpecId> = self.tiles.iter().copied().collect();
        for &id in &all {
            if self.is_quotient_of_rows(id) {
                self.out.insert(id, (Become::Product, None));
            } else if self.is_reciprocal(id) {
                self.out.insert(id, (Become::Reciprocal, None));
            }
        }
        if all.iter().any(|id| self.has_large(*id)) {
            return;
        }
        let pairs: BTreeMap<SpecId, SpecId> =
            all.iter().filter_map(|exp| Some((self.difference(*exp)?, *exp))).collect();
        for (&sub, &exp) in &pairs {
            self.out.insert(exp, (Become::Power, None));
            self.out.entry(sub).or_insert((Become::Exponent(std::f64::consts::LOG2_E), None));
        }
        let scales: BTreeSet<SpecId> = pairs.keys().filter_map(|sub| self.scale(*sub)).collect();
        for scale in scales {
            if let Some(changes) = self.without(scale, &pairs) {
                self.out.extend(changes);
            }
        }
    }

    fn spec(&self, id: SpecId) -> &program::Spec {
        &self.p.specs[id]
    }

    /// Whether a tensor is all of one of f32 in registers.
    fn whole(&self, t: TensorId) -> bool {
        self.p.buffer_of(t).is_per_thread()
            && self.p.scalar_of(t) == Scalar::F32
            && ops::is_whole(self.p, t)
            && ops::extents(self.p, t).is_some()
    }

    /// Whether a spec is of tiles, of such tensors alone but for conditions, and names no atom.
    fn is_plain(&self, id: SpecId) -> bool {
        let spec = self.spec(id);
        let conditions = usize::from(spec.kind == SpecKind::Select);
        let mut tensors = spec.inputs.iter().skip(conditions).filter_map(Operand::tensor);
        self.tiles.contains(&id)
            && spec.atom.is_none()
            && spec.body.is_none()
            && tensors.all(|t| self.whole(t))
            && spec.outputs.iter().all(|t| self.whole(*t))
    }

    /// Whether a constant of a spec is so large that it marks an element.
    fn has_large(&self, id: SpecId) -> bool {
        let large =
            |o: &Operand| matches!(o, Operand::Number(n) if n.is_finite() && n.abs() > MARK);
        self.spec(id).inputs.iter().any(large)
    }

    /// The extents of an input and of the output.
    fn shapes(&self, id: SpecId, input: usize) -> Option<(Vec<i64>, Vec<i64>)> {
        let spec = self.spec(id);
        let Some(Operand::Tensor(t)) = spec.inputs.get(input) else { return None };
        Some((ops::extents(self.p, *t)?, ops::extents(self.p, *spec.outputs.first()?)?))
    }

    fn is_reciprocal(&self, id: SpecId) -> bool {
        let one = |o: &Operand| *o == Operand::Number(1.0);
        let spec = self.spec(id);
        let div = spec.kind == SpecKind::Binary(BinaryOp::Div);
        let full = || self.shapes(id, 1).is_some_and(|(own, all)| own == all);
        div && spec.inputs.first().is_some_and(one) && self.is_plain(id) && full()
    }

    fn is_quotient_of_rows(&self, id: SpecId) -> bool {
        let div = self.spec(id).kind == SpecKind::Binary(BinaryOp::Div);
        let row = || self.shapes(id, 1).is_some_and(|(own, all)| own != all);
        let full = || self.shapes(id, 0).is_some_and(|(own, all)| own == all);
        let fits = div && self.is_plain(id) && row() && full();
        fits && self.precision.hides(id, BY_RECIPROCAL) && self.adds_products(id)
    }

    /// The one leaf whose values an input holds.
    fn only(&self, id: SpecId, input: usize) -> Option<SpecId> {
        let mut all = self.flow.read(id, input)?.iter();
        let first = all.next().copied()?;
        all.next().is_none().then_some(first)
    }

    /// Whether two leaves stand in one block, the first one first.
    fn before(&self, first: SpecId, second: SpecId) -> bool {
        match (self.places.get(&first), self.places.get(&second)) {
            (Some((a, i)), Some((b, j))) => a == b && i < j,
            _ => false,
        }
    }

    /// The difference of which this is the exponential, where it may be written otherwise.
    fn difference(&self, exp: SpecId) -> Option<SpecId> {
        let is_exp = self.spec(exp).kind == SpecKind::Unary(UnaryOp::Exp);
        if !is_exp || !self.is_plain(exp) || !self.precision.hides(exp, EXPONENTIAL) {
            return None;
        }
        let sub = self.only(exp, 0)?;
        let is_sub = self.spec(sub).kind == SpecKind::Binary(BinaryOp::Sub);
        let full = self.shapes(sub, 0).is_some_and(|(own, all)| own == all);
        let of_two = self.shapes(sub, 1).is_some();
        let alone = self.flow.readers(sub).eq([exp]);
        let fits = is_sub && self.is_plain(sub) && full && of_two && alone;
        let fits = fits && self.is_of_product(sub);
        (fits && !self.precision.is_exact(sub) && self.before(sub, exp)).then_some(sub)
    }

    /// Whether the first operand of a leaf is a product of matrices, scaled and masked by
    /// constants: its rounding is as large as what is left out. What is loaded may be large and
    /// exact, so that a difference of equal numbers must be 0.
    fn is_of_product(&self, leaf: SpecId) -> bool {
        self.reads_product(leaf, |from| self.selected(from).or_else(|| self.scaled(from)))
    }

    /// Whether the first operand of a leaf is a product of matrices, by way of specs of which
    /// `through` names an input.
    fn reads_product(&self, leaf: SpecId, through: impl Fn(SpecId) -> Option<usize>) -> bool {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![(leaf, 0)]);
        while let Some((at, input)) = todo.pop() {
            for &from in self.flow.read(at, input).into_iter().flatten() {
                if self.spec(from).kind.is_product() {
                    return true;
                }
                todo.extend(through(from).filter(|_| seen.insert(from)).map(|i| (from, i)));
            }
        }
        false
    }

    /// Which input a spec moves, or multiplies or divides by a constant.
    fn scaled(&self, id: SpecId) -> Option<usize> {
        match (self.spec(id).kind, &self.spec(id).inputs[..]) {
            (SpecKind::Move, [Operand::Tensor(_)])
            | (
                SpecKind::Binary(BinaryOp::Mul | BinaryOp::Div),
                [Operand::Tensor(_), Operand::Number(_)],
            ) => Some(0),
            (SpecKind::Binary(BinaryOp::Mul), [Operand::Number(_), Operand::Tensor(_)]) => Some(1),
            _ => None,
        }
    }

    /// Whether the first operand of a leaf is added up of products of matrices, and scaled by rows.
    fn adds_products(&self, leaf: SpecId) -> bool {
        let is_mul = |from: SpecId| self.spec(from).kind == SpecKind::Binary(BinaryOp::Mul);
        self.reads_product(leaf, |from| is_mul(from).then_some(0))
    }

    /// The product with a constant, or the quotient, that a difference reads, by way of selections
    /// from −inf.
    fn scale(&self, sub: SpecId) -> Option<SpecId> {
        let mut at = self.only(sub, 0)?;
        while let Some(input) = self.selected(at) {
            let from = self.only(at, input)?;
            at = self.before(from, at).then_some(from)?;
        }
        self.factor(at).map(|_| at)
    }

    /// Which input a selection takes where it does not take −inf.
    fn selected(&self, id: SpecId) -> Option<usize> {
        let spec = self.spec(id);
        let none = |o: &Operand| matches!(o, Operand::Number(n) if *n == f64::NEG_INFINITY);
        // A literal is filled into registers first.
        let filled = |i: usize| {
            self.only(id, i).is_some_and(|of| {
                let of = self.spec(of);
                of.kind == SpecKind::Init && of.inputs.iter().all(none)
            })
        };
        if spec.kind != SpecKind::Select || !self.is_plain(id) {
            return None;
        }
        [(1, 2), (2, 1)]
            .into_iter()
            .find(|(_, other)| spec.inputs.get(*other).is_some_and(none) || filled(*other))
            .map(|(own, _)| own)
    }

    /// By what a spec multiplies, and which of its inputs; none where it does not do that by a
    /// positive constant.
    fn factor(&self, id: SpecId) -> Option<(f64, usize)> {
        let (spec, input) = (self.spec(id), self.scaled(id)?);
        let by = spec.inputs.iter().find_map(|o| match (o, spec.kind) {
            (Operand::Number(n), SpecKind::Binary(BinaryOp::Div)) => Some(1.0 / n),
            (Operand::Number(n), _) => Some(*n),
            (Operand::Tensor(_), _) => None,
        })?;
        // So that neither it nor its product with log2(e) leaves the range.
        let sane = (1.0 / LARGE..=LARGE / 4.0).contains(&by);
        let full = self.shapes(id, input).is_some_and(|(own, all)| own == all);
        let said = self.precision.is_exact(id) || !self.is_plain(id);
        (sane && full && !said).then_some((by, input))
    }

    /// What becomes of those that read a product with a constant where it is left out.
    fn without(&self, scale: SpecId, pairs: &BTreeMap<SpecId, SpecId>) -> Option<Changes> {
        let (by, input) = self.factor(scale)?;
        let from = self.spec(scale).inputs.get(input)?;
        let (Operand::Tensor(from), Some(&to)) = (from, self.spec(scale).outputs.first()) else {
            return None;
        };
        let in_place = self.p.tensors[*from].buffer == self.p.tensors[to].buffer;
        if !in_place && !self.stays(*from, scale, input) {
            return None;
        }
        let mut out = Changes::from([(scale, (Become::Nothing, None))]);
        let mut todo = vec![scale];
        while let Some(at) = todo.pop() {
            for reader in self.flow.readers(at) {
                if !self.before(scale, reader) || self.precision.is_exact(reader) {
                    return None;
                }
                let spec = self.spec(reader);
                let reads = |i: usize| self.only(reader, i) == Some(at);
                let times = (0..spec.inputs.len())
                    .filter(|i| self.flow.read(reader, *i).is_some_and(|of| of.contains(&at)));
                let (change, own) = match spec.kind {
                    SpecKind::Reduction(ReduceOp::Max | ReduceOp::Min)
                        if self.is_plain(reader) && reads(0) =>
                    {
                        (Become::Then(scale), 0)
                    }
                    SpecKind::Binary(BinaryOp::Sub) if pairs.contains_key(&reader) && reads(0) => {
                        (Become::Exponent(by * std::f64::consts::LOG2_E), 0)
                    }
                    SpecKind::Select => {
                        let own = self.selected(reader).filter(|i| reads(*i))?;
                        todo.push(reader);
                        (Become::Same, own)
                    }
                    _ => return None,
                };
                if times.count() != 1 {
                    return None;
                }
                let other = (at == scale && !in_place).then_some((own, scale));
                out.insert(reader, (change, other));
            }
        }
        Some(out)
    }

    /// Whether what a spec reads of a tensor is there for all that stands behind the spec in its
    /// block.
    fn stays(&self, t: TensorId, at: SpecId, input: usize) -> bool {
        let buffer = self.p.tensors[t].buffer;
        let writes = |id: &SpecId| {
            self.spec(*id).outputs.iter().any(|o| self.p.tensors[*o].buffer == buffer)
        };
        let read = self.flow.read(at, input);
        let mut writers =
            self.places.keys().filter(|id| self.spec(**id).body.is_none() && writes(id));
        writers.all(|w| self.before(*w, at) && read.is_some_and(|of| of.contains(w)))
    }
}

/// Writes what was found.
struct Change<'a> {
    p: &'a Program,
    changes: Changes,
    names: &'a mut Names,
    specs: HashMap<NodeKey, SpecId>,
    /// Those that were left out.
    gone: BTreeMap<SpecId, Spec>,
    /// What stood above them, for the next statement that is changed.
    said: Vec<String>,
    /// Allocations that are left out.
    unused: BTreeSet<NodeKey>,
}

impl Rewriter for Change<'_> {
    fn leave(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let node = stmt.id;
        if self.unused.contains(&node.key()) {
            self.said.append(&mut stmt.leading);
            return;
        }
        let id = self.specs.get(&node.key()).copied();
        let change = id.and_then(|id| Some((id, self.changes.get(&id)?.clone())));
        let (StmtKind::Spec(spec), Some((id, (change, other)))) = (&mut stmt.kind, change) else {
            out.push(stmt);
            return;
        };
        if let Some((input, of)) = other
            && let Some(view) = self.gone.get(&of).and_then(scaled)
            && let Some(own) = spec.inputs.get_mut(input)
        {
            *own = Written::View(view);
        }
        let (mut before, mut after) = (vec![], vec![]);
        if !matches!(change, Become::Nothing) {
            let said = std::mem::take(&mut self.said);
            stmt.leading.splice(0..0, said);
        }
        match change {
            Become::Power => spec.kind = SpecKind::Unary(UnaryOp::Exp2),
            Become::Exponent(by) => before = self.exponent(id, spec, by).unwrap_or_default(),
            Become::Product => before = self.product(id, spec).unwrap_or_default(),
            Become::Then(scale) => after.extend(self.then(spec, scale)),
            Become::Nothing => {
                self.gone.insert(id, spec.clone());
                self.said.append(&mut stmt.leading);
                return;
            }
            Become::Reciprocal => {
                spec.kind = SpecKind::Unary(UnaryOp::Rcp);
                spec.inputs.remove(0);
            }
            Become::Same => {}
        }
        inherit(&mut before, node, spec.span);
        inherit(&mut after, node, spec.span);
        if let Some(first) = before.first_mut() {
            first.blank_above = std::mem::take(&mut stmt.blank_above);
            let said = std::mem::take(&mut stmt.leading);
            first.leading.splice(0..0, said);
        }
        out.append(&mut before);
        out.push(stmt);
        out.append(&mut after);
    }
}

impl Change<'_> {
    /// Before a difference of x and y: x·`by` in the place of the result, and y·log2(e); the
    /// difference is of these.
    fn exponent(&mut self, id: SpecId, spec: &mut Spec, by: f64) -> Option<Vec<Stmt>> {
        let mut tensors = self.p.specs[id].input_tensors();
        let (_, y) = (tensors.next()?, tensors.next()?);
        let [x, Written::View(row)] = &spec.inputs[..] else { return None };
        let (x, row, to) = (x.clone(), row.clone(), spec.outputs.first()?.clone());
        let name = self.names.fresh(&format!("{}_log2", row.base.text));
        let own = View::of(&name);
        let mut first = build::allocate(&name, &ops::extents(self.p, y)?, Scalar::F32, Memory::Rf);
        first.leading.push(
            "The exponential is exp2 of a fused multiply-add: log2(e), and what x is multiplied \
             with, are one factor."
                .to_owned(),
        );
        let times = |of: Written, by: f64, to: &View| {
            let kind = SpecKind::Binary(BinaryOp::Mul);
            let by = build::literal(&format!("{by:?}"));
            build::spec(kind, spec.exec.clone(), vec![of, by], to.clone(), spec.attrs.clone())
        };
        let products =
            [times(Written::View(row), std::f64::consts::LOG2_E, &own), times(x, by, &to)];
        spec.inputs = vec![Written::View(to), Written::View(own)];
        Some(std::iter::once(first).chain(products).collect())
    }

    /// Before a quotient: the reciprocal of its second operand, of which it becomes a product.
    fn product(&mut self, id: SpecId, spec: &mut Spec) -> Option<Vec<Stmt>> {
        let row = self.p.specs[id].input_tensors().nth(1)?;
        let Some(Written::View(view)) = spec.inputs.get_mut(1) else { return None };
        let name = self.names.fresh(&format!("{}_rcp", view.base.text));
        let mut first =
            build::allocate(&name, &ops::extents(self.p, row)?, Scalar::F32, Memory::Rf);
        first.leading.push("One reciprocal for each element that divides several.".to_owned());
        let of = Written::View(std::mem::replace(view, View::of(&name)));
        let kind = SpecKind::Unary(UnaryOp::Rcp);
        spec.kind = SpecKind::Binary(BinaryOp::Mul);
        let own =
            build::spec(kind, spec.exec.clone(), vec![of], View::of(&name), spec.attrs.clone());
        Some(vec![first, own])
    }

    /// Behind a spec what `scale` does, of its result.
    fn then(&self, spec: &Spec, scale: SpecId) -> Option<Stmt> {
        let (scale, to) = (self.gone.get(&scale)?, spec.outputs.first()?);
        let mut inputs = scale.inputs.clone();
        let of = inputs.iter_mut().find(|o| matches!(o, Written::View(_)))?;
        *of = Written::View(to.clone());
        let (exec, attrs) = (spec.exec.clone(), scale.attrs.clone());
        Some(build::spec(scale.kind, exec, inputs, to.clone(), attrs))
    }
}

/// The tensor that a product with a constant reads.
fn scaled(spec: &Spec) -> Option<View> {
    spec.inputs.iter().find_map(|o| match o {
        Written::View(view) => Some(view.clone()),
        Written::Number(_) | Written::Value(_) => None,
    })
}
