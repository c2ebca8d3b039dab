//! Orbit forests: templates and groups are judged without the trees of other ranks, and these as all others are.

#[path = "orbits/refused.rs"]
mod refused;

use std::collections::{BTreeMap, BTreeSet};

use canopy_schedule::{
    Action, CheckError, Collective, CollectiveKind, Generator, LinkLoads, Motion, Orbits, Patch, Schedule, Seats,
    Shape, Shares, Template, Turn, Verdict, check, check_orbits_until, compile,
};
use canopy_topology::{LinkIndex, NodeIndex, Rate, Topology, TopologyLimits, generate};

use crate::forests::Random;
use crate::stages::{Boxes, Fabric, PHASES, network};

fn judge(topology: &Topology, kind: CollectiveKind, orbits: &Orbits) -> Result<Verdict, CheckError> {
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    check_orbits_until(topology, collective, &Shares::Equal, orbits, &|| false)
}

/// The trees of all ranks, judged one by one by the checker of all other schedules, and the chunks on each link.
fn by_trees(topology: &Topology, kind: CollectiveKind, orbits: &Orbits) -> Option<(Verdict, Vec<u128>)> {
    let shape = Shape::Forest(orbits.trees(topology).ok()?);
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let schedule = Schedule { collective, algorithm: "orbits".to_owned(), shares: Shares::Equal, shape };
    let graph = compile(topology, &schedule).ok()?;
    let verdict = check(topology, &graph).ok()?;
    Some((verdict, chunks(topology, &LinkLoads::of(topology, &graph).unwrap())))
}

fn chunks(topology: &Topology, loads: &LinkLoads) -> Vec<u128> {
    (0..u32::try_from(topology.links().len()).unwrap()).map(|link| loads.chunks(LinkIndex::new(link))).collect()
}

#[track_caller]
fn agree(topology: &Topology, kind: CollectiveKind, orbits: &Orbits) {
    let verdict = judge(topology, kind, orbits).unwrap();
    let (all, loads) = by_trees(topology, kind, orbits).unwrap();
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    assert_eq!(chunks(topology, &LinkLoads::of_orbits(topology, collective, orbits).unwrap()), loads);
    assert_eq!((&verdict.algbw, verdict.busiest_link), (&all.algbw, all.busiest_link));
    assert_eq!((verdict.tree_count, verdict.batch_count), (all.tree_count, all.batch_count));
    match orbits.patches.is_empty() && orbits.seat_count == topology.rank_count() {
        true => assert_eq!((verdict.depth_max, verdict.depth_sum), (all.depth_max, all.depth_sum)),
        false => assert!(verdict.depth_max >= all.depth_max && verdict.depth_sum >= all.depth_sum, "{verdict:?}"),
    }
    assert!(verdict.links_max >= all.links_max && verdict.chain_max >= all.chain_max, "{verdict:?} {all:?}");
}

/// A torus with its ranks numbered by coordinates, the last one fastest.
struct Torus {
    sides: Vec<u32>,
}

impl Torus {
    fn seats(&self) -> u32 {
        self.sides.iter().product()
    }

    fn unit(&self, dimension: usize) -> u32 {
        self.sides[dimension + 1..].iter().product()
    }

    fn moved(&self, seat: u32, dimension: usize, by: u32) -> u32 {
        let (unit, side) = (self.unit(dimension), self.sides[dimension]);
        let digit = seat / unit % side;
        seat - digit * unit + (digit + by) % side * unit
    }

    fn generators(&self) -> Vec<Generator> {
        let of_dimension = |dimension: usize| {
            let turn = Turn {
                first: 0,
                count: self.seats(),
                unit: self.unit(dimension),
                size: self.sides[dimension],
                step: 1,
            };
            Generator { order: self.sides[dimension], motion: Motion::Turns(vec![turn]) }
        };
        (0..self.sides.len()).filter(|&dimension| self.sides[dimension] > 1).map(of_dimension).collect()
    }

