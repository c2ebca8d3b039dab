//! Time as works see it that find a place around what is taken: forwards from a moment, or backwards from one.

use super::Tenant;
use crate::calendar::Calendar;

/// From where on, and in which direction, time is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// Ticks after a moment.
    Forwards { begin: u64 },
    /// Ticks before an end, on links turned around, and not before a moment.
    Backwards { begin: u64, end: u64 },
}

impl View {
    /// When a send really starts.
    pub(super) const fn start(self, latency: u64, viewed: u64) -> Option<u64> {
        match self {
            Self::Forwards { begin } => begin.checked_add(viewed),
            Self::Backwards { begin, end } => match end.checked_sub(viewed.saturating_add(latency)) {
                Some(start) if start >= begin => Some(start),
                _ => None,
            },
        }
    }

    /// The first time, as seen, at which a link has all that it takes, not before `earliest`; none where that is outside.
    pub(super) fn first_free(self, tenant: &Tenant, calendar: &Calendar, link: u32, earliest: u64) -> Option<u64> {
        let claims = &tenant.claims[link as usize];
        let latency = tenant.network.link(link).latency;
        let mut start = self.start(latency, earliest)?;
        loop {
            let before = start;
            for claim in claims {
                start = match self {
                    Self::Forwards { .. } => calendar.first_free(claim.thing, start, claim.ticks),
                    Self::Backwards { .. } => calendar.last_free(claim.thing, start, claim.ticks)?,
                };
            }
            if start == before {
                break;
            }
        }
        match self {
            Self::Forwards { begin } => start.checked_sub(begin),
            Self::Backwards { begin, .. } if start < begin => None,
            Self::Backwards { end, .. } => end.checked_sub(start.checked_add(latency)?),
        }
    }

    /// Takes what a link needs for a send.
    pub(super) fn take(self, tenant: &Tenant, calendar: &mut Calendar, link: u32, viewed: u64) {
        if let Some(start) = self.start(tenant.network.link(link).latency, viewed) {
            take_at(tenant, calendar, link, start);
        }
    }
}

/// Takes what a link needs for a send that really starts at a time.
pub(super) fn take_at(tenant: &Tenant, calendar: &mut Calendar, link: u32, start: u64) {
    tenant.claims[link as usize].iter().for_each(|claim| calendar.take(claim.thing, start, claim.ticks));
}
