//! How soon routes of an all-to-all whose traffic changes are there, and how good they are, beside stages of box
//! matchings.
//!
//! `cargo run --release -p canopy-benches --bin moving [-- MATRICES]`
//!
//! Boxes of 8 ranks, 450 GB/s to the switch and 50 GB/s for each NIC; *faulty*: a tenth of the NICs at half rate and
//! one in forty dead; *narrow*: 60 GB/s to the switch, so that relays cost as much as NICs. Each rank sends 235 MB:
//! half of it by a popularity of the receivers that all ranks share, half by one of its own, both by Zipf's law. From
//! one matrix to the next, some receivers change places. Times are those of the processor, for one matrix; *cold* is
//! without the state of the last one. A *ratio* is the proven least time over the time of the busiest link, or of all
//! stages; *parts* is how many sends a pair of ranks has on average; *proof* is how long it takes to add up what the
//! prices of a plan prove.

use std::error::Error;
use std::time::Duration;

use canopy_benches::{Random, print_table, timed_on_processors};
use canopy_moving::{Fabric, Matrix, Rates, State, Tiers, check, plan, ratio, staged};

const MATRICES: usize = 200;
const BOX_SIZE: u32 = 8;
const INNER: u64 = 450_000_000_000;
const NARROW: u64 = 60_000_000_000;
const OUTER: u64 = 50_000_000_000;
const BYTES_PER_RANK: f64 = 235e6;

fn main() -> Result<(), Box<dyn Error>> {
    let matrices = std::env::args().nth(1).map_or(Ok(MATRICES), |text| text.parse())?;
    let mut rows = Vec::new();
    for boxes in [8, 40] {
        for fabric in [Fabric::Rails, Fabric::Full] {
            for condition in [Condition::Even, Condition::Faulty, Condition::Narrow] {
                for exponent in [0.6, 1.0, 1.4] {
                    rows.push(row(boxes, fabric, condition, exponent, matrices)?);
                }
            }
        }
    }
    let heading = [
        "ranks",
        "fabric",
        "links",
        "Zipf",
        "p50 ms",
        "p99 ms",
        "cold p50 ms",
        "least ratio",
        "mean ratio",
        "parts",
        "staged ms",
        "staged ratio",
        "proof ms",
    ];
    print_table(heading, &rows);
    Ok(())
}

fn row(
    boxes: u32,
    fabric: Fabric,
    condition: Condition,
    exponent: f64,
    matrices: usize,
) -> Result<[String; 13], Box<dyn Error>> {
    let mut random = Random::new(7);
    let tiers = network(boxes, fabric, condition, &mut random)?;
    let mut traffic = Traffic::new(tiers.ranks(), exponent, &mut random);
    let mut state: Option<State> = None;
    let (mut times, mut cold_times) = (Vec::new(), Vec::new());
    let (mut staged_times, mut proof_times) = (Vec::new(), Vec::new());
    let (mut ratios, mut staged_ratios, mut parts, mut pairs) = (Vec::new(), Vec::new(), 0, 0);
    for _ in 0..matrices {
        let matrix = traffic.next(&mut random)?;
        let (planned, time) = timed_on_processors(|| plan(&tiers, &matrix, state.as_ref()));
        let planned = planned?;
        times.push(time);
        let (cold, time) = timed_on_processors(|| plan(&tiers, &matrix, None));
        cold?;
        cold_times.push(time);
        let checked = check(&tiers, &matrix, &planned.parts)?;
        let (least, time) = timed_on_processors(|| planned.prices.least_time(&tiers, &matrix));
        proof_times.push(time);
        let least = least?;
        let (stages, time) = timed_on_processors(|| staged(&tiers, &matrix));
        staged_times.push(time);
        ratios.push(ratio(least, checked.time).ok_or("a ratio beyond 128 bits")?.to_float());
        staged_ratios.push(ratio(least, stages?.time).ok_or("a ratio beyond 128 bits")?.to_float());
        parts += planned.parts.len();
        pairs += tiers.ranks() * (tiers.ranks() - 1);
        state = Some(planned.state);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    Ok([
        tiers.ranks().to_string(),
        if fabric == Fabric::Rails { "rails" } else { "full" }.to_owned(),
        condition.name().to_owned(),
        format!("{exponent:.1}"),
        milliseconds(&mut times, 50),
        milliseconds(&mut times, 99),
        milliseconds(&mut cold_times, 50),
        format!("{:.5}", ratios.iter().copied().fold(1.0, f64::min)),
        format!("{:.5}", mean(&ratios)),
        format!("{:.2}", parts as f64 / pairs.max(1) as f64),
        milliseconds(&mut staged_times, 50),
        format!("{:.3}", mean(&staged_ratios)),
        milliseconds(&mut proof_times, 50),
    ])
}

/// What a network is like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Even,
    Faulty,
    Narrow,
}

