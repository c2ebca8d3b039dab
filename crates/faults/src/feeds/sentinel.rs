//! Health events as NVSentinel's monitors send them, without the transport: which check found what in which device of a node.
//!
//! Each check is a source of its own (`nvsentinel/NAME`), so that one that is content does not clear what another one found.
//! A GPU is known by its number. A card is known by its name; on a machine whose cards have no names in the network, by the
//! number that its name ends with (`mlx5_3` is the card of GPU 3). Aliases come first; all else is known by aliases and labels
//! alone. An event without devices is about the node, and takes back all that
//! its check found in it where it is a healthy one.
//!
//! A GPU is named in several ways, and so is where on it something is wrong: an address, serial number, NVLink, NVSwitch or port that
//! means nothing is no more than a detail where the GPU or card is known. Registers are never more.
//!
//! * **Source.** NVSentinel, `data-models/protobufs/health_event.proto`, and the entities that its monitors fill in.

use std::collections::BTreeSet;

use crate::event::{Event, Severity};
use crate::feeds::{Aliases, FeedError, FeedOptions, Item, can_be_host, check_count, cut};
use crate::remaining::Remaining;
use crate::target::{Device, Target};
use crate::text::{digits, shown};

/// Bytes of a check's name in the name of a source, beside `nvsentinel/`.
const CHECK_BYTES_MAX: usize = 48;
/// Bytes of a device's name in an event's id.
const DEVICE_BYTES_MAX: usize = 48;

/// A device of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Its kind: `GPU`, `NIC`, `PCI`, …
    pub kind: String,
    /// Its name, in the notation of its kind.
    pub value: String,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthEvent {
    /// The check's name.
    pub check_name: String,
    /// Whether the device cannot be used.
    pub is_fatal: bool,
    /// Whether the check found no fault, or none any more.
    pub is_healthy: bool,
    /// The devices; empty for the node itself.
    pub entities: Vec<Entity>,
    /// Time of the finding; `None` for the time of arrival.
    pub generated_ms: Option<u64>,
    /// The node.
    pub node_name: String,
    /// Whether the event is informational and needs no action.
    pub is_store_only: bool,
}

/// What kinds of devices monitors name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The node itself.
    Node,
    /// A GPU by its number.
    Gpu,
    /// Another name of a GPU or card: its address or serial number.
    Name,
    /// One of several that lead from a GPU to a switch.
    Link,
    Switch,
    Nic,
    /// A port of a card.
    Port,
    /// A value, no device.
    Register,
    Other,
}

impl Entity {
    fn kind(&self) -> Kind {
        match self.kind.to_ascii_uppercase().as_str() {
            "NODE" => Kind::Node,
            "GPU" => Kind::Gpu,
            "PCI" | "GPU_UUID" => Kind::Name,
            "NVLINK" => Kind::Link,
            "NVSWITCH" => Kind::Switch,
            "NIC" => Kind::Nic,
            "NICPORT" => Kind::Port,
            kind if kind.starts_with("REG") => Kind::Register,
            _ => Kind::Other,
        }
    }

    /// Its name on its node: a number alone gets its kind before it, as in `nvlink14`.
    fn name(&self) -> String {
        match digits::<u32>(&self.value) {
            Some(_) => format!("{}{}", self.kind.to_ascii_lowercase(), self.value),
            None => self.value.clone(),
        }
    }
}

