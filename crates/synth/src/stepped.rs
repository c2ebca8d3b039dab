//! Textbook schedules in steps: recursive doubling, Bruck, binomial trees, pairwise exchange.
//!
//! They know ranks by number only and ask nothing of the network but a route over switches between each two ranks that
//! talk. One chunk per share (or block). They are material for the checker, the simulator and comparisons, not the
//! choice of a user: no name of [`Algorithm`](crate::Algorithm) stands for one.

mod binomial;
mod bruck;
mod doubling;
mod error;
mod pairwise;
mod shares;

use std::collections::HashMap;

use canopy_optimize::Stop;
use canopy_schedule::{
    Action, Carrier, Collective, CollectiveKind, RouteIndex, RouteInterner, RouteTable, Schedule, Send, Shape, Shares,
    Steps,
};
use canopy_topology::{Rank, Topology};

use crate::parts::HOPS_MAX;
use crate::reach::ask;
use crate::routing::{Chooser, Heading, Levels, Loads, Network, Passing};

pub use binomial::binomial;
pub use bruck::bruck;
pub use doubling::recursive_doubling;
pub use error::SteppedError;
pub use pairwise::pairwise;
pub use shares::with_shares;

/// A stepped schedule in the making.
struct StepParts<'a> {
    name: &'static str,
    collective: Collective,
    topology: &'a Topology,
    network: Network<'a>,
    stop: &'a dyn Stop,
    loads: Loads,
    chooser: Chooser,
    /// By sender, once it has sent: where switches lead from it.
    levels: Vec<Option<Levels>>,
    /// By sender and receiver.
    known: HashMap<(Rank, Rank), RouteIndex>,
    routes: RouteInterner,
    steps: Steps,
}

impl<'a> StepParts<'a> {
    fn new(name: &'static str, topology: &'a Topology, collective: Collective, stop: &'a dyn Stop) -> Self {
        Self {
            name,
            collective,
            topology,
            network: Network::new(topology, Heading::Along),
            stop,
            loads: Loads::none(topology),
            chooser: Chooser::new(topology),
            levels: vec![None; topology.rank_count() as usize],
            known: HashMap::new(),
            routes: RouteInterner::default(),
            steps: Steps {
                chunks_per_share: 1,
                routes: RouteTable::default(),
                carriers: Vec::new(),
                sends: Vec::new(),
            },
        }
    }

    /// Sends these chunks, one by one, in one step.
    fn send(
        &mut self,
        step: u32,
        action: Action,
        (from, to): (Rank, Rank),
        chunks: impl Iterator<Item = u64>,
    ) -> Result<(), SteppedError> {
        let route = self.route(from, to)?;
        for chunk in chunks {
            let needed = self.steps.sends.len() as u64 + 1;
            if needed > HOPS_MAX {
                return Err(SteppedError::TooManySends { name: self.name, limit: HOPS_MAX });
            }
            let first = u32::try_from(needed - 1).expect("the limit of sends is below 2³²");
            self.steps.carriers.push(Carrier { route, chunk_count: 1 });
            let (chunks, carriers) = (chunk..chunk + 1, first..first + 1);
            self.steps.sends.push(Send { step, action, from, to, chunks, carriers });
        }
        Ok(())
    }

    /// The route that all sends between two ranks take: a shortest one over switches, the least used among equals.
    fn route(&mut self, from: Rank, to: Rank) -> Result<RouteIndex, SteppedError> {
        ask(self.stop)?;
        if let Some(&route) = self.known.get(&(from, to)) {
            return Ok(route);
        }
        let network = &self.network;
        let levels =
            self.levels[from.index()].get_or_insert_with(|| Levels::new(network, from.node(), Passing::Switches));
        let links = self.chooser.choose(network, levels, &self.loads, to.node(), |node| node == from.node());
        let links = links.ok_or_else(|| {
            let id = |rank: Rank| self.topology.node(rank.node()).id.clone();
            let (from_rank, to_rank) = (from.number(), to.number());
            SteppedError::NoRoute { name: self.name, from: id(from), from_rank, to: id(to), to_rank }
        })?;
        self.loads.add(&links);
        let route = self.routes.intern(&links);
        self.known.insert((from, to), route);
        Ok(route)
    }

    fn unsupported(&self, supported: &'static str) -> SteppedError {
        SteppedError::Unsupported { name: self.name, collective: self.collective.kind(), supported }
    }

    /// The schedule.
    fn finish(mut self) -> Schedule {
        self.steps.routes = self.routes.finish();
        Schedule {
            collective: self.collective,
            algorithm: self.name.to_owned(),
            shares: Shares::Equal,
            shape: Shape::Steps(self.steps),
        }
    }
}

/// Rank `first + offset`, around the end.
fn after(first: Rank, offset: u32, rank_count: u32) -> Rank {
    let sum = (u64::from(first.number()) + u64::from(offset)) % u64::from(rank_count);
    Rank::new(u32::try_from(sum).expect("less than a u32"))
}

/// The chunk of a share: its rank's number, as there is one chunk per share; chunk 0 where there are no shares.
fn share(collective: Collective, rank: Rank) -> u64 {
    match collective.kind() {
        CollectiveKind::Broadcast | CollectiveKind::Reduce => 0,
        _ => u64::from(rank.number()),
    }
}

/// The chunk of the block that `source` has for `destination` in all-to-all.
fn block(source: Rank, destination: Rank, rank_count: u32) -> u64 {
    u64::from(source.number()) * u64::from(rank_count) + u64::from(destination.number())
}
