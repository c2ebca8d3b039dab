//! Ranks with nothing between them but lists of pieces: results are right in any order, and a wrong program gives wrong
//! words.

use std::collections::VecDeque;

use canopy_lab::{Arrival, Compiled, RankState, StateError};
use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;

use crate::plans::{compiled, planned};

/// A connection between two states, in the lists of both.
struct Connection {
    from: (usize, usize),
    to: (usize, usize),
    pieces: VecDeque<(Arrival, Vec<u8>)>,
}

fn connections(compiled: &Compiled) -> Vec<Connection> {
    let mut all = Vec::new();
    for (sender, program) in compiled.programs.iter().enumerate() {
        for (place, outgoing) in program.outgoing.iter().enumerate() {
            let receiver =
                |program: &canopy_lab::RankProgram| program.incoming.iter().position(|own| own.id == outgoing.id);
            let mut ends = compiled.programs.iter().enumerate().filter_map(|(rank, own)| Some((rank, receiver(own)?)));
            let to = ends.next().unwrap();
            assert!(ends.next().is_none(), "connection {} has several ends", outgoing.id);
            all.push(Connection { from: (sender, place), to, pieces: VecDeque::new() });
        }
    }
    all
}

/// Runs all ranks; `chance` decides which connection moves next. Returns the states at the end.
fn run(compiled: &Compiled, mut chance: u64) -> Vec<RankState> {
    let mut states: Vec<RankState> =
        compiled.programs.iter().map(|program| RankState::new(program.clone()).unwrap()).collect();
    // Twice: what is left of a run must not help the next one.
    for _ in 0..2 {
        states.iter_mut().for_each(RankState::prepare);
        let mut all = connections(compiled);
        let mut idle = 0;
        while !states.iter().all(RankState::is_done) {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(chance >> 33).unwrap() % all.len();
            let Connection { from, to, pieces } = &mut all[at];
            let mut bytes = Vec::new();
            let has_sent = chance & (1 << 20) == 0 && states[from.0].take_ready(from.1, &mut bytes);
            if has_sent {
                let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
                let arrival = Arrival { receive: number(0), piece: number(4) };
                assert_eq!(states[to.0].piece_bytes(to.1, arrival), Ok(bytes.len() - 8));
                pieces.push_back((arrival, bytes.split_off(8)));
            }
            let taken = if chance & (1 << 21) == 0 { pieces.pop_front() } else { None };
            if let Some((arrival, bytes)) = &taken {
                states[to.0].arrived(to.1, *arrival, bytes).unwrap();
            }
            idle = if has_sent || taken.is_some() { 0 } else { idle + 1 };
            assert!(idle < 100_000, "no rank can go on");
        }
    }
    states
}

fn check(expression: &str, kind: CollectiveKind, algorithm: Algorithm, size_bytes: u64) {
    let (topology, graph) = planned(expression, kind, algorithm);
    for (piece_bytes, chance) in [(40, 1), (1000, 2), (1 << 20, 3)] {
        let states = run(&compiled(&topology, &graph, size_bytes, piece_bytes), chance);
        let wrong: Vec<u64> = states.iter().map(RankState::wrong_words).collect();
        assert_eq!(wrong, vec![0; states.len()], "{expression} {kind} by {}", algorithm.name());
    }
}

#[test]
fn every_collective_gives_the_right_words() {
    use CollectiveKind::{AllToAll, Allgather, Allreduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter};
    for kind in [Allgather, ReduceScatter, Allreduce, Broadcast, Reduce] {
        check("dgx-a100:boxes=2,gpus=2", kind, Algorithm::Auto, 9_000);
        check("torus:3x3", kind, Algorithm::Auto, 9_000);
    }
    for kind in [Gather, Scatter, AllToAll] {
        check("ring:5", kind, Algorithm::Auto, 5_000);
    }
}

