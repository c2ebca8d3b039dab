//! The table of families: what each is called, what it takes and what builds it.

use canopy_direct::Family as Member;

use crate::draft::TopologyDraft;
use crate::generate::arguments::{Arguments, Takes};
use crate::generate::catalogue::two_sizes;
use crate::generate::error::ExpressionError;
use crate::generate::machines::{self, MESH_KEYS, POD_KEYS, RACK_KEYS, SWITCHED_KEYS};
use crate::generate::{boxes, catalogue, dimensions, dragonfly, fabrics, graphs, hamming_mesh, random};
use crate::limits::TopologyLimits;
use crate::shorten::shorten;
use crate::spelling::{did_you_mean, same_word};

/// What each key means. A key of two meanings has its families in the text.
const MEANINGS: [(&str, &str); 43] = [
    ("a", "routers of a group"),
    ("board", "accelerators of a board, such as 2x2"),
    ("boxes", "number of machines"),
    ("bw", "bandwidth of a link, such as 25GB/s; of `dims` one for each dimension, joined by +"),
    ("d", "links of each rank; of `kautz` and `debruijn` the letters of a word"),
    ("degrade", "links at a part of their rate, such as b0g3-ib*1/2, joined by +"),
    ("dir", "`uni` leaves out the links backwards"),
    ("down", "dead links, such as 00-01 or, one way, 00>01, joined by +"),
    ("faults", "faults at random, such as nics:3@1/2+gpus:2+seed:1"),
    ("global", "bandwidth of a link between groups"),
    ("gpus", "GPUs of a machine or rack"),
    ("h", "links of a router, or of a rank, to other groups"),
    ("host", "most that a rank sends, and receives, over all its links"),
    ("host-bw", "bandwidth of the link of a host"),
    ("host-link", "bandwidth of a link between hosts of a ring"),
    ("hosts", "hosts of a leaf; of `trn2` the hosts of a ring"),
    ("k", "ports of a switch"),
    ("lat", "latency of every link, such as 700ns"),
    ("leaves", "number of leaf switches"),
    ("link", "bandwidth of a link inside a machine"),
    ("local", "bandwidth of a link within a group"),
    ("n", "number of ranks; of `kautz` and `debruijn` the length of a word"),
    ("nic", "bandwidth of a GPU to the fabric"),
    ("nicforward", "with `host`: `true` lets traffic in transit stay on the NIC"),
    ("nics", "NICs of a machine"),
    ("nodes-down", "dead nodes, joined by +"),
    ("nv", "bandwidth of a GPU to its NVSwitch"),
    ("nvls", "`true`: NVSwitches copy and add up in plans; `false`: they do so for no library"),
    ("offsets", "how far the links of a rank lead, joined by +"),
    ("oversub", "how many times the bandwidth to hosts is that to the level above"),
    ("p", "ranks of a router"),
    ("q", "a prime from 5: 2q² ranks"),
    ("racks", "number of racks"),
    ("rails", "rails of the fabric: GPU g is on rail g modulo rails"),
    ("seed", "which of the random networks"),
    ("sharp", "`true`: switches of the fabric copy and add up in plans"),
    ("spine", "bandwidth of a rail to the spine; 0: no spine"),
    ("spines", "number of spine switches"),
    ("su", "machines of a scalable unit"),
    ("switches", "number of switches"),
    ("twist", "`true` shifts the ends of the first two dimensions by half of the third"),
    ("unwind", "replaces a switch by one-way links to this many next ranks"),
    ("xgmi", "bandwidth of a GPU to each other GPU of its machine"),
];

/// What a key means; nothing for one that no family takes.
pub(super) fn meaning(key: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(name, _)| *name == key).map(|(_, meaning)| *meaning)
}

/// A family of networks.
pub(super) struct Family {
    pub(super) takes: Takes,
    pub(super) build: Build,
}

