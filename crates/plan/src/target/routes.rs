//! Route plans.

use std::collections::BTreeSet;

use canopy_schedule::{CheckError, check_flow_until};
use canopy_topology::Rank;

use super::error::chain;
use super::options::only;
use super::{
    Asked, Expected, Facts, Format, Layered, Limit, Needs, OptionError, Row, Stated, Target, TargetError, TargetFile,
    TargetOptions, TargetReason, TargetWarning, Verdict, WithFewer,
};
use crate::cut::{SliceError, cut_xml};
use crate::routes::{
    LowerError, LowerOptions, ParseFault, Program, is_plan, lower, parse, parse_until, prove, prove_on, prove_until,
    write,
};

/// The only profile.
const PROFILE: &str = "routes";

/// The row of this format.
pub(super) struct RoutesXml;

impl Row for RoutesXml {
    fn facts(&self) -> Facts {
        Facts {
            name: "routes-xml",
            noun: "a route plan",
            ending: "xml",
            profiles: vec![PROFILE],
            usual_profile: PROFILE,
        }
    }

    fn profile(&self, options: &TargetOptions<'_>) -> Result<&'static str, OptionError> {
        only(Format::RoutesXml, PROFILE, options)
    }

    fn needs(&self, target: Target) -> Needs {
        Needs::Layers(target.layers_max)
    }

    fn is_one(&self, bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes).is_ok_and(is_plan)
    }

    fn draft(&self, _target: Target, asked: Asked<'_>) -> Result<Vec<u8>, TargetError> {
        Ok(write(&lowered(asked)?.program).into_bytes())
    }

    /// Messages need not be a multiple of its chunks, so it demands no alignment. What its ways reach, which are not the
    /// plan's where these need more layers than there may be, is judged like any other flow.
    fn write(&self, _target: Target, asked: Asked<'_>) -> Result<TargetFile, TargetError> {
        let (topology, plan, stop) = (asked.topology, asked.plan, asked.stop);
        let Lowered { program: lowered, layer_count, chunks_moved } = lowered(asked)?;
        let achieved = plan.map(|plan| &plan.achieved).ok_or_else(|| TargetError::rejected("routes are of a plan"))?;
        if chunks_moved == 0 && lowered.algbw < *achieved {
            return Err(TargetError::rejected(format!(
                "its routes reach {} bytes/s, but the plan {achieved}",
                lowered.algbw
            )));
        }
        let text = write(&lowered);
        let program = parse_until(&text, stop).map_err(|error| match error.fault {
            ParseFault::Stopped => TargetError::from(LowerError::Stopped),
            ParseFault::TooLarge { bytes, limit } => TargetError::from(LowerError::OverLimit {
                what: "bytes of text",
                need: bytes as u64,
                limit: limit as u64,
            }),
            _ => TargetError::rejected(error.to_string()),
        })?;
        if program != lowered {
            return Err(TargetError::rejected("the route file differs from its program when read back"));
        }
        drop(lowered);
        for proof in [prove_until(&program, stop), prove_on(&program, topology, stop)] {
            let proof = proof.map_err(|_| TargetError::from(LowerError::Stopped))?;
            proof.require_right().map_err(TargetError::rejected)?;
        }
        let moved = (chunks_moved > 0).then(|| TargetWarning {
            code: "ROUTES_MOVED",
            text: format!(
                "routes: {chunks_moved} chunks take other routes than in the plan to fit {layer_count} layers, and the \
                 file reaches {} bytes/s instead of {achieved}",
                program.algbw
            ),
        });
        Ok(TargetFile {
            layers: layer_count,
            bytes_min: program.bytes_min,
            warnings: moved.into_iter().collect(),
            ..TargetFile::new(text)
        })
    }

    fn slice(&self, content: &[u8], ranks: &BTreeSet<u32>) -> Option<Result<Vec<u8>, SliceError>> {
        Some(cut_xml(content, "rank", ranks))
    }

