//! What a sweep over algorithms found, for people, as JSON and as a drawing.

use canopy_draw::{Series, SweepDrawing, draw_sweep};
use canopy_topology::{Rank, Rate};
use serde::Serialize;

use super::contest::Contest;
use crate::commands::simulate::race::{Crossover, Found, Side};
use crate::commands::simulate::report::{Model, micros, part};
use crate::commands::simulate::stock::{self, StockSummary};
use crate::commands::simulate::{Absent, SimulateArgs};
use crate::exit::{Failure, words};
use crate::material::Material;
use crate::output::{FileSummary, TopologySummary, gigabytes_per_sec, print_json};
use crate::sizes::in_words;
use crate::stdout;
use crate::stock::Library;
use crate::table::{Table, count};

/// Most algorithms with a column of their own.
const COLUMNS_MAX: usize = 6;

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Swept {
    topology: TopologySummary,
    collective: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    model: Model,
    bound: String,
    sizes: Vec<u64>,
    algorithms: Vec<AlgorithmSummary>,
    refused: Vec<Absent>,
    ranges: Vec<RangeSummary>,
    crossovers: Vec<CrossoverSummary>,
    stock: StockSummary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileSummary>,
}

/// One algorithm with a plan.
#[derive(Debug, Serialize)]
struct AlgorithmSummary {
    name: &'static str,
    algbw: String,
    of_bound: f64,
    /// By size; null where it takes too much work.
    times_ps: Vec<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untimed: Option<String>,
}

/// Sizes with the same fastest, both ends among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct RangeSummary {
    from_bytes: u64,
    to_bytes: u64,
    algorithm: &'static str,
}

#[derive(Debug, Serialize)]
struct CrossoverSummary {
    before: &'static str,
    after: &'static str,
    low: Side,
    high: Side,
}

/// Writes the drawing, if one is asked for, and prints the tables or the object.
pub(super) fn print(args: &SimulateArgs, contest: &Contest<'_>, found: &Found) -> Result<(), Failure> {
    let Some(first) = contest.entrants.first() else {
        return Err(Failure::input("no algorithm has a plan").help("name others with --algorithms"));
    };
    let collective = first.judged.schedule.collective;
    let bound =
        contest.entrants.iter().map(|entrant| &entrant.judged.bound.upper).min().unwrap_or(&first.judged.bound.upper);
    let mut report = Swept {
        topology: TopologySummary::of(&first.judged.topology),
        collective: collective.kind().name(),
        root: collective.root().map(Rank::number),
        model: Model::of(args),
        bound: bound.to_string(),
        sizes: contest.sizes.clone(),
        algorithms: algorithms(contest, found, bound),
        refused: contest.absent.clone(),
        ranges: ranges(contest, found),
        crossovers: found.crossovers.iter().map(|&crossover| summary(contest, crossover)).collect(),
        stock: beside(args.library(), contest),
        files: Vec::new(),
    };
    let head = format!(
        "{} on {}, {} compared: {}",
        report.collective,
        count(report.topology.ranks as usize, "rank"),
        count(contest.entrants.len(), "algorithm"),
        report.model.in_words()
    );
    if let Some(path) = &args.plot {
        let drawing = drawn(&head, contest, found);
        report.files.push(FileSummary::written("svg", path, drawing.as_bytes())?);
    }
    if args.json {
        print_json("simulate", &report)
    } else {
        stdout::print(&readable(&head, contest, found, &report, bound))
    }
}

