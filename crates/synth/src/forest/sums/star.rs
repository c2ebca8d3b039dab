//! Terminals that one switch joins: stars in a closed form.

use canopy_optimize::Fraction;
use canopy_schedule::RouteTable;
use canopy_topology::LinkIndex;
use num_integer::Integer;

use crate::error::SynthesisError;
use crate::forest::sums::piece::Shape;
use crate::forest::{RoutedHop, RoutedTree, RoutedTrees};

/// Multiples of the number of trees wished for that are tried before the one that divides all lanes exactly.
const MULTIPLES: u128 = 12;

/// Stars for a piece with a single switch between all terminals; `None` for others.
///
/// A star centred at i puts p−1 trees on the lanes of i and one on those of every other terminal. So `s_j` of them, K
/// together, take `(p−2)·s_i + K` of terminal i: with room for `u_i` trees there it can be the centre of
/// `(u_i − K)/(p−2)`, and these numbers add up to K or more exactly if `Σ u ≥ 2(p−1)·K`.
///
/// * **Source.** Our own. **In.** A rate that the piece carries, and a number of trees that others have.
/// * **Out.** Trees on links numbered as by [`Shape::links`], a multiple of this number of them where it does. **Errors.** More trees than 64 bits count.
/// * **Cost.** O(lanes + hops).
pub(super) fn solve(shape: &Shape, rate: Fraction, tree_count: u64) -> Result<Option<RoutedTrees>, SynthesisError> {
    let count = shape.terminal_count;
    let is_star =
        shape.node_count == count + 1 && shape.lanes.iter().all(|lane| lane.low < count && lane.high == count);
    if !is_star {
        return Ok(None);
    }
    // The least number that divides all lanes into whole trees, and its multiple for which centres come whole as well.
    let common = shape.lanes.iter().fold(rate.numerator, |common, lane| common.gcd(&lane.capacity.into()));
    let exact = (rate.numerator / common).checked_mul(u128::from(tree_count).max(1));
    let centred = exact.and_then(|exact| exact.checked_mul(u128::from(count.max(3) - 2)));
    let multiples = (1..=MULTIPLES).map(|times| Some(times * u128::from(tree_count)));
    for trees in multiples.chain([exact, centred]) {
        let room = trees.and_then(|trees| Some((u64::try_from(trees).ok()?, room(shape, rate, trees)?)));
        let Some((trees, room)) = room else {
            return Err(SynthesisError::TooManyTrees { trees_per_rank: trees.unwrap_or(u128::MAX), rank_count: count });
        };
        if let Some(centres) = centres(shape, &room, trees) {
            return Ok(Some(
                Star {
                    shape,
                    room,
                    trees: Vec::new(),
                    hops: Vec::new(),
                    carriers: Vec::new(),
                    routes: Routes::default(),
                }
                .draw(&centres, trees),
            ));
        }
    }
    Err(SynthesisError::Broken { what: "no stars fit where trees do".to_owned() })
}

/// Whole trees that each lane has room for; `None` on overflow.
fn room(shape: &Shape, rate: Fraction, trees: u128) -> Option<Vec<u64>> {
    let factor = trees.checked_mul(rate.denominator)?;
    let of_lane = |capacity: u64| u64::try_from(factor.checked_mul(capacity.into())? / rate.numerator).ok();
    shape.lanes.iter().map(|lane| of_lane(lane.capacity)).collect()
}

/// Numbers of stars by centre, the terminals with most room first; `None` if they are not enough.
fn centres(shape: &Shape, room: &[u64], trees: u64) -> Option<Vec<(u32, u64)>> {
    let mut sums = vec![0_u128; shape.terminal_count as usize];
    for (lane, &room) in shape.lanes.iter().zip(room) {
        sums[lane.low as usize] += u128::from(room);
    }
    let all = u128::from(trees);
    if sums.iter().any(|&sum| sum < all) {
        return None;
    }
    let per_centre = u128::from(shape.terminal_count) - 2;
    let most = |sum: u128| {
        (sum - all).checked_div(per_centre).map_or(trees, |most| u64::try_from(most.min(all)).unwrap_or(trees))
    };
    let mut by_room: Vec<(u64, u32)> = sums.into_iter().map(most).zip(0..).collect();
    by_room.sort_unstable_by_key(|&(most, terminal)| (std::cmp::Reverse(most), terminal));
    let mut left = trees;
    let mut centres = Vec::new();
    for (most, terminal) in by_room {
        let stars = most.min(left);
        if stars > 0 {
            centres.push((terminal, stars));
        }
        left -= stars;
    }
    (left == 0).then_some(centres)
}

/// Stars being laid on lanes.
struct Star<'a> {
    shape: &'a Shape,
    /// By lane: trees that still fit.
    room: Vec<u64>,
    trees: Vec<RoutedTree>,
    hops: Vec<RoutedHop>,
    carriers: Vec<(canopy_schedule::RouteIndex, u64)>,
    routes: Routes,
}

/// Routes from lane to lane, each once.
#[derive(Default)]
struct Routes {
    table: RouteTable,
    known: std::collections::BTreeMap<(usize, usize), canopy_schedule::RouteIndex>,
}

impl Star<'_> {
    fn draw(mut self, centres: &[(u32, u64)], tree_count: u64) -> RoutedTrees {
        // By lane: its links in the order of `Shape::links`.
        let mut numbers = vec![[LinkIndex::new(0); 2]; self.shape.lanes.len()];
        for ((_, lane, is_up), number) in self.shape.links().into_iter().zip(0_u32..) {
            numbers[lane][usize::from(!is_up)] = LinkIndex::new(number);
        }
        let mut of_terminal = vec![Vec::new(); self.shape.terminal_count as usize];
        for (position, lane) in self.shape.lanes.iter().enumerate() {
            of_terminal[lane.low as usize].push(position);
        }
        let index = |length: usize| u32::try_from(length).expect("a piece has fewer hops than 2³²");
        for &(centre, stars) in centres {
            let first = index(self.hops.len());
            for other in (0..self.shape.terminal_count).filter(|&other| other != centre) {
                let start = index(self.carriers.len());
                let mut left = stars;
                while left > 0 {
                    let out = self.pick(&of_terminal[centre as usize], left);
                    let into = self.pick(&of_terminal[other as usize], left);
                    let part = left.min(self.room[out]).min(self.room[into]);
                    assert!(part > 0, "a terminal has room for all trees of the stars it is in");
                    for lane in [out, into] {
                        self.room[lane] -= part;
                    }
                    let Routes { table, known } = &mut self.routes;
                    let route =
                        known.entry((out, into)).or_insert_with(|| table.push(&[numbers[out][0], numbers[into][1]]));
                    self.carriers.push((*route, part));
                    left -= part;
                }
                self.hops.push(RoutedHop { from: centre, to: other, carriers: start..index(self.carriers.len()) });
            }
            let hops = first..index(self.hops.len());
            self.trees.push(RoutedTree { root: centre, multiplicity: stars, hops });
        }
        let Self { trees, hops, carriers, routes, .. } = self;
        RoutedTrees { trees_per_root: tree_count, trees, hops, carriers, routes: routes.table }
    }

    /// The first lane with room for so many trees, else the one with most.
    fn pick(&self, lanes: &[usize], wanted: u64) -> usize {
        let enough = lanes.iter().copied().find(|&lane| self.room[lane] >= wanted);
        let most = || lanes.iter().copied().max_by_key(|&lane| (self.room[lane], std::cmp::Reverse(lane)));
        enough.or_else(most).expect("a terminal of a star has a lane")
    }
}
