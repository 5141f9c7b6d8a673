//! The last reads of each granule of memory, or its last accumulations: of every agent, with the lanes of its warp
//! told apart where they know different things.

use super::clock::{LANES, MANY, Proxy, Who};
use super::race::Clash;
use std::collections::BTreeMap;

/// An agent's last read of a granule.
#[derive(Copy, Clone, Default)]
pub(super) struct LastRead {
    time: u32,
    serial: u32,
    site: u32,
    /// The lanes that have read it since they last synchronized, none forgotten; none where they did so at different
    /// times, which are then kept apart.
    lanes: u32,
    /// Whether the warp as a whole has read it, by what each of its lanes has waited for: who comes after any lane's wait
    /// comes after it.
    of_warp: bool,
}

impl LastRead {
    fn by(who: &Who) -> Self {
        LastRead {
            time: who.time,
            serial: who.serial,
            site: who.site,
            lanes: who.lanes(),
            of_warp: false,
        }
    }

    /// The only lane; [`MANY`] for several.
    fn lane(&self) -> u8 {
        if self.lanes.is_power_of_two() { self.lanes.trailing_zeros() as u8 } else { MANY }
    }
}

/// What agents did last to each granule.
pub(super) struct LastReads {
    agents: usize,
    /// `granule * agents + agent`. Empty until there is one: what is only written needs none of it.
    last: Vec<LastRead>,
    /// By the entry's number, each lane's last time where lanes that know nothing of each other have several.
    apart: BTreeMap<usize, Box<[u32; LANES]>>,
}

impl LastReads {
    /// Nothing, of so many agents.
    pub(super) fn new(agents: usize) -> Self {
        LastReads { agents, last: Vec::new(), apart: BTreeMap::new() }
    }

    /// Notes an access to one of so many granules.
    #[inline]
    pub(super) fn note(&mut self, granule: usize, granules: usize, who: &Who) {
        if self.last.is_empty() {
            self.last = vec![LastRead::default(); granules * self.agents];
        }
        self.note_entry(granule * self.agents + usize::from(who.agent), who);
    }

    /// Notes that an access which began earlier, by a statement of its own, ends now.
    /// `of_warp`: all lanes of the warp have waited for it.
    pub(super) fn note_end(&mut self, granule: usize, who: &Who, of_warp: bool) {
        let entry = granule * self.agents + usize::from(who.agent);
        let Some(last) = self.last.get(entry) else { return };
        let site = last.site;
        // Beside reads that other lanes know nothing of it counts as one of its first lane.
        let alone = last.time == 0
            || last.of_warp
            || last.lanes != 0 && who.knows_all(who.agent, last.time, last.lanes);
        self.note_entry(entry, who);
        self.last[entry].site = site;
        self.last[entry].of_warp = of_warp && alone;
    }

    /// Notes an access by an agent.
    #[inline]
    fn note_entry(&mut self, entry: usize, who: &Who) {
        let Some(last) = self.last.get_mut(entry) else { return };
        let lanes = last.lanes;
        if last.time == 0
            || last.of_warp
            || lanes != 0 && who.knows_all(who.agent, last.time, lanes)
        {
            *last = LastRead::by(who);
        } else if lanes != 0 && last.time == who.time {
            *last = LastRead { lanes: lanes | who.lanes(), ..LastRead::by(who) };
        } else {
            self.note_apart(entry, who);
        }
    }

    /// Lanes that know nothing of each other read at different times.
    #[cold]
    fn note_apart(&mut self, entry: usize, who: &Who) {
        let Some(last) = self.last.get_mut(entry) else { return };
        let LastRead { time, lanes, .. } = *last;
        let times = self.apart.entry(entry).or_insert_with(|| {
            Box::new(std::array::from_fn(|l| if lanes >> l & 1 == 1 { time } else { 0 }))
        });
        let known = |(l, t): (usize, &u32)| *t == 0 || who.knows_all(who.agent, *t, 1 << l);
        if times.iter().enumerate().all(known) {
            self.apart.remove(&entry);
            *last = LastRead::by(who);
            return;
        }
        if let Some(own) = times.get_mut(usize::from(who.lane())) {
            *own = who.time;
        }
        *last = LastRead { lanes: 0, ..LastRead::by(who) };
    }

    /// The first access to a granule that somebody does not come after; `wrote`: it wrote, and between it and an access
    /// by the other proxy a fence must stand.
    #[inline]
    pub(super) fn after(&self, granule: usize, who: &Who, wrote: bool) -> Result<(), Clash> {
        let first = granule * self.agents;
        // Which proxy has added to global memory is not kept.
        let fence = wrote && who.proxy == Proxy::Async;
        let of_granule = self.last.get(first..first + self.agents).unwrap_or(&[]);
        for (agent, last) in of_granule.iter().enumerate() {
            let together = agent == usize::from(who.agent) && last.serial == who.serial;
            if last.time == 0 || together {
                continue;
            }
            let (known, fenced) = match last.lanes {
                _ if last.of_warp && !fence => (who.knows_any(agent as u16, last.time), true),
                0 => self.comes_after_each(first + agent, agent as u16, who),
                lanes => (
                    who.knows_all(agent as u16, last.time, lanes),
                    !fence || who.is_fenced_from_all(agent as u16, last.time, lanes),
                ),
            };
            if !known || fence && !fenced {
                let (agent, lane) = (agent as u16, last.lane());
                let LastRead { site, serial, .. } = *last;
                return Err(Clash { agent, lane, site, serial, wrote, unfenced: known });
            }
        }
        Ok(())
    }

    /// Whether somebody comes after what each lane did, and behind a fence.
    #[cold]
    fn comes_after_each(&self, entry: usize, agent: u16, who: &Who) -> (bool, bool) {
        let Some(times) = self.apart.get(&entry) else { return (true, true) };
        let each = |is: &dyn Fn(u32, u32) -> bool| {
            times.iter().enumerate().all(|(l, t)| *t == 0 || is(*t, 1 << l))
        };
        (
            each(&|time, lane| who.knows_all(agent, time, lane)),
            each(&|time, lane| who.is_fenced_from_all(agent, time, lane)),
        )
    }

    /// The statement of an access to a granule, if there was one.
    pub(super) fn any(&self, granule: usize) -> Option<u32> {
        let of_granule = self.last.get(granule * self.agents..(granule + 1) * self.agents)?;
        of_granule.iter().find(|r| r.time > 0).map(|r| r.site)
    }

    /// Bytes of memory that it takes; what is kept apart, at most eight times as much, is left out.
    pub(super) fn bytes(&self) -> usize {
        self.last.len() * size_of::<LastRead>()
    }
}
