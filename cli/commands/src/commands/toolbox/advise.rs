//! `canopy tools advise`: which of its own algorithms a stock runtime should take on a network, as the table that it reads.

mod mpi;
mod nccl;

use std::time::Duration;

use canopy_schedule::CollectiveKind;
use canopy_stock::nccl::Version;
use canopy_topology::Topology;
use serde::Serialize;

use crate::args::{self, name_of};
use crate::clock::Deadline;
use crate::destination::{self, Destination};
use crate::exit::Failure;
use crate::input;
use crate::output::{FileSummary, TopologySummary, print_json};
use crate::running::on_a_thread;
use crate::sizes::in_words;
use crate::stdout::print;
use crate::table::{Table, count};
use crate::whole_file::write_file;

/// Choose among a stock runtime's own algorithms for a network, and write the table that it reads
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Tables of NCCL's kind say what the formulas of a release choose on this network. For MPI, the library's algorithms
are compared by a formula on its links.

Examples:
  canopy tools advise dgx-h100:boxes=4 --to nccl-csv
  canopy tools advise job.yaml --to nccl-csv -o tuner.csv --calibration calibration.yaml
  canopy tools advise job.yaml --to nccl-config-header -c allreduce -o advice.h
  canopy tools advise job.yaml --to ncclx --ranks 8,32 -o tuner.csv
  canopy tools advise job.yaml --to openmpi -o rules && mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename rules ./app
  canopy tools advise job.yaml --to mpich --base tree.json -o advised.json")]
pub(crate) struct AdviseArgs {
    /// Generator expression or file
    #[arg(value_name = "T")]
    topology: String,
    /// Kind of the table
    #[arg(long, value_name = "KIND", value_enum)]
    to: Kind,
    /// File to write, or `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<Destination>,
    /// Collectives, such as allreduce,allgather [default: all that the runtime chooses for]
    #[arg(long, short, value_name = "C,...", value_delimiter = ',', value_parser = args::collective_kind)]
    collective: Vec<CollectiveKind>,
    /// Sizes of communicators, which are the first ranks of the network [default: one machine, and all]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..))]
    ranks: Vec<u32>,
    /// Release of NCCL: 2.18 to 2.31 [default: 2.30; of nccl-config 2.31]
    #[arg(long, value_name = "VERSION", value_parser = str::parse::<Version>)]
    nccl: Option<Version>,
    /// Switches of the network add up for NCCL, as with SHARP's plugin and NCCL_COLLNET_ENABLE=1
    #[arg(long)]
    collnet: bool,
    /// For MPI: what each message takes before its first byte is sent [default: that of --calibration, else 1us]
    #[arg(long, value_name = "TIME", value_parser = args::duration_or_zero)]
    alpha: Option<Duration>,
    /// For mpich: the tree of the installed version, into which advice is put
    #[arg(long, value_name = "FILE")]
    base: Option<String>,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// Tables that runtimes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// CSV of a tuner plugin of NCCL: NVIDIA's example, or that in deploy/nccl
    NcclCsv,
    /// JSON with settings of single calls, for `ncclCollConfig_t` of NCCL 2.31
    NcclConfig,
    /// The same as a C header with a function that finds them
    NcclConfigHeader,
    /// CSV of RCCL, for NCCL_TUNER_CONFIG_FILE
    Rccl,
    /// CSV of NCCLX, for NCCLX_TUNER_CONFIG_FILE
    Ncclx,
    /// Rules file of coll_tuned, of Open MPI 4.1 and 5.0
    Openmpi,
    /// JSON tree of MPICH 4, for MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE
    Mpich,
    /// Reads no table
    #[value(hide = true)]
    AwsOfi,
    /// Reads no table
    #[value(hide = true)]
    IntelMpi,
}

/// What is advised.
struct Advised {
    /// By what: `NCCL 2.30`.
    library: String,
    advice: Vec<AdviceSummary>,
    /// The table.
    text: String,
    /// What to do with the file.
    hint: &'static str,
}

/// What to take for some sizes.
#[derive(Serialize)]
struct AdviceSummary {
    collective: &'static str,
    ranks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    machines: Option<u32>,
    first_bytes: u64,
    /// None for all larger sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_bytes: Option<u64>,
    takes: String,
}

