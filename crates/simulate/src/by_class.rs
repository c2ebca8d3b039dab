//! How long a plan by a rule takes: what one box of each class, or one rank of a torus, does is simulated, not what all
//! ranks do.
//!
//! **The model.** Ranks of one class do the same at the same time. So a box stands for all boxes of its class: what it
//! sends to another box in a step is what it receives from another one in that step, and begins when its own data is
//! there. Its transfers are those of its ranks' programs, one for each peer and step; what has entered is spread in the
//! box meanwhile. Switches between leaves carry a box's part of what passes there, as fast as the busiest of them lets
//! it through. Of a torus, one rank stands for all, with each hop of its templates; where there are very many, hops as
//! far from the root with as many hops before them along one dimension are one transfer for all their trees.
//! Everything else is as in [`simulate`](crate::simulate). The slowest class decides, and no time is below that of the
//! busiest link of the whole network, exactly counted.
//!
//! Around faults it is an estimate: partners of a faulty box are taken to be as far as that box is.

mod graph;
mod orbits;
mod stages;

use canopy_schedule::{
    ByClass, ChunkLayout, ChunkSize, Collective, CollectiveKind, RuleClasses, Shape, Shares, TransferGraph,
};
use canopy_topology::{LinkIndex, Rank, Rate, Topology};

use crate::limit::{algbw, busbw, least_time_ps};
use crate::options::{SimulateError, SimulateOptions, Stop, Sync};
use crate::outcome::{Leg, LinkUse};
use crate::reached::Reached;
use crate::run::simulate_spans;
use crate::workload::Span;

/// Most classes of boxes that are simulated: those of most boxes, and then those with the busiest NICs.
const CLASSES_MAX: usize = 24;

/// Boxes or ranks that are simulated instead of all.
#[derive(Debug)]
pub struct ClassModel {
    representatives: Vec<Representative>,
    size: ChunkSize,
    kind: CollectiveKind,
    rank_count: u32,
    /// That of the busiest link.
    algbw: Rate,
}

/// What stands for a class: transfers over a few links.
#[derive(Debug)]
struct Representative {
    class: usize,
    topology: Topology,
    graph: TransferGraph,
    /// By transfer: the step of the ranks' programs, or the level of trees.
    steps: Vec<u32>,
    /// By link of `topology`: the link of the network that it stands for.
    links: Vec<LinkIndex>,
    /// By transfer: ranks of the network that do the like.
    ends: Vec<(Rank, Rank)>,
}

/// What was found for one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassOutcome {
    /// Figures; messages and events are those of the boxes or ranks that were simulated.
    pub reached: Reached,
    /// The class that took longest, by its position among [`BoxClasses::classes`](canopy_schedule::BoxClasses); 0 of a
    /// torus.
    pub slowest: usize,
    /// What the links of that class did, in the order of the network.
    pub links: Vec<(LinkIndex, LinkUse)>,
    /// The chain of messages that made it as long as it was, with ranks and links of the network that are alike.
    pub critical_path: Vec<Leg>,
}

impl ClassModel {
    /// What stands for the classes of a plan that was [judged](canopy_schedule::by_class).
    ///
    /// * **Errors.** A rule that is not the one that was judged.
    /// * **Cost.** O(ranks + links), and for each class of boxes the programs of its ranks; for a torus
    ///   O(ranks · templates).
    pub fn of(
        topology: &Topology,
        collective: Collective,
        shape: &Shape,
        classes: &ByClass,
    ) -> Result<Self, SimulateError> {
        let (chunks_per_share, representatives) = match (shape, &classes.rule) {
            (Shape::Stages(stages), RuleClasses::Stages(boxes)) => {
                let chosen = chosen(topology, classes, boxes);
                (stages.chunks_per_share, stages::representatives(topology, stages, classes, &chosen)?)
            }
            (Shape::Orbits(orbits), RuleClasses::Orbits(found)) => {
                (orbits.chunks_per_share, vec![orbits::representative(topology, orbits, classes, found)?])
            }
            _ => return Err(SimulateError::Rule { what: "is not the one that was judged" }),
        };
        let rank_count = topology.rank_count();
        let layout = ChunkLayout::new(collective, rank_count, chunks_per_share, &Shares::Equal)?;
        let algbw = classes.verdict.algbw.clone();
        Ok(Self { representatives, size: layout.size(), kind: collective.kind(), rank_count, algbw })
    }

