//! Writes a function of tvm-ffi, `__tvm_ffi_NAME`, through which Python and other languages call
//! the kernels. The function takes tensors, numbers, and sizes that do not follow from tensors. It
//! checks all that the host function which launches the kernels assumes, and calls that host
//! function. The files `tvm/ffi/c_api.h` and `tvm/ffi/extra/c_env_api.h` of apache-tvm-ffi declare
//! the C interface.

use super::printer::{Printer, function, quoted, when};
use crate::cpp::ast::{Binary, Expr, Item, Piece, Stmt, StmtKind, Type};
use crate::element::Element;
use crate::lower::interface::{Form, Interface, alignment, written_buffers};
use crate::lower::sizes::{Side, open_sizes, sources};
use crate::scalars::storage;
use crate::{Fallible, errors};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::BufferId;

/// Names that the function uses; sizes and numbers must not hide them.
pub(super) const NAMES: [&str; 6] = ["args", "num_args", "given", "result", "self", "broken_fact"];

/// The names of functions that it calls.
pub(super) struct Names<'a> {
    pub(super) launch: &'a str,
    pub(super) bytes: &'a str,
    /// The function that returns the first fact that does not hold.
    pub(super) facts: &'static str,
}

/// The class that reads and checks arguments.
const ARGUMENTS: &str = include_str!("tvm_ffi.h").trim_ascii_end();

