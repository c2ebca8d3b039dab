//! Proves that a program is right, or says what is wrong with it.
//!
//! Everything is decided on the text alone, for every order of events and every message size: nothing is run. It judges
//! any program, wherever it came from, and shares no code with lowering.
//!
//! | check | what it shows |
//! |---|---|
//! | `structure` | ranks, steps, peers, buffers and ranges are what the collective and the format demand; messages of one step neither write what another reads nor what another writes |
//! | `matching` | between two ranks the k-th send and the k-th receive have the same number of chunks, and both exist |
//! | `deadlock` | the program ends even if no send is complete before its receive is posted |
//! | `meaning` | every value is the one the collective promises, in a chunk of its length |
//!
//! A scratch chunk is written again only in a later step than the one that sent it: `structure` compares within steps,
//! and steps end before the next begins.

mod matching;
mod meaning;
mod order;
mod place;
mod routes;
mod structure;

pub(crate) use place::{Findings, Report};
pub use place::{Place, Problem, Proof};
pub use routes::prove_routes;

use super::program::{Program, RankProgram};
use crate::proof::{Stop, Stopped};

/// Judges a program; see [`prove_until`], which it calls without ever stopping.
pub fn prove(program: &Program) -> Proof {
    prove_until(program, &|| false).expect("nothing asks it to stop")
}

/// Judges a program.
///
/// Later checks rely on earlier ones and are left out once they cannot mean anything: [`Proof::checks`] names those that
/// ran. At most 64 problems are reported per check. Never panics.
///
/// * **Argument.** Steps of a rank follow each other; in a step, sends read what no message of it writes, and local work
///   comes after all of them. So what a rank holds after a step depends on what it received alone, not on when; and
///   messages between two ranks keep their order. Any order of events that the waits allow therefore gives the result
///   of the one that is followed here.
/// * **Errors.** `stop` returned true; it is asked about every millisecond.
/// * **Cost.** O(instructions · log instructions + chunks moved · ranks/64).
pub fn prove_until(program: &Program, stop: Stop<'_>) -> Result<Proof, Stopped> {
    let mut report = Report::new(stop);
    let mut ranks = Vec::new();
    if !report.run("structure", |findings| ranks = structure::check(program, findings)) {
        return report.finish();
    }
    let mut pairs = Vec::new();
    if !report.run("matching", |findings| pairs = matching::check(&ranks, findings)) {
        return report.finish();
    }
    let mut order = Vec::new();
    if report.run("deadlock", |findings| order = order::check(&ranks, &pairs, findings)) {
        report.run("meaning", |findings| meaning::check(program, &ranks, &order, findings));
    }
    report.finish()
}

/// The ranks of a program in order, where its structure is sound; else the first problem. What it refers to exists.
pub(super) fn sound_ranks(program: &Program) -> Result<ByRank<'_>, Problem> {
    let mut report = Report::new(&|| false);
    let mut ranks = Vec::new();
    report.run("structure", |findings| ranks = structure::check(program, findings));
    let proof = report.finish().expect("nothing asks it to stop");
    proof.problems.into_iter().next().map_or(Ok(ranks), Err)
}

/// The program of each rank, by rank.
pub(super) type ByRank<'p> = Vec<&'p RankProgram>;

/// An index that was checked against a `u32` count.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
