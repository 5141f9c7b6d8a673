//! Whether a module could have been read from a text: for trees that were built in memory.
//!
//! Names, words and numbers are spelled as `grammar.pest` says, no list is empty that it wants filled, and
//! [`crate::limits`] hold for what would be printed. Nothing here recurses, whatever the depth of the tree.

use super::expr::rank;
use crate::ast::{
    Attr, AttrValue, BinaryOp, Block, Choices, Def, Dims, Elements, Exec, Expr, ExprKind, Group,
    LayoutExpr, Module, Name, Operand, Param, Pick, ResultType, Spec, SpecKind, Stmt, StmtKind,
    SyncArg, TensorExpr, TensorType, Tiler, TupleExpr, TypeAttr, UnaryOp, View, ViewOp, function,
    operator,
};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::limits::{MAX_EXPR_OPERATORS, MAX_NESTING, MAX_TEXT_BYTES};
use crate::scalar::Scalar;
use crate::span::Span;
use crate::text::parse::is_reserved;

/// Why a module could not have been read from a text; empty for one that could, as every parsed one.
///
/// Blank lines and the layout of comments are not looked at: they change no meaning.
#[must_use]
pub fn well_formed(module: &Module) -> Diagnostics {
    let mut walk = Walk { errors: Diagnostics::default(), bytes: 0, too_long: false, params: &[] };
    walk.comments(module.header.iter().chain(&module.footer), Span::default());
    walk.stmts(&module.items);
    walk.errors
}

/// A word of the grammar.
#[derive(Copy, Clone)]
enum Word {
    /// Of a constant, a symbol, an attribute, a kernel: `ident`.
    Plain,
    /// `index_name`
    Index,
    /// Either: `name`.
    Either,
    /// Behind `%` or `#`: `data_name`, `thread_name`.
    Tensor,
}

fn is_letter(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// The rule `ident`.
fn is_ident(text: &str) -> bool {
    text != "_" && !text.starts_with(|c: char| c.is_ascii_digit()) && is_tensor(text)
}

/// The rules `data_name` and `thread_name` without their sigil.
fn is_tensor(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_letter)
}

/// The rule `word`.
fn is_word(text: &str) -> bool {
    let mut parts = text.split('.');
    let first = |p: &str| is_tensor(p) && !p.starts_with(|c: char| c.is_ascii_digit());
    parts.next().is_some_and(first) && parts.all(is_tensor)
}

/// The rule `number`.
fn is_number(text: &str) -> bool {
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let text = match text {
        "nan" => return true,
        _ => text.strip_prefix('-').unwrap_or(text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, part) = match mantissa.split_once('.') {
        Some((whole, part)) => (whole, Some(part)),
        None => (mantissa, None),
    };
    let unsigned = |e: &str| digits(e.strip_prefix(['+', '-']).unwrap_or(e));
    text == "inf" || digits(whole) && part.is_none_or(digits) && exponent.is_none_or(unsigned)
}

/// The rule `real`.
fn is_real(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains(['.', 'e', 'E'])
        && is_number(text)
}

/// Whether a number prints as a literal reads: it would be [`Operand::Number`].
fn is_literal(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Int(_) | ExprKind::Real(_) => true,
        ExprKind::Name(name) => matches!(name.as_str(), "inf" | "nan"),
        ExprKind::Neg(a) => match &a.kind {
            ExprKind::Int(_) | ExprKind::Real(_) => true,
            ExprKind::Name(name) => name == "inf",
            _ => false,
        },
        ExprKind::Bin(..) | ExprKind::Sqrt(_) => false,
    }
}

struct Walk<'m> {
    errors: Diagnostics,
    /// At most what the text would have: names, signs, comments.
    bytes: usize,
    too_long: bool,
    /// The parameters of the sub-spec around.
    params: &'m [Param],
}

impl<'m> Walk<'m> {
    fn error(&mut self, code: Code, span: Span, message: String, label: &str, help: &str) {
        self.errors.push(Diagnostic::new(code, span, message).label(label).help(help));
    }

    /// Counts what is printed; whether all of it still fits.
    fn count(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_TEXT_BYTES && !self.too_long {
            self.too_long = true;
            let message = format!("the text of this tree has more than {MAX_TEXT_BYTES} bytes");
            let help = "split it into several modules";
            self.error(Code::TextTooLong, Span::default(), message, "built in memory", help);
        }
        !self.too_long && !self.errors.is_full()
    }

