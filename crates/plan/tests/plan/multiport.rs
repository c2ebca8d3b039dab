//! Collectives that use every port at once, as files of every runtime: right, in few steps of few thread blocks.

use canopy_plan::{Instances, LowerError, Operation, Profile, Program, ProgramFigures};
use canopy_schedule::CollectiveKind::{self, AllToAll, Allgather, Allreduce, Broadcast, ReduceScatter, Scatter};
use canopy_synth::Algorithm;
use graphs::{lowered_for, lowered_times, planned};
use judge::judge;

use crate::support::graphs;
use crate::support::judge;

const ON_KAUTZ: [Algorithm; 3] = [Algorithm::Kautz, Algorithm::KautzM, Algorithm::Multitree];
const ON_GRIDS: [Algorithm; 3] = [Algorithm::Dfc2, Algorithm::Dfc2Do, Algorithm::Multitree];

/// Every collective in every profile that has a name for it, in place and out of place: read back, proved and run. On one channel,
/// with a thread block at most for each link of a rank and one for what it copies to itself, and so many steps of a block at most.
#[track_caller]
fn check(expression: &str, algorithm: Algorithm, links: u64, steps: u64) {
    let mut most = 0;
    for kind in CollectiveKind::ALL {
        let graph = planned(expression, kind, algorithm);
        for profile in Profile::ALL {
            for in_place in [false, true] {
                let name = format!("{kind} by {algorithm} on {expression} for {profile}, in place {in_place}");
                let program = match lowered_times(profile, &graph, in_place, Instances::ONE) {
                    Ok(lowered) => lowered.program,
                    Err(LowerError::Unsupported { .. }) => {
                        assert_eq!(profile.spell(kind), None, "{name}");
                        continue;
                    }
                    Err(error) => panic!("{name}: {error}"),
                };
                judge(&program, profile);
                let figures = ProgramFigures::of(&program, profile);
                assert!(figures.limited().iter().all(|figure| figure.need <= figure.limit), "{name}: {figures:?}");
                assert_eq!(figures.channels.need, 1, "{name}");
                assert!(figures.blocks.need <= links + 1, "{name}: {} thread blocks", figures.blocks.need);
                most = most.max(figures.steps.need);
            }
        }
    }
    assert!(most <= steps, "{algorithm} on {expression}: blocks of {most} steps");
}

#[test]
fn kautz_networks_of_degree_2() {
    for (algorithm, steps) in ON_KAUTZ.into_iter().zip([11, 12, 12]) {
        check("kautz:d=2,n=2", algorithm, 4, steps);
    }
}

#[test]
fn kautz_networks_of_degree_3() {
    for (algorithm, steps) in ON_KAUTZ.into_iter().zip([15, 16, 16]) {
        check("kautz:d=3,n=2", algorithm, 6, steps);
    }
}

#[test]
fn grids_of_four_by_four() {
    for (algorithm, steps) in ON_GRIDS.into_iter().zip([18, 9, 12]) {
        check("dfc2:4x4", algorithm, 12, steps);
    }
}

/// Chunks of all steps in which a rank sends another, in their order, where receiving and sending are steps of their own.
#[track_caller]
fn sent(program: &Program, from: u32, to: u32) -> Vec<u32> {
    let blocks = program.ranks[from as usize].thread_blocks.iter().filter(|block| block.send == Some(to));
    let steps = blocks.flat_map(|block| &block.steps).filter(|step| step.operation == Operation::Send);
    steps.map(|step| step.chunk_count).collect()
}

/// What a link carries in a step is one message. It is one instruction where its chunks lie side by side at both ends, else one
/// for each run of chunks that do, one right after the other on the same queue.
///
/// Ranks of K(3, 2) are 01 02 03 10 12 13 20 21 23 30 31 32, from 0 to 11: what is for all ranks beyond a link is for neighbours, but what
/// came over the links into a rank is of ranks that lie apart.
#[test]
fn messages_are_one_instruction_where_their_chunks_lie_together() {
    let counts = |expression: &str, kind, algorithm, (from, to)| {
        let in_place = kind != AllToAll;
        let program = lowered_for(Profile::RcclMsccl, &planned(expression, kind, algorithm), in_place);
        sent(&program, from, to)
    };
    let kautz = |kind, link| counts("kautz:d=3,n=2", kind, Algorithm::Kautz, link);
    // From 01 to 12: its own; then those of 10, 20 and 30.
    assert_eq!(kautz(Allgather, (0, 4)), [1, 1, 1, 1]);
    // Sums for 20, 21 and 23; then the one for 12.
    assert_eq!(kautz(ReduceScatter, (0, 4)), [3, 1]);
    assert_eq!(kautz(Allreduce, (0, 4)), [3, 1, 1, 1, 1, 1]);
    // The block for 12, which stays there, and those for 20, 21 and 23; then those of 10, 20 and 30 for 12.
    assert_eq!(kautz(AllToAll, (0, 4)), [1, 3, 1, 1, 1]);
    // To 10: for 02 and 03, which are beyond it, and for itself; then those of 20 and 30.
    assert_eq!(kautz(AllToAll, (0, 3)), [2, 1, 1, 1]);
    assert_eq!(kautz(Scatter, (0, 4)), [1, 3]);
    assert_eq!(kautz(Broadcast, (0, 4)), [1]);

    // Along a row of ranks 0 to 3, then down a column of 0, 4, 8 and 12 with all shares of the row.
    let grid = |kind, link| counts("dfc2:4x4", kind, Algorithm::Dfc2Do, link);
    assert_eq!(grid(Allgather, (0, 1)), [1]);
    assert_eq!(grid(Allgather, (0, 4)), [4]);
    // The sum that stays is kept elsewhere than those that go on.
    assert_eq!(grid(ReduceScatter, (0, 4)), [1, 3]);
    assert_eq!(grid(ReduceScatter, (0, 1)), [1]);
    assert_eq!(grid(Allreduce, (0, 4)), [4, 4]);
    // Down a column with the blocks for all ranks of the row there, one of which stays; those of a column for one rank lie apart.
    assert_eq!(grid(AllToAll, (0, 4)), [1, 3]);
    assert_eq!(grid(AllToAll, (0, 1)), [1, 1, 1, 1]);
}
