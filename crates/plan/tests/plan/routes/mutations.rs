//! Changes to right files, one at a time: the proof accepts none that matters.

use std::ops::Range;

use canopy_plan::routes::{Program, parse, prove, prove_on, write};
use canopy_schedule::{CollectiveKind, Shares};
use proptest::prelude::*;

use crate::routes::networks::{network, program};

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

/// Where the values of attributes stand in a text, each with its attribute's name.
fn values(text: &str) -> Vec<(&str, Range<usize>)> {
    let starts = text.match_indices("=\"").map(|(at, sign)| (at, at + sign.len()));
    let of_one = |(at, start): (usize, usize)| {
        let name = text[..at].rfind(' ')? + 1;
        Some((&text[name..at], start..start + text[start..].find('"')?))
    };
    starts.filter_map(of_one).collect()
}

/// What a file may say in another way and still be right: what it is called, which sizes it is for, and which of the layers
/// a route is in.
const FREE: [&str; 4] = ["name", "minbytes", "maxbytes", "layer"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// No number in place of another makes anything panic, or a file right for its network that means something else.
    #[test]
    fn no_value_is_accepted_for_another(
        place in any::<prop::sample::Index>(),
        value in prop_oneof![
            Just(0), 0..12_u64, Just(u64::from(u32::MAX)), Just(1 << 32), Just(i64::MAX as u64), Just(u64::MAX), any::<u64>(),
        ],
    ) {
        thread_local! {
            static RIGHT: String =
                write(&program(&network("torus:3x3"), CollectiveKind::AllToAll, None, Shares::Equal));
        }
        let text = RIGHT.with(Clone::clone);
        let values = values(&text);
        let (name, at) = values[place.index(values.len())].clone();
        let is_other = text[at.clone()] != value.to_string();
        let changed = format!("{}{value}{}", &text[..at.start], &text[at.end..]);
        let is_right = parse(&changed).is_ok_and(|program| {
            let on_its_network = prove_on(&program, &network("torus:3x3"), &|| false).unwrap();
            prove(&program).is_ok() && on_its_network.is_ok()
        });
        prop_assert!(!is_right || !is_other || FREE.contains(&name), "{name} is {value} instead of {}", &text[at]);
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