    /// A tree that goes dimension by dimension, from one of them on, the shorter way round each.
    fn template(&self, first: usize, is_low: bool) -> Template {
        let dimensions = self.sides.len();
        let parent = |seat: u32| {
            let last = (0..dimensions).map(|at| (first + at) % dimensions);
            let last =
                last.rev().find(|&dimension| !(seat / self.unit(dimension)).is_multiple_of(self.sides[dimension]));
            last.map_or(seat, |dimension| {
                let (side, digit) = (self.sides[dimension], seat / self.unit(dimension) % self.sides[dimension]);
                let is_up = if is_low { 2 * digit <= side } else { 2 * digit < side };
                self.moved(seat, dimension, if is_up { side - 1 } else { 1 })
            })
        };
        Template { root: 0, weight: 1, parents: (0..self.seats()).map(parent).collect(), over: BTreeMap::new() }
    }

    fn orbits(&self, actions: &[Action]) -> Orbits {
        let both = |first| [true, false].map(|is_low| self.template(first, is_low));
        Orbits {
            chunks_per_share: 2 * self.sides.len() as u64,
            actions: actions.to_vec(),
            seat_count: self.seats(),
            seats: Seats::InOrder { empty: Vec::new() },
            generators: self.generators(),
            templates: (0..self.sides.len()).flat_map(both).collect(),
            patches: Vec::new(),
        }
    }
}

fn torus(sides: &[u32], keys: &str) -> (Topology, Torus) {
    let words: Vec<String> = sides.iter().map(u32::to_string).collect();
    let topology = generate(&format!("torus:{}{keys}", words.join("x")), &TopologyLimits::STANDARD).unwrap();
    (topology, Torus { sides: sides.to_vec() })
}

#[test]
fn templates_of_tori_load_links_as_the_trees_of_all_ranks() {
    for sides in [&[5][..], &[4, 4], &[3, 5], &[2, 3], &[2, 2, 2], &[4, 3, 2], &[3, 3, 3], &[2, 3, 2, 4], &[8, 8, 16]] {
        let (topology, torus) = torus(sides, ",bw=7GB/s");
        for (kind, actions) in PHASES {
            let orbits = torus.orbits(actions);
            if sides.len() == 3 && torus.seats() > 1000 {
                judge(&topology, kind, &orbits).unwrap();
            } else {
                agree(&topology, kind, &orbits);
            }
        }
    }
}

/// Trees that go by all orders of dimensions load all links of an even cube alike, so the cut around a rank is met.
#[test]
fn cubes_reach_the_cut_around_a_rank() {
    for side in [2, 3, 4, 8] {
        let (topology, torus) = torus(&[side, side, side], ",bw=7GB/s");
        let verdict = judge(&topology, CollectiveKind::Allgather, &torus.orbits(&[Action::Copy])).unwrap();
        let (ranks, into) = (u64::from(torus.seats()), topology.degrees()[0].0);
        assert_eq!(verdict.algbw, Rate::new(u128::from(ranks) * into, ranks - 1).unwrap(), "side {side}");
    }
}

/// Boxes on switches, joined by a hub or by rails: symmetries move switches, too. `is_turned`: places turn as well, so
/// that one orbit has all ranks; else each place is an orbit.
fn of_boxes(fabric: Fabric, is_turned: bool, actions: &[Action]) -> (Topology, Orbits) {
    let (boxes, places) = (3, 4);
    let topology = network(&Boxes { boxes, places, fabric, empty: Vec::new() });
    let seats = boxes * places;
    // Switches by name: boxes, then the hub or the rails.
    let outer = |place: u32| seats + boxes + if matches!(fabric, Fabric::Rails) { place } else { 0 };
    let turn = |first, count, unit, size| Turn { first, count, unit, size, step: 1 };
    let motion = vec![turn(0, seats, places, boxes), turn(seats, boxes, 1, boxes)];
    let mut generators = vec![Generator { order: boxes, motion: Motion::Turns(motion) }];
    if is_turned {
        let mut motion = vec![turn(0, seats, 1, places)];
        if matches!(fabric, Fabric::Rails) {
            motion.push(turn(seats + boxes, places, 1, places));
        }
        generators.push(Generator { order: places, motion: Motion::Turns(motion) });
    }
    let template = |root: u32| {
        let (mut parents, mut over) = (vec![root; seats as usize], BTreeMap::new());
        for seat in (0..seats).filter(|&seat| seat != root) {
            let (of_box, place) = (seat / places, seat % places);
            if place == root {
                over.insert(seat, vec![outer(place)]);
            } else {
                parents[seat as usize] = of_box * places + root;
                over.insert(seat, vec![seats + of_box]);
            }
        }
        Template { root, weight: 2, parents, over }
    };
    let roots = if is_turned { 1 } else { places };
    let orbits = Orbits {
        chunks_per_share: 2,
        actions: actions.to_vec(),
        seat_count: seats,
        seats: Seats::InOrder { empty: Vec::new() },
        generators,
        templates: (0..roots).map(template).collect(),
        patches: Vec::new(),
    };
    (topology, orbits)
}

