//! How the stored schedules of `diamond` and `dbjmod` come about: a search finds each of them from nothing but the graph, the chunks
//! of a share, and how many chunks every link carries in each step. `CANOPY_APPROVE=1` writes their file anew.
//!
//! Bandwidths are optimal, which leaves no slack: together, links may carry exactly what all nodes must get. The search lets go of
//! what a node gets, and by which links in which steps, and assigns all of it anew, as far as its in-links have room: a
//! matching with room for several at each place. What finds no room is carried all the same, too much for its link; that never
//! becomes more, and node after node in random order it becomes nothing.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test may end it")]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use canopy_direct::{Composed, Construction, Family, Heading, Limit};
use canopy_optimize::Never;

const LIMIT: Limit = Limit { order_max: 64, edges_max: 256 };
/// Most nodes that are assigned anew; those below take some hundred to some thousand.
const ROUNDS_MAX: u64 = 1_000_000;

const HEAD: &str = "\
//! The stored schedules: one row for each source, in it one word for each chunk of its share, in it one letter for each node.
//!
//! The letter says how the chunk comes to the node: `a` in the first step over its first in-link, by increasing tail, then the
//! other in-links, then those in the second step, and so on; `.` is the source itself. Links carry no more in any step than makes
//! the bandwidth optimal. `tests/stored.rs` finds them and writes this file; whether they are right is tested each time one is used.

use super::Table;

";

/// A graph whose schedules are wanted, of itself and of its reverse, and what they have to keep to.
struct Wanted {
    title: &'static str,
    family: Family,
    chunks: usize,
    /// By step: chunks that each link carries.
    most: &'static [usize],
}

const WANTED: [Wanted; 4] = [
    Wanted { title: "The diamond: 3 steps, 7/8.", family: Family::Diamond, chunks: 2, most: &[2, 2, 3] },
    Wanted {
        title: "The modified de Bruijn graph of d = 2, n = 3: 4 steps, 7/8.",
        family: Family::ModifiedDeBruijn { d: 2, n: 3 },
        chunks: 2,
        most: &[2, 1, 2, 2],
    },
    Wanted {
        title: "The modified de Bruijn graph of d = 2, n = 4: 5 steps, 15/16.",
        family: Family::ModifiedDeBruijn { d: 2, n: 4 },
        chunks: 2,
        most: &[2, 2, 2, 4, 5],
    },
    Wanted {
        title: "The modified de Bruijn graph of d = 4, n = 2: 3 steps, 15/16.",
        family: Family::ModifiedDeBruijn { d: 4, n: 2 },
        chunks: 4,
        most: &[2, 5, 8],
    },
];

/// A generator of numbers: xorshift, the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        (1..items.len()).rev().for_each(|last| items.swap(last, self.below(last + 1)));
    }
}

/// When a chunk comes to a node, and over which of its in-links: step × degree + link.
type Place = usize;

/// A schedule in the making: each chunk of each source comes to every node, whatever links carry.
struct Search<'a> {
    /// By node: the tails of its in-links, rising.
    tails: Vec<Vec<usize>>,
    chunks: usize,
    most: &'a [usize],
    /// By source and chunk, then node; none at the source.
    places: Vec<Vec<Option<Place>>>,
    numbers: Numbers,
}

impl<'a> Search<'a> {
    /// Every chunk as early as it can come.
    fn new(tails: Vec<Vec<usize>>, wanted: &'a Wanted) -> Self {
        let (order, degree) = (tails.len(), tails[0].len());
        let mut places = vec![vec![None; order]; order * wanted.chunks];
        for (tree, places) in places.iter_mut().enumerate() {
            for step in 0..wanted.most.len() {
                let before = places.clone();
                let has = |node: usize| node == tree / wanted.chunks || before[node].is_some();
                for node in (0..order).filter(|&node| !has(node)) {
                    places[node] = tails[node].iter().position(|&tail| has(tail)).map(|link| step * degree + link);
                }
            }
        }
        let numbers = Numbers(88_172_645_463_325_252);
        Self { tails, chunks: wanted.chunks, most: wanted.most, places, numbers }
    }

    fn degree(&self) -> usize {
        self.tails[0].len()
    }

    /// Chunks that come to a node beyond what its in-links may carry.
    fn excess(&self, node: usize) -> usize {
        let mut loads = vec![0_usize; self.most.len() * self.degree()];
        self.places.iter().filter_map(|places| places[node]).for_each(|place| loads[place] += 1);
        loads.iter().enumerate().map(|(place, &load)| load.saturating_sub(self.most[place / self.degree()])).sum()
    }

    /// Assigns nodes anew until nothing is carried beyond what may be. Whether that came.
    fn run(&mut self) -> bool {
        for _ in 0..ROUNDS_MAX {
            if (0..self.tails.len()).all(|node| self.excess(node) == 0) {
                return true;
            }
            let node = self.numbers.below(self.tails.len());
            self.assign(node);
        }
        false
    }

