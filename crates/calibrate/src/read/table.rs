//! Tables with commas: `bytes,microseconds` of one collective, `collective,algorithm,bytes,microseconds` of several, or
//! `from,to,bytes,microseconds` of messages between pairs of ranks. Columns come in any order; `#` begins a comment.

use std::collections::BTreeMap;

use super::{Measured, POINTS_MAX, Pair, Point, ReadRunsError, Run, collective, lines, micros, number, wrong};

const COLUMNS: [&str; 6] = ["collective", "algorithm", "from", "to", "bytes", "microseconds"];

/// Columns by name, if the line is a heading.
fn heading(line: &str) -> Option<BTreeMap<&str, usize>> {
    let names: Vec<&str> = line.split(',').map(str::trim).collect();
    let is_heading = names.iter().all(|name| COLUMNS.contains(name));
    let columns: BTreeMap<&str, usize> = names.iter().copied().zip(0..).collect();
    let is_whole = columns.len() == names.len() && ["bytes", "microseconds"].iter().all(|name| names.contains(name));
    (is_heading && is_whole && names.contains(&"from") == names.contains(&"to")).then_some(columns)
}

fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    lines(text).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

pub(super) fn is_one(text: &str) -> bool {
    rows(text).next().is_some_and(|(_, line)| heading(line).is_some())
}

pub(super) fn read(text: &str) -> Result<Measured, ReadRunsError> {
    let mut rows = rows(text);
    let columns = rows.next().and_then(|(_, line)| heading(line)).ok_or(ReadRunsError::Unknown)?;
    let mut pairs = Vec::new();
    let mut runs: BTreeMap<(Option<&str>, Option<&str>), Run> = BTreeMap::new();
    for (count, (line, content)) in rows.enumerate() {
        if count >= POINTS_MAX {
            return Err(ReadRunsError::TooMany);
        }
        let fields: Vec<&str> = content.split(',').map(str::trim).collect();
        if fields.len() != columns.len() {
            return Err(wrong(line, format!("{} fields are not the {} of the heading", fields.len(), columns.len())));
        }
        let field = |name: &str| columns.get(name).and_then(|&column| fields.get(column)).copied();
        let bytes = number(line, "the size", field("bytes"))?;
        let point = Point { bytes, micros: micros(line, field("microseconds"))? };
        if let (Some(from), Some(to)) = (field("from"), field("to")) {
            pairs.push(Pair { from: from.to_owned(), to: to.to_owned(), point });
            continue;
        }
        let kind = field("collective").map(|name| {
            collective(name)
                .ok_or_else(|| wrong(line, format!("unknown collective `{}`", canopy_topology::shorten(name))))
        });
        let kind = kind.transpose()?;
        let empty = || Run {
            collective: kind,
            algorithm: Some(field("algorithm").unwrap_or("auto").to_owned()),
            ..Run::of(Vec::new())
        };
        runs.entry((field("collective"), field("algorithm"))).or_insert_with(empty).points.push(point);
    }
    Ok(if columns.contains_key("from") { Measured::Pairs(pairs) } else { Measured::Runs(runs.into_values().collect()) })
}
