//! Judges execution plans of MSCCL++: reads them as the loader does, proves what they do, and runs them on real bytes.

use canopy_plan::{
    ElementType, EmulationError, ExecutionOptions, ExecutorProfile, emulate_execution_plan, parse_execution_plan,
    prove_execution_plan,
};
use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::Rank;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::exit::words;

use super::{Expected, Problem, Report};

/// Data and interleavings the plan is run with.
const RUNS: [(u64, ElementType); 5] =
    [(1, ElementType::U64), (2, ElementType::U8), (3, ElementType::I32), (4, ElementType::I8), (5, ElementType::U32)];

/// What tells the two kinds of JSON apart.
#[derive(Deserialize)]
struct Head {
    canopy: Option<IgnoredAny>,
    gpus: Option<IgnoredAny>,
}

/// Whether a text in JSON is an execution plan and none of canopy's own, whose first field says so.
pub(in crate::commands) fn is_one(bytes: &[u8]) -> bool {
    let start = bytes.get(..64).unwrap_or(bytes);
    let plain: Vec<u8> = start.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if plain.starts_with(b"{\"canopy\":") {
        return false;
    }
    serde_json::from_slice(bytes).is_ok_and(|head: Head| head.gpus.is_some() && head.canopy.is_none())
}

/// Reads the file, and derives what it does. What `custom` stands for must be expected, else only that it runs is seen.
pub(super) fn judge(bytes: &[u8], given: Option<ExecutorProfile>, expected: &Expected<'_>) -> Report {
    let profile = given.unwrap_or(ExecutorProfile::NEWEST);
    let mut report = Report::new(Some("mscclpp-json"));
    report.profile = Some(profile.name());
    let Ok(text) = std::str::from_utf8(bytes) else {
        report.record("file", Some("the file is not UTF-8".to_owned()));
        return report;
    };
    let plan = match parse_execution_plan(text) {
        Ok(plan) => plan,
        Err(error) => {
            report.record("file", Some(words(&error)));
            return report;
        }
    };
    report.record("file", None);
    report.ranks = u32::try_from(plan.ranks.len()).ok();
    let ranks = report.ranks.unwrap_or(0);
    let stated = match plan.collective.as_str() {
        "allgather" => Some(CollectiveKind::Allgather),
        "reducescatter" => Some(CollectiveKind::ReduceScatter),
        "allreduce" => Some(CollectiveKind::Allreduce),
        "alltoall" => Some(CollectiveKind::AllToAll),
        _ => None,
    };
    let kind = stated.or(expected.kind);
    report.collective = kind.map(CollectiveKind::name);
    // A file names no root: who registers it does.
    let root = kind.filter(|kind| kind.has_root()).map(|_| expected.root.unwrap_or(0));
    report.root = root;
    let asked = match kind.map(|kind| Collective::new(kind, root.map(Rank::new), ranks)).transpose() {
        Ok(asked) => asked,
        Err(error) => {
            report.record("collective", Some(words(&error)));
            return report;
        }
    };
    if let Some(kind) = kind {
        report.record_collective(expected, kind, root);
    }
    if let Some(topology) = expected.topology {
        let wanted = topology.rank_count();
        report.record("ranks", (wanted != ranks).then(|| format!("the file is for {ranks} ranks, not for {wanted}")));
    }
    let proof = prove_execution_plan(&plan, asked, profile, &|| false).expect("nothing asks it to stop");
    let as_problem = |found: canopy_plan::Problem| Problem {
        check: found.check,
        message: found.message,
        place: found.place.to_string(),
    };
    report.checks.extend(proof.checks);
    report.problems.extend(proof.problems.into_iter().map(as_problem));
    report.warnings.extend(proof.warnings.into_iter().map(as_problem));
    // A plan that is wrong on paper need not be run to be refused.
    if !report.problems.is_empty() {
        return report;
    }
    for (seed, element) in RUNS {
        let options = ExecutionOptions { profile, seed, elements: 2, element };
        let problem = match emulate_execution_plan(&plan, asked, &options, &|| false) {
            Ok(_) => None,
            // The proof stands without a run.
            Err(error @ EmulationError::TooLarge { .. }) => {
                let message = format!("the file is right on paper, but was not run: {}", words(&error));
                report.warnings.push(Problem { check: "emulation", message, place: "file".to_owned() });
                return report;
            }
            Err(error) => Some(format!("run with seed {seed}: {}", words(&error))),
        };
        let failed = problem.is_some();
        report.record("emulation", problem);
        if failed {
            break;
        }
    }
    report
}
