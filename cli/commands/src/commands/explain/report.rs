//! The explanation as one HTML file: words, tables and drawings. It runs no scripts and loads nothing.

use std::fmt::Write as _;

use canopy_draw::{Series, SweepDrawing, draw_sweep, escaped};

use super::ExplainArgs;
use super::compare::Comparison;
use super::summary::Explained;
use super::text::{baseline, facts, omitted, times_in_words, verdict};
use crate::commands::draw;
use crate::commands::simulate::report::micros;
use crate::exit::Failure;
use crate::material::Material;
use crate::output::gigabytes_per_sec;
use crate::sizes::in_words;

/// Size of the run that is drawn where no size is given.
const RUN_BYTES: u64 = 16 << 20;

/// Nothing is fetched and nothing runs, whatever names of nodes say.
const HEAD: &str = "<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";

const STYLE: &str = "\
:root { color-scheme: light dark; --ink: #1d2733; --paper: #ffffff; --line: #c8d0d8; --soft: #f1f4f7; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --paper: #14191f; --line: #3b4651; --soft: #1e252d; } }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; font: 15px/1.5 sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; } dt { font-weight: bold; } dd { margin: 0; }
.wide { overflow-x: auto; margin: 1.2rem 0; } caption { text-align: left; padding: .3rem 0; } table { border-collapse: collapse; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead th { background: var(--soft); }
figure { margin: 1rem 0; overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
figure svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
footer { margin-top: 2.5rem; padding-top: .8rem; border-top: 1px solid var(--line); font-size: .85rem; }
code { overflow-wrap: anywhere; }
";

/// The whole file; the same bytes for the same plan and command.
///
/// The reason replaces a drawing that would be too large to read.
pub(super) fn html(
    args: &ExplainArgs,
    plan: &Material,
    compared: &Comparison,
    explained: &Explained,
) -> Result<String, Failure> {
    let mut lines = facts(args, plan, explained).into_iter();
    let heading = lines.next().unwrap_or_default();
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n{HEAD}<title>{0}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{0}</h1>\n",
        escaped(&heading)
    );
    page += "<h2>What binds it</h2>\n<dl>\n";
    definitions(&mut page, lines);
    page += "</dl>\n<h2>Is it worth it?</h2>\n<dl>\n";
    definitions(&mut page, std::iter::once(baseline(compared)).chain(verdict(plan, compared, explained)));
    page += "</dl>\n";
    rates(&mut page, plan, compared);
    times(&mut page, args, compared, explained);
    page += &crate::commands::simulate::stock::html(&explained.stock);
    if let Some(words) = omitted(plan, compared) {
        page += &format!("<p>Sizes: {words}.</p>\n");
    }
    let sizes: Vec<(u64, String)> = compared.sizes.iter().map(|&size| (size, in_words(size))).collect();
    let series =
        compared.entries.iter().map(|entry| Series { name: entry.name.clone(), times_ps: entry.times.clone() });
    let series: Vec<Series> = series.collect();
    let sweep = draw_sweep(&SweepDrawing { title: "Times by size", sizes: &sizes, series: &series, marks: &[] });
    figure(&mut page, "Times by size", Ok(sweep))?;
    let base = crate::material::unbroken(&plan.topology);
    page += "<h2>The network</h2>\n";
    figure(&mut page, "The network with its loads", draw::network(&args.subject, &plan.topology, Some(plan), base))?;
    page += "<h2>A run</h2>\n";
    let size = args.size.unwrap_or(RUN_BYTES);
    figure(&mut page, "A run over time", draw::timeline::draw(&args.subject, plan, size))?;
    page += "<h2>Trees</h2>\n";
    figure(&mut page, "Trees of the plan", draw::trees::draw(&args.subject, plan, None, 1))?;
    if !compared.absent.is_empty() {
        page += "<h2>Left out</h2>\n<ul>\n";
        for absent in &compared.absent {
            let _infallible = writeln!(page, "<li>{} {}</li>", escaped(absent.name), escaped(&absent.reason));
        }
        page += "</ul>\n";
    }
    page += "</main>\n";
    footer(&mut page, args.date.as_deref());
    page += "</body>\n</html>\n";
    Ok(page)
}

/// Where the report comes from: version, date if one is given, and command.
fn footer(page: &mut String, date: Option<&str>) {
    let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("CANOPY_BUILD_REVISION"));
    let on = date.map(|date| format!(" on <time datetime=\"{0}\">{0}</time>", escaped(date))).unwrap_or_default();
    let arguments = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    let command: Vec<String> = std::iter::once("canopy".to_owned()).chain(arguments).collect();
    let command = escaped(&command.join(" "));
    *page += &format!("<footer>\n<p>Written{on} by canopy {version} (commit {commit})</p>\n");
    *page += &format!("<p><code>{command}</code></p>\n</footer>\n");
}

