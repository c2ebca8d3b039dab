//! What explanations and drawings are made of: a plan that was judged, from a file, or made here for a network.

use std::path::Path;

use canopy_plan::{PlanFile, oneccl, read_plan, routes};
use canopy_planner::{Context, PlanError, Planner, Request, SchedulesInMemory, bound_with_nvls};
use canopy_schedule::{Bound, CollectiveKind, LinkLoads, Schedule, Shares, TransferGraph, Verdict, check, compile};
use canopy_synth::{Algorithm, Stop};
use canopy_topology::{Rate, Topology, TopologyLimits, generate};

use crate::args::CollectiveArgs;
use crate::around;
use crate::clock::Deadline;
use crate::exit::{Failure, words};
use crate::input::{self, PLAN_BYTES_MAX};
use crate::rule::{self, Rule};

/// Keys of generator expressions that break something.
const FAULT_KEYS: [&str; 4] = ["down=", "nodes-down=", "degrade=", "faults="];

/// A plan that is right, and what follows from it.
#[derive(Debug)]
pub(crate) struct Material {
    pub(crate) topology: Topology,
    pub(crate) schedule: Schedule,
    /// The upper bound follows from its certificate.
    pub(crate) bound: Bound,
    pub(crate) graph: TransferGraph,
    pub(crate) verdict: Verdict,
    pub(crate) loads: LinkLoads,
}

/// A plan that is right: with all its transfers, or by class.
#[derive(Debug)]
pub(crate) enum Judged {
    Listed(Box<Material>),
    Rule(Box<Rule>),
}

impl Judged {
    /// A plan in canopy's JSON.
    pub(crate) fn of_file(name: &str, bytes: &[u8]) -> Result<Self, Failure> {
        Self::of(read(name, bytes)?).map_err(|error| wrong_file(name, &error))
    }

    /// One that this program made.
    pub(crate) fn of_made(plan: PlanFile) -> Result<Self, Failure> {
        Self::of(plan).map_err(|error| wrong_plan(&error))
    }

    fn of(plan: PlanFile) -> Result<Self, String> {
        if rule::is_listed(&plan) {
            return Material::judged(plan).map(Box::new).map(Self::Listed);
        }
        Rule::judged(plan).map(Box::new).map(Self::Rule)
    }
}

/// What an argument names.
#[derive(Debug)]
pub(crate) enum Subject {
    Plan(Box<Material>),
    /// A plan by a rule of more ranks than trees can be written for.
    Rule(Box<Rule>),
    Network(Box<Topology>),
}

impl Subject {
    /// A plan file, or the one of a server that was `fetched`; else a network, with a plan made for it where a collective is
    /// given.
    pub(crate) fn of(
        text: &str,
        fetched: Option<Vec<u8>>,
        collective: &CollectiveArgs,
        deadline: Deadline,
    ) -> Result<Self, Failure> {
        if let Some(bytes) = fetched.map_or_else(|| plan_bytes(text), |bytes| Ok(Some(bytes)))? {
            if collective.collective.is_some() || collective.root.is_some() {
                return Err(Failure::input(format!("{text} is a plan, and says itself what it does"))
                    .help("leave out --collective and --root, or give a network"));
            }
            around::none_of_plan(text)?;
            return Judged::of_file(text, &bytes).map(Self::from);
        }
        let kind = collective.equal_kind();
        if let Ok(Some(kind)) = kind {
            let plan = made(text, kind, collective.root, Algorithm::Auto, deadline)?;
            return Judged::of_made(plan).map(Self::from);
        }
        let topology = input::topology_until(text, deadline)?;
        kind.map(|_| Self::Network(Box::new(topology)))
    }
}

impl From<Judged> for Subject {
    fn from(judged: Judged) -> Self {
        match judged {
            Judged::Listed(plan) => Self::Plan(plan),
            Judged::Rule(rule) => Self::Rule(rule),
        }
    }
}

/// The content of a file, if there is one and it says that it is a plan of canopy's own.
fn plan_bytes(text: &str) -> Result<Option<Vec<u8>>, Failure> {
    if text != input::STDIN && !Path::new(text).is_file() {
        return Ok(None);
    }
    let bytes = input::bytes(Path::new(text), PLAN_BYTES_MAX)?;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_of_canopy = || std::str::from_utf8(&bytes).is_ok_and(|text| oneccl::is_plan(text) || routes::is_plan(text));
    if first == Some(&b'<') && (bytes.windows(5).take(4096).any(|word| word == b"<algo") || is_of_canopy()) {
        return Err(Failure::input(format!(
            "{text} is a file of a runtime, which does not say which transfers on which network it is made from"
        ))
        .help("give the plan in canopy's JSON, as `canopy plan` writes it without --format"));
    }
    if first != Some(&b'{') {
        return Ok(None);
    }
    Ok(is_own_plan(&bytes).then_some(bytes))
}

