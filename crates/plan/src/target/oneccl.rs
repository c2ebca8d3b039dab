//! oneCCL plans.

use std::collections::BTreeSet;

use canopy_topology::Rank;

use super::options::only;
use super::{
    Asked, Expected, Facts, Format, Limit, OptionError, Row, Stated, Target, TargetError, TargetFile, TargetOptions,
    TargetReason, Verdict, WithFewer,
};
use crate::cut::{SliceError, cut_xml};
use crate::oneccl::{
    EmulateOptions, EmulationError, LowerError, LowerOptions, OWN_BYTES_MAX, ParseError, ParseFault, Program, emulate,
    emulate_until, is_plan, lower, network_load, parse_until, prove, prove_routes, prove_until, require_own_routes,
    state_rank_map, write,
};

/// The only runtime that reads them.
const PROFILE: &str = "oneccl";

/// Seeds of the runs of a file that comes from elsewhere; each stands for several that differ in lengths, types, operators
/// and when sends are complete.
const SEEDS: [u64; 2] = [1, 1000];

/// The row of this format.
pub(super) struct OnecclXml;

impl Row for OnecclXml {
    fn facts(&self) -> Facts {
        Facts {
            name: "oneccl-xml",
            noun: "a oneCCL plan",
            ending: "xml",
            profiles: vec![PROFILE],
            usual_profile: PROFILE,
        }
    }

    fn profile(&self, options: &TargetOptions<'_>) -> Result<&'static str, OptionError> {
        only(Format::OnecclXml, PROFILE, options)
    }

    /// Instructions take about as much as steps of an MSCCL file.
    fn operations(&self, _target: Target, hops: u64, _ranks: u64) -> u64 {
        hops
    }

    fn states_devices(&self) -> bool {
        true
    }

    fn is_one(&self, bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes).is_ok_and(is_plan)
    }

    fn draft(&self, _target: Target, asked: Asked<'_>) -> Result<Vec<u8>, TargetError> {
        Ok(write(&lowered(&asked)?).into_bytes())
    }

    /// Messages need not be a multiple of its chunks, so it demands no alignment.
    fn write(&self, _target: Target, asked: Asked<'_>) -> Result<TargetFile, TargetError> {
        let mut lowered = lowered(&asked)?;
        // At most the greatest size: the request was refused otherwise.
        lowered.bytes_min = asked.bytes_min;
        let text = write(&lowered);
        let over = |what, need, limit| TargetError::from(LowerError::OverLimit { what, need, limit });
        let program = parse_until(&text, OWN_BYTES_MAX, asked.stop).map_err(|error| match error.fault {
            ParseFault::Stopped => TargetError::from(LowerError::Stopped),
            ParseFault::TooLarge { bytes, limit } => over("bytes of text", bytes as u64, limit as u64),
            _ => TargetError::rejected(error.to_string()),
        })?;
        if program != lowered {
            return Err(TargetError::rejected("the oneCCL file differs from its program when read back"));
        }
        let graph = asked.transfers()?;
        if (program.collective, program.rank_count, program.in_place)
            != (graph.collective, graph.rank_count, asked.in_place)
        {
            return Err(TargetError::rejected("the oneCCL file is for another collective"));
        }
        let proof = prove_until(&program, asked.stop).map_err(|_| TargetError::from(LowerError::Stopped))?;
        proof.require_right().map_err(TargetError::unproved)?;
        for options in EmulateOptions::various(&program, asked.seed) {
            emulate_until(&program, &options, asked.stop).map_err(|error| match error {
                EmulationError::Stopped => TargetError::from(LowerError::Stopped),
                EmulationError::TooLarge { elements, limit } => {
                    over("elements in a run before it is handed out", elements, limit)
                }
                error => TargetError::rejected(error.to_string()),
            })?;
        }
        Ok(TargetFile { bytes_min: program.bytes_min, ..TargetFile::new(text) })
    }

