//! Sends in time as a schedule in steps.

use canopy_schedule::{Action, Carrier, Pace, RouteIndex, RouteInterner, Send, Steps};
use canopy_tacos::{Sends, Sent};
use rayon::prelude::*;

use super::unwound::Unwound;
use crate::error::SynthesisError;
use crate::parts::require_room;

/// Writes phases down, one after the other: what starts at the same time is a step.
///
/// # Errors
/// More sends than there is room for. O(sends · log steps) on all threads of the caller's pool: room for them takes as long as all else.
pub(super) fn write(
    (chunks_per_share, pace): (u64, Pace),
    unwound: &Unwound,
    phases: impl Iterator<Item = (Action, Sends)>,
) -> Result<Steps, SynthesisError> {
    let mut interner = RouteInterner::default();
    let routes: Vec<RouteIndex> = unwound.links.iter().map(|link| interner.intern(&link.route)).collect();
    let (mut sends, mut carriers) = (Vec::new(), Vec::new());
    let mut next_step = 0;
    for (action, phase) in phases {
        require_room((sends.len() + phase.sends.len()) as u64)?;
        let together = phase.sends.chunk_by(|a, b| a.start == b.start);
        let starts: Vec<u64> = together.filter_map(<[Sent]>::first).map(|sent| sent.start).collect();
        let first = sends.len();
        let written = |(number, sent): (usize, &Sent)| {
            let link = &unwound.links[sent.link as usize];
            let carrier = u32::try_from(first + number).expect("there is room for fewer than 2³² sends");
            let chunk = u64::from(sent.chunk);
            let before = starts.partition_point(|&start| start < sent.start);
            Send {
                step: next_step + u32::try_from(before).expect("no more steps than sends"),
                action,
                from: link.from,
                to: link.to,
                chunks: chunk..chunk + 1,
                carriers: carrier..carrier + 1,
            }
        };
        sends.par_extend(phase.sends.par_iter().enumerate().map(written));
        let carrier = |sent: &Sent| Carrier { route: routes[sent.link as usize], chunk_count: 1 };
        carriers.par_extend(phase.sends.par_iter().map(carrier));
        next_step += u32::try_from(starts.len()).expect("no more steps than sends");
    }
    Ok(Steps { chunks_per_share, pace, routes: interner.finish(), carriers, sends })
}
