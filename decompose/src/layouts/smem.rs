//! Counts wavefronts of shared memory ([`wavefronts`]), and chooses the swizzle with the fewest
//! ([`best_swizzle`]). A shared-memory layout is M = S∘m (Hexcute, section V).
//!
//! Every access needs the values of one instruction side by side: a *run*, digits of the tensor's
//! index space that take the strides 1, n₀, n₀·n₁, ... Unifying runs splits the modes where runs
//! begin and end and gives each digit one stride; a digit with two strides, or two digits with one,
//! is a conflict. Digits that no run names follow compactly ([`unify()`], of the layout algebra).
//! Then the swizzle S is chosen that gives the fewest wavefronts over all accesses, weighted by how
//! often they run.

pub use crate::plan::copy::Run;
use carbyne_ir::layout::{Layout, Swizzle};
use std::collections::{BTreeMap, HashMap};

pub use carbyne_atoms::Banks;
pub use carbyne_ir::layout::unify;

/// One access of a warp to the tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Column-major index that each lane addresses: one list a warp and instruction.
    pub lanes: Vec<Vec<i64>>,
    /// Bytes of one lane.
    pub bytes: i64,
    /// Executions of the whole list in one block; not whole where the lists are a sample.
    pub weight: f64,
}

/// What the bank model counts of an access: the words of each phase, each once, and how many phases
/// are like it.
///
/// Phases are alike where one has the words of the other with the same bits flipped: a swizzle then
/// flips the same bits of all of them, so that words meet in banks where they did.
struct Phases {
    words: Vec<(Vec<i64>, i64)>,
    weight: f64,
}

impl Phases {
    fn new(all: Vec<Vec<i64>>, banks: Banks, weight: f64) -> Self {
        if banks.n.count_ones() != 1 {
            return Phases { words: all.into_iter().map(|words| (words, 1)).collect(), weight };
        }
        let mut like: BTreeMap<Vec<i64>, i64> = BTreeMap::new();
        for mut words in all {
            let first = words.first().copied().unwrap_or(0);
            words.iter_mut().for_each(|word| *word ^= first);
            words.sort_unstable();
            *like.entry(words).or_default() += 1;
        }
        Phases { words: like.into_iter().collect(), weight }
    }
}

/// Wavefronts of all accesses under a layout and swizzle, weighted; `bits` of one element.
pub fn wavefronts(
    layout: &Layout,
    swizzle: Option<Swizzle>,
    bits: i64,
    accesses: &[Access],
    banks: Banks,
) -> f64 {
    count(&phases(layout, swizzle, bits, accesses, banks), None, banks, f64::INFINITY)
}

/// A wavefront a phase, whatever the layout.
pub fn ideal(access: &Access, banks: Banks) -> f64 {
    let mut distinct = vec![];
    let phases = |l: &Vec<i64>| {
        // The lanes of a matrix load may repeat addresses.
        let n = match access.bytes {
            ..16 => l.len(),
            _ => {
                distinct.clone_from(l);
                distinct.sort_unstable();
                distinct.dedup();
                distinct.len()
            }
        };
        n.div_ceil(banks.lanes_per_phase(access.bytes)) as f64
    };
    access.lanes.iter().map(phases).sum::<f64>() * access.weight
}