#[test]
fn symmetries_move_switches_and_there_may_be_several_orbits() {
    for fabric in [Fabric::Hub, Fabric::Rails] {
        for is_turned in [true, false] {
            for (kind, actions) in PHASES {
                let (topology, orbits) = of_boxes(fabric, is_turned, actions);
                agree(&topology, kind, &orbits);
            }
        }
    }
}

/// Generators as tables, and ranks on other seats.
fn shuffled(orbits: &mut Orbits, topology: &Topology, random: &mut Random) {
    let nodes = orbits.seat_count + u32::try_from(topology.nodes().len()).unwrap() - topology.rank_count();
    let mut names: Vec<u32> = (0..nodes).collect();
    for at in 1..orbits.seat_count as usize {
        names.swap(at, random.below(at + 1));
    }
    let named = |node: u32| names[node as usize];
    for generator in &mut orbits.generators {
        let mut table = vec![0; nodes as usize];
        (0..nodes).for_each(|node| table[named(node) as usize] = named(generator.motion.image(node).unwrap()));
        generator.motion = Motion::Table(table);
    }
    for template in &mut orbits.templates {
        let mut parents = vec![0; template.parents.len()];
        (0..).zip(&template.parents).for_each(|(seat, &parent)| parents[named(seat) as usize] = named(parent));
        template.over = template.over.iter().map(|(&seat, switches)| (named(seat), switches.clone())).collect();
        (template.root, template.parents) = (named(template.root), parents);
    }
    for patch in &mut orbits.patches {
        (patch.child, patch.parent) = (named(patch.child), named(patch.parent));
        patch.roots = patch.roots.iter().map(|&root| named(root)).collect();
        patch.roots.sort_unstable();
    }
    let empty = match &orbits.seats {
        Seats::InOrder { empty } | Seats::Turned { empty, .. } => empty.clone(),
        Seats::Listed(_) => Vec::new(),
    };
    let live = (0..orbits.seat_count).filter(|seat| !empty.contains(seat)).map(named);
    orbits.seats = Seats::Listed(live.collect());
}

#[test]
fn seats_and_symmetries_may_be_listed() {
    let mut random = Random(5);
    for _ in 0..20 {
        let (topology, torus) = torus(&[3, 4, 2], "");
        let mut orbits = torus.orbits(&[Action::Copy]);
        shuffled(&mut orbits, &topology, &mut random);
        agree(&topology, CollectiveKind::Allgather, &orbits);
        let (topology, mut orbits) = of_boxes(Fabric::Rails, random.below(2) == 0, &[Action::Reduce]);
        shuffled(&mut orbits, &topology, &mut random);
        agree(&topology, CollectiveKind::ReduceScatter, &orbits);
    }
}

