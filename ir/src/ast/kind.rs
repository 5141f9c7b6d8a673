//! Defines the kinds of specs ([`SpecKind`]: `Move`, `MatMul`, `Reduction`, ..) and their
//! properties, for example the word in the text, the number of operands, the rule that extents must
//! satisfy, whether the output is also read.
//!
//! Rules that concern several kinds ask for these properties. A new kind needs a variant and its
//! properties in this file, a meaning in the simulator, and code wherever single kinds are treated
//! apart.

use crate::scalar::{Scalar, spelled};

/// A computation. The kinds are those of Graphene's Table 1 (without Allocate, which is a
/// statement), `Move.add`, `Select` and the generic `Spec`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum SpecKind {
    /// `Move`: the output is the input, element by element. A mode of the input that has extent 1
    /// if the output has n is broadcast; both have the same rank.
    Move,
    /// `Move.add`: the output is the sum (the minimum, the maximum) of itself and the input,
    /// element by element. The update of an element is atomic: any threads of any blocks may update
    /// one, in any order.
    Accumulate(AccumulateOp),
    /// `MatMul`: C += A·B.
    MatMul,
    /// `MatMul.set`: C = A·B.
    MatMulSet,
    /// `UnaryPointwise.exp`
    Unary(UnaryOp),
    /// `BinaryPointwise.add`: modes of extent 1 as in a Move; one input may be a literal of their
    /// type.
    Binary(BinaryOp),
    /// `Select (%p, %a, %b) -> (%d)`: the element of `%a` where that of `%p` is true, else that of
    /// `%b`.
    Select,
    /// `Reduction.sum`: over the modes named by `axis=`.
    Reduction(ReduceOp),
    /// `Shfl.bfly`: exchange within a warp; `lane=` gives the lane or the mask.
    Shfl(ShflOp),
    /// `Init`: every element becomes the scalar.
    Init,
    /// `Iota (%x) -> (%i) axis=1`: the coordinate along a mode of the input, whose elements are not
    /// read. Allowed in `means` blocks only.
    Iota,
    /// `Spec`: its meaning is its `means` block, or without one its body.
    Generic,
}

spelled! {
    /// Pointwise functions of one operand.
    UnaryOp {
        /// Conversion to the output's scalar type, rounded to nearest even.
        Cast = "cast",
        /// Negation.
        Neg = "neg",
        /// Absolute value.
        Abs = "abs",
        /// e^x.
        Exp = "exp",
        /// 2^x.
        Exp2 = "exp2",
        /// Natural logarithm.
        Log = "log",
        /// Square root.
        Sqrt = "sqrt",
        /// 1/sqrt(x).
        Rsqrt = "rsqrt",
        /// 1/x.
        Rcp = "rcp",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// 1/(1+e^-x).
        Sigmoid = "sigmoid",
        /// max(x, 0).
        Relu = "relu",
        /// x·Φ(x), by erf.
        Gelu = "gelu",
        /// x·sigmoid(x).
        Silu = "silu",
    }
}

spelled! {
    /// Pointwise functions of two operands.
    BinaryOp {
        /// Sum.
        Add = "add",
        /// Difference.
        Sub = "sub",
        /// Product.
        Mul = "mul",
        /// Quotient.
        Div = "div",
        /// Smaller one; of a NaN and a number the number (IEEE 754-2019, minimumNumber).
        Min = "min",
        /// Larger one; of a NaN and a number the number (IEEE 754-2019, maximumNumber).
        Max = "max",
        /// Smaller one of floats; of a NaN and a number the NaN (IEEE 754-2019, minimum).
        Minimum = "minimum",
        /// Larger one of floats; of a NaN and a number the NaN (IEEE 754-2019, maximum).
        Maximum = "maximum",
        /// Whether the first is less. All comparisons give `bool`; with a NaN, all but `ne` are
        /// false.
        Lt = "lt",
        /// Whether the first is at most the second.
        Le = "le",
        /// Whether they are equal.
        Eq = "eq",
        /// Whether they differ; true of a NaN.
        Ne = "ne",
        /// Whether the first is at least the second.
        Ge = "ge",
        /// Whether the first is greater.
        Gt = "gt",
    }
}

