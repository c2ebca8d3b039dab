//! Scripts of real plans, run on memory whose regions do not touch, give what the collectives promise.

use std::collections::BTreeMap;

use canopy_plan::oneccl::{parse, prove};
use canopy_schedule::CollectiveKind;

use super::*;

/// Plans that canopy made for rings of 5 and 8 ranks, apart and in place, and one for a pair that was written by hand.
pub(crate) const PLANS: [(&str, &str); 16] = [
    ("allgather", include_str!("../../tests/plans/allgather.xml")),
    ("allgather in place", include_str!("../../tests/plans/allgather-in-place.xml")),
    ("allreduce", include_str!("../../tests/plans/allreduce.xml")),
    ("allreduce apart", include_str!("../../tests/plans/allreduce-apart.xml")),
    ("alltoall", include_str!("../../tests/plans/alltoall.xml")),
    ("alltoall in place", include_str!("../../tests/plans/alltoall-in-place.xml")),
    ("broadcast", include_str!("../../tests/plans/broadcast.xml")),
    ("broadcast in place", include_str!("../../tests/plans/broadcast-in-place.xml")),
    ("gather", include_str!("../../tests/plans/gather.xml")),
    ("gather in place", include_str!("../../tests/plans/gather-in-place.xml")),
    ("reduce", include_str!("../../tests/plans/reduce.xml")),
    ("reduce in place", include_str!("../../tests/plans/reduce-in-place.xml")),
    ("reduce-scatter", include_str!("../../tests/plans/reducescatter.xml")),
    ("reduce-scatter of 8", include_str!("../../tests/plans/reducescatter8.xml")),
    ("reduce-scatter in place", include_str!("../../tests/plans/reducescatter-in-place.xml")),
    ("scatter", include_str!("../../tests/plans/scatter.xml")),
];

/// The memory of a rank: regions apart from each other, so that a range over two of them fails.
struct Memory {
    script: Script,
    regions: Vec<(usize, Vec<u8>)>,
}

impl Memory {
    fn new(script: Script) -> Self {
        let region = |range: &Range<usize>| (range.start, vec![0xee; range.len()]);
        let whole = 0..script.input.end.max(script.output.end);
        let mut regions =
            if script.is_shared() { vec![region(&whole)] } else { vec![region(&script.input), region(&script.output)] };
        regions.push(region(&script.scratch));
        Self { script, regions }
    }

    fn at(&mut self, range: Range<usize>) -> &mut [u8] {
        let region =
            self.regions.iter_mut().find(|(start, bytes)| (*start..start + bytes.len()).contains(&range.start));
        let Some((start, bytes)) = region else { panic!("{range:?} is nowhere") };
        &mut bytes[range.start - *start..range.end - *start]
    }

    fn apply(&mut self, work: &Work) {
        let source = self.at(work.source.clone()).to_vec();
        let to = self.at(work.destination..work.destination + source.len());
        for (to, from) in to.iter_mut().zip(source) {
            *to = if work.is_reduction { to.wrapping_add(from) } else { from };
        }
    }
}

/// Runs all ranks, each as far as it gets, with messages in queues.
fn run(memories: &mut [Memory], parts: &[Script]) {
    let mut lines: BTreeMap<(usize, usize, u32), VecDeque<u8>> = BTreeMap::new();
    let mut next = vec![(0, false); parts.len()];
    loop {
        let before = next.clone();
        for (rank, script) in parts.iter().enumerate() {
            let (at, is_sent) = next[rank];
            match script.stages.get(at) {
                None => {}
                Some(Stage::Barrier) => {
                    let barriers = |at: usize, script: &Script| {
                        script.stages[..at].iter().filter(|stage| **stage == Stage::Barrier).count()
                    };
                    let own = barriers(at, script);
                    let all_there = before.iter().zip(parts).all(|(&(other, _), script)| {
                        let passed = barriers(other, script);
                        passed > own || (passed == own && script.stages.get(other) == Some(&Stage::Barrier))
                    });
                    next[rank] = if all_there { (at + 1, false) } else { (at, false) };
                }
                Some(Stage::Local(works)) => {
                    works.iter().for_each(|work| memories[rank].apply(work));
                    next[rank] = (at + 1, false);
                }
                Some(Stage::Exchange { receives, sends }) => {
                    if !is_sent {
                        for send in sends {
                            let line = lines.entry((rank, send.peer as usize, send.tag)).or_default();
                            for range in &send.ranges {
                                line.extend(memories[rank].at(range.clone()).iter());
                            }
                        }
                        next[rank] = (at, true);
                    }
                    let mut wanted: BTreeMap<(usize, u32), usize> = BTreeMap::new();
                    for receive in receives {
                        let bytes: usize = receive.ranges.iter().map(Range::len).sum();
                        *wanted.entry((receive.peer as usize, receive.tag)).or_default() += bytes;
                    }
                    let has =
                        |(peer, tag), bytes| lines.get(&(peer, rank, tag)).is_some_and(|line| line.len() >= bytes);
                    if wanted.iter().all(|(&(peer, tag), &bytes)| has((peer, tag), bytes)) {
                        for receive in receives {
                            let line = lines.get_mut(&(receive.peer as usize, rank, receive.tag)).unwrap();
                            for range in &receive.ranges {
                                memories[rank]
                                    .at(range.clone())
                                    .iter_mut()
                                    .for_each(|to| *to = line.pop_front().unwrap());
                            }
                        }
                        next[rank] = (at + 1, false);
                    }
                }
            }
        }
        if before == next {
            break;
        }
    }
    assert!(next.iter().zip(parts).all(|(&(at, _), script)| at == script.stages.len()), "all come to their end");
    assert!(lines.values().all(VecDeque::is_empty), "every byte that is sent is received");
}

