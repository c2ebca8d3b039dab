//! What commands print for machines, and the parts that several commands' JSON objects share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use canopy_planner::TopologyKey;
use canopy_proto::Exact as _;
use canopy_proto::v1::{self, Artifact, InNetwork, Plan, Reach, StepCost};
use canopy_topology::{Rate, Ratio, Topology, content_hash};
use canopy_wire::{sha256_hex, topology_summary};
use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use crate::messages::is_verbose;
use crate::protocol_words::{UNKNOWN, word};
use crate::runtime::format_name;
use crate::sizes::UNITS;
use crate::stdout::write_stdout;
use crate::table::count;
use crate::whole_file::write_file;

/// Version of canopy's text formats.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// What lists the files of a folder.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The kind of a manifest of a job's plans.
pub(crate) const JOB_KIND: &str = "job-bundle";
/// The kind of a manifest of plans by message size.
pub(crate) const BUNDLE_KIND: &str = "plan-bundle";
/// The kind of a manifest of plans that were made in common.
pub(crate) const JOINT_KIND: &str = "joint-plans";
/// The network that the groups of such a folder share.
pub(crate) const GROUPS_NETWORK: &str = "topology.json";
/// The kind of a manifest of the plans of a job's groups, each in its share of the links.
pub(crate) const GROUPS_KIND: &str = "group-plans";

/// What a command prints for machines: which command, and what it has to say.
#[derive(Serialize)]
struct Report<'a, T> {
    canopy: u32,
    command: &'a str,
    #[serde(flatten)]
    content: &'a T,
}

/// Writes one object on one line: the last line of a command's output under `--json`.
pub(crate) fn print_json<T: Serialize>(command: &str, content: &T) -> Result<(), Failure> {
    let report = Report { canopy: FORMAT_VERSION, command, content };
    let text = serde_json::to_string(&report).map_err(|error| Failure::fault(format!("cannot write JSON: {error}")))?;
    write_stdout((text + "\n").as_bytes())
}

/// Writes an object with one member.
pub(crate) fn print_member<T: Serialize>(command: &str, name: &str, value: T) -> Result<(), Failure> {
    print_json(command, &BTreeMap::from([(name, value)]))
}

/// The text of a file with this in JSON.
pub(crate) fn pretty_json(content: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(content).map_err(|error| Failure::fault(error.to_string()))?;
    Ok(text + "\n")
}

/// A folder whose path can stand in variables that list files.
pub(crate) fn listable(folder: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(folder)
        .map_err(|error| Failure::input(format!("{} cannot be made absolute: {error}", folder.display())))?;
    match absolute.to_str() {
        Some(text) if !text.contains(|c: char| c == ':' || c.is_control()) => Ok(absolute),
        _ => Err(Failure::input(format!(
            "the folder {} cannot be listed in a variable: runtimes separate files by `:`",
            absolute.display()
        ))
        .help("name a folder whose path is UTF-8 without `:` and line ends")),
    }
}

/// A rate as members of JSON objects: exactly, in bytes per second, and for reading.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AlgbwSummary {
    pub(crate) algbw: String,
    #[serde(rename = "algbw_GBps")]
    pub(crate) gigabytes: f64,
}

impl AlgbwSummary {
    pub(crate) fn of(rate: &Rate) -> Self {
        Self { algbw: rate.to_string(), gigabytes: gigabytes_per_sec(rate) }
    }

    /// As a server states it; `None` if it states none.
    pub(crate) fn stated(text: &str) -> Option<Self> {
        text.parse().ok().as_ref().map(Self::of)
    }
}

/// The `topology` member of every JSON object.
#[derive(Debug, Serialize)]
pub(crate) struct TopologySummary {
    pub(crate) hash: String,
    pub(crate) hash_kind: String,
    pub(crate) ranks: u32,
    pub(crate) nodes: u32,
    pub(crate) links: u32,
}

impl TopologySummary {
    /// Counts and the hash that servers know the topology by: that of its shape, or of its content where the shape takes too
    /// much work to find.
    pub(crate) fn of(topology: &Topology) -> Self {
        Self::of_server(&topology_summary(topology, &TopologyKey::of(topology))).expect("every hash is of some kind")
    }

    /// The same as a server says it; none where it does not say what the hash is of.
    pub(crate) fn of_server(summary: &v1::TopologySummary) -> Option<Self> {
        Some(Self::said(summary)).filter(|summary| summary.hash_kind != UNKNOWN)
    }

    /// What a server says, whatever that is.
    pub(crate) fn said(summary: &v1::TopologySummary) -> Self {
        let hash_kind = word(summary.hash_kind().as_str_name(), "HASH_KIND");
        let v1::TopologySummary { ref hash, ranks, nodes, links, .. } = *summary;
        Self { hash: hash.clone(), hash_kind, ranks, nodes, links }
    }

    /// Counts and content hash.
    pub(crate) fn by_content(topology: &Topology) -> Self {
        let count = |length: usize| u32::try_from(length).expect("topology limits keep counts within u32");
        Self {
            hash: content_hash(topology).to_string(),
            hash_kind: "content".to_owned(),
            ranks: topology.rank_count(),
            nodes: count(topology.nodes().len()),
            links: count(topology.links().len()),
        }
    }
}

