//! The search: networks of every number of nodes and ports, made of smaller ones, each cell once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use canopy_direct::{Bases, Construction, Family, Limit};
use canopy_optimize::Stop;

use crate::finder::candidate::{Candidate, Frontier, Keep};
use crate::finder::catalogue;
use crate::finder::known::Known;

/// Nodes and ports of each.
type Cell = (u32, u32);

/// What was found in one cell.
type Contents = Arc<Vec<Candidate>>;

/// What has been found so far. Cells refer to smaller ones only, so threads may fill them side by side.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// Products of simple networks that are bandwidth-optimal by breadth-first broadcast, and these networks.
    products: Cells,
    /// Those of them that are no products.
    factors: Cells,
    /// All networks.
    all: Cells,
    /// All networks whose links lead both ways.
    bidirectional: Cells,
}

/// Contents of cells, each filled once.
#[derive(Debug, Default)]
struct Cells(Mutex<HashMap<Cell, Arc<OnceLock<Contents>>>>);

impl Cells {
    fn get_or_fill(&self, cell: Cell, fill: impl FnOnce() -> Vec<Candidate>) -> Contents {
        let place = {
            let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cells.entry(cell).or_default())
        };
        Arc::clone(place.get_or_init(|| Arc::new(fill())))
    }
}

/// Which links a network may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Links {
    /// Any.
    Any,
    /// As many from any node to any other as back.
    Bidirectional,
}

impl Search {
    /// Networks of a cell of which more can be made. What is stopped is empty, and of no use.
    pub(crate) fn cell(&self, cell: Cell, links: Links, stop: &dyn Stop) -> Contents {
        let cells = match links {
            Links::Any => &self.all,
            Links::Bidirectional => &self.bidirectional,
        };
        cells.get_or_fill(cell, || self.filled(cell, links, Keep::Inputs, stop).into_sorted())
    }

    /// Networks of a cell that may be the best in some respect, the most promising all-to-all first.
    pub(crate) fn contenders(&self, cell: Cell, links: Links, stop: &dyn Stop) -> Vec<Candidate> {
        self.filled(cell, links, Keep::Contenders, stop).into_promising()
    }

    fn filled(&self, cell: Cell, links: Links, keep: Keep, stop: &dyn Stop) -> Frontier {
        let (nodes, degree) = cell;
        let mut found = Frontier::new(keep);
        if nodes < 2 || degree == 0 || stop.is_requested() {
            return found;
        }
        let fits = |known: &Known| links == Links::Any || known.is_bidirectional;
        let mut bases = Bases::new(Limit { order_max: 64, edges_max: 1 << 10 });
        let others = catalogue::others(nodes, degree, &mut bases, stop);
        for candidate in others.into_iter().filter(|candidate| fits(&candidate.known)) {
            found.insert(candidate);
        }
        for candidate in self.products(cell, stop).iter().filter(|candidate| fits(&candidate.known)) {
            found.insert(candidate.made_by(named(&candidate.construction)));
        }
        self.powers(cell, links, &mut found, stop);
        self.degree_expansions(cell, links, &mut found, stop);
        match links {
            Links::Any => self.line_graphs(cell, &mut found, stop),
            Links::Bidirectional => self.both_ways(cell, &mut found, stop),
        }
        found
    }

    /// Line graphs; those of generalized Kautz graphs are such graphs again.
    fn line_graphs(&self, (nodes, degree): Cell, found: &mut Frontier, stop: &dyn Stop) {
        if degree < 2 || !nodes.is_multiple_of(degree) {
            return;
        }
        for inner in self.cell((nodes / degree, degree), Links::Any, stop).iter() {
            if matches!(inner.construction, Construction::Base(Family::GenKautz { .. } | Family::Kautz { .. })) {
                continue;
            }
            // Counted on a network that is smaller than the one in question.
            let Some(mut known) = inner.returns(stop).and_then(|returns| inner.known.line(returns).ok()) else {
                continue;
            };
            if found.has_place_for(&known) {
                let construction = match inner.construction.clone() {
                    Construction::Line { n, inner } => Construction::Line { n: n + 1, inner },
                    other => other.line(1),
                };
                known.all_to_all = known.all_to_all.or_listed(&construction);
                found.insert(Candidate::new(construction, known));
            }
        }
    }

    fn degree_expansions(&self, (nodes, degree): Cell, links: Links, found: &mut Frontier, stop: &dyn Stop) {
        for copies in (2..=degree).filter(|&copies| degree.is_multiple_of(copies) && nodes.is_multiple_of(copies)) {
            for inner in self.cell((nodes / copies, degree / copies), links, stop).iter() {
                let Ok(known) = inner.known.degree(copies) else { continue };
                if found.has_place_for(&known) {
                    let construction = match inner.construction.clone() {
                        Construction::Degree { n, inner } => Construction::Degree { n: n * copies, inner },
                        other => other.degree(copies),
                    };
                    found.insert(Candidate::new(construction, known));
                }
            }
        }
    }

