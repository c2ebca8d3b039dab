//! Prices on rails where no cut is tight: fluid traffic over all relays, rerouted by prices that follow its loads.
//!
//! Floats propose prices here; what these prove is added up elsewhere, in integers.

use crate::matrix::{Matrix, Sums};
use crate::prices::Prices;
use crate::tiers::Tiers;

/// Lengths or loads of all links: four entries by rank, in the order of [`Prices`].
type Links = Vec<[f64; 4]>;

const INNER_OUT: usize = 0;
const INNER_IN: usize = 1;
const OUTER_OUT: usize = 2;
const OUTER_IN: usize = 3;

/// Work of all rounds together, in looks at a rail for an entry of the matrix.
const WORK_MAX: usize = 500_000_000;

/// Rounds that cost as much as their looks at rails, and the most rounds.
const WORK_ROUND: usize = 40_000;
const ROUNDS_MAX: usize = 10_000;

/// Steepness of prices: at first, at last.
const STEEPNESS: f64 = 40.0;
const STEEPNESS_LAST: f64 = 3_000.0;

/// Rounds after which the mean of prices is tried, and the part of a round in it.
const MEAN_EVERY: usize = 32;
const FADING: f64 = 0.1;

/// Steps of a line search.
const HALVINGS: usize = 24;

/// The largest whole price.
const PRICE_MAX: f64 = (1 << 20) as f64;

/// Looks for prices that prove more than `least` seconds.
///
/// The greatest load over rate, in a smooth form, is minimised over all fluid traffic (Frank and Wolfe): each round
/// sends all bytes over their cheapest ways, and mixes that with what was sent so far. Prices of any round are a proof;
/// the best are taken.
///
/// * **In.** `start`: loads of any traffic that arrives. **Out.** Whole prices.
/// * **Cost.** Rounds of O(ranks²·rails), up to [`WORK_MAX`] in sum.
pub(crate) fn ascend(tiers: &Tiers, matrix: &Matrix, sums: &Sums, least: f64, start: Option<Links>) -> Option<Prices> {
    let mut network = Network::new(tiers, matrix, sums);
    let unit = |rate: f64| if rate > 0.0 { 1.0 / rate } else { f64::INFINITY };
    let even: Links = network.rates.iter().map(|rates| rates.map(unit)).collect();
    let mut loads = match start {
        Some(loads) => loads,
        None => network.cheapest(&even).1,
    };
    let looks = tiers.ranks() * tiers.ranks() * tiers.hubs() + WORK_ROUND;
    let rounds = (WORK_MAX / looks).clamp(2, ROUNDS_MAX);
    let growth = (STEEPNESS_LAST / STEEPNESS).powf(1.0 / rounds as f64);
    let mut steepness = STEEPNESS;
    let mut best: (f64, Option<Links>) = (least * (1.0 + 1e-7), None);
    let mut mean: Links = vec![[0.0; 4]; tiers.ranks()];
    for round in 1..=rounds {
        let prices = network.prices(&loads, least, steepness);
        let (value, other) = network.cheapest(&prices);
        network.average(&mut mean, &prices);
        if value > best.0 {
            best = (value, Some(prices));
        }
        if round.is_multiple_of(MEAN_EVERY) {
            let (value, _) = network.cheapest(&mean);
            if value > best.0 {
                best = (value, Some(mean.clone()));
            }
        }
        let step = network.step(&loads, &other, least, steepness);
        let mix = |(now, then): (&mut [f64; 4], &[f64; 4])| {
            now.iter_mut().zip(then).for_each(|(now, then)| *now += step * (then - *now));
        };
        loads.iter_mut().zip(&other).for_each(mix);
        if network.greatest(&loads) <= best.0 * (1.0 + 1e-6) {
            break;
        }
        steepness *= growth;
    }
    best.1.map(|prices| whole_prices(&prices))
}

/// A network with the traffic on it.
struct Network<'a> {
    tiers: &'a Tiers,
    matrix: &'a Matrix,
    rates: Links,
    /// What stays in boxes, which takes one way.
    inside: Links,
    /// By rank and rail, the way to it, and the rail by which that begins.
    to_hub: Vec<(f64, usize)>,
    /// By rank and rail, the way from it.
    from_hub: Vec<f64>,
    /// Bytes by rank and rail: which the rank's bytes arrive on, and come from.
    sent: Vec<f64>,
    received: Vec<f64>,
}

