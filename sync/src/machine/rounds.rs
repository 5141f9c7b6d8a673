//! Skips iterations of loops that repeat earlier ones, so that the time of a check does not grow
//! with trip counts.
//!
//! If a state repeats and only loop variables have advanced, a *round* is complete. The machine
//! follows the next round once more and records for how many further rounds all of its decisions
//! would be the same ([`Watch`]). If the round ends in the same state with the same advance of loop
//! variables, these further rounds do the same. The machine skips them: it advances the loop
//! variables by that many rounds. Example: a ring of 3 stages and 1000 iterations repeats its state
//! after 6 iterations, 3 stages in both phases.
//!
//! States are compared by their fingerprints. Loops whose states do not repeat are examined less
//! often.

use super::loops::{LoopProgress, Moves, Moving, Round, Seen, moves};
use super::*;
use crate::expr::Held;

/// The most states of a loop that are kept.
const MAX_SEEN: usize = 48;
/// The number of examinations in vain after which a loop is examined half as often.
const MAX_IN_VAIN: u64 = 12;

impl<'p, 'a> Machine<'p, 'a> {
    /// A loop begins an iteration.
    pub(super) fn turned(&mut self, Turned { body, turn: trip, left, .. }: Turned) {
        if self.rounds.every_iteration {
            return;
        }
        let (steps, cost) = (self.steps, self.cost());
        let progress = self.rounds.loops.entry(body).or_default();
        progress.n += 1;
        let n = progress.n;
        // The first threads that begin an iteration measure its cost.
        if trip != progress.trip {
            let last = std::mem::replace(&mut progress.at, steps);
            if progress.every == 0 && trip == progress.trip + 1 && last > 0 {
                progress.takes = (steps - last).max(1);
                progress.every = match self.rounds.are_shortest {
                    true => 1,
                    false => (cost / 4 / progress.takes).max(1).next_power_of_two(),
                };
            }
            progress.trip = trip;
        }
        let every = progress.every;
        if let Some(round) = &self.rounds.round {
            if round.body != body || n < round.until {
                return;
            }
            self.end_round();
            return;
        }
        // Examinations take no more time than following does, or more if the state is expected to
        // repeat.
        let length = progress.guess.as_ref().map_or(0, |(_, length)| *length);
        let expected = trip > 0 && length > 0 && trip.is_multiple_of(length);
        let most = if expected || self.rounds.are_shortest { 4 * steps } else { steps };
        let is_worth = left.saturating_mul(progress.takes) > 4 * cost;
        let due = every > 0 && trip.is_multiple_of(every) && is_worth;
        if (due || expected) && self.rounds.looked < (1 << 16) + most {
            self.look(body, n, expected);
        }
    }

    /// The cost of an examination of the state, in accesses.
    pub(super) fn cost(&self) -> u64 {
        let global: usize = self.globals.iter().map(Pages::len).sum();
        let registers: usize = self.registers.iter().map(Vec::len).sum();
        (self.regions.len() * self.n_blocks * 8 + registers * 2 + global * 8) as u64 + 64
    }

    fn look(&mut self, body: Option<StmtId>, turn: u64, expected: bool) {
        self.rounds.looked += self.cost();
        self.overhead += self.cost();
        let (fingerprint, moving) = (self.fingerprint(), self.moving());
        let Some(progress) = self.rounds.loops.get_mut(&body) else { return };
        let before = progress.seen.iter().rev().find(|s| s.fingerprint == fingerprint);
        let moves = match before {
            Some(s) => moves(&s.moving, &moving).map(|moves| (moves, turn - s.turn)),
            None => self.rounds.known.get(&(body, fingerprint)).cloned(),
        };
        let moves = moves.or_else(|| progress.guess.clone().filter(|_| expected));
        // A loop whose state does not repeat is examined less often, in favor of other loops.
        progress.in_vain = if moves.is_some() { 0 } else { progress.in_vain + 1 };
        if progress.in_vain >= MAX_IN_VAIN {
            progress.in_vain = 0;
            progress.every = progress.every.saturating_mul(2);
        }
        if progress.seen.len() >= MAX_SEEN {
            progress.seen.clear();
        }
        progress.seen.push(Seen { fingerprint, moving: moving.clone(), turn });
        if let Some((moves, length)) = moves {
            let iterations = self.rounds.loops.iter().map(|(body, of)| (*body, of.n)).collect();
            let until = turn + length;
            self.begin_round(Round { body, fingerprint, moving, moves, length, until, iterations });
        }
    }

