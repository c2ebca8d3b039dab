//! Bandwidth and latency of each algorithm and protocol by NCCL's own formulas.

use canopy_schedule::CollectiveKind;
use num_rational::Ratio;

use crate::nccl::channels::{nvls, rings, trees};
use crate::nccl::machine::{Machine, Processor};
use crate::nccl::tables::{
    LL_MAX_MORE, LL_MAX_ONE, LL_MAX_TWO, NVLS_HUNDREDTHS, NVLS_NS, NVLS_TREE_MAX, RING, RING_128, TREE, TREE_128,
    TREE_MAX, TREE_TENTHS,
};
use crate::nccl::version::Release;

/// An algorithm of NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// Rings through all GPUs.
    Ring,
    /// Two binary trees over machines, up and down.
    Tree,
    /// Switches of one machine multicast and add up.
    Nvls,
    /// The same in each of several machines, with trees between them.
    NvlsTree,
    /// Parallel trees of one GPU per machine.
    Pat,
    /// Each NIC's GPU gathers a part of its machine, and switches of the network add it up.
    CollNetDirect,
    /// The same with a chain through the GPUs of a machine.
    CollNetChain,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Ring, Self::Tree, Self::Nvls, Self::NvlsTree, Self::Pat, Self::CollNetDirect, Self::CollNetChain];

    /// NCCL's word for it, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Tree => "tree",
            Self::Nvls => "nvls",
            Self::NvlsTree => "nvlstree",
            Self::Pat => "pat",
            Self::CollNetDirect => "collnetdirect",
            Self::CollNetChain => "collnetchain",
        }
    }
}

/// How messages are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// A flag with each word: least latency, half of the rate.
    LowLatency,
    /// A flag with each 128 bytes.
    LowLatency128,
    /// Whole pieces.
    Simple,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::LowLatency, Self::LowLatency128, Self::Simple];

    /// NCCL's word for it, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LowLatency => "ll",
            Self::LowLatency128 => "ll128",
            Self::Simple => "simple",
        }
    }
}

/// A rate in MB/s.
pub(crate) type Bandwidth = Ratio<u128>;

/// What a call costs: some ns once, and its bytes at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) latency_ns: u64,
    pub(crate) algbw: Bandwidth,
}

/// A collective on some machines.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) machine: &'a Machine,
    /// ≥ 1.
    pub(crate) nodes: u32,
    pub(crate) kind: CollectiveKind,
    pub(crate) release: &'a Release,
}

pub(crate) fn whole(value: impl Into<u128>) -> Bandwidth {
    Ratio::from_integer(value.into())
}

pub(crate) fn part(numerator: impl Into<u128>, denominator: impl Into<u128>) -> Bandwidth {
    Ratio::new(numerator.into(), denominator.into().max(1))
}

