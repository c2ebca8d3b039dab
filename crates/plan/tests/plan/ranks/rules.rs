//! Exchanges in stages for tests: plain ones, and any that are right.

use std::collections::BTreeMap;

use canopy_plan::RankRequest;
use canopy_schedule::{
    Action, BoxGrid, BoxTree, Collective, CollectiveKind, Exchange, Inside, Piece, Pieces, Seating, Seats, Stages,
};

pub(crate) const PHASES: [(CollectiveKind, &[Action]); 3] = [
    (CollectiveKind::Allgather, &[Action::Copy]),
    (CollectiveKind::ReduceScatter, &[Action::Reduce]),
    (CollectiveKind::Allreduce, &[Action::Reduce, Action::Copy]),
];

/// A rule and what it is for.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) stages: Stages,
    pub(crate) kind: CollectiveKind,
    pub(crate) rank_count: u32,
}

impl Rule {
    pub(crate) fn request(&self, rank: u32) -> RankRequest<'_> {
        let collective = Collective::new(self.kind, None, self.rank_count).unwrap();
        RankRequest { stages: &self.stages, collective, rank_count: self.rank_count, rank }
    }
}

/// Boxes alike that spread what enters them at once.
pub(crate) fn plain(kind: CollectiveKind, digits: &[u32], places: u32, chunks_per_share: u64) -> Rule {
    let actions = PHASES.into_iter().find(|(of, _)| *of == kind).unwrap().1.to_vec();
    let grid = BoxGrid { places, digits: digits.to_vec(), seats: Seats::InOrder { empty: Vec::new() } };
    let stages = Stages {
        chunks_per_share,
        actions,
        grid,
        inside: vec![Inside::Star],
        classes: BTreeMap::new(),
        inside_first: Vec::new(),
        exceptions: BTreeMap::new(),
    };
    Rule { stages, kind, rank_count: digits.iter().product::<u32>() * places }
}

/// The same where so many eighths of each run go in the box first.
pub(crate) fn inside_first(rule: Rule, eighths: u64) -> Rule {
    let grid = rule.stages.grid.clone();
    let run = |stage| u64::from(grid.unit(stage) * grid.places) * rule.stages.chunks_per_share;
    let inside_first = (0..grid.digits.len()).map(|stage| run(stage) * eighths / 8).collect();
    Rule { stages: Stages { inside_first, ..rule.stages.clone() }, ..rule }
}

/// Numbers that look random.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(limit.max(1))).unwrap()
    }

    pub(crate) fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(u32::try_from(items.len()).unwrap()) as usize]
    }
}

/// A rule with any digits, places, empty seats, order of ranks, trees and exceptions; at most so many ranks.
pub(crate) fn any(random: &mut Random, ranks_max: u32) -> Rule {
    let &(kind, _) = random.of(&PHASES);
    let shapes: [&[u32]; 7] = [&[2], &[3], &[2, 2], &[3, 2], &[2, 1, 3], &[2, 2, 2], &[4, 3]];
    let digits = *random.of(&shapes);
    let places = 1 + random.below((ranks_max / digits.iter().product::<u32>()).clamp(1, 4));
    let mut rule = plain(kind, digits, places, u64::from(1 + random.below(3)));
    let seats = rule.rank_count;
    let mut empty: Vec<u32> = (0..seats).filter(|_| random.below(8) == 0).collect();
    empty.truncate(usize::try_from(seats - 2).unwrap());
    if random.below(2) == 0 {
        empty.clear();
    }
    rule.rank_count = seats - u32::try_from(empty.len()).unwrap();
    rule.stages.grid.seats = Seats::InOrder { empty: empty.clone() };
    if random.below(4) == 0 {
        let mut order: Vec<u32> = (0..seats).filter(|seat| !empty.contains(seat)).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(u32::try_from(last).unwrap() + 1) as usize);
        }
        rule.stages.grid.seats = Seats::Listed(order);
    }
    let seating = rule.stages.grid.seating(rule.rank_count).unwrap();
    if random.below(2) == 0 {
        plant(&mut rule.stages, &seating, random);
    }
    let grid = rule.stages.grid.clone();
    if random.below(2) == 0 {
        let run = |stage| grid.unit(stage) * grid.places * u32::try_from(rule.stages.chunks_per_share).unwrap();
        rule.stages.inside_first =
            (0..grid.digits.len()).map(|stage| u64::from(random.below(run(stage) + 1))).collect();
    }
    except(&mut rule.stages, &seating, random);
    rule
}

