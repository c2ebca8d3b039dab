use std::num::NonZeroU32;

use canopy_plan::{Format, Instances, Profile, Target};
use canopy_planner::Group;
use canopy_proto::v1::output_spec::Instancing;
use canopy_schedule::CollectiveKind;
use canopy_synth::{Algorithm, TreeLimits};
use canopy_topology::Transit;
use canopy_wire::fraction_of;

use super::*;

/// A request that is right; tests break one thing at a time.
fn request() -> v1::PlanSpec {
    v1::PlanSpec {
        topology: Some(v1::TopologySource {
            source: Some(v1::topology_source::Source::Expression("ring:8".to_owned())),
        }),
        collective: Some(v1::CollectiveSpec { kind: v1::Collective::Allgather.into(), root: None }),
        ..v1::PlanSpec::default()
    }
}

#[track_caller]
fn check_refused(field: &str, change: impl FnOnce(&mut v1::PlanSpec)) {
    let mut request = request();
    change(&mut request);
    let error = decode(request.into(), Method::Plan).err().expect("the request is refused");
    assert_eq!(error.field(), field, "{error}");
}

#[test]
fn what_is_left_out_has_a_stated_default() {
    let Decoded { order, quality, .. } = decode(request().into(), Method::Plan).ok().unwrap();
    assert_eq!(order.outputs, [Format::Json.usual()]);
    assert_eq!(order.algorithm, Algorithm::Auto);
    assert_eq!(order.size_bytes_max, 1 << 30);
    assert_eq!(order.limits, TreeLimits::NONE);
    assert!(!order.in_place && quality == Quality::default());
    assert!(order.shares.is_empty() && order.group.is_none());
    let part = v1::PlanSpec { shares: vec![1, 0], ranks: vec![5, 2], ..request() };
    let order = decode(part.into(), Method::Plan).ok().unwrap().order;
    assert_eq!((order.shares, order.group), (vec![1, 0], Some(Group { ranks: vec![5, 2], transit: Transit::Unused })));
    let mut allreduce = request();
    allreduce.collective = Some(v1::CollectiveSpec { kind: v1::Collective::Allreduce.into(), root: None });
    assert!(decode(allreduce.clone().into(), Method::Plan).ok().unwrap().order.in_place);
    allreduce.in_place = Some(false);
    assert!(!decode(allreduce.into(), Method::Plan).ok().unwrap().order.in_place);
}

#[test]
fn every_collective_of_the_wire_is_one_of_ours_under_the_same_name() {
    for kind in CollectiveKind::ALL {
        let name = format!("COLLECTIVE_{}", kind.name().to_uppercase().replace('-', "_"));
        let number = v1::Collective::from_str_name(&name).unwrap();
        let collective = Some(v1::CollectiveSpec { kind: number.into(), root: None });
        let Decoded { order, .. } = decode(v1::PlanSpec { collective, ..request() }.into(), Method::Plan).unwrap();
        assert_eq!(order.kind, kind);
    }
}

#[test]
fn files_that_differ_in_instances_alone_are_different() {
    let of = |instancing| v1::OutputSpec { format: 2, profile: None, instancing, ..v1::OutputSpec::default() };
    let automatic = Instancing::AutomaticInstances(v1::AutomaticInstances {});
    let outputs = vec![of(None), of(Some(Instancing::Instances(2))), of(Some(automatic))];
    let decoded = decode(v1::PlanSpec { outputs, ..request() }.into(), Method::Plan).ok().unwrap();
    let two = Instances::Exactly(NonZeroU32::new(2).unwrap());
    let msccl = |instances| Target { instances, ..Profile::Msccl.into() };
    assert_eq!(decoded.order.outputs, [msccl(Instances::ONE), msccl(two), msccl(Instances::Auto)]);
}

#[test]
fn a_file_of_a_runtime_may_begin_at_any_size_up_to_its_last() {
    let outputs = vec![v1::OutputSpec { format: 2, ..v1::OutputSpec::default() }];
    let from =
        |min| v1::PlanSpec { size_bytes_min: min, size_bytes_max: Some(9), outputs: outputs.clone(), ..request() };
    for min in [None, Some(1), Some(9)] {
        let order = decode(from(min).into(), Method::Plan).ok().unwrap().order;
        assert_eq!(order.size_bytes_min, min.unwrap_or(0));
    }
}

