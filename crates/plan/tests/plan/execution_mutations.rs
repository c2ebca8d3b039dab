//! Random changes to right execution plans: whatever the proof still accepts runs right in every order.
//!
//! Whether a change matters is decided by running the text, with an interpreter that shares nothing with the proof.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use canopy_plan::{
    Buffer, ChannelType, ExecutionBlock, ExecutionLowerOptions, ExecutionOp, ExecutionPlan, ExecutorProfile, OpName,
    RankChannels, RefPlace, lower_execution_plan, parse_execution_plan, prove_execution_plan, switch_domains,
    write_execution_plan,
};
use canopy_schedule::{Collective, CollectiveKind};
use canopy_synth::Algorithm;
use capable::capable;
use execution::{boxes, graph, lowered, topology};
use repeated::repeated;

use crate::execution_interpreter::{Task, Verdict, read, run, run_all};
use crate::support::capable;
use crate::support::execution;
use crate::support::repeated;

const PROFILE: ExecutorProfile = ExecutorProfile::V10;
/// Changes tried per plan.
const CHANGES: u64 = 1_000;
/// Runs that decide whether a change that was refused matters.
const RUNS: u64 = 4;
/// Plans with this change that may be accepted though not all orders can be run, of a thousand.
const UNDECIDED_MAX: u64 = 2;

/// Source of chance: `SplitMix64`.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }

    fn near(&mut self, value: u32) -> u32 {
        if self.below(2) == 0 { value + 1 } else { value.saturating_sub(1) }
    }
}

/// One random change to what concerns switches.
fn change_switches(plan: &mut ExecutionPlan, chance: &mut Chance) {
    let ranks = plan.ranks.len();
    let rank = chance.below(ranks);
    let rank = &mut plan.ranks[rank];
    if chance.below(3) == 0 {
        let switches = rank.channels.iter_mut().filter_map(|entry| match entry {
            RankChannels::Switch { buffer, groups } => Some((buffer, groups)),
            RankChannels::Peers { .. } => None,
        });
        let mut switches: Vec<_> = switches.collect();
        let at = chance.below(switches.len());
        let Some((buffer, groups)) = switches.get_mut(at) else { return };
        if groups.is_empty() {
            return;
        }
        let at = chance.below(groups.len());
        match chance.below(5) {
            0 => groups[at].size = chance.near(groups[at].size),
            1 => drop(groups[at].ranks.pop()),
            2 => groups[at].ranks.push(u32::try_from(chance.below(ranks)).unwrap()),
            3 => **buffer = [Buffer::Input, Buffer::Output, Buffer::Scratch][chance.below(3)],
            _ => drop(groups.remove(at)),
        }
        return;
    }
    let block = chance.below(rank.blocks.len());
    let Some(block) = rank.blocks.get_mut(block) else { return };
    let is_switched = |operation: &&mut ExecutionOp| operation.channel_type == Some(ChannelType::Switch);
    let mut operations: Vec<&mut ExecutionOp> = block.operations.iter_mut().filter(is_switched).collect();
    let at = chance.below(operations.len());
    let Some(operation) = operations.get_mut(at) else { return };
    match chance.below(5) {
        0 => {
            operation.name = [OpName::GroupStore, OpName::GroupReduceStore, OpName::Copy, OpName::Put][chance.below(4)]
        }
        1 => operation.sources.clone_from(&operation.targets),
        2 => operation.targets.clone_from(&operation.sources),
        3 => {
            for reference in operation.sources.iter_mut().chain(&mut operation.targets) {
                if let RefPlace::Switch(id) = &mut reference.place {
                    *id = chance.near(*id);
                }
            }
        }
        _ => {
            for reference in &mut operation.sources {
                if let RefPlace::Local(buffer) = &mut reference.place {
                    *buffer = [Buffer::Input, Buffer::Output, Buffer::Scratch][chance.below(3)];
                }
            }
        }
    }
}

