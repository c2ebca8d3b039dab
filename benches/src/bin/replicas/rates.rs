//! How much servers on one database do in a second: what limits a site of ten thousand machines.

use std::path::Path;
use std::time::Duration;

use canopy_benches::{Stopwatch, print_table, thousands};
use canopy_client::{Client, PlanReceiver};
use canopy_proto::v1::{
    AcquireLeaseRequest, Collective, CollectiveSpec, OutputFormat, OutputSpec, PlanResponse, PlanSpec,
    RenewLeaseRequest,
};

use super::server::{Role, Server};
use super::{Failure, asked, join_all, sixteen};

/// Leases that are acquired and renewed.
const LEASES: usize = 2000;
/// Callers at once, on two servers.
const CALLERS: usize = 32;
/// Small plans that are searched for.
const SMALL: u64 = 400;
/// Streams of a large plan at once, and how often each asks.
const STREAMS: (usize, usize) = (8, 6);

/// Leases, small searches and large plans in a second.
pub(super) async fn rates(program: &Path, database: &str) -> Result<(), Failure> {
    let servers =
        [Server::start(program, Some(database), Role::All)?, Server::start(program, Some(database), Role::All)?];
    let clients = [servers[0].connect().await?, servers[1].connect().await?];
    clients[0].plan_metadata(sixteen(1).into_plan(), None).await?;
    let [before, _] = servers.each_ref().map(Server::memory_bytes);
    let mut rows = Vec::new();
    let seconds = Some(prost_types::Duration { seconds: 24 * 3600, nanos: 0 });
    let watch = Stopwatch::start();
    let leases = shared_out(LEASES, &clients, |client, number| async move {
        let lease = AcquireLeaseRequest {
            job: format!("job-{number}"),
            specs: vec![sixteen(1)],
            ttl: seconds,
            ..AcquireLeaseRequest::default()
        };
        Ok(client.acquire_lease(lease, None).await?.name)
    });
    let names = leases.await?;
    rows.push(per_second("leases acquired", LEASES, watch.elapsed()));
    let [after, _] = servers.each_ref().map(Server::memory_bytes);
    let watch = Stopwatch::start();
    let names = &names;
    let renewed = shared_out(LEASES, &clients, |client, number| async move {
        let name = names.get(number).cloned().unwrap_or_default();
        Ok(client
            .renew_lease(RenewLeaseRequest { name, ttl: seconds, ..RenewLeaseRequest::default() }, None)
            .await
            .map(drop)?)
    });
    renewed.await?;
    rows.push(per_second("leases renewed", LEASES, watch.elapsed()));
    let watch = Stopwatch::start();
    let small = shared_out(usize::try_from(SMALL)?, &clients, |client, number| async move {
        let request = asked(format!("random-regular:n=16,d=4,seed={}", number + 1));
        Ok(client.plan_metadata(request.into_plan(), None).await.map(drop)?)
    });
    small.await?;
    rows.push(per_second("small plans searched for and stored", usize::try_from(SMALL)?, watch.elapsed()));
    print_table(["two servers, 32 callers", "count", "s", "in a second"], &rows);
    let each = after.saturating_sub(before) / LEASES as u64;
    print_table(["memory of a server", "bytes"], &[["of a lease on 16 GPUs".to_owned(), each.to_string()]]);
    large(&servers[0]).await
}

fn per_second(what: &str, count: usize, took: Duration) -> [String; 4] {
    let rate = count as f64 / took.as_secs_f64();
    [what.to_owned(), count.to_string(), format!("{:.2}", took.as_secs_f64()), thousands(rate)]
}

/// Does something so often, by turns at two servers, some at a time.
async fn shared_out<T: Send, F: Future<Output = Result<T, Failure>>>(
    count: usize,
    clients: &[Client; 2],
    work: impl Fn(Client, usize) -> F,
) -> Result<Vec<T>, Failure> {
    let (work, next) = (&work, &std::sync::atomic::AtomicUsize::new(0));
    let mut done: Vec<(usize, T)> = Vec::with_capacity(count);
    let callers = (0..CALLERS).map(|caller| async move {
        let mut own = Vec::new();
        loop {
            let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if number >= count {
                return Ok::<_, Failure>(own);
            }
            let client = if caller % 2 == 0 { &clients[0] } else { &clients[1] };
            own.push((number, work(client.clone(), number).await?));
        }
    });
    for own in join_all(callers.collect()).await {
        done.extend(own?);
    }
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, one)| one).collect())
}

/// A plan of many megabytes, streamed to several callers of one server at once.
async fn large(server: &Server) -> Result<(), Failure> {
    let request = PlanSpec {
        outputs: vec![OutputSpec { format: OutputFormat::MscclXml.into(), ..OutputSpec::default() }],
        collective: Some(CollectiveSpec { kind: Collective::AllToAll.into(), root: None }),
        ..asked("dgx-a100:boxes=24".to_owned())
    };
    let mut first = Counted::default();
    server.connect().await?.plan(request.clone().into_plan(), None, &mut first).await?;
    let watch = Stopwatch::start();
    let before = server.processor_seconds();
    let mut streams = Vec::new();
    for _ in 0..STREAMS.0 {
        let (mut client, request) = (server.connect().await?, request.clone());
        streams.push(async move {
            let mut counted = Counted::default();
            for _ in 0..STREAMS.1 {
                client.plan(request.clone().into_plan(), None, &mut counted).await?;
            }
            Ok::<_, Failure>(counted.bytes)
        });
    }
    let mut bytes = 0;
    for stream in join_all(streams).await {
        bytes += stream?;
    }
    let (took, busy) = (watch.elapsed().as_secs_f64(), server.processor_seconds() - before);
    let megabytes = bytes as f64 / 1e6;
    print_table(
        ["plan MB", "streams", "sent MB", "MB in a second", "MB in a second of one processor of the server"],
        &[[
            format!("{:.1}", first.bytes as f64 / 1e6),
            STREAMS.0.to_string(),
            format!("{megabytes:.0}"),
            format!("{:.0}", megabytes / took),
            format!("{:.0}", megabytes / busy),
        ]],
    );
    Ok(())
}

/// Counts what it receives.
#[derive(Default)]
struct Counted {
    bytes: u64,
}

impl PlanReceiver for Counted {
    fn plan(&mut self, _: &PlanResponse) -> std::io::Result<()> {
        Ok(())
    }

    fn content(&mut self, _: usize, data: &[u8]) -> std::io::Result<()> {
        self.bytes += data.len() as u64;
        Ok(())
    }
}