impl BinaryOp {
    /// Whether the result is a `bool`.
    pub fn compares(self) -> bool {
        use BinaryOp::*;
        match self {
            Lt | Le | Eq | Ne | Ge | Gt => true,
            Add | Sub | Mul | Div | Min | Max | Minimum | Maximum => false,
        }
    }
}

spelled! {
    /// The operation by which `Move.add`, `Move.min` and `Move.max` combine the output with the
    /// input.
    AccumulateOp {
        /// Their sum.
        Add = "add",
        /// The smaller one.
        Min = "min",
        /// The larger one.
        Max = "max",
    }
}

impl AccumulateOp {
    /// The pointwise function that computes it.
    pub fn binary(self) -> BinaryOp {
        match self {
            AccumulateOp::Add => BinaryOp::Add,
            AccumulateOp::Min => BinaryOp::Min,
            AccumulateOp::Max => BinaryOp::Max,
        }
    }
}

spelled! {
    /// Associative operations of a reduction.
    ReduceOp {
        /// Sum.
        Sum = "sum",
        /// Product.
        Prod = "prod",
        /// Smallest element, ignoring NaNs; NaN if all are NaN.
        Min = "min",
        /// Largest element, ignoring NaNs; NaN if all are NaN.
        Max = "max",
        /// Smallest element of floats; NaN if one of them is.
        Minimum = "minimum",
        /// Largest element of floats; NaN if one of them is.
        Maximum = "maximum",
        /// Bitwise and of integers.
        And = "and",
        /// Bitwise or of integers.
        Or = "or",
        /// Bitwise exclusive or of integers.
        Xor = "xor",
    }
}

spelled! {
    /// The lane that a shuffle reads.
    ShflOp {
        /// The lane with this index.
        Idx = "idx",
        /// The lane this many below.
        Up = "up",
        /// The lane this many above.
        Down = "down",
        /// The lane whose index differs by an exclusive or with this mask.
        Bfly = "bfly",
    }
}

impl ReduceOp {
    /// The neutral element of the operation for elements of a type: 0 for a sum, -inf or the least
    /// integer for a maximum. A reduction of no elements gives it. `None` if the type does not have
    /// the operation.
    ///
    /// ```
    /// use carbyne_ir::ast::ReduceOp;
    /// use carbyne_ir::scalar::Scalar;
    ///
    /// assert_eq!(ReduceOp::Max.neutral(Scalar::F16), Some(f64::NEG_INFINITY));
    /// assert_eq!(ReduceOp::Max.neutral(Scalar::I8), Some(-128.0));
    /// assert_eq!(ReduceOp::And.neutral(Scalar::F16), None);
    /// ```
    pub fn neutral(self, scalar: Scalar) -> Option<f64> {
        let ends = scalar.int_range().map(|(lo, hi)| (lo as f64, hi as f64));
        match self {
            ReduceOp::Sum | ReduceOp::Or | ReduceOp::Xor => Some(0.0),
            ReduceOp::Prod => Some(1.0),
            ReduceOp::Max | ReduceOp::Maximum => Some(ends.map_or(f64::NEG_INFINITY, |(lo, _)| lo)),
            ReduceOp::Min | ReduceOp::Minimum => Some(ends.map_or(f64::INFINITY, |(_, hi)| hi)),
            // All bits.
            ReduceOp::And => ends.map(|(lo, hi)| if lo < 0.0 { -1.0 } else { hi }),
        }
    }

    /// Whether it is a minimum or maximum that gives NaN if an element is NaN. Only floats have
    /// these operations.
    pub fn keeps_nan(self) -> bool {
        matches!(self, ReduceOp::Minimum | ReduceOp::Maximum)
    }

