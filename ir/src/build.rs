//! Constructs modules in Rust, for programs that generate kernels, in the short forms of version 2
//! of the text format.
//!
//! A [`Builder`] collects tensors and kernels, a [`Body`] collects statements. Operators and the
//! functions of [`Compute`] make expressions over tensors; a [`Num`] is a number such as a loop
//! variable or a coordinate of a block. The builder checks each finished kernel. Errors quote the
//! text of the kernel.
//!
//! A matrix product with bias and relu, in which each block computes a tile of 64 by 64:
//!
//! ```
//! use carbyne_ir::build::{Builder, Compute, relu};
//! use carbyne_ir::scalar::{Memory, Scalar};
//!
//! # fn main() -> Result<(), carbyne_ir::diag::Diagnostics> {
//! let mut m = Builder::new();
//! let (a, b) = (m.tensor("A", [512, 256], Scalar::F16), m.tensor("B", [256, 512], Scalar::F16));
//! let bias = m.tensor("bias", [1, 512], Scalar::F32);
//! let c = m.tensor("C", [512, 512], Scalar::F16);
//! m.kernel("gemm", [("i", 8), ("j", 8)], 128, &[&a, &b, &bias], &[&c], |k, [i, j]| {
//!     k.loc("model.py:12");
//!     let acc = k.fill("acc", [64, 64], Scalar::F32, 0);
//!     k.staged(2, "k", 256 / 32, |k, step| {
//!         let a = k.copy("a", &a.tile([64, 32]).at([&i, &step]), Memory::Sh);
//!         let b = k.copy("b", &b.tile([32, 64]).at([&step, &j]), Memory::Sh);
//!         k.matmul_add(&a, &b, &acc);
//!     });
//!     let bias = k.copy("bias_row", &bias.tile([1, 64]).at((0, &j)), Memory::Rf);
//!     k.store(&c.tile([64, 64]).at([&i, &j]), relu(&acc + &bias).cast(Scalar::F16));
//! })?;
//! let module = m.finish()?;
//! # let text = carbyne_ir::text::print(&module);
//! # assert!(text.contains("= cast(relu(%acc + %bias_row), f16, loc="));
//! # assert!(carbyne_ir::resolve::elaborate(&module, "").is_ok());
//! # Ok(())
//! # }
//! ```
//!
//! [`statements`] makes statements without short forms, for programs that state everything.

pub mod statements;

use crate::ast::{
    Attr, BinOp, BinaryOp, Block, Call, CmpOp, Compare, Dims, Elements, Exec, Expr, ExprKind,
    Group, Key, Launch, Module, Name, Operand, Pad, Pick, ReduceOp, ResultType, Spec, SpecKind,
    Stmt, StmtKind, SymDecl, TensorExpr, TensorType, Tiler, TupleExpr, TypeAttr, UnaryOp, Unroll,
    View, ViewOp,
};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::scalar::{Memory, Scalar};
use crate::span::Span;
use crate::{resolve, text, verify};
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

// ---- Numbers ------------------------------------------------------------------------------------

/// A number: a literal, constant, symbol, loop variable or coordinate, or an expression over these.
#[derive(Clone, Debug, PartialEq)]
pub struct Num(Expr);

impl Num {
    /// The constant, symbol or parameter with this name; names of coordinates begin with `@`.
    pub fn of(name: impl Into<String>) -> Self {
        Num(Expr::name(name))
    }

    /// A decimal number such as `0.5` or `-inf`, for literals of specs.
    #[must_use]
    pub fn real(value: f64) -> Self {
        Num(real(value))
    }

    /// The minimum.
    #[must_use]
    pub fn min(self, other: impl Into<Num>) -> Self {
        Num(Expr::bin(BinOp::Min, self.0, other.into().0))
    }

    /// The maximum.
    #[must_use]
    pub fn max(self, other: impl Into<Num>) -> Self {
        Num(Expr::bin(BinOp::Max, self.0, other.into().0))
    }

    /// The quotient, rounded up.
    #[must_use]
    pub fn ceil_div(self, by: impl Into<Num>) -> Self {
        Num(Expr::bin(BinOp::CeilDiv, self.0, by.into().0))
    }

