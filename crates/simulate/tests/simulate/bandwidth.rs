//! Networks of as many nodes with equal bandwidth for each node: all joined, the Dragonfly of Pham 2026, which is a grid with fully
//! joined lines of `d` and `d + 1`, and the Kautz network K(d, 2).
//!
//! Its table 3.2 in exact fractions, and plans that take these times in simulation.

use canopy_schedule::CollectiveKind::{
    self, AllToAll, Allgather, Allreduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{TopologyLimits, generate};
use num_rational::Ratio;

use crate::networks::{ALPHA_PS, collective, options, run_in_steps};

type Fraction = Ratio<u64>;

/// Steps, and the bytes of the longest message of each added up, in messages M: of all blocks for rooted collectives, allreduce and
/// all-to-all, of each node's block for allgather and reduce-scatter.
type Cost = (u64, Fraction);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    /// All joined.
    Complete,
    /// `d + 1` groups of `d`.
    Dragonfly,
    /// Combined messages.
    Kautz,
}

impl Network {
    const ALL: [Self; 3] = [Self::Complete, Self::Dragonfly, Self::Kautz];

    /// Links of a node, among `d(d + 1)`.
    const fn degree(self, d: u64) -> u64 {
        match self {
            Self::Complete => d * (d + 1) - 1,
            Self::Dragonfly => 2 * d - 1,
            Self::Kautz => d,
        }
    }

    fn expression(self, d: u64) -> String {
        match self {
            Self::Complete => format!("complete:{}", d * (d + 1)),
            Self::Dragonfly => format!("dfc2:{}x{d}", d + 1),
            Self::Kautz => format!("kautz:d={d},n=2"),
        }
    }

    const fn algorithm(self) -> Algorithm {
        match self {
            Self::Complete | Self::Dragonfly => Algorithm::Dfc2Do,
            Self::Kautz => Algorithm::Kautz,
        }
    }

    /// Table 3.2 with `d` of the Kautz network and of the Dragonfly's groups, and `d(d + 1)` nodes for all.
    ///
    /// Where nodes are all joined, it prints half of an allreduce, whose phases take a step each. An all-to-all on a Dragonfly is
    /// printed as 2M/(d + 1), a block less than the d + 1 and d blocks that nodes send along each dimension in turn.
    fn printed(self, d: u64, kind: CollectiveKind) -> Cost {
        let part = Fraction::new;
        let whole = Fraction::from_integer;
        let nodes = d * (d + 1);
        match (self, kind) {
            (Self::Complete, Broadcast | Reduce | Allgather | ReduceScatter) => (1, whole(1)),
            (Self::Complete, Scatter | Gather | AllToAll | Allreduce) => (1, part(1, nodes)),
            (_, Broadcast | Reduce) => (2, whole(2)),
            (_, Allgather | ReduceScatter) => (2, whole(d + 1)),
            (_, Allreduce) => (4, part(2, d)),
            (Self::Dragonfly, Scatter | Gather) => (2, part(1, d)),
            (Self::Dragonfly, AllToAll) => (2, part(2, d + 1)),
            (Self::Kautz, Scatter | Gather) => (2, part(d + 2, nodes)),
            (Self::Kautz, AllToAll) => (2, part(2 * d + 1, nodes)),
        }
    }

    /// What plans cost.
    fn cost(self, d: u64, kind: CollectiveKind) -> Cost {
        match (self, kind, self.printed(d, kind)) {
            (Self::Complete, Allreduce, (steps, bytes)) => (2 * steps, bytes * 2),
            (Self::Dragonfly, AllToAll, (steps, bytes)) => (steps, bytes + Fraction::new(1, d * (d + 1))),
            (_, _, cost) => cost,
        }
    }

    /// Time for what all links of a node could send at once, of large messages: so many links less for each.
    fn large(self, d: u64, kind: CollectiveKind) -> Fraction {
        self.printed(d, kind).1 * self.degree(d)
    }
}

/// Times of two networks for large messages and equal bandwidth of each node, in parts of ten thousand, rounded.
fn ratio(d: u64, kind: CollectiveKind, (one, other): (Network, Network)) -> u64 {
    (one.large(d, kind) / other.large(d, kind) * 10_000).round().to_integer()
}

/// Values K5 and K6 of Pham 2026, figure 3.3 at its 4,160 nodes.
#[test]
fn large_messages_at_equal_bandwidth() {
    let d = 64;
    assert_eq!((d * (d + 1), Network::ALL.map(|network| network.degree(d))), (4_160, [4_159, 127, 64]));
    let to_complete = |network, kind| ratio(d, kind, (network, Network::Complete));
    // K5: 6.11 %.
    assert_eq!(to_complete(Network::Dragonfly, Broadcast), 611);
    // K6.
    assert_eq!(to_complete(Network::Kautz, Scatter), 10_156);
    assert_eq!(to_complete(Network::Dragonfly, Scatter), 19_849);
    assert_eq!(to_complete(Network::Kautz, Allgather), 10_002);
    assert_eq!(to_complete(Network::Kautz, AllToAll), 19_851);
    // The grid takes as much longer than the Kautz network as it has more links that it does not use in a step.
    for kind in [Broadcast, Reduce, Allgather, ReduceScatter, Allreduce] {
        assert_eq!(ratio(d, kind, (Network::Dragonfly, Network::Kautz)), (127 * 10_000 + 32) / 64, "{kind}");
    }
}

/// What table 3.2 says takes exactly that long with barriers, whatever the names: 532 GB/s for each node in all, which 19, 7 and 4
/// links divide.
#[test]
fn plans_take_the_times_of_table_3_2() {
    let (d, bytes_per_sec) = (4, 532_000_000_000_u64);
    // Whole chunks, and whole picoseconds for each byte of a link's share of them.
    let block = 20 * 28 * 76 * 133;
    for network in Network::ALL {
        let capacity = bytes_per_sec / network.degree(d);
        let expression = format!("{},bw={capacity}B/s,lat=0us", network.expression(d));
        let topology = generate(&expression, &TopologyLimits::STANDARD).unwrap();
        for kind in CollectiveKind::ALL {
            let request = SynthesisRequest::new(collective(&topology, kind), network.algorithm());
            let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
            // The message of an allgather is all blocks.
            let (message, size) = match kind {
                Allgather | ReduceScatter => (block, 20 * block),
                _ => (20 * block, 20 * block),
            };
            let (steps, bytes) = network.cost(d, kind);
            let picoseconds = bytes * message * 1_000 / (capacity / 1_000_000_000);
            assert!(picoseconds.is_integer(), "{kind} on {expression}");
            let found = run_in_steps(&topology, &schedule, &options(size)).time_ps;
            assert_eq!(found, steps * ALPHA_PS + picoseconds.to_integer(), "{kind} on {expression}");
        }
    }
}
