//! A thousand watches, of which a hundred are never read.

use std::time::Duration;

use canopy_benches::{Stopwatch, print_table};
use canopy_client::{Client, ClientError};
use canopy_proto::v1::WatchLeasesRequest;
use canopy_server::{Lifetime, ReplanOptions};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Failure, Workspace, leased, link, ms, quantile, report, resident};

const NETWORK: &str = "dgx-a100:boxes=2";
/// Watches on one connection.
const ON_A_CONNECTION: usize = 100;
/// How often the same card breaks or is whole again, which concerns every lease each time.
const ROUNDS: u64 = 20;
const LEASES: usize = 10;

/// Has watches follow what becomes of ten leases while a card comes and goes.
pub(super) async fn watchers() -> Result<(), Failure> {
    let mut rows = Vec::new();
    for (reading, silent) in [(10, 0), (900, 0), (900, 100)] {
        rows.push(measured(reading, silent).await?);
    }
    print_table(
        [
            "watches read",
            "never read",
            "events each",
            "report to told p50 ms",
            "p99 ms",
            "resident MiB before",
            "after",
        ],
        &rows,
    );
    Ok(())
}

async fn measured(reading: usize, silent: usize) -> Result<[String; 7], Failure> {
    let mut workspace = Workspace::open(|options| {
        options.lifetime = Lifetime::Daemon;
        options.replans = ReplanOptions {
            per_second: std::num::NonZeroUsize::MAX,
            plans_ahead: false,
            window: Duration::from_millis(1),
            debounce: Duration::ZERO,
            hold_down: Duration::ZERO,
            ..ReplanOptions::STANDARD
        };
    })
    .await?;
    leased(&mut workspace, NETWORK, LEASES).await?;
    let before = resident();
    let mut connections = Vec::new();
    for _ in 0..(reading + silent).div_ceil(ON_A_CONNECTION) {
        connections.push(workspace.connect().await?);
    }
    let mut left_alone = Vec::new();
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let mut readers = tokio::task::JoinSet::new();
    for number in 0..reading + silent {
        let connection = &connections[number / ON_A_CONNECTION];
        let mut events = connection.watch_leases(WatchLeasesRequest::default(), Duration::from_secs(600)).await?;
        if number >= reading {
            left_alone.push(events);
            continue;
        }
        let sender = sender.clone();
        readers.spawn(async move {
            loop {
                let event = events.next().await?;
                if sender.send(event.sequence).is_err() {
                    return Ok::<_, ClientError>(());
                }
            }
        });
    }
    let (waits, total) = rounds(&workspace.client, &mut told, reading).await?;
    let after = resident();
    readers.shutdown().await;
    drop((left_alone, connections));
    workspace.close().await?;
    Ok([
        reading.to_string(),
        silent.to_string(),
        (total / reading).to_string(),
        format!("{:.1}", quantile(&waits, 0.5)),
        format!("{:.1}", quantile(&waits, 0.99)),
        before.to_string(),
        after.to_string(),
    ])
}

/// Has a card break or be whole again so many times: milliseconds until each reader was told, and how often they were told.
async fn rounds(
    client: &Client,
    told: &mut UnboundedReceiver<u64>,
    reading: usize,
) -> Result<(Vec<f64>, usize), Failure> {
    let mut waits = Vec::new();
    let mut total = 0;
    for round in 0..ROUNDS {
        let watch = Stopwatch::start();
        report(client, NETWORK, round, link("b0g0", "ib", None), round % 2 == 1).await?;
        // Every lease has another plan, be it the first one, and every reader is told of it.
        for _ in 0..LEASES * reading {
            let told = tokio::time::timeout(Duration::from_secs(60), told.recv()).await;
            told.map_err(|_| format!("round {round}: a watch was not told within a minute"))?;
            waits.push(ms(watch.elapsed()));
            total += 1;
        }
        // A plan that stands in is told of before the one that was asked for.
        while tokio::time::timeout(Duration::from_millis(300), told.recv()).await.is_ok() {
            total += 1;
        }
    }
    Ok((waits, total))
}
