//! `direct-xy`, `ring-xy` and `taccl-like`: baselines for schedules in time.
//!
//! Messages of the first two take the way of the grid, one dimension after the other, the last first, and wait in the
//! queues of links, first come, first served. What passes a rank is stored and sent on; switches pass on what still
//! comes in. All messages of the model are run, but a plan has of them only what brings a rank a chunk for the first
//! time, when it does: no plan may send what is there already. So where many messages with the same chunk take the
//! same way, the plan is much faster than the model. Messages of `taccl-like` go down trees, and bring no rank a
//! chunk again.
//!
//! Source: Won et al., sections 7 and 8.

mod first;
mod shortest;
#[cfg(test)]
mod tests;
mod together;
mod ways;

use std::num::NonZeroU64;

use canopy_optimize::Stop;
use canopy_schedule::{Action, ChunkLayout, Collective, CollectiveKind, Pace, Shape, Shares};
use canopy_synth::components::{
    Clock, HOPS_MAX, Heading, Unwound, UnwoundLink, ask, pairs, phase_actions, require_reach, require_room, write_sends,
};
use canopy_synth::{
    ALL_COLLECTIVES, Algorithm, ConstructionUse, HeededLimits, Rival, SPREADING, Scale, SynthesisError,
    SynthesisRequest, Synthesized, Synthesizer, Task,
};
use canopy_tacos::{Chance, CopyError, Sends, TimedLink};
use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};

use crate::queues::{Message, QueuedLink, queued};
use first::FirstArrivals;
use shortest::ShortestTrees;
pub use together::{Tenant, queued_together_ps};
use ways::Ways;

/// Messages straight to everyone.
pub const DIRECT_XY: Algorithm = Algorithm::of(&DIRECT_XY_ROW);
static DIRECT_XY_ROW: Synthesizer = in_queues(
    "direct-xy",
    "messages straight to every rank through link queues, a baseline (Won et al., section 8)",
    ALL_COLLECTIVES,
);

/// Messages from rank to next rank.
pub const RING_XY: Algorithm = Algorithm::of(&RING_XY_ROW);
static RING_XY_ROW: Synthesizer = in_queues(
    "ring-xy",
    "messages from each rank to the next through link queues, a baseline (Won et al., section 8)",
    SPREADING,
);

/// Chunks on shortest paths that are chosen as if links were never busy.
pub const TACCL_LIKE: Algorithm = Algorithm::of(&TACCL_LIKE_ROW);
static TACCL_LIKE_ROW: Synthesizer = Synthesizer {
    has_seed: true,
    construction: ConstructionUse::None,
    ..in_queues(
        "taccl-like",
        "each chunk on a tree of shortest paths of its own, through link queues, a baseline (Won et al., section 7)",
        ALL_COLLECTIVES,
    )
};

/// The row of one of them.
const fn in_queues(name: &'static str, help: &'static str, collectives: &'static [CollectiveKind]) -> Synthesizer {
    let row = Synthesizer::new(name, help, collectives, planned);
    let rival = Rival { place: 24, work: Scale::chunks_in_time, ..Rival::PAIRS };
    Synthesizer { limits: HeededLimits::StatedChunks, construction: ConstructionUse::Stated, rival: Some(rival), ..row }
}

/// Plans a collective by messages in queues.
///
/// * **In.** Any network; of grids whose `composition` is stated, ways go along it, else each is a shortest one,
///   through nodes of least number. Of `taccl-like` the seed: its trees take any of the shortest paths. Chunks for
///   each share as stated, else one. **Out.** Steps that begin together.
/// * **Errors.** [`SynthesisError`]: for `ring-xy` another collective than those where all get or give the same,
///   disconnected, too many hops, stopped.
/// * **Cost.** O(links of all ways · log of these).
fn planned(task: &Task<'_>) -> Result<Synthesized, SynthesisError> {
    let &Task { topology, request, stop, .. } = task;
    let Ran { unwound, phases, .. } = ran(topology, request, (0, Sums::Reversed), stop)?;
    let steps = write_sends(chunks_of(request), Pace::Barriers, &unwound, phases.into_iter())?;
    Ok(task.planned(Shape::Steps(steps)))
}