    /// Simulates one size. With [`Sync::Steps`], whatever its numbers, steps are those of the ranks' programs, or
    /// levels of trees. `None`: it takes no time at all.
    ///
    /// * **Errors.** As of [`simulate`](crate::simulate).
    pub fn run(
        &self,
        bound: &Rate,
        options: &SimulateOptions<'_>,
        stop: Stop<'_>,
    ) -> Result<Option<ClassOutcome>, SimulateError> {
        let (size_bytes, size) = (options.size_bytes, self.size);
        let limit_ps = least_time_ps(size_bytes, &self.algbw).ok_or(SimulateError::TooLong)?;
        let mut slowest: Option<(u64, ClassOutcome)> = None;
        let (mut messages, mut events) = (0, 0);
        for one in &self.representatives {
            let span = Span {
                batches: 0..one.graph.batches.len(),
                size_bytes,
                bytes_of_total: u128::from(size_bytes) * u128::from(size.divisor),
                total: u128::from(size.chunks),
                chunk_weight: 1,
            };
            let sync = match options.sync {
                Sync::Deps => Sync::Deps,
                Sync::Steps(_) => Sync::Steps(&one.steps),
            };
            let options = SimulateOptions { sync, ..*options };
            let (outcome, _) = simulate_spans(&one.topology, &one.graph, &[span], &options, stop)?;
            messages += outcome.message_count;
            events += outcome.event_count;
            if slowest.as_ref().is_none_or(|(time, _)| outcome.time_ps > *time) {
                let reached = self.reached(bound, size_bytes, outcome.time_ps.max(limit_ps), limit_ps);
                let Some(reached) = reached else { continue };
                let critical_path = outcome.critical_path.iter().map(|leg| one.leg(leg)).collect();
                let found =
                    ClassOutcome { reached, slowest: one.class, links: one.uses(&outcome.links), critical_path };
                slowest = Some((outcome.time_ps, found));
            }
        }
        Ok(slowest.map(|(_, mut found)| {
            (found.reached.message_count, found.reached.event_count) = (messages, events);
            found
        }))
    }

    fn reached(&self, bound: &Rate, size_bytes: u64, time_ps: u64, limit_ps: u64) -> Option<Reached> {
        let algbw = algbw(size_bytes, time_ps)?;
        Some(Reached {
            size_bytes,
            time_ps,
            least_ps: least_time_ps(size_bytes, bound),
            limit_ps,
            busbw: busbw(self.kind, self.rank_count, &algbw)?,
            of_bound: algbw.ratio_to(bound),
            algbw,
            message_count: 0,
            event_count: 0,
        })
    }
}

impl Representative {
    /// The same message in the network.
    fn leg(&self, leg: &Leg) -> Leg {
        let (from, to) = self.ends.get(leg.transfer as usize).copied().unwrap_or((leg.from, leg.to));
        let link = self.links.get(leg.link.index()).copied().unwrap_or(LinkIndex::new(0));
        Leg { from, to, link, ..*leg }
    }

    /// By link of the network, the smallest index first.
    fn uses(&self, uses: &[LinkUse]) -> Vec<(LinkIndex, LinkUse)> {
        let mut found: Vec<(LinkIndex, LinkUse)> = self.links.iter().copied().zip(uses.iter().copied()).collect();
        found.retain(|(_, of)| of.bytes > 0);
        found.sort_by_key(|(link, of)| (*link, std::cmp::Reverse(of.busy_ps)));
        found.dedup_by_key(|(link, _)| *link);
        found
    }
}

/// Classes of boxes that are simulated, with a box of each.
fn chosen(topology: &Topology, classes: &ByClass, boxes: &canopy_schedule::BoxClasses) -> Vec<(usize, u32)> {
    let all = || boxes.classes.iter().enumerate();
    let mut chosen: Vec<(usize, u32)> = all().take(CLASSES_MAX / 2).map(|(class, of)| (class, of.busiest)).collect();
    let time = |of: &canopy_schedule::BoxClass| {
        let link = of.busiest_nic?;
        Rate::new(classes.chunks(link), topology.link(link).capacity.bytes_per_sec())
    };
    let mut others: Vec<(usize, &canopy_schedule::BoxClass)> = all().skip(CLASSES_MAX / 2).collect();
    others.sort_by_key(|(_, of)| std::cmp::Reverse(time(of)));
    chosen.extend(others.into_iter().take(CLASSES_MAX / 2).map(|(class, of)| (class, of.busiest)));
    chosen
}
