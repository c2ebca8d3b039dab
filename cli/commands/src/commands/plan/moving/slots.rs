//! `--mscclpp`: the plan of one matrix as an execution plan of MSCCL++.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use canopy_client::ErrorClass;
use canopy_moving::{Part, Route, in_units};
use canopy_plan::{
    ExecutorProfile, SlotPlan, SlotPlanError, SlotPlanOptions, SlotRoute, SlotRouteError, Slots, SlotsError, plan_slots,
};
use canopy_proto::v1::{MovingPlan, MovingTiers};

use super::lines::Lines;
use crate::args;
use crate::commands::plan::loader;
use crate::destination;
use crate::exit::{Failure, words};
use crate::messages::warn;
use crate::running::on_a_thread;
use crate::whole_file::write_file;

/// Seed of the data that a plan is run with before it is written.
const SEED: u64 = 1;

/// What is wanted of a file for MSCCL++.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "MSCCL++")]
pub(super) struct SlotArgs {
    /// File for an execution plan of MSCCL++ (JSON) that sends the one matrix; each rank has a slot of one size for
    /// every other, as large as the greatest entry needs
    #[arg(long, value_name = "FILE", value_parser = destination::file_only, requires = "unit")]
    mscclpp: Option<PathBuf>,
    /// Bytes that take one route in that file, such as a token's: a multiple of 16. Entries are rounded up to whole
    /// units
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes, requires = "mscclpp")]
    unit: Option<u64>,
    /// Version of MSCCL++: mscclpp-0.8, mscclpp-0.9 or mscclpp-0.10 [default: mscclpp-0.10]
    #[arg(long, value_name = "P", requires = "mscclpp")]
    profile: Option<ExecutorProfile>,
}

/// A file that is to be written.
pub(super) struct SlotFile {
    path: PathBuf,
    /// Where the module goes that registers the plan, where the runtime needs one.
    module: Option<PathBuf>,
    profile: ExecutorProfile,
    slots: Slots,
    unit_bytes: NonZeroU64,
    /// By the last description of the network.
    box_size: u32,
}

/// A file that was written.
pub(super) struct Written {
    pub(super) path: String,
    pub(super) profile: &'static str,
    pub(super) file_bytes: usize,
    pub(super) unit_bytes: u64,
    pub(super) slot_units: u64,
    pub(super) buffer_bytes: u64,
}

impl SlotArgs {
    /// Whether a file is wanted, whose routes relay in the boxes of their ends alone.
    pub(super) const fn is_wanted(&self) -> bool {
        self.mscclpp.is_some()
    }

    /// The file to write, if one is wanted; the matrix is the only one of these lines.
    ///
    /// # Errors
    /// There are several matrices or none; the matrix has no slots of such units; another file is in the way.
    pub(super) fn file(&self, lines: &mut Lines) -> Result<Option<SlotFile>, Failure> {
        let (Some(path), Some(unit_bytes)) = (self.mscclpp.as_ref(), self.unit.and_then(NonZeroU64::new)) else {
            return Ok(None);
        };
        let profile = self.profile.unwrap_or(ExecutorProfile::NEWEST);
        let module = profile.is_registered().then(|| loader::path(path)).transpose()?;
        let bytes = lines.only_one("--mscclpp writes the plan of one matrix")?;
        let ranks = u32::try_from(bytes.len().isqrt()).unwrap_or(u32::MAX);
        let slots = Slots::new(ranks, bytes, unit_bytes.get()).map_err(|error| refused_slots(&error))?;
        Ok(Some(SlotFile { path: path.clone(), module, profile, slots, unit_bytes, box_size: 1 }))
    }
}

/// A matrix that has no slots.
fn refused_slots(error: &SlotsError) -> Failure {
    match error {
        SlotsError::Unit { .. } | SlotsError::TooManyUnits { .. } => Failure::input(format!("--unit: {error}")),
        SlotsError::Ranks { .. } | SlotsError::EntryCount { .. } | SlotsError::NothingMoves => {
            Failure::input(format!("--mscclpp: {error}"))
        }
    }
}

