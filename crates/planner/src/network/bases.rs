//! Large networks of expressions, each made once: faults are many, and the network without them is one.

use std::sync::{Arc, OnceLock};

use canopy_synth::Stop;
use canopy_topology::{Topology, TopologyLimits, identity_hash};
use parking_lot::Mutex;

use super::read_topology;
use crate::error::PlanError;
use crate::key::TopologyKey;
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
    recent: Mutex<Recent<String, Arc<Base>>>,
}

/// A large network of an expression.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) topology: Arc<Topology>,
    id: OnceLock<String>,
}

/// A network that was read.
pub(crate) struct Whole {
    pub(crate) topology: Topology,
    /// Those of its reader.
    pub(crate) warnings: Vec<Warning>,
    /// The same network as it is kept, if it is a large one of an expression.
    pub(crate) base: Option<Arc<Base>>,
}

impl Whole {
    /// The id under which the network is kept and named. O(nodes + links), once for those of large expressions.
    pub(crate) fn id(&self) -> String {
        let id = || TopologyKey::id_of(&identity_hash(&self.topology));
        self.base.as_ref().map_or_else(id, |base| base.id.get_or_init(id).clone())
    }
}

impl Bases {
    pub(crate) fn new() -> Self {
        Self { recent: Mutex::new(Recent::new(BYTES_MAX)) }
    }

    /// Reads the network of a request, or takes it from those that are kept.
    ///
    /// * **Errors.** As [`read_topology`]. **Cost.** Its cost, or O(1).
    pub(crate) fn read(
        &self,
        input: &TopologyInput,
        limits: &TopologyLimits,
        stop: &dyn Stop,
    ) -> Result<Whole, PlanError> {
        let expression = match input {
            TopologyInput::Expression(text) => Some(text),
            TopologyInput::Document { .. } | TopologyInput::Inline(_) => None,
        };
        // An expression has no warnings.
        let known = expression.and_then(|text| self.recent.lock().get(text));
        if let Some(base) = known {
            return Ok(Whole { topology: (*base.topology).clone(), warnings: Vec::new(), base: Some(base) });
        }
        let (topology, warnings) = read_topology(input, limits, stop)?;
        let kept = expression.filter(|_| topology.nodes().len() >= NODES_MIN).map(|text| {
            let base = Arc::new(Base { topology: Arc::new(topology.clone()), id: OnceLock::new() });
            self.recent.lock().keep(text.clone(), Arc::clone(&base), weight(&topology));
            base
        });
        Ok(Whole { topology, warnings, base: kept })
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
        let (first, again) = (read("dgx-h100:boxes=500"), read("dgx-h100:boxes=500"));
        assert_eq!((&first.topology, first.id()), (&again.topology, again.id()));
        assert!(Arc::ptr_eq(&first.base.unwrap(), &again.base.unwrap()));
        let small = read("dgx-h100:boxes=5");
        assert_eq!(small.id(), TopologyKey::id_of(&identity_hash(&small.topology)));
        assert!(small.base.is_none());
        let wrong = TopologyInput::Expression("dgx-h100:boxes=0".to_owned());
        assert!(matches!(bases.read(&wrong, &TopologyLimits::STANDARD, &Never), Err(PlanError::Expression(_))));
    }
}
