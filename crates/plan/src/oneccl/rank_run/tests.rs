//! Ranks run one after the other with messages handed over by the test give what the collective promises.

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::oneccl::arrivals;
use crate::oneccl::examples::programs;
use crate::promise::{Promise, Promises};
use canopy_topology::Rank;

fn input(rank: usize, place: u64) -> u64 {
    1000 * (rank as u64 + 1) + place
}

/// Runs all ranks and instances of a program and gives every rank's memory with the first instance.
fn run(program: &Program, elements: u64) -> Vec<(RankRun, Vec<u64>)> {
    let make = |rank, instance| RankRun::new(program, rank, elements, instance).unwrap();
    let mut memories: Vec<Vec<u64>> = Vec::new();
    for rank in 0..program.rank_count {
        let own = make(rank, 0);
        let mut memory = vec![u64::MAX; own.memory_elements()];
        for (place, element) in (0..).zip(own.input()) {
            memory[element] = input(rank as usize, place);
        }
        memories.push(memory);
    }
    for instance in 0..program.instances {
        let known = |rank| VecDeque::from(arrivals(program, rank).unwrap());
        let mut known: Vec<VecDeque<Vec<u32>>> = (0..program.rank_count).map(known).collect();
        let mut runs: Vec<RankRun> = (0..program.rank_count).map(|rank| make(rank, instance)).collect();
        let mut sent: BTreeMap<(u32, u32), VecDeque<Vec<Vec<u64>>>> = BTreeMap::new();
        let mut waiting: Vec<VecDeque<Incoming>> = runs.iter().map(|_| VecDeque::new()).collect();
        let mut ended = 0;
        for _ in 0..1000 {
            for rank in 0..runs.len() {
                let number = u32::try_from(rank).unwrap();
                let open = std::mem::take(&mut waiting[rank]);
                for message in open {
                    let Some(chunks) = sent.get_mut(&(message.peer, number)).and_then(VecDeque::pop_front) else {
                        waiting[rank].push_back(message);
                        continue;
                    };
                    let lengths: Vec<u64> = chunks.iter().map(|chunk| chunk.len() as u64).collect();
                    let known = known[rank].pop_front().expect("each receive is known");
                    assert_eq!(runs[rank].lengths_of(&known), lengths, "rank {rank} knows what comes");
                    let places = runs[rank].land(&message, &lengths).unwrap();
                    for (place, chunk) in places.into_iter().zip(chunks) {
                        memories[rank][place].copy_from_slice(&chunk);
                    }
                }
                if !waiting[rank].is_empty() {
                    continue;
                }
                match runs[rank].turn() {
                    Turn::Exchange { sends, receives } => {
                        for send in sends {
                            let chunks =
                                send.chunks.iter().map(|chunk| memories[rank][chunk.clone()].to_vec()).collect();
                            sent.entry((number, send.peer)).or_default().push_back(chunks);
                        }
                        waiting[rank] = receives.into();
                    }
                    Turn::Local(pieces) => {
                        for piece in pieces {
                            for (from, to) in piece.source.zip(piece.destination) {
                                let kept = if piece.is_reduction { memories[rank][to] } else { 0 };
                                memories[rank][to] = kept + memories[rank][from];
                            }
                        }
                    }
                    Turn::Barrier => {}
                    Turn::End => ended += 1,
                }
            }
        }
        assert!(ended >= runs.len());
    }
    (0..program.rank_count).map(|rank| make(rank, 0)).zip(memories).collect()
}

#[test]
fn every_length_and_number_of_instances_gives_the_right_output() {
    for mut program in programs() {
        for instances in [1, 2, 3, 7] {
            program.instances = instances;
            for elements in [1, 2, 3, 10, 11] {
                for (rank, (own, memory)) in run(&program, elements).into_iter().enumerate() {
                    let number = Rank::new(u32::try_from(rank).unwrap());
                    for (place, element) in (0..).zip(own.output()) {
                        let expected = match Promises::new(program.collective, elements).at(number, place).unwrap() {
                            Promise::From(origin, place) => input(origin.index(), place),
                            Promise::All(place) => {
                                (0..program.rank_count as usize).map(|rank| input(rank, place)).sum()
                            }
                        };
                        assert_eq!(memory[element], expected, "rank {rank} place {place} of {elements} in {instances}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_run_begins_again_with_another_size() {
    for mut program in programs() {
        program.instances = 3;
        for instance in 0..3 {
            let small = RankRun::new(&program, 1, 5, instance).unwrap();
            let mut large = small.for_elements(4711).unwrap();
            let mut fresh = RankRun::new(&program, 1, 4711, instance).unwrap();
            assert_eq!(large.memory_elements(), fresh.memory_elements());
            assert_eq!((large.input(), large.output()), (fresh.input(), fresh.output()));
            assert_eq!(large.turn(), fresh.turn());
            assert_eq!(large.for_elements(5).unwrap().memory_elements(), small.memory_elements());
            assert!(matches!(small.for_elements(u64::MAX), Err(RunError::TooLarge { .. })));
        }
    }
}

#[test]
fn arrivals_of_what_never_ends_are_refused() {
    let [all_to_all, _] = programs();
    assert_eq!(arrivals(&all_to_all, 3), Err(RunError::NotThere { rank: 3, instance: 0 }));
    let mut stuck = all_to_all.clone();
    stuck.ranks[1].steps[0].sends.clear();
    let refused = arrivals(&stuck, 0).unwrap_err().to_string();
    assert!(refused.contains("waits for a message that never comes"), "{refused}");
    let mut broken = all_to_all;
    broken.ranks.pop();
    assert!(matches!(arrivals(&broken, 0), Err(RunError::Malformed { .. })));
}

#[test]
fn what_does_not_fit_is_refused() {
    let [all_to_all, _] = programs();
    let refused = |rank, elements, instance| RankRun::new(&all_to_all, rank, elements, instance).unwrap_err();
    assert_eq!(refused(3, 6, 0), RunError::NotThere { rank: 3, instance: 0 });
    assert_eq!(refused(0, 6, 1), RunError::NotThere { rank: 0, instance: 1 });
    assert!(matches!(refused(0, u64::MAX, 0), RunError::TooLarge { .. }));
    let mut own = RankRun::new(&all_to_all, 0, 6, 0).unwrap();
    let Turn::Exchange { receives, .. } = own.turn() else { panic!("a step of messages") };
    let into_output = receives[0];
    assert_eq!(own.land(&into_output, &[]), Err(RunError::Count { from: 2, found: 0, expected: 1 }));
    assert_eq!(own.land(&into_output, &[5]), Err(RunError::Length { from: 2, found: 5, expected: 6 }));
    assert_eq!(own.land(&receives[1], &[7]), Err(RunError::Length { from: 2, found: 7, expected: 6 }));
    assert_eq!(own.land(&receives[1], &[5]).unwrap()[0].len(), 5);
}
