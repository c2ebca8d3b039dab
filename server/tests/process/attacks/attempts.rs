//! The attempts: one row for each attack.

use std::pin::Pin;

use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::{
    ArchivePiece, ClearFaultsRequest, Collective, CollectiveSpec, DeviceTarget, DrainRequest, EvictPlansRequest, Fault,
    FaultEvent, GetStatusRequest, ImportPlansRequest, ListPlansRequest, PinPlanRequest, PlanRequest, PlanSpec,
    Priority, PutTopologyRequest, ReleaseLeaseRequest, RenewLeaseRequest, ReportFaultsRequest, UnpinPlanRequest,
    WatchLeasesRequest, fault, import_plans_request,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tonic::{Response, Status};

use super::Outcome;
use super::site::{Attacker, JOB};
use crate::support::{page_at, request};

/// An attempt on its way.
type Attempt = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// An attack, as a row of a table.
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// Reasons for which its attempts are refused.
    pub(super) refused_as: &'static [&'static str],
    /// How many may be let in: they change nothing but what is the attacker's own.
    pub(super) may_take: u64,
    /// Number of attempts; without end until the attack is over where it is the largest number.
    pub(super) most: u64,
    pub(super) attempt: fn(Attacker, u64) -> Attempt,
}

const ENDLESS: u64 = u64::MAX;
/// Quotas of the attacker's tenant, see the rules of the site.
const CALLS: u64 = 32;
const TOPOLOGIES: u64 = 100;

/// Nothing is held of an answer.
fn nothing<T>(answer: Result<Response<T>, Status>) -> Outcome {
    answer.map(|_| Box::new(()) as Box<_>)
}

fn is_broken(node: u64) -> Fault {
    let device = DeviceTarget { node: node.to_string(), ..DeviceTarget::default() };
    Fault { target: Some(fault::Target::Device(device)), remaining: None }
}

/// A report of a fault on a network that does not exist.
fn sham_fault(number: u64) -> ReportFaultsRequest {
    let event_id = format!("sham-{number}");
    let event = FaultEvent { source: "sham".to_owned(), event_id, fault: Some(is_broken(1)), ..FaultEvent::default() };
    let topology = request(&format!("ring:4,lat={number}ns")).topology;
    ReportFaultsRequest { topology, events: vec![event], ..ReportFaultsRequest::default() }
}

/// A page of the port for operators: an error if it is not shown.
async fn page(attacker: &Attacker, path: &str) -> Outcome {
    let page = page_at(attacker.admin_address, path, attacker.viewer.headers()).await;
    let page = page.map_err(|error| Status::unavailable(error.to_string()))?;
    match page.starts_with("HTTP/1.0 403") {
        true => Err(Status::permission_denied(page)),
        false => Ok(Box::new(page)),
    }
}

