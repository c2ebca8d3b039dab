//! A plan on an empty cache, as `canopy plan NETWORK -c allgather -o plan.json` makes it: from the request to a server in
//! this process to the last byte of the file.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use canopy_client::{Client, ErrorClass, PlanReceiver, ServerAddress};
use canopy_proto::Exact as _;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    Accepted, Collective, CollectiveSpec, DocumentFormat, OutputFormat, OutputSpec, PlanResponse, PlanSpec, Progress,
    TopologyDocument, TopologySource,
};
use canopy_server::{EmbeddedServer, Options};

use crate::{Stopwatch, memory_peak_bytes, processor_time};

/// A plan and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct ColdPlan {
    /// Ranks of the network.
    pub ranks: u64,
    /// Chunks of one rank's share.
    pub chunks: u64,
    /// Greatest depth of a tree.
    pub depth: u32,
    /// Achieved ÷ bound.
    pub optimality: String,
    /// Time to find the schedule, in milliseconds.
    pub synthesis_ms: f64,
    /// Time to check it, in milliseconds.
    pub check_ms: f64,
    /// Time to write the file, read it back and run it, in milliseconds.
    pub write_ms: f64,
    /// Time from the request to the last byte written, in milliseconds.
    pub total_ms: f64,
    /// Time that this process had a processor, from its start, in milliseconds.
    pub processor_ms: f64,
    /// Peak of this process's memory in bytes.
    pub memory_bytes: u64,
}

/// Plans for an expression or a topology file in JSON, on a data folder of its own; `None` if the deadline comes first.
///
/// Times and memory are those of this process, so call it once in a process.
///
/// # Errors
/// There is no plan, or it cannot be written.
pub fn cold_plan(network: &str, deadline: Duration) -> Result<Option<ColdPlan>, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(planned(network, deadline))
}

async fn planned(network: &str, deadline: Duration) -> Result<Option<ColdPlan>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let server = EmbeddedServer::start(Options::embedded(folder.path().join("data"))).await?;
    let mut client = Client::connect(&ServerAddress::unix(server.socket_path())).await?;
    let request = PlanSpec {
        topology: Some(TopologySource { source: Some(source(network)?) }),
        collective: Some(CollectiveSpec { kind: Collective::Allgather.into(), root: None }),
        outputs: vec![OutputSpec { format: OutputFormat::Json.into(), ..OutputSpec::default() }],
        ..PlanSpec::default()
    };
    let mut receiver = Receiver { file: BufWriter::new(File::create(folder.path().join("plan.json"))?) };
    let stopwatch = Stopwatch::start();
    let reply = match client.plan(request.into_plan(), Some(deadline), &mut receiver).await {
        Err(error) if error.class() == ErrorClass::Deadline => return Ok(None),
        reply => reply?,
    };
    receiver.file.flush()?;
    let total_ms = stopwatch.elapsed().as_secs_f64() * 1e3;
    drop(client);
    server.stop().await?;
    let plan = reply.plan.ok_or("an answer without a plan")?;
    let timings = reply.timings.unwrap_or_default();
    Ok(Some(ColdPlan {
        ranks: plan.topology.map_or(0, |topology| u64::from(topology.ranks)),
        chunks: plan.chunks_per_rank,
        depth: plan.steps,
        optimality: plan.quality.unwrap_or_default().optimality.exact().to_owned(),
        synthesis_ms: canopy_wire::ms_of(timings.synthesis.as_ref()),
        check_ms: canopy_wire::ms_of(timings.check.as_ref()),
        write_ms: canopy_wire::ms_of(timings.lower.as_ref()),
        total_ms,
        processor_ms: processor_time().as_secs_f64() * 1e3,
        memory_bytes: memory_peak_bytes().unwrap_or(0),
    }))
}

/// The content of a file, where there is one of this name, else an expression.
fn source(network: &str) -> Result<Source, Box<dyn Error>> {
    if !Path::new(network).is_file() {
        return Ok(Source::Expression(network.to_owned()));
    }
    let content = fs::read(network)?.into();
    Ok(Source::Document(TopologyDocument { format: DocumentFormat::Json.into(), content }))
}

/// Writes the file of a plan as it comes.
struct Receiver {
    file: BufWriter<File>,
}

impl PlanReceiver for Receiver {
    fn accepted(&mut self, _: &Accepted) {}

    fn progress(&mut self, _: &Progress) {}

    fn plan(&mut self, _: &PlanResponse) -> std::io::Result<()> {
        Ok(())
    }

    fn content(&mut self, _: usize, data: &[u8]) -> std::io::Result<()> {
        self.file.write_all(data)
    }
}

impl ColdPlan {
    /// One line, for the process that started this one.
    pub fn to_line(&self) -> String {
        let Self { ranks, chunks, depth, optimality, synthesis_ms, check_ms, .. } = self;
        let Self { write_ms, total_ms, processor_ms, memory_bytes, .. } = self;
        format!(
            "{ranks} {chunks} {depth} {optimality} {synthesis_ms} {check_ms} {write_ms} {total_ms} {processor_ms} {memory_bytes}"
        )
    }

    /// What [`ColdPlan::to_line`] wrote.
    pub fn of_line(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let read = Self {
            ranks: words.next()?.parse().ok()?,
            chunks: words.next()?.parse().ok()?,
            depth: words.next()?.parse().ok()?,
            optimality: words.next()?.to_owned(),
            synthesis_ms: words.next()?.parse().ok()?,
            check_ms: words.next()?.parse().ok()?,
            write_ms: words.next()?.parse().ok()?,
            total_ms: words.next()?.parse().ok()?,
            processor_ms: words.next()?.parse().ok()?,
            memory_bytes: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_made_from_an_expression_and_from_a_file_and_its_line_is_read_back() {
        let deadline = Duration::from_secs(600);
        let made = cold_plan("ring:8", deadline).unwrap().unwrap();
        assert_eq!((made.ranks, made.chunks, made.depth, made.optimality.as_str()), (8, 2, 4, "1/1"));
        assert!(made.total_ms >= made.synthesis_ms && made.processor_ms > 0.0);
        assert_eq!(ColdPlan::of_line(&made.to_line()).as_ref(), Some(&made));
        let ring = canopy_topology::generate("ring:8", &canopy_topology::TopologyLimits::STANDARD).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ring.json");
        fs::write(&file, canopy_topology::to_json(&ring)).unwrap();
        let read = cold_plan(file.to_str().unwrap(), deadline).unwrap().unwrap();
        assert_eq!((read.ranks, read.chunks, read.depth), (8, 2, 4));
        assert!(cold_plan("no-such:8", deadline).is_err());
        assert_eq!(ColdPlan::of_line("8 2 4"), None);
    }
}
