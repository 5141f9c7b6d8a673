//! Prints index expressions of the program's arena ([`ExprArena`], the store of its expressions) as
//! C++. It also keeps the C++ names of the program's variables, and of expressions that a loop
//! carries in a variable.
//!
//! The arena has simplified the expressions; this module only spells them. A sum prints its terms
//! by descending coefficient, so that the slowest coordinate comes first, as people write it.
//!
//! Invariant: the C++ value equals the arena's value. Arithmetic is 32-bit if every partial result
//! provably fits, and `long long` otherwise. C++ truncates in `/` and `%`, so they are printed only
//! if the dividend is provably not negative; otherwise a helper function that rounds down is
//! called.

use crate::cpp::ast::{Binary, Expr, Type, Word};
use crate::{Fallible, errors};
use carbyne_ir::expr::{Dim, ExprArena, ExprId, Node, VarId};
use std::collections::{HashMap, HashSet};

/// Bounds of a value, in a type wide enough that sums and products of bounds cannot overflow.
type Range = (i128, i128);

const WIDE: &str = "long long";
/// Bounds of an unknown value.
const UNKNOWN: Range = (i64::MIN as i128, i64::MAX as i128);

/// A printed expression; `wide` means 64-bit.
#[derive(Clone, Debug)]
pub(crate) struct Printed {
    pub(crate) expr: Expr,
    pub(crate) wide: bool,
}

/// Prints index expressions.
#[derive(Debug)]
pub(crate) struct Indices<'p> {
    arena: &'p ExprArena,
    variables: HashMap<VarId, Printed>,
    /// The counters, by the variables of their values.
    counters: HashMap<VarId, Printed>,
    /// Expressions that a loop carries in variables, and whether they have been printed since.
    carried: HashMap<ExprId, (Printed, bool)>,
    /// Whether the helper functions that round down are needed.
    pub(crate) floors: bool,
    /// Whether a 64-bit quotient or remainder by a non-constant was printed, which ptxas compiles
    /// to a call.
    pub(crate) calls: bool,
    /// Whether to print for the host, which has its own helper functions.
    host: bool,
}

impl<'p> Indices<'p> {
    pub(crate) fn new(arena: &'p ExprArena) -> Self {
        Indices {
            arena,
            variables: HashMap::new(),
            counters: HashMap::new(),
            carried: HashMap::new(),
            floors: false,
            calls: false,
            host: false,
        }
    }

    /// Creates a printer for the host.
    pub(crate) fn of_host(arena: &'p ExprArena) -> Self {
        Indices { host: true, ..Indices::new(arena) }
    }

    /// Makes the variable print as `name` from now on.
    pub(crate) fn bind(&mut self, var: VarId, name: impl Into<Word>, wide: bool) {
        self.variables.insert(var, Printed { expr: Expr::name(name), wide });
    }

    /// Makes the variable print as the name of a counter from now on. The variable does not count
    /// as bound, because its value may change: no expression with it is computed in advance.
    pub(crate) fn bind_counter(&mut self, var: VarId, name: impl Into<Word>) {
        self.counters.insert(var, Printed { expr: Expr::name(name), wide: false });
    }

    /// The printed form of a variable.
    pub(crate) fn variable(&self, var: VarId) -> Option<Expr> {
        self.variables.get(&var).map(|printed| printed.expr.clone())
    }

    /// The printed form of a counter.
    pub(crate) fn counter(&self, var: VarId) -> Option<Expr> {
        self.counters.get(&var).map(|printed| printed.expr.clone())
    }

    /// Whether the variable has a name.
    pub(crate) fn is_bound(&self, var: VarId) -> bool {
        self.variables.contains_key(&var)
    }

    /// The variables that have names.
    pub(crate) fn bound(&self) -> HashSet<VarId> {
        self.variables.keys().copied().collect()
    }

