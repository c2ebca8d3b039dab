//! The table of families: what each is called, what it takes and what builds it.

use crate::generate::arguments::Arguments;
use crate::generate::error::ExpressionError;
use crate::generate::{boxes, fabrics, grids, random};
use crate::limits::TopologyLimits;
use crate::model::TopologyDraft;
use crate::shorten::shorten;

/// What a bare first value is called in messages.
pub(super) const BARE_KEY: &str = "size";
/// Keys every family takes.
pub(super) const COMMON_KEYS: &[&str] = &["lat", "down", "nodes-down", "degrade", "faults"];
/// Keys of the expression language that nothing implements.
pub(super) const PLANNED_KEYS: &[&str] = &["host", "nicforward"];
/// Families of the expression language that nothing implements.
const PLANNED: &[&str] = &[
    "hamming",
    "twisted-torus",
    "twisted-cube",
    "kautz",
    "genkautz",
    "debruijn",
    "circulant",
    "dcirculant",
    "biring",
    "uniring",
    "distreg",
    "diamond",
    "dbjmod",
    "dfc2",
    "dragonfly",
    "dims",
];

/// A family of networks.
pub(super) struct Family {
    pub(super) name: &'static str,
    /// An expression that works.
    pub(super) example: &'static str,
    /// What its bare first value is, if it takes one.
    pub(super) bare: Option<&'static str>,
    /// Keys it takes besides [`COMMON_KEYS`].
    pub(super) keys: &'static [&'static str],
    /// Checks the size, then builds; latencies are set afterwards.
    pub(super) build: fn(&Arguments<'_>, &TopologyLimits) -> Result<TopologyDraft, ExpressionError>,
}

/// All families there are.
pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "ring",
        example: "ring:8",
        bare: Some("a number of ranks"),
        keys: &["bw", "dir"],
        build: grids::ring,
    },
    Family { name: "mesh", example: "mesh:4x4", bare: Some("extents"), keys: &["bw"], build: grids::mesh },
    Family { name: "torus", example: "torus:4x4x4", bare: Some("extents"), keys: &["bw"], build: grids::torus },
    Family {
        name: "hypercube",
        example: "hypercube:6",
        bare: Some("a dimension"),
        keys: &["bw"],
        build: grids::hypercube,
    },
    Family {
        name: "complete",
        example: "complete:8",
        bare: Some("a number of ranks"),
        keys: &["bw"],
        build: grids::complete,
    },
    Family {
        name: "bipartite",
        example: "bipartite:4x4",
        bare: Some("two sizes"),
        keys: &["bw"],
        build: grids::bipartite,
    },
    Family {
        name: "dgx-a100",
        example: "dgx-a100:boxes=2",
        bare: None,
        keys: &["boxes", "gpus"],
        build: boxes::dgx_a100,
    },
    Family {
        name: "dgx-h100",
        example: "dgx-h100:boxes=2",
        bare: None,
        keys: &["boxes", "gpus"],
        build: boxes::dgx_h100,
    },
    Family { name: "mi250", example: "mi250:boxes=2", bare: None, keys: &["boxes", "gpus"], build: boxes::mi250 },
    Family {
        name: "rail",
        example: "rail:boxes=4,gpus=8,nv=450GB/s,nic=50GB/s",
        bare: None,
        keys: &["boxes", "gpus", "nv", "nic", "spine"],
        build: boxes::rail,
    },
    Family {
        name: "fat-tree",
        example: "fat-tree:k=4,oversub=1",
        bare: None,
        keys: &["k", "oversub", "host-bw"],
        build: fabrics::fat_tree,
    },
    Family {
        name: "leaf-spine",
        example: "leaf-spine:leaves=4,hosts=8,spines=4,oversub=2",
        bare: None,
        keys: &["leaves", "hosts", "spines", "oversub", "host-bw"],
        build: fabrics::leaf_spine,
    },
    Family {
        name: "dragonfly-router",
        example: "dragonfly-router:p=4,a=8,h=4",
        bare: None,
        keys: &["p", "a", "h", "host-bw", "local", "global"],
        build: fabrics::dragonfly_router,
    },
    Family {
        name: "random-regular",
        example: "random-regular:n=64,d=4,seed=1",
        bare: None,
        keys: &["n", "d", "seed", "bw"],
        build: random::random_regular,
    },
    Family {
        name: "random-euler",
        example: "random-euler:n=64,switches=8,seed=1",
        bare: None,
        keys: &["n", "switches", "seed"],
        build: random::random_euler,
    },
];

impl Family {
    /// The family of a name.
    pub(super) fn find(name: &str, position: usize) -> Result<&'static Self, ExpressionError> {
        if let Some(family) = FAMILIES.iter().find(|family| family.name == name) {
            return Ok(family);
        }
        let names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        let (name, names) = (shorten(name), names.join(" "));
        if PLANNED.contains(&name.as_str()) {
            let available = format!("the families {names}");
            return Err(ExpressionError::NotAvailable { what: "family", name, position, available });
        }
        Err(ExpressionError::UnknownFamily { name, position, families: names })
    }

    /// The keys it takes, for a message.
    pub(super) fn keys_shown(&self) -> String {
        [self.keys, COMMON_KEYS].concat().join(" ")
    }
}
