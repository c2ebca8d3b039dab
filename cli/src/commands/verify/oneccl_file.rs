//! Judges oneCCL XML: reads it, proves what it does, runs it on real bytes, and rates it on a network.

use canopy_plan::oneccl::{
    EmulateOptions, EmulationError, OWN_BYTES_MAX, Program, emulate, network_load, parse_until, prove, prove_routes,
};

use crate::exit::words;

use super::{Expected, Problem, Report, load};

/// Seeds of the runs; each stands for several that differ in lengths, types, operators and when sends are complete.
const SEEDS: [u64; 2] = [1, 1000];

/// Reads the file and derives what it does.
pub(super) fn judge(bytes: &[u8], expected: &Expected<'_>) -> Report {
    let mut report = Report::new(Some("oneccl-xml"));
    report.profile = Some("oneccl");
    let parse = |text: &str| parse_until(text, OWN_BYTES_MAX, &|| false);
    let Some(program) = report.record_file(bytes, parse) else { return report };
    let (kind, root) = (program.collective.kind(), program.collective.root().map(canopy_topology::Rank::number));
    report.collective = Some(kind.name());
    report.root = root;
    report.ranks = Some(program.rank_count);
    report.record_proof(prove(&program));
    // A program that is wrong on paper need not be run to be refused.
    if report.problems.is_empty() {
        run(&program, &mut report);
    }
    let is_right = report.problems.is_empty();
    if let Some(topology) = expected.topology {
        let (wanted, found) = (topology.rank_count(), program.rank_count);
        report.record("ranks", (wanted != found).then(|| format!("the file is for {found} ranks, not for {wanted}")));
        if is_right && wanted == found {
            report.record_proof(prove_routes(&program, topology, &|| false).expect("nothing asks it to stop"));
            // Chosen routes may well be faster or slower than shortest ones.
            if program.routes.is_empty() {
                let load = network_load(&program, topology, &|| false);
                load::rate(load, Ok(program.collective), topology, &mut report);
            }
        }
    }
    report.record_collective(expected, kind, root);
    report
}

fn run(program: &Program, report: &mut Report) {
    for options in SEEDS.iter().flat_map(|&seed| EmulateOptions::various(program, seed)) {
        let problem = match emulate(program, &options) {
            Ok(_) => None,
            // The proof stands without a run.
            Err(error @ EmulationError::TooLarge { .. }) => {
                let message = format!("the file is right on paper, but was not run: {}", words(&error));
                report.warnings.push(Problem { check: "emulation", message, place: "file".to_owned() });
                return;
            }
            Err(error) => Some(format!("run with seed {}: {}", options.seed, words(&error))),
        };
        let failed = problem.is_some();
        report.record("emulation", problem);
        if failed {
            return;
        }
    }
}
