//! Small cases whose times are computed by hand.

use canopy_schedule::{CollectiveKind, Shares};
use canopy_simulate::{LinkUse, Pieces, Sharing, SimulateOptions, Start};
use canopy_topology::{Latency, Rank};

use crate::networks::{ALPHA_PS, BETA, CAPACITY, broadcast, collective, network, options, run, run_in_steps, steps};

const BOTH: [Sharing; 2] = [Sharing::Fair, Sharing::Fifo];

#[test]
fn one_link_takes_alpha_latency_and_bytes() {
    let topology = network(2, 0, &[("0", "1", CAPACITY, 500)]);
    let schedule = broadcast(&topology, &[(0, 0, 1)]);
    for sharing in BOTH {
        let found = run(&topology, &schedule, &SimulateOptions { sharing, ..options(1_000) });
        assert_eq!(found.time_ps, ALPHA_PS + 500_000 + 1_000 * BETA);
        // The sender is done when the last byte has left.
        assert_eq!(found.ranks_ps, [ALPHA_PS + 1_000 * BETA, found.time_ps]);
        assert_eq!(found.links, [LinkUse { busy_ps: 1_000 * BETA, bytes: 1_000 }]);
        assert_eq!((found.message_count, found.critical_path.len()), (1, 1));
        let leg = found.critical_path[0];
        assert_eq!((leg.start_ps, leg.end_ps, leg.start, leg.link.number()), (0, found.time_ps, Start::AtOnce, 0));
    }
}

/// Nothing to send takes as long as the empty messages.
#[test]
fn no_bytes_take_alpha_and_latency() {
    let topology = network(3, 0, &[("0", "1", CAPACITY, 500), ("1", "2", CAPACITY, 7)]);
    let schedule = broadcast(&topology, &[(0, 0, 1), (1, 1, 2)]);
    for sharing in BOTH {
        let found = run(&topology, &schedule, &SimulateOptions { sharing, ..options(0) });
        assert_eq!(found.time_ps, 2 * ALPHA_PS + 507_000);
        assert!(found.links.iter().all(|link| *link == LinkUse::default()));
    }
}

/// Ranks 1 … 3 send to rank 0 through one switch: 1,000, 2,000 and 3,000 bytes over one link of 40 ps per byte.
#[test]
fn messages_that_share_a_link_share_it_fairly_or_queue() {
    let links =
        [("1", "s0", CAPACITY, 0), ("2", "s0", CAPACITY, 0), ("3", "s0", CAPACITY, 0), ("s0", "0", CAPACITY, 0)];
    let topology = network(4, 1, &links);
    let gather = |weights: Vec<u64>| {
        let total: u64 = weights.iter().sum();
        let mut at = 0;
        let sent: Vec<_> = (1..4)
            .map(|rank| {
                at += weights[rank as usize];
                (0, rank, 0, at - weights[rank as usize]..at)
            })
            .collect();
        let kind = collective(&topology, CollectiveKind::Gather);
        (steps(&topology, kind, Shares::Weighted(weights), 1, &sent), total * 1_000)
    };
    let times = |weights: Vec<u64>, sharing| {
        let (schedule, size) = gather(weights);
        let found = run(&topology, &schedule, &SimulateOptions { sharing, ..options(size) });
        found.ranks_ps.iter().map(|time| (time.max(&ALPHA_PS) - ALPHA_PS) / (1_000 * BETA)).collect::<Vec<_>>()
    };
    // Equal messages: a third of the rate each, to the picosecond.
    assert_eq!(times(vec![0, 1, 1, 1], Sharing::Fair), [3, 3, 3, 3]);
    // A message of more chunks weighs more, so all end together.
    assert_eq!(times(vec![0, 1, 2, 3], Sharing::Fair), [6, 6, 6, 6]);
    // Queued behind each other at the shared link; each leaves its sender at the full rate.
    assert_eq!(times(vec![0, 1, 2, 3], Sharing::Fifo), [6, 1, 2, 3]);
    // Of links that differ, the narrow one keeps its message below the fair share, and the others take what it leaves.
    let narrow = [("1", "s0", CAPACITY / 5, 0), ("2", "s0", CAPACITY, 0), ("s0", "0", CAPACITY, 0)];
    let topology = network(3, 1, &narrow);
    let sent = [(0, 1, 0, 1..2), (0, 2, 0, 2..3)];
    let kind = collective(&topology, CollectiveKind::Gather);
    let schedule = steps(&topology, kind, Shares::Equal, 1, &sent);
    let found = run(&topology, &schedule, &options(3 * 4_000));
    // 4,000 bytes at a fifth of the rate, and at what that leaves.
    let alone = 4_000 * BETA;
    assert_eq!(found.ranks_ps, [ALPHA_PS + 5 * alone, ALPHA_PS + 5 * alone, ALPHA_PS + alone * 5 / 4]);
}

