//! Records for each granule of global memory the last accesses of threads and blocks, compares each
//! new access with them, and so finds two threads whose accesses conflict. Several blocks that only
//! read, or accumulate by one operation, do not conflict.

use super::cells::{Meeting, Mine};
use super::{Unwalked, Walker};
use crate::expr::Env;
use crate::memory::Does;
use crate::plan::{LeafPlan, Space};
use crate::threads::Mask;
use crate::value::{NOTHING, Value};

/// The number of bits for the number of an effect.
const ACT: u32 = 22;

/// An access of a thread at a statement; `act` is the number of the effect.
#[derive(Copy, Clone)]
struct Touch {
    block: i64,
    thread: u32,
    site: u32,
    does: Does,
    act: u32,
}

impl Touch {
    /// The thread, with the number of the effect in the low bits.
    fn what(self) -> u32 {
        self.thread << ACT | self.act
    }
}

/// Stands for several blocks that read or accumulate.
const SEVERAL: u32 = (1 << 24) - 1;

/// Stands for the effect of a block that reads and accumulates, or accumulates by several
/// operations. This conflicts with every other effect.
const MIXED: u32 = 0xff;

/// Packs a block, or several, and the effect.
fn packed(block: u32, does: Option<Does>) -> u32 {
    block | does.map_or(MIXED, Does::code) << 24
}

fn unpacked(v: u32) -> (u32, Option<Does>) {
    let does = match v >> 24 {
        0 => Some(Does::Read),
        1 => Some(Does::Write),
        MIXED => None,
        op => Some(Does::Sum((op - 2) as u8)),
    };
    (v & SEVERAL, does)
}

