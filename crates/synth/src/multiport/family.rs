//! Which of these schedules are a network's own.

use canopy_direct::multiport::{Grid, require_kautz};
use canopy_topology::Topology;

use super::directed::Directed;
use super::{DFC2, DFC2_DO, KAUTZ, KAUTZ_M};
use crate::algorithm::Algorithm;

/// Algorithms that are made for the family of networks that one is of, whatever its labels: of a Kautz network, of a grid in which all ranks of every
/// line are joined.
///
/// None where all ranks are joined with each other: that is both, and every message goes straight to its receiver.
///
/// * **In.** Any topology; switches are of no such family. **Cost.** O(ranks + links) where counts rule both out, else O(ranks · links).
pub fn family_algorithms(topology: &Topology) -> &'static [Algorithm] {
    if topology.nodes().len() != topology.rank_count() as usize {
        return &[];
    }
    let Ok(Directed { graph, .. }) = Directed::new(topology, false) else { return &[] };
    if require_kautz(&graph).is_ok_and(|diameter| diameter > 1) {
        const { &[Algorithm::of(&KAUTZ), Algorithm::of(&KAUTZ_M)] }
    } else if Grid::of(&graph).is_ok_and(|grid| grid.sides().len() > 1) {
        const { &[Algorithm::of(&DFC2), Algorithm::of(&DFC2_DO)] }
    } else {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    #[test]
    fn families_have_algorithms_of_their_own() {
        let of = |expression: &str| family_algorithms(&generate(expression, &TopologyLimits::STANDARD).unwrap());
        assert_eq!(of("kautz:d=3,n=2"), [Algorithm::Kautz, Algorithm::KautzM]);
        assert_eq!(of("kautz:d=2,n=3"), [Algorithm::Kautz, Algorithm::KautzM]);
        for grid in ["dfc2:4x5", "torus:3x3", "hypercube:4", "ring:4"] {
            assert_eq!(of(grid), [Algorithm::Dfc2, Algorithm::Dfc2Do], "{grid}");
        }
        for other in ["complete:5", "ring:6", "mesh:3x4", "torus:4x5", "dgx-a100:boxes=2", "genkautz:n=11,d=4"] {
            assert_eq!(of(other), [], "{other}");
        }
    }
}
