//! How long it takes to check a plan and to make, read back, prove and run its MSCCL file.
//!
//! `cargo run --release -p canopy-benches --bin msccl_speed`

use std::error::Error;
use std::time::Duration;

use canopy_benches::{print_table, timed};
use canopy_plan::{
    EmulateOptions, Instances, LowerOptions, Profile, ProgramFigures, emulate, lower, parse_msccl_xml, prove,
    write_msccl_xml,
};
use canopy_schedule::{Collective, CollectiveKind, check, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{TopologyLimits, generate};

/// Plans: network, collective, algorithm, runtime.
const PLANS: [(&str, CollectiveKind, Algorithm, Profile); 6] = [
    ("torus:8x16", CollectiveKind::Allgather, Algorithm::Direct, Profile::Msccl),
    ("torus:8x16", CollectiveKind::Allgather, Algorithm::Direct, Profile::RcclMsccl),
    ("dgx-a100:boxes=16", CollectiveKind::Allgather, Algorithm::Direct, Profile::Msccl),
    ("torus:8x16", CollectiveKind::Allreduce, Algorithm::Direct, Profile::MscclExecutor),
    ("hypercube:6", CollectiveKind::AllToAll, Algorithm::Direct, Profile::MscclExecutor),
    ("mi250:boxes=2", CollectiveKind::Allreduce, Algorithm::Forest, Profile::Msccl),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut rows = Vec::new();
    for (network, kind, algorithm, profile) in PLANS {
        let topology = generate(network, &TopologyLimits::STANDARD)?;
        let collective = Collective::new(kind, None, topology.rank_count())?;
        let schedule = synthesize(&topology, &SynthesisRequest::new(collective, algorithm), &Never, &Silent)?;
        let (graph, compiling) = timed(|| compile(&topology, &schedule));
        let graph = graph?;
        let (verdict, checking) = timed(|| check(&topology, &graph));
        verdict?;
        let name = || "speed".to_owned();
        let options =
            LowerOptions { in_place: false, bytes_max: 1 << 30, profile, name: name(), instances: Instances::ONE };
        let (program, lowering) = timed(|| lower(&graph, &options, &|| false));
        let program = match program {
            Ok(lowered) => lowered.program,
            Err(error) => {
                rows.push(row(network, kind, profile, error.to_string(), [compiling, checking, lowering], None));
                continue;
            }
        };
        let (text, writing) = timed(|| write_msccl_xml(&program, profile));
        let (parsed, parsing) = timed(|| parse_msccl_xml(&text, profile));
        let parsed = parsed?;
        let (proof, proving) = timed(|| prove(&parsed, profile));
        if let Some(problem) = proof.problems.first() {
            return Err(format!("{}: {}", problem.check, problem.message).into());
        }
        // As the server runs it.
        let runs = EmulateOptions::various(profile, 1);
        let (ran, running) = timed(|| runs.iter().try_for_each(|options| emulate(&parsed, options).map(drop)));
        ran?;
        let figures = ProgramFigures::of(&program, profile);
        let size = format!("{} blocks, {} steps", figures.blocks.need, figures.steps_per_rank);
        let later = Some([writing, parsing, proving, running]);
        rows.push(row(network, kind, profile, size, [compiling, checking, lowering], later));
    }
    let heading =
        ["network", "collective", "runtime", "per rank", "compile", "check", "lower", "write", "parse", "prove", "run"];
    print_table(heading, &rows);
    Ok(())
}

fn row(
    network: &str,
    kind: CollectiveKind,
    profile: Profile,
    size: String,
    [compile, check, lower]: [Duration; 3],
    later: Option<[Duration; 4]>,
) -> [String; 11] {
    let ms = |time: Duration| format!("{:.0} ms", time.as_secs_f64() * 1e3);
    let [write, parse, prove, run] = later.map_or_else(Default::default, |times| times.map(ms));
    let (network, profile) = (format!("`{network}`"), format!("`{profile}`"));
    [network, kind.to_string(), profile, size, ms(compile), ms(check), ms(lower), write, parse, prove, run]
}
