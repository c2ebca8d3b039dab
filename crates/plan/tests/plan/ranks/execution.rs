//! MSCCL++ plans of single ranks: their entries together are proved and run as any plan of all ranks, and the loader of
//! a rank reads of its slice what it reads of the whole.

use std::collections::BTreeMap;

use canopy_plan::{
    ExecutionLowerError, ExecutionPlan, ExecutionSlice, ExecutionSliceOptions, ExecutorProfile, RankFileError,
    emulate_execution_plan, lower_execution_slice, parse_execution_plan, prove_execution_plan, write_execution_plan,
    write_execution_slice,
};
use canopy_schedule::{CollectiveKind, Piece, Seats};
use serde_json::Value;

use super::rules::{PHASES, Random, Rule, any, inside_first, plain};

fn options(in_place: bool, blocks_min: u32) -> ExecutionSliceOptions {
    let (name, profile) = ("stages".to_owned(), ExecutorProfile::V10);
    ExecutionSliceOptions { name, in_place, bytes_max: 1 << 24, profile, blocks_min }
}

fn slices(rule: &Rule, options: &ExecutionSliceOptions) -> Result<Vec<ExecutionSlice>, RankFileError> {
    (0..rule.rank_count).map(|rank| lower_execution_slice(&rule.request(rank), options)).collect()
}

/// The plan of all ranks: heads are alike.
fn whole(slices: &[ExecutionSlice]) -> ExecutionPlan {
    let head = |slice: &ExecutionSlice| ExecutionPlan { ranks: Vec::new(), ..slice.plan.clone() };
    let first = head(&slices[0]);
    assert!(slices.iter().all(|slice| head(slice) == first));
    ExecutionPlan { ranks: slices.iter().flat_map(|slice| slice.plan.ranks.clone()).collect(), ..first }
}

fn judge(rule: &Rule, plan: &ExecutionPlan, seeds: u64) {
    let proof = prove_execution_plan(plan, None, ExecutorProfile::V10, &|| false).unwrap();
    assert!(proof.problems.is_empty(), "{:?} {rule:?}", proof.problems.first());
    assert_eq!(proof.checks.last().copied(), Some(("meaning", true)));
    let run = emulate_execution_plan(plan, None, ExecutorProfile::V10, 0..seeds, &|| false);
    run.unwrap_or_else(|error| panic!("{error} {rule:?}"));
}

/// What the loader of a rank reads: its own entry, the channels that others have to it by type, and its buffers that
/// others name, in the order in which it registers them.
type Read<'a> = (&'a Value, BTreeMap<(usize, &'a str), usize>, Vec<(usize, &'a Value)>);

fn read(plan: &Value, rank: usize) -> Read<'_> {
    let (mut channels, mut buffers) = (BTreeMap::new(), Vec::new());
    let gpus = plan["gpus"].as_array().unwrap();
    for (position, gpu) in gpus.iter().enumerate() {
        assert_eq!(gpu["id"], position);
        for entry in gpu["channels"].as_array().unwrap().iter().filter(|_| position != rank) {
            let count = entry["connected_to"].as_array().unwrap().iter().filter(|peer| **peer == rank).count();
            if count > 0 {
                let kind = entry["channel_type"].as_str().unwrap();
                *channels.entry((position, kind)).or_default() += count;
            }
        }
        let named = gpu["remote_buffers"].as_array().unwrap().iter().filter(|remote| remote["rank"] == rank);
        buffers.extend(named.map(|remote| (position, remote)));
    }
    (&gpus[rank], channels, buffers)
}

/// Some slices, each compared with the whole.
fn compare(slices: &[ExecutionSlice], plan: &ExecutionPlan) {
    let text = write_execution_plan(plan);
    assert_eq!(parse_execution_plan(&text).unwrap(), *plan);
    let all: Value = serde_json::from_str(&text).unwrap();
    for (rank, slice) in slices.iter().enumerate().step_by((slices.len() / 16).max(1)) {
        let slice = write_execution_slice(slice);
        assert!(slice.len() < text.len());
        let part: Value = serde_json::from_str(&slice).unwrap();
        assert_eq!(read(&part, rank), read(&all, rank));
        for (field, value) in part.as_object().unwrap().iter().filter(|(field, _)| *field != "gpus") {
            assert_eq!(value, &all[field], "{field}");
        }
    }
}

#[test]
fn plain_rules_give_plans_that_are_proved_together() {
    for (kind, _) in PHASES {
        for (digits, places) in [(&[2][..], 1), (&[3], 2), (&[2, 2], 2), (&[3, 2], 4), (&[2, 2, 2], 3)] {
            for (in_place, blocks_min) in [(false, 1), (true, 1), (false, 16)] {
                let rule = plain(kind, digits, places, 2);
                let slices = slices(&rule, &options(in_place, blocks_min)).unwrap();
                let plan = whole(&slices);
                judge(&rule, &plan, 2);
                compare(&slices, &plan);
            }
        }
    }
}

#[test]
fn random_rules_give_plans_that_are_proved_together() {
    let mut random = Random(23);
    let (mut made, mut refused) = (0, BTreeMap::new());
    for round in 0..400 {
        let rule = any(&mut random, 24);
        match slices(&rule, &options(round % 2 == 0, 1 + random.below(6))) {
            Ok(slices) => {
                let plan = whole(&slices);
                judge(&rule, &plan, 1);
                compare(&slices, &plan);
                made += 1;
            }
            Err(RankFileError::Execution(ExecutionLowerError::Domains { .. })) => {
                *refused.entry("domains").or_insert(0) += 1;
            }
            Err(RankFileError::Execution(ExecutionLowerError::OverLimit { what, .. })) => {
                *refused.entry(what).or_insert(0) += 1;
            }
            Err(other) => panic!("{other} {rule:?}"),
        }
    }
    assert!(made > 100, "{made} {refused:?}");
}