/// The statements of an event, one for each device.
///
/// If a GPU is named in several ways, its number counts. O(entities · log names).
///
/// # Errors
/// It names too many devices.
pub fn read_health(event: &HealthEvent, options: &FeedOptions, received_ms: u64) -> Result<Vec<Item>, FeedError> {
    check_count(event.entities.len())?;
    let check = cut(&event.check_name, CHECK_BYTES_MAX);
    let passed = |why: &str| Ok(vec![Item::Passed { what: format!("{check} of {}: {why}", shown(&event.node_name)) }]);
    if event.is_store_only {
        return passed("informational only");
    }
    let remaining = match (event.is_healthy || event.is_fatal, options.degraded) {
        (true, _) => Remaining::GONE,
        (false, Some(degraded)) => degraded,
        (false, None) => return passed("not fatal, and the remaining rate is unknown"),
    };
    let machine = options.aliases.machine(&event.node_name);
    if !can_be_host(machine) {
        let remedy = "the event names no node".to_owned();
        return Ok(vec![Item::Unmapped { device: shown(&event.node_name), remedy }]);
    }
    let observed_ms = event.generated_ms.unwrap_or(received_ms);
    let said = |name: &str, target: Target| {
        let state = if event.is_healthy { "up" } else { "down" };
        Event {
            source: format!("nvsentinel/{check}"),
            event_id: format!("{} {state} {observed_ms}", cut(name, DEVICE_BYTES_MAX)),
            target,
            remaining,
            severity: if event.is_fatal { Severity::Fatal } else { Severity::Degraded },
            observed_ms,
            expires_ms: options.expiry(observed_ms),
            cleared: event.is_healthy,
        }
    };
    let node = || said(machine, Target::Host { name: machine.to_owned() });
    if event.entities.is_empty() && event.is_healthy {
        let named = options.aliases.devices(&event.node_name).cloned().collect::<BTreeSet<Target>>();
        let named = named.into_iter().map(|target| Item::Event(said(&target.to_string(), target)));
        return Ok(std::iter::once(Item::AllClear(node())).chain(named).collect());
    }
    let target = |entity: &Entity| target(&options.aliases, &event.node_name, entity);
    let devices: Vec<(&Entity, Kind)> = event.entities.iter().map(|entity| (entity, entity.kind())).collect();
    let is_known =
        |kinds: &[Kind]| devices.iter().any(|(entity, kind)| kinds.contains(kind) && target(entity).is_some());
    let (has_number, has_gpu, has_card) =
        (is_known(&[Kind::Gpu]), is_known(&[Kind::Gpu, Kind::Name]), is_known(&[Kind::Nic]));
    let is_detail = |kind: Kind| match kind {
        Kind::Node | Kind::Register => true,
        Kind::Name => has_gpu || has_card,
        Kind::Link | Kind::Switch => has_gpu,
        Kind::Port => has_card,
        Kind::Gpu | Kind::Nic | Kind::Other => false,
    };
    let mut items = Vec::new();
    let mut told = BTreeSet::new();
    for &(entity, kind) in devices.iter().filter(|(_, kind)| *kind != Kind::Name || !has_number) {
        match target(entity) {
            Some(target) if told.contains(&target) => {}
            Some(target) => {
                told.insert(target.clone());
                items.push(Item::Event(said(&entity.value, target)));
            }
            None if is_detail(kind) => {}
            None => items.push(unmapped(&event.node_name, entity, kind)),
        }
    }
    if items.is_empty() {
        items.push(Item::Event(node()));
    }
    Ok(items)
}

/// A device of which nobody says what it is, and what would say so.
fn unmapped(node: &str, entity: &Entity, kind: Kind) -> Item {
    let device = format!("{}/{}", shown(node), shown(&entity.name()));
    let example = match kind {
        Kind::Gpu | Kind::Name => "gpu:GPU",
        Kind::Link => "link:A=B",
        Kind::Switch => "switch:ID",
        Kind::Nic | Kind::Port => "nic:GPU",
        Kind::Node | Kind::Register | Kind::Other => "node:ID",
    };
    let remedy = format!("give it an alias, a line such as `{device} {example}`");
    Item::Unmapped { device, remedy }
}

/// The element that an entity of a node is.
fn target(aliases: &Aliases, node: &str, entity: &Entity) -> Option<Target> {
    if let Some(target) = aliases.device(node, &entity.name()) {
        return Some(target.clone());
    }
    let slot = |index| Device::Slot { host: aliases.machine(node).to_owned(), index };
    // `mlx5_3`; its ports are `mlx5_3_port1`.
    let card = |name: &str| match aliases.device(node, name) {
        Some(target) => Some(target.clone()),
        // Where NICs have names, a number in one is no index of a GPU.
        None if aliases.name_nics_of(node) => None,
        None => Some(Target::Nic { device: slot(digits(name.split_once('_')?.1)?), port: None }),
    };
    match entity.kind() {
        Kind::Gpu => Some(Target::Gpu { device: slot(digits(&entity.value)?) }),
        Kind::Nic => card(&entity.value),
        Kind::Port => card(entity.value.split_once("_port")?.0),
        _ => None,
    }
}
