//! Cold plans of named and unnamed networks, each in a process of its own.

use std::env;
use std::error::Error;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use canopy_benches::{ColdPlan, Factor, Random, Stopwatch, cold_plan, print_table, thousands};
use canopy_topology::{TopologyLimits, generate, to_json};

/// First argument of the process of one row.
pub(crate) const ROW: &str = "row";

/// The rows of the first table of docs/performance.md.
const NAMED: [&str; 23] = [
    "dgx-a100:boxes=16",
    "dgx-h100:boxes=16",
    "mi250:boxes=8",
    "dgx-a100:boxes=128",
    "dgx-h100:boxes=128",
    "mi250:boxes=64",
    "dgx-a100:boxes=128,faults=nics:3@1/2+gpus:2+seed:1",
    "mi250:boxes=64,faults=nics:3@1/2+gpus:2+seed:1",
    "dgx-a100:boxes=128,faults=nics:102@1/2+seed:1",
    "mi250:boxes=64,faults=nics:102@1/2+seed:1",
    "rail:boxes=128",
    "rail:boxes=128,nv=60GB/s,nic=50GB/s,faults=gpus:2+seed:1",
    "fat-tree:k=16,oversub=2",
    "leaf-spine:leaves=32,hosts=32,spines=16,oversub=2",
    "dragonfly-router:p=4,a=8,h=4",
    "torus:32x32",
    "torus:8x8x16",
    "random-regular:n=1024,d=4,seed=1",
    "random-euler:n=64,switches=8,seed=1",
    "random-euler:n=256,switches=32,seed=1",
    "hypercube:10",
    "dgx-a100:boxes=512",
    "mi250:boxes=256",
];

/// The rows of the second: each is relabelled, and its rates multiplied, by its position as the seed.
const UNNAMED: [&str; 24] = [
    "dgx-a100:boxes=128",
    "dgx-a100:boxes=128,faults=nics:3@1/2+gpus:2+seed:1",
    "dgx-h100:boxes=128,faults=links-inside:4@1/2+links-outside:3+seed:1",
    "mi250:boxes=16,faults=links-inside:1+seed:1",
    "mi250:boxes=64",
    "mi250:boxes=64,faults=links-inside:1+seed:1",
    "mi250:boxes=64,faults=links:4@1/2+nics:2+gpus:1+seed:1",
    "mi250:boxes=128,faults=links-inside:1+seed:1",
    "rail:boxes=128",
    "rail:boxes=128,nv=60GB/s,nic=50GB/s,faults=gpus:2+seed:1",
    "fat-tree:k=16,oversub=2,faults=links:8@1/2+gpus:3+seed:1",
    "leaf-spine:leaves=32,hosts=32,spines=16,oversub=2,faults=links:8@1/2+gpus:3+seed:1",
    "dragonfly-router:p=4,a=8,h=4,faults=links:8@1/2+gpus:3+seed:1",
    "dims:ring2+fc4+switch64,faults=links:8+links-outside:4@1/2+seed:1",
    "torus:32x32,faults=links:5+seed:1",
    "torus:8x8x16,faults=links:5+gpus:3+seed:1",
    "hypercube:10,faults=links:5+seed:1",
    "random-regular:n=1024,d=4,seed=7,faults=links:4+seed:1",
    "random-regular:n=1024,d=6,seed=8,faults=links:7+links-outside:3@1/2+seed:1",
    "random-regular:n=1024,d=8,seed=9,faults=links:14+links-outside:6@1/2+seed:1",
    "random-regular:n=1024,d=12,seed=5",
    "random-euler:n=1024,switches=16,seed=5",
    "random-euler:n=1024,switches=64,seed=3",
    "random-euler:n=1024,switches=256,seed=6",
];

/// Runs of a network, unless they take [`REPEATED_MAX`] in all.
const RUNS: usize = 3;
/// Time after which a network is not run again.
const REPEATED_MAX: Duration = Duration::from_secs(30);
/// Time after which a plan is given up.
const DEADLINE: Duration = Duration::from_secs(120);

const HEADING: [&str; 9] = ["network", "ranks", "chunks", "depth", "synthesis", "check", "write", "in all", "memory"];

const UNNAMED_HEADING: [&str; 11] =
    ["network", "rates ×", "ranks", "chunks", "depth", "synthesis", "check", "write", "in all", "processor", "memory"];

