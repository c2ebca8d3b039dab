//! Traffic that changes, as plans of slots: from a network and a matrix to routes, units, a file, and every byte.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::num::NonZeroU64;

use canopy_moving::{Fabric, Matrix, Rates, Tiers, in_units, plan_at_ends};
use canopy_plan::{
    ExecutionLowerError, ExecutionPlan, ExecutorProfile, SlotPlan, SlotPlanError, SlotPlanOptions, SlotRoute, Slots,
    emulate_slot_plan, parse_execution_plan, plan_slots, prove_slot_plan,
};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::execution_interpreter::chance;
use crate::execution_interpreter::world::{Launch, World, mix};

/// Traffic on a network.
#[derive(Clone, Debug)]
struct Case {
    fabric: Fabric,
    box_size: u32,
    nics: Vec<u64>,
    bytes: Vec<u64>,
    unit_bytes: u64,
}

impl Case {
    fn ranks(&self) -> u32 {
        u32::try_from(self.nics.len()).unwrap()
    }

    fn slots(&self) -> Option<Slots> {
        Slots::new(self.ranks(), &self.bytes, self.unit_bytes).ok()
    }

    /// The routes that are planned, in units; none where boxes have no NIC for what they send.
    fn routes(&self) -> Option<Vec<SlotRoute>> {
        let ranks = self.nics.len();
        let (inner_out, inner_in) = (vec![300; ranks], vec![300; ranks]);
        let (outer_out, outer_in) = (self.nics.clone(), self.nics.clone());
        let rates = Rates { inner_out, inner_in, outer_out, outer_in };
        let tiers = Tiers::new(self.fabric, self.box_size, rates).unwrap();
        let parts = plan_at_ends(&tiers, &Matrix::new(self.ranks(), self.bytes.clone()).unwrap(), None).ok()?.parts;
        let units = in_units(&parts, NonZeroU64::new(self.unit_bytes).unwrap());
        Some(
            units
                .into_iter()
                .map(|part| SlotRoute { ranks: part.ranks, first: part.first, count: part.count })
                .collect(),
        )
    }

    fn planned(&self, profile: ExecutorProfile) -> Option<(Slots, SlotPlan)> {
        let (slots, routes) = (self.slots()?, self.routes()?);
        let options = SlotPlanOptions { profile, name: "test".to_owned(), box_size: self.box_size, seed: 7 };
        let planned = plan_slots(&slots, &routes, &options, &|| false).unwrap();
        Some((slots, planned))
    }
}

/// 2 or 3 boxes of 2 to 4 ranks, some without a NIC, and up to 200 bytes a pair.
fn cases() -> impl Strategy<Value = Case> {
    let entry = prop_oneof![Just(0), 1_u64..40, 1_u64..200];
    let fabric = prop_oneof![Just(Fabric::Rails), Just(Fabric::Full)];
    (2_u32..=3, 2_u32..=4, fabric, 1_u64..=4).prop_flat_map(move |(boxes, box_size, fabric, moved)| {
        let ranks = (boxes * box_size) as usize;
        let nics = prop::collection::vec(prop_oneof![1 => Just(0_u64), 6 => Just(50), 1 => Just(25)], ranks);
        (nics, prop::collection::vec(entry.clone(), ranks * ranks)).prop_map(move |(nics, mut bytes)| {
            bytes.iter_mut().step_by(ranks + 1).for_each(|own| *own = 0);
            Case { fabric, box_size, nics, bytes, unit_bytes: moved * 16 }
        })
    })
}

fn filled(seed: u64, rank: usize, bytes: &mut [u8]) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = mix(seed ^ ((rank as u64) << 32) ^ at as u64).to_le_bytes()[3];
    }
}

/// Runs the text on bytes of the real sizes, and compares every one with what the matrix says, by nothing but the
/// matrix.
fn delivered(case: &Case, text: &str, buffer_bytes: u64, seed: u64) -> Result<(), String> {
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    let chunks = json["gpus"][0]["input_chunks"].as_u64().ok_or("no input_chunks")?;
    let launch = Launch {
        chunk_bytes: usize::try_from(buffer_bytes / chunks).unwrap(),
        threads: 3,
        misreads_flushing_puts: false,
        bases: |_, input, output| (0, input, input + output),
        misread: None,
    };
    let world =
        World::new(&json, launch, |rank, bytes| filled(!seed, rank, bytes), |rank, bytes| filled(seed, rank, bytes))?;
    let (start, end) = (world.start(), chance::run(&world, seed)?);
    let (ranks, slot) = (case.nics.len(), usize::try_from(buffer_bytes).unwrap() / case.nics.len());
    for to in 0..ranks {
        let (before, after) = (world.buffer(&start, to, 1), world.buffer(&end, to, 1));
        if world.buffer(&start, to, 0) != world.buffer(&end, to, 0) {
            return Err(format!("the input of rank {to} has changed"));
        }
        for from in 0..ranks {
            let sent = &world.buffer(&start, from, 0)[to * slot..(to + 1) * slot];
            let bytes = if from == to { slot as u64 } else { case.bytes[from * ranks + to] };
            let bytes = usize::try_from(bytes).unwrap();
            let moved = bytes.next_multiple_of(usize::try_from(case.unit_bytes).unwrap());
            let place = from * slot..(from + 1) * slot;
            if after[place.clone()][..bytes] != sent[..bytes] {
                return Err(format!("bytes of rank {from} are not at rank {to}"));
            }
            if after[place.clone()][moved..] != before[place][moved..] {
                return Err(format!("rank {to} has more of rank {from} than the matrix says"));
            }
        }
    }
    Ok(())
}

