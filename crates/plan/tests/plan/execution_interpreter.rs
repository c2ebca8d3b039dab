//! Execution plans of MSCCL++, run by an interpreter that shares nothing with lowering, proof and emulator: it reads the
//! JSON by itself, has its own table of operations, its own threads and bytes, and compares with what the collective is
//! defined to be. What lowering and proof misread alike would show here.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
pub(crate) mod chance;
mod orders;
mod rank;
mod states;
pub(crate) mod world;

use std::fs;

use canopy_plan::{ExecutionPlan, ExecutorProfile, write_execution_plan};
use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;
use canopy_topology::{Rank, Topology};
use capable::capable;
use execution::{graph, lowered, topology};
pub(crate) use orders::Verdict;
use repeated::repeated;
use serde_json::{Value, json};
use world::{Launch, Misread, State, World, mix};

use crate::support::capable;
use crate::support::execution;
use crate::support::repeated;

/// What a plan is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) kind: CollectiveKind,
    pub(crate) root: usize,
    pub(crate) in_place: bool,
    pub(crate) misreads_flushing_puts: bool,
    pub(crate) chunk_bytes: usize,
}

impl Task {
    /// Whether a rank's caller gives something.
    fn gives(self, rank: usize) -> bool {
        !matches!(self.kind, CollectiveKind::Broadcast | CollectiveKind::Scatter) || rank == self.root
    }

    fn launch(self) -> Launch {
        Launch {
            chunk_bytes: self.chunk_bytes,
            threads: 3,
            misreads_flushing_puts: self.misreads_flushing_puts,
            bases: bases(self.kind, self.in_place),
            misread: None,
        }
    }
}

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

/// A plan with what its ranks start with.
struct Trial {
    task: Task,
    world: World,
    inputs: Vec<Vec<u8>>,
}

impl Trial {
    fn new(plan: &Value, task: Task, launch: Launch, seed: u64) -> Result<Self, String> {
        let garbage = |rank: usize, bytes: &mut [u8]| input(!seed, rank, bytes);
        let filled = |rank: usize, bytes: &mut [u8]| {
            if task.gives(rank) {
                input(seed, rank, bytes)
            }
        };
        let world = World::new(plan, launch, garbage, filled)?;
        let start = world.start();
        let inputs = (0..start.memories.len()).map(|rank| world.buffer(&start, rank, 0).to_vec()).collect();
        Ok(Self { task, world, inputs })
    }

    /// Compares every byte at the end of a run.
    fn check(&self, end: &State) -> Result<(), String> {
        for rank in 0..self.inputs.len() {
            let output = self.world.buffer(end, rank, 1);
            if defined(self.task, rank, &self.inputs, output.len()).is_some_and(|defined| defined != output) {
                return Err(format!("rank {rank} has another result than {}", self.task.kind));
            }
            let is_kept = self.world.buffer(end, rank, 0) == self.inputs[rank];
            if !self.task.in_place && self.task.gives(rank) && !is_kept {
                return Err(format!("the input of rank {rank} has changed"));
            }
        }
        Ok(())
    }
}

/// Runs the text of a plan once, and compares every byte.
pub(crate) fn run(plan: &Value, task: Task, seed: u64, misread: Option<Misread>) -> Result<(), String> {
    let trial = Trial::new(plan, task, Launch { misread, ..task.launch() }, seed)?;
    trial.check(&chance::run(&trial.world, seed)?)
}

/// A search through all that can happen.
type Search = fn(&World, &dyn Fn(&State) -> Result<(), String>) -> Verdict;

fn searched(plan: &Value, task: Task, misread: Option<Misread>, search: Search) -> Verdict {
    // With two threads, what the threads of a block do not wait for shows already.
    let launch = Launch { misread, threads: 2, ..task.launch() };
    match Trial::new(plan, task, launch, 1) {
        Ok(trial) => search(&trial.world, &|end| trial.check(end)),
        Err(reason) => Verdict::Wrong(reason),
    }
}

/// Runs it in every order.
pub(crate) fn run_all(plan: &Value, task: Task, misread: Option<Misread>) -> Verdict {
    searched(plan, task, misread, orders::search)
}