    /// Makes the expression print as a variable with this name from now on.
    pub(crate) fn carry(&mut self, id: ExprId, name: impl Into<Word>, wide: bool) {
        self.carried.insert(id, (Printed { expr: Expr::name(name), wide }, false));
    }

    /// Whether the expression prints as a variable.
    pub(crate) fn carries(&self, id: ExprId) -> bool {
        self.carried.contains_key(&id)
    }

    /// Makes the expression print as itself again. Returns whether it has been printed as a
    /// variable.
    pub(crate) fn no_longer(&mut self, id: ExprId) -> bool {
        self.carried.remove(&id).is_some_and(|(_, used)| used)
    }

    /// Whether every value of the expression fits 32 bits.
    pub(crate) fn is_narrow(&self, dim: Dim) -> bool {
        fits(self.range(dim))
    }

    /// The C++ type of a variable of 32 or 64 bits.
    pub(crate) fn type_of(wide: bool) -> &'static str {
        if wide { WIDE } else { "int" }
    }

    /// Prints the expression in C++.
    pub(crate) fn print(&mut self, dim: Dim) -> Fallible<Printed> {
        let id = match dim {
            Dim::Const(v) => {
                let wide = i32::try_from(v).is_err();
                return Ok(Printed { expr: Expr::Int(v), wide });
            }
            Dim::Expr(id) => id,
        };
        if let Some((variable, used)) = self.carried.get_mut(&id) {
            *used = true;
            return Ok(variable.clone());
        }
        match self.arena.node(id) {
            Node::Var(var) => self.named(var).cloned().ok_or_else(|| {
                errors::unprintable(
                    format!("`{}` has no value here", self.arena.var_info(var).name),
                    "use the variable only inside of the body that binds it",
                )
            }),
            Node::Linear { terms, constant } => self.sum(&terms, constant),
            Node::Mul(a, b) => self.product(a, b),
            Node::Div(a, b) => self.quotient(Binary::Div, "floor_div", a, b),
            Node::Mod(a, b) => {
                let printed = self.quotient(Binary::Rem, "floor_mod", a, b)?;
                // The remainder of a large number may be small.
                Ok(if printed.wide && fits(self.range(dim)) { narrowed(printed) } else { printed })
            }
            Node::CeilDiv(a, b) => {
                let one_less = self.arena.sub(b, Dim::Const(1)).map_err(errors::layout)?;
                let above = self.arena.add(a, one_less).map_err(errors::layout)?;
                self.quotient(Binary::Div, "floor_div", above, b)
            }
            Node::Min(a, b) => self.call("min", a, b),
            Node::Max(a, b) => self.call("max", a, b),
        }
    }

    fn named(&self, var: VarId) -> Option<&Printed> {
        self.variables.get(&var).or_else(|| self.counters.get(&var))
    }

    fn range(&self, dim: Dim) -> Range {
        let (lo, hi) = self.arena.range(dim);
        (lo.map_or(UNKNOWN.0, i128::from), hi.map_or(UNKNOWN.1, i128::from))
    }

    fn sum(&mut self, terms: &[(ExprId, i64)], constant: i64) -> Fallible<Printed> {
        let mut sorted: Vec<(ExprId, i64)> = terms.to_vec();
        // Products of variables have no coefficient to sort by. They are strides and come first.
        let is_product = |id: ExprId| matches!(self.arena.node(id), Node::Mul(..));
        sorted.sort_by_key(|&(id, c)| (c < 0, !is_product(id), std::cmp::Reverse(c), id));
        let mut sum: Option<(Printed, Range)> = None;
        // `63 - k` reads better than `-k + 63`.
        let leading = constant > 0 && sorted.iter().all(|(_, c)| *c < 0);
        if leading {
            let range = (i128::from(constant), i128::from(constant));
            sum = Some((self.print(Dim::Const(constant))?, range));
        }
        for (id, coefficient) in sorted {
            let (term, range) = self.scaled(id, coefficient, sum.is_none())?;
            sum = Some(match sum {
                None => (term, range),
                Some(sum) => add(sum, term, range, coefficient < 0),
            });
        }
        if constant != 0 && !leading {
            let magnitude = i128::from(constant).abs();
            let Ok(shown) = i64::try_from(magnitude) else {
                return Err(errors::unprintable(
                    "an index has a constant beyond 64 bits",
                    "choose smaller extents, strides or offsets",
                ));
            };
            let term = self.print(Dim::Const(shown))?;
            let range = (i128::from(constant), i128::from(constant));
            sum = sum.map(|s| add(s, term, range, constant < 0));
        }
        match sum {
            Some((printed, _)) => Ok(printed),
            None => self.print(Dim::Const(constant)),
        }
    }

    /// Prints `term * coefficient` and computes its range. The sign is printed only for the first
    /// term of a sum.
    fn scaled(&mut self, id: ExprId, coefficient: i64, first: bool) -> Fallible<(Printed, Range)> {
        let (lo, hi) = self.range(Dim::Expr(id));
        let c = i128::from(coefficient);
        let range = ordered(lo.saturating_mul(c), hi.saturating_mul(c));
        let mut term = self.print(Dim::Expr(id))?;
        let factor = if first { Some(coefficient) } else { coefficient.checked_abs() };
        let Some(factor) = factor else {
            return Err(errors::unprintable(
                "an index has a coefficient beyond 64 bits",
                "choose smaller extents or strides",
            ));
        };
        if factor == -1 {
            term.expr = Expr::Unary(crate::cpp::ast::Unary::Neg, Box::new(term.expr));
        } else if factor != 1 {
            // Both signs of the product must fit, since the product may print without its sign.
            let fits = fits(range) && fits(ordered(-range.0, -range.1));
            if !fits && !term.wide {
                term = widened(term);
            }
            let wide = term.wide || i32::try_from(factor).is_err();
            term = Printed { expr: term.expr.binary(Binary::Mul, Expr::Int(factor)), wide };
        }
        Ok((term, range))
    }

    fn product(&mut self, a: Dim, b: Dim) -> Fallible<Printed> {
        let (x, y) = (self.range(a), self.range(b));
        let corners = [x.0, x.1].map(|p| [p.saturating_mul(y.0), p.saturating_mul(y.1)]);
        let all = [corners[0][0], corners[0][1], corners[1][0], corners[1][1]];
        let range = (
            all.iter().copied().fold(i128::MAX, i128::min),
            all.iter().copied().fold(i128::MIN, i128::max),
        );
        let (mut a, b) = (self.print(a)?, self.print(b)?);
        if !fits(range) && !a.wide && !b.wide {
            a = widened(a);
        }
        Ok(Printed { wide: a.wide || b.wide, expr: a.expr.binary(Binary::Mul, b.expr) })
    }

    fn quotient(&mut self, op: Binary, helper: &'static str, a: Dim, b: Dim) -> Fallible<Printed> {
        if self.range(b).0 < 0 {
            return Err(errors::unprintable(
                "a divisor of an index may be negative",
                "divide by a number of at least 1; for a symbol, state `where N > 0`",
            ));
        }
        // A divisor of 0 means an extent without coordinates, so the result does not matter.
        let b = match self.range(b).0 {
            0 => self.arena.max(b, Dim::Const(1)).map_err(errors::layout)?,
            _ => b,
        };
        let constant = b.as_const().is_some();
        let printed = if self.range(a).0 >= 0 {
            let (a, b) = (self.print(a)?, self.print(b)?);
            Printed { wide: a.wide || b.wide, expr: a.expr.binary(op, b.expr) }
        } else {
            self.floors = true;
            self.call(helper, a, b)?
        };
        self.calls |= printed.wide && !constant;
        Ok(printed)
    }

    /// Calls a function whose two arguments have the same type.
    fn call(&mut self, f: &'static str, a: Dim, b: Dim) -> Fallible<Printed> {
        let (mut a, mut b) = (self.print(a)?, self.print(b)?);
        if a.wide != b.wide {
            for side in [&mut a, &mut b] {
                if !side.wide {
                    *side = widened(side.clone());
                }
            }
        }
        let f = match f {
            "min" if self.host => "std::min",
            "max" if self.host => "std::max",
            "floor_div" if self.host => "host_floor_div",
            "floor_mod" if self.host => "host_floor_mod",
            f => f,
        };
        Ok(Printed { wide: a.wide, expr: Expr::call(f, [a.expr, b.expr]) })
    }
}

