//! Fast paths for accesses to all elements of a tile of shared memory: one check covers many
//! elements, because most of them are in one state.
//!
//! Invariant: errors are not reported here, and a failed fast path has recorded nothing. The caller
//! then accesses the elements individually, which reports the error.

use super::{Pending, Shared, State};
use crate::plan::SharedBuffer;
use crate::state::Who;
use crate::state::race::LastWrite;
use crate::state::value::Tile;

impl Shared {
    /// Reads the elements at some offsets, each by several agents, to their places in a tile, and
    /// appends their granules. None if an element cannot be read.
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
                if !self.history.is_readable(granule, whos, &mut known) {
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
        self.history.note_reads(&granules[first..], whos);
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
                    && granules.all(|granule| self.history.is_writable(granule, who, &mut known))
            })
    }

    /// Writes elements by an asynchronous copy, at distinct offsets that it may write. Returns the
    /// pending elements until the wait.
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
                self.history.note_only_write(granule, who);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Names, SharedPlan};
    use crate::state::Value;
    use crate::state::clock::{Clocks, Part, Proxy};
    use crate::state::shared::Denied;
    use carbyne_ir::scalar::Scalar;
    use std::mem::{Discriminant, discriminant};

    const N: i64 = 32;

    fn buffer() -> SharedBuffer {
        SharedBuffer {
            at: 0,
            len: N,
            scalar: Scalar::F32,
            bits: 32,
            mbarriers: false,
            number: 0,
            loops: 0,
            swizzle: None,
            names: Names::numbered("s"),
        }
    }

    /// Values, or the failed access with its reason.
    type Outcome = Result<Vec<Value>, (i64, Discriminant<Denied>)>;

    fn read_each(shared: &mut Shared, places: &[i64], whos: &[Who]) -> Outcome {
        let one = |at: &i64| shared.read_by_all(&buffer(), *at, whos).map_err(|(_, d)| (*at, d));
        let all = places.iter().map(one).collect::<Result<_, _>>();
        all.map_err(|(at, denied)| (at, discriminant(&denied)))
    }

    fn read_tile(shared: &mut Shared, places: &[i64], whos: &[Who]) -> Outcome {
        let (mut tile, mut granules) = (Tile::default(), Vec::new());
        tile.resize(places.len(), true);
        let each = places.iter().copied().enumerate();
        match shared.read_tile(&buffer(), each, whos, &mut tile, &mut granules) {
            Some(()) => Ok((0..places.len()).map(|i| tile.get(i)).collect()),
            None => read_each(shared, places, whos),
        }
    }

    /// The writes of a copy; appends the pending elements until the wait.
    fn write(
        shared: &mut Shared,
        places: &[i64],
        values: &Tile,
        who: &Who,
        (at_once, kept): (bool, &mut Vec<Pending>),
    ) -> Outcome {
        let buffer = buffer();
        if at_once && shared.takes_tile(&buffer, places.iter().copied(), who) {
            kept.extend(shared.write_tile(&buffer, places.iter().copied(), values, who));
            return Ok(Vec::new());
        }
        for (i, at) in places.iter().enumerate() {
            let done = shared.write(&buffer, *at, values.get(i), who, true);
            kept.extend(done.map_err(|denied| (*at, discriminant(&denied)))?);
        }
        Ok(Vec::new())
    }

    #[test]
    fn tile_accesses_equal_element_accesses() {
        let plan = SharedPlan { size: 4 * N as usize, granule: 2, buffers: Vec::new() };
        let mut x = 88_172_645_463_325_252u64;
        let mut below = |n: usize| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x % n as u64) as usize
        };
        let mut counts = [[0u32; 2]; 2];
        for _ in 0..300 {
            let mut clocks = Clocks::new(1, 64, 1);
            let agent = clocks.mbarrier(0, 0, 1);
            let new = || Shared::new(&plan, clocks.n_readers(), true);
            let mut both = [new(), new()];
            let mut kept = [Vec::new(), Vec::new()];
            for serial in 1..100u32 {
                let part = |warp| Part { rank: 0, warp, lanes: u32::MAX };
                let by = |warp: usize, lane: usize, proxy| {
                    let mut who = clocks.warp(0, warp, serial, serial);
                    (who.thread, who.updates, who.proxy) =
                        ((warp * 32 + lane) as u16, false, proxy);
                    who
                };
                let start = below(N as usize - 8) as i64;
                let places: Vec<i64> = (start..start + 1 + below(8) as i64).collect();
                let proxy = [Proxy::Generic, Proxy::Async][below(2)];
                match below(6) {
                    0 => clocks.synchronize(&[part(0), part(1)]),
                    1 => clocks.fence(part(below(2))),
                    2 => {
                        let mut message = clocks.release(part(0));
                        for (shared, kept) in both.iter_mut().zip(&mut kept) {
                            let write = LastWrite::landing(agent, serial, 0, Proxy::Async);
                            kept.drain(..).for_each(|pending| shared.complete(&pending, write));
                        }
                        message.add(agent, serial);
                        clocks.acquire(part(below(2)), &message);
                    }
                    3 => {
                        let who = by(below(2), below(3), proxy);
                        let mut values = Tile::default();
                        for _ in &places {
                            let number = below(100) as f32;
                            let bits = u64::from(number.to_bits());
                            values.push(Value { bits, shadow: f64::from(number) + 1e-9 }, true);
                        }
                        let [one, other] = [true, false].map(|at_once| {
                            let i = usize::from(at_once);
                            let kept = (at_once, &mut kept[i]);
                            write(&mut both[i], &places, &values, &who, kept)
                        });
                        assert_eq!(one, other);
                        counts[0][usize::from(one.is_ok())] += 1;
                    }
                    _ => {
                        let whos = [by(0, 0, proxy), by(1, 0, proxy)];
                        let whos = &whos[..1 + below(2)];
                        let [each, tile] = &mut both;
                        let one = read_each(each, &places, whos);
                        assert_eq!(read_tile(tile, &places, whos), one);
                        counts[1][usize::from(one.is_ok())] += 1;
                    }
                }
            }
        }
        assert!(counts.iter().flatten().all(|n| *n > 300), "{counts:?}");
    }
}
