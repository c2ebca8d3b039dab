//! The common rate of a job's groups on what faults have left of a network.

use std::time::Instant;

use canopy_planner::PlanError;
use canopy_proto::v1;
use canopy_schedule::CollectiveKind;
use canopy_topology::{NodeKind, Rank, Topology, Transit, to_yaml};
use canopy_training::job::{
    BestOrder, Comparison, Job, JobError, JobRates, Order, Patience, RatesError, RunningJob, best_order, comparison,
    job_rates_for, left_beside,
};
use canopy_wire as wire;
use canopy_wire::{RequestError, SIZE_BYTES_MAX_DEFAULT, StatedRunning};

use super::asked::Asked;
use crate::clock;
use crate::failure::{CallFailure, GroupsFailure, PlanFailure};
use crate::jobs::computing::Seat;
use crate::rpc::services::planner::PlannerService;
use crate::rpc::shared::known_faults::AppliedFaults;

/// The network of a job after the faults that are known.
pub(super) struct Network {
    /// As its caller stated it, with these faults.
    source: Option<v1::TopologySource>,
    topology: Topology,
    /// The groups on its ranks before faults.
    job: Job,
    survivors: Vec<Rank>,
    applied: AppliedFaults,
}

/// What was found of a job.
pub(super) struct Solved {
    /// The network after faults.
    pub(super) topology: Topology,
    /// The groups on it.
    pub(super) job: Job,
    /// By rank of the network after faults, its number before.
    pub(super) survivors: Vec<Rank>,
    /// Ranks of the network before faults.
    pub(super) rank_count: u32,
    pub(super) rates: JobRates,
    /// Orders of the layout's dimensions, where others were looked at.
    pub(super) orders: Option<Orders>,
    /// Known faults that were applied.
    pub(super) applied: AppliedFaults,
}

/// Orders that were looked at.
pub(super) struct Orders {
    pub(super) orders: Vec<Order>,
    /// The position of the best.
    pub(super) best: usize,
    /// By rank of the layout, that of the network, where another order is the best.
    pub(super) places: Vec<u32>,
}

/// Whether nobody waits any more.
type Gone<'a> = &'a (dyn Fn() -> bool + Sync);

impl Network {
    /// Reads it, with the faults that are known now.
    pub(super) fn read(service: &PlannerService, asked: &Asked, gone: Gone<'_>) -> Result<Self, CallFailure> {
        let resolver = service.resolver();
        let (topology, fault_policy) = (asked.topology.clone(), asked.fault_policy);
        let mut all = v1::PlanSpec { topology, fault_policy, ..v1::PlanSpec::default() };
        let applied = resolver.complete(&mut all, gone)?;
        let source = all.topology;
        let (topology, faults) = canopy_service::read_punctured(source.clone(), &resolver.limits.searched(), gone)?;
        let rank_count = topology.rank_count();
        let job = asked.stated.on(rank_count).map_err(unplaced)?;
        let unmeant = |error| CallFailure::from(PlanFailure::from(PlanError::Fault(error)));
        let (topology, survivors) = match faults.is_empty() {
            true => (topology, (0..rank_count).map(Rank::new).collect()),
            false => topology.puncture(&faults).map(|left| (left.topology, left.survivors)).map_err(unmeant)?,
        };
        Ok(Self { source, topology, job, survivors, applied })
    }

    /// The same with what running jobs leave of its links.
    fn beside(self, running: &[StatedRunning], patience: Patience<'_>) -> Result<Self, CallFailure> {
        let Self { source, mut topology, job, survivors, applied } = self;
        for (position, StatedRunning { stated, seconds }) in running.iter().enumerate() {
            let within = |error: JobError| {
                let error = Box::new(RequestError::from(error));
                CallFailure::from(PlanFailure::Request(RequestError::Running { position, error }))
            };
            let placed = stated.on(job.rank_count).and_then(|job| job.left_on(&survivors)).map_err(within)?;
            let running = RunningJob { job: placed, transit: stated.transit, seconds: seconds.clone() };
            let left = left_beside(&topology, &running, patience);
            topology = left.map_err(|error| GroupsFailure::Running { position, error })?;
        }
        Ok(Self { source, topology, job, survivors, applied })
    }

    /// As its caller stated it, with the faults that are known.
    pub(super) const fn source(&self) -> Option<&v1::TopologySource> {
        self.source.as_ref()
    }
}

