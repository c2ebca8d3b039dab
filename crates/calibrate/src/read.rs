//! Runs in the words of the programs that timed them: nccl-tests, OSU's micro-benchmarks, NCCL's Inspector, canopy's own
//! simulations, and tables.
//!
//! A text is recognised by its content. What it does not say (a collective, how many ranks there were) the caller states.

mod inspector;
mod nccl_tests;
mod osu;
mod simulated;
mod table;

use canopy_schedule::CollectiveKind;
use canopy_topology::shorten;

/// Largest text that is read.
pub const RUNS_BYTES_MAX: usize = 64 << 20;
/// Most times of one text.
const POINTS_MAX: usize = 1 << 20;

/// The algorithm of runs that NCCL or RCCL made by itself: which it took depends on the size.
pub const LIBRARY: &str = "nccl";

/// A message and what it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes, as canopy counts them: the vector of all ranks, or the message; of all-to-all what one rank has for all.
    pub bytes: u64,
    /// In microseconds, > 0.
    pub micros: f64,
}

/// Runs of one collective.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Which, if the text says it.
    pub collective: Option<CollectiveKind>,
    /// How it was planned, if the text says it: [`LIBRARY`] where NCCL or RCCL ran by itself.
    pub algorithm: Option<String>,
    /// Whether the text names GPUs of AMD.
    pub is_rccl: bool,
    /// Whether it is a simulation of canopy's, not a measurement.
    pub is_simulated: bool,
    /// How many ranks, if the text says it.
    pub ranks: Option<u32>,
    /// Whether sizes are those of one rank's part, which is to be multiplied by ranks.
    pub is_per_rank: bool,
    /// Sizes and times.
    pub points: Vec<Point>,
}

/// A message from one rank to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Id or rank of the sender.
    pub from: String,
    /// Of the receiver.
    pub to: String,
    /// Size and time.
    pub point: Point,
}

impl Run {
    /// Times that say nothing of themselves.
    const fn of(points: Vec<Point>) -> Self {
        Self {
            collective: None,
            algorithm: None,
            is_rccl: false,
            is_simulated: false,
            ranks: None,
            is_per_rank: false,
            points,
        }
    }
}

/// What a text holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// Collectives.
    Runs(Vec<Run>),
    /// Messages between pairs of ranks.
    Pairs(Vec<Pair>),
}

/// Why a text says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ReadRunsError {
    #[error("{found} bytes are more than the {RUNS_BYTES_MAX} that are read")]
    TooLarge { found: usize },
    #[error("there are more than {POINTS_MAX} times")]
    TooMany,
    #[error(
        "unknown kind of runs; give output of nccl-tests, OSU, NCCL Inspector or `canopy simulate --json`, or a table"
    )]
    Unknown,
    #[error("line {line}: {problem}")]
    Line { line: usize, problem: String },
    #[error("it has no times")]
    Empty,
}

/// Reads what a program printed.
///
/// # Errors
/// A text of an unknown kind, a wrong line, or a text without times.
pub fn read_runs(text: &str) -> Result<Measured, ReadRunsError> {
    if text.len() > RUNS_BYTES_MAX {
        return Err(ReadRunsError::TooLarge { found: text.len() });
    }
    let measured = if nccl_tests::is_one(text) {
        Measured::Runs(vec![nccl_tests::read(text)?])
    } else if osu::is_one(text) {
        Measured::Runs(vec![osu::read(text)?])
    } else if inspector::is_one(text) {
        Measured::Runs(inspector::read(text)?)
    } else if simulated::is_one(text) {
        Measured::Runs(vec![simulated::read(text)?])
    } else if table::is_one(text) {
        table::read(text)?
    } else {
        return Err(ReadRunsError::Unknown);
    };
    let count = match &measured {
        Measured::Runs(runs) => runs.iter().map(|run| run.points.len()).sum(),
        Measured::Pairs(pairs) => pairs.len(),
    };
    match count {
        0 => Err(ReadRunsError::Empty),
        1..=POINTS_MAX => Ok(measured),
        _ => Err(ReadRunsError::TooMany),
    }
}

/// A field of a line as a number.
fn number<T: std::str::FromStr>(line: usize, name: &str, field: Option<&str>) -> Result<T, ReadRunsError> {
    let field = field.ok_or_else(|| wrong(line, format!("{name} is missing")))?.trim();
    field.parse().map_err(|_| wrong(line, format!("{name} is `{}`, which is no number", shorten(field))))
}

/// A time in microseconds, > 0.
fn micros(line: usize, field: Option<&str>) -> Result<f64, ReadRunsError> {
    let micros: f64 = number(line, "the time", field)?;
    if micros.is_finite() && micros > 0.0 && micros < 1e15 {
        Ok(micros)
    } else {
        Err(wrong(line, format!("the time is {micros}, which is not above 0")))
    }
}

const fn wrong(line: usize, problem: String) -> ReadRunsError {
    ReadRunsError::Line { line, problem }
}

/// Lines with their numbers, from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines().map(str::trim))
}

/// A collective by the many names that programs have for it.
fn collective(name: &str) -> Option<CollectiveKind> {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    let plain = plain.trim_end_matches("perf").trim_end_matches("latencytest");
    Some(match plain {
        "allreduce" => CollectiveKind::Allreduce,
        "allgather" => CollectiveKind::Allgather,
        "reducescatter" => CollectiveKind::ReduceScatter,
        "broadcast" | "bcast" => CollectiveKind::Broadcast,
        "reduce" => CollectiveKind::Reduce,
        "gather" => CollectiveKind::Gather,
        "scatter" => CollectiveKind::Scatter,
        "alltoall" => CollectiveKind::AllToAll,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