/// Keeps failing seeds beside this file.
fn config(cases: u32) -> ProptestConfig {
    let persistence = FileFailurePersistence::Direct("tests/slots.proptest-regressions");
    ProptestConfig { cases, failure_persistence: Some(Box::new(persistence)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(96))]

    /// Whatever the network and the matrix, the file is right, and every byte is where the matrix says.
    #[test]
    fn every_byte_is_where_the_matrix_says(
        case in cases(),
        profile in prop::sample::select(&ExecutorProfile::ALL[..]),
        seed: u64,
    ) {
        let Some((slots, planned)) = case.planned(profile) else { return Ok(()) };
        let SlotPlan { text, plan, buffer_bytes, .. } = &planned;
        prop_assert_eq!(&parse_execution_plan(text).unwrap(), plan);
        let proof = prove_slot_plan(plan, &slots, profile, &|| false).unwrap();
        prop_assert!(proof.is_ok(), "{:#?}", proof.problems);
        prop_assert!(emulate_slot_plan(plan, &slots, profile, [seed], &|| false).is_ok());
        prop_assert_eq!(delivered(&case, text, *buffer_bytes, seed), Ok(()));
    }

    /// A matrix with another number of units at one place has another plan.
    #[test]
    fn a_plan_is_for_its_matrix_alone(case in cases(), at: prop::sample::Index, seed: u64) {
        let Some((slots, planned)) = case.planned(ExecutorProfile::V10) else { return Ok(()) };
        let (ranks, slot) = (case.nics.len(), slots.slot_units() * case.unit_bytes);
        let at = at.index(ranks * ranks);
        let mut other = case.clone();
        // As many units as were not filled, unless that makes other slots.
        other.bytes[at] = slot - case.bytes[at].next_multiple_of(case.unit_bytes);
        let Some(changed) = other.slots().filter(|changed| *changed != slots) else { return Ok(()) };
        let profile = ExecutorProfile::V10;
        let proof = prove_slot_plan(&planned.plan, &changed, profile, &|| false).unwrap();
        prop_assert!(!proof.is_ok());
        prop_assert!(emulate_slot_plan(&planned.plan, &changed, profile, [seed], &|| false).is_err());
    }

    /// Whatever the proof accepts of a file with a number changed runs right.
    #[test]
    fn changed_files_are_refused_or_right(case in cases(), at: prop::sample::Index, digit in b'0'..=b'9', seed: u64) {
        let Some((slots, planned)) = case.planned(ExecutorProfile::V10) else { return Ok(()) };
        let mut text = planned.text.clone().into_bytes();
        let digits: Vec<usize> = (0..text.len()).filter(|&at| text[at].is_ascii_digit()).collect();
        text[digits[at.index(digits.len())]] = digit;
        let text = String::from_utf8(text).unwrap();
        let Ok(changed) = parse_execution_plan(&text) else { return Ok(()) };
        let proof = prove_slot_plan(&changed, &slots, ExecutorProfile::V10, &|| false).unwrap();
        if proof.is_ok() {
            prop_assert_eq!(delivered(&case, &text, planned.buffer_bytes, seed), Ok(()));
        }
    }
}

/// Zipf traffic: rank `r` of each row has 1/(r + 1) of the most, beginning with another rank in each row.
fn zipf(ranks: u32, most: u64) -> Vec<u64> {
    let entry = |from: u32, to: u32| if from == to { 0 } else { most / (u64::from((to * 7 + from * 3) % ranks) + 1) };
    (0..ranks).flat_map(|from| (0..ranks).map(move |to| entry(from, to))).collect()
}

fn zipf_case(fabric: Fabric, (boxes, box_size): (u32, u32), unit_bytes: u64) -> Case {
    let ranks = boxes * box_size;
    Case { fabric, box_size, nics: vec![50; ranks as usize], bytes: zipf(ranks, 1 << 14), unit_bytes }
}

#[test]
fn several_boxes_fit_the_runtime() {
    for (fabric, shape) in
        [(Fabric::Rails, (4, 4)), (Fabric::Full, (4, 4)), (Fabric::Rails, (2, 8)), (Fabric::Full, (1, 8))]
    {
        let case = zipf_case(fabric, shape, 1 << 10);
        let (_, planned) = case.planned(ExecutorProfile::V10).unwrap();
        delivered(&case, &planned.text, planned.buffer_bytes, 1).unwrap();
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_number_and_the_remedy() {
    let case = zipf_case(Fabric::Full, (32, 8), 1 << 14);
    let (slots, routes) = (case.slots().unwrap(), case.routes().unwrap());
    let options = SlotPlanOptions { profile: ExecutorProfile::V10, name: "test".to_owned(), box_size: 8, seed: 7 };
    let refused = plan_slots(&slots, &routes, &options, &|| false);
    let Err(SlotPlanError::Lower(error @ ExecutionLowerError::OverLimit { .. })) = refused else {
        panic!("{:?}", refused.map(|planned| planned.plan.ranks.len()));
    };
    assert!(error.to_string().contains("plan for fewer ranks"), "{error}");
}

/// Each number of blocks, scratch and operations is within what the file's reader allows.
#[test]
fn a_plan_keeps_the_limits_of_its_version() {
    let (_, planned) = zipf_case(Fabric::Rails, (2, 4), 1 << 8).planned(ExecutorProfile::V08).unwrap();
    let ExecutionPlan { ranks, .. } = planned.plan;
    let limits = ExecutorProfile::V08.limits();
    for block in ranks.iter().flat_map(|rank| &rank.blocks) {
        assert!(block.operations.len() <= limits.operations_per_block as usize);
    }
    assert!(ranks.iter().all(|rank| rank.blocks.len() <= limits.blocks_resident as usize));
}
