//! The table of families: which members would have the counts of a network, in the order of preference.

use crate::families::boxes;
use crate::families::fabrics;
use crate::families::grids;
use crate::families::summary::Summary;

/// A family that networks are recognised as members of.
pub(crate) struct Family {
    /// As the generator calls it.
    pub(crate) name: &'static str,
    /// Whether its members have ranks in boxes.
    pub(crate) has_boxes: bool,
    /// Parameters of the members that have the counts of a network, as the generator reads them, likeliest first. What
    /// does not have them all may be among these; what has them must be.
    pub(crate) candidates: fn(&Summary<'_>) -> Vec<String>,
}

/// All of them. A network that is a member of several is named by the first: the one that says most about it.
pub(crate) const FAMILIES: &[Family] = &[
    Family { name: "ring", has_boxes: false, candidates: grids::ring },
    Family { name: "complete", has_boxes: false, candidates: grids::complete },
    Family { name: "hypercube", has_boxes: false, candidates: grids::hypercube },
    Family { name: "torus", has_boxes: false, candidates: grids::torus },
    Family { name: "mesh", has_boxes: false, candidates: grids::mesh },
    Family { name: "bipartite", has_boxes: false, candidates: grids::bipartite },
    Family { name: "dgx-a100", has_boxes: true, candidates: boxes::dgx_a100 },
    Family { name: "dgx-h100", has_boxes: true, candidates: boxes::dgx_h100 },
    Family { name: "dgx-b200", has_boxes: true, candidates: boxes::dgx_b200 },
    Family { name: "dgx-b300", has_boxes: true, candidates: boxes::dgx_b300 },
    Family { name: "mi300x", has_boxes: true, candidates: boxes::mi300x },
    Family { name: "mi355x", has_boxes: true, candidates: boxes::mi355x },
    Family { name: "mi250", has_boxes: true, candidates: boxes::mi250 },
    Family { name: "rail", has_boxes: true, candidates: boxes::rail },
    Family { name: "fat-tree", has_boxes: false, candidates: fabrics::fat_tree },
    Family { name: "leaf-spine", has_boxes: false, candidates: fabrics::leaf_spine },
    Family { name: "dragonfly-router", has_boxes: false, candidates: fabrics::dragonfly_router },
];

/// Names of the families there are in the table, in the order of preference.
pub fn recognised_names() -> Vec<&'static str> {
    FAMILIES.iter().map(|family| family.name).collect()
}
