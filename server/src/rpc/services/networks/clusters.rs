//! `canopy.v1.Networks`: stored clusters, parts of which requests name by their machines.

use canopy_import::Report;
use canopy_proto::v1;
use canopy_proto::v1::{
    DeleteClusterRequest, DeleteClusterResponse, GetClusterRequest, GetClusterResponse, ListClustersRequest,
    ListClustersResponse, PutClusterRequest, PutClusterResponse,
};
use canopy_topology::TopologyLimits;
use canopy_wire::{ClusterError, timestamp};
use prost::Message as _;
use tonic::{Request, Response, Status};

use crate::call;
use crate::failure::{CallFailure, ClusterFailure};
use crate::rpc::shared::call_pool::CallPool;
use crate::rpc::shared::cluster_parts::ClusterParts;
use crate::rpc::shared::fields::{Field, Kind};
use crate::rpc::shared::listing::{ListRequest, Listing};
use crate::rpc::shared::sources::Presence;
use crate::store::Records;
use crate::store::clusters::{KeptCluster, PutCluster};

/// Most bytes of a description in an answer.
const DESCRIPTION_BYTES_MAX: usize = 2 << 20;
/// What clusters are listed by.
const FIELDS: &[Field<KeptCluster>] = &[
    Field { name: "name", kind: Kind::Text(|cluster| cluster.name.clone()) },
    Field { name: "nodes", kind: Kind::Number(|cluster| cluster.nodes) },
    Field { name: "ranks", kind: Kind::Number(|cluster| cluster.ranks) },
    Field { name: "switches", kind: Kind::Number(|cluster| cluster.switches) },
    Field { name: "size_bytes", kind: Kind::Number(|cluster| cluster.size_bytes) },
    Field { name: "created", kind: Kind::Time(|cluster| cluster.created_ms) },
    Field { name: "updated", kind: Kind::Time(|cluster| cluster.updated_ms) },
];

/// The calls about clusters.
#[derive(Clone)]
pub(crate) struct Clusters {
    pool: CallPool,
    clusters: ClusterParts,
    limits: TopologyLimits,
}

impl Clusters {
    pub(crate) const fn new(pool: CallPool, clusters: ClusterParts, limits: TopologyLimits) -> Self {
        Self { pool, clusters, limits }
    }

    pub(super) async fn put_cluster(
        &self,
        request: Request<PutClusterRequest>,
    ) -> Result<Response<PutClusterResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let (clusters, limits, wanted) = (self.clusters.clone(), self.limits, request.clone());
        let caller = Presence::default();
        let gone = caller.ended();
        let put = move |_: &Records| {
            let PutClusterRequest { name, description, .. } = wanted;
            let missing = || {
                let (field, problem) = ("description".to_owned(), "is missing; describe the cluster".to_owned());
                ClusterFailure::Description(ClusterError { field, problem })
            };
            let description = description.ok_or_else(missing)?;
            let (put, report) = clusters.put(&name, &description, &limits, &gone)?;
            let PutCluster { cluster, created, changed } = put;
            let Report { understood, assumed, left_out } = report;
            Ok(PutClusterResponse {
                cluster: Some(on_the_wire(cluster)),
                created,
                changed,
                understood,
                assumed,
                left_out,
            })
        };
        call::concerns(&request.name);
        let call = (&headers, &*request.request_id, &request);
        self.pool.once("PutCluster", call, put, || {}).await.map(Response::new)
    }

    pub(super) async fn get_cluster(
        &self,
        request: Request<GetClusterRequest>,
    ) -> Result<Response<GetClusterResponse>, Status> {
        let (headers, _, GetClusterRequest { name }) = request.into_parts();
        let (clusters, limits) = (self.clusters.clone(), self.limits);
        let got = self.pool.run("GetCluster", &headers, move |_| {
            let (cluster, description, nodes) = clusters.get(&name, &limits)?;
            let description = Some(description).filter(|found| found.encoded_len() <= DESCRIPTION_BYTES_MAX);
            Ok(GetClusterResponse { cluster: Some(on_the_wire(cluster)), description, nodes })
        });
        got.await.map(Response::new)
    }

    pub(super) async fn list_clusters(
        &self,
        request: Request<ListClustersRequest>,
    ) -> Result<Response<ListClustersResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let clusters = self.clusters.clone();
        let listed = self.pool.run("ListClusters", &headers, move |_| list(&clusters, &request));
        listed.await.map(Response::new)
    }

    pub(super) async fn delete_cluster(
        &self,
        request: Request<DeleteClusterRequest>,
    ) -> Result<Response<DeleteClusterResponse>, Status> {
        let (headers, _, request) = request.into_parts();
        let (clusters, name) = (self.clusters.clone(), request.name.clone());
        let delete = move |_: &Records| Ok(DeleteClusterResponse { freed_bytes: clusters.remove(&name)? });
        call::concerns(&request.name);
        let call = (&headers, &*request.request_id, &request);
        self.pool.once("DeleteCluster", call, delete, || {}).await.map(Response::new)
    }
}

fn list(clusters: &ClusterParts, request: &ListClustersRequest) -> Result<ListClustersResponse, CallFailure> {
    let ListClustersRequest { page_size, page_token, filter, order_by } = request;
    let mut listing = Listing::new(FIELDS, &ListRequest { page_size: *page_size, page_token, filter, order_by })?;
    let kept = clusters.store().for_each(|cluster| {
        let id = cluster.name.clone().into_bytes();
        listing.show(cluster, id);
    });
    kept.map_err(ClusterFailure::from)?;
    let page = listing.finish();
    Ok(ListClustersResponse {
        clusters: page.items.into_iter().map(on_the_wire).collect(),
        next_page_token: page.next_page_token,
        total_size: page.total,
    })
}

fn on_the_wire(kept: KeptCluster) -> v1::Cluster {
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    v1::Cluster {
        nodes: number(kept.nodes),
        ranks: number(kept.ranks),
        switches: number(kept.switches),
        size_bytes: kept.size_bytes,
        create_time: Some(timestamp(kept.created_ms)),
        update_time: Some(timestamp(kept.updated_ms)),
        name: kept.name,
    }
}