/// Whether the bytes are an object that says it is a plan in canopy's JSON.
pub(crate) fn is_own_plan(bytes: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Head {
        kind: Option<String>,
    }
    serde_json::from_slice(bytes).is_ok_and(|head: Head| head.kind.as_deref() == Some("plan"))
}

impl Material {
    /// A plan in canopy's JSON, judged; one that is not listed is refused.
    pub(crate) fn of_file(name: &str, bytes: &[u8]) -> Result<Self, Failure> {
        let plan = read(name, bytes)?;
        rule::require_listed(name, &plan)?;
        Self::judged(plan).map_err(|error| wrong_file(name, &error))
    }

    /// Makes a plan, as a server would that was asked for nothing but the collective, in the labels of the network that is named.
    pub(crate) fn planned(
        name: &str,
        kind: CollectiveKind,
        root: Option<u32>,
        algorithm: Algorithm,
        deadline: Deadline,
    ) -> Result<Self, Failure> {
        let plan = made(name, kind, root, algorithm, deadline)?;
        rule::require_listed(name, &plan)?;
        Self::judged(plan).map_err(|error| wrong_plan(&error))
    }

    /// The rate that the bound is for: of a network whose switches multicast or add up, with their doing so.
    pub(crate) fn rate(&self) -> &Rate {
        self.verdict.in_network.as_ref().map_or(&self.verdict.algbw, |weighed| &weighed.algbw)
    }

    /// The bound if NVSwitches multicast and add up, where that is more than the plan's.
    ///
    /// # Errors
    /// As [`bound_with_nvls`].
    pub(crate) fn bound_with_nvls(&self, stop: &dyn Stop) -> Result<Option<Bound>, PlanError> {
        let shares = self.promised_shares();
        bound_with_nvls(&self.topology, self.schedule.collective, &shares, &self.bound, stop)
    }

    /// Shares as they were asked for: those of an allreduce say where sums are made, and promise nothing.
    pub(crate) fn promised_shares(&self) -> Shares {
        let is_equal = self.schedule.collective.kind() == CollectiveKind::Allreduce;
        if is_equal { Shares::Equal } else { self.schedule.shares.clone() }
    }

    /// Derives again whether a plan is right, how fast it is, and what bounds it; in words, why not.
    fn judged(plan: PlanFile) -> Result<Self, String> {
        let PlanFile { topology, schedule, bound, .. } = plan;
        let graph = compile(&topology, &schedule).map_err(|error| words(&error))?;
        let verdict = check(&topology, &graph).map_err(|error| words(&error))?;
        let bound = rule::proven(&topology, &schedule, bound, &verdict)?;
        let loads = LinkLoads::of(&topology, &graph).map_err(|error| words(&error))?;
        Ok(Self { topology, schedule, bound, graph, verdict, loads })
    }
}

/// A plan in canopy's JSON, as it is.
fn read(name: &str, bytes: &[u8]) -> Result<PlanFile, Failure> {
    read_plan(bytes, &input::plan_limits()?).map_err(|error| {
        let failure = Failure::input(format!("{name}: {}", words(&error)));
        error.field().into_iter().fold(failure, |failure, field| failure.note(format!("at {field}")))
    })
}

fn wrong_file(name: &str, error: &str) -> Failure {
    Failure::input(format!("{name} is not right: {error}"))
        .help(format!("list everything that is wrong with `canopy verify {name}`"))
}

fn wrong_plan(error: &str) -> Failure {
    Failure::fault(format!("the plan that was made is not right: {error}"))
}

/// Makes a plan.
fn made(
    name: &str,
    kind: CollectiveKind,
    root: Option<u32>,
    algorithm: Algorithm,
    deadline: Deadline,
) -> Result<PlanFile, Failure> {
    let request = Request {
        root,
        algorithm,
        // All else as `canopy plan` has it, so that both make one plan.
        faults: around::losses().to_vec(),
        ..Request::of(input::unread(name)?, kind)
    };
    let stop = || deadline.is_past();
    let planner = Planner::new(input::limits()?);
    let prepared = planner.prepare(&request, &stop).map_err(|error| input::refused(name, error))?;
    input::warn(name, &prepared.warnings);
    // With schedules that are kept, nodes are planned in canonical order: that makes the plan of `canopy plan`.
    let schedules = SchedulesInMemory::new(PLAN_BYTES_MAX as u64);
    let context = Context { stop: &stop, ..Context::new(&schedules) };
    let planned = planner.produce(&request, &prepared, context).map_err(|error| input::refused(name, error))?;
    Ok(planned.plan)
}

/// The network that an expression says is broken, as it was before; none where nothing is, or that is not known.
pub(crate) fn unbroken(topology: &Topology) -> Option<Topology> {
    let (family, arguments) = topology.name()?.split_once(':')?;
    let (faults, rest): (Vec<&str>, Vec<&str>) =
        arguments.split(',').partition(|argument| FAULT_KEYS.iter().any(|key| argument.trim().starts_with(key)));
    if faults.is_empty() {
        return None;
    }
    generate(&format!("{family}:{}", rest.join(",")), &TopologyLimits::STANDARD).ok()
}
