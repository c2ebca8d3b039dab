//! What `canopy tools find` prints, for programs and for people.

use std::collections::BTreeMap;

use canopy_proto::Exact as _;
use canopy_proto::v1::{FindNetworksRequest, FindNetworksResponse, FoundTopology};
use canopy_schedule::CollectiveKind as Kind;
use serde::Serialize;

use super::model::{Costs, Model, Network, Workload};
use crate::exit::Failure;
use crate::output::to_thousandths;
use crate::sizes::in_words;
use crate::table::Table;

/// JSON object of the command.
#[derive(Serialize)]
pub(super) struct Found {
    nodes: u32,
    degree: u32,
    links: &'static str,
    cached: bool,
    bounds: Option<Bounds>,
    model: Assumed,
    topologies: Vec<Row>,
    /// By collective: which is fastest from how many bytes on.
    choices: BTreeMap<&'static str, Vec<Best>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<Chosen>,
    lacking: Vec<Lacking>,
}

#[derive(Serialize)]
struct Bounds {
    t_l: u32,
    t_b: String,
    all_to_all_rate: String,
}

#[derive(Serialize)]
struct Assumed {
    alpha_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    launch_ns: Option<u64>,
    node_bytes_per_sec: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reduce_bytes_per_sec: Option<u64>,
}

impl Assumed {
    fn of(costs: Costs) -> Self {
        let Costs { alpha_ns, launch_ns, node_bytes_per_sec, reduce_bytes_per_sec } = costs;
        let launch_ns = Some(launch_ns).filter(|&launch_ns| launch_ns > 0);
        Self { alpha_ns, launch_ns, node_bytes_per_sec, reduce_bytes_per_sec }
    }

    /// For people.
    fn in_words(&self) -> String {
        let micros = |nanos| decimal_text(nanos, 1_000);
        let gigabytes = |bytes| decimal_text(bytes, 1_000_000_000);
        let launch = self.launch_ns.map(|launch| format!(", {} us a call", micros(launch)));
        let sums = self.reduce_bytes_per_sec.map(|rate| format!(", sums at {} GB/s", gigabytes(rate)));
        let more: String = [launch, sums].into_iter().flatten().collect();
        format!("{} us a step and {} GB/s a node{more}", micros(self.alpha_ns), gigabytes(self.node_bytes_per_sec))
    }
}

#[derive(Serialize)]
struct Row {
    expression: String,
    t_l: u32,
    t_b: String,
    t_b_decimal: f64,
    reduce_scatter_t_b: String,
    /// `exact` or `at-most`.
    t_b_kind: &'static str,
    diameter: u32,
    all_to_all: Rate,
    bandwidth_optimal: bool,
    moore_optimal: bool,
    bidirectional: bool,
    reverse_symmetric: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_us: Option<f64>,
    /// Whether the time is that of an all-to-all at a bound on its rate.
    #[serde(skip)]
    is_time_least: bool,
}

#[derive(Serialize)]
struct Rate {
    rate: String,
    rate_decimal: f64,
    /// `exact` or `bound`.
    kind: &'static str,
}

#[derive(Serialize)]
struct Best {
    from_bytes: String,
    expression: String,
}

#[derive(Serialize)]
struct Chosen {
    collective: &'static str,
    size_bytes: u64,
    expression: String,
    time_us: f64,
}

#[derive(Serialize)]
struct Lacking {
    name: String,
    t_l: u32,
    t_b: String,
}

impl Found {
    pub(super) fn new(
        request: &FindNetworksRequest,
        reply: &FindNetworksResponse,
        networks: &[Network],
        model: &Model,
        workload: Option<Workload>,
    ) -> Result<Self, Failure> {
        let kinds = workload.map_or_else(|| vec![Kind::Allreduce, Kind::AllToAll], |workload| vec![workload.kind]);
        let expression = |index: usize| networks[index].expression.clone();
        let mut choices = BTreeMap::new();
        for kind in kinds {
            let best = model.choices(networks, kind).into_iter();
            let best = best.map(|(index, from)| Best { from_bytes: from.to_string(), expression: expression(index) });
            choices.insert(kind.name(), best.collect());
        }
        let time = |network: &Network| {
            let Workload { kind, size_bytes: Some(size_bytes) } = workload? else { return None };
            Some(to_thousandths(model.time_us(model.line(network, kind)?, size_bytes)))
        };
        let is_all_to_all = workload.is_some_and(|workload| workload.kind == Kind::AllToAll);
        let rows = reply.topologies.iter().zip(networks);
        let lacking = reply.lacking.iter();
        Ok(Self {
            nodes: request.nodes,
            degree: request.degree,
            links: if request.bidirectional { "bidirectional" } else { "any" },
            cached: reply.cached,
            bounds: reply.bounds.as_ref().map(|bounds| Bounds {
                t_l: bounds.steps,
                t_b: bounds.bandwidth.exact().to_owned(),
                all_to_all_rate: bounds.all_to_all_rate.exact().to_owned(),
            }),
            model: Assumed::of(model.costs),
            topologies: rows.map(|(found, network)| Row::new(found, network, time(network), is_all_to_all)).collect(),
            choices,
            workload: workload.and_then(|workload| chosen(networks, model, workload)),
            lacking: lacking
                .map(|one| Lacking { name: one.name.clone(), t_l: one.steps, t_b: one.bandwidth.exact().to_owned() })
                .collect(),
        })
    }

