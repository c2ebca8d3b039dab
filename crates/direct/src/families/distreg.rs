//! Distance-regular graphs of degree 4: from every node the network looks alike in numbers, distance by distance.
//!
//! Zhao 2026, table A.2, lists those for which a breadth-first broadcast is bandwidth-optimal. Nodes are numbered as the
//! construction of each says; edges lead to rising numbers. All are simple and lead both ways.

use super::FamilyError;
use super::geometry::{hexagon_lines, symplectic_lines};
use crate::digraph::Digraph;
use crate::size::Size;

/// The numbers of nodes there are.
pub(super) const ORDERS: [u64; 10] = [6, 9, 10, 15, 16, 26, 32, 45, 80, 728];

pub(super) fn distance_regular_size(n: u64) -> Result<Size, FamilyError> {
    if !ORDERS.contains(&n) {
        return Err(FamilyError::value("distreg", "n", n, "one of 6 9 10 15 16 26 32 45 80 728"));
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
        15 => petersen_edges(),
        // The cube of four dimensions.
        16 => joined(16, |a, b| (a ^ b).is_power_of_two()),
        // Points and lines of the projective plane of order 3, by a difference set modulo 13.
        26 => incidence(13, &(0..13).map(|line| [0, 1, 3, 9].map(|point| (line + point) % 13)).collect::<Vec<_>>()),
        32 => affine_plane(),
        45 => cage_edges(),
        // Points and lines of the generalized quadrangle W(3).
        80 => incidence(40, &symplectic_lines()),
        // Points and lines of the split Cayley hexagon of order 3.
        728 => incidence(364, &hexagon_lines()),
        _ => unreachable!("the size was checked"),
    }
}

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

/// The line graph of Tutte's 8-cage, a ring of thirty nodes with chords `[−13, −9, 7, −7, 9, 13]⁵`: the edges of the ring
/// first, then the chords by their lower end.
fn cage_edges() -> Digraph {
    const CHORDS: [u32; 6] = [30 - 13, 30 - 9, 7, 30 - 7, 9, 13];
    let mut edges: Vec<(u32, u32)> = (0..30).map(|node| (node, (node + 1) % 30)).collect();
    for (node, &chord) in (0..30).zip(CHORDS.iter().cycle()) {
        let other = (node + chord) % 30;
        if node < other {
            edges.push((node, other));
        }
    }
    line_graph(&edges)
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
        let arrays: [(u32, &[usize], &[usize]); 10] = [
            (6, &[4, 1], &[1, 4]),
            (9, &[4, 2], &[1, 2]),
            (10, &[4, 3, 1], &[1, 3, 4]),
            (15, &[4, 2, 1], &[1, 1, 4]),
            (16, &[4, 3, 2, 1], &[1, 2, 3, 4]),
            (26, &[4, 3, 3], &[1, 1, 4]),
            (32, &[4, 3, 3, 1], &[1, 1, 3, 4]),
            (45, &[4, 2, 2, 2], &[1, 1, 1, 2]),
            (80, &[4, 3, 3, 3], &[1, 1, 1, 4]),
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
