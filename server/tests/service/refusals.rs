//! What a request gets that cannot be served, and that the server goes on after it.

use canopy_wire::fraction;
use canopy_wire::fraction_of;
use std::sync::Arc;

use canopy_proto::v1::{
    Collective, CollectiveSpec, DocumentFormat, GroupTransit, OnMiss, OutputFormat, OutputSpec, PlanRequest, PlanSpec,
};
use canopy_server::{Order, Pipeline, PlanFailure, Planner, Prepared, Produced, Watch};
use canopy_synth::Stop;
use canopy_topology::TopologyLimits;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::support::{TestServer, document_request, request, stream};

/// A request that is refused: code, reason, and the field, precondition or limit that is named.
async fn check_refused(server: &TestServer, asked: PlanSpec, code: Code, reason: &str, subject: &str) -> Status {
    check_request_refused(server, asked.into_plan(), code, reason, subject).await
}

async fn check_request_refused(
    server: &TestServer,
    asked: PlanRequest,
    code: Code,
    reason: &str,
    subject: &str,
) -> Status {
    let status = server.client().plan(asked.clone()).await.expect_err(reason);
    let details = status.get_error_details();
    assert_eq!((status.code(), &*details.error_info().unwrap().reason), (code, reason), "{status:?}");
    assert_eq!(details.error_info().unwrap().domain, "canopy");
    let named = [
        details.bad_request().map(|detail| detail.field_violations[0].field.strip_prefix("spec.").unwrap().to_owned()),
        details.precondition_failure().map(|detail| detail.violations[0].subject.clone()),
        details.quota_failure().map(|detail| detail.violations[0].subject.clone()),
    ];
    assert_eq!(named.into_iter().flatten().collect::<Vec<_>>(), [subject], "{status:?}");
    let streamed = stream(server, asked).await.err().expect("the stream refuses it, too");
    assert_eq!((streamed.code(), streamed.message()), (code, status.message()));
    // And the server keeps serving.
    server.client().plan(request("ring:3").into_plan()).await.unwrap();
    status
}

#[tokio::test]
async fn bad_input_is_refused_with_its_field() {
    let server = TestServer::start().await;
    let invalid = Code::InvalidArgument;
    let yaml = |text: &str| document_request(DocumentFormat::Yaml, text);
    check_refused(&server, PlanSpec::default(), invalid, "FIELD_MISSING", "topology").await;
    for text in ["", "ring", "ring:", "ring:1", "ring:-4", "ring:0x8", "nonsense:8", "torus:4x4,bw=0GB/s", "((((", "é"]
    {
        check_refused(&server, request(text), invalid, "TOPOLOGY_MALFORMED", "topology.expression").await;
    }
    let unknown = "canopy: 1\nnodes: [{id: a}, {id: b}]\nlinks: [{from: a, to: b, bandwidth: 1GB/s}, {from: a, to: c, bandwidth: 1GB/s}]";
    check_refused(&server, yaml(unknown), invalid, "UNKNOWN_NODE", "topology.document.links[1].to").await;
    let zero = "canopy: 1\nnodes: [{id: a}, {id: b}]\nlinks: [{from: a, to: b, bandwidth: 0}]";
    check_refused(&server, yaml(zero), invalid, "TOPOLOGY_MALFORMED", "topology.document.links[0].bandwidth").await;
    let root = |kind: Collective, root| PlanSpec {
        collective: Some(CollectiveSpec { kind: kind.into(), root: Some(root) }),
        ..request("ring:4")
    };
    check_refused(&server, root(Collective::Broadcast, 4), invalid, "ROOT_INVALID", "collective.root").await;
    check_refused(&server, root(Collective::Allgather, 0), invalid, "ROOT_INVALID", "collective.root").await;
    let shares = |shares: &[u64]| PlanSpec { shares: shares.to_vec(), ..request("ring:4") };
    for wrong in [&[1, 2, 3][..], &[0; 4], &[u64::MAX, 1, 0, 0]] {
        check_refused(&server, shares(wrong), invalid, "SHARES_INVALID", "shares").await;
    }
    let scatter = Some(CollectiveSpec { kind: Collective::Scatter.into(), root: Some(2) });
    let nothing = PlanSpec { collective: scatter, ..shares(&[0, 0, 5, 0]) };
    check_refused(&server, nothing, invalid, "SHARES_INVALID", "shares").await;
    let group = |ranks: &[u32]| PlanSpec { ranks: ranks.to_vec(), ..request("ring:4") };
    check_refused(&server, group(&[0, 1, 4]), invalid, "GROUP_INVALID", "ranks[2]").await;
    check_refused(&server, group(&[0, 1, 0]), invalid, "GROUP_INVALID", "ranks[2]").await;
    check_refused(&server, group(&[3]), invalid, "GROUP_INVALID", "ranks").await;
    let transit = PlanSpec { transit: GroupTransit::Forward.into(), ..request("ring:4") };
    check_refused(&server, transit, invalid, "FIELD_MISSING", "ranks").await;
    let algorithm = PlanSpec { algorithm: Some("bfb2".to_owned()), ..request("ring:4") };
    check_refused(&server, algorithm, invalid, "ALGORITHM_UNKNOWN", "algorithm").await;
    let profile = OutputSpec {
        format: OutputFormat::MscclXml.into(),
        profile: Some("oneccl".to_owned()),
        instancing: None,
        plain_channels: false,
        max_layers: None,
    };
    let profile = PlanSpec { outputs: vec![profile], ..request("ring:4") };
    check_refused(&server, profile, invalid, "PROFILE_NOT_APPLICABLE", "outputs[0].profile").await;
    server.stop().await;
}

