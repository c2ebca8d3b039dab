//! Written files, as text a person reviews.

use canopy_plan::routes::write;
use canopy_schedule::{CollectiveKind, Shares};
use canopy_topology::{Topology, TopologyLimits, read_document};

use crate::routes::networks::program;

use crate::support::approved::check_approved;

/// A ring of one direction that passes a switch and a device without a rank, and ends in two links of different latency.
const ROUND: &str = "canopy: 1
nodes:
  - {id: a, rank: 0}
  - {id: b, rank: 1}
  - {id: c, rank: 2}
  - {id: d, forwards: true}
  - {id: s, kind: switch}
links:
  - {from: a, to: s, bandwidth: 9GB/s}
  - {from: s, to: b, bandwidth: 9GB/s}
  - {from: b, to: d, bandwidth: 9GB/s}
  - {from: d, to: c, bandwidth: 9GB/s}
  - {from: c, to: a, bandwidth: 2GB/s, latency: 1us}
  - {from: c, to: a, bandwidth: 3GB/s, latency: 2us}
";

fn round() -> Topology {
    read_document(ROUND.as_bytes(), None, &TopologyLimits::STANDARD).unwrap().topology
}

/// Every element and attribute there is, in two layers; then shares of different sizes.
#[test]
fn routes_as_text() {
    let all_to_all = program(&round(), CollectiveKind::AllToAll, None, Shares::Equal);
    assert_eq!((all_to_all.layer_count, all_to_all.routes_max), (2, 2));
    check_approved("all-to-all-routes.xml", &write(&all_to_all));
    let scatter = program(&round(), CollectiveKind::Scatter, Some(1), Shares::Weighted(vec![3, 1, 2]));
    check_approved("scatter-routes.xml", &write(&scatter));
}
