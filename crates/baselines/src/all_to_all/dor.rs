//! `dor`: in a grid, one dimension after the other, the shorter way around.

use canopy_direct::{Construction, Family};
use canopy_schedule::Flow;
use canopy_synth::components::{FlowParts, ask, require_room};
use canopy_synth::{AllToAllError, Stage, SynthesisError, SynthesisRequest, Task};
use canopy_topology::{LinkIndex, Topology};

use super::ASK_INTERVAL;

/// Routes every pair through the dimensions in their order, the one whose coordinate stands first in names of nodes first.
///
/// In a ring the shorter direction is taken; where both are as short, the rising one from even coordinates and the falling one
/// from odd ones, so that rings of a multiple of four are loaded evenly. Lines that are complete take one link.
///
/// * **Source.** Basu 2024 §5, `DOR`. **In.** The construction that the network was made by, rank `i` being node `i` of it:
///   rings, meshes, tori, hypercubes, Hamming graphs and rows with columns, and products and powers of these. **Out.** k = 1.
/// * **Errors.** Another construction or none, ranks or links that are missing, too many hops, stopped.
/// * **Cost.** O(length of all routes · log ports).
pub(super) fn plan(task: &Task<'_>) -> Result<Flow, SynthesisError> {
    let &Task { topology, request, stop, progress, .. } = task;
    let SynthesisRequest { shares, composition, .. } = request;
    let numbered_alike = composition.as_ref().filter(|composition| composition.ranks.is_none());
    let lines = numbered_alike.and_then(|composition| lines_of(&composition.construction));
    let lines = lines.ok_or(AllToAllError::NoGrid)?;
    let rank_count = topology.rank_count();
    if Line::count(&lines) != Some(rank_count.into()) {
        return Err(AllToAllError::BrokenGrid { what: format!("only {rank_count} ranks are left") }.into());
    }
    let links = WidestLinks::of(topology);
    let mut parts = FlowParts::new(topology, 1);
    let (mut route, mut hops) = (Vec::new(), 0);
    for source in topology.ranks() {
        for (destination, position) in topology.ranks().zip(1_usize..).filter(|&(rank, _)| rank != source) {
            if position % ASK_INTERVAL == 0 {
                ask(stop)?;
            }
            let chunks = shares.block(source, destination);
            if chunks == 0 {
                continue;
            }
            route.clear();
            let mut at = source.number();
            for next in nodes(&lines, source.number(), destination.number()) {
                route.push(links.between(topology, at, next)?);
                at = next;
            }
            hops += route.len() as u64;
            require_room(hops)?;
            parts.add_path(source, destination, chunks, &route)?;
        }
        progress.report(Stage::Routes, u64::from(source.number()) + 1, rank_count.into());
    }
    Ok(parts.finish())
}

/// One dimension of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    kind: LineKind,
    /// Nodes along it.
    pub(crate) extent: u64,
}

/// How the nodes of a line are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    /// Each with its neighbours.
    Open,
    /// The last with the first, too.
    Ring,
    /// Each with the next, one way.
    OneWay,
    /// Each with all.
    Complete,
}

/// The dimensions of a construction, the slowest first; none where it is no grid.
pub(crate) fn lines_of(construction: &Construction) -> Option<Vec<Line>> {
    let mut lines = Vec::new();
    add_lines(construction, &mut lines).then_some(lines)
}

/// Appends the dimensions of a construction, the slowest first; whether it is a grid.
fn add_lines(construction: &Construction, lines: &mut Vec<Line>) -> bool {
    let mut add = |kind, extents: &[u64]| lines.extend(extents.iter().map(|&extent| Line { kind, extent }));
    match construction {
        Construction::Base(Family::Ring { n, one_way: false }) => add(LineKind::Ring, &[*n]),
        Construction::Base(Family::Ring { n, one_way: true }) => add(LineKind::OneWay, &[*n]),
        Construction::Base(Family::Mesh { extents }) => add(LineKind::Open, extents),
        Construction::Base(Family::Torus { extents }) => add(LineKind::Ring, extents),
        Construction::Base(Family::Hamming { extents }) => add(LineKind::Complete, extents),
        Construction::Base(Family::Dfc2 { rows, columns }) => add(LineKind::Complete, &[*rows, *columns]),
        // A graph of as many dimensions as a number has bits is over every limit.
        Construction::Base(Family::Hypercube { n }) => (0..(*n).min(64)).for_each(|_| add(LineKind::Open, &[2])),
        Construction::Product(factors) => return factors.iter().all(|factor| add_lines(factor, lines)),
        Construction::Power { n, inner } => return (0..(*n).min(64)).all(|_| add_lines(inner, lines)),
        _ => return false,
    }
    true
}

