//! What stock NCCL or RCCL would take for the same call, and how long its own formulas say that it takes.

use canopy_draw::escaped;
use canopy_nccl::{Seen, Stock, Timed, Version};
use serde::Serialize;

use super::report::micros;
use crate::material::Material;
use crate::sizes::{in_words, spread};
use crate::stock::{Library, stock_of};
use crate::table::{Table, count};

/// A plan that is less than this many times as fast as another, as a fraction, is no gain over it: what is lost on the way to a
/// network's rates differs by more.
pub(in crate::commands) const GAIN_LEAST: (u64, u64) = (21, 20);

/// A message of which latencies are no part.
const LARGE_BYTES: u64 = 16 << 30;

/// Smallest message across machines for which RCCL's formulas give a time.
const RCCL_BYTES_MIN: u64 = 512 << 20;

const PS_PER_SEC: u64 = 1_000_000_000_000;

/// Most sizes that stand in the table.
const SIZES_MAX: usize = 8;

/// The model beside the plan.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct StockSummary {
    /// `NCCL 2.30`.
    library: String,
    /// What is beside it, for people.
    #[serde(skip)]
    subject: &'static str,
    /// What it sees; none with the reason why there is no model.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<SeenSummary>,
    /// Latencies that the plan's times have, too: once, and for each hop.
    #[serde(skip_serializing_if = "Option::is_none")]
    latencies_ns: Option<(u64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    calls: Vec<CallSummary>,
}

/// Machines as the library sees them.
#[derive(Debug, Serialize)]
struct SeenSummary {
    machines: u32,
    gpus: u32,
    generation: &'static str,
    nics: u32,
    #[serde(rename = "nic_GBps")]
    nic_gigabytes: f64,
    /// Search channels of rings; none for RCCL.
    #[serde(skip_serializing_if = "Option::is_none")]
    rings: Option<u32>,
}

impl SeenSummary {
    fn of(stock: &Stock, seen: &Seen) -> Self {
        let Seen { machine, nodes } = seen;
        Self {
            machines: *nodes,
            gpus: machine.gpus,
            generation: if stock.version() == Version::Rccl2_21 { "AMD" } else { machine.generation.name() },
            nics: machine.nics,
            nic_gigabytes: machine.nic as f64 / 1e3,
            rings: stock.rings().map(|rings| rings.count),
        }
    }
}

/// What is taken for a size.
#[derive(Debug, Serialize)]
struct CallSummary {
    size_bytes: u64,
    /// The plan beside it, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'static str>,
    algorithm: &'static str,
    protocol: &'static str,
    time_ps: u64,
    /// Of the plan with the library's latencies.
    plan_time_ps: u64,
    times_as_fast: f64,
}

impl StockSummary {
    /// One plan at some sizes, and at a large one.
    pub(in crate::commands) fn of(library: Library, plan: &Material, sizes: &[u64]) -> Self {
        Self { subject: "this plan", ..Self::of_several(library, &[(None, plan)], sizes) }
    }

