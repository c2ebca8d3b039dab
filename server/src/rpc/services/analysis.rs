//! `canopy.v1.Analysis`: what networks can reach, without plans.

mod bound;
mod order;
mod paths;
mod weigh;

use canopy_design::finder::{Links, Query};
use canopy_proto::v1::analysis_server::Analysis;
use canopy_proto::v1::{
    ComputeBoundRequest, ComputeBoundResponse, FindNetworksRequest, FindNetworksResponse, FindPathsRequest,
    FindPathsResponse, OrderMachinesRequest, OrderMachinesResponse, WeighFaultsEvent, WeighFaultsRequest,
};
use tonic::{Request, Response, Status};

use crate::rpc::EventStream;
use crate::rpc::shared::admission::Admission;
use crate::rpc::shared::call_pool::CallPool;
use crate::rpc::shared::finds::Finds;

/// Bytes that a search for networks takes for each node, roughly.
const FIND_NODE_BYTES: u64 = 16 << 10;

/// The service.
#[derive(Clone)]
pub(crate) struct AnalysisService {
    admission: Admission,
    /// Threads and places of searches for networks.
    searches: CallPool,
    finds: Finds,
}

impl AnalysisService {
    pub(crate) const fn new(admission: Admission, searches: CallPool, finds: Finds) -> Self {
        Self { admission, searches, finds }
    }
}

#[tonic::async_trait]
impl Analysis for AnalysisService {
    async fn compute_bound(
        &self,
        request: Request<ComputeBoundRequest>,
    ) -> Result<Response<ComputeBoundResponse>, Status> {
        bound::compute_bound(&self.admission, request).await.map(Response::new)
    }

    type WeighFaultsStream = EventStream<WeighFaultsEvent>;

    async fn weigh_faults(
        &self,
        request: Request<WeighFaultsRequest>,
    ) -> Result<Response<Self::WeighFaultsStream>, Status> {
        weigh::weigh_faults(&self.admission, request).await.map(Response::new)
    }

    async fn find_paths(&self, request: Request<FindPathsRequest>) -> Result<Response<FindPathsResponse>, Status> {
        paths::find_paths(&self.admission, request).await.map(Response::new)
    }

    async fn order_machines(
        &self,
        request: Request<OrderMachinesRequest>,
    ) -> Result<Response<OrderMachinesResponse>, Status> {
        order::order_machines(&self.admission, request).await.map(Response::new)
    }

    async fn find_networks(
        &self,
        request: Request<FindNetworksRequest>,
    ) -> Result<Response<FindNetworksResponse>, Status> {
        let (headers, _, FindNetworksRequest { nodes, degree, bidirectional }) = request.into_parts();
        let links = if bidirectional { Links::Bidirectional } else { Links::Any };
        let query = Query { nodes, degree, links };
        let finds = self.finds.clone();
        let found = self.searches.compute("FindNetworks", &headers, move |_, seat| {
            query.check()?;
            seat.take_memory(u64::from(query.nodes).saturating_mul(FIND_NODE_BYTES))?;
            Ok(finds.find(query, seat)?)
        });
        found.await.map(Response::new)
    }
}
