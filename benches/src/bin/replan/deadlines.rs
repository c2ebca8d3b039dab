//! Deadlines at a thousand ranks while other searches keep the workers busy.
//!
//! The client gives up at the deadline by itself: the table says what callers have by then, not that the server knew.

use std::time::Duration;

use canopy_benches::print_table;
use canopy_client::{Client, ErrorClass};
use canopy_proto::v1::{OnMiss, PlanRequest};
use canopy_server::Lifetime;
use tokio::task::JoinSet;

use super::{Collective, Failure, LARGE, Times, Workspace, ms, now, request};

/// Connections that ask for one plan after the other while answers are timed.
const BUSY: u32 = 3;
/// What they ask for is of another size, so that nothing of it answers what is timed.
const OTHERS: &str = "dgx-a100:boxes=124";
const DEADLINES: [Duration; 7] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
];
const COLLECTIVES: [Collective; 3] = [Collective::Allgather, Collective::Allreduce, Collective::AllToAll];

/// A shape that nobody has asked for: one card at another rate.
fn asked(network: &str, number: u32, collective: Collective, on_miss: OnMiss) -> PlanRequest {
    let network = format!("{network},degrade=b3g{}-ib*{}/100", number / 99 % 8, 1 + number % 99);
    PlanRequest { on_miss: on_miss.into(), ..request(&network, collective, &[]).into_plan() }
}

/// Times answers with every deadline, for plans that are made while [`BUSY`] others are.
pub(super) async fn deadlines() -> Result<(), Failure> {
    let mut workspace = Workspace::open(|options| options.lifetime = Lifetime::Daemon).await?;
    let mut others = JoinSet::new();
    for first in 0..BUSY {
        let mut client: Client = workspace.connect().await?;
        others.spawn(async move {
            for number in (first..).step_by(BUSY as usize) {
                // Whatever comes of it keeps a worker busy.
                let _answer = client
                    .plan(
                        asked(OTHERS, number, Collective::Allgather, OnMiss::Fail),
                        Some(Duration::from_secs(30)),
                        &mut Times::new(),
                    )
                    .await;
            }
        });
    }
    let (mut rows, mut number) = (Vec::new(), 0);
    for collective in COLLECTIVES {
        for deadline in DEADLINES {
            let (mut plans, mut in_place, mut late, mut worst) = (0, 0, 0, 0.0_f64);
            for on_miss in [OnMiss::Fail, OnMiss::Fallback, OnMiss::BestSoFar] {
                number += 1;
                let request = asked(LARGE, number, collective, on_miss);
                let sent = now();
                let answer = workspace.client.plan(request, Some(deadline), &mut Times::new()).await;
                worst = worst.max(ms(now().duration_since(sent)) - ms(deadline));
                match answer {
                    Ok(reply) if reply.fallback.is_some() => in_place += 1,
                    Ok(_) => plans += 1,
                    Err(error) if error.class() == ErrorClass::Deadline => late += 1,
                    Err(error) => return Err(error.into()),
                }
            }
            rows.push([
                collective.as_str_name().to_owned(),
                format!("{:.0}", ms(deadline)),
                plans.to_string(),
                in_place.to_string(),
                late.to_string(),
                format!("{worst:.1}"),
            ]);
        }
    }
    others.shutdown().await;
    workspace.close().await?;
    print_table(["collective", "deadline ms", "plans", "stand in", "late", "worst ms beyond it"], &rows);
    Ok(())
}
