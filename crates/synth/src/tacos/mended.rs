//! Schedules in time, made to fit what faults leave of their network.
//!
//! When everything was sent follows from the steps and from what links took (`starts`). What is left of the network is unwound anew, in the
//! way that has most of the routes that were used; what can still be sent when it was stays, and the greedy engine brings the rest
//! around it ([`canopy_tacos::mend`]). Sums are mended as the copies that they are backwards on the network turned around; what is for one
//! rank alone goes on from where it comes ([`canopy_tacos::mend_delivery`]).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;

use canopy_optimize::Stop;
use canopy_schedule::{Action, ChunkLayout, Collective, CollectiveKind, Shares, Steps};
use canopy_tacos::{Preference, Sends, Sent, TimedNetwork, judge, judge_delivery, mend, mend_delivery};
use canopy_topology::{LinkIndex, Rank, Topology};

use super::starts::{Copies, Deliveries, ordered, starts};
use super::times::Clock;
use super::unwound::{Patterns, Unwound};
use super::{broken, copy_task, pace, refused, sends, unicast};
use crate::error::SynthesisError;
use crate::parts::{phase_actions, require_room};
use crate::reach::ask;

/// A schedule in time, and what has become of its network.
pub(crate) struct Damage<'a> {
    pub(crate) base: &'a Topology,
    pub(crate) steps: &'a Steps,
    /// What the schedule does, and for which shares.
    pub(crate) planned: (Collective, &'a Shares),
    /// By rank of the base, what it is called now.
    pub(crate) ranks: &'a [Option<Rank>],
    /// By route of the steps, its links now; empty if one of them is gone.
    pub(crate) routes: &'a [Vec<LinkIndex>],
    pub(crate) left: &'a Topology,
    /// What those who are left are to do, and for which shares.
    pub(crate) wanted: (Collective, &'a Shares),
    /// Chunks for each share, or unit of its weight: as large as before.
    pub(crate) chunks: u64,
}

/// The schedule for what is left.
///
/// * **In.** `size_bytes`: of the message, for which latencies count, as when the schedule was made. **Out.** Steps as of `tacos`. Equal
///   arguments give equal steps.
/// * **Errors.** [`SynthesisError`]: too many sends, stopped; broken where sends are not over routes between ranks.
/// * **Cost.** O(sends · log sends), 16 bytes for each chunk of each rank where all get it, and that of one attempt for what is dropped.
pub(crate) fn mended(
    damage: &Damage<'_>,
    size_bytes: Option<NonZeroU64>,
    stop: &dyn Stop,
) -> Result<Steps, SynthesisError> {
    let &Damage { base, steps, planned, left, wanted, chunks, .. } = damage;
    let layout_before = ChunkLayout::new(planned.0, base.rank_count(), steps.chunks_per_share, planned.1)?;
    let layout = ChunkLayout::new(wanted.0, left.rank_count(), chunks, wanted.1)?;
    require_room(layout_before.total().max(layout.total()))?;
    let numbers = damage.chunk_numbers(&layout_before, &layout)?;
    let routes = damage.routes_before()?;
    let (unwound, links) = damage.unwound(&routes, stop)?;
    // One clock for both, so that the same link takes the same time.
    let both = routes.links.iter().chain(&unwound.links).cloned().collect();
    let both = Unwound { rank_count: base.rank_count(), links: both };
    let clock = Clock::for_chunks(&both, layout.size(), size_bytes);
    let networks = (clock.network(&routes)?, clock.network(&unwound)?);
    let fit = Fit { damage, layouts: (layout_before, layout), networks, links, numbers };
    let (actions, phases) = match phase_actions(wanted.0.kind()) {
        Some(actions) => {
            (actions, actions.iter().map(|&action| fit.copied(action, stop)).collect::<Result<Vec<_>, _>>()?)
        }
        None => (&[Action::Copy][..], vec![fit.delivered(stop)?]),
    };
    let pace = pace::pace(left, &unwound, &clock, &fit.networks.1, &phases);
    sends::write(chunks, pace, &unwound, actions.iter().copied().zip(phases))
}

/// A schedule in time, and what it is to fit.
struct Fit<'a> {
    damage: &'a Damage<'a>,
    /// As it was and as it is, like the networks.
    layouts: (ChunkLayout, ChunkLayout),
    networks: (TimedNetwork, TimedNetwork),
    /// By route of the schedule, the link that there is for it.
    links: Vec<Option<u32>>,
    /// By chunk of the schedule, what it is called now.
    numbers: Vec<Option<u32>>,
}