impl SlotFile {
    /// Takes note of the network.
    ///
    /// # Errors
    /// Ranks are lost.
    pub(super) fn network(&mut self, tiers: &MovingTiers) -> Result<(), Failure> {
        if let Some(rank) = tiers.lost_ranks.first() {
            let message = format!("MSCCL++ runs a plan on all ranks, but faults have taken rank {rank}");
            return Err(Failure::new(ErrorClass::Infeasible, message)
                .help("plan on a network of the ranks that are left, or add `--faults ignore`"));
        }
        self.box_size = tiers.box_size.max(1);
        Ok(())
    }

    /// Writes the file of a plan, and the module beside it.
    ///
    /// # Errors
    /// The runtime has no room for the plan; the file cannot be written.
    pub(super) async fn write(&self, plan: &MovingPlan) -> Result<Written, Failure> {
        let Self { profile, box_size, .. } = *self;
        let (slot_units, unit_bytes) = (self.slots.slot_units(), self.unit_bytes.get());
        let name = format!("canopy-all-to-all-v-{}-{slot_units}x{unit_bytes}-{}", self.slots.ranks(), plan.number);
        let options = SlotPlanOptions { profile, name, box_size, seed: SEED };
        let (slots, routes) = (self.slots.clone(), routes(plan, box_size, self.unit_bytes));
        let planned =
            on_a_thread(move || plan_slots(&slots, &routes, &options, &|| false).map_err(|error| refused(&error)));
        let SlotPlan { text, buffer_bytes, warnings, .. } = planned.await?;
        warnings.iter().for_each(warn);
        write_file(&self.path, text.as_bytes())?;
        if let Some(module) = &self.module {
            loader::write(&self.path, module, loader::of_box(box_size))?;
        }
        Ok(Written {
            path: shown(&self.path),
            profile: profile.name(),
            file_bytes: text.len(),
            unit_bytes,
            slot_units,
            buffer_bytes,
        })
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The routes of a plan, in units.
fn routes(plan: &MovingPlan, box_size: u32, unit_bytes: NonZeroU64) -> Vec<SlotRoute> {
    let ends = plan.from.iter().zip(&plan.to).zip(plan.leaves.iter().zip(&plan.enters));
    let part = |(((&from, &to), (&leaves, &enters)), &bytes)| {
        let is_inside = from / box_size == to / box_size;
        let route = if is_inside { Route::Inside } else { Route::Across { leaves, enters } };
        Part { from, to, route, bytes }
    };
    let parts: Vec<Part> = ends.zip(&plan.bytes).map(part).collect();
    let units = in_units(&parts, unit_bytes).into_iter();
    units.map(|part| SlotRoute { ranks: part.ranks, first: part.first, count: part.count }).collect()
}

/// Why there is no file.
fn refused(error: &SlotPlanError) -> Failure {
    let class = match error {
        SlotPlanError::Lower(_)
        | SlotPlanError::BufferBytes { .. }
        | SlotPlanError::Cells { .. }
        | SlotPlanError::Routes(SlotRouteError::TooMany { .. }) => ErrorClass::Infeasible,
        SlotPlanError::Routes(_)
        | SlotPlanError::ReadBack(_)
        | SlotPlanError::Differs
        | SlotPlanError::Unproved { .. }
        | SlotPlanError::Emulation(_)
        | SlotPlanError::Stopped(_) => ErrorClass::Fault,
    };
    Failure::new(class, format!("--mscclpp: {}", words(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_routes_of_whole_units() {
        let plan = MovingPlan {
            from: vec![0, 0, 0],
            to: vec![1, 3, 3],
            leaves: vec![0, 0, 1],
            enters: vec![1, 2, 3],
            bytes: vec![17, 40, 30],
            ..MovingPlan::default()
        };
        let found = routes(&plan, 2, NonZeroU64::new(16).unwrap());
        let found: Vec<_> = found.into_iter().map(|route| (route.ranks, route.first, route.count)).collect();
        assert_eq!(found, [(vec![0, 1], 0, 2), (vec![0, 2, 3], 0, 3), (vec![0, 1, 3], 3, 2)]);
    }
}
