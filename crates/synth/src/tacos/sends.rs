//! Sends in time as a schedule in steps.

use canopy_schedule::{Action, Carrier, Pace, RouteIndex, RouteInterner, RouteTable, Send, Steps};
use canopy_tacos::Sends;

use super::unwound::Unwound;
use crate::error::SynthesisError;
use crate::parts::require_room;

/// Writes phases down, one after the other: what starts at the same time is a step.
///
/// # Errors
/// More sends than there is room for. O(sends).
pub(super) fn write(
    (chunks_per_share, pace): (u64, Pace),
    unwound: &Unwound,
    phases: impl Iterator<Item = (Action, Sends)>,
) -> Result<Steps, SynthesisError> {
    let mut interner = RouteInterner::default();
    let routes: Vec<RouteIndex> = unwound.links.iter().map(|link| interner.intern(&link.route)).collect();
    let mut steps =
        Steps { chunks_per_share, pace, routes: RouteTable::default(), carriers: Vec::new(), sends: Vec::new() };
    let mut next_step = 0;
    for (action, phase) in phases {
        require_room((steps.sends.len() + phase.sends.len()) as u64)?;
        steps.sends.reserve(phase.sends.len());
        steps.carriers.reserve(phase.sends.len());
        for together in phase.sends.chunk_by(|a, b| a.start == b.start) {
            for sent in together {
                let link = &unwound.links[sent.link as usize];
                let carrier = u32::try_from(steps.carriers.len()).expect("there is room for fewer than 2³² sends");
                steps.carriers.push(Carrier { route: routes[sent.link as usize], chunk_count: 1 });
                let chunk = u64::from(sent.chunk);
                steps.sends.push(Send {
                    step: next_step,
                    action,
                    from: link.from,
                    to: link.to,
                    chunks: chunk..chunk + 1,
                    carriers: carrier..carrier + 1,
                });
            }
            next_step += 1;
        }
    }
    steps.routes = interner.finish();
    Ok(steps)
}
