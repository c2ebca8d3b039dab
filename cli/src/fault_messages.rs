//! Faults and events as messages.

use canopy_faults::{Device, Event, Loss, Severity, Target};
use canopy_proto::v1;
use prost_types::{Duration, Timestamp};

/// A fault on the wire.
pub(crate) fn fault(loss: &Loss) -> v1::Fault {
    use v1::fault::Target as Wire;
    let target = match loss.target.clone() {
        Target::Link { from, to, both_ways } => Wire::Link(v1::LinkTarget { from, to, one_way: !both_ways }),
        Target::Nic { device: of, port } => {
            Wire::Nic(v1::NicTarget { device: Some(device(of)), port: port.unwrap_or_default() })
        }
        Target::Gpu { device: of } => Wire::Device(device(of)),
        Target::Host { name } => Wire::Host(name),
        Target::Node { id } => Wire::Node(id),
        Target::Switch { id } => Wire::SwitchName(id),
        Target::Feature { switch, multicast, aggregate } => {
            Wire::SwitchFeature(v1::SwitchFeature { switch_name: switch, multicast, aggregate })
        }
        Target::Plane { name } => Wire::Plane(name),
    };
    let (numerator, denominator) = (loss.remaining.numerator(), loss.remaining.denominator());
    let remaining = (!loss.remaining.is_gone()).then_some(v1::Ratio { numerator, denominator });
    v1::Fault { target: Some(target), remaining }
}

fn device(device: Device) -> v1::DeviceTarget {
    match device {
        Device::Node { id } => v1::DeviceTarget { node: id, ..v1::DeviceTarget::default() },
        Device::Slot { host, index } => v1::DeviceTarget { host, index, ..v1::DeviceTarget::default() },
    }
}

/// A fault that came over the wire, as it is written on the command line; none: it names nothing.
pub(crate) fn text(fault: &v1::Fault) -> Option<String> {
    use v1::fault::Target as Wire;
    let device = |of: &v1::DeviceTarget| match of.node.is_empty() {
        true => format!("{}:{}", of.host, of.index),
        false => of.node.clone(),
    };
    let target = match fault.target.as_ref()? {
        Wire::Link(v1::LinkTarget { from, to, one_way }) => {
            format!("link:{from}{}{to}", if *one_way { '>' } else { '=' })
        }
        Wire::Nic(v1::NicTarget { device: of, port }) => {
            let port = if port.is_empty() { String::new() } else { format!(">{port}") };
            format!("nic:{}{port}", device(of.as_ref()?))
        }
        Wire::Device(of) => format!("gpu:{}", device(of)),
        Wire::Host(name) => format!("host:{name}"),
        Wire::Node(id) => format!("node:{id}"),
        Wire::SwitchName(id) => format!("switch:{id}"),
        Wire::Plane(name) => format!("plane:{name}"),
        Wire::SwitchFeature(v1::SwitchFeature { switch_name, multicast, aggregate }) => {
            let what = match (multicast, aggregate) {
                (true, true) => "multicast+aggregate",
                (true, false) => "multicast",
                (false, _) => "aggregate",
            };
            format!("feature:{switch_name}:{what}")
        }
    };
    let remaining = fault.remaining.as_ref();
    let left = remaining.map(|left| format!("*{}/{}", left.numerator, left.denominator)).unwrap_or_default();
    Some(format!("{target}{left}"))
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
        fault: Some(fault(&Loss { target: event.target.clone(), remaining: event.remaining })),
        severity: severity.into(),
        observed_time: Some(timestamp(event.observed_ms)),
        expires_after: lifetime_ms.map(|ms| Duration { seconds: seconds(ms), nanos: nanos(ms) }),
        cleared: event.cleared,
    }
}

/// Milliseconds since 1970 on the wire.
fn timestamp(ms: u64) -> Timestamp {
    Timestamp { seconds: seconds(ms), nanos: nanos(ms) }
}

fn seconds(ms: u64) -> i64 {
    i64::try_from(ms / 1_000).unwrap_or(i64::MAX)
}

fn nanos(ms: u64) -> i32 {
    i32::try_from(ms % 1_000).map_or(0, |ms| ms * 1_000_000)
}

/// The word for a severity; none for one that nobody states.
pub(crate) const fn severity_name(severity: v1::Severity) -> Option<&'static str> {
    match severity {
        v1::Severity::Unspecified => None,
        v1::Severity::Fatal => Some("fatal"),
        v1::Severity::Degraded => Some("degraded"),
    }
}

/// The word for what became of an event.
pub(crate) const fn outcome_name(outcome: v1::ReportOutcome) -> &'static str {
    match outcome {
        v1::ReportOutcome::Unspecified => "unknown",
        v1::ReportOutcome::Applied => "applied",
        v1::ReportOutcome::Noted => "noted",
        v1::ReportOutcome::Repeated => "repeated",
        v1::ReportOutcome::Stale => "stale",
        v1::ReportOutcome::Clearing => "clearing",
        v1::ReportOutcome::Held => "held",
        v1::ReportOutcome::Refused => "refused",
    }
}

/// The word for whose element it is.
pub(crate) const fn scope_name(scope: v1::FaultScope) -> &'static str {
    match scope {
        v1::FaultScope::Unspecified => "unknown",
        v1::FaultScope::Topology => "topology",
        v1::FaultScope::Placement => "placement",
        v1::FaultScope::Host => "host",
    }
}

/// The word for how a fault stands.
pub(crate) const fn state_name(state: v1::FaultState) -> &'static str {
    match state {
        v1::FaultState::Unspecified => "unknown",
        v1::FaultState::Active => "active",
        v1::FaultState::Clearing => "clearing",
        v1::FaultState::Held => "held",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_has_no_fraction_and_times_keep_their_milliseconds() {
        let wire = |text: &str| fault(&text.parse().unwrap());
        assert_eq!(wire("link:a>b").remaining, None);
        for name in ["link:a=b*1/2", "nic:h:3>p", "gpu:g", "host:h", "switch:s", "plane:p", "feature:s:multicast"] {
            assert_eq!(text(&wire(name)).as_deref(), Some(name));
        }
        assert_eq!(wire("nic:a>b*2/4").remaining, Some(v1::Ratio { numerator: 1, denominator: 2 }));
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
