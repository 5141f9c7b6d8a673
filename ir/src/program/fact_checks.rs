//! Checks whether given values of symbols satisfy the facts that a module states and the bounds of
//! the symbols ([`Program::check_facts`]); every launch checks this first. Other methods return the
//! remainders that facts fix, and the facts as assumptions of proofs.

use super::{Fact, Program, Residue, differences};
use crate::ast::{CmpOp, Expr};
use crate::diag::{Code, Diagnostic};
use crate::expr::prove::Assumptions;
use crate::expr::{Dim, Node, VarId, VarInfo};
use crate::layout::LayoutError;
use crate::span::Span;

impl Fact {
    /// Whether these values satisfy the fact; `None` if it depends on a symbol without a value.
    ///
    /// # Errors
    /// A side does not fit 64 bits, or divides by a number that is not positive.
    pub fn holds(
        &self,
        program: &Program,
        value: &dyn Fn(VarId) -> Option<i64>,
    ) -> Result<Option<bool>, LayoutError> {
        let known = |dim: Dim| program.arena.vars_of(dim).iter().all(|v| value(*v).is_some());
        if !known(self.lhs) || !known(self.rhs) {
            return Ok(None);
        }
        let side = |dim| program.arena.eval(dim, value);
        Ok(Some(self.op.holds(side(self.lhs)?, side(self.rhs)?)))
    }

    /// Differences that the fact proves to be at least zero.
    pub fn differences(&self, program: &Program) -> Vec<Dim> {
        differences(&program.arena, self.lhs, self.op, self.rhs)
    }
}

impl Program {
    /// The remainders of a symbol, from its divisor and from facts such as `M % 64 == 1`; `None` if
    /// these contradict each other.
    pub fn residue(&self, symbol: VarId) -> Option<Residue> {
        let divided = Residue { by: self.arena.var_info(symbol).div.max(1), rest: 0 };
        let of_facts = self.facts.iter().filter_map(|f| self.remainder(symbol, f.lhs, f.op, f.rhs));
        of_facts.into_iter().try_fold(divided, Residue::and)
    }

    /// The remainder that a comparison states, if any.
    pub(crate) fn remainder(
        &self,
        symbol: VarId,
        lhs: Dim,
        op: CmpOp,
        rhs: Dim,
    ) -> Option<Residue> {
        let (Dim::Expr(id), Dim::Const(rest), CmpOp::Eq) = (lhs, rhs, op) else { return None };
        let Node::Mod(of, Dim::Const(by)) = self.arena.node(id) else { return None };
        let own = self.arena.var_id(of) == Some(symbol) && by >= 1 && (0..by).contains(&rest);
        own.then_some(Residue { by, rest })
    }

    /// An expression over symbols as a syntax tree.
    pub fn expression(&self, dim: Dim) -> Option<Expr> {
        crate::expand::expression(self, dim)
    }

    /// Checks values of symbols: facts first, then bounds and divisors. Symbols without a value,
    /// and facts about them, are skipped. Every launch must call this first.
    ///
    /// # Errors
    /// [`Code::SymbolValue`] with the violated fact and the values.
    pub fn check_facts(&self, value: &dyn Fn(VarId) -> Option<i64>) -> Result<(), Box<Diagnostic>> {
        self.broken_fact(value).map_or(Ok(()), |(_, broken)| Err(broken))
    }

    /// The symbols of the first violated condition, and the error of [`Program::check_facts`].
    pub fn broken_fact(
        &self,
        value: &dyn Fn(VarId) -> Option<i64>,
    ) -> Option<(Vec<VarId>, Box<Diagnostic>)> {
        for fact in &self.facts {
            let (why, label) = match fact.holds(self, value) {
                Ok(None | Some(true)) => continue,
                Ok(Some(false)) => ("does not hold", "must hold at every launch".to_owned()),
                Err(e) => ("cannot be computed", e.to_string()),
            };
            let vars = self.vars_of_fact(fact);
            let name = |v: &VarId| self.arena.var_info(*v).name;
            let given = |v: &VarId| Some(format!("{} = {}", name(v), value(*v)?));
            let values: Vec<String> = vars.iter().filter_map(given).collect();
            let names: Vec<String> = vars.iter().map(|v| format!("`{}`", name(v))).collect();
            let message = format!("`{}` {why} where {}", fact.text, values.join(", "));
            let broken = Diagnostic::new(Code::SymbolValue, fact.span, message)
                .label(label)
                .help(format!("give {} another value", names.join(" or ")));
            return Some((vars, Box::new(broken)));
        }
        self.symbols.iter().find_map(|var| {
            let VarInfo { name, lo, hi, div } = self.arena.var_info(*var);
            let given = value(*var)?;
            // The divisor is at least 1.
            let fits =
                given >= lo && hi.is_none_or(|hi| given <= hi) && given.rem_euclid(div.max(1)) == 0;
            let to = hi.map_or("on".to_owned(), |hi| format!("to {hi}"));
            let message = format!("`{name}` cannot be {given}");
            let broken = Diagnostic::new(Code::SymbolValue, Span::default(), message)
                .help(format!("give it a multiple of {div} from {lo} {to}"));
            (!fits).then(|| (vec![*var], Box::new(broken)))
        })
    }

    fn vars_of_fact(&self, fact: &Fact) -> Vec<VarId> {
        let mut vars = self.arena.vars_of(fact.lhs);
        vars.extend(self.arena.vars_of(fact.rhs));
        vars.sort_unstable();
        vars.dedup();
        vars
    }

    /// The fact that two extents are equal, as text, if a module may state it: the extents have
    /// different symbols, or one is a constant in the range of the other.
    pub(crate) fn may_state_equal(&self, a: Dim, b: Dim) -> Option<String> {
        let cx = &self.arena;
        let (own, other) = (cx.vars_of(a), cx.vars_of(b));
        let stated = own.iter().chain(&other).all(|v| self.symbols.contains(v));
        let apart = |a: Dim, b: Dim| {
            let ends = cx.range(a).1.zip(cx.range(b).0);
            ends.is_some_and(|(hi, lo)| hi < lo)
        };
        let constants = own.is_empty() && other.is_empty();
        let shared = own.iter().any(|v| other.contains(v));
        let may = !constants && !shared && !apart(a, b) && !apart(b, a);
        // The symbol declared first comes first.
        let (a, b) =
            if other.is_empty() || !own.is_empty() && own <= other { (a, b) } else { (b, a) };
        (stated && may).then(|| format!("{} == {}", cx.display(a), cx.display(b)))
    }

    /// The facts as differences of at least zero, as assumptions of proofs.
    pub fn assumptions(&self) -> Assumptions {
        let all = self.facts.iter().flat_map(|f| f.differences(self));
        let mut all = Assumptions::new(&self.arena, all);
        self.symbols.iter().for_each(|symbol| all.about(*symbol));
        all
    }
}