/// Gives some boxes trees of their own.
fn plant(stages: &mut Stages, seating: &Seating, random: &mut Random) {
    for of_box in (0..seating.box_count()).filter(|&of_box| !seating.is_empty(of_box)) {
        if random.below(2) == 0 {
            continue;
        }
        let live: Vec<u32> = seating.live(of_box).map(|(place, _)| place).collect();
        let mut trees = Vec::new();
        for &root in &live {
            for _ in 0..1 + random.below(2) {
                let mut reached = vec![root];
                let mut hops = Vec::new();
                for &place in live.iter().filter(|&&place| place != root) {
                    hops.push((*random.of(&reached), place));
                    reached.push(place);
                }
                trees.push(BoxTree { root, multiplicity: u64::from(1 + random.below(2)), hops });
            }
        }
        stages.classes.insert(of_box, u32::try_from(stages.inside.len()).unwrap());
        stages.inside.push(Inside::Trees(trees));
    }
}

/// States pieces of any ranks for some pairs of boxes, and for all that have none.
fn except(stages: &mut Stages, seating: &Seating, random: &mut Random) {
    let plain = stages.clone();
    let (rules, mut pieces) = (Pieces::new(&plain, seating), Vec::new());
    let some = 1 + random.below(6);
    for to in (0..seating.box_count()).filter(|&to| !seating.is_empty(to)) {
        for exchange in Exchange::into_box(&plain.grid, to) {
            let mut left = rules.chunks(exchange);
            if left == 0 {
                continue;
            }
            rules.put(exchange, &mut pieces);
            if !pieces.is_empty() && random.below(some) > 0 {
                continue;
            }
            pieces.clear();
            let of_run =
                exchange.run(&plain.grid).flat_map(|of_box| seating.live(of_box).map(move |(at, _)| (of_box, at)));
            let (senders, places): (Vec<_>, Vec<_>) = (of_run.collect(), seating.live(to).map(|(at, _)| at).collect());
            while left > 0 {
                let chunk_count = u64::from(1 + random.below(u32::try_from(left).unwrap()));
                let &(sender, leaves) = random.of(&senders);
                pieces.push(Piece { sender, leaves, enters: *random.of(&places), chunk_count });
                left -= chunk_count;
            }
            stages.exceptions.insert((exchange.from, to), pieces.clone());
        }
    }
}

/// Alters a rule at one place, so that it may be wrong.
pub(crate) fn alter(rule: &mut Rule, random: &mut Random) {
    let stages = &mut rule.stages;
    let boxes = stages.grid.box_count().unwrap_or(1);
    match random.below(8) {
        7 => stages.inside_first = vec![random.below(40).into(); 1 + random.below(4) as usize],
        0 => stages.chunks_per_share = random.below(4).into(),
        1 => {
            let digit = random.below(u32::try_from(stages.grid.digits.len()).unwrap()) as usize;
            stages.grid.digits[digit] = random.below(5);
        }
        2 => stages.grid.places = random.below(5),
        3 => drop(stages.classes.insert(random.below(boxes + 1), random.below(3))),
        4 => rule.rank_count = random.below(50),
        5 => {
            let trees = stages.inside.iter_mut().filter_map(|inside| match inside {
                Inside::Trees(trees) => trees.first_mut(),
                Inside::Star => None,
            });
            for tree in trees {
                tree.root = random.below(5);
                tree.multiplicity = random.below(2).into();
                tree.hops.extend([(random.below(5), random.below(5))]);
            }
        }
        _ => {
            for piece in stages.exceptions.values_mut().flatten() {
                match random.below(16) {
                    0 => piece.sender = random.below(boxes + 1),
                    1 => piece.leaves = random.below(6),
                    2 => piece.enters = random.below(6),
                    3 => piece.chunk_count = random.below(5).into(),
                    _ => {}
                }
            }
        }
    }
}
