//! Defines the syntax tree of CUDA C++ code, restricted to the constructs of printed files:
//! expressions ([`Expr`]), statements ([`Stmt`]), kernels, and host functions that launch them.
//! Helper functions and headers are fixed texts in it.
//!
//! Invariant: a tree has exactly one text, since the printer has no choices. A name is an
//! identifier that [`crate::namer`] has admitted, or a string literal of this crate or of an atom
//! with the spelling of CUDA itself (`threadIdx.x`, `__half`).

use std::borrow::Cow;

/// A word: usually a constant, sometimes an admitted name.
pub type Word = Cow<'static, str>;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A variable, or a spelling such as `threadIdx.x`.
    Name(Word),
    /// An integer; printed with `LL` beyond 32 bits.
    Int(i64),
    /// A literal other than an integer, such as `0.0f`.
    Literal(String),
    /// `f(a, b)`; the callee may include template arguments.
    Call(Word, Vec<Expr>),
    /// `a[i]`
    Index(Box<Expr>, Box<Expr>),
    /// `-a`, `*a`, `&a`
    Unary(Unary, Box<Expr>),
    /// `a + b`
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `(long long)a`
    Cast(Type, Box<Expr>),
    /// `reinterpret_cast<T>(a)`
    Reinterpret(Type, Box<Expr>),
    /// `c ? a : b`
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// Unary operators.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-`
    Neg,
    /// `*`
    Deref,
    /// `&`
    Address,
}

/// Binary operators.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `<<`
    Shl,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// A type: a name, optionally const, optionally a pointer.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// `float`, `__half`
    pub name: Word,
    /// `const T`
    pub is_const: bool,
    /// `T*`
    pub pointer: Pointer,
}

/// The kinds of pointer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// Not a pointer.
    None,
    /// `T*`
    Plain,
    /// `T* __restrict__`
    Restrict,
}

/// A statement, with the comment at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// The statement itself.
    pub kind: StmtKind,
    /// The comment.
    pub comment: Option<Comment>,
    /// Whether each thread executes the statement by itself and synchronously, and the statement
    /// has no effect beyond its operands.
    pub alone: bool,
}

/// A comment, without `//`: `line 12: cp.async.cg.b128`.
#[derive(Clone, Debug, PartialEq)]
pub struct Comment {
    /// The line of the program that the statement comes from, counted from 1; 0 if it has none.
    pub line: u32,
    /// The text behind the line; may be empty.
    pub text: String,
}

impl std::fmt::Display for Comment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.line, self.text.as_str()) {
            (0, text) => f.write_str(text),
            (line, "") => write!(f, "line {line}"),
            (line, text) => write!(f, "line {line}: {text}"),
        }
    }
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// A comment on its own line.
    Comment(Comment),
    /// `#line 12 "kernel.cby"`
    Line {
        /// The line, counted from 1.
        line: u32,
        /// The file, as a string literal.
        file: String,
    },
    /// A declaration.
    Declare(Declare),
    /// A statement of an atom with its operands filled in.
    Filled(Vec<Piece>),
    /// `f(x);`
    Expr(Expr),
    /// `a += 1;`
    Assign {
        /// The target.
        to: Expr,
        /// The operator.
        op: Assign,
        /// The value on the right.
        value: Expr,
    },
    /// Inline PTX.
    Asm(Asm),
    /// A counted loop.
    For(For),
    /// A condition; `otherwise` is empty without an `else`.
    If {
        /// The condition.
        cond: Expr,
        /// The statements if the condition holds.
        then: Vec<Stmt>,
        /// The statements if the condition does not hold.
        otherwise: Vec<Stmt>,
    },
    /// `{ .. }`
    Block(Vec<Stmt>),
}

/// Assignment operators.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Assign {
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `^=`
    Xor,
}

/// A declared variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Declare {
    /// `alignas(n)`
    pub align: Option<i64>,
    /// The type of the variable, or of the elements of an array.
    pub ty: Type,
    /// The name.
    pub name: Word,
    /// The number of elements of an array.
    pub array: Option<i64>,
    /// The initial value.
    pub init: Option<Expr>,
    /// Whether [`super::prune`] may drop the variable if nothing uses it.
    pub droppable: bool,
}

/// A piece of a statement of an atom.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text of the atom.
    Text(&'static str),
    /// An operand.
    Operand(Expr),
}

/// `asm volatile("..." : outputs : inputs : "memory");`
#[derive(Clone, Debug, PartialEq)]
pub struct Asm {
    /// The instruction, with operands as `%0`, without the newline at its end.
    pub text: String,
    /// Constraint and lvalue.
    pub outputs: Vec<(String, Expr)>,
    /// Constraint and value.
    pub inputs: Vec<(String, Expr)>,
    /// Whether the instruction reads or writes memory.
    pub memory: bool,
}

