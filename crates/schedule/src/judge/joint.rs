//! Checks whether schedules that run concurrently, step by step, slow each other down.
//!
//! Each is judged alone like any other. Then the chunks of all are added up on the physical links, which are told by the ids of
//! their ends, since every group of ranks numbers its links by itself.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use canopy_topology::{LinkIndex, Topology};
use num_bigint::BigUint;
use num_integer::Integer as _;

use super::{JudgeError, judge_until};
use crate::check::Verdict;
use crate::schedule::{Schedule, Shape, Steps};
use crate::shares::ChunkLayout;

/// One of several schedules in steps with numbers in common.
#[derive(Clone, Copy, Debug)]
pub struct JointPart<'a> {
    /// The network as its ranks see it: of some ranks of the whole one, or that itself.
    pub topology: &'a Topology,
    /// What they do.
    pub schedule: &'a Schedule,
    /// *Size* of the collective, as [`check`](crate::check) defines it.
    pub size_bytes: NonZeroU64,
}

/// Result for schedules that can run concurrently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointVerdict {
    /// Of each alone.
    pub verdicts: Vec<Verdict>,
    /// Number of steps of all together.
    pub steps: u64,
    /// Number of links that several parts use in one step, each counted once per such step.
    pub shared_links: u64,
}

/// Why schedules are no joint schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum JointCheckError {
    #[error("part {part}: {source}")]
    Part { part: usize, source: JudgeError },
    #[error("part {part} is a {shape}; use steps in a joint schedule")]
    NotSteps { part: usize, shape: &'static str },
    #[error("part {part} uses a link from {from} to {to} that the network does not have")]
    UnknownLink { part: usize, from: String, to: String },
    #[error("in step {step} the link from {from} to {to} delays part {part}, since other parts use it too")]
    Crowded { step: u32, from: String, to: String, part: usize },
    #[error("part {part}: a link load exceeds 128 bits")]
    Overflow { part: usize },
}

/// Judges schedules that run together: each right alone, and in no step does a link have more to carry than fits into
/// the time that the slowest part takes for that step alone.
///
/// So on links that are alike, with chunks of one size, no link is used by two parts in a step.
///
/// * **Errors.** [`JointCheckError`], the first fault.
/// * **Cost.** That of [`judge_until`] for each part, and O(links used · log links used), over all steps.
pub fn check_joint(
    topology: &Topology,
    parts: &[JointPart<'_>],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<JointVerdict, JointCheckError> {
    let (mut verdicts, mut steps) = (Vec::with_capacity(parts.len()), 0);
    let mut found: Vec<(&JointPart<'_>, ChunkLayout, &Steps)> = Vec::with_capacity(parts.len());
    for (part, it) in parts.iter().enumerate() {
        let fault = |source: JudgeError| JointCheckError::Part { part, source };
        let Shape::Steps(own) = &it.schedule.shape else {
            return Err(JointCheckError::NotSteps { part, shape: it.schedule.shape.name() });
        };
        verdicts.push(judge_until(it.topology, it.schedule, stop).map_err(fault)?);
        steps = steps.max(own.step_count());
        let (collective, shares) = (it.schedule.collective, &it.schedule.shares);
        let layout = ChunkLayout::new(collective, it.topology.rank_count(), own.chunks_per_share, shares);
        // What the judge accepted has a layout.
        found.push((it, layout.map_err(|_| JointCheckError::Overflow { part })?, own));
    }
    // Sizes of chunks in a unit of which all are whole numbers.
    let unit = found.iter().fold(BigUint::from(1_u8), |unit, (_, layout, _)| unit.lcm(&layout.size().chunks.into()));
    let known = links_by_ends(topology);
    let mut loads: BTreeMap<(u32, LinkIndex), Vec<(usize, BigUint)>> = BTreeMap::new();
    for (part, (it, layout, own)) in found.iter().enumerate() {
        let size = layout.size();
        let chunk = BigUint::from(it.size_bytes.get()) * size.divisor * (&unit / size.chunks);
        for ((step, link), chunks) in chunks_on_links(own).ok_or(JointCheckError::Overflow { part })? {
            let ends = ends_of(it.topology, link);
            let physical = known.get(&ends).copied();
            let unknown = || JointCheckError::UnknownLink { part, from: ends.0.to_owned(), to: ends.1.to_owned() };
            loads.entry((step, physical.ok_or_else(unknown)?)).or_default().push((part, &chunk * chunks));
        }
    }
    let loads: Vec<_> = loads.into_iter().collect();
    let shared_links = loads.iter().filter(|(_, parts)| parts.len() > 1).count() as u64;
    for step in loads.chunk_by(|a, b| a.0.0 == b.0.0) {
        check_step(topology, step)?;
    }
    Ok(JointVerdict { verdicts, steps, shared_links })
}

/// Loads of a link in a step, by part.
type LinkInStep = ((u32, LinkIndex), Vec<(usize, BigUint)>);

/// Whether no link takes longer for all parts together than some link for one of them.
fn check_step(topology: &Topology, links: &[LinkInStep]) -> Result<(), JointCheckError> {
    let capacity = |link: LinkIndex| topology.link(link).capacity.bytes_per_sec();
    // Load and capacity where their quotient is greatest.
    let mut slowest = (BigUint::ZERO, 1_u64);
    for ((_, link), loads) in links {
        for (_, load) in loads {
            if load * slowest.1 > &slowest.0 * capacity(*link) {
                slowest = (load.clone(), capacity(*link));
            }
        }
    }
    for ((step, link), loads) in links {
        let together: BigUint = loads.iter().map(|(_, load)| load).sum();
        if together * slowest.1 > &slowest.0 * capacity(*link) {
            let (from, to, _) = ends_of(topology, *link);
            let part = loads.last().map_or(0, |&(part, _)| part);
            return Err(JointCheckError::Crowded { step: *step, from: from.to_owned(), to: to.to_owned(), part });
        }
    }
    Ok(())
}

/// What tells a link from all others: the ids of its ends, and its latency, by which parallel links differ.
type Ends<'a> = (&'a str, &'a str, u64);

fn ends_of(topology: &Topology, link: LinkIndex) -> Ends<'_> {
    let link = topology.link(link);
    (&topology.node(link.from).id, &topology.node(link.to).id, link.latency.nanos())
}

fn links_by_ends(topology: &Topology) -> BTreeMap<Ends<'_>, LinkIndex> {
    let links = (0..).map(LinkIndex::new).take(topology.links().len());
    links.map(|link| (ends_of(topology, link), link)).collect()
}

