//! Names for what can break, and their text form.
//!
//! ```text
//! fault   := target ["*" n "/" d]          what is left; without it nothing is
//! target  := "link:" ID ">" ID             one direction
//!          | "link:" ID "=" ID             both; `ID-ID` too, where no id has a `-`
//!          | "nic:" device [">" ID]        all ports of a NIC, or the one to a neighbour
//!          | "gpu:" device
//!          | "host:" NAME | "node:" ID | "switch:" ID
//!          | "feature:" ID ":" what        what: multicast, aggregate or multicast+aggregate
//!          | "plane:" NAME
//! device  := ID | NAME ":" NUMBER          index of the rank on a host or box, from 0
//!          | NAME ":" NIC                  of `nic:` only: what the machine calls the NIC, such as mlx5_3
//! ```
//!
//! Ids and names have 1 to 255 bytes without white space and `: > = ,`, as ids of nodes do. What a target means on a
//! network is for [`Directory`](crate::Directory) to say.

use std::fmt;
use std::str::FromStr;

use canopy_topology::{Node, NodeKind};
use serde::{Deserialize, Serialize};

use crate::remaining::{Remaining, RemainingError};
use crate::text::{digits, shown};

/// Longest name in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Something that can break.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Target {
    /// All parallel links between two nodes.
    Link {
        /// Id of the node where they start.
        from: String,
        /// Id of the node where they end.
        to: String,
        /// Whether those of the opposite direction are meant too.
        #[serde(default)]
        both_ways: bool,
    },
    /// A NIC: links that leave a machine. Of a GPU without such links, the nearest NIC of its machine.
    Nic {
        /// The NIC, or the GPU that it belongs to.
        device: Device,
        /// Id of the neighbour at the far end of the one port that is meant; none: all ports.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<String>,
    },
    /// A compute node.
    Gpu {
        /// Which.
        device: Device,
    },
    /// A machine: all nodes of a host or of a box.
    Host {
        /// Its name, whole or short.
        name: String,
    },
    /// Any node.
    Node {
        /// Its id.
        id: String,
    },
    /// A switch.
    Switch {
        /// Its id.
        id: String,
    },
    /// Features of a switch beyond forwarding.
    Feature {
        /// Its id.
        switch: String,
        /// Sending one incoming stream out on several links.
        #[serde(default)]
        multicast: bool,
        /// Reducing several incoming streams into one.
        #[serde(default)]
        aggregate: bool,
    },
    /// All switches of a rail or plane.
    Plane {
        /// Its name, or the id of its only switch.
        name: String,
    },
}

/// A device by its own name, or by its place in a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a device is {\"id\": ID} of its node, {\"host\": NAME, \"index\": NUMBER}, or {\"host\": NAME, \"name\": NIC}"
)]
pub enum Device {
    /// The node with this id.
    Node {
        /// The id.
        id: String,
    },
    /// One of a machine's.
    Slot {
        /// Name of the host or box, whole or short.
        host: String,
        /// The how-manieth of its ranks, from 0.
        index: u32,
    },
    /// A NIC of a machine.
    Nic {
        /// Name of the host or box, whole or short.
        host: String,
        /// The machine's name for the NIC, or the id of its node.
        name: String,
    },
}

/// A broken element, and its remaining capacity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The broken element.
    pub target: Target,
    /// The remaining fraction of its capacity.
    pub remaining: Remaining,
}

