//! What an expression of the calculator can be worth, and what an operand can be taken for.
//!
//! Invariant: tuples nest at most [`MAX_DEPTH`] levels, so every function here may recurse.
//! Invariant: a value prints as text that the calculator reads back as the same value.

use carbyne_ir::layout::slice::Holes;
use carbyne_ir::layout::{Basis, ComposedLayout, CoordLayout, Layout, LayoutError, Swizzle, Tiler};
use carbyne_ir::tuple::{IntTuple, MAX_DEPTH};
use std::fmt;

/// The worth of an expression.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    /// `4`, and `_4`
    Int(i64),
    /// `true`
    Bool(bool),
    /// `_`, in coordinates and tilers.
    Hole,
    /// `2@1@0`, a stride along an axis.
    Basis(Basis),
    /// `(4,(2,_))`
    Tuple(Vec<Value>),
    /// `[8,4:2,_]`
    List(Vec<Value>),
    /// `(4,8):(8,1)`
    Layout(Layout),
    /// `(4,8):(1@0,1@1)`: a layout whose indices are coordinates.
    Coords(CoordLayout),
    /// `Sw<3,4,3> o 0 o (8,64):(64,1)`
    Composed(Box<ComposedLayout>),
    /// `Sw<3,4,3>`
    Swizzle(Swizzle),
}

/// What an operation takes an operand for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A layout; an integer N is `N:1`.
    Layout,
    /// A layout that may be under a swizzle.
    Function,
    /// As a function, or with strides along basis vectors.
    Any,
    /// A layout over everything, or one for every mode.
    Tiler,
    /// A tiler, or a layout of any kind: what can stand on the right of a composition.
    Composable,
    /// An integer, or a tuple of such: a shape, an order, a profile.
    Shape,
    /// As a shape, with `_` for modes that are not fixed.
    Coord,
    /// An integer.
    Int,
    /// A list of mode numbers.
    Modes,
}

impl Kind {
    /// In words, with the article.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Kind::Layout => "a layout",
            Kind::Function => "a layout or a swizzled layout",
            Kind::Any => "a layout of any kind",
            Kind::Tiler => "a tiler",
            Kind::Composable => "a layout or a tiler",
            Kind::Shape => "an integer or a tuple of integers",
            Kind::Coord => "a coordinate",
            Kind::Int => "an integer",
            Kind::Modes => "a list of mode numbers",
        }
    }

    /// How one is written.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Kind::Layout | Kind::Any => "`(4,8):(8,1)`",
            Kind::Function => "`(4,8):(8,1)` or `Sw<2,0,3> o 0 o (8,8):(8,1)`",
            Kind::Tiler | Kind::Composable => "`4:2`, or `[8, 4:2, _]` for one tiler a mode",
            Kind::Shape => "`8` or `(4,(2,2))`",
            Kind::Coord => "`3` or `(1,(_,0))`",
            Kind::Int => "`4`",
            Kind::Modes => "`[0, 2]`",
        }
    }
}

/// Why a value cannot be taken for what is wanted.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// It is something else.
    Other,
    /// It is no value of that kind after all.
    Refused(LayoutError),
}

