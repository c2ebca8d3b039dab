//! The table of families: which members would have the counts of a network, in the order of preference.

use crate::summary::Summary;
use crate::{boxes, fabrics, grids};

/// A family that networks are recognised as members of.
pub(crate) struct Family {
    /// As the generator calls it.
    pub(crate) name: &'static str,
    /// Parameters of the members that have the counts of a network, as the generator reads them, likeliest first. What
    /// does not have them all may be among these; what has them must be.
    pub(crate) candidates: fn(&Summary<'_>) -> Vec<String>,
}

/// All of them. A network that is a member of several is named by the first: the one that says most about it.
pub(crate) const FAMILIES: &[Family] = &[
    Family { name: "ring", candidates: grids::ring },
    Family { name: "complete", candidates: grids::complete },
    Family { name: "hypercube", candidates: grids::hypercube },
    Family { name: "torus", candidates: grids::torus },
    Family { name: "mesh", candidates: grids::mesh },
    Family { name: "bipartite", candidates: grids::bipartite },
    Family { name: "dgx-a100", candidates: boxes::dgx_a100 },
    Family { name: "dgx-h100", candidates: boxes::dgx_h100 },
    Family { name: "mi250", candidates: boxes::mi250 },
    Family { name: "rail", candidates: boxes::rail },
    Family { name: "fat-tree", candidates: fabrics::fat_tree },
    Family { name: "leaf-spine", candidates: fabrics::leaf_spine },
    Family { name: "dragonfly-router", candidates: fabrics::dragonfly_router },
];

/// Families of the generator that no network is recognised as a member of, and why.
pub const UNRECOGNISED: &[(&str, &str)] = &[
    ("random-regular", "a seed cannot be told from the network that was drawn with it"),
    ("random-euler", "a seed cannot be told from the network that was drawn with it"),
];

/// Names of the families there are in the table, in the order of preference.
pub fn recognised_names() -> Vec<&'static str> {
    FAMILIES.iter().map(|family| family.name).collect()
}