/// Errors of reading a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TargetError {
    #[error(
        "unknown target `{found}`; write link:A>B, link:A=B, nic:GPU, gpu:GPU, host:NAME, node:ID, switch:ID, \
         feature:SWITCH:multicast or plane:NAME"
    )]
    Kind { found: String },
    #[error("unknown target `{found}`; write gpu:{found} for the GPU of that machine, or nic:{found} for its NIC")]
    NoKind { found: String },
    #[error("`{found}` is not a link; write link:A>B for one direction or link:A=B for both, with ids of nodes")]
    Link { found: String },
    #[error("`{found}` is not a device; write the id of its node, or HOST:INDEX with the index of the device from 0")]
    Device { found: String },
    #[error("`{found}` is not a NIC; write nic:HOST:INDEX with the index of its GPU from 0, or nic:HOST:NAME")]
    Nic { found: String },
    #[error("`{found}` names a NIC, and a GPU is meant; write gpu:HOST:INDEX with the index of the GPU from 0")]
    NotAGpu { found: String },
    #[error("`{found}` is not a feature; write feature:SWITCH:multicast, :aggregate or :multicast+aggregate")]
    Feature { found: String },
    #[error("{field} cannot be `{found}`; use 1 to {NAME_BYTES_MAX} bytes without white space and `: > = ,`")]
    Name { field: &'static str, found: String },
    #[error("the link leads from {id} to itself; name two different nodes")]
    SelfLink { id: String },
    #[error("the feature of switch {switch} is neither multicast nor aggregate; name the one it loses")]
    NoFeature { switch: String },
    #[error(transparent)]
    Remaining(#[from] RemainingError),
}

impl Target {
    /// The target in canonical form for any network: a link in both directions has its lower end first.
    ///
    /// # Errors
    /// A name that cannot be one, a link from a node to itself, a feature that is none.
    pub fn checked(mut self) -> Result<Self, TargetError> {
        match &mut self {
            Self::Link { from, to, both_ways } => {
                check_name("from", from)?;
                check_name("to", to)?;
                if from == to {
                    return Err(TargetError::SelfLink { id: from.clone() });
                }
                if *both_ways && *from > *to {
                    std::mem::swap(from, to);
                }
            }
            Self::Nic { device, port } => {
                device.check()?;
                port.as_ref().map_or(Ok(()), |port| check_name("port", port))?;
            }
            Self::Gpu { device: device @ Device::Nic { .. } } => {
                return Err(TargetError::NotAGpu { found: shown(&device.to_string()) });
            }
            Self::Gpu { device } => device.check()?,
            Self::Host { name } | Self::Plane { name } => check_name("name", name)?,
            Self::Node { id } | Self::Switch { id } => check_name("id", id)?,
            Self::Feature { switch, multicast, aggregate } => {
                check_name("switch", switch)?;
                if !*multicast && !*aggregate {
                    return Err(TargetError::NoFeature { switch: switch.clone() });
                }
            }
        }
        Ok(self)
    }

    /// A node by what it is: a switch, or else a compute node.
    pub(crate) fn of_node(node: &Node) -> Self {
        let id = node.id.clone();
        match node.kind {
            NodeKind::Switch { .. } => Self::Switch { id },
            NodeKind::Compute | NodeKind::Forwarder => Self::Gpu { device: Device::Node { id } },
        }
    }

    /// All words of [`Self::kind`].
    pub const KINDS: [&str; 8] = ["link", "nic", "gpu", "host", "node", "switch", "feature", "plane"];

    /// The word before the first colon of its text form.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Link { .. } => "link",
            Self::Nic { .. } => "nic",
            Self::Gpu { .. } => "gpu",
            Self::Host { .. } => "host",
            Self::Node { .. } => "node",
            Self::Switch { .. } => "switch",
            Self::Feature { .. } => "feature",
            Self::Plane { .. } => "plane",
        }
    }
}

impl Device {
    fn check(&self) -> Result<(), TargetError> {
        match self {
            Self::Node { id } => check_name("device.id", id),
            Self::Slot { host, .. } => check_name("device.host", host),
            Self::Nic { host, name } => {
                check_name("device.host", host)?;
                check_name("device.name", name)?;
                // A number is the index of a GPU.
                if is_number(name) {
                    return Err(TargetError::Nic { found: shown(&self.to_string()) });
                }
                Ok(())
            }
        }
    }
}

fn check_name(field: &'static str, name: &str) -> Result<(), TargetError> {
    let is_plain = !name.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, ':' | '>' | '=' | ','));
    if is_plain && (1..=NAME_BYTES_MAX).contains(&name.len()) {
        Ok(())
    } else {
        Err(TargetError::Name { field, found: shown(name) })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind())?;
        match self {
            Self::Link { from, to, both_ways } => write!(f, "{from}{}{to}", if *both_ways { '=' } else { '>' }),
            Self::Nic { device, port: Some(port) } => write!(f, "{device}>{port}"),
            Self::Nic { device, port: None } | Self::Gpu { device } => write!(f, "{device}"),
            Self::Host { name } | Self::Plane { name } => f.write_str(name),
            Self::Node { id } | Self::Switch { id } => f.write_str(id),
            Self::Feature { switch, multicast, aggregate } => {
                let both = if *multicast && *aggregate { "+" } else { "" };
                let (multicast, aggregate) =
                    (if *multicast { "multicast" } else { "" }, if *aggregate { "aggregate" } else { "" });
                write!(f, "{switch}:{multicast}{both}{aggregate}")
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { id } => f.write_str(id),
            Self::Slot { host, index } => write!(f, "{host}:{index}"),
            Self::Nic { host, name } => write!(f, "{host}:{name}"),
        }
    }
}

