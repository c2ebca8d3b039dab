//! Proves that a program is right, or says what is wrong with it.
//!
//! Everything is decided on the text alone, for every interleaving and every message size the file admits: nothing is
//! run. It judges any program, wherever it came from, and shares no code with lowering.
//!
//! | check | what it shows |
//! |---|---|
//! | `structure` | ranks, blocks, peers, channels, buffers and ranges are what the collective and the format demand |
//! | `limits` | the runtime's tables are large enough |
//! | `connections` | each queue has one writer and one reader, which agree on every transfer |
//! | `dependencies` | every wait names a step that publishes its completion |
//! | `deadlock` | with bounded queues the program always ends |
//! | `races` | no two steps touch the same chunk unordered, one of them writing |
//! | `meaning` | every value is the one the collective promises |

mod connections;
mod dependencies;
mod largest;
mod limits;
mod meaning;
mod model;
mod place;
mod progress;
mod races;
mod structure;

pub(super) use largest::{Largest, largest_without_deadlock};
pub(crate) use place::{Findings, Report};
pub use place::{Place, Problem, Proof};

use super::profile::{PlacementRule, Profile};
use super::program::Program;
use crate::proof::{Stop, Stopped};
use model::Model;

/// Judges a program for a runtime; see [`prove_until`], which it calls without ever stopping.
pub fn prove(program: &Program, profile: Profile) -> Proof {
    prove_until(program, profile, &|| false).expect("nothing asks it to stop")
}

/// Judges a program for a runtime.
///
/// Where the runtime uses a program that states both `inplace` and `outofplace` for either kind of call, it is judged both
/// ways. Later checks rely on earlier ones and are left out once they cannot mean anything: [`Proof::checks`] names those
/// that ran. Values are not judged where the file's word for the collective promises none (`custom`); a warning says
/// so. At most 64 problems are reported per check. Never panics.
///
/// * **Errors.** `stop` returned true; it is asked about every millisecond.
/// * **Cost.** O(steps · blocks of a rank) for races within ranks; where they are ordered through other ranks, that
///   times the number of ranks. The rest is linear in transfers. Memory is bounded: programs whose buffers, sums or
///   clocks are too large to follow are refused with that reason.
pub fn prove_until(program: &Program, profile: Profile, stop: Stop<'_>) -> Result<Proof, Stopped> {
    let is_both = program.in_place && program.out_of_place == Some(true);
    let mut proof = prove_one_way(program, profile, stop)?;
    if is_both && profile.limits().placement == PlacementRule::BothFlags && proof.is_ok() {
        let apart = Program { in_place: false, ..program.clone() };
        proof.join(prove_one_way(&apart, profile, stop)?, "when used out of place, which the file also allows: ");
    }
    Ok(proof)
}

/// Judges it in place if the program allows that, else out of place.
fn prove_one_way(program: &Program, profile: Profile, stop: Stop<'_>) -> Result<Proof, Stopped> {
    let mut report = Report::new(stop);
    let is_sound = report.run("structure", |findings| structure::check(program, profile, findings));
    report.run("limits", |findings| limits::check(program, profile, findings));
    if !is_sound {
        return report.finish();
    }
    let Some(mut model) = Model::new(program, profile) else { return report.finish() };
    let are_joined = report.run("connections", |findings| connections::check(&mut model, findings));
    let are_waits_sound = report.run("dependencies", |findings| dependencies::check(&model, findings));
    if !(are_joined && are_waits_sound) {
        return report.finish();
    }
    let mut order = Vec::new();
    let ends = report.run("deadlock", |findings| order = progress::check(&model, findings));
    if !ends {
        return report.finish();
    }
    let is_ordered = report.run("races", |findings| races::check(&model, &order, findings));
    if program.purpose.collective().is_none() {
        let word = program.purpose.name();
        let text =
            format!("`{word}` promises no result, so the proof covers that the program runs, but not the values");
        report.warning("meaning", text);
    } else if is_ordered {
        report.run("meaning", |findings| meaning::check(&model, &order, findings));
    }
    report.finish()
}

#[cfg(test)]
mod tests;
