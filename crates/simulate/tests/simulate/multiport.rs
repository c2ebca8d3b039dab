//! Collectives that use every port at once take the times that Pham 2026 gives them, to the picosecond.

use canopy_schedule::{CollectiveKind, Shape};
use canopy_simulate::{Pieces, Sharing, SimulateOptions};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{TopologyLimits, generate};

use crate::networks::{ALPHA_PS, collective, options, run, run_in_steps};

/// Picoseconds that a byte takes at 12.5 GB/s.
const BETA: u64 = 80;

/// With barriers a message of `size` bytes takes `steps` times α and as long as the bytes of the formula; without barriers, no longer.
#[track_caller]
fn takes(network: &str, (kind, algorithm): (CollectiveKind, Algorithm), size: u64, (steps, bytes): (u64, u64)) {
    let topology = generate(&format!("{network},bw=12.5GB/s,lat=0us"), &TopologyLimits::STANDARD).unwrap();
    let request = SynthesisRequest::new(collective(&topology, kind), algorithm);
    let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
    let Shape::Steps(found) = &schedule.shape else { panic!("{algorithm} makes steps") };
    let pieces = match kind {
        CollectiveKind::Broadcast | CollectiveKind::Reduce => 1,
        _ => u64::from(topology.rank_count()),
    };
    assert_eq!(size % (pieces * found.chunks_per_share), 0, "chunks of {kind} on {network} are whole bytes");
    for sharing in [Sharing::Fair, Sharing::Fifo] {
        let options = SimulateOptions { sharing, ..options(size) };
        let name = format!("{kind} by {algorithm} on {network}, {sharing:?}");
        assert_eq!(run_in_steps(&topology, &schedule, &options).time_ps, steps * ALPHA_PS + bytes * BETA, "{name}");
        let no_barriers = run(&topology, &schedule, &options).time_ps;
        assert!(no_barriers <= steps * ALPHA_PS + bytes * BETA, "{name}, no barriers");
    }
}

/// K2 and K3 of our notes: K(4,2), α of 1 µs, 80 ps for each byte, a megabyte.
#[test]
fn a_megabyte_on_twenty_ranks() {
    use CollectiveKind::{AllToAll, Allgather, Allreduce, Broadcast, Scatter};
    let network = "kautz:d=4,n=2";
    let million = 1_000_000;
    for (kind, algorithm, size, steps, micros) in [
        (Broadcast, Algorithm::Kautz, million, 2, 162),
        (Scatter, Algorithm::Kautz, million, 2, 26),
        (Allgather, Algorithm::Kautz, 20 * million, 2, 402),
        (Allreduce, Algorithm::Kautz, million, 4, 44),
        (AllToAll, Algorithm::Kautz, million, 2, 38),
        (Allgather, Algorithm::KautzM, 20 * million, 5, 405),
        (Allreduce, Algorithm::KautzM, million, 10, 50),
        (AllToAll, Algorithm::KautzM, million, 5, 41),
    ] {
        let bytes = (micros * ALPHA_PS - steps * ALPHA_PS) / BETA;
        takes(network, (kind, algorithm), size, (steps, bytes));
    }
}

/// Table 3.2 for other degrees, one share of 6,000 bytes.
#[test]
fn kautz_networks_take_the_times_of_table_3_2() {
    use CollectiveKind::{AllToAll, Allgather, Allreduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter};
    for d in [2, 3, 5] {
        let ranks = d * (d + 1);
        let share = 6_000;
        let network = format!("kautz:d={d},n=2");
        for (kind, size, combined, alone) in [
            (Broadcast, share, (2, 2), (2, 2)),
            (Reduce, share, (2, 2), (2, 2)),
            (Scatter, ranks * share, (2, d + 2), (2, d + 2)),
            (Gather, ranks * share, (2, d + 2), (2, d + 2)),
            (Allgather, ranks * share, (2, d + 1), (d + 1, d + 1)),
            (ReduceScatter, ranks * share, (2, d + 1), (d + 1, d + 1)),
            (Allreduce, ranks * share, (4, 2 * d + 2), (2 * d + 2, 2 * d + 2)),
            (AllToAll, ranks * share, (2, 2 * d + 1), (d + 1, 2 * d + 1)),
        ] {
            for (algorithm, (steps, shares)) in [(Algorithm::Kautz, combined), (Algorithm::KautzM, alone)] {
                takes(&network, (kind, algorithm), size, (steps, shares * share));
            }
        }
    }
}

/// Table 4.2 with its corrections, square and not; shares that every cut divides.
#[test]
fn grids_take_the_times_of_table_4_2() {
    use CollectiveKind::{AllToAll, Allgather, Allreduce, Broadcast, ReduceScatter};
    for (rows, columns) in [(4_u64, 4_u64), (3, 4), (2, 6)] {
        let (long, short, both) = (rows.max(columns), rows.min(columns), rows + columns);
        let share = 1_680 * both;
        let size = share * rows * columns;
        let network = format!("dfc2:{rows}x{columns}");
        // Of the second step of copies along both dimensions, the parts of a line.
        let balanced = share / both * (long + long * short);
        for (kind, algorithm, size, cost) in [
            (AllToAll, Algorithm::Dfc2Do, size, (2, both * share)),
            (AllToAll, Algorithm::Dfc2, size, (2, long * share)),
            (Allgather, Algorithm::Dfc2Do, size, (2, (1 + short) * share)),
            (Allgather, Algorithm::Dfc2, size, (2, balanced)),
            (ReduceScatter, Algorithm::Dfc2, size, (2, balanced)),
            (Allreduce, Algorithm::Dfc2, size, (4, balanced + (1 + short) * share)),
            (Broadcast, Algorithm::Dfc2Do, share, (2, 2 * share)),
            (Broadcast, Algorithm::Dfc2, share, (2, share)),
        ] {
            takes(&network, (kind, algorithm), size, cost);
        }
    }
}

/// Whatever the algorithm, cut into pieces or not: without barriers nothing takes longer.
#[test]
fn barriers_never_save_time() {
    for network in ["kautz:d=2,n=2", "kautz:d=3,n=2", "dfc2:2x3", "dfc2:3x4", "dfc2:4x4"] {
        let topology = generate(&format!("{network},bw=12.5GB/s,lat=0us"), &TopologyLimits::STANDARD).unwrap();
        let family = match network.starts_with("kautz") {
            true => [Algorithm::Kautz, Algorithm::KautzM],
            false => [Algorithm::Dfc2, Algorithm::Dfc2Do],
        };
        let others = [Algorithm::Multitree, Algorithm::Pairwise, Algorithm::Bruck, Algorithm::Tacos];
        for kind in CollectiveKind::ALL {
            for algorithm in family.into_iter().chain(others) {
                let request = SynthesisRequest::new(collective(&topology, kind), algorithm);
                let Ok(schedule) = synthesize(&topology, &request, &Never, &Silent) else { continue };
                for (size, piece) in [(1 << 14, 1 << 10), (1 << 22, 1 << 15), (100_000_007, 1 << 20)] {
                    for sharing in [Sharing::Fair, Sharing::Fifo] {
                        for pieces in [Pieces::Whole, Pieces::AtMost { bytes: piece }] {
                            let options = SimulateOptions { sharing, pieces, ..options(size) };
                            let with = run_in_steps(&topology, &schedule, &options).time_ps;
                            let without = run(&topology, &schedule, &options).time_ps;
                            let name = format!("{kind} by {algorithm} on {network}, {size}, {sharing:?}, {pieces:?}");
                            assert!(without <= with, "{name}: {without} without barriers, {with} with them");
                        }
                    }
                }
            }
        }
    }
}