#[test]
fn hundreds_of_ranks_are_proved() {
    for (kind, places) in
        [(CollectiveKind::Allgather, 16), (CollectiveKind::ReduceScatter, 16), (CollectiveKind::Allreduce, 8)]
    {
        for rule in [plain(kind, &[4, 4], places, 1), inside_first(plain(kind, &[4, 4], places, 2), 3)] {
            let slices = slices(&rule, &options(false, 1)).unwrap();
            let plan = whole(&slices);
            judge(&rule, &plan, 1);
            compare(&slices, &plan);
        }
    }
}

#[test]
fn a_thousand_ranks_run() {
    for (kind, _) in PHASES {
        for rule in [plain(kind, &[8, 16], 8, 1), inside_first(plain(kind, &[4, 8], 8, 1), 3)] {
            let plan = whole(&slices(&rule, &options(true, 1)).unwrap());
            emulate_execution_plan(&plan, None, ExecutorProfile::V10, [1], &|| false).unwrap();
        }
    }
}

/// A box whose machine is gone: the others of its row send what it would have sent.
#[test]
fn other_boxes_send_for_one_that_is_gone() {
    for (kind, _) in PHASES {
        let mut rule = plain(kind, &[3, 2], 2, 1);
        rule.rank_count = 10;
        rule.stages.grid.seats = Seats::InOrder { empty: vec![6, 7] };
        let piece = |sender, place| Piece { sender, leaves: place, enters: place, chunk_count: 1 };
        rule.stages.exceptions.insert((3, 0), vec![piece(4, 0), piece(4, 1), piece(5, 0), piece(5, 1)]);
        let slices = slices(&rule, &options(false, 2)).unwrap();
        let plan = whole(&slices);
        judge(&rule, &plan, 2);
        compare(&slices, &plan);
    }
}

#[test]
fn limits_are_named_with_what_is_needed() {
    let refused = |kind, digits: &[u32], places| {
        let rule = plain(kind, digits, places, 1);
        match lower_execution_slice(&rule.request(rule.rank_count / 2), &options(false, 32)).unwrap_err() {
            RankFileError::Execution(error) => error,
            other => panic!("{other}"),
        }
    };
    let need = |error| match error {
        ExecutionLowerError::OverLimit { what, limit, need, remedy, .. } => (what, limit, need, remedy),
        other => panic!("{other}"),
    };
    // 127 peers in each of two stages, and 7 in the box.
    let found = need(refused(CollectiveKind::Allgather, &[128, 128], 8));
    assert_eq!(found, ("remote buffers of a rank", 256, 261, "plan with more stages"));
    let (what, limit, blocks, _) = need(refused(CollectiveKind::Allgather, &[1024], 8));
    assert_eq!((what, limit, blocks > 108), ("blocks at once", 108, true));
    let found = need(refused(CollectiveKind::Allgather, &[2], 20));
    assert_eq!(found, ("channels in a block", 16, 19, "spread in boxes along trees of lower degree"));
    // Ranks of the box after the one without a rank 3 are one less than a multiple of 4 on.
    let mut rule = plain(CollectiveKind::Allgather, &[2], 4, 1);
    rule.rank_count = 7;
    rule.stages.grid.seats = Seats::InOrder { empty: vec![3] };
    let refused = lower_execution_slice(&rule.request(3), &options(false, 1)).unwrap_err();
    let profile = ExecutorProfile::V10;
    assert_eq!(refused, ExecutionLowerError::Domains { profile, rank: 3, peer: 0, of_box: 4 }.into());
}

#[test]
fn one_rank_of_a_hundred_thousand_has_a_plan() {
    for (kind, _) in PHASES {
        let rule = plain(kind, &[16, 32, 32], 8, 1);
        for rule in [inside_first(rule.clone(), 3), rule] {
            let slice = lower_execution_slice(&rule.request(70_001), &options(false, 32)).unwrap();
            let text = write_execution_slice(&slice);
            assert!(text.len() < 7_500_000, "{}", text.len());
            // Ahead and behind along the three digits are the same ranks; the others are in the box.
            assert_eq!(slice.stubs.len(), 15 + 31 + 31 + 7);
        }
    }
}

#[test]
fn altered_plans_are_found() {
    for (kind, _) in PHASES {
        let sound = whole(&slices(&plain(kind, &[2, 2], 2, 1), &options(false, 1)).unwrap());
        let mut altered = 0;
        for rank in 0..sound.ranks.len() {
            for block in 0..sound.ranks[rank].blocks.len() {
                for operation in 0..sound.ranks[rank].blocks[block].operations.len() {
                    let mut plan = sound.clone();
                    let operation = &mut plan.ranks[rank].blocks[block].operations[operation];
                    match operation.targets.first_mut() {
                        Some(target) => target.index ^= 1,
                        None if operation.channels.is_empty() => continue,
                        None => drop(operation.channels.pop()),
                    }
                    altered += 1;
                    let proof = prove_execution_plan(&plan, None, ExecutorProfile::V10, &|| false).unwrap();
                    assert!(
                        !proof.problems.is_empty(),
                        "{kind:?} {rank} {block} {operation:?}",
                        operation = plan.ranks[rank]
                    );
                }
            }
        }
        assert!(altered > 50, "{altered}");
    }
}
