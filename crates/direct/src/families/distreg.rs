//! Distance-regular graphs of degree 4: from every node the network looks alike in numbers, distance by distance.
//!
//! Zhao 2026, table A.2, lists those for which a breadth-first broadcast is bandwidth-optimal. Nodes are numbered as the
//! construction of each says; edges lead to rising numbers. All are simple and lead both ways.

use super::FamilyError;
use super::geometry::{hexagon_lines, symplectic_lines};
use crate::digraph::Digraph;
use crate::size::Size;

/// The numbers of nodes there are.
pub(super) const ORDERS: [u64; 15] = [6, 9, 10, 14, 15, 16, 21, 26, 32, 35, 45, 70, 80, 189, 728];

pub(super) fn distance_regular_size(n: u64) -> Result<Size, FamilyError> {
    if !ORDERS.contains(&n) {
        return Err(FamilyError::value("distreg", "n", n, "one of 6 9 10 14 15 16 21 26 32 35 45 70 80 189 728"));
    }
    Ok(Size::regular(n.into(), 4))
}

pub(super) fn distance_regular(n: u32) -> Digraph {
    match n {
        // The octahedron J(4,2): all but the opposite corner.
        6 => joined(6, |a, b| a % 3 != b % 3),
        // The Paley graph of nine nodes, H(2,3): two places of three letters, one of which differs.
        9 => joined(9, |a, b| (a / 3 == b / 3) != (a % 3 == b % 3)),
        // Two sides of five without a perfect matching.
        10 => joined(10, |a, b| (a < 5) != (b < 5) && a % 5 != b % 5),
        // Points and lines of the plane of order 2 that do not meet, by a difference set modulo 7.
        14 => incidence(7, &(0..7).map(|line| [2, 4, 5, 6].map(|point| (line + point) % 7)).collect::<Vec<_>>()),
        15 => petersen_edges(),
        // The cube of four dimensions.
        16 => joined(16, |a, b| (a ^ b).is_power_of_two()),
        // The line graph of the Heawood graph.
        21 => line_graph(&ring_with_chords(14, &[5, -5])),
        // Points and lines of the projective plane of order 3, by a difference set modulo 13.
        26 => incidence(13, &(0..13).map(|line| [0, 1, 3, 9].map(|point| (line + point) % 13)).collect::<Vec<_>>()),
        32 => affine_plane(),
        // The odd graph O₄: triples out of seven, joined when they share nothing.
        35 => {
            let triples = subsets_of_seven(3);
            joined(35, |one, other| triples[one as usize] & triples[other as usize] == 0)
        }
        // The line graph of Tutte's 8-cage.
        45 => line_graph(&ring_with_chords(30, &[-13, -9, 7, -7, 9, 13])),
        70 => doubled_odd(),
        // Points and lines of the generalized quadrangle W(3).
        80 => incidence(40, &symplectic_lines()),
        // The line graph of Tutte's 12-cage.
        189 => line_graph(&ring_with_chords(126, &TWELVE_CAGE)),
        // Points and lines of the split Cayley hexagon of order 3.
        728 => incidence(364, &hexagon_lines()),
        _ => unreachable!("the size was checked"),
    }
}

/// Chords of Tutte's 12-cage, seven times over, by Frucht's notation.
const TWELVE_CAGE: [i64; 18] = [17, 27, -13, -59, -35, 35, -11, 13, -53, 53, -27, 21, 57, 11, -21, -57, 59, -17];

/// Nodes joined both ways where a symmetric rule says so.
fn joined(order: u32, rule: impl Fn(u32, u32) -> bool) -> Digraph {
    Digraph::by_tail(order, |node, heads| heads.extend((0..order).filter(|&other| other != node && rule(node, other))))
}

/// Points, then lines, each line joined with its four points.
fn incidence(points: u32, lines: &[[u32; 4]]) -> Digraph {
    let order = points + u32::try_from(lines.len()).expect("a table of constants");
    let mut heads_of = vec![Vec::new(); order as usize];
    for (line, on) in (points..).zip(lines) {
        for &point in on {
            heads_of[point as usize].push(line);
            heads_of[line as usize].push(point);
        }
        heads_of[line as usize].sort_unstable();
    }
    Digraph::by_tail(order, |node, heads| heads.extend(&heads_of[node as usize]))
}

/// The line graph, not directed, of a graph given by its edges: two are joined when they share an end.
fn line_graph(edges: &[(u32, u32)]) -> Digraph {
    let order = u32::try_from(edges.len()).expect("a table of constants");
    joined(order, |one, other| {
        let ((a, b), (c, d)) = (edges[one as usize], edges[other as usize]);
        a == c || a == d || b == c || b == d
    })
}

/// The line graph of the Petersen graph, whose nodes are the pairs out of five, joined when they share nothing.
fn petersen_edges() -> Digraph {
    let pairs: Vec<(u32, u32)> = (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b))).collect();
    let mut edges = Vec::new();
    // All pairs of disjoint pairs: the 15 edges of the Petersen graph.
    for (first, &(a, b)) in (0..).zip(&pairs) {
        for (second, &(c, d)) in (0..).zip(&pairs).skip(first as usize + 1) {
            if a != c && a != d && b != c && b != d {
                edges.push((first, second));
            }
        }
    }
    line_graph(&edges)
}

