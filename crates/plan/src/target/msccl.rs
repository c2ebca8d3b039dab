//! MSCCL XML.

use std::collections::BTreeSet;

use canopy_schedule::Collective;

use super::error::chain;
use super::options::TargetOptions;
use super::{
    Asked, Expected, Facts, Finding, Limit, OptionError, Row, Stated, Target, TargetError, TargetFile, TargetReason,
    TargetWarning, Verdict, WithFewer,
};
use crate::cut::{SliceError, cut_xml};
use crate::elements::{ElementType, Operator};
use crate::msccl::emulate::{EmulateOptions, EmulationError, emulate, emulate_until};
use crate::msccl::{
    ForeignFile, Instances, LowerError, LowerOptions, Lowered, MSCCL_OWN_BYTES_MAX, ParseError, ParseFault, Profile,
    ProfileError, Program, lower, network_load, parse_msccl_xml_until, prove, prove_until, read_msccl_xml_as_runtime,
    require_own_routes, write_msccl_xml,
};
use crate::need::Certainty;

/// Data and interleavings a file that comes from elsewhere is run with. A sum finds contributions that are missing or
/// counted twice, an exclusive or finds pairs that a sum of small numbers might hide, a product depends on all bits of odd
/// factors, and a maximum of signed bytes needs the order of numbers, not of bits.
const RUNS: [(u64, ElementType, Operator); 5] = [
    (1, ElementType::U64, Operator::Sum),
    (2, ElementType::U8, Operator::Xor),
    (3, ElementType::I32, Operator::Product),
    (4, ElementType::I8, Operator::Max),
    (5, ElementType::U32, Operator::Sum),
];

/// The row of this format.
pub(super) struct MscclXml;

impl Row for MscclXml {
    fn facts(&self) -> Facts {
        Facts {
            name: "msccl-xml",
            noun: "an MSCCL file",
            ending: "xml",
            profiles: Profile::ALL.map(Profile::name).into(),
            usual_profile: Profile::Msccl.name(),
        }
    }

