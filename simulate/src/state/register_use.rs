//! Which accesses to a register asynchronous MatMuls stand against.

use super::clock::Who;
use super::async_matmul::Flights;

/// The asynchronous MatMuls that use a register.
#[derive(Copy, Clone, Default, PartialEq)]
pub(super) struct Watched {
    /// The execution that accessed it last, asynchronous ones apart.
    pub last: u32,
    /// The MatMul that will write it, or has written it if that is no longer under way; 0 for none.
    pub writing: u32,
    /// As `writing`, that reads it.
    pub reading: u32,
}

/// Why a register cannot be accessed so.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum RegisterFault {
    /// It is none of the buffer.
    Outside,
    /// A MatMul, issued by the statement, writes it.
    Pending(u32),
    /// A MatMul, issued by the statement, reads it.
    Busy(u32),
    /// A fence is missing between its last access and the MatMul.
    Unfenced,
}

impl Watched {
    /// Notes an access, or says what stands against it.
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
            if let Some(flight) = flights.get(self.reading).filter(|_| write) {
                return Err(RegisterFault::Busy(flight.site()));
            }
            (self.writing, self.last) = (0, who.serial);
            return Ok(());
        };
        // It has been asked before whether this MatMul may.
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
