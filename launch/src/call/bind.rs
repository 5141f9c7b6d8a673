//! Plans the launches of a call. It checks the types, shapes and strides of the arguments against
//! the tensors of the program, and that all are on one device. It computes the symbols (the sizes
//! that the program leaves open) from the extents and strides. It then computes the shapes of the
//! results that the caller omits, the places of tensors in the workspace, and the source of each
//! kernel argument.

use super::plan::{Map, Place, Plan, Planned, Shape, Slot, Tensor};
use super::view::View;
use super::{Call, Element, Form, Given, Parameter};
use crate::{Arguments, Fallible, Launch, MapValues, refused};
use carbyne_codegen::{CudaKernel, Param};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::{Dim, ExprArena, Node, VarId};
use carbyne_ir::program::BufferId;
use std::collections::BTreeMap;

impl Call {
    /// Plans the launches for tensors with these types, shapes and strides, one per parameter.
    /// `symbols` are sizes that the caller states; the others follow from shapes.
    ///
    /// # Errors
    /// [`Code::BadInput`] for a parameter whose argument does not fit, [`Code::SymbolValue`] for
    /// sizes that break a fact of the program, [`Code::Symbolic`] for a size that neither a shape
    /// nor the caller states.
    pub fn plan(&self, given: &[Given<'_>], symbols: &BTreeMap<VarId, i64>) -> Fallible<Plan> {
        bind(self, given, symbols)
    }
}

fn bind(call: &Call, given: &[Given<'_>], symbols: &BTreeMap<VarId, i64>) -> Fallible<Plan> {
    let arena = &call.program.arena;
    let mut sizes = Sizes { arena, known: BTreeMap::new() };
    for (var, value) in symbols {
        sizes.known.insert(*var, (*value, "the caller".to_owned()));
    }
    let mut equations = vec![];
    let mut device = None;
    let mut tensors = vec![];
    for (i, parameter) in call.parameters.iter().enumerate() {
        let view = match given.get(i).unwrap_or(&Given::Nothing) {
            Given::Number if parameter.is_number => continue,
            Given::Tensor(view) if !parameter.is_number => view,
            Given::Nothing if parameter.is_result => continue,
            Given::Nothing => {
                let kind = if parameter.is_number { "number" } else { "tensor" };
                let help = format!("pass a {kind} for it, by position or by name");
                return Err(misfit(parameter, "is missing", &help));
            }
            Given::Number => {
                let help = "pass a tensor instead of the number";
                return Err(misfit(parameter, "is a tensor, but a number was passed", help));
            }
            Given::Tensor(_) => {
                let help = "pass a number instead of the tensor";
                return Err(misfit(parameter, "is a number, but a tensor was passed", help));
            }
        };
        fits(parameter, view)?;
        match device {
            None => device = Some((view.device, &parameter.name)),
            Some((first, of)) if !first.is(view.device) => {
                let what = format!("lies on {}, but `%{of}` on {first}", view.device);
                return Err(misfit(parameter, &what, "move all tensors to one device"));
            }
            Some(_) => {}
        }
        tensors.push((i, view));
        equations.extend(sides(parameter, view, arena)?);
    }
    sizes.solve(&equations);
    sizes.hold(&equations)?;
    let value = |v: VarId| sizes.known.get(&v).map(|(n, _)| *n);
    for var in &call.program.symbols {
        if value(*var).is_none() {
            sizes.reach(*var, &equations)?;
            let name = arena.var_info(*var).name;
            let text = format!("no shape determines the size `{name}`");
            let help = format!("pass it by name: `{name}=...`");
            return Err(refused(Code::Symbolic, text, &help));
        }
    }
    if let Some((vars, broken)) = call.program.broken_fact(&value) {
        return Err(Box::new(sizes.said_by(&vars).fold(*broken, Diagnostic::note)));
    }
    let number = |d: Dim| {
        arena
            .eval(d, &value)
            .map_err(|e| refused(Code::SymbolValue, e.to_string(), "use smaller sizes"))
    };
    let natural = |d: Dim| Ok::<u64, Box<Diagnostic>>(number(d)?.max(0).cast_unsigned());

    let mut bound = vec![];
    for parameter in &call.parameters {
        let bytes = if parameter.is_number { 0 } else { natural(parameter.bytes)? };
        bound.push(Tensor {
            name: parameter.name.clone(),
            bytes,
            align: parameter.align,
            is_written: parameter.is_written,
            rows: None,
        });
    }
    for (i, view) in tensors {
        bound[i].rows = rows(view);
    }
    let mut results = vec![];
    for (i, parameter) in call.parameters.iter().enumerate() {
        if matches!(given.get(i).unwrap_or(&Given::Nothing), Given::Nothing) {
            results.push((i, shape(parameter, &number)?));
        }
    }
    let (starts, workspace) = call.interface.places(&call.program)?;
    let starts = starts.into_iter().map(natural).collect::<Fallible<Vec<u64>>>()?;
    let places = Places { call, starts };
    let mut launches = vec![];
    for (i, kernel) in call.kernels.iter().enumerate() {
        let launch = Launch::of_kernel(kernel, number(kernel.grid)?)?;
        // A launch without blocks is skipped. It may also have a tensor without elements, whose
        // tensor map could not be encoded.
        if launch.grid > 0 {
            let slots = places.slots(kernel, arena, &value)?;
            launches.push(Planned { kernel: i, launch, slots });
        }
    }
    let workspace = (natural(workspace)?, call.interface.unit(&call.program).cast_unsigned());
    let known = sizes.known.iter().map(|(var, (value, _))| (*var, *value)).collect();
    Ok(Plan::new(launches, bound, results, known, workspace))
}

/// An extent or a stride of the caller's tensor, and the program's expression for it.
struct Equation {
    /// Its name in messages: `extent 0 of %A`.
    what: String,
    is_stride: bool,
    is: i64,
    wanted: Dim,
}

/// The values of symbols, and the names of the extents or strides that determine them.
struct Sizes<'a> {
    arena: &'a ExprArena,
    known: BTreeMap<VarId, (i64, String)>,
}

impl Sizes<'_> {
    /// Solves equations that are linear in one unknown symbol. Extents come before strides, because
    /// the stride of a mode with one element has no meaning.
    fn solve(&mut self, equations: &[Equation]) {
        loop {
            let before = self.known.len();
            for strides in [false, true] {
                for e in equations.iter().filter(|e| e.is_stride == strides) {
                    if let Some((var, value)) = self.solved(e) {
                        self.known.insert(var, (value, e.what.clone()));
                    }
                }
            }
            if self.known.len() == before {
                return;
            }
        }
    }

