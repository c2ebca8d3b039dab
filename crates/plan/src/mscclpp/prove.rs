//! Proves that a plan is right, or says what is wrong with it.
//!
//! Everything is decided on the text alone, for every interleaving: nothing is run. What pipelines repeat is followed for
//! messages of several sizes, up to one that a warning names. It judges any plan, wherever it came
//! from, and shares no code with lowering.
//!
//! | check | what it shows |
//! |---|---|
//! | `structure` | counts, order and numbers are what the loader needs, including what it does not look at |
//! | `limits` | the runtime's tables are large enough |
//! | `operations` | every operation reads and writes what it may, within the buffers, as the version's kernel executes it |
//! | `channels` | every channel end has one user, and as many signals are sent as are waited for |
//! | `deadlock` | the plan always ends |
//! | `races` | no two accesses to the same memory are unordered, one of them writing; none is outside the owner's launch |
//! | `meaning` | every value is the one the collective promises |

mod channels;
mod clocks;
mod meaning;
mod progress;
mod races;

use canopy_schedule::Collective;

use super::contract::Contract;
use super::loader;
use super::machine::{Machine, Role, Scale, scales};
use super::profile::ExecutorProfile;
use super::program::ExecutionPlan;
use crate::msccl::{Findings, Place, Proof, Report};
use crate::proof::{Stop, Stopped};

/// Judges a plan for a version of the runtime.
///
/// Most plans say by `collective` what they promise. For those that say `custom` or another word that promises nothing,
/// `asked` says it; without it the values are not judged, and a warning says so. Later checks rely on earlier ones and are
/// left out once they cannot mean anything: [`Proof::checks`] names those that ran. Never panics.
///
/// * **Errors.** `stop` returned true; it is asked about every millisecond.
/// * **Cost.** O(operations · blocks that signal each other, directly or not) time and memory; linear in chunks moved.
pub fn prove_execution_plan(
    plan: &ExecutionPlan,
    asked: Option<Collective>,
    profile: ExecutorProfile,
    stop: Stop<'_>,
) -> Result<Proof, Stopped> {
    prove_contract(plan, || Contract::new(plan, asked), profile, stop)
}

/// Judges a plan that is held to a contract.
pub(super) fn prove_contract(
    plan: &ExecutionPlan,
    contract_of: impl FnOnce() -> Result<Contract, String>,
    profile: ExecutorProfile,
    stop: Stop<'_>,
) -> Result<Proof, Stopped> {
    let mut report = Report::new(stop);
    let mut contract = None;
    let is_sound = report.run("structure", |findings| {
        loader::structure(plan, profile, findings);
        match contract_of() {
            Ok(made) => contract = Some(made),
            Err(message) => findings.problem(Place::FILE, message),
        }
    });
    report.run("limits", |findings| loader::limits(plan, profile, findings));
    let Some(contract) = contract.filter(|_| is_sound) else { return report.finish() };
    let mut machines = Vec::new();
    if !report.run("operations", |findings| {
        machines = self::machines(plan, &contract, findings);
        kernel(&machines, profile, findings);
    }) {
        return report.finish();
    }
    // What goes wrong for one size is not looked for in others.
    if !report.run("channels", |findings| {
        machines.iter().for_each_until_problem(findings, channels::check);
    }) {
        return report.finish();
    }
    let mut orders = Vec::new();
    if !report.run("deadlock", |findings| {
        machines
            .iter()
            .for_each_until_problem(findings, |machine, findings| orders.push(progress::check(machine, findings)));
    }) {
        return report.finish();
    }
    let followed = || machines.iter().zip(&orders);
    let is_ordered = report.run("races", |findings| {
        followed()
            .for_each_until_problem(findings, |(machine, order), findings| races::check(machine, order, findings));
    });
    if contract.kind().is_none() {
        let word: String = plan.collective.chars().take(80).collect();
        let text = format!("`{word}` promises no result, so the proof covers that the plan runs, but not the values");
        report.warning("meaning", text);
    } else if is_ordered {
        report.run("meaning", |findings| {
            followed().for_each_until_problem(findings, |(machine, order), findings| {
                meaning::check(machine, &contract, order, findings);
            });
        });
    }
    report.finish()
}

/// Operations that the kernel of a version executes otherwise than they are meant.
///
/// Source: `handlePut` of the kernels of 0.8 and 0.9, mended in 0.10.
fn kernel(machines: &[Machine], profile: ExecutorProfile, findings: &mut Findings<'_>) {
    if !profile.limits().misreads_flushing_puts {
        return;
    }
    // What is wrong with an operation is so for messages of all sizes.
    let blocks = machines.first().map_or(&[][..], |machine| &machine.blocks);
    for block in blocks {
        for (step, event) in block.events.iter().enumerate() {
            if matches!(event.role, Role::Port { flushes: true, .. }) {
                let message = format!(
                    "pwsf: the kernel of {profile} uses the address of the offsets as the source offset and sends wrong \
                     data; use pws and wait for a signal back, or mscclpp-0.10"
                );
                findings.problem(block.place(step), message);
            }
        }
        if findings.must_stop(block.events.len() as u64) {
            return;
        }
    }
}

/// A plan resolved for every size that it is followed for; fewer, and a problem, if it cannot be followed.
fn machines(plan: &ExecutionPlan, contract: &Contract, findings: &mut Findings<'_>) -> Vec<Machine> {
    let scales: Vec<Scale> = scales(plan, findings);
    scales.iter().map_while(|scale| Machine::new(plan, contract, scale, findings)).collect()
}

/// Goes through sizes as long as none shows a problem.
trait UntilProblem: Iterator + Sized {
    fn for_each_until_problem(
        mut self,
        findings: &mut Findings<'_>,
        mut check: impl FnMut(Self::Item, &mut Findings<'_>),
    ) {
        while let Some(next) = self.next().filter(|_| !findings.has_problem()) {
            check(next, findings);
        }
    }
}

impl<I: Iterator> UntilProblem for I {}

#[cfg(test)]
mod tests;