/// The affine plane of order 4 without the lines of one direction: points `(x, y)` are numbered `4x + y`, lines
/// `y = m·x + b` after them `4m + b`.
fn affine_plane() -> Digraph {
    // GF(4): addition is XOR, 2 is a root of x² + x + 1.
    const TIMES: [[u32; 4]; 4] = [[0, 0, 0, 0], [0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2]];
    let line = |slope: usize, offset: u32| [0, 1, 2, 3].map(|x| 4 * x + (TIMES[slope][x as usize] ^ offset));
    let lines: Vec<[u32; 4]> = (0..4).flat_map(|slope| (0..4).map(move |offset| line(slope, offset))).collect();
    incidence(16, &lines)
}

/// The doubled odd graph: triples out of seven, then sets of four, each joined with the triples that it holds.
fn doubled_odd() -> Digraph {
    let (triples, fours) = (subsets_of_seven(3), subsets_of_seven(4));
    let mut held = [0; 4];
    let lines = fours.iter().map(|four| {
        let inside = (0..).zip(&triples).filter(|&(_, triple)| triple & !four == 0).map(|(number, _)| number);
        held.iter_mut().zip(inside).for_each(|(held, number)| *held = number);
        held
    });
    incidence(35, &lines.collect::<Vec<_>>())
}

/// Sets of `count` elements out of seven, as bits, ascending.
fn subsets_of_seven(count: u32) -> Vec<u32> {
    (0..1_u32 << 7).filter(|set| set.count_ones() == count).collect()
}

/// The edges of a ring of nodes, then of chords by their lower end: node v is joined with `v + chords[v]`, the chords
/// being repeated (Frucht's notation).
fn ring_with_chords(nodes: u32, chords: &[i64]) -> Vec<(u32, u32)> {
    let mut edges: Vec<(u32, u32)> = (0..nodes).map(|node| (node, (node + 1) % nodes)).collect();
    for (node, &chord) in (0..nodes).zip(chords.iter().cycle()) {
        let other = (i64::from(node) + chord).rem_euclid(nodes.into());
        let other = u32::try_from(other).expect("below the number of nodes");
        if node < other {
            edges.push((node, other));
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{distances_from, facts};

    /// The numbers of neighbours farther from and nearer to a node, by distance, if they are the same for all pairs:
    /// `{b₀, …; c₁, …}`.
    fn intersection_array(graph: &Digraph) -> Option<(Vec<usize>, Vec<usize>)> {
        let mut array: Option<(Vec<usize>, Vec<usize>)> = None;
        for source in 0..graph.order() {
            let distance: Vec<u32> = distances_from(graph, source).into_iter().collect::<Option<_>>()?;
            let steps = *distance.iter().max()? as usize;
            let mut found = (vec![None; steps + 1], vec![None; steps + 1]);
            for node in 0..graph.order() {
                let own = distance[node as usize];
                let count = |wanted: Option<u32>| {
                    graph.out(node).iter().filter(|&&head| Some(distance[head as usize]) == wanted).count()
                };
                for (kept, wanted) in [(&mut found.0, own.checked_add(1)), (&mut found.1, own.checked_sub(1))] {
                    let count = count(wanted);
                    if *kept[own as usize].get_or_insert(count) != count {
                        return None;
                    }
                }
            }
            let (further, nearer) = found;
            let further: Vec<usize> = further.into_iter().collect::<Option<_>>()?;
            let nearer: Vec<usize> = nearer.into_iter().collect::<Option<_>>()?;
            let own = (further[..steps].to_vec(), nearer[1..].to_vec());
            if *array.get_or_insert(own.clone()) != own {
                return None;
            }
        }
        array
    }

    /// Brouwer, Cohen, Neumaier, *Distance-Regular Graphs*, 1989, and Zhao 2026, table A.2: diameters.
    #[test]
    fn intersection_arrays_are_those_of_the_tables() {
        let arrays: [(u32, &[usize], &[usize]); 15] = [
            (6, &[4, 1], &[1, 4]),
            (9, &[4, 2], &[1, 2]),
            (10, &[4, 3, 1], &[1, 3, 4]),
            (14, &[4, 3, 2], &[1, 2, 4]),
            (15, &[4, 2, 1], &[1, 1, 4]),
            (16, &[4, 3, 2, 1], &[1, 2, 3, 4]),
            (21, &[4, 2, 2], &[1, 1, 2]),
            (26, &[4, 3, 3], &[1, 1, 4]),
            (32, &[4, 3, 3, 1], &[1, 1, 3, 4]),
            (35, &[4, 3, 3], &[1, 1, 2]),
            (45, &[4, 2, 2, 2], &[1, 1, 1, 2]),
            (70, &[4, 3, 3, 2, 2, 1, 1], &[1, 1, 2, 2, 3, 3, 4]),
            (80, &[4, 3, 3, 3], &[1, 1, 1, 4]),
            (189, &[4, 2, 2, 2, 2, 2], &[1, 1, 1, 1, 1, 2]),
            (728, &[4, 3, 3, 3, 3, 3], &[1, 1, 1, 1, 1, 4]),
        ];
        assert_eq!(arrays.map(|(order, ..)| u64::from(order)), ORDERS);
        for (order, further, nearer) in arrays {
            let graph = distance_regular(order);
            assert_eq!(graph.order(), order);
            assert_eq!(intersection_array(&graph), Some((further.to_vec(), nearer.to_vec())), "{order}");
            let facts = facts(&graph);
            assert!(facts.simple && facts.bidirectional && facts.degree == Some(4), "{order}");
        }
    }

    #[test]
    fn the_array_of_what_is_not_distance_regular_is_none() {
        let twisted = super::super::grids::twisted_cube();
        assert_eq!(intersection_array(&twisted), None);
    }
}