/// `for (int k = start; k < end; k += step) { .. }`
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// The pragma without `#`, such as `pragma unroll 1`.
    pub pragma: Option<&'static str>,
    /// The type of the variable.
    pub ty: Type,
    /// The name of the variable.
    pub var: Word,
    /// The first value.
    pub start: Expr,
    /// The exclusive bound.
    pub end: Expr,
    /// Further conditions of an iteration.
    pub also: Option<Expr>,
    /// The step, which is positive.
    pub step: i64,
    /// The body.
    pub body: Vec<Stmt>,
}

/// An item at the top level of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Comment lines.
    Comment(Vec<String>),
    /// `#include <..>` lines.
    Includes(Vec<&'static str>),
    /// A helper function or preprocessor lines, printed verbatim.
    Helper(&'static str),
    /// The kernel function.
    Kernel(Kernel),
    /// A host function.
    Function(Function),
}

/// A function other than a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The lines of the comment above the function, without `//`.
    pub comment: Vec<String>,
    /// The linkage and return type.
    pub head: &'static str,
    /// The name.
    pub name: Word,
    /// The type and name of each parameter.
    pub params: Vec<(Type, Word)>,
    /// The body.
    pub body: Vec<Stmt>,
}

/// A kernel function.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The name, which is also the name in the object file.
    pub name: Word,
    /// `__launch_bounds__(n)`
    pub threads: i64,
    /// Whether a block has the multiprocessor to itself: `__launch_bounds__(n, 1)`. ptxas derives
    /// the initial registers of a thread from this bound, and accepts `setmaxnreg` only with the
    /// bound.
    pub alone: bool,
    /// `__cluster_dims__(n, 1, 1)`
    pub cluster: Option<i64>,
    /// The type and name of each parameter.
    pub params: Vec<(Type, Word)>,
    /// The alignment of the dynamic shared memory, if any.
    pub shared_align: Option<i64>,
    /// The body.
    pub body: Vec<Stmt>,
}

impl Expr {
    /// A name.
    pub fn name(name: impl Into<Word>) -> Expr {
        Expr::Name(name.into())
    }
    /// `f(args)`
    pub fn call(f: impl Into<Word>, args: impl Into<Vec<Expr>>) -> Expr {
        Expr::Call(f.into(), args.into())
    }
    /// `self ? yes : no`
    #[must_use]
    pub fn choose(self, yes: Expr, no: Expr) -> Expr {
        Expr::Choose(Box::new(self), Box::new(yes), Box::new(no))
    }
    /// `self op other`
    #[must_use]
    pub fn binary(self, op: Binary, other: Expr) -> Expr {
        Expr::Binary(op, Box::new(self), Box::new(other))
    }
    /// `self[i]`
    #[must_use]
    pub fn at(self, i: Expr) -> Expr {
        Expr::Index(Box::new(self), Box::new(i))
    }
    /// `&self`
    #[must_use]
    pub fn address(self) -> Expr {
        Expr::Unary(Unary::Address, Box::new(self))
    }
    /// `*self`
    #[must_use]
    pub fn deref(self) -> Expr {
        Expr::Unary(Unary::Deref, Box::new(self))
    }
}

impl Type {
    /// `T`
    pub fn named(name: impl Into<Word>) -> Type {
        Type { name: name.into(), is_const: false, pointer: Pointer::None }
    }
    /// `const T`
    pub fn constant(name: impl Into<Word>) -> Type {
        Type { is_const: true, ..Type::named(name) }
    }
    /// `T*`, or `const T*` if `is_const`.
    pub fn pointer(name: impl Into<Word>, is_const: bool) -> Type {
        Type { name: name.into(), is_const, pointer: Pointer::Plain }
    }
}

impl Stmt {
    /// A statement without a comment.
    pub fn new(kind: StmtKind) -> Stmt {
        Stmt { kind, comment: None, alone: false }
    }
    /// Adds a comment at the end of the statement.
    #[must_use]
    pub fn comment(mut self, text: impl Into<String>) -> Stmt {
        self.comment = Some(Comment { line: 0, text: text.into() });
        self
    }
    /// `T name = init;`
    pub fn variable(ty: Type, name: impl Into<Word>, init: Expr) -> Stmt {
        Stmt::new(StmtKind::Declare(Declare {
            align: None,
            ty,
            name: name.into(),
            array: None,
            init: Some(init),
            droppable: false,
        }))
    }
    /// `const T name = init;`, dropped if nothing uses it.
    pub fn constant(ty: impl Into<Word>, name: impl Into<Word>, init: Expr) -> Stmt {
        Stmt::new(StmtKind::Declare(Declare {
            align: None,
            ty: Type::constant(ty),
            name: name.into(),
            array: None,
            init: Some(init),
            droppable: true,
        }))
    }
}
