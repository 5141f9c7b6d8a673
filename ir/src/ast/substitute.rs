//! Replaces names in statements: tensors by views or literals, numbers by expressions, type
//! parameters by types, and defined names by new ones. With it the resolver expands a sub-spec (a
//! spec with parameters) where it is used, `link` renames constants of imported files, and
//! `decompose` instantiates and copies statements.

use super::visit::{Of, PartMut, parts, parts_mut_where};
use super::{
    AttrValue, Block, Expr, ExprKind, Key, Name, Operand, Pick, Stmt, StmtKind, Takes, TensorExpr,
    TupleExpr, TypeAttr, View, ViewOp,
};
use crate::scalar::Scalar;
use crate::span::Span;
use std::collections::HashMap;

/// The replacement of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// A view. The operations on the replaced name follow those of the view.
    View(View),
    /// A literal. It can replace only a complete operand.
    Number(Operand),
}

/// Replacements of names in statements. Names of numbers include their `@`; others have no sigil.
///
/// Every occurrence of a name is replaced. If a name has two senses in the statements, the caller
/// must first rename one of them. Inserted text is not substituted again.
#[derive(Clone, Debug, Default)]
pub struct Substitution {
    /// Replacements of references to data tensors.
    pub data: HashMap<String, Given>,
    /// New names of data tensors at their definitions. References use `data`.
    pub defined: HashMap<String, String>,
    /// New names of thread tensors, at definitions and references.
    pub threads: HashMap<String, String>,
    /// New names of numbers at their definitions. References use `numbers`.
    pub indices: HashMap<String, String>,
    /// Replacements of references to numbers.
    pub numbers: HashMap<String, Expr>,
    /// Replacements of type parameters.
    pub types: HashMap<String, Scalar>,
    /// A new span for everything; `None` keeps the spans.
    pub span: Option<Span>,
    /// The remaining number of names, numbers, views and statements that may be visited and
    /// inserted.
    pub budget: usize,
}

/// Reasons why a substitution fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Unfit {
    /// A number, or a view with operations, in the place of a tensor's name.
    NotAName(Name),
    /// A number in the place of a tensor.
    NotATensor(Name),
    /// The budget is exhausted.
    TooMuch,
}

impl Substitution {
    /// Renames a tensor, at definitions and references.
    pub fn rename_data(&mut self, from: &str, to: &str) {
        self.defined.insert(from.to_owned(), to.to_owned());
        self.data.insert(from.to_owned(), Given::View(View::of(to)));
    }

    /// Renames a number, at definitions and references.
    pub fn rename_number(&mut self, from: &str, to: &str) {
        self.indices.insert(from.to_owned(), to.to_owned());
        self.numbers.insert(from.to_owned(), Expr::name(to));
    }

    /// The block after substitution. Its statements are new ones, made from those of `block`;
    /// comments are kept.
    ///
    /// # Errors
    /// The first replacement that does not fit.
    pub fn block(&mut self, block: &Block) -> Result<Block, Unfit> {
        self.pay(size(&block.stmts))?;
        let mut block = block.clone();
        let mut todo = vec![&mut block];
        while let Some(block) = todo.pop() {
            for stmt in &mut block.stmts {
                let (id, own) = (stmt.id, super::NodeId::fresh());
                (stmt.id, stmt.from) = (own, Some(id));
                self.head(stmt)?;
            }
            todo.extend(block.stmts.iter_mut().flat_map(|s| s.kind.blocks_mut()));
        }
        Ok(block)
    }

    /// Substitutes in statements and their bodies. The statements keep their ids.
    ///
    /// # Errors
    /// The first replacement that does not fit.
    pub fn in_place(&mut self, stmts: &mut [Stmt]) -> Result<(), Unfit> {
        let mut todo: Vec<&mut Stmt> = stmts.iter_mut().collect();
        while let Some(stmt) = todo.pop() {
            self.head(stmt)?;
            todo.extend(stmt.kind.blocks_mut().flat_map(|b| b.stmts.iter_mut()));
        }
        Ok(())
    }

    /// Substitutes in a statement without its bodies.
    ///
    /// # Errors
    /// The first replacement that does not fit.
    pub fn head(&mut self, stmt: &mut Stmt) -> Result<(), Unfit> {
        if let Some(span) = self.span {
            stmt.span = span;
        }
        self.numbers_in(stmt)?;
        self.tensors_in(stmt)
    }

