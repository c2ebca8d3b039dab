//! A plan's run over time: the links of its critical path and the busiest others.

use std::cmp::Reverse;

use canopy_draw::{Bar, ROWS_MAX, Row, TimelineDrawing, draw_timeline};
use canopy_simulate::{Outcome, PIECE_BYTES_USUAL, Sent, SimulateError, SimulateOptions, simulate_traced};
use canopy_topology::LinkIndex;

use super::heading;
use crate::commands::simulate::report::micros;
use crate::exit::{Failure, words};
use crate::material::Material;
use crate::sizes::in_words;
use crate::table::count;

/// Most work: events, and looks at links while rates are computed.
const WORK_MAX: u64 = 200_000_000;

/// Simulates the plan and draws when its links were busy.
pub(in crate::commands) fn draw(name: &str, plan: &Material, size_bytes: u64) -> Result<String, Failure> {
    let options = SimulateOptions::usual(size_bytes, WORK_MAX);
    let (outcome, trace) = simulate_traced(&plan.topology, &plan.graph, &options, &|| false).map_err(|error| {
        let failure = Failure::input(format!("cannot simulate {}: {}", in_words(size_bytes), words(&error)));
        match error {
            SimulateError::TooLarge { .. } | SimulateError::SizeTooLarge { .. } => failure.help("lower --size"),
            _ => failure,
        }
    })?;
    let links = chosen(&outcome);
    let rows = rows(plan, &outcome, &trace, &links);
    let used = outcome.links.iter().filter(|link| link.bytes > 0).count();
    let note = format!(
        "{}, {} µs with alpha 1 µs, pieces of at most {} and fair links; {} of {} that carry anything, those of the critical \
         path of {} first",
        in_words(size_bytes),
        micros(outcome.time_ps),
        in_words(PIECE_BYTES_USUAL),
        rows.len(),
        count(used, "link"),
        count(outcome.critical_path.len(), "message"),
    );
    let title = heading(name, plan);
    Ok(draw_timeline(&TimelineDrawing { title: &title, notes: &[note], rows: &rows, end_ps: outcome.time_ps }))
}

/// Links of the critical path in its order, at most half of all rows; then the busiest others, in the network's order.
fn chosen(outcome: &Outcome) -> Vec<LinkIndex> {
    let mut links: Vec<LinkIndex> = Vec::new();
    for leg in &outcome.critical_path {
        if !links.contains(&leg.link) && links.len() < ROWS_MAX / 2 && leg.link.index() < outcome.links.len() {
            links.push(leg.link);
        }
    }
    let others =
        (0..).map(LinkIndex::new).zip(&outcome.links).filter(|(link, found)| found.bytes > 0 && !links.contains(link));
    let mut others: Vec<(Reverse<u64>, LinkIndex)> =
        others.map(|(link, found)| (Reverse(found.busy_ps), link)).collect();
    others.sort_unstable();
    let mut busiest: Vec<LinkIndex> = others.into_iter().map(|(_, link)| link).take(ROWS_MAX - links.len()).collect();
    busiest.sort_unstable();
    links.extend(busiest);
    links
}

fn rows(plan: &Material, outcome: &Outcome, trace: &[Sent], links: &[LinkIndex]) -> Vec<Row> {
    let topology = &plan.topology;
    let mut row_of = vec![None; topology.links().len()];
    let mut rows: Vec<Row> = Vec::with_capacity(links.len());
    for &link in links {
        row_of[link.index()] = Some(rows.len());
        let [from, to] = [topology.link(link).from, topology.link(link).to].map(|node| topology.node(node).id.as_str());
        rows.push(Row { label: format!("{from} -> {to}"), bars: Vec::new(), critical: Vec::new() });
    }
    for sent in trace {
        let bar = Bar { start_ps: sent.launched_ps, end_ps: sent.left_ps };
        for link in plan.graph.routes.get(sent.route).unwrap_or_default() {
            if let Some(row) = row_of[link.index()].filter(|_| bar.start_ps < bar.end_ps) {
                rows[row].bars.push(bar);
            }
        }
    }
    for leg in &outcome.critical_path {
        if let Some(row) = row_of.get(leg.link.index()).copied().flatten() {
            rows[row].critical.push(Bar { start_ps: leg.start_ps, end_ps: leg.end_ps });
        }
    }
    rows
}
