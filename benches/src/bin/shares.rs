//! What shares of different sizes cost: the time of an allgather by them in proportion to that by equal shares.
//!
//! `cargo run --release -p canopy-benches --bin shares -- [EXPRESSION]…`. Time is that of the wall clock, the best of
//! [`RUNS`], from the bound to the plan file that was written and read back. Shares are 1, 2, 1, 2, … and random ones,
//! the same in every run.

use std::error::Error;
use std::time::Duration;

use canopy_benches::{print_table, timed};
use canopy_plan::{PlanFile, Provenance, read_plan, write_plan};
use canopy_schedule::{Collective, CollectiveKind, Shares, check, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, bound, synthesize};
use canopy_topology::{Topology, TopologyLimits, generate};

const DEFAULTS: [&str; 17] = [
    "dgx-a100:boxes=16",
    "dgx-a100:boxes=16,faults=nics:3@1/2+gpus:2+seed:1",
    "dgx-a100:boxes=16,faults=nics:13@1/2+seed:1",
    "dgx-h100:boxes=16",
    "dgx-h100:boxes=16,faults=nics:3@1/2+gpus:2+seed:1",
    "dgx-h100:boxes=16,faults=nics:13@1/2+seed:1",
    "mi250:boxes=8",
    "mi250:boxes=8,faults=nics:3@1/2+gpus:2+seed:1",
    "mi250:boxes=8,faults=nics:13@1/2+seed:1",
    "rail:boxes=16",
    "fat-tree:k=8,oversub=2",
    "leaf-spine:leaves=8,hosts=16,spines=8,oversub=2",
    "dragonfly-router:p=4,a=4,h=2",
    "torus:8x16",
    "torus:4x4x8",
    "random-regular:n=128,d=4,seed=1",
    "random-euler:n=64,switches=8,seed=1",
];

/// Times each plan is made.
const RUNS: u32 = 5;

/// Seeds of the random shares of each range.
const SEEDS: u64 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let expressions = if given.is_empty() { DEFAULTS.map(str::to_owned).to_vec() } else { given };
    let rows = expressions.iter().map(|expression| row(expression)).collect::<Result<Vec<_>, _>>()?;
    let heading =
        ["topology", "ranks", "equal ms", "trees / depth", "1, 2, …", "0 to 3", "1 to 4", "most", "trees / depth"];
    print_table(heading, &rows);
    Ok(())
}

fn row(expression: &str) -> Result<[String; 9], Box<dyn Error>> {
    let topology = generate(expression, &TopologyLimits::STANDARD)?;
    let equal = best(&topology, &Shares::Equal)?;
    let drawn = |from, to| (1..=SEEDS).map(move |seed| drawn(seed, from, to));
    let patterns: [Vec<Vec<u64>>; 3] = [vec![[1, 2].repeat(64)], drawn(0, 3).collect(), drawn(1, 4).collect()];
    let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count())?;
    let (mut most, mut worst, mut texts) = (0.0, equal, Vec::new());
    for pattern in patterns {
        let mut ratios = Vec::new();
        for weights in pattern {
            let weights = weights.into_iter().cycle().take(topology.rank_count() as usize).collect();
            let shares = Shares::in_proportion(collective, topology.rank_count(), weights)?;
            let found = best(&topology, &shares)?;
            let ratio = found.time.as_secs_f64() / equal.time.as_secs_f64();
            if ratio > most {
                (most, worst) = (ratio, found);
            }
            ratios.push(format!("{ratio:.2}"));
        }
        texts.push(ratios.join(" / "));
    }
    let [in_turn, with_none, with_all] = <[String; 3]>::try_from(texts).map_err(|_| "three patterns")?;
    Ok([
        expression.to_owned(),
        topology.rank_count().to_string(),
        format!("{:.1}", equal.time.as_secs_f64() * 1e3),
        equal.trees(),
        in_turn,
        with_none,
        with_all,
        format!("{most:.2}"),
        worst.trees(),
    ])
}

/// Random whole numbers, 128 of them.
fn drawn(seed: u64, from: u64, to: u64) -> Vec<u64> {
    let mut state = seed;
    let draw = || {
        // Knuth's linear congruential generator.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        from + (state >> 33) % (to - from + 1)
    };
    std::iter::repeat_with(draw).take(128).collect()
}

/// A plan that was made and judged.
#[derive(Clone, Copy)]
struct Made {
    time: Duration,
    tree_count: usize,
    depth_max: u32,
}

impl Made {
    fn trees(self) -> String {
        format!("{} / {}", self.tree_count, self.depth_max)
    }
}

fn best(topology: &Topology, shares: &Shares) -> Result<Made, Box<dyn Error>> {
    let mut best: Option<Made> = None;
    for _ in 0..RUNS {
        let (made, time) = timed(|| make(topology, shares));
        let made = Made { time, ..made? };
        best = best.filter(|best| best.time <= time).or(Some(made));
    }
    best.ok_or_else(|| "nothing was run".into())
}

/// Everything a plan takes but its way through the server.
fn make(topology: &Topology, shares: &Shares) -> Result<Made, Box<dyn Error>> {
    let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count())?;
    let bound = bound(topology, collective, shares, &Never)?;
    let request = SynthesisRequest { shares: shares.clone(), ..SynthesisRequest::new(collective, Algorithm::Auto) };
    let schedule = synthesize(topology, &request, &Never, &Silent)?;
    let verdict = check(topology, &compile(topology, &schedule)?)?;
    if verdict.algbw != bound.upper {
        return Err(format!("a plan of {} where {} is possible", verdict.algbw, bound.upper).into());
    }
    let plan = PlanFile {
        topology: topology.clone(),
        schedule,
        form: None,
        bound,
        achieved: verdict.algbw,
        in_network: verdict.in_network,
        provenance: Provenance { version: env!("CARGO_PKG_VERSION").to_owned(), algorithm: "auto".to_owned() },
    };
    let mut content = Vec::new();
    write_plan(&plan, &mut content)?;
    if read_plan(&content, &TopologyLimits { bytes_max: usize::MAX, ..TopologyLimits::STANDARD })? != plan {
        return Err("the plan file, read back, is another plan".into());
    }
    Ok(Made { time: Duration::ZERO, tree_count: verdict.batch_count, depth_max: verdict.depth_max })
}
