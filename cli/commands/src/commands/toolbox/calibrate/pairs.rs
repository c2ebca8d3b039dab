//! Links that messages between pairs of ranks find slow.

use canopy_calibrate::{Pair, SlowLink, slow_links};
use canopy_topology::Topology;

use crate::exit::{Failure, words};

/// None without any messages.
pub(super) fn slow(topology: &Topology, pairs: &[Pair]) -> Result<Vec<SlowLink>, Failure> {
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    slow_links(topology, pairs).map_err(|error| {
        Failure::input(words(&error)).help("name ranks by their ids or numbers in `from,to,bytes,microseconds`")
    })
}
