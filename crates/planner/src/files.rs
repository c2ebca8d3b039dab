//! The files of a plan: written, read back, and judged as their reader will see them.

mod execution;
mod oneccl;
mod routes;

use canopy_plan::{
    EmulateOptions, EmulationError, Instances, LowerError, LowerOptions, Lowered, MSCCL_OWN_BYTES_MAX, ParseFault,
    PlanFile, Profile, Program, emulate_until, lower, parse_msccl_xml_until, prove_until, read_plan,
    require_own_routes, write_msccl_xml, write_plan,
};
use canopy_schedule::TransferGraph;
use canopy_synth::Stop;
use canopy_topology::{Topology, TopologyLimits};

use crate::error::PlanError;
use crate::key::PlanKey;
use crate::planned::{File, Files, Warning};
use crate::request::{Output, Request};

impl Files {
    pub(crate) const fn new(size_bytes_max: u64) -> Self {
        Self { files: Vec::new(), warnings: Vec::new(), size_bytes_min: 0, size_bytes_max, alignment_elements: 1 }
    }

    /// Adds canopy's own plan file. Read back it must be the very plan: what was checked holds for it, too.
    pub(crate) fn add_json(&mut self, plan: &PlanFile, limits: &TopologyLimits) -> Result<(), PlanError> {
        let mut content = Vec::new();
        write_plan(plan, &mut content).map_err(|error| rejected(error.to_string()))?;
        // A plan may well be larger than the request it answers.
        let limits = TopologyLimits { bytes_max: usize::MAX, ..*limits };
        let read = read_plan(&content, &limits).map_err(|error| rejected(error.to_string()))?;
        if read != *plan {
            return Err(rejected("the plan file, read back, is another plan".to_owned()));
        }
        self.push(Output::Json, content, 0);
        Ok(())
    }

    /// Adds an MSCCL file. Read back it must be the very program, be proven right, and run on real bytes.
    pub(crate) fn add_msccl(
        &mut self,
        (profile, instances): (Profile, Instances),
        request: &Request,
        (topology, graph): (&Topology, &TransferGraph),
        key: &PlanKey,
        stop: &dyn Stop,
    ) -> Result<(), PlanError> {
        let output = self.files.len();
        require_own_routes(topology, graph, profile).map_err(|error| PlanError::Lower { output, error })?;
        let options = LowerOptions {
            in_place: request.in_place,
            bytes_max: request.size_bytes_max,
            profile,
            name: format!("canopy-{}-{}-{:.12}", request.kind, graph.rank_count, key.to_string()),
            instances,
        };
        let is_stopped = || stop.is_requested();
        let lowered = lower(graph, &options, &is_stopped);
        let lowered = lowered.and_then(|lowered| lowered.beginning_at(request.size_bytes_min, profile));
        let Lowered { program: lowered, instances } = lowered.map_err(|error| match error {
            LowerError::Stopped => PlanError::Stopped,
            error => PlanError::Lower { output, error },
        })?;
        let text = write_msccl_xml(&lowered, profile);
        let program = parse_msccl_xml_until(&text, profile, MSCCL_OWN_BYTES_MAX, &is_stopped).map_err(|error| {
            match error.fault {
                ParseFault::Stopped => PlanError::Stopped,
                ParseFault::TooLarge { bytes, limit } => too_large(output, profile, bytes, limit),
                _ => rejected(error.to_string()),
            }
        })?;
        if program != lowered {
            return Err(rejected("the MSCCL file, read back, is another program".to_owned()));
        }
        self.judge_msccl(&program, profile, request, graph, key, stop)?;
        self.push(Output::MscclXml(profile, Instances::Exactly(instances)), text.into_bytes(), instances.get());
        Ok(())
    }

    /// Proves and runs a program, and checks that it is the one that was asked for.
    fn judge_msccl(
        &mut self,
        program: &Program,
        profile: Profile,
        request: &Request,
        graph: &TransferGraph,
        key: &PlanKey,
        stop: &dyn Stop,
    ) -> Result<(), PlanError> {
        let asked = (Some(graph.collective.kind()), graph.rank_count, request.in_place);
        if (program.purpose.collective(), program.rank_count, program.in_place) != asked {
            return Err(rejected("the MSCCL file is for another collective".to_owned()));
        }
        let is_stopped = || stop.is_requested();
        let proof = prove_until(program, profile, &is_stopped).map_err(|_| PlanError::Stopped)?;
        if let Some(problem) = proof.problems.first() {
            return Err(rejected(format!("{}: {}: {}", problem.check, problem.place, problem.message)));
        }
        let seed = key.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        for options in EmulateOptions::various(profile, seed) {
            match emulate_until(program, &options, &is_stopped) {
                Ok(_) => {}
                Err(EmulationError::Stopped) => return Err(PlanError::Stopped),
                Err(error @ EmulationError::TooLarge { .. }) => {
                    return Err(PlanError::TooLargeToRun { output: self.files.len(), error });
                }
                Err(error) => return Err(rejected(error.to_string())),
            }
        }
        for warning in proof.warnings {
            let text = format!("{}: {}: {}", profile.name(), warning.place, warning.message);
            self.warnings.push(Warning::new("RUNTIME_ADVICE", text));
        }
        self.narrow(program, profile);
        Ok(())
    }

    /// Takes the program's own limits on messages into account.
    fn narrow(&mut self, program: &Program, profile: Profile) {
        self.size_bytes_min = self.size_bytes_min.max(program.bytes_min.unwrap_or(0));
        if let Some(max) = profile.bytes_max_of(program.bytes_max)
            && max < self.size_bytes_max
        {
            self.size_bytes_max = max;
            let text = format!("{}: the file is used for messages of at most {max} bytes", profile.name());
            self.warnings.push(Warning::new("RANGES_TRIMMED", text));
        }
        self.alignment_elements = lcm(self.alignment_elements, u64::from(program.chunk_count).max(1));
    }

    fn push(&mut self, output: Output, content: Vec<u8>, instances: u32) {
        self.files.push(File { output, content, instances, layers: 0 });
    }
}

pub(crate) fn rejected(problem: String) -> PlanError {
    PlanError::Rejected { check: "file", problem }
}

/// Least common multiple of two positive numbers. At most eight chunk counts of 32 bits meet here; one that does not
/// fit is as good as the greatest number.
pub(crate) fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).saturating_mul(b)
}

/// A file beyond what canopy reads of any.
fn too_large(output: usize, profile: Profile, bytes: usize, limit: usize) -> PlanError {
    let error = LowerError::OverLimit {
        profile,
        what: "bytes of text",
        limit: limit as u64,
        need: bytes as u64,
        rank: None,
        is_proven: false,
        remedy: "plan for fewer ranks, or choose a format without this limit",
    };
    PlanError::Lower { output, error }
}
