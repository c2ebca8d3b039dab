use canopy_proto::v1::{CollectiveSpec, PlanSpec, TopologySource};
use canopy_schedule::CollectiveKind;
use canopy_store::encode_record;
use canopy_synth::Never;
use canopy_topology::{Rate, TopologyLimits};

use super::*;

/// Nobody watches.
struct Unseen;

impl Watch for Unseen {
    fn stage(&self, _: &'static str, _: u64, _: u64) {}
    fn bound(&self, _: &Rate) {}
    fn incumbent(&self, _: &Rate) {}
}

fn limits() -> Limits {
    Limits { topology: TopologyLimits::STANDARD, store_bytes: 1 << 30, memory_bytes: 1 << 30 }
}

fn request(network: &str) -> PlanSpec {
    let kind = wire::collective_on_the_wire(CollectiveKind::Allgather).into();
    PlanSpec {
        topology: Some(TopologySource { source: Some(Source::Expression(network.to_owned())) }),
        collective: Some(CollectiveSpec { kind, root: None }),
        outputs: vec![v1::OutputSpec { format: v1::OutputFormat::Json.into(), ..v1::OutputSpec::default() }],
        ..PlanSpec::default()
    }
}

fn answer(folder: &Path, request: PlanSpec) -> Answer {
    let outcome = PlanService::new(folder, limits()).plan(request.into_plan(), &Never, &Unseen).unwrap();
    let Outcome::Answered(answer) = outcome else { panic!("{outcome:?}") };
    *answer
}

fn reason(folder: &Path, request: v1::PlanRequest) -> ServerReason {
    let outcome = PlanService::new(folder, limits()).plan(request, &Never, &Unseen).unwrap();
    let Outcome::NeedsServer(reason) = outcome else { panic!("it was answered") };
    reason
}

#[test]
fn a_plan_is_made_once_and_then_found() {
    let folder = tempfile::tempdir().unwrap();
    let made = answer(folder.path(), request("ring:6"));
    let found = answer(folder.path(), request("ring:6"));
    assert_eq!((made.is_hit, found.is_hit), (false, true));
    assert_eq!(made.plan.plan, found.plan.plan);
    assert!(found.reply().plan.unwrap().artifacts[0].content.is_some());
    assert_eq!(std::fs::read_dir(folder.path().join("making")).unwrap().count(), 0);
}

/// The schedule of a shape makes the plan of every network of that shape.
#[test]
fn a_network_of_a_known_shape_needs_no_search() {
    let folder = tempfile::tempdir().unwrap();
    answer(folder.path(), request("torus:3x3"));
    let other = answer(folder.path(), PlanSpec { size_bytes_max: Some(1 << 20), ..request("torus:3x3") });
    assert!(other.is_hit, "another plan of the same schedule");
}

#[test]
fn equal_requests_at_once_share_a_search() {
    let folder = tempfile::tempdir().unwrap();
    let misses = thread::scope(|scope| {
        let runs: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        match PlanService::new(folder.path(), limits()).plan(
                            request("torus:4x4").into_plan(),
                            &Never,
                            &Unseen,
                        ) {
                            Ok(Outcome::Answered(answer)) => return !answer.is_hit,
                            Err(ServiceError::Store(StoreError::InUse { .. })) => thread::sleep(PAUSE),
                            other => panic!("{other:?}"),
                        }
                    }
                })
            })
            .collect();
        runs.into_iter().map(|run| usize::from(run.join().unwrap())).sum::<usize>()
    });
    assert_eq!(misses, 1);
}

#[test]
fn what_only_a_server_knows_is_left_to_one() {
    let folder = tempfile::tempdir().unwrap();
    let on = |source| PlanSpec { topology: Some(TopologySource { source: Some(source) }), ..request("ring:4") };
    assert_eq!(
        reason(folder.path(), on(Source::Name("topologies/0".to_owned())).into_plan()),
        ServerReason::StoredNetwork
    );
    let cluster = Source::Cluster(v1::ClusterNodes { cluster: "clusters/a".to_owned(), nodes: Vec::new() });
    assert_eq!(reason(folder.path(), on(cluster.clone()).into_plan()), ServerReason::StoredNetwork);
    let base = Some(Box::new(TopologySource { source: Some(cluster) }));
    let punctured = Source::Punctured(Box::new(v1::Punctured { base, ..v1::Punctured::default() }));
    assert_eq!(reason(folder.path(), on(punctured).into_plan()), ServerReason::StoredNetwork);
    let accepting = v1::PlanRequest { on_miss: v1::OnMiss::Fallback.into(), ..request("ring:4").into_plan() };
    assert_eq!(reason(folder.path(), accepting), ServerReason::Fallback);
}

#[test]
fn known_faults_are_planned_around_by_a_server_unless_they_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let opened = open_store(folder.path()).unwrap();
    opened.space(Space::Faults).put(&PlanKey::from_bytes([1; 32]), &encode_record(b"a fault"), &[]).unwrap();
    drop(opened);
    assert_eq!(reason(folder.path(), request("ring:4").into_plan()), ServerReason::KnownFaults);
    let ignoring = PlanSpec { fault_policy: v1::FaultPolicy::Ignore.into(), ..request("ring:4") };
    assert!(!answer(folder.path(), ignoring).is_hit);
}

#[test]
fn a_folder_that_is_held_a_network_that_is_too_large_and_a_stop_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let held = open_store(folder.path()).unwrap();
    let service = PlanService::new(folder.path(), limits());
    let error = service.plan(request("ring:4").into_plan(), &Never, &Unseen).unwrap_err();
    assert!(matches!(error, ServiceError::Store(StoreError::InUse { .. })), "{error:?}");
    drop(held);
    let tight = PlanService::new(folder.path(), Limits { memory_bytes: 10, ..limits() });
    let error = tight.plan(request("ring:4").into_plan(), &Never, &Unseen).unwrap_err();
    assert!(matches!(error, ServiceError::Memory { limit: 10, .. }), "{error:?}");
    let error = service.plan(request("ring:4").into_plan(), &|| true, &Unseen).unwrap_err();
    assert!(matches!(error, ServiceError::Plan(PlanError::Stopped)), "{error:?}");
    let error = service.plan(request("rong:4").into_plan(), &Never, &Unseen).unwrap_err();
    assert!(matches!(error, ServiceError::Plan(PlanError::Expression(_))), "{error:?}");
}
