//! Schedules by slower clocks, where the own one ticks so fast that no program has room for its moments.
//!
//! Times are rounded to whole ticks of the slower clock. What is sent there in some order is sent in the same order in true times, each as
//! soon as it can. That proves nothing, but may be better than what is known.
//!
//! Source: Won et al., section 2, for the factor; our notes, for which ones are tried. They round up, so that starts can stay; as ours
//! move, the nearest tick is nearer to the truth.

use canopy_optimize::{Decision, Stop, Stopped};

use super::demands::ChunkDemands;
use super::model::{Models, NoModel};
use super::{IlpEffort, proposed};
use crate::network::{TimedLink, TimedNetwork};
use crate::sends::{Sends, Sent};

/// Most horizons that are decided by one clock.
const HORIZONS_MAX: u64 = 12;

/// The best of what is known and what is found by clocks whose ticks are 1, 1/2, 1/4, … of the shortest latency, as long as programs
/// have room for their moments.
///
/// * **In.** A bound of the end. **Out.** Sends that end no later than those that are known.
/// * **Errors.** Stopped. **Cost.** That of a dozen programs for each clock at most.
pub(super) fn improved(
    network: &TimedNetwork,
    demands: &ChunkDemands,
    mut best: Sends,
    bound: u64,
    effort: IlpEffort,
    stop: &dyn Stop,
) -> Result<Sends, Stopped> {
    let shortest = network.links().iter().map(|link| link.latency).min().unwrap_or(1);
    for parts in (0..).map(|power| 1_u64 << power).take_while(|&parts| parts < shortest) {
        let tick = shortest.div_ceil(parts);
        let rounded = by_ticks(network, tick);
        let models = Models::new(&rounded, demands, effort.variables_max);
        let first = bound / tick;
        for horizon in first..first.saturating_add(HORIZONS_MAX) {
            if stop.is_requested() {
                return Err(Stopped);
            }
            let model = match models.of(horizon) {
                Err(NoModel::TooFar) => continue,
                Err(NoModel::TooLarge(_)) if horizon == first => return Ok(best),
                Err(NoModel::TooLarge(_)) => break,
                Ok(model) => model,
            };
            let decision = model.program.decide(effort.binary(), stop)?;
            let found = match &decision {
                Decision::Infeasible => continue,
                Decision::Feasible(choice) => Some(demands.useful(&rounded, model.sends(choice))),
                Decision::Undecided => proposed(&rounded, demands, &model, effort.binary(), stop)?,
            };
            if let Some(found) = found.map(|found| as_soon_as_possible(network, demands, found.sends))
                && found.end < best.end
            {
                best = found;
            }
            if decision != Decision::Undecided || best.end <= bound {
                break;
            }
        }
        if best.end <= bound {
            break;
        }
    }
    Ok(best)
}

/// The network by a slower clock, times rounded.
fn by_ticks(network: &TimedNetwork, tick: u64) -> TimedNetwork {
    let ticks = |time: u64| ((time + tick / 2) / tick).max(1);
    let slower =
        |link: &TimedLink| TimedLink { latency: ticks(link.latency), occupancy: ticks(link.occupancy), ..*link };
    TimedNetwork::new(network.node_count(), network.links().iter().map(slower).collect())
        .expect("times between one tick and those of a network")
}

/// The same sends in the same order, each as soon as its link is free and its chunk there.
fn as_soon_as_possible(network: &TimedNetwork, demands: &ChunkDemands, mut sends: Vec<Sent>) -> Sends {
    sends.sort_unstable();
    let mut free = vec![0; network.links().len()];
    let mut held = demands.held.clone();
    sends.retain_mut(|sent| {
        let (link, held) = (network.link(sent.link), &mut held[sent.chunk as usize]);
        let free = &mut free[sent.link as usize];
        let Some(&since) = held.get(&link.from) else { return false };
        sent.start = since.max(*free);
        *free = sent.start + link.occupancy;
        held.insert(link.to, sent.start + link.latency);
        true
    });
    demands.useful(network, sends)
}
