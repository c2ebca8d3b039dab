//! The file of what was found: read by people, and put over any network of the same machines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use canopy_topology::{Capacity, Latency, Topology, TopologyError, shorten};
use serde::Deserialize;

use crate::parameters::{Parameter, Parameters, RATE_MAX, rounded};

/// Largest file that is read.
pub const OVERLAY_BYTES_MAX: usize = 16 << 20;
/// The format's number.
const FORMAT: u32 = 1;
/// The smallest factor of a rate, and the smallest that is written.
const FACTOR_MIN: f64 = 1e-6;
/// The longest latency: a second.
const LATENCY_NS_MAX: u64 = 1_000_000_000;

/// What was measured of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    parameters: Parameters,
    /// Those that it states; the others are as described.
    stated: BTreeSet<Parameter>,
    /// Rates of single links, by ends.
    links: BTreeMap<(String, String), Capacity>,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum OverlayError {
    #[error("{found} bytes are more than the {OVERLAY_BYTES_MAX} that are read")]
    TooLarge { found: usize },
    #[error("{problem}")]
    Shape { problem: String },
    #[error("calibration is {found}, and {FORMAT} is the only format")]
    Format { found: u32 },
    #[error("{field} is {found}: {wanted}")]
    Value { field: &'static str, found: String, wanted: &'static str },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    calibration: u32,
    message: Option<String>,
    #[serde(default)]
    inside: Inside,
    #[serde(default)]
    across: Across,
    #[serde(default)]
    links: Vec<LinkRate>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inside {
    rate: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Across {
    rate: Option<f64>,
    latency: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkRate {
    from: String,
    to: String,
    bandwidth: String,
}

impl Overlay {
    /// These parameters of a network, and the rates of links that are slower. Parameters that are not stated are as described.
    pub fn new(
        parameters: &Parameters,
        stated: BTreeSet<Parameter>,
        links: BTreeMap<(String, String), Capacity>,
    ) -> Self {
        let described = Parameters::described(0.0);
        let parameters = stated.iter().fold(described, |all, &one| all.with(one, parameters.get(one)));
        Self { parameters, stated, links }
    }

    /// Reads YAML or JSON.
    ///
    /// # Errors
    /// Another format, keys that do not exist, and values that no network has.
    pub fn read(text: &str) -> Result<Self, OverlayError> {
        if text.len() > OVERLAY_BYTES_MAX {
            return Err(OverlayError::TooLarge { found: text.len() });
        }
        let shape = |error: serde_saphyr::Error| OverlayError::Shape { problem: shorten(&error.to_string()) };
        let document: Document = serde_saphyr::from_str(text).map_err(shape)?;
        if document.calibration != FORMAT {
            return Err(OverlayError::Format { found: document.calibration });
        }
        let stated = [
            (Parameter::Message, document.message.is_some()),
            (Parameter::AcrossLatency, document.across.latency.is_some()),
            (Parameter::InsideRate, document.inside.rate.is_some()),
            (Parameter::AcrossRate, document.across.rate.is_some()),
        ];
        let stated = stated.into_iter().filter(|(_, is_stated)| *is_stated).map(|(parameter, _)| parameter).collect();
        let parameters = Parameters {
            across_ns: latency("across.latency", document.across.latency.as_deref())?,
            inside: factor("inside.rate", document.inside.rate)?,
            across: factor("across.rate", document.across.rate)?,
            ..Parameters::described(latency("message", document.message.as_deref())?)
        };
        let rate = |LinkRate { from, to, bandwidth }: LinkRate| {
            let wanted = "write a rate above 0, such as 21.4GB/s";
            let value = || OverlayError::Value { field: "links.bandwidth", found: shorten(&bandwidth), wanted };
            bandwidth.parse().map(|rate| ((from, to), rate)).map_err(|_| value())
        };
        let links = document.links.into_iter().map(rate).collect::<Result<_, _>>()?;
        Ok(Self { parameters, stated, links })
    }

    /// What each message takes, if it says so.
    pub fn message(&self) -> Option<Latency> {
        self.stated.contains(&Parameter::Message).then(|| self.parameters.message())
    }

    /// A network as it was measured. Links of others are left out.
    ///
    /// # Errors
    /// Rates whose sum is too large.
    pub fn apply(&self, topology: &Topology) -> Result<Topology, TopologyError> {
        self.parameters.applied(topology, &self.links)
    }

    /// The file, with comments for people.
    pub fn to_yaml(&self) -> String {
        let Parameters { across_ns, inside, across, .. } = self.parameters;
        let mut text = format!(
            "# What measured runs say of a network: give it to any command with --calibration.\ncalibration: {FORMAT}\n"
        );
        let lines = [
            (Parameter::Message, "# what each message takes before its first byte is sent\n", {
                format!("message: {}\n", self.parameters.message())
            }),
            (
                Parameter::InsideRate,
                "inside:\n  # rates of links inside boxes, as a part of what they are described as\n",
                { format!("  rate: {inside:.6}\n") },
            ),
            (Parameter::AcrossRate, "  # rates of all other links, likewise\n", format!("  rate: {across:.6}\n")),
            (Parameter::AcrossLatency, "  # what a link out of a box adds\n", {
                format!("  latency: {}\n", Latency::from_nanos(rounded(across_ns)))
            }),
        ];
        let is_across = |parameter: Parameter| matches!(parameter, Parameter::AcrossRate | Parameter::AcrossLatency);
        for (parameter, comment, line) in lines.iter().filter(|(parameter, ..)| self.stated.contains(parameter)) {
            if is_across(*parameter) && !text.contains("\nacross:\n") {
                text.push_str("across:\n");
            }
            text.extend([*comment, line]);
        }
        if !self.links.is_empty() {
            text.push_str("# links slower than described\nlinks:\n");
        }
        for ((from, to), rate) in &self.links {
            let (from, to) = (quoted(from), quoted(to));
            let _ = writeln!(text, "  - {{from: {from}, to: {to}, bandwidth: {rate}}}");
        }
        text
    }
}

/// An id between quotes, as YAML reads it: what is not printed, or breaks lines, is escaped.
fn quoted(id: &str) -> String {
    let mut text = String::from('"');
    for c in id.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            ' '..='~' => text.push(c),
            c if c.is_alphanumeric() => text.push(c),
            c => {
                let _ = write!(text, "\\U{:08x}", u32::from(c));
            }
        }
    }
    text.push('"');
    text
}

fn latency(field: &'static str, text: Option<&str>) -> Result<f64, OverlayError> {
    let Some(text) = text else { return Ok(0.0) };
    let latency = text.parse::<Latency>().ok().map(Latency::nanos).filter(|&nanos| nanos <= LATENCY_NS_MAX);
    let wanted = "write a time of a second at most, such as 3us";
    latency.map(|nanos| nanos as f64).ok_or_else(|| OverlayError::Value { field, found: shorten(text), wanted })
}

fn factor(field: &'static str, value: Option<f64>) -> Result<f64, OverlayError> {
    let value = value.unwrap_or(1.0);
    let wanted = "write a number from 0.000001 to 1.05, such as 0.92; state a faster rate in the network";
    let is_one = (FACTOR_MIN..=RATE_MAX).contains(&value);
    is_one.then_some(value).ok_or_else(|| OverlayError::Value { field, found: value.to_string(), wanted })
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let links = BTreeMap::from([(("a b\"".to_owned(), "c".to_owned()), Capacity::from_bytes_per_sec(21).unwrap())]);
        let parameters =
            Parameters { across_ns: 11_400.0, inside: 0.875, across: 0.921, ..Parameters::described(3217.0) };
        let overlay = Overlay::new(&parameters, Parameter::ALL.into(), links.clone());
        assert_eq!(Overlay::read(&overlay.to_yaml()), Ok(overlay));
        // Each alone, and what is not stated is not written.
        for parameter in Parameter::ALL {
            let overlay = Overlay::new(&parameters, BTreeSet::from([parameter]), links.clone());
            let text = overlay.to_yaml();
            assert_eq!(Overlay::read(&text), Ok(overlay), "{text}");
            assert_eq!(
                text.matches("rate:").count() + text.matches("latency:").count() + text.matches("message:").count(),
                1
            );
        }
    }

    /// Ids that Rust quotes otherwise than YAML does, and the smallest rates there are.
    #[test]
    fn what_is_read_is_written_and_read() {
        for text in [
            "calibration: 1\nmessage: 1us\nlinks: [{from: \"a\\u0301é'\", to: \"b\\u200b\", bandwidth: 1GB/s}]",
            r#"{calibration: 1, message: 1us, links: [{from: "\u0085\"\\", to: "\u2028\u0001", bandwidth: 1GB/s}]}"#,
            "calibration: 1\nmessage: 1us\ninside: {rate: 0.0000012}\nacross: {rate: 0.000001}",
        ] {
            let overlay = Overlay::read(text).unwrap();
            let again = Overlay::read(&overlay.to_yaml()).unwrap();
            assert_eq!((again.links.clone(), again.to_yaml()), (overlay.links.clone(), overlay.to_yaml()), "{text}");
        }
    }

    #[test]
    fn rates_and_latencies_are_put_over_a_network() {
        let overlay = Overlay::read("calibration: 1\ninside: {rate: 0.5}\nacross: {rate: 0.8, latency: 7us}").unwrap();
        assert_eq!(overlay.message(), None);
        let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
        let measured = overlay.apply(&topology).unwrap();
        assert_eq!(measured.name(), topology.name());
        let mut kinds: Vec<(u64, u64, u64)> = topology
            .links()
            .iter()
            .zip(measured.links())
            .map(|(before, after)| {
                (before.capacity.bytes_per_sec(), after.capacity.bytes_per_sec(), after.latency.nanos())
            })
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        let (nic, nv) = (25_000_000_000, 300_000_000_000);
        // Into the box, out of it, and inside.
        assert_eq!(kinds, [(nic, nic / 5 * 4, 0), (nic, nic / 5 * 4, 7_000), (nv, nv / 2, 0)]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, said) in [
            ("calibration: 2", "the only format"),
            ("message: 3us", "calibration"),
            ("calibration: 1\nrates: 3", "unknown field"),
            ("calibration: 1\nmessage: soon", "message is soon"),
            ("calibration: 1\nmessage: 2s", "a second at most"),
            ("calibration: 1\ninside: {rate: 0}", "inside.rate is 0"),
            ("calibration: 1\nacross: {rate: .inf}", "across.rate is inf"),
            ("calibration: 1\ninside: {rate: 1.21}", "state a faster rate in the network"),
            ("calibration: 1\nlinks: [{from: a, to: b, bandwidth: 0}]", "links.bandwidth is 0"),
            ("[", ""),
        ] {
            let error = Overlay::read(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