/// Writes patches wherever trees meet faults: other parents that are not below the seat, at random. `None` where a seat
/// has no such neighbour.
fn mended(mut orbits: Orbits, topology: &Topology, random: &mut Random) -> Option<Orbits> {
    let seating = orbits.seating(topology.rank_count()).unwrap();
    let rank = |seat: u32| seating.rank(0, seat).map(NodeIndex::new);
    let is_linked = |from: u32, to: u32| {
        rank(from).zip(rank(to)).is_some_and(|(from, to)| topology.has_link(from, to) && topology.has_link(to, from))
    };
    let images: Vec<Vec<u32>> = (0..orbits.generators.len())
        .map(|at| (0..orbits.seat_count).map(|seat| orbits.generators[at].motion.image(seat).unwrap()).collect())
        .collect();
    let mut elements = vec![(0..orbits.seat_count).collect::<Vec<u32>>()];
    for (image, generator) in images.iter().zip(&orbits.generators) {
        let moved = |element: &Vec<u32>| {
            std::iter::successors(Some(element.clone()), |last| {
                Some(last.iter().map(|&seat| image[seat as usize]).collect())
            })
        };
        elements = elements.iter().flat_map(|element| moved(element).take(generator.order as usize)).collect();
    }
    let mut patches: BTreeMap<(u32, u32, u32), Vec<u32>> = BTreeMap::new();
    for (number, template) in (0..).zip(&orbits.templates) {
        for element in &elements {
            let root = element[template.root as usize];
            let mut parents = vec![0_u32; template.parents.len()];
            (0_u32..).zip(&template.parents).for_each(|(seat, &parent)| {
                parents[element[seat as usize] as usize] = element[parent as usize];
            });
            let Some(_) = rank(root) else { continue };
            let live = (0..orbits.seat_count).filter(|&seat| seat != root && rank(seat).is_some());
            for seat in live.filter(|&seat| !is_linked(parents[seat as usize], seat)).collect::<Vec<_>>() {
                let is_below = |other: u32| {
                    let walk = std::iter::successors(Some(other), |&at| (at != root).then(|| parents[at as usize]));
                    walk.take(2 * parents.len()).any(|at| at == seat)
                };
                let others = (0..orbits.seat_count).filter(|&other| is_linked(other, seat) && !is_below(other));
                let others: Vec<u32> = others.collect();
                let parent = *others.get(random.below(others.len().max(1)))?;
                parents[seat as usize] = parent;
                patches.entry((number, seat, parent)).or_default().push(root);
            }
        }
    }
    orbits.patches = patches
        .into_iter()
        .map(|((template, child, parent), mut roots)| {
            roots.sort_unstable();
            Patch { template, child, parent, roots }
        })
        .collect();
    Some(orbits)
}

/// A torus with dead cables and missing ranks, drawn at random, and patches.
fn faulty(
    sides: &[u32],
    cables: usize,
    lost: usize,
    actions: &[Action],
    random: &mut Random,
) -> Option<(Topology, Orbits)> {
    let (healthy, of) = torus(sides, "");
    let id = |node: NodeIndex| healthy.node(node).id.clone();
    let mut gone = BTreeSet::new();
    while gone.len() < lost {
        gone.insert(u32::try_from(random.below(of.seats() as usize)).unwrap());
    }
    let mut cut = BTreeSet::new();
    while cut.len() < cables {
        let link = healthy.links()[random.below(healthy.links().len())];
        if link.from < link.to && !gone.contains(&link.from.number()) && !gone.contains(&link.to.number()) {
            cut.insert((link.from, link.to));
        }
    }
    let join = |items: Vec<String>, key: &str| {
        if items.is_empty() { String::new() } else { format!(",{key}={}", items.join("+")) }
    };
    let down = join(cut.iter().map(|&(from, to)| format!("{}-{}", id(from), id(to))).collect(), "down");
    let nodes = join(gone.iter().map(|&seat| id(NodeIndex::new(seat))).collect(), "nodes-down");
    let words: Vec<String> = sides.iter().map(u32::to_string).collect();
    let topology = generate(&format!("torus:{}{down}{nodes}", words.join("x")), &TopologyLimits::STANDARD).ok()?;
    let mut orbits = of.orbits(actions);
    orbits.seats = Seats::InOrder { empty: gone.into_iter().collect() };
    Some((topology.clone(), mended(orbits, &topology, random)?))
}

#[test]
fn patched_trees_load_links_as_they_are() {
    let mut random = Random(77);
    let mut mended = 0;
    for round in 0..100 {
        let sides: &[u32] = [&[3, 3, 3][..], &[4, 3, 2], &[4, 4], &[5, 4, 3]][round % 4];
        let (kind, actions) = PHASES[random.below(3)];
        let (cables, lost) = (random.below(3), random.below(3));
        let Some((topology, mut orbits)) = faulty(sides, cables, lost, actions, &mut random) else { continue };
        if round % 3 == 0 {
            shuffled(&mut orbits, &topology, &mut random);
        }
        agree(&topology, kind, &orbits);
        mended += usize::from(!orbits.patches.is_empty());
    }
    assert!(mended > 25, "{mended}");
}

