//! Faults as messages.

use canopy_faults::{Device, Loss, Target};
use canopy_proto::v1;

/// A fault on the wire.
pub(super) fn fault(loss: &Loss) -> v1::Fault {
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
