//! Leases that many callers acquire and release at several servers: no name is given twice, and a job is released as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use canopy_prerequisites::Commits;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::{
    AcquireLeaseRequest, GetLeaseRequest, ListLeasesRequest, ReleaseLeaseRequest, RenewLeaseRequest,
};
use tonic::Code;
use tonic::transport::Channel;

use super::{Cluster, REPLICAS};
use crate::support::{request, spawn, stated};

const CALLERS: u64 = 9;
/// Leases that each caller acquires, unless `CANOPY_CASES` says it.
const EACH: u64 = 8;

/// Clients of all servers.
async fn clients(cluster: &Cluster) -> Vec<LeasesClient<Channel>> {
    let mut clients = Vec::new();
    for number in 0..REPLICAS {
        cluster.replica(number).client().await.plan(request("ring:4").into_plan()).await.unwrap();
        clients.push(LeasesClient::new(cluster.replica(number).channel().await));
    }
    clients
}

fn at(clients: &[LeasesClient<Channel>], number: u64) -> LeasesClient<Channel> {
    clients[usize::try_from(number).unwrap() % clients.len()].clone()
}

fn asked(job: &str, request_id: &str) -> AcquireLeaseRequest {
    let (job, request_id, requests) = (job.to_owned(), request_id.to_owned(), vec![request("ring:4")]);
    AcquireLeaseRequest { job, request_id, specs: requests, ..AcquireLeaseRequest::default() }
}

fn of_name(name: &str) -> ReleaseLeaseRequest {
    ReleaseLeaseRequest { name: name.to_owned(), ..ReleaseLeaseRequest::default() }
}

fn of_job(job: &str) -> ReleaseLeaseRequest {
    ReleaseLeaseRequest { job: job.to_owned(), ..ReleaseLeaseRequest::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_name_of_a_lease_is_given_twice_whoever_gives_and_ends_it() {
    let Some(cluster) = Cluster::start(Commits::Unsynced).await else { return };
    let (clients, given) = (clients(&cluster).await, Arc::new(Mutex::new(BTreeMap::<String, String>::new())));
    let each = stated("CANOPY_CASES").unwrap_or(EACH);
    let call = |caller: u64| {
        let (clients, given) = (clients.clone(), Arc::clone(&given));
        spawn(async move {
            for number in 0..each {
                let job = format!("job-{caller}-{number}");
                let lease = at(&clients, caller).acquire_lease(asked(&job, "")).await.unwrap().into_inner();
                let before = given.lock().unwrap().insert(lease.name.clone(), job.clone());
                assert_eq!(before, None, "{} is given to {job}", lease.name);
                if (caller + number).is_multiple_of(2) {
                    continue;
                }
                // At another server, which may not have heard of it, and a second time after others have acquired more.
                let mut other = at(&clients, caller + number);
                assert_eq!(other.release_lease(of_name(&lease.name)).await.unwrap().get_ref().released, 1);
                let late = RenewLeaseRequest { name: lease.name.clone(), ttl: None, ..RenewLeaseRequest::default() };
                let late = at(&clients, caller + 1).renew_lease(late).await.unwrap_err();
                assert_eq!(late.code(), Code::NotFound);
                assert_eq!(other.release_lease(of_name(&lease.name)).await.unwrap().get_ref().released, 0);
            }
        })
    };
    let calls: Vec<_> = (0..CALLERS).map(call).collect();
    for call in calls {
        call.await.unwrap();
    }
    let given = given.lock().unwrap().clone();
    assert_eq!(given.len() as u64, CALLERS * each);
    // Each is its job's to the end.
    for (name, job) in given.iter() {
        for mut client in clients.clone() {
            if let Ok(lease) = client.get_lease(GetLeaseRequest { name: name.clone() }).await {
                assert_eq!(&lease.get_ref().job, job);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_repeated_at_all_servers_has_one_lease() {
    let Some(cluster) = Cluster::start(Commits::Unsynced).await else { return };
    let clients = clients(&cluster).await;
    for number in 0..10_u64 {
        let (job, id) = (format!("job-{number}"), format!("123e4567-e89b-42d3-a456-{number:012x}"));
        let ask = |mut client: LeasesClient<Channel>| {
            let asked = asked(&job, &id);
            spawn(async move { client.acquire_lease(asked).await.unwrap().into_inner().name })
        };
        // Beside others that come and go.
        let mut other = at(&clients, number);
        let passing = spawn(async move {
            let name = other.acquire_lease(asked("passing", "")).await.unwrap().into_inner().name;
            other.release_lease(of_name(&name)).await.unwrap();
        });
        let all: Vec<_> = clients.iter().chain(&clients).cloned().map(ask).collect();
        let mut names = BTreeSet::new();
        for one in all {
            names.insert(one.await.unwrap());
        }
        passing.await.unwrap();
        assert_eq!(names.len(), 1, "{names:?}");
        assert_eq!(at(&clients, number).release_lease(of_job(&job)).await.unwrap().get_ref().released, 1);
    }
}

/// Leases of a job that anybody has seen together are released together, though more are acquired meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leases_of_a_job_are_released_as_they_are_at_one_moment() {
    let Some(cluster) = Cluster::start(Commits::Unsynced).await else { return };
    let clients = clients(&cluster).await;
    for number in 0..stated("CANOPY_CASES").unwrap_or(12) {
        let job = format!("job-{number}");
        let (of, is_over) = (job.clone(), Arc::new(AtomicBool::new(false)));
        let (mut looks, over) = (at(&clients, number), Arc::clone(&is_over));
        let looking = spawn(async move {
            let mut seen = Vec::<BTreeSet<String>>::new();
            while !over.load(Ordering::Relaxed) {
                let filter = format!("job = {of}");
                let asked = ListLeasesRequest { filter, page_size: 100, ..ListLeasesRequest::default() };
                let listed = looks.list_leases(asked).await.unwrap().into_inner().leases;
                let now: BTreeSet<String> = listed.into_iter().map(|lease| lease.name).collect();
                for before in &seen {
                    let stays = before.intersection(&now).count();
                    assert!(stays == 0 || stays == before.len(), "of {before:?}, {now:?} is left");
                }
                if seen.last() != Some(&now) {
                    seen.push(now);
                }
            }
        });
        let (mut acquires, of) = (at(&clients, number), job.clone());
        let acquiring = spawn(async move {
            for _ in 0..6 {
                acquires.acquire_lease(asked(&of, "")).await.unwrap();
            }
        });
        let mut releases = at(&clients, number + 1);
        let mut released = 0;
        while !acquiring.is_finished() {
            released += releases.release_lease(of_job(&job)).await.unwrap().get_ref().released;
        }
        acquiring.await.unwrap();
        released += releases.release_lease(of_job(&job)).await.unwrap().get_ref().released;
        assert_eq!(released, 6, "each once");
        is_over.store(true, Ordering::Relaxed);
        looking.await.unwrap();
    }
}
