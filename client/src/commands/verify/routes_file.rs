//! Judges XML of routes: reads it, proves that every chunk arrives and none can block another for ever, and rates it.

use canopy_plan::routes::{parse, prove, prove_on};
use canopy_topology::Rank;

use super::{Expected, Report, load, oneccl_file};

/// Reads the file and derives what it does.
pub(super) fn judge(bytes: &[u8], expected: &Expected<'_>) -> Report {
    let mut report = Report::new(Some("routes-xml"));
    report.profile = Some("routes");
    let Ok(text) = std::str::from_utf8(bytes) else {
        report.record("file", Some("the file is not UTF-8".to_owned()));
        return report;
    };
    let program = match parse(text) {
        Ok(program) => program,
        Err(error) => {
            let place = format!("line {}, column {}", error.line, error.column);
            report.record_at("file", Some((error.fault.to_string(), place)));
            return report;
        }
    };
    report.record("file", None);
    let (kind, root) = (program.collective.kind(), program.collective.root().map(Rank::number));
    report.collective = Some(kind.name());
    report.root = root;
    report.ranks = Some(program.rank_count);
    oneccl_file::record_proof(prove(&program), &mut report);
    let is_right = report.problems.is_empty();
    if is_right {
        // Proven to be what its ports and routes come to.
        report.algbw = Some(program.algbw.to_string());
        report.routing = Some(format!(
            "{} layers, at most {} routes from one rank to another",
            program.layer_count, program.routes_max
        ));
    }
    if let Some(topology) = expected.topology {
        let proof = prove_on(&program, topology, &|| false).expect("nothing asks it to stop");
        let is_for_it = proof.is_ok();
        oneccl_file::record_proof(proof, &mut report);
        if is_right && is_for_it {
            load::compare(&program.algbw, program.equal_shares().ok_or_else(unequal), topology, &mut report);
        }
    }
    report.record_collective(expected, kind, root);
    report
}

fn unequal() -> String {
    "shares are of different sizes".to_owned()
}