#[test]
fn ranks_store_and_forward_and_switches_cut_through() {
    let hops = [("0", "1", CAPACITY, 100), ("1", "2", CAPACITY, 100), ("2", "3", CAPACITY, 100)];
    let ranks = network(4, 0, &hops);
    let stored = broadcast(&ranks, &[(0, 0, 1), (1, 1, 2), (2, 2, 3)]);
    let hops = [("0", "s0", CAPACITY, 100), ("s0", "s1", CAPACITY, 100), ("s1", "1", CAPACITY, 100)];
    let switches = network(2, 2, &hops);
    let cut_through = broadcast(&switches, &[(0, 0, 1)]);
    for sharing in BOTH {
        let options = SimulateOptions { sharing, ..options(1_000) };
        let bytes = 1_000 * BETA;
        assert_eq!(run(&ranks, &stored, &options).time_ps, 3 * (ALPHA_PS + 100_000 + bytes));
        assert_eq!(run(&switches, &cut_through, &options).time_ps, ALPHA_PS + 300_000 + bytes);
    }
    // A narrow link in the middle sets the rate; the fast ones before and after it are busy for as long as they send.
    let hops = [("0", "s0", CAPACITY, 0), ("s0", "s1", CAPACITY / 4, 0), ("s1", "1", CAPACITY, 0)];
    let switches = network(2, 2, &hops);
    let schedule = broadcast(&switches, &[(0, 0, 1)]);
    for (sharing, outer) in [(Sharing::Fair, 4), (Sharing::Fifo, 1)] {
        let found = run(&switches, &schedule, &SimulateOptions { sharing, ..options(1_000) });
        assert_eq!(found.time_ps, ALPHA_PS + 4 * 1_000 * BETA, "{sharing:?}");
        let busy: Vec<u64> = found.links.iter().map(|link| link.busy_ps / (1_000 * BETA)).collect();
        // Links in the order of their nodes: from rank 0, into rank 1 last but one.
        assert_eq!(busy, [outer, 4, outer], "{sharing:?}");
        assert_eq!(found.critical_path[0].link.number(), 1, "{sharing:?}");
    }
}

/// `D` hops, `P` pieces: `(D + P − 1)(α + S/(P·capacity))`, and one piece too many does not help.
#[test]
fn pieces_are_pipelined() {
    let hops = [("0", "1", CAPACITY, 0), ("1", "2", CAPACITY, 0), ("2", "3", CAPACITY, 0)];
    let topology = network(4, 0, &hops);
    let schedule = broadcast(&topology, &[(0, 0, 1), (1, 1, 2), (2, 2, 3)]);
    let size = 120_000;
    for sharing in BOTH {
        for pieces in [1, 2, 3, 4, 6, 60] {
            let options = SimulateOptions { pieces: Pieces::Count(pieces), sharing, ..options(size) };
            let found = run(&topology, &schedule, &options);
            let each = ALPHA_PS + size / u64::from(pieces) * BETA;
            assert_eq!(found.time_ps, (3 + u64::from(pieces) - 1) * each, "{pieces} {sharing:?}");
            assert_eq!(found.critical_path.len(), 3 + pieces as usize - 1);
            assert!(found.critical_path.windows(2).all(|legs| legs[0].end_ps == legs[1].start_ps));
            assert!(found.links.iter().all(|link| link.bytes == size));
        }
        let by_size = SimulateOptions { pieces: Pieces::AtMost { bytes: 30_001 }, sharing, ..options(size) };
        assert_eq!(run(&topology, &schedule, &by_size).time_ps, (3 + 4 - 1) * (ALPHA_PS + 30_000 * BETA));
    }
}

/// One slow hop beside two fast ones: a barrier makes the second fast one wait for the slow one.
#[test]
fn barriers_wait_for_the_slowest() {
    let links = [("0", "1", CAPACITY / 5, 0), ("0", "2", CAPACITY, 0), ("2", "3", CAPACITY, 0)];
    let topology = network(4, 0, &links);
    let schedule = broadcast(&topology, &[(0, 0, 1), (0, 0, 2), (1, 2, 3)]);
    let size = 1_000_000;
    for sharing in BOTH {
        let options = SimulateOptions { sharing, alpha: Latency::from_nanos(10), ..options(size) };
        let alpha = 10_000;
        assert_eq!(run(&topology, &schedule, &options).time_ps, alpha + 5 * size * BETA);
        let found = run_in_steps(&topology, &schedule, &options);
        assert_eq!(found.time_ps, 2 * alpha + 6 * size * BETA);
        let path: Vec<(Rank, Start)> = found.critical_path.iter().map(|leg| (leg.to, leg.start)).collect();
        assert_eq!(path, [(Rank::new(1), Start::AtOnce), (Rank::new(3), Start::Step)]);
    }
}

/// Two chunks down a line, one step after the other: the second has to let the first go, but α passes meanwhile.
#[test]
fn what_is_of_a_later_step_waits_for_its_turn() {
    let topology = network(3, 0, &[("0", "1", CAPACITY, 0), ("1", "2", CAPACITY / 2, 0)]);
    let root = collective(&topology, CollectiveKind::Broadcast);
    let sent = [(0, 0, 1, 0..1), (1, 0, 1, 1..2), (1, 1, 2, 0..1), (2, 1, 2, 1..2)];
    let schedule = steps(&topology, root, Shares::Equal, 2, &sent);
    let chunk = 1_000_000 * BETA;
    for sharing in BOTH {
        let options = SimulateOptions { sharing, ..options(2_000_000) };
        let found = run(&topology, &schedule, &options);
        assert_eq!(found.time_ps, 2 * ALPHA_PS + 5 * chunk);
        let path: Vec<(u32, u64, Start)> =
            found.critical_path.iter().map(|leg| (leg.to.number(), leg.start_ps, leg.start)).collect();
        let down = [(2, ALPHA_PS + chunk, Start::Data), (2, 2 * ALPHA_PS + 3 * chunk, Start::Turn)];
        assert_eq!(path, [[(1, 0, Start::AtOnce)].as_slice(), &down].concat());
        assert_eq!(run_in_steps(&topology, &schedule, &options).time_ps, 3 * ALPHA_PS + 5 * chunk);
    }
}
