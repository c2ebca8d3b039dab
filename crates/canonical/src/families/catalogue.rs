//! Graphs of the direct-connect catalogue: which of them would have as many nodes and ports as a network of ranks alone.

use canopy_topology::NodeIndex;

use crate::families::extents::{Line, factorisations, has_layers};
use crate::families::summary::Summary;
use crate::families::table::FAMILIES;

/// Families of the table that networks of ranks alone may be members of.
const PLAIN: [&str; 6] = ["ring", "complete", "hypercube", "torus", "mesh", "bipartite"];

/// Nodes and ports of graphs with stored schedules, which powers are made of.
const STORED: [(&str, usize, usize); 4] =
    [("diamond", 8, 2), ("dbjmod:d=2,n=3", 8, 2), ("dbjmod:d=2,n=4", 16, 2), ("dbjmod:d=4,n=2", 16, 4)];

/// Most members of one kind that are looked at.
const MEMBERS_MAX: usize = 4;

/// Expressions, without rates, of the networks that have the counts of this one: grids and complete graphs, families of the
/// catalogue, powers of those with stored schedules, products of rings one way. In the order in which names are preferred.
///
/// Circulants are looked for with the offsets that make them narrowest, since all others would have to be tried.
pub(crate) fn candidates(summary: &Summary<'_>) -> Vec<String> {
    let Some(rate) = summary.uniform() else { return Vec::new() };
    let nodes = summary.ranks;
    // Ports that lead back to their node are no links: fewer than one for each node.
    let ports = summary.links.div_ceil(nodes);
    let is_regular = summary.is_regular(ports);
    let mut found = Vec::new();
    let suffix = format!(",bw={rate}");
    for family in FAMILIES.iter().filter(|family| PLAIN.contains(&family.name)) {
        let parameters = (family.candidates)(summary).into_iter().take(MEMBERS_MAX);
        let own = parameters.filter_map(|own| own.strip_suffix(&suffix).map(|own| format!("{}:{own}", family.name)));
        found.extend(own);
    }
    if is_regular {
        found.extend(hamming(nodes, ports));
        found.extend(twisted(nodes, ports));
        if ports == 4 {
            found.push(format!("distreg:n={nodes},d=4"));
            found.push(format!("circulant:n={nodes}"));
        }
        if nodes == ports + 2 {
            found.push(format!("dcirculant:d={ports}"));
        }
        found.extend(kautz(nodes, ports));
        for (base, order, degree) in STORED {
            found.extend(power_of(base, (order, degree), (nodes, ports)));
        }
        found.extend(one_way_grids(summary, ports));
    }
    if ports >= 2 {
        found.extend(length_of(nodes, ports, 1).map(|length| format!("debruijn:d={ports},n={length}")));
        found.push(format!("genkautz:n={nodes},d={ports}"));
    }
    found
}

/// Grids whose lines are complete graphs, some of more than three nodes: others are tori.
fn hamming(nodes: usize, ports: usize) -> Vec<String> {
    let dimensions = 2..=nodes.ilog2() as usize;
    let all = dimensions.flat_map(|count| factorisations(nodes, count, 2));
    let fits = |extents: &Vec<usize>| {
        extents.iter().map(|extent| extent - 1).sum::<usize>() == ports && extents.iter().any(|&extent| extent > 3)
    };
    all.filter(fits).take(MEMBERS_MAX).map(|extents| format!("hamming:{}", joined(&extents))).collect()
}

fn twisted(nodes: usize, ports: usize) -> Option<String> {
    let exact = |power| (2..nodes).find(|a: &usize| a.checked_pow(power).is_none_or(|volume| 2 * volume >= nodes));
    let exact = |power| exact(power).filter(|a| 2 * a.pow(power) == nodes);
    match (nodes, ports) {
        (8, 3) => Some("twisted-cube".to_owned()),
        (_, 4) => exact(2).map(|a| format!("twisted-torus:{}x{a}", 2 * a)),
        (_, 6) => exact(3).map(|a| format!("twisted-torus:{a}x{a}x{}", 2 * a)),
        _ => None,
    }
}

/// Words of n letters out of d + 1: (d + 1)·dⁿ⁻¹.
fn kautz(nodes: usize, ports: usize) -> Option<String> {
    let rest = nodes.is_multiple_of(ports + 1).then_some(nodes / (ports + 1)).filter(|_| ports >= 2)?;
    length_of(rest, ports, 0).map(|length| format!("kautz:d={ports},n={}", length + 1))
}

/// The exponent, at least `least`, of which a number is the power of this base.
fn length_of(number: usize, base: usize, least: u32) -> Option<u32> {
    (least..usize::BITS)
        .find(|&length| base.checked_pow(length).is_none_or(|power| power >= number))
        .filter(|&length| base.checked_pow(length) == Some(number))
}

/// The graph, or the power of it.
fn power_of(base: &str, (order, degree): (usize, usize), (nodes, ports): (usize, usize)) -> Option<String> {
    let factors = length_of(nodes, order, 1)?;
    let fits = degree * factors as usize == ports;
    fits.then(|| if factors == 1 { base.to_owned() } else { format!("power:{factors}({base})") })
}

/// Grids whose lines are rings one way. From any node they look like meshes from a corner.
fn one_way_grids(summary: &Summary<'_>, dimensions: usize) -> Vec<String> {
    if dimensions < 2 || dimensions > summary.ranks.ilog2() as usize {
        return Vec::new();
    }
    let layers = summary.layers(NodeIndex::new(0));
    let grids = factorisations(summary.ranks, dimensions, 2).into_iter();
    let grids = grids.filter(|extents| has_layers(extents, Line::Path, &layers)).take(MEMBERS_MAX);
    let ring = |extent: &usize| format!("uniring:n={extent},d=1");
    grids.map(|extents| format!("product({})", extents.iter().map(ring).collect::<Vec<_>>().join(";"))).collect()
}

fn joined(extents: &[usize]) -> String {
    extents.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}
