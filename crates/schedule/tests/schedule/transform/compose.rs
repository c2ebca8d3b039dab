//! Allreduce from a reduce-scatter and an allgather.

use std::ops::Range;

use canopy_schedule::{
    Carrier, Collective, CollectiveKind, Forest, Hop, Phase, RouteIndex, RouteTable, Schedule, Send, Shape, Steps, Tree,
};
use canopy_topology::LinkIndex;

/// Why two schedules cannot be put after one another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ComposeError {
    #[error("an allreduce consists of a reduce-scatter and an allgather, not of {first} and {second}")]
    Collectives { first: CollectiveKind, second: CollectiveKind },
    #[error("the reduce-scatter divides shares into {first} chunks, the allgather into {second}; scale one or both")]
    ChunksPerShare { first: u64, second: u64 },
    #[error("the shares of the reduce-scatter are not those of the allgather")]
    Shares,
    #[error("a {first} and a {second} cannot be joined; both must be forests or both steps")]
    Shapes { first: &'static str, second: &'static str },
    #[error("the tables of both together have more than 4294967295 entries")]
    TooLarge,
}

/// The allreduce that runs a reduce-scatter and then an allgather on the same topology.
///
/// There is no barrier between them: compiled, a copy waits for the sums it carries and for nothing else. Times add up
/// link by link, so the rate is at least `1/(1/a + 1/b)` of theirs, and more where they load different links.
///
/// * **Source.** Zhao 2026 §4.6. It is not always the best allreduce.
/// * **Errors.** [`ComposeError`]: other collectives, different k or shares, shapes that cannot be joined.
/// * **Cost.** O(size of both).
pub(crate) fn compose(reduce_scatter: &Schedule, allgather: &Schedule) -> Result<Schedule, ComposeError> {
    let (first, second) = (reduce_scatter.collective.kind(), allgather.collective.kind());
    if (first, second) != (CollectiveKind::ReduceScatter, CollectiveKind::Allgather) {
        return Err(ComposeError::Collectives { first, second });
    }
    if reduce_scatter.shares != allgather.shares {
        return Err(ComposeError::Shares);
    }
    let (first, second) = (reduce_scatter.shape.chunks_per_share(), allgather.shape.chunks_per_share());
    if first != second {
        return Err(ComposeError::ChunksPerShare { first, second });
    }
    let shape = match (&reduce_scatter.shape, &allgather.shape) {
        (Shape::Forest(first), Shape::Forest(second)) => Shape::Forest(forests(first, second)?),
        (Shape::Steps(first), Shape::Steps(second)) => Shape::Steps(steps(first, second)?),
        (first, second) => return Err(ComposeError::Shapes { first: first.name(), second: second.name() }),
    };
    let collective = Collective::new(CollectiveKind::Allreduce, None, u32::MAX).expect("an allreduce needs no root");
    let algorithm = match reduce_scatter.algorithm == allgather.algorithm {
        true => allgather.algorithm.clone(),
        false => format!("{}+{}", reduce_scatter.algorithm, allgather.algorithm),
    };
    Ok(Schedule { collective, algorithm, shares: allgather.shares.clone(), shape })
}

fn forests(first: &Forest, second: &Forest) -> Result<Forest, ComposeError> {
    let mut joined = first.clone();
    let routes = append_routes(&mut joined.routes, &second.routes)?;
    let carriers = append_carriers(&mut joined.carriers, &second.carriers, routes)?;
    let hops = offset(joined.hops.len(), second.hops.len())?;
    let moved = |hop: &Hop| Some(Hop { carriers: shifted(&hop.carriers, carriers)?, ..hop.clone() });
    let more = second.hops.iter().map(moved).collect::<Option<Vec<Hop>>>();
    joined.hops.extend(more.ok_or(ComposeError::TooLarge)?);
    for phase in &second.phases {
        let moved = |tree: &Tree| Some(Tree { hops: shifted(&tree.hops, hops)?, ..tree.clone() });
        let trees = phase.trees.iter().map(moved).collect::<Option<_>>().ok_or(ComposeError::TooLarge)?;
        joined.phases.push(Phase { trees, action: phase.action });
    }
    Ok(joined)
}

fn steps(first: &Steps, second: &Steps) -> Result<Steps, ComposeError> {
    let mut joined = first.clone();
    joined.pace = first.pace.max(second.pace);
    let step_count = u32::try_from(first.step_count()).map_err(|_| ComposeError::TooLarge)?;
    let routes = append_routes(&mut joined.routes, &second.routes)?;
    let carriers = append_carriers(&mut joined.carriers, &second.carriers, routes)?;
    let moved = |send: &Send| {
        let step = send.step.checked_add(step_count)?;
        Some(Send { step, carriers: shifted(&send.carriers, carriers)?, ..send.clone() })
    };
    let more = second.sends.iter().map(moved).collect::<Option<Vec<Send>>>();
    joined.sends.extend(more.ok_or(ComposeError::TooLarge)?);
    Ok(joined)
}

/// Appends routes; returns by how much their numbers grow.
fn append_routes(routes: &mut RouteTable, more: &RouteTable) -> Result<u32, ComposeError> {
    let start = offset(routes.len(), more.len())?;
    let links = |table: &RouteTable| table.iter().map(<[LinkIndex]>::len).sum::<usize>();
    offset(links(routes), links(more))?;
    for links in more.iter() {
        routes.push(links);
    }
    Ok(start)
}

/// Appends carriers whose routes have moved; returns by how much their positions grow.
fn append_carriers(carriers: &mut Vec<Carrier>, more: &[Carrier], routes: u32) -> Result<u32, ComposeError> {
    let start = offset(carriers.len(), more.len())?;
    let moved = |carrier: &Carrier| {
        let route = RouteIndex::new(carrier.route.number().checked_add(routes)?);
        Some(Carrier { route, ..*carrier })
    };
    let more = more.iter().map(moved).collect::<Option<Vec<Carrier>>>().ok_or(ComposeError::TooLarge)?;
    carriers.extend(more);
    Ok(start)
}

/// Where the second of two tables starts behind the first, if the whole can be indexed.
fn offset(first: usize, second: usize) -> Result<u32, ComposeError> {
    let end = first.checked_add(second).and_then(|end| u32::try_from(end).ok());
    end.and_then(|_| u32::try_from(first).ok()).ok_or(ComposeError::TooLarge)
}

fn shifted(range: &Range<u32>, by: u32) -> Option<Range<u32>> {
    Some(range.start.checked_add(by)?..range.end.checked_add(by)?)
}