impl Fit<'_> {
    /// What all get from, or give to, those who have it.
    fn copied(&self, action: Action, stop: &dyn Stop) -> Result<Sends, SynthesisError> {
        let &Damage { base, steps, planned, left, wanted, .. } = self.damage;
        require_room(self.layouts.0.total().saturating_mul(base.rank_count().into()))?;
        let task_before = copy_task(planned.0, base.rank_count(), &self.layouts.0)?;
        let task = copy_task(wanted.0, left.rank_count(), &self.layouts.1)?;
        let is_sum = action == Action::Reduce;
        let turned = is_sum.then(|| (self.networks.0.transposed(), self.networks.1.transposed()));
        let (before, along) = turned.as_ref().unwrap_or(&self.networks);
        let sends = ordered(steps, action);
        let known = starts(before, Copies::new(&task_before), steps.pace, &sends, stop)?;
        let known = self.renamed(known, Some);
        let sends = mend(along, &task, known, 0, Preference::Neighbours, stop).map_err(refused)?.sends;
        judge(along, &task, &sends).map_err(broken)?;
        Ok(if is_sum { sends.reversed(along) } else { sends })
    }

    /// What is for one rank alone.
    fn delivered(&self, stop: &dyn Stop) -> Result<Sends, SynthesisError> {
        let &Damage { base, steps, planned, left, wanted, .. } = self.damage;
        let (demands_before, chunks_before) =
            unicast::demands(planned.0, planned.1, base.rank_count(), &self.layouts.0)?;
        let (demands, chunks) = unicast::demands(wanted.0, wanted.1, left.rank_count(), &self.layouts.1)?;
        let mut sources = vec![None; self.numbers.len()];
        for (demand, &chunk) in demands_before.iter().zip(&chunks_before) {
            sources[chunk as usize] = Some((demand.from, 0));
        }
        let mut places = vec![None; usize::try_from(self.layouts.1.total()).map_err(broken)?];
        for (demand, &chunk) in (0_u32..).zip(&chunks) {
            places[chunk as usize] = Some(demand);
        }
        let sends = ordered(steps, Action::Copy);
        let known = starts(&self.networks.0, Deliveries(sources), steps.pace, &sends, stop)?;
        let known = self.renamed(known, |chunk| places[chunk as usize]);
        let network = &self.networks.1;
        let mut sends = mend_delivery(network, &demands, known, stop).map_err(refused)?.sends;
        judge_delivery(network, &demands, &sends).map_err(broken)?;
        sends.sends.iter_mut().for_each(|sent| sent.chunk = chunks[sent.chunk as usize]);
        Ok(sends)
    }

    /// Sends of what there is still, over links that there are, by the names that both have now; chunks by those that a task has for them.
    fn renamed(&self, sends: Vec<Sent>, of_task: impl Fn(u32) -> Option<u32>) -> Vec<Sent> {
        let renamed = sends.into_iter().filter_map(|sent| {
            let (link, chunk) = (self.links[sent.link as usize]?, self.numbers[sent.chunk as usize]?);
            Some(Sent { link, chunk: of_task(chunk)?, ..sent })
        });
        renamed.collect()
    }
}

/// How good a way to unwind is: whether it joins all ranks, how much was sent over its links, and how few these are.
type Merit = (bool, u64, Reverse<usize>);

