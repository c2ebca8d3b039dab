//! Files of routes: for every collective that has them, and refused where one has none.

use canopy_plan::routes::{LowerError, parse, prove};
use canopy_plan::{Format, Target};
use canopy_synth::LayersError;
use canopy_wire::fraction;

use super::*;

#[test]
fn flows_have_files_that_hold() {
    for (kind, algorithm) in [
        (CollectiveKind::AllToAll, Algorithm::Auto),
        (CollectiveKind::Gather, Algorithm::Flow),
        (CollectiveKind::Scatter, Algorithm::Flow),
    ] {
        let plain = order(expression("torus:2x3"), kind, vec![Format::RoutesXml.usual(), Format::Json.usual()]);
        let order = Order { root: kind.has_root().then_some(5), size_bytes_min: 4096, algorithm, ..plain };
        let plan = produce(&order, &Witness::default()).unwrap().plan.plan;
        let file = &plan.artifacts[0];
        assert_eq!((file.format(), file.profile.as_str()), (v1::OutputFormat::RoutesXml, "routes"));
        let text = String::from_utf8(file.content.as_ref().unwrap().to_vec()).unwrap();
        let program = parse(&text).unwrap();
        assert!(prove(&program).is_ok());
        assert_eq!((program.layer_count, program.bytes_min), (file.layers.unwrap(), 4096));
        assert_eq!(plan.quality.as_ref().unwrap().achieved, fraction(&program.algbw));
        assert_eq!(crate::rpc::shared::judge::judge_plan(&plan, &TopologyLimits::STANDARD), Ok(()));
        // Its own digest does not make another file right.
        let mut forged = plan.clone();
        let text = text.replacen("algbw=\"", "algbw=\"1", 1);
        forged.artifacts[0].size_bytes = text.len() as u64;
        forged.artifacts[0].sha256 = canopy_wire::sha256_hex(text.as_bytes());
        forged.artifacts[0].content = Some(text.into());
        let problem = crate::rpc::shared::judge::judge_plan(&forged, &TopologyLimits::STANDARD).unwrap_err();
        assert!(problem.starts_with("its route file: load: "), "{problem}");
        let mut deeper = plan.clone();
        *deeper.artifacts[0].layers.as_mut().unwrap() += 1;
        assert!(crate::rpc::shared::judge::judge_plan(&deeper, &TopologyLimits::STANDARD).is_err());
    }
}

#[test]
fn what_a_file_cannot_say_is_refused() {
    let of = |kind, network, most| {
        order(
            expression(network),
            kind,
            vec![Target { layers_max: NonZeroU32::new(most), ..Format::RoutesXml.usual() }],
        )
    };
    let trees = produce(&of(CollectiveKind::Allgather, "ring:4", 0), &Witness::default());
    assert!(matches!(file_error(&trees.unwrap_err()), Some((0, LayersError::NotAFlow { .. }))));
    let one_way = produce(&of(CollectiveKind::AllToAll, "ring:4,dir=uni", 1), &Witness::default());
    let too_many = LayersError::TooMany { needed: 2, limit: 1 };
    assert_eq!(file_error(&one_way.unwrap_err()), Some((0, &too_many)));
    let in_place = Order { in_place: true, ..of(CollectiveKind::AllToAll, "ring:4", 0) };
    let refused = produce(&in_place, &Witness::default());
    assert!(matches!(file_error(&refused.unwrap_err()), Some((0, LowerError::InPlace))));
}