#[test]
fn every_wrong_field_is_named() {
    check_refused("topology", |request| request.topology = None);
    check_refused("topology", |request| request.topology = Some(v1::TopologySource { source: None }));
    check_refused("topology.document.format", |request| {
        let document = v1::TopologyDocument { format: 77, content: "x".into() };
        request.topology = Some(v1::TopologySource { source: Some(v1::topology_source::Source::Document(document)) });
    });
    check_refused("collective", |request| request.collective = None);
    check_refused("collective.kind", |request| request.collective = Some(v1::CollectiveSpec { kind: 0, root: None }));
    check_refused("collective.kind", |request| request.collective = Some(v1::CollectiveSpec { kind: 99, root: None }));
    check_refused("size_bytes_max", |request| request.size_bytes_max = Some(0));
    check_refused("size_bytes_min", |request| request.size_bytes_min = Some(0));
    check_refused("trees_per_root", |request| request.trees_per_root = Some(0));
    check_refused("chunks", |request| request.chunks = Some(0));
    check_refused("max_chunks", |request| request.max_chunks = Some(0));
    check_refused("max_depth", |request| request.max_depth = Some(0));
    check_refused("max_chunks", |request| (request.trees_per_root, request.max_chunks) = (Some(1), Some(2)));
    check_refused("trees_per_root", |request| {
        (request.trees_per_root, request.algorithm) = (Some(1), Some("ring".to_owned()));
    });
    check_refused("max_depth", |request| (request.max_depth, request.algorithm) = (Some(3), Some("direct".to_owned())));
    for (numerator, denominator) in [(0, 1), (1, 1), (3, 2), (1, 0), (1, 1 << 32)] {
        check_refused("tolerance", |request| request.tolerance = Some(fraction_of(numerator, denominator)));
    }
    check_refused("tolerance", |request| {
        let tolerance = Some(fraction_of(1, 2));
        (request.tolerance, request.algorithm) = (tolerance, Some("direct".to_owned()));
    });
    check_refused("form", |request| request.form = 9);
    check_refused("form", |request| (request.form, request.algorithm) = (2, Some("direct".to_owned())));
    check_refused("root_policy", |request| request.root_policy = 9);
    check_refused("form", |request| (request.form, request.max_depth) = (v1::AllreduceForm::Trees.into(), Some(3)));
    check_refused("max_chunks", |request| {
        request.max_chunks = Some(1);
        request.collective = Some(v1::CollectiveSpec { kind: v1::Collective::Gather.into(), root: None });
    });
    check_refused("size_bytes_max", |request| request.size_bytes_max = Some(u64::MAX));
    check_refused("size_bytes_min", |request| request.size_bytes_min = Some(1));
    check_refused("size_bytes_min", |request| {
        request.outputs = vec![v1::OutputSpec { format: 2, ..v1::OutputSpec::default() }];
        (request.size_bytes_min, request.size_bytes_max) = (Some(2), Some(1));
    });
    check_refused("algorithm", |request| request.algorithm = Some("magic".to_owned()));
    check_refused("ranks", |request| request.transit = v1::GroupTransit::Unused.into());
    check_refused("transit", |request| (request.ranks, request.transit) = (vec![0, 1], 9));
}

fn output(format: i32, profile: &str) -> v1::OutputSpec {
    v1::OutputSpec { format, profile: Some(profile.to_owned()), ..v1::OutputSpec::default() }
}

