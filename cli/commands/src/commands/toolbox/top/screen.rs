//! What is drawn: an overview, and lists below it, on 80 columns and 24 lines or more.

use canopy_proto::v1::{KnownFault, Operation, Priority};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Table, Widget as _};

use super::snapshot::Moments;
use crate::output::bytes_in_words;
use crate::protocol_words::{stated, word};

/// Lines of the overview's panels, borders included.
const PANEL_LINES: u16 = 9;
/// Their widths: none is cut off on 80 columns.
const PANEL_WIDTHS: [Constraint; 3] = [Constraint::Length(24), Constraint::Fill(1), Constraint::Fill(1)];

/// Which list has the space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum List {
    #[default]
    Jobs,
    Faults,
}

/// What the person at the terminal has chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) list: List,
    /// Entries of the list above the first that is shown.
    pub(super) scrolled: usize,
    pub(super) is_paused: bool,
    /// The server, as it is named.
    pub(super) server: String,
    /// Why there is nothing newer.
    pub(super) problem: Option<String>,
}

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, moments: &Moments, view: &View) {
    let area = frame.area();
    paint(frame.buffer_mut(), area, moments, view);
}

/// The same into a buffer.
pub(super) fn paint(buffer: &mut Buffer, area: Rect, moments: &Moments, view: &View) {
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(PANEL_LINES),
        Constraint::Min(3),
        Constraint::Length(1),
    ]);
    let [head, panels, list, foot] = areas.areas(area);
    Paragraph::new(heading(moments, view)).render(head, buffer);
    let [queue, answers, store] = Layout::horizontal(PANEL_WIDTHS).areas(panels);
    panel("Queue", queue_lines(moments)).render(queue, buffer);
    panel("Plans", answer_lines(moments)).render(answers, buffer);
    panel("Server", store_lines(moments)).render(store, buffer);
    match view.list {
        List::Jobs => jobs(moments, view, list).render_in(list, buffer),
        List::Faults => faults(moments, view, list).render_in(list, buffer),
    }
    Paragraph::new(footer(view)).render(foot, buffer);
}

fn bold(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Style::new().add_modifier(Modifier::BOLD))
}

fn alarming(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Style::new().fg(Color::Red).add_modifier(Modifier::BOLD))
}

fn heading(moments: &Moments, view: &View) -> Line<'static> {
    let status = &moments.now.status;
    let mut spans = vec![bold(format!("canopyd {}", status.version)), Span::raw(format!(" at {}", view.server))];
    spans.push(Span::raw(format!(", up {}", long_time(moments.now.uptime()))));
    if status.draining {
        spans.push(alarming("  DRAINING"));
    }
    if let Some(problem) = &view.problem {
        spans.push(alarming(format!("  {problem}")));
    }
    Line::from(spans)
}

fn footer(view: &View) -> Line<'static> {
    let paused = if view.is_paused { "p go on" } else { "p pause" };
    Line::from(format!("q quit   {paused}   j jobs   f faults   up/down scroll"))
}

fn panel(title: &'static str, lines: Vec<Line<'static>>) -> Paragraph<'static> {
    Paragraph::new(lines).block(Block::bordered().title(title))
}

/// A name and a value.
fn pair(name: &str, value: impl Into<String>) -> Line<'static> {
    Line::from(format!("{name:<11}{}", value.into()))
}

fn queue_lines(moments: &Moments) -> Vec<Line<'static>> {
    let queue = &moments.now.queue;
    let running: u64 = queue.priorities.iter().map(|row| row.running).sum();
    let workers = moments.now.status.limits.as_ref().map_or(0, |limits| limits.workers);
    let mut lines = vec![
        pair("workers", format!("{running} busy of {workers}")),
        pair("waiting", format!("{} of {}", queue.waiting, queue.length_max)),
        Line::from(bold(format!("{:<11}{:>5}{:>5}", "", "wait", "run"))),
    ];
    let named = [
        (Priority::Repair, "repair"),
        (Priority::JobStart, "job start"),
        (Priority::Interactive, "interactive"),
        (Priority::Prefetch, "prefetch"),
    ];
    for (priority, name) in named {
        let row = queue.priorities.iter().find(|row| row.priority() == priority);
        let (waiting, running) = row.map_or((0, 0), |row| (row.waiting, row.running));
        lines.push(Line::from(format!("{name:<11}{waiting:>5}{running:>5}")));
    }
    lines
}

fn answer_lines(moments: &Moments) -> Vec<Line<'static>> {
    const LATENCY: &str = "canopy_plan_latency_seconds";
    let rate = |cache| moments.rate("canopy_plan_requests_total", &[("cache", cache)]);
    let times = |cache| {
        let quantile = |quantile| moments.millis(LATENCY, &[("cache", cache)], quantile);
        match (quantile(0.5), quantile(0.99)) {
            (Some(half), Some(most)) => format!("{} / {}", short_time(half), short_time(most)),
            _ => "-".to_owned(),
        }
    };
    vec![
        pair("calls/s", number(moments.rate("canopy_rpc_requests_total", &[]))),
        pair("cached/s", number(rate("hit"))),
        pair("p50 / p99", times("hit")),
        pair("searched/s", number(rate("miss"))),
        pair("p50 / p99", times("miss")),
        pair("joined/s", number(rate("joined"))),
    ]
}

