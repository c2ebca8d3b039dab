//! What every collective needs of every MSCCL runtime on four networks, alone and in as many instances as fit: the tables
//! in the README.
//!
//! `cargo run --release -p canopy-benches --bin msccl_table`
//!
//! Each plan is the one of `auto`. It is lowered, written, read back, proved and run on bytes, in place and out of
//! place. A cell says the most thread blocks of a rank, steps of a block and XML nodes of a rank, or the limit that
//! forbids the file with what the plan needs. In the second table the number of instances stands before them.

use std::error::Error;

use canopy_benches::print_table;
use canopy_plan::{
    EmulateOptions, Instances, LowerOptions, Lowered, Profile, Program, ProgramFigures, emulate, lower,
    parse_msccl_xml, prove, write_msccl_xml,
};
use canopy_schedule::{Collective, CollectiveKind, TransferGraph, check, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Topology, TopologyLimits, generate};

/// Plans that are repeated until the runtime is full.
const FILLED: [(&str, CollectiveKind); 5] = [
    ("ring:8", CollectiveKind::Allreduce),
    ("torus:3x3", CollectiveKind::Allgather),
    ("dgx-a100:boxes=2", CollectiveKind::Allgather),
    ("dgx-a100:boxes=2", CollectiveKind::Allreduce),
    ("dgx-a100:boxes=2", CollectiveKind::AllToAll),
];

const NETWORKS: [&str; 4] = ["ring:8", "torus:3x3", "dgx-a100:boxes=2", "hypercube:4"];

#[expect(clippy::print_stdout, reason = "a line between the tables")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut rows = Vec::new();
    for network in NETWORKS {
        for kind in CollectiveKind::ALL {
            rows.push(row(network, kind, Instances::ONE)?);
        }
    }
    let [msccl, executor, rccl] = Profile::ALL.map(|profile| format!("`{profile}`"));
    let head = ["network", "collective", "plan", &msccl, &executor, &rccl];
    print_table(head, &rows);
    println!();
    let filled = FILLED.map(|(network, kind)| row(network, kind, Instances::Auto));
    print_table(head, &filled.into_iter().collect::<Result<Vec<_>, _>>()?);
    Ok(())
}

/// One plan for all runtimes.
fn row(network: &str, kind: CollectiveKind, instances: Instances) -> Result<[String; 6], Box<dyn Error>> {
    let topology = generate(network, &TopologyLimits::STANDARD)?;
    let (algorithm, graph) = plan(&topology, kind)?;
    let [msccl, executor, rccl] = Profile::ALL.map(|profile| cell(&graph, profile, instances));
    Ok([format!("`{network}`"), kind.to_string(), algorithm, msccl?, executor?, rccl?])
}

/// The plan that users get who choose no algorithm; checked.
fn plan(topology: &Topology, kind: CollectiveKind) -> Result<(String, TransferGraph), Box<dyn Error>> {
    let collective = Collective::new(kind, None, topology.rank_count())?;
    let request = SynthesisRequest::new(collective, Algorithm::Auto);
    let schedule = synthesize(topology, &request, &Never, &Silent)?;
    let graph = compile(topology, &schedule)?;
    check(topology, &graph)?;
    Ok((schedule.algorithm, graph))
}

/// What a plan needs of a runtime, or why it has no file; an error where a file is wrong.
fn cell(graph: &TransferGraph, profile: Profile, instances: Instances) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    for in_place in [true, false] {
        let options = LowerOptions { in_place, bytes_max: 1 << 30, profile, name: "table".to_owned(), instances };
        text = match lower(graph, &options, &|| false) {
            Ok(Lowered { program, instances: found }) => {
                judge(&program, profile)?;
                let ProgramFigures { blocks, steps, nodes, .. } = ProgramFigures::of(&program, profile);
                let needs = format!("{} · {} · {}", blocks.need, steps.need, nodes.need);
                if instances == Instances::Auto { format!("{found}: {needs}") } else { needs }
            }
            Err(error) => error.to_string(),
        };
    }
    Ok(text)
}

/// Read back, proved and run.
fn judge(program: &Program, profile: Profile) -> Result<(), Box<dyn Error>> {
    let parsed = parse_msccl_xml(&write_msccl_xml(program, profile), profile)?;
    if parsed != *program {
        return Err("the file, read back, is another program".into());
    }
    if let Some(problem) = prove(&parsed, profile).problems.first() {
        return Err(format!("{}: {}: {}", problem.check, problem.place, problem.message).into());
    }
    emulate(&parsed, &EmulateOptions::standard(profile, 1))?;
    Ok(())
}
