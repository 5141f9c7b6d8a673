//! Prints the host functions of a file: `NAME_launch` launches the kernels, and
//! `NAME_workspace_bytes` returns the bytes of global memory that they need for tensors between
//! kernels. Both first check that the sizes satisfy the facts of the program. `NAME_launch` also
//! encodes the tensor maps.
//!
//! They are printed under an `#ifndef`, because NVRTC does not compile host code.

mod helpers;
mod printer;
mod tvm_ffi;

pub(super) use helpers::headers;

use super::cuda_kernel::{Param, Parts};
use super::interface::Interface;
use crate::cpp::ast::{Binary, Expr, Item, Piece, Pointer, Stmt, StmtKind, Type, Word};
use crate::index::Indices;
use crate::namer::Namer;
use crate::{Fallible, errors};
use carbyne_atoms::tensor_map::MapDescription;
use carbyne_ir::ast::CmpOp;
use carbyne_ir::diag::Diagnostics;
use carbyne_ir::expr::{Dim, Node, VarInfo};
use carbyne_ir::program::{BufferId, Fact, Program};
use helpers::{ENCODE, LAUNCH, ROUNDING};
use printer::{Printer, function, quoted, returned, when};
use std::collections::{BTreeSet, HashMap};

/// The options for printing host functions.
#[derive(Copy, Clone, Debug)]
pub struct Host<'a> {
    /// The NAME in `NAME_launch` and `NAME_workspace_bytes`.
    pub name: &'a str,
    /// The tensors that the original text declares. All other tensors are in the workspace.
    pub declared: &'a BTreeSet<String>,
    /// The name of the program's text, if the kernels have `#line` directives that name its lines.
    pub lines: Option<&'a str>,
}

/// The host functions, which follow the kernels.
pub(super) fn items(
    program: &Program,
    parts: &[Parts],
    host: Host<'_>,
    for_tvm_ffi: bool,
) -> Result<Vec<Item>, Diagnostics> {
    let mut namer = Namer::default();
    // Names in a function must not hide the names that it uses.
    let taken = ["cudaErrorInvalidValue", "cudaSuccess", "error", "stream", "workspace"];
    let taken_too: &[&str] = if for_tvm_ffi { &tvm_ffi::NAMES } else { &[] };
    for taken in taken.iter().chain(taken_too) {
        namer.admit(taken, "t");
    }
    for parts in parts {
        namer.admit(&parts.kernel.name, "kernel");
    }
    let (indices, passed) = (Indices::of_host(&program.arena), HashMap::new());
    let mut printer = Printer { p: program, namer, indices, passed };
    printer.items(parts, host, for_tvm_ffi).map_err(|d| Diagnostics::from_iter([*d]))
}

