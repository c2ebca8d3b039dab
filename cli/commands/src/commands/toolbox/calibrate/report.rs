//! What was found, for people and for programs.

use canopy_calibrate::{Estimate, Fit, Parameter, Parameters, SlowLink, Undetermined};
use canopy_simulate::ALPHA_NS_USUAL;
use serde::Serialize;

use super::misfits::{Misfit, misfits};
use super::refused::reason;
use super::runs::Runs;
use crate::output::{FileSummary, TopologySummary};
use crate::table::{Table, count};

/// Most times that do not fit in the text.
const MISFITS_SHOWN: usize = 5;

/// All that was found.
pub(super) struct Found<'a> {
    /// None without runs of collectives.
    pub(super) fit: Option<Fit>,
    pub(super) slow: Vec<SlowLink>,
    pub(super) runs: &'a Runs,
    pub(super) messages: usize,
    /// Whether the user wants to know what each call takes once.
    pub(super) is_launch_asked: bool,
}

/// JSON object of the command.
#[derive(Serialize)]
pub(super) struct CalibrateSummary {
    topology: TopologySummary,
    /// Times of collectives, and messages between pairs.
    times: usize,
    messages: usize,
    parameters: Vec<ParameterSummary>,
    /// Parameters that are left as described.
    open: Vec<OpenSummary>,
    /// What a call of a library takes once, if runs tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    launch_ns: Option<f64>,
    runs: Vec<RunSummary>,
    /// Times that do not fit, the worst first.
    misfits: Vec<Misfit>,
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
struct OpenSummary {
    name: &'static str,
    reason: String,
}

/// A run and what it is taken for.
#[derive(Serialize)]
struct RunSummary {
    file: String,
    collective: String,
    topology: String,
    taken_for: String,
    times: usize,
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
    pub(super) fn of(topology: TopologySummary, found: &Found<'_>, files: Vec<FileSummary>) -> Self {
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
        let estimates = || found.fit.iter().flat_map(|fit| &fit.estimates);
        let is_launch = |estimate: &&Estimate| estimate.parameter == Parameter::Launch;
        let is_told = |open: &&Undetermined| open.parameter != Parameter::Launch || found.is_launch_asked;
        let open = found.fit.iter().flat_map(|fit| &fit.open).filter(is_told);
        let runs = found.runs.each().map(|(timed, reading)| RunSummary {
            file: timed.file.clone(),
            collective: timed.kind.to_string(),
            topology: timed.network.clone(),
            taken_for: timed.taken_for(reading),
            times: timed.points.len(),
        });
        Self {
            topology,
            times: found.runs.observed().len(),
            messages: found.messages,
            parameters: estimates().filter(|one| !is_launch(one)).map(parameter).collect(),
            open: open.map(|open| OpenSummary { name: open.parameter.name(), reason: reason(open) }).collect(),
            launch_ns: estimates().find(is_launch).map(|one| one.value),
            runs: runs.collect(),
            misfits: found.fit.as_ref().map(|fit| misfits(fit, found.runs)).unwrap_or_default(),
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
        for run in &self.runs {
            let times = count(run.times, "time");
            let kind = &run.collective;
            lines.push(format!("run        {}: {times} of {kind} on {}, as {}", run.file, run.topology, run.taken_for));
        }
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
        for open in &self.open {
            lines.push(format!("open       {}: as described; {}", open.name, open.reason));
        }
        if let Some(launch_ns) = self.launch_ns {
            lines.push(format!("launch     {:.3} µs once for each call, which no file states", launch_ns / 1e3));
        }
        if let Some(off) = &self.off {
            lines.push(format!(
                "off        {:.1} % as described, {:.1} % as measured (median difference of simulated times)",
                100.0 * off.described,
                100.0 * off.measured
            ));
        }
        for misfit in self.misfits.iter().take(MISFITS_SHOWN) {
            lines.push(format!("misfit     {}", misfit.line()));
        }
        if let Some(rest) = self.misfits.len().checked_sub(MISFITS_SHOWN + 1) {
            lines.push(format!("misfit     {} more", rest + 1));
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
