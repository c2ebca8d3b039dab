//! Which plans a job wants, and on which nodes: the arguments that `prefetch` and `fetch` share.

use std::path::PathBuf;

use canopy_bundle::{Rules, Runtime, UnknownRuntime};
use canopy_plan::Format;
use canopy_proto::v1::{self, PlanRequest, PlanSpec};
use canopy_schedule::CollectiveKind;
use canopy_wire::format_on_the_wire;

use crate::args::{self, LimitArgs, MemoryArgs};
use crate::exit::Failure;
use crate::input;
use crate::known_faults::FaultArgs;
use crate::placement;
use crate::request;
use crate::runtime::RuntimeProfile;

/// The job and its plans.
#[derive(Debug, clap::Args)]
pub(super) struct WantedArgs {
    /// Generator expression or file: the network between exactly the nodes of the job
    #[arg(value_name = "T")]
    pub(super) topology: Option<String>,
    /// Id of the job
    #[arg(long, value_name = "J", value_parser = super::job_id)]
    pub(super) job: String,
    /// Nodes of the job as Slurm, Flux, PBS or LSF write them, such as gpu[001-016,020]; must fit T, or be machines of cluster T
    #[arg(long, value_name = "HOSTLIST", conflicts_with = "nodes_file")]
    nodes: Option<String>,
    /// File with the nodes of the job, one per line, such as $PBS_NODEFILE, or Flux's R; must fit T
    #[arg(long, value_name = "FILE")]
    nodes_file: Option<PathBuf>,
    /// Collectives to plan, separated by commas; at most the number of files that the runtime reads (msccl: 4)
    #[arg(long, short, value_name = "C,...", value_delimiter = ',', value_parser = args::collective_kind)]
    collective: Vec<CollectiveKind>,
    /// Root of those collectives that have one; rank 0 if not given
    #[arg(long, value_name = "RANK")]
    root: Option<u32>,
    /// Greatest message in bytes, such as 64MiB [default: the server's, 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes)]
    size: Option<u64>,
    /// Format of the files: msccl-xml, mscclpp-json or oneccl-xml [default: the one that the runtime reads]
    #[arg(long, short, value_name = "FORMAT")]
    format: Option<Format>,
    /// Runtime the files are for: msccl, msccl-executor, rccl-msccl, mscclpp-0.8, mscclpp-0.9, mscclpp-0.10 or oneccl [default: msccl,
    /// or the usual one of the format]
    #[arg(long, value_name = "P")]
    profile: Option<RuntimeProfile>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    pub(super) faults: FaultArgs,
}

/// What the arguments come to.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// T, as given.
    pub(super) topology: String,
    /// The nodes in the scheduler's order, where they are given.
    pub(super) nodes: Option<Vec<String>>,
    /// The runtime.
    pub(super) runtime: Runtime,
    /// What it reads.
    pub(super) format: Format,
    /// Number of ranks, where T was looked at.
    pub(super) rank_count: Option<u32>,
    /// Largest message in bytes, where it is given.
    pub(super) size_bytes_max: Option<u64>,
    /// One request per collective.
    pub(super) requests: Vec<(CollectiveKind, PlanRequest)>,
}

