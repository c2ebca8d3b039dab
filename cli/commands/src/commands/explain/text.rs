//! What `canopy explain` prints for people.

use canopy_schedule::{Bound, Pace, Schedule, Verdict};
use canopy_topology::{LinkIndex, Ratio, Topology};

use super::ExplainArgs;
use super::compare::{Baseline, Clock, Comparison, Turn};
use super::names::{joined, link_in_words};
use super::summary::{Explained, LinksSummary, RateSummary, StepsSummary};
use crate::commands::simulate::report::micros;
use crate::commands::simulate::stock;
use crate::material::Material;
use crate::messages;
use crate::nvls::{IF_FORWARDING, bound_in_words};
use crate::output::{AlgbwSummary, gigabytes, gigabytes_per_sec};
use crate::sizes::spread;
use crate::sizes::{UNITS, in_words};
use crate::table::{Table, count};

/// Most sizes that stand in the table.
const SIZES_MAX: usize = 4;

/// All of it: facts, table, verdict.
pub(super) fn readable(args: &ExplainArgs, plan: &Material, compared: &Comparison, explained: &Explained) -> String {
    let mut lines = facts(args, plan, explained);
    lines.push(String::new());
    lines.push(table(args, plan, compared, explained));
    lines.push(String::new());
    for absent in &compared.absent {
        lines.push(format!("left out   {} {}", absent.name, absent.reason));
    }
    lines.extend(omitted(plan, compared).map(|words| format!("sizes      {words}")));
    let untimed: Vec<&str> = compared.untimed().map(|entry| entry.name.as_str()).collect();
    if !untimed.is_empty() {
        let (names, work_max) = (untimed.join(", "), args.work_max);
        lines.push(format!("not timed  {names}, at some sizes: more work than --work-max allows, {work_max}"));
    }
    lines.push(baseline(compared));
    let stock = stock::lines(&explained.stock);
    let is_gain = explained.verdict.worth_it == Some(true);
    lines.extend(verdict(plan, compared, explained).into_iter().map(|line| match line.split_once(": ") {
        Some((worth, why)) if worth.starts_with("verdict") => format!("{}: {why}", messages::verdict(is_gain, worth)),
        _ => line,
    }));
    if stock.len() > 1 {
        lines.push(String::new());
    }
    lines.extend(stock);
    lines.join("\n")
}

/// What bounds the plan and what binds it, a heading and words on each line.
pub(super) fn facts(args: &ExplainArgs, plan: &Material, explained: &Explained) -> Vec<String> {
    let (topology, schedule) = (&plan.topology, &plan.schedule);
    let nvls = explained.with_in_network.as_ref();
    let mut lines = reached(&args.subject, (topology, schedule), (&plan.bound, nvls), &plan.verdict, &explained.why);
    if let Some(StepsSummary { count, pace }) = explained.steps {
        let pace = match pace {
            Pace::Barriers => "each begun when the one before has ended",
            Pace::InTurn => "in turn: each route carries what it has to as soon as that is there",
        };
        lines.push(format!("steps      {count}, {pace}"));
    }
    let first = plan.loads.binding().next();
    lines.extend(used(&plan.topology, first, &explained.links, plan.loads.traffic(), &plan.verdict));
    lines
}

