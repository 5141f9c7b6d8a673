//! Defines the attributes of specs ([`Attr`]), `key=value` such as `stages=3`, and a table of all
//! keys. For each key the table says which values it takes, on which specs it may stand, and what
//! role it has: the solver chooses a value if it is left out, a leaf passes it to its instruction,
//! or only strategies have it. A new attribute is a row of this table.

use super::{Expr, Name, SpecKind, TupleExpr, UnaryOp, View};
use crate::scalar::spelled;
use crate::span::Span;

/// The type of a key's value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A scalar type.
    Type,
    /// The name of an atom.
    Atom,
    /// One word of this list.
    OneOf(&'static [&'static str]),
    /// Constants, each at least this number.
    Constants(i64),
    /// An integer expression.
    Integer,
    /// A tensor.
    Tensor,
    /// A text in quotation marks.
    Text,
    /// A strategy, with or without values of its parameters.
    Strategy,
}

/// A property of a key.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// If it is omitted, the solver chooses the value.
    Pin,
    /// A leaf passes it to its instruction.
    OfLeaf,
    /// Only strategies have it; it applies to the kernel that the strategy makes.
    OfStrategy,
}

macro_rules! keys {
    ($($key:ident = $name:literal: $takes:expr, $fits:expr, $roles:expr, $says:literal;)*) => {
        spelled! {
            /// The keys of specs and strategies.
            Key { $(#[doc = concat!("`", $name, "=`: ", $says, ".")] $key = $name),* }
        }

        impl Key {
            /// The type of its value.
            pub fn takes(self) -> Takes {
                match self { $(Key::$key => $takes),* }
            }
            /// A description of its value and meaning, for messages.
            pub fn says(self) -> &'static str {
                match self { $(Key::$key => $says),* }
            }
            /// Whether a spec of this kind may have it; `top` tells whether the spec is a top-level
            /// one.
            pub fn fits(self, kind: SpecKind, top: bool) -> bool {
                let fits: fn(SpecKind, bool) -> bool = match self { $(Key::$key => $fits),* };
                fits(kind, top)
            }
            /// Whether it has this role.
            pub fn is(self, role: Role) -> bool {
                let roles: &[Role] = match self { $(Key::$key => &$roles),* };
                roles.contains(&role)
            }
            /// All keys with this role.
            pub fn with(role: Role) -> impl Iterator<Item = Key> {
                Key::ALL.iter().copied().filter(move |key| key.is(role))
            }
        }
    };
}

// One key each: name, type of the value, specs that may have it, roles, description. If the pins of
// a kernel conflict, the solver drops them in this order. Errors list keys by their first letter,
// then in this order.
keys! {
    Acc = "acc": Takes::Type, |kind, _| kind.is_product(), [],
        "a scalar type: the type in which a MatMul accumulates";
    Atom = "atom": Takes::Atom, |_, _| true, [Role::Pin, Role::OfLeaf],
        "the name of an atom: the instruction that implements the spec";
    Axis = "axis": Takes::Constants(0),
        |kind, _| kind.has_axis(), [],
        "modes: those that a Reduction removes, or along which an Iota counts";
    By = "by": Takes::Strategy, |_, _| true, [Role::Pin],
        "a strategy and its parameters, `@name[P=1]`: how to decompose a kernel-level spec";
    Bar = "bar": Takes::Tensor, |kind, _| kind == SpecKind::Move, [Role::OfLeaf],
        "an mbarrier: the one that signals the completion of a copy into shared memory";
    Math = "math": Takes::OneOf(&["exact", "fast"]), |_, _| true, [],
        "exact or fast: whether approximate instructions may implement the spec, regardless of the \
         precision of its result";
    Meant = "meant": Takes::OneOf(&["yes", "no"]), is_cast, [],
        "yes or no: whether a cast in a body is a rounding of the meaning, or a step of the \
         implementation";
    Multicast = "multicast": Takes::Integer, |kind, _| kind == SpecKind::Move, [Role::OfLeaf],
        "an integer: a bit mask of the blocks of the cluster that receive the copy";
    Tile = "tile": Takes::Constants(1), is_tiled, [Role::Pin],
        "(m,n,k): the block tile of a MatMul; for a Move or Reduction one extent for each mode";
    Warps = "warps": Takes::Constants(1), is_tiled, [Role::Pin],
        "(m,n), (m,n,k) or a count: the warps of a block, or the groups that execute instructions";
    Cache = "cache": Takes::OneOf(&["normal", "evict_first", "evict_last"]),
        |kind, _| matches!(kind, SpecKind::Move | SpecKind::Accumulate(_)), [Role::OfLeaf],
        "normal, evict_first or evict_last: how long caches keep the copied data";
    Cluster = "cluster": Takes::Constants(1), |_, top| top, [Role::Pin],
        "a number: how many neighboring blocks form a cluster";
    Consumers = "consumers": Takes::Constants(0), |_, top| top, [Role::Pin],
        "0, 1 or 2: the number of consumer groups, each with as many threads as the block has, \
         that take tiles in turn while a producer copies";
    Lane = "lane": Takes::Integer, |kind, _| matches!(kind, SpecKind::Shfl(_)), [],
        "an integer: lane, distance or mask of a Shfl";
    Loc = "loc": Takes::Text, |_, _| true, [],
        "a text in quotes: the place in the source program from which the spec was made";
    To = "to": Takes::Type, is_cast, [], "a scalar type: the result of a cast in a `means` block";
    Valid = "valid": Takes::Integer, |kind, _| kind == SpecKind::Move, [],
        "an integer: how many elements a Move reads; the others become 0";
    Recompute = "recompute": Takes::Constants(0), |_, _| false, [Role::OfStrategy],
        "0 or 1: whether the results of a sub-spec for a tile are recomputed after a Reduction";
}

fn is_tiled(kind: SpecKind, top: bool) -> bool {
    kind.is_product() || matches!(kind, SpecKind::Move | SpecKind::Reduction(_)) || top
}

fn is_cast(kind: SpecKind, _: bool) -> bool {
    kind == SpecKind::Unary(UnaryOp::Cast)
}

/// `key=value` on a spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Attr {
    /// The key; `None` for an unknown name, which resolving refuses.
    pub key: Option<Key>,
    /// Its name in the text.
    pub name: Name,
    /// The value.
    pub value: AttrValue,
}

