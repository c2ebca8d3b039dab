//! The published generic algorithm beside this one, on networks of all kinds.

use std::error::Error;
use std::time::Duration;

use canopy_benches::{
    Inside, Outside, Parts, Random, generic_allgather, healthy, print_table, thousands, timed_on_processors,
};
use canopy_schedule::{Collective, CollectiveKind, Shares};
use canopy_synth::{Algorithm, Never, SynthesisRequest, bound, synthesize};
use canopy_topology::{Rate, Topology, TopologyLimits, generate};

/// The row of a network that no expression names: boxes of fast pairs in a ring with a slow switch, on rails.
const HYBRID: &str = "8 hybrid boxes of 8 on rails";

/// Networks in the order of the table.
const NETWORKS: [&str; 23] = [
    "dgx-a100:boxes=4",
    "dgx-a100:boxes=8",
    "dgx-a100:boxes=16",
    "dgx-h100:boxes=4",
    "dgx-h100:boxes=8",
    "dgx-h100:boxes=16",
    "mi250:boxes=2",
    "mi250:boxes=4",
    "mi250:boxes=8",
    "dgx-a100:boxes=8,faults=nics:3@1/2+gpus:2+seed:1",
    "mi250:boxes=4,faults=links-inside:1+seed:1",
    HYBRID,
    "rail:boxes=8",
    "fat-tree:k=6",
    "leaf-spine:leaves=8,hosts=8,spines=4,oversub=2",
    "dragonfly-router:p=2,a=4,h=2",
    "torus:8x8",
    "torus:4x4x4",
    "hypercube:6",
    "random-regular:n=64,d=4,seed=1",
    "random-regular:n=128,d=4,seed=1",
    "random-euler:n=64,switches=8,seed=1",
    "random-euler:n=128,switches=16,seed=1",
];

const HEADING: [&str; 6] =
    ["network", "ranks", "generic: optimum / switches / trees", "generic in all", "canopy", "ratio"];

/// Processor time over which runs are repeated.
const REPEATED: Duration = Duration::from_millis(200);

pub(crate) fn print() -> Result<(), Box<dyn Error>> {
    let rows = NETWORKS.iter().map(|name| compared(name)).collect::<Result<Vec<_>, _>>()?;
    print_table(HEADING, &rows);
    Ok(())
}

fn network(name: &str) -> Result<Topology, Box<dyn Error>> {
    if name != HYBRID {
        return Ok(generate(name, &TopologyLimits::STANDARD)?);
    }
    let (inside_rate, nic_rate) = (400_000_000_000, 25_000_000_000);
    let parts = Parts { boxes: 8, gpus: 8, inside: Inside::Hybrid, outside: Outside::Rails, inside_rate, nic_rate };
    // Rails without a spine.
    Ok(healthy(parts, &mut Random::new(1))?)
}

/// The generic algorithm against this one, which also lays its trees on physical routes. In processor time of all threads,
/// of this one the mean of as many runs as take [`REPEATED`].
fn compared(name: &str) -> Result<[String; 6], Box<dyn Error>> {
    let topology = network(name)?;
    let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count())?;
    let limit = bound(&topology, collective, &Shares::Equal, &Never)?.upper;
    let generic = generic_allgather(&topology)?;
    let (p, q) = generic.inverse_rate;
    let same = Rate::new(u64::from(topology.rank_count()) * u64::try_from(q)?, u64::try_from(p)?);
    if same.as_ref() != Some(&limit) {
        return Err(format!("{name}: the generic algorithm finds {p}/{q}, the bound is {limit}").into());
    }
    let request = SynthesisRequest::new(collective, Algorithm::Forest);
    let (mut sum, mut runs) = (Duration::ZERO, 0);
    while sum < REPEATED {
        let (schedule, time) = timed_on_processors(|| synthesize(&topology, &request, &Never, &canopy_synth::Silent));
        schedule?;
        (sum, runs) = (sum + time, runs + 1);
    }
    let (here, all) = (sum / runs, generic.times.iter().sum::<Duration>());
    let name = if name == HYBRID { name.to_owned() } else { format!("`{name}`") };
    Ok([
        name,
        topology.rank_count().to_string(),
        generic.times.map(|time| format!("{:.1}", ms(time))).join(" / "),
        thousands(ms(all)),
        format!("{:.1}", ms(here)),
        thousands(all.as_secs_f64() / here.as_secs_f64()),
    ])
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use crate::plans::tests::rows_of_the_page;

    #[test]
    fn the_page_has_these_rows() {
        assert_eq!(rows_of_the_page(&super::HEADING.join(" | ")), super::NETWORKS);
    }
}
