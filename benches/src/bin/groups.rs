//! How long the joint optimum of a job's groups takes, and what it gains over rings, over classes of groups one after
//! another, and over plans made for each group alone.
//!
//! `cargo run --release -p canopy-benches --bin groups [-- LINES]`, where LINES are positions of lines, `0,4`.
//!
//! Times are those of the processor: *rates* from the network to proven rates and the shares of all groups, *comparison*
//! what the groups take otherwise. A gain is the time of the other way over that of the joint optimum.

use std::error::Error;
use std::num::NonZeroU64;

use canopy_benches::{print_table, timed_on_processors};
use canopy_schedule::CollectiveKind;
use canopy_topology::{Ratio, TopologyLimits, Transit, generate};
use canopy_training::job::{Class, Job, Layout, Movement, Patience, comparison, job_rates};

/// A network, a layout, and groups: a dimension, what they do, and their size in megabytes.
type Line = (&'static str, &'static str, &'static [(&'static str, Option<CollectiveKind>, u64)]);

const ALLREDUCE: Option<CollectiveKind> = Some(CollectiveKind::Allreduce);
const ALL_TO_ALL: Option<CollectiveKind> = Some(CollectiveKind::AllToAll);
const RAIL: &str = "rail:boxes=128,gpus=8,nv=300GB/s,nic=25GB/s";
const ONE_DEAD: &str = "rail:boxes=128,gpus=8,nv=300GB/s,nic=25GB/s,down=b3g2-rail2";
const THREE_DEAD: &str = "rail:boxes=128,gpus=8,nv=300GB/s,nic=25GB/s,down=b3g2-rail2+b40g5-rail5+b77g0-rail0";
const TORUS: &str = "torus:32x32";
const PIPELINE: &str = "megatron: tp=8 pp=8 dp=16";
const EXPERTS: &str = "megatron: tp=8 pp=8 dp=16 ep=64 etp=1";
const TP_DP: &[(&str, Option<CollectiveKind>, u64)] = &[("tp", ALLREDUCE, 1_000), ("dp", ALLREDUCE, 1_000)];
const WITH_STAGES: &[(&str, Option<CollectiveKind>, u64)] =
    &[("tp", ALLREDUCE, 1_000), ("dp", ALLREDUCE, 1_000), ("pp", None, 8)];
const WITH_EXPERTS: &[(&str, Option<CollectiveKind>, u64)] =
    &[("tp", ALLREDUCE, 1_000), ("dp", ALLREDUCE, 1_000), ("ep", ALL_TO_ALL, 1_000)];

const LINES: [Line; 7] = [
    (RAIL, "tp=8 dp=128", TP_DP),
    (ONE_DEAD, "tp=8 dp=128", TP_DP),
    (TORUS, "tp=32 dp=32", TP_DP),
    (RAIL, PIPELINE, WITH_STAGES),
    (THREE_DEAD, PIPELINE, WITH_STAGES),
    (RAIL, EXPERTS, WITH_EXPERTS),
    (THREE_DEAD, EXPERTS, WITH_EXPERTS),
];

fn main() -> Result<(), Box<dyn Error>> {
    let places: Vec<usize> = match std::env::args().nth(1) {
        Some(text) => text.split(',').map(str::parse).collect::<Result<_, _>>()?,
        None => (0..LINES.len()).collect(),
    };
    let lines = places.iter().filter_map(|&place| LINES.get(place));
    let rows = lines.map(row).collect::<Result<Vec<_>, _>>()?;
    let heading = [
        "network",
        "layout",
        "groups",
        "rows / demands",
        "rates ms",
        "comparison ms",
        "seconds",
        "proven",
        "rings",
        "phases",
        "alone",
    ];
    print_table(heading, &rows);
    Ok(())
}

fn row(&(network, layout, groups): &Line) -> Result<[String; 11], Box<dyn Error>> {
    let topology = generate(network, &TopologyLimits::STANDARD)?;
    let parsed: Layout = layout.parse()?;
    let classes = groups.iter().map(|&(over, collective, megabytes)| {
        let size_bytes = NonZeroU64::new(megabytes * 1_000_000).ok_or("a size of 0")?;
        let movement = collective.map_or(Movement::Next, Movement::Collective);
        Ok::<_, Box<dyn Error>>(Class { name: over.to_owned(), over: vec![over.to_owned()], movement, size_bytes })
    });
    let job = Job::new(&parsed, classes.collect::<Result<_, _>>()?)?;
    let (rates, time) = timed_on_processors(|| job_rates(&topology, &job, Transit::Forward, Patience::ENDLESS));
    let rates = rates?;
    let (others, others_time) =
        timed_on_processors(|| comparison(&topology, &job, Transit::Forward, Patience::ENDLESS));
    let others = others?;
    let seconds = rates.seconds.to_f64();
    let gain = |other: &Ratio| format!("{:.2}", other.to_f64() / seconds);
    let milliseconds = |time: std::time::Duration| format!("{:.0}", time.as_secs_f64() * 1e3);
    Ok([
        network.to_owned(),
        layout.to_owned(),
        job.groups.len().to_string(),
        format!("{} / {}", rates.classes.0, rates.classes.1),
        milliseconds(time),
        milliseconds(others_time),
        format!("{seconds:.6}"),
        if rates.seconds == rates.seconds_min { "yes" } else { "no" }.to_owned(),
        gain(&others.rings),
        gain(&others.phases),
        gain(&others.alone),
    ])
}