impl Printer<'_> {
    fn items(&mut self, parts: &[Parts], host: Host<'_>, for_tvm_ffi: bool) -> Fallible<Vec<Item>> {
        let p = self.p;
        let [launch, bytes] = ["launch", "workspace_bytes"]
            .map(|of| self.namer.admit(&format!("{}_{of}", host.name), "host"));
        let kernels: Vec<_> = parts.iter().map(|parts| &parts.kernel).collect();
        let taken = Interface::of(p, &kernels, host.declared);

        let mut params: Vec<_> = taken.caller.iter().map(|b| self.parameter(*b, parts)).collect();
        let mut sizes = vec![];
        for var in &p.symbols {
            let name = self.namer.admit(&p.arena.var_info(*var).name, "n");
            self.indices.bind(*var, name.clone(), true);
            sizes.push((Type::named("long long"), Word::from(name)));
        }
        params.extend(sizes.clone());
        params.push((Type::pointer("void", false), "workspace".into()));
        params.push((Type::named("cudaStream_t"), "stream".into()));

        let checks = if for_tvm_ffi { &Checks::NAMED } else { &Checks::UNNAMED };
        let bad = (checks.is_broken)(Expr::call(
            checks.name,
            sizes.iter().map(|(_, n)| Expr::name(n.clone())).collect::<Vec<_>>(),
        ));
        let refuse = |value| (!sizes.is_empty()).then(|| when(bad.clone(), value));
        let invalid = || Expr::name("cudaErrorInvalidValue");
        let mut body: Vec<Stmt> = refuse(invalid()).into_iter().collect();
        let error = Type::named("cudaError_t");
        body.push(Stmt::variable(error, "error", Expr::name("cudaSuccess")));
        let total = self.workspace(&taken, &mut body, invalid())?;
        let maps = self.maps(parts, &mut body)?;
        self.launches(parts, &maps, &mut body)?;

        let mut size = refuse(Expr::Int(-1)).into_iter().collect::<Vec<_>>();
        size.push(returned(self.indices.print(total)?.expr));
        let facts = self.facts(checks)?;
        let mut items = vec![Item::Helper("#ifndef __CUDACC_RTC__")];
        if self.indices.floors {
            items.push(Item::Helper(ROUNDING));
        }
        if !maps.is_empty() {
            items.push(Item::Helper(ENCODE));
        }
        items.push(Item::Helper(LAUNCH));
        if !sizes.is_empty() {
            items.push(function(
                &[checks.comment],
                checks.head,
                checks.name.into(),
                sizes.clone(),
                facts,
            ));
        }
        let of_sizes = |line: &'static str| if sizes.is_empty() { "" } else { line };
        items.push(function(
            &[
                &format!("The bytes of the workspace that {launch} needs."),
                of_sizes("The result is -1 for unsupported sizes."),
            ],
            "extern \"C\" long long",
            bytes.clone().into(),
            sizes.clone(),
            size,
        ));
        items.push(function(
            &[
                "Launches the kernels in order on the stream, and does not wait for them.",
                &format!("The workspace is GPU memory; {bytes} returns its size in bytes."),
                "The initial contents of the workspace do not matter.",
                of_sizes(
                    "For unsupported sizes, the function launches nothing and returns \
                     cudaErrorInvalidValue.",
                ),
            ],
            "extern \"C\" cudaError_t",
            launch.clone().into(),
            params,
            body,
        ));
        if for_tvm_ffi {
            let names = tvm_ffi::Names { launch: &launch, bytes: &bytes, facts: checks.name };
            items.extend(self.tvm_ffi(&names, &taken)?);
        }
        items.push(Item::Helper("#endif  // __CUDACC_RTC__"));
        Ok(items)
    }

    fn parameter(&mut self, b: BufferId, parts: &[Parts]) -> (Type, Word) {
        let (ty, name) = self.admit(b);
        if self.p.buffers[b].is_number() {
            return (Type::named(ty), name);
        }
        let written =
            |p: &Param| matches!(p, Param::Pointer { buffer, written: true, .. } if *buffer == b);
        let written = parts.iter().any(|k| k.kernel.params.iter().any(written));
        (Type { name: ty.into(), is_const: !written, pointer: Pointer::Plain }, name)
    }

    /// Declares pointers to the tensors in the workspace, one after another. Returns the size in
    /// bytes.
    fn workspace(
        &mut self,
        taken: &Interface,
        body: &mut Vec<Stmt>,
        invalid: Expr,
    ) -> Fallible<Dim> {
        let (p, cx) = (self.p, &self.p.arena);
        let (unit, (starts, bytes)) = (taken.unit(p), taken.places(p)?);
        let workspace = || Expr::name("workspace");
        for (b, at) in taken.workspace.iter().zip(starts) {
            let (ty, name) = self.admit(*b);
            let base = Expr::call("static_cast<char*>", [workspace()]);
            let begin = match at {
                Dim::Const(0) => base,
                _ => base.binary(Binary::Add, self.indices.print(at)?.expr),
            };
            let pointer = Type::pointer(ty, false);
            let value = Expr::Reinterpret(pointer.clone(), Box::new(begin));
            body.push(Stmt::variable(pointer, name, value));
        }
        if !taken.workspace.is_empty() {
            let address =
                Expr::Reinterpret(Type::named("unsigned long long"), Box::new(workspace()));
            let off = address.binary(Binary::Rem, Expr::Int(unit)).binary(Binary::Ne, Expr::Int(0));
            let bad = workspace().binary(Binary::Eq, Expr::name("nullptr")).binary(Binary::Or, off);
            // An empty workspace may have any address.
            let bad = match cx.range(bytes).0 {
                Some(least) if least > 0 => bad,
                _ => {
                    let some = self.indices.print(bytes)?.expr.binary(Binary::Gt, Expr::Int(0));
                    some.binary(Binary::And, bad)
                }
            };
            body.insert(body.len() - taken.workspace.len(), when(bad, invalid));
        }
        Ok(bytes)
    }

    /// Encodes the tensor maps of all kernels, and returns each with its name. Kernels share equal
    /// maps.
    fn maps(
        &mut self,
        parts: &[Parts],
        body: &mut Vec<Stmt>,
    ) -> Fallible<Vec<(BufferId, MapDescription, Word)>> {
        let mut maps: Vec<(BufferId, MapDescription, Word)> = vec![];
        for param in parts.iter().flat_map(|k| &k.kernel.params) {
            let Param::TensorMap { name, buffer, map } = param else { continue };
            if maps.iter().any(|(b, m, _)| b == buffer && m == map) {
                continue;
            }
            let name = Word::from(self.namer.admit(name, "map"));
            body.push(Stmt::new(StmtKind::Filled(vec![
                Piece::Text("CUtensorMap "),
                Piece::Operand(Expr::name(name.clone())),
                Piece::Text(";"),
            ])));
            let Some(tensor) = self.passed.get(buffer) else {
                return Err(errors::unprintable(
                    format!(
                        "no kernel takes the tensor `%{}` of a tensor map",
                        self.p.buffers[*buffer].name
                    ),
                    "add the tensor to the operands of the kernel",
                ));
            };
            let address = Expr::name(tensor.clone());
            let address = match map.offset {
                Dim::Const(0) => address,
                offset => Expr::Reinterpret(Type::pointer("char", true), Box::new(address))
                    .binary(Binary::Add, self.indices.print(offset)?.expr),
            };
            let mut pieces = vec![Piece::Text("error = encode_tensor_map(")];
            let numbers = [map.data_type, map.swizzle, map.promotion].map(|n| Expr::Int(n.into()));
            for e in [Expr::name(name.clone()).address(), address].into_iter().chain(numbers) {
                pieces.extend([Piece::Operand(e), Piece::Text(", ")]);
            }
            let sizes: Vec<Dim> = map.sizes.iter().map(|n| Dim::Const(*n)).collect();
            for (i, list) in [&map.extents, &map.strides, &sizes].into_iter().enumerate() {
                pieces.push(Piece::Text(if i == 0 { "{" } else { ", {" }));
                for (i, dim) in list.iter().enumerate() {
                    pieces.extend((i > 0).then_some(Piece::Text(", ")));
                    pieces.push(Piece::Operand(self.indices.print(*dim)?.expr));
                }
                pieces.push(Piece::Text("}"));
            }
            pieces.push(Piece::Text(");"));
            checked(body, pieces);
            maps.push((*buffer, map.clone(), name));
        }
        Ok(maps)
    }

    fn launches(
        &mut self,
        parts: &[Parts],
        maps: &[(BufferId, MapDescription, Word)],
        body: &mut Vec<Stmt>,
    ) -> Fallible<()> {
        for Parts { kernel, .. } in parts {
            let mut args = vec![
                Expr::name(kernel.name.clone()),
                self.indices.print(kernel.grid)?.expr,
                Expr::Int(kernel.block),
                Expr::Int(kernel.smem_bytes),
                Expr::name("stream"),
            ];
            for param in &kernel.params {
                args.push(match param {
                    Param::Pointer { buffer, .. } | Param::Scalar { buffer, .. } => {
                        Expr::name(self.passed[buffer].clone())
                    }
                    Param::Symbol { var, .. } => self.symbol(*var)?,
                    Param::TensorMap { buffer, map, .. } => {
                        let same = maps.iter().find(|(b, m, _)| b == buffer && m == map);
                        Expr::name(same.map_or(Word::from("nullptr"), |(.., name)| name.clone()))
                    }
                });
            }
            let call = Expr::call("launch_kernel", args);
            checked(body, vec![Piece::Text("error = "), Piece::Operand(call), Piece::Text(";")]);
        }
        // The error of the last launch is returned in any case.
        body.pop();
        body.push(returned(Expr::name("error")));
        Ok(())
    }

    /// Statements that return [`Checks::broken`] if a range or a fact of the symbols does not hold.
    /// Ranges come first, since facts are printed for values within the ranges.
    fn facts(&mut self, checks: &Checks) -> Fallible<Vec<Stmt>> {
        let mut body = vec![];
        let bad = checks.broken;
        for var in &self.p.symbols {
            let VarInfo { lo, hi, div, name, .. } = self.p.arena.var_info(*var);
            let symbol = self.symbol(*var)?;
            let outside = symbol.clone().binary(Binary::Lt, Expr::Int(lo));
            let outside = hi.into_iter().fold(outside, |e, hi| {
                e.binary(Binary::Or, symbol.clone().binary(Binary::Gt, Expr::Int(hi)))
            });
            let rest = symbol.binary(Binary::Rem, Expr::Int(div)).binary(Binary::Ne, Expr::Int(0));
            let cond = if div > 1 { outside.binary(Binary::Or, rest) } else { outside };
            let most = hi.map_or(String::new(), |hi| format!(", {name} <= {hi}"));
            let multiple = if div > 1 { format!(", {name} % {div} == 0") } else { String::new() };
            body.push(when(cond, bad(&format!("{name} >= {lo}{most}{multiple}"))));
        }
        for fact in self.p.facts.iter().filter(|f| !follows(self.p, f)) {
            let Fact { lhs, op, rhs, text, span } = fact;
            let [lhs, rhs] = [lhs, rhs].map(|side| self.indices.print(*side));
            let at = errors::with_span(*span);
            let (lhs, rhs) = (lhs.map_err(&at)?.expr, rhs.map_err(&at)?.expr);
            let not = match op {
                CmpOp::Lt => Binary::Ge,
                CmpOp::Le => Binary::Gt,
                CmpOp::Eq => Binary::Ne,
                CmpOp::Ne => Binary::Eq,
                CmpOp::Ge => Binary::Lt,
                CmpOp::Gt => Binary::Le,
            };
            body.push(when(lhs.binary(not, rhs), bad(text)).comment(text.clone()));
        }
        body.push(returned(Expr::name(checks.kept)));
        Ok(body)
    }
}

