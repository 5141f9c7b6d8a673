//! Accesses to the elements of a tile one after the other, which mostly are alike.
//!
//! Invariant: what is not plain ends nothing here, and then nothing has been noted. The caller accesses the elements each alone,
//! which finds it too and says what it is.

use super::{Shared, State};
use crate::plan::SharedBuffer;
use crate::state::Who;
use crate::state::race::LastWrite;
use crate::state::value::Tile;

impl Shared {
    /// Reads the elements at some offsets, each by several, and adds their granules to others. None where one of them
    /// cannot.
    pub(crate) fn read_tile(
        &mut self,
        buffer: &SharedBuffer,
        places: impl Iterator<Item = i64>,
        whos: &[Who],
        tile: &mut Tile,
        granules: &mut Vec<u32>,
    ) -> Option<()> {
        let n = buffer.bits.div_ceil(8) as usize;
        let (first, mut known) = (granules.len(), LastWrite::default());
        for at in places {
            let (byte, bit) = Self::address(buffer, at)?;
            for granule in self.span(buffer, byte) {
                if !self.shadow.is_readable(granule, whos, &mut known) {
                    return None;
                }
                granules.push(granule as u32);
            }
            if self.states[byte..byte + n].iter().any(|state| *state != State::Defined) {
                return None;
            }
            self.is_own(buffer, byte).ok()?;
            let bits = Self::load(&self.bytes, byte, bit, buffer.bits);
            tile.push(self.value(buffer, byte, bits), self.shadows.are_on());
        }
        self.shadow.note_reads(&granules[first..], whos);
        Some(())
    }
}
