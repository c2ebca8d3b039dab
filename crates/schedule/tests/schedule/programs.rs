//! Programs of single ranks in exchanges in stages: all of them run together, and do what the trees do.

use std::collections::BTreeMap;
use std::ops::Range;

use canopy_schedule::{Action, BoxTree, Inside, Move, ProgramError, ProgramPhase, RankProgram, Stages};
use canopy_topology::Topology;

use crate::stages::{BoxShape, Boxes, Fabric, PHASES, amounts, network, other_run, shuffled_seats, stages};

/// All chunks of some ranges.
fn each(chunks: &[Range<u64>]) -> impl Iterator<Item = u64> + '_ {
    chunks.iter().cloned().flatten()
}

fn programs(topology: &Topology, stages: &Stages) -> Vec<RankProgram> {
    let count = topology.rank_count();
    (0..count).map(|rank| stages.program(rank, count).unwrap()).collect()
}

/// Moves of one step between all pairs of ranks: what is sent is what is received, in the same order.
fn matched(phases: &[&ProgramPhase], step: usize) -> Vec<(usize, usize, Vec<u64>)> {
    let mut sent: BTreeMap<(usize, usize), Vec<&Move>> = BTreeMap::new();
    let mut received = sent.clone();
    for (rank, phase) in phases.iter().enumerate() {
        for sends in &phase.steps[step].sends {
            sent.entry((rank, sends.peer as usize)).or_default().push(sends);
        }
        for receives in &phase.steps[step].receives {
            received.entry((receives.peer as usize, rank)).or_default().push(receives);
        }
    }
    let chunks = |moves: &[&Move]| moves.iter().map(|one| one.chunks.clone()).collect::<Vec<_>>();
    let lists = |of: &BTreeMap<(usize, usize), Vec<&Move>>| {
        of.iter().map(|(&pair, moves)| (pair, chunks(moves))).collect::<Vec<_>>()
    };
    assert_eq!(lists(&sent), lists(&received), "step {step}");
    let moves = sent.into_iter().flat_map(|((from, to), moves)| moves.into_iter().map(move |one| (from, to, one)));
    moves.map(|(from, to, one)| (from, to, each(&one.chunks).collect())).collect()
}

/// Runs all programs; returns how many chunks each rank has sent to each other one.
fn run(topology: &Topology, stages: &Stages) -> BTreeMap<(usize, usize), u64> {
    let programs = programs(topology, stages);
    let (ranks, k) = (programs.len(), usize::try_from(stages.chunks_per_share).unwrap());
    let all = (1_u64 << ranks) - 1;
    let mut loads = BTreeMap::new();
    for number in 0..stages.actions.len() {
        let phases: Vec<&ProgramPhase> = programs.iter().map(|program| &program.phases[number]).collect();
        let action = phases[0].action;
        // Whose contributions a rank has to a chunk.
        let own = |rank: usize, chunk: usize| match action {
            Action::Reduce => 1 << rank,
            Action::Copy if chunk / k == rank => all,
            Action::Copy => 0,
        };
        let mut held: Vec<Vec<u64>> =
            (0..ranks).map(|rank| (0..ranks * k).map(|chunk| own(rank, chunk)).collect()).collect();
        for step in 0..phases[0].steps.len() {
            let before = held.clone();
            for (from, to, chunks) in matched(&phases, step) {
                for chunk in chunks.into_iter().map(|chunk| usize::try_from(chunk).unwrap()) {
                    let (sent, has) = (before[from][chunk], &mut held[to][chunk]);
                    assert!(sent != 0, "{from} sends chunk {chunk} before it has it");
                    assert!(*has & sent == 0, "{to} has chunk {chunk} already");
                    *has |= sent;
                    *loads.entry((from, to)).or_default() += 1;
                }
            }
        }
        for (rank, held) in held.iter().enumerate() {
            for (chunk, has) in held.iter().enumerate() {
                assert!(action == Action::Reduce && chunk / k != rank || *has == all, "{rank} {chunk} {has:b}");
            }
        }
    }
    loads
}

