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
    for (d, n) in [(2, 1), (2, 4), (3, 3), (4, 2), (16, 2)] {
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
    assert!(Family::least_circulant(16, 6).unwrap_err().to_string().starts_with("circulant: d cannot be 6"));
    assert_eq!(circulants::least_diameter(u64::MAX), 3_037_000_500);
}

#[test]
fn numbers_that_make_no_graph_are_refused() {
    let most = u64::MAX;
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
        (Family::Kautz { d: 1, n: 1 }, "d"),
        (Family::Kautz { d: 2, n: 0 }, "n"),
        (Family::Ring { n: 0, one_way: true }, "size"),
        (Family::Ring { n: 0, one_way: false }, "size"),
        (Family::Mesh { extents: vec![] }, "size"),
        (Family::Torus { extents: vec![4, 0] }, "size"),
        (Family::Hamming { extents: vec![0] }, "size"),
        (Family::Dfc2 { rows: 0, columns: 3 }, "size"),
        (Family::Hypercube { n: 0 }, "size"),
        (Family::TwistedTorus { extents: vec![4, 8] }, "size"),
        (Family::TwistedTorus { extents: vec![2, 1] }, "size"),
        (Family::TwistedTorus { extents: vec![4, 4, 4] }, "size"),
        (Family::TwistedTorus { extents: vec![most, most, most] }, "size"),
        (Family::DeBruijn { d: 1, n: 3 }, "d"),
        (Family::DeBruijn { d: 2, n: 0 }, "n"),
        (Family::ModifiedDeBruijn { d: 2, n: 5 }, "n"),
        (Family::DistanceRegular { n: 8 }, "n"),
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
        Family::Ring { n: most, one_way: true },
        Family::Ring { n: most, one_way: false },
        Family::Mesh { extents: vec![most; 100] },
        Family::Torus { extents: vec![2; 4000] },
        Family::Hamming { extents: vec![100_000, 2] },
        Family::Dfc2 { rows: most, columns: 1 },
        Family::Hypercube { n: most },
        Family::Hypercube { n: 31 },
        Family::TwistedTorus { extents: vec![most / 4, most / 4, most / 4 * 2] },
        Family::DeBruijn { d: 2, n: 33 },
        Family::DeBruijn { d: most, n: most },
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
            (Family::Kautz { d: d + 1, n: 1 + n % 4 }, d + 1),
            (Family::Ring { n, one_way: true }, 1),
            (Family::Ring { n: n + 1, one_way: false }, 2),
            (Family::Torus { extents: vec![n + 1, 1, d + 2, 2] }, 5),
            (Family::Hypercube { n: d }, d),
            (Family::Hamming { extents: vec![d, n] }, d + n - 2),
            (Family::Dfc2 { rows: n, columns: d }, d + n - 2),
            (Family::TwistedTorus { extents: vec![2 * d + 2, d + 1] }, 4),
            (Family::TwistedTorus { extents: vec![d + 1, d + 1, 2 * d + 2] }, 6),
            (Family::TwistedCube, 3),
            (Family::DeBruijn { d: d + 1, n: 1 + n % 4 }, d + 1),
            (Family::ModifiedDeBruijn { d: 2, n: 3 }, 2),
            (Family::ModifiedDeBruijn { d: 2, n: 4 }, 2),
            (Family::ModifiedDeBruijn { d: 4, n: 2 }, 4),
            (Family::Diamond, 2),
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

#[test]
fn grids_by_hand() {
    assert_eq!(edges(&Family::Ring { n: 3, one_way: true }), [(0, 1), (1, 2), (2, 0)]);
    assert_eq!(edges(&Family::Ring { n: 2, one_way: false }), [(0, 1), (1, 0)]);
    assert_eq!(
        (edges(&Family::Ring { n: 1, one_way: true }), edges(&Family::Ring { n: 1, one_way: false })),
        (vec![], vec![])
    );
    assert_eq!(graph(&Family::Ring { n: 6, one_way: false }), graph(&Family::BiRing { n: 6, d: 2 }));
    assert_eq!(edges(&Family::Mesh { extents: vec![1, 3] }), [(0, 1), (1, 2), (1, 0), (2, 1)]);
    let mesh = graph(&Family::Mesh { extents: vec![3, 4] });
    assert_eq!((mesh.out(0), mesh.out(5)), ([4, 1].as_slice(), [9, 1, 6, 4].as_slice()));
    let torus = graph(&Family::Torus { extents: vec![2, 3] });
    assert_eq!((torus.out(0), torus.out(5)), ([3, 1, 2].as_slice(), [2, 3, 4].as_slice()));
    let hamming = graph(&Family::Hamming { extents: vec![3, 3] });
    assert_eq!(
        (hamming.out(4), graph(&Family::Dfc2 { rows: 3, columns: 3 })),
        ([1, 7, 3, 5].as_slice(), hamming.clone())
    );
    // (x, y) is 4x + y: from (0, 3) over the end to (4, 0), from (0, 0) back over it to (4, 3).
    let twisted = graph(&Family::TwistedTorus { extents: vec![8, 4] });
    assert_eq!((twisted.out(3), twisted.out(0)), ([7, 31, 16, 2].as_slice(), [4, 28, 1, 19].as_slice()));
    let cube = graph(&Family::TwistedCube);
    assert_eq!(
        (cube.out(0), cube.out(5), cube.out(7)),
        ([5, 2, 1].as_slice(), [0, 7, 4].as_slice(), [3, 5, 6].as_slice())
    );
}

#[test]
fn grids_are_products_and_hypercubes_powers() {
    let ring = |n| graph(&Family::Ring { n, one_way: false });
    let torus = crate::product(&[&ring(4), &ring(2), &ring(3)], LIMIT).unwrap();
    assert_eq!(torus, graph(&Family::Torus { extents: vec![4, 2, 3] }));
    let cube = crate::power(&graph(&Family::Complete { n: 2 }), 5, LIMIT).unwrap();
    assert_eq!(cube, graph(&Family::Hypercube { n: 5 }));
    let hamming = crate::power(&graph(&Family::Complete { n: 4 }), 3, LIMIT).unwrap();
    assert_eq!(hamming, graph(&Family::Hamming { extents: vec![4, 4, 4] }));
}

/// Zhao 2026, table A.3 and what is said of twisted tori: diameters.
#[test]
fn diameters_are_those_published() {
    let twisted = |extents: &[u64]| Family::TwistedTorus { extents: extents.to_vec() };
    for (family, steps) in [
        (twisted(&[6, 3]), 3),
        (twisted(&[8, 4]), 4),
        (twisted(&[10, 5]), 5),
        (twisted(&[3, 3, 6]), 4),
        (twisted(&[4, 4, 8]), 6),
        (Family::Torus { extents: vec![4, 4, 8] }, 8),
        (Family::Torus { extents: vec![4, 6] }, 5),
        (Family::TwistedCube, 2),
        (Family::Hypercube { n: 3 }, 3),
        (Family::Hamming { extents: vec![3, 3, 3] }, 3),
        (Family::Diamond, 3),
        (Family::ModifiedDeBruijn { d: 2, n: 3 }, 3),
        (Family::ModifiedDeBruijn { d: 2, n: 4 }, 4),
        (Family::ModifiedDeBruijn { d: 4, n: 2 }, 3),
        (Family::DeBruijn { d: 2, n: 4 }, 4),
        (Family::DeBruijn { d: 4, n: 1 }, 1),
        (Family::GenKautz { n: 1024, d: 4 }, 5),
    ] {
        assert_eq!(diameter(&graph(&family)), Some(steps), "{family}");
    }
}

#[test]
fn de_bruijn_graphs_by_hand() {
    assert_eq!(
        edges(&Family::DeBruijn { d: 2, n: 2 }),
        [(0, 0), (0, 1), (1, 2), (1, 3), (2, 0), (2, 1), (3, 2), (3, 3)]
    );
    assert_eq!(facts(&graph(&Family::DeBruijn { d: 4, n: 3 })).self_loops, 4);
    for (d, n) in [(2, 3), (2, 4), (4, 2)] {
        let modified = facts(&graph(&Family::ModifiedDeBruijn { d, n }));
        assert!(modified.simple && modified.self_loops == 0, "d={d} n={n}");
    }
    // Loops at 0 and 7 and the pair 2, 5 gave way to 0 → 2 → 5 → 7 → 0.
    assert_eq!(
        edges(&Family::ModifiedDeBruijn { d: 2, n: 3 }),
        [
            (0, 1),
            (0, 2),
            (1, 2),
            (1, 3),
            (2, 4),
            (2, 5),
            (3, 6),
            (3, 7),
            (4, 0),
            (4, 1),
            (5, 3),
            (5, 7),
            (6, 4),
            (6, 5),
            (7, 6),
            (7, 0)
        ]
    );
    // Sixteen edges over the sum of distances is more than the published rate of 3/20 for an all-to-all, as it must be.
    assert_eq!(facts(&graph(&Family::Diamond)).distances, Some(Distances { max: 3, sum: 106 }));
}

#[test]
fn written_out_a_family_is_its_expression() {
    for (family, expression) in [
        (Family::Ring { n: 8, one_way: true }, "ring:8,dir=uni"),
        (Family::Torus { extents: vec![4, 2, 3] }, "torus:4x2x3"),
        (Family::Circulant { n: 16, offsets: vec![3, 4], copies: 1 }, "circulant:n=16,offsets=3+4"),
        (Family::Circulant { n: 16, offsets: vec![3], copies: 2 }, "circulant:n=16,offsets=3,d=4"),
        (Family::TwistedCube, "twisted-cube"),
        (Family::ModifiedDeBruijn { d: 4, n: 2 }, "dbjmod:d=4,n=2"),
        (Family::DistanceRegular { n: 32 }, "distreg:n=32,d=4"),
        (Family::Dfc2 { rows: 3, columns: 4 }, "dfc2:3x4"),
    ] {
        assert_eq!(family.to_string(), expression);
    }
}
