//! Large networks of expressions, each made once: faults are many, and the network without them is one.

use std::sync::Arc;

use canopy_synth::Stop;
use canopy_topology::{Topology, TopologyLimits};
use parking_lot::Mutex;

use super::read_topology;
use crate::error::PlanError;
use crate::planned::Warning;
use crate::recent::Recent;
use crate::request::TopologyInput;

/// Bytes of networks that are kept: four of 131,072 ranks.
const BYTES_MAX: u64 = 256 << 20;
/// Fewest nodes of a network that is worth it: others take less than a millisecond.
const NODES_MIN: usize = 4096;

/// Networks of expressions that were made lately.
#[derive(Debug)]
pub(crate) struct Bases {
    recent: Mutex<Recent<String, Arc<Topology>>>,
}

/// A network, the warnings of its reader, and the same network to keep if it is a large one of an expression.
type Read = (Topology, Vec<Warning>, Option<Arc<Topology>>);

impl Bases {
    pub(crate) fn new() -> Self {
        Self { recent: Mutex::new(Recent::new(BYTES_MAX)) }
    }

    /// Reads the network of a request, or takes it from those that are kept.
    ///
    /// * **Errors.** As [`read_topology`]. **Cost.** Its cost, or that of a copy.
    pub(crate) fn read(
        &self,
        input: &TopologyInput,
        limits: &TopologyLimits,
        stop: &dyn Stop,
    ) -> Result<Read, PlanError> {
        let TopologyInput::Expression(text) = input else {
            let (topology, warnings) = read_topology(input, limits, stop)?;
            return Ok((topology, warnings, None));
        };
        // An expression has no warnings.
        let known = self.recent.lock().get(text);
        if let Some(base) = known {
            return Ok(((*base).clone(), Vec::new(), Some(base)));
        }
        let (topology, warnings) = read_topology(input, limits, stop)?;
        if topology.nodes().len() < NODES_MIN {
            return Ok((topology, warnings, None));
        }
        let base = Arc::new(topology.clone());
        self.recent.lock().keep(text.clone(), Arc::clone(&base), weight(&topology));
        Ok((topology, warnings, Some(base)))
    }
}

/// Bytes in memory, roughly: of a node some 200 with its names, of a link 32.
fn weight(topology: &Topology) -> u64 {
    (200 * topology.nodes().len() + 32 * topology.links().len()) as u64
}

#[cfg(test)]
mod tests {
    use canopy_synth::Never;

    use super::*;

    #[test]
    fn a_large_network_is_made_once() {
        let bases = Bases::new();
        let read = |text: &str| {
            let input = TopologyInput::Expression(text.to_owned());
            bases.read(&input, &TopologyLimits::STANDARD, &Never).unwrap()
        };
        let (first, _, base) = read("dgx-h100:boxes=500");
        let (again, _, same) = read("dgx-h100:boxes=500");
        assert_eq!(first, again);
        assert!(Arc::ptr_eq(&base.unwrap(), &same.unwrap()));
        assert!(read("dgx-h100:boxes=5").2.is_none());
        let wrong = TopologyInput::Expression("dgx-h100:boxes=0".to_owned());
        assert!(matches!(bases.read(&wrong, &TopologyLimits::STANDARD, &Never), Err(PlanError::Expression(_))));
    }
}
