//! Judges MSCCL XML: reads it, proves what it does, runs it on real bytes, and rates it on a network.

use canopy_plan::{
    ElementType, EmulateOptions, EmulationError, ForeignFile, MSCCL_OWN_BYTES_MAX, Operator, ParseError, Profile,
    Program, emulate, network_load, prove, read_msccl_xml_as_runtime,
};
use canopy_schedule::Collective;

use crate::exit::words;

use super::{Expected, Problem, Report, load};

/// Data and interleavings the program is run with. A sum finds contributions that are missing or counted twice, an
/// exclusive or finds pairs that a sum of small numbers might hide, a product depends on all bits of odd factors,
/// and a maximum of signed bytes needs the order of numbers, not of bits.
const RUNS: [(u64, ElementType, Operator); 5] = [
    (1, ElementType::U64, Operator::Sum),
    (2, ElementType::U8, Operator::Xor),
    (3, ElementType::I32, Operator::Product),
    (4, ElementType::I8, Operator::Max),
    (5, ElementType::U32, Operator::Sum),
];

/// A file that the user names is read as far as canopy's own go; it takes two to three times its length in memory.
fn parse(text: &str, profile: Profile) -> Result<ForeignFile, ParseError> {
    read_msccl_xml_as_runtime(text, profile, MSCCL_OWN_BYTES_MAX, &|| false)
}

/// Reads the file as the runtime of the profile would, and derives what it does. Without a profile it is microsoft/msccl,
/// and a file that only another runtime reads is refused with the name of that one.
pub(super) fn judge(bytes: &[u8], given: Option<Profile>, expected: &Expected<'_>) -> Report {
    let profile = given.unwrap_or(Profile::Msccl);
    let mut report = Report::new(Some("msccl-xml"));
    report.profile = Some(profile.name());
    let Ok(text) = std::str::from_utf8(bytes) else {
        report.record("file", Some("the file is not UTF-8".to_owned()));
        return report;
    };
    let ForeignFile { program, oddities } = match parse(text, profile) {
        Ok(file) => file,
        Err(error) => {
            let place = format!("line {}, column {}", error.line, error.column);
            let mut words = error.fault.to_string();
            let reads = |other: &Profile| given.is_none() && parse(text, *other).is_ok();
            if let Some(other) = Profile::ALL.into_iter().find(reads) {
                words += &format!("; {other} reads the file, so give --profile {other} if it is for that");
            }
            report.record_at("file", Some((words, place)));
            return report;
        }
    };
    report.record("file", None);
    report.warnings.extend(oddities.iter().map(|oddity| Problem {
        check: "file",
        message: format!("{oddity}; the runtime passes over it in silence, so remove it"),
        place: format!("line {}", oddity.line),
    }));
    report.collective = Some(program.purpose.name());
    report.ranks = Some(program.rank_count);
    judge_program(&program, profile, &mut report);
    let is_right = report.problems.is_empty();
    if let Some(topology) = expected.topology {
        let (wanted, found) = (topology.rank_count(), program.rank_count);
        report.record("ranks", (wanted != found).then(|| format!("the file is for {found} ranks, not for {wanted}")));
        // The rate of a wrong program has no meaning.
        if is_right && wanted == found {
            let load = network_load(&program, topology, &|| false);
            let kind = program.purpose.collective().ok_or("the file promises no result".to_owned());
            let collective = kind
                .and_then(|kind| Collective::new(kind, None, topology.rank_count()).map_err(|error| error.to_string()));
            load::rate(load, collective, topology, &mut report);
        }
    }
    // A file cannot name a root: in the runtime it is rank 0.
    let kind = program.purpose.collective();
    let root = kind.filter(|kind| kind.has_root()).map(|_| 0);
    report.root = root;
    match kind {
        Some(kind) => report.record_collective(expected, kind, root),
        None => {
            let words = |kind| format!("the file is for `{}`, which promises no {kind}", program.purpose);
            report.record("collective", expected.kind.map(words));
        }
    }
    report
}

/// Proves and runs it.
pub(super) fn judge_program(program: &Program, profile: Profile, report: &mut Report) {
    let proof = prove(program, profile);
    let as_problem = |found: canopy_plan::Problem| Problem {
        check: found.check,
        message: found.message,
        place: found.place.to_string(),
    };
    report.checks.extend(proof.checks);
    report.problems.extend(proof.problems.into_iter().map(as_problem));
    report.warnings.extend(proof.warnings.into_iter().map(as_problem));
    // A program that is wrong on paper need not be run to be refused.
    if !report.problems.is_empty() {
        return;
    }
    for (seed, element, operator) in RUNS {
        let options = EmulateOptions { element, operator, ..EmulateOptions::standard(profile, seed) };
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