/// A connection over which these bytes come and then nothing. One that the server has closed already is none.
async fn silent(attacker: &Attacker, bytes: &[u8]) -> Outcome {
    let lost = |error: std::io::Error| Status::unavailable(error.to_string());
    let mut connection = TcpStream::connect(attacker.address).await.map_err(lost)?;
    connection.write_all(bytes).await.map_err(lost)?;
    Ok(Box::new(connection))
}

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "an archive of one's own",
        refused_as: &["METHOD_NOT_ALLOWED"],
        may_take: 0,
        most: ENDLESS,
        attempt: |attacker, _| {
            Box::pin(async move {
                let piece = ArchivePiece { offset: 0, data: b"CNPYARC3".to_vec().into(), sha256: "0".repeat(64) };
                let event = Some(import_plans_request::Event::Piece(piece));
                let asked = tokio_stream::once(ImportPlansRequest { event, request_id: String::new() });
                nothing(PlansClient::new(attacker.channel).import_plans(attacker.operator.with(asked)).await)
            })
        },
    },
    Attack {
        name: "an import that says nothing",
        refused_as: &["METHOD_NOT_ALLOWED"],
        may_take: 0,
        most: ENDLESS,
        attempt: |attacker, _| {
            Box::pin(async move {
                let asked = attacker.planner.with(tokio_stream::pending::<ImportPlansRequest>());
                nothing(PlansClient::new(attacker.channel).import_plans(asked).await)
            })
        },
    },
    Attack {
        name: "the header of another tenant",
        refused_as: &["TENANT_NOT_ALLOWED"],
        may_take: 0,
        most: ENDLESS,
        attempt: |attacker, _| {
            Box::pin(async move {
                let shows = attacker.viewer.and("x-canopy-tenant", "blue");
                let asked = shows.with(ListPlansRequest::default());
                nothing(PlansClient::new(attacker.channel).list_plans(asked).await)
            })
        },
    },
    Attack {
        name: "a drain",
        refused_as: &["METHOD_NOT_ALLOWED"],
        may_take: 0,
        most: ENDLESS,
        attempt: |attacker, _| {
            Box::pin(async move {
                let asked = attacker.operator.with(DrainRequest::default());
                nothing(ServerClient::new(attacker.channel).drain(asked).await)
            })
        },
    },
    Attack {
        name: "faults reported by a planner",
        refused_as: &["METHOD_NOT_ALLOWED"],
        may_take: 0,
        most: ENDLESS,
        attempt: |attacker, number| {
            Box::pin(async move {
                let asked = attacker.planner.with(sham_fault(number));
                nothing(FaultsClient::new(attacker.channel).report_faults(asked).await)
            })
        },
    },
    Attack {
        name: "faults of others cleared",
        refused_as: &[],
        may_take: ENDLESS,
        most: ENDLESS,
        attempt: |attacker, number| {
            Box::pin(async move {
                let mut faults = FaultsClient::new(attacker.channel);
                if number % 2 == 0 {
                    let asked = ClearFaultsRequest { topology: attacker.topology, ..ClearFaultsRequest::default() };
                    return nothing(faults.clear_faults(attacker.reporter.with(asked)).await);
                }
                let event = FaultEvent {
                    source: "dcgm".to_owned(),
                    event_id: number.to_string(),
                    fault: Some(is_broken(1)),
                    cleared: true,
                    ..FaultEvent::default()
                };
                let (topology, events) = (request("ring:8").topology, vec![event]);
                let asked = ReportFaultsRequest { topology, events, ..ReportFaultsRequest::default() };
                nothing(faults.report_faults(attacker.reporter.with(asked)).await)
            })
        },
    },
    Attack {
        name: "a thousand sham topologies",
        refused_as: &["QUOTA_EXCEEDED"],
        may_take: TOPOLOGIES,
        most: ENDLESS,
        attempt: |attacker, number| {
            Box::pin(async move {
                let topology = request(&format!("ring:5,lat={number}ns")).topology;
                let asked = attacker.planner.with(PutTopologyRequest { topology, ..PutTopologyRequest::default() });
                nothing(NetworksClient::new(attacker.channel).put_topology(asked).await)
            })
        },
    },
    Attack {
        name: "faults of a thousand sham topologies",
        refused_as: &["QUOTA_EXCEEDED"],
        may_take: TOPOLOGIES,
        most: ENDLESS,
        attempt: |attacker, number| {
            Box::pin(async move {
                let asked = attacker.reporter.with(sham_fault(number));
                nothing(FaultsClient::new(attacker.channel).report_faults(asked).await)
            })
        },
    },
    Attack {
        name: "leases of others released and renewed",
        // It sees none of them: there is nothing to release.
        refused_as: &["LEASE_UNKNOWN"],
        may_take: ENDLESS,
        most: ENDLESS,
        attempt: |attacker, number| {
            Box::pin(async move {
                let mut leases = LeasesClient::new(attacker.channel);
                match number % 3 {
                    0 => {
                        let asked = ReleaseLeaseRequest { job: JOB.to_owned(), ..ReleaseLeaseRequest::default() };
                        nothing(leases.release_lease(attacker.operator.with(asked)).await)
                    }
                    1 => {
                        let asked = ReleaseLeaseRequest { name: attacker.lease, ..ReleaseLeaseRequest::default() };
                        nothing(leases.release_lease(attacker.operator.with(asked)).await)
                    }
                    _ => {
                        let asked =
                            RenewLeaseRequest { name: attacker.lease, ttl: None, ..RenewLeaseRequest::default() };
                        nothing(leases.renew_lease(attacker.operator.with(asked)).await)
                    }
                }
            })
        },
    },
    Attack {
        name: "plans of others pinned, unpinned and evicted",
        refused_as: &["PLAN_UNKNOWN", "NOT_OWNER"],
        may_take: ENDLESS,
        most: ENDLESS,
        attempt: |attacker, number| {
            Box::pin(async move {
                let (mut admin, name) = (PlansClient::new(attacker.channel), attacker.plan);
                match number % 3 {
                    0 => {
                        let asked = PinPlanRequest { name, ..PinPlanRequest::default() };
                        nothing(admin.pin_plan(attacker.operator.with(asked)).await)
                    }
                    1 => {
                        let asked = UnpinPlanRequest { name, ..UnpinPlanRequest::default() };
                        nothing(admin.unpin_plan(attacker.operator.with(asked)).await)
                    }
                    // It finds none that is red's.
                    _ => {
                        let asked = EvictPlansRequest { names: vec![name], ..EvictPlansRequest::default() };
                        nothing(admin.evict_plans(attacker.operator.with(asked)).await)
                    }
                }
            })
        },
    },
    Attack {
        name: "four thousand watches",
        refused_as: &["QUOTA_EXCEEDED"],
        may_take: CALLS,
        most: 4096,
        attempt: |attacker, _| {
            Box::pin(async move {
                let asked = attacker.viewer.with(WatchLeasesRequest::default());
                let events = LeasesClient::new(attacker.channel).watch_leases(asked).await?;
                Ok(Box::new(events) as Box<_>)
            })
        },
    },
    Attack {
        name: "the queue of all tenants",
        refused_as: &[""],
        may_take: 0,
        most: ENDLESS,
        attempt: |attacker, _| Box::pin(async move { page(&attacker, "/debug/queue").await }),
    },
    Attack {
        name: "repair without a lease",
        refused_as: &["REPAIR_WITHOUT_LEASE"],
        may_take: 0,
        most: ENDLESS,
        attempt: |attacker, number| {
            Box::pin(async move {
                let spec = request(&format!("ring:6,lat={number}ns"));
                let asked = PlanRequest { priority: Priority::Repair.into(), ..spec.into_plan() };
                nothing(PlannerClient::new(attacker.channel).plan(attacker.planner.with(asked)).await)
            })
        },
    },
    Attack {
        name: "guesses of tokens",
        refused_as: &["IDENTITY_INVALID"],
        may_take: 0,
        most: ENDLESS,
        attempt: |attacker, _| {
            Box::pin(async move {
                let asked = attacker.forged.with(GetStatusRequest::default());
                nothing(ServerClient::new(attacker.channel).get_status(asked).await)
            })
        },
    },
    Attack {
        name: "two hundred searches",
        refused_as: &["QUOTA_EXCEEDED"],
        may_take: ENDLESS,
        most: 200,
        attempt: |attacker, number| {
            Box::pin(async move {
                let asked = request(&format!("torus:16x16,lat={number}ns"));
                nothing(
                    PlannerClient::new(attacker.channel)
                        .prefetch_plan(attacker.planner.with(asked.into_prefetch()))
                        .await,
                )
            })
        },
    },
    Attack {
        name: "a thousand readers of a large plan who take nothing",
        refused_as: &["QUOTA_EXCEEDED"],
        // One whose answer is on its way to the reader's buffers is over.
        may_take: ENDLESS,
        most: 1000,
        attempt: |attacker, _| {
            Box::pin(async move {
                let asked = PlanSpec {
                    collective: Some(CollectiveSpec { kind: Collective::AllToAll.into(), root: None }),
                    ..request("complete:40")
                };
                let mut planner = PlannerClient::new(attacker.channel);
                let events = planner.stream_plan(attacker.planner.with(asked.into_plan())).await?;
                Ok(Box::new(events) as Box<_>)
            })
        },
    },
    Attack {
        name: "hundreds of silent connections",
        refused_as: &[""],
        may_take: 300,
        most: 300,
        attempt: |attacker, number| {
            Box::pin(async move { silent(&attacker, if number % 2 == 0 { b"" } else { b"P" }).await })
        },
    },
];
