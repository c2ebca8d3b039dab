//! Execution plans of MSCCL++, run by an interpreter that shares nothing with lowering, proof and emulator: it reads the
//! JSON by itself, has its own table of operations, its own threads and bytes, and compares with what the collective is
//! defined to be. What lowering and proof misread alike would show here.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
mod kernel;
mod rank;

use std::fs;

use canopy_plan::{ExecutionPlan, ExecutorProfile, write_execution_plan};
use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;
use canopy_topology::{Rank, Topology};
use capable::capable;
use execution::{graph, lowered, topology};
use kernel::{Launch, Machine, Misread, mix};
use repeated::repeated;
use serde_json::Value;

use crate::support::capable;
use crate::support::execution;
use crate::support::repeated;

/// What a plan is for.
#[derive(Clone, Copy, Debug)]
struct Task {
    kind: CollectiveKind,
    root: usize,
    in_place: bool,
    misreads_flushing_puts: bool,
}

const CHUNK_BYTES: usize = 64;

/// Where input and output begin, and how many bytes they have together, as the collective shares them in place.
fn bases(kind: CollectiveKind, in_place: bool) -> fn(usize, usize, usize) -> (usize, usize, usize) {
    match kind {
        _ if !in_place => |_, input, output| (0, input, input + output),
        CollectiveKind::Allgather | CollectiveKind::Gather => |rank, input, output| (rank * input, 0, output),
        CollectiveKind::ReduceScatter | CollectiveKind::Scatter => |rank, input, output| (0, rank * output, input),
        _ => |_, input, output| (0, 0, input.max(output)),
    }
}

fn input(seed: u64, rank: usize, bytes: &mut [u8]) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = mix(seed ^ ((rank as u64) << 32) ^ at as u64).to_le_bytes()[5];
    }
}

/// Words of four bytes, summed over all ranks.
fn sum(inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut total = vec![0_u8; inputs[0].len()];
    for input in inputs {
        for (total, word) in total.chunks_mut(4).zip(input.chunks(4)) {
            let [a, b] = [&*total, word].map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()));
            total.copy_from_slice(&a.wrapping_add(b).to_le_bytes());
        }
    }
    total
}

/// What a rank must have in its output at the end; none where nothing is promised.
fn defined(task: Task, rank: usize, inputs: &[Vec<u8>], output_bytes: usize) -> Option<Vec<u8>> {
    let (ranks, is_root) = (inputs.len(), rank == task.root);
    let own = rank * output_bytes..(rank + 1) * output_bytes;
    match task.kind {
        CollectiveKind::Allgather => Some(inputs.concat()),
        CollectiveKind::Allreduce => Some(sum(inputs)),
        CollectiveKind::ReduceScatter => Some(sum(inputs)[own].to_vec()),
        CollectiveKind::AllToAll => {
            let block = output_bytes / ranks;
            Some(inputs.iter().flat_map(|input| input[rank * block..(rank + 1) * block].to_vec()).collect())
        }
        CollectiveKind::Broadcast => Some(inputs[task.root].clone()),
        CollectiveKind::Scatter => Some(inputs[task.root][own].to_vec()),
        CollectiveKind::Gather => is_root.then(|| inputs.concat()),
        CollectiveKind::Reduce => is_root.then(|| sum(inputs)),
    }
}

/// Runs the text of a plan once, and compares every byte.
fn run(plan: &Value, task: Task, seed: u64, misread: Option<Misread>) -> Result<(), String> {
    let launch = Launch {
        chunk_bytes: CHUNK_BYTES,
        seed,
        misreads_flushing_puts: task.misreads_flushing_puts,
        bases: bases(task.kind, task.in_place),
        misread,
    };
    let is_given =
        |rank| !matches!(task.kind, CollectiveKind::Broadcast | CollectiveKind::Scatter) || rank == task.root;
    let garbage = |rank: usize, bytes: &mut [u8]| input(!seed, rank, bytes);
    let filled = |rank: usize, bytes: &mut [u8]| {
        if is_given(rank) {
            input(seed, rank, bytes)
        }
    };
    let mut machine = Machine::new(plan, launch, garbage, filled)?;
    let ranks = machine.memories.len();
    let inputs: Vec<Vec<u8>> = (0..ranks).map(|rank| machine.buffer(rank, 0).to_vec()).collect();
    machine.run()?;
    for rank in 0..ranks {
        let output = machine.buffer(rank, 1);
        if defined(task, rank, &inputs, output.len()).is_some_and(|defined| defined != output) {
            return Err(format!("rank {rank} has another result than {}", task.kind));
        }
        if !task.in_place && is_given(rank) && machine.buffer(rank, 0) != inputs[rank] {
            return Err(format!("the input of rank {rank} has changed"));
        }
    }
    Ok(())
}

