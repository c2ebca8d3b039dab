//! `canopy.v1.Networks`: stored topologies, and checks of topologies.

use bytes::Bytes;
use canopy_canonical::families::{Recognition, recognise};
use canopy_canonical::{Budget, WORK_STANDARD};
use canopy_import::{Content, Fabric, FileKind, Report, read_content};
use canopy_planner::{PlanError, PlanKey, TopologyInput, TopologyKey, assumptions, read_reported};
use canopy_proto::v1;
use canopy_proto::v1::{
    CheckTopologyRequest, CheckTopologyResponse, DeleteTopologyRequest, DeleteTopologyResponse, DocumentFormat,
    GetTopologyRequest, GetTopologyResponse, ListTopologiesRequest, ListTopologiesResponse, PutTopologyRequest,
    PutTopologyResponse, StoredTopology, TopologySource, TopologySummary, UnbalancedNode, UnreachablePair,
};
use canopy_topology::{Topology, TopologyLimits, identity_hash, read_document, to_yaml};
use canopy_wire::{RequestError, sha256_hex, timestamp, topology_input, topology_summary};
use tonic::{Request, Response, Status};

use crate::call;
use crate::failure::{CallFailure, PlanFailure};
use crate::jobs::computing::Seat;
use crate::reading::on_a_deep_stack;
use crate::rpc::shared::call_pool::CallPool;
use crate::rpc::shared::fields::{Field, Kind};
use crate::rpc::shared::listing::{ListRequest, Listing};
use crate::rpc::shared::sources::StoredNetworks;
use crate::rpc::shared::sources::{Gone, Presence, read, resolve};
use crate::rpc::shared::status::to_topology_problem;
use crate::store::Records;
use crate::store::topologies::{Kept, TopologyEntry, TopologyFacts, TopologyStore, id_of};

/// Bytes that looking for the family of a network takes for each node and link, roughly.
const RECOGNISED_BYTES: u64 = 512;
/// Most bytes of a document in one answer.
const PART_BYTES_MAX: usize = 2 << 20;
/// What topologies are listed by.
const FIELDS: &[Field<TopologyEntry>] = &[
    Field { name: "name", kind: Kind::Text(|kept| kept.id()) },
    // Its name on the command line.
    Field { name: "id", kind: Kind::Text(|kept| kept.id()) },
    Field { name: "display_name", kind: Kind::Text(|kept| kept.name.clone()) },
    Field { name: "hash", kind: Kind::Text(|kept| kept.summary.hash.clone()) },
    Field { name: "ranks", kind: Kind::Number(|kept| kept.summary.ranks.into()) },
    Field { name: "nodes", kind: Kind::Number(|kept| kept.summary.nodes.into()) },
    Field { name: "links", kind: Kind::Number(|kept| kept.summary.links.into()) },
    Field { name: "size_bytes", kind: Kind::Number(|kept| kept.size_bytes) },
    Field { name: "created", kind: Kind::Time(|kept| kept.created_ms) },
];

/// The calls about topologies.
#[derive(Clone)]
pub(crate) struct Topologies {
    pool: CallPool,
    networks: StoredNetworks,
    limits: TopologyLimits,
}

impl Topologies {
    pub(crate) const fn new(pool: CallPool, networks: StoredNetworks, limits: TopologyLimits) -> Self {
        Self { pool, networks, limits }
    }