/// `sum + term` or `sum - term`; `range` is the range of the term with its sign.
fn add(sum: (Printed, Range), term: Printed, range: Range, minus: bool) -> (Printed, Range) {
    let (sum, before) = sum;
    let total = (before.0.saturating_add(range.0), before.1.saturating_add(range.1));
    let term = if !fits(total) && !sum.wide && !term.wide { widened(term) } else { term };
    let op = if minus { Binary::Sub } else { Binary::Add };
    let wide = sum.wide || term.wide;
    (Printed { expr: sum.expr.binary(op, term.expr), wide }, total)
}

fn widened(p: Printed) -> Printed {
    let expr = match p.expr {
        Expr::Int(v) => Expr::Literal(format!("{v}LL")),
        e => Expr::Cast(Type::named(WIDE), Box::new(e)),
    };
    Printed { expr, wide: true }
}

fn narrowed(p: Printed) -> Printed {
    Printed { expr: Expr::Cast(Type::named("int"), Box::new(p.expr)), wide: false }
}

fn fits((lo, hi): Range) -> bool {
    lo >= i128::from(i32::MIN) && hi <= i128::from(i32::MAX)
}

fn ordered(a: i128, b: i128) -> Range {
    (a.min(b), a.max(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpp::ast::{Stmt, StmtKind};
    use crate::cpp::print::statements;
    use carbyne_ir::expr::VarInfo;
    use carbyne_ir::leaf::Leaf;

    struct Fixture {
        arena: ExprArena,
        names: Vec<(Dim, &'static str)>,
    }

    impl Fixture {
        fn new() -> Self {
            Fixture { arena: ExprArena::new(), names: vec![] }
        }
        fn var(&mut self, name: &'static str, lo: i64, hi: Option<i64>) -> Dim {
            let dim = self.arena.var(VarInfo { name: name.into(), lo, hi, div: 1 }).unwrap();
            self.names.push((dim, name));
            dim
        }
        fn show(&self, dim: Dim) -> String {
            let mut indices = Indices::new(&self.arena);
            for &(dim, name) in &self.names {
                let wide = !indices.is_narrow(dim);
                indices.bind(self.arena.var_id(dim).unwrap(), name, wide);
            }
            let e = indices.print(dim).unwrap().expr;
            statements(&[Stmt::new(StmtKind::Expr(e))])
        }
        fn sum(&self, parts: &[(Dim, i64)]) -> Dim {
            let a = &self.arena;
            parts.iter().fold(Dim::Const(0), |s, &(d, c)| {
                a.add(s, a.mul(d, Dim::Const(c)).unwrap()).unwrap()
            })
        }
    }

    #[test]
    fn figure_1c_of_graphene() {
        // Thread tensor [2,2].[8] of a warp: the row of a 16x16 tile that each thread addresses.
        let mut f = Fixture::new();
        let tid = f.var("tid", 0, Some(31));
        let (n, a) = (|v| Dim::Const(v), &f.arena);
        let group_m = a.rem(a.div(tid, n(16)).unwrap(), n(2)).unwrap();
        let group_n = a.rem(a.div(tid, n(8)).unwrap(), n(2)).unwrap();
        let row = a.rem(tid, n(8)).unwrap();
        let index = f.sum(&[(group_m, 128), (group_n, 8), (row, 16)]);
        assert_eq!(f.show(index), "tid / 16 * 128 + tid % 8 * 16 + (tid / 8) % 2 * 8;");
    }

    #[test]
    fn figure_1c_in_a_larger_block() {
        let mut f = Fixture::new();
        let tid = f.var("tid", 0, Some(255));
        let (n, a) = (|v| Dim::Const(v), &f.arena);
        let group_m = a.rem(a.div(tid, n(16)).unwrap(), n(2)).unwrap();
        let group_n = a.rem(a.div(tid, n(8)).unwrap(), n(2)).unwrap();
        let row = a.rem(tid, n(8)).unwrap();
        let index = f.sum(&[(group_m, 128), (group_n, 8), (row, 16)]);
        assert_eq!(f.show(index), "(tid / 16) % 2 * 128 + tid % 8 * 16 + (tid / 8) % 2 * 8;");
    }

    #[test]
    fn figure_8_of_graphene() {
        let mut f = Fixture::new();
        let bid_m = f.var("bid_m", 0, Some(7));
        let bid_n = f.var("bid_n", 0, Some(7));
        let tid_m = f.var("tid_m", 0, Some(15));
        let tid_n = f.var("tid_n", 0, Some(15));
        let m = f.var("m", 0, Some(7));
        let n = f.var("n", 0, Some(7));
        let index =
            f.sum(&[(bid_m, 128), (bid_n, 131_072), (tid_m, 8), (tid_n, 8192), (m, 1), (n, 1024)]);
        assert_eq!(
            f.show(index),
            "bid_n * 131072 + tid_n * 8192 + n * 1024 + bid_m * 128 + tid_m * 8 + m;"
        );
    }

    #[test]
    fn wide_only_where_needed() {
        let mut f = Fixture::new();
        let i = f.var("i", 0, Some(1 << 20));
        let j = f.var("j", 0, Some(1 << 20));
        let k = f.var("K", 1, None);
        let a = &f.arena;
        assert_eq!(f.show(f.sum(&[(i, 2047)])), "i * 2047;");
        assert_eq!(f.show(f.sum(&[(i, 2048)])), "(long long)i * 2048;");
        assert_eq!(f.show(f.sum(&[(i, 1024), (j, 1023)])), "i * 1024 + j * 1023;");
        assert_eq!(f.show(f.sum(&[(i, 1024), (j, 1025)])), "j * 1025 + (long long)(i * 1024);");
        assert_eq!(f.show(a.mul(i, j).unwrap()), "(long long)i * j;");
        assert_eq!(f.show(a.mul(i, k).unwrap()), "i * K;", "K is 64-bit itself");
        assert_eq!(f.show(a.min(i, k).unwrap()), "min((long long)i, K);");
    }

    #[test]
    fn division_rounds_down() {
        let mut f = Fixture::new();
        let i = f.var("i", 0, Some(63));
        let d = f.var("d", -8, Some(8));
        let a = &f.arena;
        assert_eq!(f.show(a.div(i, Dim::Const(4)).unwrap()), "i / 4;");
        assert_eq!(f.show(a.div(d, Dim::Const(4)).unwrap()), "floor_div(d, 4);");
        assert_eq!(f.show(a.rem(d, Dim::Const(4)).unwrap()), "floor_mod(d, 4);");
        assert_eq!(f.show(a.sub(Dim::Const(63), i).unwrap()), "63 - i;");
        assert_eq!(f.show(a.sub(i, d).unwrap()), "i - d;");
        assert_eq!(f.show(a.sub(Dim::Const(-1), i).unwrap()), "-i - 1;");
    }

    #[test]
    fn symbols_print_and_unbound_ones_are_refused() {
        let mut f = Fixture::new();
        let k = f.var("K", 1, Some(4096));
        let i = f.var("i", 0, Some(7));
        let up = Dim::ceil_div(&f.arena, i, k).unwrap();
        assert_eq!(f.show(up), "(K + i - 1) / K;");
        let d = Indices::new(&f.arena).print(k).unwrap_err();
        assert_eq!(d.code.as_str(), "C0401");
    }
}
