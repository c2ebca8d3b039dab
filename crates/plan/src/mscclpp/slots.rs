//! Execution plans for an all-to-all in slots that are filled in part.
//!
//! The runtime has no word for that, so such a plan is `custom`: it says nothing of what it promises, and no runtime
//! takes it for an all-to-all. [`prove_slot_plan`] and [`emulate_slot_plan`] hold it to the slots.

use canopy_schedule::CollectiveKind;

use super::contract::Contract;
use super::emulate::Emulator;
use super::lower::{ExecutionLowerError, ExecutionLowerOptions, lower_in_pieces};
use super::machine::CELLS_MAX;
use super::parse::{ExecutionPlanError, parse_execution_plan};
use super::profile::ExecutorProfile;
use super::program::ExecutionPlan;
use super::prove::prove_contract;
use super::write::write_execution_plan;
use crate::msccl::Proof;
use crate::msccl::emulate::EmulationError;
use crate::proof::{Stop, Stopped};
use crate::slots::{SlotRoute, SlotRouteError, Slots, slot_transfers};

/// The word of such plans.
const WORD: &str = "custom";
/// What a person can do about a plan for which the runtime has no room.
const SMALLER: &str = "plan for fewer ranks, or use larger units, so that fewer parts remain";

/// What a plan is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotPlanOptions {
    /// The version of the runtime.
    pub profile: ExecutorProfile,
    /// Label in the file.
    pub name: String,
    /// Ranks of a box, which are numbered one after the other and reach each other's memory.
    pub box_size: u32,
    /// Seed of the data and the interleaving that the plan is run with.
    pub seed: u64,
}

/// A plan that was read back from its file, proved and run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotPlan {
    /// The file.
    pub text: String,
    /// What it says.
    pub plan: ExecutionPlan,
    /// Bytes of every rank's input and output, the only size that the plan is for.
    pub buffer_bytes: u64,
    /// What the proof warns of.
    pub warnings: Vec<String>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SlotPlanError {
    #[error(transparent)]
    Routes(#[from] SlotRouteError),
    #[error(transparent)]
    Lower(#[from] ExecutionLowerError),
    #[error(
        "buffers of {}, with slots as large as the greatest entry, exceed the {bytes_max} bytes that offsets of {profile} reach \
         here; divide the exchange", in_bytes(*bytes)
    )]
    BufferBytes { profile: ExecutorProfile, bytes: Option<u64>, bytes_max: u64 },
    #[error(
        "the buffers of all ranks have {cells} chunks, more than the {CELLS_MAX} that a proof can follow; use larger units"
    )]
    Cells { cells: u64 },
    #[error("the file cannot be read back")]
    ReadBack(#[from] ExecutionPlanError),
    #[error("the file differs from its plan when read back")]
    Differs,
    #[error("the plan is wrong: {problem}")]
    Unproved { problem: String },
    #[error("the plan does not run")]
    Emulation(#[from] EmulationError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

fn in_bytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "over 2^64 bytes".to_owned(), |bytes| format!("{bytes} bytes"))
}

/// Makes the plan of slots whose units take these routes: written, read back, proved, and run three times.
///
/// Relays keep units in scratch. Every chunk goes whole from rank to rank: its bytes stay in their order.
///
/// * **Errors.** [`SlotPlanError`]: routes that leave out a unit, a limit of the runtime, offsets of more than 32 bits.
/// * **Cost.** As [`lower_execution_plan`](super::lower_execution_plan) and [`prove_slot_plan`].
pub fn plan_slots(
    slots: &Slots,
    routes: &[SlotRoute],
    options: &SlotPlanOptions,
    stop: Stop<'_>,
) -> Result<SlotPlan, SlotPlanError> {
    let SlotPlanOptions { profile, box_size, seed, .. } = *options;
    let graph = slot_transfers(slots, routes)?;
    let bytes = slots.buffer_bytes();
    let lowering = ExecutionLowerOptions {
        in_place: false,
        bytes_max: bytes.unwrap_or(u64::MAX),
        profile,
        name: options.name.clone(),
        boxes: (0..slots.ranks()).map(|rank| rank / box_size.max(1)).collect(),
        switches: Vec::new(),
    };
    let lowered = lower_in_pieces(&graph, &lowering, 1, stop).map_err(with_remedy)?;
    let bytes_max = profile.bytes_max_inclusive(lowered.bytes_max).unwrap_or(0);
    let Some(buffer_bytes) = bytes.filter(|&bytes| bytes <= bytes_max) else {
        return Err(SlotPlanError::BufferBytes { profile, bytes, bytes_max });
    };
    let lowered = ExecutionPlan { collective: WORD.to_owned(), ..lowered };
    let lowered = lowered.beginning_at(buffer_bytes, profile, CollectiveKind::AllToAll)?;
    let chunks =
        |rank: &super::ExecutionRank| [rank.input_chunks, rank.output_chunks, rank.scratch_chunks].map(u64::from);
    let cells = lowered.ranks.iter().flat_map(chunks).sum();
    if cells > CELLS_MAX {
        return Err(SlotPlanError::Cells { cells });
    }
    let text = write_execution_plan(&lowered);
    let plan = parse_execution_plan(&text)?;
    if plan != lowered {
        return Err(SlotPlanError::Differs);
    }
    let proof = prove_slot_plan(&plan, slots, profile, stop)?;
    proof.require_right().map_err(|problem| SlotPlanError::Unproved { problem })?;
    emulate_slot_plan(&plan, slots, profile, [seed], stop)?;
    let warnings = proof.warnings.iter().map(ToString::to_string).collect();
    Ok(SlotPlan { text, plan, buffer_bytes, warnings })
}

/// Where the runtime has no room, what helps here.
fn with_remedy(error: ExecutionLowerError) -> ExecutionLowerError {
    match error {
        ExecutionLowerError::OverLimit { profile, what, limit, need, rank, certainty, .. } => {
            ExecutionLowerError::OverLimit { profile, what, limit, need, rank, certainty, remedy: SMALLER }
        }
        other => other,
    }
}

/// Judges a plan for an all-to-all in slots, as [`prove_execution_plan`](super::prove_execution_plan) does: units that
/// are filled arrive, and the rest of every output stays as it is.
///
/// # Errors
/// `stop` returned true.
pub fn prove_slot_plan(
    plan: &ExecutionPlan,
    slots: &Slots,
    profile: ExecutorProfile,
    stop: Stop<'_>,
) -> Result<Proof, Stopped> {
    prove_contract(plan, || Contract::of_slots(plan, slots), profile, stop)
}

/// Runs a plan for an all-to-all in slots on bytes, as [`emulate_execution_plan`](super::emulate_execution_plan) does,
/// and compares all outputs, those units among them that must stay as they are.
///
/// # Errors
/// The plan cannot be followed, does not end, or gives a wrong result; `stop` returned true.
pub fn emulate_slot_plan(
    plan: &ExecutionPlan,
    slots: &Slots,
    profile: ExecutorProfile,
    seeds: impl IntoIterator<Item = u64>,
    stop: Stop<'_>,
) -> Result<(), EmulationError> {
    Emulator::held_to(plan, Contract::of_slots(plan, slots), profile, stop)?.run_various(seeds, stop)
}

#[cfg(test)]
mod tests;