    fn pay(&mut self, cost: usize) -> Result<(), Unfit> {
        self.budget = self.budget.checked_sub(cost).ok_or(Unfit::TooMuch)?;
        Ok(())
    }

    /// Substitutes everything but references to data tensors.
    fn numbers_in(&mut self, stmt: &mut Stmt) -> Result<(), Unfit> {
        let mut result = Ok(());
        let costs: HashMap<&str, usize> =
            self.numbers.iter().map(|(n, e)| (n.as_str(), nodes(e))).collect();
        let mut budget = self.budget;
        let renamed = |name: &mut Name, to: Option<&String>| {
            if let Some(to) = to {
                name.text.clone_from(to);
            }
        };
        if let Some(span) = self.span {
            match &mut stmt.kind {
                StmtKind::Spec(spec) => spec.span = span,
                StmtKind::Def(def) => def.span = span,
                StmtKind::Call(call) => call.span = span,
                _ => {}
            }
        }
        parts_mut_where(stmt, &mut |part| {
            if let Some(place) = self.span
                && let Some(span) = part.span_mut()
            {
                *span = place;
            }
            match part {
                PartMut::Defined(name, Of::Data) => renamed(name, self.defined.get(&name.text)),
                PartMut::Defined(name, Of::Number) => renamed(name, self.indices.get(&name.text)),
                PartMut::Defined(name, Of::Threads) | PartMut::Referred(name, Of::Threads) => {
                    renamed(name, self.threads.get(&name.text));
                }
                PartMut::Referred(name, Of::Number) => {
                    if let Some(ExprKind::Name(to)) = self.numbers.get(&name.text).map(|e| &e.kind)
                    {
                        name.text.clone_from(to);
                    }
                }
                PartMut::Expr(expr) => {
                    if let ExprKind::Name(name) = &expr.kind
                        && let Some(given) = self.numbers.get(name)
                    {
                        match budget.checked_sub(costs[name.as_str()]) {
                            Some(left) => budget = left,
                            None => {
                                result = Err(Unfit::TooMuch);
                                return false;
                            }
                        }
                        let span = expr.span;
                        **expr = given.clone();
                        expr.span = span;
                        return false;
                    }
                }
                PartMut::TensorType(ty) => {
                    if let Some(scalar) = self.typed(&mut ty.attrs) {
                        ty.scalar = scalar;
                    }
                }
                PartMut::ResultType(ty) => {
                    if let Some(scalar) = self.typed(&mut ty.attrs) {
                        ty.scalar = Some(scalar);
                    }
                }
                PartMut::Attr(attr) => {
                    let AttrValue::Word(word) = &mut attr.value else { return true };
                    let takes = attr.key.map(Key::takes);
                    if takes == Some(Takes::Type)
                        && let Some(scalar) = self.types.get(word)
                    {
                        *word = scalar.as_str().to_owned();
                    }
                    if matches!(takes, Some(Takes::Constants(_) | Takes::Integer))
                        && let Some(given) = self.numbers.get(word)
                    {
                        attr.value = match &given.kind {
                            ExprKind::Name(name) if !name.starts_with('@') => {
                                AttrValue::Word(name.clone())
                            }
                            _ => AttrValue::Tuple(TupleExpr::Leaf(given.clone())),
                        };
                        return false;
                    }
                }
                _ => {}
            }
            true
        });
        self.budget = budget;
        result
    }

    /// Removes a leading type parameter and returns the type that replaces it.
    fn typed(&self, attrs: &mut Vec<TypeAttr>) -> Option<Scalar> {
        let Some(TypeAttr::Scalar(name)) = attrs.first() else { return None };
        let scalar = *self.types.get(&name.text)?;
        attrs.remove(0);
        Some(scalar)
    }

