//! Execution plans of MSCCL++: written, read back, and judged as their reader will see them.

use canopy_plan::{
    EmulationError, ExecutionLowerError, ExecutionLowerOptions, ExecutionOptions, ExecutionPlan, ExecutorProfile,
    emulate_execution_plan, execution_alignment_bytes, forwarder_on_routes, lower_execution_plan, parse_execution_plan,
    prove_execution_plan, require_followable, write_execution_plan,
};
use canopy_schedule::TransferGraph;
use canopy_synth::Stop;
use canopy_topology::Topology;

use super::{lcm, rejected};
use crate::error::PlanError;
use crate::key::PlanKey;
use crate::planned::{Files, Warning};
use crate::request::{Output, Request, SwitchUse};

impl Files {
    /// Adds an execution plan. Read back it must be the very plan, be proven right, and run on real bytes.
    pub(crate) fn add_execution_plan(
        &mut self,
        (profile, switches): (ExecutorProfile, SwitchUse),
        request: &Request,
        (topology, graph): (&Topology, &TransferGraph),
        key: &PlanKey,
        stop: &dyn Stop,
    ) -> Result<(), PlanError> {
        let output = self.files.len();
        if let Some(id) = forwarder_on_routes(topology, graph) {
            let error = ExecutionLowerError::Forwarder { profile, id: id.to_owned() };
            return Err(PlanError::LowerExecution { output, error });
        }
        let name = format!("canopy-{}-{}-{:.12}", request.kind, graph.rank_count, key.to_string());
        let mut options = ExecutionLowerOptions::on(topology, profile, name, request.in_place, request.size_bytes_max);
        if switches == SwitchUse::None {
            options.switches.clear();
        }
        let is_stopped = || stop.is_requested();
        let lowered = lower_execution_plan(graph, &options, &is_stopped);
        let lowered = lowered.and_then(|plan| plan.beginning_at(request.size_bytes_min, profile, request.kind));
        let lowered = lowered.map_err(|error| match error {
            ExecutionLowerError::Stopped => PlanError::Stopped,
            error => PlanError::LowerExecution { output, error },
        })?;
        let text = write_execution_plan(&lowered);
        let plan = parse_execution_plan(&text).map_err(|error| rejected(error.to_string()))?;
        if plan != lowered {
            return Err(rejected("the execution plan, read back, is another plan".to_owned()));
        }
        self.judge_execution_plan(&plan, profile, graph, key, stop)?;
        self.narrow_to_execution_plan(&plan, profile);
        self.push(Output::MscclppJson(profile, switches), text.into_bytes(), 0);
        Ok(())
    }

    fn judge_execution_plan(
        &mut self,
        plan: &ExecutionPlan,
        profile: ExecutorProfile,
        graph: &TransferGraph,
        key: &PlanKey,
        stop: &dyn Stop,
    ) -> Result<(), PlanError> {
        let is_stopped = || stop.is_requested();
        let asked = Some(graph.collective);
        let proof = prove_execution_plan(plan, asked, profile, &is_stopped).map_err(|_| PlanError::Stopped)?;
        if let (Some(_), Err(error)) = (proof.problems.first(), require_followable(plan, asked)) {
            return Err(PlanError::TooLargeToRun { output: self.files.len(), error });
        }
        if let Some(problem) = proof.problems.first() {
            return Err(rejected(format!("{}: {}: {}", problem.check, problem.place, problem.message)));
        }
        let seed = key.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        for options in ExecutionOptions::various(profile, seed) {
            match emulate_execution_plan(plan, asked, &options, &is_stopped) {
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
        Ok(())
    }

    /// Takes the plan's own limits on messages into account.
    fn narrow_to_execution_plan(&mut self, plan: &ExecutionPlan, profile: ExecutorProfile) {
        self.size_bytes_min = self.size_bytes_min.max(plan.bytes_min);
        if let Some(max) = profile.bytes_max_inclusive(plan.bytes_max)
            && max < self.size_bytes_max
        {
            self.size_bytes_max = max;
            let text = format!("{}: the file is used for messages of at most {max} bytes", profile.name());
            self.warnings.push(Warning::new("RANGES_TRIMMED", text));
        }
        // Elements have at least one byte.
        self.alignment_elements = lcm(self.alignment_elements, execution_alignment_bytes(plan).max(1));
    }
}
