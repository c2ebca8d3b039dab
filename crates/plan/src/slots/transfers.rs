//! The transfer graph of units that take stated routes.

use canopy_schedule::{Action, Batch, Collective, CollectiveKind, Pace, RouteTable, Shares, Transfer, TransferGraph};
use canopy_topology::Rank;

use super::Slots;

/// Most routes: what any runtime has room for has far fewer.
const ROUTES_MAX: usize = 1 << 18;

/// Units of a slot that take one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRoute {
    /// The ranks that have them, one after the other: the sender, those that pass them on, the receiver.
    pub ranks: Vec<u32>,
    /// The first of them, counted from the start of the slot.
    pub first: u64,
    /// How many; at least 1.
    pub count: u64,
}

/// What is wrong with routes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SlotRouteError {
    #[error("routes[{route}] names {found} ranks; name the sender and the receiver at least")]
    TooShort { route: usize, found: usize },
    #[error("routes[{route}] names rank {rank}, and there are {ranks}, numbered from 0")]
    NoSuchRank { route: usize, rank: u32, ranks: u32 },
    #[error("routes[{route}] comes to rank {rank} twice; leave out what lies between")]
    Twice { route: usize, rank: u32 },
    #[error("routes[{route}] has no units; leave it out")]
    Empty { route: usize },
    #[error(
        "of the {filled} units that rank {from} has for rank {to}, routes take {found} from the first on, each once; state \
         routes for all"
    )]
    Units { from: u32, to: u32, filled: u64, found: u64 },
    #[error("there are {routes} routes, over the limit of {ROUTES_MAX}; plan for fewer ranks, or use larger units")]
    TooMany { routes: usize },
}

/// Turns routes into a transfer graph in which every unit that is filled moves once.
///
/// Routes are ordered by how far the receiver is behind the sender, in numbers of ranks: so in each turn every rank
/// sends to another one. The graph names ranks only, and no links.
///
/// * **Errors.** [`SlotRouteError`]: a unit without a route or with two, a rank that does not exist or is met twice.
/// * **Cost.** O(ranks² + hops·hops of a route + routes log routes).
pub fn slot_transfers(slots: &Slots, routes: &[SlotRoute]) -> Result<TransferGraph, SlotRouteError> {
    if routes.len() > ROUTES_MAX {
        return Err(SlotRouteError::TooMany { routes: routes.len() });
    }
    let mut order = Vec::with_capacity(routes.len());
    for (index, route) in routes.iter().enumerate() {
        let (from, to) = ends(slots, index, route)?;
        let distance = (u64::from(to) + u64::from(slots.ranks) - u64::from(from)) % u64::from(slots.ranks);
        order.push((distance, from, route.first, index));
    }
    order.sort_unstable();
    let ordered = || order.iter().filter_map(|&(.., index)| routes.get(index));
    require_all(slots, ordered())?;
    let collective = Collective::new(CollectiveKind::AllToAll, None, slots.ranks);
    let mut graph = TransferGraph {
        collective: collective.expect("all-to-all has no root"),
        rank_count: slots.ranks,
        chunks_per_share: slots.slot_units,
        shares: Shares::Equal,
        routes: RouteTable::default(),
        carriers: Vec::new(),
        dependencies: Vec::new(),
        batches: Vec::with_capacity(routes.len()),
        transfers: Vec::new(),
        steps: Vec::new(),
        pace: Pace::default(),
    };
    for route in ordered() {
        add(&mut graph, slots, route);
    }
    Ok(graph)
}

/// Sender and receiver of a route whose ranks exist and differ.
fn ends(slots: &Slots, index: usize, route: &SlotRoute) -> Result<(u32, u32), SlotRouteError> {
    let (ranks, names) = (slots.ranks, &route.ranks);
    let (Some(&from), Some(&to), 2..) = (names.first(), names.last(), names.len()) else {
        return Err(SlotRouteError::TooShort { route: index, found: names.len() });
    };
    for (position, &rank) in names.iter().enumerate() {
        if rank >= ranks {
            return Err(SlotRouteError::NoSuchRank { route: index, rank, ranks });
        }
        if names.iter().take(position).any(|&earlier| earlier == rank) {
            return Err(SlotRouteError::Twice { route: index, rank });
        }
    }
    if route.count == 0 {
        return Err(SlotRouteError::Empty { route: index });
    }
    Ok((from, to))
}

/// Requires that routes, those of a pair by their first units, take each unit that is filled once.
fn require_all<'a>(slots: &Slots, routes: impl Iterator<Item = &'a SlotRoute>) -> Result<(), SlotRouteError> {
    let ranks = slots.ranks as usize;
    let mut taken = vec![0_u64; ranks * ranks];
    let units = |from: u32, to: u32, found: u64| {
        let filled = slots.filled(from, to);
        SlotRouteError::Units { from, to, filled, found }
    };
    for route in routes {
        let (Some(&from), Some(&to)) = (route.ranks.first(), route.ranks.last()) else { continue };
        let Some(taken) = taken.get_mut(from as usize * ranks + to as usize) else { continue };
        let end = route.first.checked_add(route.count).filter(|&end| end <= slots.filled(from, to));
        match end {
            Some(end) if route.first == *taken => *taken = end,
            _ => return Err(units(from, to, *taken)),
        }
    }
    let pairs = (0..slots.ranks).flat_map(|from| (0..slots.ranks).map(move |to| (from, to)));
    let mut missing = pairs.zip(taken).filter(|&((from, to), taken)| from != to && taken != slots.filled(from, to));
    missing.next().map_or(Ok(()), |((from, to), taken)| Err(units(from, to, taken)))
}

/// Adds the hops of a route, each after the one before.
fn add(graph: &mut TransferGraph, slots: &Slots, route: &SlotRoute) {
    let (Some(&from), Some(&to)) = (route.ranks.first(), route.ranks.last()) else { return };
    let slot = u64::from(from) * u64::from(slots.ranks) + u64::from(to);
    let start = narrow(graph.transfers.len());
    for hop in route.ranks.windows(2) {
        let &[sender, receiver] = hop else { continue };
        let (first, number) = (narrow(graph.dependencies.len()), narrow(graph.transfers.len()));
        graph.dependencies.extend((number > start).then(|| number - 1));
        let dependencies = first..narrow(graph.dependencies.len());
        let (from, to) = (Rank::new(sender), Rank::new(receiver));
        graph.transfers.push(Transfer { from, to, carriers: 0..0, dependencies });
    }
    graph.batches.push(Batch {
        action: Action::Copy,
        root: Rank::new(from),
        chunk_first: slot * slots.slot_units + route.first,
        chunk_count: route.count,
        transfers: start..narrow(graph.transfers.len()),
    });
}

fn narrow(hops: usize) -> u32 {
    u32::try_from(hops).expect("2^18 routes come to each of 1,024 ranks once at most")
}
