//! The network of a stream after the faults that are known now, and the plans of its matrices.

use canopy_access::Quota;
use canopy_moving::{Matrix, Network, NetworkError, PlanError, State, check, plan, plan_at_ends};
use canopy_planner::PlanError as PlanningError;
use canopy_proto::v1::plan_moving_event::Event;
use canopy_proto::v1::{ErrorStatus, MovingMatrix, MovingNetwork, MovingRefusal, PlanSpec, TopologySource};
use canopy_topology::TopologyLimits;

use super::describe;
use crate::call;
use crate::failure::{CallFailure, MovingFailure, PlanFailure};
use crate::rpc::services::planner::PlannerService;
use crate::rpc::shared::known_faults::AppliedFaults;
use crate::rpc::shared::parts::Parts;
use crate::rpc::shared::resolve::Resolver;
use crate::rpc::shared::sources::{self, Gone};
use crate::rpc::shared::status::call_error;

/// What a stream plans with.
pub(super) struct Planning {
    resolver: Resolver,
    /// The network as its caller stated it, with texts in place of names, and what becomes of known faults.
    stated: PlanSpec,
    /// What was known of faults when the network was last looked at.
    seen: Option<u64>,
    /// The network with the faults that are known.
    source: Option<TopologySource>,
    applied: AppliedFaults,
    ranks: u32,
    network: Result<Network, ErrorStatus>,
    any_routes: bool,
    /// What the last plan left for the next one.
    state: Option<State>,
}

impl Planning {
    /// Reads the network, which must be one of two tiers.
    pub(super) fn open(service: &PlannerService, asked: MovingNetwork, gone: Gone<'_>) -> Result<Self, CallFailure> {
        let resolver = service.resolver().clone();
        let topology = sources::resolve(&resolver.networks, asked.topology, &resolver.limits, gone)?;
        let stated = PlanSpec { topology, fault_policy: asked.fault_policy, ..PlanSpec::default() };
        let seen = Some(resolver.replanner.fault_logs().changes());
        let (source, applied) = with_faults(&resolver, &stated, gone)?;
        let (ranks, network) = recognised(source.clone(), &resolver.limits, gone)?;
        Ok(Self {
            resolver,
            stated,
            seen,
            source,
            applied,
            ranks,
            network: Ok(network),
            any_routes: asked.any_routes,
            state: None,
        })
    }

    /// Ranks of the network before faults.
    pub(super) const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// What was found of the network.
    pub(super) fn tiers(&self) -> Result<Parts, CallFailure> {
        let network = self.network.as_ref();
        let network = network.map_err(|error| CallFailure::Broken { what: error.message.clone() })?;
        Ok(describe::event(Event::Tiers(describe::tiers(network, &self.applied))))
    }

    /// What is to be sent for a matrix: the network, if faults have changed it, and the plan or why there is none.
    ///
    /// # Errors
    /// What ends the stream: a bug.
    pub(super) fn next(
        &mut self,
        matrix: MovingMatrix,
        skipped: u64,
        gone: Gone<'_>,
    ) -> Result<Vec<Parts>, CallFailure> {
        let mut events = Vec::new();
        if self.look_again(gone) && self.network.is_ok() {
            events.push(self.tiers()?);
        }
        let number = matrix.number;
        let may_plan = call::bill().map_or(Ok(()), |bill| bill.require(Quota::PlanningSecondsPerHour));
        let planned = match (may_plan, &self.network) {
            (Err(over), _) => Err(call_error(&PlanFailure::from(over).into())),
            (Ok(()), Err(error)) => Err(error.clone()),
            (Ok(()), Ok(_)) => match self.plan(matrix, skipped) {
                Err(failure @ CallFailure::Broken { .. }) => return Err(failure),
                planned => planned.map_err(|failure| call_error(&failure)),
            },
        };
        events.push(
            planned
                .unwrap_or_else(|error| describe::event(Event::Refusal(MovingRefusal { number, error: Some(error) }))),
        );
        Ok(events)
    }

