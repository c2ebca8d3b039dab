//! A tenant's works around what others have taken.

use canopy_optimize::Stop;

use super::view::{View, take_at};
use super::{Tenant, Work, copy, delivery};
use crate::calendar::Calendar;
use crate::copies::CopyError;
use crate::sends::{Sends, Sent};

/// Most times that a sum looks for a place: by then it begins after all that is taken.
const PLACES_MAX: u32 = 1 << 12;

/// How a tenant is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placing {
    pub(super) seed: u64,
    /// A sum that ends a tenant's works is looked a place for backwards from here, if it has one.
    pub(super) sums_until: u64,
}

/// Places the works of a tenant, each begun when the one before has ended, and takes what they need.
pub(super) fn place(
    tenant: &Tenant,
    placing: Placing,
    calendar: &mut Calendar,
    stop: &dyn Stop,
) -> Result<Vec<Sends>, CopyError> {
    let mut placed = Vec::with_capacity(tenant.works.len());
    let mut begin = 0;
    for (number, work) in tenant.works.iter().enumerate() {
        let forwards = View::Forwards { begin };
        let sends = match work {
            Work::Copy(task) => {
                let sends = copy::placed(tenant, task, calendar, forwards, placing.seed, stop)?;
                real(tenant, forwards, sends.ok_or(CopyError::TooLong)?)?
            }
            Work::Deliver(demands) => {
                let sends = delivery::placed(tenant, demands, calendar, begin, placing.seed, stop)?;
                real(tenant, forwards, sends)?
            }
            Work::Sum(task) => {
                let is_last = number + 1 == tenant.works.len();
                let until = if is_last { placing.sums_until } else { 0 };
                let least = tenant.bound_of(work).ok_or(CopyError::TooLong)?;
                let mut end = until.max(begin.checked_add(least).ok_or(CopyError::TooLong)?);
                let grain = tenant.network.links().iter().map(|link| link.latency).min().unwrap_or(1);
                let mut found = None;
                for _ in 0..PLACES_MAX {
                    let backwards = View::Backwards { begin, end };
                    if let Some(sends) = copy::placed(tenant, task, calendar, backwards, placing.seed, stop)? {
                        found = Some(Sends { end, ..real(tenant, backwards, sends)? });
                        break;
                    }
                    end = end.checked_add(grain.max((end - begin) / 16)).ok_or(CopyError::TooLong)?;
                }
                found.ok_or(CopyError::TooLong)?
            }
        };
        sends.sends.iter().for_each(|sent| take_at(tenant, calendar, sent.link, sent.start));
        begin = begin.max(sends.end);
        placed.push(sends);
    }
    Ok(placed)
}

/// Sends at the times when they really start.
pub(super) fn real(tenant: &Tenant, view: View, sends: Vec<Sent>) -> Result<Sends, CopyError> {
    let (mut real, mut end) = (Vec::with_capacity(sends.len()), 0);
    for sent in sends {
        let latency = tenant.network.link(sent.link).latency;
        let start = view.start(latency, sent.start).ok_or(CopyError::TooLong)?;
        end = end.max(start.checked_add(latency).ok_or(CopyError::TooLong)?);
        real.push(Sent { start, ..sent });
    }
    real.sort_unstable();
    if let (View::Forwards { begin }, true) = (view, real.is_empty()) {
        end = begin;
    }
    Ok(Sends { sends: real, end })
}
