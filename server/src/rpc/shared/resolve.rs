//! Completes requests for plans on their way in: the rates of the site, the texts of stored networks and of parts of
//! clusters, and known faults are put into them. From here on a request says all it means, whatever becomes of these.

use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{FaultPolicy, PlanSpec, Priority};
use canopy_topology::TopologyLimits;
use prost::Message as _;
use tonic::{Request, Status};

use crate::clock;
use crate::failure::CallFailure;
use crate::replan::{Audience, Network, Replanner};
use crate::rpc::shared::call_pool::{self, CallPool};
use crate::rpc::shared::decode::Method;
use crate::rpc::shared::known_faults::{self, AppliedFaults};
use crate::rpc::shared::learning::Matter;
use crate::rpc::shared::plan_query::PlanQuery;
use crate::rpc::shared::sources::{Gone, Presence, StoredNetworks, resolve_id, resolve_parts, text_hash};
use crate::rpc::shared::status::call_status;

/// Completes requests. Clones share what is stored.
#[derive(Clone)]
pub(crate) struct Resolver {
    pub(in crate::rpc) networks: StoredNetworks,
    /// Has the book of faults.
    pub(in crate::rpc) replanner: Replanner,
    /// Limits of topologies.
    pub(in crate::rpc) limits: TopologyLimits,
}

/// A request that says all it means.
pub(in crate::rpc) struct Resolved {
    pub(in crate::rpc) request: Request<PlanQuery>,
    /// Known faults that it was made to name.
    pub(in crate::rpc) applied: AppliedFaults,
}

impl Resolver {
    /// Completes a request of a call on the thread of the call if nothing has to be waited for, otherwise in the pool.
    pub(in crate::rpc) async fn resolve(
        &self,
        pool: &CallPool,
        mut request: Request<PlanQuery>,
        method: Method,
    ) -> Result<Resolved, Status> {
        self.networks.complete(&mut request.get_mut().spec.topology);
        if let Some(matter) = matter(request.get_ref(), method == Method::LookUpPlan) {
            pool.learn(matter).await;
        }
        let arrived = clock::now();
        let completed = match self.is_at_hand(&request.get_ref().spec) {
            true => self.complete(&mut request.get_mut().spec, &|| false).map(|applied| Resolved { request, applied }),
            false => {
                let (headers, extensions, mut request) = request.into_parts();
                let (resolver, caller) = (self.clone(), Presence::default());
                let gone = caller.ended();
                let completed = pool.work(&headers, move |_| {
                    let applied = resolver.complete(&mut request.spec, &gone)?;
                    Ok((request, applied))
                });
                let of_call = |request| Request::from_parts(headers.clone(), extensions, request);
                completed.await.map(|(request, applied)| Resolved { request: of_call(request), applied })
            }
        };
        completed.map_err(|failure| {
            call_pool::log(method.name(), arrived, Some(&failure));
            call_status(&failure)
        })
    }

    /// Whether completing a request takes neither the disk nor time.
    fn is_at_hand(&self, request: &PlanSpec) -> bool {
        !is_stored(request) && are_at_hand(&self.replanner, request)
    }

    /// Completes a request.
    pub(in crate::rpc) fn complete(
        &self,
        request: &mut PlanSpec,
        gone: Gone<'_>,
    ) -> Result<AppliedFaults, CallFailure> {
        request.topology = resolve_parts(&self.networks, request.topology.take(), &self.limits, gone)?;
        let applied = known_faults::apply(&self.replanner, request, &self.limits)?;
        request.topology = resolve_id(&self.networks, request.topology.take())?;
        Ok(applied)
    }
}

/// Whether a request names what is in the store, or faults.
fn is_stored(request: &PlanSpec) -> bool {
    let source = request.topology.as_ref().and_then(|topology| topology.source.as_ref());
    matches!(source, Some(Source::Name(_) | Source::Cluster(_) | Source::Punctured(_)))
}

/// The matter to learn from other servers before a request is looked at here; `None` if nothing matters, or it is
/// learned where its network is read from the store.
fn matter(PlanQuery { spec, priority, .. }: &PlanQuery, is_lookup: bool) -> Option<Matter> {
    if is_stored(spec) {
        return None;
    }
    if *priority == i32::from(Priority::Repair) {
        return Some(Matter::Leases);
    }
    if is_lookup {
        return Some(Matter::Plans);
    }
    (spec.fault_policy != i32::from(FaultPolicy::Ignore)).then_some(Matter::Faults)
}

/// Longest text of a network, in bytes, whose faults are found without leaving the thread of the call.
const AT_ONCE_BYTES_MAX: usize = 64 << 10;

/// Whether [`known_faults::apply`] takes neither the disk nor time: no faults count, or the network was read before, all
/// of its ranks take part, and no faults of a machine or a cluster have to be looked at.
fn are_at_hand(replanner: &Replanner, request: &PlanSpec) -> bool {
    if request.fault_policy == i32::from(FaultPolicy::Ignore) || !replanner.fault_logs().any_counts() {
        return true;
    }
    let Some(source) = &request.topology else { return false };
    let is_plain = matches!(source.source, Some(Source::Expression(_) | Source::Document(_)));
    let is_whole = request.ranks.is_empty() && request.placement.is_none();
    if !is_plain || !is_whole || source.encoded_len() > AT_ONCE_BYTES_MAX {
        return false;
    }
    let Some((key, base)) = replanner.bases().seen(&text_hash(source)) else { return false };
    let audience = Audience::of_call();
    let network = Network::new(key, base, None, audience.clone());
    let is_in_cluster = network.base.topology().cluster().is_some();
    let has_faults = || !replanner.fault_logs().counts(&network.own_scope(), &audience).is_empty();
    let has_hosts = || network.machines().next().is_some() && replanner.fault_logs().has_hosts();
    !(is_in_cluster && has_faults() || has_hosts())
}
