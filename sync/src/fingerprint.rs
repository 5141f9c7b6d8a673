//! Computes fingerprints (hashes) of the machine's states, by which the checker finds a state that
//! repeats. Two states with equal fingerprints lead to the same future, except for the values of
//! loop variables, which a fingerprint leaves out.
//!
//! The absolute time of a clock entry does not matter for this: only which clocks have reached the
//! time matters. So a fingerprint contains no absolute times. For each time of each agent, it
//! contains the set of clocks that have reached the time, and whether the time is the current one.
//! Future times are later than all of these, so the clocks contribute nothing else.

use crate::clock::{Agent, Clock};
use rustc_hash::FxHashMap;

/// The 128-bit fingerprint of a state.
pub(crate) type Fingerprint = (u64, u64);

/// Odd constants without a pattern.
const KEYS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

/// Mixes both halves of the product.
fn mix(word: u64, key: u64) -> u64 {
    let product = u128::from(word) * u128::from(key);
    (product as u64 ^ (product >> 64) as u64).wrapping_add(key.rotate_left(17))
}

/// Collects the words of a fingerprint.
pub(crate) struct Fingerprinter<'c> {
    hash: [u64; 2],
    clocks: Vec<&'c Clock>,
    converged: Vec<(Agent, u32)>,
    /// The current time or phase of each agent.
    now: FxHashMap<Agent, u32>,
    known: FxHashMap<(Agent, u32), u64>,
    /// The last time that was looked up, with its mark.
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

    /// Adds a time of an agent; 0 means no time.
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

    /// A hash of the clocks that have reached a time, and of its distance to the current time.
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
