//! The files of a plan, and the conditions of their use.

use std::num::NonZeroU32;

use canopy_plan::{Instances, Layered, PlanFile, Target, TargetError, TargetFile, TargetReason};
use canopy_schedule::{Schedule, Shape};
use canopy_synth::{LayeredFlow, LayersError, Stop, layered_flow};
use canopy_topology::Topology;

use crate::key::PlanKey;
use crate::planned::{File, Files, Warning};
use crate::request::Request;

impl Files {
    pub(crate) const fn new(size_bytes_max: u64) -> Self {
        Self { files: Vec::new(), warnings: Vec::new(), size_bytes_min: 0, size_bytes_max, alignment_elements: 1 }
    }

    /// Adds a file, with its own limits on messages.
    pub(crate) fn add(&mut self, target: Target, file: TargetFile) {
        let TargetFile { content, instances, layers, bytes_min, bytes_max, alignment_elements, warnings } = file;
        self.warnings.extend(warnings.into_iter().map(|warning| Warning::new(warning.code, warning.text)));
        self.size_bytes_min = self.size_bytes_min.max(bytes_min);
        if let Some(max) = bytes_max.filter(|&max| max < self.size_bytes_max) {
            self.size_bytes_max = max;
            let text = format!("{target}: the file serves messages of at most {max} bytes");
            self.warnings.push(Warning::new("RANGES_TRIMMED", text));
        }
        self.alignment_elements = lcm(self.alignment_elements, alignment_elements);
        let output =
            Target { instances: NonZeroU32::new(instances).map_or(target.instances, Instances::Exactly), ..target };
        self.files.push(File { output, content, instances, layers });
    }
}

/// The label in files.
pub(crate) fn name(request: &Request, plan: &PlanFile, key: &PlanKey) -> String {
    format!("canopy-{}-{}-{:.12}", request.kind, plan.topology.rank_count(), key.to_string())
}

/// The seed of the data and orders of emulator runs.
pub(crate) fn seed(key: &PlanKey) -> u64 {
    key.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The routes of a plan, or others if these need more layers than allowed, with a layer for each.
///
/// # Errors
/// The routes are not valid, or every choice needs more layers than allowed.
pub fn layered(
    topology: &Topology,
    schedule: &Schedule,
    most: Option<NonZeroU32>,
    stop: &dyn Stop,
) -> Result<Layered, TargetError> {
    let layered = layered_flow(topology, schedule, most, stop).map_err(|error| {
        let reason = match error {
            LayersError::NotAFlow { .. } => TargetReason::Unsupported,
            LayersError::TooMany { needed, limit } => TargetReason::Layers { needed, limit },
            LayersError::TooManyHops => TargetReason::NoRoom,
            LayersError::Stopped => TargetReason::Stopped,
            LayersError::Malformed => TargetReason::Broken,
        };
        TargetError::new(reason, error)
    })?;
    let LayeredFlow { flow, layers, layer_count, chunks_moved } = layered;
    let schedule = Schedule {
        collective: schedule.collective,
        algorithm: schedule.algorithm.clone(),
        shares: schedule.shares.clone(),
        shape: Shape::Flow(flow),
    };
    Ok(Layered { schedule, layers, layer_count, chunks_moved })
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