/// Alters a schedule at one place.
fn alter(orbits: &mut Orbits, random: &mut Random) {
    let seats = orbits.seat_count;
    let below = |random: &mut Random, limit: u32| u32::try_from(random.below(limit as usize)).unwrap();
    let template = random.below(orbits.templates.len());
    match random.below(14) {
        0 => orbits.chunks_per_share = random.below(8) as u64,
        1 => orbits.seat_count = seats - 1 + below(random, 3),
        2 => {
            let at = random.below(orbits.generators.len());
            match random.below(3) {
                0 => orbits.generators[at].order = below(random, 6),
                1 if orbits.generators.len() > 1 => drop(orbits.generators.remove(at)),
                _ => orbits.generators.push(orbits.generators[at].clone()),
            }
        }
        3 | 4 => {
            let at = random.below(orbits.generators.len());
            match &mut orbits.generators[at].motion {
                Motion::Table(table) => {
                    let pair = (random.below(table.len()), random.below(table.len()));
                    table.swap(pair.0, pair.1);
                }
                Motion::Turns(turns) => {
                    let turn = random.below(turns.len());
                    let turn = &mut turns[turn];
                    let fields = [&mut turn.first, &mut turn.count, &mut turn.unit, &mut turn.size, &mut turn.step];
                    *fields.into_iter().nth(random.below(5)).unwrap() = below(random, 25);
                }
            }
        }
        5 => orbits.templates[template].root = below(random, seats),
        6 => orbits.templates[template].weight = random.below(4) as u64,
        7 | 8 => {
            let seat = random.below(orbits.templates[template].parents.len());
            orbits.templates[template].parents[seat] = below(random, seats + 1);
        }
        9 => {
            let switches = vec![seats + below(random, 8); random.below(3)];
            orbits.templates[template].over.insert(below(random, seats), switches);
        }
        10 => match &mut orbits.seats {
            Seats::InOrder { empty } | Seats::Turned { empty, .. } if empty.is_empty() => {
                empty.push(below(random, seats))
            }
            Seats::InOrder { empty } | Seats::Turned { empty, .. } => empty[0] = below(random, seats),
            Seats::Listed(listed) => listed.swap(0, 1),
        },
        11 => {
            let parents = &mut orbits.templates[template].parents;
            let (one, other) = (random.below(parents.len()), random.below(parents.len()));
            parents.swap(one, other);
        }
        _ => {
            if orbits.patches.is_empty() {
                let seat = |random: &mut Random| below(random, seats);
                let (child, parent) = (seat(random), seat(random));
                orbits.patches.push(Patch { template: 0, child, parent, roots: vec![seat(random)] });
            }
            let patch = random.below(orbits.patches.len());
            let patch = &mut orbits.patches[patch];
            match random.below(5) {
                0 => patch.template = below(random, 4),
                1 => patch.child = below(random, seats),
                2 => patch.parent = below(random, seats),
                3 => drop(patch.roots.pop()),
                _ => patch.roots.push(below(random, seats)),
            }
        }
    }
}

#[test]
fn what_is_accepted_of_altered_schedules_is_right() {
    let mut random = Random(47);
    let rounds = std::env::var("CANOPY_ALTERED").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..rounds {
        let (kind, actions) = PHASES[random.below(3)];
        let made = match round % 5 {
            0 => Some(of_boxes(Fabric::Rails, random.below(2) == 0, actions)),
            1 => Some(of_boxes(Fabric::Hub, random.below(2) == 0, actions)),
            2 => {
                let (topology, torus) = torus(&[2, 3, 2], "");
                Some((topology, torus.orbits(actions)))
            }
            3 => faulty(&[3, 3], 1, 0, actions, &mut random),
            _ => faulty(&[2, 3, 3], random.below(2), 1, actions, &mut random),
        };
        let Some((topology, mut altered)) = made else { continue };
        if random.below(3) == 0 {
            shuffled(&mut altered, &topology, &mut random);
        }
        (0..1 + random.below(2)).for_each(|_| alter(&mut altered, &mut random));
        match judge(&topology, kind, &altered) {
            Ok(verdict) => {
                let all = by_trees(&topology, kind, &altered).unwrap_or_else(|| panic!("accepted: {altered:?}"));
                assert_eq!(verdict.algbw, all.0.algbw, "{altered:?}");
                accepted += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(accepted > rounds / 30 && refused > rounds / 5, "{accepted} {refused}");
}