/// Time of a published baseline for a message of `size` bytes, in picoseconds: until the last chunk came to
/// the end of its way, one phase after the other.
///
/// Every message takes its whole way, also where it brings a rank a chunk again. A plan leaves these out, and may
/// take less. Where all ranks sum up a share, messages with parts of sums go the ways of copies, in the order of time: on
/// one-way links a schedule that is run backwards has other queues.
///
/// * **Source.** Won et al., figures 6 and 21, tables I and III, which it reproduces. **In.** A request for [`DIRECT_XY`]
///   or [`RING_XY`]; `alpha_ns`, what a message takes on each of its links out of a rank, in nanoseconds, during
///   which the link may send others.
/// * **Errors.** Those of a plan. **Cost.** That of a plan.
pub fn queued_time_ps(
    topology: &Topology,
    request: &SynthesisRequest,
    alpha_ns: u64,
    size_bytes: NonZeroU64,
    stop: &dyn Stop,
) -> Result<u64, SynthesisError> {
    let request = SynthesisRequest { size_bytes: Some(size_bytes), ..request.clone() };
    let Ran { clock, end, .. } = ran(topology, &request, (alpha_ns, Sums::InTime), stop)?;
    Ok(clock.picoseconds(end, size_bytes))
}

/// How a phase with sums is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sums {
    /// As copies from the end to the beginning, against the links, which makes a plan.
    Reversed,
    /// As messages in the order of time, where every rank sums up a share; of one root, as [`Self::Reversed`].
    InTime,
}

impl Sums {
    fn heading(self, action: Action, collective: Collective) -> Heading {
        let is_copied = action != Action::Reduce || self == Self::InTime && collective.root().is_none();
        if is_copied { Heading::Along } else { Heading::Against }
    }
}

/// What came of all messages.
struct Ran {
    unwound: Unwound,
    phases: Vec<(Action, Sends)>,
    clock: Clock,
    /// Ticks until the last message of each phase came to its end, one phase after the other.
    end: u64,
}

fn chunks_of(request: &SynthesisRequest) -> u64 {
    request.limits.chunks.map_or(1, NonZeroU64::get)
}

/// Runs the model; messages take `alpha_ns` more on links out of ranks.
fn ran(
    topology: &Topology,
    request: &SynthesisRequest,
    (alpha_ns, sums): (u64, Sums),
    stop: &dyn Stop,
) -> Result<Ran, SynthesisError> {
    let &SynthesisRequest { collective, ref shares, algorithm, size_bytes, seed, ref composition, .. } = request;
    require_reach(topology, collective, shares)?;
    let layout = ChunkLayout::new(collective, topology.rank_count(), chunks_of(request), shares)?;
    let physical = physical(topology, alpha_ns);
    let clock = Clock::for_chunks(&physical, layout.size(), size_bytes);
    let network = clock.network(&physical)?;
    let links: Vec<QueuedLink> = network.links().iter().map(queued_link).collect();
    let (layout, links, members) = (&layout, links.as_slice(), [].as_slice());
    let mut found = FirstArrivals::new(topology);
    let (mut phases, mut end) = (Vec::new(), 0_u64);
    for &action in phase_actions(collective.kind()).unwrap_or(&[Action::Copy]) {
        ask(stop)?;
        let heading = sums.heading(action, collective);
        let ways = Ways::new(topology, composition.as_ref(), heading);
        let is_gathered = action == Action::Reduce && heading == Heading::Along;
        let model =
            Model { topology, collective, shares, algorithm, seed, layout, links, members, weight: 1, is_gathered };
        let run = model.run(&ways, heading, stop)?;
        end = end.saturating_add(run.end(links));
        if sums == Sums::Reversed {
            phases.push((action, found.sends(&model, &run, heading)?));
        }
    }
    Ok(Ran { unwound: found.finish(), phases, clock, end })
}

/// With a queue before it.
const fn queued_link(link: &TimedLink) -> QueuedLink {
    QueuedLink { latency: link.latency, occupancy: link.occupancy, is_cut_through: false }
}

/// All links of a network, those of switches too, as if every node were a rank: for their times.
fn physical(topology: &Topology, alpha_ns: u64) -> Unwound {
    let rank = |node: NodeIndex| Rank::new(node.number());
    let alpha_at = |node: NodeIndex| if topology.rank_of(node).is_some() { alpha_ns } else { 0 };
    let links = (0..).map(LinkIndex::new).zip(topology.links()).map(|(index, link)| UnwoundLink {
        from: rank(link.from),
        to: rank(link.to),
        route: vec![index],
        capacity: link.capacity.bytes_per_sec(),
        parts: 1,
        latency_ns: link.latency.nanos().saturating_add(alpha_at(link.from)),
    });
    let node_count = u32::try_from(topology.nodes().len()).expect("nodes have indices of 32 bits");
    Unwound { rank_count: node_count, links: links.collect() }
}