pub(crate) fn read(plan: &ExecutionPlan) -> Value {
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
    (
        read(&lowered(topology, &graph, profile, in_place)),
        Task { kind, root, in_place, misreads_flushing_puts, chunk_bytes: 64 },
    )
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
            let task = Task { kind, root: 0, in_place, misreads_flushing_puts: false, chunk_bytes: 64 };
            for seed in 0..4 {
                run(&plan, task, seed, None).unwrap_or_else(|found| panic!("{expression} {unit}: {found}"));
            }
            assert_eq!(run_all(&plan, task, None), Verdict::Right(1), "{expression} {unit}");
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
        let task =
            Task { kind: CollectiveKind::Allreduce, root: 0, in_place, misreads_flushing_puts: false, chunk_bytes: 64 };
        for seed in 0..20 {
            run(&plan, task, seed, None).unwrap_or_else(|found| panic!("{name}: {found}"));
        }
        let verdict = run_all(&plan, task, None);
        assert!(matches!(verdict, Verdict::Right(_)), "{name}: {verdict:?}");
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
    let shows_in_some_order = |misread: Option<Misread>| {
        // The plan of 24 ranks has many threads.
        let small = plans.iter().filter(|(plan, _)| plan["gpus"].as_array().unwrap().len() <= 8);
        small.clone().any(|(plan, task)| matches!(run_all(plan, *task, misread), Verdict::Wrong(_)))
    };
    assert!(!shows(None) && !shows_in_some_order(None));
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
        // Semaphores are in the large plan only.
        if misread != Misread::AcquirePasses {
            assert!(shows_in_some_order(Some(misread)), "{misread:?} in every order");
        }
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
        assert!(matches!(run_all(&changed, *task, None), Verdict::Wrong(_)), "{from} as {to}, in every order");
    }
}

/// Not only by chance: no order in which threads and proxies may act gives anything else.
#[test]
fn plans_give_it_in_every_order() {
    let newest = ExecutorProfile::V10;
    for (expression, root) in [("ring:3", 0), ("ring:4", 1), ("dgx-a100:boxes=2,gpus=2", 3), ("mesh:1x3", 2)] {
        for kind in CollectiveKind::ALL {
            for in_place in [false, true] {
                let (plan, task) = planned(&topology(expression), (kind, root), Algorithm::Auto, (newest, in_place));
                // Nobody waits for two things that could come in either order: all orders are alike.
                assert_eq!(run_all(&plan, task, None), Verdict::Right(1), "{expression} {task:?}");
            }
        }
    }
}

/// A plan with one operation of a block left out, moved behind the next, or made relaxed, in every such way.
fn variants(plan: &Value) -> Vec<Value> {
    let mut found = vec![plan.clone()];
    for (rank, gpu) in plan["gpus"].as_array().unwrap().iter().enumerate() {
        for (block, of) in gpu["threadblocks"].as_array().unwrap().iter().enumerate() {
            let ops = of["ops"].as_array().unwrap();
            let mut add = |changed: Vec<Value>| {
                let mut variant = plan.clone();
                variant["gpus"][rank]["threadblocks"][block]["ops"] = changed.into();
                found.push(variant);
            };
            for at in 0..ops.len() {
                let mut without = ops.clone();
                without.remove(at);
                add(without);
                if at + 1 < ops.len() {
                    let mut swapped = ops.clone();
                    swapped.swap(at, at + 1);
                    add(swapped);
                }
                if ops[at]["name"] == "signal" && ops[at]["channel_type"] == "memory" {
                    let mut relaxed = ops.clone();
                    relaxed[at]["name"] = "rlxsignal".into();
                    add(relaxed);
                }
            }
        }
    }
    found
}