    /// The pointwise function of two elements that the reduction repeats, if there is one.
    pub fn combining(self) -> Option<BinaryOp> {
        match self {
            ReduceOp::Sum => Some(BinaryOp::Add),
            ReduceOp::Prod => Some(BinaryOp::Mul),
            ReduceOp::Min => Some(BinaryOp::Min),
            ReduceOp::Max => Some(BinaryOp::Max),
            ReduceOp::Minimum => Some(BinaryOp::Minimum),
            ReduceOp::Maximum => Some(BinaryOp::Maximum),
            ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => None,
        }
    }
}

/// Which inputs of a spec may be numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// None: all inputs are tensors.
    Nowhere,
    /// The one input is a number.
    Alone,
    /// One of the two inputs may be a number.
    Beside,
    /// All but the first may be numbers, in `means` blocks and in expressions.
    Chosen,
}

/// A rule for the extents of a spec's operands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ExtentRule {
    /// The output may have any extents.
    Any,
    /// All operands have the same extents.
    Same,
    /// All operands have the same extents, except that an input is broadcast along its modes of
    /// extent 1.
    Broadcast,
    /// The operands are A\[m,k\], B\[k,n\] and C\[m,n\], with the same batches in front.
    Product,
    /// The output lacks the modes of `axis=`, or has 1 there.
    Reduced,
    /// The output has the modes of `axis=`, and 1 elsewhere.
    Counted,
}

impl SpecKind {
    /// Every kind. Kinds with the same first word follow one another.
    ///
    /// ```
    /// use carbyne_ir::ast::SpecKind;
    ///
    /// let moves = SpecKind::all().filter(|kind| kind.word() == "Move");
    /// let texts: Vec<String> = moves.map(|kind| kind.to_string()).collect();
    /// assert_eq!(texts, ["Move", "Move.add", "Move.min", "Move.max"]);
    /// ```
    pub fn all() -> impl Iterator<Item = SpecKind> {
        use SpecKind::*;
        let moves = AccumulateOp::ALL.iter().map(|op| Accumulate(*op));
        [Move]
            .into_iter()
            .chain(moves)
            .chain([MatMul, MatMulSet])
            .chain(UnaryOp::ALL.iter().map(|op| Unary(*op)))
            .chain(BinaryOp::ALL.iter().map(|op| Binary(*op)))
            .chain(ReduceOp::ALL.iter().map(|op| Reduction(*op)))
            .chain(ShflOp::ALL.iter().map(|op| Shfl(*op)))
            .chain([Init, Iota, Select, Generic])
    }

