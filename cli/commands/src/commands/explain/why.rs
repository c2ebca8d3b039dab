//! Why no schedule is faster than the bound: what its certificate counts, in words.

use canopy_schedule::{Certificate, Collective, CollectiveKind, CutDirection, Shares, lp_dual_sums};
use canopy_topology::{LinkIndex, NodeIndex, Ratio, Topology};

use super::names::{Sides, joined, links_in_words, ranks_in_words};
use crate::output::gigabytes;
use crate::table::count;

/// Most sets of a partition that are named.
const SETS_MAX: usize = 4;

/// Sentences that say what must pass where, for a certificate that was added up again.
pub(super) fn why(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    certificate: &Certificate,
) -> Vec<String> {
    match certificate {
        Certificate::Cut { direction, nodes } => cut(topology, collective, shares, *direction, nodes),
        Certificate::Partition { sets } => partition(topology, sets),
        Certificate::Sum { terms, potentials } => sum(topology, terms.len(), potentials),
        Certificate::LpDual { lengths } => lp_dual(topology, shares, lengths),
    }
}

/// Sentences about several cuts together.
fn sum(topology: &Topology, sets: usize, potentials: &[(NodeIndex, i64)]) -> Vec<String> {
    let switches: Vec<NodeIndex> = potentials.iter().map(|&(node, _)| node).collect();
    let names = switches.iter().map(|&node| topology.node(node).id.as_str());
    let names: Vec<&str> = names.take(SETS_MAX).collect();
    let more = switches.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    vec![
        format!("what enters a switch must leave it, and does not fit at {}{more}", names.join(", ")),
        format!("{} together allow no more", count(sets, "cut")),
    ]
}

fn cut(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    direction: CutDirection,
    nodes: &[NodeIndex],
) -> Vec<String> {
    let kind = collective.kind();
    let (sides, told) = (Sides::of(topology, nodes), told(kind, direction));
    let sides = if told == direction { sides } else { sides.swapped() };
    let direction = told;
    let crosses = |link: &canopy_topology::Link| {
        let (from, to) = (sides.is_inside[link.from.index()], sides.is_inside[link.to.index()]);
        if direction == CutDirection::Out { from && !to } else { !from && to }
    };
    let counted = (0..).map(LinkIndex::new).zip(topology.links()).filter(|(_, link)| crosses(link));
    let links: Vec<LinkIndex> = counted.map(|(index, _)| index).collect();
    let weight = |ranks: &[NodeIndex]| -> u128 {
        let ranks = ranks.iter().filter_map(|&node| topology.rank_of(node));
        ranks.map(|rank| u128::from(shares.weight(rank))).sum()
    };
    let (inside, outside) = (weight(&sides.inside), weight(&sides.outside));
    let part =
        |weight: u128| Ratio::new(weight, (inside + outside).max(1)).map_or_else(String::new, |part| part.to_string());
    let [within, beyond] = [&sides.inside, &sides.outside].map(|ranks| ranks_in_words(topology, ranks));
    let crossing = Crossing {
        within,
        beyond,
        add: if sides.outside.len() == 1 { "adds" } else { "add" },
        inside: part(inside),
        outside: part(outside),
        is_outside_smaller: sides.is_outside_smaller(),
        over: links_in_words(topology, &links),
    };
    let (passing, sentence) = crossing.sentence(kind, direction);
    let capacity: u128 = links.iter().map(|&link| u128::from(topology.link(link).capacity.bytes_per_sec())).sum();
    let together = match passing {
        Some(part) => format!("{} GB/s for {part} of the data", gigabytes(capacity)),
        None => format!("{} GB/s for all of the data", gigabytes(capacity)),
    };
    vec![sentence, together]
}

/// The direction of a cut as sentences tell it: from the side of the shares or of the root, or to it.
const fn told(kind: CollectiveKind, direction: CutDirection) -> CutDirection {
    match kind {
        CollectiveKind::Allgather | CollectiveKind::Broadcast | CollectiveKind::Scatter => CutDirection::Out,
        CollectiveKind::ReduceScatter | CollectiveKind::Reduce | CollectiveKind::Gather => CutDirection::In,
        CollectiveKind::Allreduce | CollectiveKind::AllToAll => direction,
    }
}

/// The two sides of a cut and the links over it, in words.
struct Crossing {
    within: String,
    beyond: String,
    /// What those outside do, one or several.
    add: &'static str,
    /// The part of the data that belongs to each side.
    inside: String,
    outside: String,
    is_outside_smaller: bool,
    over: String,
}

