//! Textbook schedules in steps: recursive doubling, Bruck, binomial trees, pairwise exchange.
//!
//! They know ranks by number only and ask nothing of the network but a route over switches between each two ranks that
//! talk; the blocks of an all-to-all by pairwise exchange may pass ranks. One chunk per share (or block).

mod binomial;
mod bruck;
mod doubling;
mod error;
mod named;
mod pairwise;
mod shares;

use std::collections::HashMap;

use canopy_optimize::Stop;
use canopy_schedule::{
    Action, Carrier, Collective, CollectiveKind, Pace, RouteIndex, RouteInterner, RouteTable, Schedule, Send, Shape,
    Shares, Steps,
};
use canopy_topology::{LinkIndex, Rank, Topology};

use crate::parts::{HOPS_MAX, hops};
use crate::reach::ask;
use crate::routing::{Chooser, Heading, Levels, Loads, Network, Passing};

pub use binomial::binomial;
pub use bruck::bruck;
pub use doubling::recursive_doubling;
pub use error::SteppedError;
pub(crate) use named::plan;
pub use pairwise::pairwise;
pub use shares::with_shares;

/// A hop of a block: its ends, its route, and the block's chunk.
type BlockHop = ((Rank, Rank), RouteIndex, u64);

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
                pace: Pace::Barriers,
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
            self.push((step, action), (from, to), route, chunk)?;
        }
        Ok(())
    }

    /// Sends blocks on shortest routes, each hop of one in a step of its own from `first` on; the number of these steps.
    fn send_on(&mut self, first: u32, blocks: impl Iterator<Item = ((Rank, Rank), u64)>) -> Result<u32, SteppedError> {
        let mut steps: Vec<Vec<BlockHop>> = Vec::new();
        for ((from, to), chunk) in blocks {
            let links = self.links((from, to), Passing::Anyone)?;
            let mut holder = from;
            for (hop, place) in hops(self.topology, &links).zip(0..) {
                // A hop ends at a rank, the last one where the block is to be.
                let end = hop.last().and_then(|&link| self.topology.rank_of(self.topology.link(link).to)).unwrap_or(to);
                let route = self.routes.intern(hop);
                if steps.len() == place {
                    steps.push(Vec::new());
                }
                steps[place].push(((holder, end), route, chunk));
                holder = end;
            }
        }
        for (sends, step) in steps.iter().zip(first..) {
            for &(ends, route, chunk) in sends {
                self.push((step, Action::Copy), ends, route, chunk)?;
            }
        }
        Ok(u32::try_from(steps.len()).expect("a route has fewer hops than there are ranks"))
    }

    /// Sends one chunk.
    fn push(
        &mut self,
        (step, action): (u32, Action),
        (from, to): (Rank, Rank),
        route: RouteIndex,
        chunk: u64,
    ) -> Result<(), SteppedError> {
        let needed = self.steps.sends.len() as u64 + 1;
        if needed > HOPS_MAX {
            return Err(SteppedError::TooManySends { name: self.name, limit: HOPS_MAX });
        }
        let first = u32::try_from(needed - 1).expect("the limit of sends is below 2³²");
        self.steps.carriers.push(Carrier { route, chunk_count: 1 });
        let (chunks, carriers) = (chunk..chunk + 1, first..first + 1);
        self.steps.sends.push(Send { step, action, from, to, chunks, carriers });
        Ok(())
    }

    /// The route that all sends between two ranks take: a shortest one over switches, the least used among equals.
    fn route(&mut self, from: Rank, to: Rank) -> Result<RouteIndex, SteppedError> {
        if let Some(&route) = self.known.get(&(from, to)) {
            return Ok(route);
        }
        let links = self.links((from, to), Passing::Switches)?;
        let route = self.routes.intern(&links);
        self.known.insert((from, to), route);
        Ok(route)
    }

    /// The links of a shortest route, the least used among equals. A schedule passes the same nodes everywhere.
    fn links(&mut self, (from, to): (Rank, Rank), passing: Passing) -> Result<Vec<LinkIndex>, SteppedError> {
        ask(self.stop)?;
        let network = &self.network;
        let levels = self.levels[from.index()].get_or_insert_with(|| Levels::new(network, from.node(), passing));
        let links = self.chooser.choose(network, levels, &self.loads, to.node(), |node| node == from.node());
        let links = links.ok_or_else(|| {
            let id = |rank: Rank| self.topology.node(rank.node()).id.clone();
            let (name, from, from_rank, to, to_rank) = (self.name, id(from), from.number(), id(to), to.number());
            match passing {
                Passing::Switches => SteppedError::NoRoute { name, from, from_rank, to, to_rank },
                Passing::Anyone => SteppedError::Unreachable { name, from, from_rank, to, to_rank },
            }
        })?;
        self.loads.add(&links);
        Ok(links)
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