/// What is run.
struct Model<'a> {
    topology: &'a Topology,
    collective: Collective,
    shares: &'a Shares,
    algorithm: Algorithm,
    seed: u64,
    layout: &'a ChunkLayout,
    /// By link of the network; none is cut through, which depends on the direction.
    links: &'a [QueuedLink],
    /// By rank of the collective, the one of the network; empty if they are the same.
    members: &'a [Rank],
    /// Of its messages.
    weight: u64,
    /// Whether sums are run in the order of time: parts go to whoever sums up.
    is_gathered: bool,
}

/// Messages, and what became of them.
struct Run {
    messages: Vec<Message>,
    /// By message, the chunk.
    chunks: Vec<u64>,
    /// By message and link of its way.
    starts: Vec<Vec<u64>>,
    /// Links of all ways.
    hops: u64,
}

impl Run {
    /// Messages in the making.
    const fn new() -> Self {
        Self { messages: Vec::new(), chunks: Vec::new(), starts: Vec::new(), hops: 0 }
    }

    /// Runs the messages on links of a network, which are cut through where they lead to switches.
    fn send(
        &mut self,
        topology: &Topology,
        links: &[QueuedLink],
        heading: Heading,
        stop: &dyn Stop,
    ) -> Result<(), SynthesisError> {
        let is_rank = |node: NodeIndex| topology.rank_of(node).is_some();
        let ends = topology.links().iter().map(|link| if heading == Heading::Along { link.to } else { link.from });
        let links = links.iter().zip(ends);
        let links: Vec<QueuedLink> =
            links.map(|(&link, end)| QueuedLink { is_cut_through: !is_rank(end), ..link }).collect();
        self.starts = queued(&links, &self.messages, stop).map_err(|error| match error {
            CopyError::Stopped => SynthesisError::Stopped,
            error => SynthesisError::Broken { what: format!("tacos: {error}") },
        })?;
        Ok(())
    }

    /// When the last message comes to its end.
    fn end(&self, links: &[QueuedLink]) -> u64 {
        let end = |(message, starts): (&Message, &Vec<u64>)| {
            let last = links[*message.path.last()? as usize].of_weight(message.weight)?;
            Some(starts.last()? + last.latency)
        };
        self.messages.iter().zip(&self.starts).filter_map(end).max().unwrap_or(0)
    }
}

