//! Which algorithms are compared, and their plans.

use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;

use crate::commands::simulate::{SimulateArgs, fresh};
use crate::connection::ask;
use crate::exit::Failure;

/// The file of an algorithm's plan, or why there is none.
pub(super) struct Answer {
    pub(super) algorithm: Algorithm,
    pub(super) plan: Result<Vec<u8>, Failure>,
}

/// What is compared: as named, or the usual ones.
///
/// # Errors
/// A name that is given twice.
pub(super) fn named(algorithms: &[Algorithm], kind: CollectiveKind) -> Result<Vec<Algorithm>, Failure> {
    require_distinct(algorithms)?;
    if algorithms.is_empty() { Ok(usual(kind)) } else { Ok(algorithms.to_vec()) }
}

/// Refuses a name that is given twice.
pub(in crate::commands::simulate) fn require_distinct(algorithms: &[Algorithm]) -> Result<(), Failure> {
    for (number, algorithm) in algorithms.iter().enumerate() {
        if algorithms.iter().take(number).any(|other| other == algorithm) {
            return Err(Failure::input(format!("--algorithms names {algorithm} twice")).help("name each once"));
        }
    }
    Ok(())
}

/// What plans a collective without a long search, whatever the network: those of the best rate, those of families of networks, those of few
/// steps, then the textbook's. Among equals the first counts as the fastest.
fn usual(kind: CollectiveKind) -> Vec<Algorithm> {
    let all = [
        Algorithm::Forest,
        Algorithm::Flow,
        Algorithm::Kautz,
        Algorithm::KautzM,
        Algorithm::Dfc2,
        Algorithm::Dfc2Do,
        Algorithm::Bfb,
        Algorithm::Tacos,
        Algorithm::Multitree,
        Algorithm::Direct,
        Algorithm::Ring,
        Algorithm::Pairwise,
        Algorithm::Bruck,
        Algorithm::RecursiveDoubling,
        Algorithm::Binomial,
        Algorithm::DoubleTree,
        canopy_baselines::LOCAL_RING,
    ];
    all.into_iter().filter(|algorithm| algorithm.collectives.contains(&kind)).collect()
}

/// Asks for the plan of each, one after the other.
///
/// # Errors
/// What has nothing to do with a single plan: no server, or one that has no room or is at fault.
pub(super) async fn plans(
    args: &SimulateArgs,
    kind: CollectiveKind,
    algorithms: &[Algorithm],
) -> Result<Vec<Answer>, Failure> {
    let unnamed = fresh::unnamed(args, kind, args.collective.root)?;
    ask(&args.server, None, async |connection, _| {
        let mut answers = Vec::with_capacity(algorithms.len());
        for &algorithm in algorithms {
            let plan = fresh::tried(connection, &unnamed, algorithm, args.deadline).await?;
            answers.push(Answer { algorithm, plan });
        }
        Ok(answers)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_ones_are_named_once_and_others_must_be() {
        for kind in CollectiveKind::ALL {
            let usual = usual(kind);
            assert!(named(&usual, kind).is_ok_and(|named| named == usual), "{kind}");
            assert!(named(&[], kind).is_ok_and(|named| named == usual), "{kind}");
        }
        assert!(named(&[Algorithm::Ring, Algorithm::Direct, Algorithm::Ring], CollectiveKind::Allgather).is_err());
    }
}