/// One random change; the plan may stay as it was.
fn change(plan: &mut ExecutionPlan, chance: &mut Chance) {
    let has_switches = plan.ranks[0].channels.iter().any(|entry| matches!(entry, RankChannels::Switch { .. }));
    if has_switches && chance.below(3) == 0 {
        return change_switches(plan, chance);
    }
    let rank = chance.below(plan.ranks.len());
    let rank = &mut plan.ranks[rank];
    if chance.below(12) == 0 {
        match chance.below(4) {
            0 => rank.scratch_chunks = chance.near(rank.scratch_chunks),
            1 => rank.id = chance.near(rank.id),
            2 => {
                if let Some(RankChannels::Peers { peers, .. }) = rank.channels.first_mut() {
                    let (a, b) = (chance.below(peers.len()), chance.below(peers.len()));
                    peers.swap(a, b);
                }
            }
            _ => {
                let remotes = rank.remote_buffers.len();
                let (a, b) = (chance.below(remotes), chance.below(remotes));
                if remotes > 1 {
                    rank.remote_buffers.swap(a, b);
                }
            }
        }
        return;
    }
    let block = chance.below(rank.blocks.len());
    let Some(block) = rank.blocks.get_mut(block).filter(|block| !block.operations.is_empty()) else { return };
    if let [ExecutionOp { pipeline: Some(pipeline), .. }] = block.operations.as_mut_slice() {
        match chance.below(8) {
            0 => {
                pipeline.unit_bytes =
                    if chance.below(2) == 0 { pipeline.unit_bytes * 2 } else { pipeline.unit_bytes / 2 }
            }
            1 => pipeline.chunk_count = chance.near(pipeline.chunk_count),
            _ => {
                // What is repeated changes as what is not does.
                let mut operations = std::mem::take(&mut pipeline.operations);
                std::mem::swap(&mut operations, &mut block.operations);
                change_block(block, chance);
                std::mem::swap(&mut operations, &mut block.operations);
                if let [ExecutionOp { pipeline: Some(pipeline), .. }] = block.operations.as_mut_slice() {
                    pipeline.operations = operations;
                }
            }
        }
        return;
    }
    change_block(block, chance);
}

/// One random change to a block that has operations.
fn change_block(block: &mut ExecutionBlock, chance: &mut Chance) {
    if block.operations.is_empty() {
        return;
    }
    let at = chance.below(block.operations.len());
    let other = chance.below(block.operations.len());
    match chance.below(12) {
        0 => drop(block.operations.remove(at)),
        1 => block.operations.insert(other, block.operations[at].clone()),
        2 | 3 => block.operations.swap(at, other),
        4 => block.operations[at].name = OpName::ALL[chance.below(OpName::ALL.len())],
        5 => {
            for reference in &mut block.operations[at].sources {
                reference.index = chance.near(reference.index);
            }
        }
        6 => {
            for reference in &mut block.operations[at].targets {
                reference.index = chance.near(reference.index);
            }
        }
        7 => {
            let operation = &mut block.operations[at];
            operation.sources.iter_mut().chain(&mut operation.targets).for_each(|reference| reference.size += 1);
        }
        8 => {
            for reference in &mut block.operations[at].targets {
                if let RefPlace::Remote(id) = &mut reference.place {
                    *id = chance.near(*id);
                }
            }
        }
        9 => block.operations[at].channels.iter_mut().for_each(|channel| *channel = chance.near(*channel)),
        10 => {
            if let Some((_, ids)) = block.channels.first_mut() {
                let (a, b) = (chance.below(ids.len()), chance.below(ids.len()));
                if ids.len() > 1 {
                    ids.swap(a, b);
                }
            }
        }
        _ => {
            let to = if chance.below(2) == 0 { ChannelType::Memory } else { ChannelType::Port };
            block.operations[at].channel_type = Some(to);
        }
    }
}

/// Whether reading or proving objects, after a trip through text.
fn is_rejected(plan: &ExecutionPlan, asked: Collective) -> bool {
    let Ok(read) = parse_execution_plan(&write_execution_plan(plan)) else { return true };
    assert_eq!(&read, plan);
    !prove_execution_plan(&read, Some(asked), PROFILE, &|| false).unwrap().is_ok()
}

/// What became of changes.
#[derive(Default)]
struct Counts {
    /// Refused, and some run shows why.
    wrong: u64,
    /// Accepted, and right in every order.
    accepted: u64,
    /// Refused though no run failed.
    cautious: u64,
    /// Accepted, right whenever they were run, but with more orders than are run.
    undecided: u64,
}

impl Counts {
    /// Checks that enough changes were of each sort, and that nearly all were decided.
    fn check(&self, wrong_least: u64) {
        let Self { wrong, accepted, cautious, undecided } = self;
        let all = format!("{wrong} wrong, {cautious} refused that ran, {accepted} right, {undecided} undecided");
        assert!(*wrong > wrong_least, "too few changes matter: {all}");
        assert!(*accepted > 20, "nothing that is right is accepted: {all}");
        assert!(undecided * 1_000 <= self.total() * UNDECIDED_MAX, "too many are undecided: {all}");
    }

    fn total(&self) -> u64 {
        self.wrong + self.accepted + self.cautious + self.undecided
    }
}

