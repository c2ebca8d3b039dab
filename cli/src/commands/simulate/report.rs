//! What a simulation found, for people and as JSON.

use std::cmp::Reverse;
use std::time::Duration;

use canopy_schedule::CollectiveKind;
use canopy_simulate::{algbw, busbw, least_time_ps};
use canopy_topology::{LinkIndex, Rank, Rate, Topology};
use serde::Serialize;

use super::{Piece, Run, SharingName, SimulateArgs, SyncName, plot};
use crate::args::name_of;
use crate::exit::Failure;
use crate::material::Material;
use crate::output::{FileSummary, TopologySummary, gigabytes_per_sec, print_json};
use crate::sizes::in_words;
use crate::stdout;
use crate::table::{Table, count};

/// Most links that are listed.
const LINKS_MAX: usize = 16;
/// Most messages of the critical path that the text lists; JSON has all.
const LEGS_TEXT_MAX: usize = 24;

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Simulated {
    topology: TopologySummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    planned_for: Option<TopologySummary>,
    collective: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    algorithm: String,
    model: Model,
    algbw: String,
    bound: String,
    sizes: Vec<SizeSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Vec<LinkSummary>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    critical_path: Option<Vec<LegSummary>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileSummary>,
}

/// How messages are sent.
#[derive(Debug, Serialize)]
pub(super) struct Model {
    alpha_ns: u64,
    piece_bytes: Option<u64>,
    sync: SyncName,
    sharing: SharingName,
}

impl Model {
    /// As the arguments state it.
    pub(super) fn of(args: &SimulateArgs) -> Self {
        let SimulateArgs { messages, sync, sharing, .. } = args;
        Self { alpha_ns: messages.alpha_ns(), piece_bytes: messages.piece.0, sync: *sync, sharing: *sharing }
    }

    /// For people.
    pub(super) fn in_words(&self) -> String {
        let (alpha, pieces) = (Duration::from_nanos(self.alpha_ns), Piece(self.piece_bytes).in_words());
        format!("alpha {alpha:?}, {pieces}, sync {}, {} links", name_of(&self.sync), name_of(&self.sharing))
    }
}

/// One size. Rates are exact, as texts, and in GB/s for display.
#[derive(Debug, Serialize)]
pub(super) struct SizeSummary {
    pub(super) size_bytes: u64,
    pub(super) time_ps: u64,
    least_ps: Option<u64>,
    limit_ps: u64,
    algbw: String,
    #[serde(rename = "algbw_GBps")]
    algbw_gbps: f64,
    #[serde(rename = "busbw_GBps")]
    pub(super) busbw_gbps: f64,
    of_bound: f64,
    messages: u64,
    events: u64,
}

#[derive(Debug, Serialize)]
struct LinkSummary {
    from: String,
    to: String,
    bytes: u64,
    busy_ps: u64,
}

#[derive(Debug, Serialize)]
struct LegSummary {
    from: u32,
    to: u32,
    piece: u32,
    bytes: u64,
    start_ps: u64,
    left_ps: u64,
    end_ps: u64,
    after: &'static str,
    link: [String; 2],
}

/// Writes the drawing, if one is asked for, and prints the table or the object.
///
/// `planned_for`: the network that the plan was made for, where it runs on another.
pub(super) fn print(
    args: &SimulateArgs,
    judged: &Material,
    planned_for: Option<&Topology>,
    runs: &[Run],
) -> Result<(), Failure> {
    let planned_for = planned_for.map(TopologySummary::of);
    let mut report = Simulated { planned_for, ..summary(args, judged, runs)? };
    if let Some(path) = &args.plot {
        let drawing = plot::draw(&head(args, &report), judged, &report.sizes);
        report.files.push(FileSummary::written("svg", path, drawing.as_bytes())?);
    }
    if args.json { print_json("simulate", &report) } else { stdout::print(&readable(args, judged, &report)) }
}

fn summary(args: &SimulateArgs, judged: &Material, runs: &[Run]) -> Result<Simulated, Failure> {
    let topology = &judged.topology;
    let collective = judged.schedule.collective;
    let sizes = runs.iter().map(|run| of_size(judged, run)).collect::<Option<_>>();
    let sizes = sizes.ok_or_else(|| {
        Failure::input("the smallest size takes no time at all; give a larger one, or an alpha above 0")
    })?;
    // Of all sizes the largest, which stands last.
    let last = runs.last().map(|run| &run.outcome);
    Ok(Simulated {
        topology: TopologySummary::of(topology),
        planned_for: None,
        collective: collective.kind().name(),
        root: collective.root().map(Rank::number),
        algorithm: judged.schedule.algorithm.clone(),
        model: Model::of(args),
        algbw: judged.verdict.algbw.to_string(),
        bound: judged.bound.upper.to_string(),
        sizes,
        links: last.filter(|_| args.links).map(|outcome| busiest(topology, &outcome.links)),
        critical_path: last.filter(|_| args.critical_path).map(|outcome| {
            let leg = |leg: &canopy_simulate::Leg| LegSummary {
                from: leg.from.number(),
                to: leg.to.number(),
                piece: leg.piece,
                bytes: leg.bytes,
                start_ps: leg.start_ps,
                left_ps: leg.left_ps,
                end_ps: leg.end_ps,
                after: leg.start.name(),
                link: ends(topology, leg.link),
            };
            outcome.critical_path.iter().map(leg).collect()
        }),
        files: Vec::new(),
    })
}

