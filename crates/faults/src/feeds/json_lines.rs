//! Canopy's own format: one JSON object per event.
//!
//! ```json
//! {"source": "ufm", "event_id": "4711", "fault": "link:b0g3>ib*1/2", "severity": "DEGRADED",
//!  "observed_time": "2026-01-31T13:07:07Z", "expires_after_s": 600, "cleared": false}
//! ```
//! `source`, `event_id` and `fault` must be there. `fault` is a text as [`Loss`] prints it, or its JSON.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::event::{Event, Severity};
use crate::feeds::{FeedError, FeedOptions, Item, from_json};
use crate::target::Loss;

/// An event as it is written.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    source: String,
    event_id: String,
    fault: Fault,
    severity: Option<Severity>,
    observed_time: Option<String>,
    expires_after_s: Option<u64>,
    #[serde(default)]
    cleared: bool,
}

/// In either form; what is wrong is said of the one it has.
#[derive(Debug)]
enum Fault {
    Text(String),
    Parts(Loss),
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Fault;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a fault as text, such as \"nic:b0g3*1/2\", or as an object with `target` and `remaining`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Fault, E> {
                Ok(Fault::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, parts: A) -> Result<Fault, A::Error> {
                Loss::deserialize(MapAccessDeserializer::new(parts)).map(Fault::Parts)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Reads one event; the time of arrival is the time of observation unless it states another.
///
/// # Errors
/// A line that is no such object, with unknown fields, or with names, fractions, times and lifetimes that are none.
pub fn read_json_line(line: &str, options: &FeedOptions, received_ms: u64) -> Result<Vec<Item>, FeedError> {
    let line: Line = from_json(line)?;
    let Loss { target, remaining } = match line.fault {
        Fault::Text(text) => text.parse()?,
        Fault::Parts(loss) => loss,
    };
    let observed_ms = options.observed("observed_time", line.observed_time.as_deref(), received_ms)?;
    if line.expires_after_s == Some(0) {
        return Err(FeedError::Lifetime);
    }
    let expires = line.expires_after_s.map(|after| observed_ms.saturating_add(after.saturating_mul(1_000)));
    let severity = line.severity.unwrap_or(if remaining.is_gone() { Severity::Fatal } else { Severity::Degraded });
    let event = Event {
        source: line.source,
        event_id: line.event_id,
        target,
        remaining,
        severity,
        observed_ms,
        expires_ms: expires.or_else(|| options.expiry(observed_ms)),
        cleared: line.cleared,
    };
    Ok(vec![Item::Event(event.checked()?)])
}
