//! The subject of a report or a clear, and where its elements are recorded.

use std::collections::{BTreeSet, HashSet};

use canopy_faults::{Directory, Event, Remaining, Target};
use canopy_planner::{PlanKey, chain};
use canopy_proto::v1::TopologySource;
use canopy_topology::TopologyLimits;

use crate::failure::{CallFailure, shown};
use crate::replan::{Audience, FaultLogs, Lease, Network, Replanner, Scope, entry_by_host};
use crate::rpc::shared::sources::read_base;
use crate::store::topologies::id_of;
use crate::tenant::Viewer;

/// Elements that are written to the audit log: as many as a line has room for.
const OBJECT_ELEMENTS_MAX: usize = 20;

/// Networks or machines that elements are named of.
pub(super) enum Subject {
    /// A topology by itself.
    Topology(Network),
    /// The networks that the leases of a job are on, at least one, each once.
    Job(Vec<Network>),
    /// Machines by their names.
    Machines,
}

impl Subject {
    /// Reads what is named: at most one of the two.
    pub(super) fn of(
        replanner: &Replanner,
        viewer: &Viewer,
        (topology, job): (Option<TopologySource>, &str),
        limits: &TopologyLimits,
    ) -> Result<Self, CallFailure> {
        match (topology, job) {
            (None, "") => Ok(Self::Machines),
            (Some(topology), "") => {
                // One that says nothing is refused as missing.
                let topology = Some(topology).filter(|topology| topology.source.is_some());
                let (key, base) = read_base(replanner.bases(), topology, limits)?;
                Ok(Self::Topology(Network::new(key, base, None, audience(viewer))))
            }
            (None, job) => Self::of_job(replanner, viewer, job),
            (Some(_), _) => {
                let problem = "`topology` is given as well; set exactly one".to_owned();
                Err(CallFailure::Faults { field: "job", problem })
            }
        }
    }

    fn of_job(replanner: &Replanner, viewer: &Viewer, job: &str) -> Result<Self, CallFailure> {
        let is_its = |lease: &Lease| lease.terms.job == job && viewer.sees(&lease.terms.tenant);
        let mut leases = replanner.leases().select(is_its);
        let others = leases.first().and_then(|lease| lease.terms.owner.clone());
        // Monitors of all tenants' machines act for none.
        leases.retain(|lease| viewer.name().is_empty() || viewer.owns(lease.terms.owner.as_deref()));
        if let Some(owner) = others.filter(|_| leases.is_empty()) {
            return Err(CallFailure::NotOwner { what: format!("job `{}`", shown(job)), owner });
        }
        let (mut seen, mut networks) = (HashSet::<(PlanKey, Option<PlanKey>)>::new(), Vec::new());
        for lease in leases {
            let Some(key) = lease.base() else { continue };
            for item in &lease.terms.items {
                let placed = replanner.leases().placed(&key, &item.original_key());
                if !seen.insert((key, placed.as_ref().map(|placed| *placed.digest()))) {
                    continue;
                }
                if let Some(base) = replanner.bases().get(&key)? {
                    networks.push(Network::new(key, base, placed.as_ref(), audience(viewer)));
                }
            }
        }
        match networks.is_empty() {
            true => Err(CallFailure::JobUnknown { job: shown(job) }),
            false => Ok(Self::Job(networks)),
        }
    }

    fn networks(&self) -> &[Network] {
        match self {
            Self::Topology(network) => std::slice::from_ref(network),
            Self::Job(networks) => networks,
            Self::Machines => &[],
        }
    }

    /// `topologies/…`, where it is one.
    pub(super) fn topology(&self) -> String {
        let keys: BTreeSet<PlanKey> = self.networks().iter().map(|network| network.key).collect();
        match (keys.first(), keys.len()) {
            (Some(key), 1) => id_of(key),
            _ => String::new(),
        }
    }

