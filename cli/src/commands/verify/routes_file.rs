//! Judges XML of routes: reads it, proves that every chunk arrives and none can block another for ever, and rates it.

use canopy_plan::routes::{parse, prove, prove_on};
use canopy_topology::Rank;

use super::{Expected, Report, load};

/// Reads the file and derives what it does.
pub(super) fn judge(bytes: &[u8], expected: &Expected<'_>) -> Report {
    let mut report = Report::new(Some("routes-xml"));
    report.profile = Some("routes");
    let Some(program) = report.record_file(bytes, parse) else { return report };
    let (kind, root) = (program.collective.kind(), program.collective.root().map(Rank::number));
    report.collective = Some(kind.name());
    report.root = root;
    report.ranks = Some(program.rank_count);
    report.record_proof(prove(&program));
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
        report.record_proof(proof);
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