    fn solved(&self, equation: &Equation) -> Option<(VarId, i64)> {
        let (var, factor, rest) = self.unknown(equation)?;
        (rest.checked_rem(factor)? == 0).then_some((var, rest / factor))
    }

    /// The only unknown symbol of an equation, its factor, and the value of their product.
    fn unknown(&self, equation: &Equation) -> Option<(VarId, i64, i64)> {
        if let Some(var) = self.arena.var_id(equation.wanted) {
            return (!self.known.contains_key(&var)).then_some((var, 1, equation.is));
        }
        let Dim::Expr(id) = equation.wanted else { return None };
        let Node::Linear { terms, constant } = self.arena.node(id) else { return None };
        let (mut rest, mut unknown) = (equation.is.checked_sub(constant)?, None);
        for (term, factor) in terms.iter() {
            let var = self.arena.var_id(Dim::Expr(*term))?;
            match self.known.get(&var) {
                Some((value, _)) => rest = rest.checked_sub(value.checked_mul(*factor)?)?,
                None if unknown.is_none() => unknown = Some((var, *factor)),
                None => return None,
            }
        }
        let (var, factor) = unknown?;
        Some((var, factor, rest))
    }

    /// The values of symbols and what determines them, as texts.
    fn said_by(&self, vars: &[VarId]) -> impl Iterator<Item = String> {
        vars.iter().filter_map(|v| {
            let (n, by) = self.known.get(v)?;
            Some(format!("`{}` is {n} because of {by}", self.arena.var_info(*v).name))
        })
    }

    /// Checks that the equations with `var` as the only unknown have a solution. `2*N + 1` is 8 for
    /// no integer `N`.
    fn reach(&self, var: VarId, equations: &[Equation]) -> Fallible<()> {
        let excludes = |e: &&Equation| {
            let Some((of, factor, rest)) = self.unknown(e) else { return false };
            of == var && rest.checked_rem(factor).is_some_and(|left| left != 0)
        };
        let Some(e) = equations.iter().find(excludes) else { return Ok(()) };
        let (name, wanted) = (self.arena.var_info(var).name, self.arena.display(e.wanted));
        let text = format!("{} is {}, but no `{name}` makes `{wanted}` equal to it", e.what, e.is);
        Err(refused(Code::BadInput, text, "pass a tensor of another shape"))
    }

