//! What a lab measured, for people and for machines.

use num_traits::ToPrimitive as _;
use serde::Serialize;

use super::case::{Case, gigabytes};
use super::measure::{LinkBytes, Measured};
use super::rivals::Rival;
use crate::exit::Failure;
use crate::messages::{is_verbose, warn};
use crate::output::{gigabytes_per_sec, print_json, to_thousandths};
use crate::sizes::in_words;
use crate::stdout::print;
use crate::table::Table;

/// JSON object of the command.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) entries: Vec<Entry>,
}

/// One plan on one network.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    network: String,
    collective: &'static str,
    algorithm: String,
    /// What was taken down before.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    ranks: u32,
    /// Emulated bits per second for each GB/s.
    scale_bits_per_gbps: u64,
    size_bytes: u64,
    piece_bytes: u64,
    connections: u32,
    /// Rates as the topology states them.
    #[serde(rename = "predicted_GBps")]
    predicted: f64,
    #[serde(rename = "simulated_GBps")]
    simulated: f64,
    #[serde(rename = "measured_GBps")]
    measured: Vec<f64>,
    /// Best run to the prediction of large messages.
    best_to_predicted: f64,
    median_to_predicted: f64,
    /// Best run to the simulation of this size with these pieces.
    best_to_simulated: f64,
    /// Of links that the plan uses, counted to planned.
    bytes_least: f64,
    bytes_most: f64,
    drops: u64,
    /// Processor time of all ranks to the time of the runs.
    cores: f64,
    links: Vec<LinkRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open_mpi: Vec<RivalRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_mpi_problem: Option<String>,
}

/// A direction between neighbours, in one run.
#[derive(Debug, Serialize)]
struct LinkRow {
    from: String,
    to: String,
    planned_bytes: u64,
    /// Planned for the opposite direction, which is answered here.
    answered_bytes: u64,
    counted_bytes: u64,
    drops: u64,
}

/// An algorithm of Open MPI.
#[derive(Debug, Serialize)]
struct RivalRow {
    algorithm: String,
    /// `null` if it took a third longer than the best.
    #[serde(rename = "measured_GBps")]
    measured: Option<f64>,
}

fn ratio(part: f64, whole: f64) -> f64 {
    to_thousandths(part / whole)
}

fn number(value: u64) -> f64 {
    value.to_f64().unwrap_or(f64::NAN)
}

impl Entry {
    pub(super) fn new(network: &str, case: &Case, failed: Option<String>, measured: Measured) -> Self {
        let Measured { runs, links } = measured;
        let mut times: Vec<u64> = runs.iter().map(|run| run.nanos).collect();
        let rates = times.iter().map(|&nanos| gigabytes(case.size_bytes, nanos, case.scale));
        let rates: Vec<f64> = rates.map(to_thousandths).collect();
        times.sort_unstable();
        let (best, median) = (times.first().copied().unwrap_or(u64::MAX), times.get(times.len() / 2).copied());
        let used = links.iter().filter(|link| link.planned > 0);
        let bytes = used.map(|link| number(link.counted) / number(link.planned));
        let (least, most) =
            bytes.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), part| (low.min(part), high.max(part)));
        let processor: u64 = runs.iter().map(|run| run.processor_ns).sum();
        let all: u64 = times.iter().sum();
        let predicted = gigabytes_per_sec(&case.material.verdict.algbw);
        Self {
            network: network.to_owned(),
            collective: case.material.schedule.collective.kind().name(),
            algorithm: case.name.clone(),
            failed,
            ranks: case.material.topology.rank_count(),
            scale_bits_per_gbps: case.scale.bits_per_gigabyte(),
            size_bytes: case.size_bytes,
            piece_bytes: case.piece_bytes,
            connections: case.compiled.connection_count,
            predicted,
            simulated: to_thousandths(gigabytes(case.size_bytes, case.simulated_ns, case.scale)),
            measured: rates,
            best_to_predicted: ratio(number(case.predicted_ns), number(best)),
            median_to_predicted: ratio(number(case.predicted_ns), number(median.unwrap_or(u64::MAX))),
            best_to_simulated: ratio(number(case.simulated_ns), number(best)),
            bytes_least: to_thousandths(least),
            bytes_most: to_thousandths(most),
            drops: links.iter().map(|link| link.drops).sum(),
            cores: to_thousandths(number(processor) / number(all.max(1))),
            links: links.into_iter().map(LinkRow::of).collect(),
            open_mpi: Vec::new(),
            open_mpi_problem: None,
        }
    }

    /// The best rate, as the topology states it.
    pub(super) fn best(&self) -> f64 {
        self.measured.iter().copied().fold(0.0, f64::max)
    }

    pub(super) fn predicted(&self) -> f64 {
        self.predicted
    }

    pub(super) fn simulated(&self) -> f64 {
        self.simulated
    }

    /// The best of Open MPI's algorithms.
    pub(super) fn best_rival(&self) -> Option<(&str, f64)> {
        let rates = self.open_mpi.iter().filter_map(|row| Some((row.algorithm.as_str(), row.measured?)));
        rates.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// How it went, in words, while others are still to come.
    pub(super) fn outcome(&self) -> String {
        let Self { best_to_predicted, best_to_simulated, .. } = self;
        format!("  {best_to_predicted:.3} of the predicted rate, {best_to_simulated:.3} of the simulated one")
    }

    /// What it is, in words.
    pub(super) fn title(&self) -> String {
        let failed = self.failed.as_ref().map_or(String::new(), |failed| format!(" after {failed}"));
        format!("{} {} {}{failed}", self.network, self.collective, self.algorithm)
    }
}

