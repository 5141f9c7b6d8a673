//! Traverses and rewrites syntax trees, for passes that handle few kinds of statements. A new kind
//! of statement lists its parts here, and these passes see them.
//!
//! [`Walk`] iterates over statements, and reports where blocks open and close. [`parts`] visits the
//! parts of one statement: names, views, expressions and types; [`parts_mut`] can change them.
//! [`rewrite`] replaces statements.
//!
//! Invariant: no function in this file recurses, so that trees of any depth are safe.

use super::{
    Apply, Attr, AttrValue, Block, Call, Choices, Compare, Def, Dims, Elements, Exec, Expr,
    ExprKind, Group, LayoutExpr, Module, Name, Number, Operand, Pick, ResultType, Spec, Stmt,
    StmtKind, Strategy, Symbols, SyncArg, TensorExpr, TensorType, ThreadType, Tiler, TupleExpr,
    TypeAttr, View, ViewOp,
};
use crate::span::Span;
use std::collections::HashSet;

/// The kind of thing that a name denotes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Of {
    /// `%A`
    Data,
    /// `#cta`
    Threads,
    /// `M`, `k`, `@i`: numbers, and the parameters of sub-specs.
    Number,
}

/// A step of a [`Walk`].
#[derive(Copy, Clone, Debug)]
pub enum Step<'a> {
    /// A statement, before its bodies.
    Enter(&'a Stmt),
    /// A block of the statement opens.
    Open(&'a Block),
    /// The block closes.
    Close(&'a Block),
    /// The statement again, after its bodies.
    Leave(&'a Stmt),
}

/// An iterator over statements and the statements of their bodies, in text order.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    todo: Vec<Step<'a>>,
    /// The length of `todo` without the bodies of the last statement.
    kept: usize,
    means: bool,
}

impl<'a> Walk<'a> {
    /// Walks through these statements. It skips `means` blocks, whose statements are specs on whole
    /// tensors with names of their own.
    pub fn new(stmts: &'a [Stmt]) -> Self {
        let todo: Vec<Step<'a>> = stmts.iter().rev().map(Step::Enter).collect();
        Walk { kept: todo.len(), todo, means: false }
    }

    /// Walks through `means` blocks, too.
    #[must_use]
    pub fn with_means(self) -> Self {
        Walk { means: true, ..self }
    }

    /// Skips the bodies of the statement that was entered last.
    pub fn skip_inside(&mut self) {
        self.todo.truncate(self.kept);
    }

    /// Only the statements, each before those of its bodies.
    pub fn stmts(self) -> impl Iterator<Item = &'a Stmt> {
        self.filter_map(|step| match step {
            Step::Enter(stmt) => Some(stmt),
            _ => None,
        })
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        let step = self.todo.pop()?;
        self.kept = self.todo.len();
        if let Step::Enter(stmt) = step {
            self.todo.push(Step::Leave(stmt));
            self.kept = self.todo.len();
            let left_out = usize::from(!self.means && stmt.kind.has_means());
            let mut blocks = stmt.kind.blocks().skip(left_out);
            let (first, second) = (blocks.next(), blocks.next());
            for block in second.into_iter().chain(first) {
                self.todo.push(Step::Close(block));
                self.todo.extend(block.stmts.iter().rev().map(Step::Enter));
                self.todo.push(Step::Open(block));
            }
        }
        Some(step)
    }
}

impl Module {
    /// Whether the ids of all statements differ, as in every parsed module.
    pub fn is_separate(&self) -> bool {
        let mut seen = HashSet::new();
        Walk::new(&self.items).with_means().stmts().all(|s| seen.insert(s.id.key()))
    }
}

/// Calls `visit` with every statement of a list and of its bodies; a statement comes before those
/// of its bodies. `visit` may change the bodies, and is called with their new statements. `means`
/// blocks are skipped.
pub fn each_mut(stmts: &mut [Stmt], visit: &mut dyn FnMut(&mut Stmt)) {
    let mut todo: Vec<&mut Stmt> = stmts.iter_mut().rev().collect();
    while let Some(stmt) = todo.pop() {
        visit(stmt);
        let at = todo.len();
        todo.extend(stmt.kind.bodies_mut().flat_map(|b| &mut b.stmts));
        todo[at..].reverse();
    }
}

/// The callbacks of [`rewrite`].
pub trait Rewriter {
    /// Called before the bodies of a statement; returns whether to rewrite them.
    fn enter(&mut self, _stmt: &mut Stmt) -> bool {
        true
    }

    /// Called after the bodies of a statement; appends the replacement of the statement to `out`.
    fn leave(&mut self, stmt: Stmt, out: &mut Vec<Stmt>) {
        out.push(stmt);
    }
}

/// Rewrites statements, each after those of its bodies. `means` blocks do not change.
pub fn rewrite(stmts: Vec<Stmt>, by: &mut dyn Rewriter) -> Vec<Stmt> {
    /// A block that is being rewritten.
    struct Frame {
        /// The statement of this body; `None` for the outermost list.
        owner: Option<Stmt>,
        /// The index of the body in its statement.
        body: usize,
        rest: std::vec::IntoIter<Stmt>,
        out: Vec<Stmt>,
    }
    let taken = |stmt: &mut Stmt, body: usize| {
        stmt.kind.bodies_mut().nth(body).map(|b| std::mem::take(&mut b.stmts).into_iter())
    };
    let mut around: Vec<Frame> = vec![];
    let mut now = Frame { owner: None, body: 0, rest: stmts.into_iter(), out: vec![] };
    loop {
        if let Some(mut stmt) = now.rest.next() {
            let inside = by.enter(&mut stmt).then(|| taken(&mut stmt, 0)).flatten();
            match inside {
                Some(rest) => {
                    let inner = Frame { owner: Some(stmt), body: 0, rest, out: vec![] };
                    around.push(std::mem::replace(&mut now, inner));
                }
                None => by.leave(stmt, &mut now.out),
            }
            continue;
        }
        let Some(mut owner) = now.owner.take() else { return now.out };
        if let Some(block) = owner.kind.bodies_mut().nth(now.body) {
            block.stmts = std::mem::take(&mut now.out);
        }
        now.body += 1;
        if let Some(rest) = taken(&mut owner, now.body) {
            (now.owner, now.rest) = (Some(owner), rest);
            continue;
        }
        let Some(outer) = around.pop() else { return now.out };
        now = outer;
        by.leave(owner, &mut now.out);
    }
}

/// Declares the enum of the parts of statements, and functions that list the direct parts of a
/// statement or part. It is used twice: for reading and for changing.
macro_rules! parts {
    (
        $(#[$meta:meta])* $Part:ident, $of_stmt:ident, $of_exec:ident, $of_part:ident,
        $type_attr:ident, $iter:ident, $as_ref:ident, $($mut:tt)?
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub enum $Part<'a> {
            /// A name that the statement defines, except the name of a kernel. The target of an
            /// assignment is `Referred`, even if the assignment declares it.
            Defined(&'a $($mut)? Name, Of),
            /// The name of a kernel or of a sub-spec.
            Kernel(&'a $($mut)? Name),
            /// The name of a tensor to which a view or a type refers, or of a symbol with a usual
            /// value.
            Referred(&'a $($mut)? Name, Of),
            /// A view; its name and operations follow.
            View(&'a $($mut)? View, Of),
            /// An expression over tensors; its operands follow.
            Tensors(&'a $($mut)? TensorExpr),
            /// The stated type of a result; its parts follow.
            ResultType(&'a $($mut)? ResultType),
            /// An expression over integers; its operands follow.
            Expr(&'a $($mut)? Expr),
            /// A tuple; its elements follow.
            Tuple(&'a $($mut)? TupleExpr),
            /// A level of a type; its tuples follow.
            Dims(&'a $($mut)? Dims),
            /// A layout; its tuples follow.
            Layout(&'a $($mut)? LayoutExpr),
            /// The type of a tensor; its parts follow.
            TensorType(&'a $($mut)? TensorType),
            /// The type of a thread tensor; its levels follow.
            ThreadType(&'a $($mut)? ThreadType),
            /// A literal operand.
            Number(&'a $($mut)? Number),
            /// An attribute of a spec; its value follows.
            Attr(&'a $($mut)? Attr),
        }

        /// Lists the direct parts of a statement, in text order.
        fn $of_stmt<'a>(stmt: &'a $($mut)? Stmt, out: &mut Vec<$Part<'a>>) {
            use $Part as P;
            match & $($mut)? stmt.kind {
                StmtKind::Let(defs) => {
                    for (name, value) in defs {
                        out.extend([P::Defined(name, Of::Number), P::Expr(value)]);
                    }
                }
                StmtKind::Sym(sym) => out.push(P::Defined(& $($mut)? sym.name, Of::Number)),
                StmtKind::Symbols(Symbols { names, facts, typical }) => {
                    out.extend(names.$iter().map(|n| P::Defined(n, Of::Number)));
                    for Compare { lhs, op: _, rhs } in facts {
                        out.extend([P::Expr(lhs), P::Expr(rhs)]);
                    }
                    out.extend(typical.$iter().map(|(n, _)| P::Referred(n, Of::Number)));
                }
                StmtKind::DataDecl { name, ty, range } => {
                    out.extend([P::Defined(name, Of::Data), P::TensorType(ty)]);
                    match range {
                        Some(Elements::Within(from, to) | Elements::Distinct(from, to)) => {
                            out.extend([P::Expr(from), P::Expr(to)]);
                        }
                        Some(Elements::Splits(n)) => out.push(P::Expr(n)),
                        None => {}
                    }
                }
                StmtKind::Allocate { name, ty } => {
                    out.extend([P::Defined(name, Of::Data), P::TensorType(ty)]);
                }
                StmtKind::DataDef { name, ty, view } => {
                    out.push(P::Defined(name, Of::Data));
                    out.extend(ty.$as_ref().map(P::TensorType));
                    out.push(P::View(view, Of::Data));
                }
                StmtKind::ThreadDecl { name, ty } => {
                    out.extend([P::Defined(name, Of::Threads), P::ThreadType(ty)]);
                }
                StmtKind::ThreadDef { name, ty, view } => {
                    out.push(P::Defined(name, Of::Threads));
                    out.extend(ty.$as_ref().map(P::ThreadType));
                    out.push(P::View(view, Of::Threads));
                }
                StmtKind::Indices { names, threads } => {
                    out.extend(names.$iter().map(|n| P::Defined(n, Of::Number)));
                    out.push(P::View(threads, Of::Threads));
                }
                StmtKind::Element { name, view } => {
                    out.extend([P::Defined(name, Of::Number), P::View(view, Of::Data)]);
                }
                StmtKind::Counter { name, start } => {
                    out.extend([P::Defined(name, Of::Number), P::Expr(start)]);
                }
                StmtKind::Step { name, adds: _, value } => {
                    out.extend([P::Referred(name, Of::Number), P::Expr(value)]);
                }
                StmtKind::Assign { target, ty, value } => {
                    out.push(P::View(target, Of::Data));
                    out.extend(ty.$as_ref().map(P::ResultType));
                    out.push(P::Tensors(value));
                }
                StmtKind::Import(_) => {}
                StmtKind::Def(Def { name, params, inputs, outputs, strategy, .. }) => {
                    out.push(P::Kernel(name));
                    for param in params {
                        out.push(P::Defined(& $($mut)? param.name, Of::Number));
                        match & $($mut)? param.choices {
                            None => {}
                            Some(Choices::Among(values)) => out.push(P::Tuple(values)),
                            Some(Choices::Range { start, end, step }) => {
                                out.extend([P::Expr(start), P::Expr(end)]);
                                out.extend(step.$as_ref().map(P::Expr));
                            }
                        }
                    }
                    for (name, ty) in inputs.$iter().chain(outputs.$iter()) {
                        out.push(P::Defined(name, Of::Data));
                        out.extend(ty.$as_ref().map(P::ResultType));
                    }
                    if let Some(strategy) = strategy {
                        let Strategy { exec, attrs, conditions, habits } = & $($mut)? **strategy;
                        $of_exec(exec, out);
                        out.extend(attrs.$iter().map(P::Attr));
                        let all = conditions.$iter().chain(habits.$iter());
                        for Compare { lhs, op: _, rhs } in all {
                            out.extend([P::Expr(lhs), P::Expr(rhs)]);
                        }
                    }
                }
                StmtKind::Call(Call { name, args, inputs, outputs, declared, .. }) => {
                    out.push(P::Kernel(name));
                    out.extend(args.$iter().map(P::Expr));
                    out.extend(inputs.$iter().map(|operand| match operand {
                        Operand::View(view) => P::View(view, Of::Data),
                        Operand::Number(number) => P::Number(number),
                        Operand::Value(number) => P::Expr(number),
                    }));
                    out.extend(outputs.$iter().map(|v| P::View(v, Of::Data)));
                    out.extend(declared.$iter().flatten().map(P::ResultType));
                }
                StmtKind::Spec(spec) => {
                    let Spec { kind: _, name, exec, inputs, outputs, declared, attrs, .. } = spec;
                    out.extend(name.$as_ref().map(P::Kernel));
                    $of_exec(exec, out);
                    out.extend(inputs.$iter().map(|operand| match operand {
                        Operand::View(view) => P::View(view, Of::Data),
                        Operand::Number(number) => P::Number(number),
                        Operand::Value(number) => P::Expr(number),
                    }));
                    out.extend(outputs.$iter().map(|v| P::View(v, Of::Data)));
                    out.extend(declared.$iter().flatten().map(P::ResultType));
                    out.extend(attrs.$iter().map(P::Attr));
                }
                StmtKind::For { var, start, end, also, step, stages, .. } => {
                    out.extend([P::Defined(var, Of::Number), P::Expr(start), P::Expr(end)]);
                    for Compare { lhs, op: _, rhs } in also {
                        out.extend([P::Expr(lhs), P::Expr(rhs)]);
                    }
                    out.push(P::Expr(step));
                    out.extend(stages.$as_ref().map(P::Expr));
                }
                StmtKind::If { cond, .. } => {
                    for Compare { lhs, op: _, rhs } in cond {
                        out.extend([P::Expr(lhs), P::Expr(rhs)]);
                    }
                }
                StmtKind::Barrier(threads) => {
                    out.extend(threads.$as_ref().map(|v| P::View(v, Of::Threads)));
                }
                StmtKind::Sync { op: _, args } => out.extend(args.$iter().map(|arg| match arg {
                    SyncArg::View(view) | SyncArg::After(view) => P::View(view, Of::Data),
                    SyncArg::Number(number) => P::Expr(number),
                })),
            }
        }

        /// Lists the direct parts of an executor, in text order.
        fn $of_exec<'a>(exec: &'a $($mut)? Option<Exec>, out: &mut Vec<$Part<'a>>) {
            use $Part as P;
            match exec {
                None => {}
                Some(Exec::Both(blocks, threads)) => {
                    out.extend([P::View(blocks, Of::Threads), P::View(threads, Of::Threads)]);
                }
                Some(Exec::Threads(threads)) => out.push(P::View(threads, Of::Threads)),
                Some(Exec::Launch(launch)) => {
                    for group in [& $($mut)? launch.blocks, & $($mut)? launch.threads] {
                        match group {
                            Group::Of(view) => out.push(P::View(view, Of::Threads)),
                            Group::New { name, modes } => {
                                out.push(P::Defined(name, Of::Threads));
                                for (index, extent) in modes {
                                    let index = index.$as_ref();
                                    out.extend(index.map(|n| P::Defined(n, Of::Number)));
                                    out.push(P::Expr(extent));
                                }
                            }
                        }
                    }
                }
            }
        }

        /// Lists the direct parts of a part, in text order.
        fn $of_part<'a>(part: $Part<'a>, out: &mut Vec<$Part<'a>>) {
            use $Part as P;
            match part {
                P::Defined(..) | P::Kernel(_) | P::Referred(..) | P::Number(_) => {}
                P::View(View { base, ops, .. }, of) => {
                    out.push(P::Referred(base, of));
                    for op in ops {
                        match op {
                            ViewOp::Tile(Tiler::Sizes(sizes)) | ViewOp::Index(sizes) => {
                                out.extend(sizes.$iter().flatten().map(P::Expr));
                            }
                            ViewOp::Tile(Tiler::Modes(modes)) => {
                                out.extend(modes.$iter().flatten().map(P::Layout));
                            }
                            ViewOp::Reshape(layout) => out.push(P::Layout(layout)),
                            ViewOp::Tv(layout, threads) => {
                                out.extend([P::Layout(layout), P::Referred(threads, Of::Threads)]);
                            }
                            ViewOp::Peer(number) | ViewOp::Iota(number) | ViewOp::Plus(number) => {
                                out.push(P::Expr(number));
                            }
                            ViewOp::Permute(list) => out.extend(list.$iter().map(P::Expr)),
                            ViewOp::Pad(pad) => {
                                let sizes = pad.before.$iter().chain(pad.behind.$iter());
                                out.extend(sizes.chain(pad.value.$iter()).map(P::Expr));
                            }
                            ViewOp::Pick(picks) => {
                                for pick in picks {
                                    match pick {
                                        Pick::Keep => {}
                                        Pick::At(at) => out.push(P::Expr(at)),
                                        Pick::Range(from, to) => {
                                            out.extend([P::Expr(from), P::Expr(to)]);
                                        }
                                        Pick::From(name) => out.push(P::Referred(name, Of::Data)),
                                    }
                                }
                            }
                            ViewOp::TensorMap { sizes, swizzle } => {
                                out.extend(sizes.$iter().map(P::Expr));
                                if let Some(of) = swizzle {
                                    out.extend(of.$iter().map(P::Expr));
                                }
                            }
                            ViewOp::Mine | ViewOp::Scalar | ViewOp::Elect => {}
                        }
                    }
                }
                P::Expr(expr) => {
                    match & $($mut)? expr.kind {
                        ExprKind::Bin(_, a, b) => out.extend([P::Expr(a), P::Expr(b)]),
                        ExprKind::Neg(a) | ExprKind::Sqrt(a) => out.push(P::Expr(a)),
                        ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Name(_) => {}
                    }
                }
                P::Tensors(tensors) => match tensors {
                    TensorExpr::View(view) => out.push(P::View(view, Of::Data)),
                    TensorExpr::Number(number) => out.push(P::Expr(number)),
                    TensorExpr::Apply(apply) => {
                        let Apply { args, attrs, .. } = & $($mut)? **apply;
                        out.extend(args.$iter().map(P::Tensors));
                        out.extend(attrs.$iter().map(P::Attr));
                    }
                },
                P::ResultType(ResultType { levels, attrs, .. }) => {
                    out.extend(levels.$iter().map(P::Dims));
                    out.extend(attrs.$iter().flat_map($type_attr));
                }
                P::Tuple(tuple) => match tuple {
                    TupleExpr::Leaf(expr) => out.push(P::Expr(expr)),
                    TupleExpr::Tuple(modes) => out.extend(modes.$iter().map(P::Tuple)),
                },
                P::Dims(Dims { modes, strides, .. }) => {
                    out.extend(modes.$iter().map(P::Tuple));
                    out.extend(strides.$iter().flatten().map(P::Tuple));
                }
                P::Layout(LayoutExpr { shape, stride, .. }) => {
                    out.extend([P::Tuple(shape), P::Tuple(stride)]);
                }
                P::TensorType(TensorType { levels, attrs, .. }) => {
                    out.extend(levels.$iter().map(P::Dims));
                    out.extend(attrs.$iter().flat_map($type_attr));
                }
                P::ThreadType(ThreadType { levels, .. }) => {
                    out.extend(levels.$iter().map(P::Dims));
                }
                P::Attr(Attr { value, .. }) => match value {
                    AttrValue::Word(_) | AttrValue::Text(_) => {}
                    AttrValue::Tuple(tuple) => out.push(P::Tuple(tuple)),
                    AttrValue::View(view) => out.push(P::View(view, Of::Data)),
                    AttrValue::Chosen(chosen) => {
                        out.extend(chosen.values.$iter().map(|(_, value)| P::Expr(value)));
                    }
                },
            }
        }

        /// The direct parts of an attribute of a type.
        fn $type_attr<'a>(attr: &'a $($mut)? TypeAttr) -> impl Iterator<Item = $Part<'a>> {
            use $Part as P;
            let parts = match attr {
                TypeAttr::Tv(layout, threads) => {
                    [Some(P::Layout(layout)), Some(P::Referred(threads, Of::Threads)), None]
                }
                TypeAttr::Swizzle(of) => {
                    let [b, m, s] = & $($mut)? **of;
                    [Some(P::Expr(b)), Some(P::Expr(m)), Some(P::Expr(s))]
                }
                TypeAttr::Align(n) | TypeAttr::At(n) => [Some(P::Expr(n)), None, None],
                TypeAttr::Reuses(name) => [Some(P::Referred(name, Of::Data)), None, None],
                TypeAttr::Open | TypeAttr::Scalar(_) => [None, None, None],
            };
            parts.into_iter().flatten()
        }
    };
}

parts! {
    /// A part of a statement.
    Part, parts_of_stmt, parts_of_exec, parts_of_part, type_attr, iter, as_ref,
}

parts! {
    /// A mutable part of a statement.
    PartMut, parts_of_stmt_mut, parts_of_exec_mut, parts_of_part_mut, type_attr_mut,
    iter_mut, as_mut, mut
}

impl PartMut<'_> {
    /// Its place in the text; `None` for a tuple, whose expressions have places.
    pub fn span_mut(&mut self) -> Option<&mut Span> {
        Some(match self {
            PartMut::Defined(name, _) | PartMut::Kernel(name) | PartMut::Referred(name, _) => {
                &mut name.span
            }
            PartMut::View(view, _) => &mut view.span,
            PartMut::Tensors(TensorExpr::View(view)) => &mut view.span,
            PartMut::Tensors(TensorExpr::Number(number)) => &mut number.span,
            PartMut::Tensors(TensorExpr::Apply(apply)) => &mut apply.span,
            PartMut::ResultType(ty) => &mut ty.span,
            PartMut::Expr(expr) => &mut expr.span,
            PartMut::Tuple(_) => return None,
            PartMut::Dims(dims) => &mut dims.span,
            PartMut::Layout(layout) => &mut layout.span,
            PartMut::TensorType(ty) => &mut ty.span,
            PartMut::ThreadType(ty) => &mut ty.span,
            PartMut::Number(number) => &mut number.span,
            PartMut::Attr(attr) => &mut attr.name.span,
        })
    }
}

/// Calls `visit` with all parts of a statement, excluding those of its bodies, in text order. A
/// part comes before its own parts.
pub fn parts<'a>(stmt: &'a Stmt, visit: &mut dyn FnMut(&Part<'a>)) {
    let mut todo = vec![];
    parts_of_stmt(stmt, &mut todo);
    todo.reverse();
    while let Some(part) = todo.pop() {
        visit(&part);
        let at = todo.len();
        parts_of_part(part, &mut todo);
        todo[at..].reverse();
    }
}

/// Like [`parts`], but `visit` may change the parts. After a change, the new parts of a part are
/// visited.
pub fn parts_mut(stmt: &mut Stmt, visit: &mut dyn FnMut(&mut PartMut<'_>)) {
    parts_mut_where(stmt, &mut |part| {
        visit(part);
        true
    });
}

/// Like [`parts_mut`], but `visit` returns whether to visit the parts of the part.
pub fn parts_mut_where(stmt: &mut Stmt, visit: &mut dyn FnMut(&mut PartMut<'_>) -> bool) {
    let mut todo = vec![];
    parts_of_stmt_mut(stmt, &mut todo);
    todo.reverse();
    while let Some(mut part) = todo.pop() {
        if !visit(&mut part) {
            continue;
        }
        let at = todo.len();
        parts_of_part_mut(part, &mut todo);
        todo[at..].reverse();
    }
}
