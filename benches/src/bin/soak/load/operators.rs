//! What operators and their tools do: pins, evictions, stored topologies, reloads, status, metrics, and connections that leave.

use std::net::SocketAddr;
use std::time::Duration;

use canopy_client::{Client, ClientError, ServerAddress};
use canopy_proto::v1::{
    DeleteTopologyRequest, EvictPlansRequest, GetQueueRequest, GetStatusRequest, ListPlansRequest, PinPlanRequest,
    PutTopologyRequest, ReloadConfigRequest, UnpinPlanRequest,
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::caller::Caller;
use crate::ledger::Kind;
use crate::requests::{TOPOLOGY_COUNT, expression};

/// Lists plans, pins one for a moment, and removes another.
pub(super) async fn keeper(mut caller: Caller) {
    while !caller.is_over() {
        caller.pause(Duration::from_millis(100)).await;
        let order_by = if caller.random.toss() { "hits, created" } else { "created desc" }.to_owned();
        let asked = ListPlansRequest { page_size: 20, order_by, ..ListPlansRequest::default() };
        let Ok(listed) = caller.call(Kind::ListPlans, caller.client.list_plans(asked, None)).await else { continue };
        if listed.plans.is_empty() {
            continue;
        }
        let pinned = listed.plans[caller.random.below(listed.plans.len())].name.clone();
        let removed = listed.plans[caller.random.below(listed.plans.len())].name.clone();
        let asked = PinPlanRequest { name: pinned.clone(), request_id: caller.request_id() };
        if caller.call(Kind::Pin, caller.client.pin_plan(asked, None)).await.is_ok() {
            caller.pause(Duration::from_millis(50)).await;
            let asked = UnpinPlanRequest { name: pinned, request_id: caller.request_id() };
            let _noted = caller.call(Kind::Unpin, caller.client.unpin_plan(asked, None)).await;
        }
        let (names, request_id) = (vec![removed], caller.request_id());
        let asked = EvictPlansRequest { names, request_id, ..EvictPlansRequest::default() };
        let _noted = caller.call(Kind::Evict, caller.client.evict_plans(asked, None)).await;
    }
}

/// Stores and deletes topologies of a finite set.
pub(super) async fn topologies(mut caller: Caller) {
    while !caller.is_over() {
        let text = format!("ring:{}", 5 + caller.random.below(TOPOLOGY_COUNT));
        let asked = PutTopologyRequest { topology: Some(expression(&text)), request_id: caller.request_id() };
        let put = caller.call(Kind::PutTopology, caller.client.put_topology(asked, None)).await;
        caller.pause(Duration::from_millis(50)).await;
        let Some(stored) = put.ok().and_then(|reply| reply.topology) else { continue };
        if caller.random.toss() {
            let asked = DeleteTopologyRequest { name: stored.name, request_id: caller.request_id() };
            let _noted = caller.call(Kind::DeleteTopology, caller.client.delete_topology(asked, None)).await;
        }
    }
}

/// Has the configuration read again, by a signal and by a call in turn.
pub(super) async fn reloads(mut caller: Caller, pid: Pid) {
    while !caller.is_over() {
        caller.pause(Duration::from_secs(1)).await;
        // If the process has gone, other calls say so.
        let _sent = kill_process(pid, Signal::HUP);
        caller.pause(Duration::from_secs(1)).await;
        let call = caller.client.reload_config(ReloadConfigRequest::default(), None);
        let _noted = caller.call(Kind::Reload, call).await;
    }
}

/// Asks for the status and the metrics, over connections that leave again.
pub(super) async fn observer(mut caller: Caller, address: ServerAddress, admin: SocketAddr) {
    while !caller.is_over() {
        caller.pause(Duration::from_millis(250)).await;
        let _noted = caller.call(Kind::Status, caller.client.get_status(GetStatusRequest {}, None)).await;
        let _noted = caller.call(Kind::Status, queue(&caller.client)).await;
        let _noted = caller.call(Kind::Metrics, page(admin)).await;
        let visit = async {
            let client = Client::connect(&address).await?;
            client.get_status(GetStatusRequest {}, None).await
        };
        let _noted = caller.call(Kind::Connect, visit).await;
    }
}

async fn queue(client: &Client) -> Result<u64, ClientError> {
    client.get_queue(GetQueueRequest {}, None).await.map(|queue| queue.waiting)
}

/// Reads the page of metrics to its end.
async fn page(admin: SocketAddr) -> Result<usize, ClientError> {
    let exchange = async {
        let mut stream = TcpStream::connect(admin).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: soak\r\nconnection: close\r\n\r\n").await?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await?;
        Ok::<_, std::io::Error>(text)
    };
    let text = exchange.await.map_err(ClientError::Read)?;
    match text.starts_with(b"HTTP/1.1 200") {
        true => Ok(text.len()),
        false => Err(ClientError::Protocol { what: "the page of metrics has another status than 200" }),
    }
}
