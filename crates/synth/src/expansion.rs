//! `expansion`: composes the schedule of a network from those of smaller networks.
//!
//! Families have breadth-first broadcasts or stored schedules, and every operator a rule by which the schedule of what it
//! makes follows ([`canopy_direct::Composed`]). Here the transfers are counted, put in order and written down once, on the
//! links of the topology; whether it is the network of its construction is looked up link by link.
//!
//! Source: Zhao 2026, section 3.5 and appendix A.1.

#[cfg(test)]
mod tests;

use canopy_direct::{Composed, Construction, Heading, Limit, ScheduleError};
use canopy_optimize::{BfbError, Stop};
use canopy_schedule::{Action, Collective, CollectiveKind, Pace, RouteIndex, Shape, Shares};
use canopy_topology::{LinkIndex, Rank, Topology};
use num_integer::Integer;

use crate::algorithm::Composition;
use crate::algorithm::{ConstructionUse, Memory, Rival, SynthesisRequest, Synthesizer};
use crate::error::SynthesisError;
use crate::parts::{Sending, StepsParts, each_link, require_room};
use crate::progress::{Progress, Stage};
use crate::reach::{ask, require_reach};

use crate::error::ExpansionError;

/// Schedules composed along what the network is made of.
pub(crate) static EXPANSION: Synthesizer = Synthesizer {
    construction: ConstructionUse::StatedOrFound,
    memory: Memory { has_plain_sends: true, ..Memory::USUAL },
    rival: Some(Rival { place: 13, ..Rival::LINKS }),
    ..Synthesizer::new(
        "expansion",
        "composed along the expression of the network (Zhao 2026, section 3.5)",
        &[CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce],
        |task| {
            let SynthesisRequest { collective, shares, composition, .. } = task.request;
            let planned = plan(task.topology, *collective, shares, composition.as_ref(), task.stop, task.progress);
            planned.map(|shape| task.planned(shape))
        },
    )
};

/// Most edges of a graph that is composed, those from a node to itself included.
const EDGES_MAX: u32 = 1 << 26;

/// Transfers between two looks at whether to stop.
const ASK_INTERVAL: usize = 1 << 16;

/// Composes the schedule of a construction on a topology that is the network it generates, perhaps with other numbers.
///
/// * **In.** Equal shares; allgather, reduce-scatter (the allgather on the network with its links turned around, run
///   backwards) and allreduce, which is both. **Out.** Steps whose number and loads are those that
///   [`Construction::predict`] states, if all links have one capacity per edge.
/// * **Errors.** [`ExpansionError`], other collectives, too many sends, stopped.
/// * **Cost.** The breadth-first broadcasts of the families, and O(sends · log sends).
pub(crate) fn plan(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    composition: Option<&Composition>,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Shape, SynthesisError> {
    let actions: &[Action] = match collective.kind() {
        CollectiveKind::Allgather => &[Action::Copy],
        CollectiveKind::ReduceScatter => &[Action::Reduce],
        CollectiveKind::Allreduce => &[Action::Reduce, Action::Copy],
        kind => return Err(EXPANSION.unsupported(kind)),
    };
    let Composition { construction, ranks } = composition.ok_or(ExpansionError::NoConstruction)?;
    if *shares != Shares::Equal {
        return Err(ExpansionError::UnequalShares.into());
    }
    require_reach(topology, collective, shares)?;
    let links = Links::of(topology, construction)?;
    let limit = Limit { order_max: topology.rank_count(), edges_max: EDGES_MAX };
    let mut phases = Vec::with_capacity(actions.len());
    for &action in actions {
        ask(stop)?;
        let heading = if action == Action::Copy { Heading::Along } else { Heading::Against };
        let composed =
            Composed::new(construction, heading, limit, stop).map_err(|error| refused(construction, error))?;
        if ranks.as_ref().is_some_and(|ranks| !is_numbering(ranks, composed.order())) {
            return Err(links.refused("its nodes are not the ranks of this network".to_owned()).into());
        }
        if composed.order() != topology.rank_count() {
            let what = format!("it has {} ranks while this network has {}", composed.order(), topology.rank_count());
            return Err(links.refused(what).into());
        }
        phases.push((action, composed));
    }
    let needed = phases.iter().fold(0, |sum, (_, composed)| composed.transfers_max().saturating_add(sum));
    require_room(u64::try_from(needed).unwrap_or(u64::MAX))?;
    let chunks = phases.iter().try_fold(1_u64, |chunks, (_, composed)| {
        let own = composed.chunks_per_share();
        chunks.checked_mul(own / own.gcd(&chunks))
    });
    let chunks = chunks.ok_or_else(|| {
        let of = |position: usize| phases.get(position).map_or(1, |(_, composed)| composed.chunks_per_share());
        ExpansionError::TooManyChunks { reduce_scatter: of(0), allgather: of(1) }
    })?;
    let (mut steps, mut step_first) = (StepsParts::new(chunks, Pace::Barriers), 0);
    for (&(action, ref composed), done) in phases.iter().zip(1..) {
        let sends = ordered(composed, action, ranks.as_deref(), stop)?;
        let scale = chunks / composed.chunks_per_share();
        steps.reserve(sends.len());
        for Sent { step, from, to, source, start, end } in sends {
            let route = RouteIndex::new(links.between(from, to)?.number());
            let first = u64::from(source) * chunks;
            let (step, from, to) = (step_first + step, Rank::new(from), Rank::new(to));
            let chunks = first + start * scale..first + end * scale;
            steps.push(Sending { step, action, from, to, chunks, route });
        }
        step_first += composed.step_count();
        progress.report(Stage::Routes, done, phases.len() as u64);
    }
    Ok(Shape::Steps(steps.finish(each_link(topology))))
}

/// Whether so many nodes have all ranks below that number, each once.
fn is_numbering(ranks: &[Rank], order: u32) -> bool {
    let mut is_taken = vec![false; order as usize];
    let take = |rank: &Rank| is_taken.get_mut(rank.index()).is_some_and(|taken| !std::mem::replace(taken, true));
    ranks.len() == order as usize && ranks.iter().all(take)
}

/// A refusal to compose, unless it is the caller who wants no more.
fn refused(construction: &Construction, error: ScheduleError) -> SynthesisError {
    match error {
        ScheduleError::Bfb(BfbError::Stopped(_)) => SynthesisError::Stopped,
        error => {
            let (construction, source) = (Box::new(construction.clone()), Box::new(error));
            ExpansionError::NotComposed { construction, source }.into()
        }
    }
}

/// One send of a part of one share, in the order of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    step: u32,
    from: u32,
    to: u32,
    source: u32,
    start: u64,
    end: u64,
}

