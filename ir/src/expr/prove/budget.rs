//! Limits the number of steps of proofs, so that time does not depend on how hard a question is. If
//! a proof exceeds its budget, the claim counts as not proven.

/// The step limit of one proof. A step is one operation on a coefficient.
pub(super) const MAX_STEPS: usize = 300_000;

/// A bound on the time of proofs.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Budget {
    pub(super) left: usize,
}

impl Budget {
    pub(crate) fn new(steps: usize) -> Budget {
        Budget { left: steps }
    }

    pub(super) fn pay(&mut self, steps: usize) -> Option<()> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Some(())
            }
            None => {
                self.left = 0;
                None
            }
        }
    }

    /// Runs one proof with a part of the budget. Unused steps return to the budget.
    pub(super) fn share<T>(&mut self, prove: impl FnOnce(&mut Budget) -> T) -> T {
        let mut own = Budget { left: self.left.min(MAX_STEPS) };
        self.left -= own.left;
        let answer = prove(&mut own);
        self.left += own.left;
        answer
    }
}
