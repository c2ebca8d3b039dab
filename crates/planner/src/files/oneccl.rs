//! The oneCCL file of a plan: written, read back, proved, and run on real bytes.

use canopy_plan::oneccl::{
    EmulateOptions, EmulationError, LowerError, LowerOptions, OWN_BYTES_MAX, ParseFault, Program, emulate_until, lower,
    parse_until, prove_until, require_own_routes, write,
};
use canopy_schedule::TransferGraph;
use canopy_synth::Stop;
use canopy_topology::Topology;

use super::rejected;
use crate::error::PlanError;
use crate::key::PlanKey;
use crate::planned::Files;
use crate::request::{Output, Request};

impl Files {
    /// Adds a oneCCL file. Read back it must be the very program, be proven right, and run on real bytes.
    ///
    /// Messages need not be a multiple of its chunks, so it demands no alignment.
    pub(crate) fn add_oneccl(
        &mut self,
        request: &Request,
        (topology, graph): (&Topology, &TransferGraph),
        key: &PlanKey,
        stop: &dyn Stop,
    ) -> Result<(), PlanError> {
        let output = self.files.len();
        let refused = |error| match error {
            LowerError::Stopped => PlanError::Stopped,
            error => PlanError::LowerOneccl { output, error },
        };
        let over = |what, need, limit| refused(LowerError::OverLimit { what, need, limit });
        require_own_routes(topology, graph).map_err(refused)?;
        let options = LowerOptions {
            name: format!("canopy-{}-{}-{:.12}", request.kind, graph.rank_count, key.to_string()),
            in_place: request.in_place,
            bytes_max: Some(request.size_bytes_max),
            instances: 1,
        };
        let is_stopped = || stop.is_requested();
        let mut lowered = lower(graph, &options, &is_stopped).map_err(refused)?;
        // At most the greatest size: the request was refused otherwise.
        lowered.bytes_min = request.size_bytes_min;
        let text = write(&lowered);
        let program = parse_until(&text, OWN_BYTES_MAX, &is_stopped).map_err(|error| match error.fault {
            ParseFault::Stopped => PlanError::Stopped,
            ParseFault::TooLarge { bytes, limit } => over("bytes of text", bytes as u64, limit as u64),
            _ => rejected(error.to_string()),
        })?;
        if program != lowered {
            return Err(rejected("the oneCCL file, read back, is another program".to_owned()));
        }
        if (program.collective, program.rank_count, program.in_place)
            != (graph.collective, graph.rank_count, request.in_place)
        {
            return Err(rejected("the oneCCL file is for another collective".to_owned()));
        }
        judge(&program, key, &is_stopped, over)?;
        self.size_bytes_min = self.size_bytes_min.max(program.bytes_min);
        self.push(Output::OnecclXml, text.into_bytes(), 0);
        Ok(())
    }
}

/// Proves and runs a program.
fn judge(
    program: &Program,
    key: &PlanKey,
    is_stopped: &(dyn Fn() -> bool + Sync),
    over: impl Fn(&'static str, u64, u64) -> PlanError,
) -> Result<(), PlanError> {
    let proof = prove_until(program, is_stopped).map_err(|_| PlanError::Stopped)?;
    if let Some(problem) = proof.problems.first() {
        return Err(rejected(format!("{}: {problem}", problem.check)));
    }
    let seed = key.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    for options in EmulateOptions::various(program, seed) {
        match emulate_until(program, &options, is_stopped) {
            Ok(_) => {}
            Err(EmulationError::Stopped) => return Err(PlanError::Stopped),
            Err(EmulationError::TooLarge { elements, limit }) => {
                return Err(over("elements in a run before it is handed out", elements, limit));
            }
            Err(error) => return Err(rejected(error.to_string())),
        }
    }
    Ok(())
}
