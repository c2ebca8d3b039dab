//! What the server knows of the plans: whether a fault or a better plan replaced them, and which network they are for.

use std::time::Duration;

use canopy_client::{Client, ClientError, ErrorClass};
use canopy_proto::v1::{GetPlanRequest, Lease, ListLeasesRequest, Plan};
use canopy_topology::Topology;

use crate::connection::{Connection, ServerArgs, ask};
use crate::exit::Failure;
use crate::output::TopologySummary;

use super::check::{Checks, shown};

/// Longest time to wait for the server.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most plans that are asked for.
const PLANS_MAX: usize = 64;
/// Most pages of leases that are read, and leases on each.
const PAGES_MAX: usize = 16;
const PAGE: u32 = 1000;

/// Asks the server for each plan, and for the leases; returns the networks that the plans are for.
pub(super) async fn check(
    checks: &mut Checks,
    server: &ServerArgs,
    ids: &[String],
    job: Option<&str>,
) -> Vec<(String, TopologySummary)> {
    if ids.is_empty() {
        let help = "name a folder of `canopy job fetch` or `canopy plan bundle` with `--plans`";
        checks.unknown("server", "no manifest names the plans, so the server cannot be asked for them", help);
        return Vec::new();
    }
    let mut networks = Vec::new();
    let before = checks.problems();
    let mut known = 0;
    for id in ids.iter().take(PLANS_MAX) {
        let plan = match plan(server, id).await {
            Ok(plan) => plan,
            Err(failure) => {
                let what = format!("{}: {}", shown(id), shown(&failure.sentence()));
                checks.unknown("server", what, "name the server that made the plans with `--server`");
                // One that does not answer is not asked again and again.
                if failure.class() != Some(ErrorClass::Input) {
                    return networks;
                }
                continue;
            }
        };
        known += 1;
        if !plan.superseded_by.is_empty() {
            let what = format!("{id} was provisional, and {} replaced it", shown(&plan.superseded_by));
            checks.problem("server", what, "fetch the plans again with `canopy job fetch`");
        }
        networks.extend(plan.topology.as_ref().map(|network| (id.clone(), TopologySummary::said(network))));
    }
    if known == 0 {
        return networks;
    }
    match leases(server).await {
        Ok(leases) => leases.iter().for_each(|lease| replaced(checks, lease, ids, job)),
        Err(failure) => {
            let help = "look at them with `canopy job leases list`";
            checks.unknown("server", format!("leases cannot be read: {}", shown(&failure.sentence())), help);
        }
    }
    if checks.problems() == before {
        checks.ok("server", "the plans are current: no fault and no better plan replaced them");
    }
    networks
}

/// A plan that a fault replaced under a lease.
fn replaced(checks: &mut Checks, lease: &Lease, ids: &[String], job: Option<&str>) {
    if job.is_some_and(|job| job != lease.job) {
        return;
    }
    for plan in lease.plans.iter().filter(|plan| ids.contains(&plan.original) && plan.current != plan.original) {
        let (name, old) = (shown(&lease.name), shown(&plan.original));
        if plan.current.is_empty() {
            let what = format!("a fault left job {} without a plan in place of {old}", shown(&lease.job));
            checks.problem(
                "server",
                what,
                "unset the variables of the plans, so that the runtime uses its own algorithms",
            );
        } else {
            let what = format!("a fault replaced {old} by {} for job {}", shown(&plan.current), shown(&lease.job));
            checks.problem(
                "server",
                what,
                format!("follow the lease: `canopy job leases watch --lease {name} --out DIR`"),
            );
        }
    }
}

async fn plan(server: &ServerArgs, id: &str) -> Result<Plan, Failure> {
    let request = GetPlanRequest { name: id.to_owned(), placement: None };
    let call = async |connection: &Connection, left| connection.shared().get_plan(request.clone(), left).await;
    ask(server, Some(PATIENCE), call).await
}

