//! Execution plans of MSCCL++.

use std::collections::BTreeSet;

use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::Rank;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::error::chain;
use super::msccl::advice;
use super::{
    Asked, Expected, Facts, Limit, OptionError, Row, Stated, SwitchUse, Target, TargetError, TargetFile, TargetOptions,
    TargetReason, Verdict, WithFewer,
};
use crate::cut::SliceError;
use crate::elements::ElementType;
use crate::msccl::emulate::EmulationError;
use crate::msccl::forwarder_on_routes;
use crate::mscclpp::{
    Emulator, ExecutionLowerError, ExecutionLowerOptions, ExecutionOptions, ExecutionPlan, ExecutorProfile,
    UnknownExecutorProfile, cut_execution_plan, emulate_execution_plan, execution_alignment_bytes,
    lower_execution_plan, parse_execution_plan, prove_execution_plan, read_word, write_execution_plan,
};

/// Data and interleavings a plan that comes from elsewhere is run with.
const RUNS: [(u64, ElementType); 5] =
    [(1, ElementType::U64), (2, ElementType::U8), (3, ElementType::I32), (4, ElementType::I8), (5, ElementType::U32)];

/// What tells the two kinds of JSON apart.
#[derive(Deserialize)]
struct Head {
    canopy: Option<IgnoredAny>,
    gpus: Option<IgnoredAny>,
}

/// The row of this format.
pub(super) struct MscclppJson;

impl Row for MscclppJson {
    fn facts(&self) -> Facts {
        Facts {
            name: "mscclpp-json",
            noun: "an execution plan of MSCCL++",
            ending: "json",
            profiles: ExecutorProfile::ALL.map(ExecutorProfile::name).into(),
            usual_profile: ExecutorProfile::NEWEST.name(),
        }
    }

