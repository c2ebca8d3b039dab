//! Textbook schedules for shares of different sizes.

use canopy_schedule::{CollectiveKind, Schedule, Send, Shape, Shares};

use crate::error::SteppedError;
use crate::parts::{Sending, StepsParts};

/// The same schedule for shares or blocks of other sizes: who sends which of them to whom, and when, stays; one of weight w
/// takes w times as many chunks, and one of weight 0 is not sent.
///
/// Steps in which nothing is left to send do not count. Rates change: textbook schedules do not look at how much they send.
///
/// * **In.** A schedule of this module, whose sends carry one chunk each of equal shares; weights that fit its ranks and collective.
/// * **Errors.** A collective without shares, or a schedule that is none of equal shares.
/// * **Cost.** O(sends).
pub fn with_shares(schedule: Schedule, shares: Shares) -> Result<Schedule, SteppedError> {
    let kind = schedule.collective.kind();
    let refused = || SteppedError::NotWeighed { name: schedule.algorithm.clone(), collective: kind };
    let weights = match (&shares, kind) {
        (Shares::Equal, _) => return Ok(schedule),
        (Shares::Blocks(blocks), CollectiveKind::AllToAll) => blocks.weights(),
        (Shares::Blocks(_), _) => return Err(refused()),
        (_, CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::AllToAll) => return Err(refused()),
        (Shares::Weighted(weights), _) => weights.as_slice(),
    };
    let (Shape::Steps(steps), Shares::Equal) = (&schedule.shape, &schedule.shares) else { return Err(refused()) };
    let mut ends = Vec::with_capacity(weights.len());
    let mut total = 0_u64;
    for &weight in weights {
        total = total.checked_add(weight).ok_or_else(refused)?;
        ends.push(total);
    }
    // Chunks of the part of a share or block that was one chunk.
    let parts = steps.chunks_per_share.max(1);
    let chunks_of = |chunk: u64| -> Option<std::ops::Range<u64>> {
        let unit = usize::try_from(chunk / parts).ok()?;
        let weight = *weights.get(unit)?;
        let end = ends.get(unit)?.checked_mul(parts)?;
        let first = end - (parts - chunk % parts) * weight;
        Some(first..first + weight)
    };
    let mut made = StepsParts::new(parts, steps.pace);
    // The last step with a send: as it was numbered, and as it is.
    let mut last: Option<(u32, u32)> = None;
    for send in &steps.sends {
        let route = steps.carriers.get(send.carriers.start as usize).ok_or_else(refused)?.route;
        let chunks = chunks_of(send.chunks.start).filter(|_| send.chunks.end == send.chunks.start + 1);
        let chunks = chunks.ok_or_else(refused)?;
        if chunks.is_empty() {
            continue;
        }
        let step = last.map_or(0, |(was, is)| if was == send.step { is } else { is + 1 });
        last = Some((send.step, step));
        let &Send { action, from, to, .. } = send;
        made.push(Sending { step, action, from, to, chunks, route });
    }
    let shape = Shape::Steps(made.finish(steps.routes.clone()));
    Ok(Schedule { shares, shape, ..schedule })
}