/// Stock NCCL or RCCL beside the best of the plans.
fn beside(library: Library, contest: &Contest<'_>) -> StockSummary {
    let plans: Vec<(Option<&'static str>, &Material)> =
        contest.entrants.iter().map(|entrant| (Some(entrant.name), &entrant.judged)).collect();
    StockSummary::of_several(library, &plans, &contest.sizes)
}

fn algorithms(contest: &Contest<'_>, found: &Found, bound: &Rate) -> Vec<AlgorithmSummary> {
    let each = contest.entrants.iter().zip(&found.times).zip(&found.untimed);
    each.map(|((entrant, times), untimed)| AlgorithmSummary {
        name: entrant.name,
        algbw: entrant.judged.verdict.algbw.to_string(),
        of_bound: part(&entrant.judged.verdict.algbw, bound),
        times_ps: times.clone(),
        untimed: untimed.as_ref().map(|untimed| words(&untimed.error)),
    })
    .collect()
}

/// Sizes by their fastest: from the larger side of a crossover up to the smaller side of the next one.
fn ranges(contest: &Contest<'_>, found: &Found) -> Vec<RangeSummary> {
    let timed: Vec<(u64, usize)> =
        contest.sizes.iter().zip(&found.fastest).filter_map(|(&size, fastest)| Some((size, (*fastest)?))).collect();
    let (Some(&(mut from_bytes, mut winner)), Some(&(last, _))) = (timed.first(), timed.last()) else {
        return Vec::new();
    };
    let mut ranges = Vec::new();
    for crossover in &found.crossovers {
        let algorithm = name(contest, winner);
        ranges.push(RangeSummary { from_bytes, to_bytes: crossover.high.size_bytes - 1, algorithm });
        (from_bytes, winner) = (crossover.high.size_bytes, crossover.after);
    }
    ranges.push(RangeSummary { from_bytes, to_bytes: last, algorithm: name(contest, winner) });
    ranges
}

fn summary(contest: &Contest<'_>, crossover: Crossover) -> CrossoverSummary {
    let Crossover { before, after, low, high } = crossover;
    CrossoverSummary { before: name(contest, before), after: name(contest, after), low, high }
}

fn name(contest: &Contest<'_>, number: usize) -> &'static str {
    contest.entrants.get(number).map_or("", |entrant| entrant.name)
}

/// Numbers of entrants: first those that are fastest somewhere, in the order of sizes, then the others.
fn winners_first(contest: &Contest<'_>, found: &Found) -> (Vec<usize>, Vec<usize>) {
    let mut winners: Vec<usize> = Vec::new();
    let after = found.crossovers.iter().map(|crossover| crossover.after);
    for number in
        found.fastest.iter().flatten().copied().take(1).chain(after).chain(found.fastest.iter().flatten().copied())
    {
        if !winners.contains(&number) {
            winners.push(number);
        }
    }
    let others = (0..contest.entrants.len()).filter(|number| !winners.contains(number)).collect();
    (winners, others)
}

/// All curves, those that are fastest somewhere first, and where one overtakes another.
fn drawn(head: &str, contest: &Contest<'_>, found: &Found) -> String {
    let sizes: Vec<(u64, String)> = contest.sizes.iter().map(|&size| (size, in_words(size))).collect();
    let (winners, others) = winners_first(contest, found);
    let series = winners.into_iter().chain(others).filter_map(|number| {
        let times_ps = found.times.get(number)?.clone();
        Some(Series { name: name(contest, number).to_owned(), times_ps })
    });
    let series: Vec<Series> = series.collect();
    let mark = |crossover: &Crossover| {
        let size = crossover.high.size_bytes;
        (size, format!("{} from {}", name(contest, crossover.after), in_words(size)))
    };
    let marks: Vec<(u64, String)> = found.crossovers.iter().map(mark).collect();
    draw_sweep(&SweepDrawing { title: head, sizes: &sizes, series: &series, marks: &marks })
}

fn readable(head: &str, contest: &Contest<'_>, found: &Found, report: &Swept, bound: &Rate) -> String {
    let (mut columns, _) = winners_first(contest, found);
    columns.truncate(COLUMNS_MAX);
    let mut blocks = vec![head.to_owned(), times(contest, found, &columns), rates(contest, found, bound)];
    let mut table = Table::new(&["FROM#", "TO#", "FASTEST"]);
    for range in &report.ranges {
        table.row([in_words(range.from_bytes), in_words(range.to_bytes), range.algorithm.to_owned()]);
    }
    blocks.push(table.text());
    if !report.crossovers.is_empty() {
        blocks.push(
            "One overtakes another between two sizes that differ by 1 % at most. Times need not rise evenly: between sizes of\n\
             the table at which one is fastest, another may be for a while."
                .to_owned(),
        );
    }
    let untimed = contest.entrants.iter().zip(&found.untimed).filter_map(|(entrant, untimed)| {
        let untimed = untimed.as_ref()?;
        let reason = words(&untimed.error);
        Some(format!("no time  {} from {} on: {reason}", entrant.name, in_words(untimed.from_bytes)))
    });
    // Neighbours for the same reason in a line.
    let absent = contest.absent.chunk_by(|one, next| one.reason == next.reason).filter_map(|alike| {
        let names: Vec<&str> = alike.iter().map(|absent| absent.name).collect();
        Some(format!("no plan  {}: {}", names.join(", "), alike.first()?.reason))
    });
    let left: Vec<String> = untimed.chain(absent).collect();
    if !left.is_empty() {
        blocks.push(left.join("\n"));
    }
    blocks.push(stock::lines(&report.stock).join("\n"));
    blocks.join("\n\n")
}

/// Sizes down, the algorithms that are fastest somewhere across.
fn times(contest: &Contest<'_>, found: &Found, columns: &[usize]) -> String {
    let heading: Vec<String> = std::iter::once("SIZE#".to_owned())
        .chain(columns.iter().map(|&number| format!("{} µs  #", name(contest, number))))
        .collect();
    let mut table = Table::new(&heading.iter().map(String::as_str).collect::<Vec<_>>());
    for (position, &size) in contest.sizes.iter().enumerate() {
        let fastest = found.fastest.get(position).copied().flatten();
        let cell = |&number: &usize| {
            let time = time_at(found, number, position).map_or("-".to_owned(), micros);
            format!("{time} {}", if fastest == Some(number) { '*' } else { ' ' })
        };
        table.row(std::iter::once(in_words(size)).chain(columns.iter().map(cell)));
    }
    table.text()
}

/// Every algorithm: its rate, how many times as long as the fastest it takes at both ends, and where it comes nearest to it.
fn rates(contest: &Contest<'_>, found: &Found, bound: &Rate) -> String {
    let ends: Vec<usize> = match contest.sizes.len() {
        0 => Vec::new(),
        1 => vec![0],
        length => vec![0, length - 1],
    };
    let mut heading = vec!["ALGORITHM".to_owned(), "ALGBW GB/s#".to_owned(), "OF BOUND#".to_owned()];
    heading.extend(ends.iter().map(|&end| format!("AT {}#", in_words(contest.sizes[end]))));
    heading.push("NEAREST#".to_owned());
    let mut table = Table::new(&heading.iter().map(String::as_str).collect::<Vec<_>>());
    for (number, entrant) in contest.entrants.iter().enumerate() {
        let times = |position: usize| {
            let fastest = found.fastest.get(position).copied().flatten()?;
            Some((time_at(found, number, position)?, time_at(found, fastest, position)?))
        };
        let rate = &entrant.judged.verdict.algbw;
        let mut row = vec![
            entrant.name.to_owned(),
            format!("{:.3}", gigabytes_per_sec(rate)),
            format!("{:.1}%", part(rate, bound) * 100.0),
        ];
        row.extend(ends.iter().map(|&end| times(end).map_or("-".to_owned(), |(own, best)| as_many_times(own, best))));
        let nearest = (0..contest.sizes.len()).filter_map(|position| Some((times(position)?, position)));
        // Compared as fractions; the first of equals.
        let nearest = nearest.reduce(|nearest, next| {
            let ((own, best), (others, their_best)) = (next.0, nearest.0);
            let is_nearer = u128::from(own) * u128::from(their_best) < u128::from(others) * u128::from(best);
            if is_nearer { next } else { nearest }
        });
        row.push(nearest.map_or("-".to_owned(), |((own, best), position)| {
            format!("{} at {}", as_many_times(own, best), in_words(contest.sizes[position]))
        }));
        table.row(row);
    }
    table.text()
}

fn time_at(found: &Found, number: usize, position: usize) -> Option<u64> {
    found.times.get(number)?.get(position).copied().flatten()
}

/// A time as a multiple of another, to a hundredth.
fn as_many_times(time: u64, of: u64) -> String {
    let hundredths = (u128::from(time) * 100 + u128::from(of / 2)) / u128::from(of.max(1));
    format!("{}.{:02}x", hundredths / 100, hundredths % 100)
}