    /// Whether brackets may nest so deep.
    fn deep(&mut self, depth: usize, span: Span) -> bool {
        if depth <= MAX_NESTING {
            return true;
        }
        let message = format!("brackets nest deeper than {MAX_NESTING}");
        let help = "name inner parts with `let` or a view of their own";
        self.error(Code::TooDeep, span, message, "as this would be printed", help);
        false
    }

    fn comments<'a>(&mut self, texts: impl Iterator<Item = &'a String>, span: Span) {
        for text in texts {
            if !self.count(text.len()) {
                return;
            }
            if text.contains('\0') {
                let (label, help) = ("in a comment", "remove the byte");
                self.error(Code::NulByte, span, "the text holds a NUL byte".into(), label, help);
            }
        }
    }

    fn name(&mut self, text: &str, span: Span, word: Word) {
        self.count(text.len());
        let (fits, what, wanted) = match word {
            Word::Plain => {
                (is_ident(text), "name", "write letters, digits and `_`, no digit first")
            }
            Word::Index => (
                text.strip_prefix('@').is_some_and(is_ident),
                "name of an index",
                "write `@`, then letters, digits and `_`",
            ),
            Word::Either => (
                is_ident(text.strip_prefix('@').unwrap_or(text)),
                "name of a number",
                "write letters, digits and `_`, with `@` before them for an index",
            ),
            Word::Tensor => (
                is_tensor(text),
                "name of a tensor",
                "write letters, digits and `_`, without the sigil",
            ),
        };
        if !fits {
            let shown: String = text.chars().take(32).flat_map(char::escape_debug).collect();
            let message = format!("`{shown}` is no {what}");
            self.error(Code::Syntax, span, message, "cannot be written in a text", wanted);
        }
    }

    fn named(&mut self, name: &Name, word: Word) {
        self.name(&name.text, name.span, word);
    }

    /// A list that the grammar wants filled.
    fn filled(&mut self, n: usize, span: Span, what: &str) {
        if n == 0 {
            let message = format!("a list of {what} is empty");
            self.error(Code::Syntax, span, message, "cannot be written in a text", "fill it");
        }
    }

    fn stmts(&mut self, items: &'m [Stmt]) {
        let mut open = vec![(items.iter(), 0)];
        while let Some((rest, depth)) = open.last_mut() {
            let (next, depth) = (rest.next(), *depth);
            if depth == 0 {
                self.params = &[];
            }
            let Some(stmt) = next else {
                open.pop();
                continue;
            };
            if !self.count(1) {
                return;
            }
            self.comments(stmt.leading.iter().chain(&stmt.trailing), stmt.span);
            self.stmt(stmt, depth);
            let (block, otherwise) = match &stmt.kind {
                StmtKind::Spec(Spec { means: Some(means), body, .. }) => {
                    (Some(means), body.as_ref())
                }
                StmtKind::Spec(Spec { body, .. }) => (body.as_ref(), None),
                StmtKind::Def(Def { means: Some(means), body, .. }) => (Some(means), Some(body)),
                StmtKind::Def(Def { body, .. }) | StmtKind::For { body, .. } => (Some(body), None),
                StmtKind::If { then, otherwise, .. } => (Some(then), otherwise.as_ref()),
                _ => continue,
            };
            let blocks: Vec<&Block> = block.into_iter().chain(otherwise).collect();
            if blocks.is_empty() || !self.deep(depth + 1, stmt.span) {
                continue;
            }
            for block in blocks.into_iter().rev() {
                self.comments(block.footer.iter(), stmt.span);
                open.push((block.stmts.iter(), depth + 1));
            }
        }
    }

    /// A statement without its bodies.
    fn stmt(&mut self, stmt: &'m Stmt, depth: usize) {
        match &stmt.kind {
            StmtKind::Let(bindings) => {
                self.filled(bindings.len(), stmt.span, "`let` bindings");
                for (name, e) in bindings {
                    self.named(name, Word::Plain);
                    self.expr(e, depth);
                }
            }
            StmtKind::Sym(sym) => {
                self.named(&sym.name, Word::Plain);
                self.deep(depth + 1, sym.name.span);
                for fact in [sym.min, sym.max, sym.div].into_iter().flatten() {
                    self.int(fact, sym.name.span);
                }
            }
            StmtKind::Symbols(all) => {
                let names = all.names.iter().chain(all.typical.iter().map(|(name, _)| name));
                names.for_each(|name| self.named(name, Word::Plain));
                self.filled(all.names.len(), stmt.span, "symbols");
                for c in &all.facts {
                    self.expr(&c.lhs, depth);
                    self.expr(&c.rhs, depth);
                }
                all.typical.iter().for_each(|(name, value)| self.int(*value, name.span));
                if all.names.len() == 1 && all.facts.is_empty() && all.typical.is_empty() {
                    let message = "one symbol of which nothing is said".to_owned();
                    let (label, help) = ("reads back as one of at least 1", "make it a `Sym`");
                    self.error(Code::Syntax, all.names[0].span, message, label, help);
                }
            }
            StmtKind::DataDecl { name, ty, range } => {
                self.named(name, Word::Tensor);
                self.data_type(ty, depth);
                match range {
                    Some(Elements::Within(from, to) | Elements::Distinct(from, to)) => {
                        self.expr(from, depth);
                        self.expr(to, depth);
                    }
                    Some(Elements::Splits(n)) => self.expr(n, depth),
                    None => {}
                }
            }
            StmtKind::Allocate { name, ty } => {
                self.named(name, Word::Tensor);
                self.data_type(ty, depth);
            }
            StmtKind::Assign { target, ty, value } => {
                self.view(target, depth);
                if let Some(ty) = ty {
                    self.result_type(ty, depth);
                    if !target.ops.is_empty() {
                        let message = "a view that is written has a type behind it".to_owned();
                        let label = "cannot be written in a text";
                        self.error(Code::Syntax, ty.span, message, label, "leave the type out");
                    }
                }
                if target.ops.is_empty() && matches!(value, TensorExpr::View(_)) {
                    let message = "an assignment of a view".to_owned();
                    let (label, help) =
                        ("reads back as a definition", "make it a `DataDef` or a Move");
                    self.error(Code::Syntax, target.span, message, label, help);
                }
                self.tensors(value, depth);
            }
            StmtKind::Import(path) => {
                self.count(path.text.len());
                if path.text.contains(['"', '\\', '\n', '\0']) {
                    let message = "a path that cannot be written".to_owned();
                    let label = "holds a quotation mark, a backslash or a line break";
                    self.error(Code::Syntax, path.span, message, label, "name the file otherwise");
                }
            }
            StmtKind::Def(def) => {
                self.named(&def.name, Word::Plain);
                self.deep(depth + 1, def.span);
                let around = std::mem::replace(&mut self.params, &def.params);
                for param in &def.params {
                    self.named(&param.name, Word::Plain);
                    if param.is_type && is_reserved(&param.name.text) {
                        let message = format!("a type parameter is named `{}`", param.name.text);
                        let label = "names a scalar type or a memory";
                        let span = param.name.span;
                        self.error(Code::Syntax, span, message, label, "choose another name");
                    }
                }
                for choices in def.params.iter().filter_map(|p| p.choices.as_ref()) {
                    self.choices(choices, depth);
                }
                if let Some(strategy) = &def.strategy {
                    self.executors(strategy.exec.as_ref(), def.span, depth);
                    self.attrs(&strategy.attrs, depth);
                    for c in strategy.conditions.iter().chain(&strategy.habits) {
                        self.expr(&c.lhs, depth + 1);
                        self.expr(&c.rhs, depth + 1);
                    }
                }
                let plain = def.strategy.is_none();
                let chosen =
                    def.params.iter().find(|p| p.choices.is_some() && (plain || p.is_type));
                if let Some(param) = chosen {
                    let message = format!("`{}` has values to choose among", param.name.text);
                    let label = "only a number of a strategy has";
                    let span = param.name.span;
                    self.error(Code::Syntax, span, message, label, "remove the values");
                }
                if !plain && def.means.is_none() {
                    let message = "a strategy does not say what it means".to_owned();
                    let label = "without a `means` block";
                    self.error(Code::Syntax, def.span, message, label, "add the block");
                }
                for (name, ty) in def.inputs.iter().chain(&def.outputs) {
                    self.named(name, Word::Tensor);
                    if let Some(ty) = ty {
                        self.result_type(ty, depth + 1);
                    }
                }
                // Sub-specs within others are refused later.
                if depth > 0 {
                    self.params = around;
                }
            }
            StmtKind::Call(call) => {
                self.named(&call.name, Word::Plain);
                self.deep(depth + 1, call.span);
                call.args.iter().for_each(|e| self.expr(e, depth + 1));
                self.operands(&call.inputs, &call.outputs, &call.declared, call.span, depth);
            }
            StmtKind::DataDef { name, ty, view } => {
                self.named(name, Word::Tensor);
                if let Some(ty) = ty {
                    self.data_type(ty, depth);
                }
                self.view(view, depth);
            }
            StmtKind::ThreadDecl { name, ty } => {
                self.named(name, Word::Tensor);
                self.levels(&ty.levels, ty.span, depth);
            }
            StmtKind::ThreadDef { name, ty, view } => {
                self.named(name, Word::Tensor);
                if let Some(ty) = ty {
                    self.levels(&ty.levels, ty.span, depth);
                }
                self.view(view, depth);
            }
            StmtKind::Indices { names, threads } => {
                self.filled(names.len(), stmt.span, "indices");
                names.iter().for_each(|name| self.named(name, Word::Index));
                self.view(threads, depth);
                self.deep(depth + 1, threads.span);
            }
            StmtKind::Element { name, view } => {
                self.named(name, Word::Index);
                self.view(view, depth);
            }
            StmtKind::Spec(spec) => self.spec(spec, depth),
            StmtKind::For { var, start, end, step, unroll: _, stages, body: _ } => {
                self.named(var, Word::Either);
                [start, end, step].into_iter().for_each(|e| self.expr(e, depth + 1));
                stages.iter().for_each(|e| self.expr(e, depth));
            }
            StmtKind::If { cond, then: _, otherwise: _ } => {
                self.filled(cond.len(), stmt.span, "conditions");
                for c in cond {
                    self.expr(&c.lhs, depth + 1);
                    self.expr(&c.rhs, depth + 1);
                }
            }
            StmtKind::Barrier(threads) => {
                if let Some(threads) = threads {
                    self.deep(depth + 1, stmt.span);
                    self.view(threads, depth + 1);
                }
            }
            StmtKind::Sync { op: _, args } => {
                if !args.is_empty() {
                    self.deep(depth + 1, stmt.span);
                }
                for arg in args {
                    match arg {
                        SyncArg::View(view) => self.view(view, depth + 1),
                        SyncArg::Number(e) => self.expr(e, depth + 1),
                    }
                }
            }
        }
    }

    fn spec(&mut self, spec: &Spec, depth: usize) {
        if let Some(name) = &spec.name {
            self.named(name, Word::Plain);
        }
        self.executors(spec.exec.as_ref(), spec.span, depth);
        self.operands(&spec.inputs, &spec.outputs, &spec.declared, spec.span, depth);
        self.attrs(&spec.attrs, depth);
    }

    fn executors(&mut self, exec: Option<&Exec>, span: Span, depth: usize) {
        match exec {
            None => {}
            Some(Exec::Both(blocks, threads)) => {
                self.view(blocks, depth);
                self.view(threads, depth);
            }
            Some(Exec::Threads(threads)) => self.view(threads, depth),
            Some(Exec::Launch(launch)) => {
                let groups = [&launch.blocks, &launch.threads];
                if groups.iter().all(|g| matches!(g, Group::Of(_))) {
                    let message = "a head that declares nothing".to_owned();
                    let (label, help) = ("reads back as executors", "make it `Exec::Both`");
                    self.error(Code::Syntax, span, message, label, help);
                }
                for group in groups {
                    self.group(group, span, depth);
                }
            }
        }
    }

    /// Values of a parameter: a range is none of `1`, and a list is a list.
    fn choices(&mut self, choices: &Choices, depth: usize) {
        match choices {
            Choices::Among(values) => self.tuple(values, depth + 1),
            Choices::Range { start, end, step } => {
                [Some(start), Some(end), step.as_ref()]
                    .into_iter()
                    .flatten()
                    .for_each(|e| self.expr(e, depth + 1));
            }
        }
    }

    fn group(&mut self, group: &Group, span: Span, depth: usize) {
        match group {
            Group::Of(v) => self.view(v, depth),
            Group::New { name, modes } => {
                self.named(name, Word::Tensor);
                self.filled(modes.len(), span, "extents");
                self.deep(depth + 1, span);
                for (index, extent) in modes {
                    index.iter().for_each(|name| self.named(name, Word::Index));
                    self.expr(extent, depth + 1);
                }
            }
        }
    }

    fn operands(
        &mut self,
        inputs: &[Operand],
        outputs: &[View],
        declared: &[Option<ResultType>],
        span: Span,
        depth: usize,
    ) {
        self.deep(depth + 1, span);
        if !declared.is_empty()
            && (declared.len() != outputs.len() || declared.iter().all(Option::is_none))
        {
            let message = "types of results that do not belong to outputs".to_owned();
            let help = "give every output an entry of `declared`, or leave the list empty";
            self.error(Code::Syntax, span, message, "cannot be written in a text", help);
        }
        for ty in declared.iter().flatten() {
            self.result_type(ty, depth + 1);
        }
        for input in inputs {
            match input {
                Operand::Value(e) => {
                    if is_literal(e) {
                        let message = "a literal that is computed".to_owned();
                        let (label, help) =
                            ("reads back as a literal", "make it `Operand::Number`");
                        self.error(Code::Syntax, e.span, message, label, help);
                    }
                    self.expr(e, depth + 1);
                }
                Operand::View(view) => self.view(view, depth + 1),
                Operand::Number(n) => {
                    self.count(n.text.len());
                    if !is_number(&n.text) {
                        let shown: String = n.text.chars().take(32).collect();
                        let message = format!("`{}` is no number", shown.escape_debug());
                        let label = "cannot be written in a text";
                        let help = "write a decimal number, `inf`, `-inf` or `nan`";
                        self.error(Code::Syntax, n.span, message, label, help);
                    }
                }
            }
        }
        outputs.iter().for_each(|view| self.view(view, depth + 1));
    }

    /// An expression over tensors.
    fn tensors(&mut self, whole: &TensorExpr, depth: usize) {
        let mut operators = 0;
        // With how tightly the operator around binds: parentheses count as brackets.
        let mut todo = vec![(whole, depth, 0)];
        while let Some((e, depth, above)) = todo.pop() {
            if !self.deep(depth, whole.span()) || !self.count(1) {
                return;
            }
            match e {
                TensorExpr::View(v) => self.view(v, depth),
                TensorExpr::Number(e) => {
                    let parentheses = match &e.kind {
                        ExprKind::Bin(op, ..) => rank(*op).is_some_and(|r| r + 1 < above),
                        _ => false,
                    };
                    self.expr(e, depth + usize::from(parentheses));
                }
                TensorExpr::Apply(apply) => {
                    operators += 1;
                    if operators > MAX_EXPR_OPERATORS {
                        let message =
                            format!("an expression has more than {MAX_EXPR_OPERATORS} operators");
                        let help = "name parts of it";
                        let span = whole.span();
                        self.error(Code::ExprTooLong, span, message, "this expression", help);
                        return;
                    }
                    let tensors = apply.args.iter().any(|a| !matches!(a, TensorExpr::Number(_)));
                    let is_plain = apply.may_be_operator();
                    let (wanted, binds) = match apply.kind {
                        SpecKind::Binary(op) if is_plain => (2, operator(op).map(|(_, rank)| rank)),
                        SpecKind::Binary(_) => (2, None),
                        SpecKind::Unary(UnaryOp::Neg) if is_plain => (1, Some(4)),
                        SpecKind::MatMulSet => (2, None),
                        SpecKind::Select => (3, None),
                        SpecKind::Move
                        | SpecKind::Accumulate(_)
                        | SpecKind::MatMul
                        | SpecKind::Unary(_)
                        | SpecKind::Reduction(_)
                        | SpecKind::Shfl(_)
                        | SpecKind::Init
                        | SpecKind::Iota
                        | SpecKind::Generic => (1, None),
                    };
                    let written = binds.is_some() || function(apply.kind).is_some();
                    let cast = apply.kind == SpecKind::Unary(UnaryOp::Cast);
                    let typed = apply.attrs.first().is_some_and(|a| {
                        a.key.text == "to"
                            && matches!(&a.value, AttrValue::Word(w) if self.is_scalar(w))
                    });
                    let chooses = matches!(
                        apply.kind,
                        SpecKind::Binary(
                            BinaryOp::Min | BinaryOp::Max | BinaryOp::Minimum | BinaryOp::Maximum
                        )
                    ) && apply.attrs.iter().any(|a| a.key.text == "axis");
                    if !written
                        || chooses
                        || apply.args.len() != wanted
                        || !tensors
                        || (cast && !typed)
                    {
                        let message = format!("no expression stands for this {}", apply.kind);
                        let help = "give it the operands and attributes of one, or make it a spec";
                        let label = "cannot be written in a text";
                        self.error(Code::Syntax, apply.span, message, label, help);
                        return;
                    }
                    let behind = usize::from(cast);
                    self.attrs(&apply.attrs[behind..], depth + 1);
                    let (inner, left) = match binds {
                        None => (depth + 1, 0),
                        Some(rank) => (depth + usize::from(rank < above), rank),
                    };
                    for (i, arg) in apply.args.iter().enumerate().rev() {
                        let around = if binds.is_some() && i > 0 { left + 1 } else { left };
                        todo.push((arg, inner, around));
                    }
                }
            }
        }
    }

    /// Whether a word is a scalar type, or a type parameter around.
    fn is_scalar(&self, word: &str) -> bool {
        word.parse::<Scalar>().is_ok()
            || self.params.iter().any(|p| p.is_type && p.name.text == word)
    }

    fn attrs(&mut self, attrs: &[Attr], depth: usize) {
        for attr in attrs {
            self.named(&attr.key, Word::Plain);
            match &attr.value {
                AttrValue::Word(word) => {
                    self.count(word.len());
                    if !is_word(word) {
                        let shown: String = word.chars().take(32).collect();
                        let message = format!("`{}` is no word", shown.escape_debug());
                        let label = "cannot be written in a text";
                        let help = "write letters, digits, `_` and `.`, no digit first";
                        self.error(Code::Syntax, attr.key.span, message, label, help);
                    }
                }
                AttrValue::Tuple(t) => {
                    if let TupleExpr::Leaf(Expr { kind: ExprKind::Name(name), .. }) = t
                        && !name.starts_with('@')
                    {
                        let message = format!("`{}={name}` is written as a tuple", attr.key.text);
                        let label = "a text cannot tell it from a word";
                        let help = "make it a word: it may name a constant";
                        self.error(Code::Syntax, attr.key.span, message, label, help);
                    }
                    self.tuple(t, depth);
                }
                AttrValue::View(view) => self.view(view, depth),
                AttrValue::Chosen(chosen) => {
                    if let Some(name) = &chosen.name {
                        self.named(name, Word::Plain);
                    }
                    for (name, value) in &chosen.values {
                        self.named(name, Word::Plain);
                        self.expr(value, depth);
                    }
                }
                AttrValue::Text(text) => {
                    self.count(text.len().saturating_add(2));
                    if text.contains('\0') {
                        let message = "the text holds a NUL byte".to_owned();
                        let (label, help) = ("in an attribute", "remove the byte");
                        self.error(Code::NulByte, attr.key.span, message, label, help);
                    } else if text.contains(['"', '\\', '\n']) {
                        let message = format!("the text of `{}` cannot be written", attr.key.text);
                        let label = "it holds `\"`, `\\` or a line break";
                        let help = "leave these out, and write `/` between folders";
                        self.error(Code::Syntax, attr.key.span, message, label, help);
                    }
                }
            }
        }
    }

    fn data_type(&mut self, ty: &TensorType, depth: usize) {
        if matches!(ty.attrs.first(), Some(TypeAttr::Scalar(_))) && ty.scalar != Scalar::F32 {
            let message = "a type of two scalar types".to_owned();
            let label = "cannot be written in a text";
            let help = "leave the scalar beside a type parameter `f32`";
            self.error(Code::Syntax, ty.span, message, label, help);
        }
        self.levels(&ty.levels, ty.span, depth);
        self.type_attrs(&ty.attrs, ty.span, depth);
    }

    fn result_type(&mut self, ty: &ResultType, depth: usize) {
        if !ty.levels.is_empty() {
            self.levels(&ty.levels, ty.span, depth);
        }
        let param = matches!(ty.attrs.first(), Some(TypeAttr::Scalar(_)));
        if param && ty.scalar.is_some() {
            let message = "a type of two scalar types".to_owned();
            let label = "cannot be written in a text";
            let help = "leave the scalar out beside a type parameter";
            self.error(Code::Syntax, ty.span, message, label, help);
        }
        if ty.scalar.is_none() && !param && (ty.memory.is_none() || !ty.levels.is_empty()) {
            let message = "a type of extents without a scalar".to_owned();
            let label = "cannot be written in a text";
            self.error(Code::Syntax, ty.span, message, label, "name the scalar type");
        }
        self.type_attrs(&ty.attrs, ty.span, depth);
    }

    fn type_attrs(&mut self, attrs: &[TypeAttr], span: Span, depth: usize) {
        for (i, attr) in attrs.iter().enumerate() {
            if !matches!(attr, TypeAttr::Scalar(_)) {
                self.deep(depth + 1, span);
            }
            match attr {
                TypeAttr::Scalar(name) => {
                    self.named(name, Word::Plain);
                    let known = |p: &Param| p.is_type && p.name.text == name.text;
                    if i > 0 || !self.params.iter().any(known) {
                        let message = format!("`{}` is no scalar type here", name.text);
                        let label = "names no type parameter of a sub-spec around";
                        let help =
                            "write a scalar type, or declare the parameter: `def @f[T:type]`";
                        self.error(Code::Syntax, span, message, label, help);
                    }
                }
                TypeAttr::Open => {}
                TypeAttr::Swizzle(of) => {
                    self.deep(depth + 2, span);
                    of.iter().for_each(|e| self.expr(e, depth + 2));
                }
                TypeAttr::Tv(layout, threads) => {
                    self.layout(layout, depth + 1);
                    self.named(threads, Word::Tensor);
                }
                TypeAttr::Align(e) | TypeAttr::At(e) => self.expr(e, depth + 1),
                TypeAttr::Reuses(name) => self.named(name, Word::Tensor),
            }
        }
    }

    fn levels(&mut self, levels: &[Dims], span: Span, depth: usize) {
        self.filled(levels.len(), span, "levels");
        for dims in levels {
            let strides = dims.strides.as_deref();
            let inner = match (&dims.modes[..], strides) {
                (_, None) | ([TupleExpr::Leaf(_)], Some([TupleExpr::Leaf(_)])) => depth + 1,
                _ => depth + 2,
            };
            if strides.is_some_and(|s| s.len() != dims.modes.len()) {
                let message = "shape and strides do not match".to_owned();
                let label = "cannot be written in a text";
                self.error(Code::Syntax, dims.span, message, label, "give every mode one stride");
            }
            self.deep(inner, dims.span);
            self.tuples(dims.modes.iter().chain(strides.unwrap_or(&[])), inner);
        }
    }

    fn view(&mut self, view: &View, depth: usize) {
        self.named(&view.base, Word::Tensor);
        for op in &view.ops {
            if !self.count(1) {
                return;
            }
            let brackets = match op {
                ViewOp::Mine => 0,
                ViewOp::Tile(_)
                | ViewOp::TensorMap { .. }
                | ViewOp::Permute(_)
                | ViewOp::Pad(_) => 2,
                _ => 1,
            };
            if !self.deep(depth + brackets, view.span) {
                return;
            }
            match op {
                ViewOp::Tile(Tiler::Sizes(sizes)) => {
                    sizes.iter().flatten().for_each(|e| self.expr(e, depth + 2));
                }
                ViewOp::Tile(Tiler::Modes(modes)) => {
                    modes.iter().flatten().for_each(|l| self.layout(l, depth + 2));
                }
                ViewOp::Reshape(l) => self.layout(l, depth + 1),
                ViewOp::Index(index) => {
                    index.iter().flatten().for_each(|e| self.expr(e, depth + 1));
                }
                ViewOp::Mine | ViewOp::Scalar | ViewOp::Elect => {}
                ViewOp::Permute(list) => list.iter().for_each(|e| self.expr(e, depth + 2)),
                ViewOp::Pad(pad) => pad.numbers().for_each(|e| self.expr(e, depth + 2)),
                ViewOp::Iota(number) | ViewOp::Plus(number) => self.expr(number, depth + 1),
                ViewOp::Pick(picks) => {
                    let plain = |p: &Pick| matches!(p, Pick::Keep | Pick::At(_));
                    if picks.iter().all(plain) {
                        let message = "an index without ranges and tensors".to_owned();
                        let (label, help) = ("reads back as an index", "make it `ViewOp::Index`");
                        self.error(Code::Syntax, view.span, message, label, help);
                    }
                    for pick in picks {
                        match pick {
                            Pick::Keep => {}
                            Pick::At(e) => self.expr(e, depth + 1),
                            Pick::Range(from, to) => {
                                self.expr(from, depth + 1);
                                self.expr(to, depth + 1);
                            }
                            Pick::From(name) => self.named(name, Word::Tensor),
                        }
                    }
                }
                ViewOp::Tv(layout, threads) => {
                    self.layout(layout, depth + 1);
                    self.named(threads, Word::Tensor);
                }
                ViewOp::Peer(rank) => self.expr(rank, depth + 1),
                ViewOp::TensorMap { sizes, swizzle } => {
                    sizes.iter().for_each(|e| self.expr(e, depth + 2));
                    swizzle.iter().flat_map(|of| of.iter()).for_each(|e| self.expr(e, depth + 2));
                }
            }
        }
    }

    fn layout(&mut self, layout: &LayoutExpr, depth: usize) {
        self.tuples([&layout.shape, &layout.stride].into_iter(), depth);
    }

    fn tuple(&mut self, t: &TupleExpr, depth: usize) {
        self.tuples(std::iter::once(t), depth);
    }

    fn tuples<'t>(&mut self, all: impl Iterator<Item = &'t TupleExpr>, depth: usize) {
        let mut todo: Vec<(&TupleExpr, usize)> = all.map(|t| (t, depth)).collect();
        while let Some((t, depth)) = todo.pop() {
            match t {
                TupleExpr::Leaf(e) => self.expr(e, depth),
                TupleExpr::Tuple(modes) => {
                    if !self.count(1) || !self.deep(depth + 1, Span::default()) {
                        return;
                    }
                    todo.extend(modes.iter().map(|mode| (mode, depth + 1)));
                }
            }
        }
    }

    fn expr(&mut self, whole: &Expr, depth: usize) {
        let mut operators = 0;
        let mut todo = vec![(whole, depth, 0)];
        while let Some((e, depth, above)) = todo.pop() {
            if !self.deep(depth, whole.span) {
                return;
            }
            match &e.kind {
                ExprKind::Int(v) => self.int(*v, e.span),
                ExprKind::Name(name) => self.name(name, e.span, Word::Either),
                ExprKind::Real(text) => {
                    self.count(text.len());
                    if !is_real(text) {
                        let shown: String = text.chars().take(32).collect();
                        let message = format!("`{}` is no decimal number", shown.escape_debug());
                        let label = "cannot be written in a text";
                        let help = "write digits, a point and digits, or an exponent";
                        self.error(Code::Syntax, e.span, message, label, help);
                    }
                }
                ExprKind::Neg(a) | ExprKind::Sqrt(a) => {
                    operators += 1;
                    if !self.count(1) || self.operators(operators, whole) {
                        return;
                    }
                    let (brackets, above) = match &e.kind {
                        ExprKind::Sqrt(_) => (1, 0),
                        _ => (0, super::expr::TIGHTEST),
                    };
                    todo.push((a, depth + brackets, above));
                }
                ExprKind::Bin(op, a, b) => {
                    operators += 1;
                    if !self.count(1) {
                        return;
                    }
                    if self.operators(operators, whole) {
                        return;
                    }
                    let (inner, left, right) = match rank(*op) {
                        None => (depth + 1, 0, 0),
                        Some(rank) => (depth + usize::from(rank < above), rank, rank + 1),
                    };
                    todo.extend([(&**b, inner, right), (&**a, inner, left)]);
                }
            }
        }
    }

    /// Whether an expression has too many operators, which is reported.
    fn operators(&mut self, n: usize, whole: &Expr) -> bool {
        if n <= MAX_EXPR_OPERATORS {
            return false;
        }
        let message = format!("an expression has more than {MAX_EXPR_OPERATORS} operators");
        let help = "name parts of it with `let`";
        self.error(Code::ExprTooLong, whole.span, message, "this expression", help);
        true
    }

    fn int(&mut self, v: i64, span: Span) {
        self.count(1);
        if v < 0 {
            let message = format!("`{v}` is no literal");
            let label = "cannot be written in a text";
            let help = format!("write the difference `0 - {}`", v.unsigned_abs());
            self.error(Code::Syntax, span, message, label, &help);
        }
    }
}