    /// Powers of networks that are no factors of products: those of factors are products.
    fn powers(&self, (nodes, degree): Cell, links: Links, found: &mut Frontier, stop: &dyn Stop) {
        let roots = (2..=nodes.ilog2()).filter(|&n| degree.is_multiple_of(n));
        for (n, root) in roots.filter_map(|n| Some((n, exact_root(nodes, n)?))) {
            for inner in self.cell((root, degree / n), links, stop).iter() {
                let Ok(known) = inner.known.power(n) else { continue };
                if found.has_place_for(&known) {
                    let construction = match inner.construction.clone() {
                        Construction::Power { n: times, inner } => Construction::Power { n: n * times, inner },
                        other => other.power(n),
                    };
                    found.insert(Candidate::new(construction, known));
                }
            }
        }
    }

    /// Unions of a network and its reverse.
    fn both_ways(&self, (nodes, degree): Cell, found: &mut Frontier, stop: &dyn Stop) {
        if !degree.is_multiple_of(2) {
            return;
        }
        for inner in self.cell((nodes, degree / 2), Links::Any, stop).iter() {
            if let Some(candidate) = inner.bidirect()
                && found.has_place_for(&candidate.known)
            {
                found.insert(candidate);
            }
        }
    }

    /// Products, and networks that are none. A network is a factor once for each way to go on with fewer nodes.
    fn products(&self, cell: Cell, stop: &dyn Stop) -> Contents {
        self.products.get_or_fill(cell, || {
            let (nodes, degree) = cell;
            let mut found = Frontier::new(Keep::Inputs);
            for factor in self.factors(cell, stop).iter() {
                found.insert(factor.clone());
            }
            // The last factor has at least two nodes and one port.
            // Every way to divide the ports and the nodes among two factors, and every two candidates for them.
            for ports in 1..degree {
                for first in (2..=nodes / 2).filter(|&first| nodes.is_multiple_of(first) && first > ports) {
                    for one in self.factors((first, ports), stop).iter() {
                        for rest in self.products((nodes / first, degree - ports), stop).iter() {
                            join(one, rest, &mut found);
                        }
                    }
                }
            }
            found.into_sorted()
        })
    }

    fn factors(&self, cell: Cell, stop: &dyn Stop) -> Contents {
        self.factors.get_or_fill(cell, || {
            let mut found = Frontier::new(Keep::Inputs);
            for factor in catalogue::factors(cell.0, cell.1, stop) {
                found.insert(factor);
            }
            found.into_sorted()
        })
    }
}

/// Enters the product of a factor and a product, unless the same factors in another order come to it as well.
fn join(one: &Candidate, rest: &Candidate, found: &mut Frontier) {
    let Ok(known) = Known::product(&[&one.known, &rest.known]) else { return };
    if !found.has_place_for(&known) {
        return;
    }
    let mut factors = vec![one.construction.clone()];
    match &rest.construction {
        Construction::Product(more) => factors.extend(more.iter().cloned()),
        other => factors.push(other.clone()),
    }
    // Large factors first, whatever they were found by.
    factors.sort_by_cached_key(|factor| (std::cmp::Reverse(order(factor)), factor.to_string()));
    found.insert(Candidate::new(Construction::Product(factors), known));
}

/// Number of nodes of a factor.
fn order(factor: &Construction) -> u128 {
    match factor {
        Construction::Base(family) => family.size().map_or(0, |size| size.order),
        _ => 0,
    }
}

/// The same network by the shortest expression: grids of rings or of complete graphs have names of their own.
fn named(construction: &Construction) -> Construction {
    let Construction::Product(factors) = construction else { return construction.clone() };
    let extents = |extent: fn(&Family) -> Option<u64>| {
        let of = |factor: &Construction| match factor {
            Construction::Base(family) => extent(family),
            _ => None,
        };
        factors.iter().map(of).collect::<Option<Vec<u64>>>()
    };
    let complete = |family: &Family| match *family {
        Family::Complete { n } => Some(n),
        _ => None,
    };
    let ring = |family: &Family| match *family {
        Family::Complete { n } if n <= 3 => Some(n),
        Family::BiRing { n, d: 2 } => Some(n),
        _ => None,
    };
    if let Some(extents) = extents(complete) {
        let all_two = extents.iter().all(|&extent| extent == 2);
        let family = if all_two { Family::Hypercube { n: extents.len() as u64 } } else { Family::Hamming { extents } };
        return Construction::Base(family);
    }
    if let Some(extents) = extents(ring) {
        return Construction::Base(Family::Torus { extents });
    }
    match factors.split_first() {
        Some((first, rest)) if rest.iter().all(|factor| factor == first) => {
            let n = u32::try_from(factors.len()).expect("a product has at most as many factors as nodes have bits");
            first.clone().power(n)
        }
        _ => construction.clone(),
    }
}

/// The whole number whose n-th power this is; none otherwise.
fn exact_root(number: u32, n: u32) -> Option<u32> {
    (2..)
        .map_while(|root: u32| root.checked_pow(n).filter(|&power| power <= number).map(|power| (root, power)))
        .find(|&(_, power)| power == number)
        .map(|(root, _)| root)
}
