//! More, smaller chunks.

use std::num::NonZeroU64;

use canopy_schedule::{Carrier, Schedule, Shape};

/// A schedule would have more chunks than can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{factor} times as many chunks are more than 18446744073709551615; use a smaller factor")]
pub(crate) struct ScaleError {
    /// The factor that was asked for.
    pub(crate) factor: NonZeroU64,
}

/// The same schedule with every chunk divided into `factor` equal ones: k, multiplicities and counts grow by the factor,
/// rates and depths stay.
///
/// For schedules that are to be composed, and for runtimes that want pieces of a certain size.
///
/// * **Errors.** A number beyond 64 bits.
/// * **Cost.** O(size of the schedule).
pub(crate) fn scaled(schedule: &Schedule, factor: NonZeroU64) -> Result<Schedule, ScaleError> {
    let mut result = schedule.clone();
    let scale = |number: &mut u64| {
        *number = number.checked_mul(factor.get()).ok_or(ScaleError { factor })?;
        Ok(())
    };
    let scale_all =
        |carriers: &mut [Carrier]| carriers.iter_mut().try_for_each(|carrier| scale(&mut carrier.chunk_count));
    match &mut result.shape {
        Shape::Forest(forest) => {
            scale(&mut forest.chunks_per_share)?;
            scale_all(&mut forest.carriers)?;
            let mut trees = forest.phases.iter_mut().flat_map(|phase| &mut phase.trees);
            trees.try_for_each(|tree| scale(&mut tree.multiplicity))?;
        }
        Shape::Steps(steps) => {
            scale(&mut steps.chunks_per_share)?;
            scale_all(&mut steps.carriers)?;
            for send in &mut steps.sends {
                scale(&mut send.chunks.start)?;
                scale(&mut send.chunks.end)?;
            }
        }
        Shape::Flow(flow) => {
            scale(&mut flow.chunks_per_share)?;
            flow.paths.iter_mut().try_for_each(|path| scale(&mut path.chunk_count))?;
        }
        Shape::Orbits(orbits) => {
            scale(&mut orbits.chunks_per_share)?;
            orbits.templates.iter_mut().try_for_each(|template| scale(&mut template.weight))?;
        }
        Shape::Stages(stages) => {
            scale(&mut stages.chunks_per_share)?;
            stages.inside_first.iter_mut().try_for_each(scale)?;
            stages.exceptions.values_mut().flatten().try_for_each(|piece| scale(&mut piece.chunk_count))?;
        }
    }
    Ok(result)
}