    fn slice(&self, content: &[u8], ranks: &BTreeSet<u32>) -> Option<Result<Vec<u8>, SliceError>> {
        Some(cut_xml(content, "rank", ranks))
    }

    fn judge(&self, content: &[u8], stated: &Stated<'_>) -> Result<(), String> {
        if stated.instances > 0 || stated.profile != PROFILE {
            return Err("its oneCCL file has instances, or a profile other than oneccl".to_owned());
        }
        let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
        let program = read(text).map_err(|error| error.to_string())?;
        if !stated.is_of(program.collective, program.rank_count)? {
            return Err("its oneCCL file is for another collective, root or rank count".to_owned());
        }
        if program.rank_map().is_some_and(|devices| Some(devices) != stated.rank_map) {
            return Err("its oneCCL file states other devices than its rank map".to_owned());
        }
        prove(&program).require_right().map_err(|problem| format!("its oneCCL file: {problem}"))
    }

    fn verify(&self, content: &[u8], _given: Option<&'static str>, expected: &Expected<'_>) -> Option<Verdict> {
        let mut verdict = Verdict::new(PROFILE);
        let Some(program) = verdict.read(content, read) else { return Some(verdict) };
        let (kind, root) = (program.collective.kind(), program.collective.root().map(Rank::number));
        verdict.collective = Some(kind.name());
        verdict.root = root;
        verdict.ranks = Some(program.rank_count);
        verdict.record_proof(prove(&program));
        let runs = SEEDS.iter().flat_map(|&seed| EmulateOptions::various(&program, seed));
        let runs = runs.map(|options| (options.seed, emulate(&program, &options).map(drop)));
        verdict.record_runs(|error| matches!(error, EmulationError::TooLarge { .. }), runs);
        let is_right = verdict.problems.is_empty();
        if let Some(topology) = expected.topology
            && verdict.record_ranks(topology)
            && is_right
        {
            let routes = prove_routes(&program, topology, &|| false).expect("nothing asks it to stop");
            verdict.record_proof(routes);
            // Chosen routes may well be faster or slower than shortest ones.
            if program.routes.is_empty() {
                let load = network_load(&program, topology, &|| false);
                verdict.record_load(load, Ok(program.collective), topology, expected);
            }
        }
        verdict.record_collective(expected, kind, root);
        Some(verdict)
    }
}

fn read(text: &str) -> Result<Program, ParseError> {
    parse_until(text, OWN_BYTES_MAX, &|| false)
}

fn lowered(asked: &Asked<'_>) -> Result<Program, TargetError> {
    let graph = asked.transfers()?;
    require_own_routes(asked.topology, graph)?;
    let options = LowerOptions {
        name: asked.name.to_owned(),
        in_place: asked.in_place,
        bytes_max: Some(asked.bytes_max),
        instances: 1,
    };
    let mut program = lower(graph, &options, asked.stop)?;
    if let Some(slots) = asked.rank_map {
        state_rank_map(&mut program, slots)?;
    }
    Ok(program)
}

/// What an error of lowering means.
impl From<LowerError> for TargetError {
    fn from(error: LowerError) -> Self {
        let reason = match &error {
            LowerError::Shares => TargetReason::Shares,
            LowerError::Ranks { .. }
            | LowerError::Forwarder { .. }
            | LowerError::Machine { .. }
            | LowerError::RankMap { .. } => TargetReason::Unsupported,
            &LowerError::OverLimit { what, need, limit } => TargetReason::OverLimit(Box::new(Limit {
                profile: PROFILE,
                whose: "a oneCCL plan".to_owned(),
                what,
                limit,
                need,
                rank: None,
                certainty: None,
                with_fewer: WithFewer::Less,
            })),
            LowerError::BytesMax { .. } => TargetReason::Sizes,
            LowerError::Stopped => TargetReason::Stopped,
            LowerError::Name { .. }
            | LowerError::Instances { .. }
            | LowerError::NoChunks
            | LowerError::Malformed { .. } => TargetReason::Broken,
        };
        Self::new(reason, error)
    }
}