    /// The expression in the syntax tree.
    #[must_use]
    pub fn into_expr(self) -> Expr {
        self.0
    }
}

fn int(v: i64) -> Expr {
    match v.checked_abs() {
        Some(digits) if v < 0 => {
            Expr { kind: ExprKind::Neg(Box::new(Expr::int(digits))), span: Span::default() }
        }
        Some(_) => Expr::int(v),
        // The text format has no literal for `i64::MIN`.
        None => Expr::bin(BinOp::Sub, int(v + 1), Expr::int(1)),
    }
}

fn real(v: f64) -> Expr {
    crate::ast::literal(&resolve::literal(v), Span::default())
}

impl From<i64> for Num {
    fn from(v: i64) -> Self {
        Num(int(v))
    }
}

impl From<i32> for Num {
    fn from(v: i32) -> Self {
        Num(int(v.into()))
    }
}

impl From<&Num> for Num {
    fn from(n: &Num) -> Self {
        n.clone()
    }
}

impl From<Expr> for Num {
    fn from(e: Expr) -> Self {
        Num(e)
    }
}

/// A list of numbers: an array, or a tuple of types that convert to numbers.
pub trait Nums {
    /// The numbers, in order.
    fn nums(self) -> Vec<Num>;
}

impl<T: Into<Num>, const N: usize> Nums for [T; N] {
    fn nums(self) -> Vec<Num> {
        self.into_iter().map(Into::into).collect()
    }
}

impl Nums for Vec<Num> {
    fn nums(self) -> Vec<Num> {
        self
    }
}

