//! A way to unwind a network, and what its symmetries spare the search.

use std::collections::BTreeMap;

use canopy_optimize::Stop;
use canopy_tacos::{CopyTask, FreeGroup, TimedLink, TimedNetwork, Transposition};
use canopy_topology::Topology;
use num_integer::Integer as _;

use super::broken;
use super::unwound::{Patterns, Unwound};
use crate::error::SynthesisError;
use crate::symmetry::translations;

/// Ranks from which on translations are looked for.
const TRANSLATED_RANKS_MIN: u32 = 64;

/// A network without switches.
pub(super) struct Way {
    pub(super) unwound: Unwound,
    /// Automorphisms that keep what links take, however large chunks are, and leave no rank in its place.
    pub(super) group: FreeGroup,
    /// Onto itself turned around, where it is known how: what is for all then goes in reverse as it came.
    pub(super) transposition: Option<Transposition>,
    /// Its links with the numbers of their classes for times.
    classes: TimedNetwork,
}

impl Way {
    /// Unwinds a network, as if there were no translations.
    ///
    /// # Errors
    /// Stopped; too many links. O([`Unwound::of`] + links · log links).
    pub(super) fn of(topology: &Topology, patterns: &Patterns, stop: &dyn Stop) -> Result<Self, SynthesisError> {
        let unwound = Unwound::of(topology, patterns, stop)?;
        let classes = classes(&unwound)?;
        let transposition = Transposition::of(&classes, (0..unwound.rank_count).collect());
        Ok(Self { group: FreeGroup::trivial(unwound.rank_count), transposition, unwound, classes })
    }

    /// Looks for translations, which are worth it where all ranks have as much.
    ///
    /// # Errors
    /// Stopped. That of `translations`, once for all numbers of chunks and all phases.
    pub(super) fn find_translations(&mut self, topology: &Topology, stop: &dyn Stop) -> Result<(), SynthesisError> {
        let rank_count = self.unwound.rank_count;
        if rank_count < TRANSLATED_RANKS_MIN {
            return Ok(());
        }
        // Each link is told of at both its ends, as translations are looked for on arcs that lead both ways.
        let ends = |link: &TimedLink| {
            let class = u128::from(link.occupancy);
            [(link.from, link.to, class << 41), (link.to, link.from, class)]
        };
        let arcs = self.classes.links().iter().flat_map(ends);
        let found = translations(rank_count as usize, arcs, &crate::symmetry::boxes(topology), stop)?;
        let each = CopyTask::allgather(rank_count, 1).map_err(broken)?;
        let images = found.iter().flat_map(|found| found.image.iter().map(Vec::as_slice));
        if let Some(found) = FreeGroup::generated_by(&self.classes, &each, images) {
            self.group = found;
        }
        if self.transposition.is_none() {
            self.transposition = self.group.inversion().and_then(|nodes| Transposition::of(&self.classes, nodes));
        }
        Ok(())
    }
}

/// Links that take the number of their class, from 1: those of a class take the same time for chunks of any size.
fn classes(unwound: &Unwound) -> Result<TimedNetwork, SynthesisError> {
    let class = |link: &super::unwound::UnwoundLink| {
        let divisor = link.capacity.gcd(&link.parts).max(1);
        (link.capacity / divisor, link.parts / divisor, link.latency_ns)
    };
    let mut numbers: BTreeMap<(u64, u64, u64), u64> = unwound.links.iter().map(|link| (class(link), 0)).collect();
    numbers.values_mut().zip(1..).for_each(|(number, next)| *number = next);
    let links = unwound.links.iter().map(|link| {
        let number = numbers[&class(link)];
        TimedLink { from: link.from.number(), to: link.to.number(), latency: number, occupancy: number }
    });
    TimedNetwork::new(unwound.rank_count, links.collect()).map_err(broken)
}