    pub(super) async fn put_topology(
        &self,
        request: Request<PutTopologyRequest>,
    ) -> Result<Response<PutTopologyResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let (networks, limits, source) = (self.networks.clone(), self.limits, request.topology.clone());
        let caller = Presence::default();
        let gone = caller.ended();
        let put = move |_: &Records| {
            let (topology, warnings) = read(&networks, source, &limits, &gone)?;
            let (entry, created) = networks.topologies.put(&topology)?;
            call::concerns(&entry.id());
            Ok(PutTopologyResponse { topology: Some(on_the_wire(entry)), created, warnings })
        };
        let call = (&headers, &*request.request_id, &request);
        self.pool.once("PutTopology", call, put, || {}).await.map(Response::new)
    }

    pub(super) async fn get_topology(
        &self,
        request: Request<GetTopologyRequest>,
    ) -> Result<Response<GetTopologyResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let (networks, limits) = (self.networks.clone(), self.limits);
        let caller = Presence::default();
        let gone = caller.ended();
        let got = self.pool.run("GetTopology", &headers, move |_| get(&networks, &request, &limits, &gone));
        got.await.map(Response::new)
    }

    pub(super) async fn list_topologies(
        &self,
        request: Request<ListTopologiesRequest>,
    ) -> Result<Response<ListTopologiesResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let topologies = self.networks.topologies.clone();
        let listed = self.pool.run("ListTopologies", &headers, move |_| list(&topologies, &request));
        listed.await.map(Response::new)
    }

    pub(super) async fn check_topology(
        &self,
        request: Request<CheckTopologyRequest>,
    ) -> Result<Response<CheckTopologyResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let (networks, limits) = (self.networks.clone(), self.limits);
        let checked = self
            .pool
            .compute("CheckTopology", &headers, move |_, seat| check(&networks, request.topology, &limits, seat));
        checked.await.map(Response::new)
    }

    pub(super) async fn delete_topology(
        &self,
        request: Request<DeleteTopologyRequest>,
    ) -> Result<Response<DeleteTopologyResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let (topologies, name) = (self.networks.topologies.clone(), request.name.clone());
        let delete = move |_: &Records| {
            let freed_bytes = topologies.remove(&name)?.ok_or_else(|| CallFailure::no_topology("name", &name))?;
            Ok(DeleteTopologyResponse { freed_bytes })
        };
        call::concerns(&request.name);
        let call = (&headers, &*request.request_id, &request);
        self.pool.once("DeleteTopology", call, delete, || {}).await.map(Response::new)
    }
}

fn get(
    networks: &StoredNetworks,
    request: &GetTopologyRequest,
    limits: &TopologyLimits,
    gone: Gone<'_>,
) -> Result<GetTopologyResponse, CallFailure> {
    let Kept { entry, document } = match &request.cluster {
        None => {
            networks.topologies.get(&request.name)?.ok_or_else(|| CallFailure::no_topology("name", &request.name))?
        }
        Some(_) if !request.name.is_empty() => {
            let (field, method) = ("name", "a request for a part of a cluster");
            return Err(PlanFailure::Request(RequestError::NotApplicable { field, method }).into());
        }
        Some(part) => {
            let document = networks.clusters.part(part, limits, gone)?;
            let entry = TopologyEntry::unstored(&read_json(&document, limits)?, document.len());
            Kept { entry, document }
        }
    };
    let refused = |number| {
        let (field, known) = ("format".to_owned(), "DOCUMENT_FORMAT_YAML or DOCUMENT_FORMAT_JSON");
        CallFailure::Plan(PlanFailure::Request(RequestError::UnknownValue { field, number, known }))
    };
    let document = match DocumentFormat::try_from(request.format) {
        Ok(DocumentFormat::Unspecified) if request.offset == 0 => {
            return Ok(GetTopologyResponse { topology: Some(on_the_wire(entry)), ..GetTopologyResponse::default() });
        }
        Ok(DocumentFormat::Json) => document,
        Ok(DocumentFormat::Yaml) => yaml(&document, limits)?,
        Ok(DocumentFormat::Unspecified | DocumentFormat::NcclXml) | Err(_) => return Err(refused(request.format)),
    };
    let beyond = CallFailure::Offset { offset: request.offset, size: document.len() as u64 };
    let start = usize::try_from(request.offset).ok().filter(|&start| start <= document.len()).ok_or(beyond)?;
    let end = document.len().min(start.saturating_add(PART_BYTES_MAX));
    Ok(GetTopologyResponse {
        topology: Some(on_the_wire(entry)),
        document: Some(v1::TopologyDocument { format: request.format, content: document.slice(start..end) }),
        document_size_bytes: document.len() as u64,
        document_sha256: sha256_hex(&document),
    })
}

/// The same topology as YAML. It was written by this server's kind, so that a text that cannot be read is a fault, but
/// for one that was stored under greater limits.
fn yaml(json: &[u8], limits: &TopologyLimits) -> Result<Bytes, CallFailure> {
    Ok(to_yaml(&read_json(json, limits)?).into_bytes().into())
}

fn read_json(json: &[u8], limits: &TopologyLimits) -> Result<Topology, CallFailure> {
    let read = read_document(json, Some(canopy_topology::DocumentFormat::Json), limits);
    Ok(read.map_err(|error| CallFailure::Plan(PlanError::Document(error.into()).into()))?.topology)
}

