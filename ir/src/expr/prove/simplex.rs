//! Tests whether linear inequalities have a rational solution, by the general simplex of Dutertre
//! and de Moura with Bland's rule. If there is none, the prover has its contradiction.
//!
//! Invariant: the answer `true` (there is no solution) is only given if a combination of the
//! inequalities, added up again at the end, says that a negative number is at least zero. The
//! answer does not depend on the correctness of the pivots.

use super::Budget;
use super::sum::Sum;

/// The maximum number of inequalities. Further ones are ignored.
const MAX_ROWS: usize = 160;
/// The maximum number of pivots.
const MAX_PIVOTS: usize = 160;

/// A fraction in lowest terms with a positive denominator.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Ratio {
    over: i128,
    under: i128,
}

impl Ratio {
    const ZERO: Ratio = Ratio { over: 0, under: 1 };
    const ONE: Ratio = Ratio { over: 1, under: 1 };

    fn whole(v: i128) -> Ratio {
        Ratio { over: v, under: 1 }
    }

    fn new(over: i128, under: i128) -> Option<Ratio> {
        if under == 1 {
            return Some(Ratio::whole(over));
        }
        let common = match (i64::try_from(over), i64::try_from(under)) {
            // Most numbers are small; their common divisor is faster in 64 bits.
            (Ok(a), Ok(b)) => i128::from(num_integer::gcd(a.unsigned_abs(), b.unsigned_abs())),
            // `MIN` has no absolute value.
            _ => num_integer::gcd(over.checked_abs()?, under.checked_abs()?),
        };
        match common {
            0 => return None,
            1 if under > 0 => return Some(Ratio { over, under }),
            _ => {}
        }
        let by = if under < 0 { -common } else { common };
        Some(Ratio { over: over / by, under: under / by })
    }

    fn plus(self, other: Ratio) -> Option<Ratio> {
        if other.over == 0 {
            return Some(self);
        }
        if self.under == 1 && other.under == 1 {
            return Some(Ratio::whole(self.over.checked_add(other.over)?));
        }
        let over = self.over.checked_mul(other.under)?;
        let over = over.checked_add(other.over.checked_mul(self.under)?)?;
        Ratio::new(over, self.under.checked_mul(other.under)?)
    }

    fn times(self, other: Ratio) -> Option<Ratio> {
        if self.over == 0 || other.over == 0 {
            return Some(Ratio::ZERO);
        }
        Ratio::new(self.over.checked_mul(other.over)?, self.under.checked_mul(other.under)?)
    }

    fn negated(self) -> Option<Ratio> {
        Some(Ratio { over: self.over.checked_neg()?, ..self })
    }

    fn inverse(self) -> Option<Ratio> {
        Ratio::new(self.under, self.over)
    }

    fn is_below(self, other: Ratio) -> Option<bool> {
        Some(self.over.checked_mul(other.under)? < other.over.checked_mul(self.under)?)
    }
}

/// The smallest and largest value of an atom.
pub(super) type Bounds = (Option<i128>, Option<i128>);

/// The tableau of the simplex. Columns are the independent variables, which are at a bound or zero;
/// rows are the dependent ones. Variables below the number of atoms are atoms. The others are the
/// values of the inequalities without their constants.
struct Tableau {
    rows: Vec<Vec<Ratio>>,
    row_var: Vec<usize>,
    column_var: Vec<usize>,
    value: Vec<Ratio>,
    bounds: Vec<Bounds>,
}

/// Whether no values within the bounds make all sums at least zero. `false` also if the budget
/// ends.
pub(super) fn is_infeasible(sums: &[Sum], atoms: &[Bounds], budget: &mut Budget) -> bool {
    let sums = &sums[..sums.len().min(MAX_ROWS)];
    contradiction(sums, atoms, budget).unwrap_or(false)
}

fn contradiction(sums: &[Sum], atoms: &[Bounds], budget: &mut Budget) -> Option<bool> {
    if sums.iter().any(|sum| sum.terms.is_empty() && sum.constant < 0)
        || atoms.iter().any(|b| matches!(b, (Some(lo), Some(hi)) if lo > hi))
    {
        return Some(true);
    }
    // Only atoms that occur in a sum are relevant.
    let mut used: Vec<u32> = sums.iter().flat_map(|s| s.terms.iter().map(|t| t.0)).collect();
    used.sort_unstable();
    used.dedup();
    let n = used.len();
    let mut rows = Vec::with_capacity(sums.len());
    for sum in sums {
        budget.pay(n)?;
        let mut row = vec![Ratio::ZERO; n];
        for (atom, c) in &sum.terms {
            row[used.binary_search(atom).ok()?] = Ratio::whole(*c);
        }
        rows.push(row);
    }
    let mut bounds: Vec<Bounds> = used.iter().map(|a| atoms[*a as usize]).collect();
    for sum in sums {
        bounds.push((Some(sum.constant.checked_neg()?), None));
    }
    let mut value: Vec<Ratio> =
        bounds[..n].iter().map(|(lo, hi)| Ratio::whole(lo.or(*hi).unwrap_or(0))).collect();
    for row in &rows {
        let mut total = Ratio::ZERO;
        for (c, v) in row.iter().zip(&value) {
            total = total.plus(c.times(*v)?)?;
        }
        value.push(total);
    }
    let row_var = (n..n + sums.len()).collect();
    let mut tableau = Tableau { rows, row_var, column_var: (0..n).collect(), value, bounds };
    for _ in 0..MAX_PIVOTS {
        let Some((row, up)) = tableau.violated()? else { return Some(false) };
        let Some(column) = tableau.helpful(row, up)? else {
            return tableau.certified(row, up, sums, &used);
        };
        budget.pay(tableau.rows.len() * n)?;
        tableau.pivot(row, column, up)?;
    }
    None
}

