//! Reading pins of a MatMul: `tile=(m,n,k)`, `warps=(m,n)` or `warps=n`.

use carbyne_ir::ast::{AttrValue, ExprKind, TupleExpr};

/// The constants of an attribute. `let` constants have been folded away by the time pins are read only
/// where the strategy wrote the attribute; a person writes numbers.
pub fn ints(value: Option<&AttrValue>) -> Option<Vec<i64>> {
    let Some(AttrValue::Tuple(t)) = value else { return None };
    let leaf = |t: &TupleExpr| match t {
        TupleExpr::Leaf(e) => match e.kind {
            ExprKind::Int(v) => Some(v),
            _ => None,
        },
        TupleExpr::Tuple(_) => None,
    };
    match t {
        TupleExpr::Leaf(_) => leaf(t).map(|v| vec![v]),
        TupleExpr::Tuple(ts) => ts.iter().map(leaf).collect(),
    }
}

/// A pin of two numbers.
pub fn pair(value: Option<&AttrValue>) -> Option<(i64, i64)> {
    match ints(value)?[..] {
        [a, b] => Some((a, b)),
        _ => None,
    }
}