impl<'a> Network<'a> {
    fn new(tiers: &'a Tiers, matrix: &'a Matrix, sums: &Sums) -> Self {
        let (ranks, hubs, rates) = (tiers.ranks(), tiers.hubs(), tiers.rates());
        let of_rank = |rank: usize| {
            let links = [&rates.inner_out, &rates.inner_in, &rates.outer_out, &rates.outer_in];
            links.map(|rates| rates[rank] as f64)
        };
        let inside = |rank: usize| [sums.inside_out[rank] as f64, sums.inside_in[rank] as f64, 0.0, 0.0];
        Self {
            tiers,
            matrix,
            rates: (0..ranks).map(of_rank).collect(),
            inside: (0..ranks).map(inside).collect(),
            to_hub: vec![(f64::INFINITY, 0); ranks * hubs],
            from_hub: vec![f64::INFINITY; ranks * hubs],
            sent: vec![0.0; ranks * hubs],
            received: vec![0.0; ranks * hubs],
        }
    }

    /// The greatest time of a link.
    fn greatest(&self, loads: &Links) -> f64 {
        let times = loads.iter().zip(&self.rates).flat_map(|(loads, rates)| loads.iter().zip(rates));
        times.map(|(load, rate)| if *rate > 0.0 { load / rate } else { 0.0 }).fold(0.0, f64::max)
    }

    /// Prices that grow with the loads.
    fn prices(&self, loads: &Links, time: f64, steepness: f64) -> Links {
        let greatest = self.greatest(loads);
        let price = |load: f64, rate: f64| {
            if rate > 0.0 { (steepness * (load / rate - greatest) / time).exp() / rate } else { f64::INFINITY }
        };
        let both = loads.iter().zip(&self.rates);
        both.map(|(loads, rates)| std::array::from_fn(|link| price(loads[link], rates[link]))).collect()
    }

    /// Mixes prices, in the proportion of what all links take, into those of earlier rounds, which fade.
    fn average(&self, mean: &mut Links, prices: &Links) {
        let takes = self.takes(prices);
        for (mean, prices) in mean.iter_mut().zip(prices) {
            for (mean, price) in mean.iter_mut().zip(prices) {
                *mean = if price.is_finite() { *mean + FADING * (price / takes - *mean) } else { f64::INFINITY };
            }
        }
    }

    /// What all links take in a second.
    fn takes(&self, prices: &Links) -> f64 {
        let products = prices.iter().zip(&self.rates).flat_map(|(prices, rates)| prices.iter().zip(rates));
        products.map(|(price, rate)| if *rate > 0.0 { price * rate } else { 0.0 }).sum()
    }

    /// The time that prices prove, and the loads of all bytes on their cheapest ways.
    fn cheapest(&mut self, prices: &Links) -> (f64, Links) {
        let hubs = Hubs::new(self.tiers, prices);
        self.ways(prices, &hubs);
        let mut loads = self.inside.clone();
        let mut pays = self.send();
        for (inside, prices) in self.inside.iter().zip(prices) {
            pays += inside[INNER_OUT] * prices[INNER_OUT] + inside[INNER_IN] * prices[INNER_IN];
        }
        self.load(prices, &hubs, &mut loads);
        (pays / self.takes(prices), loads)
    }

    /// Ways between ranks and rails.
    fn ways(&mut self, prices: &Links, hubs: &Hubs) {
        let (size, count) = (self.tiers.box_size(), self.tiers.hubs());
        for (rank, price) in prices.iter().enumerate() {
            let home = rank / size * size;
            let own = self.tiers.hub(rank);
            let direct: Vec<f64> = (0..count)
                .map(|hub| {
                    let relay = prices[home + hub];
                    if hub == own { relay[OUTER_OUT] } else { price[INNER_OUT] + relay[INNER_IN] + relay[OUTER_OUT] }
                })
                .collect();
            for hub in 0..count {
                let mut best = (direct[hub], hub);
                for (first, way) in direct.iter().enumerate() {
                    let way = way + hubs.ways[first * count + hub].0;
                    if way < best.0 {
                        best = (way, first);
                    }
                }
                self.to_hub[rank * count + hub] = best;
                let relay = prices[home + hub];
                let way = if hub == own { 0.0 } else { relay[INNER_OUT] + price[INNER_IN] };
                self.from_hub[rank * count + hub] = relay[OUTER_IN] + way;
            }
        }
    }

    /// Sends each entry to the rail that is cheapest, and says what all pay.
    fn send(&mut self) -> f64 {
        let (size, count) = (self.tiers.box_size(), self.tiers.hubs());
        self.sent.fill(0.0);
        self.received.fill(0.0);
        let mut pays = 0.0;
        for from in 0..self.tiers.ranks() {
            let to_hub = &self.to_hub[from * count..(from + 1) * count];
            for (to, &bytes) in self.matrix.row(from).iter().enumerate() {
                if bytes == 0 || to / size == from / size {
                    continue;
                }
                let mut best = (f64::INFINITY, 0);
                for (hub, (first, last)) in to_hub.iter().zip(&self.from_hub[to * count..(to + 1) * count]).enumerate()
                {
                    let way = first.0 + last;
                    if way < best.0 {
                        best = (way, hub);
                    }
                }
                pays += best.0 * bytes as f64;
                self.sent[from * count + best.1] += bytes as f64;
                self.received[to * count + best.1] += bytes as f64;
            }
        }
        pays
    }

