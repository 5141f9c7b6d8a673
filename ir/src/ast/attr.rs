//! Attributes, `key=value` on a spec, and one table of all keys.

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
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Constants, none of them less than this.
    Constants(i64),
    /// An integer, constant or not.
    Integer,
    /// A tensor.
    Tensor,
    /// A text in quotation marks.
    Text,
    /// A strategy, with or without its parameters.
    Strategy,
}

/// A property of a key.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The solver chooses the value where it is left out.
    Pin,
    /// A leaf gives it to its instruction.
    OfLeaf,
    /// Only strategies give it, to their kernel.
    OfStrategy,
}

macro_rules! keys {
    ($($key:ident = $name:literal: $takes:expr, $fits:expr, $roles:expr, $says:literal;)*) => {
        spelled! {
            /// A key that specs or strategies know.
            Key { $(#[doc = concat!("`", $name, "=`: ", $says, ".")] $key = $name),* }
        }

        impl Key {
            /// The type of its value.
            pub fn takes(self) -> Takes {
                match self { $(Key::$key => $takes),* }
            }
            /// Its value and meaning, in words.
            pub fn says(self) -> &'static str {
                match self { $(Key::$key => $says),* }
            }
            /// Whether it may stand at a spec, of which `top` says that it stands in no other.
            pub fn fits(self, kind: SpecKind, top: bool) -> bool {
                let fits: fn(SpecKind, bool) -> bool = match self { $(Key::$key => $fits),* };
                fits(kind, top)
            }
            /// Whether it has a role.
            pub fn is(self, role: Role) -> bool {
                let roles: &[Role] = match self { $(Key::$key => &$roles),* };
                roles.contains(&role)
            }
            /// All that have a role.
            pub fn with(role: Role) -> impl Iterator<Item = Key> {
                Key::ALL.iter().copied().filter(move |key| key.is(role))
            }
        }
    };
}

// Name, what it takes, where it may stand, roles, words. Where pins conflict, they are left out in
// this order; errors list keys by their first letters, then in it.
keys! {
    Acc = "acc": Takes::Type, |kind, _| kind.is_product(), [],
        "a scalar type: in which a MatMul accumulates";
    Atom = "atom": Takes::Atom, |_, _| true, [Role::Pin, Role::OfLeaf],
        "an atom's name: which instruction implements the spec";
    Axis = "axis": Takes::Constants(0),
        |kind, _| kind.has_axis(), [],
        "modes: which a Reduction removes, or along which an Iota counts";
    By = "by": Takes::Strategy, |_, _| true, [Role::Pin],
        "a strategy and its parameters, `@name[P=1]`: how a kernel-level spec gets its dataflow";
    Bar = "bar": Takes::Tensor, |kind, _| kind == SpecKind::Move, [Role::OfLeaf],
        "an mbarrier: which a copy into shared memory completes on";
    Math = "math": Takes::OneOf(&["exact", "fast"]), |_, _| true, [],
        "exact or fast: whether instructions that approximate implement it, whatever its result is rounded to";
    Meant = "meant": Takes::OneOf(&["yes", "no"]), is_cast, [],
        "yes or no: whether a cast of a body rounds where the meaning does, or is a step on the way";
    Multicast = "multicast": Takes::Integer, |kind, _| kind == SpecKind::Move, [Role::OfLeaf],
        "an integer: which blocks of the cluster get the copy, one bit each";
    Tile = "tile": Takes::Constants(1), is_tiled, [Role::Pin],
        "(m,n,k): block tile of a MatMul, of a Move or Reduction an extent a mode, for the solver";
    Warps = "warps": Takes::Constants(1), is_tiled, [Role::Pin],
        "(m,n), (m,n,k) or a count: warps of a block, or what else executes an instruction, for the solver";
    Cache = "cache": Takes::OneOf(&["normal", "evict_first", "evict_last"]),
        |kind, _| matches!(kind, SpecKind::Move | SpecKind::Accumulate(_)), [Role::OfLeaf],
        "normal, evict_first or evict_last: how long caches keep what is copied";
    Cluster = "cluster": Takes::Constants(1), |_, top| top, [Role::Pin],
        "a number: how many neighboring blocks form a cluster, for the solver";
    Consumers = "consumers": Takes::Constants(0), |_, top| top, [Role::Pin],
        "0, 1 or 2: how many groups of threads, each as many as the block has, take tiles in turn while a producer copies, for the solver";
    Lane = "lane": Takes::Integer, |kind, _| matches!(kind, SpecKind::Shfl(_)), [],
        "an integer: lane, distance or mask of a Shfl";
    Loc = "loc": Takes::Text, |_, _| true, [],
        "a text in quotes: where the spec comes from in a program that this one was made of";
    To = "to": Takes::Type, is_cast, [], "a scalar type: what a cast in a `means` block gives";
    Valid = "valid": Takes::Integer, |kind, _| kind == SpecKind::Move, [],
        "an integer: how many elements a Move reads, from the first on; the others become 0";
    Recompute = "recompute": Takes::Constants(0), |_, _| false, [Role::OfStrategy],
        "0 or 1: whether what a sub-spec computes of a tile is computed again behind a Reduction";
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
    /// The key; none for a name that no spec and no strategy knows, which resolving refuses.
    pub key: Option<Key>,
    /// Its name in the text.
    pub name: Name,
    /// The value.
    pub value: AttrValue,
}

/// The value of an attribute.
///
/// The text cannot tell a word from a lone name: `stages=N` is always the word `N`, never the tuple
/// of that name, whatever it turns out to mean. `N + 0`, `(N)` and `@i` are tuples.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// `f32`, `ldmatrix.x4.b16`: letters, digits, `_` and `.`, not beginning with a digit.
    Word(String),
    /// `3`, `(96,160,16)`
    Tuple(TupleExpr),
    /// `%full[s]`
    View(View),
    /// `"model.py:12"`: without its quotes. It holds no `"`, no `\`, no line break.
    Text(String),
    /// `@ring[BM=128]`. Without brackets it is the name `@ring` as a tuple.
    Chosen(Chosen),
}

impl Attr {
    /// An attribute that stands in no text yet.
    pub fn new(key: Key, value: AttrValue) -> Self {
        Attr { key: Some(key), name: Name::new(key.as_str()), value }
    }
    /// An attribute with a key of that name.
    pub fn named(name: Name, value: AttrValue) -> Self {
        Attr { key: name.text.parse().ok(), name, value }
    }
    /// `loc="..."`: the place that a spec comes from.
    pub fn loc(place: impl Into<String>) -> Self {
        Attr::new(Key::Loc, AttrValue::Text(place.into()))
    }
    /// The first of a list that has this key.
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
    /// The word that is its value.
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
    /// Without `@`; none where any strategy may be taken that has the parameters.
    pub name: Option<Name>,
    /// Parameters and values.
    pub values: Vec<(Name, Expr)>,
    /// Its place in the text.
    pub span: Span,
}