    /// Substitutes references to data tensors.
    fn tensors_in(&mut self, stmt: &mut Stmt) -> Result<(), Unfit> {
        if self.data.is_empty() {
            return Ok(());
        }
        let inputs = match &mut stmt.kind {
            StmtKind::Spec(spec) => &mut spec.inputs[..],
            StmtKind::Call(call) => &mut call.inputs,
            _ => &mut [],
        };
        for input in inputs {
            if let Operand::View(view) = &*input
                && view.ops.is_empty()
                && let Some(Given::Number(number)) = self.data.get(&view.base.text)
            {
                *input = number.clone();
            }
        }
        let costs: HashMap<&str, usize> = self
            .data
            .iter()
            .map(|(n, given)| match given {
                Given::View(view) => (n.as_str(), view_size(view)),
                Given::Number(_) => (n.as_str(), 1),
            })
            .collect();
        let mut budget = self.budget;
        let mut result = Ok(());
        // A name alone refers to a tensor that is reused, or to one of coordinates.
        let named = |name: &mut Name| match self.data.get(&name.text) {
            None => Ok(()),
            Some(Given::View(view)) if view.ops.is_empty() => {
                name.text.clone_from(&view.base.text);
                Ok(())
            }
            Some(_) => Err(Unfit::NotAName(name.clone())),
        };
        parts_mut_where(stmt, &mut |part| {
            let done = match part {
                PartMut::Tensors(tensors) => {
                    if let TensorExpr::View(view) = &**tensors
                        && view.ops.is_empty()
                        && let Some(Given::Number(number)) = self.data.get(&view.base.text)
                    {
                        **tensors = TensorExpr::Number(number_of(number));
                        return false;
                    }
                    return true;
                }
                PartMut::View(view, Of::Data) => {
                    let picked = view.ops.iter_mut().try_for_each(|op| match op {
                        ViewOp::Pick(picks) => picks.iter_mut().try_for_each(|pick| match pick {
                            Pick::From(name) => named(name),
                            _ => Ok(()),
                        }),
                        _ => Ok(()),
                    });
                    picked.and_then(|()| match self.data.get(&view.base.text) {
                        None => Ok(()),
                        Some(Given::View(given)) => {
                            budget = budget
                                .checked_sub(costs[view.base.text.as_str()])
                                .ok_or(Unfit::TooMuch)?;
                            let (span, own) = (view.span, std::mem::take(&mut view.ops));
                            **view = given.clone();
                            view.ops.extend(own);
                            (view.span, view.base.span) = (span, span);
                            Ok(())
                        }
                        Some(Given::Number(_)) => Err(Unfit::NotATensor(view.base.clone())),
                    })
                }
                PartMut::Referred(name, Of::Data) => named(name),
                _ => return true,
            };
            if let Err(unfit) = done
                && result.is_ok()
            {
                result = Err(unfit);
            }
            false
        });
        self.budget = budget;
        result
    }
}

/// A literal operand as an expression.
fn number_of(operand: &Operand) -> Expr {
    match operand {
        Operand::Value(e) => e.clone(),
        Operand::Number(n) => literal(&n.text, n.span),
        Operand::View(view) => Expr { kind: ExprKind::Int(0), span: view.span },
    }
}

/// A decimal literal as an expression.
pub(crate) fn literal(text: &str, span: Span) -> Expr {
    let (below, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let kind = match digits.parse::<i64>() {
        Ok(n) => ExprKind::Int(n),
        Err(_) if matches!(digits, "inf" | "nan") => ExprKind::Name(digits.to_owned()),
        // The number does not fit an integer.
        Err(_) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            ExprKind::Real(format!("{digits}.0"))
        }
        Err(_) => ExprKind::Real(digits.to_owned()),
    };
    let e = Expr { kind, span };
    match below {
        true => Expr { kind: ExprKind::Neg(Box::new(e)), span },
        false => e,
    }
}

/// The number of operators and operands of an expression.
pub(crate) fn nodes(e: &Expr) -> usize {
    let (mut todo, mut n) = (vec![e], 0);
    while let Some(e) = todo.pop() {
        n += 1;
        match &e.kind {
            ExprKind::Bin(_, a, b) => todo.extend([&**a, &**b]),
            ExprKind::Neg(a) | ExprKind::Sqrt(a) => todo.push(a),
            ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Name(_) => {}
        }
    }
    n
}

fn view_size(view: &View) -> usize {
    let mut n = 0;
    parts(&Stmt::new(StmtKind::Barrier(Some(view.clone()))), &mut |_| n += 1);
    n
}

/// The number of statements and their parts, including those of bodies and `means` blocks.
pub(crate) fn size(stmts: &[Stmt]) -> usize {
    let mut n = 0;
    for stmt in super::visit::Walk::new(stmts).with_means().stmts() {
        n += 1;
        parts(stmt, &mut |_| n += 1);
    }
    n
}