#[test]
fn schedules_in_steps_wait_where_places_are_read_before_they_are_written() {
    use CollectiveKind::{AllToAll, Allgather, Allreduce, ReduceScatter};
    for (kind, algorithm) in [
        (Allgather, Algorithm::Bfb),
        (Allreduce, Algorithm::RecursiveDoubling),
        (ReduceScatter, Algorithm::RecursiveDoubling),
        (AllToAll, Algorithm::Bruck),
        (AllToAll, Algorithm::Pairwise),
        (Allreduce, Algorithm::Ring),
    ] {
        check("complete:4", kind, algorithm, 4_100);
    }
}

#[test]
fn sizes_that_divide_into_nothing_even_are_right_too() {
    for size_bytes in [37, 101, 4_099, 65_537] {
        check("ring:3", CollectiveKind::Allreduce, Algorithm::Auto, size_bytes);
        check("torus:2x3,down=00-01", CollectiveKind::Allgather, Algorithm::Auto, size_bytes);
    }
}

#[test]
fn a_program_that_forgets_a_wait_gives_wrong_words() {
    let (topology, graph) = planned("ring:5", CollectiveKind::Allreduce, Algorithm::Auto);
    let mut broken = compiled(&topology, &graph, 5_000, 40);
    let mut forgotten = 0;
    for program in &mut broken.programs {
        for send in &mut program.sends {
            forgotten += send.after.len();
            send.after.clear();
        }
    }
    assert!(forgotten > 0);
    assert!(run(&broken, 7).iter().map(RankState::wrong_words).sum::<u64>() > 0);
}

#[test]
fn pieces_that_do_not_belong_somewhere_are_refused() {
    let (topology, graph) = planned("ring:3", CollectiveKind::Allgather, Algorithm::Auto);
    let compiled = compiled(&topology, &graph, 3_000, 100);
    let mut state = RankState::new(compiled.programs[0].clone()).unwrap();
    state.prepare();
    let connection = compiled.programs[0].receives[0].connection as usize;
    let arrival = Arrival { receive: 0, piece: 0 };
    let length = state.piece_bytes(connection, arrival).unwrap();
    let unexpected = |arrival: Arrival| StateError::Unexpected { receive: arrival.receive, piece: arrival.piece };
    assert_eq!(state.arrived(connection, arrival, &vec![0; length + 1]), Err(unexpected(arrival)));
    assert_eq!(state.arrived(connection + 1, arrival, &vec![0; length]), Err(unexpected(arrival)));
    for wrong in [Arrival { receive: u32::MAX, piece: 0 }, Arrival { receive: 0, piece: u32::MAX }] {
        assert_eq!(state.piece_bytes(connection, wrong), Err(unexpected(wrong)));
    }
    state.arrived(connection, arrival, &vec![0; length]).unwrap();
    assert_eq!(state.arrived(connection, arrival, &vec![0; length]), Err(unexpected(arrival)));
    let mut wrong = compiled.programs[0].clone();
    wrong.sends[0].segment = u32::MAX;
    assert_eq!(RankState::new(wrong).unwrap_err(), StateError::Malformed { what: "a send" });
    let mut wrong = compiled.programs[0].clone();
    wrong.segments[0].words = usize::MAX;
    assert_eq!(RankState::new(wrong).unwrap_err(), StateError::Malformed { what: "a segment" });
}

#[test]
fn segments_move_on_evenly_and_long_chains_go_first() {
    let (topology, graph) = planned("torus:3x3", CollectiveKind::Allgather, Algorithm::Auto);
    let compiled = compiled(&topology, &graph, 90_000, 100);
    let program = &compiled.programs[4];
    let mut state = RankState::new(program.clone()).unwrap();
    state.prepare();
    for connection in 0..program.outgoing.len() {
        let mut before = (0, u32::MAX);
        let mut bytes = Vec::new();
        while state.take_ready(connection, &mut bytes) {
            let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            let (receive, piece) = (number(0), number(4));
            let sends = program.sends.iter().filter(|send| send.connection as usize == connection);
            let height = sends.filter(|send| send.receive == receive).map(|send| send.height).next().unwrap();
            assert!(piece > before.0 || (piece == before.0 && height <= before.1), "{piece} {height} after {before:?}");
            before = (piece, height);
            bytes.clear();
        }
    }
}
