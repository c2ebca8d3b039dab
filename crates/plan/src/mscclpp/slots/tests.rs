//! Plans for slots, and what must be found in them.

use super::*;
use crate::msccl::Buffer;
use crate::mscclpp::program::{OpName, RefPlace};

const MATRIX: [u64; 16] = [0, 33, 64, 128, 1, 0, 0, 96, 32, 0, 0, 32, 0, 0, 100, 0];

/// Two boxes of two ranks with units of 32 bytes: slots of 4.
fn slots() -> Slots {
    Slots::new(4, &MATRIX, 32).unwrap()
}

fn routes() -> Vec<SlotRoute> {
    let route = |ranks: &[u32], first, count| SlotRoute { ranks: ranks.to_vec(), first, count };
    vec![
        route(&[0, 1], 0, 2),
        route(&[0, 2], 0, 2),
        route(&[0, 2, 3], 0, 1),
        route(&[0, 1, 3], 1, 3),
        route(&[1, 0], 0, 1),
        route(&[1, 0, 2, 3], 0, 3),
        route(&[2, 0], 0, 1),
        route(&[2, 3], 0, 1),
        route(&[3, 2], 0, 4),
    ]
}

fn options(profile: ExecutorProfile) -> SlotPlanOptions {
    SlotPlanOptions { profile, name: "slots".to_owned(), box_size: 2, seed: 1 }
}

fn planned(profile: ExecutorProfile) -> SlotPlan {
    plan_slots(&slots(), &routes(), &options(profile), &|| false).unwrap()
}

#[test]
fn a_plan_is_made_for_each_version() {
    for profile in ExecutorProfile::ALL {
        let SlotPlan { text, plan, buffer_bytes, warnings } = planned(profile);
        assert_eq!((buffer_bytes, plan.bytes_min), (4 * 4 * 32, 512));
        assert_eq!(profile.bytes_max_inclusive(plan.bytes_max), Some(512));
        assert_eq!((plan.collective.as_str(), plan.in_place), ("custom", false));
        assert_eq!(warnings, [""; 0]);
        assert!(text.contains("\"custom\""));
        assert!(plan.ranks.iter().all(|rank| (rank.input_chunks, rank.output_chunks) == (16, 16)));
    }
}

/// Chunks as large as all ranges are multiples of.
#[test]
fn units_that_stay_together_are_one_chunk() {
    let slots = Slots::new(2, &[0, 64, 32, 0], 16).unwrap();
    let route = |ranks: &[u32], count| SlotRoute { ranks: ranks.to_vec(), first: 0, count };
    let routes = [route(&[0, 1], 4), route(&[1, 0], 2)];
    let planned = plan_slots(&slots, &routes, &options(ExecutorProfile::V10), &|| false).unwrap();
    assert_eq!((planned.buffer_bytes, planned.plan.ranks[0].input_chunks), (128, 4));
}

/// Pieces of long chunks would not lie in the order of their bytes.
#[test]
fn long_chunks_stay_whole() {
    let long = Slots::new(4, &MATRIX.map(|bytes| bytes << 15), 1 << 20).unwrap();
    let planned = plan_slots(&long, &routes(), &options(ExecutorProfile::V10), &|| false).unwrap();
    assert_eq!((planned.buffer_bytes, planned.plan.ranks[0].input_chunks), (16 << 20, 16));
}

#[test]
fn what_the_runtime_has_no_room_for_is_refused_with_the_remedy() {
    let profile = ExecutorProfile::V10;
    let entry = 4 << 30;
    let large = Slots::new(2, &[0, entry, entry, 0], 1 << 20).unwrap();
    let route = |ranks: &[u32]| SlotRoute { ranks: ranks.to_vec(), first: 0, count: 1 << 12 };
    let refused = |slots: &Slots, routes: &[SlotRoute]| {
        let refused = plan_slots(slots, routes, &options(profile), &|| false);
        refused.unwrap_err().to_string()
    };
    let found = refused(&large, &[route(&[0, 1]), route(&[1, 0])]);
    assert!(found.starts_with("buffers of 8589934592 bytes, with slots"), "{found}");
    assert!(
        found.contains("exceed the 4294967264 bytes that offsets of mscclpp-0.10 reach here; divide the exchange"),
        "{found}"
    );
    // A rank writes to the output of each of 300 others.
    let bytes: Vec<u64> = (0..300 * 300).map(|index| u64::from(index < 300) * 16).collect();
    let routes: Vec<SlotRoute> = (1..300).map(|to| SlotRoute { ranks: vec![0, to], first: 0, count: 1 }).collect();
    let found = refused(&Slots::new(300, &bytes, 16).unwrap(), &routes);
    assert!(found.contains("allows 256 remote buffers of a rank, but rank 0 needs"), "{found}");
    assert!(found.ends_with(SMALLER), "{found}");
}

