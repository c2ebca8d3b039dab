//! The lease of a job, one for all of its nodes.
//!
//! Each node may ask for it, and none knows of the others. So the id of the request is a digest of what is asked: the
//! server acquires one lease for all that ask alike.

use std::time::Duration;

use canopy_client::{Client, ClientError, RequestId};
use canopy_proto::v1::{AcquireLeaseRequest, Lease, PlanSpec, RenewLeaseRequest};
use prost::Message as _;
use sha2::{Digest, Sha256};

use crate::clock::Deadline;
use crate::connection::{self, ServerArgs};
use crate::exit::Failure;
use crate::messages::say;

/// Most leases of one job one after another, as it starts again, that all of its nodes find together.
const STARTS_MAX: u32 = 16;

/// Notes at the server that the job runs on the plans of these specs.
pub(super) async fn hold(
    server: &ServerArgs,
    job: &str,
    ttl: Duration,
    specs: Vec<PlanSpec>,
    end: Deadline,
) -> Result<(), Failure> {
    if specs.is_empty() {
        say("no plan was fetched, so no lease was acquired");
        return Ok(());
    }
    let without = |failure: Failure| failure.note("the plans are there, without a lease".to_owned());
    server.require_server().await.map_err(without)?;
    let ttl = prost_types::Duration::try_from(ttl).map_err(|_| Failure::input("--lease is too long"))?;
    let request = AcquireLeaseRequest { job: job.to_owned(), specs, ttl: Some(ttl), ..AcquireLeaseRequest::default() };
    let held =
        connection::ask(server, end.remaining(), async |connection, _| held(connection.shared(), &request, end).await);
    let lease = held.await.map_err(without)?;
    let until = lease.expire_time.map(|time| time.to_string()).unwrap_or_default();
    say(&format!("{} for job {} lasts until {until}", lease.name, lease.job));
    Ok(())
}

/// The lease that another node of the job has acquired on the same plans, from now on; else a new one.
async fn held(client: &Client, request: &AcquireLeaseRequest, end: Deadline) -> Result<Lease, ClientError> {
    for start in 0..STARTS_MAX {
        let request_id = request_id(request, start).to_string();
        let lease =
            match client.acquire_lease(AcquireLeaseRequest { request_id, ..request.clone() }, end.remaining()).await {
                Ok(lease) => lease,
                // A job of another tenant has the same id and the same plans.
                Err(error) if is_for(&error, "REQUEST_ID_REUSED") => continue,
                Err(error) => return Err(error),
            };
        // A server repeats its first answer for a day, and the lease in it may have ended: jobs that are put back into
        // the queue start again under their id.
        let renewal = RenewLeaseRequest { name: lease.name, ttl: request.ttl, ..RenewLeaseRequest::default() };
        match client.renew_lease(renewal, end.remaining()).await {
            Err(error) if is_for(&error, "LEASE_UNKNOWN") => {}
            renewed => return renewed,
        }
    }
    let request_id = RequestId::random().to_string();
    client.acquire_lease(AcquireLeaseRequest { request_id, ..request.clone() }, end.remaining()).await
}

/// The same for all that ask for the same plans for the same job and time, in the same start of the job.
fn request_id(request: &AcquireLeaseRequest, start: u32) -> RequestId {
    let digest = Sha256::new()
        .chain_update("canopy lease 1")
        .chain_update(start.to_be_bytes())
        .chain_update(request.encode_to_vec())
        .finalize();
    let (half, _) = digest.split_at(16);
    RequestId::of_digest(half.try_into().expect("half of 32 bytes"))
}

fn is_for(error: &ClientError, reason: &str) -> bool {
    matches!(error, ClientError::Refused(refusal) if refusal.reason.as_deref() == Some(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_that_of_what_is_asked() {
        let of = |job: &str, size: u64| AcquireLeaseRequest {
            job: job.to_owned(),
            specs: vec![PlanSpec { size_bytes_max: Some(size), ..PlanSpec::default() }],
            ..AcquireLeaseRequest::default()
        };
        let id = request_id(&of("17", 1), 0);
        assert_eq!(id, request_id(&of("17", 1), 0));
        for other in [request_id(&of("18", 1), 0), request_id(&of("17", 2), 0), request_id(&of("17", 1), 1)] {
            assert_ne!(id, other);
        }
    }
}