macro_rules! tuples {
    ($(($($T:ident $i:tt),*))*) => {$(
        impl<$($T: Into<Num>),*> Nums for ($($T,)*) {
            fn nums(self) -> Vec<Num> {
                vec![$(self.$i.into()),*]
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
}

macro_rules! number_operators {
    ($($Op:ident $method:ident $of:ident),*) => {$(
        impl<R: Into<Num>> $Op<R> for Num {
            type Output = Num;
            fn $method(self, by: R) -> Num {
                Num(Expr::bin(BinOp::$of, self.0, by.into().0))
            }
        }
        impl<R: Into<Num>> $Op<R> for &Num {
            type Output = Num;
            fn $method(self, by: R) -> Num {
                self.clone().$method(by)
            }
        }
    )*};
}

number_operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, Rem rem Mod);

// ---- Tensors ------------------------------------------------------------------------------------

/// A tensor, or a view of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor(View);

impl Tensor {
    /// The tensor with this name, without `%`.
    pub fn of(name: impl Into<String>) -> Self {
        Tensor(View::of(name))
    }

    /// The tiles with these extents, `.tile([64,32])`.
    #[must_use]
    pub fn tile(&self, sizes: impl Nums) -> Self {
        let sizes = sizes.nums().into_iter().map(|n| Some(n.0)).collect();
        self.then(ViewOp::Tile(Tiler::Sizes(sizes)))
    }

    /// One tile or one element, `[@i, k]`.
    #[must_use]
    pub fn at(&self, index: impl Nums) -> Self {
        self.then(ViewOp::Index(index.nums().into_iter().map(|n| Some(n.0)).collect()))
    }

    /// A range of the first mode and all other modes completely, `[first..last, _]` of a matrix.
    #[must_use]
    pub fn rows(&self, first: impl Into<Num>, last: impl Into<Num>, modes: usize) -> Self {
        let part = Pick::Range(first.into().0, last.into().0);
        let others = (1..modes).map(|_| Pick::Keep);
        self.then(ViewOp::Pick(std::iter::once(part).chain(others).collect()))
    }

    /// Exchanges the last two modes.
    #[must_use]
    pub fn transpose(&self) -> Self {
        self.then(ViewOp::Permute(vec![]))
    }

    /// Adds this many elements before the first one of each mode. The added elements do not exist.
    #[must_use]
    pub fn pad(&self, before: impl IntoIterator<Item = Num>) -> Self {
        let before = before.into_iter().map(|n| n.0).collect();
        self.then(ViewOp::Pad(Box::new(Pad { before, behind: vec![], value: None })))
    }

    /// The coordinate of each element along a mode.
    #[must_use]
    pub fn iota(&self, axis: i64) -> Self {
        self.then(ViewOp::Iota(int(axis)))
    }

    /// The view with one more operation.
    #[must_use]
    pub fn then(&self, op: ViewOp) -> Self {
        Tensor(self.0.clone().then(op))
    }

    /// The view in the syntax tree.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.0
    }
}

impl From<Tensor> for View {
    fn from(t: Tensor) -> Self {
        t.0
    }
}

impl From<&Tensor> for View {
    fn from(t: &Tensor) -> Self {
        t.0.clone()
    }
}

/// An expression over tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Value(TensorExpr);

impl Value {
    /// The expression in the syntax tree.
    #[must_use]
    pub fn into_expr(self) -> TensorExpr {
        self.0
    }
}

impl From<Tensor> for Value {
    fn from(t: Tensor) -> Self {
        Value(TensorExpr::View(t.0))
    }
}

impl From<&Tensor> for Value {
    fn from(t: &Tensor) -> Self {
        t.clone().into()
    }
}

impl From<Num> for Value {
    fn from(n: Num) -> Self {
        Value(TensorExpr::Number(n.0))
    }
}

impl From<f64> for Value {
    fn from(v: f64) -> Self {
        Value(TensorExpr::Number(real(v)))
    }
}

impl From<i32> for Value {
    fn from(v: i32) -> Self {
        Num::from(v).into()
    }
}

fn apply(kind: SpecKind, args: Vec<Value>, attrs: Vec<Attr>) -> Value {
    let args = args.into_iter().map(|v| v.0).collect();
    let mut e = TensorExpr::apply(kind, args);
    if let TensorExpr::Apply(apply) = &mut e {
        apply.attrs = attrs;
    }
    Value(e)
}

fn unary(op: UnaryOp, of: impl Into<Value>) -> Value {
    apply(SpecKind::Unary(op), vec![of.into()], vec![])
}

fn binary(op: BinaryOp, a: impl Into<Value>, b: impl Into<Value>) -> Value {
    let (a, b) = (a.into(), b.into());
    let of_numbers = match op {
        BinaryOp::Add => Some(BinOp::Add),
        BinaryOp::Sub => Some(BinOp::Sub),
        BinaryOp::Mul => Some(BinOp::Mul),
        BinaryOp::Div => Some(BinOp::Div),
        BinaryOp::Min => Some(BinOp::Min),
        BinaryOp::Max => Some(BinOp::Max),
        _ => None,
    };
    if let (Some(op), TensorExpr::Number(a), TensorExpr::Number(b)) = (of_numbers, &a.0, &b.0) {
        return Value(TensorExpr::Number(Expr::bin(op, a.clone(), b.clone())));
    }
    apply(SpecKind::Binary(op), vec![a, b], vec![])
}

macro_rules! operators {
    ($($Op:ident $method:ident $of:ident),*) => {$(
        operators!(@ $Op $method $of: Value, Tensor, &Tensor);
    )*};
    (@ $Op:ident $method:ident $of:ident: $($T:ty),*) => {$(
        impl<R: Into<Value>> $Op<R> for $T {
            type Output = Value;
            fn $method(self, by: R) -> Value {
                binary(BinaryOp::$of, self, by)
            }
        }
    )*};
}

operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);

macro_rules! negation {
    ($($T:ty),*) => {$(
        impl Neg for $T {
            type Output = Value;
            fn neg(self) -> Value {
                unary(UnaryOp::Neg, self)
            }
        }
    )*};
}

negation!(Value, Tensor, &Tensor);

macro_rules! functions {
    ($($(#[$meta:meta])* $name:ident $op:ident),* $(,)?) => {
        /// The operations on tensors.
        pub trait Compute: Into<Value> + Sized {
            $($(#[$meta])* fn $name(self) -> Value {
                unary(UnaryOp::$op, self)
            })*

            /// Conversion to a scalar type.
            fn cast(self, to: Scalar) -> Value {
                let to = statements::word(Key::To, to.as_str());
                apply(SpecKind::Unary(UnaryOp::Cast), vec![self.into()], vec![to])
            }

            /// The elementwise minimum.
            fn min(self, other: impl Into<Value>) -> Value {
                binary(BinaryOp::Min, self, other)
            }

            /// The elementwise maximum.
            fn max(self, other: impl Into<Value>) -> Value {
                binary(BinaryOp::Max, self, other)
            }

            /// The elementwise comparison `lt`, `le`, `eq`, `ne`, `ge` or `gt`.
            fn compare(self, op: BinaryOp, other: impl Into<Value>) -> Value {
                binary(op, self, other)
            }

            /// A reduction along one mode, whose extent becomes 1.
            fn reduce(self, op: ReduceOp, axis: i64) -> Value {
                let axis = statements::number(Key::Axis, axis);
                apply(SpecKind::Reduction(op), vec![self.into()], vec![axis])
            }

            /// The matrix product.
            fn matmul(self, other: impl Into<Value>) -> Value {
                apply(SpecKind::MatMulSet, vec![self.into(), other.into()], vec![])
            }

            /// The element of `yes` where `self` is true, else the element of `no`.
            fn select(self, yes: impl Into<Value>, no: impl Into<Value>) -> Value {
                apply(SpecKind::Select, vec![self.into(), yes.into(), no.into()], vec![])
            }
        }

        $(#[doc = concat!("[`Compute::", stringify!($name), "`] as a function.")]
        pub fn $name(of: impl Into<Value>) -> Value {
            unary(UnaryOp::$op, of)
        })*
    };
}

functions! {
    /// Absolute values.
    abs Abs,
    /// e^x.
    exp Exp,
    /// 2^x.
    exp2 Exp2,
    /// Natural logarithm.
    log Log,
    /// Square root.
    sqrt Sqrt,
    /// 1/sqrt(x).
    rsqrt Rsqrt,
    /// 1/x.
    rcp Rcp,
    /// Hyperbolic tangent.
    tanh Tanh,
    /// 1/(1+e^-x).
    sigmoid Sigmoid,
    /// max(x, 0).
    relu Relu,
    /// x·Φ(x), by erf.
    gelu Gelu,
    /// x·sigmoid(x).
    silu Silu,
}

impl Compute for Value {}
impl Compute for &Tensor {}

// ---- Modules ------------------------------------------------------------------------------------

/// A module under construction. It is valid at any time.
#[derive(Clone, Debug)]
pub struct Builder {
    module: Module,
    /// Errors of declarations, which the next kernel reports.
    errors: Diagnostics,
}

impl Default for Builder {
    fn default() -> Self {
        let module = Module { header: vec![], items: vec![], footer: vec![] };
        Builder { module, errors: Diagnostics::default() }
    }
}

fn level(shape: impl Nums) -> Dims {
    let modes = shape.nums().into_iter().map(|n| TupleExpr::Leaf(n.0)).collect();
    Dims { modes, strides: None, span: Span::default() }
}

impl Builder {
    /// A module without statements.
    #[must_use]
    pub fn new() -> Self {
        Builder::default()
    }

    /// A row-major tensor in global memory that the caller provides. The next kernel reports errors
    /// of the declaration.
    pub fn tensor(&mut self, name: &str, shape: impl Nums, scalar: Scalar) -> Tensor {
        self.given(name, level(shape), scalar, None)
    }

    /// A tensor in global memory that the caller provides, with strides. Each mode is a list of
    /// extents and strides, in elements; a list of several is a hierarchical mode, whose first
    /// entry is the fastest: `[(4, 1), (16, 512)]` is `(4,16):(1,512)`.
    pub fn strided(
        &mut self,
        name: &str,
        modes: impl IntoIterator<Item = Vec<(Num, Num)>>,
        scalar: Scalar,
    ) -> Tensor {
        let tuple = |mode: Vec<Num>| match <[Num; 1]>::try_from(mode) {
            Ok([one]) => TupleExpr::Leaf(one.0),
            Err(several) => {
                TupleExpr::Tuple(several.into_iter().map(|n| TupleExpr::Leaf(n.0)).collect())
            }
        };
        let (modes, strides) = modes
            .into_iter()
            .map(|mode| mode.into_iter().unzip())
            .map(|(extents, strides)| (tuple(extents), tuple(strides)))
            .unzip();
        self.given(
            name,
            Dims { modes, strides: Some(strides), span: Span::default() },
            scalar,
            None,
        )
    }

    fn given(
        &mut self,
        name: &str,
        level: Dims,
        scalar: Scalar,
        range: Option<Elements>,
    ) -> Tensor {
        let ty = TensorType {
            levels: vec![level],
            scalar,
            memory: Some(Memory::Gl),
            attrs: vec![],
            span: Span::default(),
        };
        self.declare(StmtKind::DataDecl { name: Name::new(name), ty, range });
        Tensor::of(name)
    }

    /// A row-major tensor of integers in global memory that the caller provides, with facts about
    /// them: they are coordinates, sizes, or beginnings of consecutive parts.
    pub fn integers(
        &mut self,
        name: &str,
        shape: impl Nums,
        scalar: Scalar,
        are: Elements,
    ) -> Tensor {
        self.given(name, level(shape), scalar, Some(are))
    }

    /// A number that the caller passes: a tensor without modes.
    pub fn scalar(&mut self, name: &str, scalar: Scalar) -> Tensor {
        let level = Dims { modes: vec![], strides: None, span: Span::default() };
        let (memory, attrs, span) = (None, vec![], Span::default());
        let ty = TensorType { levels: vec![level], scalar, memory, attrs, span };
        self.declare(StmtKind::DataDecl { name: Name::new(name), ty, range: None });
        Tensor::of(name)
    }

    /// A constant, `let M = 256`.
    pub fn constant(&mut self, name: &str, value: impl Into<Num>) -> Num {
        self.declare(StmtKind::Let(vec![(Name::new(name), value.into().0)]));
        Num::of(name)
    }

    /// A size that is known only at launch, and is a multiple of `div`.
    pub fn symbol(&mut self, name: &str, div: i64) -> Num {
        let (min, max) = (None, None);
        self.declare(StmtKind::Sym(SymDecl { name: Name::new(name), min, max, div: Some(div) }));
        Num::of(name)
    }

    fn declare(&mut self, kind: StmtKind) {
        if let Err(errors) = self.push(Stmt::new(kind)) {
            errors.into_iter().for_each(|d| self.errors.push(d));
        }
    }

    /// Adds a kernel. `grid` lists the coordinates of blocks, without their `@`, and their extents;
    /// `threads` is the number of threads of a block. The kernel reads and writes the given tensors
    /// of the caller. `body` receives the coordinates and adds the statements.
    ///
    /// # Errors
    /// Errors of the kernel, or of the declarations before it. The module then stays unchanged.
    pub fn kernel<T: Into<Num>, const G: usize>(
        &mut self,
        name: &str,
        grid: [(&str, T); G],
        threads: impl Into<Num>,
        reads: &[&Tensor],
        writes: &[&Tensor],
        body: impl FnOnce(&mut Body, [Num; G]),
    ) -> Result<(), Diagnostics> {
        let grid = grid.map(|(name, n)| (format!("@{name}"), n.into().0));
        let coordinates = std::array::from_fn(|i| Num::of(&grid[i].0));
        let mut inner = Body::default();
        body(&mut inner, coordinates);
        let modes = grid.map(|(name, n)| (Some(Name::new(name)), n)).to_vec();
        let launch = Launch {
            blocks: Group::New { name: Name::new("grid"), modes },
            threads: Group::New { name: Name::new("cta"), modes: vec![(None, threads.into().0)] },
        };
        let spec = Spec {
            name: Some(Name::new(name)),
            exec: Some(Exec::Launch(Box::new(launch))),
            inputs: reads.iter().map(|t| Operand::View(t.0.clone())).collect(),
            outputs: writes.iter().map(|t| t.0.clone()).collect(),
            body: Some(inner.into_block()),
            ..Spec::new(SpecKind::Generic)
        };
        self.push(Stmt::new(StmtKind::Spec(spec)))
    }

    /// Adds a kernel-level spec, which states the computation only:
    /// `MatMul.set @gemm (%A, %B) -> (%C)`.
    ///
    /// # Errors
    /// As [`Builder::kernel`].
    pub fn spec(
        &mut self,
        kind: SpecKind,
        name: &str,
        reads: &[&Tensor],
        write: &Tensor,
        attrs: Vec<Attr>,
    ) -> Result<(), Diagnostics> {
        let spec = Spec {
            name: Some(Name::new(name)),
            inputs: reads.iter().map(|t| Operand::View(t.0.clone())).collect(),
            outputs: vec![write.0.clone()],
            attrs,
            ..Spec::new(kind)
        };
        self.push(Stmt::new(StmtKind::Spec(spec)))
    }

    /// A kernel-level spec whose `means` block says what it computes:
    /// `Spec @relu (%X) -> (%Y) means { %Y = relu(%X) }`.
    ///
    /// # Errors
    /// As [`Builder::kernel`].
    pub fn means(
        &mut self,
        name: &str,
        reads: &[&Tensor],
        writes: &[&Tensor],
        attrs: Vec<Attr>,
        means: impl FnOnce(&mut Body),
    ) -> Result<(), Diagnostics> {
        let mut inner = Body::default();
        means(&mut inner);
        let spec = Spec {
            name: Some(Name::new(name)),
            inputs: reads.iter().map(|t| Operand::View(t.0.clone())).collect(),
            outputs: writes.iter().map(|t| t.0.clone()).collect(),
            attrs,
            means: Some(inner.into_block()),
            ..Spec::new(SpecKind::Generic)
        };
        self.push(Stmt::new(StmtKind::Spec(spec)))
    }

    /// Adds any other statement.
    ///
    /// # Errors
    /// As [`Builder::kernel`].
    pub fn push(&mut self, stmt: Stmt) -> Result<(), Diagnostics> {
        if !self.errors.is_empty() {
            return Err(self.errors.clone());
        }
        self.module.items.push(stmt);
        let checked = check(&self.module);
        if checked.is_err() {
            self.module.items.pop();
        }
        checked
    }

    /// Returns the module.
    ///
    /// # Errors
    /// Errors of declarations.
    pub fn finish(self) -> Result<Module, Diagnostics> {
        if self.errors.is_empty() { Ok(self.module) } else { Err(self.errors) }
    }
}

/// Resolves and verifies a module. Errors refer to places in its printed text, and quote the lines.
///
/// # Errors
/// All errors of the module.
pub fn check(module: &Module) -> Result<(), Diagnostics> {
    let unwritable = text::well_formed(module);
    if !unwritable.is_empty() {
        return Err(unwritable);
    }
    let src = text::print(module);
    let quoted = |errors: Diagnostics| -> Diagnostics {
        let quoted = |d: Diagnostic| {
            let (line, _) = d.span.line_col(&src);
            match src.lines().nth(line.saturating_sub(1)) {
                Some(line) if d.code != Code::Internal => d.note(format!("in `{}`", line.trim())),
                _ => d,
            }
        };
        errors.into_iter().map(quoted).collect()
    };
    let read = text::parse(&src).map_err(quoted)?;
    let program = resolve::resolve_read(&read, &src).map_err(quoted)?;
    let errors = verify::verify(&program);
    if errors.is_empty() { Ok(()) } else { Err(quoted(errors)) }
}

// ---- Bodies -------------------------------------------------------------------------------------

/// The statements of a kernel or a loop. All threads of the block execute them, unless a spec names
/// others.
#[derive(Clone, Debug, Default)]
pub struct Body {
    stmts: Vec<Stmt>,
    loc: Option<String>,
}

impl Body {
    /// Sets the place in the source program for the statements that follow; errors of specs show
    /// it.
    pub fn loc(&mut self, loc: impl Into<String>) {
        self.loc = Some(loc.into());
    }

    fn attrs(&self, mut attrs: Vec<Attr>) -> Vec<Attr> {
        let said = Attr::among(&attrs, Key::Loc).is_some();
        if let Some(loc) = self.loc.as_ref().filter(|_| !said) {
            attrs.push(Attr::loc(loc));
        }
        attrs
    }

    /// Adds any other statement.
    pub fn push(&mut self, kind: StmtKind) {
        self.stmts.push(Stmt::new(kind));
    }

    /// `let K = 2 * M`
    pub fn constant(&mut self, name: &str, value: impl Into<Num>) -> Num {
        self.push(StmtKind::Let(vec![(Name::new(name), value.into().0)]));
        Num::of(name)
    }

    /// A number that is read from an integer tensor of the caller, `@n = %sizes[@g]`. The tensor
    /// must state the range of its integers ([`Builder::integers`]).
    pub fn element(&mut self, name: &str, of: &Tensor) -> Num {
        let name = format!("@{name}");
        self.push(StmtKind::Element { name: Name::new(&name), view: of.0.clone() });
        Num::of(name)
    }

    /// A counter, `counter @q = 0`: an integer that [`Body::step`] changes. The returned number is
    /// the value of the counter at the place where it is used.
    pub fn counter(&mut self, name: &str, start: impl Into<Num>) -> Num {
        let name = format!("@{name}");
        let start = start.into().0;
        self.push(StmtKind::Counter { name: Name::new(&name), start });
        Num::of(name)
    }

    /// A step of a counter, `@q += 1`. Views and constants made from the counter before must not be
    /// used after it.
    pub fn step(&mut self, counter: &str, by: impl Into<Num>) {
        let name = Name::new(format!("@{counter}"));
        self.push(StmtKind::Step { name, adds: true, value: by.into().0 });
    }

    /// Defines a name for a view, `%a = %A.tile([8,8])[0, 0]`.
    pub fn view(&mut self, name: &str, of: &Tensor) -> Tensor {
        self.push(StmtKind::DataDef { name: Name::new(name), ty: None, view: of.0.clone() });
        Tensor::of(name)
    }

    /// Allocates a tensor in shared memory, or in the registers of the block's threads. The solver
    /// chooses its layout.
    pub fn allocate(
        &mut self,
        name: &str,
        shape: impl Nums,
        scalar: Scalar,
        memory: Memory,
    ) -> Tensor {
        let ty = TensorType {
            levels: vec![level(shape)],
            scalar,
            memory: Some(memory),
            attrs: vec![TypeAttr::Open],
            span: Span::default(),
        };
        self.push(StmtKind::Allocate { name: Name::new(name), ty });
        Tensor::of(name)
    }

    /// A tensor in registers whose elements all have one value: `%acc:[64,64].f32 = 0`.
    pub fn fill(
        &mut self,
        name: &str,
        shape: impl Nums,
        scalar: Scalar,
        value: impl Into<Num>,
    ) -> Tensor {
        let ty = ResultType {
            levels: vec![level(shape)],
            scalar: Some(scalar),
            memory: None,
            attrs: vec![],
            span: Span::default(),
        };
        let (target, value) = (View::of(name), TensorExpr::Number(value.into().0));
        self.push(StmtKind::Assign { target, ty: Some(ty), value });
        Tensor::of(name)
    }

    /// A tensor in registers with the result of an expression: `%p = exp(%s - %max)`.
    pub fn compute(&mut self, name: &str, value: impl Into<Value>) -> Tensor {
        self.assign(View::of(name), None, value.into());
        Tensor::of(name)
    }

    /// A copy of a tensor in a memory: `%a:SH = move(%A.tile([64,32])[@i, k])`.
    pub fn copy(&mut self, name: &str, of: &Tensor, memory: Memory) -> Tensor {
        let (levels, attrs, span) = (vec![], vec![], Span::default());
        let ty = ResultType { levels, scalar: None, memory: Some(memory), attrs, span };
        self.assign(View::of(name), Some(ty), of.into());
        Tensor::of(name)
    }

    /// Writes the result of an expression to a tensor.
    pub fn store(&mut self, to: &Tensor, value: impl Into<Value>) {
        self.assign(to.0.clone(), None, value.into());
    }

    fn assign(&mut self, target: View, ty: Option<ResultType>, value: Value) {
        let mut value = match value.0 {
            TensorExpr::View(view) => {
                TensorExpr::apply(SpecKind::Move, vec![TensorExpr::View(view)])
            }
            value => value,
        };
        if let TensorExpr::Apply(apply) = &mut value {
            apply.attrs = self.attrs(std::mem::take(&mut apply.attrs));
        }
        self.push(StmtKind::Assign { target, ty, value });
    }

    /// `MatMul (%a, %b) -> (%acc)`: adds a matrix product.
    pub fn matmul_add(&mut self, a: &Tensor, b: &Tensor, acc: &Tensor) {
        self.spec(SpecKind::MatMul, &[a, b], acc, vec![]);
    }

    /// A spec with one output and attributes such as [`statements::word`]`(Key::Acc, "f32")`.
    pub fn spec(&mut self, kind: SpecKind, reads: &[&Tensor], write: &Tensor, attrs: Vec<Attr>) {
        let inputs = reads.iter().map(|t| Operand::View(t.0.clone())).collect();
        let (outputs, attrs) = (vec![write.0.clone()], self.attrs(attrs));
        self.push(StmtKind::Spec(Spec { inputs, outputs, attrs, ..Spec::new(kind) }));
    }

    /// A generic spec with a body. The threads `by`, without `#`, execute it.
    pub fn by(
        &mut self,
        by: Option<&str>,
        reads: &[&Tensor],
        writes: &[&Tensor],
        body: impl FnOnce(&mut Body),
    ) {
        let spec = Spec {
            exec: by.map(|name| Exec::Threads(View::of(name))),
            inputs: reads.iter().map(|t| Operand::View(t.0.clone())).collect(),
            outputs: writes.iter().map(|t| t.0.clone()).collect(),
            attrs: self.attrs(vec![]),
            body: Some(self.inside(body)),
            ..Spec::new(SpecKind::Generic)
        };
        self.push(StmtKind::Spec(spec));
    }

    /// `for (k = 0; k < end; k += 1) { .. }`
    pub fn repeat(&mut self, var: &str, end: impl Into<Num>, body: impl FnOnce(&mut Body, Num)) {
        self.looped(var, end.into(), None, body);
    }

    /// Like [`Body::repeat`], with this number of iterations in flight: `stages=3`.
    pub fn staged(
        &mut self,
        stages: impl Into<Num>,
        var: &str,
        end: impl Into<Num>,
        body: impl FnOnce(&mut Body, Num),
    ) {
        self.looped(var, end.into(), Some(stages.into().0), body);
    }

    fn looped(
        &mut self,
        var: &str,
        end: Num,
        stages: Option<Expr>,
        body: impl FnOnce(&mut Body, Num),
    ) {
        let body = self.inside(|inner| body(inner, Num::of(var)));
        self.push(StmtKind::For {
            also: vec![],
            var: Name::new(var),
            start: Expr::int(0),
            end: end.0,
            step: Expr::int(1),
            unroll: Unroll::Default,
            stages,
            body,
        });
    }

    /// `if (k < n) { .. }`
    pub fn when(
        &mut self,
        lhs: impl Into<Num>,
        op: CmpOp,
        rhs: impl Into<Num>,
        body: impl FnOnce(&mut Body),
    ) {
        let cond = vec![Compare { lhs: lhs.into().0, op, rhs: rhs.into().0 }];
        let then = self.inside(body);
        self.push(StmtKind::If { cond, then, otherwise: None });
    }

    /// Uses a sub-spec: `@scale[64, f16] (%a) -> (%b)`. A type is passed as [`Num::of`]`("f16")`.
    pub fn call(&mut self, name: &str, args: impl Nums, reads: &[&Tensor], writes: &[&Tensor]) {
        self.push(StmtKind::Call(Call {
            name: Name::new(name),
            args: args.nums().into_iter().map(|n| n.0).collect(),
            inputs: reads.iter().map(|t| Operand::View(t.0.clone())).collect(),
            outputs: writes.iter().map(|t| t.0.clone()).collect(),
            declared: vec![],
            span: Span::default(),
        }));
    }

    /// Waits until all threads of the block have arrived.
    pub fn barrier(&mut self) {
        self.push(StmtKind::Barrier(None));
    }

    fn inside(&self, body: impl FnOnce(&mut Body)) -> Block {
        let mut inner = Body { stmts: vec![], loc: self.loc.clone() };
        body(&mut inner);
        inner.into_block()
    }

    fn into_block(self) -> Block {
        Block { stmts: self.stmts, footer: vec![] }
    }
}
