//! An operation: a row of the table, and how it takes its operands.

use super::fault::Fault;
use super::value::{ComposedLayout, Holes, Kind, Layout, Shape, Tiler, Value};
use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::layout;
use carbyne_ir::tuple::IntTuple;

/// An operand's name and what it is taken for.
pub(crate) type Param = (&'static str, Kind);

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Operation {
    /// As in `carbyne layout 'NAME(...)'`.
    pub(crate) name: &'static str,
    /// Other names for it.
    pub(crate) aliases: &'static [&'static str],
    params: &'static [Param],
    optional: usize,
    pub(super) many: bool,
    /// Its result, in one line.
    pub(crate) doc: &'static str,
    /// An expression, and the text of its worth.
    pub(crate) example: (&'static str, &'static str),
    pub(super) run: fn(&Args<'_>) -> Result<Value, Fault>,
}

type Run = fn(&Args<'_>) -> Result<Value, Fault>;

/// A row without aliases whose operands must all be there.
pub(super) const fn op(
    name: &'static str,
    params: &'static [Param],
    doc: &'static str,
    example: (&'static str, &'static str),
    run: Run,
) -> Operation {
    Operation { name, aliases: &[], params, optional: 0, many: false, doc, example, run }
}

/// The operands of a call, checked against the row.
pub(crate) struct Args<'a> {
    /// The arena of their symbols.
    pub(super) cx: &'a ExprArena,
    pub(super) values: &'a [Value],
}

impl<'a> Args<'a> {
    pub(super) fn new(cx: &'a ExprArena, values: &'a [Value]) -> Self {
        Args { cx, values }
    }

    /// Operand `k` as it was given, if it was.
    pub(super) fn get(&self, k: usize) -> Option<&'a Value> {
        self.values.get(k)
    }

    pub(super) fn value(&self, k: usize) -> Result<&'a Value, Fault> {
        self.get(k).ok_or(Fault::Count)
    }

    pub(super) fn layout(&self, k: usize) -> Result<Layout, Fault> {
        self.value(k)?.layout().map_err(|m| m.of(k, Kind::Layout))
    }

    pub(super) fn function(&self, k: usize) -> Result<ComposedLayout, Fault> {
        self.value(k)?.function().map_err(|m| m.of(k, Kind::Function))
    }

    pub(super) fn tiler(&self, k: usize) -> Result<Tiler, Fault> {
        self.value(k)?.tiler().map_err(|m| m.of(k, Kind::Tiler))
    }

    pub(super) fn shape(&self, k: usize) -> Result<Shape, Fault> {
        self.value(k)?.shape().map_err(|m| m.of(k, Kind::Shape))
    }

    pub(super) fn coord(&self, k: usize) -> Result<Holes, Fault> {
        self.value(k)?.coord().map_err(|m| m.of(k, Kind::Coord))
    }

    pub(super) fn number(&self, k: usize) -> Result<Dim, Fault> {
        self.value(k)?.number().map_err(|m| m.of(k, Kind::Number))
    }

    /// A shape of numbers.
    pub(super) fn fixed_shape(&self, k: usize) -> Result<IntTuple, Fault> {
        Ok(self.shape(k)?.try_map(&mut |extent| self.cx.eval(*extent, &|_| None))?)
    }

    /// A layout of numbers, which may be under a swizzle.
    pub(super) fn fixed(&self, k: usize) -> Result<layout::ComposedLayout, Fault> {
        self.value(k)?.fixed(self.cx).map_err(|m| m.of(k, Kind::Function))
    }

    /// A layout of numbers.
    pub(super) fn fixed_layout(&self, k: usize) -> Result<layout::Layout, Fault> {
        Ok(self.layout(k)?.eval(self.cx, &|_| None)?)
    }

    pub(super) fn int(&self, k: usize) -> Result<i64, Fault> {
        self.value(k)?.int(self.cx).map_err(|m| m.of(k, Kind::Int))
    }

    pub(super) fn modes(&self, k: usize) -> Result<Vec<usize>, Fault> {
        self.value(k)?.modes(self.cx).map_err(|m| m.of(k, Kind::Modes))
    }

    /// A mode's number.
    pub(super) fn index(&self, k: usize) -> Result<usize, Fault> {
        let wanted = "the number of a mode, from 0";
        usize::try_from(self.int(k)?).map_err(|_| Fault::Range { arg: k, wanted })
    }
}

/// Applies an expression to the layout of operand `k`, whatever its strides are; what is under a
/// swizzle stays there. For operations on the domain: those that choose, order and nest
/// coordinates.
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

    /// So many operands at the end may be left out.
    pub(super) const fn optional(mut self, n: usize) -> Self {
        self.optional = n;
        self
    }

    /// The last operand may be repeated.
    pub(super) const fn many(mut self) -> Self {
        self.many = true;
        self
    }

    /// The least number of operands.
    pub(crate) fn required(&self) -> usize {
        self.params.len().saturating_sub(self.optional)
    }

    /// The greatest number of operands, if there is one.
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

    /// `complement(L, [cotarget])`
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