/// By step and link, the chunks that the carriers take over it; none where they cannot be counted.
fn chunks_on_links(steps: &Steps) -> Option<BTreeMap<(u32, LinkIndex), u128>> {
    let mut chunks: BTreeMap<(u32, LinkIndex), u128> = BTreeMap::new();
    for send in &steps.sends {
        for carrier in steps.carriers_of(send) {
            for &link in steps.routes.get(carrier.route).unwrap_or_default() {
                let load = chunks.entry((send.step, link)).or_default();
                *load = load.checked_add(carrier.chunk_count.into())?;
            }
        }
    }
    Some(chunks)
}

#[cfg(test)]
mod tests {
    use canopy_topology::{Rank, TopologyLimits, Transit, generate};

    use super::*;
    use crate::collective::{Collective, CollectiveKind};
    use crate::forest::{Action, Carrier};
    use crate::route::RouteTable;
    use crate::schedule::Send;
    use crate::shares::Shares;

    /// Rank 0 of the first two sends its message to the other, in a step.
    fn broadcast(topology: &Topology, step: u32) -> Schedule {
        let mut routes = RouteTable::default();
        let link = topology.links().iter().position(|link| {
            topology.rank_of(link.from) == Some(Rank::new(0)) && topology.rank_of(link.to) == Some(Rank::new(1))
        });
        let route = routes.push(&[LinkIndex::new(u32::try_from(link.unwrap()).unwrap())]);
        let send =
            Send { step, action: Action::Copy, from: Rank::new(0), to: Rank::new(1), chunks: 0..1, carriers: 0..1 };
        let carriers = vec![Carrier { route, chunk_count: 1 }];
        Schedule {
            collective: Collective::new(CollectiveKind::Broadcast, None, 2).unwrap(),
            algorithm: "tacos".to_owned(),
            shares: Shares::Equal,
            shape: Shape::Steps(Steps {
                chunks_per_share: 1,
                pace: crate::schedule::Pace::Barriers,
                routes,
                carriers,
                sends: vec![send],
            }),
        }
    }

    /// Broadcasts from the first to the second of each pair of ranks of a line, in these steps and of these sizes: steps, and shared links.
    fn judged(pairs: &[([u32; 2], u32, u64)]) -> Result<(u64, u64), JointCheckError> {
        let line = generate("mesh:1x4", &TopologyLimits::STANDARD).unwrap();
        let groups: Vec<Topology> =
            pairs.iter().map(|(ranks, ..)| line.group(&ranks.map(Rank::new), Transit::Forward).unwrap()).collect();
        let schedules: Vec<Schedule> =
            groups.iter().zip(pairs).map(|(group, &(_, step, _))| broadcast(group, step)).collect();
        let parts = groups.iter().zip(&schedules).zip(pairs).map(|((topology, schedule), &(.., bytes))| JointPart {
            topology,
            schedule,
            size_bytes: NonZeroU64::new(bytes).unwrap(),
        });
        let parts: Vec<JointPart<'_>> = parts.collect();
        check_joint(&line, &parts, &|| false).map(|verdict| (verdict.steps, verdict.shared_links))
    }

    #[test]
    fn links_are_told_by_their_ends_and_shared_by_steps() {
        assert_eq!(judged(&[([0, 1], 0, 8), ([2, 3], 0, 8)]), Ok((1, 0)));
        assert_eq!(judged(&[([0, 1], 0, 8), ([1, 0], 0, 8)]), Ok((1, 0)), "the other way is another link");
        assert_eq!(judged(&[([0, 1], 0, 8), ([0, 1], 1, 8)]), Ok((2, 0)));
        let crowded = judged(&[([2, 3], 0, 8), ([2, 3], 0, 8)]);
        assert!(matches!(crowded, Err(JointCheckError::Crowded { step: 0, part: 1, .. })), "{crowded:?}");
    }

    /// Two small messages share a link while a large one takes as long on another.
    #[test]
    fn a_link_may_be_shared_while_a_slower_part_is_under_way() {
        assert_eq!(judged(&[([0, 1], 0, 8), ([0, 1], 0, 8), ([2, 3], 0, 16)]), Ok((1, 1)));
        assert!(judged(&[([0, 1], 0, 8), ([0, 1], 0, 9), ([2, 3], 0, 16)]).is_err());
    }

    #[test]
    fn each_part_is_judged_alone_as_well() {
        let line = generate("mesh:1x4", &TopologyLimits::STANDARD).unwrap();
        let group = line.group(&[Rank::new(0), Rank::new(1)], Transit::Forward).unwrap();
        let mut schedule = broadcast(&group, 0);
        if let Shape::Steps(steps) = &mut schedule.shape {
            steps.sends.clear();
        }
        let part = JointPart { topology: &group, schedule: &schedule, size_bytes: NonZeroU64::MIN };
        let found = check_joint(&line, &[part], &|| false);
        assert!(matches!(found, Err(JointCheckError::Part { part: 0, .. })), "{found:?}");
    }
}