/// The nodes of a route after the first.
fn nodes(lines: &[Line], source: u32, destination: u32) -> impl Iterator<Item = u32> {
    let mut stride: u64 = lines.iter().map(|line| line.extent).product();
    let mut at = u64::from(source);
    let mut nodes = Vec::new();
    for &line in lines {
        stride /= line.extent;
        let coordinate = |node: u64| node / stride % line.extent;
        let (from, to) = (coordinate(source.into()), coordinate(destination.into()));
        let base = at - coordinate(at) * stride;
        nodes.extend(line.walk(from, to).into_iter().map(|coordinate| base + coordinate * stride));
        at = base + to * stride;
    }
    // Nodes are ranks, which 32 bits count.
    nodes.into_iter().map(|node| u32::try_from(node).unwrap_or(u32::MAX))
}

impl Line {
    /// Nodes of a grid; none for too many.
    pub(crate) fn count(lines: &[Self]) -> Option<u64> {
        lines.iter().try_fold(1_u64, |size, line| size.checked_mul(line.extent))
    }

    /// Coordinates passed on the way from one to another, the last one included.
    fn walk(self, from: u64, to: u64) -> Vec<u64> {
        self.walked(from, to, from.is_multiple_of(2))
    }

    /// The same, rising wherever both directions of a ring are as short.
    pub(crate) fn walk_rising(self, from: u64, to: u64) -> Vec<u64> {
        self.walked(from, to, true)
    }

    fn walked(self, from: u64, to: u64, rises_if_equal: bool) -> Vec<u64> {
        let Self { kind, extent } = self;
        let rising = (to + extent - from) % extent;
        let falling = (from + extent - to) % extent;
        let (is_rising, length) = match kind {
            _ if rising == 0 => return Vec::new(),
            LineKind::Complete => return vec![to],
            LineKind::OneWay => (true, rising),
            LineKind::Open => (to > from, to.abs_diff(from)),
            LineKind::Ring => (rising < falling || rising == falling && rises_if_equal, rising.min(falling)),
        };
        let step = |done: u64| if is_rising { (from + done) % extent } else { (from + extent - done) % extent };
        (1..=length).map(step).collect()
    }
}

/// Links between ranks by their ends, of several the widest.
struct WidestLinks {
    /// Tail, head, link; sorted.
    ends: Vec<(u32, u32, LinkIndex)>,
}

impl WidestLinks {
    fn of(topology: &Topology) -> Self {
        let mut ends: Vec<(u32, u32, LinkIndex)> = (0..)
            .zip(topology.links())
            .map(|(index, link)| (link.from.number(), link.to.number(), LinkIndex::new(index)))
            .collect();
        let capacity = |link: LinkIndex| topology.link(link).capacity;
        ends.sort_by_key(|&(from, to, link)| (from, to, std::cmp::Reverse(capacity(link)), link));
        ends.dedup_by_key(|&mut (from, to, _)| (from, to));
        Self { ends }
    }

    fn between(&self, topology: &Topology, from: u32, to: u32) -> Result<LinkIndex, AllToAllError> {
        let place = self.ends.binary_search_by_key(&(from, to), |&(tail, head, _)| (tail, head));
        let id = |node: u32| &topology.nodes()[node as usize].id;
        let missing = |_| AllToAllError::BrokenGrid { what: format!("no link leads from {} to {}", id(from), id(to)) };
        place.map(|place| self.ends[place].2).map_err(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: LineKind, extent: u64) -> Line {
        Line { kind, extent }
    }

    #[test]
    fn lines_are_walked_the_shorter_way() {
        assert_eq!(line(LineKind::Ring, 5).walk(4, 1), [0, 1]);
        assert_eq!(line(LineKind::Ring, 5).walk(1, 4), [0, 4]);
        assert_eq!(line(LineKind::Ring, 4).walk(0, 2), [1, 2]);
        assert_eq!(line(LineKind::Ring, 4).walk(1, 3), [0, 3]);
        assert_eq!(line(LineKind::Open, 5).walk(4, 1), [3, 2, 1]);
        assert_eq!(line(LineKind::OneWay, 4).walk(2, 1), [3, 0, 1]);
        assert_eq!(line(LineKind::Complete, 9).walk(7, 2), [2]);
        assert!(line(LineKind::Ring, 7).walk(3, 3).is_empty());
    }

    #[test]
    fn dimensions_are_corrected_in_their_order() {
        let lines = [line(LineKind::Open, 3), line(LineKind::Ring, 4)];
        assert_eq!(nodes(&lines, 1, 2 * 4 + 3).collect::<Vec<_>>(), [5, 9, 8, 11]);
        let mut found = Vec::new();
        let cube = Construction::Base(Family::Hypercube { n: 2 });
        let ring = Construction::Base(Family::Ring { n: 5, one_way: true });
        assert!(add_lines(&Construction::Product(vec![ring, cube.power(2)]), &mut found));
        assert_eq!(found[0], line(LineKind::OneWay, 5));
        assert_eq!(found[1..], [line(LineKind::Open, 2); 4]);
        assert!(!add_lines(&Construction::Base(Family::Diamond), &mut Vec::new()));
    }
}
