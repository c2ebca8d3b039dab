//! Exchanges in stages: the rule is judged without trees, and the trees that it amounts to are judged as all others.

use std::collections::BTreeMap;

use canopy_schedule::{
    Action, BoxGrid, BoxTree, CheckError, Collective, CollectiveKind, Exchange, Inside, LinkLoads, Piece, PieceFault,
    Pieces, Schedule, SeatError, Seats, Shape, Shares, Stages, StagesError, TreeFault, Verdict, check,
    check_stages_until, compile,
};
use canopy_topology::{Capacity, Latency, LinkIndex, Topology, TopologyDraft, TopologyLimits};

use crate::forests::Random;

/// Boxes of so many places on a switch each, and a network between them.
pub(crate) struct Boxes {
    pub(crate) boxes: u32,
    pub(crate) places: u32,
    pub(crate) fabric: Fabric,
    /// Seats without a rank.
    pub(crate) empty: Vec<u32>,
}

#[derive(Clone, Copy)]
pub(crate) enum Fabric {
    Hub,
    Rails,
    /// So many boxes at each leaf, and so many spines.
    Leaves(u32, u32),
    /// No switches in boxes, but a line through their places, and a hub between boxes.
    Lines,
}

/// Boxes, places, what joins them, digits, and empty seats.
pub(crate) type BoxShape = (u32, u32, Fabric, &'static [u32], &'static [u32]);

fn rate(bytes: u64) -> Capacity {
    Capacity::from_bytes_per_sec(bytes).unwrap()
}

