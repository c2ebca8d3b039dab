//! Ten thousand events in ten seconds, flapping links among them, while cached plans are asked for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use canopy_client::{Client, ClientError, ReplanEvents};
use canopy_proto::v1::{FaultPolicy, ListLeasesRequest, PlanSpec, WatchLeasesRequest, replan_event};
use canopy_server::Lifetime;

use super::{Failure, Workspace, leased, link, ms, now, quantile, report, resident};

const NETWORK: &str = "dgx-a100:boxes=16";
const EVENTS: u64 = 10_000;
const REPORTERS: usize = 8;
const LEASES: usize = 20;
/// How long plans are asked for.
const ASKED_FOR: Duration = Duration::from_secs(14);

/// What came of it while events were reported.
#[derive(Default)]
struct Meanwhile {
    /// Milliseconds of each call for the plan of the healthy network.
    cached: Vec<f64>,
    /// The same of the plan around what counts by then.
    around: Vec<f64>,
    /// Final plans that each lease was told of.
    told: BTreeMap<String, usize>,
    /// How often one was left without a plan.
    lost: usize,
}

/// Reports, asks, and tells how long both took.
#[expect(clippy::print_stdout, reason = "the figures are the result")]
pub(super) async fn storm() -> Result<(), Failure> {
    let mut workspace = Workspace::open(|options| options.lifetime = Lifetime::Daemon).await?;
    let sound = leased(&mut workspace, NETWORK, LEASES).await?;
    let events = workspace.client.watch_leases(WatchLeasesRequest::default(), Duration::from_secs(60)).await?;
    let before = resident();
    let begun = now();
    let mut reports = tokio::task::JoinSet::new();
    for reporter in 0..REPORTERS as u64 {
        reports.spawn(reported(workspace.client.clone(), reporter, begun));
    }
    let Meanwhile { cached, around, told, lost } = asked(&mut workspace.client, &sound, events, begun).await?;
    let (mut took, mut slowest) = (Duration::ZERO, Duration::ZERO);
    while let Some(reported) = reports.join_next().await {
        let (ended, waited) = reported??;
        (took, slowest) = (took.max(ended), slowest.max(waited));
    }
    let after = resident();
    let all = ListLeasesRequest { page_size: 1000, ..ListLeasesRequest::default() };
    let leases = workspace.client.list_leases(all, None).await?.total_size;
    let (seconds, slowest) = (took.as_secs_f64(), ms(slowest));
    println!("{EVENTS} events in {seconds:.1} s (slowest report {slowest:.0} ms), {leases} leases");
    let (most, told) = (told.values().max().unwrap_or(&0), told.values().sum::<usize>());
    println!("final plans told in 14 s, in windows of 5 s: {told}, at most {most} of a lease; without a plan {lost}");
    for (what, times) in [("cached plans", cached), ("plans around what counts", around)] {
        let (count, median, worst) = (times.len(), quantile(&times, 0.5), quantile(&times, 0.99));
        println!("{what} meanwhile: {count} asked, p50 {median:.2} ms, p99 {worst:.2} ms");
    }
    println!("resident memory: {before} MiB before, {after} MiB after");
    workspace.close().await?;
    Ok(())
}

/// Reports this reporter's events when they are due; when the last was taken, and how long the slowest took.
async fn reported(client: Client, reporter: u64, begun: Instant) -> Result<(Duration, Duration), ClientError> {
    let mut slowest = Duration::ZERO;
    for number in (reporter..EVENTS).step_by(REPORTERS) {
        // Six cards of each box, which come and go.
        let (gpu, round) = (number % 96, number / 96);
        let card = link(&format!("b{}g{}", gpu % 16, gpu / 16), "ib", None);
        let sent = now();
        report(&client, NETWORK, number, card, round % 2 == 1).await?;
        slowest = slowest.max(now().duration_since(sent));
        let due = begun + Duration::from_millis(number);
        tokio::time::sleep(due.saturating_duration_since(now())).await;
    }
    Ok((now().duration_since(begun), slowest))
}

/// Asks for plans, and hears what becomes of leases.
async fn asked(
    client: &mut Client,
    sound: &PlanSpec,
    mut events: ReplanEvents,
    begun: Instant,
) -> Result<Meanwhile, Failure> {
    let mut meanwhile = Meanwhile::default();
    let Meanwhile { cached, around, told, lost } = &mut meanwhile;
    while now().duration_since(begun) < ASKED_FOR {
        for (policy, times) in [(FaultPolicy::Ignore, &mut *cached), (FaultPolicy::Apply, &mut *around)] {
            let asked = PlanSpec { fault_policy: policy.into(), ..sound.clone() };
            let sent = now();
            client.plan_metadata(asked.into_plan(), None).await?;
            times.push(ms(now().duration_since(sent)));
        }
        while let Ok(Ok(event)) = tokio::time::timeout(Duration::from_millis(5), events.next()).await {
            match &event.event {
                Some(replan_event::Event::Superseded(superseded)) if superseded.is_final => {
                    *told.entry(event.lease).or_default() += 1;
                }
                Some(replan_event::Event::Lost(_)) => *lost += 1,
                _ => {}
            }
        }
    }
    Ok(meanwhile)
}