    fn profile(&self, options: &TargetOptions<'_>) -> Result<&'static str, OptionError> {
        if let Some(asked) = options.instances {
            return Err(OptionError::NotRepeated { asked });
        }
        let stated = (!options.profile.is_empty()).then(|| options.profile.parse::<ExecutorProfile>());
        Ok(stated.transpose()?.map_or(ExecutorProfile::NEWEST.name(), ExecutorProfile::name))
    }

    fn uses_switches(&self) -> bool {
        true
    }

    fn is_registered(&self, name: &str) -> bool {
        profile(name).is_ok_and(ExecutorProfile::is_registered)
    }

    /// Operations take about as much as steps of an MSCCL file. There are at most eight pieces, and as few as blocks have
    /// room for: a hop takes three operations at least.
    fn operations(&self, _target: Target, hops: u64, ranks: u64) -> u64 {
        let limits = ExecutorProfile::NEWEST.limits();
        let of_rank = u64::from(limits.blocks_resident) * u64::from(limits.operations_per_block) / 3;
        hops.saturating_mul(8).min(hops.max(ranks.saturating_mul(of_rank)))
    }

    /// Whether the JSON is an execution plan and none of canopy's own, whose first field says so.
    fn is_one(&self, bytes: &[u8]) -> bool {
        let start = bytes.get(..64).unwrap_or(bytes);
        let plain: Vec<u8> = start.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        if plain.starts_with(b"{\"canopy\":") {
            return false;
        }
        serde_json::from_slice(bytes).is_ok_and(|head: Head| head.gpus.is_some() && head.canopy.is_none())
    }

    fn draft(&self, target: Target, asked: Asked<'_>) -> Result<Vec<u8>, TargetError> {
        let profile = profile(target.profile).map_err(TargetError::rejected)?;
        Ok(write_execution_plan(&lowered(profile, target.switches, &asked)?).into_bytes())
    }

    fn write(&self, target: Target, asked: Asked<'_>) -> Result<TargetFile, TargetError> {
        let profile = profile(target.profile).map_err(TargetError::rejected)?;
        let lowered = lowered(profile, target.switches, &asked)?;
        let collective = asked.transfers()?.collective;
        let lowered = lowered.beginning_at(asked.bytes_min, profile, collective.kind())?;
        // The proof of the plan takes as long as all that happens to its file.
        let (proof, file) = rayon::join(
            || prove_execution_plan(&lowered, Some(collective), profile, asked.stop),
            || emulated_file(&lowered, collective, profile, &asked),
        );
        let proof = proof.map_err(|_| TargetError::from(ExecutionLowerError::Stopped))?;
        if let Err(problem) = proof.require_right() {
            return Err(TargetError::unproved(problem));
        }
        let text = file?;
        Ok(TargetFile {
            bytes_min: lowered.bytes_min,
            bytes_max: profile.bytes_max_inclusive(lowered.bytes_max),
            // Elements have at least one byte.
            alignment_elements: execution_alignment_bytes(&lowered).max(1),
            warnings: advice(profile.name(), proof.warnings),
            ..TargetFile::new(text)
        })
    }

    fn slice(&self, content: &[u8], ranks: &BTreeSet<u32>) -> Option<Result<Vec<u8>, SliceError>> {
        Some(cut_execution_plan(content, ranks))
    }

    fn judge(&self, content: &[u8], stated: &Stated<'_>) -> Result<(), String> {
        let profile = profile(stated.profile)?;
        let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
        let file = parse_execution_plan(text).map_err(|error| error.to_string())?;
        let (kind, root) = stated.collective()?;
        let ranks = stated.ranks.unwrap_or(0);
        let asked = kind.and_then(|kind| Collective::new(kind, root.map(Rank::new), ranks).ok());
        let asked = asked.ok_or("it states no collective of its ranks")?;
        if stated.instances > 0 || u32::try_from(file.ranks.len()) != Ok(ranks) {
            return Err("its execution plan is for another rank count, or has instances".to_owned());
        }
        let proof = prove_execution_plan(&file, Some(asked), profile, &|| false).map_err(|error| error.to_string())?;
        proof.require_right().map_err(|problem| format!("its execution plan: {problem}"))
    }

    /// What `custom` stands for must be expected, else only that it runs is seen.
    fn verify(&self, content: &[u8], given: Option<&'static str>, expected: &Expected<'_>) -> Option<Verdict> {
        let profile = given.and_then(|name| profile(name).ok()).unwrap_or(ExecutorProfile::NEWEST);
        let mut verdict = Verdict::new(profile.name());
        let Some(text) = verdict.text(content) else { return Some(verdict) };
        match parse_execution_plan(text) {
            Ok(plan) => verify_plan(&plan, profile, expected, &mut verdict),
            Err(error) => verdict.record("file", Some(chain(&error))),
        }
        Some(verdict)
    }
}

fn profile(name: &str) -> Result<ExecutorProfile, String> {
    name.parse().map_err(|error: UnknownExecutorProfile| error.to_string())
}

fn lowered(profile: ExecutorProfile, switches: SwitchUse, asked: &Asked<'_>) -> Result<ExecutionPlan, TargetError> {
    let (topology, graph) = (asked.topology, asked.transfers()?);
    if let Some(id) = forwarder_on_routes(topology, graph) {
        return Err(TargetError::from(ExecutionLowerError::Forwarder { profile, id: id.to_owned() }));
    }
    let name = asked.name.to_owned();
    let mut options = ExecutionLowerOptions::on(topology, profile, name, asked.in_place, asked.bytes_max);
    if switches == SwitchUse::None {
        options.switches.clear();
    }
    Ok(lower_execution_plan(graph, &options, asked.stop)?)
}

/// The file of a plan, which is the same plan when read back, and has run.
fn emulated_file(
    lowered: &ExecutionPlan,
    collective: Collective,
    profile: ExecutorProfile,
    asked: &Asked<'_>,
) -> Result<String, TargetError> {
    let text = write_execution_plan(lowered);
    let plan = parse_execution_plan(&text).map_err(|error| TargetError::rejected(error.to_string()))?;
    if plan != *lowered {
        return Err(TargetError::rejected("the execution plan differs from its plan when read back"));
    }
    emulate_execution_plan(&plan, Some(collective), profile, [asked.seed], asked.stop)?;
    Ok(text)
}

/// What an error of lowering means.
impl From<ExecutionLowerError> for TargetError {
    fn from(error: ExecutionLowerError) -> Self {
        let reason = match &error {
            ExecutionLowerError::Forwarder { .. }
            | ExecutionLowerError::Measure { .. }
            | ExecutionLowerError::Domains { .. } => TargetReason::Unsupported,
            ExecutionLowerError::Shares { .. } => TargetReason::Shares,
            ExecutionLowerError::BytesMin { .. } => TargetReason::NoRoom,
            &ExecutionLowerError::OverLimit { profile, what, limit, need, rank, certainty, .. } => {
                TargetReason::OverLimit(Box::new(Limit {
                    profile: profile.name(),
                    whose: format!("the {profile} profile"),
                    what,
                    limit,
                    need,
                    rank,
                    certainty: Some(certainty),
                    with_fewer: WithFewer::InProportion,
                }))
            }
            ExecutionLowerError::Stopped => TargetReason::Stopped,
            ExecutionLowerError::Boxes { .. }
            | ExecutionLowerError::TooFewRanks { .. }
            | ExecutionLowerError::NoChunks
            | ExecutionLowerError::Malformed { .. }
            | ExecutionLowerError::NotHeld { .. } => TargetReason::Broken,
        };
        Self::new(reason, error)
    }
}

fn verify_plan(plan: &ExecutionPlan, profile: ExecutorProfile, expected: &Expected<'_>, verdict: &mut Verdict) {
    verdict.record("file", None);
    verdict.ranks = u32::try_from(plan.ranks.len()).ok();
    let kind = read_word(&plan.collective).or(expected.kind);
    verdict.collective = kind.map(CollectiveKind::name);
    // A file names no root: who registers it does.
    verdict.root = kind.filter(|kind| kind.has_root()).map(|_| expected.root.unwrap_or(0));
    let root = verdict.root.map(Rank::new);
    let asked = kind.map(|kind| Collective::new(kind, root, verdict.ranks.unwrap_or(0))).transpose();
    let asked = match asked {
        Ok(asked) => asked,
        Err(error) => return verdict.record("collective", Some(chain(&error))),
    };
    if let Some(kind) = kind {
        verdict.record_collective(expected, kind, verdict.root);
    }
    if let Some(topology) = expected.topology {
        verdict.record_ranks(topology);
    }
    verdict.record_proof(prove_execution_plan(plan, asked, profile, &|| false).expect("nothing asks it to stop"));
    let emulator = Emulator::new(plan, asked, profile, &|| false);
    let runs = RUNS.iter().map(|&(seed, element)| {
        let options = ExecutionOptions { seed, elements: 2, element };
        let run = |emulator: &Emulator| emulator.run(&options, &|| false).map(drop);
        (seed, emulator.as_ref().map_err(Clone::clone).and_then(run))
    });
    verdict.record_runs(|error| matches!(error, EmulationError::TooLarge { .. }), runs);
}