    /// Assigns all that a node gets to the places where it may come, as many as there is room for.
    fn assign(&mut self, node: usize) {
        let mut trees: Vec<usize> = (0..self.places.len()).filter(|tree| tree / self.chunks != node).collect();
        self.numbers.shuffle(&mut trees);
        let mut may = vec![Vec::new(); self.places.len()];
        for &tree in &trees {
            may[tree] = self.choices(tree, node);
            self.numbers.shuffle(&mut may[tree]);
        }
        let rooms = (0..self.most.len() * self.degree()).map(|place| self.most[place / self.degree()]).collect();
        let mut matching = Matching { may: &may, rooms, held: vec![Vec::new(); self.most.len() * self.degree()] };
        for &tree in &trees {
            let mut is_seen = vec![false; matching.held.len()];
            if !matching.place(tree, &mut is_seen) {
                let choice = self.numbers.below(may[tree].len());
                self.places[tree][node] = Some(may[tree][choice]);
            }
        }
        for (place, held) in matching.held.iter().enumerate() {
            held.iter().for_each(|&tree| self.places[tree][node] = Some(place));
        }
    }

    /// Where a chunk may come to a node: after the tail of the link has it, before others get it from the node.
    fn choices(&self, tree: usize, node: usize) -> Vec<Place> {
        let (places, degree) = (&self.places[tree], self.degree());
        let passed_on = places.iter().enumerate().filter_map(|(other, place)| {
            place.filter(|place| self.tails[other][place % degree] == node).map(|place| place / degree)
        });
        let end = passed_on.min().unwrap_or(self.most.len());
        let first = |tail: usize| places[tail].map_or(0, |place| place / degree + 1);
        let links = self.tails[node].iter().enumerate();
        links.flat_map(|(link, &tail)| (first(tail)..end).map(move |step| step * degree + link)).collect()
    }

    /// Whether every chunk comes to every node from one that has it before, and no link carries more than it may.
    fn is_right(&self) -> bool {
        (0..self.tails.len()).all(|node| self.excess(node) == 0)
            && self.places.iter().enumerate().all(|(tree, places)| {
                places.iter().enumerate().all(|(node, place)| match *place {
                    None => node == tree / self.chunks,
                    Some(place) => {
                        let before = places[self.tails[node][place % self.degree()]];
                        let is_there = before.is_none_or(|before| before / self.degree() < place / self.degree());
                        node != tree / self.chunks && is_there
                    }
                })
            })
    }

    /// As it is stored.
    fn rows(&self) -> String {
        let letter = |place: &Option<Place>| place.map_or('.', |place| char::from(b'a' + u8::try_from(place).unwrap()));
        let word = |places: &Vec<Option<Place>>| -> String { places.iter().map(letter).collect() };
        let row = |trees: &[Vec<Option<Place>>]| trees.iter().map(word).collect::<Vec<_>>().join(" ");
        let mut rows = String::new();
        for trees in self.places.chunks(self.chunks) {
            writeln!(rows, "            \"{}\",", row(trees)).unwrap();
        }
        rows
    }
}

/// What comes to a node, each to a place that it may come to, no more to a place than it has room for.
struct Matching<'a> {
    /// By tree.
    may: &'a [Vec<Place>],
    /// By place.
    rooms: Vec<usize>,
    /// By place: trees.
    held: Vec<Vec<usize>>,
}

impl Matching<'_> {
    /// Finds a place for a tree, others making room if need be. Whether there is one.
    fn place(&mut self, tree: usize, is_seen: &mut [bool]) -> bool {
        let may = self.may;
        if let Some(&place) = may[tree].iter().find(|&&place| self.held[place].len() < self.rooms[place]) {
            self.held[place].push(tree);
            return true;
        }
        for &place in &may[tree] {
            if std::mem::replace(&mut is_seen[place], true) {
                continue;
            }
            for position in 0..self.held[place].len() {
                let other = self.held[place][position];
                if self.place(other, is_seen) {
                    self.held[place][position] = tree;
                    return true;
                }
            }
        }
        false
    }
}

/// By node: the tails of its in-links, rising; heads where the graph is turned around.
fn tails(family: &Family, heading: Heading) -> Vec<Vec<usize>> {
    let graph = Composed::new(&Construction::Base(family.clone()), Heading::Along, LIMIT, &Never).unwrap();
    let index = |number: u32| usize::try_from(number).unwrap();
    let mut tails = vec![Vec::new(); index(graph.order())];
    for (from, to) in (0..graph.order() * graph.degree()).map(|edge| graph.ends(edge)) {
        match heading {
            Heading::Along => tails[index(to)].push(index(from)),
            Heading::Against => tails[index(from)].push(index(to)),
        }
    }
    tails.iter_mut().for_each(|links| links.sort_unstable());
    tails
}

/// The file is what the search finds, which is right.
#[test]
fn the_stored_schedules_are_those_that_the_search_finds() {
    let mut text = format!("{HEAD}pub(super) const TABLES: [Table; {}] = [\n", 2 * WANTED.len());
    for wanted in &WANTED {
        for (title, heading) in [(wanted.title, Heading::Along), ("Its reverse: the same.", Heading::Against)] {
            let mut search = Search::new(tails(&wanted.family, heading), wanted);
            assert!(search.run() && search.is_right(), "{:?} {heading:?}: no schedule is found", wanted.family);
            let (degree, rows) = (search.degree(), search.rows());
            write!(
                text,
                "    // {title}\n    Table {{\n        degree: {degree},\n        rows: &[\n{rows}        ],\n    }},\n"
            )
            .unwrap();
        }
    }
    text += "];\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/given/tables.rs");
    if env::var_os("CANOPY_APPROVE").is_some() {
        fs::write(&path, text).unwrap();
        return;
    }
    assert!(fs::read_to_string(&path).unwrap() == text, "another schedule is stored; rerun with CANOPY_APPROVE=1");
}