    pub(super) fn readable(&self) -> String {
        let has_times = self.topologies.iter().any(|row| row.time_us.is_some());
        let mut heading = vec!["TOPOLOGY", "T_L#", "T_B#", "T_B EXACTLY", "DIAMETER#", "ALL-TO-ALL#", "", "FLAGS"];
        heading.extend(has_times.then_some("TIME us#"));
        let mut table = Table::new(&heading);
        for row in &self.topologies {
            let mut cells = vec![
                row.expression.clone(),
                row.t_l.to_string(),
                format!("{:.3}", row.t_b_decimal),
                row.fractions(),
                row.diameter.to_string(),
                format!("{:.3e}", row.all_to_all.rate_decimal),
                row.all_to_all.kind.to_owned(),
                row.flags(),
            ];
            cells.extend(row.time_us.map(|time| format!("{}{time:.1}", row.at_least())));
            table.row(cells);
        }
        if let Some(bounds) = &self.bounds {
            let rate = decimal(&bounds.all_to_all_rate);
            let t_b = format!("{:.3}", decimal(&bounds.t_b));
            let cells = ["(no network can do better)".to_owned(), bounds.t_l.to_string(), t_b, bounds.t_b.clone()];
            let more = [bounds.t_l.to_string(), format!("{rate:.3e}"), "bound".to_owned(), String::new()];
            table.row(cells.into_iter().chain(more).chain(has_times.then(String::new)));
        }
        let mut lines = vec![table.text()];
        for (collective, best) in &self.choices {
            lines.push(String::new());
            lines.push(format!("fastest for {collective} at {}:", self.model.in_words()));
            for one in best {
                let from = one.from_bytes.parse::<u64>().map_or_else(|_| format!("{} B", one.from_bytes), in_words);
                lines.push(format!("  from {from}: {}", one.expression));
            }
        }
        if let Some(chosen) = &self.workload {
            let size = in_words(chosen.size_bytes);
            lines.push(String::new());
            let row = self.topologies.iter().find(|row| row.expression == chosen.expression);
            let at_least = row.map_or("", Row::at_least);
            lines.push(format!(
                "{} of {size}: {}, {at_least}{:.1} us",
                chosen.collective, chosen.expression, chosen.time_us
            ));
        }
        for lacking in &self.lacking {
            lines.push(format!(
                "missing: {} (T_L {}, T_B {}) is published, but canopy cannot build it",
                lacking.name, lacking.t_l, lacking.t_b
            ));
        }
        lines.join("\n")
    }
}

impl Row {
    fn new(found: &FoundTopology, network: &Network, time_us: Option<f64>, is_all_to_all: bool) -> Self {
        Self {
            expression: network.expression.clone(),
            t_l: network.steps,
            t_b: found.bandwidth.exact().to_owned(),
            t_b_decimal: decimal(found.bandwidth.exact()),
            reduce_scatter_t_b: found.reduce_scatter_bandwidth.exact().to_owned(),
            t_b_kind: if found.at_most { "at-most" } else { "exact" },
            diameter: network.diameter,
            all_to_all: Rate {
                rate: found.all_to_all_rate.exact().to_owned(),
                rate_decimal: decimal(found.all_to_all_rate.exact()),
                kind: if found.all_to_all_exact { "exact" } else { "bound" },
            },
            bandwidth_optimal: found.bandwidth_optimal,
            moore_optimal: found.moore_optimal,
            bidirectional: found.bidirectional,
            reverse_symmetric: found.reverse_symmetric,
            time_us,
            is_time_least: is_all_to_all && !found.all_to_all_exact,
        }
    }

    /// Before a time that follows from a rate that may be out of reach.
    fn at_least(&self) -> &'static str {
        if self.is_time_least { ">= " } else { "" }
    }

    /// Of both directions where they differ.
    fn fractions(&self) -> String {
        let at_most = if self.t_b_kind == "exact" { "" } else { "<= " };
        match self.reduce_scatter_t_b == self.t_b {
            true => format!("{at_most}{}", self.t_b),
            false => format!("{at_most}{} (reduce-scatter {})", self.t_b, self.reduce_scatter_t_b),
        }
    }

    fn flags(&self) -> String {
        let flags = [
            (self.bandwidth_optimal, "bandwidth-optimal"),
            (self.moore_optimal, "moore-optimal"),
            (self.bidirectional, "bidirectional"),
            (self.reverse_symmetric && !self.bidirectional, "reverse-symmetric"),
        ];
        flags.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
    }
}

/// The one that is fastest at the size of the workload, by exact comparison.
fn chosen(networks: &[Network], model: &Model, workload: Workload) -> Option<Chosen> {
    let size_bytes = workload.size_bytes?;
    let choices = model.choices(networks, workload.kind);
    let &(index, _) = choices.iter().rev().find(|&&(_, from)| from <= u128::from(size_bytes))?;
    let network = networks.get(index)?;
    let time_us = to_thousandths(model.time_us(model.line(network, workload.kind)?, size_bytes));
    Some(Chosen { collective: workload.kind.name(), size_bytes, expression: network.expression.clone(), time_us })
}

/// A fraction's value, for people.
fn decimal(fraction: &str) -> f64 {
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    fraction.split_once('/').map_or_else(|| number(fraction), |(top, bottom)| number(top) / number(bottom))
}

/// A whole number of parts, in units of so many of them.
fn decimal_text(parts: u64, unit: u64) -> String {
    let (whole, rest) = (parts / unit, parts % unit);
    let digits = unit.ilog10() as usize;
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:0digits$}").trim_end_matches('0').to_owned() }
}
