//! Output of `canopy simulate --json`: one object in the last line.

use serde::Deserialize;

use super::{Point, ReadRunsError, Run, collective, wrong};

#[derive(Deserialize)]
struct Simulated {
    topology: Network,
    collective: String,
    algorithm: String,
    sizes: Vec<Size>,
}

#[derive(Deserialize)]
struct Network {
    ranks: u32,
}

#[derive(Deserialize)]
struct Size {
    size_bytes: u64,
    time_ps: f64,
}

fn last(text: &str) -> Option<(usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).last()
}

pub(super) fn is_one(text: &str) -> bool {
    let is_object = |line: &str| line.trim_start().starts_with('{') && line.contains("\"command\":\"simulate\"");
    last(text).is_some_and(|(_, line)| is_object(line))
}

pub(super) fn read(text: &str) -> Result<Run, ReadRunsError> {
    let (line, object) = last(text).ok_or(ReadRunsError::Empty)?;
    let found: Simulated = serde_json::from_str(object).map_err(|error| wrong(line, error.to_string()))?;
    let point = |size: &Size| Point { bytes: size.size_bytes, micros: size.time_ps / 1e6 };
    let points: Vec<Point> = found.sizes.iter().map(point).filter(|point| point.micros > 0.0).collect();
    Ok(Run {
        collective: collective(&found.collective),
        algorithm: Some(found.algorithm),
        is_simulated: true,
        ranks: Some(found.topology.ranks),
        ..Run::of(points)
    })
}
