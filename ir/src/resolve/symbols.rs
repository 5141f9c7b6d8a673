//! Resolves declarations of symbols, `sym M, N where M % 8 == 0 typical M=4096`: derives the range
//! and the divisor of each symbol from the facts, keeps the facts as assumptions for proofs, and
//! checks that the usual values satisfy them.

use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, exprs, fail};
use crate::ast::{self, BinOp, CmpOp, Compare, Expr, ExprKind, Symbols};
use crate::diag::{Code, Diagnostic};
use crate::expr::{Dim, VarId, VarInfo};
use crate::limits::MAX_FACTS;
use crate::program::{Fact, VarKind};
use crate::span::Span;
use crate::text::print_compare;

/// The information that a fact gives about one symbol.
enum Alone {
    /// A comparison with a value in the given range.
    Compares {
        op: CmpOp,
        lo: Option<i64>,
        hi: Option<i64>,
        /// A divisor of the value.
        div: i64,
    },
    Divides(i64),
}

/// The maximal number of rounds in which bounds propagate between symbols.
const MAX_HANDED_ON: usize = 4;

impl Resolver {
    /// `sym K{min=64, max=4096, div=64}`
    pub(super) fn sym(&mut self, sym: &ast::SymDecl) -> Fallible<()> {
        let (lo, div) = (sym.min.unwrap_or(1), sym.div.unwrap_or(1));
        if lo < 1 || div < 1 || sym.max.is_some_and(|m| m < lo) {
            self.bind(Sigil::Index, &sym.name, Binding::Broken)?;
            return fail(
                Diagnostic::new(
                    Code::Attribute,
                    sym.name.span,
                    match sym.max {
                        Some(max) if max < lo => {
                            format!("the range of `{}` is empty", sym.name.text)
                        }
                        _ => format!("`min` and `div` of `{}` must be at least 1", sym.name.text),
                    },
                )
                .label(format!(
                    "from {lo} to {}, multiples of {div}",
                    sym.max.map_or("any".to_owned(), |m| m.to_string())
                ))
                .help("make `min` and `div` at least 1, and `max` at least `min`"),
            );
        }
        let info = VarInfo { name: sym.name.text.clone(), lo, hi: sym.max, div };
        let (dim, id) = self.variable(info, VarKind::Symbol, sym.name.span)?;
        self.p.symbols.push(id);
        self.holds.about(id);
        self.bind(Sigil::Index, &sym.name, Binding::Index(dim))
    }

    /// `sym M, N where M % 8 == 0, M <= N typical M=4096`
    pub(super) fn symbols(&mut self, all: &Symbols) -> Fallible<()> {
        let infos = match self.infos(all) {
            Ok(infos) => infos,
            Err(e) => {
                for name in &all.names {
                    self.bind(Sigil::Index, name, Binding::Broken)?;
                }
                return Err(e);
            }
        };
        for (name, info) in all.names.iter().zip(infos) {
            let (dim, id) = self.variable(info, VarKind::Symbol, name.span)?;
            self.p.symbols.push(id);
            self.holds.about(id);
            self.bind(Sigil::Index, name, Binding::Index(dim))?;
        }
        for compare in &all.facts {
            self.fact(compare)?;
        }
        for (name, value) in &all.typical {
            self.usual(name, *value)?;
        }
        Ok(())
    }

    /// The bounds and divisors of the symbols. They result from facts with the symbol alone on one
    /// side, or with its remainder.
    fn infos(&self, all: &Symbols) -> Fallible<Vec<VarInfo>> {
        let info = |name: &ast::Name| VarInfo { lo: 0, ..VarInfo::size(&name.text) };
        let mut infos: Vec<VarInfo> = all.names.iter().map(info).collect();
        // Facts about two symbols propagate bounds from one to the other.
        for _ in 0..MAX_HANDED_ON {
            let before = infos.clone();
            for compare in &all.facts {
                for (k, alone) in self.alone(&all.names, &infos, compare) {
                    let (Some(info), Some(name)) = (infos.get_mut(k), all.names.get(k)) else {
                        continue;
                    };
                    let least = narrowed(info, &alone);
                    if least.is_none_or(|least| info.hi.is_some_and(|hi| least > hi)) {
                        return fail(none_left(name, info, compare));
                    }
                }
            }
            if infos == before {
                break;
            }
        }
        Ok(infos)
    }