/// An allgather of two ranks by hand, over memory or proxies.
fn pair(kind: &str) -> Value {
    let rank = |rank: usize| {
        let own = |name: &str| json!({"name": name, "channel_type": kind, "channel_ids": [0]});
        let nop = json!({"name": "nop"});
        let from = json!([{"type": "i", "index": 0, "size": 1}]);
        let copy = json!({"name": "copy", "src_buff": from, "dst_buff": [{"type": "o", "index": rank, "size": 1}]});
        let to = json!([{"buffer_id": 0, "index": rank, "size": 1}]);
        let put = |name: &str| json!({"name": name, "channel_type": kind, "channel_ids": [0], "src_buff": from, "dst_buff": to});
        let ops = match kind {
            "memory" => {
                vec![own("rlxsignal"), copy, own("rlxwait"), nop.clone(), put("put"), nop, own("signal"), own("wait")]
            }
            _ => vec![own("signal"), copy, own("wait"), nop, put("pws"), own("wait"), own("signal"), own("wait")],
        };
        json!({
            "id": rank, "input_chunks": 1, "output_chunks": 2, "scratch_chunks": 0,
            "channels": [{"channel_type": kind, "connected_to": [1 - rank]}],
            "remote_buffers": [{"rank": 1 - rank, "type": "o", "access_channel_types": [kind]}],
            "threadblocks": [{
                "id": 0,
                "channels": [{"channel_type": kind, "channel_ids": [0]}],
                "remote_buffer_refs": [{"access_channel_type": kind, "remote_buffer_ids": [0]}],
                "ops": ops,
            }],
        })
    };
    json!({"name": "pair", "collective": "allgather", "protocol": "Simple", "inplace": false, "gpus": [rank(0), rank(1)]})
}

/// The bytes are there in time whenever it is run, but no fence says so.
#[test]
fn a_relaxed_signal_does_not_show_what_was_written() {
    let newest = (ExecutorProfile::V10, false);
    let (plan, task) = planned(&topology("ring:4"), (CollectiveKind::Allreduce, 0), Algorithm::Auto, newest);
    let text = plan.to_string().replace("\"name\":\"signal\"", "\"name\":\"rlxsignal\"");
    let relaxed: Value = serde_json::from_str(&text).unwrap();
    assert_ne!(relaxed, plan);
    for seed in 0..20 {
        run(&relaxed, task, seed, None).unwrap();
    }
    let verdict = run_all(&relaxed, task, None);
    assert!(matches!(&verdict, Verdict::Wrong(why) if why.contains("is not sure to see")), "{verdict:?}");
}

/// What the search leaves out as alike is alike: a search through all states says the same.
#[test]
fn the_search_of_orders_agrees_with_one_of_states() {
    let (mut right, mut wrong, mut undecided) = (0, 0, 0);
    let task = Task {
        kind: CollectiveKind::Allgather,
        root: 0,
        in_place: false,
        misreads_flushing_puts: false,
        chunk_bytes: 32,
    };
    let on = |expression, kind| {
        let newest = (ExecutorProfile::V10, false);
        let (plan, task) = planned(&topology(expression), (kind, 0), Algorithm::Auto, newest);
        (plan, Task { chunk_bytes: 16, ..task })
    };
    let (memory, ports) = (pair("memory"), pair("port"));
    // Two changes, too.
    let twice: Vec<Value> = variants(&memory).iter().chain(&variants(&ports)).flat_map(variants).collect();
    let pairs = twice.iter().step_by(3).map(|variant| (variant.clone(), task));
    let near = on("mesh:1x2", CollectiveKind::Allreduce);
    let far = on("dgx-a100:boxes=2,gpus=1", CollectiveKind::Broadcast);
    let others = [near, far].into_iter().flat_map(|(plan, task)| {
        variants(&plan).into_iter().step_by(4).map(move |variant| (variant, task)).collect::<Vec<_>>()
    });
    for (variant, task) in pairs.chain(others) {
        match (run_all(&variant, task, None), searched(&variant, task, None, states::search)) {
            (_, Verdict::Undecided) => undecided += 1,
            (Verdict::Right(_), Verdict::Right(_)) => right += 1,
            (Verdict::Wrong(_), Verdict::Wrong(_)) => wrong += 1,
            (orders, states) => panic!("{task:?}: {orders:?}, but {states:?}\n{variant}"),
        }
    }
    assert!(right > 50 && wrong > 300, "{right} {wrong}");
    assert!(undecided * 4 < right + wrong, "{undecided} undecided");
}
