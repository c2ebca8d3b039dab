//! How long forest schedules take, from the bound to the checked transfers, and what their trees look like.
//!
//! `cargo run --release -p canopy-benches --bin forest -- [EXPRESSION[!SLOW]]…`, one process per topology where the
//! peak of memory matters. Without arguments a second table compares with the published generic algorithm, implemented
//! plainly (`benches/src/generic.rs`), and a third says how close plans come to the cut on random networks with links
//! that are slower one way. `!13` halves the rate, in both directions, of every link between a rank and a switch without
//! a box that one of 13 evenly spread ranks has. Time is that of the wall clock.

use std::error::Error;
use std::time::{Duration, Instant};

use canopy_benches::{generic_allgather, memory_peak_bytes, print_table, timed, timed_alone};
use canopy_schedule::{Collective, CollectiveKind, Forest, Schedule, Shape, Shares, check, compile};
use canopy_synth::{Algorithm, Never, Progress, Stage, SynthesisRequest, bound, synthesize};
use canopy_topology::{Fault, Rate, Topology, TopologyLimits, generate};

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

/// Compared with the generic algorithm: 32, 64 and 128 ranks of three machines.
const COMPARED: [&str; 9] = [
    "dgx-a100:boxes=4",
    "dgx-a100:boxes=8",
    "dgx-a100:boxes=16",
    "dgx-h100:boxes=4",
    "dgx-h100:boxes=8",
    "dgx-h100:boxes=16",
    "mi250:boxes=2",
    "mi250:boxes=4",
    "mi250:boxes=8",
];

/// Processor time over which runs are repeated.
const REPEATED: Duration = Duration::from_millis(200);

/// Random networks with links slower one way, for each number of links.
const NETWORKS: u64 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let without_arguments = given.is_empty();
    let expressions = if given.is_empty() { DEFAULTS.map(str::to_owned).to_vec() } else { given };
    let rows = expressions.iter().map(|expression| row(expression)).collect::<Result<Vec<_>, _>>()?;
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
    if without_arguments {
        let rows = COMPARED.iter().map(|expression| compared(expression)).collect::<Result<Vec<_>, _>>()?;
        let heading = [
            "topology",
            "ranks",
            "k",
            "generic: optimum / switches / trees ms",
            "flows",
            "in all ms",
            "here ms",
            "ratio",
        ];
        print_table(heading, &rows);
        let rows = [1, 4, 16, 64].map(one_way).into_iter().collect::<Result<Vec<_>, _>>()?;
        print_table(["links slower one way", "networks", "at the cut", "least", "1 %", "10 %", "mean"], &rows);
    }
    Ok(())
}

/// The generic algorithm against this one, which also lays its trees on physical routes. In processor time, of this one
/// the mean of as many runs as take [`REPEATED`].
fn compared(expression: &str) -> Result<[String; 8], Box<dyn Error>> {
    let topology = generate(expression, &TopologyLimits::STANDARD)?;
    let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count())?;
    let limit = bound(&topology, collective, &Shares::Equal, &Never)?.upper;
    let generic = generic_allgather(&topology)?;
    let (p, q) = generic.inverse_rate;
    let same = Rate::new(u64::from(topology.rank_count()) * u64::try_from(q)?, u64::try_from(p)?);
    if same.as_ref() != Some(&limit) {
        return Err(format!("{expression}: the generic algorithm finds {p}/{q}, the bound is {limit}").into());
    }
    let request = SynthesisRequest::new(collective, Algorithm::Forest);
    let (mut sum, mut runs) = (Duration::ZERO, 0);
    while sum < REPEATED {
        let (schedule, time) = timed_alone(|| synthesize(&topology, &request, &Never, &canopy_synth::Silent));
        schedule?;
        (sum, runs) = (sum + time, runs + 1);
    }
    let (here, all) = (sum / runs, generic.times.iter().sum::<Duration>());
    Ok([
        expression.to_owned(),
        topology.rank_count().to_string(),
        generic.trees_per_rank.to_string(),
        generic.times.map(ms).join(" / "),
        generic.flows.to_string(),
        ms(all),
        format!("{:.2}", here.as_secs_f64() * 1e3),
        format!("{:.0}", all.as_secs_f64() / here.as_secs_f64()),
    ])
}

/// How close plans come to the cut on random networks, so many of whose links keep a quarter to three quarters one way.
fn one_way(count: u64) -> Result<[String; 7], Box<dyn Error>> {
    let mut ratios = Vec::new();
    for seed in 0..NETWORKS {
        let expression = format!("random-euler:n={},switches={},seed={seed}", 8 + seed % 9, 1 + seed % 5);
        let topology = generate(&expression, &TopologyLimits::STANDARD)?;
        let mut random = seed;
        let mut draw = |below: u64| {
            // Knuth's linear congruential generator.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let faults = (0..count).map(|_| {
            let link = &topology.links()[usize::try_from(draw(topology.links().len() as u64)).unwrap_or(0)];
            let id = |node| topology.node(node).id.clone();
            let (from, to, numerator) = (id(link.from), id(link.to), 1 + draw(3));
            Fault::Degrade { from, to, both_ways: false, numerator, denominator: 4 }
        });
        let mut faults: Vec<Fault> = faults.collect();
        faults.sort_by_key(|fault| format!("{fault:?}"));
        faults.dedup_by_key(|fault| match fault {
            Fault::Degrade { from, to, .. } => Some((from.clone(), to.clone())),
            _ => None,
        });
        let topology = topology.punctured(&faults)?;
        let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count())?;
        let request = SynthesisRequest::new(collective, Algorithm::Auto);
        let schedule = synthesize(&topology, &request, &Never, &canopy_synth::Silent)?;
        let reached = check(&topology, &compile(&topology, &schedule)?)?.algbw;
        let limit = bound(&topology, collective, &Shares::Equal, &Never)?.upper;
        ratios.push(reached.ratio_to(&limit).map_or(0.0, |ratio| ratio.to_f64()));
    }
    ratios.sort_by(f64::total_cmp);
    let at = |part: usize| format!("{:.4}", ratios[ratios.len() * part / 100]);
    let whole = ratios.iter().filter(|&&ratio| ratio >= 1.0).count();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    Ok([count.to_string(), ratios.len().to_string(), whole.to_string(), at(0), at(1), at(10), format!("{mean:.4}")])
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