/// What the trees send between ranks.
fn by_trees(topology: &Topology, stages: &Stages) -> BTreeMap<(usize, usize), u64> {
    let forest = stages.trees(topology).unwrap();
    let mut loads = BTreeMap::new();
    for tree in forest.phases.iter().flat_map(|phase| &phase.trees) {
        for hop in forest.hops_of(tree) {
            *loads.entry((hop.from.index(), hop.to.index())).or_default() += tree.multiplicity;
        }
    }
    loads
}

#[test]
fn all_programs_together_bring_every_share_everywhere_once() {
    let shapes: [BoxShape; 8] = [
        (4, 2, Fabric::Hub, &[4], &[]),
        (6, 4, Fabric::Rails, &[3, 2], &[]),
        (8, 3, Fabric::Rails, &[2, 2, 2], &[]),
        (8, 4, Fabric::Leaves(4, 2), &[2, 4], &[]),
        (5, 4, Fabric::Lines, &[1, 5], &[]),
        (4, 3, Fabric::Lines, &[2, 2], &[]),
        (6, 4, Fabric::Rails, &[3, 2], &[3, 8, 21]),
        (1, 4, Fabric::Hub, &[1], &[]),
    ];
    for (boxes, places, fabric, digits, empty) in shapes {
        let of = Boxes { boxes, places, fabric, empty: empty.to_vec() };
        let topology = network(&of);
        for (chunks_per_share, (_, actions)) in (1..4).flat_map(|chunks| PHASES.map(|phases| (chunks, phases))) {
            let mut stages = stages(&of, digits, chunks_per_share, actions);
            assert_eq!(run(&topology, &stages), by_trees(&topology, &stages), "{digits:?}");
            for inside_first in amounts(&stages) {
                stages.inside_first = inside_first;
                assert_eq!(run(&topology, &stages), by_trees(&topology, &stages), "{digits:?}");
            }
        }
    }
}

#[test]
fn boxes_that_send_for_others_and_ranks_anywhere_are_programs_as_well() {
    for (topology, mut stages) in [other_run(), shuffled_seats()] {
        assert_eq!(run(&topology, &stages), by_trees(&topology, &stages));
        for inside_first in amounts(&stages) {
            stages.inside_first = inside_first;
            assert_eq!(run(&topology, &stages), by_trees(&topology, &stages));
        }
    }
}

#[test]
fn ranks_have_a_peer_for_each_value_of_a_digit_and_each_place() {
    let of = Boxes { boxes: 12, places: 4, fabric: Fabric::Rails, empty: Vec::new() };
    let program = stages(&of, &[3, 4], 1, &[Action::Copy]).program(17, 48).unwrap();
    let steps = &program.phases[0].steps;
    let peers = |is_inside: bool| {
        let own = steps.iter().filter(|step| step.is_inside == is_inside);
        own.flat_map(|step| &step.sends).map(|one| one.peer).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((peers(false), peers(true)), (2 + 3, 3));
    // One range for each move: ranks are in the order of their seats.
    assert!(steps.iter().flat_map(|step| &step.sends).all(|one| one.chunks.len() == 1));
    let unknown = stages(&of, &[3, 4], 1, &[Action::Copy]).program(48, 48).unwrap_err();
    assert_eq!(unknown, ProgramError::UnknownRank { rank: 48, rank_count: 48 });
}

#[test]
fn trees_that_return_to_their_root_are_refused() {
    let of = Boxes { boxes: 2, places: 2, fabric: Fabric::Lines, empty: Vec::new() };
    let mut returning = stages(&of, &[2], 1, &[Action::Copy]);
    let tree = |root, hops: &[(u32, u32)]| BoxTree { root, multiplicity: 1, hops: hops.to_vec() };
    returning.inside = vec![Inside::Trees(vec![tree(0, &[(0, 1), (1, 0)]), tree(1, &[(1, 0)])])];
    assert_eq!(returning.program(0, 4).unwrap_err(), ProgramError::Broken { of_box: 0 });
}