/// The bound and what is reached of it.
pub(super) fn reached(
    subject: &str,
    (topology, schedule): (&Topology, &Schedule),
    (bound, nvls): (&Bound, Option<&AlgbwSummary>),
    verdict: &Verdict,
    why: &[String],
) -> Vec<String> {
    let name = topology.name().unwrap_or(subject);
    let collective = schedule.collective;
    let root = collective.root().map(|root| format!(", root rank {}", root.number())).unwrap_or_default();
    let mut lines = vec![format!(
        "{}{root} on {name}: {}, {}, by {}",
        collective.kind(),
        count(topology.rank_count() as usize, "rank"),
        count(topology.links().len(), "link"),
        schedule.algorithm
    )];
    let class = nvls.map_or("", |_| IF_FORWARDING);
    lines.push(format!("bound      {} GB/s: no schedule is faster{class}", gigabytes_per_sec(&bound.upper)));
    lines.extend(nvls.map(|with| format!("with NVLS  {}", bound_in_words(with))));
    for (number, sentence) in why.iter().enumerate() {
        lines.push(format!("{:<10} {sentence}", if number == 0 { "because" } else { "" }));
    }
    let found = verdict.in_network.as_ref().map_or(&verdict.algbw, |weighed| &weighed.algbw);
    lines.push(match found.ratio_to(&bound.upper) {
        Some(part) if part.is_one() => format!("achieved   {} GB/s, the bound itself", gigabytes_per_sec(found)),
        Some(part) => {
            let gap = Ratio::new(1_u32, 1_u32).map_or(0.0, |one| part.missing_of(&one).to_f64());
            let reachable = if bound.is_tight() { "" } else { ", which may be out of reach" };
            format!(
                "achieved   {} GB/s, {part} of the bound, {:.2} % below it{reachable}",
                gigabytes_per_sec(found),
                gap * 100.0
            )
        }
        None => format!("achieved   {} GB/s", gigabytes_per_sec(found)),
    });
    if *found != verdict.algbw {
        lines.push(format!(
            "forwarded  {} GB/s where switches neither multicast nor add",
            gigabytes_per_sec(&verdict.algbw)
        ));
    }
    lines
}

/// How links are used, of which this one is the first that is busy all the time.
pub(super) fn used(
    topology: &Topology,
    first: Option<LinkIndex>,
    links: &LinksSummary,
    traffic: &Ratio,
    verdict: &Verdict,
) -> Vec<String> {
    let rates = links.binding.iter();
    let rates =
        rates.map(|RateSummary { capacity, links }| format!("{links} of {} GB/s", gigabytes((*capacity).into())));
    let first = first.map(|link| format!(", such as {}", link_in_words(topology, link)));
    let mut lines = vec![format!(
        "binding    {} of {} links are busy all the time: {}{}",
        links.binding.iter().map(|rate| rate.links).sum::<usize>(),
        topology.links().len(),
        joined(rates.collect()),
        first.unwrap_or_default()
    )];
    if links.unused > 0 {
        lines.push(format!("unused     {}", count(links.unused, "link")));
    }
    lines.push(format!(
        "traffic    {:.3} bytes over links for each byte of size; at most {} from rank to rank, over {}",
        traffic.to_f64(),
        count(verdict.depth_max as usize, "hop"),
        count(verdict.links_max as usize, "link"),
    ));
    lines
}

/// How many of the sizes were simulated, if not all.
pub(super) fn omitted(plan: &Material, compared: &Comparison) -> Option<String> {
    let (shown, omitted) = (compared.sizes.len(), compared.sizes_omitted);
    let transfers = plan.graph.transfers.len();
    (omitted > 0).then(|| format!("{shown} of {} simulated, as the plan has {transfers} transfers", shown + omitted))
}

fn table(args: &ExplainArgs, plan: &Material, compared: &Comparison, explained: &Explained) -> String {
    let shown = spread(compared.sizes.len(), SIZES_MAX);
    let sizes: Vec<String> =
        shown.iter().map(|&position| format!("{} µs#", in_words(compared.sizes[position]))).collect();
    let mut heading = vec!["PLAN", "ALGBW GB/s#", "OF BOUND#", "TRAFFIC#", "DEPTH#"];
    heading.extend(sizes.iter().map(String::as_str));
    let mut table = Table::new(&heading);
    for entry in &compared.entries {
        let part = entry.of_bound(&plan.bound.upper).map_or(0.0, |part| part.to_f64());
        let course = entry.course.as_ref();
        let mut row = vec![
            entry.name.clone(),
            format!("{:.3}", gigabytes_per_sec(&entry.algbw)),
            format!("{:.1}%", part * 100.0),
            course.map_or("-".to_owned(), |course| format!("{:.2}", course.traffic.to_f64())),
            course.map_or("-".to_owned(), |course| course.depth.to_string()),
        ];
        let time = |position: usize| entry.times.get(position).copied().flatten();
        row.extend(shown.iter().map(|&position| time(position).map_or("-".to_owned(), micros)));
        table.row(row);
    }
    format!("{}\n{}", times_in_words(args, compared, explained), table.text())
}