/// All sends of a phase, backwards where data is added up, by step, then ends, then chunks; parts that follow each other on
/// parallel edges are one. Nodes are ranks by their place in `ranks`, or by their own number.
fn ordered(
    composed: &Composed,
    action: Action,
    ranks: Option<&[Rank]>,
    stop: &dyn Stop,
) -> Result<Vec<Sent>, SynthesisError> {
    let rank = |node: u32| ranks.map_or(node, |ranks| ranks[node as usize].number());
    let last = composed.step_count().saturating_sub(1);
    let mut sends = Vec::new();
    let mut is_stopped = false;
    composed.each(&mut |transfer| {
        if is_stopped {
            return;
        }
        let (near, far) = composed.ends(transfer.edge);
        let (near, far, source) = (rank(near), rank(far), rank(transfer.source));
        let (from, to, step) = match action {
            Action::Copy => (near, far, transfer.step),
            Action::Reduce => (far, near, last - transfer.step),
        };
        let (start, end) = (transfer.chunks.start, transfer.chunks.end);
        sends.push(Sent { step, from, to, source, start, end });
        is_stopped = sends.len().is_multiple_of(ASK_INTERVAL) && stop.is_requested();
    });
    ask(stop)?;
    sends.sort_unstable();
    sends.dedup_by(|next, kept| {
        let follows = Sent { start: kept.start, end: next.end, ..*kept } == Sent { start: kept.start, ..*next };
        let is_next = follows && kept.end == next.start;
        if is_next {
            kept.end = next.end;
        }
        is_next
    });
    Ok(sends)
}

/// The links of the topology by their ends.
struct Links<'a> {
    construction: &'a Construction,
    /// Tail, head, link; sorted.
    ends: Vec<(u32, u32, LinkIndex)>,
}

impl<'a> Links<'a> {
    fn of(topology: &Topology, construction: &'a Construction) -> Result<Self, ExpansionError> {
        let ends = topology.links().iter().zip(0..).map(|(link, index)| {
            let (from, to) = (link.from.number(), link.to.number());
            (from, to, LinkIndex::new(index))
        });
        let links = Self { construction, ends: ends.collect() };
        if topology.nodes().len() > topology.rank_count() as usize {
            return Err(links.refused("this network has nodes without a rank".to_owned()));
        }
        match links.ends.windows(2).find(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
            Some(&[(from, to, _), ..]) => Err(links
                .refused(format!("this network connects rank {from} to rank {to} by links of different latencies"))),
            _ => Ok(links),
        }
    }

    fn refused(&self, what: String) -> ExpansionError {
        ExpansionError::OtherNetwork { construction: Box::new(self.construction.clone()), what }
    }

    fn between(&self, from: u32, to: u32) -> Result<LinkIndex, ExpansionError> {
        let place = self.ends.partition_point(|&(tail, head, _)| (tail, head) < (from, to));
        match self.ends.get(place) {
            Some(&(tail, head, link)) if (tail, head) == (from, to) => Ok(link),
            _ => Err(self.refused(format!("this network has no link from rank {from} to rank {to}"))),
        }
    }
}