impl Call<'_> {
    pub(crate) fn ranks(&self) -> u64 {
        u64::from(self.machine.gpus.max(1)) * u64::from(self.nodes.max(1))
    }

    /// Steps of a ring, and how many of them are between machines.
    pub(crate) fn steps(&self) -> (u64, u64) {
        let (ranks, nodes) = (self.ranks(), u64::from(self.nodes));
        match self.kind {
            CollectiveKind::Allreduce => (2 * (ranks - 1), 2 * (nodes - 1)),
            CollectiveKind::Broadcast | CollectiveKind::Reduce => (ranks, nodes - 1),
            _ => (ranks - 1, nodes - 1),
        }
    }

    pub(crate) const fn is_across(&self) -> bool {
        self.nodes > 1
    }

    /// Column of tables by number of machines.
    pub(crate) fn column(&self) -> usize {
        self.nodes.clamp(1, 3) as usize - 1
    }

    pub(crate) fn low_latency_max(&self) -> Bandwidth {
        let generation = self.machine.generation.column();
        let processor = usize::from(self.machine.processor == Processor::Amd);
        whole(match self.nodes {
            0 | 1 if generation == 2 => self.release.ll_max_hopper,
            0 | 1 => LL_MAX_ONE[generation],
            2 => LL_MAX_TWO[processor],
            _ => LL_MAX_MORE[processor],
        })
    }

    /// Cost of an algorithm and protocol for messages of `bytes`; `None` where NCCL does not have it for this call. The size
    /// counts because trees are slower at some sizes, and rings have more latency in large calls.
    pub(crate) fn cost(&self, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> Option<Cost> {
        // It takes NVLink, and NICs that are near.
        if protocol == Protocol::LowLatency128 && !self.machine.has_nvlink {
            return None;
        }
        match (algorithm, protocol) {
            (Algorithm::Ring, _) => self.ring(protocol, bytes),
            (Algorithm::Tree, _) => self.tree(protocol, bytes),
            (Algorithm::Nvls, Protocol::Simple) => self.nvls(),
            (Algorithm::NvlsTree, Protocol::Simple) => self.nvls_tree(bytes),
            (Algorithm::Pat, Protocol::Simple) => self.pat(),
            (Algorithm::CollNetDirect, Protocol::Simple) => self.collnet_direct(),
            (Algorithm::CollNetChain, Protocol::Simple) => self.collnet_chain(),
            _ => None,
        }
    }

    fn ring(&self, protocol: Protocol, bytes: u64) -> Option<Cost> {
        if self.ranks() < 2 {
            return None;
        }
        let channels = rings(self.machine, self.is_across(), self.release)?;
        let (steps, across) = self.steps();
        let has_inside = self.nodes <= 2 && !self.release.counts_outside;
        let bus = whole(u64::from(channels.count) * if has_inside { channels.inside } else { channels.outside });
        let bus = match protocol {
            Protocol::LowLatency => {
                let adds_up = matches!(self.kind, CollectiveKind::Allreduce | CollectiveKind::Reduce);
                let (numerator, denominator) = self.release.ring_ll[usize::from(!self.is_across() && !adds_up)];
                self.low_latency_max().min(bus * part(numerator, denominator))
            }
            Protocol::LowLatency128 => {
                let of_channel = RING_128[self.machine.generation.column()][self.column()];
                (bus * part(92_u8, 100_u8)).min(whole(u64::from(channels.count) * of_channel))
            }
            Protocol::Simple => bus,
        };
        let row = protocol as usize;
        let is_simple = protocol == Protocol::Simple;
        let mut inside_ns = if self.machine.has_nvlink { RING.nvlink[row] } else { RING.pci[row] };
        if self.is_across() {
            let overhead_ns = if self.machine.processor == Processor::Amd { 2_000 } else { 1_000 };
            inside_ns = inside_ns.max(overhead_ns * if is_simple { 3 } else { 1 });
        }
        // With one GPU in each machine, rings are counted like trees.
        let network_ns = if self.machine.gpus <= 1 { self.tree_network_ns(protocol) } else { RING.network[row] };
        let across_ns = network_ns + self.machine.network_ns * if is_simple { 2 } else { 1 };
        let mut latency_ns = RING.base[row] + (steps - across.min(steps)) * inside_ns + across * across_ns;
        let is_allreduce = self.kind == CollectiveKind::Allreduce;
        let per_channel = u64::from(2 * channels.count).saturating_mul(self.ranks()).max(1);
        if is_simple && self.is_across() && is_allreduce && bytes / per_channel >= 64 {
            latency_ns = latency_ns * if self.machine.generation.column() == 0 { 19 } else { 14 } / 10;
        }
        Some(Cost { latency_ns, algbw: bus * part(self.ranks(), steps) })
    }

    fn tree_network_ns(&self, protocol: Protocol) -> u64 {
        match protocol {
            Protocol::Simple => self.release.tree_simple_ns[1],
            _ => TREE.network[protocol as usize],
        }
    }

    fn tree(&self, protocol: Protocol, bytes: u64) -> Option<Cost> {
        if self.kind != CollectiveKind::Allreduce || self.ranks() < 2 {
            return None;
        }
        let channels = trees(self.machine, self.is_across(), self.release)?;
        let count = u64::from(channels.count);
        let (generation, column, row) = (self.machine.generation.column(), self.column(), protocol as usize);
        let class = match (self.release.counts_outside, self.nodes <= 2) {
            (true, _) => channels.inside.min(channels.outside),
            (false, true) => channels.inside,
            (false, false) => channels.outside,
        };
        let bus = (whole(count * class) * part(92_u8, 100_u8)).min(whole(count * TREE_MAX[generation][column]));
        let bus = match protocol {
            Protocol::LowLatency => (bus * part(10_u8, 38_u8)).min(self.low_latency_max()),
            Protocol::LowLatency128 => {
                let reached = if self.nodes <= 1 { part(7_u8, 9_u8) } else { part(15_u8, 16_u8) };
                (bus * reached).min(whole(count * TREE_128[generation][column]))
            }
            Protocol::Simple => bus,
        };
        let is_simple = protocol == Protocol::Simple;
        let inside_ns = match (is_simple, self.machine.has_nvlink) {
            (true, _) => self.release.tree_simple_ns[0],
            (false, true) => TREE.nvlink[row],
            (false, false) => TREE.pci[row],
        };
        let base_ns = if is_simple { self.release.tree_simple_base_ns } else { TREE.base[row] };
        let across_ns = self.tree_network_ns(protocol) + self.machine.network_ns * if is_simple { 2 } else { 1 };
        let inside_steps = u64::from(self.machine.gpus.max(1) - 1);
        let latency_ns = base_ns + 2 * (inside_steps * inside_ns + u64::from(self.nodes.max(1).ilog2()) * across_ns);
        Some(Cost { latency_ns, algbw: bus * part(1_u8, 2_u8) * tenths(row, bytes) })
    }

    /// What a head of NVLS carries inside a machine.
    pub(crate) fn nvls_inside(&self, count: u32, class: u64) -> Bandwidth {
        let gpus = u64::from(self.machine.gpus);
        let times = match self.kind {
            CollectiveKind::Allreduce => whole(2_u8),
            _ => part(gpus - 1, gpus),
        };
        let efficiency = part(NVLS_HUNDREDTHS[self.machine.generation.column()], 100_u8);
        whole(class) * efficiency * part(count - 1, count) * times
    }

    /// Switches of one machine. Allreduce, allgather and reduce-scatter.
    fn nvls(&self) -> Option<Cost> {
        let has_it =
            matches!(self.kind, CollectiveKind::Allreduce | CollectiveKind::Allgather | CollectiveKind::ReduceScatter);
        if !has_it {
            return None;
        }
        if self.is_across() {
            return self.nvls_collnet();
        }
        let heads = nvls(self.machine, false, self.release)?;
        let count = whole(heads.count);
        let algbw = if !self.release.has_nvls_efficiency {
            count * whole(heads.inside) * part(5_u8, 6_u8)
        } else if self.kind == CollectiveKind::Allreduce {
            count * self.nvls_inside(heads.count, heads.inside) * part(self.ranks(), self.steps().0)
        } else {
            count * self.nvls_inside(heads.count, heads.inside)
        };
        Some(Cost { latency_ns: self.release.nvls_base_ns + NVLS_NS, algbw })
    }

    /// Switches of several machines, with trees between them. Allreduce only.
    fn nvls_tree(&self, bytes: u64) -> Option<Cost> {
        if !self.is_across() || self.kind != CollectiveKind::Allreduce {
            return None;
        }
        let heads = nvls(self.machine, true, self.release)?;
        let count = whole(heads.count);
        let algbw = if self.release.has_nvls_efficiency {
            let outside = whole(heads.outside * if self.nodes == 2 { 2 } else { 1 });
            let most = whole(NVLS_TREE_MAX[self.machine.generation.column()][self.column()]);
            let of_head = self.nvls_inside(heads.count, heads.inside).min(outside).min(most);
            count * of_head * part(self.ranks(), self.steps().0)
        } else {
            let outside = if self.nodes == 2 { whole(heads.outside) } else { part(heads.outside, 2_u8) };
            count * whole(heads.inside).min(outside) * part(5_u8, 6_u8)
        };
        let is_corrected = self.machine.generation.column() == 3;
        let algbw = if is_corrected { algbw * tenths(Protocol::Simple as usize, bytes) } else { algbw };
        let across_ns = self.release.nvls_tree_ns + 2 * self.machine.network_ns;
        let latency_ns = self.release.nvls_base_ns + NVLS_NS + 2 * u64::from(self.nodes.ilog2()) * across_ns;
        Some(Cost { latency_ns, algbw })
    }

    /// One GPU in each machine; allgather and reduce-scatter.
    fn pat(&self) -> Option<Cost> {
        let has_it = matches!(self.kind, CollectiveKind::Allgather | CollectiveKind::ReduceScatter);
        if !self.release.has_pat || !has_it || self.machine.gpus != 1 || !self.is_across() {
            return None;
        }
        let channels = rings(self.machine, true, self.release)?;
        let class = if self.nodes <= 2 { channels.inside } else { channels.outside };
        let latency_ns = 8_000 + u64::from(self.nodes.ilog2()) * 4_000 + self.ranks() * 2_800;
        Some(Cost { latency_ns, algbw: whole(u64::from(channels.count) * class) * part(3_u8, 4_u8) })
    }
}

/// The fraction of its bandwidth that a tree reaches with messages of `bytes`.
pub(crate) fn tenths(row: usize, bytes: u64) -> Bandwidth {
    let column = bytes.max(64).ilog2() as usize - 6;
    TREE_TENTHS[row].get(column).map_or_else(|| whole(1_u8), |&tenths| part(tenths, 10_u8))
}
