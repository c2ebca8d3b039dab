//! Tables of NCCL and its relatives, by the formulas of a release.

use canopy_schedule::CollectiveKind;
use canopy_stock::advice::{
    ADVICE_BYTES_MIN, TUNED, coll_config_header, coll_config_json, coll_configs, nccl_csv, ncclx_csv, rccl_csv,
    tuner_word,
};
use canopy_stock::nccl::{Choice, Stock, Version};
use canopy_topology::Topology;

use super::{AdviceSummary, AdviseArgs, Advised, Kind};
use crate::exit::Failure;
use crate::stock::{Library, no_model, stock_of};
use crate::table::joined;

/// What the library chooses on the communicators, and the table of it.
pub(super) fn advised(kind: Kind, args: &AdviseArgs, topology: &Topology) -> Result<Advised, Failure> {
    let version = version(kind, args.nccl)?;
    let collectives = collectives(&args.collective)?;
    let library = Library { version: Some(version), has_collnet: args.collnet };
    let (whole, seen) = stock_of(library, topology).map_err(|reason| no_model(library, &reason, topology))?;
    let communicators = communicators(&whole, seen.machine.gpus, &args.ranks)?;
    let least = if kind == Kind::Rccl { ADVICE_BYTES_MIN } else { 0 };
    let advice: Vec<AdviceSummary> = communicators
        .iter()
        .flat_map(|stock| collectives.iter().map(move |&collective| (stock, collective)))
        .flat_map(|(stock, collective)| rows(stock, collective, least))
        .collect();
    if advice.is_empty() {
        return Err(Failure::input(format!("{library} has a single algorithm for these collectives on this network")));
    }
    let configs = || coll_configs(&collectives, &communicators);
    let (text, hint) = match kind {
        Kind::NcclConfig => (coll_config_json(&configs(), version), "set the values in ncclCollConfig_t of each call"),
        Kind::NcclConfigHeader => {
            (coll_config_header(&configs(), version), "call canopy_coll_advice() before each nccl…Config() call")
        }
        Kind::Rccl => (rccl_csv(&collectives, &communicators), "set NCCL_TUNER_CONFIG_FILE to its absolute path"),
        Kind::Ncclx => (ncclx_csv(&collectives, &communicators), "set NCCLX_TUNER_CONFIG_FILE to its absolute path"),
        _ => (
            nccl_csv(&collectives, &communicators),
            "set NCCL_TUNER_PLUGIN to the plugin and NCCL_TUNER_CONFIG_FILE to this file",
        ),
    };
    Ok(Advised { library: library.to_string(), advice, text, hint })
}

/// The release whose formulas count.
fn version(kind: Kind, stated: Option<Version>) -> Result<Version, Failure> {
    match (kind, stated) {
        (Kind::Rccl, None | Some(Version::Rccl2_21)) => Ok(Version::Rccl2_21),
        (Kind::Rccl, Some(_)) => {
            Err(Failure::input("--nccl names a release of NCCL, and the table is for RCCL").help("remove `--nccl`"))
        }
        (_, Some(Version::Rccl2_21)) => {
            Err(Failure::input("this table is for NCCL, and --nccl names a release of RCCL")
                .help("use `--to rccl`, or a release of NCCL"))
        }
        (Kind::NcclConfig | Kind::NcclConfigHeader, None | Some(Version::Nccl2_31)) => Ok(Version::Nccl2_31),
        (Kind::NcclConfig | Kind::NcclConfigHeader, Some(version)) => {
            Err(Failure::input(format!("{version} has no settings of single calls; NCCL has them from 2.31 on"))
                .help("remove `--nccl`, or use `--to nccl-csv`"))
        }
        (_, stated) => Ok(stated.unwrap_or_default()),
    }
}

/// Those asked for, or all that are tuned.
fn collectives(stated: &[CollectiveKind]) -> Result<Vec<CollectiveKind>, Failure> {
    if let Some(other) = stated.iter().find(|&&kind| tuner_word(kind).is_none()) {
        let known: Vec<String> = TUNED.iter().map(|kind| kind.name().to_owned()).collect();
        return Err(Failure::input(format!("NCCL does not tune {other}"))
            .help(format!("remove it from `--collective`, which takes {}", joined(&known, "and"))));
    }
    let chosen = |kind: &CollectiveKind| stated.is_empty() || stated.contains(kind);
    Ok(TUNED.into_iter().filter(chosen).collect())
}

/// The library on communicators of so many ranks each: machines from the first on.
fn communicators(whole: &Stock, gpus: u32, ranks: &[u32]) -> Result<Vec<Stock>, Failure> {
    let most = whole.ranks();
    let nodes_of = |&wanted: &u32| {
        let is_whole = wanted.is_multiple_of(gpus.max(1)) && u64::from(wanted) <= most;
        let refused = || {
            Failure::input(format!("--ranks {wanted}: communicators are of whole machines of this network"))
                .help(format!("its machines have {gpus} ranks each: use multiples of {gpus} up to {most}"))
        };
        if is_whole { Ok(wanted / gpus.max(1)) } else { Err(refused()) }
    };
    let mut nodes: Vec<u32> = match ranks {
        [] if gpus > 1 => vec![1, whole.nodes()],
        [] => vec![whole.nodes()],
        stated => stated.iter().map(nodes_of).collect::<Result<_, _>>()?,
    };
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes.into_iter().map(|nodes| whole.on(nodes)).collect())
}

/// What is chosen for messages of so many bytes and more.
fn rows(stock: &Stock, collective: CollectiveKind, least: u64) -> Vec<AdviceSummary> {
    let choices = stock.choices(collective).into_iter().filter(|choice| choice.last >= least);
    let row = |Choice { first, last, algorithm, protocol }| AdviceSummary {
        collective: collective.name(),
        ranks: stock.ranks(),
        machines: Some(stock.nodes()),
        first_bytes: first.max(least),
        last_bytes: Some(last).filter(|&last| last != u64::MAX),
        takes: format!("{} {}", algorithm.name(), protocol.name()),
    };
    choices.map(row).collect()
}
