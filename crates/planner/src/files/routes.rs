//! The route file of a plan: its ways in layers, written, read back, and proved.

use std::num::NonZeroU32;

use canopy_plan::PlanFile;
use canopy_plan::routes::{self, LowerError, LowerOptions, ParseFault};
use canopy_schedule::{CheckError, Schedule, Shape, check_flow_until};
use canopy_synth::{LayeredFlow, LayersError, Stop, layered_flow};

use super::rejected;
use crate::error::{PlanError, chain};
use crate::key::PlanKey;
use crate::planned::{Files, Warning};
use crate::request::{Output, Request};

impl Files {
    /// Adds a file of routes. Read back it must be the very program, be proven right, and be for the plan's network.
    ///
    /// Messages need not be a multiple of its chunks, so it demands no alignment. What its ways reach, which are not the
    /// plan's where these need more layers than there may be, is judged like any other flow.
    pub(crate) fn add_routes(
        &mut self,
        layers_max: Option<NonZeroU32>,
        request: &Request,
        plan: &PlanFile,
        key: &PlanKey,
        stop: &dyn Stop,
    ) -> Result<(), PlanError> {
        let output = self.files.len();
        let is_stopped = || stop.is_requested();
        let layered = layered_flow(&plan.topology, &plan.schedule, layers_max, stop).map_err(|error| match error {
            LayersError::Stopped => PlanError::Stopped,
            error => PlanError::Layers { output, error },
        })?;
        let LayeredFlow { flow, layers, layer_count, chunks_moved } = layered;
        let schedule = Schedule {
            collective: plan.schedule.collective,
            algorithm: plan.schedule.algorithm.clone(),
            shares: plan.schedule.shares.clone(),
            shape: Shape::Flow(flow),
        };
        let verdict = check_flow_until(&plan.topology, &schedule, &is_stopped).map_err(|error| match error {
            CheckError::Stopped => PlanError::Stopped,
            error => rejected(chain(&error)),
        })?;
        if chunks_moved == 0 && verdict.algbw < plan.achieved {
            return Err(rejected(format!("its routes reach {}, the plan {}", verdict.algbw, plan.achieved)));
        }
        let options = LowerOptions {
            name: format!("canopy-{}-{}-{:.12}", request.kind, plan.topology.rank_count(), key.to_string()),
            in_place: request.in_place,
            bytes_min: request.size_bytes_min,
            bytes_max: request.size_bytes_max,
            algbw: verdict.algbw.clone(),
        };
        let refused = |error| match error {
            LowerError::Stopped => PlanError::Stopped,
            error => PlanError::LowerRoutes { output, error },
        };
        let lowered = routes::lower(&plan.topology, &schedule, &layers, &options, &is_stopped).map_err(refused)?;
        // Millions of paths, which the program has as well.
        drop((schedule, layers));
        let text = routes::write(&lowered);
        let program = routes::parse_until(&text, &is_stopped).map_err(|error| match error.fault {
            ParseFault::Stopped => PlanError::Stopped,
            ParseFault::TooLarge { bytes, limit } => {
                refused(LowerError::OverLimit { what: "bytes of text", need: bytes as u64, limit: limit as u64 })
            }
            _ => rejected(error.to_string()),
        })?;
        if program != lowered {
            return Err(rejected("the route file, read back, is another program".to_owned()));
        }
        drop(lowered);
        let proofs =
            [routes::prove_until(&program, &is_stopped), routes::prove_on(&program, &plan.topology, &is_stopped)];
        for proof in proofs {
            if let Some(problem) = proof.map_err(|_| PlanError::Stopped)?.problems.first() {
                return Err(rejected(format!("{}: {problem}", problem.check)));
            }
        }
        if chunks_moved > 0 {
            let text = format!(
                "routes: {chunks_moved} chunks take other ways than in the plan, so that {layer_count} layers do; the file \
                 reaches {} bytes/s, the plan {}",
                verdict.algbw, plan.achieved
            );
            self.warnings.push(Warning::new("ROUTES_MOVED", text));
        }
        self.size_bytes_min = self.size_bytes_min.max(program.bytes_min);
        self.push(Output::RoutesXml(layers_max), text.into_bytes(), 0);
        if let Some(file) = self.files.last_mut() {
            file.layers = layer_count;
        }
        Ok(())
    }
}