    /// What that loads.
    fn load(&self, prices: &Links, hubs: &Hubs, loads: &mut Links) {
        let (size, count) = (self.tiers.box_size(), self.tiers.hubs());
        let mut hops = vec![0.0; count * count];
        for rank in 0..prices.len() {
            let home = rank / size * size;
            let own = self.tiers.hub(rank);
            for hub in 0..count {
                let bytes = self.sent[rank * count + hub];
                if bytes > 0.0 {
                    let first = self.to_hub[rank * count + hub].1;
                    loads[home + first][OUTER_OUT] += bytes;
                    if first != own {
                        loads[rank][INNER_OUT] += bytes;
                        loads[home + first][INNER_IN] += bytes;
                    }
                    hops[first * count + hub] += bytes;
                }
                let bytes = self.received[rank * count + hub];
                loads[home + hub][OUTER_IN] += bytes;
                if hub != own {
                    loads[home + hub][INNER_OUT] += bytes;
                    loads[rank][INNER_IN] += bytes;
                }
            }
        }
        for (pair, &bytes) in
            hops.iter().enumerate().filter(|&(pair, &bytes)| bytes > 0.0 && pair / count != pair % count)
        {
            hubs.load(pair / count, pair % count, bytes, size, loads);
        }
    }

    /// How far to go from some loads to others so that the smooth greatest time is least.
    fn step(&self, now: &Links, then: &Links, time: f64, steepness: f64) -> f64 {
        let mut links = Vec::with_capacity(4 * now.len());
        for ((now, then), rates) in now.iter().zip(then).zip(&self.rates) {
            for link in 0..4 {
                let (before, after) = (now[link] / rates[link] / time, then[link] / rates[link] / time);
                if rates[link] > 0.0 && before.max(after) > 0.0 {
                    links.push((before, after - before));
                }
            }
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let step = (low + high) / 2.0;
            let greatest = links.iter().map(|(now, more)| now + step * more).fold(0.0, f64::max);
            let slope = |&(now, more): &(f64, f64)| more * (steepness * (now + step * more - greatest)).exp();
            if links.iter().map(slope).sum::<f64>() > 0.0 { high = step } else { low = step }
        }
        low
    }
}

/// Ways from rail to rail over boxes: the length, and the box of the first change and the rail that it leads to.
struct Hubs {
    count: usize,
    ways: Vec<(f64, usize, usize)>,
}

impl Hubs {
    fn new(tiers: &Tiers, prices: &Links) -> Self {
        let (count, size) = (tiers.hubs(), tiers.box_size());
        let mut ways = vec![(f64::INFINITY, 0, 0); count * count];
        for (home, prices) in prices.chunks(size).enumerate() {
            for from in 0..count {
                for to in (0..count).filter(|to| *to != from) {
                    let way = prices[from][OUTER_IN] + prices[from][INNER_OUT] + prices[to][INNER_IN];
                    let way = way + prices[to][OUTER_OUT];
                    if way < ways[from * count + to].0 {
                        ways[from * count + to] = (way, home, to);
                    }
                }
            }
        }
        for middle in 0..count {
            for from in 0..count {
                for to in 0..count {
                    let way = ways[from * count + middle].0 + ways[middle * count + to].0;
                    if from != to && way < ways[from * count + to].0 {
                        let (_, home, next) = ways[from * count + middle];
                        ways[from * count + to] = (way, home, next);
                    }
                }
            }
        }
        Self { count, ways }
    }

    /// Adds the loads of bytes that change rails.
    fn load(&self, from: usize, to: usize, bytes: f64, size: usize, loads: &mut Links) {
        let mut at = from;
        for _ in 0..self.count {
            if at == to {
                return;
            }
            let (_, home, next) = self.ways[at * self.count + to];
            let (enters, leaves) = (home * size + at, home * size + next);
            loads[enters][OUTER_IN] += bytes;
            loads[enters][INNER_OUT] += bytes;
            loads[leaves][INNER_IN] += bytes;
            loads[leaves][OUTER_OUT] += bytes;
            at = next;
        }
    }
}

/// Prices in whole numbers; those of dead links, which count nowhere, are 0.
fn whole_prices(prices: &Links) -> Prices {
    let finite = prices.iter().flatten().copied().filter(|price| price.is_finite());
    let scale = PRICE_MAX / finite.fold(f64::MIN_POSITIVE, f64::max);
    let by_class = |class: usize| prices.iter().map(|prices| whole(prices[class] * scale)).collect();
    Prices {
        inner_out: by_class(INNER_OUT),
        inner_in: by_class(INNER_IN),
        outer_out: by_class(OUTER_OUT),
        outer_in: by_class(OUTER_IN),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the largest price")]
fn whole(price: f64) -> u32 {
    if price.is_finite() { price.round() as u32 } else { 0 }
}
