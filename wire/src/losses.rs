//! Faults on the wire, as [`canopy_faults`] describes them.

use bytes::Bytes;
use canopy_faults::{Device, Loss, Remaining, RemainingError, Target, TargetError};
use canopy_proto::v1;
use canopy_proto::v1::fault::Target as Stated;
use prost::Message as _;

use crate::fraction::{StoredRatio, Unread, fraction_of, read_small};

/// Why a stated fault is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LossError {
    /// It names no element.
    #[error("the fault names no element; name a link, a NIC, a device, a host, a node, a switch, a plane or a feature")]
    NoTarget,
    /// Its element is not valid.
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl LossError {
    /// The field of the fault at fault.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Target(TargetError::Remaining(_)) => "remaining",
            Self::NoTarget | Self::Target(_) => "target",
        }
    }
}

/// Most losses to name in one sentence.
const NAMED_MAX: usize = 8;

/// The number of known losses, and the first ones.
pub fn in_words(losses: &[Loss]) -> String {
    let named: Vec<String> = losses.iter().take(NAMED_MAX).map(Loss::to_string).collect();
    let more = match losses.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let noun = if losses.len() == 1 { "known fault" } else { "known faults" };
    format!("{} {noun}: {}{more}", losses.len(), named.join(", "))
}

/// Reads a fault.
///
/// # Errors
/// It names no element, or its fraction is not valid.
pub fn loss(stated: &v1::Fault) -> Result<Loss, LossError> {
    let device = |device: &v1::DeviceTarget| match (device.node.as_str(), device.nic.as_str()) {
        ("", "") => Device::Slot { host: device.host.clone(), index: device.index },
        ("", nic) => Device::Nic { host: device.host.clone(), name: nic.to_owned() },
        (id, _) => Device::Node { id: id.to_owned() },
    };
    let target = match stated.target.as_ref().ok_or(LossError::NoTarget)? {
        Stated::Link(v1::LinkTarget { from, to, one_way }) => {
            Target::Link { from: from.clone(), to: to.clone(), both_ways: !one_way }
        }
        Stated::Nic(v1::NicTarget { device: of, port }) => Target::Nic {
            device: device(of.as_ref().unwrap_or(&v1::DeviceTarget::default())),
            port: Some(port.clone()).filter(|port| !port.is_empty()),
        },
        Stated::Device(of) => Target::Gpu { device: device(of) },
        Stated::Host(name) => Target::Host { name: name.clone() },
        Stated::Node(id) => Target::Node { id: id.clone() },
        Stated::SwitchName(id) => Target::Switch { id: id.clone() },
        Stated::Plane(name) => Target::Plane { name: name.clone() },
        Stated::SwitchFeature(v1::SwitchFeature { switch_name, multicast, aggregate }) => {
            Target::Feature { switch: switch_name.clone(), multicast: *multicast, aggregate: *aggregate }
        }
    };
    let remaining = match &stated.remaining {
        None => Remaining::GONE,
        Some(stated) => remaining(stated)?,
    };
    Ok(Loss { target: target.checked()?, remaining })
}

/// The fraction of a capacity that remains.
///
/// # Errors
/// The text is not a fraction from 0 to 1.
pub(crate) fn remaining(stated: &v1::Fraction) -> Result<Remaining, TargetError> {
    let unread = |why| {
        let exact: String = stated.exact.chars().take(80).collect();
        let found = match why {
            Unread::Text => exact,
            Unread::Value => format!("{exact} and {} at once", stated.value),
        };
        RemainingError { found }
    };
    let (numerator, denominator) = read_small(stated).map_err(unread)?;
    Ok(Remaining::new(numerator, denominator)?)
}