    /// The symbols about which a fact gives information, and this information.
    fn alone(&self, names: &[ast::Name], infos: &[VarInfo], c: &Compare) -> Vec<(usize, Alone)> {
        let symbol = |e: &Expr| match &e.kind {
            ExprKind::Name(name) => names.iter().position(|n| n.text == *name),
            _ => None,
        };
        // An undefined name has no range yet; a later round finds it.
        let range = |e: &Expr| match symbol(e).and_then(|k| infos.get(k)) {
            Some(info) => (Some(info.lo), info.hi, info.div),
            None => self.expr(e).map_or((None, None, 1), |dim| {
                let (lo, hi) = self.p.arena.range(dim);
                (lo, hi, self.p.arena.divisor(dim))
            }),
        };
        let sides = [(&c.lhs, c.op, &c.rhs), (&c.rhs, c.op.flipped(), &c.lhs)];
        let compared = sides.into_iter().filter_map(|(own, op, other)| {
            let (lo, hi, div) = range(other);
            Some((symbol(own)?, Alone::Compares { op, lo, hi, div }))
        });
        let constant = |e: &Expr| self.expr(e).ok().and_then(Dim::as_const);
        let divided = || match &c.lhs.kind {
            ExprKind::Bin(BinOp::Mod, a, n) if c.op == CmpOp::Eq => {
                let n = constant(n).filter(|n| *n > 0 && constant(&c.rhs) == Some(0))?;
                Some((symbol(a)?, Alone::Divides(n)))
            }
            _ => None,
        };
        compared.chain(divided()).collect()
    }

    /// Records a fact, and assumes it from here on.
    fn fact(&mut self, c: &Compare) -> Fallible<()> {
        let (lhs, rhs, span) = (self.side(&c.lhs)?, self.side(&c.rhs)?, whole(c));
        let vars = [lhs, rhs].map(|side| self.p.arena.vars_of(side)).concat();
        if let Some(other) = vars.iter().find(|v| !self.is_symbol(**v)) {
            let name = self.p.arena.var_info(*other).name;
            return fail(
                Diagnostic::new(Code::Facts, span, format!("`{name}` is not a symbol"))
                    .label("its value is not known at launch")
                    .help("state facts about symbols and constants; check others with an `if`"),
            );
        }
        if self.p.facts.len() >= MAX_FACTS {
            return fail(
                Diagnostic::new(Code::Facts, span, format!("more than {MAX_FACTS} facts"))
                    .label("this fact exceeds the limit")
                    .help("remove facts that follow from others"),
            );
        }
        let refuted = match vars.is_empty() {
            true => [lhs, rhs].map(Dim::as_const),
            false => [None; 2],
        };
        let text = print_compare(c);
        let false_at_once = matches!(refuted, [Some(a), Some(b)] if !c.op.holds(a, b));
        if false_at_once || self.is_refuted(lhs, c.op, rhs) {
            return fail(
                Diagnostic::new(Code::Facts, span, format!("`{text}` never holds"))
                    .label("no values of the symbols satisfy this and the preceding facts")
                    .help("remove it, or a fact that contradicts it"),
            );
        }
        for symbol in vars {
            let Some(residue) = self.p.remainder(symbol, lhs, c.op, rhs) else { continue };
            let VarInfo { name, lo, hi, .. } = self.p.arena.var_info(symbol);
            let all = self.p.residue(symbol).and_then(|before| before.and(residue));
            let first = all.and_then(|all| all.least(lo));
            if first.is_none_or(|first| hi.is_some_and(|hi| first > hi)) {
                return fail(
                    Diagnostic::new(Code::Facts, span, format!("`{name}` has no possible value"))
                        .label(format!("`{text}` contradicts the preceding facts"))
                        .help(format!("remove one of the facts about `{name}`, or change it")),
                );
            }
        }
        self.assume(lhs, c.op, rhs);
        self.p.facts.push(Fact { lhs, op: c.op, rhs, text, span });
        Ok(())
    }

    /// Evaluates a side of a fact. The remainder of a symbol is not simplified, even if known facts
    /// say that it is zero: the fact that says so must be checked at launch.
    fn side(&self, e: &Expr) -> Fallible<Dim> {
        if let ExprKind::Bin(BinOp::Mod, a, n) = &e.kind
            && let ExprKind::Name(_) = &a.kind
        {
            let (a, n) = (self.expr(a)?, self.expr(n)?);
            let remainder = self.p.arena.remainder_of_var(a, n);
            return remainder.map_err(|err| exprs::overflow(e.span, &err));
        }
        self.expr(e)
    }

