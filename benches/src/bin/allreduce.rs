//! What an allreduce gains by its own optimum over a reduce-scatter followed by an allgather: the table in the README.
//!
//! `cargo run --release -p canopy-benches --bin allreduce`
//!
//! The rate of the two phases is that of their bounds, which their plans reach. The optimum is that of the plan of `auto`
//! as the checker finds it, and it has to be the one that the certificate proves. *Trees* are those that differ, each of
//! which is gone up and down; *depth* is the longest way from a rank to a root.

use std::error::Error;

use canopy_benches::print_table;
use canopy_schedule::{Collective, CollectiveKind, Shares, certified_bound, check, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, bound, synthesize};
use canopy_topology::{Rate, Topology, TopologyLimits, generate};

const NETWORKS: [&str; 13] = [
    "torus:8x8",
    "dgx-a100:boxes=16",
    "mesh:4x4",
    "mesh:10x10",
    "mesh:4x4x4",
    "torus:4x4,down=00-01",
    "torus:16x16,down=0.0-0.1",
    "dgx-a100:boxes=2,degrade=b0g3-ib*1/2",
    "dgx-a100:boxes=4,nodes-down=b0g5",
    "dgx-h100:boxes=16,nodes-down=b0g5",
    "mi250:boxes=1,nodes-down=b0g5",
    "mi250:boxes=4,nodes-down=b0g5",
    "rail:boxes=16,nodes-down=b0g5",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut rows = Vec::new();
    for network in NETWORKS {
        let topology = generate(network, &TopologyLimits::STANDARD)?;
        let best = |kind| best(&topology, kind);
        let phases = in_sequence(&best(CollectiveKind::ReduceScatter)?, &best(CollectiveKind::Allgather)?);
        let collective = Collective::new(CollectiveKind::Allreduce, None, topology.rank_count())?;
        let request = SynthesisRequest::new(collective, Algorithm::Auto);
        let graph = compile(&topology, &synthesize(&topology, &request, &Never, &Silent)?)?;
        let verdict = check(&topology, &graph)?;
        if verdict.algbw != best(CollectiveKind::Allreduce)? {
            return Err(format!("{network}: the plan reaches {}, which is not optimal", verdict.algbw).into());
        }
        let (found, before) = (verdict.algbw.gigabytes_per_sec(), phases.gigabytes_per_sec());
        rows.push([
            format!("`{network}`"),
            topology.rank_count().to_string(),
            format!("{before:.2}"),
            format!("{found:.2}"),
            format!("{:.2}", found / before),
            (verdict.batch_count / 2).to_string(),
            (verdict.depth_max / 2).to_string(),
        ]);
    }
    print_table(["network", "ranks", "two phases", "optimum", "gain", "trees", "depth"], &rows);
    Ok(())
}

/// The greatest rate of a collective, as its certificate proves.
fn best(topology: &Topology, kind: CollectiveKind) -> Result<Rate, Box<dyn Error>> {
    let collective = Collective::new(kind, None, topology.rank_count())?;
    let bound = bound(topology, collective, &Shares::Equal, &Never)?;
    Ok(certified_bound(topology, collective, &Shares::Equal, &bound.certificate)?)
}

/// Rate of one after the other, the times of which add up.
fn in_sequence(first: &Rate, second: &Rate) -> Rate {
    let ((a, b), (c, d)) = (first.parts(), second.parts());
    Rate::new(&a * &c, b * c + a * d).unwrap_or_else(Rate::zero)
}