#[tokio::test]
async fn what_is_over_a_limit_is_refused_at_once() {
    let server = TestServer::start().await;
    let exhausted = Code::ResourceExhausted;
    for text in ["ring:1001", "complete:1000", "torus:99999x99999x99999", "hypercube:63", "ring:18446744073709551615"] {
        let status =
            check_refused(&server, request(text), exhausted, "TOPOLOGY_TOO_LARGE", "topology.expression").await;
        assert!(status.get_error_details().retry_info().is_none(), "waiting does not help");
    }
    let long = "#".repeat((1 << 20) + 1);
    let long = document_request(DocumentFormat::Yaml, &long);
    check_refused(&server, long, exhausted, "TOPOLOGY_TOO_LARGE", "topology.document").await;
    let message = document_request(DocumentFormat::Yaml, &"#".repeat(3 << 20));
    check_refused(&server, message, exhausted, "REQUEST_TOO_LARGE", "request").await;
    server.stop().await;
}

#[tokio::test]
async fn what_has_no_answer_is_a_failed_precondition_that_names_it() {
    let server = TestServer::start().await;
    let precondition = Code::FailedPrecondition;
    let yaml = "canopy: 1\nnodes: [{id: a}, {id: b}, {id: c}]\nlinks:\n  - {from: a, to: b, bandwidth: 1GB/s, both: true}\n  - {from: c, to: a, bandwidth: 1GB/s}\n";
    let asked = document_request(DocumentFormat::Yaml, yaml);
    let status = check_refused(&server, asked, precondition, "TOPOLOGY_DISCONNECTED", "rank 0 to rank 2").await;
    let details = status.get_error_details();
    let metadata = &details.error_info().unwrap().metadata;
    assert_eq!((&*metadata["from_node"], &*metadata["to_node"], &*metadata["components"]), ("a", "c", "2"));
    let violations = &details.precondition_failure().unwrap().violations;
    let components: Vec<(&str, &str)> =
        violations.iter().skip(1).map(|found| (found.subject.as_str(), found.description.as_str())).collect();
    assert_eq!(components, [("component 0", "a, b"), ("component 1", "c")]);
    assert!(status.message().starts_with("the network is split in two: {a, b} and {c}, so "), "{}", status.message());
    server.stop().await;
}

#[tokio::test]
async fn a_plan_too_large_for_its_runtime_names_limit_and_need() {
    let server = TestServer::start().await;
    let outputs = vec![OutputSpec {
        format: OutputFormat::MscclXml.into(),
        profile: Some("msccl".to_owned()),
        instancing: None,
        plain_channels: false,
        max_layers: None,
    }];
    // Three primes: a share must be cut into very many chunks.
    let yaml = "canopy: 1\nnodes: [{id: a}, {id: b}, {id: c}]\nlinks:\n  - {from: a, to: b, bandwidth: 100003, both: true}\n  - {from: b, to: c, bandwidth: 100019, both: true}\n  - {from: c, to: a, bandwidth: 100043, both: true}\n";
    let asked = PlanSpec { outputs, ..document_request(DocumentFormat::Yaml, yaml) };
    // The planner takes fewer trees than the optimum has, unless it is told how many.
    let fitting = server.client().plan(asked.clone().into_plan()).await.unwrap().into_inner();
    assert!(fitting.warnings.iter().any(|warning| warning.code == "FEWER_TREES"), "{:?}", fitting.warnings);
    let asked = PlanSpec { trees_per_root: Some(100_011), ..asked };
    let status = check_refused(&server, asked, Code::FailedPrecondition, "EXCEEDS_RUNTIME_LIMITS", "outputs[0]").await;
    let details = status.get_error_details();
    let number = |name: &str| details.error_info().unwrap().metadata[name].parse::<u64>().unwrap();
    assert!(number("need") > number("limit"));
    server.stop().await;
}

/// Plans like the real planner, and says that the result is only half as good as can be.
struct HalfAsGood(Pipeline);

impl Planner for HalfAsGood {
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        self.0.prepare(order, stop)
    }

    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure> {
        let mut produced = self.0.produce(order, prepared, stop, watch)?;
        produced.plan.plan.quality.as_mut().unwrap().optimality = fraction("1/2");
        Ok(produced)
    }
}

#[tokio::test]
async fn a_plan_that_is_not_good_enough_is_refused_to_those_who_said_so() {
    let planner = HalfAsGood(Pipeline::new(TopologyLimits::STANDARD));
    let server = TestServer::start_with(|_| {}, Arc::new(planner)).await;
    let at_least = |numerator, denominator| {
        let minimum_optimality = Some(fraction_of(numerator, denominator));
        PlanRequest { minimum_optimality, ..request("ring:4").into_plan() }
    };
    let (code, reason) = (Code::FailedPrecondition, "QUALITY_BELOW_MINIMUM");
    check_request_refused(&server, at_least(2, 3), code, reason, "minimum_optimality").await;
    server.client().plan(at_least(2, 4)).await.unwrap();
    let mut best = at_least(2, 3);
    best.on_miss = OnMiss::BestSoFar.into();
    let reply = server.client().plan(best).await.unwrap().into_inner();
    assert!(reply.warnings.iter().any(|warning| warning.code == "BELOW_MINIMUM"), "{:?}", reply.warnings);
    assert_eq!(reply.fallback, None);
    server.stop().await;
}
