//! Defines a row of the calculator's operation table ([`Operation`]), and the operands of a call
//! ([`Args`]). Functions of the table read an operand as the kind of value that they need, or fail.
//! The rows themselves are in `ops`.

use super::fault::Fault;
use super::value::{ComposedLayout, Holes, Kind, Layout, Shape, Tiler, Value};
use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::layout;
use carbyne_ir::tuple::IntTuple;

/// The name of an operand and the kind that the operation needs.
pub(crate) type Param = (&'static str, Kind);

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Operation {
    /// The name in `carbyne layout 'NAME(...)'`.
    pub(crate) name: &'static str,
    /// Other names of the operation.
    pub(crate) aliases: &'static [&'static str],
    params: &'static [Param],
    optional: usize,
    pub(super) many: bool,
    /// A description of the result, in one line.
    pub(crate) doc: &'static str,
    /// An expression and the text of its value.
    pub(crate) example: (&'static str, &'static str),
    pub(super) run: fn(&Args<'_>) -> Result<Value, Fault>,
}

type Run = fn(&Args<'_>) -> Result<Value, Fault>;

/// A row without aliases and without optional operands.
pub(super) const fn op(
    name: &'static str,
    params: &'static [Param],
    doc: &'static str,
    example: (&'static str, &'static str),
    run: Run,
) -> Operation {
    Operation { name, aliases: &[], params, optional: 0, many: false, doc, example, run }
}

/// The operands of a call. Their kinds have been checked.
pub(crate) struct Args<'a> {
    /// The arena of the operands' symbols.
    pub(super) cx: &'a ExprArena,
    pub(super) values: &'a [Value],
}

impl<'a> Args<'a> {
    pub(super) fn new(cx: &'a ExprArena, values: &'a [Value]) -> Self {
        Args { cx, values }
    }

    /// Operand `k`, if given.
    pub(super) fn get(&self, k: usize) -> Option<&'a Value> {
        self.values.get(k)
    }

    pub(super) fn value(&self, k: usize) -> Result<&'a Value, Fault> {
        self.get(k).ok_or(Fault::Count)
    }

    pub(super) fn layout(&self, k: usize) -> Result<Layout, Fault> {
        self.value(k)?.layout().map_err(|m| m.fault(k, Kind::Layout))
    }

    pub(super) fn function(&self, k: usize) -> Result<ComposedLayout, Fault> {
        self.value(k)?.function().map_err(|m| m.fault(k, Kind::Function))
    }

    pub(super) fn tiler(&self, k: usize) -> Result<Tiler, Fault> {
        self.value(k)?.tiler().map_err(|m| m.fault(k, Kind::Tiler))
    }

    pub(super) fn shape(&self, k: usize) -> Result<Shape, Fault> {
        self.value(k)?.shape().map_err(|m| m.fault(k, Kind::Shape))
    }

    pub(super) fn coord(&self, k: usize) -> Result<Holes, Fault> {
        self.value(k)?.coord().map_err(|m| m.fault(k, Kind::Coord))
    }

    pub(super) fn number(&self, k: usize) -> Result<Dim, Fault> {
        self.value(k)?.number().map_err(|m| m.fault(k, Kind::Number))
    }

    /// Operand `k` as a shape of numbers.
    pub(super) fn fixed_shape(&self, k: usize) -> Result<IntTuple, Fault> {
        Ok(self.shape(k)?.try_map(&mut |extent| self.cx.eval(*extent, &|_| None))?)
    }

    /// Operand `k` as a layout of numbers, possibly swizzled.
    pub(super) fn fixed(&self, k: usize) -> Result<layout::ComposedLayout, Fault> {
        self.value(k)?.fixed(self.cx).map_err(|m| m.fault(k, Kind::Function))
    }

    /// Operand `k` as a layout of numbers.
    pub(super) fn fixed_layout(&self, k: usize) -> Result<layout::Layout, Fault> {
        Ok(self.layout(k)?.eval(self.cx, &|_| None)?)
    }

    pub(super) fn int(&self, k: usize) -> Result<i64, Fault> {
        self.value(k)?.int(self.cx).map_err(|m| m.fault(k, Kind::Int))
    }

    pub(super) fn modes(&self, k: usize) -> Result<Vec<usize>, Fault> {
        self.value(k)?.modes(self.cx).map_err(|m| m.fault(k, Kind::Modes))
    }

    /// Operand `k` as the number of a mode.
    pub(super) fn index(&self, k: usize) -> Result<usize, Fault> {
        let wanted = "the number of a mode, from 0";
        usize::try_from(self.int(k)?).map_err(|_| Fault::Range { arg: k, wanted })
    }
}

/// Applies an expression to the layout of operand `k`, for any kind of strides; a swizzle of the
/// operand is kept. For operations on the domain, which select, reorder and nest coordinates.
macro_rules! on_domain {
    ($args:expr, $k:expr, |$layout:ident| $body:expr) => {
        match $args.value($k)? {
            Value::Coords($layout) => Value::from($body),
            Value::Composed(composed) => {
                let $layout = composed.layout();
                Value::from(composed.over($body))
            }
            _ => {
                let $layout = &$args.layout($k)?;
                Value::from($body)
            }
        }
    };
}
pub(super) use on_domain;

impl Operation {
    pub(super) const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// The last `n` operands are optional.
    pub(super) const fn optional(mut self, n: usize) -> Self {
        self.optional = n;
        self
    }

    /// The last operand may be repeated.
    pub(super) const fn many(mut self) -> Self {
        self.many = true;
        self
    }

    /// The minimum number of operands.
    pub(crate) fn required(&self) -> usize {
        self.params.len().saturating_sub(self.optional)
    }

    /// The maximum number of operands, if there is a maximum.
    pub(crate) fn most(&self) -> Option<usize> {
        if self.many { None } else { Some(self.params.len()) }
    }

    /// The kind of operand `k`.
    pub(crate) fn kind(&self, k: usize) -> Kind {
        self.params.get(k).or(self.params.last()).map_or(Kind::Shape, |(_, kind)| *kind)
    }

    /// The name of operand `k`.
    pub(crate) fn param(&self, k: usize) -> &'static str {
        self.params.get(k).or(self.params.last()).map_or("", |(name, _)| name)
    }

    /// The text of the signature: `complement(L, [cotarget])`.
    pub(crate) fn signature(&self) -> String {
        let mut names: Vec<String> = vec![];
        for (k, (name, _)) in self.params.iter().enumerate() {
            let left_out = k >= self.required();
            names.push(if left_out { format!("[{name}]") } else { (*name).to_owned() });
        }
        if self.many {
            names.push("...".to_owned());
        }
        format!("{}({})", self.name, names.join(", "))
    }
}
