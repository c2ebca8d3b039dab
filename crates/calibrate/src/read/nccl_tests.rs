//! Output of nccl-tests and rccl-tests: `all_reduce_perf` and its kin.
//!
//! A row is size, count, type, and with some collectives operator and root, then time, algbw, busbw and errors, out of place
//! and in place. Times out of place count. Which column is the time the heading says.

use super::{Point, ReadRunsError, Run, collective, lines, micros, number, wrong};

pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| is_heading(line.trim()))
}

/// `# size count type redop root time algbw busbw #wrong …`.
fn is_heading(line: &str) -> bool {
    line.starts_with('#') && ["size", "count", "time", "algbw", "busbw"].iter().all(|word| line.contains(word))
}

pub(super) fn read(text: &str) -> Result<Run, ReadRunsError> {
    // What NCCL takes for large messages.
    let algorithm = Some("ring".to_owned());
    let mut run = Run { collective: None, algorithm, ranks: None, is_per_rank: false, points: Vec::new() };
    let mut time = None;
    let mut ranks = 0;
    for (line, content) in lines(text) {
        if let Some(comment) = content.strip_prefix('#') {
            let comment = comment.trim();
            if is_heading(content) {
                time = comment.split_whitespace().position(|word| word == "time");
            } else if comment.starts_with("Rank ") {
                ranks += 1;
            } else if let Some(name) = comment.strip_prefix("Collective test starting:") {
                run.collective = collective(name);
            }
        } else if let Some(time) = time.filter(|_| content.starts_with(|first: char| first.is_ascii_digit())) {
            let fields: Vec<&str> = content.split_whitespace().collect();
            if fields.len() <= time {
                return Err(wrong(line, format!("{} columns are fewer than the heading has", fields.len())));
            }
            let bytes = number(line, "the size", fields.first().copied())?;
            let micros = micros(line, fields.get(time).copied())?;
            run.points.push(Point { bytes, micros });
        }
    }
    run.ranks = Some(ranks).filter(|&ranks| ranks > 0);
    Ok(run)
}
