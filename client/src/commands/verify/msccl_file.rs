//! Judges MSCCL XML: reads it, proves what it does, and runs it on real bytes.

use canopy_plan::{EmulateOptions, EmulationError, Operator, Profile, Program, emulate, parse_msccl_xml, prove};

use crate::exit::words;

use super::{Expected, Problem, Report};

/// Data and interleavings the program is run with. A sum finds contributions that are missing or counted twice, an
/// exclusive or finds pairs that a sum of small numbers might hide.
const RUNS: [(u64, Operator); 3] = [(1, Operator::Sum), (2, Operator::Xor), (3, Operator::Sum)];
/// Reads the file as the runtime of the profile would, and derives what it does.
pub(super) fn judge(bytes: &[u8], profile: Profile, expected: &Expected<'_>) -> Report {
    let mut report = Report::new(Some("msccl-xml"));
    report.profile = Some(profile.name());
    let Ok(text) = std::str::from_utf8(bytes) else {
        report.record("file", Some("the file is not UTF-8".to_owned()));
        return report;
    };
    let program = match parse_msccl_xml(text, profile) {
        Ok(program) => program,
        Err(error) => {
            report.record_at("file", Some((error.fault.to_string(), format!("line {}", error.line))));
            return report;
        }
    };
    report.record("file", None);
    report.collective = Some(program.collective.name());
    report.ranks = Some(program.rank_count);
    judge_program(&program, profile, &mut report);
    if let Some(topology) = expected.topology {
        let (wanted, found) = (topology.rank_count(), program.rank_count);
        // The file says nothing of wires, so there is no more to compare.
        report.record("ranks", (wanted != found).then(|| format!("the file is for {found} ranks, not for {wanted}")));
    }
    // A file cannot name a root: in the runtime it is rank 0.
    let root = program.collective.has_root().then_some(0);
    report.root = root;
    report.record_collective(expected, program.collective, root);
    report
}

fn judge_program(program: &Program, profile: Profile, report: &mut Report) {
    let proof = prove(program, profile);
    let as_problem = |found: canopy_plan::Problem| Problem {
        check: found.check,
        message: found.message,
        place: found.where_.to_string(),
    };
    report.checks.extend(proof.checks);
    report.problems.extend(proof.problems.into_iter().map(as_problem));
    report.warnings.extend(proof.warnings.into_iter().map(as_problem));
    // A program that is wrong on paper need not be run to be refused.
    if !report.problems.is_empty() {
        return;
    }
    for (seed, operator) in RUNS {
        let options = EmulateOptions { operator, ..EmulateOptions::standard(profile, seed) };
        let problem = match emulate(program, &options) {
            Ok(_) => None,
            // The proof stands without a run.
            Err(error @ EmulationError::TooLarge { .. }) => {
                let message = format!("the file is right on paper, but was not run: {}", words(&error));
                report.warnings.push(Problem { check: "emulation", message, place: "file".to_owned() });
                return;
            }
            Err(error) => Some(format!("run with seed {seed}: {}", words(&error))),
        };
        let failed = problem.is_some();
        report.record("emulation", problem);
        if failed {
            return;
        }
    }
}