    /// What a change of these elements is about, for the audit log; `None` stands for all elements.
    pub(super) fn object<'a>(&self, job: &str, elements: impl Iterator<Item = Option<&'a Target>>) -> String {
        let of = match self {
            Self::Topology(_) => self.topology(),
            Self::Job(_) => job.to_owned(),
            Self::Machines => "machines".to_owned(),
        };
        let names =
            elements.take(OBJECT_ELEMENTS_MAX).map(|element| element.map_or("all".to_owned(), Target::to_string));
        let names: BTreeSet<String> = names.collect();
        format!("{of}: {}", names.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// Names to enter elements by.
    pub(super) fn entries(&self) -> Entries<'_> {
        let directories = self.networks().iter().map(|network| (network, Directory::new(network.base.topology())));
        Entries { directories: directories.collect() }
    }

    /// All scopes in which its elements may be.
    pub(super) fn scopes(&self) -> BTreeSet<Scope> {
        let of_network = |network: &Network| {
            let machines: Vec<Scope> = network.machines().map(|name| Scope::Host(name.to_owned())).collect();
            machines.into_iter().chain([network.own_scope()])
        };
        self.networks().iter().flat_map(of_network).collect()
    }

    /// Elements that count as broken or slow in it; on machines, in the scopes that were named.
    pub(super) fn active(&self, viewer: &Viewer, fault_logs: &FaultLogs, named: &[Scope]) -> usize {
        if matches!(self, Self::Machines) {
            let hosts: BTreeSet<&str> = named.iter().filter_map(Scope::host).collect();
            let counts = hosts.into_iter().flat_map(|name| fault_logs.of_host(name, &audience(viewer)));
            return counts.map(|count| count.losses.len()).sum();
        }
        let mut targets = HashSet::new();
        for network in self.networks() {
            let count = network.count(fault_logs);
            targets.extend(count.losses.iter().map(|loss| (network.key, loss.target.clone())));
        }
        targets.len()
    }

    /// Leases that names of the topology do not concern.
    pub(super) fn placed_leases(&self, replanner: &Replanner) -> usize {
        match self {
            Self::Topology(network) => replanner.placed_on(&network.key, &network.base),
            Self::Job(_) | Self::Machines => 0,
        }
    }
}

/// Whose reports count for a caller: all of them, if it acts for no tenant.
pub(super) fn audience(viewer: &Viewer) -> Audience {
    match viewer.name() {
        "" => Audience::Everyone,
        _ => Audience::of_call(),
    }
}

/// Where elements are entered by their names in the networks of a subject.
pub(super) struct Entries<'a> {
    directories: Vec<(&'a Network, Directory<'a>)>,
}

impl Entries<'_> {
    /// The scopes that an element has in them, each with its name there; or why it means nothing in the first of them.
    pub(super) fn of(&self, target: &Target, remaining: Remaining) -> Result<BTreeSet<(Scope, Target)>, String> {
        if self.directories.is_empty() {
            let target = target.clone().checked().map_err(|error| chain(&error))?;
            let entry = entry_by_host(&target).ok_or_else(|| {
                format!(
                    "{target} does not name an element of a machine; write host:NAME, gpu:HOST:INDEX or nic:HOST:INDEX, or name the topology or the job"
                )
            })?;
            return Ok(BTreeSet::from([(entry, target)]));
        }
        let (mut found, mut problem) = (BTreeSet::new(), None);
        for (network, directory) in &self.directories {
            match network.entry(directory, target, remaining) {
                Ok(entry) => {
                    found.insert(entry);
                }
                Err(error) => {
                    problem.get_or_insert_with(|| chain(&error));
                }
            }
        }
        match problem.filter(|_| found.is_empty()) {
            Some(problem) => Err(problem),
            None => Ok(found),
        }
    }

    /// The same of an event; what is left counts for nothing where it is cleared.
    pub(super) fn of_event(&self, event: &Event) -> Result<Vec<(Scope, Event)>, String> {
        let remaining = if event.cleared { Remaining::GONE } else { event.remaining };
        let entries = self.of(&event.target, remaining)?;
        Ok(entries.into_iter().map(|(scope, target)| (scope, Event { target, ..event.clone() })).collect())
    }
}