impl Tableau {
    /// The row of the first variable outside of its bounds, and whether it is below them.
    fn violated(&self) -> Option<Option<(usize, bool)>> {
        let mut found: Option<(usize, usize, bool)> = None;
        for (row, &var) in self.row_var.iter().enumerate() {
            if found.is_some_and(|(best, ..)| best < var) {
                continue;
            }
            let (lo, hi) = self.bounds[var];
            let below = lo.map_or(Some(false), |lo| self.value[var].is_below(Ratio::whole(lo)))?;
            let above = hi.map_or(Some(false), |hi| Ratio::whole(hi).is_below(self.value[var]))?;
            if below || above {
                found = Some((var, row, below));
            }
        }
        Some(found.map(|(_, row, below)| (row, below)))
    }

    /// The column of the first variable that can move so that the row's variable moves up or down.
    fn helpful(&self, row: usize, up: bool) -> Option<Option<usize>> {
        let mut found: Option<(usize, usize)> = None;
        for (column, &var) in self.column_var.iter().enumerate() {
            let by = self.rows[row][column];
            if by.over == 0 || found.is_some_and(|(best, _)| best < var) {
                continue;
            }
            let (lo, hi) = self.bounds[var];
            let room = match (by.over > 0) == up {
                true => hi.map_or(Some(true), |hi| self.value[var].is_below(Ratio::whole(hi))),
                false => lo.map_or(Some(true), |lo| Ratio::whole(lo).is_below(self.value[var])),
            };
            if room? {
                found = Some((var, column));
            }
        }
        Some(found.map(|(_, column)| column))
    }

    /// Exchanges the variables of a row and a column, and moves the row's variable to its violated
    /// bound.
    fn pivot(&mut self, row: usize, column: usize, up: bool) -> Option<()> {
        let (leaving, entering) = (self.row_var[row], self.column_var[column]);
        let bound = if up { self.bounds[leaving].0 } else { self.bounds[leaving].1 };
        let target = Ratio::whole(bound?);
        let inverse = self.rows[row][column].inverse()?;
        let step = target.plus(self.value[leaving].negated()?)?.times(inverse)?;
        self.value[leaving] = target;
        self.value[entering] = self.value[entering].plus(step)?;
        for (other, &var) in self.row_var.iter().enumerate() {
            let by = self.rows[other][column];
            if other != row && by.over != 0 {
                self.value[var] = self.value[var].plus(by.times(step)?)?;
            }
        }
        // entering = (leaving - the others) / coefficient
        for (k, c) in self.rows[row].iter_mut().enumerate() {
            *c = if k == column { inverse } else { c.times(inverse)?.negated()? };
        }
        let of_entering = self.rows[row].clone();
        for (other, coefficients) in self.rows.iter_mut().enumerate() {
            let by = coefficients[column];
            if other == row || by.over == 0 {
                continue;
            }
            for (k, (c, e)) in coefficients.iter_mut().zip(&of_entering).enumerate() {
                let more = by.times(*e)?;
                *c = if k == column { more } else { c.plus(more)? };
            }
        }
        (self.row_var[row], self.column_var[column]) = (entering, leaving);
        Some(())
    }

    /// Adds up the bounds that prevent the row's variable from reaching its own bound. `true` if
    /// the sum, which must be at least zero, is a negative constant.
    fn certified(&self, row: usize, up: bool, sums: &[Sum], used: &[u32]) -> Option<bool> {
        let mut total = vec![Ratio::ZERO; used.len()];
        let mut constant = Ratio::ZERO;
        // To increase the row's variable (`up`), the sum needs an upper bound of each variable with
        // a positive coefficient.
        let own = (self.row_var[row], Ratio::ONE, up);
        let others = self.column_var.iter().zip(&self.rows[row]).filter(|(_, c)| c.over != 0).map(
            |(var, c)| {
                let positive = c.over > 0;
                let weight = if positive { Some(*c) } else { c.negated() };
                weight.map(|w| (*var, w, positive != up))
            },
        );
        for part in std::iter::once(Some(own)).chain(others) {
            let (var, weight, lower) = part?;
            let signed = if lower { weight } else { weight.negated()? };
            match var.checked_sub(used.len()) {
                None => {
                    total[var] = total[var].plus(signed)?;
                    let bound = if lower { self.bounds[var].0 } else { self.bounds[var].1 };
                    let bound = Ratio::whole(bound?).times(signed)?;
                    constant = constant.plus(bound.negated()?)?;
                }
                // Inequalities only have lower bounds.
                Some(_) if !lower => return None,
                Some(k) => {
                    for (atom, c) in &sums[k].terms {
                        let at = used.binary_search(atom).ok()?;
                        total[at] = total[at].plus(Ratio::whole(*c).times(weight)?)?;
                    }
                    constant = constant.plus(Ratio::whole(sums[k].constant).times(weight)?)?;
                }
            }
        }
        Some(total.iter().all(|c| c.over == 0) && constant.over < 0)
    }
}