/// Finds the greatest common rate of all groups; from `enough` on, the best so far is taken.
pub(super) fn solved(network: Network, asked: &Asked, enough: Instant, seat: &Seat) -> Result<Solved, CallFailure> {
    let is_enough = || clock::now() >= enough;
    let patience = Patience { enough: &is_enough, stop: seat, room: seat };
    let Network { topology, job, survivors, applied, .. } = network.beside(&asked.running, patience)?;
    let rank_count = job.rank_count;
    let job = job.left_on(&survivors).map_err(unplaced)?;
    let (job, rates, orders) = found(asked, (&topology, &survivors), job, patience).map_err(failed)?;
    Ok(Solved { topology, job, survivors, rank_count, rates, orders, applied })
}

/// The groups in the order that is asked for, what they reach, and the orders that were looked at.
fn found(
    asked: &Asked,
    (topology, survivors): (&Topology, &[Rank]),
    job: Job,
    patience: Patience<'_>,
) -> Result<(Job, JobRates, Option<Orders>), RatesError> {
    let terms = (asked.objective, asked.transit());
    if !asked.reorders {
        let rates = job_rates_for(topology, &job, terms.0, terms.1, patience)?;
        return Ok((job, rates, None));
    }
    let BestOrder { job, rates, orders, best } =
        best_order(topology, (&asked.stated.layout, &asked.stated.job.classes, survivors), terms, patience)?;
    let taken = orders.get(best).filter(|_| best > 0);
    let places = taken.map(|order| asked.stated.layout.places_in(&order.layout)).unwrap_or_default();
    Ok((job, rates, Some(Orders { orders, best, places })))
}

/// The algorithm whose plans have the best rate: shares are for rates, so no other one needs to be simulated at the
/// size.
const fn of_rates(kind: CollectiveKind) -> &'static str {
    match kind {
        CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::AllToAll => "flow",
        _ => "forest",
    }
}

/// Groups that cannot be on this network.
fn unplaced(error: JobError) -> CallFailure {
    PlanFailure::Request(error.into()).into()
}

fn failed(error: RatesError) -> CallFailure {
    GroupsFailure::from(error).into()
}

impl Solved {
    /// What the groups reach otherwise.
    pub(super) fn compared(&self, transit: Transit, enough: Instant, seat: &Seat) -> Result<Comparison, CallFailure> {
        let is_enough = || clock::now() >= enough;
        let patience = Patience { enough: &is_enough, stop: seat, room: seat };
        comparison(&self.topology, &self.job, transit, patience).map_err(failed)
    }

    /// The request for the plan of a group, alone on the network of its shares.
    pub(super) fn request(&self, asked: &Asked, group: usize) -> Result<v1::PlanSpec, CallFailure> {
        let share = self.rates.share_of(&self.topology, &self.job, group).map_err(GroupsFailure::from)?;
        let other = share.topology.nodes().iter().find(|node| node.kind == NodeKind::Forwarder);
        if let Some(node) = other.filter(|_| asked.is_for_runtimes()) {
            let group = self.job.groups.get(group).map(|group| group.name.clone()).unwrap_or_default();
            return Err(GroupsFailure::Forwards { group, node: node.id.clone() }.into());
        }
        let document = v1::TopologyDocument { content: to_yaml(&share.topology).into(), ..Default::default() };
        let source = v1::topology_source::Source::Document(document);
        let (collective, size_bytes) = self
            .job
            .groups
            .get(group)
            .map(|group| (group.collective, group.size_bytes.get()))
            .ok_or_else(|| CallFailure::Broken { what: format!("the job has no group {group}") })?;
        let is_large = size_bytes > SIZE_BYTES_MAX_DEFAULT;
        Ok(v1::PlanSpec {
            collective: Some(v1::CollectiveSpec {
                kind: wire::collective_on_the_wire(collective.kind()).into(),
                root: collective.root().map(Rank::number),
            }),
            size_bytes_max: is_large.then_some(size_bytes),
            algorithm: is_large.then(|| of_rates(collective.kind()).to_owned()),
            // Those that are known are applied: shares are of what is left.
            fault_policy: v1::FaultPolicy::Ignore.into(),
            ..asked.request(v1::TopologySource { source: Some(source) }, of_rates(collective.kind()) == "forest")
        })
    }
}
