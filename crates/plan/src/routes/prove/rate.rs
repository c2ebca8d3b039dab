//! What the links can carry in how much time.

use canopy_schedule::CollectiveKind;
use canopy_topology::Rate;

use super::network::Network;
use crate::oneccl::{Findings, Place};
use crate::routes::program::Program;

/// Compares the stated rate with the one that the busiest link allows.
///
/// A link of rate `c` over which `L` chunks go is busy for `L · chunk / c`, so that `V` chunks take as long as the greatest
/// `L / c`. *V* is all shares, in all-to-all the blocks of one rank, its own included.
pub(super) fn check(program: &Program, network: &Network<'_>, findings: &mut Findings<'_>) {
    let rates: Vec<u64> = network.rates().collect();
    // Fewer than 2³² queue pairs of fewer than 2³² chunks each, none of which passes a link twice.
    let mut loads = vec![0_u64; rates.len()];
    for rank in &network.ranks {
        for pair in &rank.queue_pairs {
            for channel in network.channels(rank, pair) {
                loads[channel as usize] += u64::from(pair.chunk_count);
            }
        }
        if findings.must_stop(rank.ports.len() as u64) {
            return;
        }
    }
    let takes_longer = |(load, rate): (u64, u64), (other_load, other_rate): (u64, u64)| {
        u128::from(load) * u128::from(other_rate) > u128::from(other_load) * u128::from(rate)
    };
    let busiest = loads.into_iter().zip(rates).reduce(|most, next| if takes_longer(next, most) { next } else { most });
    let of_ranks = |part: fn(&(u32, u32)) -> u32| -> u64 {
        let chunks = network.ranks.iter().map(|rank| (rank.input_chunks, rank.output_chunks));
        chunks.map(|both| u64::from(part(&both))).sum()
    };
    let size = match program.collective.kind() {
        CollectiveKind::Gather => of_ranks(|(input, _)| *input),
        CollectiveKind::Scatter => of_ranks(|(_, output)| *output),
        _ => u64::from(program.block_chunks) * u64::from(program.rank_count),
    };
    let found = busiest.and_then(|(load, rate)| Rate::new(u128::from(size) * u128::from(rate), load));
    match found {
        None => findings.problem(Place::FILE, "the file carries no data, so it has no rate"),
        Some(rate) if rate != program.algbw => {
            let text = format!("algbw is {}, but the busiest link allows {rate} bytes/s", program.algbw);
            findings.problem(Place::FILE, text);
        }
        Some(_) => {}
    }
}
