//! The cost of adding up (γ) and of a call (ε).

use canopy_schedule::{CollectiveKind, Schedule};
use canopy_simulate::{Pieces, Sharing, SimulateOptions};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Capacity, Latency, Topology, TopologyLimits, generate};
use proptest::prelude::*;

use crate::networks::{ALPHA_PS, BETA, collective, options, run, run_in_steps};

/// 10 ps for each byte.
fn reduce_rate() -> Option<Capacity> {
    Capacity::from_bytes_per_sec(100_000_000_000)
}

const GAMMA: u64 = 10;

fn planned(network: &str, kind: CollectiveKind, algorithm: Algorithm) -> (Topology, Schedule) {
    let topology = generate(network, &TopologyLimits::STANDARD).unwrap();
    let request = SynthesisRequest::new(collective(&topology, kind), algorithm);
    let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
    (topology, schedule)
}

/// Bytes of a share, so that chunks of breadth-first broadcasts are whole bytes.
const SHARE: u64 = 27_720;

/// Zhao 2026 §A.3.4, corollary 6.1: a bandwidth-optimal allreduce takes `2M(1/B + γ/2)(N−1)/N` in all, B being what a node
/// sends over all ports, if all of a step is received before it is added up. On a full mesh and a ring, all messages of a
/// step arrive at once; elsewhere sums of the first ones are hidden behind the others, and it takes less.
#[test]
fn sums_of_an_optimal_allreduce_take_half_of_gamma_for_each_byte_sent() {
    let networks = [("complete:6", 5), ("ring:8", 2), ("torus:4x4", 4), ("hypercube:3", 3), ("bipartite:4x4", 4)];
    for (number, (network, ports)) in networks.into_iter().enumerate() {
        for kind in [CollectiveKind::ReduceScatter, CollectiveKind::Allreduce, CollectiveKind::Allgather] {
            let (topology, schedule) = planned(&format!("{network},bw=25GB/s,lat=0us"), kind, Algorithm::Bfb);
            let ranks = u64::from(topology.rank_count());
            let (phases, sums) = match kind {
                CollectiveKind::Allreduce => (2, 1),
                CollectiveKind::ReduceScatter => (1, 1),
                _ => (1, 0),
            };
            let sent = (ranks - 1) * SHARE;
            let bytes = phases * sent * BETA / ports;
            for sharing in [Sharing::Fair, Sharing::Fifo] {
                let alpha = Latency::default();
                let options = SimulateOptions { alpha, sharing, reduce_rate: reduce_rate(), ..options(ranks * SHARE) };
                let found = run_in_steps(&topology, &schedule, &options).time_ps;
                let name = format!("{kind} on {network}, {sharing:?}");
                // A picosecond for each step, where a time is no whole number.
                let most = bytes + sums * sent * GAMMA + 20;
                assert!(
                    (bytes..=most).contains(&found) && (sums == 0 || found > bytes + 20),
                    "{name}: {found}, {most}"
                );
                assert!(number > 1 || found + 40 >= most, "{name}: {found}, {most}");
                assert!(run(&topology, &schedule, &options).time_ps <= found, "{name}, no barriers");
            }
        }
    }
}

/// A chain adds up what comes in at each rank: α, bytes, sum, three times.
#[test]
fn what_waits_for_a_sum_waits_for_its_end() {
    let (topology, schedule) = planned("mesh:4,bw=25GB/s,lat=0us", CollectiveKind::Reduce, Algorithm::Forest);
    let size = 120_000;
    let with = SimulateOptions { reduce_rate: reduce_rate(), ..options(size) };
    assert_eq!(run(&topology, &schedule, &options(size)).time_ps, 3 * (ALPHA_PS + size * BETA));
    assert_eq!(run(&topology, &schedule, &with).time_ps, 3 * (ALPHA_PS + size * (BETA + GAMMA)));
    // In pieces, a rank adds one up while the next one comes.
    let pieces = SimulateOptions { pieces: Pieces::Count(4), ..with };
    assert_eq!(run(&topology, &schedule, &pieces).time_ps, 6 * (ALPHA_PS + size / 4 * BETA) + 3 * size / 4 * GAMMA);
}

/// Zhao 2026 §A.1.2: ε is the same for all sizes and schedules.
#[test]
fn a_launch_comes_once_before_everything() {
    for kind in [CollectiveKind::Allreduce, CollectiveKind::AllToAll] {
        let (topology, schedule) = planned("torus:3x3", kind, Algorithm::Direct);
        for size in [0, 9 << 10, 9 << 20] {
            let launch = Latency::from_nanos(21_600);
            let (without, with) = (options(size), SimulateOptions { launch, ..options(size) });
            let times = [without, with].map(|options| run(&topology, &schedule, &options).time_ps);
            assert_eq!(times[0] + 21_600_000, times[1], "{kind} of {size}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Zhao 2026 §A.3.4, theorem 6: sums of a reduce-scatter in steps take at most `γ·B` times as long as its bytes, since
    /// a node receives at most what its ports carry.
    #[test]
    fn sums_take_no_longer_than_bytes_allow(nodes in 5_u32..14, degree in 2_u32..4, rate in 1_u64..2_000, fifo: bool) {
        let network = format!("genkautz:n={nodes},d={degree},bw=25GB/s,lat=0us");
        let (topology, schedule) = planned(&network, CollectiveKind::ReduceScatter, Algorithm::Bfb);
        let rate = rate * 1_000_000_000;
        let sharing = if fifo { Sharing::Fifo } else { Sharing::Fair };
        let options = SimulateOptions { alpha: Latency::default(), sharing, ..options(u64::from(nodes) * SHARE) };
        let bytes = run_in_steps(&topology, &schedule, &options).time_ps;
        let reduce_rate = Capacity::from_bytes_per_sec(rate);
        let both = run_in_steps(&topology, &schedule, &SimulateOptions { reduce_rate, ..options }).time_ps;
        let most = u128::from(bytes) * u128::from(degree) * 25_000_000_000 / u128::from(rate);
        // Sums are rounded up to a picosecond for each message of a step.
        prop_assert!(u128::from(both) <= u128::from(bytes) + most + 1_000, "{bytes} {both} {most}");
        prop_assert!(both >= bytes);
    }
}