fn input(rank: usize, place: usize) -> u8 {
    u8::try_from((rank * 37 + place * 11 + 5) % 251).unwrap()
}

/// What a rank's output must be, with shares of so many bytes.
fn expected(kind: CollectiveKind, root: usize, ranks: usize, share: usize, rank: usize, place: usize) -> u8 {
    let sum = |place: usize| (0..ranks).fold(0_u8, |sum, rank| sum.wrapping_add(input(rank, place)));
    match kind {
        CollectiveKind::Allgather | CollectiveKind::Gather => input(place / share, place % share),
        CollectiveKind::AllToAll => input(place / share, rank * share + place % share),
        CollectiveKind::Allreduce | CollectiveKind::Reduce => sum(place),
        CollectiveKind::ReduceScatter => sum(rank * share + place),
        CollectiveKind::Broadcast => input(root, place),
        CollectiveKind::Scatter => input(root, rank * share + place),
    }
}

#[test]
fn scripts_give_what_collectives_promise() {
    for (name, text) in PLANS {
        let mut program = parse(text).unwrap();
        assert!(prove(&program).problems.is_empty(), "{name}");
        let kind = program.collective.kind();
        let root = program.collective.root().map_or(0, canopy_topology::Rank::index);
        let ranks = program.rank_count as usize;
        for instances in [1, 3] {
            program.instances = instances;
            let parts: Vec<Part> = (0..program.rank_count).map(|rank| Part::new(&program, rank).unwrap()).collect();
            for (elements, width) in [(0, 4), (1, 1), (2, 8), (3, 1), (7, 2), (13, 1), (101, 4), (128, 16)] {
                let scripts = || parts.iter().map(|part| part.script(elements, width).unwrap());
                let mut memories: Vec<Memory> = scripts().map(Memory::new).collect();
                for (rank, memory) in memories.iter_mut().enumerate() {
                    let range = memory.script.input.clone();
                    if !range.is_empty() {
                        memory.at(range).iter_mut().enumerate().for_each(|(place, to)| *to = input(rank, place));
                    }
                }
                run(&mut memories, &scripts().collect::<Vec<_>>());
                let share = usize::try_from(elements).unwrap() * width;
                for (rank, memory) in memories.iter_mut().enumerate() {
                    let range = memory.script.output.clone();
                    let found = if range.is_empty() { Vec::new() } else { memory.at(range).to_vec() };
                    for (place, found) in found.into_iter().enumerate() {
                        let expected = expected(kind, root, ranks, share, rank, place);
                        assert_eq!(found, expected, "{name}: rank {rank}, byte {place} of {elements} × {width}");
                    }
                }
            }
        }
    }
}

#[test]
fn long_messages_are_cut_by_their_length_alone() {
    let scattered = Message { peer: 0, tag: 0, ranges: vec![0..5, 10..11, 20..34] };
    let row = Message { peer: 0, tag: 0, ranges: std::iter::once(100..120).collect() };
    for most in 1..25 {
        let lengths = |message: &Message| -> Vec<usize> {
            message.parts(most).iter().map(|part| part.iter().map(Range::len).sum()).collect()
        };
        assert_eq!(lengths(&scattered), lengths(&row));
        assert!(lengths(&row).iter().all(|&length| 0 < length && length <= most));
        let bytes = |parts: Vec<Vec<Range<usize>>>| parts.into_iter().flatten().flatten().collect::<Vec<usize>>();
        assert_eq!(bytes(scattered.parts(most)), scattered.ranges.iter().cloned().flatten().collect::<Vec<_>>());
    }
}

#[test]
fn work_is_joined_within_regions_only() {
    let work = |is_reduction, source: Range<usize>, destination| Work { is_reduction, source, destination };
    let joined = |works: &[Work], borders: [usize; 4]| {
        let mut list = Vec::new();
        works.iter().for_each(|work| work.clone().append_to(&mut list, &borders));
        list
    };
    let (first, second) = (work(true, 0..4, 20), work(true, 4..8, 24));
    assert_eq!(joined(&[first.clone(), second.clone()], [0, 8, 8, 16]), [work(true, 0..8, 20)]);
    assert_eq!(joined(&[first.clone(), second.clone()], [0, 4, 4, 16]).len(), 2, "sources in two regions");
    assert_eq!(joined(&[first.clone(), second.clone()], [0, 16, 16, 24]).len(), 2, "destinations in two regions");
    assert_eq!(joined(&[first, work(false, 4..8, 24)], [0; 4]).len(), 2, "a copy is no reduction");
    let chain = [work(true, 4..8, 0), work(true, 8..12, 4)];
    assert_eq!(
        joined(&chain, [0; 4]).len(),
        2,
        "the second reads what the first does not write, but not the other way"
    );
}

#[test]
fn a_broadcast_whose_root_only_copies_needs_one_buffer() {
    for (name, text) in PLANS.iter().filter(|(name, _)| name.starts_with("broadcast")) {
        let program = parse(text).unwrap();
        let script = |rank| Part::new(&program, rank).unwrap().script(10, 1).unwrap();
        assert!(script(2).is_shared() || script(2).output_repeats_input(), "{name}");
        assert!(!script(1).output_repeats_input(), "{name}: other ranks receive theirs");
    }
    let program = parse(PLANS[3].1).unwrap();
    assert!(!Part::new(&program, 0).unwrap().script(10, 1).unwrap().output_repeats_input(), "sums are no copies");
}