    fn judge(&self, content: &[u8], stated: &Stated<'_>) -> Result<(), String> {
        let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
        let program = parse(text).map_err(|error| error.to_string())?;
        if stated.instances > 0 || stated.profile != PROFILE || stated.layers != program.layer_count {
            return Err("its route file has instances, other layers, or a profile other than routes".to_owned());
        }
        if !stated.is_of(program.collective, program.rank_count)? {
            return Err("its route file is for another collective, root or rank count".to_owned());
        }
        prove(&program).require_right().map_err(|problem| format!("its route file: {problem}"))
    }

    fn verify(&self, content: &[u8], _given: Option<&'static str>, expected: &Expected<'_>) -> Option<Verdict> {
        let mut verdict = Verdict::new(PROFILE);
        let Some(program) = verdict.read(content, parse) else { return Some(verdict) };
        let (kind, root) = (program.collective.kind(), program.collective.root().map(Rank::number));
        verdict.collective = Some(kind.name());
        verdict.root = root;
        verdict.ranks = Some(program.rank_count);
        verdict.record_proof(prove(&program));
        let is_right = verdict.problems.is_empty();
        if is_right {
            // Proven to be what its ports and routes come to.
            verdict.algbw = Some(program.algbw.clone());
            verdict.routing = Some(format!(
                "{} layers, at most {} routes from one rank to another",
                program.layer_count, program.routes_max
            ));
        }
        if let Some(topology) = expected.topology {
            let proof = prove_on(&program, topology, &|| false).expect("nothing asks it to stop");
            let is_for_it = proof.is_ok();
            verdict.record_proof(proof);
            if is_right && is_for_it {
                let collective = program.equal_shares().ok_or_else(|| "shares are of different sizes".to_owned());
                verdict.record_rate(program.algbw.clone(), collective, expected);
            }
        }
        verdict.record_collective(expected, kind, root);
        Some(verdict)
    }
}

/// A program, and how it came to its layers.
struct Lowered {
    program: Program,
    layer_count: u32,
    chunks_moved: u64,
}

fn lowered(asked: Asked<'_>) -> Result<Lowered, TargetError> {
    let Asked { topology, layered, name, in_place, bytes_min, bytes_max, stop, .. } = asked;
    let layered = layered.ok_or_else(|| TargetError::rejected("routes need layers"))?;
    let Layered { schedule, layers, layer_count, chunks_moved } = layered;
    let verdict = check_flow_until(topology, &schedule, stop).map_err(|error| match error {
        CheckError::Stopped => TargetError::from(LowerError::Stopped),
        error => TargetError::rejected(chain(&error)),
    })?;
    let options = LowerOptions { name: name.to_owned(), in_place, bytes_min, bytes_max, algbw: verdict.algbw };
    let program = lower(topology, &schedule, &layers, &options, stop)?;
    // The millions of paths are dropped here: the program has them as well.
    Ok(Lowered { program, layer_count, chunks_moved })
}

/// What an error of lowering means.
impl From<LowerError> for TargetError {
    fn from(error: LowerError) -> Self {
        let reason = match &error {
            LowerError::InPlace | LowerError::Blocks => TargetReason::Unsupported,
            &LowerError::OverLimit { what, need, limit } => TargetReason::OverLimit(Box::new(Limit {
                profile: PROFILE,
                whose: "a route plan".to_owned(),
                what,
                limit,
                need,
                rank: None,
                certainty: None,
                with_fewer: WithFewer::Same,
            })),
            LowerError::Sizes { .. } => TargetReason::Sizes,
            LowerError::Stopped => TargetReason::Stopped,
            LowerError::Name { .. }
            | LowerError::Shares(_)
            | LowerError::NotAFlow { .. }
            | LowerError::Malformed { .. } => TargetReason::Broken,
        };
        Self::new(reason, error)
    }
}
