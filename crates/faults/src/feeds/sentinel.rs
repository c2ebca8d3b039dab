//! Health events as NVSentinel's monitors send them, without the transport: which check found what in which device of a node.
//!
//! Each check is a source of its own (`nvsentinel/NAME`), so that one that is content does not clear what another one found.
//! A GPU is known by its number, a card by the number that its name ends with (`mlx5_3` is the card of GPU 3), both unless an
//! alias says otherwise; all else by aliases alone. An event without devices is about the node.
//!
//! * **Source.** NVSentinel, `data-models/protobufs/health_event.proto`.

use crate::event::{Event, Severity};
use crate::feeds::{FeedOptions, Item, can_be_host, cut};
use crate::remaining::Remaining;
use crate::target::{Device, Target, shown};

/// Bytes of a check's name in the name of a source, beside `nvsentinel/`.
const CHECK_BYTES_MAX: usize = 48;
/// Bytes of a device's name in an event's id.
const DEVICE_BYTES_MAX: usize = 48;

/// A device that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// What it is: `GPU`, `NIC`, `PCI`, …
    pub kind: String,
    /// Which, in the words of its kind.
    pub value: String,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthEvent {
    /// The check's name.
    pub check_name: String,
    /// Whether the device cannot be used.
    pub is_fatal: bool,
    /// Whether the check found nothing, or nothing any more.
    pub is_healthy: bool,
    /// The devices; none: the node.
    pub entities: Vec<Entity>,
    /// When it was found; none: when it came.
    pub generated_ms: Option<u64>,
    /// The node.
    pub node_name: String,
    /// Whether it is for the records only, and nothing is to be done.
    pub is_store_only: bool,
}

/// What one event says, for each of its devices.
///
/// Of a GPU that is named in several ways the number counts. O(entities).
pub fn read_health(event: &HealthEvent, options: &FeedOptions, received_ms: u64) -> Vec<Item> {
    let check = cut(&event.check_name, CHECK_BYTES_MAX);
    let passed = |why: &str| vec![Item::Passed { what: format!("{check} of {}: {why}", shown(&event.node_name)) }];
    if event.is_store_only {
        return passed("for the records only");
    }
    let remaining = match (event.is_healthy || event.is_fatal, options.degraded) {
        (true, _) => Remaining::GONE,
        (false, Some(degraded)) => degraded,
        (false, None) => return passed("not fatal, and nobody says what is left"),
    };
    let machine = options.aliases.machine(&event.node_name);
    if !can_be_host(machine) {
        let remedy = "the event names no node";
        return vec![Item::Unmapped { device: shown(&event.node_name), remedy }];
    }
    let observed_ms = event.generated_ms.unwrap_or(received_ms);
    let item = |name: &str, target: Target| {
        let state = if event.is_healthy { "up" } else { "down" };
        Item::Event(Event {
            source: format!("nvsentinel/{check}"),
            event_id: format!("{} {state} {observed_ms}", cut(name, DEVICE_BYTES_MAX)),
            target,
            remaining,
            severity: if event.is_fatal { Severity::Fatal } else { Severity::Degraded },
            observed_ms,
            expires_ms: options.expiry(observed_ms),
            cleared: event.is_healthy,
        })
    };
    let devices: Vec<&Entity> =
        event.entities.iter().filter(|entity| !entity.kind.eq_ignore_ascii_case("NODE")).collect();
    if devices.is_empty() {
        return vec![item(machine, Target::Host { name: machine.to_owned() })];
    }
    let is_numbered = |entity: &Entity| entity.kind.eq_ignore_ascii_case("GPU") && entity.value.parse::<u32>().is_ok();
    let has_number = devices.iter().any(|entity| is_numbered(entity));
    let other_name = |entity: &Entity| ["PCI", "GPU_UUID"].iter().any(|kind| entity.kind.eq_ignore_ascii_case(kind));
    let told = devices.into_iter().filter(|entity| !has_number || !other_name(entity));
    told.map(|entity| match target(options, &event.node_name, machine, entity) {
        Some(target) => item(&entity.value, target),
        None => {
            let device = format!("{}/{}", shown(&event.node_name), shown(&entity.value));
            Item::Unmapped { device, remedy: "give it an alias: NODE/NAME and what it is" }
        }
    })
    .collect()
}

/// The element that an entity of a node is.
fn target(options: &FeedOptions, node: &str, machine: &str, entity: &Entity) -> Option<Target> {
    if let Some(target) = options.aliases.device(node, &entity.value) {
        return Some(target.clone());
    }
    let slot = |index| Device::Slot { host: machine.to_owned(), index };
    match entity.kind.to_ascii_uppercase().as_str() {
        "GPU" => Some(Target::Gpu { device: slot(entity.value.parse().ok()?) }),
        "NIC" => {
            let digits = entity.value.trim_start_matches(|c: char| c != '_');
            Some(Target::Nic { device: slot(digits.strip_prefix('_')?.parse().ok()?), port: None })
        }
        _ => None,
    }
}