#[test]
fn every_wrong_output_is_named() {
    check_refused("outputs[0].format", |request| request.outputs = vec![output(0, "")]);
    check_refused("outputs[1].format", |request| request.outputs = vec![output(1, ""), output(55, "")]);
    check_refused("outputs[0].profile", |request| request.outputs = vec![output(1, "msccl")]);
    check_refused("outputs[0].profile", |request| request.outputs = vec![output(2, "nccl")]);
    check_refused("outputs[0].profile", |request| request.outputs = vec![output(2, "oneccl")]);
    check_refused("outputs[0].profile", |request| request.outputs = vec![output(4, "msccl")]);
    check_refused("outputs[0].instances", |request| {
        let instancing = Some(Instancing::Instances(2));
        request.outputs = vec![v1::OutputSpec { instancing, ..output(4, "oneccl") }];
    });
    check_refused("outputs[1]", |request| request.outputs = vec![output(4, ""), output(4, "oneccl")]);
    check_refused("outputs[0].profile", |request| request.outputs = vec![output(5, "oneccl")]);
    check_refused("outputs[0].instances", |request| {
        let instancing = Some(Instancing::Instances(2));
        request.outputs = vec![v1::OutputSpec { instancing, ..output(5, "routes") }];
    });
    check_refused("outputs[1]", |request| request.outputs = vec![output(5, ""), output(5, "routes")]);
    for format in 1..5 {
        check_refused("outputs[0].max_layers", |request| {
            request.outputs = vec![v1::OutputSpec { max_layers: Some(2), ..output(format, "") }];
        });
    }
    check_refused("outputs[1]", |request| request.outputs = vec![output(2, ""), output(2, "msccl")]);
    check_refused("outputs", |request| request.outputs = vec![output(1, ""); 9]);
    let instances = |format: i32, instances| v1::OutputSpec {
        instancing: Some(Instancing::Instances(instances)),
        ..output(format, "")
    };
    let automatic = Some(Instancing::AutomaticInstances(v1::AutomaticInstances {}));
    for format in [1, 2] {
        check_refused("outputs[0].plain_channels", |request| {
            request.outputs = vec![v1::OutputSpec { plain_channels: true, ..output(format, "") }];
        });
    }
    check_refused("outputs[0].instances", |request| request.outputs = vec![instances(1, 2)]);
    check_refused("outputs[0].instances", |request| request.outputs = vec![instances(2, 0)]);
    check_refused("outputs[0].instances", |request| {
        request.outputs = vec![v1::OutputSpec { instancing: automatic, ..output(1, "") }];
    });
    check_refused("outputs[1]", |request| request.outputs = vec![output(2, ""), instances(2, 1)]);
    check_refused("outputs[2]", |request| request.outputs = vec![instances(2, 1), instances(2, 2), instances(2, 2)]);
}

fn asked(change: impl FnOnce(&mut PlanQuery)) -> PlanQuery {
    let mut asked = PlanQuery::from(request());
    change(&mut asked);
    asked
}

#[track_caller]
fn check_terms_refused(field: &str, change: impl FnOnce(&mut PlanQuery)) {
    let error = decode(asked(change), Method::Plan).err().expect("the request is refused");
    assert_eq!(error.field(), field, "{error}");
}

#[test]
fn every_wrong_term_is_named() {
    for (numerator, denominator) in [(1, 0), (0, 0), (3, 2)] {
        let minimum = Some(fraction_of(numerator, denominator));
        check_terms_refused("minimum_optimality", |asked| asked.minimum_optimality = minimum);
    }
    check_terms_refused("on_miss", |asked| asked.on_miss = 9);
    check_terms_refused("priority", |asked| asked.priority = 9);
    check_terms_refused("on_miss", |asked| {
        let collective = asked.spec.collective.take();
        let collectives = vec![v1::JointCollective { collective, ..v1::JointCollective::default() }];
        asked.spec.joint = Some(v1::JointSpec { collectives, position: 0 });
        asked.on_miss = v1::OnMiss::Fallback.into();
    });
}

#[test]
fn priority_and_detachment_follow_the_method_where_they_are_unset() {
    let terms = |method, priority: v1::Priority, detached| {
        decode(asked(|asked| (asked.priority, asked.detached) = (priority.into(), detached)), method)
            .map(|decoded| decoded.terms)
    };
    let is = |priority, detached| Ok(Terms { priority, detached, worker: Worker::Planner });
    assert_eq!(terms(Method::Plan, v1::Priority::Unspecified, false), is(Priority::Interactive, false));
    assert_eq!(terms(Method::StreamPlan, v1::Priority::Repair, true), is(Priority::Repair, true));
    assert_eq!(terms(Method::PrefetchPlan, v1::Priority::Unspecified, false), is(Priority::Prefetch, true));
    assert_eq!(terms(Method::PrefetchPlan, v1::Priority::JobStart, false), is(Priority::JobStart, true));
    assert_eq!(terms(Method::LookUpPlan, v1::Priority::Unspecified, false), is(Priority::Repair, false));
}

#[test]
fn what_to_do_on_a_miss_is_read() {
    for (number, expected) in [(1, OnMiss::Fail), (2, OnMiss::Fallback), (3, OnMiss::BestSoFar)] {
        let decoded = decode(asked(|asked| asked.on_miss = number), Method::Plan).ok().unwrap();
        assert_eq!(decoded.quality, Quality { minimum_optimality: None, on_miss: expected });
    }
}
