//! How long it takes to simulate plans, and how many events a second that is.
//!
//! `cargo run --release -p canopy-benches --bin simulate`
//!
//! Allgathers of 64 MiB by forest, α 1 µs, in pieces of at most 512 KiB, under both ways of sharing links, best of five (of
//! fewer, where a run takes ten seconds).
//! *Events* are those of messages; under fair sharing each distinct time of an event has rates computed as well, so networks
//! whose plans are alike everywhere are fast. *Of bound* is the simulated rate by the proven one.

use std::error::Error;

use canopy_benches::{print_table, timed_on_processors};
use canopy_schedule::{Collective, CollectiveKind, check, compile};
use canopy_simulate::{Pieces, Sharing, SimulateError, SimulateOptions, Sync, algbw, simulate};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Latency, TopologyLimits, generate};

const NETWORKS: [&str; 5] = ["ring:128", "torus:8x16", "dgx-a100:boxes=16", "torus:32x32", "dgx-a100:boxes=128"];
const SIZE_BYTES: u64 = 64 << 20;
const RUNS: usize = 5;
/// Most work of a run: what takes more is told as such.
const WORK_MAX: u64 = 2_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut rows = Vec::new();
    for network in NETWORKS {
        let topology = generate(network, &TopologyLimits::STANDARD)?;
        let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count())?;
        let request = SynthesisRequest::new(collective, Algorithm::Forest);
        let graph = compile(&topology, &synthesize(&topology, &request, &Never, &Silent)?)?;
        let best = check(&topology, &graph)?.algbw;
        for (name, sharing) in [("fair", Sharing::Fair), ("fifo", Sharing::Fifo)] {
            let options = SimulateOptions {
                alpha: Latency::from_nanos(1_000),
                pieces: Pieces::AtMost { bytes: 512 << 10 },
                sharing,
                sync: Sync::Deps,
                ..SimulateOptions::usual(SIZE_BYTES, WORK_MAX)
            };
            let head = [format!("`{network}`"), topology.rank_count().to_string(), name.to_owned()];
            let mut least = None;
            let mut found = None;
            for _ in 0..RUNS {
                let (outcome, time) = timed_on_processors(|| simulate(&topology, &graph, &options, &|| false));
                least = least.into_iter().chain([time]).min();
                found = Some(outcome);
                // Once is enough for what ends early or takes long.
                if time.as_secs() >= 10 {
                    break;
                }
            }
            let (Some(outcome), Some(time)) = (found, least) else { continue };
            let tail = match outcome {
                Ok(outcome) => {
                    #[expect(clippy::cast_precision_loss, reason = "a rate for display")]
                    let events = outcome.event_count as f64;
                    let reached = algbw(SIZE_BYTES, outcome.time_ps).and_then(|rate| rate.ratio_to(&best));
                    [
                        outcome.message_count.to_string(),
                        outcome.event_count.to_string(),
                        format!("{:.0} ms", time.as_secs_f64() * 1e3),
                        format!("{:.2} M", events / time.as_secs_f64() / 1e6),
                        format!("{:.1}%", reached.map_or(0.0, |ratio| ratio.to_f64() * 100.0)),
                    ]
                }
                Err(error @ SimulateError::TooLarge { .. }) => [
                    error.to_string(),
                    String::new(),
                    format!("{:.0} ms", time.as_secs_f64() * 1e3),
                    String::new(),
                    String::new(),
                ],
                Err(error) => return Err(error.into()),
            };
            let [a, b, c] = head;
            let [d, e, f, g, h] = tail;
            rows.push([a, b, c, d, e, f, g, h]);
        }
    }
    print_table(["network", "ranks", "links", "messages", "events", "time", "events/s", "of bound"], &rows);
    Ok(())
}