impl Damage<'_> {
    /// What the chunks of ranks that are left are called now. O(chunks + shares or blocks).
    fn chunk_numbers(&self, before: &ChunkLayout, now: &ChunkLayout) -> Result<Vec<Option<u32>>, SynthesisError> {
        let mut numbers = vec![None; usize::try_from(before.total()).map_err(broken)?];
        let mut rename = |old: Range<u64>, new: Range<u64>| {
            let places = usize::try_from(old.start).ok()?..usize::try_from(old.end).ok()?;
            for (number, chunk) in numbers.get_mut(places)?.iter_mut().zip(new.clone()) {
                *number = u32::try_from(chunk).ok();
            }
            (old.end - old.start == new.end - new.start).then_some(())
        };
        let ranks = || self.base.ranks().zip(self.ranks).filter_map(|(old, new)| Some((old, (*new)?)));
        for (old, new) in ranks() {
            let is_same_size = if self.wanted.0.kind() == CollectiveKind::AllToAll {
                let between = |(to, to_now)| rename(before.chunks_between(old, to), now.chunks_between(new, to_now));
                ranks().map(between).collect::<Option<()>>()
            } else {
                rename(before.chunks_of(old), now.chunks_of(new))
            };
            is_same_size.ok_or_else(|| broken("a share has another size than before"))?;
        }
        Ok(numbers)
    }

    /// The routes of the schedule as links between ranks, each with its part of what it passes.
    fn routes_before(&self) -> Result<Unwound, SynthesisError> {
        let end = |link: LinkIndex, is_from: bool| {
            let link = self.base.links().get(link.index())?;
            self.base.rank_of(if is_from { link.from } else { link.to })
        };
        let routes = self.steps.routes.iter().map(|links| {
            let (&first, &last) = (links.first()?, links.last()?);
            let is_known = links.iter().all(|link| link.index() < self.base.links().len());
            is_known.then_some((end(first, true)?, end(last, false)?, links.to_vec()))
        });
        let routes: Option<Vec<_>> = routes.collect();
        Ok(Unwound::over(self.base, routes.ok_or_else(|| broken("a route does not lead from rank to rank"))?))
    }

    /// What is left of the network, unwound in the way that joins all, has most of what was sent, and has fewest links; and by route of the
    /// schedule the link that is over it now, or between the same ranks.
    fn unwound(&self, routes: &Unwound, stop: &dyn Stop) -> Result<(Unwound, Vec<Option<u32>>), SynthesisError> {
        let mut sent = vec![0_u64; routes.links.len()];
        for carrier in &self.steps.carriers {
            let chunks = sent.get_mut(carrier.route.index()).ok_or_else(|| broken("a carrier has no route"))?;
            *chunks = chunks.saturating_add(carrier.chunk_count);
        }
        let mut best: Option<(Merit, Unwound, Vec<Option<u32>>)> = None;
        for patterns in Patterns::all(self.left) {
            ask(stop)?;
            let unwound = match Unwound::of(self.left, &patterns, stop) {
                Ok(unwound) => unwound,
                // Another way may make fewer links.
                Err(SynthesisError::TooManyHops { .. }) => continue,
                Err(error) => return Err(error),
            };
            let links = self.links(routes, &unwound);
            let met = links.iter().zip(&sent).filter(|(link, _)| link.is_some()).map(|(_, &chunks)| chunks);
            let met = met.fold(0, u64::saturating_add);
            let merit = (unwound.joins_all(), met, Reverse(unwound.links.len()));
            if best.as_ref().is_none_or(|(most, ..)| merit > *most) {
                best = Some((merit, unwound, links));
            }
        }
        let (_, unwound, links) = best.ok_or_else(|| broken("no way to unwind switches has few enough links"))?;
        Ok((unwound, links))
    }

    fn links(&self, routes: &Unwound, unwound: &Unwound) -> Vec<Option<u32>> {
        let (mut over, mut between) = (BTreeMap::new(), BTreeMap::new());
        for (number, link) in (0_u32..).zip(&unwound.links) {
            over.entry(link.route.as_slice()).or_insert(number);
            between.entry((link.from, link.to)).or_insert(number);
        }
        let now = |rank: Rank| self.ranks.get(rank.index()).copied().flatten();
        let links = routes.links.iter().zip(self.routes).map(|(link, route)| {
            let same = over.get(route.as_slice()).copied();
            same.or_else(|| between.get(&(now(link.from)?, now(link.to)?)).copied())
        });
        links.collect()
    }
}