/// The value of an attribute.
///
/// The syntax cannot distinguish a word from a lone name, so `stages=N` is always the word `N`.
/// `N + 0`, `(N)` and `@i` are tuples.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// `f32`, `ldmatrix.x4.b16`: letters, digits, `_` and `.`, not beginning with a digit.
    Word(String),
    /// `3`, `(96,160,16)`
    Tuple(TupleExpr),
    /// `%full[s]`
    View(View),
    /// `"model.py:12"`: the text without its quotes. It contains no `"`, no `\` and no line break.
    Text(String),
    /// `@ring[BM=128]`. Without brackets it is the name `@ring` as a tuple.
    Chosen(Chosen),
}

impl Attr {
    /// An attribute that is not in a text yet.
    pub fn new(key: Key, value: AttrValue) -> Self {
        Attr { key: Some(key), name: Name::new(key.as_str()), value }
    }
    /// An attribute with this name, which may be unknown.
    pub fn named(name: Name, value: AttrValue) -> Self {
        Attr { key: name.text.parse().ok(), name, value }
    }
    /// `loc="..."`: the place in the source program from which a spec was made.
    pub fn loc(place: impl Into<String>) -> Self {
        Attr::new(Key::Loc, AttrValue::Text(place.into()))
    }
    /// The first attribute of a list with this key.
    pub fn among(attrs: &[Attr], key: Key) -> Option<&Attr> {
        attrs.iter().find(|attr| attr.key == Some(key))
    }
    /// The text of `loc=`.
    pub(crate) fn loc_of(attrs: &[Attr]) -> Option<&str> {
        match &Attr::among(attrs, Key::Loc)?.value {
            AttrValue::Text(text) => Some(text),
            _ => None,
        }
    }
    /// The value, if it is a word.
    pub fn as_word(&self) -> Option<&str> {
        match &self.value {
            AttrValue::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// `by=@ring[BM=128]`: a strategy and values of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// The name, without `@`; `None` accepts every strategy that has the parameters.
    pub name: Option<Name>,
    /// Parameters and values.
    pub values: Vec<(Name, Expr)>,
    /// Its place in the text.
    pub span: Span,
}
