//! Shortest routes between ranks that talk.

use canopy_optimize::Stop;
use canopy_topology::{LinkIndex, Rank, Topology};

use crate::error::SteppedError;
use crate::reach::ask;
use crate::routing::{Chooser, Heading, Levels, Loads, Network, Passing};

/// Routes in one direction, with the use that is made of links so far.
pub(super) struct Ways<'a> {
    network: Network<'a>,
    passing: Passing,
    stop: &'a dyn Stop,
    loads: Loads,
    chooser: Chooser,
    /// By sender, once it has sent: where routes lead from it.
    levels: Vec<Option<Levels>>,
}

impl<'a> Ways<'a> {
    pub(super) fn new(topology: &'a Topology, (heading, passing): (Heading, Passing), stop: &'a dyn Stop) -> Self {
        Self {
            network: Network::new(topology, heading),
            passing,
            stop,
            loads: Loads::none(topology),
            chooser: Chooser::new(topology),
            levels: vec![None; topology.rank_count() as usize],
        }
    }

    /// The links of a shortest route, the least used among equals; none where there is no route.
    pub(super) fn links(&mut self, (from, to): (Rank, Rank)) -> Result<Option<Vec<LinkIndex>>, SteppedError> {
        ask(self.stop)?;
        let network = &self.network;
        let levels = self.levels[from.index()].get_or_insert_with(|| Levels::new(network, from.node(), self.passing));
        let links = self.chooser.choose(network, levels, &self.loads, to.node(), |node| node == from.node());
        if let Some(links) = &links {
            self.loads.add(links);
        }
        Ok(links)
    }
}