pub(crate) fn network(of: &Boxes) -> Topology {
    let mut draft = TopologyDraft::default();
    let name = |seat: u32| format!("r{seat:04}");
    let live: Vec<u32> = (0..of.boxes * of.places).filter(|seat| !of.empty.contains(seat)).collect();
    live.iter().for_each(|&seat| draft.add_compute(name(seat)));
    let mut pairs: Vec<(String, String, u64)> = Vec::new();
    for &seat in &live {
        let (of_box, place) = (seat / of.places, seat % of.places);
        match of.fabric {
            Fabric::Lines => {
                let next = (seat + 1..(of_box + 1) * of.places).find(|next| live.contains(next));
                pairs.extend(next.map(|next| (name(seat), name(next), 900)));
            }
            _ => pairs.push((name(seat), format!("box{of_box}"), 900)),
        }
        let outer = match of.fabric {
            Fabric::Hub | Fabric::Lines => "hub".to_owned(),
            Fabric::Rails => format!("rail{place}"),
            Fabric::Leaves(boxes, _) => format!("leaf{}", of_box / boxes),
        };
        pairs.push((name(seat), outer, 100));
    }
    if let Fabric::Leaves(boxes, spines) = of.fabric {
        let leaves = of.boxes.div_ceil(boxes);
        let all = (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| (leaf, spine)));
        pairs.extend(all.map(|(leaf, spine)| (format!("leaf{leaf}"), format!("spine{spine}"), 200)));
    }
    let switches: std::collections::BTreeSet<&String> = pairs
        .iter()
        .flat_map(|(from, to, _)| [from, to])
        .filter(|node| !node.starts_with('r') || node.starts_with("rail"))
        .collect();
    switches.into_iter().for_each(|switch| draft.add_switch(switch.clone()));
    for (one, other, bytes) in &pairs {
        draft.add_link(one, other, rate(*bytes), Latency::default());
        draft.add_link(other, one, rate(*bytes), Latency::default());
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

pub(crate) fn stages(of: &Boxes, digits: &[u32], chunks_per_share: u64, actions: &[Action]) -> Stages {
    let inside = match of.fabric {
        Fabric::Lines => Inside::Trees(lines(of.places)),
        _ => Inside::Star,
    };
    let seats = Seats::InOrder { empty: of.empty.clone() };
    let grid = BoxGrid { places: of.places, digits: digits.to_vec(), seats };
    Stages {
        chunks_per_share,
        actions: actions.to_vec(),
        grid,
        inside: vec![inside],
        classes: BTreeMap::new(),
        inside_first: Vec::new(),
        exceptions: BTreeMap::new(),
    }
}

/// From each place along the line both ways, twice: first one way, then the other first.
fn lines(places: u32) -> Vec<BoxTree> {
    let up = |root: u32| (root..places - 1).map(|at| (at, at + 1)).collect::<Vec<_>>();
    let down = |root: u32| (1..=root).rev().map(|at| (at, at - 1)).collect::<Vec<_>>();
    let tree = |root, multiplicity, hops| BoxTree { root, multiplicity, hops };
    (0..places)
        .flat_map(|root| {
            [tree(root, 1, [up(root), down(root)].concat()), tree(root, 2, [down(root), up(root)].concat())]
        })
        .collect()
}

pub(crate) const PHASES: [(CollectiveKind, &[Action]); 3] = [
    (CollectiveKind::Allgather, &[Action::Copy]),
    (CollectiveKind::ReduceScatter, &[Action::Reduce]),
    (CollectiveKind::Allreduce, &[Action::Reduce, Action::Copy]),
];

fn collective(topology: &Topology, kind: CollectiveKind) -> Collective {
    Collective::new(kind, None, topology.rank_count()).unwrap()
}

pub(crate) fn judge(topology: &Topology, kind: CollectiveKind, stages: &Stages) -> Result<Verdict, CheckError> {
    check_stages_until(topology, collective(topology, kind), &Shares::Equal, stages, &|| false)
}

/// The trees, judged one by one by the checker of all other schedules: its verdict, and the chunks on each link.
pub(crate) fn by_trees(topology: &Topology, kind: CollectiveKind, stages: &Stages) -> Option<(Verdict, Vec<u128>)> {
    let shape = Shape::Forest(stages.trees(topology).ok()?);
    let schedule = Schedule {
        collective: collective(topology, kind),
        algorithm: "stages".to_owned(),
        shares: Shares::Equal,
        shape,
    };
    let graph = compile(topology, &schedule).ok()?;
    let verdict = check(topology, &graph).ok()?;
    let loads = LinkLoads::of(topology, &graph).unwrap();
    Some((verdict, chunks(topology, &loads)))
}

fn chunks(topology: &Topology, loads: &LinkLoads) -> Vec<u128> {
    (0..u32::try_from(topology.links().len()).unwrap()).map(|link| loads.chunks(LinkIndex::new(link))).collect()
}

pub(crate) fn agree(topology: &Topology, kind: CollectiveKind, stages: &Stages) {
    let verdict = judge(topology, kind, stages).unwrap();
    let (all, loads) = by_trees(topology, kind, stages).unwrap();
    let own = LinkLoads::of_stages(topology, collective(topology, kind), stages).unwrap();
    assert_eq!(chunks(topology, &own), loads);
    assert_eq!((&verdict.algbw, verdict.busiest_link), (&all.algbw, all.busiest_link));
    let is_deepest = match stages.inside[0] {
        Inside::Star if stages.inside_first.is_empty() => verdict.depth_max == all.depth_max,
        _ => verdict.depth_max >= all.depth_max,
    };
    assert!(is_deepest && verdict.tree_count == all.tree_count, "{verdict:?} {all:?}");
    assert!(verdict.links_max >= all.links_max, "{} {}", verdict.links_max, all.links_max);
}

#[test]
fn every_link_carries_what_the_trees_carry() {
    let shapes: [(u32, u32, Fabric, &[u32]); 9] = [
        (4, 2, Fabric::Hub, &[4]),
        (6, 4, Fabric::Hub, &[2, 3]),
        (6, 4, Fabric::Rails, &[3, 2]),
        (8, 3, Fabric::Rails, &[2, 2, 2]),
        (8, 4, Fabric::Leaves(2, 4), &[2, 4]),
        (8, 4, Fabric::Leaves(4, 2), &[4, 2]),
        (4, 3, Fabric::Lines, &[2, 2]),
        (5, 4, Fabric::Lines, &[1, 5]),
        (1, 4, Fabric::Hub, &[1]),
    ];
    for (boxes, places, fabric, digits) in shapes {
        let of = Boxes { boxes, places, fabric, empty: Vec::new() };
        let topology = network(&of);
        for chunks_per_share in [1, 2, 3] {
            for (kind, actions) in PHASES {
                agree(&topology, kind, &stages(&of, digits, chunks_per_share, actions));
            }
        }
    }
}

/// By stage, how much goes in the box first: one chunk, something, as much as there is, or that in the last stage alone.
pub(crate) fn amounts(stages: &Stages) -> Vec<Vec<u64>> {
    let grid = &stages.grid;
    let run = |stage| u64::from(grid.unit(stage) * grid.places) * stages.chunks_per_share;
    let runs: Vec<u64> = (0..grid.digits.len()).map(run).collect();
    let mut last = vec![0; runs.len()];
    last[runs.len() - 1] = runs[runs.len() - 1].div_ceil(2);
    vec![vec![1], runs.iter().map(|run| run * 3 / 8).collect(), runs, last]
}

#[test]
fn every_link_carries_what_the_trees_carry_where_part_goes_in_the_box_first() {
    let shapes: [BoxShape; 9] = [
        (4, 2, Fabric::Hub, &[4], &[]),
        (6, 4, Fabric::Rails, &[3, 2], &[]),
        (8, 3, Fabric::Rails, &[2, 2, 2], &[]),
        (8, 4, Fabric::Leaves(2, 4), &[2, 4], &[]),
        (8, 4, Fabric::Leaves(4, 2), &[4, 2], &[]),
        (4, 3, Fabric::Lines, &[2, 2], &[]),
        (3, 1, Fabric::Hub, &[3], &[]),
        (6, 4, Fabric::Rails, &[3, 2], &[3, 8, 21]),
        (6, 4, Fabric::Hub, &[2, 3], &[3, 7, 11, 15, 19, 23]),
    ];
    for (boxes, places, fabric, digits, empty) in shapes {
        let of = Boxes { boxes, places, fabric, empty: empty.to_vec() };
        let topology = network(&of);
        for (chunks_per_share, (kind, actions)) in (1..4).flat_map(|chunks| PHASES.map(|phases| (chunks, phases))) {
            let mut stages = stages(&of, digits, chunks_per_share, actions);
            for inside_first in amounts(&stages) {
                stages.inside_first = inside_first;
                agree(&topology, kind, &stages);
            }
        }
    }
}

/// The design: NICs carry (B − 1)(1 + (P − 1)λ) shares, and links in the box (P − 1)(λ + (1 − λ)B).
#[test]
fn what_goes_in_the_box_first_moves_load_from_the_box_to_nics() {
    for (digits, inside_first) in [(&[16][..], &[12_u64][..]), (&[4, 4], &[12, 48]), (&[2, 8], &[12, 24])] {
        let of = Boxes { boxes: 16, places: 4, fabric: Fabric::Rails, empty: Vec::new() };
        let topology = network(&of);
        let mut exchange = stages(&of, digits, 8, &[Action::Copy]);
        exchange.inside_first = inside_first.to_vec();
        let loads =
            LinkLoads::of_stages(&topology, collective(&topology, CollectiveKind::Allgather), &exchange).unwrap();
        for (link, load) in topology.links().iter().zip(chunks(&topology, &loads)) {
            let expected = if link.capacity.bytes_per_sec() == 100 { 15 * (8 + 3 * 3) } else { 3 * (3 + 5 * 16) };
            assert_eq!(load, expected, "{digits:?}");
        }
    }
}

/// What the paper on forests proves of boxes on one fabric: a box gets every foreign share once over its NICs.
#[test]
fn the_number_of_stages_costs_no_rate() {
    let of = Boxes { boxes: 24, places: 4, fabric: Fabric::Rails, empty: Vec::new() };
    let topology = network(&of);
    let rates: Vec<_> = [&[24][..], &[4, 6], &[6, 4], &[2, 3, 4], &[2, 2, 2, 3]]
        .into_iter()
        .map(|digits| {
            judge(&topology, CollectiveKind::Allgather, &stages(&of, digits, 1, &[Action::Copy])).unwrap().algbw
        })
        .collect();
    // 96 shares, 23 over each NIC of 100 bytes per second.
    assert!(rates.iter().all(|algbw| *algbw == canopy_topology::Rate::new(96_u32 * 100, 23_u32).unwrap()), "{rates:?}");
}

#[test]
fn boxes_with_fewer_ranks_are_served_by_the_places_that_both_have() {
    for empty in [vec![3], vec![0, 7, 13], vec![4, 5, 22]] {
        for (fabric, digits) in [(Fabric::Hub, [2, 3]), (Fabric::Rails, [3, 2])] {
            let of = Boxes { boxes: 6, places: 4, fabric, empty: empty.clone() };
            let topology = network(&of);
            for (kind, actions) in PHASES {
                agree(&topology, kind, &stages(&of, &digits, 2, actions));
            }
        }
    }
}

/// A box whose machine is gone: the others of its row send what it would have sent.
pub(crate) fn other_run() -> (Topology, Stages) {
    let of = Boxes { boxes: 6, places: 2, fabric: Fabric::Rails, empty: vec![6, 7] };
    let mut gone = stages(&of, &[3, 2], 1, &[Action::Copy]);
    let piece = |sender, place, chunk_count| Piece { sender, leaves: place, enters: place, chunk_count };
    gone.exceptions.insert((3, 0), vec![piece(4, 0, 1), piece(4, 1, 1), piece(5, 0, 1), piece(5, 1, 1)]);
    (network(&of), gone)
}

#[test]
fn other_boxes_of_the_run_send_for_one_that_is_gone() {
    let (topology, mut gone) = other_run();
    for (kind, actions) in PHASES {
        agree(&topology, kind, &Stages { actions: actions.to_vec(), ..gone.clone() });
    }
    // Box 3 would bring the run of boxes 3 to 5 to box 0; 4 shares are left in it.
    gone.exceptions.clear();
    let refused = judge(&topology, CollectiveKind::Allgather, &gone).unwrap_err();
    assert_eq!(refused, StagesError::NoPieces { from: 3, to: 0 }.into());
}

/// Alters a schedule at one place.
pub(crate) fn alter(stages: &mut Stages, random: &mut Random) {
    let boxes = stages.grid.box_count().unwrap();
    let below = |random: &mut Random, limit: u32| u32::try_from(random.below(limit as usize)).unwrap();
    match random.below(10) {
        9 => match random.below(3) {
            0 => stages.inside_first.push(random.below(4) as u64),
            1 => stages.inside_first = vec![random.below(12) as u64; 1 + random.below(2)],
            _ => stages.inside_first.iter_mut().for_each(|chunks| *chunks = random.below(20) as u64),
        },
        0 => stages.chunks_per_share = random.below(4) as u64,
        1 => stages.grid.digits.swap(0, 1),
        2 => {
            let digit = random.below(stages.grid.digits.len());
            stages.grid.digits[digit] = 1 + below(random, 4);
        }
        3 => stages.grid.places = 1 + below(random, 5),
        4 => drop(stages.classes.insert(below(random, boxes + 1), below(random, 3))),
        5 => {
            if let Seats::InOrder { empty } = &mut stages.grid.seats {
                empty.push(below(random, 30));
            }
        }
        6 => {
            let class = random.below(stages.inside.len());
            if let Inside::Trees(trees) = &mut stages.inside[class] {
                let tree = random.below(trees.len());
                let hop = random.below(trees[tree].hops.len());
                match random.below(4) {
                    0 => trees[tree].root = below(random, 4),
                    1 => trees[tree].multiplicity = random.below(3) as u64,
                    2 => trees[tree].hops[hop].0 = below(random, 4),
                    _ => trees[tree].hops[hop].1 = below(random, 4),
                }
            }
        }
        _ => {
            let (from, to) = (below(random, boxes), below(random, boxes));
            let key = match random.below(2) {
                0 => stages.exceptions.keys().nth(random.below(stages.exceptions.len().max(1))).copied(),
                _ => None,
            };
            let (from, to) = key.unwrap_or((from, to));
            if let Some(pieces) = stages.exceptions.get_mut(&(from, to)) {
                let piece = random.below(pieces.len());
                match random.below(5) {
                    0 => pieces[piece].sender = below(random, boxes + 1),
                    1 => pieces[piece].leaves = below(random, 4),
                    2 => pieces[piece].enters = below(random, 4),
                    3 => pieces[piece].chunk_count = random.below(5) as u64,
                    _ => pieces.swap(0, piece),
                }
            }
        }
    }
}

/// States pieces for some pairs, as the rule has them but divided once more.
fn with_exceptions(of: &Boxes, stages: &mut Stages, ranks: u32, random: &mut Random) {
    let seating = stages.grid.seating(ranks).unwrap();
    let plain = stages.clone();
    let (rules, mut pieces) = (Pieces::new(&plain, &seating), Vec::new());
    for to in 0..of.boxes {
        for exchange in Exchange::into_box(&plain.grid, to).filter(|_| random.below(4) == 0) {
            rules.put(exchange, &mut pieces);
            if let Some(last) = pieces.last_mut().filter(|last| last.chunk_count > 1) {
                last.chunk_count -= 1;
                let piece = Piece { chunk_count: 1, ..*last };
                pieces.insert(0, piece);
                stages.exceptions.insert((exchange.from, to), pieces.clone());
            }
        }
    }
}

#[test]
fn what_is_accepted_of_altered_schedules_is_right() {
    let mut random = Random(43);
    let rounds = std::env::var("CANOPY_ALTERED").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..rounds {
        let fabric = [Fabric::Hub, Fabric::Rails, Fabric::Leaves(2, 2), Fabric::Lines][round % 4];
        let empty = if random.below(3) == 0 { vec![u32::try_from(random.below(18)).unwrap()] } else { Vec::new() };
        let of = Boxes { boxes: 6, places: 3, fabric, empty };
        let topology = network(&of);
        let (kind, actions) = PHASES[random.below(3)];
        let mut altered = stages(&of, &[2, 3], 1 + random.below(2) as u64, actions);
        if matches!(fabric, Fabric::Lines) && !of.empty.is_empty() {
            altered.inside = vec![Inside::Star];
        }
        if random.below(2) == 0 {
            altered.inside_first = amounts(&altered).swap_remove(random.below(4));
        }
        with_exceptions(&of, &mut altered, topology.rank_count(), &mut random);
        (0..1 + random.below(2)).for_each(|_| alter(&mut altered, &mut random));
        match judge(&topology, kind, &altered) {
            Ok(verdict) => {
                let (all, _) = by_trees(&topology, kind, &altered).unwrap_or_else(|| panic!("accepted: {altered:?}"));
                assert_eq!(verdict.algbw, all.algbw, "{altered:?}");
                accepted += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(accepted > rounds / 20 && refused > rounds / 5, "{accepted} {refused}");
}

#[test]
fn refusals_say_what_is_wrong() {
    let of = Boxes { boxes: 4, places: 2, fabric: Fabric::Rails, empty: Vec::new() };
    let topology = network(&of);
    let sound = || stages(&of, &[2, 2], 1, &[Action::Copy]);
    let refused = |alter: &dyn Fn(&mut Stages)| {
        let mut stages = sound();
        alter(&mut stages);
        judge(&topology, CollectiveKind::Allgather, &stages).unwrap_err()
    };
    let piece = |sender, leaves, enters, chunk_count| Piece { sender, leaves, enters, chunk_count };
    let of_pair = |from, to, fault| CheckError::from(StagesError::Piece { from, to, fault });
    let pieces = |pieces: Vec<Piece>| refused(&|stages| drop(stages.exceptions.insert((1, 0), pieces.clone())));
    assert_eq!(pieces(vec![piece(1, 0, 0, 1)]), of_pair(1, 0, PieceFault::Chunks { found: 1, expected: 2 }));
    assert_eq!(pieces(vec![piece(2, 0, 0, 2)]), of_pair(1, 0, PieceFault::Sender { sender: 2 }));
    assert_eq!(pieces(vec![piece(1, 2, 0, 2)]), of_pair(1, 0, PieceFault::NoRank { of_box: 1, place: 2 }));
    assert_eq!(pieces(vec![piece(1, 0, 0, 0)]), of_pair(1, 0, PieceFault::Empty));
    // Place 0 has no way to place 1 of another box.
    assert_eq!(pieces(vec![piece(1, 0, 1, 2)]), StagesError::NoWay { from: 2, to: 1 }.into());
    let pair = refused(&|stages| drop(stages.exceptions.insert((3, 0), Vec::new())));
    assert_eq!(pair, StagesError::Pair { from: 3, to: 0, boxes: 4 }.into());
    let class = refused(&|stages| {
        stages.classes.insert(1, 1);
    });
    assert_eq!(class, StagesError::Class { of_box: 1, class: 1, boxes: 4, classes: 1 }.into());
    let tree = |trees: Vec<BoxTree>| refused(&|stages| stages.inside = vec![Inside::Trees(trees.clone())]);
    let one = |root, multiplicity, hops: &[(u32, u32)]| BoxTree { root, multiplicity, hops: hops.to_vec() };
    let of_tree = |fault| CheckError::from(StagesError::Tree { class: 0, tree: 0, of_box: 0, fault });
    assert_eq!(tree(vec![one(0, 0, &[(0, 1)])]), of_tree(TreeFault::NoChunks));
    assert_eq!(tree(vec![one(0, 1, &[(1, 0)])]), of_tree(TreeFault::Early { place: 1 }));
    assert_eq!(tree(vec![one(0, 1, &[(0, 1), (0, 1)])]), of_tree(TreeFault::Twice { place: 1 }));
    assert_eq!(tree(vec![one(0, 1, &[])]), of_tree(TreeFault::Missing { found: 1, expected: 2 }));
    assert_eq!(tree(vec![one(7, 1, &[])]), of_tree(TreeFault::NoRank { place: 7 }));
    let half = tree(vec![one(0, 1, &[(0, 1)])]);
    assert_eq!(half, StagesError::NoTree { class: 0, place: 1, of_box: 0 }.into());
    let twice = tree(vec![one(0, u64::MAX, &[(0, 1)]), one(0, 1, &[(0, 1)]), one(1, 1, &[(1, 0)])]);
    assert_eq!(twice, of_tree(TreeFault::TooManyChunks));
    let first = |inside_first: &[u64]| refused(&|stages| stages.inside_first = inside_first.to_vec());
    assert_eq!(first(&[3]), StagesError::InsideFirst { stage: 0, chunks: 3, max: 2 }.into());
    assert_eq!(first(&[2, 5]), StagesError::InsideFirst { stage: 1, chunks: 5, max: 4 }.into());
    assert_eq!(first(&[0, 0, 1]), StagesError::InsideFirst { stage: 2, chunks: 1, max: 0 }.into());
    let none = refused(&|stages| stages.chunks_per_share = 0);
    assert!(none.to_string().contains("0 chunks for each of 8 shares"), "{none}");
    assert!(matches!(refused(&|stages| stages.chunks_per_share = u64::MAX), CheckError::Stages(_)));
    let huge = refused(&|stages| stages.grid.digits = vec![u32::MAX, u32::MAX]);
    assert_eq!(huge, StagesError::from(SeatError::TooManySeats { max: 8 * 64 + 1024 }).into());
    let many = refused(&|stages| stages.grid.digits = vec![10, 10]);
    assert!(matches!(many, CheckError::Stages(StagesError::Seats(SeatError::RankCount { .. }))), "{many}");
    let listed = |seats: &[u32]| refused(&|stages| stages.grid.seats = Seats::Listed(seats.to_vec()));
    let taken = listed(&[0, 1, 2, 3, 4, 5, 6, 6]);
    assert_eq!(taken, StagesError::from(SeatError::Taken { seat: 6, first: 6, second: 7 }).into());
    assert!(listed(&[0, 1, 2, 3, 4, 5, 6, 8]).to_string().contains("seat 8 of rank 7 does not exist"));
    let phases = judge(&topology, CollectiveKind::Allreduce, &sound()).unwrap_err();
    assert!(phases.to_string().contains("phases copy, but allreduce takes reduce, copy"), "{phases}");
}

/// Boxes in another order, and places the other way round, for all alike.
pub(crate) fn shuffled_seats() -> (Topology, Stages) {
    let of = Boxes { boxes: 4, places: 2, fabric: Fabric::Rails, empty: Vec::new() };
    let mut shuffled = stages(&of, &[2, 2], 1, &[Action::Copy]);
    shuffled.grid.seats = Seats::Listed(vec![5, 4, 1, 0, 7, 6, 3, 2]);
    (network(&of), shuffled)
}

#[test]
fn ranks_may_sit_anywhere() {
    let (topology, shuffled) = shuffled_seats();
    agree(&topology, CollectiveKind::Allgather, &shuffled);
    let grid = BoxGrid { seats: Seats::InOrder { empty: Vec::new() }, ..shuffled.grid.clone() };
    let straight = judge(&topology, CollectiveKind::Allgather, &Stages { grid, ..shuffled.clone() }).unwrap();
    assert_eq!(judge(&topology, CollectiveKind::Allgather, &shuffled).unwrap().algbw, straight.algbw);
}
