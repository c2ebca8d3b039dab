//! `Analysis.FindPaths`: one message split over several paths.

use canopy_direct::multiport::{Forwarding, MultiPath, MultiPathProblem, PATHS_MAX, multi_path};
use canopy_optimize::{Arc, Digraph};
use canopy_proto::v1::{FindPathsRequest, FindPathsResponse, MessagePath, PathForwarding, Warning};
use canopy_topology::{NodeIndex, Topology};
use canopy_wire::RequestError;
use canopy_wire::fraction;
use tonic::{Request, Status};

use crate::failure::{CallFailure, PlanFailure};
use crate::jobs::computing::Seat;
use crate::rpc::shared::admission::Admission;
use crate::rpc::shared::sources;

/// Bytes that the search takes for each link, roughly.
const LINK_BYTES: u64 = 1 << 10;

/// Answers the call.
pub(super) async fn find_paths(
    admission: &Admission,
    request: Request<FindPathsRequest>,
) -> Result<FindPathsResponse, Status> {
    let (headers, _, request) = request.into_parts();
    let (networks, limits) = (admission.resolver.networks.clone(), admission.resolver.limits.searched());
    let found = admission.pool.compute("FindPaths", &headers, move |_, seat| {
        let forwarding = forwarding(request.forwarding)?;
        let gone = || seat.is_over();
        let (topology, warnings) = sources::read(&networks, request.topology.clone(), &limits, &gone)?;
        find(&topology, &request, forwarding, warnings, seat)
    });
    found.await
}

fn forwarding(number: i32) -> Result<Forwarding, CallFailure> {
    match PathForwarding::try_from(number) {
        Ok(PathForwarding::Unspecified | PathForwarding::Whole) => Ok(Forwarding::Whole),
        Ok(PathForwarding::Through) => Ok(Forwarding::Through),
        Err(_) => {
            let (field, known) = ("forwarding".to_owned(), "PATH_FORWARDING_WHOLE or PATH_FORWARDING_THROUGH");
            Err(PlanFailure::Request(RequestError::UnknownValue { field, number, known }).into())
        }
    }
}

fn find(
    topology: &Topology,
    request: &FindPathsRequest,
    forwarding: Forwarding,
    warnings: Vec<Warning>,
    seat: &Seat,
) -> Result<FindPathsResponse, CallFailure> {
    let count = topology.rank_count();
    for (field, rank) in [("source_rank", request.source_rank), ("target_rank", request.target_rank)] {
        if rank >= count {
            return Err(CallFailure::PathsRank { field, rank, count });
        }
    }
    let links = topology.links();
    let arc = |link: &canopy_topology::Link| Arc {
        from: link.from.number(),
        to: link.to.number(),
        capacity: link.capacity.bytes_per_sec(),
    };
    let node_count = u32::try_from(topology.nodes().len()).expect("topology limits keep counts within u32");
    let graph = Digraph { node_count, arcs: links.iter().map(arc).collect() };
    let latencies_ns: Vec<u64> = links.iter().map(|link| link.latency.nanos()).collect();
    let problem = MultiPathProblem {
        graph: &graph,
        latencies_ns: &latencies_ns,
        // The node of rank r has index r.
        from: request.source_rank,
        to: request.target_rank,
        size_bytes: request.size_bytes,
        paths_max: request.paths_max.map_or(PATHS_MAX, |most| usize::try_from(most).unwrap_or(usize::MAX)),
        forwarding,
    };
    seat.take_memory((links.len() as u64).saturating_mul(LINK_BYTES))?;
    let found = multi_path(&problem, seat)?;
    Ok(on_the_wire(topology, found, warnings))
}

fn on_the_wire(topology: &Topology, found: MultiPath, warnings: Vec<Warning>) -> FindPathsResponse {
    let links = topology.links();
    let id = |node: NodeIndex| topology.node(node).id.clone();
    let nodes = |arcs: &[u32]| -> Vec<String> {
        let path = arcs.iter().filter_map(|&arc| links.get(arc as usize));
        let first = path.clone().next().map(|link| id(link.from));
        first.into_iter().chain(path.map(|link| id(link.to))).collect()
    };
    let paths = found.parts.iter().map(|part| MessagePath {
        nodes: nodes(&part.arcs),
        size_bytes: part.bytes,
        share_bytes: fraction(&part.share),
        latency_ns: fraction(&part.line.start),
        ns_per_byte: fraction(&part.line.per_byte),
    });
    FindPathsResponse {
        paths: paths.collect(),
        time_ns: fraction(&found.time_ns),
        whole_time_ns: fraction(&found.whole_time_ns),
        even_time_ns: fraction(&found.even_time_ns),
        single_nodes: nodes(&found.single),
        single_time_ns: fraction(&found.single_time_ns),
        disjoint_paths: u32::try_from(found.disjoint).unwrap_or(u32::MAX),
        warnings,
    }
}
