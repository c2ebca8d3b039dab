//! What stock NCCL or RCCL would take for the same call, and how long its own formulas say that it takes.

use canopy_draw::escaped;
use canopy_stock::nccl::{Seen, Stock, Version};
use serde::Serialize;

use super::report::micros;
use crate::material::Material;
use crate::sizes::{in_words, spread};
use crate::stock::{LARGE_BYTES, Library, Model, Taken};
use crate::table::{Table, count};

/// A plan that is less than this many times as fast as another, as a fraction, is no gain over it: what is lost on the way to a
/// network's rates differs by more.
pub(in crate::commands) const GAIN_LEAST: (u64, u64) = (21, 20);

/// The same as a number, for what is itself in floats.
pub(in crate::commands) fn gain_least() -> f64 {
    GAIN_LEAST.0 as f64 / GAIN_LEAST.1 as f64
}

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
        let Seen { machine, nodes, .. } = seen;
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
    /// By formulas alone, where the network carries less.
    #[serde(skip_serializing_if = "Option::is_none")]
    formula_ps: Option<u64>,
    /// Of the plan with the library's latencies.
    plan_time_ps: u64,
    times_as_fast: f64,
}

impl StockSummary {
    /// One plan at some sizes, and at a large one; in words why there is no model.
    pub(in crate::commands) fn of(model: Result<&Model, (Library, &str)>, plan: &Material, sizes: &[u64]) -> Self {
        match model {
            Ok(model) => Self { subject: "this plan", ..Self::beside(model, &[(None, plan)], sizes) },
            Err((library, reason)) => Self::nothing(library, reason.to_owned()),
        }
    }

    /// At each size the one of several plans that is fastest with the library's latencies.
    pub(in crate::commands) fn of_several(
        library: Library,
        plans: &[(Option<&'static str>, &Material)],
        sizes: &[u64],
    ) -> Self {
        let Some((_, first)) = plans.first() else {
            return Self::nothing(library, "there is nothing to compare".to_owned());
        };
        let nvls = first.bound_with_nvls(&|| false).ok().flatten();
        match Model::of(library, first, nvls.as_ref().map(|bound| &bound.upper), &|| false) {
            Ok(model) => Self::beside(&model, plans, sizes),
            Err(reason) => Self::nothing(library, reason),
        }
    }

    fn nothing(library: Library, reason: String) -> Self {
        Self {
            library: library.to_string(),
            subject: "the best of these plans",
            seen: None,
            latencies_ns: None,
            reason: Some(reason),
            calls: Vec::new(),
        }
    }

    fn beside(model: &Model, plans: &[(Option<&'static str>, &Material)], sizes: &[u64]) -> Self {
        let sizes = sizes.iter().copied().chain([LARGE_BYTES]);
        let fastest = |size: u64| {
            let calls =
                plans.iter().filter_map(|&(name, plan)| Some(CallSummary { plan: name, ..call(model, plan, size)? }));
            calls.min_by_key(|call| call.plan_time_ps)
        };
        Self {
            seen: Some(SeenSummary::of(&model.stock, &model.seen)),
            latencies_ns: Some(model.stock.latencies_ns()),
            reason: None,
            calls: sizes.filter_map(fastest).collect(),
            ..Self::nothing(model.library, String::new())
        }
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

/// The library's time and the plan's.
fn call(model: &Model, plan: &Material, size_bytes: u64) -> Option<CallSummary> {
    let Taken { algorithm, protocol, time_ps, formula_ps } = model.taken(size_bytes)?;
    let plan_time_ps = model.plan_time_ps(plan.rate(), plan.verdict.depth_max, size_bytes)?;
    let times_as_fast = time_ps as f64 / plan_time_ps.max(1) as f64;
    let (algorithm, protocol) = (algorithm.name(), protocol.name());
    Some(CallSummary { size_bytes, plan: None, algorithm, protocol, time_ps, formula_ps, plan_time_ps, times_as_fast })
}

/// The latencies that all times have.
pub(in crate::commands) fn latencies(stock: &StockSummary) -> String {
    let (base_ns, hop_ns) = stock.latencies_ns.unwrap_or_default();
    let [base, hop] = [base_ns, hop_ns].map(|latency| latency as f64 / 1e3);
    format!("with the latencies of {}: {base} µs once and {hop} µs for each hop", stock.library)
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
    lines.push(format!("{} by its rate, {}", stock.subject, latencies(stock)));
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
    let least = gain_least();
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
        let limited = call
            .formula_ps
            .map(|formula_ps| format!(" (all that the network carries; its formulas say {:.1})", rate(formula_ps)));
        format!(
            "; {} reaches {:.1} GB/s{} with {}, {} {:.1}",
            stock.library,
            rate(call.time_ps),
            limited.unwrap_or_default(),
            in_words(call.size_bytes),
            call.plan.unwrap_or(stock.subject),
            rate(call.plan_time_ps)
        )
    });
    let (subject, ranges) = (stock.subject, ranges.join(", "));
    format!("stock      {subject} is {ranges} than {}{}", stock.library, large.unwrap_or_default())
}
