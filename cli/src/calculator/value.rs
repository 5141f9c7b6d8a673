//! Defines the values of the calculator's expressions ([`Value`]: numbers, tuples, layouts, ..),
//! and converts them to the kinds of operands that operations need.
//!
//! Numbers are as in program texts: constants, or expressions over symbols in an arena.
//!
//! Invariant: tuples nest at most [`MAX_DEPTH`] levels, so every function here may recurse.
//! Invariant: the calculator reads the printed text of a value as an equal value.

use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::layout::{self, LayoutError, Swizzle};
use carbyne_ir::leaf::Leaf;
use carbyne_ir::tuple::{IntTuple, MAX_DEPTH};

pub(crate) type Layout = layout::Layout<Dim>;
pub(crate) type CoordLayout = layout::CoordLayout<Dim>;
pub(crate) type ComposedLayout = layout::ComposedLayout<Dim>;
pub(crate) type Tiler = layout::Tiler<Dim>;
pub(crate) type Basis = layout::Basis<Dim>;
pub(crate) type Holes = layout::slice::Holes<Dim>;
pub(crate) type Shape = IntTuple<Dim>;

/// The value of an expression.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    /// `4`, `_4`, `M*4`
    Int(Dim),
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

/// The kind of operand that an operation needs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A layout; an integer N is `N:1`.
    Layout,
    /// A layout that may be under a swizzle.
    Function,
    /// A function, or a layout with strides along basis vectors.
    Any,
    /// A layout for all modes together, or one layout per mode.
    Tiler,
    /// A tiler, or a layout of any kind: a right operand of a composition.
    Composable,
    /// An integer, or a tuple of integers: a shape, an order, a profile.
    Shape,
    /// A shape with `_` for open modes.
    Coord,
    /// An integer, or an expression over symbols.
    Number,
    /// An integer.
    Int,
    /// A list of layouts.
    Layouts,
    /// A list of mode numbers.
    Modes,
}

impl Kind {
    /// The name of the kind, with an article.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Kind::Layout => "a layout",
            Kind::Function => "a layout or a swizzled layout",
            Kind::Any => "a layout of any kind",
            Kind::Tiler => "a tiler",
            Kind::Composable => "a layout or a tiler",
            Kind::Shape => "an integer or a tuple of integers",
            Kind::Coord => "a coordinate",
            Kind::Number => "a number",
            Kind::Int => "an integer",
            Kind::Layouts => "a list of layouts",
            Kind::Modes => "a list of mode numbers",
        }
    }

    /// An example of the kind.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Kind::Layout | Kind::Any => "`(4,8):(8,1)`",
            Kind::Function => "`(4,8):(8,1)` or `Sw<2,0,3> o 0 o (8,8):(8,1)`",
            Kind::Tiler | Kind::Composable => "`4:2`, or `[8, 4:2, _]` for one tiler per mode",
            Kind::Shape => "`8` or `(4,(2,2))`",
            Kind::Coord => "`3` or `(1,(_,0))`",
            Kind::Number | Kind::Int => "`4`",
            Kind::Layouts => "`[8:1, (8,4):(1,16)]`",
            Kind::Modes => "`[0, 2]`",
        }
    }
}

/// The reason why a value cannot be converted to a kind of operand.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// The value is of another kind.
    Other,
    /// The layout algebra refuses the value.
    Refused(LayoutError),
}

impl Value {
    /// The name of the value's kind, with an article.
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

