//! oneCCL files of plans, and what they have in common with execution plans.

use canopy_plan::oneccl::{LowerError, parse, prove};
use canopy_plan::{ExecutionLowerError, ExecutorProfile, Format, Target, parse_execution_plan};

use super::*;

#[test]
fn every_collective_has_a_file_that_holds() {
    for kind in CollectiveKind::ALL {
        for in_place in [false, true] {
            let root = kind.has_root().then_some(5);
            let plain = order(expression("torus:2x3"), kind, vec![Format::OnecclXml.usual(), Format::Json.usual()]);
            let order = Order { root, in_place, ..plain };
            let plan = produce(&order, &Witness::default()).unwrap().plan.plan;
            let file = &plan.artifacts[0];
            assert_eq!((file.format(), file.profile.as_str()), (v1::OutputFormat::OnecclXml, "oneccl"));
            let program = parse(std::str::from_utf8(file.content.as_ref().unwrap()).unwrap()).unwrap();
            assert!(prove(&program).is_ok());
            assert_eq!((program.collective.kind(), program.in_place), (kind, in_place));
            assert_eq!(program.collective.root().map(Rank::number), root);
            assert_eq!(crate::rpc::shared::judge::judge_plan(&plan, &TopologyLimits::STANDARD), Ok(()));
            // Its own digest does not make another file right.
            let mut forged = plan.clone();
            let text = String::from_utf8(file.content.as_ref().unwrap().to_vec()).unwrap();
            let text = text.replacen("<sync scope=\"local\"/>", "<sync scope=\"all\"/>", 1);
            forged.artifacts[0].size_bytes = text.len() as u64;
            forged.artifacts[0].sha256 = canopy_wire::sha256_hex(text.as_bytes());
            forged.artifacts[0].content = Some(text.into());
            let problem = crate::rpc::shared::judge::judge_plan(&forged, &TopologyLimits::STANDARD).unwrap_err();
            assert!(problem.starts_with("its oneCCL file: deadlock: "), "{problem}");
        }
    }
}

#[test]
fn what_a_file_cannot_say_is_refused() {
    let plain = order(expression("ring:4"), CollectiveKind::Allgather, vec![Format::OnecclXml.usual()]);
    let uneven = Order { shares: vec![3, 1, 1, 1], ..plain };
    let refused = produce(&uneven, &Witness::default());
    assert!(matches!(file_error(&refused.unwrap_err()), Some((0, LowerError::Shares))));
}

#[test]
fn files_of_runtimes_begin_at_the_smallest_size() {
    let (old, new) = (Target::from(ExecutorProfile::V08), Target::from(ExecutorProfile::V10));
    let outputs = vec![Format::OnecclXml.usual(), old, new];
    let plain = order(expression("ring:4"), CollectiveKind::Allgather, outputs);
    let plan = produce(&Order { size_bytes_min: 4096, ..plain }, &Witness::default()).unwrap().plan.plan;
    let text = |file: usize| std::str::from_utf8(plan.artifacts[file].content.as_ref().unwrap()).unwrap();
    assert_eq!(parse(text(0)).unwrap().bytes_min, 4096);
    for file in [1, 2] {
        assert_eq!(parse_execution_plan(text(file)).unwrap().bytes_min, 4096);
    }
    assert_eq!(plan.valid_for.unwrap().size_bytes_min, 4096);
    let gather = order(expression("ring:4"), CollectiveKind::Gather, vec![new]);
    let refused = produce(&Order { size_bytes_min: 4096, ..gather }, &Witness::default());
    let error = ExecutionLowerError::Measure { profile: ExecutorProfile::V10 };
    assert_eq!(file_error(&refused.unwrap_err()), Some((0, &error)));
}
