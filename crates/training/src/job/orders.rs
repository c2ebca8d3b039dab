//! Which ranks should form which group: the order of a layout's dimensions on a network.

use canopy_topology::{Rank, Ratio, Topology, Transit};

use crate::groups::{GroupsError, Patience};
use crate::job::classes::{Class, Job};
use crate::job::layout::Layout;
use crate::job::posed::RatesError;
use crate::job::proof::Proofs;
use crate::job::rates::{JobRates, Objective, job_rates_for};

/// An order of the dimensions, and what the groups take in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The layout, its fastest dimension first.
    pub layout: Layout,
    /// What all groups take together; none where the prices of a better order prove that it is no faster.
    pub seconds: Option<Ratio>,
    /// What they take at least.
    pub seconds_min: Ratio,
}

/// The best order, and all that were looked at.
#[derive(Clone, Debug)]
pub struct BestOrder {
    /// The groups on the network, in the best order.
    pub job: Job,
    /// What they reach.
    pub rates: JobRates,
    /// All orders, that of the layout first.
    pub orders: Vec<Order>,
    /// The position of the best; the first of several.
    pub best: usize,
}

/// Finds the order of dimensions in which all groups together take least.
///
/// Link lengths that prove the best time so far are prices of links: with them, another order is looked at only if they
/// do not prove that it takes as long.
///
/// * **In.** `survivors`: ranks of the network that are left, ascending, by their numbers before.
/// * **Errors.** [`RatesError`] of the order of the layout; others that cannot be are left out.
/// * **Cost.** That of [`job_rates_for`] for each order that prices do not exclude, at most 120; layouts with two have
///   one only.
pub fn best_order(
    topology: &Topology,
    (layout, classes, survivors): (&Layout, &[Class], &[Rank]),
    (objective, transit): (Objective, Transit),
    patience: Patience<'_>,
) -> Result<BestOrder, RatesError> {
    let on = |layout: &Layout| Job::new(layout, classes.to_vec()).and_then(|job| job.left_on(survivors)).ok();
    let solved = |job: &Job| job_rates_for(topology, job, objective, transit, patience);
    let mut orders = layout.orders_of_dimensions().into_iter();
    let first = orders.next().unwrap_or_else(|| layout.clone());
    let job = on(&first).ok_or(RatesError::Ranks { layout: first.rank_count(), network: topology.rank_count() })?;
    let rates = solved(&job)?;
    let looked_at = |layout: Layout, rates: &JobRates| Order {
        layout,
        seconds: Some(rates.seconds.clone()),
        seconds_min: rates.seconds_min.clone(),
    };
    let mut found = BestOrder { orders: vec![looked_at(first, &rates)], job, rates, best: 0 };
    for layout in orders {
        if patience.stop.is_requested() {
            return Err(RatesError::Stopped);
        }
        if patience.enough.is_requested() {
            break;
        }
        let Some(job) = on(&layout) else { continue };
        let priced = Proofs::new(topology, &job, transit, patience).least(&found.rates.lengths);
        if let Some(seconds_min) = priced.filter(|least| *least >= found.rates.seconds) {
            found.orders.push(Order { layout, seconds: None, seconds_min });
            continue;
        }
        let rates = match solved(&job) {
            Ok(rates) => rates,
            Err(error @ (RatesError::Stopped | RatesError::Groups(GroupsError::NoRoom { .. }))) => return Err(error),
            // Ranks that no way connects in this order.
            Err(_) => continue,
        };
        found.orders.push(looked_at(layout, &rates));
        if rates.seconds < found.rates.seconds {
            found.best = found.orders.len() - 1;
            (found.job, found.rates) = (job, rates);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use canopy_schedule::CollectiveKind;
    use canopy_topology::{TopologyLimits, generate};

    use super::*;
    use crate::job::classes::Movement;

    fn class(name: &str, bytes: u64) -> Class {
        Class {
            name: name.to_owned(),
            over: vec![name.to_owned()],
            movement: Movement::Collective(CollectiveKind::Allreduce),
            size_bytes: NonZeroU64::new(bytes).unwrap(),
        }
    }

    fn best(expression: &str, layout: &str, classes: &[Class]) -> BestOrder {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let survivors: Vec<Rank> = topology.ranks().collect();
        let parts = (&layout.parse().unwrap(), classes, survivors.as_slice());
        best_order(&topology, parts, (Objective::Common, Transit::Forward), Patience::ENDLESS).unwrap()
    }

    /// The group that sends more belongs into the box, whichever the layout names first.
    #[test]
    fn what_sends_most_goes_into_boxes() {
        let rail = "rail:boxes=4,gpus=4,nv=300GB/s,nic=25GB/s";
        let classes = [class("tp", 8_000_000_000), class("dp", 1_000_000_000)];
        let right = best(rail, "tp=4 dp=4", &classes);
        assert_eq!((right.best, right.orders.len()), (0, 2));
        assert_eq!(right.orders[1].seconds, None, "its prices exclude the other order");
        let wrong = best(rail, "dp=4 tp=4", &classes);
        assert_eq!((wrong.best, wrong.orders.len()), (1, 2));
        assert_eq!(wrong.rates.seconds, right.rates.seconds);
        assert_eq!(wrong.orders[1].layout.to_string(), "tp=4 dp=4");
        assert!(wrong.orders[0].seconds.clone().unwrap() > wrong.rates.seconds);
        let groups = |found: &BestOrder| -> Vec<Vec<Rank>> {
            found.job.groups.iter().map(|group| group.ranks.clone()).collect()
        };
        assert_eq!(groups(&wrong), groups(&right));
    }

    /// Whatever prices exclude is no faster.
    #[test]
    fn no_order_that_was_excluded_is_faster() {
        for (expression, layout) in [
            ("torus:4x6,bw=10GB/s", "a=2 b=3 c=4"),
            ("rail:boxes=4,gpus=4,nv=100GB/s,nic=25GB/s,faults=nics:1+seed:2", "a=2 b=4 c=2"),
            ("dgx-a100:boxes=2", "a=4 b=2 c=2"),
        ] {
            let classes = [class("a", 3_000_000), class("b", 1_000_000), class("c", 2_000_000)];
            let found = best(expression, layout, &classes);
            assert_eq!(found.orders.len(), 6);
            for order in &found.orders {
                let alone = best(expression, &order.layout.to_string(), &classes).orders[0].clone();
                assert!(alone.seconds.clone().unwrap() >= found.rates.seconds, "{expression} {}", order.layout);
                assert!(order.seconds.is_none() || order.seconds == alone.seconds);
                assert!(order.seconds_min <= alone.seconds.unwrap());
            }
        }
    }

    #[test]
    fn layouts_of_frameworks_with_experts_have_one_order() {
        let layout: Layout = "megatron: tp=2 dp=4 ep=4 etp=1".parse().unwrap();
        assert_eq!(layout.orders_of_dimensions(), std::slice::from_ref(&layout));
        let layout: Layout = "megatron: tp=2 dp=4".parse().unwrap();
        let orders: Vec<String> = layout.orders_of_dimensions().iter().map(ToString::to_string).collect();
        assert_eq!(orders, ["tp=2 dp=4", "dp=4 tp=2"]);
    }
}
