//! The files of a plan: written, read back, and judged as their reader will see them.

use bytes::Bytes;
use canopy_plan::{
    EmulateOptions, EmulationError, LowerOptions, PlanFile, Profile, Program, emulate, lower, parse_msccl_xml, prove,
    read_plan, write_msccl_xml, write_plan,
};
use canopy_proto::v1;
use canopy_schedule::TransferGraph;
use canopy_topology::TopologyLimits;

use crate::digest::sha256_hex;
use crate::failure::PlanFailure;
use crate::key::PlanKey;
use crate::order::{Order, Output};

/// Finished files, and what using them demands.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) artifacts: Vec<v1::Artifact>,
    pub(super) warnings: Vec<v1::Warning>,
    /// Sizes in bytes at which every file may be used, inclusive.
    pub(super) size_bytes_min: u64,
    pub(super) size_bytes_max: u64,
    /// Elements of a message must be a multiple of this.
    pub(super) alignment_elements: u64,
}

impl Files {
    pub(super) const fn new(size_bytes_max: u64) -> Self {
        Self { artifacts: Vec::new(), warnings: Vec::new(), size_bytes_min: 0, size_bytes_max, alignment_elements: 1 }
    }

    /// Adds canopy's own plan file. Read back it must be the very plan: what was checked holds for it, too.
    pub(super) fn add_json(&mut self, plan: &PlanFile, limits: &TopologyLimits) -> Result<(), PlanFailure> {
        let mut content = Vec::new();
        write_plan(plan, &mut content).map_err(|error| rejected(error.to_string()))?;
        // A plan may well be larger than the request it answers.
        let limits = TopologyLimits { bytes_max: usize::MAX, ..*limits };
        let read = read_plan(&content, &limits).map_err(|error| rejected(error.to_string()))?;
        if read != *plan {
            return Err(rejected("the plan file, read back, is another plan".to_owned()));
        }
        self.push(Output::Json, content);
        Ok(())
    }

    /// Adds an MSCCL file. Read back it must be the very program, be proven right, and run on real bytes.
    pub(super) fn add_msccl(
        &mut self,
        profile: Profile,
        order: &Order,
        graph: &TransferGraph,
        key: &PlanKey,
    ) -> Result<(), PlanFailure> {
        let options = LowerOptions {
            in_place: order.in_place,
            bytes_max: order.size_bytes_max,
            profile,
            name: format!("canopy-{}-{}-{:.12}", order.kind, graph.rank_count, key.to_string()),
        };
        let lowered =
            lower(graph, &options).map_err(|error| PlanFailure::Lower { output: self.artifacts.len(), error })?;
        let text = write_msccl_xml(&lowered);
        let program = parse_msccl_xml(&text, profile).map_err(|error| rejected(error.to_string()))?;
        if program != lowered {
            return Err(rejected("the MSCCL file, read back, is another program".to_owned()));
        }
        self.judge_msccl(&program, profile, order, graph, key)?;
        self.push(Output::MscclXml(profile), text.into_bytes());
        Ok(())
    }

    /// Proves and runs a program, and checks that it is the one that was asked for.
    fn judge_msccl(
        &mut self,
        program: &Program,
        profile: Profile,
        order: &Order,
        graph: &TransferGraph,
        key: &PlanKey,
    ) -> Result<(), PlanFailure> {
        let asked = (graph.collective.kind(), graph.rank_count, order.in_place);
        if (program.collective, program.rank_count, program.in_place) != asked {
            return Err(rejected("the MSCCL file is for another collective".to_owned()));
        }
        let proof = prove(program, profile);
        if let Some(problem) = proof.problems.first() {
            return Err(rejected(format!("{}: {}: {}", problem.check, problem.where_, problem.message)));
        }
        let seed = key.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        match emulate(program, &EmulateOptions::standard(profile, seed)) {
            Ok(_) => {}
            Err(error @ EmulationError::TooLarge { .. }) => {
                return Err(PlanFailure::TooLargeToRun { output: self.artifacts.len(), error });
            }
            Err(error) => return Err(rejected(error.to_string())),
        }
        for warning in proof.warnings {
            let text = format!("{}: {}: {}", profile.name(), warning.where_, warning.message);
            self.warnings.push(v1::Warning { code: "RUNTIME_ADVICE".to_owned(), text });
        }
        self.narrow(program, profile);
        Ok(())
    }

    /// Takes the program's own limits on messages into account.
    fn narrow(&mut self, program: &Program, profile: Profile) {
        self.size_bytes_min = self.size_bytes_min.max(program.bytes_min.unwrap_or(0));
        let stated = program.bytes_max.unwrap_or(profile.limits().bytes_max_default);
        if let Some(max) = profile.bytes_max_inclusive(stated)
            && max < self.size_bytes_max
        {
            self.size_bytes_max = max;
            let text = format!("{}: the file is used for messages of at most {max} bytes", profile.name());
            self.warnings.push(v1::Warning { code: "RANGES_TRIMMED".to_owned(), text });
        }
        self.alignment_elements = lcm(self.alignment_elements, u64::from(program.chunk_count).max(1));
    }

    fn push(&mut self, output: Output, content: Vec<u8>) {
        self.artifacts.push(v1::Artifact {
            format: output.format().into(),
            profile: output.profile_name().to_owned(),
            size_bytes: content.len() as u64,
            sha256: sha256_hex(&content),
            content: Some(Bytes::from(content)),
        });
    }
}

fn rejected(problem: String) -> PlanFailure {
    PlanFailure::Rejected { check: "file", problem }
}

/// Least common multiple of two positive numbers. At most eight chunk counts of 32 bits meet here; one that does not
/// fit is as good as the greatest number.
fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).saturating_mul(b)
}