impl LinkRow {
    fn of(link: LinkBytes) -> Self {
        let LinkBytes { from, to, planned, answered, counted, drops } = link;
        Self { from, to, planned_bytes: planned, answered_bytes: answered, counted_bytes: counted, drops }
    }
}

impl Report {
    /// Sets what Open MPI took beside the first of the latest network's plans.
    pub(super) fn rivals(&mut self, measured: Result<Vec<Rival>, Failure>) {
        let Some(network) = self.entries.last().map(|entry| (entry.network.clone(), entry.collective)) else { return };
        let first = self.entries.iter_mut().find(|entry| (entry.network.clone(), entry.collective) == network);
        let Some(entry) = first else { return };
        match measured {
            Ok(rivals) => {
                let scale = canopy_lab::Scale::from_bits_per_gigabyte(entry.scale_bits_per_gbps);
                let rate = |rival: &Rival| Some(to_thousandths(gigabytes(rival.size_bytes, rival.best_ns?, scale?)));
                entry.open_mpi = rivals
                    .iter()
                    .map(|rival| RivalRow { algorithm: rival.name.clone(), measured: rate(rival) })
                    .collect();
            }
            Err(failure) => {
                warn(format!("Open MPI was not measured: {}", failure.sentence()));
                entry.open_mpi_problem = Some(failure.sentence());
            }
        }
    }

    /// Prints the table, or the object.
    pub(super) fn print(&self, is_json: bool) -> Result<(), Failure> {
        if is_json { print_json("lab", self) } else { print(&self.readable()) }
    }

    fn readable(&self) -> String {
        let mut table = Table::new(&[
            "NETWORK",
            "COLLECTIVE",
            "PLAN",
            "SIZE#",
            "PREDICTED#",
            "SIMULATED#",
            "BEST#",
            "/PRED#",
            "/SIM#",
            "MEDIAN#",
            "BYTES#",
            "DROPS#",
            "CORES#",
            "OPEN MPI",
            "FACTOR#",
        ]);
        let rate = |rate: f64| format!("{rate:.1}");
        let part = |part: f64| format!("{part:.3}");
        for entry in &self.entries {
            let rival = entry.best_rival();
            let plan = entry
                .failed
                .as_ref()
                .map_or(entry.algorithm.clone(), |failed| format!("{} ({failed})", entry.algorithm));
            table.row([
                entry.network.clone(),
                entry.collective.to_owned(),
                plan,
                in_words(entry.size_bytes),
                rate(entry.predicted),
                part(ratio(entry.simulated, entry.predicted)),
                rate(entry.best()),
                part(entry.best_to_predicted),
                part(entry.best_to_simulated),
                part(entry.median_to_predicted),
                format!("{:.3}-{:.3}", entry.bytes_least, entry.bytes_most),
                entry.drops.to_string(),
                format!("{:.2}", entry.cores),
                rival.map(|(name, rate)| format!("{name} {:.3}", rate / entry.predicted)).unwrap_or_default(),
                rival.map(|(_, rate)| format!("{:.1}", entry.best() / rate)).unwrap_or_default(),
            ]);
        }
        let mut text = table.text();
        if is_verbose() {
            for entry in &self.entries {
                text += &format!("\n\n{}\n{}", entry.title(), entry.links_table());
            }
        }
        text
    }
}

impl Entry {
    fn links_table(&self) -> String {
        let mut table = Table::new(&["FROM", "TO", "PLANNED#", "COUNTED#", "RATIO#", "DROPS#"]);
        for link in &self.links {
            let ratio = number(link.counted_bytes) / number(link.planned_bytes.max(1));
            let ratio = if link.planned_bytes > 0 { format!("{ratio:.3}") } else { "-".to_owned() };
            table.row([
                link.from.clone(),
                link.to.clone(),
                link.planned_bytes.to_string(),
                link.counted_bytes.to_string(),
                ratio,
                link.drops.to_string(),
            ]);
        }
        table.text()
    }
}
