//! Numbers without a unit that are hardly meant in base units.
//!
//! A document may state rates as whole numbers of bytes per second and latencies as whole nanoseconds, and programs
//! write them so. A person who writes `bandwidth: 50` means another unit.

use super::schema::{LinkDocument, TopologyDocument};
use crate::quantity::Quantity;

/// Bytes per second from which on a number without a unit is taken as meant: no network of accelerators is slower.
const RATE_MIN: u64 = 1_000_000;
/// The same in nanoseconds of a latency: light takes as long for two metres of cable.
const LATENCY_MIN: u64 = 10;

/// One sentence for all rates and one for all latencies that need a unit. O(nodes + links).
pub(super) fn doubts(document: &TopologyDocument) -> Vec<String> {
    let links = || document.links.iter().enumerate();
    let of_link = |(position, link): (usize, &LinkDocument)| {
        Some((format!("links[{position}].bandwidth"), doubt(&link.bandwidth, RATE_MIN)?))
    };
    let loops = document.nodes.iter().enumerate().filter_map(|(position, node)| {
        Some((format!("nodes[{position}].loops"), doubt(node.loops.as_ref()?, RATE_MIN)?))
    });
    let rates = in_words(links().filter_map(of_link).chain(loops), "bytes/s", ["GB/s", "Gb/s", "B/s"]);
    let default = document.defaults.as_ref().and_then(|defaults| defaults.latency.as_ref());
    let default = default.and_then(|latency| Some(("defaults.latency".to_owned(), doubt(latency, LATENCY_MIN)?)));
    let of_link = |(position, link): (usize, &LinkDocument)| {
        Some((format!("links[{position}].latency"), doubt(link.latency.as_ref()?, LATENCY_MIN)?))
    };
    let latencies = default.into_iter().chain(links().filter_map(of_link));
    rates.into_iter().chain(in_words(latencies, "nanoseconds", ["us", "ms", "ns"])).collect()
}

/// A number without a unit that is less than any likely one.
fn doubt(quantity: &Quantity, least: u64) -> Option<u64> {
    match quantity {
        Quantity::Whole(number) if (1..least).contains(number) => Some(*number),
        Quantity::Whole(_) | Quantity::Text(_) => None,
    }
}

/// Names the first, counts the others, and shows what to write.
fn in_words(mut found: impl Iterator<Item = (String, u64)>, base: &str, units: [&str; 3]) -> Option<String> {
    let (path, number) = found.next()?;
    let others = match found.count() {
        0 => String::new(),
        1 => ", and 1 other number too".to_owned(),
        count => format!(", and {count} other numbers too"),
    };
    let [first, second, meant] = units;
    Some(format!(
        "{path}: `{number}` has no unit and is read as {number} {base}{others}; write `{number}{first}` or \
         `{number}{second}`, or `{number}{meant}` if that is meant"
    ))
}