    /// The changing parts of all threads: of their loops, then of the kernel's counters.
    pub(super) fn moving(&self) -> Vec<Moving> {
        let of = |s: &Lockstep<'p>| {
            let loops = s.frames.iter().filter_map(|f| match &f.kind {
                Kind::Loop { trip, var, end, .. } => {
                    let value = s.env.get(*var).map_or(Value::Same(NOTHING), |h| h.value.clone());
                    Some((value, end.clone(), *trip))
                }
                _ => None,
            });
            let value = |v: VarId| s.env.get(v).map_or(Value::Same(NOTHING), |h| h.value.clone());
            let counters = self.counters.iter().map(|c| (value(*c), Value::Same(0), 0));
            loops.chain(counters).collect()
        };
        self.in_order().into_iter().map(of).collect()
    }

    /// Calls `f` for the loop variables with their ends, and the counters, of all threads, in the
    /// order of [`Machine::moving`].
    pub(super) fn each_moving(
        &mut self,
        f: impl Fn(usize, usize, &mut Held, (&mut Value, &mut Steps)),
    ) {
        self.locksteps.sort_by_key(|s| (s.rank, s.all().threads().next()));
        for (i, s) in self.locksteps.iter_mut().enumerate() {
            let loops = s.frames.iter_mut().filter_map(|f| match &mut f.kind {
                Kind::Loop { var, end, end_by, .. } => Some((*var, end, end_by)),
                _ => None,
            });
            for (j, (var, end, end_by)) in loops.enumerate() {
                if let Some(held) = s.env.get_mut(var) {
                    f(i, j, held, (end, end_by));
                }
            }
            let n_loops = s.loops().count();
            for (j, counter) in self.counters.iter().enumerate() {
                if let Some(held) = s.env.get_mut(*counter) {
                    f(i, n_loops + j, held, (&mut Value::Same(0), &mut Steps::default()));
                }
            }
        }
    }

    fn begin_round(&mut self, round: Round) {
        let moves = &round.moves;
        self.each_moving(|i, j, held, (_, end_by)| {
            if let Some(m) = moves.get(i).and_then(|m| m.get(j)) {
                (held.by.round, end_by.round) = (m.0, m.1);
            }
        });
        self.watch.rounds = Some(FOREVER);
        self.rounds.round = Some(round);
    }

    /// Skips the rounds that repeat the one that is complete.
    fn end_round(&mut self) {
        let Some(round) = self.rounds.round.take() else { return };
        let rounds = self.watch.rounds.take().unwrap_or(0);
        let same = self.fingerprint() == round.fingerprint
            && moves(&round.moving, &self.moving()).as_ref() == Some(&round.moves);
        // A round without any advance would repeat forever.
        let moving = round.moves.iter().flatten().any(|m| m.2 > 0);
        let n = if same && moving && rounds < FOREVER { rounds.min(i64::MAX as u64) } else { 0 };
        let n = n.min(fitting(&round.moves));
        self.each_moving(|i, j, held, (end, end_by)| {
            (held.by.round, end_by.round) = (0, 0);
            let Some((by, end_moves, _)) = round.moves.get(i).and_then(|m| m.get(j)) else {
                return;
            };
            if n > 0 {
                held.value = held.value.plus(by * n as i64);
                *end = end.plus(end_moves * n as i64);
            }
        });
        for lockstep in &mut self.locksteps {
            lockstep.env.loops.iter_mut().for_each(|held| held.by.round = 0);
        }
        if let Some(progress) = self.rounds.loops.get_mut(&round.body) {
            progress.guess = (n > 0).then(|| (round.moves.clone(), round.length));
        }
        if same {
            let known = (round.moves.clone(), round.length);
            self.rounds.known.insert((round.body, round.fingerprint), known);
        }
        if n == 0 {
            return;
        }
        let strides = round.moves.iter().flatten().map(|m| m.0.saturating_abs()).filter(|s| *s > 0);
        self.rounds.strides.extend(strides);
        self.rounds.strides.sort_unstable();
        self.rounds.strides.dedup();
        // If inner loops have begun iterations, the counts in their recorded states are no longer
        // valid.
        let has_turned =
            |body: &Option<StmtId>, of: &LoopProgress| round.iterations.get(body) != Some(&of.n);
        let turned = self.rounds.loops.iter_mut().filter(|(body, of)| has_turned(body, of));
        turned.for_each(|(_, of)| of.seen.clear());
    }
}

/// The number of rounds for which values stay in the range of 64-bit numbers.
fn fitting(moves: &Moves) -> u64 {
    const MOST: u64 = 1 << 60;
    let most = |by: u64| MOST.checked_div(by).unwrap_or(MOST);
    let of = |m: &(i64, i64, u64)| most(m.0.unsigned_abs().max(m.1.unsigned_abs()).max(m.2));
    moves.iter().flatten().map(of).min().unwrap_or(0)
}
