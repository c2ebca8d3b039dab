//! Sends in time as a schedule in steps.

use canopy_schedule::{Action, Pace, RouteIndex, RouteInterner, Steps};
use canopy_tacos::{Sends, Sent};
use rayon::prelude::*;

use super::unwound::Unwound;
use crate::error::SynthesisError;
use crate::parts::{Sending, StepsParts, require_room};

/// Writes phases down, one after the other: what starts at the same time is a step.
///
/// # Errors
/// More sends than there is room for. O(sends · log steps) on all threads of the caller's pool.
pub fn write(
    chunks_per_share: u64,
    pace: Pace,
    unwound: &Unwound,
    phases: impl Iterator<Item = (Action, Sends)>,
) -> Result<Steps, SynthesisError> {
    let mut interner = RouteInterner::default();
    let routes: Vec<RouteIndex> = unwound.links.iter().map(|link| interner.intern(&link.route)).collect();
    let mut steps = StepsParts::new(chunks_per_share, pace);
    let mut next_step = 0;
    for (action, phase) in phases {
        require_room((steps.len() + phase.sends.len()) as u64)?;
        let together = phase.sends.chunk_by(|a, b| a.start == b.start);
        let starts: Vec<u64> = together.filter_map(<[Sent]>::first).map(|sent| sent.start).collect();
        let sending = |sent: &Sent| {
            let link = &unwound.links[sent.link as usize];
            let chunk = u64::from(sent.chunk);
            let before = starts.partition_point(|&start| start < sent.start);
            let step = next_step + u32::try_from(before).expect("no more steps than sends");
            let route = routes[sent.link as usize];
            Sending { step, action, from: link.from, to: link.to, chunks: chunk..chunk + 1, route }
        };
        steps.extend(phase.sends.par_iter().map(sending));
        next_step += u32::try_from(starts.len()).expect("no more steps than sends");
    }
    Ok(steps.finish(interner.finish()))
}