    /// The words that begin a spec.
    pub fn words() -> impl Iterator<Item = &'static str> {
        let mut last = "";
        SpecKind::all()
            .map(SpecKind::word)
            .filter(move |word| std::mem::replace(&mut last, word) != *word)
    }

    /// Its name with an article: `an Init`
    pub fn with_article(self) -> String {
        let article = if self.word().starts_with('I') { "an" } else { "a" };
        format!("{article} {self}")
    }

    /// The word that begins it in text.
    pub fn word(self) -> &'static str {
        match self {
            SpecKind::Move | SpecKind::Accumulate(_) => "Move",
            SpecKind::MatMul | SpecKind::MatMulSet => "MatMul",
            SpecKind::Unary(_) => "UnaryPointwise",
            SpecKind::Binary(_) => "BinaryPointwise",
            SpecKind::Select => "Select",
            SpecKind::Reduction(_) => "Reduction",
            SpecKind::Shfl(_) => "Shfl",
            SpecKind::Init => "Init",
            SpecKind::Iota => "Iota",
            SpecKind::Generic => "Spec",
        }
    }

    /// The operation after the word, `add` in `Move.add`; `None` if the word is alone.
    pub fn operation(self) -> Option<&'static str> {
        match self {
            SpecKind::Accumulate(op) => Some(op.as_str()),
            SpecKind::MatMulSet => Some("set"),
            SpecKind::Unary(op) => Some(op.as_str()),
            SpecKind::Binary(op) => Some(op.as_str()),
            SpecKind::Reduction(op) => Some(op.as_str()),
            SpecKind::Shfl(op) => Some(op.as_str()),
            _ => None,
        }
    }

    /// The name of its function in expressions, if it has one. Operators with attributes are
    /// written as functions, too.
    pub(crate) fn function(self) -> Option<&'static str> {
        match self {
            SpecKind::Move => Some("move"),
            SpecKind::MatMulSet => Some("matmul"),
            SpecKind::Select => Some("select"),
            SpecKind::Unary(_) | SpecKind::Binary(_) | SpecKind::Reduction(_) => self.operation(),
            _ => None,
        }
    }

    /// The number of inputs; the kinds counted here have one output. `None` for a `Spec`, which has
    /// any number of both.
    #[must_use]
    pub fn n_inputs(self) -> Option<usize> {
        match self {
            SpecKind::Move
            | SpecKind::Accumulate(_)
            | SpecKind::Unary(_)
            | SpecKind::Reduction(_)
            | SpecKind::Shfl(_)
            | SpecKind::Init
            | SpecKind::Iota => Some(1),
            SpecKind::MatMul | SpecKind::MatMulSet | SpecKind::Binary(_) => Some(2),
            SpecKind::Select => Some(3),
            SpecKind::Generic => None,
        }
    }

    /// Which of its inputs may be numbers.
    #[must_use]
    pub fn numbers(self) -> Numbers {
        match self {
            SpecKind::Init => Numbers::Alone,
            SpecKind::Binary(_) => Numbers::Beside,
            SpecKind::Select => Numbers::Chosen,
            _ => Numbers::Nowhere,
        }
    }

    /// Its operands as text, for examples in errors.
    pub(crate) fn operands(self) -> &'static str {
        match (self.numbers(), self.n_inputs()) {
            (Numbers::Alone, _) => "(0) -> (%A)",
            (Numbers::Chosen, _) => "(%p, %A, %B) -> (%C)",
            (_, Some(2)) => "(%A, %B) -> (%C)",
            _ => "(%A) -> (%B)",
        }
    }

    /// The rule that the extents of its operands obey.
    #[must_use]
    pub fn extents(self) -> ExtentRule {
        match self {
            SpecKind::Init | SpecKind::Generic => ExtentRule::Any,
            SpecKind::Accumulate(_) | SpecKind::Unary(_) | SpecKind::Shfl(_) => ExtentRule::Same,
            SpecKind::Move | SpecKind::Binary(_) | SpecKind::Select => ExtentRule::Broadcast,
            SpecKind::MatMul | SpecKind::MatMulSet => ExtentRule::Product,
            SpecKind::Reduction(_) => ExtentRule::Reduced,
            SpecKind::Iota => ExtentRule::Counted,
        }
    }

    /// Whether it is a matrix product, with or without accumulation.
    #[must_use]
    pub fn is_product(self) -> bool {
        self.extents() == ExtentRule::Product
    }

    /// Whether each element of the output depends on one element of each input.
    #[must_use]
    pub fn is_pointwise(self) -> bool {
        matches!(self, SpecKind::Move | SpecKind::Unary(_) | SpecKind::Binary(_) | SpecKind::Select)
    }

    /// Whether each element of the output depends on at most one element of each input.
    #[must_use]
    pub fn is_elementwise(self) -> bool {
        self.is_pointwise() || self == SpecKind::Init
    }

    /// Whether it accumulates, so that the result depends on the old output.
    #[must_use]
    pub fn reads_output(self) -> bool {
        matches!(self, SpecKind::MatMul | SpecKind::Accumulate(_))
    }

    /// Whether `axis=` names modes of its input.
    #[must_use]
    pub fn has_axis(self) -> bool {
        matches!(self.extents(), ExtentRule::Reduced | ExtentRule::Counted)
    }

    /// Whether it may be a step of a `means` block, which computes whole tensors.
    #[must_use]
    pub fn may_be_meant(self) -> bool {
        !matches!(self, SpecKind::Accumulate(_) | SpecKind::Shfl(_) | SpecKind::Generic)
    }
}

impl std::fmt::Display for SpecKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.operation() {
            Some(operation) => write!(f, "{}.{operation}", self.word()),
            None => f.write_str(self.word()),
        }
    }
}