impl Value {
    /// In words, with the article.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Value::Int(_) => "an integer",
            Value::Bool(_) => "a boolean",
            Value::Hole => "`_`",
            Value::Basis(_) => "a basis stride",
            Value::Tuple(_) => "a tuple",
            Value::List(_) => "a list",
            Value::Layout(_) => "a layout",
            Value::Coords(_) => "a layout of coordinates",
            Value::Composed(_) => "a swizzled layout",
            Value::Swizzle(_) => "a swizzle",
        }
    }

    /// How many numbers and tuples it holds: what it costs to keep.
    pub(crate) fn cost(&self) -> usize {
        fn nodes(t: &IntTuple) -> usize {
            match t {
                IntTuple::Leaf(_) => 1,
                IntTuple::Tuple(modes) => 1 + modes.iter().map(nodes).sum::<usize>(),
            }
        }
        match self {
            Value::Tuple(items) | Value::List(items) => {
                1 + items.iter().map(Value::cost).sum::<usize>()
            }
            Value::Layout(l) => 2 * nodes(&l.shape()),
            Value::Composed(c) => 2 * nodes(&c.layout().shape()),
            Value::Coords(l) => 4 * nodes(&l.shape()),
            Value::Basis(b) => 1 + b.path().len(),
            Value::Int(_) | Value::Bool(_) | Value::Hole | Value::Swizzle(_) => 1,
        }
    }

    /// Levels of tuples and lists.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Value::Tuple(items) | Value::List(items) => {
                1 + items.iter().map(Value::depth).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// A tuple or list of these, if it does not nest too deep.
    pub(crate) fn nested(items: Vec<Value>, brackets: bool) -> Result<Value, LayoutError> {
        if items.iter().any(|item| item.depth() >= MAX_DEPTH) {
            return Err(LayoutError::TooDeep { limit: MAX_DEPTH });
        }
        Ok(if brackets { Value::List(items) } else { Value::Tuple(items) })
    }

    /// As an integer.
    pub(crate) fn int(&self) -> Result<i64, Misfit> {
        match self {
            Value::Int(v) => Ok(*v),
            _ => Err(Misfit::Other),
        }
    }

    /// As a shape, an order, a profile, or a coordinate without `_`.
    pub(crate) fn shape(&self) -> Result<IntTuple, Misfit> {
        let shape = self.shape_within()?;
        shape.check_limits().map_err(Misfit::Refused)?;
        Ok(shape)
    }

    fn shape_within(&self) -> Result<IntTuple, Misfit> {
        match self {
            Value::Int(v) => Ok(IntTuple::Leaf(*v)),
            Value::Tuple(items) | Value::List(items) => {
                let items = items.iter().map(Value::shape_within);
                Ok(IntTuple::Tuple(items.collect::<Result<_, _>>()?))
            }
            _ => Err(Misfit::Other),
        }
    }

    /// As a list of mode numbers; one number is a list of one.
    pub(crate) fn modes(&self) -> Result<Vec<usize>, Misfit> {
        let number = |v: &Value| usize::try_from(v.int()?).map_err(|_| Misfit::Other);
        match self {
            Value::Tuple(items) | Value::List(items) => items.iter().map(number).collect(),
            one => Ok(vec![number(one)?]),
        }
    }

    /// As a layout.
    pub(crate) fn layout(&self) -> Result<Layout, Misfit> {
        match self {
            Value::Layout(l) => Ok(l.clone()),
            Value::Int(extent) => Layout::new(*extent, 1).map_err(Misfit::Refused),
            _ => Err(Misfit::Other),
        }
    }

    /// As a layout under a swizzle, which may be the one that changes nothing.
    pub(crate) fn function(&self) -> Result<ComposedLayout, Misfit> {
        match self {
            Value::Composed(c) => Ok((**c).clone()),
            other => other.layout().map(ComposedLayout::from),
        }
    }

    /// As a tiler: tuples and lists are by mode.
    pub(crate) fn tiler(&self) -> Result<Tiler, Misfit> {
        match self {
            Value::Hole => Ok(Tiler::Keep),
            Value::Tuple(items) | Value::List(items) => {
                let items = items.iter().map(Value::tiler);
                Ok(Tiler::Modes(items.collect::<Result<_, _>>()?))
            }
            other => Ok(Tiler::Layout(other.layout()?)),
        }
    }

    /// As a coordinate.
    pub(crate) fn coord(&self) -> Result<Holes, Misfit> {
        let coord = self.coord_within()?;
        coord.check_limits().map_err(Misfit::Refused)?;
        Ok(coord)
    }

    fn coord_within(&self) -> Result<Holes, Misfit> {
        match self {
            Value::Hole => Ok(IntTuple::Leaf(None)),
            Value::Int(v) => Ok(IntTuple::Leaf(Some(*v))),
            Value::Tuple(items) | Value::List(items) => {
                let items = items.iter().map(Value::coord_within);
                Ok(IntTuple::Tuple(items.collect::<Result<_, _>>()?))
            }
            _ => Err(Misfit::Other),
        }
    }

    /// As strides of which some are steps along axes.
    pub(crate) fn basis(&self) -> Option<IntTuple<Basis>> {
        match self {
            Value::Int(v) => Some(IntTuple::Leaf(Basis::plain(*v))),
            Value::Basis(b) => Some(IntTuple::Leaf(*b)),
            Value::Tuple(items) | Value::List(items) => {
                Some(IntTuple::Tuple(items.iter().map(Value::basis).collect::<Option<_>>()?))
            }
            _ => None,
        }
    }

    /// Whether it can be taken for this.
    pub(crate) fn fits(&self, kind: Kind) -> Result<(), Misfit> {
        match kind {
            Kind::Layout => self.layout().map(drop),
            Kind::Function => self.function().map(drop),
            Kind::Any if matches!(self, Value::Coords(_)) => Ok(()),
            Kind::Any => self.function().map(drop),
            Kind::Composable if matches!(self, Value::Coords(_) | Value::Composed(_)) => Ok(()),
            Kind::Tiler | Kind::Composable => self.tiler().map(drop),
            Kind::Shape => self.shape().map(drop),
            Kind::Coord => self.coord().map(drop),
            Kind::Int => self.int().map(drop),
            Kind::Modes => self.modes().map(drop),
        }
    }
}