/// JSON object of the command.
#[derive(Serialize)]
struct AdviseSummary<'a> {
    topology: TopologySummary,
    kind: String,
    library: &'a str,
    advice: &'a [AdviceSummary],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileSummary>,
}

/// Advises, on a thread of its own.
pub(crate) async fn run(args: AdviseArgs) -> Result<(), Failure> {
    on_a_thread(move || advise(&args)).await
}

fn advise(args: &AdviseArgs) -> Result<(), Failure> {
    args.to.reads_a_table()?;
    args.to.takes(args)?;
    let topology = input::topology_until(&args.topology, Deadline::after(None))?;
    let advised = args.to.advised(args, &topology)?;
    let mut files = Vec::new();
    if args.output.is_some() {
        match destination::beside_json(args.output.as_ref(), args.json, "the table")? {
            Some(path) => {
                write_file(path, advised.text.as_bytes())?;
                files.push(FileSummary::written(name_of(&args.to), path, advised.text.as_bytes())?);
            }
            None => return print(advised.text.trim_end()),
        }
    }
    let Advised { library, advice, .. } = &advised;
    let topology = TopologySummary::of(&topology);
    let summary = AdviseSummary { topology, kind: name_of(&args.to), library, advice, files };
    if args.json { print_json("advise", &summary) } else { print(&readable(args, &summary, advised.hint)) }
}

impl Kind {
    /// Refuses those that read no table.
    fn reads_a_table(self) -> Result<(), Failure> {
        match self {
            Self::AwsOfi => Err(Failure::input(
                "aws-ofi-nccl reads no table: the sizes at which its tuner changes are compiled in",
            )
            .help(
                "use `--to nccl-csv` and NCCL_TUNER_PLUGIN; that plugin replaces the one for EFA and its thresholds",
            )),
            Self::IntelMpi => Err(Failure::input(
                "Intel MPI reads no table but the binary ones of its own tuner (`I_MPI_TUNING_BIN`)",
            )
            .help("set I_MPI_ADJUST_ALLREDUCE and its like, or run its tuner, which measures")),
            _ => Ok(()),
        }
    }

    const fn is_of_mpi(self) -> bool {
        matches!(self, Self::Openmpi | Self::Mpich)
    }

    /// Refuses options that say nothing for it.
    fn takes(self, args: &AdviseArgs) -> Result<(), Failure> {
        let idle = [
            ("--nccl", args.nccl.is_some() && self.is_of_mpi(), "the table is for MPI"),
            ("--collnet", args.collnet && self.is_of_mpi(), "the table is for MPI"),
            ("--alpha", args.alpha.is_some() && !self.is_of_mpi(), "NCCL's formulas have latencies of their own"),
            ("--base", args.base.is_some() && self != Self::Mpich, "only mpich needs one"),
        ];
        match idle.into_iter().find(|(_, is_idle, _)| *is_idle) {
            Some((option, _, reason)) => Err(Failure::input(format!("{option} has no effect here: {reason}"))
                .help(format!("remove `{option}`, or change `--to`"))),
            None => Ok(()),
        }
    }

    fn advised(self, args: &AdviseArgs, topology: &Topology) -> Result<Advised, Failure> {
        if self.is_of_mpi() { mpi::advised(self, args, topology) } else { nccl::advised(self, args, topology) }
    }
}

fn readable(args: &AdviseArgs, summary: &AdviseSummary<'_>, hint: &str) -> String {
    let mut lines = vec![format!("{} for {} on {}", summary.kind, summary.library, args.topology)];
    let mut table = Table::new(&["COLLECTIVE", "RANKS", "FROM#", "TAKES"]);
    for AdviceSummary { collective, ranks, machines, first_bytes, takes, .. } in summary.advice {
        let machines = machines.map(|machines| format!(" on {}", count(machines as usize, "machine")));
        let ranks = format!("{ranks}{}", machines.unwrap_or_default());
        table.row([(*collective).to_owned(), ranks, in_words(*first_bytes), takes.clone()]);
    }
    lines.push(table.text());
    for file in &summary.files {
        lines.push(format!("wrote      {}", file.path));
        lines.push(format!("use        {hint}"));
    }
    lines.join("\n")
}