    fn profile(&self, options: &TargetOptions<'_>) -> Result<&'static str, OptionError> {
        let stated = (!options.profile.is_empty()).then(|| options.profile.parse::<Profile>());
        Ok(stated.transpose()?.map_or(Profile::Msccl.name(), Profile::name))
    }

    /// More instances than channels are refused before they take any memory, and an automatic number of them stays within the
    /// nodes that ranks keep.
    fn operations(&self, target: Target, hops: u64, ranks: u64) -> u64 {
        let limits = profile(target.profile).unwrap_or(Profile::Msccl).limits();
        let channels = u64::from(limits.channels);
        match target.instances {
            Instances::Exactly(instances) => hops.saturating_mul(u64::from(instances.get()).min(channels)),
            Instances::Auto => {
                let kept = ranks.saturating_mul(limits.nodes.into());
                hops.saturating_mul(channels).min(kept).max(hops)
            }
        }
    }

    fn is_one(&self, _bytes: &[u8]) -> bool {
        true
    }

    fn draft(&self, target: Target, asked: Asked<'_>) -> Result<Vec<u8>, TargetError> {
        let profile = profile(target.profile).map_err(TargetError::rejected)?;
        Ok(write_msccl_xml(&lowered(profile, target.instances, &asked)?.program, profile).into_bytes())
    }

    fn write(&self, target: Target, asked: Asked<'_>) -> Result<TargetFile, TargetError> {
        let profile = profile(target.profile).map_err(TargetError::rejected)?;
        let lowered = lowered(profile, target.instances, &asked)?;
        let lowered = lowered.beginning_at(asked.bytes_min, profile)?;
        let text = write_msccl_xml(&lowered.program, profile);
        let program = parse_msccl_xml_until(&text, profile, MSCCL_OWN_BYTES_MAX, asked.stop).map_err(|error| {
            match error.fault {
                ParseFault::Stopped => TargetError::from(LowerError::Stopped),
                ParseFault::TooLarge { bytes, limit } => TargetError::from(too_long(profile, bytes, limit)),
                _ => TargetError::rejected(error.to_string()),
            }
        })?;
        if program != lowered.program {
            return Err(TargetError::rejected("the MSCCL file differs from its program when read back"));
        }
        let warnings = judged(&program, profile, &asked)?;
        Ok(TargetFile {
            instances: lowered.instances.get(),
            bytes_min: program.bytes_min.unwrap_or(0),
            bytes_max: profile.bytes_max_of(program.bytes_max),
            alignment_elements: u64::from(program.chunk_count).max(1),
            warnings,
            ..TargetFile::new(text)
        })
    }

    fn judge(&self, content: &[u8], stated: &Stated<'_>) -> Result<(), String> {
        let (profile, program) = own_program(stated.profile, content)?;
        let (kind, _) = stated.collective()?;
        if kind.is_none() || kind != program.purpose.collective() || stated.ranks != Some(program.rank_count) {
            return Err("its MSCCL file is for another collective or rank count".to_owned());
        }
        // Each instance has the same chunks and channels.
        let instances = stated.instances.max(1);
        if !program.chunk_count.is_multiple_of(instances) || !program.channel_count.is_multiple_of(instances) {
            return Err(format!("its MSCCL file cannot have the {instances} instances stated"));
        }
        prove(&program, profile).require_right().map_err(|problem| format!("its MSCCL file: {problem}"))
    }

    /// The file is read as the runtime of the profile would. Without a profile it is microsoft/msccl, and a file that only
    /// another runtime reads is refused with the name of that one.
    fn verify(&self, content: &[u8], given: Option<&'static str>, expected: &Expected<'_>) -> Option<Verdict> {
        let profile = given.and_then(|name| profile(name).ok()).unwrap_or(Profile::Msccl);
        let mut verdict = Verdict::new(profile.name());
        let Some(text) = verdict.text(content) else { return Some(verdict) };
        let ForeignFile { program, deviations } = match foreign(text, profile) {
            Ok(file) => file,
            Err(error) => {
                let place = format!("line {}, column {}", error.line, error.column);
                let mut words = error.fault.to_string();
                let reads = |other: &Profile| given.is_none() && foreign(text, *other).is_ok();
                if let Some(other) = Profile::ALL.into_iter().find(reads) {
                    words += &format!("; use --profile {other}, which can read the file");
                }
                verdict.record_at("file", Some((words, place)));
                return Some(verdict);
            }
        };
        verdict.record("file", None);
        verdict.warnings.extend(deviations.iter().map(|deviation| Finding {
            check: "file",
            message: format!("{deviation}; remove it, since the runtime silently ignores it"),
            place: format!("line {}", deviation.line),
        }));
        verdict.collective = Some(program.purpose.name());
        verdict.ranks = Some(program.rank_count);
        verdict.record_proof(prove(&program, profile));
        let runs = RUNS.iter().map(|&(seed, element, operator)| {
            let options = EmulateOptions { element, operator, ..EmulateOptions::standard(profile, seed) };
            (seed, emulate(&program, &options).map(drop))
        });
        verdict.record_runs(|error| matches!(error, EmulationError::TooLarge { .. }), runs);
        compare(&program, expected, &mut verdict);
        Some(verdict)
    }

    fn slice(&self, content: &[u8], ranks: &BTreeSet<u32>) -> Option<Result<Vec<u8>, SliceError>> {
        Some(cut_xml(content, "gpu", ranks))
    }
}

fn profile(name: &str) -> Result<Profile, String> {
    name.parse().map_err(|error: ProfileError| error.to_string())
}

/// A file that the user names is read as far as canopy's own go; it takes two to three times its length in memory.
fn foreign(text: &str, profile: Profile) -> Result<ForeignFile, ParseError> {
    read_msccl_xml_as_runtime(text, profile, MSCCL_OWN_BYTES_MAX, &|| false)
}

/// A file that was written here, read.
fn own_program(name: &str, content: &[u8]) -> Result<(Profile, Program), String> {
    let profile = profile(name)?;
    let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
    let program = parse_msccl_xml_until(text, profile, MSCCL_OWN_BYTES_MAX, &|| false);
    Ok((profile, program.map_err(|error| error.to_string())?))
}

fn lowered(profile: Profile, instances: Instances, asked: &Asked<'_>) -> Result<Lowered, TargetError> {
    let graph = asked.transfers()?;
    require_own_routes(asked.topology, graph, profile)?;
    let options = LowerOptions {
        in_place: asked.in_place,
        bytes_max: asked.bytes_max,
        profile,
        name: asked.name.to_owned(),
        instances,
    };
    Ok(lower(graph, &options, asked.stop)?)
}

/// What an error of lowering means.
impl From<LowerError> for TargetError {
    fn from(error: LowerError) -> Self {
        let reason = match &error {
            LowerError::Unsupported { .. } | LowerError::Root { .. } | LowerError::Forwarder { .. } => {
                TargetReason::Unsupported
            }
            LowerError::Shares { .. } => TargetReason::Shares,
            &LowerError::OverLimit { profile, what, limit, need, rank, certainty, .. } => {
                TargetReason::OverLimit(Box::new(Limit {
                    profile: profile.name(),
                    whose: format!("the {profile} profile"),
                    what,
                    limit,
                    need,
                    rank,
                    certainty: Some(certainty),
                    with_fewer: WithFewer::Less,
                }))
            }
            LowerError::BytesMax { .. } => TargetReason::Sizes,
            LowerError::BytesMin { .. } => TargetReason::NoRoom,
            LowerError::Stopped => TargetReason::Stopped,
            LowerError::Name { .. }
            | LowerError::TooFewRanks { .. }
            | LowerError::NoChunks
            | LowerError::Malformed { .. }
            | LowerError::NotHeld { .. }
            | LowerError::NotSent { .. } => TargetReason::Broken,
        };
        Self::new(reason, error)
    }
}

/// A file beyond what canopy reads of any.
const fn too_long(profile: Profile, bytes: usize, limit: usize) -> LowerError {
    LowerError::OverLimit {
        profile,
        what: "bytes of text",
        limit: limit as u64,
        need: bytes as u64,
        rank: None,
        certainty: Certainty::Found,
        remedy: "plan for fewer ranks, or choose a format without this limit",
    }
}

/// Proves and runs a program, and checks that it is the one that was asked for; what its user should know.
fn judged(program: &Program, profile: Profile, asked: &Asked<'_>) -> Result<Vec<TargetWarning>, TargetError> {
    let graph = asked.transfers()?;
    let wanted = (Some(graph.collective.kind()), graph.rank_count, asked.in_place);
    if (program.purpose.collective(), program.rank_count, program.in_place) != wanted {
        return Err(TargetError::rejected("the MSCCL file is for another collective"));
    }
    let proof = prove_until(program, profile, asked.stop).map_err(|_| TargetError::from(LowerError::Stopped))?;
    proof.require_right().map_err(TargetError::unproved)?;
    for options in EmulateOptions::various(profile, asked.seed) {
        emulate_until(program, &options, asked.stop)?;
    }
    Ok(advice(profile.name(), proof.warnings))
}

/// What a run that failed means.
impl From<EmulationError> for TargetError {
    fn from(error: EmulationError) -> Self {
        match error {
            EmulationError::Stopped => Self::new(TargetReason::Stopped, error),
            EmulationError::TooLarge { .. } => Self::new(TargetReason::TooLargeToRun, error),
            error => Self::rejected(error.to_string()),
        }
    }
}

/// What the user of a file should know by its proof.
pub(super) fn advice(profile: &str, warnings: Vec<crate::msccl::Problem>) -> Vec<TargetWarning> {
    let advice = |warning| TargetWarning { code: "RUNTIME_ADVICE", text: format!("{profile}: {warning}") };
    warnings.into_iter().map(advice).collect()
}

/// Compares a program with what is expected.
fn compare(program: &Program, expected: &Expected<'_>, verdict: &mut Verdict) {
    let is_right = verdict.problems.is_empty();
    // The rate of a wrong program has no meaning.
    if let Some(topology) = expected.topology
        && verdict.record_ranks(topology)
        && is_right
    {
        let kind = program.purpose.collective().ok_or("the file promises no result".to_owned());
        let collective =
            kind.and_then(|kind| Collective::new(kind, None, topology.rank_count()).map_err(|error| chain(&error)));
        verdict.record_load(network_load(program, topology, &|| false), collective, topology, expected);
    }
    // A file cannot name a root: in the runtime it is rank 0.
    let kind = program.purpose.collective();
    verdict.root = kind.filter(|kind| kind.has_root()).map(|_| 0);
    match kind {
        Some(kind) => verdict.record_collective(expected, kind, verdict.root),
        None => {
            let words = |kind| format!("the file is for `{}`, which promises no {kind}", program.purpose);
            verdict.record("collective", expected.kind.map(words));
        }
    }
}
