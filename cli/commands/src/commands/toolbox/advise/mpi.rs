//! Tables of MPI libraries, by comparing their algorithms on the network.

use std::time::Duration;

use canopy_canonical::boxes;
use canopy_schedule::CollectiveKind;
use canopy_simulate::ALPHA_NS_USUAL;
use canopy_stock::advice::{
    MPICH_COLLECTIVES, MpiChoice, OPENMPI_COLLECTIVES, Paths, RANKS_MAX, mpich_choices, mpich_tree, openmpi_choices,
    openmpi_rules,
};
use canopy_topology::Topology;

use super::{AdviceSummary, AdviseArgs, Advised, Kind};
use crate::calibration;
use crate::exit::Failure;
use crate::input::file_text;
use crate::sizes::in_words;
use crate::table::joined;

/// Most bytes of a tree; that of MPICH 4 has some 15,000.
const TREE_BYTES_MAX: usize = 1 << 20;

/// How to see the tree of an installed MPICH.
const TREE_HELP: &str = "its tree is in the library: \
                         strings libmpich.so.12 | grep '^{\"collective=bcast\":{\"comm_type=intra\":{\"comm_size<8' > tree.json";

/// What is fastest on the communicators, and the table of it.
pub(super) fn advised(kind: Kind, args: &AdviseArgs, topology: &Topology) -> Result<Advised, Failure> {
    let collectives = collectives(kind, &args.collective)?;
    let choices: Vec<MpiChoice> = communicators(&args.ranks, topology)?
        .into_iter()
        .map(|ranks| Paths::new(topology, ranks, message_ns(args.alpha)))
        .flat_map(|paths| {
            collectives.iter().flat_map(move |&collective| chosen(kind, &paths, collective)).collect::<Vec<_>>()
        })
        .collect();
    let (library, text, hint) = match kind {
        Kind::Mpich => (
            "MPICH",
            tree(args.base.as_deref(), &choices)?,
            "set MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE to its path",
        ),
        _ => (
            "Open MPI",
            openmpi_rules(&choices),
            "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE",
        ),
    };
    let advice = choices.iter().map(row).collect();
    Ok(Advised { library: library.to_owned(), advice, text, hint })
}

/// What a message takes before its first byte is sent.
fn message_ns(alpha: Option<Duration>) -> u64 {
    let stated = alpha.map(|alpha| u64::try_from(alpha.as_nanos()).unwrap_or(u64::MAX));
    stated.or_else(calibration::message_ns).unwrap_or(ALPHA_NS_USUAL)
}

fn chosen(kind: Kind, paths: &Paths<'_>, collective: CollectiveKind) -> Vec<MpiChoice> {
    match kind {
        Kind::Mpich => mpich_choices(paths, collective),
        _ => openmpi_choices(paths, collective),
    }
}

/// Those asked for, or all that the library can be advised on.
fn collectives(kind: Kind, stated: &[CollectiveKind]) -> Result<Vec<CollectiveKind>, Failure> {
    let (library, known): (_, &[CollectiveKind]) = match kind {
        Kind::Mpich => ("MPICH", &MPICH_COLLECTIVES),
        _ => ("Open MPI", &OPENMPI_COLLECTIVES),
    };
    if let Some(other) = stated.iter().find(|kind| !known.contains(kind)) {
        let known: Vec<String> = known.iter().map(|kind| kind.name().to_owned()).collect();
        return Err(Failure::input(format!("{library} has a single algorithm for {other}"))
            .help(format!("remove it from `--collective`, which takes {}", joined(&known, "and"))));
    }
    Ok(known.iter().copied().filter(|kind| stated.is_empty() || stated.contains(kind)).collect())
}

/// Ranks of each communicator: as stated, or those of the first machine, and all.
fn communicators(stated: &[u32], topology: &Topology) -> Result<Vec<u32>, Failure> {
    let all = topology.rank_count();
    let mut ranks = match stated {
        [] => {
            let boxes = boxes(topology);
            let first = boxes.first().copied().flatten();
            let of_first = boxes.iter().take(all as usize).take_while(|own| first.is_some() && **own == first).count();
            vec![u32::try_from(of_first).unwrap_or(all), all]
        }
        stated => stated.to_vec(),
    };
    ranks.retain(|&ranks| ranks > 1);
    ranks.sort_unstable();
    ranks.dedup();
    match ranks.last() {
        Some(&most) if most > all => {
            Err(Failure::input(format!("--ranks {most}: the network has {all} ranks")).help(format!("use 2 to {all}")))
        }
        Some(&most) if most > RANKS_MAX => Err(Failure::input(format!("{most} ranks are too many to compare"))
            .help(format!("use `--ranks` with at most {RANKS_MAX}"))),
        _ => Ok(ranks),
    }
}

/// The tree of the installed MPICH with the choices in it.
fn tree(base: Option<&str>, choices: &[MpiChoice]) -> Result<String, Failure> {
    let base = base.ok_or_else(|| {
        Failure::input("mpich needs `--base` with the tree of the installed MPICH, which the table replaces")
            .help(TREE_HELP)
    })?;
    let text = file_text(base, TREE_BYTES_MAX, "name the tree of MPICH").map_err(Failure::input)?;
    mpich_tree(&text, choices).map_err(|error| Failure::input(format!("{base}: {error}")).help(TREE_HELP))
}

fn row(choice: &MpiChoice) -> AdviceSummary {
    let MpiChoice { collective, ranks, first, last, candidate } = choice;
    let segment = match candidate.segment {
        0 => String::new(),
        bytes => format!(", segments of {}", in_words(bytes)),
    };
    AdviceSummary {
        collective: collective.name(),
        ranks: *ranks,
        machines: None,
        first_bytes: *first,
        last_bytes: Some(*last).filter(|&last| last != u64::MAX),
        takes: format!("{}{segment}", candidate.name),
    }
}
