//! What is refused of orbit forests, and in which words.

use std::sync::atomic::{AtomicUsize, Ordering};

use canopy_schedule::{
    Action, CheckError, Collective, CollectiveKind, GeneratorFault, Motion, Orbits, OrbitsError, Patch, PatchFault,
    Seats, Shares, TemplateFault, Turn, check_orbits_until,
};
use canopy_topology::{TopologyLimits, generate};

use super::{judge, mended, torus};
use crate::forests::Random;

/// Why an altered schedule on a torus of 3 × 4 is refused.
fn refused(alter: &dyn Fn(&mut Orbits)) -> OrbitsError {
    let (topology, of) = torus(&[3, 4], "");
    let mut orbits = of.orbits(&[Action::Copy]);
    alter(&mut orbits);
    match judge(&topology, CollectiveKind::Allgather, &orbits).unwrap_err() {
        CheckError::Orbits(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn templates_and_generators_must_fit() {
    let generator = |fault| OrbitsError::Generator { generator: 0, fault };
    let template = |fault| OrbitsError::Template { template: 0, fault };
    let table = |table: Vec<u32>| refused(&|orbits| orbits.generators[0].motion = Motion::Table(table.clone()));
    let turned = |seat: u32| (seat + 4) % 12;

    let none = refused(&|orbits| orbits.chunks_per_share = 0);
    assert!(none.to_string().contains("0 chunks for each of 12 shares"), "{none}");
    assert!(matches!(refused(&|orbits| orbits.chunks_per_share = u64::MAX), OrbitsError::Chunks { .. }));
    assert_eq!(refused(&|orbits| orbits.chunks_per_share = 5), OrbitsError::Weights { root: 0, found: 4, expected: 5 });
    assert_eq!(
        refused(&|orbits| orbits.seat_count = 1 << 20),
        template(TemplateFault::Length { found: 12, expected: 1 << 20 })
    );
    let huge = refused(&|orbits| {
        // Nothing of the stated size is built before there are numbers of that size.
        (orbits.seat_count, orbits.seats) = (u32::MAX - 1, Seats::Listed((0..12).collect()));
        (orbits.templates, orbits.chunks_per_share) = (Vec::new(), 1);
    });
    assert!(matches!(huge, OrbitsError::Chunks { .. } | OrbitsError::NoTemplate { .. }), "{huge}");
    let large = refused(&|orbits| {
        (orbits.seat_count, orbits.seats) = (1 << 28, Seats::Listed((0..12).collect()));
        (orbits.templates, orbits.chunks_per_share) = (Vec::new(), 1);
    });
    assert_eq!(large, OrbitsError::NoTemplate { seat: 0 });
    let ranks = refused(&|orbits| orbits.seats = Seats::InOrder { empty: vec![3] });
    assert!(matches!(ranks, OrbitsError::Seats(_)), "{ranks}");
    assert_eq!(refused(&|orbits| orbits.generators[0].order = 1), generator(GeneratorFault::Order { order: 1 }));
    assert_eq!(
        refused(&|orbits| orbits.generators[0].order = 2),
        generator(GeneratorFault::Cycle { node: 0, found: 3 })
    );
    assert_eq!(
        refused(&|orbits| orbits.generators[0].order = u32::MAX),
        OrbitsError::TooManySymmetries { seat_count: 12 }
    );
    let turn = Turn { first: 0, count: 12, unit: 4, size: 3, step: 1 };
    let many = refused(&|orbits| orbits.generators[0].motion = Motion::Turns(vec![turn; 65]));
    assert_eq!(many, generator(GeneratorFault::TooManyTurns { found: 65, max: 64 }));
    assert_eq!(table(vec![0]), generator(GeneratorFault::Length { found: 1, expected: 12 }));
    assert_eq!(table(vec![12; 12]), generator(GeneratorFault::NoNode { node: 0 }));
    assert_eq!(table(vec![1; 12]), generator(GeneratorFault::Twice { image: 1 }));
    let swapped = table((0..12).map(|seat| if seat < 2 { turned(1 - seat) } else { turned(seat) }).collect());
    assert!(matches!(swapped, OrbitsError::Generator { .. } | OrbitsError::Order { .. }), "{swapped}");
    let fewer = refused(&|orbits| drop(orbits.generators.pop()));
    assert_eq!(fewer, OrbitsError::NoTemplate { seat: 1 });
    // Both go along the first dimension: nine symmetries are three.
    let twice = refused(&|orbits| orbits.generators[1] = orbits.generators[0].clone());
    assert_eq!(twice, OrbitsError::NotRegular { root: 0, seat: 4 });

    assert_eq!(refused(&|orbits| orbits.templates[0].weight = 0), template(TemplateFault::NoChunks));
    assert_eq!(refused(&|orbits| orbits.templates[0].root = 1), template(TemplateFault::Root { root: 1 }));
    let parent = |seat: usize, parent| refused(&|orbits| orbits.templates[0].parents[seat] = parent);
    assert_eq!(parent(5, 99), template(TemplateFault::NoParent { seat: 5, parent: 99 }));
    assert_eq!(parent(5, 5), template(TemplateFault::Unreached { seat: 5 }));
    assert!(matches!(parent(5, 0), OrbitsError::NoLink { .. }));
    let over =
        |seat, switches: &[u32]| refused(&|orbits| drop(orbits.templates[0].over.insert(seat, switches.to_vec())));
    assert_eq!(over(0, &[12]), template(TemplateFault::Route { seat: 0, max: 3 }));
    assert_eq!(over(3, &[12]), template(TemplateFault::NoSwitch { seat: 3, node: 12 }));
}

#[test]
fn patches_must_fit() {
    let (topology, of) = torus(&[3, 4], "");
    let patched = |patch: Patch| refused(&|orbits| orbits.patches = vec![patch.clone()]);
    let patch = |fault| OrbitsError::Patch { patch: 0, fault };
    let of_patch = |template, child, parent, roots: &[u32]| Patch { template, child, parent, roots: roots.to_vec() };
    assert_eq!(patched(of_patch(4, 1, 2, &[0])), patch(PatchFault::NoTemplate { template: 4 }));
    assert_eq!(patched(of_patch(0, 12, 2, &[0])), patch(PatchFault::NoRank { seat: 12 }));
    assert_eq!(patched(of_patch(0, 1, 3, &[0])), patch(PatchFault::NoLink { parent: 3, child: 1 }));
    assert_eq!(patched(of_patch(0, 1, 2, &[4, 4])), patch(PatchFault::Unsorted { root: 4 }));
    assert_eq!(patched(of_patch(0, 1, 2, &[12])), patch(PatchFault::NoTree { root: 12 }));
    assert_eq!(patched(of_patch(0, 1, 2, &[1])), patch(PatchFault::Root { root: 1 }));
    assert_eq!(patched(of_patch(0, 1, 0, &[0])), patch(PatchFault::Unchanged { root: 0 }));
    let circle = patched(of_patch(0, 1, 2, &[0]));
    assert_eq!(circle, OrbitsError::Circle { template: 0, root: 0, child: 1 });
    let twice = refused(&|orbits| orbits.patches = [2, 5].map(|parent| of_patch(0, 1, parent, &[0])).to_vec());
    assert!(matches!(twice, OrbitsError::Patch { fault: PatchFault::Twice { root: 0 }, .. }), "{twice}");
    let phases = judge(&topology, CollectiveKind::Allreduce, &of.orbits(&[Action::Copy])).unwrap_err();
    assert!(phases.to_string().contains("phases copy, but allreduce takes reduce, copy"), "{phases}");
}

/// A dead cable that trees would use is found, with patches and without.
#[test]
fn missing_links_must_carry_nothing() {
    let (_, of) = torus(&[3, 4, 3], "");
    let cut = generate("torus:3x4x3,down=000-001", &TopologyLimits::STANDARD).unwrap();
    let plain = of.orbits(&[Action::Copy]);
    let refused = judge(&cut, CollectiveKind::Allgather, &plain).unwrap_err();
    assert!(matches!(refused, CheckError::Orbits(OrbitsError::NoLink { .. })), "{refused}");
    let mended = mended(plain, &cut, &mut Random(3)).unwrap();
    judge(&cut, CollectiveKind::Allgather, &mended).unwrap();
    for at in 0..mended.patches.len() {
        let mut forgotten = mended.clone();
        forgotten.patches[at].roots.pop();
        let refused = judge(&cut, CollectiveKind::Allgather, &forgotten).unwrap_err();
        assert!(matches!(refused, CheckError::Orbits(OrbitsError::NoLink { .. })), "{refused}");
    }
}

/// Asked at any time, the judge ends; and whoever asks once is answered.
#[test]
fn work_ends_where_it_is_told_to() {
    let cut = generate("torus:3x4x3,nodes-down=000", &TopologyLimits::STANDARD).unwrap();
    let (_, of) = torus(&[3, 4, 3], "");
    let mut orbits = of.orbits(&[Action::Copy]);
    orbits.seats = Seats::InOrder { empty: vec![0] };
    let orbits = mended(orbits, &cut, &mut Random(3)).unwrap();
    let collective = Collective::new(CollectiveKind::Allgather, None, cut.rank_count()).unwrap();
    let judged = |at: usize| {
        let asked = AtomicUsize::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) == at;
        check_orbits_until(&cut, collective, &Shares::Equal, &orbits, &stop)
    };
    let stopped = (0..).take_while(|&at| judged(at) == Err(CheckError::Stopped)).count();
    assert!(stopped > 5, "{stopped}");
    judged(stopped).unwrap();
}
