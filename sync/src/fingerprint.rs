//! What two states have in common from which the same follows: a fingerprint without absolute
//! times.
//!
//! A time matters only by which clocks have come to it. So of each time of each agent it is noted
//! which clocks have, and whether it is now; clocks need nothing else, as times to come are later
//! than what any of them shows.

use crate::clock::{Agent, Clock};
use rustc_hash::FxHashMap;

/// A fingerprint of a state.
pub(crate) type Fingerprint = (u64, u64);

/// Odd numbers without a pattern.
const KEYS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

/// Both halves of the product.
fn mix(word: u64, key: u64) -> u64 {
    let product = u128::from(word) * u128::from(key);
    (product as u64 ^ (product >> 64) as u64).wrapping_add(key.rotate_left(17))
}

/// What collects it.
pub(crate) struct Fingerprinter<'c> {
    hash: [u64; 2],
    clocks: Vec<&'c Clock>,
    converged: Vec<(Agent, u32)>,
    /// Of agents the time or the phase that it is now.
    now: FxHashMap<Agent, u32>,
    known: FxHashMap<(Agent, u32), u64>,
    /// The last time that was looked for.
    last: ((Agent, u32), u64),
}

impl<'c> Fingerprinter<'c> {
    pub(crate) fn new(
        clocks: Vec<&'c Clock>,
        converged: Vec<(Agent, u32)>,
        now: FxHashMap<Agent, u32>,
    ) -> Self {
        Fingerprinter {
            hash: KEYS,
            clocks,
            converged,
            now,
            known: FxHashMap::default(),
            last: ((0, 0), 0),
        }
    }

    pub(crate) fn words(&mut self, words: &[u64]) {
        for word in words {
            self.hash = [mix(self.hash[0] ^ word, KEYS[0]), mix(self.hash[1] ^ word, KEYS[1])];
        }
    }

    pub(crate) fn threads(&mut self, threads: &[u32]) {
        self.words(&[threads.len() as u64]);
        threads.iter().for_each(|t| self.words(&[u64::from(*t)]));
    }

    /// A time of an agent; none where it is 0.
    pub(crate) fn time(&mut self, agent: Agent, time: u32) {
        let key = (agent, time);
        if time > 0 && self.last.0 != key {
            let mark = match self.known.get(&key) {
                Some(known) => *known,
                None => {
                    let mark = self.mark(agent, time);
                    self.known.insert(key, mark);
                    mark
                }
            };
            self.last = (key, mark);
        }
        let mark = if time > 0 { self.last.1 } else { 0 };
        self.words(&[mark]);
    }

    /// Which clocks have come to it, and how far ahead it is.
    fn mark(&self, agent: Agent, time: u32) -> u64 {
        let now = self.now.get(&agent).copied().unwrap_or(0);
        let mut hash = mix(u64::from(agent) ^ KEYS[1], KEYS[0]);
        hash = mix(hash ^ u64::from((time + 1).saturating_sub(now)), KEYS[1]);
        let (mut bits, mut n) = (1u64, 0);
        let mut add = |bit: bool| {
            (bits, n) = (bits << 1 | u64::from(bit), n + 1);
            if n == 32 {
                hash = mix(hash ^ bits, KEYS[0]);
                (bits, n) = (1, 0);
            }
        };
        self.clocks.iter().for_each(|c| add(c.get(agent) >= time));
        let times = self.converged.iter().filter(|(a, _)| *a == agent);
        times.for_each(|(_, t)| add(*t >= time));
        mix(hash ^ bits, KEYS[1]) | 1
    }

    pub(crate) fn finish(self) -> Fingerprint {
        (self.hash[0], self.hash[1])
    }
}