impl Printer<'_> {
    /// The function, and the class that it uses.
    pub(super) fn tvm_ffi(&mut self, names: &Names<'_>, taken: &Interface) -> Fallible<Vec<Item>> {
        let p = self.p;
        let own = names.launch.strip_suffix("_launch").unwrap_or(names.launch);
        let open = open_sizes(p, &taken.caller)?;
        let mut body = vec![];

        let mut listed: Vec<String> =
            taken.caller.iter().map(|b| p.buffers[*b].name.clone()).collect();
        listed.extend(open.iter().map(|v| p.arena.var_info(*v).name));
        let signature = format!("{own}({})", listed.join(", "));
        let count = Expr::Int(listed.len() as i64);
        let arguments = Expr::call(
            format!("FfiArguments<{}> given", listed.len()),
            [Expr::name("args"), Expr::name("num_args"), quoted(&signature)],
        );
        body.push(Stmt::new(StmtKind::Expr(arguments)));
        unless(&mut body, vec![given("has_count", [count])]);

        self.read(taken, &mut body)?;
        self.sizes(taken, &mut body)?;
        for (i, var) in open.iter().enumerate() {
            let name = self.symbol(*var)?;
            let said = quoted(&p.arena.var_info(*var).name);
            let index = (taken.caller.len() + i) as i64;
            integer(&mut body, "long long", name, (index, said), (i64::MIN, i64::MAX));
        }
        let values = p.symbols.iter().map(|v| self.symbol(*v)).collect::<Fallible<Vec<Expr>>>()?;
        if !values.is_empty() {
            let shown = p.symbols.iter().map(|v| format!("{} = %lld", p.arena.var_info(*v).name));
            let shown = shown.collect::<Vec<_>>().join(", ");
            let mut all = vec![Expr::call(names.facts, values.clone()), quoted(&shown)];
            all.extend(values.clone());
            unless(&mut body, vec![given("keep", all)]);
        }
        let mut checks = vec![];
        for (i, b) in tensors(self, taken) {
            checks.extend(self.modes(i, b)?);
        }
        let all_written = written_buffers(p);
        let written = tensors(self, taken).into_iter().filter(|(_, b)| all_written.contains(b));
        let written: Vec<String> = written.map(|(i, _)| i.to_string()).collect();
        checks.push(given("are_apart", [Expr::Literal(format!("{{{}}}", written.join(", ")))]));
        unless(&mut body, checks);
        body.push(self.launched(names, taken, values));

        let types = [
            (Type::named("void*"), "self".into()),
            (Type::pointer("TVMFFIAny", true), "args".into()),
            (Type::named("int"), "num_args".into()),
            (Type::pointer("TVMFFIAny", false), "result".into()),
        ];
        Ok(vec![
            Item::Helper(ARGUMENTS),
            function(
                &[
                    &format!(
                        "{signature} as a function of tvm-ffi: tensors that the kernels write are \
                         given, too."
                    ),
                    &format!(
                        "It checks its arguments, and calls {} on the stream of the environment.",
                        names.launch
                    ),
                ],
                "extern \"C\" TVM_FFI_DLL_EXPORT int",
                format!("__tvm_ffi_{own}").into(),
                types.into(),
                body,
            ),
        ])
    }

    /// Reads tensors and numbers.
    fn read(&mut self, taken: &Interface, body: &mut Vec<Stmt>) -> Fallible<()> {
        let p = self.p;
        let mut checks = vec![];
        for (i, b) in tensors(self, taken) {
            let buffer = &p.buffers[b];
            let codes = Element::code_names(buffer.scalar).collect::<Vec<_>>().join(", ");
            let rank = match Form::of(p, b)? {
                Form::Modes(modes) => modes.len() as i64,
                Form::Flat(_) => -1,
            };
            checks.push(given(
                "tensor",
                [
                    Expr::Int(i),
                    quoted(&buffer.name),
                    Expr::Literal(format!("{{{codes}}}")),
                    Expr::Int(buffer.scalar.bits().max(8)),
                    Expr::Int(alignment(p, b)),
                    Expr::Int(rank),
                ],
            ));
        }
        unless(body, checks);
        for (i, b) in taken.caller.iter().enumerate() {
            let buffer = &p.buffers[*b];
            if !buffer.is_number() {
                continue;
            }
            let ty = storage(buffer.scalar).cxx;
            let (name, said) = (Expr::name(self.passed[b].clone()), quoted(&buffer.name));
            if let Some((least, most)) = buffer.scalar.int_range() {
                let within = |n: i128| i64::try_from(n).unwrap_or(i64::MAX);
                integer(body, ty, name, (i as i64, said), (within(least), within(most)));
            } else {
                declared(body, ty, &name);
                let all = [Expr::Int(i as i64), said, name.address()];
                unless(body, vec![given("number", all)]);
            }
        }
        Ok(())
    }

    /// Derives sizes from tensors.
    fn sizes(&mut self, taken: &Interface, body: &mut Vec<Stmt>) -> Fallible<()> {
        for source in sources(self.p, &taken.caller)? {
            let at = taken.caller.iter().position(|b| *b == source.buffer);
            let at = Expr::Int(at.ok_or_else(|| errors::undeclared("a tensor"))? as i64);
            let number = match source.side {
                Side::Extent(mode) => asked("extent", [at, Expr::Int(mode as i64)]),
                Side::Stride(mode) => asked("stride", [at, Expr::Int(mode as i64)]),
                Side::Elements => asked("elements", [at]),
            };
            let form = Form::of(self.p, source.buffer)?;
            let number = match self.scalars(source.buffer, &form, source.side) {
                1 => number,
                n => number.binary(Binary::Mul, Expr::Int(n)),
            };
            let number = match source.rest {
                Dim::Const(0) => number,
                rest => number.binary(Binary::Sub, self.indices.print(rest)?.expr),
            };
            // If the division has a remainder, the comparison of extents fails.
            let value = match source.factor {
                1 => number,
                factor => number.binary(Binary::Div, Expr::Int(factor)),
            };
            let Expr::Name(name) = self.symbol(source.var)? else { continue };
            body.push(Stmt::constant("long long", name, value));
        }
        Ok(())
    }

    /// The factor from a number of the caller's tensor to the program's number: an element of the
    /// tensor holds several scalars of fewer than 8 bits, along the mode of stride 1.
    fn scalars(&self, b: BufferId, form: &Form, side: Side) -> i64 {
        let packed = storage(self.p.buffers[b].scalar).packed;
        let is_along = |mode: usize| match form {
            Form::Modes(modes) => modes.get(mode).is_some_and(|(_, s)| *s == Dim::Const(1)),
            Form::Flat(_) => true,
        };
        match side {
            Side::Elements => packed,
            Side::Extent(mode) if is_along(mode) => packed,
            Side::Stride(mode) if !is_along(mode) => packed,
            Side::Extent(_) | Side::Stride(_) => 1,
        }
    }

    /// Checks of the extents and strides of a tensor; each is true if one of them does not fit.
    fn modes(&mut self, i: i64, b: BufferId) -> Fallible<Vec<Expr>> {
        let form = Form::of(self.p, b)?;
        let modes = match &form {
            Form::Modes(modes) => modes,
            Form::Flat(n) => {
                let mut all = vec![Expr::Int(i), self.indices.print(*n)?.expr];
                let packed = self.scalars(b, &form, Side::Elements);
                all.extend(Some(packed).filter(|n| *n > 1).map(Expr::Int));
                return Ok(vec![given("flat", all)]);
            }
        };
        let mut checks = vec![];
        for (mode, (extent, stride)) in modes.iter().enumerate() {
            let mut all = vec![Expr::Int(i), Expr::Int(mode as i64)];
            all.push(self.indices.print(*extent)?.expr);
            all.push(self.indices.print(*stride)?.expr);
            let along = self.scalars(b, &form, Side::Extent(mode));
            let across = self.scalars(b, &form, Side::Stride(mode));
            if (along, across) != (1, 1) {
                all.extend([Expr::Int(along), Expr::Int(across)]);
            }
            checks.push(given("mode", all));
        }
        Ok(checks)
    }

    /// Launches the kernels on the tensors.
    fn launched(&self, names: &Names<'_>, taken: &Interface, sizes: Vec<Expr>) -> Stmt {
        let mut args: Vec<Expr> = vec![];
        for (i, b) in taken.caller.iter().enumerate() {
            let buffer = &self.p.buffers[*b];
            if buffer.is_number() {
                args.push(Expr::name(self.passed[b].clone()));
                continue;
            }
            let ty = storage(buffer.scalar).cxx;
            let callee = format!("given.address<{ty}>");
            args.push(Expr::call(callee, [Expr::Int(i as i64)]));
        }
        args.extend(sizes.iter().cloned());
        args.extend(["workspace", "stream"].map(Expr::name));
        let bytes = Expr::call(names.bytes.to_owned(), sizes);
        Stmt::new(StmtKind::Filled(vec![
            Piece::Text("return given.launch("),
            Piece::Operand(bytes),
            Piece::Text(", "),
            Piece::Operand(Expr::Int(taken.unit(self.p))),
            Piece::Text(", [&](void* workspace, cudaStream_t stream) { return "),
            Piece::Operand(Expr::call(names.launch.to_owned(), args)),
            Piece::Text("; });"),
        ]))
    }
}