/// Rates of one size; `None` where it took no time.
fn of_size(judged: &Material, Run { size_bytes, outcome, limit_ps }: &Run) -> Option<SizeSummary> {
    let kind: CollectiveKind = judged.schedule.collective.kind();
    let algbw = algbw(*size_bytes, outcome.time_ps)?;
    let busbw = busbw(kind, judged.topology.rank_count(), &algbw)?;
    Some(SizeSummary {
        size_bytes: *size_bytes,
        time_ps: outcome.time_ps,
        least_ps: least_time_ps(*size_bytes, &judged.bound.upper),
        limit_ps: *limit_ps,
        algbw_gbps: gigabytes_per_sec(&algbw),
        busbw_gbps: gigabytes_per_sec(&busbw),
        of_bound: part(&algbw, &judged.bound.upper),
        algbw: algbw.to_string(),
        messages: outcome.message_count,
        events: outcome.event_count,
    })
}

/// The busiest links: by time, then by bytes, then in the network's order.
fn busiest(topology: &Topology, links: &[canopy_simulate::LinkUse]) -> Vec<LinkSummary> {
    let mut order: Vec<(u32, &canopy_simulate::LinkUse)> = (0..).zip(links).collect();
    order.sort_by_key(|&(index, link)| (Reverse((link.busy_ps, link.bytes)), index));
    order.truncate(LINKS_MAX);
    let summary = |(index, link): (u32, &canopy_simulate::LinkUse)| {
        let [from, to] = ends(topology, LinkIndex::new(index));
        LinkSummary { from, to, bytes: link.bytes, busy_ps: link.busy_ps }
    };
    order.into_iter().map(summary).collect()
}

fn ends(topology: &Topology, link: LinkIndex) -> [String; 2] {
    let link = topology.link(link);
    [link.from, link.to].map(|node| topology.node(node).id.clone())
}

/// A part of a whole for display: four decimals.
pub(super) fn part(rate: &Rate, whole: &Rate) -> f64 {
    let ratio = rate.ratio_to(whole).map_or(0.0, |ratio| ratio.to_f64());
    (ratio * 1e4).round() / 1e4
}

/// What was simulated, in a line.
fn head(args: &SimulateArgs, report: &Simulated) -> String {
    let elsewhere = args.topology.as_ref().map_or(String::new(), |text| format!(", on {text}"));
    format!(
        "{} on {} by {}: {}{elsewhere}",
        report.collective,
        count(report.topology.ranks as usize, "rank"),
        report.algorithm,
        report.model.in_words()
    )
}

fn readable(args: &SimulateArgs, judged: &Material, report: &Simulated) -> String {
    let head = head(args, report);
    let limit = format!(
        "bandwidth  {} GB/s of at most {} GB/s",
        gigabytes_per_sec(&judged.verdict.algbw),
        gigabytes_per_sec(&judged.bound.upper)
    );
    let mut table = Table::new(&["SIZE#", "TIME µs#", "ALGBW GB/s#", "BUSBW GB/s#", "OF BOUND#", "MESSAGES#"]);
    for size in &report.sizes {
        table.row([
            in_words(size.size_bytes),
            micros(size.time_ps),
            format!("{:.3}", size.algbw_gbps),
            format!("{:.3}", size.busbw_gbps),
            format!("{:.1}%", size.of_bound * 100.0),
            size.messages.to_string(),
        ]);
    }
    let mut blocks = vec![format!("{head}\n{limit}"), table.text()];
    let last = report.sizes.last();
    if let (Some(links), Some(last)) = (&report.links, last) {
        let mut table = Table::new(&["LINK", "BYTES#", "BUSY µs#", "OF TIME#"]);
        for link in links {
            table.row([
                format!("{} -> {}", link.from, link.to),
                link.bytes.to_string(),
                micros(link.busy_ps),
                percent(link.busy_ps, last.time_ps),
            ]);
        }
        blocks.push(format!("busiest links at {}\n{}", in_words(last.size_bytes), table.text()));
    }
    if let (Some(legs), Some(last)) = (&report.critical_path, last) {
        let mut table = Table::new(&["RANKS", "PIECE#", "BYTES#", "START µs#", "END µs#", "AFTER", "LINK"]);
        let skipped = legs.len().saturating_sub(LEGS_TEXT_MAX);
        for leg in legs.iter().skip(skipped) {
            table.row([
                format!("{} -> {}", leg.from, leg.to),
                leg.piece.to_string(),
                leg.bytes.to_string(),
                micros(leg.start_ps),
                micros(leg.end_ps),
                leg.after.to_owned(),
                leg.link.join(" -> "),
            ]);
        }
        let which = if skipped > 0 { format!(", the last {LEGS_TEXT_MAX}") } else { String::new() };
        let number = count(legs.len(), "message");
        blocks.push(format!("critical path at {}: {number}{which}\n{}", in_words(last.size_bytes), table.text()));
    }
    blocks.join("\n\n")
}

/// Picoseconds in microseconds, to the nanosecond.
pub(crate) fn micros(ps: u64) -> String {
    let nanos = ps / 1_000;
    format!("{}.{:03}", nanos / 1_000, nanos % 1_000)
}

/// A part of a time, to a tenth of a hundredth.
fn percent(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1_000 / u128::from(whole.max(1));
    format!("{}.{}%", tenths / 10, tenths % 10)
}
