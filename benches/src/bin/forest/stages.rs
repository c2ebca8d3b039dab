//! What trees look like, and how long each stage takes from the bound to the checked transfers, by the wall clock.

use std::error::Error;
use std::time::{Duration, Instant};

use canopy_benches::{memory_peak_bytes, print_table, timed};
use canopy_schedule::{Collective, CollectiveKind, Forest, Schedule, Shape, Shares, check, compile};
use canopy_synth::{Algorithm, Never, Progress, Stage, SynthesisRequest, bound, synthesize};
use canopy_topology::{Fault, Topology, TopologyLimits, generate};

const DEFAULTS: [&str; 9] = [
    "dgx-a100:boxes=16",
    "dgx-h100:boxes=16",
    "mi250:boxes=8",
    "rail:boxes=16",
    "dgx-a100:boxes=16!13",
    "dgx-a100:boxes=128",
    "dgx-h100:boxes=128",
    "mi250:boxes=64",
    "rail:boxes=128,nv=60GB/s,nic=50GB/s,faults=gpus:2+seed:1",
];

/// The peak of memory is that of the process: give one network where it matters.
pub(crate) fn print(networks: &[String]) -> Result<(), Box<dyn Error>> {
    let networks = if networks.is_empty() { DEFAULTS.map(str::to_owned).to_vec() } else { networks.to_vec() };
    let rows = networks.iter().map(|network| row(network)).collect::<Result<Vec<_>, _>>()?;
    let heading = [
        "topology",
        "algbw",
        "of the bound",
        "k",
        "trees",
        "depth mean / max",
        "hops",
        "bound ms",
        "synthesis ms",
        "stages",
        "compile ms",
        "check ms",
        "total ms",
        "peak MiB",
    ];
    print_table(heading, &rows);
    Ok(())
}

fn ms(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

fn row(expression: &str) -> Result<[String; 14], Box<dyn Error>> {
    let topology = read(expression)?;
    let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count())?;
    let request = SynthesisRequest::new(collective, Algorithm::Forest);
    let (limit, bounding) = timed(|| bound(&topology, collective, &Shares::Equal, &Never));
    let stages = Stages::default();
    let (schedule, synthesis) = timed(|| synthesize(&topology, &request, &Never, &stages));
    let schedule = schedule?;
    let (graph, compiling) = timed(|| compile(&topology, &schedule));
    let (verdict, checking) = timed(|| check(&topology, &graph?).map_err(Box::<dyn Error>::from));
    let (algbw, limit) = (verdict?.algbw, limit?.upper);
    let Schedule { shape: Shape::Forest(forest), .. } = &schedule else { return Err("a forest is asked for".into()) };
    let (mean, max) = depths(forest);
    Ok([
        expression.to_owned(),
        algbw.to_string(),
        if algbw == limit { "all".to_owned() } else { format!("below {limit}") },
        forest.chunks_per_share.to_string(),
        forest.phases.iter().map(|phase| phase.trees.len()).sum::<usize>().to_string(),
        format!("{mean:.2} / {max}"),
        forest.hops.len().to_string(),
        ms(bounding),
        ms(synthesis),
        stages.text(),
        ms(compiling),
        ms(checking),
        ms(bounding + synthesis + compiling + checking),
        memory_peak_bytes().map_or_else(|| "?".to_owned(), |bytes| (bytes >> 20).to_string()),
    ])
}

/// A generated topology, with slow links if asked for.
fn read(text: &str) -> Result<Topology, Box<dyn Error>> {
    let (expression, slow) = text.split_once('!').unwrap_or((text, "0"));
    let topology = generate(expression, &TopologyLimits::STANDARD)?;
    let (slow, ranks) = (slow.parse::<u32>()?, topology.rank_count());
    let mut faults = Vec::new();
    for chosen in (0..slow).map(|position| position * ranks / slow) {
        for link in topology.links().iter().filter(|link| link.from.number() == chosen) {
            let to = topology.node(link.to);
            if link.to.number() >= ranks && to.attributes.box_name.is_none() {
                let (from, to) = (topology.node(link.from).id.clone(), to.id.clone());
                faults.push(Fault::Degrade { from, to, both_ways: true, numerator: 1, denominator: 2 });
            }
        }
    }
    Ok(topology.punctured(&faults)?)
}

/// Mean and greatest number of hops from a root to a rank; a tree counts as often as it stands for.
fn depths(forest: &Forest) -> (f64, u32) {
    let (mut sum, mut count, mut max) = (0.0, 0.0, 0);
    let mut depth_of = Vec::new();
    for tree in forest.phases.iter().flat_map(|phase| &phase.trees) {
        for hop in forest.hops_of(tree) {
            let (from, to) = (hop.from.index(), hop.to.index());
            depth_of.resize(depth_of.len().max(from + 1).max(to + 1).max(tree.root.index() + 1), 0_u32);
            depth_of[to] = if hop.from == tree.root { 1 } else { depth_of[from] + 1 };
            sum += f64::from(depth_of[to]) * tree.multiplicity as f64;
            count += tree.multiplicity as f64;
            max = max.max(depth_of[to]);
        }
    }
    (sum / f64::max(count, 1.0), max)
}

/// When each stage was first heard of.
#[derive(Default)]
struct Stages(std::sync::Mutex<Vec<(Stage, Instant)>>);

impl Stages {
    /// Milliseconds between the stages' first reports.
    fn text(&self) -> String {
        let Ok(stages) = self.0.lock() else { return String::new() };
        let spans = stages
            .windows(2)
            .map(|pair| format!("{} {:.0}", pair[0].0.name(), pair[1].1.duration_since(pair[0].1).as_secs_f64() * 1e3));
        spans.collect::<Vec<_>>().join(", ")
    }
}

impl Progress for Stages {
    fn report(&self, stage: Stage, _: u64, _: u64) {
        if let Ok(mut stages) = self.0.lock()
            && stages.last().is_none_or(|(last, _)| *last != stage)
        {
            #[expect(clippy::disallowed_methods, reason = "measuring is what these programs are for")]
            stages.push((stage, Instant::now()));
        }
    }
}
