//! Accesses to the elements of a tile one after the other, which mostly are alike.
//!
//! Invariant: what is not plain ends nothing here, and then nothing has been noted. The caller accesses the elements each alone,
//! which finds it too and says what it is.

use super::{Pending, Shared, State};
use crate::plan::SharedBuffer;
use crate::state::Who;
use crate::state::race::LastWrite;
use crate::state::value::Tile;

impl Shared {
    /// Reads the elements at some offsets, each by several, to their places in a tile, and adds their granules to others. None
    /// where one of them cannot.
    pub(crate) fn read_tile(
        &mut self,
        buffer: &SharedBuffer,
        places: impl Iterator<Item = (usize, i64)>,
        whos: &[Who],
        tile: &mut Tile,
        granules: &mut Vec<u32>,
    ) -> Option<()> {
        let n = buffer.bits.div_ceil(8) as usize;
        let (first, mut known) = (granules.len(), LastWrite::default());
        for (place, at) in places {
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
            tile.set(place, self.value(buffer, byte, bits));
        }
        self.shadow.note_reads(&granules[first..], whos);
        Some(())
    }

    /// Whether an asynchronous copy may write the elements at some offsets.
    pub(crate) fn takes_tile(
        &mut self,
        buffer: &SharedBuffer,
        mut places: impl Iterator<Item = i64>,
        who: &Who,
    ) -> bool {
        let n = buffer.bits.div_ceil(8) as usize;
        let mut known = LastWrite::default();
        buffer.bits >= 8
            && !buffer.mbarriers
            && places.all(|at| {
                let Some((byte, _)) = Self::address(buffer, at) else { return false };
                let is_free = |state: &State| matches!(state, State::Undefined | State::Defined);
                let mut granules = self.span(buffer, byte);
                let busy = self.busy.get(granules.clone());
                self.states[byte..byte + n].iter().all(is_free)
                    && busy.is_none_or(|busy| busy.iter().all(|(reads, _)| *reads == 0))
                    && granules.all(|granule| self.shadow.is_writable(granule, who, &mut known))
            })
    }

    /// Lets an asynchronous copy write elements at offsets that it may write and that differ; what it keeps of them until
    /// its wait.
    pub(crate) fn write_tile(
        &mut self,
        buffer: &SharedBuffer,
        places: impl Iterator<Item = i64>,
        values: &Tile,
        who: &Who,
    ) -> Vec<Pending> {
        let n = buffer.bits.div_ceil(8);
        let mut pending: Vec<Pending> = Vec::new();
        for (i, at) in places.enumerate() {
            let Some((byte, bit)) = Self::address(buffer, at) else { continue };
            for granule in self.span(buffer, byte) {
                self.shadow.note_only_write(granule, who);
            }
            self.states[byte..byte + n as usize].fill(State::Pending);
            self.own(buffer, byte);
            let value = values.get(i);
            Self::store(&mut self.coming, byte, bit, buffer.bits, value.bits);
            self.keep(buffer, byte, value.shadow);
            match pending.last_mut() {
                Some(last) if last.byte + last.bytes == byte as u32 => last.bytes += n,
                _ => pending.push(Pending { byte: byte as u32, bytes: n, site: who.site }),
            }
        }
        pending
    }
}