    /// The number of numbers and tuples in the value: the cost to store it.
    pub(crate) fn cost(&self) -> usize {
        fn nodes(t: &Shape) -> usize {
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

    /// The nesting depth of tuples and lists.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Value::Tuple(items) | Value::List(items) => {
                1 + items.iter().map(Value::depth).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// A tuple or list of these items, if it does not nest too deep.
    pub(crate) fn nested(items: Vec<Value>, brackets: bool) -> Result<Value, LayoutError> {
        if items.iter().any(|item| item.depth() >= MAX_DEPTH) {
            return Err(LayoutError::TooDeep { limit: MAX_DEPTH });
        }
        Ok(if brackets { Value::List(items) } else { Value::Tuple(items) })
    }

    /// Converts to a number, which may contain symbols.
    pub(crate) fn number(&self) -> Result<Dim, Misfit> {
        match self {
            Value::Int(v) => Ok(*v),
            _ => Err(Misfit::Other),
        }
    }

    /// Converts to an integer.
    pub(crate) fn int(&self, cx: &ExprArena) -> Result<i64, Misfit> {
        cx.eval(self.number()?, &|_| None).map_err(Misfit::Refused)
    }

    /// Converts to a shape, an order, a profile, or a coordinate without `_`.
    pub(crate) fn shape(&self) -> Result<Shape, Misfit> {
        let shape = self.shape_within()?;
        shape.check_limits().map_err(Misfit::Refused)?;
        Ok(shape)
    }

    fn shape_within(&self) -> Result<Shape, Misfit> {
        match self {
            Value::Int(v) => Ok(IntTuple::Leaf(*v)),
            Value::Tuple(items) | Value::List(items) => {
                let items = items.iter().map(Value::shape_within);
                Ok(IntTuple::Tuple(items.collect::<Result<_, _>>()?))
            }
            _ => Err(Misfit::Other),
        }
    }

    /// Converts to a list of mode numbers; a single number is a list of one.
    pub(crate) fn modes(&self, cx: &ExprArena) -> Result<Vec<usize>, Misfit> {
        let number = |v: &Value| usize::try_from(v.int(cx)?).map_err(|_| Misfit::Other);
        match self {
            Value::Tuple(items) | Value::List(items) => items.iter().map(number).collect(),
            one => Ok(vec![number(one)?]),
        }
    }

    /// Converts to a layout.
    pub(crate) fn layout(&self) -> Result<Layout, Misfit> {
        match self {
            Value::Layout(l) => Ok(l.clone()),
            Value::Int(extent) => Layout::of_mode(*extent, Dim::Const(1)).map_err(Misfit::Refused),
            _ => Err(Misfit::Other),
        }
    }

    /// Converts to a swizzled layout; a plain layout has the identity swizzle.
    pub(crate) fn function(&self) -> Result<ComposedLayout, Misfit> {
        match self {
            Value::Composed(c) => Ok((**c).clone()),
            other => other.layout().map(ComposedLayout::from),
        }
    }

    /// Converts to a layout of numbers, possibly swizzled.
    pub(crate) fn fixed(&self, cx: &ExprArena) -> Result<layout::ComposedLayout, Misfit> {
        self.function()?.eval(cx, &|_| None).map_err(Misfit::Refused)
    }

    /// Converts to a list of layouts; a single layout is a list of one.
    pub(crate) fn layouts(&self) -> Result<Vec<Layout>, Misfit> {
        match self {
            Value::Tuple(items) | Value::List(items) => items.iter().map(Value::layout).collect(),
            one => Ok(vec![one.layout()?]),
        }
    }

    /// Converts to a tiler; tuples and lists are tilers by mode.
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

    /// Converts to a coordinate.
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

    /// Converts to strides along basis vectors and plain strides.
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

    /// Checks that the value converts to this kind.
    pub(crate) fn fits(&self, cx: &ExprArena, kind: Kind) -> Result<(), Misfit> {
        match kind {
            Kind::Layout => self.layout().map(drop),
            Kind::Layouts => self.layouts().map(drop),
            Kind::Function => self.function().map(drop),
            Kind::Any if matches!(self, Value::Coords(_)) => Ok(()),
            Kind::Any => self.function().map(drop),
            Kind::Composable if matches!(self, Value::Coords(_) | Value::Composed(_)) => Ok(()),
            Kind::Tiler | Kind::Composable => self.tiler().map(drop),
            Kind::Shape => self.shape().map(drop),
            Kind::Coord => self.coord().map(drop),
            Kind::Number => self.number().map(drop),
            Kind::Int => self.int(cx).map(drop),
            Kind::Modes => self.modes(cx).map(drop),
        }
    }

    /// Whether a number in the value depends on symbols.
    pub(crate) fn is_symbolic(&self) -> bool {
        let mut symbolic = false;
        self.for_each(&mut |number| symbolic |= number.as_const().is_none());
        symbolic
    }

    /// Calls `f` with every number in the value.
    pub(crate) fn for_each(&self, f: &mut dyn FnMut(Dim)) {
        let of_layout = |l: &Layout, f: &mut dyn FnMut(Dim)| {
            l.leaves().iter().flat_map(|(n, d)| [*n, *d]).for_each(f);
        };
        match self {
            Value::Int(v) => f(*v),
            Value::Basis(b) => f(b.value()),
            Value::Tuple(items) | Value::List(items) => items.iter().for_each(|v| v.for_each(f)),
            Value::Layout(l) => of_layout(l, f),
            Value::Coords(l) => {
                l.leaves().iter().flat_map(|(n, d)| [*n, d.value()]).for_each(f);
            }
            Value::Composed(c) => {
                c.twists().iter().for_each(|(_, at)| f(*at));
                of_layout(c.layout(), f);
            }
            Value::Bool(_) | Value::Hole | Value::Swizzle(_) => {}
        }
    }

    /// The text of the value, with the symbol names of the arena.
    pub(crate) fn text(&self, cx: &ExprArena) -> String {
        let items = |items: &[Value], open: char, close: char| {
            let items: Vec<String> = items.iter().map(|item| item.text(cx)).collect();
            format!("{open}{}{close}", items.join(","))
        };
        match self {
            Value::Int(v) => v.show(cx),
            Value::Bool(v) => v.to_string(),
            Value::Hole => "_".to_owned(),
            Value::Basis(b) => layout::Stride::<Dim>::text_in(*b, cx),
            Value::Tuple(modes) => items(modes, '(', ')'),
            Value::List(modes) => items(modes, '[', ']'),
            Value::Layout(l) => l.display_in(cx),
            Value::Coords(l) => l.display_in(cx),
            Value::Composed(c) => c.display_in(cx),
            Value::Swizzle(s) => s.to_string(),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(Dim::Const(number))
    }
}

impl From<Dim> for Value {
    fn from(number: Dim) -> Self {
        Value::Int(number)
    }
}

impl From<&Shape> for Value {
    fn from(tuple: &Shape) -> Self {
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
    /// Without swizzle and offset, the value is a plain layout.
    fn from(composed: ComposedLayout) -> Self {
        match composed.plain() {
            Some(layout) => Value::Layout(layout.clone()),
            None => Value::Composed(Box::new(composed)),
        }
    }
}

impl From<layout::ComposedLayout> for Value {
    fn from(composed: layout::ComposedLayout) -> Self {
        ComposedLayout::from_fixed(&composed).into()
    }
}

impl From<Layout> for Value {
    fn from(layout: Layout) -> Self {
        Value::Layout(layout)
    }
}

impl From<layout::Layout> for Value {
    fn from(layout: layout::Layout) -> Self {
        Value::Layout(Layout::from_fixed(&layout))
    }
}

/// The layout with this offset and swizzle.
pub(super) fn swizzled(
    cx: &ExprArena,
    swizzle: Swizzle,
    offset: Dim,
    inner: &ComposedLayout,
) -> Result<ComposedLayout, LayoutError> {
    // Every index must fit. The indices lie between 0 and the reach, on either side.
    let reach = match inner.plain() {
        Some(layout) => layout.cosize_in(cx)?,
        None => Dim::Const(inner.eval(cx, &|_| None)?.reach()?),
    };
    Dim::add(cx, offset, reach)?;
    Dim::sub(cx, offset, reach)?;
    ComposedLayout::twisted(swizzle, offset, inner)
}
