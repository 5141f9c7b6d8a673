//! The part of CUDA C++ that kernels are printed in.
//!
//! Invariant: a tree has one text. Names are identifiers that [`crate::namer`] has admitted, or
//! spellings of CUDA itself (`threadIdx.x`, `__half`), which are constants of this crate or of an
//! atom.

use std::borrow::Cow;

/// A spelling: mostly a constant, sometimes an admitted name.
pub type Word = Cow<'static, str>;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A variable, or a spelling such as `threadIdx.x`.
    Name(Word),
    /// An integer; beyond 32 bits it prints with `LL`.
    Int(i64),
    /// A literal that is no integer, such as `0.0f`.
    Literal(String),
    /// `f(a, b)`; the callee may carry template arguments.
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

/// Operators of one operand.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-`
    Neg,
    /// `*`
    Deref,
    /// `&`
    Address,
}

/// Operators of two operands.
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

/// A type: a name, perhaps const, perhaps pointed to.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// `float`, `__half`
    pub name: Word,
    /// `const T`
    pub is_const: bool,
    /// `T*`
    pub pointer: Pointer,
}

/// Whether a type is pointed to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// Not.
    None,
    /// `T*`
    Plain,
    /// `T* __restrict__`
    Restrict,
}

/// A statement with the comment at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Without `//`.
    pub comment: Option<String>,
    /// Whether each thread does it alone, at once, and orders nothing but what its operands are.
    pub alone: bool,
}

/// Kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// A comment on its own line, without `//`.
    Comment(String),
    /// A declaration.
    Declare(Declare),
    /// A statement of an atom with its operands filled in.
    Filled(Vec<Piece>),
    /// `f(x);`
    Expr(Expr),
    /// `a += 1;`
    Assign {
        /// What is assigned to.
        to: Expr,
        /// How.
        op: Assign,
        /// The value on the right.
        value: Expr,
    },
    /// Inline PTX.
    Asm(Asm),
    /// A counted loop.
    For(For),
    /// A condition; no `else` where `otherwise` is empty.
    If {
        /// What must hold.
        cond: Expr,
        /// The statements for when the condition holds.
        then: Vec<Stmt>,
        /// The statements for when it does not.
        otherwise: Vec<Stmt>,
    },
    /// `{ .. }`
    Block(Vec<Stmt>),
}

/// Operators of an assignment.
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
    /// Its type, or its elements'.
    pub ty: Type,
    /// Its name.
    pub name: Word,
    /// Elements of an array.
    pub array: Option<i64>,
    /// First value.
    pub init: Option<Expr>,
    /// Whether [`super::prune`] may drop it where nothing uses it.
    pub droppable: bool,
}

/// A piece of a filled-in statement.
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
    /// The instruction; operands as `%0`. Without the newline at its end.
    pub text: String,
    /// Constraint and lvalue.
    pub outputs: Vec<(String, Expr)>,
    /// Constraint and value.
    pub inputs: Vec<(String, Expr)>,
    /// Whether it reads or writes memory.
    pub memory: bool,
}

/// `for (int k = start; k < end; k += step) { .. }`
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// `#pragma unroll 1`, without `#`.
    pub pragma: Option<&'static str>,
    /// Type of the variable.
    pub ty: Type,
    /// Its name.
    pub var: Word,
    /// First value.
    pub start: Expr,
    /// Exclusive bound.
    pub end: Expr,
    /// Positive step.
    pub step: i64,
    /// The statements that are repeated.
    pub body: Vec<Stmt>,
}

/// What stands at the top level of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Comment lines.
    Comment(Vec<String>),
    /// `#include <..>` lines.
    Includes(Vec<&'static str>),
    /// A helper function, or lines for the preprocessor, as they stand.
    Helper(&'static str),
    /// The kernel function.
    Kernel(Kernel),
    /// A function of the host.
    Function(Function),
}

/// A function that is no kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Lines of the comment above it, without `//`.
    pub comment: Vec<String>,
    /// Linkage and return type.
    pub head: &'static str,
    /// Its name.
    pub name: Word,
    /// Type and name of each.
    pub params: Vec<(Type, Word)>,
    /// Its statements.
    pub body: Vec<Stmt>,
}

/// The kernel function.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Its name, the same in the object file.
    pub name: Word,
    /// `__launch_bounds__(n)`
    pub threads: i64,
    /// Whether a block has the multiprocessor for itself, `__launch_bounds__(n, 1)`: from that
    /// ptxas knows how many registers a thread begins with, without which it takes no change of
    /// them.
    pub alone: bool,
    /// `__cluster_dims__(n, 1, 1)`
    pub cluster: Option<i64>,
    /// Type and name of each.
    pub params: Vec<(Type, Word)>,
    /// Alignment of the dynamic shared allocation, where there is one.
    pub shared_align: Option<i64>,
    /// Its statements.
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
    /// `T*`, of a const `T` where asked.
    pub fn pointer(name: impl Into<Word>, is_const: bool) -> Type {
        Type { name: name.into(), is_const, pointer: Pointer::Plain }
    }
}

impl Stmt {
    /// A statement without a comment.
    pub fn new(kind: StmtKind) -> Stmt {
        Stmt { kind, comment: None, alone: false }
    }
    /// The same with a comment at its end.
    #[must_use]
    pub fn comment(mut self, text: impl Into<String>) -> Stmt {
        self.comment = Some(text.into());
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
    /// `const T name = init;`, dropped where nothing uses it.
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
