//! What a simulation found, for people and as JSON.

use std::time::Duration;

use canopy_schedule::CollectiveKind;
use canopy_simulate::{ClassOutcome, Reached, busbw, busiest};
use canopy_topology::{Capacity, LinkIndex, Rank, Rate, Ratio, Topology};
use serde::Serialize;

use super::{BaselineTime, Piece, Run, SharingName, SimulateArgs, SyncName, plot};
use crate::args::name_of;
use crate::exit::Failure;
use crate::material::Material;
use crate::output::{FileSummary, TopologySummary, gigabytes_per_sec, print_json};
use crate::rule::Rule;
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
    by_class: Option<ByClassSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Vec<LinkSummary>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    critical_path: Option<Vec<LegSummary>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileSummary>,
}

/// What was simulated instead of all ranks.
#[derive(Debug, Serialize)]
pub(super) struct ByClassSummary {
    pub(super) classes: usize,
    /// The class that took longest at the largest size, by its position in what `canopy explain` lists.
    pub(super) slowest: usize,
}

/// How messages are sent.
#[derive(Debug, Serialize)]
pub(super) struct Model {
    alpha_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    launch_ns: Option<u64>,
    /// In bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    reduce_rate: Option<u64>,
    piece_bytes: Option<u64>,
    sync: SyncName,
    sharing: SharingName,
}

impl Model {
    /// As the arguments state it.
    pub(super) fn of(args: &SimulateArgs) -> Self {
        let SimulateArgs { messages, sync, sharing, .. } = args;
        Self {
            alpha_ns: messages.alpha_ns(),
            launch_ns: Some(messages.launch_ns()).filter(|&launch| launch > 0),
            reduce_rate: messages.reduce_rate.map(Capacity::bytes_per_sec),
            piece_bytes: messages.piece.0,
            sync: *sync,
            sharing: *sharing,
        }
    }

    /// For people.
    pub(super) fn in_words(&self) -> String {
        let (alpha, pieces) = (Duration::from_nanos(self.alpha_ns), Piece(self.piece_bytes).in_words());
        let launch = self.launch_ns.map(|launch| format!(", launch {:?}", Duration::from_nanos(launch)));
        let sums = self.reduce_rate.map(|rate| format!(", sums at {} GB/s", rate as f64 / 1e9));
        let costs = [launch, sums].into_iter().flatten().collect::<String>();
        format!("alpha {alpha:?}{costs}, {pieces}, sync {}, {} links", name_of(&self.sync), name_of(&self.sharing))
    }
}