    fn is_symbol(&self, var: VarId) -> bool {
        self.p.vars.get(&var) == Some(&VarKind::Symbol)
    }

    /// Records a usual value of a symbol.
    fn usual(&mut self, name: &ast::Name, value: i64) -> Fallible<()> {
        let dim = self.expr(&Expr { kind: ExprKind::Name(name.text.clone()), span: name.span })?;
        let Some(var) = self.p.arena.var_id(dim).filter(|var| self.is_symbol(*var)) else {
            return fail(
                Diagnostic::new(Code::Facts, name.span, format!("`{}` is not a symbol", name.text))
                    .label("only a symbol has a typical value")
                    .help("name a symbol that is declared here or above"),
            );
        };
        if let Some(at) = self.p.typical.iter().position(|(other, _)| *other == var) {
            let message = format!("`{}` has two typical values", name.text);
            let mut d = Diagnostic::new(Code::Facts, name.span, message)
                .label("the second one")
                .help("remove one of them");
            if let Some(first) = self.typical.get(at) {
                d = d.related(*first, "the first one");
            }
            return fail(d);
        }
        self.p.typical.push((var, value));
        self.typical.push(name.span);
        Ok(())
    }

    /// Checks that the usual values satisfy the facts.
    pub(super) fn check_typical(&mut self) {
        if self.p.typical.is_empty() {
            return;
        }
        let values: std::collections::HashMap<VarId, i64> =
            self.p.typical.iter().copied().collect();
        if let Some((vars, broken)) = self.p.broken_fact(&|var| values.get(&var).copied()) {
            let at = self.p.typical.iter().position(|(v, _)| vars.contains(v));
            let span = at.and_then(|at| self.typical.get(at)).copied().unwrap_or_default();
            let mut d = Diagnostic::new(Code::Facts, span, broken.message)
                .label("no launch can have this typical value");
            if !broken.span.is_nowhere() {
                d = d.related(broken.span, "must hold at every launch");
            }
            d.help = broken.help;
            self.errors.push(d);
        }
    }
}

/// Narrows the range of a symbol. Returns the smallest possible value; `None` if there is no value,
/// or if the divisor does not fit 64 bits.
fn narrowed(info: &mut VarInfo, alone: &Alone) -> Option<i64> {
    match *alone {
        Alone::Divides(n) => {
            info.div = (info.div / crate::leaf::gcd(info.div, n)).checked_mul(n)?
        }
        Alone::Compares { op, lo, hi, div } => {
            // A constant value is a range of one number, so a divisor gives no further information.
            if op == CmpOp::Eq && div > 1 && (lo.is_none() || lo != hi) {
                info.div = (info.div / crate::leaf::gcd(info.div, div)).checked_mul(div)?;
            }
            let (least, most) = match op {
                CmpOp::Lt => (None, hi.map(|hi| hi.checked_sub(1))),
                CmpOp::Le => (None, hi.map(Some)),
                CmpOp::Gt => (lo.map(|lo| lo.checked_add(1)), None),
                CmpOp::Ge => (lo.map(Some), None),
                CmpOp::Eq => (lo.map(Some), hi.map(Some)),
                CmpOp::Ne => (None, None),
            };
            if let Some(most) = most {
                let most = most?;
                info.hi = Some(info.hi.map_or(most, |hi| hi.min(most)));
            }
            if let Some(least) = least {
                info.lo = info.lo.max(least?);
            }
        }
    }
    let over = info.lo.rem_euclid(info.div);
    match over {
        0 => Some(info.lo),
        over => info.lo.checked_add(info.div - over),
    }
}

fn none_left(name: &ast::Name, info: &VarInfo, fact: &Compare) -> Diagnostic {
    let to = info.hi.map_or("on".to_owned(), |hi| format!("to {hi}"));
    let message = format!("`{}` has no possible value", name.text);
    Diagnostic::new(Code::Facts, whole(fact), message)
        .label(format!("it must be a multiple of {} from {} {to}", info.div, info.lo))
        .related(name.span, "the symbol")
        .help(format!("remove one of the facts about `{}`, or weaken it", name.text))
}

/// The place of a comparison.
fn whole(c: &Compare) -> Span {
    c.lhs.span.to(c.rhs.span)
}