fn read(plan: &ExecutionPlan) -> Value {
    serde_json::from_str(&write_execution_plan(plan)).unwrap()
}

/// The plan of a network for a release, and what it is for.
fn planned(
    topology: &Topology,
    (kind, root): (CollectiveKind, u32),
    algorithm: Algorithm,
    (profile, in_place): (ExecutorProfile, bool),
) -> (Value, Task) {
    let graph = graph(topology, kind, kind.has_root().then(|| Rank::new(root)), algorithm);
    let root = graph.collective.root().map_or(0, |root| root.index());
    let misreads_flushing_puts = profile != ExecutorProfile::V10;
    (read(&lowered(topology, &graph, profile, in_place)), Task { kind, root, in_place, misreads_flushing_puts })
}

/// Both states and all releases of every collective, a few times each.
fn check_all(name: &str, topology: &Topology, root: u32, algorithm: Algorithm) {
    for kind in CollectiveKind::ALL {
        for profile in ExecutorProfile::ALL {
            for in_place in [false, true] {
                let (plan, task) = planned(topology, (kind, root), algorithm, (profile, in_place));
                for seed in 0..2 {
                    run(&plan, task, seed, None).unwrap_or_else(|found| panic!("{name} {profile} {task:?}: {found}"));
                }
            }
        }
    }
}

#[test]
fn plans_give_what_their_collectives_are_defined_to_be() {
    for expression in ["ring:8", "torus:3x3", "hypercube:4", "mesh:1x4"] {
        check_all(expression, &topology(expression), 0, Algorithm::Auto);
    }
}

#[test]
fn plans_over_several_boxes_give_it() {
    for expression in ["dgx-a100:boxes=2", "dgx-a100:boxes=3,gpus=2", "rail:boxes=3,gpus=4,nv=900GB/s,nic=50GB/s"] {
        check_all(expression, &topology(expression), 1, Algorithm::Auto);
    }
}

#[test]
fn plans_that_let_switches_store_and_sum_give_it() {
    for (expression, aggregates) in
        [("dgx-h100:boxes=1", true), ("dgx-h100:boxes=2,gpus=4", true), ("leaf-spine:leaves=1,hosts=5,spines=1", false)]
    {
        check_all(expression, &capable(expression, aggregates), 0, Algorithm::Auto);
    }
}

#[test]
fn plans_whose_blocks_hand_over_by_semaphores_give_it() {
    let topology = topology("leaf-spine:leaves=1,hosts=24,spines=1");
    for profile in ExecutorProfile::ALL {
        let purpose = (CollectiveKind::Broadcast, 5);
        let (plan, task) = planned(&topology, purpose, Algorithm::Direct, (profile, false));
        assert!(plan["gpus"][5]["semaphores"].as_array().unwrap().len() > 1);
        for seed in 0..4 {
            run(&plan, task, seed, None).unwrap();
        }
    }
}

#[test]
fn plans_with_pipelines_give_it() {
    for (expression, kind) in [
        ("ring:3", CollectiveKind::Allgather),
        ("complete:3", CollectiveKind::Allreduce),
        ("dgx-a100:boxes=2,gpus=1", CollectiveKind::Allgather),
    ] {
        // Units of less than a chunk, and of several with a rest.
        for unit in [16, 48, 1 << 12] {
            let plan = read(&repeated(expression, kind, unit));
            let in_place = kind == CollectiveKind::Allreduce;
            let task = Task { kind, root: 0, in_place, misreads_flushing_puts: false };
            for seed in 0..4 {
                run(&plan, task, seed, None).unwrap_or_else(|found| panic!("{expression} {unit}: {found}"));
            }
        }
    }
}

/// Real plans of others, with packets, slices, semaphores and switches; read where they are at hand.
#[test]
fn real_plans_give_it() {
    for name in ["allreduce.json", "allreduce_packet.json"] {
        let Some(path) = canopy_prerequisites::samples(&format!("mscclpp/{name}")) else { return };
        let plan: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(plan["collective"], "allreduce", "{name}");
        let in_place = plan["inplace"] == true;
        let task = Task { kind: CollectiveKind::Allreduce, root: 0, in_place, misreads_flushing_puts: false };
        for seed in 0..20 {
            run(&plan, task, seed, None).unwrap_or_else(|found| panic!("{name}: {found}"));
        }
    }
}

