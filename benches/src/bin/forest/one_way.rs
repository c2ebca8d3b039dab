//! How close plans come to the cut on random networks with links that are slower one way.

use std::error::Error;

use canopy_benches::print_table;
use canopy_schedule::{Collective, CollectiveKind, Shares, check, compile};
use canopy_synth::{Algorithm, Never, SynthesisRequest, bound, synthesize};
use canopy_topology::{Fault, TopologyLimits, generate};

/// Random networks for each number of links.
const NETWORKS: u64 = 200;

pub(crate) fn print() -> Result<(), Box<dyn Error>> {
    let rows = [1, 4, 16, 64].map(one_way).into_iter().collect::<Result<Vec<_>, _>>()?;
    print_table(["links slower one way", "networks", "at the cut", "least", "1 %", "10 %", "mean"], &rows);
    Ok(())
}

/// How close plans come to the cut on random networks, so many of whose links keep a quarter to three quarters one way.
fn one_way(count: u64) -> Result<[String; 7], Box<dyn Error>> {
    let mut ratios = Vec::new();
    for seed in 0..NETWORKS {
        let expression = format!("random-euler:n={},switches={},seed={seed}", 8 + seed % 9, 1 + seed % 5);
        let topology = generate(&expression, &TopologyLimits::STANDARD)?;
        let mut random = seed;
        let mut draw = |below: u64| {
            // Knuth's linear congruential generator.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let faults = (0..count).map(|_| {
            let link = &topology.links()[usize::try_from(draw(topology.links().len() as u64)).unwrap_or(0)];
            let id = |node| topology.node(node).id.clone();
            let (from, to, numerator) = (id(link.from), id(link.to), 1 + draw(3));
            Fault::Degrade { from, to, both_ways: false, numerator, denominator: 4 }
        });
        let mut faults: Vec<Fault> = faults.collect();
        faults.sort_by_key(|fault| format!("{fault:?}"));
        faults.dedup_by_key(|fault| match fault {
            Fault::Degrade { from, to, .. } => Some((from.clone(), to.clone())),
            _ => None,
        });
        let topology = topology.punctured(&faults)?;
        let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count())?;
        let request = SynthesisRequest::new(collective, Algorithm::Auto);
        let schedule = synthesize(&topology, &request, &Never, &canopy_synth::Silent)?;
        let reached = check(&topology, &compile(&topology, &schedule)?)?.algbw;
        let limit = bound(&topology, collective, &Shares::Equal, &Never)?.upper;
        ratios.push(reached.ratio_to(&limit).map_or(0.0, |ratio| ratio.to_f64()));
    }
    ratios.sort_by(f64::total_cmp);
    let at = |part: usize| format!("{:.4}", ratios[ratios.len() * part / 100]);
    let whole = ratios.iter().filter(|&&ratio| ratio >= 1.0).count();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    Ok([count.to_string(), ratios.len().to_string(), whole.to_string(), at(0), at(1), at(10), format!("{mean:.4}")])
}