    /// Checks all equations with known symbols, extents first: a wrong extent often makes strides
    /// wrong.
    fn hold(&self, equations: &[Equation]) -> Fallible<()> {
        let value = |v: VarId| self.known.get(&v).map(|(n, _)| *n);
        let (strides, extents): (Vec<_>, Vec<_>) = equations.iter().partition(|e| e.is_stride);
        for e in extents.into_iter().chain(strides) {
            let vars = self.arena.vars_of(e.wanted);
            if vars.iter().any(|v| value(*v).is_none()) {
                continue;
            }
            let Ok(wanted) = self.arena.eval(e.wanted, &value) else { continue };
            if wanted == e.is {
                continue;
            }
            let said: Vec<String> = self.said_by(&vars).collect();
            let reason =
                if said.is_empty() { String::new() } else { format!(": {}", said.join(", ")) };
            let text = format!("{} is {}, but must be {wanted}{reason}", e.what, e.is);
            let help = match e.is_stride {
                true => "copy the tensor to a contiguous one, or state its strides in the program",
                false => "pass tensors whose shapes fit the program and each other",
            };
            return Err(refused(Code::BadInput, text, help));
        }
        Ok(())
    }
}

/// Checks the type, the access and the signs of extents and strides of a tensor.
fn fits(parameter: &Parameter, view: &View<'_>) -> Fallible<()> {
    if !view.element.holds(parameter.scalar) {
        let what = format!("has elements of {}", view.element);
        let wanted = Element::of(parameter.scalar);
        let help = format!("pass a tensor of {wanted}: elements are {}", parameter.scalar);
        return Err(misfit(parameter, &what, &help));
    }
    if view.is_read_only && parameter.is_written {
        return Err(misfit(
            parameter,
            "is written, but the tensor is read-only",
            "pass a copy of it",
        ));
    }
    if view.shape.iter().any(|n| *n < 0) {
        return Err(misfit(
            parameter,
            "has a negative extent",
            "pass a tensor without negative extents",
        ));
    }
    if view.strides.is_some_and(|s| s.iter().any(|s| *s < 0)) {
        return Err(misfit(parameter, "has a negative stride", "pass a contiguous copy"));
    }
    Ok(())
}

/// The equations for the extents and strides of a tensor.
fn sides(parameter: &Parameter, view: &View<'_>, arena: &ExprArena) -> Fallible<Vec<Equation>> {
    let name = &parameter.name;
    let packed = 8 / parameter.scalar.bits().min(8);
    let rank = view.shape.len();
    match &parameter.form {
        Form::Flat(n) => {
            if !view.is_contiguous() {
                let what = "must be contiguous, because the program's tensor has a mode of \
                            several strides";
                return Err(misfit(parameter, what, "pass a contiguous tensor with all elements"));
            }
            let is = view.elements().saturating_mul(packed);
            Ok(vec![Equation {
                what: format!("the number of elements of `%{name}`"),
                is_stride: false,
                is,
                wanted: *n,
            }])
        }
        Form::Modes(modes) if modes.len() != rank => {
            let list = |all: Vec<String>| format!("[{}]", all.join(","));
            let wanted = list(modes.iter().map(|(n, _)| arena.display(*n).to_string()).collect());
            let given = list(view.shape.iter().map(i64::to_string).collect());
            let what = format!("has the shape {wanted}, but the tensor has {given}");
            Err(misfit(parameter, &what, &format!("pass a tensor of the shape {wanted}")))
        }
        Form::Modes(modes) => {
            let strides = view.strides();
            let mut all = vec![];
            for (i, (extent, stride)) in modes.iter().enumerate() {
                // Several scalars of less than 8 bits form one element of the caller's tensor,
                // along the mode of stride 1.
                let along = packed > 1 && *stride == Dim::Const(1);
                let own = if along { view.shape[i].saturating_mul(packed) } else { view.shape[i] };
                all.push(Equation {
                    what: format!("extent {i} of `%{name}`"),
                    is_stride: false,
                    is: own,
                    wanted: *extent,
                });
                if view.shape[i] > 1 && view.elements() > 0 {
                    let own = if along { strides[i] } else { strides[i].saturating_mul(packed) };
                    all.push(Equation {
                        what: format!("stride {i} of `%{name}`"),
                        is_stride: true,
                        is: own,
                        wanted: *stride,
                    });
                }
            }
            Ok(all)
        }
    }
}