impl Model<'_> {
    /// Sends all messages in a direction.
    fn run(&self, ways: &Ways<'_>, heading: Heading, stop: &dyn Stop) -> Result<Run, SynthesisError> {
        let mut run = Run::new();
        self.fill(&mut run, ways, heading, stop)?;
        run.send(self.topology, self.links, heading, stop)?;
        Ok(run)
    }

    /// Ranks of the collective.
    fn rank_count(&self) -> u32 {
        match self.members.len() {
            0 => self.topology.rank_count(),
            // They are ranks of the network.
            count => u32::try_from(count).unwrap_or(u32::MAX),
        }
    }

    /// Adds all messages of a phase.
    fn fill(&self, run: &mut Run, ways: &Ways<'_>, heading: Heading, stop: &dyn Stop) -> Result<(), SynthesisError> {
        if self.algorithm == RING_XY {
            self.add_rounds(run, ways, heading, stop)
        } else if self.algorithm == TACCL_LIKE {
            self.add_trees(run, heading, stop)
        } else {
            self.add_all(run, ways, stop)
        }
    }

    /// The rank of the network that a rank of the collective is.
    fn member(&self, rank: Rank) -> Rank {
        self.members.get(rank.index()).copied().unwrap_or(rank)
    }

    /// Every rank sends all that others are to have at once, by increasing destination.
    fn add_all(&self, run: &mut Run, ways: &Ways<'_>, stop: &dyn Stop) -> Result<(), SynthesisError> {
        let ranks = self.rank_count();
        let is_for_all = phase_actions(self.collective.kind()).is_some();
        let pairs = match self.collective.root() {
            Some(root) if is_for_all => {
                let others = (0..ranks).map(Rank::new).filter(|&rank| rank != root);
                others.map(|rank| if self.is_gathered { (rank, root) } else { (root, rank) }).collect()
            }
            None if is_for_all => {
                require_room(u64::from(ranks) * u64::from(ranks))?;
                let others = |source: u32| (0..ranks).filter(move |&rank| rank != source);
                let pairs = (0..ranks).flat_map(|source| others(source).map(move |rank| (source, rank)));
                pairs.map(|(source, rank)| (Rank::new(source), Rank::new(rank))).collect()
            }
            _ => pairs(self.collective, ranks, self.shares)?,
        };
        for (source, destinations) in pairs.chunk_by(|a, b| a.0 == b.0).map(|pairs| (pairs[0].0, pairs)) {
            ask(stop)?;
            let tree = ways.from(self.member(source));
            for &(_, destination) in destinations {
                let path = tree.to(self.member(destination))?;
                let owner = if self.is_gathered { destination } else { source };
                for chunk in self.layout.chunks_between(owner, destination) {
                    self.add(run, (path.clone(), None), chunk)?;
                }
            }
        }
        Ok(())
    }

    /// Every chunk goes down a tree of its own, or along a path, as short as if no link was ever busy.
    fn add_trees(&self, run: &mut Run, heading: Heading, stop: &dyn Stop) -> Result<(), SynthesisError> {
        let trees = ShortestTrees::new(self.topology, self.links, heading);
        let mut chance = Chance::new(self.seed);
        if phase_actions(self.collective.kind()).is_none() {
            let pairs = pairs(self.collective, self.topology.rank_count(), self.shares)?;
            for pairs in pairs.chunk_by(|a, b| a.0 == b.0) {
                ask(stop)?;
                let source = pairs[0].0;
                let tree = trees.from(source, &mut chance);
                for &(_, destination) in pairs {
                    let path = tree.path(destination)?;
                    for chunk in self.layout.chunks_between(source, destination) {
                        self.add(run, (path.clone(), None), chunk)?;
                    }
                }
            }
            return Ok(());
        }
        let mut bringers = vec![None; self.topology.rank_count() as usize];
        for owner in self.owners() {
            for chunk in self.layout.chunks_of(owner) {
                ask(stop)?;
                let tree = trees.from(owner, &mut chance);
                bringers[owner.index()] = None;
                for &rank in &tree.ranks {
                    let (parent, leg) = tree.leg(rank)?;
                    let number = u32::try_from(run.messages.len()).expect("there is room for fewer than 2³² hops");
                    self.add(run, (leg, bringers[parent.index()]), chunk)?;
                    bringers[rank.index()] = Some(number);
                }
            }
        }
        Ok(())
    }

    /// Whose chunks are spread.
    fn owners(&self) -> Vec<Rank> {
        match self.collective.kind() {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => self.collective.root().into_iter().collect(),
            _ => (0..self.rank_count()).map(Rank::new).collect(),
        }
    }

    /// Every rank sends what it has to the next, and what it gets; seen against the links, to the one before, so that sums
    /// go around the same way as data.
    fn add_rounds(
        &self,
        run: &mut Run,
        ways: &Ways<'_>,
        heading: Heading,
        stop: &dyn Stop,
    ) -> Result<(), SynthesisError> {
        let kind = self.collective.kind();
        if phase_actions(kind).is_none() {
            return Err(self.algorithm.unsupported(kind));
        }
        let ranks = self.rank_count();
        let next = |rank: Rank| match heading {
            Heading::Along => Rank::new((rank.number() + 1) % ranks),
            Heading::Against => Rank::new((rank.number() + ranks - 1) % ranks),
        };
        let mut paths = Vec::with_capacity(ranks as usize);
        for rank in (0..ranks).map(Rank::new) {
            ask(stop)?;
            paths.push(ways.from(self.member(rank)).to(self.member(next(rank)))?);
        }
        for owner in self.owners() {
            ask(stop)?;
            for chunk in self.layout.chunks_of(owner) {
                let mut after = None;
                // What a root sums up comes to it last.
                let first = if self.is_gathered { next(owner) } else { owner };
                let senders = std::iter::successors(Some(first), |&rank| Some(next(rank)));
                for sender in senders.take(ranks as usize - 1) {
                    let number = u32::try_from(run.messages.len()).expect("there is room for fewer than 2³² hops");
                    self.add(run, (paths[sender.index()].clone(), after), chunk)?;
                    after = Some(number);
                }
            }
        }
        Ok(())
    }

    /// Whether a rank has a chunk from the beginning, or sums it up in the end.
    fn has_it(&self, rank: Rank, chunk: u64) -> bool {
        match (self.collective.kind(), self.collective.root()) {
            (CollectiveKind::Scatter, Some(root)) => rank == root,
            _ => self.layout.share_of(chunk) == rank,
        }
    }

    fn add(&self, run: &mut Run, (path, after): (Vec<u32>, Option<u32>), chunk: u64) -> Result<(), SynthesisError> {
        run.hops = run.hops.saturating_add(path.len() as u64);
        require_room(run.hops)?;
        if u32::try_from(chunk).is_err() {
            return Err(SynthesisError::TooManyHops { needed: self.layout.total(), limit: HOPS_MAX });
        }
        run.messages.push(Message { path, after, weight: self.weight });
        run.chunks.push(chunk);
        Ok(())
    }
}
