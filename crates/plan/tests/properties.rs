//! Random trees lower to right programs; random damage never panics, and what is proved also runs.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/graphs.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod graphs;

use canopy_plan::{EmulateOptions, Profile, Program, emulate, parse_msccl_xml, prove, write_msccl_xml};
use canopy_schedule::{CollectiveKind, TransferGraph};
use graphs::{Hops, graph, heap_tree, lowered};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

const KINDS: [CollectiveKind; 5] = [
    CollectiveKind::Allgather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Allreduce,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
];

/// A tree from random numbers: the n-th rank after the root hangs below one of those before it.
fn random_tree(ranks: u32, root: u32, numbers: &[u32]) -> Hops {
    let at = |distance: u32| (root + distance) % ranks;
    (1..ranks)
        .map(|distance| (at(numbers[(root + distance) as usize % numbers.len()] % distance), at(distance)))
        .collect()
}

fn graphs() -> impl Strategy<Value = TransferGraph> {
    let numbers = prop::collection::vec(prop::collection::vec(any::<u32>(), 11..29), 1..4);
    (0..KINDS.len(), 2_u32..9, 1_u64..90, numbers).prop_map(|(kind, ranks, k, numbers)| {
        let trees = numbers.len() as u64;
        graph(KINDS[kind], ranks, k, trees, |root, part| {
            random_tree(ranks, root, &numbers[usize::try_from(part).unwrap()])
        })
    })
}

fn emulate_once(program: &Program, seed: u64, slots: Option<u32>) -> bool {
    emulate(program, &EmulateOptions { slots, ..EmulateOptions::standard(Profile::Msccl, seed) }).is_ok()
}

/// A right file of each collective, as bytes to be damaged.
fn texts() -> Vec<String> {
    let of = |kind| write_msccl_xml(&lowered(&graph(kind, 4, 2, 1, |root, _| heap_tree(4, root, 2)), false));
    KINDS.into_iter().map(of).collect()
}

/// Keeps failing seeds beside this file.
fn config(cases: u32) -> ProptestConfig {
    let persistence = FileFailurePersistence::Direct("tests/properties.proptest-regressions");
    ProptestConfig { cases, failure_persistence: Some(Box::new(persistence)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(100))]

    /// Whatever the trees, a lowered plan is right and needs no more than one slot.
    #[test]
    fn lowered_plans_are_right(graph in graphs(), in_place: bool, seed: u64) {
        let program = lowered(&graph, in_place);
        let parsed = parse_msccl_xml(&write_msccl_xml(&program), Profile::Msccl);
        prop_assert_eq!(parsed.as_ref(), Ok(&program));
        let proof = prove(&program, Profile::Msccl);
        prop_assert!(proof.is_ok(), "{:#?}", proof.problems);
        prop_assert!(emulate_once(&program, seed, None));
        prop_assert!(emulate_once(&program, seed, Some(1)));
    }
}

proptest! {
    #![proptest_config(config(2000))]

    /// Damaged numbers: the reader, the proof and the emulator never panic, and a proved program runs right.
    #[test]
    fn what_is_proved_runs(which in 0..KINDS.len(), changes in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..12), 1..4), seed: u64) {
        let mut bytes = texts()[which].clone().into_bytes();
        let digits: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at].is_ascii_digit()).collect();
        for (at, digit) in changes {
            bytes[*at.get(&digits)] = b"0123456789-x"[usize::from(digit)];
        }
        if let Ok(program) = parse_msccl_xml(&String::from_utf8(bytes).unwrap(), Profile::Msccl) {
            let is_right = prove(&program, Profile::Msccl).is_ok();
            let runs = emulate_once(&program, seed, None);
            prop_assert!(runs || !is_right, "{}", write_msccl_xml(&program));
        }
    }

    /// Damaged text: no panic, and what is read is written and read back unchanged.
    #[test]
    fn any_text_is_read_or_refused(which in 0..KINDS.len(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 4), insert in "[<>/=\" \\n\\ta-z!?-]{0,4}") {
        let text = &texts()[which];
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
        at.sort_unstable();
        let damaged = format!("{}{}{insert}{}", &text[..at[0]], &text[at[1]..at[2]], &text[at[2]..at[3].max(at[2])]);
        for text in [damaged, format!("{}{insert}{}", &text[..at[0]], &text[at[0]..])] {
            if let Ok(program) = parse_msccl_xml(&text, Profile::Msccl) {
                let again = parse_msccl_xml(&write_msccl_xml(&program), Profile::Msccl);
                prop_assert_eq!(again, Ok(program));
            }
        }
    }
}
