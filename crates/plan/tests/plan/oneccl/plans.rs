//! Every collective on several networks: written, read back, proved, and run on real bytes.

use std::num::NonZeroU64;

use canopy_plan::oneccl::{
    EmulateOptions, LowerError, LowerOptions, Program, SCHEMA, emulate, lower, parse, prove, prove_routes,
    require_own_routes, write,
};
use canopy_schedule::{AllreduceForm, Collective, CollectiveKind, Shares, TransferGraph, compile};
use canopy_synth::{Algorithm, Never, Silent, SumOptions, SynthesisRequest, TreeLimits, synthesize};
use canopy_topology::{Rank, Topology, TopologyLimits, generate};

const NETWORKS: [&str; 4] = ["ring:8", "torus:3x3", "dgx-a100:boxes=2", "hypercube:4"];

pub(crate) fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

pub(crate) fn options(in_place: bool) -> LowerOptions {
    LowerOptions { name: "test".to_owned(), in_place, bytes_max: Some(1 << 30), instances: 1 }
}

/// The transfer graph of an algorithm's schedule, if it applies.
fn graph(topology: &Topology, kind: CollectiveKind, root: Option<u32>, algorithm: Algorithm) -> Option<TransferGraph> {
    let root = root.filter(|_| kind.has_root()).map(Rank::new);
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let request = SynthesisRequest::new(collective, algorithm);
    let schedule = synthesize(topology, &request, &Never, &Silent).ok()?;
    Some(compile(topology, &schedule).unwrap())
}

#[track_caller]
fn judge(program: &Program, topology: &Topology) {
    let text = write(program);
    assert_eq!(&parse(&text).unwrap(), program);
    let proof = prove(program);
    let what = format!("{:?} of {} ranks", program.collective, program.rank_count);
    assert!(proof.is_ok(), "{what}: {:#?}", proof.problems);
    assert!(prove_routes(program, topology, &|| false).unwrap().is_ok());
    for options in EmulateOptions::various(program, 7) {
        emulate(program, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

#[test]
fn every_collective_on_every_network() {
    for expression in NETWORKS {
        let topology = network(expression);
        for kind in CollectiveKind::ALL {
            let last = topology.rank_count() - 1;
            let mut made = 0;
            for (algorithm, root) in
                [(Algorithm::Forest, 0), (Algorithm::Flow, last), (Algorithm::Direct, last), (Algorithm::Ring, 0)]
            {
                let Some(graph) = graph(&topology, kind, Some(root), algorithm) else { continue };
                made += 1;
                for in_place in [false, true] {
                    let program = lower(&graph, &options(in_place), &|| false).unwrap();
                    judge(&program, &topology);
                    assert_eq!(write(&lower(&graph, &options(in_place), &|| false).unwrap()), write(&program));
                }
            }
            assert!(made >= 2, "{kind} on {expression}: {made} schedules");
        }
    }
}

/// Sums of an allreduce may be made anywhere: a file says nothing of shares, whose sizes differ then.
#[test]
fn sums_of_any_sizes_at_any_ranks_have_files() {
    let sums = SumOptions { form: Some(AllreduceForm::Trees), ..SumOptions::AUTO };
    for (expression, trees) in [("dgx-a100:boxes=2", 4), ("dgx-a100:boxes=2,nodes-down=b0g5", 64), ("torus:3x3", 1)] {
        let topology = network(expression);
        let collective = Collective::new(CollectiveKind::Allreduce, None, topology.rank_count()).unwrap();
        let limits = TreeLimits { max_chunks: NonZeroU64::new(trees), ..TreeLimits::NONE };
        let request = SynthesisRequest { sums, limits, ..SynthesisRequest::new(collective, Algorithm::Forest) };
        let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
        let graph = compile(&topology, &schedule).unwrap();
        assert_ne!(graph.shares, Shares::Equal, "{expression}");
        for in_place in [false, true] {
            judge(&lower(&graph, &options(in_place), &|| false).unwrap(), &topology);
        }
    }
}

/// A ring needs a step for each hop, and one message of each rank in each: chunks in a row are sent together.
#[test]
fn rings_have_as_many_steps_as_hops() {
    let topology = network("ring:8,dir=uni");
    let graph = graph(&topology, CollectiveKind::Allgather, None, Algorithm::Forest).unwrap();
    let program = lower(&graph, &options(false), &|| false).unwrap();
    for rank in &program.ranks {
        assert_eq!((rank.steps.len(), rank.scratch_chunks), (7, 0));
        assert!(rank.steps.iter().all(|step| step.sends.len() == 1 && step.receives.len() == 1));
    }
}

#[test]
fn what_a_plan_cannot_say_is_refused() {
    let topology = network("ring:4");
    let made = graph(&topology, CollectiveKind::Allgather, None, Algorithm::Forest).unwrap();
    let refused = |graph: &TransferGraph, options: &LowerOptions| lower(graph, options, &|| false).unwrap_err();
    let uneven = TransferGraph { shares: Shares::Weighted(vec![1, 2, 1, 1]), ..made.clone() };
    assert_eq!(refused(&uneven, &options(false)), LowerError::Shares);
    let unnamed = LowerOptions { name: "no name".to_owned(), ..options(false) };
    assert_eq!(refused(&made, &unnamed), LowerError::Name { name: "no name".to_owned() });
    let many = LowerOptions { instances: 65, ..options(false) };
    assert_eq!(refused(&made, &many), LowerError::Instances { found: 65 });
    let nothing = LowerOptions { bytes_max: Some(0), ..options(false) };
    assert_eq!(refused(&made, &nothing), LowerError::BytesMax { found: 0 });
    let empty = TransferGraph { batches: Vec::new(), ..made.clone() };
    assert_eq!(refused(&empty, &options(false)), LowerError::NoChunks);
    let mut unowned = made.clone();
    unowned.batches.pop();
    assert!(matches!(refused(&unowned, &options(false)), LowerError::Malformed { what: "belongs to no batch", .. }));
    let mut huge = made.clone();
    huge.chunks_per_share = 1 << 40;
    huge.batches[0].chunk_count = 1;
    assert!(matches!(refused(&huge, &options(false)), LowerError::OverLimit { what: "chunks", .. }));
    assert_eq!(lower(&made, &options(false), &|| true), Err(LowerError::Stopped));
    assert_eq!(require_own_routes(&topology, &made), Ok(()));
}

/// Where the tool is there, what is written keeps to the schema. That the schema names what the reader knows is a unit
/// test of its own.
#[test]
fn written_files_keep_to_the_schema() {
    let Some(xmllint) = canopy_prerequisites::program("xmllint") else { return };
    let folder = std::env::temp_dir().join(format!("canopy-oneccl-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let schema = folder.join("oneccl.xsd");
    std::fs::write(&schema, SCHEMA).unwrap();
    let topology = network("ring:4");
    let mut texts: Vec<String> = ["all_to_all_ring3", "allreduce_pair"]
        .map(|name| std::fs::read_to_string(format!("tests/oneccl_files/{name}.xml")).unwrap())
        .to_vec();
    for kind in CollectiveKind::ALL {
        let graph = graph(&topology, kind, None, Algorithm::Direct).unwrap();
        texts.push(write(&lower(&graph, &options(false), &|| false).unwrap()));
    }
    for text in texts {
        let file = folder.join("plan.xml");
        std::fs::write(&file, &text).unwrap();
        let checked =
            std::process::Command::new(&xmllint).args(["--noout", "--schema"]).args([&schema, &file]).output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