/// The kernels of 0.8 and 0.9 send something else than the source of a `pwsf`.
#[test]
fn a_flushing_put_sends_garbage_before_0_10() {
    let boxes = topology("dgx-a100:boxes=2,gpus=2");
    for kind in CollectiveKind::ALL {
        let (plan, task) = planned(&boxes, (kind, 0), Algorithm::Auto, (ExecutorProfile::V10, false));
        let text = plan.to_string().replace("\"pws\"", "\"pwsf\"");
        assert!(text.contains("\"pwsf\""), "{kind}");
        let plan: Value = serde_json::from_str(&text).unwrap();
        run(&plan, task, 1, None).unwrap();
        let older = Task { misreads_flushing_puts: true, ..task };
        assert!(run(&plan, older, 1, None).unwrap_err().contains("has another result"), "{kind}");
    }
}

/// Were one operation read otherwise, some plan would give something else: nothing cancels out.
#[test]
fn every_operation_that_is_misread_shows() {
    let (ring, grid, star) =
        (topology("ring:4"), topology("dgx-a100:boxes=2,gpus=4"), topology("leaf-spine:leaves=1,hosts=24,spines=1"));
    let switched = capable("dgx-h100:boxes=1,gpus=4", true);
    let newest = |in_place| (ExecutorProfile::V10, in_place);
    let plans = [
        planned(&ring, (CollectiveKind::Allreduce, 0), Algorithm::Auto, newest(false)),
        planned(&ring, (CollectiveKind::AllToAll, 0), Algorithm::Auto, newest(true)),
        planned(&grid, (CollectiveKind::Allreduce, 0), Algorithm::Auto, newest(true)),
        planned(&grid, (CollectiveKind::Allgather, 0), Algorithm::Auto, newest(false)),
        planned(&star, (CollectiveKind::Broadcast, 0), Algorithm::Direct, newest(false)),
        planned(&switched, (CollectiveKind::Allgather, 0), Algorithm::Auto, newest(false)),
        planned(&switched, (CollectiveKind::Allreduce, 0), Algorithm::Auto, newest(true)),
    ];
    let shows = |misread: Option<Misread>| {
        plans.iter().any(|(plan, task)| (0..10).any(|seed| run(plan, *task, seed, misread).is_err()))
    };
    assert!(!shows(None));
    for misread in [
        Misread::NopMeetsNobody,
        Misread::WaitPasses,
        Misread::BarrierPasses,
        Misread::AcquirePasses,
        Misread::SignalsAheadOfData,
        Misread::PutsWithoutSignal,
        Misread::PutsAtSourceIndex,
        Misread::FirstSourceLeftOut,
        Misread::FurtherSourcesLeftOut,
        Misread::SumsStayAtHome,
        Misread::GroupIsItsFirst,
        Misread::CopiesSwapped,
    ] {
        assert!(shows(Some(misread)), "{misread:?}");
    }
}

/// One thing changed in the text of a plan, everywhere: run, it gives something else or does not end.
#[test]
fn every_operation_that_is_replaced_shows() {
    let newest = (ExecutorProfile::V10, false);
    let on = |expression| planned(&topology(expression), (CollectiveKind::Allreduce, 0), Algorithm::Auto, newest);
    let (near, far) = (on("ring:4"), on("dgx-a100:boxes=2,gpus=4"));
    for ((plan, task), from, to) in [
        (&far, "pws", "put"),
        (&near, "res", "re"),
        (&near, "re", "copy"),
        (&far, "rlxsignal", "nop"),
        (&near, "wait", "nop"),
        (&near, "nop", "flush"),
        (&near, "put", "nop"),
        (&far, "signal", "nop"),
    ] {
        let text = plan.to_string();
        let [old, new] = [from, to].map(|name| format!("\"name\":\"{name}\""));
        assert!(text.contains(&old), "{from} is in the plan");
        let changed: Value = serde_json::from_str(&text.replace(&old, &new)).unwrap();
        let shows = (0..10).any(|seed| run(&changed, *task, seed, None).is_err());
        assert!(shows, "{from} as {to}");
    }
}
