//! Faults and events as messages.

use canopy_faults::{Event, Loss, Severity};
use canopy_proto::v1;
use canopy_wire::{loss, loss_on_the_wire, timestamp};
use prost_types::{Duration, Timestamp};

/// A fault that came over the wire, as it is written on the command line; none: it names nothing.
pub(crate) fn text(fault: &v1::Fault) -> Option<String> {
    loss(fault).ok().map(|loss| loss.to_string())
}

/// An event on the wire.
pub(crate) fn event(event: &Event) -> v1::FaultEvent {
    let severity = match event.severity {
        Severity::Fatal => v1::Severity::Fatal,
        Severity::Degraded => v1::Severity::Degraded,
    };
    let lifetime_ms = event.expires_ms.map(|expires| expires.saturating_sub(event.observed_ms));
    v1::FaultEvent {
        source: event.source.clone(),
        event_id: event.event_id.clone(),
        fault: Some(loss_on_the_wire(&Loss { target: event.target.clone(), remaining: event.remaining })),
        severity: severity.into(),
        observed_time: Some(timestamp(event.observed_ms)),
        expires_after: lifetime_ms.map(timestamp).map(|Timestamp { seconds, nanos }| Duration { seconds, nanos }),
        cleared: event.cleared,
    }
}

#[cfg(test)]
mod tests {
    use canopy_wire::fraction_of;

    use super::*;

    #[test]
    fn what_is_gone_has_no_fraction_and_times_keep_their_milliseconds() {
        let wire = |text: &str| loss_on_the_wire(&text.parse().unwrap());
        assert_eq!(wire("link:a>b").remaining, None);
        for name in ["link:a=b*1/2", "nic:h:3>p", "gpu:g", "host:h", "switch:s", "plane:p", "feature:s:multicast"] {
            assert_eq!(text(&wire(name)).as_deref(), Some(name));
        }
        assert_eq!(wire("nic:a>b*2/4").remaining, Some(fraction_of(1, 2)));
        let Some(v1::fault::Target::Link(link)) = wire("link:b=a").target else { panic!() };
        assert_eq!((link.from.as_str(), link.to.as_str(), link.one_way), ("a", "b", false));
        let said = Event {
            source: "s".to_owned(),
            event_id: "1".to_owned(),
            target: "gpu:h:3".parse().unwrap(),
            remaining: "0/1".parse().unwrap(),
            severity: Severity::Fatal,
            observed_ms: 1_250,
            expires_ms: Some(3_500),
            cleared: false,
        };
        let wire = event(&said);
        assert_eq!(wire.observed_time, Some(Timestamp { seconds: 1, nanos: 250_000_000 }));
        assert_eq!(wire.expires_after, Some(Duration { seconds: 2, nanos: 250_000_000 }));
        let Some(v1::fault::Target::Device(device)) = wire.fault.unwrap().target else { panic!() };
        assert_eq!((device.node.as_str(), device.host.as_str(), device.index), ("", "h", 3));
    }
}