    /// Looks at the network again if other faults are known than before; whether it is another one.
    fn look_again(&mut self, gone: Gone<'_>) -> bool {
        let changes = self.resolver.replanner.fault_logs().changes();
        if self.seen.replace(changes) == Some(changes) {
            return false;
        }
        let source = match with_faults(&self.resolver, &self.stated, gone) {
            Ok((source, _)) if source == self.source && self.network.is_ok() => return false,
            Ok((source, applied)) => {
                self.applied = applied;
                source
            }
            Err(failure) => {
                // Looked at again for the next matrix.
                (self.seen, self.network) = (None, Err(call_error(&failure)));
                return false;
            }
        };
        self.state = None;
        self.source.clone_from(&source);
        let found = recognised(source, &self.resolver.limits, gone);
        self.network = found.map(|(_, network)| network).map_err(|failure| call_error(&failure));
        true
    }

    fn plan(&mut self, matrix: MovingMatrix, skipped: u64) -> Result<Parts, CallFailure> {
        let Ok(network) = &self.network else {
            return Err(CallFailure::Broken { what: "a network that was refused is planned on".to_owned() });
        };
        let MovingMatrix { number, bytes } = matrix;
        let matrix = traffic(network, self.ranks, bytes)?;
        let find = if self.any_routes { plan } else { plan_at_ends };
        let planned = find(&network.tiers, &matrix, self.state.as_ref()).map_err(no_way)?;
        let broken = |what: String| CallFailure::Broken { what };
        // Nothing is sent but what the checker accepts, and its time is the one that is stated.
        let checked = check(&network.tiers, &matrix, &planned.parts);
        let checked = checked.map_err(|error| broken(format!("a plan is wrong: {error}")))?;
        // The planner's prices count by what they add up to.
        let least = planned.prices.least_time(&network.tiers, &matrix);
        let least = least.map_err(|error| broken(format!("no bound: {error}")))?;
        if checked.time < least {
            return Err(broken("a plan beats its bound".to_owned()));
        }
        self.state = Some(planned.state);
        let plan = describe::plan((number, skipped), &planned.parts, (checked.time, least));
        Ok(describe::event(Event::Plan(plan)))
    }
}

/// The network with the faults that are known of it, and what is said of them.
fn with_faults(
    resolver: &Resolver,
    stated: &PlanSpec,
    gone: Gone<'_>,
) -> Result<(Option<TopologySource>, AppliedFaults), CallFailure> {
    let mut all = stated.clone();
    let applied = resolver.complete(&mut all, gone)?;
    Ok((all.topology, applied))
}

/// The two tiers of a network after faults, and its ranks before.
fn recognised(
    source: Option<TopologySource>,
    limits: &TopologyLimits,
    gone: Gone<'_>,
) -> Result<(u32, Network), CallFailure> {
    let (healthy, faults) = canopy_service::read_punctured(source, &limits.searched(), gone)?;
    let unfit = |error| match error {
        NetworkError::Fault(error) => CallFailure::from(PlanFailure::from(PlanningError::Fault(error))),
        error => MovingFailure::from(error).into(),
    };
    Ok((healthy.rank_count(), Network::recognise(&healthy, &faults).map_err(unfit)?))
}

/// The matrix, if it can be sent.
fn traffic(network: &Network, ranks: u32, bytes: Vec<u64>) -> Result<Matrix, MovingFailure> {
    let matrix = Matrix::new(ranks, bytes)?;
    for rank in 0..matrix.ranks() {
        if matrix.row(rank).get(rank).is_some_and(|&bytes| bytes > 0) {
            return Err(MovingFailure::Itself { rank });
        }
    }
    for &rank in &network.lost {
        let of = rank as usize;
        let sends = matrix.row(of).iter().any(|&bytes| bytes > 0);
        let receives = || (0..matrix.ranks()).any(|from| matrix.row(from).get(of).is_some_and(|&bytes| bytes > 0));
        if sends || receives() {
            return Err(MovingFailure::Lost { rank });
        }
    }
    Ok(matrix)
}

fn no_way(error: PlanError) -> CallFailure {
    match error {
        PlanError::NoRail { .. } | PlanError::NoWay { .. } | PlanError::DeadPair { .. } => {
            MovingFailure::NoWay(error).into()
        }
        PlanError::Ranks { .. } => CallFailure::Broken { what: error.to_string() },
    }
}
