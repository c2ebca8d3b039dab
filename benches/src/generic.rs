//! The published generic algorithm, implemented plainly, to compare with.
//!
//! Zhao 2026, chapter 4: the optimum by bisection (algorithm 1), switches removed edge by edge with one γ for each pair
//! of an edge in and an edge out (algorithm 3, theorem 28), trees grown edge by edge with one flow μ for each candidate
//! (algorithm 4, theorem 32). Nothing is decomposed, proposed in bulk or reused. Flows are those of `canopy-optimize`; a
//! flow ends early where its exact value no longer matters, batches of equal trees that contain the far end of an edge
//! are left out of its μ, which they do not change, and an edge refused once is not tried again for the same batch.
//! Trees are counted, not routed.

mod optimum;
mod packing;
mod switches;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use canopy_topology::Topology;
use num_integer::Integer;

use crate::timed_on_processors;

/// Capacities between nodes, ranks first.
type Edges = BTreeMap<(u32, u32), i64>;

/// What came out, and what it took.
#[derive(Clone, Debug)]
pub struct Generic {
    /// 1/x* in seconds per byte of one rank's share, as a fraction.
    pub inverse_rate: (i64, i64),
    /// k.
    pub trees_per_rank: i64,
    /// Trees that differ.
    pub batches: usize,
    /// Flows, over all stages.
    pub flows: u64,
    /// Processor time of the three stages.
    pub times: [Duration; 3],
}

/// Plans an allgather on a network in which as much enters as leaves every node.
///
/// # Errors
/// Not such a network, or a bug in this program: in words.
pub fn generic_allgather(topology: &Topology) -> Result<Generic, Box<dyn Error>> {
    if topology.first_unbalanced().is_some() || topology.first_unreachable().is_some() {
        return Err("the generic algorithm needs a connected network with as much in as out everywhere".into());
    }
    let rank_count = topology.rank_count();
    let mut edges = Edges::new();
    for link in topology.links() {
        let capacity = i64::try_from(link.capacity.bytes_per_sec())?;
        *edges.entry((link.from.number(), link.to.number())).or_default() += capacity;
    }
    let unit = edges.values().fold(0, |unit: i64, capacity| unit.gcd(capacity));
    edges.values_mut().for_each(|capacity| *capacity /= unit);
    let node_count = u32::try_from(topology.nodes().len())?;
    let mut flows = 0;

    let (inverse_rate, optimum_time) =
        timed_on_processors(|| optimum::bisect(&edges, node_count, rank_count, &mut flows));
    let (p, q) = inverse_rate?;
    let divisor = edges.values().fold(q, |divisor, capacity| divisor.gcd(capacity));
    let trees_per_rank = q / divisor;
    edges.values_mut().for_each(|capacity| *capacity = *capacity / divisor * p);

    let (removed, switches_time) =
        timed_on_processors(|| switches::remove(&mut edges, node_count, rank_count, trees_per_rank, &mut flows));
    removed?;
    let (batches, packing_time) = timed_on_processors(|| packing::pack(edges, rank_count, trees_per_rank, &mut flows));
    let divisor = p.gcd(&unit);
    Ok(Generic {
        inverse_rate: (p / divisor, q.checked_mul(unit / divisor).ok_or("too large capacities")?),
        trees_per_rank,
        batches: batches?,
        flows,
        times: [optimum_time, switches_time, packing_time],
    })
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    /// Optima and k as published or recomputed for the article's machines.
    #[test]
    fn published_optima_and_trees_come_out() {
        for (expression, inverse_rate, trees_per_rank) in [
            ("dgx-a100:boxes=2", (3, 65_000_000_000), 13),
            ("dgx-h100:boxes=2", (3, 100_000_000_000), 2),
            ("dgx-a100:boxes=4", (3, 25_000_000_000), 1),
            ("mi250:boxes=1", (7, 150_000_000_000), 3),
            ("ring:4", (3, 50_000_000_000), 2),
        ] {
            let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
            let found = generic_allgather(&topology).unwrap();
            assert_eq!((found.inverse_rate, found.trees_per_rank), (inverse_rate, trees_per_rank), "{expression}");
        }
    }

    #[test]
    fn what_it_is_not_made_for_is_refused() {
        let topology = generate("dgx-a100:boxes=2,degrade=b0g3>ib*1/2", &TopologyLimits::STANDARD).unwrap();
        assert!(generic_allgather(&topology).unwrap_err().to_string().contains("as much in as out"));
    }
}
