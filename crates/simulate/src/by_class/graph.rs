//! Transfers that stand for those of a class, as a graph over a few links.

use std::collections::HashMap;

use canopy_schedule::{
    Action, Batch, Carrier, Collective, CollectiveKind, Pace, RouteInterner, Shares, Transfer, TransferGraph,
};
use canopy_topology::{Capacity, Latency, LinkIndex, Rank, Topology, TopologyDraft, TopologyLimits};

use super::Representative;
use crate::options::SimulateError;
use crate::workload::number_of;

/// A link that stands for one of the network, or for a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) capacity: u64,
    pub(super) latency: Latency,
    pub(super) link: LinkIndex,
}

/// A transfer of an allgather; of a reduce-scatter, it goes the other way round.
#[derive(Clone, Debug)]
pub(super) struct Copied {
    /// The step that it is of; a transfer's is not below that of one it waits for.
    pub(super) step: u32,
    /// Chunks that it carries.
    pub(super) chunks: u64,
    /// Chunks whose size says in how many pieces it is cut.
    pub(super) piece_chunks: u64,
    /// Whose own share it carries, if it does: what all phases before bring there is needed.
    pub(super) owner: Option<u32>,
    /// Transfers before it that bring what it carries.
    pub(super) waits: Vec<u32>,
    /// Lanes that it takes, and that it takes backwards.
    pub(super) route: Vec<usize>,
    pub(super) backwards: Vec<usize>,
    /// Ranks that do the like.
    pub(super) ends: (Rank, Rank),
}

/// What is simulated for one class.
pub(super) fn representative(
    class: usize,
    copied: &[Copied],
    lanes: &[Lane],
    actions: &[Action],
) -> Result<Representative, SimulateError> {
    let mut writer = Writer::default();
    for &action in actions {
        writer.phase(copied, action);
    }
    let Writer { batches, transfers, carriers, dependencies, routes, steps, ends, .. } = writer;
    let topology = network(lanes)?;
    let rank_count = topology.rank_count();
    let collective = Collective::new(CollectiveKind::Allgather, None, rank_count);
    let graph = TransferGraph {
        collective: collective.map_err(|_| SimulateError::Rule { what: "has no collective" })?,
        rank_count,
        chunks_per_share: 1,
        shares: Shares::Equal,
        routes: routes.finish(),
        carriers,
        dependencies,
        batches,
        transfers,
        steps: Vec::new(),
        pace: Pace::InTurn,
    };
    Ok(Representative { class, topology, graph, steps, links: lanes.iter().map(|lane| lane.link).collect(), ends })
}

#[derive(Default)]
struct Writer {
    batches: Vec<Batch>,
    transfers: Vec<Transfer>,
    carriers: Vec<Carrier>,
    dependencies: Vec<u32>,
    routes: RouteInterner,
    steps: Vec<u32>,
    ends: Vec<(Rank, Rank)>,
    /// Where equal dependencies are.
    known: HashMap<Vec<u32>, std::ops::Range<u32>>,
    /// By owner: transfers of the phases before that bring its share, all of them summed up.
    finals: HashMap<u32, Vec<u32>>,
    steps_before: u32,
}

impl Writer {
    fn phase(&mut self, copied: &[Copied], action: Action) {
        let (first, count) = (number_of(self.transfers.len()), number_of(copied.len()));
        let steps = copied.iter().map(|one| one.step).max().map_or(0, |step| step + 1);
        match action {
            Action::Copy => {
                for one in copied {
                    let mut waits: Vec<u32> = one.waits.iter().map(|&before| first + before).collect();
                    if let Some(finals) = one.owner.and_then(|owner| self.finals.get(&owner)) {
                        waits.extend_from_slice(finals);
                    }
                    self.add(one, action, self.steps_before + one.step, waits);
                }
            }
            Action::Reduce => {
                // The last first, and what waited is waited for.
                let at = |number: u32| first + count - 1 - number;
                let mut waits: Vec<Vec<u32>> = vec![Vec::new(); copied.len()];
                for (number, one) in (0..).zip(copied) {
                    one.waits.iter().for_each(|&before| waits[before as usize].push(at(number)));
                }
                let mut finals: HashMap<u32, Vec<u32>> = HashMap::new();
                for (number, one) in (0..count).zip(copied).rev() {
                    let waits = std::mem::take(&mut waits[number as usize]);
                    self.add(one, action, self.steps_before + steps - 1 - one.step, waits);
                    if let Some(owner) = one.owner {
                        finals.entry(owner).or_default().push(at(number));
                    }
                }
                self.finals = finals;
            }
        }
        self.steps_before += steps;
    }

    fn add(&mut self, one: &Copied, action: Action, step: u32, mut waits: Vec<u32>) {
        let number = number_of(self.transfers.len());
        waits.sort_unstable();
        waits.dedup();
        let dependencies = match self.known.get(&waits) {
            Some(known) => known.clone(),
            None => {
                let start = number_of(self.dependencies.len());
                self.dependencies.extend_from_slice(&waits);
                let range = start..number_of(self.dependencies.len());
                self.known.insert(waits, range.clone());
                range
            }
        };
        let (lanes, ends) = match action {
            Action::Copy => (&one.route, one.ends),
            Action::Reduce => (&one.backwards, (one.ends.1, one.ends.0)),
        };
        let links: Vec<LinkIndex> = lanes.iter().map(|&lane| LinkIndex::new(number_of(lane))).collect();
        let carrier = number_of(self.carriers.len());
        self.carriers.push(Carrier { route: self.routes.intern(&links), chunk_count: one.chunks });
        let root = Rank::new(0);
        self.transfers.push(Transfer { from: root, to: root, carriers: carrier..carrier + 1, dependencies });
        let chunk_count = one.piece_chunks;
        self.batches.push(Batch { action, root, chunk_first: 0, chunk_count, transfers: number..number + 1 });
        self.steps.push(step);
        self.ends.push(ends);
    }
}

/// A network that has these links in their order, whatever its nodes.
fn network(lanes: &[Lane]) -> Result<Topology, SimulateError> {
    let wrong = SimulateError::Rule { what: "has too many kinds of links" };
    let count = lanes.len().max(2);
    let mut draft = TopologyDraft::default();
    let name = |number: usize| format!("n{number:06}");
    (0..count).for_each(|number| draft.add_compute(name(number)));
    let usual = Lane { capacity: 1, latency: Latency::default(), link: LinkIndex::new(0) };
    for number in 0..count {
        let lane = lanes.get(number).copied().unwrap_or(usual);
        let capacity = Capacity::from_bytes_per_sec(lane.capacity.max(1)).ok_or(wrong.clone())?;
        draft.add_link(name(number), name((number + 1) % count), capacity, lane.latency);
    }
    draft.build(&TopologyLimits::STANDARD).map_err(|_| wrong)
}