/// Shape and strides of a result that the caller omits, in elements of the caller.
fn shape(parameter: &Parameter, number: &dyn Fn(Dim) -> Fallible<i64>) -> Fallible<Shape> {
    let packed = 8 / parameter.scalar.bits().min(8);
    let scalar = parameter.scalar;
    let modes = match &parameter.form {
        Form::Flat(n) => vec![(number(*n)?.div_euclid(packed), 1)],
        Form::Modes(modes) => {
            let mut all = vec![];
            for (extent, stride) in modes {
                let along = packed > 1 && *stride == Dim::Const(1);
                let (n, s) = (number(*extent)?, number(*stride)?);
                all.push(if along { (n / packed, s) } else { (n, s / packed) });
            }
            all
        }
    };
    let (extents, strides) = modes.into_iter().unzip();
    Ok(Shape { element: Element::of(scalar), extents, strides })
}

/// The distance of rows and the length of a row, in bytes, if the slowest mode of the tensor
/// encloses all others.
fn rows(view: &View<'_>) -> Option<(u64, u64)> {
    let (strides, bytes) = (view.strides(), i64::try_from(view.element.bytes()).ok()?);
    let modes = view.shape.iter().zip(&strides).filter(|(n, _)| **n > 1);
    let (_, pitch) = modes.clone().max_by_key(|(_, s)| **s)?;
    let inner = modes.filter(|(_, s)| *s < pitch);
    let last: i64 = inner.map(|(n, s)| (n - 1).saturating_mul(*s)).fold(0, i64::saturating_add);
    let (pitch, row) = (pitch.checked_mul(bytes)?, last.checked_add(1)?.checked_mul(bytes)?);
    (row <= pitch).then_some((pitch.cast_unsigned(), row.cast_unsigned()))
}

/// The places of the kernels' buffers.
struct Places<'a> {
    call: &'a Call,
    /// Byte offsets of the workspace's tensors.
    starts: Vec<u64>,
}

impl Places<'_> {
    fn find(&self, buffer: BufferId) -> Option<Place> {
        let given = self.call.parameters.iter().position(|p| p.buffer == buffer);
        let within = || {
            let i = self.call.interface.workspace.iter().position(|b| *b == buffer)?;
            Some(Place::Workspace(self.starts[i]))
        };
        given.map(Place::Given).or_else(within)
    }

    /// The sources of the values of a kernel's parameters.
    fn slots(
        &self,
        kernel: &CudaKernel,
        arena: &ExprArena,
        value: &dyn Fn(VarId) -> Option<i64>,
    ) -> Fallible<Vec<Slot>> {
        let find = |buffer: BufferId, name: &str| {
            self.find(buffer).ok_or_else(|| {
                refused(
                    Code::BadInput,
                    format!("the parameter `{name}` has no tensor"),
                    "pass every tensor",
                )
            })
        };
        let mut slots = vec![];
        for param in &kernel.params {
            slots.push(match param {
                Param::Pointer { name, buffer, .. } => Slot::Address(find(*buffer, name)?),
                Param::Scalar { name, buffer, .. } => Slot::Number(find(*buffer, name)?),
                Param::Symbol { name, var, wide } => {
                    Slot::Word(Arguments::symbol(name, *wide, value(*var))?)
                }
                Param::TensorMap { name, buffer, map } => {
                    let values = MapValues::evaluate(map, 0, |d| arena.eval(d, value).ok());
                    let Some(values) = values else {
                        let text = format!("the tensor map `{name}` has a size out of range");
                        return Err(refused(Code::SymbolValue, text, "use smaller sizes"));
                    };
                    values.has_coordinates(name)?;
                    let place = find(*buffer, name)?;
                    Slot::Map(Box::new(Map { place, values, encoded: vec![] }))
                }
            });
        }
        Ok(slots)
    }
}

fn misfit(parameter: &Parameter, what: &str, help: &str) -> Box<Diagnostic> {
    refused(Code::BadInput, format!("`%{}` {what}", parameter.name), help)
}
