//! A database that is gone, or does not answer: what is cached is served, all else is refused, and soon after it is back all is well.

use std::time::Duration;

use canopy_prerequisites::Commits;
use canopy_proto::v1::PutTopologyRequest;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::topologies_client::TopologiesClient;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::Cluster;
use crate::support::request;

/// From the moment the database is back until plans are made again.
const RECOVERY_MAX: Duration = Duration::from_secs(10);

/// A refusal that says when to try again.
fn is_to_be_tried_again(status: &Status) -> bool {
    let details = status.get_error_details();
    status.code() == Code::Unavailable
        && details.error_info().is_some_and(|info| info.reason == "STORE_UNREACHABLE")
        && details.retry_info().is_some_and(|info| info.retry_delay.is_some())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_database_cached_plans_are_served_and_all_else_waits_for_it() {
    let Some(cluster) = Cluster::start(Commits::Unsynced).await else { return };
    let process = cluster.replica(0);
    let mut planner = PlannerClient::new(process.channel().await);
    let mut topologies = TopologiesClient::new(process.channel().await);
    planner.plan(request("torus:3x3")).await.unwrap();
    for (round, is_cut) in [false, true].into_iter().enumerate() {
        if is_cut {
            cluster.wires[0].cut();
        } else {
            cluster.postgres.kill();
        }
        // What is asked for before anybody has noticed ends, too.
        let fresh = request(&format!("torus:4x{}", 5 + round));
        let begun = Instant::now();
        let status = timeout(Duration::from_secs(20), planner.plan(fresh.clone())).await.unwrap().unwrap_err();
        assert!(is_to_be_tried_again(&status), "{status:?}");
        assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
        let page = process.page("/readyz").await;
        assert!(
            page.starts_with("HTTP/1.0 200") && page.contains("ready, but the database cannot be reached"),
            "{page}"
        );
        let asked = Instant::now();
        planner.plan(request("torus:3x3")).await.unwrap();
        planner.lookup_plan(request("torus:3x3")).await.unwrap();
        let put = PutTopologyRequest { topology: request("torus:5x5").topology, ..PutTopologyRequest::default() };
        let status = topologies.put_topology(put).await.unwrap_err();
        assert!(is_to_be_tried_again(&status), "{status:?}");
        assert!(asked.elapsed() < Duration::from_secs(2), "nothing waits for it: {:?}", asked.elapsed());
        let limit = Instant::now() + RECOVERY_MAX;
        while process.metric("canopy_database_reachable").await != Some(0.0) {
            assert!(Instant::now() < limit, "no metric says so");
            sleep(Duration::from_millis(50)).await;
        }
        if is_cut {
            cluster.wires[0].mend();
        } else {
            cluster.postgres.begin();
        }
        let back = Instant::now();
        while planner.plan(fresh.clone()).await.is_err() {
            assert!(back.elapsed() < RECOVERY_MAX, "{:?}", back.elapsed());
            sleep(Duration::from_millis(20)).await;
        }
        eprintln!("plans are made again {:?} after the database is back", back.elapsed());
    }
}
