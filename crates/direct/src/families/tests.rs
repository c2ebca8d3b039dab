use proptest::prelude::*;

use super::*;
use crate::facts::{Distances, diameter, facts, moore_steps};

const LIMIT: Limit = Limit { order_max: 20_000, edges_max: 200_000 };

#[track_caller]
fn graph(family: &Family) -> Digraph {
    family.graph(LIMIT).unwrap_or_else(|error| panic!("{family}: {error}"))
}

fn edges(family: &Family) -> Vec<(u32, u32)> {
    graph(family).edges().collect()
}

#[test]
fn small_members_by_hand() {
    assert_eq!(edges(&Family::Complete { n: 3 }), [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
    assert_eq!(edges(&Family::Bipartite { left: 1, right: 2 }), [(0, 1), (0, 2), (1, 0), (2, 0)]);
    assert_eq!(edges(&Family::UniRing { n: 2, d: 2 }), [(0, 1), (0, 1), (1, 0), (1, 0)]);
    assert_eq!(edges(&Family::BiRing { n: 3, d: 2 }), [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)]);
    assert_eq!(graph(&Family::Circulant { n: 12, offsets: vec![2, 3], copies: 1 }).out(1), [3, 11, 4, 10]);
    assert_eq!(graph(&Family::Circulant { n: 5, offsets: vec![2], copies: 2 }).out(1), [3, 3, 4, 4]);
    assert_eq!(graph(&Family::DirectedCirculant { d: 2 }).out(3), [0, 1]);
    // −2·0−1 = 4, −2·0−2 = 3; −2·1−1 = 2, −2·1−2 = 1 modulo 5.
    assert_eq!(graph(&Family::GenKautz { n: 5, d: 2 }).out(0), [4, 3]);
    assert_eq!(graph(&Family::GenKautz { n: 5, d: 2 }).out(1), [2, 1]);
    // Words of two letters out of three: 01 02 10 12 20 21; 01 leads to 10 and 12, 21 to 10 and 12.
    let kautz = graph(&Family::Kautz { d: 2, n: 2 });
    assert_eq!((kautz.out(0), kautz.out(1), kautz.out(5)), ([2, 3].as_slice(), [4, 5].as_slice(), [2, 3].as_slice()));
    assert_eq!(graph(&Family::Kautz { d: 3, n: 1 }), graph(&Family::Complete { n: 4 }));
}

/// Letters of the word with this number, by its definition.
fn words(d: u32, n: u32) -> Vec<Vec<u32>> {
    let mut words: Vec<Vec<u32>> = (0..=d).map(|letter| vec![letter]).collect();
    for _ in 1..n {
        let longer = |word: Vec<u32>| {
            let last = *word.last().unwrap();
            (0..=d).filter(move |&letter| letter != last).map(move |letter| [word.clone(), vec![letter]].concat())
        };
        words = words.into_iter().flat_map(longer).collect();
    }
    words
}

#[test]
fn kautz_edges_shift_words() {
    for (d, n) in [(1, 1), (1, 3), (2, 1), (2, 4), (3, 3), (4, 2), (16, 2)] {
        let words = words(d, n);
        let kautz = graph(&Family::Kautz { d: d.into(), n: n.into() });
        assert_eq!(kautz.order() as usize, words.len());
        for (word, letters) in (0..).zip(&words) {
            let next: Vec<&[u32]> = kautz.out(word).iter().map(|&head| words[head as usize].as_slice()).collect();
            let last = *letters.last().unwrap();
            let wanted: Vec<Vec<u32>> =
                (0..=d).filter(|&letter| letter != last).map(|letter| [&letters[1..], &[letter]].concat()).collect();
            assert_eq!(next, wanted, "d={d} n={n} {letters:?}");
        }
    }
}

#[test]
fn least_circulants_have_the_least_diameter() {
    for n in 7..400 {
        let family = Family::least_circulant(n, 4).unwrap();
        let Family::Circulant { ref offsets, .. } = family else { panic!("{family}") };
        let steps = circulants::least_diameter(n);
        assert_eq!(*offsets, [steps, steps + 1]);
        assert_eq!(diameter(&graph(&family)), u32::try_from(steps).ok(), "{family}");
    }
    assert_eq!(Family::least_circulant(7, 4).unwrap().to_string(), "circulant:n=7,offsets=2+3");
    assert_eq!(Family::least_circulant(16, 8).unwrap().to_string(), "circulant:n=16,offsets=3+4,d=8");
    assert!(Family::least_circulant(6, 4).unwrap_err().to_string().contains("complete:n"));
    assert!(Family::least_circulant(16, 6).unwrap_err().to_string().starts_with("circulant: d 6 is not usable"));
    assert_eq!(circulants::least_diameter(u64::MAX), 3_037_000_500);
}

#[test]
fn numbers_that_make_no_graph_are_refused() {
    let circulant = |n, offsets: &[u64], copies| Family::Circulant { n, offsets: offsets.to_vec(), copies };
    for (family, key) in [
        (Family::Complete { n: 0 }, "size"),
        (Family::Bipartite { left: 0, right: 3 }, "size"),
        (Family::UniRing { n: 1, d: 1 }, "n"),
        (Family::UniRing { n: 2, d: 0 }, "d"),
        (Family::BiRing { n: 2, d: 2 }, "n"),
        (Family::BiRing { n: 4, d: 3 }, "d"),
        (Family::BiRing { n: 4, d: 0 }, "d"),
        (circulant(8, &[], 1), "offsets"),
        (circulant(8, &[0], 1), "offsets"),
        (circulant(8, &[4], 1), "offsets"),
        (circulant(8, &[1, 1], 1), "offsets"),
        (circulant(8, &[2], 1), "offsets"),
        (circulant(8, &[1], 0), "d"),
        (Family::DirectedCirculant { d: 0 }, "d"),
        (Family::GenKautz { n: 4, d: 4 }, "n"),
        (Family::GenKautz { n: 4, d: 1 }, "d"),
        (Family::Kautz { d: 0, n: 1 }, "d"),
        (Family::Kautz { d: 1, n: 0 }, "n"),
    ] {
        let error = family.graph(LIMIT).unwrap_err();
        assert!(matches!(error, FamilyError::Value { key: found, .. } if found == key), "{family}: {error}");
    }
}

#[test]
fn members_over_the_limit_are_refused_before_they_are_built() {
    let limit = Limit { order_max: u32::MAX, edges_max: u32::MAX };
    let most = u64::MAX;
    for family in [
        Family::Complete { n: most },
        Family::Complete { n: 100_000 },
        Family::Bipartite { left: most, right: most },
        Family::UniRing { n: most, d: most },
        Family::BiRing { n: most, d: 2 },
        Family::Circulant { n: 9, offsets: vec![1], copies: most },
        Family::Circulant { n: most, offsets: vec![1, 2], copies: 1 },
        Family::DirectedCirculant { d: most },
        Family::GenKautz { n: most, d: 2 },
        Family::Kautz { d: most, n: most },
        Family::Kautz { d: 2, n: most },
    ] {
        assert!(matches!(family.graph(limit), Err(FamilyError::TooLarge(_))), "{family}");
    }
}

proptest! {
    /// Counts and degrees by formula are those of the graph.
    #[test]
    fn sizes_and_degrees_are_by_formula(n in 2_u64..60, d in 1_u64..6, step in 1_u64..30) {
        let mut families = vec![
            (Family::Complete { n }, n - 1),
            (Family::Bipartite { left: d, right: d }, d),
            (Family::UniRing { n, d }, d),
            (Family::BiRing { n: n + 1, d: 2 * d }, 2 * d),
            (Family::DirectedCirculant { d }, d),
            (Family::GenKautz { n: n + d + 1, d: d + 1 }, d + 1),
            (Family::Kautz { d, n: 1 + n % 4 }, d),
        ];
        if 2 * step < n && step > 1 {
            families.push((Family::Circulant { n, offsets: vec![1, step], copies: d }, 4 * d));
        }
        for (family, degree) in families {
            let graph = graph(&family);
            prop_assert_eq!(Size::of(&graph), family.size().unwrap(), "{}", &family);
            let found = facts(&graph);
            prop_assert_eq!(found.degree.map(u64::from), Some(degree), "{}", &family);
            prop_assert!(found.distances.is_some(), "{}", &family);
        }
    }

    /// Imase and Itoh: no more than one step beyond the Moore bound. Kautz graphs meet it.
    #[test]
    fn kautz_graphs_are_as_low_as_stated(n in 3_u64..300, d in 2_u64..5) {
        if n > d {
            let steps = u64::from(diameter(&graph(&Family::GenKautz { n, d })).unwrap());
            prop_assert!(steps <= moore_steps(n, d).unwrap() + 1, "n={} d={} {}", n, d, steps);
        }
        let length = 1 + n % 4;
        let kautz = graph(&Family::Kautz { d, n: length });
        prop_assert_eq!(diameter(&kautz).map(u64::from), Some(length));
        prop_assert_eq!(moore_steps(kautz.order().into(), d), Some(length));
    }
}

#[test]
fn rings_have_the_distances_of_rings() {
    assert_eq!(facts(&graph(&Family::BiRing { n: 6, d: 4 })).distances, Some(Distances { max: 3, sum: 54 }));
    assert_eq!(facts(&graph(&Family::UniRing { n: 4, d: 2 })).distances, Some(Distances { max: 3, sum: 24 }));
    assert!(facts(&graph(&Family::BiRing { n: 6, d: 4 })).bidirectional);
    assert!(!facts(&graph(&Family::BiRing { n: 6, d: 4 })).simple);
}