fn store_lines(moments: &Moments) -> Vec<Line<'static>> {
    let (metrics, counts) = (&moments.now.metrics, moments.now.status.counts.unwrap_or_default());
    let gauge = |name, labels: &[(&str, &str)]| metrics.sum(name, labels);
    let bytes = |name, labels: &[(&str, &str)]| bytes_in_words(whole(gauge(name, labels)));
    let capacity = bytes("canopy_cache_capacity_bytes", &[("tier", "disk")]);
    let mut disk = vec![Span::raw(format!("{:<11}{}", "disk free", bytes("canopy_disk_free_bytes", &[])))];
    if metrics.has("canopy_store_writable") && gauge("canopy_store_writable", &[]) < 1.0 {
        disk.push(alarming(" READ ONLY"));
    }
    let mut faults = vec![Span::raw(format!("{:<11}", "faults"))];
    let active = moments.now.faults.total_size.to_string();
    faults.push(if moments.now.faults.total_size > 0 { alarming(active) } else { Span::raw(active) });
    if metrics.has("canopy_database_reachable") && gauge("canopy_database_reachable", &[]) < 1.0 {
        faults.push(alarming("  DATABASE AWAY"));
    }
    vec![
        pair("plans", format!("{}, {} pinned", counts.plans, counts.pinned_plans)),
        pair("cache", format!("{}/{capacity}", bytes_in_words(counts.plan_bytes))),
        Line::from(disk),
        Line::from(faults),
        pair(
            "leases",
            format!("{}, {} to replan", gauge("canopy_leases_active", &[]), gauge("canopy_replans_waiting", &[])),
        ),
        pair("watchers", format!("{}", gauge("canopy_watchers", &[]))),
    ]
}

/// A table, and what is above it.
struct Listed {
    table: Table<'static>,
}

impl Listed {
    fn render_in(self, area: Rect, buffer: &mut Buffer) {
        ratatui::widgets::Widget::render(self.table, area, buffer);
    }

    /// Those rows that there is room for, from the one that was scrolled to.
    fn new<const N: usize>(
        title: &str,
        heading: [&'static str; N],
        widths: [Constraint; N],
        rows: Vec<[String; N]>,
        (view, area): (&View, Rect),
    ) -> Self {
        let room = usize::from(area.height.saturating_sub(3));
        let first = view.scrolled.min(rows.len().saturating_sub(room));
        let shown = format!("{title} ({})", rows.len());
        let rows = rows.into_iter().skip(first).take(room).map(Row::new);
        let heading = Row::new(heading).style(Style::new().add_modifier(Modifier::BOLD));
        Self { table: Table::new(rows, widths).header(heading).block(Block::bordered().title(shown)) }
    }
}

fn jobs(moments: &Moments, view: &View, area: Rect) -> Listed {
    let row = |operation: &Operation| {
        let metadata = operation.metadata.clone().unwrap_or_default();
        let progress = metadata.progress.clone().unwrap_or_default();
        let done = if progress.total > 0 { format!("{} of {}", progress.done, progress.total) } else { String::new() };
        let kind = metadata.collective.as_ref().map(|collective| collective.kind().as_str_name()).unwrap_or_default();
        [
            operation.name.trim_start_matches("operations/").chars().take(12).collect(),
            word(metadata.state().as_str_name(), "OPERATION_STATE"),
            word(metadata.priority().as_str_name(), "PRIORITY"),
            word(kind, "COLLECTIVE"),
            progress.stage,
            done,
            metadata.waiters.to_string(),
        ]
    };
    let rows = moments.now.queue.operations.iter().map(row).collect();
    let heading = ["JOB", "STATE", "PRIORITY", "COLLECTIVE", "STAGE", "DONE", "CALLERS"];
    let widths = [12, 8, 11, 14, 11, 9, 7].map(Constraint::Length);
    Listed::new("Jobs", heading, widths, rows, (view, area))
}

fn faults(moments: &Moments, view: &View, area: Rect) -> Listed {
    let row = |fault: &KnownFault| {
        let of = if fault.machines.is_empty() { fault.topology.clone() } else { fault.machines.clone() };
        [
            fault.text.clone(),
            word(fault.state().as_str_name(), "FAULT_STATE"),
            stated(fault.severity().as_str_name(), "SEVERITY").unwrap_or_default(),
            fault.sources.join(","),
            of,
        ]
    };
    let rows = moments.now.faults.faults.iter().map(row).collect();
    let heading = ["FAULT", "STATE", "SEVERITY", "SOURCES", "OF"];
    let widths = [
        Constraint::Fill(2),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(14),
        Constraint::Fill(2),
    ];
    Listed::new("Faults", heading, widths, rows, (view, area))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and times, which `as` keeps within bounds"
)]
const fn whole(value: f64) -> u64 {
    value as u64
}

/// A rate with as many digits as say something.
fn number(value: f64) -> String {
    if value == 0.0 || value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// Milliseconds.
fn short_time(millis: f64) -> String {
    match millis {
        millis if millis >= 10_000.0 => format!("{:.0} s", millis / 1e3),
        millis if millis >= 1000.0 => format!("{:.1} s", millis / 1e3),
        millis if millis >= 10.0 => format!("{millis:.0} ms"),
        millis => format!("{millis:.1} ms"),
    }
}

/// Seconds.
fn long_time(seconds: f64) -> String {
    let minutes = whole(seconds) / 60;
    match minutes {
        0 => format!("{seconds:.0} s"),
        1..60 => format!("{minutes} min"),
        60..2880 => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => format!("{} days", minutes / 1440),
    }
}

#[cfg(test)]
mod tests;