#[test]
fn work_ends_on_request() {
    let stopped = plan_slots(&slots(), &routes(), &options(ExecutorProfile::V10), &|| true);
    assert!(matches!(stopped, Err(SlotPlanError::Lower(ExecutionLowerError::Stopped))), "{stopped:?}");
}

/// What the proof and the run say of a plan that was changed.
fn judged(plan: &ExecutionPlan, slots: &Slots) -> (Proof, Result<(), EmulationError>) {
    let proof = prove_slot_plan(plan, slots, ExecutorProfile::V10, &|| false).unwrap();
    (proof, emulate_slot_plan(plan, slots, ExecutorProfile::V10, [1, 2], &|| false))
}

#[test]
fn a_plan_for_another_matrix_is_refused() {
    let plan = planned(ExecutorProfile::V10).plan;
    let (proof, run) = judged(&plan, &slots());
    assert!(proof.is_ok() && run.is_ok());
    // One unit more or less of a pair.
    for (at, units) in [(1, 3), (1, 1), (6, 1), (8, 0), (14, 3)] {
        let mut bytes = MATRIX;
        bytes[at] = units * 32;
        let other = Slots::new(4, &bytes, 32).unwrap();
        let (proof, run) = judged(&plan, &other);
        let is_more = units * 32 > MATRIX[at];
        proof.assert_refused("meaning", if is_more { "holds nothing instead of" } else { "instead of nothing" });
        assert!(matches!(run, Err(EmulationError::WrongOutput { .. })), "{at}: {run:?}");
    }
    let other = Slots::new(4, &[16; 16], 16).unwrap();
    judged(&plan, &other).0.assert_refused("structure", "a slot of 4 chunks cannot be filled as slots of 1 units are");
    let other = Slots::new(2, &[16; 4], 16).unwrap();
    judged(&plan, &other).0.assert_refused("structure", "the plan has 4 ranks, and the slots 2");
}

#[test]
fn changes_of_a_plan_are_found() {
    let changed = |change: &dyn Fn(&mut ExecutionPlan)| {
        let mut plan = planned(ExecutorProfile::V10).plan;
        change(&mut plan);
        judged(&plan, &slots())
    };
    changed(&|plan| plan.in_place = true).0.assert_refused("structure", "set inplace to false");
    changed(&|plan| plan.collective = "alltoall".to_owned()).0.assert_refused("structure", "fills all slots");
    // Every reference of every operation, one chunk further, longer or shorter; and every operation that is left out.
    let whole = planned(ExecutorProfile::V10).plan;
    let mut tried = 0;
    for (rank, of_rank) in whole.ranks.iter().enumerate() {
        for (block, of_block) in of_rank.blocks.iter().enumerate() {
            for (step, operation) in of_block.operations.iter().enumerate() {
                let mut check = |what: &str, change: &dyn Fn(&mut ExecutionPlan)| {
                    let (proof, _) = changed(change);
                    assert!(!proof.is_ok(), "rank {rank} block {block} step {step}: {what}: {operation:?}");
                    tried += 1;
                };
                if operation.name != OpName::Nop {
                    check("left out", &|plan| drop(plan.ranks[rank].blocks[block].operations.remove(step)));
                }
                for target in 0..operation.targets.len() {
                    let reference = move |plan: &mut ExecutionPlan, change: &dyn Fn(&mut u32, &mut u32)| {
                        let operation = &mut plan.ranks[rank].blocks[block].operations[step];
                        let target = &mut operation.targets[target];
                        change(&mut target.index, &mut target.size);
                    };
                    check("further", &|plan| reference(plan, &|index, _| *index += 1));
                    check("longer", &|plan| reference(plan, &|_, size| *size += 1));
                }
            }
        }
    }
    assert!(tried > 60, "{tried}");
}

#[test]
fn what_is_relayed_waits_in_scratch() {
    let plan = planned(ExecutorProfile::V10).plan;
    let scratch: Vec<u32> = plan.ranks.iter().map(|rank| rank.scratch_chunks).collect();
    assert_eq!(scratch, [3, 3, 1 + 3, 0]);
    let operations = plan.ranks.iter().flat_map(|rank| &rank.blocks).flat_map(|block| &block.operations);
    let from_scratch = operations.flat_map(|operation| &operation.sources);
    assert_eq!(from_scratch.filter(|source| source.place == RefPlace::Local(Buffer::Scratch)).count(), 4);
}