/// How far trees and paths of a plan reach: members of JSON objects that describe plans.
#[derive(Debug, Serialize)]
pub(crate) struct ReachSummary {
    depth_mean: f64,
    hops_max: u32,
    hops_mean: f64,
}

impl ReachSummary {
    /// What a server says of a plan; none where it says nothing.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let Reach { depth_mean, hops_max, hops_mean } = plan.reach?;
        Some(Self { depth_mean: rounded(depth_mean), hops_max, hops_mean: rounded(hops_mean) })
    }

    /// For people: the greatest depth is that of the plan.
    pub(crate) fn readable(&self, depth_max: u32) -> String {
        let Self { depth_mean, hops_max, hops_mean } = self;
        format!("depth mean {depth_mean}, at most {depth_max}; links crossed mean {hops_mean}, at most {hops_max}")
    }
}

/// What the steps of a plan cost: a member of JSON objects that describe plans.
#[derive(Debug, Serialize)]
pub(crate) struct StepCostSummary {
    t_l: u32,
    t_b: String,
    unit: &'static str,
}

impl StepCostSummary {
    /// What a server says of a plan; none where it says nothing.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let StepCost { count, bandwidth } = plan.step_cost.clone()?;
        Some(Self { t_l: count, t_b: bandwidth.exact().to_owned(), unit: "M/B" })
    }

    /// For people.
    pub(crate) fn readable(&self) -> String {
        let Self { t_l, t_b, unit } = self;
        format!("{}, {t_b} {unit} in all", count(*t_l, "step"))
    }
}

/// What a manifest says that it is.
#[derive(Debug, Deserialize)]
pub(crate) struct ManifestKind {
    /// Version of the format.
    #[serde(default)]
    pub(crate) canopy: u32,
    /// What kind of folder it describes.
    pub(crate) kind: String,
}

/// One entry of the `files` member of JSON objects and of manifests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileSummary {
    pub(crate) format: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instances: Option<u32>,
    /// Layers of routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) layers: Option<u32>,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) bytes: u64,
    #[serde(default)]
    pub(crate) sha256: String,
}

impl FileSummary {
    /// A file of so many bytes with this digest.
    pub(crate) fn new(format: impl Into<String>, path: &Path, bytes: u64, sha256: String) -> Self {
        let (format, path) = (format.into(), path.display().to_string());
        Self { format, profile: None, instances: None, layers: None, path, bytes, sha256 }
    }

    /// A file of a plan, as the server describes it.
    pub(crate) fn of_artifact(artifact: &Artifact, path: &Path) -> Self {
        let summary = Self::new(format_name(artifact.format()), path, artifact.size_bytes, artifact.sha256.clone());
        summary.for_profile(&artifact.profile)
    }

    /// Writes a file as [`write_file`] does, and describes it.
    pub(crate) fn written(format: impl Into<String>, path: &Path, content: &[u8]) -> Result<Self, Failure> {
        write_file(path, content)?;
        Ok(Self::new(format, path, content.len() as u64, sha256_hex(content)))
    }

    /// The same for a runtime; none where that has no name.
    pub(crate) fn for_profile(self, profile: &str) -> Self {
        Self { profile: (!profile.is_empty()).then(|| profile.to_owned()), ..self }
    }
}

/// What people want to know at a glance of weights of shares, one for each of so many ranks, or of blocks, one for each pair.
pub(crate) fn shares_in_words(weights: &[u64], ranks: usize) -> String {
    let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let most = weights.iter().max().copied().unwrap_or_default();
    let (owner, without) = if weights.len() == ranks { ("rank", "without any") } else { ("block", "empty") };
    let without = match weights.iter().filter(|&&weight| weight == 0).count() {
        0 => String::new(),
        number => format!(", {} {without}", count(number, owner)),
    };
    format!("of different sizes: {total} units in all, at most {most} of one {owner}{without}")
}

/// GB/s for display: six significant digits, or three decimals where those say more.
pub(crate) fn gigabytes_per_sec(rate: &Rate) -> f64 {
    rounded(rate.gigabytes_per_sec())
}

/// Bytes per second in GB/s for display.
pub(crate) fn gigabytes(bytes_per_sec: u128) -> f64 {
    Rate::new(bytes_per_sec, 1_u32).map_or(0.0, |rate| gigabytes_per_sec(&rate))
}

/// `450 GB/s`: a rate for people.
pub(crate) fn rate_in_words(rate: &Rate) -> String {
    format!("{} GB/s", gigabytes_per_sec(rate))
}

/// The rate that a text states exactly, in bytes per second, for people.
pub(crate) fn stated_rate(text: &str) -> String {
    text.parse::<Rate>().map_or_else(|_| format!("{text} bytes/s"), |rate| rate_in_words(&rate))
}