impl From<&IntTuple> for Value {
    fn from(tuple: &IntTuple) -> Self {
        match tuple {
            IntTuple::Leaf(v) => Value::Int(*v),
            IntTuple::Tuple(modes) => Value::Tuple(modes.iter().map(Value::from).collect()),
        }
    }
}

impl From<CoordLayout> for Value {
    fn from(layout: CoordLayout) -> Self {
        Value::Coords(layout)
    }
}

impl From<ComposedLayout> for Value {
    /// Without swizzle or offset, a plain layout.
    fn from(composed: ComposedLayout) -> Self {
        match composed.plain() {
            Some(layout) => Value::Layout(layout.clone()),
            None => Value::Composed(Box::new(composed)),
        }
    }
}

impl From<Layout> for Value {
    fn from(layout: Layout) -> Self {
        Value::Layout(layout)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items = |items: &[Value], open: &str, close: &str| {
            f.write_str(open)?;
            for (i, item) in items.iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                write!(f, "{comma}{item}")?;
            }
            f.write_str(close)
        };
        match self {
            Value::Int(v) => write!(f, "{v}"),
            Value::Bool(v) => write!(f, "{v}"),
            Value::Hole => f.write_str("_"),
            Value::Basis(b) => write!(f, "{b}"),
            Value::Tuple(modes) => items(modes, "(", ")"),
            Value::List(modes) => items(modes, "[", "]"),
            Value::Layout(l) => write!(f, "{l}"),
            Value::Coords(l) => write!(f, "{l}"),
            Value::Composed(c) => write!(f, "{c}"),
            Value::Swizzle(s) => write!(f, "{s}"),
        }
    }
}

/// The swizzle of these fields.
pub(super) fn swizzle(fields: [i64; 3]) -> Result<Swizzle, LayoutError> {
    let [bits, base, shift] = fields;
    Swizzle::of_fields(bits, base, shift)
}

/// The layout shifted by the offset and swizzled.
pub(super) fn composed(
    swizzle: Swizzle,
    offset: i64,
    layout: Layout,
) -> Result<ComposedLayout, LayoutError> {
    // Every index must fit; they lie between 0 and the cosize on either side.
    let reach = layout.cosize();
    if offset.checked_add(reach).is_none() || offset.checked_sub(reach).is_none() {
        return Err(LayoutError::Overflow { what: "an index after the offset" });
    }
    Ok(ComposedLayout::new(swizzle, offset, layout))
}