impl WantedArgs {
    /// Reads T and the nodes, compares them and writes the requests. Reads files and computes: call it on a thread.
    pub(super) fn resolve(&self, priority: v1::Priority, detached: bool) -> Result<Wanted, Failure> {
        let Some(topology) = &self.topology else {
            return Err(Failure::input("no topology is given")
                .help("add T, a generator expression or a file for exactly the nodes of the job"));
        };
        let (runtime, rules, format) = self.runtime()?;
        self.check_collectives(runtime, &rules)?;
        let nodes = input::nodes(self.nodes.as_deref(), self.nodes_file.as_deref())?;
        let mut source = request::topology(topology)?;
        let (placement, rank_count) = match (&nodes, &mut source.source) {
            (None, _) => (None, None),
            (Some(nodes), Some(v1::topology_source::Source::Cluster(part))) => {
                if !part.nodes.is_empty() {
                    let problem = format!("`{topology}` names machines, and --nodes does, too");
                    return Err(Failure::input(problem).help("name the cluster alone, such as clusters/prod"));
                }
                part.nodes.clone_from(nodes);
                (None, None)
            }
            (Some(nodes), _) => {
                let network = input::topology(topology)?;
                placement::check(&network, nodes).map_err(|error| Failure::input(error.to_string()))?;
                (Some(placement::on_nodes(&network, nodes)), Some(network.rank_count()))
            }
        };
        let (format_on_the_wire, profile) = (format_on_the_wire(format).into(), runtime.name().to_owned());
        let output = v1::OutputSpec { format: format_on_the_wire, profile: Some(profile), ..v1::OutputSpec::default() };
        let request = |&kind: &CollectiveKind| {
            let collective = request::collective_spec(kind, self.root.filter(|_| kind.has_root()));
            let spec = PlanSpec {
                size_bytes_max: self.size,
                in_place: self.memory.in_place(),
                placement: placement.clone(),
                fault_policy: self.faults.policy().into(),
                ..request::plan(source.clone(), collective, vec![output.clone()])
            };
            let spec = Some(self.limits.on(spec));
            (kind, PlanRequest { spec, priority: priority.into(), detached, ..PlanRequest::default() })
        };
        let requests = self.collective.iter().map(request).collect();
        let (topology, size_bytes_max) = (topology.clone(), self.size);
        Ok(Wanted { topology, nodes, runtime, format, rank_count, size_bytes_max, requests })
    }

    /// The runtime that is named, or the usual one of the format, its rules, and what it reads.
    fn runtime(&self) -> Result<(Runtime, Rules, Format), Failure> {
        let usual = RuntimeProfile::usual(self.format.unwrap_or(Format::MscclXml));
        let (Some(target), true) = (self.profile.or(usual), self.format != Some(Format::Json)) else {
            return Err(Failure::input("no runtime reads canopy's own format, so it is not handed over to a job")
                .help("name the format that the runtime reads, such as `--format mscclpp-json`; `canopy plan` writes json"));
        };
        let name = target.name();
        let runtime: Runtime = name.parse().map_err(|error: UnknownRuntime| Failure::fault(error.to_string()))?;
        let (Some(rules), Some(own)) = (runtime.rules(), target.format()) else {
            return Err(Failure::input(format!("{name} cannot load external plans")).help(
                "name a runtime that runs plans, or make advice for its tuner: `canopy plan bundle --profile nccl`",
            ));
        };
        match self.format.filter(|&format| format != own) {
            None => Ok((runtime, rules, own)),
            Some(other) => Err(Failure::input(format!("{name} reads {}, not {}", own.name(), other.name()))
                .help("leave --format out, or name another profile")),
        }
    }

    /// At least one, each once, each one that files can say, no more than the runtime reads.
    fn check_collectives(&self, runtime: Runtime, rules: &Rules) -> Result<(), Failure> {
        let given = &self.collective;
        if given.is_empty() {
            let names: Vec<&str> = CollectiveKind::ALL.iter().map(|kind| kind.name()).collect();
            return Err(Failure::input("no collective is given")
                .help(format!("add `--collective C,...` with any of {}", names.join(", "))));
        }
        if let Some(kind) = given.iter().enumerate().find_map(|(at, kind)| given[..at].contains(kind).then_some(kind)) {
            return Err(Failure::input(format!("{} is asked for twice", kind.name())).help("name each collective once"));
        }
        if let Some(kind) = given.iter().find(|&&kind| !runtime.names(kind)) {
            return Err(Failure::input(format!(
                "files for {runtime} have no word for {kind}, so it would never pick one"
            ))
            .help("leave it out, or name a runtime whose plans are registered: --profile mscclpp-0.10"));
        }
        if given.len() > rules.files_max {
            let (count, files_max) = (given.len(), rules.files_max);
            return Err(Failure::input(format!(
                "{count} collectives are asked for; {runtime} reads {files_max} files"
            ))
            .help("name the collectives that matter most"));
        }
        if self.root.is_some() && !given.iter().any(|kind| kind.has_root()) {
            return Err(Failure::input("--root is given, but none of the collectives has a root").help("leave it out"));
        }
        Ok(())
    }
}