/// Prints the table of the named networks, or of those given.
pub(crate) fn named(networks: &[String]) -> Result<(), Box<dyn Error>> {
    let networks = if networks.is_empty() { NAMED.map(str::to_owned).to_vec() } else { networks.to_vec() };
    let rows: Result<Vec<_>, Box<dyn Error>> =
        networks.iter().map(|network| Ok(cells(network, best(network)?))).collect();
    print_table(HEADING, &rows?);
    Ok(())
}

/// Prints the table of the unnamed networks, with the processor time of the whole process.
pub(crate) fn unnamed() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for (seed, expression) in (1..).zip(UNNAMED) {
        let mut random = Random::new(seed);
        let factor = Factor::draw(&mut random);
        let topology = canopy_benches::unnamed(&generate(expression, &TopologyLimits::STANDARD)?, factor, &mut random)?;
        let file = folder.path().join("network.json");
        fs::write(&file, to_json(&topology))?;
        let best = best(file.to_str().ok_or("a folder whose name is not text")?)?;
        let processor = best.as_ref().map_or_else(String::new, |plan| millis(plan.processor_ms));
        let [network, ranks, chunks, depth, synthesis, check, write, total, memory] = cells(expression, best);
        let factor = format!("{:.2}", factor.thousandths as f64 / 1e3);
        rows.push([network, factor, ranks, chunks, depth, synthesis, check, write, total, processor, memory]);
    }
    print_table(UNNAMED_HEADING, &rows);
    Ok(())
}

/// Plans once, for the process that started this one.
#[expect(clippy::print_stdout, reason = "the other process reads it")]
pub(crate) fn row(network: &str) -> Result<(), Box<dyn Error>> {
    if let Some(plan) = cold_plan(network, DEADLINE)? {
        println!("{}", plan.to_line());
    }
    Ok(())
}

/// The fastest of some runs, each in a process of its own; `None` if the first one misses the deadline.
fn best(network: &str) -> Result<Option<ColdPlan>, Box<dyn Error>> {
    let stopwatch = Stopwatch::start();
    let mut best: Option<ColdPlan> = None;
    for _ in 0..RUNS {
        let output = Command::new(env::current_exe()?).args([ROW, network]).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("no plan for {network}").into());
        }
        let line = String::from_utf8(output.stdout)?;
        if line.is_empty() {
            return Ok(best);
        }
        let plan = ColdPlan::of_line(&line).ok_or("the process of a row does not answer")?;
        if best.as_ref().is_none_or(|best| plan.total_ms < best.total_ms) {
            best = Some(plan);
        }
        if stopwatch.elapsed() > REPEATED_MAX {
            break;
        }
    }
    Ok(best)
}

/// A row of the table; a plan that is not optimal says so.
fn cells(network: &str, plan: Option<ColdPlan>) -> [String; 9] {
    let network = format!("`{network}`");
    let Some(plan) = plan else {
        let late = format!("> {} s", DEADLINE.as_secs());
        return [
            network,
            String::new(),
            String::new(),
            String::new(),
            late.clone(),
            String::new(),
            String::new(),
            late,
            String::new(),
        ];
    };
    let network = match plan.optimality.as_str() {
        "1/1" => network,
        ratio => format!("{network}, {ratio} of the bound"),
    };
    [
        network,
        thousands(plan.ranks as f64),
        thousands(plan.chunks as f64),
        thousands(f64::from(plan.depth)),
        millis(plan.synthesis_ms),
        millis(plan.check_ms),
        millis(plan.write_ms),
        millis(plan.total_ms),
        format!("{} MiB", thousands((plan.memory_bytes >> 20) as f64)),
    ]
}

fn millis(time_ms: f64) -> String {
    format!("{} ms", thousands(time_ms))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// First cells of the table with this heading in docs/performance.md.
    pub(crate) fn rows_of_the_page(heading: &str) -> Vec<String> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/performance.md");
        let page = fs::read_to_string(path).unwrap();
        let (_, table) = page.split_once(&format!("| {heading} |\n")).unwrap();
        let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
        rows.map(|row| row.split(" | ").next().unwrap().trim_start_matches(['|', ' ']).replace('`', "")).collect()
    }

    /// Who runs the program compares line by line.
    #[test]
    fn the_page_has_these_rows() {
        assert_eq!(rows_of_the_page(&HEADING.join(" | ")), NAMED);
        assert_eq!(rows_of_the_page(&UNNAMED_HEADING.join(" | ")), UNNAMED);
    }

    /// Every network can be made: no draw splits it.
    #[test]
    fn all_networks_exist() {
        for expression in NAMED.iter().chain(&UNNAMED) {
            let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
            assert_eq!(topology.first_unreachable(), None, "{expression}");
        }
    }
}