    /// At each size the one of several plans that is fastest with the library's latencies.
    pub(in crate::commands) fn of_several(
        library: Library,
        plans: &[(Option<&'static str>, &Material)],
        sizes: &[u64],
    ) -> Self {
        let nothing = |reason: String| Self {
            library: library.to_string(),
            subject: "the best of these plans",
            seen: None,
            latencies_ns: None,
            reason: Some(reason),
            calls: Vec::new(),
        };
        let Some((_, first)) = plans.first() else { return nothing("there is nothing to compare".to_owned()) };
        let (stock, seen) = match stock_of(library, &first.topology) {
            Ok((stock, seen)) => (stock, SeenSummary::of(&stock, &seen)),
            Err(reason) => return nothing(reason),
        };
        let kind = first.schedule.collective.kind();
        if stock.choice(kind, LARGE_BYTES).is_none() {
            return nothing(format!("it does not tune {kind}"));
        }
        // Across machines, what RCCL takes off smaller messages makes it choose, and says nothing of times.
        let least = if library.version == Version::Rccl2_21 && seen.machines > 1 { RCCL_BYTES_MIN } else { 0 };
        let sizes = sizes.iter().copied().chain([LARGE_BYTES]).filter(|&size| size >= least);
        let fastest = |size: u64| {
            let calls =
                plans.iter().filter_map(|&(name, plan)| Some(CallSummary { plan: name, ..call(&stock, plan, size)? }));
            calls.min_by_key(|call| call.plan_time_ps)
        };
        let calls = sizes.filter_map(fastest).collect();
        let latencies_ns = Some(stock.latencies_ns());
        Self { seen: Some(seen), latencies_ns, reason: None, calls, ..nothing(String::new()) }
    }

    /// What stands over the plan's times.
    fn heading(&self) -> String {
        if self.calls.iter().any(|call| call.plan.is_some()) {
            "BEST PLAN".to_owned()
        } else {
            self.subject.to_uppercase()
        }
    }
}

/// The library's time and the plan's. That of the plan is what it would be with the library's kernels: its latencies for
/// each hop, and the plan's rate.
fn call(stock: &Stock, plan: &Material, size_bytes: u64) -> Option<CallSummary> {
    let Timed { algorithm, protocol, time_ps } = stock.choice(plan.schedule.collective.kind(), size_bytes)?;
    let time_ps = u64::try_from(time_ps).unwrap_or(u64::MAX);
    let (base_ns, hop_ns) = stock.latencies_ns();
    let latency_ps = (base_ns + u64::from(plan.verdict.depth_max).saturating_mul(hop_ns)).saturating_mul(1_000);
    let rate = Some(&plan.verdict.algbw).filter(|rate| !rate.is_zero())?;
    let (bytes, seconds) = rate.parts();
    let transfer_ps = seconds * size_bytes * PS_PER_SEC / bytes;
    let plan_time_ps = latency_ps.saturating_add(u64::try_from(transfer_ps).unwrap_or(u64::MAX));
    let times_as_fast = time_ps as f64 / plan_time_ps.max(1) as f64;
    let (algorithm, protocol) = (algorithm.name(), protocol.name());
    Some(CallSummary { size_bytes, plan: None, algorithm, protocol, time_ps, plan_time_ps, times_as_fast })
}

/// The table and what it comes to.
pub(in crate::commands) fn lines(stock: &StockSummary) -> Vec<String> {
    let Some(seen) = &stock.seen else {
        return stock
            .reason
            .iter()
            .map(|reason| format!("stock      no times of {}: {reason}", stock.library))
            .collect();
    };
    let rings = seen.rings.map(|rings| format!(", {}", count(rings as usize, "ring"))).unwrap_or_default();
    let nics = if seen.machines > 1 {
        format!(" and {} of {} GB/s each", count(seen.nics as usize, "NIC"), seen.nic_gigabytes)
    } else {
        String::new()
    };
    let mut lines = vec![format!(
        "{} as it runs by itself, by its own formulas: {} with {}{nics}, seen as {}{rings}",
        stock.library,
        count(seen.machines as usize, "machine"),
        count(seen.gpus as usize, "GPU"),
        seen.generation,
    )];
    if let Some((base_ns, hop_ns)) = stock.latencies_ns {
        let [base, hop] = [base_ns, hop_ns].map(|latency| latency as f64 / 1e3);
        lines.push(format!(
            "{} by its rate, with the same latencies: {base} µs once and {hop} µs for each hop",
            stock.subject
        ));
    }
    let mut table = Table::new(&["SIZE#", "TAKES", "TIME µs#", &format!("{} µs#", stock.heading()), "TIMES AS FAST#"]);
    rows(stock).into_iter().for_each(|row| table.row(row));
    lines.push(table.text());
    lines.push(String::new());
    lines.push(verdict(stock));
    lines
}

/// Of some sizes: size, what is taken, its time, the plan's, and how many times as fast that is.
fn rows(stock: &StockSummary) -> Vec<[String; 5]> {
    let last = stock.calls.len().saturating_sub(1);
    let shown = spread(last, SIZES_MAX).into_iter().chain([last]).filter_map(|position| stock.calls.get(position));
    let row = |call: &CallSummary| {
        [
            in_words(call.size_bytes),
            format!("{} {}", call.algorithm, call.protocol),
            micros(call.time_ps),
            call.plan.map_or_else(String::new, |plan| format!("{plan} ")) + &micros(call.plan_time_ps),
            format!("{:.2}", call.times_as_fast),
        ]
    };
    shown.map(row).collect()
}

/// The same as a part of a page.
pub(in crate::commands) fn html(stock: &StockSummary) -> String {
    let mut page = format!("<h2>Beside {}</h2>\n", escaped(&stock.library));
    if stock.seen.is_none() {
        return page + &lines(stock).iter().map(|line| format!("<p>{}</p>\n", escaped(line))).collect::<String>();
    }
    page += &format!("<p>{}.</p>\n", escaped(verdict(stock).trim_start_matches("stock").trim()));
    page += &format!(
        "<div class=\"wide\"><table>\n<caption>Times in µs by the formulas of {}, and this plan with the same latencies</caption>\n\
         <thead><tr><th scope=\"col\">size</th><th scope=\"col\">takes</th><th scope=\"col\">time</th>\
         <th scope=\"col\">this plan</th><th scope=\"col\">times as fast</th></tr></thead>\n<tbody>\n",
        escaped(&stock.library)
    );
    for [size, rest @ ..] in rows(stock) {
        let cells: String = rest.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        page += &format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escaped(&size));
    }
    page + "</tbody>\n</table></div>\n"
}

/// Where it is worth it, and where it loses.
fn verdict(stock: &StockSummary) -> String {
    let least = GAIN_LEAST.0 as f64 / GAIN_LEAST.1 as f64;
    let side = |times: f64| if times >= least { 1 } else { i8::from(times * least > 1.0) - 1 };
    let sides: Vec<(u64, i8)> = stock.calls.iter().map(|call| (call.size_bytes, side(call.times_as_fast))).collect();
    let ranges: Vec<String> = sides
        .chunk_by(|a, b| a.1 == b.1)
        .filter_map(|range| {
            let (first, last) = (range.first()?, range.last()?);
            let sizes = if first.0 == last.0 {
                in_words(first.0)
            } else {
                format!("{} to {}", in_words(first.0), in_words(last.0))
            };
            Some(match first.1 {
                1 => format!("faster at {sizes}"),
                0 => format!("as good at {sizes}"),
                _ => format!("slower at {sizes}"),
            })
        })
        .collect();
    let large = stock.calls.last().map(|call| {
        let rate = |time_ps: u64| call.size_bytes as f64 / (time_ps.max(1) as f64 / 1e3);
        format!(
            "; {} reaches {:.1} GB/s with {}, {} {:.1}: {:.2} times",
            stock.library,
            rate(call.time_ps),
            in_words(call.size_bytes),
            call.plan.unwrap_or(stock.subject),
            rate(call.plan_time_ps),
            call.times_as_fast
        )
    });
    let (subject, ranges) = (stock.subject, ranges.join(", "));
    format!("stock      {subject} is {ranges} than {}{}", stock.library, large.unwrap_or_default())
}