/// Tries many changes of one plan.
fn try_changes(
    name: &str,
    number: u64,
    plan: &ExecutionPlan,
    asked: Collective,
    chunk_bytes: usize,
    counts: &mut Counts,
) {
    assert!(!is_rejected(plan, asked));
    let root = asked.root().map_or(0, |root| root.index());
    let (kind, in_place) = (asked.kind(), plan.in_place);
    let task = Task { kind, root, in_place, misreads_flushing_puts: false, chunk_bytes };
    for seed in 0..CHANGES {
        let mut chance = Chance(number << 32 | seed);
        let mut mutant = plan.clone();
        for _ in 0..=seed % 2 {
            change(&mut mutant, &mut chance);
        }
        if mutant == *plan {
            continue;
        }
        let text = read(&mutant);
        if is_rejected(&mutant, asked) {
            match (0..RUNS).any(|seed| run(&text, task, seed * 97, None).is_err()) {
                true => counts.wrong += 1,
                false => counts.cautious += 1,
            }
            continue;
        }
        let wrong = |why: &str| panic!("{name}, seed {seed}: accepted, but {why}\n{}", write_execution_plan(&mutant));
        match run_all(&text, task, None) {
            Verdict::Right(_) => counts.accepted += 1,
            Verdict::Wrong(why) => wrong(&why),
            Verdict::Undecided => {
                let failed = (0..20).find_map(|seed| run(&text, task, seed, None).err());
                failed.into_iter().for_each(|why| wrong(&why));
                counts.undecided += 1;
            }
        }
    }
}

#[test]
fn no_change_that_matters_is_accepted() {
    let mut counts = Counts::default();
    for (number, (expression, kind, in_place)) in (0_u64..).zip([
        ("ring:3", CollectiveKind::Allgather, false),
        ("ring:4", CollectiveKind::Allreduce, true),
        ("ring:4", CollectiveKind::AllToAll, true),
        ("dgx-a100:boxes=2,gpus=2", CollectiveKind::Allreduce, false),
        ("dgx-a100:boxes=2,gpus=2", CollectiveKind::Allgather, true),
        ("hypercube:2", CollectiveKind::ReduceScatter, true),
        ("path", CollectiveKind::Broadcast, false),
    ]) {
        let expression = if expression == "path" { "mesh:1x4" } else { expression };
        let topology = topology(expression);
        let graph = graph(&topology, kind, None, Algorithm::Auto);
        let plan = lowered(&topology, &graph, PROFILE, in_place);
        try_changes(&format!("{expression} {kind}"), number, &plan, graph.collective, 32, &mut counts);
    }
    counts.check(3_000);
}

#[test]
fn no_change_to_what_switches_do_is_accepted() {
    let mut counts = Counts::default();
    for (number, (expression, kind, in_place)) in (100_u64..).zip([
        ("dgx-h100:boxes=1,gpus=4", CollectiveKind::Allgather, false),
        ("dgx-h100:boxes=1,gpus=4", CollectiveKind::Allgather, true),
        ("dgx-h100:boxes=1,gpus=3", CollectiveKind::Broadcast, false),
        ("dgx-h100:boxes=1,gpus=4", CollectiveKind::Allreduce, true),
        ("dgx-h100:boxes=1,gpus=4", CollectiveKind::Allreduce, false),
        ("dgx-h100:boxes=2,gpus=3", CollectiveKind::Allreduce, true),
        ("dgx-h100:boxes=2,gpus=3", CollectiveKind::Allgather, false),
    ]) {
        let topology = capable(expression, true);
        let graph = graph(&topology, kind, None, Algorithm::Auto);
        // Messages so short that nothing is done in pieces: there is less to run.
        let (name, bytes_max, boxes) = ("test".to_owned(), 1 << 16, boxes(&topology));
        let switches = switch_domains(&topology, &boxes);
        let options = ExecutionLowerOptions { in_place, bytes_max, profile: PROFILE, name, boxes, switches };
        let plan = lower_execution_plan(&graph, &options, &|| false).unwrap();
        try_changes(&format!("{expression} {kind}"), number, &plan, graph.collective, 32, &mut counts);
    }
    counts.check(3_000);
}

#[test]
fn no_change_to_what_is_repeated_is_accepted() {
    let mut counts = Counts::default();
    for (number, (expression, kind)) in (200_u64..).zip([
        ("ring:3", CollectiveKind::Allgather),
        ("ring:2", CollectiveKind::Allreduce),
        ("complete:3", CollectiveKind::Allreduce),
        ("dgx-a100:boxes=2,gpus=1", CollectiveKind::Allgather),
    ]) {
        // Up to five repetitions, the last of them short.
        const CHUNK_BYTES_MAX: u64 = 144;
        let plan = repeated(expression, kind, 32);
        let bytes_max = CHUNK_BYTES_MAX * u64::from(plan.ranks[0].output_chunks);
        let collective = Collective::new(kind, None, u32::try_from(plan.ranks.len()).unwrap()).unwrap();
        let plan = ExecutionPlan { bytes_max, ..plan };
        try_changes(&format!("repeated {expression} {kind}"), number, &plan, collective, 144, &mut counts);
    }
    counts.check(2_000);
}
