//! Reads the topology of a request.

use canopy_import::{FileKind, ImportError, Imported, Report, read_until};
use canopy_synth::Stop;
use canopy_topology::{ReadError, Topology, TopologyDraft, TopologyLimits, generate};

use crate::error::PlanError;
use crate::planned::Warning;
use crate::request::TopologyInput;

/// The topology and what its reader wants to be known.
///
/// # Errors
/// What is wrong with it; [`PlanError::Stopped`] soon after `stop` is requested.
pub fn read_topology(
    input: &TopologyInput,
    limits: &TopologyLimits,
    stop: &dyn Stop,
) -> Result<(Topology, Vec<Warning>), PlanError> {
    let (topology, _, report) = read_reported(input, limits, stop)?;
    Ok((topology, assumptions(&report)))
}

/// What of a report people are warned of.
pub fn assumptions(report: &Report) -> Vec<Warning> {
    report.warnings().map(|text| Warning::new("TOPOLOGY_ASSUMED", text.clone())).collect()
}

/// The topology, what a document was read as, and what was understood, assumed and left out of it.
///
/// # Errors
/// As [`read_topology`].
pub fn read_reported(
    input: &TopologyInput,
    limits: &TopologyLimits,
    stop: &dyn Stop,
) -> Result<(Topology, Option<FileKind>, Report), PlanError> {
    match input {
        TopologyInput::Expression(text) => {
            let topology = generate(text, limits).map_err(PlanError::Expression)?;
            Ok((topology, None, Report::default()))
        }
        TopologyInput::Document { kind, content } => {
            let imported = read_until(content, *kind, limits, &|| stop.is_requested());
            let Imported { topology, kind, report } = imported.map_err(|error| match error {
                ImportError::Document(ReadError::Stopped) => PlanError::Stopped,
                error => PlanError::Document(error),
            })?;
            Ok((topology, Some(kind), report))
        }
        TopologyInput::Inline(draft) => Ok((built(draft, limits, stop)?, None, Report::default())),
    }
}

/// Builds a topology from nodes and links; [`PlanError::Stopped`] soon after `stop` is requested.
fn built(draft: &TopologyDraft, limits: &TopologyLimits, stop: &dyn Stop) -> Result<Topology, PlanError> {
    // Before anything is copied for it.
    limits.check(draft.nodes.len(), draft.links.len()).map_err(PlanError::Inline)?;
    let built = draft.clone().build_until(limits, &|| stop.is_requested()).map_err(PlanError::Inline)?;
    built.ok_or(PlanError::Stopped)
}