/// A loss on the wire.
pub fn on_the_wire(loss: &Loss) -> v1::Fault {
    let none = v1::DeviceTarget::default;
    let device = |device: &Device| match device {
        Device::Node { id } => v1::DeviceTarget { node: id.clone(), ..none() },
        Device::Slot { host, index } => v1::DeviceTarget { host: host.clone(), index: *index, ..none() },
        Device::Nic { host, name } => v1::DeviceTarget { host: host.clone(), nic: name.clone(), ..none() },
    };
    let target = match &loss.target {
        Target::Link { from, to, both_ways } => {
            Stated::Link(v1::LinkTarget { from: from.clone(), to: to.clone(), one_way: !both_ways })
        }
        Target::Nic { device: of, port } => {
            Stated::Nic(v1::NicTarget { device: Some(device(of)), port: port.clone().unwrap_or_default() })
        }
        Target::Gpu { device: of } => Stated::Device(device(of)),
        Target::Host { name } => Stated::Host(name.clone()),
        Target::Node { id } => Stated::Node(id.clone()),
        Target::Switch { id } => Stated::SwitchName(id.clone()),
        Target::Plane { name } => Stated::Plane(name.clone()),
        Target::Feature { switch, multicast, aggregate } => Stated::SwitchFeature(v1::SwitchFeature {
            switch_name: switch.clone(),
            multicast: *multicast,
            aggregate: *aggregate,
        }),
    };
    let remaining =
        (!loss.remaining.is_gone()).then(|| fraction_of(loss.remaining.numerator(), loss.remaining.denominator()));
    v1::Fault { target: Some(target), remaining }
}

/// A loss in wire format.
pub fn loss_written(loss: &Loss) -> Bytes {
    on_the_wire(loss).encode_to_vec().into()
}

/// What remains, as versions before 0.2 wrote it.
#[derive(Clone, PartialEq, prost::Message)]
struct FormerFault {
    #[prost(message, optional, tag = "9")]
    remaining: Option<StoredRatio>,
}

/// Reads what [`loss_written`] wrote; `None` for anything else.
pub fn loss_read(bytes: Bytes) -> Option<Loss> {
    let FormerFault { remaining } = FormerFault::decode(bytes.clone()).ok()?;
    let mut fault = v1::Fault::decode(bytes).ok()?;
    if let (Some(stated), Some(former)) = (&mut fault.remaining, remaining.filter(StoredRatio::is_stated)) {
        *stated = former.fraction();
    }
    loss(&fault).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_wire_says_is_what_is_read() {
        let texts = [
            "link:a>b*1/3",
            "link:a=b",
            "nic:g0",
            "nic:g0>ib*1/2",
            "nic:node7:3",
            "nic:node7:mlx5_3>leaf1*1/2",
            "gpu:g0",
            "gpu:node7:3",
            "host:node7",
            "node:x",
            "switch:ib*2/5",
            "feature:nv:multicast",
            "feature:nv:multicast+aggregate",
            "plane:rail0",
        ];
        for text in texts {
            let known: Loss = text.parse().unwrap();
            assert_eq!(loss_read(loss_written(&known)), Some(known.clone()), "{text}");
            assert_eq!(loss(&on_the_wire(&known)), Ok(known), "{text}");
        }
    }

    #[test]
    fn what_names_nothing_is_refused_by_its_field() {
        let fault = |target, remaining| v1::Fault { target, remaining };
        let link = || Some(Stated::Link(v1::LinkTarget { from: "a".to_owned(), to: "b".to_owned(), one_way: true }));
        let nic = |host: &str, nic: &str| v1::DeviceTarget {
            host: host.to_owned(),
            nic: nic.to_owned(),
            ..v1::DeviceTarget::default()
        };
        let of_zero = fraction_of(0, 0);
        let refused = [
            (fault(None, None), "target"),
            (fault(Some(Stated::Nic(v1::NicTarget::default())), None), "target"),
            (fault(Some(Stated::Node("a b".to_owned())), None), "target"),
            (fault(Some(Stated::Device(nic("n", "mlx5_0"))), None), "target"),
            (
                fault(Some(Stated::Nic(v1::NicTarget { device: Some(nic("n", "3")), port: String::new() })), None),
                "target",
            ),
            (fault(link(), Some(of_zero)), "remaining"),
            (fault(link(), Some(fraction_of(3, 2))), "remaining"),
        ];
        for (fault, field) in refused {
            assert_eq!(loss(&fault).unwrap_err().field(), field, "{fault:?}");
        }
    }
}
