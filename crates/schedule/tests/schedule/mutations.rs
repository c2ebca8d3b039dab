//! A checker is tested by mutation: it must object to every change that matters, and to no other.

use std::collections::BTreeMap;

use canopy_schedule::{CollectiveKind, check, compile};

use crate::forests::{Random, complete_with_switch};
use crate::mutate::KINDS;
use crate::reference::{computes_the_promise, judge};
use crate::shapes::any_shape;

/// The judge and the slow second judge agree on every mutant; what they accept computes the promise in whatever order
/// the dependencies allow; and every kind of damage is met and refused.
#[test]
fn every_mutation_that_matters_is_refused() {
    let mut random = Random(2026);
    let mut refused: BTreeMap<&str, u32> = BTreeMap::new();
    let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
    let mut harmless = 0;
    for round in 0..100 {
        let topology = complete_with_switch(2 + round % 5);
        for kind in CollectiveKind::ALL {
            let graph = compile(&topology, &any_shape(&topology, kind, &mut random)).unwrap();
            assert_eq!(judge(&topology, &graph), Ok(()));
            assert!(computes_the_promise(&graph, &mut random));
            for (name, damage) in KINDS {
                let mut mutant = graph.clone();
                damage(&topology, &mut mutant, &mut random);
                let (verdict, reference) = (check(&topology, &mutant), judge(&topology, &mutant));
                assert_eq!(verdict.is_ok(), reference.is_ok(), "{name}: {verdict:?} {reference:?}\n{mutant:#?}");
                match verdict {
                    Ok(_) => {
                        assert!(computes_the_promise(&mutant, &mut random), "{name}: {mutant:#?}");
                        harmless += 1;
                    }
                    Err(error) => {
                        *refused.entry(name).or_default() += 1;
                        *reasons.entry(format!("{}: {}", error.check(), reference.unwrap_err())).or_default() += 1;
                    }
                }
            }
        }
    }
    let total: u32 = refused.values().sum();
    assert!(total >= 10_000, "{total} refused, {harmless} harmless: {refused:#?}");
    assert!(KINDS.iter().all(|(name, _)| refused.get(name).is_some_and(|&count| count >= 10)), "{refused:#?}");
    assert!(reasons.len() >= 12, "{reasons:#?}");
}