/// Prints the target, and `*1/2` where something is left of it.
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.target.to_string();
        f.write_str(&target)?;
        // An id may end like a fraction.
        if self.remaining.is_gone() && split_fraction(&target).1.is_none() {
            return Ok(());
        }
        write!(f, "*{}", self.remaining)
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let kind = || match text.split_once(':') {
            Some((_, index)) if digits::<u32>(index).is_some() => TargetError::NoKind { found: shown(text) },
            _ => TargetError::Kind { found: shown(text) },
        };
        let (word, rest) = text.split_once(':').ok_or_else(kind)?;
        let name = || rest.to_owned();
        let target = match word {
            "link" => link(rest)?,
            "nic" => {
                let (device, port) = rest.split_once('>').map_or((rest, None), |(device, port)| (device, Some(port)));
                Self::Nic { device: nic(device)?, port: port.map(str::to_owned) }
            }
            "gpu" => Self::Gpu { device: rest.parse()? },
            "host" => Self::Host { name: name() },
            "node" => Self::Node { id: name() },
            "switch" => Self::Switch { id: name() },
            "feature" => {
                let (switch, what) = rest.split_once(':').ok_or_else(|| TargetError::Feature { found: shown(rest) })?;
                let (multicast, aggregate) = match what {
                    "multicast" => (true, false),
                    "aggregate" => (false, true),
                    "multicast+aggregate" => (true, true),
                    _ => return Err(TargetError::Feature { found: shown(rest) }),
                };
                Self::Feature { switch: switch.to_owned(), multicast, aggregate }
            }
            "plane" => Self::Plane { name: name() },
            _ => return Err(kind()),
        };
        target.checked()
    }
}

/// A NIC by its own name on a machine, or by its GPU.
fn nic(text: &str) -> Result<Device, TargetError> {
    match text.split_once(':') {
        Some((host, name)) if !is_number(name) => Ok(Device::Nic { host: host.to_owned(), name: name.to_owned() }),
        _ => text.parse(),
    }
}

/// Whether a text is a number, or empty. One that is too large for an index is no name either.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Both ends of a link, one way or both.
fn link(text: &str) -> Result<Target, TargetError> {
    let error = || TargetError::Link { found: shown(text) };
    let ends = text.split_once('>').map(|ends| (ends, false)).or_else(|| text.split_once('=').map(|ends| (ends, true)));
    let ends = ends.or_else(|| Some((text.split_once('-').filter(|(_, to)| !to.contains('-'))?, true)));
    let ((from, to), both_ways) = ends.ok_or_else(error)?;
    Ok(Target::Link { from: from.to_owned(), to: to.to_owned(), both_ways })
}

impl FromStr for Device {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let Some((host, index)) = text.split_once(':') else { return Ok(Self::Node { id: text.to_owned() }) };
        let index = digits(index).ok_or_else(|| TargetError::Device { found: shown(text) })?;
        Ok(Self::Slot { host: host.to_owned(), index })
    }
}

impl FromStr for Loss {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (target, fraction) = split_fraction(text);
        let remaining = fraction.map_or(Ok(Remaining::GONE), str::parse)?;
        Ok(Self { target: target.parse()?, remaining })
    }
}

/// The text before `*1/2`, `*0.5` or `*50%` at its end, and the fraction, if that is how it ends.
fn split_fraction(text: &str) -> (&str, Option<&str>) {
    let looks_like_one = |tail: &str| {
        tail.contains(['/', '.', '%']) && tail.bytes().all(|byte| byte.is_ascii_digit() || b"/.%".contains(&byte))
    };
    match text.rsplit_once('*') {
        Some((target, tail)) if looks_like_one(tail) => (target, Some(tail)),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests;
