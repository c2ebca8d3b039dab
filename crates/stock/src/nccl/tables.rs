//! Constants of NCCL, by generation of GPUs or by protocol (low latency, low latency 128, simple).

/// Classes between machines, in MB/s: up to Ampere, Hopper, Blackwell.
pub(crate) const OUTSIDE: [&[u64]; 3] = [
    &[
        48_000, 30_000, 28_000, 24_000, 20_000, 18_000, 15_000, 12_000, 10_000, 9_000, 7_000, 6_000, 5_000, 4_000,
        3_000, 2_400, 1_200, 240, 120,
    ],
    &[
        48_000, 45_000, 42_000, 40_000, 30_000, 24_000, 22_000, 20_000, 17_500, 15_000, 12_000, 6_000, 3_000, 2_400,
        1_200, 240, 120,
    ],
    &[
        96_000, 86_000, 80_000, 48_000, 45_100, 42_000, 40_000, 30_000, 24_000, 22_000, 20_000, 17_500, 15_000, 12_000,
        6_000, 3_000, 2_400, 1_200, 240, 120,
    ],
];

/// The same inside a machine.
pub(crate) const INSIDE: [&[u64]; 3] = [
    &[40_000, 30_000, 20_000, 18_000, 15_000, 12_000, 10_000, 9_000, 7_000, 6_000, 5_000, 4_000, 3_000],
    &[60_000, 50_000, 40_000, 30_000, 24_000, 20_000, 15_000, 12_000, 11_000, 6_000, 3_000],
    &[90_000, 80_000, 70_000, 60_000, 50_000, 45_000, 40_000, 30_000, 24_000, 20_000, 19_000, 18_000],
];

/// The same before Hopper had classes of 50, 22 and 11 GB/s.
pub(crate) const OUTSIDE_COARSE: [&[u64]; 3] = [
    OUTSIDE[0],
    &[
        48_000, 45_000, 42_000, 40_000, 30_000, 24_000, 20_000, 17_500, 15_000, 12_000, 6_000, 3_000, 2_400, 1_200,
        240, 120,
    ],
    OUTSIDE[2],
];
pub(crate) const INSIDE_COARSE: [&[u64]; 3] =
    [INSIDE[0], &[60_000, 40_000, 30_000, 24_000, 20_000, 15_000, 12_000, 6_000, 3_000], INSIDE[2]];

/// Latencies in ns, by protocol.
pub(crate) struct Latencies {
    /// Once.
    pub(crate) base: [u64; 3],
    /// A step over NVLink, over PCI, and over the network.
    pub(crate) nvlink: [u64; 3],
    pub(crate) pci: [u64; 3],
    pub(crate) network: [u64; 3],
}

/// Of simple trees, the base and the steps differ by release.
pub(crate) const TREE: Latencies = Latencies {
    base: [6_800, 14_000, 8_400],
    nvlink: [600, 1_250, 4_000],
    pci: [1_000, 1_900, 4_000],
    network: [5_000, 8_500, 14_000],
};
pub(crate) const RING: Latencies = Latencies {
    base: [6_600, 14_000, 8_400],
    nvlink: [600, 1_900, 3_400],
    pci: [1_000, 2_500, 5_700],
    network: [2_700, 4_000, 14_000],
};
/// Of simple protocols: once, and a step between machines, or inside one.
pub(crate) const fn simple_latencies_ns(is_across: bool) -> (u64, u64) {
    let [.., base] = RING.base;
    let [.., step] = if is_across { RING.network } else { RING.nvlink };
    (base, step)
}

/// A step of NVLS in a machine.
pub(crate) const NVLS_NS: u64 = 25_000;

/// Most that low-latency protocols carry, in MB/s. In one machine by generation; in two by processor, Intel and AMD; in
/// more likewise.
pub(crate) const LL_MAX_ONE: [u64; 4] = [39_000, 87_700, 141_000, 282_000];
pub(crate) const LL_MAX_TWO: [u64; 2] = [39_000, 22_500];
pub(crate) const LL_MAX_MORE: [u64; 2] = [20_400, 19_000];

/// Most of a channel, in MB/s, by generation and then in one machine, two, or more: of rings with low latency 128, of trees
/// with it, of trees at all, of a head of the NVLS tree.
pub(crate) const RING_128: [[u64; 3]; 4] = [[20_000; 3], [20_000; 3], [36_700; 3], [40_000; 3]];
pub(crate) const TREE_128: [[u64; 3]; 4] =
    [[20_000; 3], [20_000; 3], [36_700, 36_700, 29_000], [55_600, 31_670, 20_000]];
pub(crate) const TREE_MAX: [[u64; 3]; 4] =
    [[26_500, 18_500, 10_000], [24_000, 23_600, 17_800], [38_700, 41_400, 36_000], [70_000, 42_800, 24_000]];
pub(crate) const NVLS_TREE_MAX: [[u64; 3]; 4] = [[0; 3], [0; 3], [0, 57_700, 45_500], [0, 96_000, 80_000]];

/// Hundredths of NVLS's bandwidth, by generation.
pub(crate) const NVLS_HUNDREDTHS: [u128; 4] = [0, 0, 85, 74];

/// Tenths of a tree's bandwidth with messages of 64 bytes, 128 bytes, and so on, by protocol.
pub(crate) const TREE_TENTHS: [[u128; 24]; 3] = [
    [10, 10, 10, 10, 9, 8, 7, 7, 7, 7, 6, 5, 4, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10, 10],
    [10, 10, 10, 10, 10, 9, 8, 8, 8, 7, 6, 6, 6, 6, 6, 6, 8, 9, 9, 9, 9, 10, 10, 10],
    [9, 9, 9, 9, 9, 9, 9, 8, 7, 6, 6, 5, 5, 5, 5, 6, 7, 8, 7, 7, 8, 9, 9, 9],
];
