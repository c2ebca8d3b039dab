//! What links carry, counted by orbit: a template uses some links of an orbit, and its images use each of them alike.

use std::collections::BTreeMap;

use canopy_topology::{NodeIndex, Topology};

use super::error::OrbitsError;
use super::group::Group;
use crate::forest::Action;
use crate::stages::Seating;

/// Marks a seat without a rank.
const NOBODY: u32 = u32::MAX;
/// Marks a link that no template uses.
const UNUSED: u32 = u32::MAX;

/// The network by nodes of the healthy one: seats, then switches.
pub(super) struct Healthy<'a> {
    pub(super) topology: &'a Topology,
    pub(super) seat_count: u32,
    /// By seat, the number of its rank.
    ranks: Vec<u32>,
}

impl<'a> Healthy<'a> {
    pub(super) fn new(topology: &'a Topology, seating: &Seating, seat_count: u32) -> Self {
        let mut ranks = vec![NOBODY; seat_count as usize];
        seating.live(0).for_each(|(seat, rank)| ranks[seat as usize] = rank);
        Self { topology, seat_count, ranks }
    }

    /// Whether a seat exists and has a rank.
    pub(super) fn is_live(&self, seat: u32) -> bool {
        self.ranks.get(seat as usize).is_some_and(|&rank| rank != NOBODY)
    }

    fn node(&self, node: u32) -> Option<NodeIndex> {
        let number = match node.checked_sub(self.seat_count) {
            None => self.ranks.get(node as usize).copied().filter(|&rank| rank != NOBODY)?,
            Some(switch) => self.topology.rank_count() + switch,
        };
        Some(NodeIndex::new(number))
    }

    /// The link that takes what is copied from one node to another: the fastest, the first among equals. Sums take one
    /// the other way round.
    pub(super) fn link(&self, action: Action, from: u32, to: u32) -> Option<usize> {
        let (from, to) = match action {
            Action::Copy => (from, to),
            Action::Reduce => (to, from),
        };
        let (from, to) = (self.node(from)?, self.node(to)?);
        let mut leaving = self.topology.links_from(from);
        let count = leaving.len();
        let start = leaving.next()?.index();
        let links = self.topology.links().get(start..start + count)?;
        let first = links.partition_point(|link| link.to < to);
        let parallel = links[first..].iter().take_while(|link| link.to == to);
        let best =
            parallel.enumerate().reduce(|best, link| if link.1.capacity > best.1.capacity { link } else { best });
        best.map(|(at, _)| start + first + at)
    }
}

/// Links that the group moves to each other.
struct Orbit {
    size: u64,
    /// Chunks that all templates send over links of it.
    uses: u64,
}

/// Chunks over links in one phase. A link that does not exist is a *gap*: it must carry nothing in the end.
pub(super) struct Loads<'a> {
    network: &'a Healthy<'a>,
    group: &'a Group,
    action: Action,
    orbits: Vec<Orbit>,
    of_links: Vec<u32>,
    /// What patches and lost seats add to the links, and take away.
    changes: Vec<i64>,
    /// By ends: the orbit, and the change.
    gaps: BTreeMap<(u32, u32), (u32, i64)>,
    /// By seat, whether some tree has a patch of it.
    is_patched: &'a [bool],
}

impl<'a> Loads<'a> {
    pub(super) fn new(network: &'a Healthy<'a>, group: &'a Group, is_patched: &'a [bool], action: Action) -> Self {
        let links = network.topology.links().len();
        Self {
            network,
            group,
            action,
            orbits: Vec::new(),
            of_links: vec![UNUSED; links],
            changes: vec![0; links],
            gaps: BTreeMap::new(),
            is_patched,
        }
    }

    /// A template sends chunks from one node to another. O(1), or O(generators · size) the first time in an orbit.
    pub(super) fn add(&mut self, from: u32, to: u32, chunks: u64) -> Result<(), OrbitsError> {
        let orbit = match self.network.link(self.action, from, to) {
            Some(link) => Some(self.of_links[link]).filter(|&orbit| orbit != UNUSED),
            None => self.gaps.get(&(from, to)).map(|&(orbit, _)| orbit),
        };
        let orbit = match orbit {
            Some(orbit) => orbit,
            None => self.follow(from, to)?,
        };
        self.orbits[orbit as usize].uses += chunks;
        Ok(())
    }

    /// Walks through all images of a link.
    fn follow(&mut self, from: u32, to: u32) -> Result<u32, OrbitsError> {
        let number = u32::try_from(self.orbits.len()).expect("fewer orbits than links and gaps");
        let mut size = 0;
        let mut left = vec![(from, to)];
        while let Some((from, to)) = left.pop() {
            if !self.mark(from, to, number)? {
                continue;
            }
            size += 1;
            left.extend(self.group.images(from).zip(self.group.images(to)));
        }
        self.orbits.push(Orbit { size, uses: 0 });
        Ok(number)
    }

    /// Notes the orbit of a link or gap; whether it was not known.
    fn mark(&mut self, from: u32, to: u32, orbit: u32) -> Result<bool, OrbitsError> {
        if let Some(link) = self.network.link(self.action, from, to) {
            let slot = &mut self.of_links[link];
            return Ok(std::mem::replace(slot, orbit) == UNUSED);
        }
        let seats = self.network.seat_count;
        let is_lost = |node: u32| node < seats && !self.network.is_live(node);
        let is_mended = is_lost(from) || is_lost(to) || self.is_patched.get(to as usize) == Some(&true);
        if !is_mended {
            return Err(OrbitsError::NoLink { from, to });
        }
        let limit = self.of_links.len() + seats as usize;
        if self.gaps.len() > limit {
            return Err(OrbitsError::TooManyGaps { found: self.gaps.len() });
        }
        Ok(self.gaps.insert((from, to), (orbit, 0)).is_none())
    }

    /// Some tree sends chunks over a link that templates do not send over it, or the other way round.
    pub(super) fn change(&mut self, from: u32, to: u32, chunks: i64) -> Result<(), OrbitsError> {
        let change = match self.network.link(self.action, from, to) {
            Some(link) => &mut self.changes[link],
            None => &mut self.gaps.get_mut(&(from, to)).ok_or(OrbitsError::NoLink { from, to })?.1,
        };
        // Sums of different hops fit; a hop that is stated so often that they do not is refused as such.
        *change = change.saturating_add(chunks);
        Ok(())
    }

    /// Adds the chunks of all links to those of other phases.
    ///
    /// By the theorem on orbits and stabilisers, `group / size` symmetries move a link to any one of its orbit, none
    /// moves it to others. So each link of the orbit carries `uses · group / size`, a whole number.
    pub(super) fn put(&self, all: &mut [u128]) -> Result<(), OrbitsError> {
        let load = |orbit: u32, change: i64| {
            let carried = self.orbits.get(orbit as usize).map_or(0, |orbit| {
                u128::from(orbit.uses) * u128::from(self.group.size()) / u128::from(orbit.size.max(1))
            });
            carried.checked_add_signed(change.into())
        };
        for (&(from, to), &(orbit, change)) in &self.gaps {
            if load(orbit, change) != Some(0) {
                return Err(OrbitsError::NoLink { from, to });
            }
        }
        for ((sum, &orbit), (&change, link)) in
            all.iter_mut().zip(&self.of_links).zip(self.changes.iter().zip(self.network.topology.links()))
        {
            // Never less than nothing: only hops that a tree has are taken away.
            let ends = (link.from.number(), link.to.number());
            *sum += load(orbit, change).ok_or(OrbitsError::NoLink { from: ends.0, to: ends.1 })?;
        }
        Ok(())
    }
}
