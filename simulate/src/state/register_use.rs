//! Checks the accesses to one register of one thread that asynchronous MatMuls (`wgmma`) also use.
//!
//! An ordinary instruction may not access a register that a pending MatMul writes or reads (PTX
//! ISA, Asynchronous Warpgroup Level Matrix Instructions: wgmma.wait_group). A MatMul may use a
//! register that an ordinary instruction has accessed only after a `wgmma.fence`. It may use a
//! register that another pending MatMul writes only if both accumulators have the same shape. The
//! synchronization checker, and not this file, refuses a MatMul that reads such a register as A, or
//! that writes the A of a pending MatMul.

use super::async_matmul::Flights;
use super::clock::Who;

/// The asynchronous MatMuls that use a register.
#[derive(Copy, Clone, Default, PartialEq)]
pub(super) struct RegisterUse {
    /// The last execution that accessed the register, except for asynchronous ones.
    pub last: u32,
    /// The MatMul that writes the register, or has written the register if no longer pending; 0
    /// for none.
    pub writing: u32,
    /// The MatMul that reads the register, as for `writing`.
    pub reading: u32,
}

/// The reason why an access to a register is not allowed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum RegisterFault {
    /// The offset is outside of the buffer.
    Outside,
    /// A pending MatMul, issued by the statement, writes the register.
    Pending(u32),
    /// A pending MatMul, issued by the statement, reads the register.
    Busy(u32),
    /// A fence is missing between the last access to the register and the MatMul.
    Unfenced,
}

impl RegisterUse {
    /// Checks and records an access.
    #[inline]
    pub(super) fn access(
        &mut self,
        who: &Who,
        flights: &Flights,
        write: bool,
    ) -> Result<(), RegisterFault> {
        let Some(issue) = who.issue else {
            if let Some(flight) = flights.get(self.writing) {
                return Err(RegisterFault::Pending(flight.site()));
            }
            if let Some(flight) = flights.get(self.reading) {
                return Err(RegisterFault::Busy(flight.site()));
            }
            (self.writing, self.last) = (0, who.serial);
            return Ok(());
        };
        // This MatMul has been checked before.
        let asked = [self.reading, self.writing].contains(&issue.flight);
        match flights.get(self.writing) {
            _ if asked => {}
            Some(flight) if flight.shape() == issue.shape => {}
            Some(flight) => return Err(RegisterFault::Pending(flight.site())),
            None if self.last > issue.fence => return Err(RegisterFault::Unfenced),
            None => {}
        }
        match write {
            true => self.writing = issue.flight,
            false => self.reading = issue.flight,
        }
        Ok(())
    }
}
