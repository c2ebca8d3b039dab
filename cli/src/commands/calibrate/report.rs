//! What was found, for people and for programs.

use canopy_calibrate::{Estimate, Fit, Parameters, SlowLink};
use canopy_simulate::ALPHA_NS_USUAL;
use serde::Serialize;

use crate::output::{FileSummary, TopologySummary};
use crate::table::{Table, count};

/// All that was found.
pub(super) struct Found {
    /// None without runs of collectives.
    pub(super) fit: Option<Fit>,
    pub(super) slow: Vec<SlowLink>,
    pub(super) times: usize,
    pub(super) messages: usize,
}

/// JSON object of the command.
#[derive(Serialize)]
pub(super) struct CalibrateSummary {
    topology: TopologySummary,
    /// Times of collectives, and messages between pairs.
    times: usize,
    messages: usize,
    parameters: Vec<ParameterSummary>,
    /// Median difference between simulated and measured times, as a part of the latter.
    #[serde(skip_serializing_if = "Option::is_none")]
    off: Option<OffSummary>,
    slow_links: Vec<LinkSummary>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileSummary>,
}

#[derive(Serialize)]
struct ParameterSummary {
    name: &'static str,
    described: f64,
    measured: f64,
    /// Standard error.
    error: f64,
    #[serde(skip)]
    is_latency: bool,
}

#[derive(Serialize)]
struct OffSummary {
    described: f64,
    measured: f64,
}

#[derive(Serialize)]
struct LinkSummary {
    from: String,
    to: String,
    #[serde(rename = "described_GBps")]
    described: f64,
    #[serde(rename = "reached_GBps")]
    reached: f64,
    times_as_long: f64,
    confidence: f64,
    messages: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    or_else: Vec<(String, String)>,
}

impl CalibrateSummary {
    pub(super) fn of(topology: TopologySummary, found: &Found, files: Vec<FileSummary>) -> Self {
        let described = Parameters::described(ALPHA_NS_USUAL as f64);
        let parameter = |estimate: &Estimate| ParameterSummary {
            name: estimate.parameter.name(),
            described: described.get(estimate.parameter),
            measured: estimate.value,
            error: estimate.error,
            is_latency: estimate.parameter.is_latency(),
        };
        let link = |link: &SlowLink| LinkSummary {
            from: link.from.clone(),
            to: link.to.clone(),
            described: link.described.bytes_per_sec() as f64 / 1e9,
            reached: link.reached.bytes_per_sec() as f64 / 1e9,
            times_as_long: link.times_as_long,
            confidence: link.confidence,
            messages: link.messages,
            or_else: link.or_else.clone(),
        };
        Self {
            topology,
            times: found.times,
            messages: found.messages,
            parameters: found.fit.iter().flat_map(|fit| &fit.estimates).map(parameter).collect(),
            off: found.fit.as_ref().map(|fit| OffSummary { described: fit.off_before, measured: fit.off_after }),
            slow_links: found.slow.iter().map(link).collect(),
            files,
        }
    }

    pub(super) fn readable(&self, name: &str) -> String {
        let mut lines = vec![format!(
            "{name}: {} of collectives, {} between pairs",
            count(self.times, "time"),
            count(self.messages, "message")
        )];
        if !self.parameters.is_empty() {
            let mut table = Table::new(&["PARAMETER", "DESCRIBED#", "MEASURED#", "±#"]);
            for one in &self.parameters {
                let text = |value: f64| match one.is_latency {
                    true => format!("{:.3} µs", value / 1e3),
                    false => format!("{value:.4}"),
                };
                table.row([one.name.to_owned(), text(one.described), text(one.measured), text(one.error)]);
            }
            lines.push(table.text());
        }
        if let Some(off) = &self.off {
            lines.push(format!(
                "off        {:.1} % as described, {:.1} % as measured (median difference of simulated times)",
                100.0 * off.described,
                100.0 * off.measured
            ));
        }
        if self.messages > 0 && self.slow_links.is_empty() {
            lines.push("slow       no link is slower than described, as far as noise lets it be seen".to_owned());
        }
        for link in &self.slow_links {
            let others: Vec<String> = link.or_else.iter().map(|(from, to)| format!("{from} -> {to}")).collect();
            let others = if others.is_empty() { String::new() } else { format!("; or {}", others.join(", or ")) };
            lines.push(format!(
                "slow       {} -> {}: {:.3} GB/s of {:.3}, by {}, {:.2} % sure{others}",
                link.from,
                link.to,
                link.reached,
                link.described,
                count(link.messages, "message"),
                100.0 * link.confidence
            ));
        }
        lines.extend(self.files.iter().map(|file| format!("wrote      {}", file.path)));
        lines.join("\n")
    }
}