impl Crossing {
    /// What must pass, as a part of the data where it is not all of it, and a sentence that says why.
    fn sentence(self, kind: CollectiveKind, direction: CutDirection) -> (Option<String>, String) {
        let Self { within, beyond, add, inside, outside, is_outside_smaller, over } = self;
        let sentence = match kind {
            CollectiveKind::Allgather if is_outside_smaller => {
                format!("{beyond} must take in the shares of all others, {inside} of the data, over {over}")
            }
            CollectiveKind::Allgather => {
                format!("the shares of {within}, {inside} of the data, must leave over {over}")
            }
            CollectiveKind::ReduceScatter if is_outside_smaller => {
                format!(
                    "what {beyond} {add} to the results of all others, {inside} of the data, must leave over {over}"
                )
            }
            CollectiveKind::ReduceScatter => {
                format!("what others add to the results of {within}, {inside} of the data, must enter over {over}")
            }
            CollectiveKind::Broadcast => format!("the whole message must reach {beyond} over {over}"),
            CollectiveKind::Reduce => format!("what {beyond} {add} to the message must leave over {over}"),
            CollectiveKind::Scatter => {
                format!("the shares of {beyond}, {outside} of the data, must get there over {over}")
            }
            CollectiveKind::Gather => format!("the shares of {beyond}, {outside} of the data, must leave over {over}"),
            CollectiveKind::Allreduce | CollectiveKind::AllToAll => {
                let (ranks, inwards) = if is_outside_smaller {
                    (beyond, direction == CutDirection::Out)
                } else {
                    (within, direction == CutDirection::In)
                };
                let what =
                    if inwards { "must receive the whole sum" } else { "add to every element, which must leave" };
                format!("{ranks} {what} over {over}")
            }
        };
        let passing = match kind {
            CollectiveKind::Allgather | CollectiveKind::ReduceScatter => Some(inside),
            CollectiveKind::Scatter | CollectiveKind::Gather => Some(outside),
            _ => None,
        };
        (passing, sentence)
    }
}

fn partition(topology: &Topology, sets: &[Vec<NodeIndex>]) -> Vec<String> {
    let mut set_of = vec![None; topology.nodes().len()];
    for (number, set) in sets.iter().enumerate() {
        set.iter().for_each(|node| set_of[node.index()] = Some(number));
    }
    let mut leaving = vec![0_u128; sets.len()];
    for link in topology.links() {
        if let Some(from) = set_of[link.from.index()].filter(|&from| set_of[link.to.index()] != Some(from)) {
            leaving[from] += u128::from(link.capacity.bytes_per_sec());
        }
    }
    let mut of_ranks: Vec<Vec<NodeIndex>> = sets.iter().map(|set| Sides::of(topology, set).inside).collect();
    of_ranks.sort_unstable();
    let are_ranks = of_ranks.iter().all(|ranks| ranks.len() == 1);
    let of_each = if are_ranks { "rank" } else { "set" };
    let (count, together) = (sets.len(), gigabytes(leaving.iter().sum()));
    let limit = match leaving.first().filter(|first| leaving.iter().all(|each| each == *first)) {
        Some(&each) => format!(
            "the links out of each {of_each} have {} GB/s, those of {count} {of_each}s {together} GB/s",
            gigabytes(each)
        ),
        None => format!("the links out of {count} {of_each}s have {together} GB/s together"),
    };
    let others = count.saturating_sub(1);
    let passing = if others == 1 {
        "1 sum must come in and 1 result go out".to_owned()
    } else {
        format!("{others} sums must come in and {others} results go out")
    };
    let mut sentences = vec![limit, format!("{passing} over them: {} times the data", 2 * others)];
    if !are_ranks {
        let mut names: Vec<String> =
            of_ranks.iter().take(SETS_MAX).map(|ranks| ranks_in_words(topology, ranks)).collect();
        if count > SETS_MAX {
            names.push(format!("{} more", count - SETS_MAX));
        }
        sentences.push(format!("the sets are {}", joined(names)));
    }
    sentences
}

fn lp_dual(topology: &Topology, shares: &Shares, lengths: &[u64]) -> Vec<String> {
    let links = lengths.iter().filter(|&&length| length > 0).count();
    // Without sums there is nothing to say that the certificate itself does not.
    let Ok(sums) = lp_dual_sums(topology, shares, lengths) else { return Vec::new() };
    let blocks = match shares {
        Shares::Blocks(_) => "blocks, each times its weight,",
        Shares::Equal | Shares::Weighted(_) => "blocks between all pairs of ranks",
    };
    vec![format!(
        "by lengths given to {}, {blocks} travel {} in all, and links can carry {} bytes times length in a second",
        count(links, "link"),
        sums.distance,
        sums.volume
    )]
}