impl<'a> Walker<'_, 'a> {
    pub(super) fn leaf(
        &mut self,
        leaf: &'a LeafPlan,
        env: &Env,
        active: &Mask,
        site: u32,
    ) -> Result<(), Unwalked> {
        for o in &leaf.operands {
            let plan = self.plan;
            let view = &plan.views[o.view];
            let Space::Global(g) = view.space else { continue };
            let does = leaf.does(o);
            let valid = match does {
                Does::Read => leaf.valid.map(|d| self.exprs.value(d, env)),
                _ => None,
            };
            self.spend((active.len() * view.first.len()) as u64)?;
            let act = self.act(g, site, does);
            let bases = self.exprs.value(view.offset, env);
            let corner = o.boxed.iter().flat_map(|b| &b.at);
            let corner: Vec<Value> = corner.map(|d| self.exprs.value(*d, env)).collect();
            let kept = view.in_bounds(self.exprs, env);
            for t in active.threads() {
                self.unsure |= kept.is_unsure(t);
                let (base, most) = (bases.of(t), valid.as_ref().map(|v| v.of(t)));
                let at: Vec<i64> = corner.iter().map(|v| v.of(t)).collect();
                if base == NOTHING || at.contains(&NOTHING) {
                    return Err(Unwalked::Unknown);
                }
                // Most boxes lie in the tensor as a whole.
                let boxed = o.boxed.as_ref().filter(|b| !b.has_all(&view.modes, &at));
                let is_valid = |e: u32| most.is_none_or(|n| i64::from(e) < n);
                let in_box = |e: u32| boxed.is_none_or(|b| b.has(i64::from(e), &view.modes, &at));
                let list = plan.elements(leaf, o, t).iter();
                let new = Touch { block: env.block, thread: t as u32, site, does, act };
                for e in list.filter(|e| is_valid(**e) && in_box(**e) && kept.has(t, **e)) {
                    let place = base.saturating_add(view.places[*e as usize]);
                    let cell = place.div_euclid(plan.globals[g].granule);
                    self.compare(g, cell, new);
                    self.own(g, cell, new);
                }
            }
        }
        Ok(())
    }

    /// The number of a statement's effect on a buffer.
    fn act(&mut self, g: usize, site: u32, does: Does) -> u32 {
        self.once[g] &= self.cut == 0;
        self.touched[g].sites.insert(does, site);
        let next = self.acts.len() as u32;
        let number = *self.numbers.entry((site, does)).or_insert(next);
        if number == next {
            self.acts.push((site, does));
            // No text has that many statements.
            self.too_many |= next >= 1 << ACT;
        }
        number & ((1 << ACT) - 1)
    }

    /// Compares an access with earlier ones of the same block.
    #[inline]
    fn compare(&mut self, g: usize, cell: i64, touch: Touch) {
        let Touch { block, thread, site, does, .. } = touch;
        let what = touch.what();
        let new = Mine { block: block as u32 + 1, what, other: what };
        let touched = &mut self.touched[g];
        let known = usize::try_from(cell).ok().and_then(|c| touched.mine.get_mut(c));
        let Some(mine) = known.or_else(|| touched.outside.touch(cell)) else { return };
        let old = *mine;
        if old.block != new.block {
            *mine = new;
            touched.n += 1;
            return;
        }
        self.once[g] = false;
        if old.what == what {
            return;
        }
        let earlier = if old.what >> ACT == thread { old.other } else { old.what };
        let act = (earlier & ((1 << ACT) - 1)) as usize;
        let (old_site, did) = self.acts.get(act).copied().unwrap_or((site, does));
        if !did.conflicts(does) {
            *mine = Mine { other: earlier, ..new };
        } else if did == Does::Read || does == Does::Write {
            *mine = new;
        }
        let old_thread = earlier >> ACT;
        if old_thread != thread && did.conflicts(does) {
            let (blocks, threads) = ((block, block), (old_thread, thread));
            let (sites, does) = ((old_site, site), (did, does));
            self.meet(Meeting { buffer: g, blocks, threads, sites, does });
        }
    }

    /// Compares an access with those of other blocks.
    #[inline]
    fn own(&mut self, g: usize, cell: i64, Touch { block, thread, site, does, .. }: Touch) {
        let touched = &mut self.touched[g];
        let Some(old) = usize::try_from(cell).ok().and_then(|c| touched.cells.get_mut(c)) else {
            self.once[g] = false;
            return;
        };
        let me = block as u32 + 1;
        if *old == 0 {
            *old = packed(me, Some(does));
            return;
        }
        self.once[g] = false;
        let (other, did) = unpacked(*old);
        if other == me {
            let writes = did == Some(Does::Write) || does == Does::Write;
            let both = if writes { Some(Does::Write) } else { did.filter(|did| *did == does) };
            *old = packed(me, both);
            return;
        }
        if did.is_some_and(|did| !did.conflicts(does)) {
            *old = packed(SEVERAL, did);
            return;
        }
        *old = packed(me, Some(does));
        // If a block had several effects, one that conflicts represents them.
        let is_one = |one: &Does| *one != Does::Write && one.conflicts(does);
        let did = did.or_else(|| touched.sites.keys().rev().copied().find(is_one));
        let did = did.unwrap_or(Does::Read);
        let other_block = if other == SEVERAL { -1 } else { i64::from(other) - 1 };
        let other_site = touched.sites.get(&did).copied().unwrap_or(site);
        let (blocks, threads) = ((other_block, block), (0, thread));
        let (sites, does) = ((other_site, site), (did, does));
        self.meet(Meeting { buffer: g, blocks, threads, sites, does });
    }

    fn meet(&mut self, new: Meeting) {
        /// The most collisions that are kept.
        const MAX_MEETINGS: usize = 1 << 10;
        let inside = |m: &Meeting| m.blocks.0 == m.blocks.1;
        let same = |m: &Meeting| m.sites == new.sites && inside(m) == inside(&new);
        if self.meetings.len() < MAX_MEETINGS && !self.meetings.iter().any(same) {
            self.meetings.push(new);
        }
    }
}