impl Condition {
    const fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Faulty => "faulty",
            Self::Narrow => "narrow",
        }
    }
}

/// A percentile.
fn milliseconds(times: &mut [Duration], percent: usize) -> String {
    times.sort_unstable();
    let place = (times.len() * percent).div_ceil(100).saturating_sub(1);
    format!("{:.2}", times.get(place).copied().unwrap_or_default().as_secs_f64() * 1e3)
}

fn network(boxes: u32, fabric: Fabric, condition: Condition, random: &mut Random) -> Result<Tiers, Box<dyn Error>> {
    let ranks = usize::try_from(boxes * BOX_SIZE)?;
    let nics: Vec<u64> = (0..ranks)
        .map(|_| match random.below(40) {
            0 if condition == Condition::Faulty => 0,
            1..5 if condition == Condition::Faulty => OUTER / 2,
            _ => OUTER,
        })
        .collect();
    let inner = vec![if condition == Condition::Narrow { NARROW } else { INNER }; ranks];
    let rates = Rates { inner_out: inner.clone(), inner_in: inner, outer_out: nics.clone(), outer_in: nics };
    Ok(Tiers::new(fabric, BOX_SIZE, rates)?)
}

/// Popularities of receivers that change.
struct Traffic {
    /// By place in the order of popularity, its part of the traffic.
    zipf: Vec<f64>,
    /// By receiver, its place for all senders; by sender and receiver, that for the sender alone.
    shared: Vec<usize>,
    own: Vec<Vec<usize>>,
}

impl Traffic {
    fn new(ranks: usize, exponent: f64, random: &mut Random) -> Self {
        let weights: Vec<f64> = (1..=ranks).map(|place| (place as f64).powf(-exponent)).collect();
        let sum: f64 = weights.iter().sum();
        let zipf = weights.iter().map(|weight| weight / sum).collect();
        let mut made = Self { zipf, shared: (0..ranks).collect(), own: vec![(0..ranks).collect(); ranks] };
        for _ in 0..8 {
            made.change(random);
        }
        made
    }

    /// An eighth of the receivers change places with any.
    fn change(&mut self, random: &mut Random) {
        for order in std::iter::once(&mut self.shared).chain(&mut self.own) {
            let ranks = order.len();
            for _ in 0..ranks.div_ceil(8) {
                order.swap(random.below(ranks), random.below(ranks));
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some megabytes")]
    fn next(&mut self, random: &mut Random) -> Result<Matrix, Box<dyn Error>> {
        self.change(random);
        let ranks = self.shared.len();
        let mut bytes = Vec::with_capacity(ranks * ranks);
        for own in &self.own {
            for (&shared, &own) in self.shared.iter().zip(own) {
                bytes.push((BYTES_PER_RANK * (self.zipf[shared] + self.zipf[own]) / 2.0) as u64);
            }
        }
        Ok(Matrix::new(u32::try_from(ranks)?, bytes)?)
    }
}