async fn leases(server: &ServerArgs) -> Result<Vec<Lease>, Failure> {
    let call = async |connection: &Connection, left: Option<Duration>| {
        let client: &Client = connection.shared();
        let (mut leases, mut page_token) = (Vec::new(), String::new());
        for _ in 0..PAGES_MAX {
            let request = ListLeasesRequest { page_size: PAGE, page_token, ..ListLeasesRequest::default() };
            let page = client.list_leases(request, left).await?;
            leases.extend(page.leases);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        Ok::<_, ClientError>(leases)
    };
    ask(server, Some(PATIENCE), call).await
}

/// Compares the network of the job with those of the plans.
pub(super) fn network(checks: &mut Checks, name: &str, topology: &Topology, networks: &[(String, TopologySummary)]) {
    let job = TopologySummary::of(topology);
    if networks.is_empty() {
        let help = "give the plan in canopy's JSON with `--plans`, or the server that made it with `--server`";
        return checks.unknown("network", "files of runtimes do not say which network they are for", help);
    }
    let before = checks.list().len();
    for (plan, network) in networks {
        let plan = shown(plan);
        if network.ranks != job.ranks {
            let what = format!("{plan} is for {} ranks, and {} has {}", network.ranks, shown(name), job.ranks);
            if network.ranks > job.ranks && network.ranks.is_multiple_of(job.ranks.max(1)) {
                checks.unknown(
                    "network",
                    what,
                    "a dump describes one machine; give the whole network with `--topology`",
                );
            } else {
                checks.problem("network", what, format!("plan for {}", shown(name)));
            }
        } else if network.hash_kind != job.hash_kind {
            checks.unknown(
                "network",
                format!("{plan} states another kind of hash"),
                "compare with `canopy network same`",
            );
        } else if network.hash != job.hash {
            let digits = |hash: &str| hash.chars().take(12).collect::<String>();
            let what = format!(
                "{plan} is for network {}, and {} is network {}: correct, but slow",
                digits(&network.hash),
                shown(name),
                digits(&job.hash)
            );
            checks.problem("network", what, format!("plan for {}", shown(name)));
        }
    }
    if checks.list().len() == before {
        checks.ok("network", format!("the plans are for {}", shown(name)));
    }
}

#[cfg(test)]
mod tests {
    use canopy_proto::v1::LeasedPlan;
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    fn ring(ranks: u32) -> Topology {
        generate(&format!("ring:{ranks}"), &TopologyLimits::STANDARD).unwrap()
    }

    fn compared(job: u32, plan: u32) -> Checks {
        let mut checks = Checks::default();
        network(&mut checks, "dump.xml", &ring(job), &[("plans/0".to_owned(), TopologySummary::of(&ring(plan)))]);
        checks
    }

    #[test]
    fn networks_are_compared_by_their_hashes() {
        assert_eq!(compared(4, 4).list()[0].message, "the plans are for dump.xml");
        assert_eq!(compared(5, 4).problems(), 1);
        assert_eq!(compared(4, 8).list()[0].message, "plans/0 is for 8 ranks, and dump.xml has 4");
        assert_eq!(compared(4, 8).problems(), 0);
    }

    #[test]
    fn a_fault_replaces_the_plans_of_its_lease() {
        let plan = |current: &str| LeasedPlan {
            original: "plans/0".to_owned(),
            current: current.to_owned(),
            ..LeasedPlan::default()
        };
        let found = |current: &str, job: &str| {
            let lease = Lease { job: "17".to_owned(), plans: vec![plan(current)], ..Lease::default() };
            let mut checks = Checks::default();
            replaced(&mut checks, &lease, &["plans/0".to_owned()], Some(job));
            checks.list().first().map(|check| check.message.clone())
        };
        assert_eq!(found("plans/0", "17"), None);
        assert_eq!(found("plans/1", "18"), None);
        assert_eq!(found("plans/1", "17").unwrap(), "a fault replaced plans/0 by plans/1 for job 17");
        assert!(found("", "17").unwrap().starts_with("a fault left job 17 without a plan"));
    }
}
