//! Bundles for a placement: each plan is for the devices of its communicator, and its file says so if it can.

use canopy_proto::v1::fetch_plan_file_event::Event;
use canopy_proto::v1::{
    BundleCommunicator, BundleItem, Collective, CollectiveSpec, DeviceTarget, DocumentFormat, Fault,
    FetchPlanFileRequest, GetPlanRequest, JointBundleSpec, JointCollective, OutputFormat, OutputSpec, Placement,
    PlanBundleRequest, PlanBundleResponse, RankSlot, ReportFaultsRequest, fault,
};
use canopy_topology::{TopologyLimits, generate, to_yaml};
use tonic::Code;

use crate::cached::check_refused;
use crate::replans::{event, faults, source, start};
use crate::support::{TestServer, document_request};

const BOXES: &str = "dgx-a100:boxes=2,gpus=4";

/// Ranks in a row on one machine.
fn row(node: &str, device: u32, count: u32) -> RankSlot {
    RankSlot { node: node.to_owned(), device, count: Some(count) }
}

fn communicator(name: &str, ranks: &[u32]) -> BundleCommunicator {
    BundleCommunicator { name: name.to_owned(), ranks: ranks.to_vec() }
}

/// An allgather of two boxes, each of them, and a pair across.
fn bundle(format: OutputFormat, slots: &[RankSlot]) -> PlanBundleRequest {
    PlanBundleRequest {
        topology: Some(source(BOXES)),
        communicators: vec![
            communicator("all", &[]),
            communicator("tp0", &[0, 1, 2, 3]),
            communicator("tp1", &[4, 5, 6, 7]),
            communicator("dp", &[5, 0]),
        ],
        collectives: vec![CollectiveSpec { kind: Collective::Allgather.into(), root: None }],
        size_bytes_min: Some(1 << 20),
        size_bytes_max: Some(1 << 22),
        output: Some(OutputSpec { format: format.into(), ..OutputSpec::default() }),
        placement: Some(Placement { slots: slots.to_vec() }).filter(|placement| !placement.slots.is_empty()),
        ..PlanBundleRequest::default()
    }
}

async fn made(server: &TestServer, request: PlanBundleRequest) -> PlanBundleResponse {
    let mut request = tonic::Request::new(request);
    // Each plan that is compared gets a part of it.
    request.set_timeout(std::time::Duration::from_secs(600));
    server.client().plan_bundle(request).await.unwrap().into_inner()
}

fn slots(item: &BundleItem) -> Vec<RankSlot> {
    item.rank_map.clone().map(|map| map.slots).unwrap_or_default()
}

