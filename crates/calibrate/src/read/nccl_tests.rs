//! Output of nccl-tests and rccl-tests: `all_reduce_perf` and its kin.
//!
//! A row is size, count, type, and with some collectives operator and root, then time, algbw, busbw and errors, out of place
//! and in place. Times out of place count. Which column is the time the heading says. Other lines, such as those of NCCL's
//! log, are passed over; web pages lose the `#` of comments.

use super::{LIBRARY, Point, ReadRunsError, Run, collective, lines, micros, number, wrong};

/// Words by which GPUs of AMD are told.
const AMD: [&str; 3] = ["AMD", "Instinct", "gfx"];

pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| is_heading(line.trim()))
}

/// `# size count type redop root time algbw busbw #wrong …`.
fn is_heading(line: &str) -> bool {
    let words: Vec<&str> = line.trim_start_matches('#').split_whitespace().collect();
    words.first() == Some(&"size") && ["count", "time", "algbw", "busbw"].iter().all(|word| words.contains(word))
}

pub(super) fn read(text: &str) -> Result<Run, ReadRunsError> {
    let mut run = Run { algorithm: Some(LIBRARY.to_owned()), ..Run::of(Vec::new()) };
    let mut time = None;
    let mut ranks = 0;
    for (line, content) in lines(text) {
        let comment = content.trim_start_matches('#').trim();
        let fields: Vec<&str> = content.split_whitespace().collect();
        let is_number = |place: usize| fields.get(place).is_none_or(|field| field.parse::<i64>().is_ok());
        if is_heading(content) {
            time = comment.split_whitespace().position(|word| word == "time");
        } else if comment.starts_with("Rank ") && comment.contains(" device ") {
            ranks += 1;
            run.is_rccl |= AMD.iter().any(|word| comment.contains(word));
        } else if let Some(name) = comment.strip_prefix("Collective test starting:") {
            run.collective = collective(name);
        } else if let Some(time) = time.filter(|_| !fields.is_empty() && is_number(0) && is_number(1)) {
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
