//! The key `faults`: what is broken is drawn at random from a seed, the same on every machine.

use crate::fault::Fault;
use crate::generate::arguments::{Arguments, value_error};
use crate::generate::error::ExpressionError;
use crate::generate::grammar::Argument;
use crate::generate::random::SplitMix64;
use crate::index::{NodeIndex, Rank};
use crate::model::{NodeKind, Topology};

const EXPECTED: &str =
    "`gpus:COUNT`, `nics:COUNT`, `nics:COUNT@N/D` and `seed:NUMBER` joined by `+`, each at most once";

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct FaultCounts {
    gpus: usize,
    nics: usize,
    /// What is left of a NIC; none: nothing.
    left: Option<(u64, u64)>,
    seed: u64,
}

/// The faults that `faults=` draws: first the ranks that are gone, then the NICs of those that stay.
///
/// A *NIC* is the pair of links between a rank and a switch that is not in its box.
pub(super) fn draw(topology: &Topology, arguments: &Arguments<'_>) -> Result<Vec<Fault>, ExpressionError> {
    let Some(argument) = arguments.find("faults") else { return Ok(Vec::new()) };
    let counts = read(argument).ok_or_else(|| value_error(argument, EXPECTED))?;
    let mut generator = SplitMix64::new(counts.seed);
    let mut ranks: Vec<_> = topology.ranks().map(Rank::node).collect();
    if counts.gpus > ranks.len() {
        return Err(value_error(argument, "at most as many GPUs as the network has"));
    }
    generator.shuffle_front(&mut ranks, counts.gpus);
    let id = |node| topology.node(node).id.clone();
    let mut faults: Vec<Fault> = ranks[..counts.gpus].iter().map(|&node| Fault::Node { id: id(node) }).collect();
    let mut gone = vec![false; topology.nodes().len()];
    ranks[..counts.gpus].iter().for_each(|node| gone[node.index()] = true);
    let mut nics: Vec<_> = topology
        .ranks()
        .map(Rank::node)
        .filter(|node| !gone[node.index()])
        .flat_map(|node| {
            let links = topology.links_from(node).map(move |link| topology.link(link));
            let mut switches: Vec<_> = links.map(|link| link.to).filter(|&to| is_outside(topology, node, to)).collect();
            // Parallel links of different latencies are one NIC.
            switches.dedup();
            switches.into_iter().map(move |switch| (node, switch))
        })
        .collect();
    if counts.nics > nics.len() {
        return Err(value_error(
            argument,
            "at most as many NICs as the network has (links between ranks and switches outside their boxes)",
        ));
    }
    generator.shuffle_front(&mut nics, counts.nics);
    faults.extend(nics[..counts.nics].iter().map(|&(node, switch)| {
        let (from, to, both_ways) = (id(node), id(switch), true);
        match counts.left {
            None => Fault::Link { from, to, both_ways },
            Some((numerator, denominator)) => Fault::Degrade { from, to, both_ways, numerator, denominator },
        }
    }));
    Ok(faults)
}

/// Whether a node is a switch outside the box of a rank.
fn is_outside(topology: &Topology, rank: NodeIndex, node: NodeIndex) -> bool {
    let (rank, node) = (topology.node(rank), topology.node(node));
    let in_box = rank.attributes.box_name.is_some() && rank.attributes.box_name == node.attributes.box_name;
    matches!(node.kind, NodeKind::Switch { .. }) && !in_box
}

/// Reads the value: items joined by `+`, each once.
fn read(argument: &Argument<'_>) -> Option<FaultCounts> {
    let mut counts = FaultCounts { seed: 1, ..FaultCounts::default() };
    let mut seen = Vec::new();
    for item in argument.value.split('+') {
        let (key, value) = item.split_once(':')?;
        if seen.contains(&key) {
            return None;
        }
        seen.push(key);
        match (key, value.split_once('@')) {
            ("gpus", None) => counts.gpus = number(value)?,
            ("nics", None) => counts.nics = number(value)?,
            ("nics", Some((count, fraction))) => {
                let (numerator, denominator) = fraction.split_once('/')?;
                (counts.nics, counts.left) = (number(count)?, Some((number(numerator)?, number(denominator)?)));
            }
            ("seed", None) => counts.seed = number(value)?,
            _ => return None,
        }
    }
    Some(counts)
}

/// Plain decimal digits.
fn number<T: std::str::FromStr>(digits: &str) -> Option<T> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use crate::generate::generate;
    use crate::limits::TopologyLimits;
    use crate::model::Topology;

    fn topology(expression: &str) -> Topology {
        generate(expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    #[test]
    fn so_many_ranks_are_gone_and_so_many_nics_slower_both_ways() {
        for seed in 1..20 {
            let faulty = topology(&format!("dgx-a100:boxes=4,faults=nics:3@1/2+gpus:2+seed:{seed}"));
            assert_eq!(faulty.rank_count(), 30);
            let slow = faulty.links().iter().filter(|link| link.capacity.bytes_per_sec() == 12_500_000_000);
            assert_eq!(slow.count(), 6, "seed {seed}");
            assert_eq!(faulty.first_unbalanced(), None);
        }
        let down = topology("mi250:boxes=2,faults=nics:5");
        assert_eq!(topology("mi250:boxes=2").links().len() - down.links().len(), 10);
        let all = topology("rail:boxes=2,faults=nics:16@3/5");
        assert!(all.links().iter().filter(|link| link.capacity.bytes_per_sec() == 30_000_000_000).count() == 32);
    }

    #[test]
    fn the_seed_decides_and_nothing_else() {
        let drawn = |seed: u64| topology(&format!("dgx-a100:boxes=8,faults=gpus:9+seed:{seed}"));
        let ids = |topology: &Topology| topology.nodes().iter().map(|node| node.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&drawn(7)), ids(&drawn(7)));
        assert_ne!(ids(&drawn(7)), ids(&drawn(8)));
        assert_eq!(ids(&topology("dgx-a100:boxes=8,faults=gpus:9")), ids(&drawn(1)));
    }

    #[test]
    fn what_cannot_be_drawn_is_refused_with_what_can() {
        for (value, words) in [
            ("nics", "joined by `+`"),
            ("nics:", "joined by `+`"),
            ("nics:1@2", "joined by `+`"),
            ("nics:+1", "joined by `+`"),
            ("nics:1+nics:2", "at most once"),
            ("gpus:1@1/2", "joined by `+`"),
            ("boxes:1", "joined by `+`"),
            ("gpus:17", "at most as many GPUs"),
            ("nics:17", "at most as many NICs"),
            ("nics:99999999999999999999", "joined by `+`"),
            ("gpus:15", "leave at least two"),
            ("nics:1@3/2", "3/2"),
            ("nics:1@0/2", "0/2"),
        ] {
            let expression = format!("dgx-a100:boxes=2,faults={value}");
            let error = generate(&expression, &TopologyLimits::STANDARD).unwrap_err().to_string();
            assert!(error.contains(words), "{expression}: {error}");
        }
        let error = generate("ring:8,faults=nics:1", &TopologyLimits::STANDARD).unwrap_err().to_string();
        assert!(error.contains("at most as many NICs"), "{error}");
    }
}