fn list(topologies: &TopologyStore, request: &ListTopologiesRequest) -> Result<ListTopologiesResponse, CallFailure> {
    let ListTopologiesRequest { page_size, page_token, filter, order_by } = request;
    let mut listing = Listing::new(FIELDS, &ListRequest { page_size: *page_size, page_token, filter, order_by })?;
    topologies.for_each(|entry| {
        let id = entry.key().as_bytes().to_vec();
        listing.show(entry, id);
    })?;
    let page = listing.finish();
    Ok(ListTopologiesResponse {
        topologies: page.items.into_iter().map(on_the_wire).collect(),
        next_page_token: page.next_page_token,
        total_size: page.total,
    })
}

fn check(
    networks: &StoredNetworks,
    source: Option<TopologySource>,
    limits: &TopologyLimits,
    seat: &Seat,
) -> Result<CheckTopologyResponse, CallFailure> {
    let gone: Gone<'_> = &|| seat.is_over();
    let refused = |failure: PlanFailure, beside: CheckTopologyResponse| {
        let problem = to_topology_problem(&failure).ok_or(CallFailure::Plan(failure))?;
        Ok(CheckTopologyResponse { problem: Some(problem), ..beside })
    };
    let input = match topology_input(resolve(networks, source, limits, gone)?) {
        Ok(input) => input,
        Err(error) => return refused(PlanFailure::Request(error), CheckTopologyResponse::default()),
    };
    let (topology, kind, report) = match on_a_deep_stack(|| read_reported(&input, limits, &gone)) {
        Ok(read) => read,
        Err(error) => return refused(error.into(), understood(&input, limits, gone)),
    };
    let elements = (topology.nodes().len() + topology.links().len()) as u64;
    seat.take_memory(elements.saturating_mul(RECOGNISED_BYTES))?;
    let found = recognise(&topology, Budget { work_max: WORK_STANDARD, stop: &|| gone() });
    let family = match found.map_err(|_| PlanFailure::Stopped)? {
        Recognition::Member(found) => found.expression,
        Recognition::Other | Recognition::Undetermined { .. } | Recognition::TooLarge => String::new(),
    };
    let id = |node: canopy_topology::NodeIndex| topology.node(node).id.clone();
    // The node of rank r has index r.
    let end = |rank: canopy_topology::Rank| {
        topology.nodes().get(rank.index()).map_or_else(String::new, |node| node.id.clone())
    };
    Ok(CheckTopologyResponse {
        problem: None,
        name: id_of(&PlanKey::from_bytes(*identity_hash(&topology).as_bytes())),
        display_name: topology.name().unwrap_or_default().to_owned(),
        summary: Some(topology_summary(&topology, &TopologyKey::of(&topology))),
        unreachable: topology.first_unreachable().map(|(from, to)| UnreachablePair {
            from_rank: from.number(),
            from_node: end(from),
            to_rank: to.number(),
            to_node: end(to),
        }),
        unbalanced: topology.first_unbalanced().map(|(node, entering, leaving)| UnbalancedNode {
            node: id(node),
            entering: entering.to_string(),
            leaving: leaving.to_string(),
        }),
        warnings: canopy_wire::warnings(&assumptions(&report)),
        family,
        ..reported(kind, report)
    })
}

/// What is understood of a file that is no network: of one that says what joins machines, without their rates.
fn understood(input: &TopologyInput, limits: &TopologyLimits, gone: Gone<'_>) -> CheckTopologyResponse {
    let TopologyInput::Document { content, .. } = input else { return CheckTopologyResponse::default() };
    match on_a_deep_stack(|| read_content(content, limits, &|| gone())) {
        Ok((kind, Content::Fabric(Fabric { switches, hosts, mut report, .. }))) => {
            if report.understood.is_empty() {
                report.understood.push(format!("{} machines and {} switches", hosts.len(), switches.len()));
            }
            reported(Some(kind), report.shortened())
        }
        _ => CheckTopologyResponse::default(),
    }
}

fn reported(kind: Option<FileKind>, report: Report) -> CheckTopologyResponse {
    let kind = match kind {
        Some(FileKind::Own(format)) => format!("canopy {}", format.name()),
        kind => kind.map_or_else(String::new, |kind| kind.name().to_owned()),
    };
    let Report { understood, assumed, left_out } = report;
    CheckTopologyResponse { kind, understood, assumed, left_out, ..CheckTopologyResponse::default() }
}

fn on_the_wire(entry: TopologyEntry) -> StoredTopology {
    let id = entry.id();
    let TopologyFacts { hash, hash_kind, ranks, nodes, links } = entry.summary;
    StoredTopology {
        name: id,
        display_name: entry.name,
        summary: Some(TopologySummary { hash, hash_kind, ranks, nodes, links }),
        size_bytes: entry.size_bytes,
        create_time: Some(timestamp(entry.created_ms)),
    }
}
