//! `auto` is at least as fast as each algorithm by name, for large messages.
//!
//! `CANOPY_CASES=500 cargo test --workspace --test baselines auto` looks at more networks.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_baselines::{algorithm, algorithms};
use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, judge_until};
use canopy_synth::{Algorithm, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Capacity, Rank, Rate, Topology, TopologyDraft, TopologyLimits, generate};

use crate::odd_rates::{Random, cases, network};

/// Networks of every family, small enough for all algorithms.
const FAMILIES: [&str; 24] = [
    "torus:3x3",
    "torus:4x3",
    "torus:2x3x2",
    "mesh:3x3",
    "ring:6",
    "ring:5,dir=uni",
    "hypercube:3",
    "complete:6",
    "bipartite:3x3",
    "kautz:d=2,n=2",
    "genkautz:n=9,d=2",
    "circulant:n=9,offsets=1+2",
    "debruijn:d=2,n=3",
    "random-regular:n=8,d=3,seed=5",
    "dfc2:3x3",
    "hamming:3x3",
    "dragonfly:3x4",
    "twisted-torus:4x2",
    "dgx-a100:boxes=2,gpus=4",
    "mi250:boxes=1",
    "rail:boxes=2,gpus=4",
    "fat-tree:k=4",
    "leaf-spine:leaves=2,hosts=3,spines=2",
    "hgx:boxes=2,gpus=2",
];

/// A network of a family: with hosts, or as it is, links slower in one direction, in rates of many digits.
fn of_family(seed: u64) -> Option<Topology> {
    let mut random = Random(seed);
    let family = FAMILIES[usize::try_from(random.below(FAMILIES.len() as u64)).unwrap()];
    let with_host = match random.below(3) {
        0 => format!("{family},host={}GB/s", 20 + 10 * random.below(12)),
        _ => family.to_owned(),
    };
    let plain =
        generate(&with_host, &TopologyLimits::STANDARD).or_else(|_| generate(family, &TopologyLimits::STANDARD));
    let plain = plain.unwrap_or_else(|error| panic!("{family}: {error}"));
    let are_odd = random.below(3) == 0;
    let slow = random.below(4);
    let mut draft = TopologyDraft::default();
    for node in plain.nodes() {
        draft.add_node(node.id.as_str(), node.kind, node.attributes.clone());
    }
    for link in plain.links() {
        let [from, to] = [link.from, link.to].map(|node| plain.node(node).id.clone());
        let rate = if are_odd { random.rate() } else { link.capacity };
        let is_slow = slow > 0 && random.below(plain.links().len() as u64) < slow;
        let rate = if is_slow { rate.bytes_per_sec() / (2 + random.below(3)) } else { rate.bytes_per_sec() };
        draft.add_link(from, to, Capacity::from_bytes_per_sec(rate.max(1)).unwrap(), link.latency);
    }
    draft.build(&TopologyLimits::STANDARD).ok()
}

fn rate(topology: &Topology, kind: CollectiveKind, algorithm: Algorithm) -> Option<Rate> {
    let root = kind.has_root().then(|| Rank::new(0));
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let schedule = synthesize(topology, &SynthesisRequest::new(collective, algorithm), &Never, &Silent).ok()?;
    Some(judge_until(topology, &schedule, &|| false).unwrap().algbw)
}

#[test]
fn auto_is_never_slower_than_a_name() {
    let auto = algorithm("auto").unwrap();
    let mut compared = 0;
    let mut losses = Vec::new();
    for seed in 0..cases(20) {
        let topology = match seed % 2 {
            0 => of_family(seed),
            _ => Some(network(seed, 6, 3)),
        };
        let Some(topology) = topology else { continue };
        for kind in CollectiveKind::ALL {
            let Some(best) = rate(&topology, kind, auto) else {
                losses.push(format!("no {kind} on network {seed}"));
                continue;
            };
            for other in algorithms() {
                // Proofs take their time on all but the smallest networks.
                if other == auto || other.name().contains("ilp") {
                    continue;
                }
                let Some(found) = rate(&topology, kind, other) else { continue };
                compared += 1;
                // Flows are in whole chunks.
                if found.gigabytes_per_sec() > best.gigabytes_per_sec() * 1.001 {
                    losses.push(format!(
                        "{kind} on network {seed} ({}): {other:?} reaches {found}, {:.4} times as much",
                        topology.rank_count(),
                        found.gigabytes_per_sec() / best.gigabytes_per_sec()
                    ));
                }
            }
        }
    }
    assert!(losses.is_empty(), "{} of {compared}:\n{}", losses.len(), losses.join("\n"));
}
