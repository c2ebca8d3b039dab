//! Output of OSU's micro-benchmarks of collectives: sizes and average latencies in microseconds.
//!
//! Of an allgather, an all-to-all, a gather and a scatter the size is that of one part, of which there is one for each rank.

use canopy_schedule::CollectiveKind;

use super::{LIBRARY, Point, ReadRunsError, Run, collective, lines, micros, number};

pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| title(line).is_some())
}

/// The collective of `# OSU MPI Allreduce Latency Test v7.4`.
fn title(line: &str) -> Option<Option<CollectiveKind>> {
    let rest = line.trim().strip_prefix("# OSU ")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let end = words.iter().position(|&word| word == "Latency")?;
    // `MPI`, `MPI-CUDA`, `NCCL`; of what follows, `Non-blocking` and `Personalized` say nothing of what is moved.
    let name: String = words.get(1..end)?.iter().copied().filter(|word| *word != "Personalized").collect();
    Some(collective(&name.replace("All-to-All", "alltoall")))
}

pub(super) fn read(text: &str) -> Result<Run, ReadRunsError> {
    let collective = text.lines().find_map(title).flatten();
    let is_per_rank = matches!(
        collective,
        Some(CollectiveKind::Allgather | CollectiveKind::AllToAll | CollectiveKind::Gather | CollectiveKind::Scatter)
    );
    let mut points = Vec::new();
    for (line, content) in lines(text) {
        if content.starts_with(|first: char| first.is_ascii_digit()) {
            let mut fields = content.split_whitespace();
            let bytes = number(line, "the size", fields.next())?;
            points.push(Point { bytes, micros: micros(line, fields.next())? });
        }
    }
    // `OSU NCCL Allreduce`, where others are those of an MPI.
    let is_library = text.lines().any(|line| line.trim().starts_with("# OSU NCCL "));
    Ok(Run { collective, algorithm: is_library.then(|| LIBRARY.to_owned()), is_per_rank, ..Run::of(points) })
}
