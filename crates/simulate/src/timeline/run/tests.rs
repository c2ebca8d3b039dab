use proptest::prelude::*;

use super::*;
use crate::timeline::program::{Operation, ProgramError};

const KIND: CollectiveKind = CollectiveKind::Allreduce;

fn operation(work: Work, after: &[u32]) -> Operation {
    Operation { name: String::new(), work, after: after.to_vec() }
}

fn compute(time_ps: u64, after: &[u32]) -> Operation {
    operation(Work::Compute { time_ps }, after)
}

/// A call whose size is its time.
fn call(time_ps: u64, after: &[u32]) -> Operation {
    operation(Work::Collective(Call { kind: KIND, root: None, size_bytes: time_ps }), after)
}

fn ran(operations: Vec<Operation>, order: Order, overlap: Overlap) -> Timeline {
    let program = Program::new(operations, order, overlap).unwrap();
    let times = program.calls().into_iter().map(|call| (call, call.size_bytes)).collect();
    run(&program, &times).unwrap()
}

fn ends(timeline: &Timeline) -> Vec<u64> {
    timeline.slots.iter().map(|slot| slot.end_ps).collect()
}

#[test]
fn a_collective_is_hidden_behind_what_does_not_wait_for_it() {
    let operations = || vec![compute(10, &[]), call(6, &[0]), compute(4, &[0]), compute(1, &[1, 2])];
    let found = ran(operations(), Order::Listed, Overlap::Allowed);
    assert_eq!((ends(&found), found.time_ps, found.compute_ps, found.exposed_ps()), (vec![10, 16, 14, 17], 17, 15, 2));
    let apart = ran(operations(), Order::Listed, Overlap::None);
    assert_eq!((apart.time_ps, apart.compute_ps, apart.exposed_ps()), (21, 15, 6));
    assert_eq!(apart.traffic[&KIND], Traffic { calls: 1, time_ps: 6, exposed_ps: 6 });
}

/// The second collective could start first, but is listed behind one that cannot yet.
#[test]
fn the_order_decides_which_collective_waits() {
    let operations = || vec![compute(10, &[]), compute(10, &[0]), call(5, &[1]), call(7, &[0])];
    assert_eq!(ends(&ran(operations(), Order::Listed, Overlap::Allowed)), [10, 20, 25, 32]);
    assert_eq!(ends(&ran(operations(), Order::Ready, Overlap::Allowed)), [10, 20, 25, 17]);
}

#[test]
fn hosts_compute_beside_accelerators_and_joins_take_no_time() {
    let host = |after: &[u32]| operation(Work::Host { time_ps: 8 }, after);
    let join = |after: &[u32]| operation(Work::Join, after);
    let found = ran(
        vec![host(&[]), compute(3, &[]), join(&[0, 1]), join(&[2]), compute(2, &[3])],
        Order::Ready,
        Overlap::Allowed,
    );
    assert_eq!((ends(&found), found.compute_ps), (vec![8, 3, 8, 8, 10], 10));
}

#[test]
fn what_cannot_run_is_refused() {
    let new = |operations| Program::new(operations, Order::Listed, Overlap::Allowed);
    assert_eq!(new(Vec::new()), Err(ProgramError::Empty));
    assert_eq!(new(vec![compute(1, &[0])]), Err(ProgramError::Order { operation: 0, before: 0 }));
    let program = new(vec![call(1, &[])]).unwrap();
    let known = program.calls()[0];
    assert_eq!(run(&program, &BTreeMap::new()), Err(RunError::Unknown { call: known }));
    let long = new(vec![compute(1 << 62, &[]), compute(1 << 62, &[])]).unwrap();
    assert_eq!(run(&long, &BTreeMap::new()), Err(RunError::TooLong));
}

/// Random programs: each operation waits for some of the earlier ones.
fn programs() -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec((0_u8..8, 0_u64..20, prop::collection::vec(any::<prop::sample::Index>(), 0..4)), 1..40)
        .prop_map(|drawn| {
            let one = |(number, (kind, time_ps, after)): (usize, (u8, u64, Vec<prop::sample::Index>))| {
                let work = match kind {
                    0 => Work::Join,
                    1 => Work::Host { time_ps },
                    2..=4 => Work::Collective(Call { kind: KIND, root: None, size_bytes: time_ps }),
                    _ => Work::Compute { time_ps },
                };
                let after = after.iter().filter(|_| number > 0);
                operation(work, &after.map(|index| u32::try_from(index.index(number)).unwrap()).collect::<Vec<_>>())
            };
            drawn.into_iter().enumerate().map(one).collect()
        })
}

fn choices() -> impl Strategy<Value = (Order, Overlap)> {
    (prop_oneof![Just(Order::Listed), Just(Order::Ready)], prop_oneof![Just(Overlap::Allowed), Just(Overlap::None)])
}

/// Ends by the recurrence: an operation starts when all that it waits for and the one before it in its queue have ended.
fn listed_ends(operations: &[Operation], overlap: Overlap) -> Vec<u64> {
    let (mut ends, mut free): (Vec<u64>, [u64; QUEUES]) = (Vec::new(), [0; QUEUES]);
    for operation in operations {
        let data = operation.after.iter().map(|&before| ends[before as usize]).max().unwrap_or(0);
        let time = match operation.work {
            Work::Compute { time_ps } | Work::Host { time_ps } => time_ps,
            Work::Collective(call) => call.size_bytes,
            Work::Join => 0,
        };
        let end = match queue_of(operation.work, overlap) {
            Some(queue) => {
                free[queue] = data.max(free[queue]) + time;
                free[queue]
            }
            None => data,
        };
        ends.push(end);
    }
    ends
}

proptest! {
    #[test]
    fn listed_operations_end_when_the_recurrence_says(operations in programs(), overlap in choices()) {
        let expected = listed_ends(&operations, overlap.1);
        prop_assert_eq!(ends(&ran(operations, Order::Listed, overlap.1)), expected);
    }

    #[test]
    fn nothing_starts_early_and_no_queue_runs_two_at_once(operations in programs(), (order, overlap) in choices()) {
        let found = ran(operations.clone(), order, overlap);
        for (operation, slot) in operations.iter().zip(&found.slots) {
            prop_assert!(operation.after.iter().all(|&before| found.slots[before as usize].end_ps <= slot.start_ps));
        }
        for queue in 0..QUEUES {
            let own = operations.iter().zip(&found.slots);
            let own = own.filter(|(operation, _)| queue_of(operation.work, overlap) == Some(queue));
            let mut own: Vec<(u64, u64)> = own.map(|(_, slot)| (slot.start_ps, slot.end_ps)).collect();
            own.sort_unstable();
            prop_assert!(own.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        }
    }

    /// There is no time at which nothing runs.
    #[test]
    fn computing_and_exposed_time_make_the_whole(operations in programs(), (order, overlap) in choices()) {
        let found = ran(operations, order, overlap);
        prop_assert_eq!(found.compute_ps + found.exposed_ps(), found.time_ps);
        prop_assert!(found.exposed_ps() <= found.network_ps());
    }
}
