//! RCCL: fixed rings on machines that it knows by their links, and a table of constants for each kind.
//!
//! It never looks at NICs, so what they carry together is a limit of ours.

use canopy_schedule::CollectiveKind;
use num_rational::Ratio;

use crate::nccl::tuning::{Algorithm, Bandwidth, Cost, Protocol};

/// A machine that RCCL knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// Four MI250 of two GPUs each or eight of them, with NICs: table 4.
    Mi250,
    /// Eight MI300X: table 5.
    Mi300x,
}

/// Constants of a kind of machine; of low latency, low latency 128, simple.
struct Table {
    /// What all rings carry, in MB/s.
    bus: u128,
    /// Whether trees are used in one machine.
    has_trees_inside: bool,
    /// Steps over links of the machine and over the network, of rings and of trees, in ns.
    ring_ns: [[u64; 3]; 2],
    tree_ns: [[u64; 3]; 2],
    /// Hundredths of the bus, of rings, and of trees with one or two machines and with more.
    ring_hundredths: [u128; 3],
    tree_hundredths: [[u128; 3]; 2],
    /// Tenths of it with messages of 64 bytes, 128 bytes, and so on, of trees and of rings across machines.
    tree_tenths: [u128; 27],
    ring_tenths: [u128; 27],
}

const MI250: Table = Table {
    bus: 161_400,
    has_trees_inside: true,
    ring_ns: [[800, 2_200, 3_600], [35_400, 87_800, 209_200]],
    tree_ns: [[800, 1_400, 2_500], [32_200, 34_400, 47_600]],
    ring_hundredths: [15, 41, 100],
    tree_hundredths: [[16, 109, 161], [16, 109, 108]],
    tree_tenths: [10, 10, 10, 10, 10, 10, 10, 10, 8, 4, 3, 3, 1, 1, 10, 10, 7, 5, 6, 5, 6, 6, 5, 6, 6, 6, 7],
    ring_tenths: [1, 1, 1, 1, 1, 1, 1, 1, 1, 10, 10, 8, 5, 1, 7, 2, 4, 4, 6, 7, 9, 10, 10, 10, 10, 10, 10],
};

const MI300X: Table = Table {
    bus: 336_000,
    has_trees_inside: false,
    ring_ns: [[800, 0, 2_100], [9_500, 0, 320_000]],
    tree_ns: [[900, 0, 2_300], [10_500, 0, 25_000]],
    ring_hundredths: [8, 0, 100],
    tree_hundredths: [[6, 0, 11], [6, 0, 59]],
    tree_tenths: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 8],
    ring_tenths: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 8, 10, 10, 10],
};

/// Once for each call.
const BASE_NS: u64 = 17_000;
/// What a step of simple rings in a machine takes at least, across machines.
const OVERHEAD_NS: u64 = 6_000;

impl Known {
    const fn table(self) -> &'static Table {
        match self {
            Self::Mi250 => &MI250,
            Self::Mi300x => &MI300X,
        }
    }

    /// The part of the bus that simple trees have with messages of `bytes`.
    pub(crate) fn tree_part(self, nodes: u32, bytes: u64) -> f64 {
        let table = self.table();
        let [.., hundredths] = table.tree_hundredths[usize::from(nodes > 2)];
        let tenths = table.tree_tenths[column(bytes)];
        (hundredths * tenths) as f64 / 1_000.0
    }

    /// What its rings carry in a machine, if the links of a GPU carry `described` together, both in bytes per second. Of MI250,
    /// whose rings pass some of its links only, the table knows it.
    pub const fn bus(self, described: f64) -> f64 {
        match self {
            Self::Mi250 => MI250.bus as f64 * 1e6,
            Self::Mi300x => described,
        }
    }

    /// Of simple trees: once, and a step between machines, or inside one.
    pub(crate) const fn latencies_ns(self, is_across: bool) -> (u64, u64) {
        let [[.., inside], [.., across]] = self.table().tree_ns;
        (BASE_NS, if is_across { across } else { inside })
    }
}

/// A collective on some machines.
#[derive(Clone, Copy)]
pub(crate) struct RcclCall {
    pub(crate) known: Known,
    /// GPUs of each.
    pub(crate) gpus: u32,
    pub(crate) nodes: u32,
    /// What the NICs of a machine carry together, in MB/s.
    pub(crate) outside: u64,
    pub(crate) kind: CollectiveKind,
}

impl RcclCall {
    /// Cost of an algorithm and protocol for messages of `bytes`; `None` where RCCL does not have it for this call. It models
    /// only the simple protocol: the constants of the others decide below a megabyte.
    pub(crate) fn cost(&self, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> Option<Cost> {
        let table = self.known.table();
        let (ranks, nodes) = (u64::from(self.gpus) * u64::from(self.nodes), u64::from(self.nodes));
        if ranks < 2 || protocol != Protocol::Simple {
            return None;
        }
        let row = protocol as usize;
        let (steps, across) = match self.kind {
            CollectiveKind::Allreduce => (2 * (ranks - 1), if nodes > 1 { 2 * nodes } else { 0 }),
            CollectiveKind::Broadcast | CollectiveKind::Reduce => (ranks, nodes - 1),
            _ => (ranks - 1, nodes - 1),
        };
        let bus = match nodes {
            1 => table.bus,
            _ => table.bus.min(self.outside.into()),
        };
        let column = column(bytes);
        let part = |numerator: u128, denominator: u128| Ratio::new(numerator, denominator.max(1));
        match algorithm {
            Algorithm::Ring => {
                let tenths = if nodes > 1 { table.ring_tenths[column] } else { 10 };
                let algbw: Bandwidth =
                    part(bus * table.ring_hundredths[row], 100) * part(ranks.into(), steps.into()) * part(tenths, 10);
                let [inside_ns, across_ns] = table.ring_ns.map(|of| of[row]);
                let inside_ns = if nodes > 1 { inside_ns.max(OVERHEAD_NS) } else { inside_ns };
                let latency_ns = BASE_NS + (steps - across.min(steps)) * inside_ns + across * across_ns;
                Some(Cost { latency_ns, algbw })
            }
            Algorithm::Tree if self.kind == CollectiveKind::Allreduce && (nodes > 1 || table.has_trees_inside) => {
                let hundredths = table.tree_hundredths[usize::from(nodes > 2)][row];
                let algbw = part(bus * hundredths, 200) * part(table.tree_tenths[column], 10);
                let [inside_ns, across_ns] = table.tree_ns.map(|of| of[row]);
                let steps = u64::from(self.gpus - 1) * inside_ns + u64::from(self.nodes.ilog2()) * across_ns;
                Some(Cost { latency_ns: BASE_NS + 2 * steps, algbw })
            }
            _ => None,
        }
    }
}

/// The place of a size in tables of tenths.
fn column(bytes: u64) -> usize {
    (bytes.max(64).ilog2() as usize - 6).min(26)
}
