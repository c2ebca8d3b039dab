//! Changes to right files, one at a time: the proof accepts none that matters.

use canopy_plan::routes::{Program, parse, prove, write};
use canopy_schedule::{CollectiveKind, Shares};
use proptest::prelude::*;

use crate::networks::{network, program};

/// A change to one queue pair.
#[derive(Clone, Copy, Debug)]
enum Change {
    ChunkLost,
    ChunkDoubled,
    WrongPort,
    LayerOutOfRange,
    Loop,
    Destination,
    Dropped,
    Repeated,
    Elsewhere,
    OfAnother,
}

const CHANGES: [Change; 10] = [
    Change::ChunkLost,
    Change::ChunkDoubled,
    Change::WrongPort,
    Change::LayerOutOfRange,
    Change::Loop,
    Change::Destination,
    Change::Dropped,
    Change::Repeated,
    Change::Elsewhere,
    Change::OfAnother,
];

fn change(program: &mut Program, rank: usize, pair: usize, change: Change) {
    let (ranks, layers) = (program.rank_count, program.layer_count);
    let rank = &mut program.ranks[rank];
    let start = rank.queue_pairs[pair].ports.start as usize;
    let own = &mut rank.queue_pairs[pair];
    match change {
        Change::ChunkLost => own.chunk_count -= 1,
        Change::ChunkDoubled => own.chunk_count += 1,
        Change::WrongPort => rank.ports[start] = (rank.ports[start] + 1) % 4,
        Change::LayerOutOfRange => own.layer = layers,
        Change::Loop => own.ports.end = own.ports.start,
        Change::Destination => own.destination = (own.destination + 1) % ranks,
        Change::Dropped => drop(rank.queue_pairs.remove(pair)),
        Change::Repeated => {
            let again = own.clone();
            rank.queue_pairs.push(again);
        }
        Change::Elsewhere => own.output_first += 1,
        Change::OfAnother => own.input_first += 1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_change_is_accepted(kind in 0..CHANGES.len(), rank in 0..9_usize, pair in any::<prop::sample::Index>()) {
        thread_local! {
            static RIGHT: Program = program(&network("torus:3x3"), CollectiveKind::AllToAll, None, Shares::Equal);
        }
        let mut changed = RIGHT.with(Clone::clone);
        let pair = pair.index(changed.ranks[rank].queue_pairs.len());
        change(&mut changed, rank, pair, CHANGES[kind]);
        prop_assert!(!prove(&changed).is_ok(), "{:?} of queue pair {pair} of rank {rank}", CHANGES[kind]);
        // What can be written is read back as it is, wrong as it may be.
        if !matches!(CHANGES[kind], Change::Loop) {
            let text = write(&changed);
            prop_assert_eq!(&write(&parse(&text).unwrap()), &text);
        }
    }
}

/// All routes in one layer close a ring on every torus with rings of more than three.
#[test]
fn one_layer_is_too_few() {
    let mut program = program(&network("torus:4x4"), CollectiveKind::AllToAll, None, Shares::Equal);
    assert!(program.layer_count > 1);
    program.ranks.iter_mut().flat_map(|rank| &mut rank.queue_pairs).for_each(|pair| pair.layer = 0);
    program.layer_count = 1;
    let proof = prove(&program);
    assert!(proof.problems.iter().all(|problem| problem.check == "deadlock") && !proof.is_ok(), "{:?}", proof.problems);
}
