//! `canopy.v1.Networks`: topologies and clusters that are stored, and checks of topologies.

mod clusters;
mod topologies;

use canopy_proto::v1::networks_server::Networks;
use canopy_proto::v1::{
    CheckTopologyRequest, CheckTopologyResponse, DeleteClusterRequest, DeleteClusterResponse, DeleteTopologyRequest,
    DeleteTopologyResponse, GetClusterRequest, GetClusterResponse, GetTopologyRequest, GetTopologyResponse,
    ListClustersRequest, ListClustersResponse, ListTopologiesRequest, ListTopologiesResponse, PutClusterRequest,
    PutClusterResponse, PutTopologyRequest, PutTopologyResponse,
};
use tonic::{Request, Response, Status};

pub(crate) use self::clusters::Clusters;
pub(crate) use self::topologies::Topologies;

/// The service.
#[derive(Clone)]
pub(crate) struct NetworksService {
    pub(crate) topologies: Topologies,
    pub(crate) clusters: Clusters,
}

#[tonic::async_trait]
impl Networks for NetworksService {
    async fn put_topology(
        &self,
        request: Request<PutTopologyRequest>,
    ) -> Result<Response<PutTopologyResponse>, Status> {
        self.topologies.put_topology(request).await
    }

    async fn get_topology(
        &self,
        request: Request<GetTopologyRequest>,
    ) -> Result<Response<GetTopologyResponse>, Status> {
        self.topologies.get_topology(request).await
    }

    async fn list_topologies(
        &self,
        request: Request<ListTopologiesRequest>,
    ) -> Result<Response<ListTopologiesResponse>, Status> {
        self.topologies.list_topologies(request).await
    }

    async fn check_topology(
        &self,
        request: Request<CheckTopologyRequest>,
    ) -> Result<Response<CheckTopologyResponse>, Status> {
        self.topologies.check_topology(request).await
    }

    async fn delete_topology(
        &self,
        request: Request<DeleteTopologyRequest>,
    ) -> Result<Response<DeleteTopologyResponse>, Status> {
        self.topologies.delete_topology(request).await
    }

    async fn put_cluster(&self, request: Request<PutClusterRequest>) -> Result<Response<PutClusterResponse>, Status> {
        self.clusters.put_cluster(request).await
    }

    async fn get_cluster(&self, request: Request<GetClusterRequest>) -> Result<Response<GetClusterResponse>, Status> {
        self.clusters.get_cluster(request).await
    }

    async fn list_clusters(
        &self,
        request: Request<ListClustersRequest>,
    ) -> Result<Response<ListClustersResponse>, Status> {
        self.clusters.list_clusters(request).await
    }

    async fn delete_cluster(
        &self,
        request: Request<DeleteClusterRequest>,
    ) -> Result<Response<DeleteClusterResponse>, Status> {
        self.clusters.delete_cluster(request).await
    }
}