/// `100 %`, or `99.2 % (124/125)`: a part of a whole for people, with the exact fraction where it is short, or details
/// are asked for.
pub(crate) fn percent_in_words(text: &str) -> String {
    const SHORT: usize = 9;
    let exactly = if text.len() <= SHORT || is_verbose() { format!(" ({text})") } else { String::new() };
    match text.parse::<Ratio>() {
        Ok(part) if part.is_one() => "100 %".to_owned(),
        // Rounded down, so that only the whole is 100 %.
        Ok(part) => format!("{} %{exactly}", (part.to_f64() * 1e3).floor() / 10.0),
        Err(_) => text.to_owned(),
    }
}

/// `100 %` or `99.2 %`: a part of a whole for tables, where only the whole is 100 %.
pub(crate) fn rounded_percent(text: &str) -> String {
    let percent = percent_in_words(text);
    percent.split(" (").next().unwrap_or_default().to_owned()
}

/// A time that a server states as `num/den` seconds.
pub(crate) fn seconds(text: &str) -> f64 {
    text.parse::<Ratio>().map_or(f64::NAN, |seconds| seconds.to_f64())
}

/// `1.500 ms`: three places of the unit that fits.
pub(crate) fn seconds_in_words(seconds: f64) -> String {
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1e-9, "ns"));
    format!("{:.3} {name}", seconds / unit)
}

/// `1.5 MiB`: an amount of memory for people.
pub(crate) fn bytes_in_words(bytes: u64) -> String {
    match UNITS.iter().find(|(_, factor)| bytes >= *factor) {
        Some((name, factor)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(*factor);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

/// Three decimals; more digits of a wall time are noise.
pub(crate) fn to_thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Six significant digits, or three decimals where those say more.
fn rounded(value: f64) -> f64 {
    let decimals = if value > 0.0 && value.is_finite() { (5.0 - value.log10().floor()).max(3.0) } else { 3.0 };
    // Through text, because a decimal fraction times a power of ten and back may gain a digit.
    format!("{value:.0$}", {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "3 to 330 by construction")]
        let decimals = decimals as usize;
        decimals
    })
    .parse()
    .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_rates_keep_what_matters() {
        for (value, text) in [
            (354.133_333_333, "354.133"),
            (50.0, "50.0"),
            (0.000_000_123_456_789, "1.23457e-7"),
            (1_843_201.0, "1843201.0"),
            (0.0, "0.0"),
            (1.0 / 3.0, "0.333333"),
        ] {
            assert_eq!(serde_json::to_string(&rounded(value)).unwrap(), text);
        }
    }

    #[test]
    fn folders_that_variables_cannot_list_are_refused() {
        assert_eq!(listable(Path::new("/run/canopy/17")).unwrap(), Path::new("/run/canopy/17"));
        assert!(listable(Path::new("relative")).unwrap().is_absolute());
        for bad in ["/run/a:b", "/run/a\nb"] {
            assert!(listable(Path::new(bad)).is_err());
        }
    }
}

/// What switches that multicast or aggregate save, on a network that has any.
#[derive(Debug, Serialize)]
pub(crate) struct InNetworkSummary {
    /// Bytes over all links for each byte of size, without and with.
    traffic_without: String,
    traffic: String,
    /// The part of the traffic that is saved.
    saved: String,
    /// Bytes per second with it.
    algbw: String,
    /// The part of the bound that is; not there of plans of earlier programs.
    #[serde(skip_serializing_if = "String::is_empty")]
    optimality: String,
}

impl InNetworkSummary {
    pub(crate) fn new(weighed: &InNetwork) -> Self {
        let InNetwork { traffic_without, traffic, saved, algbw, optimality } = weighed.clone();
        Self {
            traffic_without: traffic_without.exact().to_owned(),
            traffic: traffic.exact().to_owned(),
            saved: saved.exact().to_owned(),
            algbw: algbw.exact().to_owned(),
            optimality: optimality.exact().to_owned(),
        }
    }

    /// Whether it is faster than without.
    pub(crate) fn is_more_than(&self, without: &AlgbwSummary) -> bool {
        let rates = self.algbw.parse::<Rate>().ok().zip(without.algbw.parse::<Rate>().ok());
        rates.is_some_and(|(with, without)| with > without)
    }

    /// The rate with it, in words.
    pub(crate) fn rate(&self) -> String {
        stated_rate(&self.algbw)
    }

    /// The part of the bound that it is; empty of plans of earlier programs.
    pub(crate) fn optimality(&self) -> &str {
        &self.optimality
    }

    /// The same in words; what is said already are its rate and its part of the bound.
    pub(crate) fn words(&self, is_rate_said: bool) -> String {
        let Self { traffic_without, traffic, saved, algbw, optimality } = self;
        let part = match optimality.as_str() {
            "" => String::new(),
            "1/1" => ", proven optimal".to_owned(),
            part => format!(", {} of the proven bound", percent_in_words(part)),
        };
        let rate = if is_rate_said { String::new() } else { format!("{}{part}; ", stated_rate(algbw)) };
        let saves = format!("saves {saved} of the traffic ({traffic} of {traffic_without} bytes over links per byte)");
        format!("with switches that replicate and add: {rate}{saves}")
    }
}