/// The text of the first file of an item, or of the part of it for some ranks.
async fn text(server: &TestServer, item: &BundleItem, ranks: &[u32]) -> String {
    let file = item.files.first().unwrap();
    let wanted = FetchPlanFileRequest {
        name: file.plan.clone(),
        format: file.artifact.as_ref().unwrap().format,
        ranks: ranks.to_vec(),
        placement: item.rank_map.clone(),
        ..FetchPlanFileRequest::default()
    };
    let mut incoming = server.plans().fetch_plan_file(wanted).await.unwrap().into_inner();
    let mut bytes = Vec::new();
    while let Some(event) = incoming.message().await.unwrap() {
        if let Some(Event::Content(piece)) = event.event {
            bytes.extend_from_slice(&piece.data);
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// The statement of a oneCCL plan about its devices.
fn stated(devices: &str) -> String {
    format!("  <meta key=\"rank_map\" value=\"{devices}\"/>\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_communicator_has_plans_for_its_own_devices() {
    let server = TestServer::start().await;
    let here = [row("a&\"b\"", 0, 4), row("c.example", 4, 4)];
    let reply = made(&server, bundle(OutputFormat::OnecclXml, &here)).await;
    assert_eq!(reply.warnings, []);
    let maps: Vec<_> = reply.items.iter().map(slots).collect();
    let pair = vec![row("c.example", 5, 1), row("a&\"b\"", 0, 1)];
    assert_eq!(maps, [here.to_vec(), here[..1].to_vec(), here[1..].to_vec(), pair]);
    // The boxes are alike, but on other devices.
    assert!(reply.items.iter().all(|item| item.served_by.is_empty() && !item.files.is_empty()), "{reply:?}");
    let line = stated("c.example:5,a&amp;&quot;b&quot;:0");
    let whole = text(&server, &reply.items[3], &[]).await;
    assert!(whole.contains(&line), "{whole}");
    assert!(text(&server, &reply.items[3], &[1]).await.contains(&line), "a slice keeps the devices");
    for item in &reply.items {
        for file in &item.files {
            let plan = GetPlanRequest { name: file.plan.clone(), placement: item.rank_map.clone() };
            let plan = server.plans().get_plan(plan).await.unwrap().into_inner();
            assert_eq!(plan.rank_map, item.rank_map);
        }
    }
    assert_eq!(made(&server, bundle(OutputFormat::OnecclXml, &here)).await.items, reply.items);

    // Without a placement nothing is stated, and what is alike shares its files.
    let plain = made(&server, bundle(OutputFormat::OnecclXml, &[])).await;
    assert!(plain.items.iter().all(|item| item.rank_map.is_none()));
    assert_eq!(plain.items[2].served_by, "tp0");
    assert_eq!(text(&server, &plain.items[3], &[]).await.lines().count() + 1, whole.lines().count());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runtimes_that_do_not_compare_devices_share_files() {
    let server = TestServer::start().await;
    let here = [row("a", 0, 4), row("b", 0, 4)];
    let reply = made(&server, bundle(OutputFormat::MscclXml, &here)).await;
    let served: Vec<&str> = reply.items.iter().map(|item| item.served_by.as_str()).collect();
    assert_eq!(served, ["", "", "tp0", ""]);
    assert_eq!((slots(&reply.items[1]), slots(&reply.items[2])), (here[..1].to_vec(), here[1..].to_vec()));
    let plain = made(&server, bundle(OutputFormat::MscclXml, &[])).await;
    let content = async |reply: &PlanBundleResponse| text(&server, &reply.items[0], &[]).await;
    // But for the names of the plans, which are for other devices.
    let rest = |text: String| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(rest(content(&reply).await), rest(content(&plain).await));
    server.stop().await;
}

/// The slots choose ranks of a network that names its hosts, and communicators count in those.
#[tokio::test(flavor = "multi_thread")]
async fn communicators_count_in_placed_ranks() {
    let server = TestServer::start().await;
    let boxes = to_yaml(&generate("dgx-a100:boxes=3,gpus=4", &TopologyLimits::STANDARD).unwrap());
    let hosted = (0..3).fold(boxes, |text, number| {
        text.replace(&format!("box: b{number}"), &format!("host: n{number}.site, box: b{number}"))
    });
    let request = PlanBundleRequest {
        topology: document_request(DocumentFormat::Yaml, &hosted).topology,
        communicators: vec![communicator("all", &[]), communicator("dp", &[4, 0])],
        ..bundle(OutputFormat::OnecclXml, &[row("n2", 0, 4), row("n0", 1, 2)])
    };
    let reply = made(&server, request.clone()).await;
    let of = |name: &str, device, count| row(&format!("{name}.site"), device, count);
    assert_eq!(slots(&reply.items[0]), [of("n2", 0, 4), of("n0", 1, 2)]);
    assert_eq!(slots(&reply.items[1]), [of("n0", 1, 1), of("n2", 0, 1)]);
    assert!(text(&server, &reply.items[1], &[]).await.contains(&stated("n0.site:1,n2.site:0")));
    let beyond = PlanBundleRequest { communicators: vec![communicator("dp", &[0, 6])], ..request };
    let refused = server.client().plan_bundle(beyond).await;
    check_refused(refused, Code::InvalidArgument, "GROUP_INVALID", "ranks[1]");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_are_made_around_the_faults_of_placed_machines() {
    let server = start().await;
    let device = DeviceTarget { host: "gpu01".to_owned(), index: 1, ..DeviceTarget::default() };
    let lost = Fault { target: Some(fault::Target::Device(device)), remaining: None };
    let asked = ReportFaultsRequest { events: vec![event("1", lost, false)], ..ReportFaultsRequest::default() };
    faults(&server).report_faults(asked).await.unwrap();
    let reply = made(&server, bundle(OutputFormat::OnecclXml, &[row("gpu01", 0, 4), row("gpu02", 0, 4)])).await;
    assert_eq!(reply.items.iter().map(|item| item.ranks).collect::<Vec<_>>(), [7, 3, 4, 2]);
    assert_eq!(slots(&reply.items[0]), [row("gpu01", 0, 1), row("gpu01", 2, 2), row("gpu02", 0, 4)]);
    assert_eq!(slots(&reply.items[1]), [row("gpu01", 0, 1), row("gpu01", 2, 2)]);
    assert!(text(&server, &reply.items[1], &[]).await.contains(&stated("gpu01:0,gpu01:2,gpu01:3")));
    // It is the machine that is broken.
    let elsewhere = made(&server, bundle(OutputFormat::OnecclXml, &[row("gpu11", 0, 4), row("gpu12", 0, 4)])).await;
    assert_eq!(elsewhere.items[0].ranks, 8);
    server.stop().await;
}

#[tokio::test]
async fn a_placement_that_cannot_be_is_refused_by_its_field() {
    let server = TestServer::start().await;
    let of = |slots: &[RankSlot]| bundle(OutputFormat::OnecclXml, slots);
    let empty = PlanBundleRequest { placement: Some(Placement::default()), ..of(&[]) };
    let collective = Some(CollectiveSpec { kind: Collective::Allgather.into(), root: None });
    let joint = PlanBundleRequest {
        topology: Some(source(BOXES)),
        joint: Some(JointBundleSpec {
            collectives: vec![JointCollective { name: "one".to_owned(), collective, ..JointCollective::default() }],
            outputs: Vec::new(),
        }),
        placement: of(&[row("a", 0, 4), row("b", 0, 4)]).placement,
        ..PlanBundleRequest::default()
    };
    for (request, reason, field) in [
        (empty, "FIELD_MISSING", "placement.slots"),
        (of(&[row("a", 0, 4), row("a", 3, 4)]), "PLACEMENT_DUPLICATE", "placement.slots[4]"),
        (of(&[row("a", 0, 4), row("b,c", 0, 4)]), "PLACEMENT_INVALID", "placement.slots[4]"),
        (of(&[row("a", 0, u32::MAX)]), "PLACEMENT_INVALID", "placement.slots"),
        (of(&[row("a", 0, 4)]), "PLACEMENT_DISAGREES", "placement"),
        (of(&[row("a", 0, 5), row("b", 0, 3)]), "PLACEMENT_DISAGREES", "placement.slots[4]"),
        (joint, "FIELD_NOT_APPLICABLE", "placement"),
    ] {
        check_refused(server.client().plan_bundle(request).await, Code::InvalidArgument, reason, field);
    }
    server.stop().await;
}