fn phases(
    layout: &Layout,
    swizzle: Option<Swizzle>,
    bits: i64,
    accesses: &[Access],
    banks: Banks,
) -> Vec<Phases> {
    let of = |a: &Access| {
        let each = banks.lanes_per_phase(a.bytes);
        let mut words = vec![];
        for lanes in &a.lanes {
            let mut addresses: Vec<i64> = Vec::with_capacity(lanes.len());
            for &i in lanes {
                let address = layout.at(i) * bits / 8;
                let address = swizzle.map_or(address, |s| s.apply(address));
                // Lanes of a matrix load that repeat an address cost nothing.
                if a.bytes < 16 || !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            words.extend(addresses.chunks(each).map(|chunk| {
                let mut phase: Vec<i64> =
                    chunk.iter().flat_map(|&at| banks.words(at, a.bytes)).collect();
                phase.sort_unstable();
                phase.dedup();
                phase
            }));
        }
        Phases::new(words, banks, a.weight)
    };
    accesses.iter().map(of).collect()
}

/// Wavefronts when the words are swizzled; from `limit` on, it stops counting.
fn count(accesses: &[Phases], swizzle: Option<Swizzle>, banks: Banks, limit: f64) -> f64 {
    let mut total = 0.0;
    let mut phase = vec![];
    for access in accesses {
        let mut sum = 0i64;
        for (words, times) in &access.words {
            let words = match swizzle {
                None => words,
                Some(s) => {
                    phase.clear();
                    phase.extend(words.iter().map(|w| s.apply(*w)));
                    &phase
                }
            };
            sum += banks.wavefronts(words).max(1) * times;
            if total + sum as f64 * access.weight >= limit {
                return f64::INFINITY;
            }
        }
        total += sum as f64 * access.weight;
    }
    total
}

/// The swizzle with the fewest wavefronts; the smallest among equals, none if none helps.
pub fn best_swizzle(
    layout: &Layout,
    bits: i64,
    accesses: &[Access],
    banks: Banks,
) -> (Option<Swizzle>, f64) {
    let list: Vec<_> = accesses.iter().enumerate().map(|(i, a)| ((i, 0), a)).collect();
    Counts::new(bits, banks).best_swizzle(layout, &list)
}

/// Which access of a tensor, and which of its candidates.
pub(super) type Place = (usize, usize);

/// Wavefronts of the accesses to one tensor, under layouts and swizzles: each is counted once,
/// however many combinations of candidates have it.
pub(super) struct Counts {
    bits: i64,
    banks: Banks,
    layouts: Vec<Layout>,
    /// Which of `accessed` an access under a layout is.
    of: HashMap<(usize, Place), usize>,
    accessed: Vec<Accessed>,
}

/// An access under a layout.
struct Accessed {
    phases: Phases,
    /// A wavefront a phase.
    ideal: f64,
    /// By swizzles of words: a handful.
    counted: Vec<(Option<Swizzle>, Counted)>,
}

/// How far wavefronts were counted.
#[derive(Copy, Clone)]
enum Counted {
    Exactly(f64),
    AtLeast(f64),
}

impl Counts {
    /// Of a tensor whose elements have so many bits.
    pub(super) fn new(bits: i64, banks: Banks) -> Self {
        let (layouts, of, accessed) = (vec![], HashMap::new(), vec![]);
        Counts { bits, banks, layouts, of, accessed }
    }

    fn layout(&mut self, layout: &Layout) -> usize {
        if let Some(i) = self.layouts.iter().position(|l| l == layout) {
            return i;
        }
        self.layouts.push(layout.clone());
        self.layouts.len() - 1
    }

    fn accessed(&mut self, layout: usize, (place, access): (Place, &Access)) -> usize {
        if let Some(known) = self.of.get(&(layout, place)) {
            return *known;
        }
        let one = std::slice::from_ref(access);
        let found = phases(&self.layouts[layout], None, self.bits, one, self.banks).pop();
        let phases = found.unwrap_or(Phases { words: vec![], weight: 0.0 });
        let n: i64 = phases.words.iter().map(|(_, times)| times).sum();
        let ideal = n as f64 * phases.weight;
        self.accessed.push(Accessed { phases, ideal, counted: vec![] });
        self.of.insert((layout, place), self.accessed.len() - 1);
        self.accessed.len() - 1
    }

    /// Wavefronts of all accesses, infinite from `limit` on; the swizzle is one of words.
    fn all(&mut self, accesses: &[usize], of: Option<Swizzle>, limit: f64) -> f64 {
        let mut total = 0.0;
        for access in accesses {
            total += self.accessed[*access].count(of, self.banks, limit - total);
            if total >= limit {
                return f64::INFINITY;
            }
        }
        total
    }

    /// See [`best_swizzle`].
    pub(super) fn best_swizzle(
        &mut self,
        layout: &Layout,
        accesses: &[(Place, &Access)],
    ) -> (Option<Swizzle>, f64) {
        let (bits, banks) = (self.bits, self.banks);
        let at = self.layout(layout);
        let list: Vec<usize> = accesses.iter().map(|access| self.accessed(at, *access)).collect();
        let mut best = (None, self.all(&list, None, f64::INFINITY));
        let ideal = list.iter().fold(0.0, |sum, access| sum + self.accessed[*access].ideal);
        let widest = accesses.iter().map(|(_, a)| a.bytes).max().unwrap_or(1).max(1);
        // What lies below a word chooses no bank; a word, and what one lane accesses, stays in one
        // piece.
        let word = banks.bytes.max(1).trailing_zeros();
        let base = (63 - widest.leading_zeros().min(63)).max(word);
        let total = layout.cosize() * bits / 8;
        // Bits that choose a bank, and the byte in it.
        let row = 63 - (banks.n * banks.bytes).leading_zeros();
        for bits in 1..=row.saturating_sub(base) {
            for shift in bits..=8 {
                if best.1 <= ideal * (1.0 + 1e-12) {
                    return best;
                }
                // Every swizzled address stays inside, and the bits that are mixed in exist.
                if total % (1 << (base + bits)) != 0 || (1i64 << (base + shift)) >= total {
                    continue;
                }
                let of_words = Swizzle::new(bits, base - word, shift);
                let (Ok(s), Ok(of_words)) = (Swizzle::new(bits, base, shift), of_words) else {
                    continue;
                };
                let w = self.all(&list, Some(of_words), best.1);
                if w < best.1 {
                    best = (Some(s), w);
                }
            }
        }
        best
    }
}

impl Accessed {
    /// Wavefronts, infinite from `limit` on; the swizzle is one of words.
    fn count(&mut self, of: Option<Swizzle>, banks: Banks, limit: f64) -> f64 {
        let known = self.counted.iter().position(|(swizzle, _)| *swizzle == of);
        match known.map(|at| self.counted[at].1) {
            Some(Counted::Exactly(n)) => return if n >= limit { f64::INFINITY } else { n },
            Some(Counted::AtLeast(n)) if n >= limit => return f64::INFINITY,
            _ => {}
        }
        let n = count(std::slice::from_ref(&self.phases), of, banks, limit);
        let found = if n < f64::INFINITY { Counted::Exactly(n) } else { Counted::AtLeast(limit) };
        match known {
            Some(at) => self.counted[at].1 = found,
            None => self.counted.push((of, found)),
        }
        n
    }
}
