//! Many leases, of which a fault concerns one or a thousand.

use std::path::Path;
use std::time::Duration;

use canopy_benches::{Stopwatch, print_table};
use canopy_client::Client;
use canopy_proto::v1::{AcquireLeaseRequest, ListLeasesRequest, PlanSpec, WatchLeasesRequest, replan_event};
use canopy_server::{EmbeddedServer, Lifetime, Options, PlanKey, ReplanOptions};
use canopy_store::{Space, decode_record, encode_record, open_store};

use super::{Collective, Failure, Times, Workspace, link, ms, report, request, resident};

const NETWORK: &str = "dgx-a100:boxes=10";
const RANKS_OF_A_BOX: u32 = 8;
/// Leases on a box of their own, by box; all others are shared between the rest of the boxes.
const CONCERNED: [usize; 2] = [1, 1000];
const BOXES: usize = 10;

/// Starts a server on 2,000, 20,000 and 100,000 leases, and breaks what one of them runs on, then what a thousand do.
pub(super) async fn leases() -> Result<(), Failure> {
    let mut rows = Vec::new();
    for count in [2_000, 20_000, 100_000] {
        rows.push(measured(count).await?);
    }
    let heading = [
        "leases",
        "ready after ms",
        "resident MiB",
        "report ms, 1 concerned",
        "its plan ms",
        "report ms, 1,000 concerned",
        "first plan ms",
        "last plan ms",
        "list ms",
    ];
    print_table(heading, &rows);
    Ok(())
}

fn options(folder: &Path) -> Options {
    // As fast as it goes: the pace is not what is measured.
    let per_second = std::num::NonZeroUsize::MAX;
    let replans =
        ReplanOptions { per_second, plans_ahead: false, window: Duration::from_millis(100), ..ReplanOptions::STANDARD };
    Options { lifetime: Lifetime::Daemon, replans, ..Options::embedded(folder.to_owned()) }
}

async fn measured(count: usize) -> Result<[String; 9], Failure> {
    let folder = tempfile::tempdir()?;
    let mut workspace = Workspace::open_in(folder, options).await?;
    for number in 0..BOXES {
        let wanted = of_box(number);
        workspace.client.plan(wanted.clone().into_plan(), None, &mut Times::new()).await?;
        let ttl = Some(prost_types::Duration { seconds: 7 * 24 * 3600, nanos: 0 });
        let job = format!("job-{number}");
        let asked = AcquireLeaseRequest { job, specs: vec![wanted], ttl, ..AcquireLeaseRequest::default() };
        workspace.client.acquire_lease(asked, None).await?;
    }
    let folder = workspace.close().await?;
    multiply(folder.path(), count)?;

    let before = resident();
    let watch = Stopwatch::start();
    let server = EmbeddedServer::start(options(folder.path())).await?;
    let ready = watch.elapsed();
    let held = resident().saturating_sub(before);
    let workspace = Workspace::of(server, folder).await?;
    let mut cells = vec![count.to_string(), format!("{:.0}", ms(ready)), held.to_string()];
    for (number, concerned) in CONCERNED.into_iter().enumerate() {
        let (report, first, last) = broken(&workspace.client, number, concerned).await?;
        cells.push(format!("{:.1}", ms(report)));
        if concerned > 1 {
            cells.push(format!("{:.0}", ms(first)));
        }
        cells.push(format!("{:.0}", ms(last)));
    }
    let watch = Stopwatch::start();
    workspace.client.list_leases(ListLeasesRequest::default(), None).await?;
    cells.push(format!("{:.1}", ms(watch.elapsed())));
    workspace.close().await?;
    Ok(cells.try_into().map_err(|_| "a row has another number of cells")?)
}

fn of_box(number: usize) -> PlanSpec {
    let first = u32::try_from(number).unwrap_or(u32::MAX) * RANKS_OF_A_BOX;
    let ranks = (first..first + RANKS_OF_A_BOX).collect();
    PlanSpec { ranks, ..request(NETWORK, Collective::Allgather, &[]) }
}

/// Breaks something within a box; returns when the report was answered, and when the first and the last of those concerned
/// had a plan that nothing better follows.
async fn broken(client: &Client, number: usize, concerned: usize) -> Result<(Duration, Duration, Duration), Failure> {
    let mut events = client.watch_leases(WatchLeasesRequest::default(), Duration::from_secs(600)).await?;
    let half = link(&format!("b{number}g0"), &format!("b{number}nv"), Some((1, 2)));
    let watch = Stopwatch::start();
    let reply = report(client, NETWORK, number as u64, half, false).await?;
    let reported = watch.elapsed();
    // Those that have other plans already are looked at, too.
    let before: usize = CONCERNED.iter().take(number).sum();
    if reply.leases as usize != before + concerned {
        return Err(format!("{} leases are concerned, not {}", reply.leases, before + concerned).into());
    }
    let (mut told, mut first) = (0, None);
    while told < concerned {
        if let Some(replan_event::Event::Superseded(superseded)) = events.next().await?.event
            && superseded.is_final
        {
            told += 1;
            first.get_or_insert(watch.elapsed());
        }
    }
    Ok((reported, first.unwrap_or_default(), watch.elapsed()))
}

/// Makes copies of the leases of a store that nobody has open. Of a field that a message has twice the last counts.
fn multiply(folder: &Path, count: usize) -> Result<(), Failure> {
    let opened = open_store(folder)?;
    let store = opened.space(Space::Leases).as_ref();
    let templates = store.keys(None, BOXES)?;
    let (mut copies, mut last) = (Vec::new(), 0);
    for (number, key) in templates.iter().enumerate() {
        let record = store.get(key)?.ok_or("a lease has no record")?;
        let summary = store.summary(key)?.ok_or("a lease has no summary")?;
        let rest = count.saturating_sub(CONCERNED.iter().sum::<usize>()) / (BOXES - CONCERNED.len());
        let times = CONCERNED.get(number).copied().unwrap_or(rest).saturating_sub(1);
        let bytes: [u8; 8] = key.as_bytes().first_chunk().copied().ok_or("a key is too short")?;
        last = last.max(u64::from_be_bytes(bytes));
        copies.push((decode_record(&record)?.to_vec(), summary, times));
    }
    for (deed, summary, times) in copies {
        for _ in 0..times {
            last += 1;
            let mut deed = deed.clone();
            // Field 1, a number of variable length: the number of the lease.
            deed.push(1 << 3);
            let mut rest = last;
            while rest >= 0x80 {
                deed.push(u8::try_from(rest & 0x7f)? | 0x80);
                rest >>= 7;
            }
            deed.push(u8::try_from(rest)?);
            let mut key = [0; 32];
            key[..8].copy_from_slice(&last.to_be_bytes());
            store.put_lazily(&PlanKey::from_bytes(key), &encode_record(&deed), &summary)?;
        }
    }
    Ok(())
}
