//! How the stored schedules of `diamond` and `dbjmod` come about: a search finds schedules that cost as little, from nothing but the
//! graph, the number of steps and the most chunks of a link in each.
//!
//! The tables themselves were found by a 0/1 program; another search finds other schedules. What is compared is what counts: as
//! many steps, no link busier in any step, all that every node must get, once. Bandwidths that are optimal leave no slack, so each
//! link carries in each step exactly what it may.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test may end it")]

use canopy_direct::{Composed, Construction, Family, Heading, Limit, Transfer};
use canopy_optimize::Never;

const LIMIT: Limit = Limit { order_max: 64, edges_max: 256 };
/// Most moves of a search; those below take some ten thousand to some million.
const MOVES_MAX: u64 = 200_000_000;
const SEED: u64 = 88_172_645_463_325_252;

/// A generator of numbers: xorshift, the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % bound
    }
}

/// How a chunk comes to a node: in which step, and over which of its in-links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    step: usize,
    link: usize,
}

/// By step, node and in-link: chunks.
type Loads = Vec<Vec<Vec<u64>>>;

/// A schedule in the making: each chunk of each source comes to every node, whatever links carry.
struct Search {
    /// By node: the tails of its in-links.
    tails: Vec<Vec<usize>>,
    /// By source and chunk, then node; none at the source.
    arrivals: Vec<Vec<Option<Arrival>>>,
    chunks: usize,
    /// By step: most chunks of a link.
    most: Vec<u64>,
    loads: Loads,
}

impl Search {
    /// Every chunk as early as it can come.
    fn new(tails: Vec<Vec<usize>>, chunks: usize, most: Vec<u64>) -> Self {
        let order = tails.len();
        let mut arrivals = vec![vec![None; order]; order * chunks];
        for (tree, arrivals) in arrivals.iter_mut().enumerate() {
            for step in 0..most.len() {
                let before = arrivals.clone();
                let has = |node: usize| node == tree / chunks || before[node].is_some();
                for node in (0..order).filter(|&node| !has(node)) {
                    let link = tails[node].iter().position(|&tail| has(tail));
                    arrivals[node] = link.map(|link| Arrival { step, link });
                }
            }
        }
        let mut search = Self { tails, arrivals, chunks, most, loads: Loads::new() };
        search.loads = search.added_up();
        search
    }

    fn added_up(&self) -> Loads {
        let mut loads: Loads = vec![self.tails.iter().map(|links| vec![0; links.len()]).collect(); self.most.len()];
        for arrivals in &self.arrivals {
            for (node, arrival) in arrivals.iter().enumerate() {
                if let Some(Arrival { step, link }) = *arrival {
                    loads[step][node][link] += 1;
                }
            }
        }
        loads
    }

    /// Chunks that links carry beyond what they may.
    fn excess(&self) -> u64 {
        let steps = self.added_up().into_iter().zip(&self.most);
        steps.flat_map(|(loads, &most)| loads.into_iter().flatten().map(move |load| load.saturating_sub(most))).sum()
    }

    /// Lets single arrivals be in other steps and over other links, if that is no worse, and one time in `tries` if it is, until
    /// nothing is carried beyond what may be. Whether that came.
    fn run(&mut self, tries: usize, numbers: &mut Numbers) -> bool {
        let mut excess = self.excess();
        for _ in 0..MOVES_MAX {
            if excess == 0 {
                return true;
            }
            let tree = numbers.below(self.arrivals.len());
            let node = numbers.below(self.tails.len());
            let Some(old) = self.arrivals[tree][node] else { continue };
            let link = numbers.below(self.tails[node].len());
            let Some((first, end)) = self.room(tree, node, link) else { continue };
            let new = Arrival { step: first + numbers.below(end - first), link };
            let relieved = self.loads[old.step][node][old.link] > self.most[old.step];
            let burdened = self.loads[new.step][node][new.link] >= self.most[new.step];
            if new == old || (burdened && !relieved && numbers.below(tries) > 0) {
                continue;
            }
            self.loads[old.step][node][old.link] -= 1;
            self.loads[new.step][node][new.link] += 1;
            self.arrivals[tree][node] = Some(new);
            excess = excess + u64::from(burdened) - u64::from(relieved);
        }
        false
    }

    /// The steps in which a chunk may come to a node over a link: after its tail has it, before others get it from the node.
    fn room(&self, tree: usize, node: usize, link: usize) -> Option<(usize, usize)> {
        let arrivals = &self.arrivals[tree];
        let first = arrivals[self.tails[node][link]].map_or(0, |arrival| arrival.step + 1);
        let passed_on = arrivals.iter().enumerate().filter_map(|(other, arrival)| {
            arrival.filter(|arrival| self.tails[other][arrival.link] == node).map(|arrival| arrival.step)
        });
        let end = passed_on.min().unwrap_or(self.most.len());
        (first < end).then_some((first, end))
    }

    /// Whether every chunk comes to every node from one that has it before, and no link carries more than it may.
    fn is_right(&self) -> bool {
        self.excess() == 0
            && self.arrivals.iter().enumerate().all(|(tree, arrivals)| {
                arrivals.iter().enumerate().all(|(node, arrival)| match *arrival {
                    None => node == tree / self.chunks,
                    Some(Arrival { step, link }) => {
                        let before = arrivals[self.tails[node][link]];
                        node != tree / self.chunks && before.is_none_or(|before| before.step < step)
                    }
                })
            })
    }
}

/// A schedule that is found anew costs as little as the stored one, in every step.
#[track_caller]
fn check(family: Family, heading: Heading, tries: usize) {
    let construction = Construction::Base(family);
    let stored = Composed::new(&construction, heading, LIMIT, &Never).unwrap();
    let index = |number: u32| usize::try_from(number).unwrap();
    let edges = stored.order() * stored.degree();
    let mut tails = vec![Vec::new(); index(stored.order())];
    for (from, to) in (0..edges).map(|edge| stored.ends(edge)) {
        tails[index(to)].push(index(from));
    }
    tails.iter_mut().for_each(|links| links.sort_unstable());
    let mut loads = vec![vec![0_u64; index(edges)]; index(stored.step_count())];
    stored.each(&mut |Transfer { step, edge, chunks, .. }| {
        loads[index(step)][index(edge)] += chunks.end - chunks.start;
    });
    let most: Vec<u64> = loads.iter().map(|step| step.iter().copied().max().unwrap()).collect();
    let mut search = Search::new(tails, usize::try_from(stored.chunks_per_share()).unwrap(), most);
    assert!(search.run(tries, &mut Numbers(SEED)), "{construction} {heading:?}: {} chunks too many", search.excess());
    assert!(search.is_right(), "{construction} {heading:?}");
}

#[test]
fn schedules_of_the_diamond_are_found_anew() {
    for heading in [Heading::Along, Heading::Against] {
        check(Family::Diamond, heading, 150);
    }
}

#[test]
fn schedules_of_modified_de_bruijn_graphs_of_degree_two_are_found_anew() {
    for n in [3, 4] {
        for heading in [Heading::Along, Heading::Against] {
            check(Family::ModifiedDeBruijn { d: 2, n }, heading, 400);
        }
    }
}
