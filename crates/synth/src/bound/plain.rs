//! What all-to-all can not exceed, by counting alone: bounds that people quote, beside the one with a certificate.

use canopy_direct::{facts, full_tree_rate};
use canopy_optimize::Stop;
use canopy_topology::{NodeIndex, Ports, Rate, Topology};
use num_bigint::BigUint;

use super::BoundError;

/// Upper bounds on the algbw of an all-to-all. The certified bound may be lower than both, and is rarely higher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainBounds {
    /// All capacity against the links that all pairs need at least: `N·Σ c / Σ dist`.
    pub distances: Rate,
    /// Of ranks with so many ports of one rate each, if no rank had others nearer to it than a full tree has them; none for
    /// other networks.
    pub degree: Option<(u32, Rate)>,
}

/// Counts both bounds.
///
/// * **Source.** Basu 2024: `F ≤ Σ cap(e) / Σ dist(s, t)`, and equation (25). Tight on tori, hypercubes and K4,4; not on the
///   twisted 3-cube.
/// * **In.** `ports` as [`Topology::ports`] has them. **Errors.** Ranks out of each other's reach; stopped.
/// * **Cost.** A search of the network, breadth first, for each rank.
pub fn plain_bounds(topology: &Topology, ports: Option<&Ports>, stop: &dyn Stop) -> Result<PlainBounds, BoundError> {
    let capacities = topology.links().iter().map(|link| u128::from(link.capacity.bytes_per_sec()));
    let volume = BigUint::from(capacities.sum::<u128>()) * topology.rank_count();
    let mut sum = 0_u128;
    let mut distances: Vec<Option<u32>> = vec![None; topology.nodes().len()];
    let mut queue: Vec<NodeIndex> = Vec::with_capacity(distances.len());
    for source in topology.ranks() {
        if stop.is_requested() {
            return Err(BoundError::Stopped);
        }
        distances.fill(None);
        distances[source.index()] = Some(0);
        queue.clear();
        queue.push(source.node());
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            let below = distances[node.index()].map(|distance| distance + 1);
            for link in topology.links_from(node) {
                let head = topology.link(link).to;
                if distances[head.index()].is_none() {
                    distances[head.index()] = below;
                    queue.push(head);
                }
            }
        }
        for rank in topology.ranks() {
            let id = |rank: canopy_topology::Rank| topology.node(rank.node()).id.clone();
            let lost = || BoundError::Disconnected {
                from: id(source),
                from_rank: source.number(),
                to: id(rank),
                to_rank: rank.number(),
            };
            sum += u128::from(distances[rank.index()].ok_or_else(lost)?);
        }
    }
    let broken = || BoundError::Broken { what: "ranks are at distance 0 from each other".to_owned() };
    let distances = Rate::new(volume, sum).ok_or_else(broken)?;
    Ok(PlainBounds { distances, degree: ports.and_then(by_degree) })
}

/// Of a regular network of ranks alone.
fn by_degree(ports: &Ports) -> Option<(u32, Rate)> {
    let (degree, rate) = (facts(&ports.graph).degree?, ports.rate?);
    let tree = full_tree_rate(ports.graph.order(), degree)?;
    let top = BigUint::from(rate.bytes_per_sec()) * ports.graph.order() * tree.numerator;
    Rate::new(top, tree.denominator).map(|rate| (degree, rate))
}

#[cfg(test)]
mod tests {
    use canopy_optimize::Never;
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    /// In blocks of one link's rate, which is 1 B/s: N·F.
    #[track_caller]
    fn check(expression: &str, distances: (u32, u32), degree: Option<(u32, (u32, u32))>) {
        let topology = generate(&format!("{expression},bw=1B/s"), &TopologyLimits::STANDARD).unwrap();
        let ports = topology.ports(&TopologyLimits::STANDARD);
        let ranks = topology.rank_count();
        let rate = |(top, bottom): (u32, u32)| Rate::new(ranks * top, bottom).unwrap();
        let expected = PlainBounds {
            distances: rate(distances),
            degree: degree.map(|(degree, inverse)| (degree, rate((inverse.1, inverse.0)))),
        };
        assert_eq!(plain_bounds(&topology, ports.as_ref(), &Never), Ok(expected), "{expression}");
    }

    /// Tori and cubes reach 1/9, 1/8, 1/4 and 2/5; the twisted cube has 3/11 and reaches 1/4 only.
    #[test]
    fn distances_and_degrees_of_regular_networks() {
        check("torus:3x3x3", (1, 9), Some((6, (6 + 2 * 20, 6))));
        check("torus:4x4", (1, 8), Some((4, (4 + 2 * 11, 4))));
        check("hypercube:3", (1, 4), Some((3, (11, 3))));
        check("bipartite:4x4", (2, 5), Some((4, (10, 4))));
        check("genkautz:n=10,d=4", (2, 7), Some((4, (7, 2))));
    }

    /// Hosts and meshes are no regular networks of ranks alone. Every pair of hosts passes two links more.
    #[test]
    fn other_networks_have_no_degree() {
        check("mesh:1x3", (4, 8), None);
        check("complete:3,host=5B/s", (6 + 6 * 5, 6 * 3), None);
    }

    #[test]
    fn networks_that_fall_apart_have_none() {
        let topology = generate("mesh:1x3,down=00>01", &TopologyLimits::STANDARD).unwrap();
        let error = plain_bounds(&topology, None, &Never).unwrap_err();
        assert!(matches!(error, BoundError::Disconnected { from_rank: 0, to_rank: 1, .. }), "{error}");
        let whole = generate("mesh:1x3", &TopologyLimits::STANDARD).unwrap();
        assert_eq!(plain_bounds(&whole, None, &|| true), Err(BoundError::Stopped));
    }
}