/// One size. Rates are exact, as texts, and in GB/s for display.
#[derive(Debug, Serialize)]
struct SizeSummary {
    size_bytes: u64,
    time_ps: u64,
    least_ps: Option<u64>,
    limit_ps: u64,
    algbw: String,
    #[serde(rename = "algbw_GBps")]
    algbw_gbps: f64,
    #[serde(rename = "busbw_GBps")]
    busbw_gbps: f64,
    of_bound: f64,
    messages: u64,
    events: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    published: Vec<BaselineTime>,
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
/// `planned_for`: the network that the plan was made for, where it runs on another; `published`: by size, the baselines beside it.
pub(super) fn print(
    args: &SimulateArgs,
    judged: &Material,
    (planned_for, published): (Option<&Topology>, Vec<Vec<BaselineTime>>),
    runs: &[Run],
) -> Result<(), Failure> {
    let planned_for = planned_for.map(TopologySummary::of);
    let mut report = Simulated { planned_for, ..summary(args, judged, runs) };
    for (size, published) in report.sizes.iter_mut().zip(published) {
        size.published = published;
    }
    let (topology, kind) = (&judged.topology, judged.schedule.collective.kind());
    written(args, report, (topology, kind), (&judged.verdict.algbw, &judged.bound.upper))
}

/// The same of a plan by class.
pub(super) fn print_by_class(
    args: &SimulateArgs,
    rule: &Rule,
    by_class: ByClassSummary,
    runs: &[ClassOutcome],
) -> Result<(), Failure> {
    let Rule { topology, schedule, bound, classes } = rule;
    let last = runs.last();
    let link = |&(link, found): &(LinkIndex, canopy_simulate::LinkUse)| {
        let [from, to] = ends(topology, link);
        LinkSummary { from, to, bytes: found.bytes, busy_ps: found.busy_ps }
    };
    let links = last.filter(|_| args.links).map(|run| {
        let mut links: Vec<&(LinkIndex, canopy_simulate::LinkUse)> = run.links.iter().collect();
        links.sort_by_key(|(link, found)| (std::cmp::Reverse(found.busy_ps), *link));
        links.into_iter().take(LINKS_MAX).map(link).collect()
    });
    let legs = |run: &ClassOutcome| run.critical_path.iter().map(|leg| of_leg(topology, leg)).collect();
    let report = Simulated {
        topology: TopologySummary::of(topology),
        planned_for: None,
        collective: schedule.collective.kind().name(),
        root: None,
        algorithm: schedule.algorithm.clone(),
        model: Model::of(args),
        algbw: classes.verdict.algbw.to_string(),
        bound: bound.upper.to_string(),
        sizes: runs.iter().map(|run| of_size(&run.reached)).collect(),
        by_class: Some(by_class),
        links,
        critical_path: last.filter(|_| args.critical_path).map(legs),
        files: Vec::new(),
    };
    let kind = schedule.collective.kind();
    written(args, report, (topology, kind), (&classes.verdict.algbw, &bound.upper))
}

/// Writes the drawing, if one is asked for, and prints it all.
fn written(
    args: &SimulateArgs,
    mut report: Simulated,
    (topology, kind): (&Topology, CollectiveKind),
    rates: (&Rate, &Rate),
) -> Result<(), Failure> {
    if let Some(path) = &args.plot {
        let bound = busbw(kind, topology.rank_count(), rates.1);
        let bound = bound.map_or(0.0, |rate| gigabytes_per_sec(&rate));
        let point = |size: &SizeSummary| plot::Point {
            size_bytes: size.size_bytes,
            time_ps: size.time_ps,
            busbw_gbps: size.busbw_gbps,
        };
        let points: Vec<plot::Point> = report.sizes.iter().map(point).collect();
        let drawing = plot::draw(&head(args, &report), bound, &points);
        report.files.push(FileSummary::written("svg", path, drawing.as_bytes())?);
    }
    if args.json { print_json("simulate", &report) } else { stdout::print(&readable(args, rates, &report)) }
}

fn summary(args: &SimulateArgs, judged: &Material, runs: &[Run]) -> Simulated {
    let topology = &judged.topology;
    let collective = judged.schedule.collective;
    let sizes = runs.iter().map(|run| of_size(&run.reached)).collect();
    // Of all sizes the largest, which stands last.
    let last = runs.last().map(|run| &run.outcome);
    Simulated {
        topology: TopologySummary::of(topology),
        planned_for: None,
        collective: collective.kind().name(),
        root: collective.root().map(Rank::number),
        algorithm: judged.schedule.algorithm.clone(),
        model: Model::of(args),
        algbw: judged.verdict.algbw.to_string(),
        bound: judged.bound.upper.to_string(),
        sizes,
        by_class: None,
        links: last.filter(|_| args.links).map(|outcome| of_links(topology, &outcome.links)),
        critical_path: last
            .filter(|_| args.critical_path)
            .map(|outcome| outcome.critical_path.iter().map(|leg| of_leg(topology, leg)).collect()),
        files: Vec::new(),
    }
}

/// Figures of one size.
fn of_size(reached: &Reached) -> SizeSummary {
    SizeSummary {
        size_bytes: reached.size_bytes,
        time_ps: reached.time_ps,
        least_ps: reached.least_ps,
        limit_ps: reached.limit_ps,
        algbw_gbps: gigabytes_per_sec(&reached.algbw),
        busbw_gbps: gigabytes_per_sec(&reached.busbw),
        of_bound: decimals(reached.of_bound.as_ref()),
        algbw: reached.algbw.to_string(),
        messages: reached.message_count,
        events: reached.event_count,
        published: Vec::new(),
    }
}

fn of_leg(topology: &Topology, leg: &canopy_simulate::Leg) -> LegSummary {
    LegSummary {
        from: leg.from.number(),
        to: leg.to.number(),
        piece: leg.piece,
        bytes: leg.bytes,
        start_ps: leg.start_ps,
        left_ps: leg.left_ps,
        end_ps: leg.end_ps,
        after: leg.start.name(),
        link: ends(topology, leg.link),
    }
}

/// The busiest links.
fn of_links(topology: &Topology, links: &[canopy_simulate::LinkUse]) -> Vec<LinkSummary> {
    let summary = |link: LinkIndex| {
        let [from, to] = ends(topology, link);
        let found = links.get(link.index()).copied().unwrap_or_default();
        LinkSummary { from, to, bytes: found.bytes, busy_ps: found.busy_ps }
    };
    busiest(links, LINKS_MAX).into_iter().map(summary).collect()
}

fn ends(topology: &Topology, link: LinkIndex) -> [String; 2] {
    let link = topology.link(link);
    [link.from, link.to].map(|node| topology.node(node).id.clone())
}

/// A part of a whole for display: four decimals.
pub(super) fn part(rate: &Rate, whole: &Rate) -> f64 {
    decimals(rate.ratio_to(whole).as_ref())
}

/// A ratio for display, likewise; 0 where there is none.
fn decimals(ratio: Option<&Ratio>) -> f64 {
    (ratio.map_or(0.0, Ratio::to_f64) * 1e4).round() / 1e4
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

fn readable(args: &SimulateArgs, (algbw, bound): (&Rate, &Rate), report: &Simulated) -> String {
    let head = head(args, report);
    let mut limit =
        format!("bandwidth  {} GB/s of at most {} GB/s", gigabytes_per_sec(algbw), gigabytes_per_sec(bound));
    if let Some(ByClassSummary { classes, slowest }) = &report.by_class {
        let others = if *classes > 1 {
            format!(" of {classes}, the slowest of which is number {}", slowest + 1)
        } else {
            String::new()
        };
        limit += &format!("\nby class   messages are those of one box or rank of each class{others}");
    }
    let table = sizes_table(args, &report.sizes);
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

/// A row for each size, with two cells for each baseline beside the plan.
fn sizes_table(args: &SimulateArgs, sizes: &[SizeSummary]) -> Table {
    let mut heading: Vec<String> =
        ["SIZE#", "TIME µs#", "ALGBW GB/s#", "BUSBW GB/s#", "OF BOUND#", "MESSAGES#"].map(str::to_owned).into();
    for baseline in &args.published {
        heading.extend([format!("{} µs#", baseline.name().to_uppercase()), "÷ PLAN#".to_owned()]);
    }
    let mut table = Table::new(&heading.iter().map(String::as_str).collect::<Vec<_>>());
    for size in sizes {
        let own = [
            in_words(size.size_bytes),
            micros(size.time_ps),
            format!("{:.3}", size.algbw_gbps),
            format!("{:.3}", size.busbw_gbps),
            format!("{:.1}%", size.of_bound * 100.0),
            size.messages.to_string(),
        ];
        let beside =
            size.published.iter().flat_map(|found| [micros(found.time_ps), format!("{:.2}", found.times_as_long)]);
        table.row(own.into_iter().chain(beside));
    }
    table
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
