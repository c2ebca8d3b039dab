//! Collectives with a root need paths from it, or to it, and no others.

use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, Schedule, Shape, Shares, check, compile};
use canopy_topology::{Rank, Topology};

use super::one_way;
use crate::error::SynthesisError;
use crate::forest::plan;
use crate::limits::TreeLimits;
use crate::progress::Silent;

fn rate(topology: &Topology, kind: CollectiveKind, root: u32) -> Result<String, SynthesisError> {
    let collective = Collective::new(kind, Some(Rank::new(root)), topology.rank_count()).unwrap();
    let forest = plan(topology, collective, &Shares::Equal, TreeLimits::NONE, &Never, &Silent)?;
    let schedule =
        Schedule { collective, algorithm: "forest".to_owned(), shares: Shares::Equal, shape: Shape::Forest(forest) };
    let graph = compile(topology, &schedule).unwrap();
    Ok(check(topology, &graph).unwrap().algbw.to_string())
}

#[test]
fn one_direction_is_enough() {
    // a reaches all by 3 links to c, two of them through b or the switch; nothing leads back to a.
    let topology = one_way("a b c s", &[("a", "b", 5), ("b", "c", 2), ("a", "s", 1), ("s", "c", 1), ("c", "b", 1)]);
    assert_eq!(rate(&topology, CollectiveKind::Broadcast, 0).unwrap(), "3");
    assert_eq!(rate(&topology.transposed(), CollectiveKind::Reduce, 0).unwrap(), "3");
}

#[test]
fn the_direction_that_is_missing_is_named() {
    let topology = one_way("a b c", &[("a", "b", 1), ("b", "c", 1), ("c", "b", 1)]);
    let lost = |from: &str, from_rank, to: &str, to_rank| {
        Err(SynthesisError::Disconnected { from: from.to_owned(), from_rank, to: to.to_owned(), to_rank })
    };
    assert_eq!(rate(&topology, CollectiveKind::Broadcast, 1), lost("b", 1, "a", 0));
    assert_eq!(rate(&topology, CollectiveKind::Reduce, 0), lost("b", 1, "a", 0));
    assert_eq!(rate(&topology, CollectiveKind::Reduce, 2).unwrap(), "1");
}
