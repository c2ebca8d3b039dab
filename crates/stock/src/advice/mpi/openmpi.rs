//! The rules file of Open MPI's `coll_tuned`: `coll_tuned_dynamic_rules_filename`.
//!
//! Numbers, in this order: how many collectives; for each its number and how many communicator sizes; for each size how
//! many message sizes; for each message size the number of an algorithm, a fan-out, and the bytes of a segment. A
//! communicator takes the greatest size that is not above its own, or the first one if all are; a message likewise, and
//! its sizes must begin at 0. Sizes are those of the whole: of an allgather, all blocks. Algorithm 0 leaves the choice to
//! Open MPI. So each collective begins with size 0, and each communicator size is followed by the next one, both with 0.

use canopy_schedule::CollectiveKind;

use super::choose::{Candidate, MpiChoice, Sends, choices};
use super::paths::Paths;
use super::patterns as sends;

/// Segments of pipelines that are compared, in bytes.
const SEGMENTS: [u64; 3] = [8 << 10, 64 << 10, 512 << 10];

/// Collectives with rules, by Open MPI's numbers.
const NUMBERS: [(CollectiveKind, u32); 8] = [
    (CollectiveKind::Allgather, 0),
    (CollectiveKind::Allreduce, 2),
    (CollectiveKind::AllToAll, 3),
    (CollectiveKind::Broadcast, 7),
    (CollectiveKind::Gather, 9),
    (CollectiveKind::Reduce, 11),
    (CollectiveKind::ReduceScatter, 12),
    (CollectiveKind::Scatter, 15),
];

/// Collectives that have rules.
pub const OPENMPI_COLLECTIVES: [CollectiveKind; 8] = [
    CollectiveKind::Allgather,
    CollectiveKind::Allreduce,
    CollectiveKind::AllToAll,
    CollectiveKind::Broadcast,
    CollectiveKind::Gather,
    CollectiveKind::Reduce,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Scatter,
];

const fn whole(id: u32, name: &'static str, pattern: fn(u64) -> Option<sends::Pattern>) -> Candidate {
    Candidate { id, name, segment: 0, sends: Sends::Whole(pattern) }
}

/// Its algorithms for a collective, in order of preference among equals.
fn candidates(collective: CollectiveKind) -> Vec<Candidate> {
    let pipelines = |pattern: fn(u64, u64) -> Option<sends::Pattern>| {
        SEGMENTS.map(|segment| Candidate { id: 3, name: "pipeline", segment, sends: Sends::Segments(pattern) })
    };
    match collective {
        CollectiveKind::Allgather => vec![
            whole(3, "recursive_doubling", sends::doubling_allgather),
            whole(2, "bruck", sends::bruck_allgather),
            whole(4, "ring", sends::ring),
            whole(5, "neighbor", sends::neighbour_allgather),
        ],
        CollectiveKind::Allreduce => vec![
            whole(3, "recursive_doubling", sends::doubling_allreduce),
            whole(6, "rabenseifner", sends::halving_allreduce),
            whole(4, "ring", sends::ring_allreduce),
        ],
        CollectiveKind::AllToAll => vec![
            whole(3, "modified_bruck", sends::bruck_all_to_all),
            whole(2, "pairwise", sends::pairwise),
            whole(1, "linear", sends::direct_all_to_all),
        ],
        CollectiveKind::Broadcast => [
            whole(6, "binomial", sends::binomial_broadcast_rising),
            whole(8, "scatter_allgather", sends::scatter_doubling),
            whole(9, "scatter_allgather_ring", sends::scatter_ring),
        ]
        .into_iter()
        .chain(pipelines(sends::chain_broadcast))
        .collect(),
        CollectiveKind::Reduce => {
            [whole(5, "binomial", sends::binomial_reduce), whole(7, "rabenseifner", sends::halving_reduce)]
                .into_iter()
                .chain(pipelines(sends::chain_reduce))
                .collect()
        }
        CollectiveKind::ReduceScatter => {
            vec![whole(2, "recursive_halving", sends::halving_reduce_scatter), whole(3, "ring", sends::ring)]
        }
        CollectiveKind::Gather => {
            vec![whole(2, "binomial", sends::binomial_gather), whole(1, "linear", sends::direct_gather)]
        }
        CollectiveKind::Scatter => {
            vec![whole(2, "binomial", sends::binomial_scatter), whole(1, "linear", sends::direct_scatter)]
        }
    }
}

/// The fastest of Open MPI's algorithms for each size of a collective on a communicator.
pub fn openmpi_choices(paths: &Paths<'_>, collective: CollectiveKind) -> Vec<MpiChoice> {
    choices(paths, collective, candidates(collective))
}

/// The file, for Open MPI 4.1 and 5.0. Communicators of other sizes, and collectives without a choice, are left to Open MPI.
pub fn openmpi_rules(choices: &[MpiChoice]) -> String {
    let with_rules = |(kind, _): &&(CollectiveKind, u32)| choices.iter().any(|choice| choice.collective == *kind);
    let collectives: Vec<&(CollectiveKind, u32)> = NUMBERS.iter().filter(with_rules).collect();
    let mut text = format!("{} # collectives\n", collectives.len());
    for (kind, number) in collectives {
        let own: Vec<&MpiChoice> = choices.iter().filter(|choice| choice.collective == *kind).collect();
        let mut sizes: Vec<u64> = own.iter().map(|choice| choice.ranks).collect();
        sizes.sort_unstable();
        sizes.dedup();
        // By communicator size; those whose list is empty are left to Open MPI.
        let mut entries: Vec<(u64, Vec<&MpiChoice>)> = vec![(0, Vec::new())];
        for (place, &ranks) in sizes.iter().enumerate() {
            entries.push((ranks, own.iter().copied().filter(|choice| choice.ranks == ranks).collect()));
            if sizes.get(place + 1) != Some(&(ranks + 1)) {
                entries.push((ranks + 1, Vec::new()));
            }
        }
        text.push_str(&format!("{number} # {kind}\n{} # communicator sizes\n", entries.len()));
        for (ranks, rules) in entries {
            text.push_str(&format!("{ranks} # ranks\n{} # message sizes\n", rules.len().max(1)));
            if rules.is_empty() {
                text.push_str("0 0 0 0\n");
            }
            for MpiChoice { first, candidate, .. } in rules {
                let Candidate { id, name, segment, .. } = candidate;
                text.push_str(&format!("{first} {id} 0 {segment} # {name}\n"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests;
