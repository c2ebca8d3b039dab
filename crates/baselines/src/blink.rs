//! Blink: trees of one root only.

use canopy_schedule::{AllreduceForm, CollectiveKind, Schedule, Shares};
use canopy_synth::{
    Algorithm, HeededLimits, Rival, SumOptions, SynthesisError, SynthesisRequest, Synthesized, Synthesizer, Task,
    synthesize_explained,
};
use canopy_topology::{Rank, Topology};

/// Trees of one root.
pub const BLINK: Algorithm = Algorithm::of(&BLINK_ROW);
static BLINK_ROW: Synthesizer = Synthesizer {
    limits: HeededLimits::Trees,
    rival: Some(Rival { place: 22, ..Rival::PAIRS }),
    ..Synthesizer::new(
        "blink",
        "the most trees of one root, an allreduce as its reduce and broadcast (Wang 2020)",
        &[CollectiveKind::Broadcast, CollectiveKind::Reduce, CollectiveKind::Allreduce],
        planned,
    )
};

/// Plans a broadcast or reduce as `forest` does, and an allreduce as a reduce to one rank that is followed by a
/// broadcast from it.
///
/// As many trees of the root are packed as the network has room for, with switches replaced by links between ranks as
/// in `forest`: what the articles of ForestColl compare with as *Blink+Switch*. One root adds up all of the vector,
/// so an allreduce is at most half as fast as data can come to it.
///
/// * **Source.** Wang et al., *Blink: Fast and Generic Collectives for Distributed ML* (MLSys 2020); the packing is
///   that of Zhao 2026, chapter 4. **In.** The root of an allreduce is the rank with the greatest share where shares
///   are stated, else the one whose links carry most, the first of equals.
/// * **Out.** A forest whose shares say that all is added up at the root. **Errors.** Another collective, and as
///   `forest`. **Cost.** That of `forest`.
fn planned(task: &Task<'_>) -> Result<Synthesized, SynthesisError> {
    let &Task { topology, request, known, stop, progress, .. } = task;
    let &SynthesisRequest { collective, ref shares, .. } = request;
    if !task.algorithm.collectives.contains(&collective.kind()) {
        return Err(task.algorithm.unsupported(collective.kind()));
    }
    let mut request = SynthesisRequest { algorithm: Algorithm::Forest, ..request.clone() };
    if collective.kind() == CollectiveKind::Allreduce {
        let root = root(topology, shares);
        let weights = topology.ranks().map(|rank| u64::from(rank == root)).collect();
        request.shares = Shares::Weighted(weights);
        request.sums = SumOptions { form: request.sums.form.or(Some(AllreduceForm::TwoPhases)), ..request.sums };
    }
    let found = synthesize_explained(topology, &request, known, stop, progress)?;
    let schedule = Schedule { algorithm: task.algorithm.name().to_owned(), ..found.schedule };
    Ok(Synthesized { schedule, ..found })
}

/// The rank that adds up.
fn root(topology: &Topology, shares: &Shares) -> Rank {
    let mut rates = vec![(0_u128, 0_u128); topology.nodes().len()];
    for link in topology.links() {
        rates[link.from.index()].0 += u128::from(link.capacity.bytes_per_sec());
        rates[link.to.index()].1 += u128::from(link.capacity.bytes_per_sec());
    }
    let rate = |rank: Rank| rates[rank.index()].0.min(rates[rank.index()].1);
    let best = topology.ranks().max_by_key(|&rank| (shares.weight(rank), rate(rank), std::cmp::Reverse(rank)));
    best.unwrap_or(Rank::new(0))
}