/// What builds a family. Sizes are checked first, latencies set afterwards.
#[derive(Clone, Copy)]
pub(super) enum Build {
    /// It is a graph of ranks alone whose links have one rate, `bw`, and this many bytes per second where nothing is said.
    Member(fn(&Arguments<'_>) -> Result<Member, ExpressionError>, u64),
    /// Anything else.
    Draft(fn(&Arguments<'_>, &TopologyLimits) -> Result<TopologyDraft, ExpressionError>),
}

/// A family of graphs of ranks alone.
const fn member(
    name: &'static str,
    example: &'static str,
    bare: Option<&'static str>,
    keys: &'static [&'static str],
    build: fn(&Arguments<'_>) -> Result<Member, ExpressionError>,
) -> Family {
    Family { takes: Takes { name, example, bare, keys }, build: Build::Member(build, DEFAULT_RATE) }
}

/// A family with rates of its own.
const fn draft(
    name: &'static str,
    example: &'static str,
    bare: Option<&'static str>,
    keys: &'static [&'static str],
    build: fn(&Arguments<'_>, &TopologyLimits) -> Result<TopologyDraft, ExpressionError>,
) -> Family {
    Family { takes: Takes { name, example, bare, keys }, build: Build::Draft(build) }
}

const BW: &[&str] = &["bw"];
const ND: &[&str] = &["n", "d", "bw"];
const RANKS: Option<&str> = Some("a number of ranks");
const EXTENTS: Option<&str> = Some("extents");
const SIZES: Option<&str> = Some("two sizes");
const CHIPS: Option<&str> = Some("three sizes");
const TPU_KEYS: &[&str] = &["bw", "twist"];
/// Rate of a link where nothing is said: a 200 Gbps port.
const DEFAULT_RATE: u64 = 25_000_000_000;

/// All families there are.
pub(super) const FAMILIES: &[Family] = &[
    member("ring", "ring:8", RANKS, &["bw", "dir"], catalogue::ring),
    member("mesh", "mesh:4x4", EXTENTS, BW, |given| Ok(Member::Mesh { extents: given.extents()? })),
    member("torus", "torus:4x4x4", EXTENTS, BW, |given| Ok(Member::Torus { extents: given.extents()? })),
    member("hypercube", "hypercube:6", Some("a dimension"), BW, |given| {
        Ok(Member::Hypercube { n: given.bare_number()? })
    }),
    member("complete", "complete:8", RANKS, BW, |given| Ok(Member::Complete { n: given.bare_number()? })),
    member("bipartite", "bipartite:4x4", SIZES, BW, |given| {
        two_sizes(given).map(|[left, right]| Member::Bipartite { left, right })
    }),
    member("hamming", "hamming:3x3", EXTENTS, BW, |given| Ok(Member::Hamming { extents: given.extents()? })),
    member("twisted-torus", "twisted-torus:8x4", EXTENTS, BW, |given| {
        Ok(Member::TwistedTorus { extents: given.extents()? })
    }),
    member("twisted-cube", "twisted-cube", None, BW, |_| Ok(Member::TwistedCube)),
    member("kautz", "kautz:d=2,n=4", None, ND, |given| {
        Ok(Member::Kautz { d: given.number("d", None)?, n: given.number("n", None)? })
    }),
    member("genkautz", "genkautz:n=64,d=4", None, ND, |given| {
        Ok(Member::GenKautz { n: given.number("n", None)?, d: given.number("d", None)? })
    }),
    member("debruijn", "debruijn:d=2,n=4", None, ND, |given| {
        Ok(Member::DeBruijn { d: given.number("d", None)?, n: given.number("n", None)? })
    }),
    member("circulant", "circulant:n=16,offsets=3+4", None, &["n", "offsets", "d", "bw"], catalogue::circulant),
    member("dcirculant", "dcirculant:d=4", None, &["d", "bw"], |given| {
        Ok(Member::DirectedCirculant { d: given.number("d", None)? })
    }),
    member("biring", "biring:n=8,d=4", None, ND, |given| {
        Ok(Member::BiRing { n: given.number("n", None)?, d: given.number("d", Some(2))? })
    }),
    member("uniring", "uniring:n=8,d=2", None, ND, |given| {
        Ok(Member::UniRing { n: given.number("n", None)?, d: given.number("d", Some(1))? })
    }),
    member("distreg", "distreg:n=32,d=4", None, ND, catalogue::distreg),
    member("diamond", "diamond", None, BW, |_| Ok(Member::Diamond)),
    member("dbjmod", "dbjmod:d=2,n=4", None, ND, |given| {
        Ok(Member::ModifiedDeBruijn { d: given.number("d", None)?, n: given.number("n", None)? })
    }),
    member("dfc2", "dfc2:4x4", SIZES, BW, catalogue::dfc2),
    member("shifted-ring", "shifted-ring:n=16", None, &["n", "bw"], catalogue::shifted_ring),
    draft("slim-fly", "slim-fly:q=5", None, &["q", "bw"], graphs::slim_fly),
    draft("double-tree", "double-tree:n=16", None, &["n", "bw"], graphs::double_tree),
    draft("xpander", "xpander:n=30,d=5,seed=1", None, &["n", "d", "seed", "bw"], random::xpander),
    draft("jellyfish", "jellyfish:n=32,d=4,seed=1", None, &["n", "d", "seed", "bw"], random::jellyfish),
    draft("dragonfly", "dragonfly:4x5", SIZES, &["h", "local", "global"], dragonfly::dragonfly),
    draft(
        "dims",
        "dims:ring2+fc4+switch64,bw=200GB/s+100GB/s+50GB/s",
        Some("building blocks"),
        &["bw", "unwind"],
        dimensions::dims,
    ),
    draft("dgx-a100", "dgx-a100:boxes=2", None, SWITCHED_KEYS, |given, limits| {
        machines::boxes(given, limits, machines::DGX_A100)
    }),
    draft("dgx-h100", "dgx-h100:boxes=2", None, SWITCHED_KEYS, |given, limits| {
        machines::boxes(given, limits, machines::DGX_H100)
    }),
    draft("dgx-h200", "dgx-h200:boxes=2", None, SWITCHED_KEYS, |given, limits| {
        machines::boxes(given, limits, machines::DGX_H100)
    }),
    draft("dgx-b200", "dgx-b200:boxes=2", None, SWITCHED_KEYS, |given, limits| {
        machines::boxes(given, limits, machines::DGX_B200)
    }),
    draft("dgx-b300", "dgx-b300:boxes=2", None, SWITCHED_KEYS, |given, limits| {
        machines::boxes(given, limits, machines::DGX_B300)
    }),
    draft("hgx", "hgx:boxes=2,gpus=8,nics=4,nv=450GB/s,nic=50GB/s", None, SWITCHED_KEYS, |given, limits| {
        machines::boxes(given, limits, machines::DGX_H100)
    }),
    draft("gb200-nvl72", "gb200-nvl72:racks=2", None, RACK_KEYS, |given, limits| {
        machines::racks(given, limits, machines::GB200_NVL72)
    }),
    draft("gb300-nvl72", "gb300-nvl72:racks=2", None, RACK_KEYS, |given, limits| {
        machines::racks(given, limits, machines::GB300_NVL72)
    }),
    draft("mi300x", "mi300x:boxes=2", None, MESH_KEYS, |given, limits| {
        machines::boxes(given, limits, machines::MI300X)
    }),
    draft("mi355x", "mi355x:boxes=2", None, MESH_KEYS, |given, limits| {
        machines::boxes(given, limits, machines::MI355X)
    }),
    Family {
        takes: Takes { name: "tpu-v4", example: "tpu-v4:4x4x8", bare: CHIPS, keys: TPU_KEYS },
        build: Build::Member(catalogue::tpu, 50_000_000_000),
    },
    Family {
        takes: Takes { name: "tpu-v5p", example: "tpu-v5p:4x4x8,twist=true", bare: CHIPS, keys: TPU_KEYS },
        build: Build::Member(catalogue::tpu, 100_000_000_000),
    },
    draft("trn2", "trn2:boxes=2,hosts=4", None, &["boxes", "hosts", "link", "host-link", "nic"], machines::trn2),
    draft("mi250", "mi250:boxes=2", None, &["boxes", "gpus"], boxes::mi250),
    draft(
        "rail",
        "rail:boxes=4,gpus=8,nv=450GB/s,nic=50GB/s",
        None,
        &["boxes", "gpus", "nv", "nic", "spine"],
        boxes::rail,
    ),
    draft("pod", "pod:boxes=64,su=16,rails=8,oversub=2", None, POD_KEYS, machines::pod),
    draft("fat-tree", "fat-tree:k=4,oversub=1", None, &["k", "oversub", "host-bw"], fabrics::fat_tree),
    draft(
        "leaf-spine",
        "leaf-spine:leaves=4,hosts=8,spines=4,oversub=2",
        None,
        &["leaves", "hosts", "spines", "oversub", "host-bw"],
        fabrics::leaf_spine,
    ),
    draft(
        "dragonfly-router",
        "dragonfly-router:p=4,a=8,h=4",
        None,
        &["p", "a", "h", "host-bw", "local", "global"],
        fabrics::dragonfly_router,
    ),
    draft("hamming-mesh", "hamming-mesh:4x4,board=2x2", SIZES, &["board", "bw"], hamming_mesh::hamming_mesh),
    draft("random-regular", "random-regular:n=64,d=4,seed=1", None, &["n", "d", "seed", "bw"], random::random_regular),
    draft(
        "random-euler",
        "random-euler:n=64,switches=8,seed=1",
        None,
        &["n", "switches", "seed"],
        random::random_euler,
    ),
];

impl Family {
    /// The family of a name, whatever its case and hyphens.
    pub(super) fn find(name: &str, position: usize) -> Result<&'static Self, ExpressionError> {
        let names = || FAMILIES.iter().map(|family| family.takes.name);
        FAMILIES.iter().find(|family| same_word(family.takes.name, name)).ok_or_else(|| {
            let suggestion = did_you_mean(name, names(), "`canopy network families` lists all");
            ExpressionError::UnknownFamily { name: shorten(name), position, suggestion }
        })
    }
}
