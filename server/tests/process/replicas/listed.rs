//! The servers that share a database, as each of them lists them.

use std::collections::BTreeSet;
use std::time::Duration;

use canopy_prerequisites::Commits;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::{GetStatusRequest, SharingServer};
use tokio::time::sleep;

use super::{Cluster, REPLICAS};

async fn listed(cluster: &Cluster, number: usize) -> Vec<SharingServer> {
    let mut client = ServerClient::new(cluster.replica(number).channel().await);
    client.get_status(GetStatusRequest {}).await.unwrap().into_inner().servers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_lists_all_of_them_and_none_that_has_left() {
    let Some(mut cluster) = Cluster::start(Commits::Unsynced).await else { return };
    let mut answering = BTreeSet::new();
    for number in 0..REPLICAS {
        let servers = listed(&cluster, number).await;
        assert_eq!(servers.len(), REPLICAS, "{servers:?}");
        for server in &servers {
            assert_eq!((server.role.as_str(), &server.class), ("all", &servers[0].class));
            assert!(server.heard_ago.is_some_and(|ago| ago.seconds < 15) && server.running == 0, "{server:?}");
        }
        let this: Vec<_> = servers.into_iter().filter(|server| server.answers).collect();
        let [this] = &this[..] else { panic!("{this:?}") };
        assert!(this.name.ends_with(&format!(":{}", cluster.replica(number).id())), "{this:?}");
        answering.insert(this.name.clone());
    }
    assert_eq!(answering.len(), REPLICAS);

    let left = cluster.replicas[REPLICAS - 1].take().unwrap();
    left.signal("TERM");
    tokio::task::spawn_blocking(move || left.end_in_order()).await.unwrap();
    while listed(&cluster, 0).await.len() >= REPLICAS {
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(listed(&cluster, 0).await.len(), REPLICAS - 1);
}