/// The tensors of the caller with their argument positions.
fn tensors(printer: &Printer<'_>, taken: &Interface) -> Vec<(i64, BufferId)> {
    let all = taken.caller.iter().enumerate().map(|(i, b)| (i as i64, *b));
    all.filter(|(_, b)| !printer.p.buffers[*b].is_number()).collect()
}

/// The result of a method of the arguments.
fn asked(method: &str, all: impl IntoIterator<Item = Expr>) -> Expr {
    Expr::call(format!("given.{method}"), all.into_iter().collect::<Vec<_>>())
}

/// The negated result of a method of the arguments: true if an argument does not fit.
fn given(method: &str, all: impl IntoIterator<Item = Expr>) -> Expr {
    Expr::call(format!("!given.{method}"), all.into_iter().collect::<Vec<_>>())
}

/// Returns -1 if one of the checks is true; the check has raised an error.
fn unless(body: &mut Vec<Stmt>, checks: Vec<Expr>) {
    let any = checks.into_iter().reduce(|a, b| a.binary(Binary::Or, b));
    body.extend(any.map(|any| when(any, Expr::Int(-1))));
}

/// Declares a variable, and reads an integer of a range into it.
fn integer(
    body: &mut Vec<Stmt>,
    ty: &'static str,
    name: Expr,
    (index, said): (i64, Expr),
    (least, most): (i64, i64),
) {
    declared(body, ty, &name);
    let range = [Expr::Int(least), Expr::Int(most)];
    let all = [Expr::Int(index), said].into_iter().chain(range).chain([name.address()]);
    unless(body, vec![given("integer", all)]);
}

fn declared(body: &mut Vec<Stmt>, ty: &'static str, name: &Expr) {
    let Expr::Name(name) = name else { return };
    body.push(Stmt::variable(Type::named(ty), name.clone(), Expr::Literal("{}".to_owned())));
}