/// The variants of the function that checks sizes.
struct Checks {
    comment: &'static str,
    head: &'static str,
    name: &'static str,
    /// The result for a fact that does not hold.
    broken: fn(&str) -> Expr,
    /// The result if all facts hold.
    kept: &'static str,
    /// Whether a result states that a fact does not hold.
    is_broken: fn(Expr) -> Expr,
}

impl Checks {
    const UNNAMED: Checks = Checks {
        comment: "Whether the kernels do not support these sizes.",
        head: "static bool",
        name: "bad_sizes",
        broken: |_| Expr::name("true"),
        kept: "false",
        is_broken: |result| result,
    };

    const NAMED: Checks = Checks {
        comment: "The first fact that does not hold for these sizes; null if all hold.",
        head: "static const char*",
        name: "broken_fact",
        broken: quoted,
        kept: "nullptr",
        is_broken: |result| result.binary(Binary::Ne, Expr::name("nullptr")),
    };
}

/// Whether the ranges and divisors of symbols imply a fact.
fn follows(p: &Program, Fact { lhs, op, rhs, .. }: &Fact) -> bool {
    let below = |a: Dim, b: Dim, by: i64| match (p.arena.range(a).1, p.arena.range(b).0) {
        (Some(most), Some(least)) => most.checked_add(by).is_some_and(|most| most <= least),
        _ => false,
    };
    match (op, lhs, rhs) {
        (CmpOp::Le, ..) => below(*lhs, *rhs, 0),
        (CmpOp::Lt, ..) => below(*lhs, *rhs, 1),
        (CmpOp::Ge, ..) => below(*rhs, *lhs, 0),
        (CmpOp::Gt, ..) => below(*rhs, *lhs, 1),
        (CmpOp::Eq, Dim::Expr(id), Dim::Const(0)) => match p.arena.node(*id) {
            Node::Mod(of, Dim::Const(by)) => by > 0 && p.arena.divisor(of) % by == 0,
            _ => false,
        },
        (CmpOp::Eq | CmpOp::Ne, ..) => false,
    }
}

/// Appends a statement that sets `error`, and a return if there is an error.
fn checked(body: &mut Vec<Stmt>, pieces: Vec<Piece>) {
    let error = || Expr::name("error");
    body.push(Stmt::new(StmtKind::Filled(pieces)));
    body.push(when(error().binary(Binary::Ne, Expr::name("cudaSuccess")), error()));
}