/// The one model that all times come from.
pub(super) fn times_in_words(args: &ExplainArgs, compared: &Comparison, explained: &Explained) -> String {
    match compared.clock {
        Clock::Library => format!("times {}", stock::latencies(&explained.stock)),
        Clock::Simulated => {
            format!("times with alpha {:?} and {}", args.messages.alpha(), args.messages.piece.in_words())
        }
    }
}

/// Which rings the plan is compared with.
pub(super) fn baseline(compared: &Comparison) -> String {
    match &compared.baseline {
        Baseline { name, rings, reason: None } => {
            format!("baseline   {name}: {rings} at the rates of their links, one for each NIC of a box")
        }
        Baseline { name, reason: Some(reason), .. } => {
            format!("baseline   {name}, not one for each NIC as NCCL has them across boxes: {reason}")
        }
    }
}

/// Whether it is worth it, and from which size on.
pub(super) fn verdict(plan: &Material, compared: &Comparison, explained: &Explained) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(best) = compared.best_other() else {
        lines.push("verdict    there is no other plan to compare with".to_owned());
        return lines;
    };
    let own = plan.rate();
    let ratio = own.ratio_to(&best.algbw);
    let is_gain = compared.gains_large() == Some(true);
    let large = match &ratio {
        Some(ratio) if !is_gain && best.algbw < *own => {
            let percent = (ratio.to_f64() - 1.0) * 100.0;
            format!("{percent:.1} % over {} for large messages", best.name)
        }
        Some(ratio) if ratio.is_one() => format!("as fast as {} for large messages", best.name),
        Some(ratio) => {
            format!("{:.3} times as fast as {} for large messages", ratio.to_f64(), best.name)
        }
        None => format!("{} moves nothing", best.name),
    };
    let is_ahead = compared.turns.iter().any(|turn| turn.entry == 0);
    let worth = match (explained.verdict.worth_it, compared.sizes.last()) {
        (Some(true), Some(&last)) if is_gain && !is_ahead && !compared.turns.is_empty() => {
            format!("worth it beyond {} only", in_words(last))
        }
        (Some(true), _) if is_gain => "worth it".to_owned(),
        (Some(true), _) => "worth it at some sizes".to_owned(),
        _ if best.algbw <= *own => "no gain".to_owned(),
        _ => "not worth it".to_owned(),
    };
    lines.push(format!("verdict    {worth}: {large}"));
    let name = |turn: &Turn| compared.entries[turn.entry].name.as_str();
    let mut turns = compared.turns.iter();
    if let Some(first) = turns.next() {
        let mut words = format!("fastest    {} from {} on", name(first), in_words(first.from_bytes));
        for turn in turns {
            words += &format!(", {} from about {} on", name(turn), about(turn.from_bytes));
        }
        lines.push(words);
    }
    lines
}

/// A size that is known to a part only: two or three digits and a unit.
pub(super) fn about(size_bytes: u64) -> String {
    match UNITS.iter().find(|(_, factor)| size_bytes >= *factor) {
        Some((name, factor)) if size_bytes < 10 * factor => {
            let tenths = (u128::from(size_bytes) * 10).div_ceil(u128::from(*factor));
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        Some((name, factor)) => format!("{} {name}", size_bytes.div_ceil(*factor)),
        None => format!("{size_bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_spread_and_rounded_up() {
        assert_eq!(spread(10, SIZES_MAX), [0, 3, 6, 9]);
        assert_eq!([1_023, 1_025, 95_000, 3 << 19].map(about), ["1023 B", "1.1 KiB", "93 KiB", "1.5 MiB"]);
    }
}
