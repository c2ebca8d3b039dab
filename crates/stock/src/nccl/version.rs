//! Releases whose constants differ.

use std::fmt;
use std::str::FromStr;

/// A release of NCCL or RCCL. Those in between behave like the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// NCCL 2.18.
    Nccl2_18,
    /// NCCL 2.21.
    Nccl2_21,
    /// NCCL 2.24.
    Nccl2_24,
    /// NCCL 2.27.
    Nccl2_27,
    /// NCCL 2.28 and 2.29.
    Nccl2_28,
    /// NCCL 2.30.
    #[default]
    Nccl2_30,
    /// NCCL 2.31.
    Nccl2_31,
    /// RCCL 2.21.
    Rccl2_21,
}

/// What differs between releases of NCCL.
pub(crate) struct Release {
    name: &'static str,
    /// Parts of the bus that low-latency rings have: across machines or for sums, and else.
    pub(crate) ring_ll: [(u128, u128); 2],
    /// Once for each call of simple trees, in ns.
    pub(crate) tree_simple_base_ns: u64,
    /// A step of simple trees over NVLink or PCI, and over the network, in ns.
    pub(crate) tree_simple_ns: [u64; 2],
    /// Of NVLS: once, and a step of its tree over the network, in ns.
    pub(crate) nvls_base_ns: u64,
    pub(crate) nvls_tree_ns: u64,
    /// Hopper's low-latency limit in one box, in MB/s.
    pub(crate) ll_max_hopper: u64,
    /// Whether NVLS counts with an efficiency by generation; before, with five sixths.
    pub(crate) has_nvls_efficiency: bool,
    /// Whether classes of 50, 22 and 11 GB/s are tried on Hopper.
    pub(crate) has_fine_classes: bool,
    /// Whether PAT is there.
    pub(crate) has_pat: bool,
    /// Whether rings count with their class outside, and trees with the smaller of both, whatever the number of machines.
    pub(crate) counts_outside: bool,
    /// Whether CollNet takes a NIC for each GPU, even for an allreduce.
    pub(crate) collnet_takes_all_nics: bool,
}

const NEWEST: Release = Release {
    name: "2.30",
    ring_ll: [(1, 2); 2],
    tree_simple_base_ns: 8_400,
    tree_simple_ns: [4_000, 14_000],
    nvls_base_ns: 0,
    nvls_tree_ns: 20_900,
    ll_max_hopper: 141_000,
    has_nvls_efficiency: true,
    has_fine_classes: true,
    has_pat: true,
    counts_outside: false,
    collnet_takes_all_nics: false,
};
const RELEASE_2_27: Release = Release { name: "2.27", nvls_tree_ns: 14_000, has_nvls_efficiency: false, ..NEWEST };
const RELEASE_2_21: Release =
    Release { name: "2.21", tree_simple_base_ns: 0, tree_simple_ns: [28_000, 28_000], has_pat: false, ..RELEASE_2_27 };
const RELEASES: [(Version, Release); 7] = [
    (
        Version::Nccl2_18,
        Release {
            name: "2.18",
            ring_ll: [(1, 4), (1, 3)],
            nvls_base_ns: 23_000,
            nvls_tree_ns: 19_000,
            ll_max_hopper: 87_700,
            has_fine_classes: false,
            ..RELEASE_2_21
        },
    ),
    (Version::Nccl2_21, RELEASE_2_21),
    (Version::Nccl2_24, Release { name: "2.24", ..RELEASE_2_27 }),
    (Version::Nccl2_27, RELEASE_2_27),
    (Version::Nccl2_28, Release { name: "2.28", ..NEWEST }),
    (Version::Nccl2_30, NEWEST),
    (Version::Nccl2_31, Release { name: "2.31", counts_outside: true, collnet_takes_all_nics: true, ..NEWEST }),
];

const RCCL: &str = "rccl-2.21";

/// Text that names no release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no release that canopy knows; use {}", names())]
pub struct UnknownVersion {
    /// What was given.
    pub found: String,
}

fn names() -> String {
    Version::ALL.map(Version::name).join(", ")
}

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Self; 8] = [
        Self::Nccl2_18,
        Self::Nccl2_21,
        Self::Nccl2_24,
        Self::Nccl2_27,
        Self::Nccl2_28,
        Self::Nccl2_30,
        Self::Nccl2_31,
        Self::Rccl2_21,
    ];

    /// Its name on command lines: `2.30`, `rccl-2.21`.
    pub fn name(self) -> &'static str {
        self.release().map_or(RCCL, |release| release.name)
    }

    /// What is special about it; none for RCCL.
    pub(crate) fn release(self) -> Option<&'static Release> {
        RELEASES.iter().find(|(version, _)| *version == self).map(|(_, release)| release)
    }
}

/// `NCCL 2.30`, `RCCL 2.21`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.release() {
            Some(release) => write!(f, "NCCL {}", release.name),
            None => f.write_str("RCCL 2.21"),
        }
    }
}

/// A known release, or one in between, such as `2.25`: it behaves like the one before. One older or newer than all is
/// refused.
impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownVersion { found: text.chars().take(40).collect() };
        let lower = text.to_ascii_lowercase();
        if let Some(known) = Self::ALL.into_iter().find(|version| version.name() == lower) {
            return Ok(known);
        }
        let minor = |name: &str| name.strip_prefix("2.")?.split('.').next()?.parse::<u32>().ok();
        let wanted = minor(lower.strip_prefix("nccl-").unwrap_or(&lower)).ok_or_else(unknown)?;
        let mut known = RELEASES.iter().filter_map(|(version, release)| Some((minor(release.name)?, *version)));
        let newest = known.clone().map(|(number, _)| number).max().unwrap_or(0);
        let before = known.rfind(|&(number, _)| number <= wanted && wanted <= newest);
        before.map(|(_, version)| version).ok_or_else(unknown)
    }
}