/// A word as a POSIX shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Reads a date such as `2026-01-31`.
pub(super) fn date(text: &str) -> Result<String, String> {
    let number = |part: &str, digits: usize, least: u16, most: u16| {
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number && part.parse().is_ok_and(|number: u16| (least..=most).contains(&number))
    };
    let is_date = match text.split('-').collect::<Vec<_>>().as_slice() {
        &[year, month, day] => number(year, 4, 1, 9999) && number(month, 2, 1, 12) && number(day, 2, 1, 31),
        _ => false,
    };
    is_date.then(|| text.to_owned()).ok_or_else(|| format!("`{text}` is not a date; write it as `2026-01-31`"))
}

/// Lines of a word and what it says; a line without a word goes on with the one before.
fn definitions(page: &mut String, lines: impl Iterator<Item = String>) {
    for line in lines {
        let (word, text) = line.split_once(' ').unwrap_or((&line, ""));
        let _infallible = writeln!(page, "<dt>{}</dt><dd>{}</dd>", escaped(word), escaped(text.trim_start()));
    }
}

fn rates(page: &mut String, plan: &Material, compared: &Comparison) {
    *page += "<div class=\"wide\"><table>\n<caption>Of large messages, exact</caption>\n<thead><tr><th scope=\"col\">plan</th>\
              <th scope=\"col\">algbw, GB/s</th><th scope=\"col\">bytes/s</th><th scope=\"col\">of the bound</th>\
              <th scope=\"col\">traffic</th><th scope=\"col\">depth</th></tr></thead>\n<tbody>\n";
    for entry in &compared.entries {
        let part = entry.of_bound(&plan.bound.upper).map_or_else(String::new, |part| part.to_string());
        let course = entry.course.as_ref();
        let _infallible = writeln!(
            page,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{part}</td><td>{}</td><td>{}</td></tr>",
            escaped(&entry.name),
            gigabytes_per_sec(&entry.algbw),
            entry.algbw,
            course.map_or("-".to_owned(), |course| format!("{:.3}", course.traffic.to_f64())),
            course.map_or("-".to_owned(), |course| course.depth.to_string())
        );
    }
    *page += "</tbody>\n</table></div>\n";
}

fn times(page: &mut String, args: &ExplainArgs, compared: &Comparison, explained: &Explained) {
    let words = times_in_words(args, compared, explained);
    let words = escaped(words.trim_start_matches("times "));
    let _infallible = write!(
        page,
        "<div class=\"wide\"><table>\n<caption>Times in µs, {words}</caption>\n<thead><tr><th scope=\"col\">plan</th>"
    );
    for &size in &compared.sizes {
        *page += &format!("<th scope=\"col\">{}</th>", in_words(size));
    }
    *page += "</tr></thead>\n<tbody>\n";
    for entry in &compared.entries {
        *page += &format!("<tr><th scope=\"row\">{}</th>", escaped(&entry.name));
        for time in &entry.times {
            *page += &format!("<td>{}</td>", time.map_or("-".to_owned(), micros));
        }
        *page += "</tr>\n";
    }
    *page += "</tbody>\n</table></div>\n";
}

/// A drawing with a name for readers that do not show it, or why there is none.
fn figure(page: &mut String, name: &str, drawing: Result<String, Failure>) -> Result<(), Failure> {
    match drawing {
        Ok(svg) => *page += &format!("<figure role=\"img\" aria-label=\"{}\">\n{svg}</figure>\n", escaped(name)),
        Err(Failure::Interrupted) => return Err(Failure::Interrupted),
        Err(failure) => *page += &format!("<p>Not drawn: {}.</p>\n", escaped(&failure.sentence())),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_and_dates_are_dates() {
        assert_eq!(
            ["a b", "it's", "", "dgx-a100:boxes=2"].map(quoted),
            ["'a b'", "'it'\\''s'", "''", "dgx-a100:boxes=2"]
        );
        assert_eq!(date("2026-01-31"), Ok("2026-01-31".to_owned()));
        for wrong in
            ["", "2026-1-31", "2026-13-01", "2026-01-00", "31.1.2026", "2026-01-31-1", "20260131", "2026-+1-01"]
        {
            assert!(date(wrong).is_err(), "{wrong}");
        }
    }
}
