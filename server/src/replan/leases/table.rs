//! Leases in memory: by number, by when they end, and by what they hold, so that a fault costs no look at all of them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use canopy_planner::PlanKey;
use canopy_wire::kept_placed;

use super::super::placed::Placed;
use super::{Item, Lease};

/// The leases that are held, and ways to find them.
#[derive(Debug, Default)]
pub(super) struct Table {
    leases: BTreeMap<u64, Lease>,
    /// When each ends, in milliseconds since 1970 UTC, and its number.
    ends: BTreeSet<(u64, u64)>,
    bases: HashMap<PlanKey, OnBase>,
    /// By the request that acquired it.
    requests: HashMap<PlanKey, u64>,
    /// By the tenant that acquired them, how many there are.
    owners: HashMap<Option<String>, usize>,
    /// Bytes of all records.
    bytes: usize,
    /// The last number that was given.
    pub(super) last: u64,
    /// Those of which the disk says less than is known.
    pub(super) behind: BTreeSet<u64>,
}

/// The leases on one topology.
#[derive(Debug, Default)]
struct OnBase {
    /// By the plan for the sound network.
    plans: BTreeMap<PlanKey, HeldPlan>,
    /// Those with another plan than the original, or none.
    moved: BTreeSet<u64>,
}

/// A plan that leases hold on a topology, and where it may be hit.
#[derive(Clone, Debug)]
pub(crate) struct HeldLinks {
    /// The plan for the healthy network.
    pub(crate) plan: PlanKey,
    /// Where its request places ranks.
    pub(crate) placed: Option<Arc<Placed>>,
    /// The links that it is on.
    pub(crate) links: Bytes,
}

/// A plan for the sound network, and who holds it.
#[derive(Debug)]
struct HeldPlan {
    /// What is the same for most who hold it, whose bytes they share.
    shared: Item,
    /// Where its request places ranks, which is part of what a plan is kept under.
    placed: Option<Arc<Placed>>,
    /// The links that it is on. Empty, which may be any links, should leases not agree.
    links: Bytes,
    leases: BTreeSet<u64>,
}

impl HeldPlan {
    fn new(item: &Item) -> Self {
        let placed = kept_placed(item.request.clone()).map(Placed::new);
        Self { shared: item.clone(), placed, links: item.links.clone(), leases: BTreeSet::new() }
    }

    /// Has a lease hold the plan; gives it the same item with the bytes that others have as well.
    fn take(&mut self, number: u64, item: &Item) -> Item {
        self.leases.insert(number);
        if self.links != item.links {
            self.links = Bytes::new();
        }
        if self.shared == *item { self.shared.clone() } else { item.clone() }
    }
}

impl Table {
    /// Puts a lease in, in place of the one of the same number. O(plans of the lease · log leases).
    pub(super) fn put(&mut self, mut lease: Lease) {
        let number = lease.terms.number;
        self.unlink(number);
        self.bytes += lease.record_bytes;
        *self.owners.entry(lease.terms.owner.clone()).or_default() += 1;
        self.last = self.last.max(number);
        self.ends.insert((lease.state.expire_ms, number));
        self.requests.extend(lease.request().map(|request| (request, number)));
        if let Some(base) = lease.base() {
            let of_base = self.bases.entry(base).or_default();
            if lease.state.items.iter().any(|valid| !valid.avoided.is_empty()) {
                of_base.moved.insert(number);
            }
            let items = lease.terms.items.iter().map(|item| {
                of_base.plans.entry(item.original_key()).or_insert_with(|| HeldPlan::new(item)).take(number, item)
            });
            let items = items.collect();
            // Of one that has been here before, others may look at the terms, and it has the bytes already.
            if let Some(terms) = Arc::get_mut(&mut lease.terms) {
                terms.items = items;
            }
        }
        self.leases.insert(number, lease);
    }

    /// Takes over a lease as another server has written it, but for what later events say of its plans.
    pub(super) fn learn(&mut self, mut lease: Lease) {
        let number = lease.terms.number;
        let known = self.leases.get(&number).map(|known| Arc::clone(&known.state));
        let mut is_behind = false;
        for (valid, known) in
            Arc::make_mut(&mut lease.state).items.iter_mut().zip(known.iter().flat_map(|known| &known.items))
        {
            if known.event > valid.event {
                valid.clone_from(known);
                is_behind = true;
            }
        }
        self.put(lease);
        self.behind.remove(&number);
        self.behind.extend(is_behind.then_some(number));
    }

    /// Takes a lease out.
    pub(super) fn take_out(&mut self, number: u64) {
        self.behind.remove(&number);
        self.unlink(number);
    }

    fn unlink(&mut self, number: u64) {
        let Some(lease) = self.leases.remove(&number) else { return };
        self.bytes = self.bytes.saturating_sub(lease.record_bytes);
        if let Entry::Occupied(mut count) = self.owners.entry(lease.terms.owner.clone()) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.ends.remove(&(lease.state.expire_ms, number));
        if let Some(request) = lease.request().filter(|request| self.requests.get(request) == Some(&number)) {
            self.requests.remove(&request);
        }
        let Some(base) = lease.base() else { return };
        let Some(of_base) = self.bases.get_mut(&base) else { return };
        of_base.moved.remove(&number);
        for original in lease.terms.items.iter().map(Item::original_key) {
            if let Some(held) = of_base.plans.get_mut(&original) {
                held.leases.remove(&number);
                if held.leases.is_empty() {
                    of_base.plans.remove(&original);
                }
            }
        }
        if of_base.plans.is_empty() {
            self.bases.remove(&base);
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<&Lease> {
        self.leases.get(&number)
    }

    /// The one that a request of this key acquired.
    pub(super) fn of_request(&self, request: &PlanKey) -> Option<&Lease> {
        self.leases.get(self.requests.get(request)?)
    }

    /// All, by their numbers.
    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = &Lease> {
        self.leases.values()
    }

    /// The number of those that this tenant has acquired.
    pub(super) fn owned_by(&self, owner: Option<&str>) -> usize {
        self.owners.get(&owner.map(str::to_owned)).copied().unwrap_or_default()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Those that end by then, first those that end first.
    pub(super) fn ended(&self, now_ms: u64) -> impl Iterator<Item = u64> {
        self.ends.iter().take_while(move |(end, _)| *end <= now_ms).map(|(_, number)| *number)
    }

    /// Topologies that leases are on.
    pub(super) fn bases(&self) -> impl Iterator<Item = &PlanKey> {
        self.bases.keys()
    }

    /// Plans that are held on a topology.
    pub(super) fn held_on(&self, base: &PlanKey) -> Vec<HeldLinks> {
        let plans = self.bases.get(base).into_iter().flat_map(|of_base| &of_base.plans);
        let footprint = |(plan, held): (&PlanKey, &HeldPlan)| HeldLinks {
            plan: *plan,
            placed: held.placed.clone(),
            links: held.links.clone(),
        };
        plans.map(footprint).collect()
    }

    /// Leases on a topology that hold one of some plans. O(plans · log plans + leases found).
    pub(super) fn holding<'a>(&self, base: &PlanKey, plans: impl Iterator<Item = &'a PlanKey>) -> BTreeSet<u64> {
        let Some(of_base) = self.bases.get(base) else { return BTreeSet::new() };
        plans.filter_map(|plan| of_base.plans.get(plan)).flat_map(|held| &held.leases).copied().collect()
    }

    /// Leases on a topology with another plan than the original.
    pub(super) fn moved(&self, base: &PlanKey) -> BTreeSet<u64> {
        self.bases.get(base).map(|of_base| of_base.moved.clone()).unwrap_or_default()
    }

    /// Of those, the ones that hold one of some plans. O(leases with another plan than the original).
    pub(super) fn moved_holding(&self, base: &PlanKey, plans: &HashSet<PlanKey>) -> BTreeSet<u64> {
        let holds = |number: &u64| {
            let items = self.leases.get(number).into_iter().flat_map(|lease| &lease.terms.items);
            items.map(Item::original_key).any(|plan| plans.contains(&plan))
        };
        let moved = self.bases.get(base).into_iter().flat_map(|of_base| &of_base.moved);
        moved.copied().filter(holds).collect()
    }

    /// Where the request for a plan that is held places ranks.
    pub(super) fn placed(&self, base: &PlanKey, plan: &PlanKey) -> Option<Arc<Placed>> {
        self.bases.get(base)?.plans.get(plan)?.placed.clone()
    }

    /// Topologies and the plans for them that are held, with one of the leases that hold each.
    pub(super) fn plans(&self) -> impl Iterator<Item = (HeldKey, &Lease)> {
        let plans = self.bases.iter().flat_map(|(base, of_base)| {
            of_base.plans.iter().map(|(plan, held)| (HeldKey { base: *base, plan: *plan }, held))
        });
        plans.filter_map(|(key, held)| Some((key, self.leases.get(held.leases.first()?)?)))
    }

    /// One of the leases that hold a plan.
    pub(super) fn holder(&self, held: &HeldKey) -> Option<&Lease> {
        self.leases.get(self.bases.get(&held.base)?.plans.get(&held.plan)?.leases.first()?)
    }
}

/// A plan that leases hold: the topology, and the plan for it when it is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HeldKey {
    pub(crate) base: PlanKey,
    pub(crate) plan: PlanKey,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{LeaseState, LeaseTerms, ValidPlan};
    use super::*;

    fn lease(number: u64, base: u8, plans: &[u8], expire_ms: u64, is_moved: bool) -> Lease {
        let item = |plan: &u8| Item {
            original: vec![*plan; 32].into(),
            links: vec![1 << (plan % 8)].into(),
            ranks: 4,
            ..Item::default()
        };
        let avoided = if is_moved { vec![9; 32] } else { Vec::new() };
        let terms = LeaseTerms {
            number,
            base: vec![base; 32],
            items: plans.iter().map(item).collect(),
            owner: Some(format!("tenant-{}", number % 2)),
            ..LeaseTerms::default()
        };
        let items = plans.iter().map(|_| ValidPlan { avoided: avoided.clone(), ..ValidPlan::default() }).collect();
        Lease::new(terms, LeaseState { expire_ms, items, ..LeaseState::default() }, 100)
    }

    #[test]
    fn leases_on_one_plan_share_its_links() {
        let mut table = Table::default();
        table.put(lease(1, 1, &[3], 5, false));
        table.put(lease(2, 1, &[3], 5, false));
        let links = |number| table.get(number).unwrap().terms.items[0].links.as_ptr();
        assert_eq!(links(1), links(2));
    }

    proptest! {
        /// Whatever comes and goes, what is found by the ways in is what a look at every lease finds.
        #[test]
        fn the_ways_in_are_those_of_a_look_at_all(
            steps in prop::collection::vec(
                (0_u64..6, 0_u8..3, prop::collection::vec(0_u8..5, 1..4), 0_u64..9, any::<bool>(), any::<bool>()), 0..40),
            touched: u8,
            now_ms in 0_u64..10,
        ) {
            let mut table = Table::default();
            for (number, base, plans, expire_ms, is_moved, goes) in steps {
                match goes {
                    true => table.take_out(number),
                    false => table.put(lease(number, base, &plans, expire_ms, is_moved)),
                }
            }
            let crosses = |links: &[u8]| links[0] & touched != 0;
            let of = |wanted: &dyn Fn(&Lease) -> bool| -> BTreeSet<u64> {
                table.all().filter(|lease| wanted(lease)).map(|lease| lease.terms.number).collect()
            };
            for base in (0..3).map(|base| PlanKey::from_bytes([base; 32])) {
                let is_concerned = |lease: &Lease| {
                    let moved = lease.state.items.iter().any(|valid| !valid.avoided.is_empty());
                    lease.base() == Some(base) && (moved || lease.terms.items.iter().any(|item| crosses(&item.links)))
                };
                let held = table.held_on(&base);
                let crossing = held.iter().filter(|held| crosses(&held.links)).map(|held| &held.plan);
                let mut concerned = table.holding(&base, crossing);
                concerned.append(&mut table.moved(&base));
                prop_assert_eq!(concerned, of(&is_concerned));
                let crossing: HashSet<PlanKey> = held.iter().filter(|held| crosses(&held.links)).map(|held| held.plan).collect();
                let holds = |lease: &Lease| lease.terms.items.iter().any(|item| crossing.contains(&item.original_key()));
                let is_moved = |lease: &Lease| lease.state.items.iter().any(|valid| !valid.avoided.is_empty());
                let both = of(&|lease: &Lease| lease.base() == Some(base) && is_moved(lease) && holds(lease));
                prop_assert_eq!(table.moved_holding(&base, &crossing), both);
                prop_assert_eq!(table.bases().any(|known| *known == base), !of(&|lease| lease.base() == Some(base)).is_empty());
            }
            prop_assert_eq!(table.ended(now_ms).collect::<BTreeSet<_>>(), of(&|lease| lease.state.expire_ms <= now_ms));
            prop_assert_eq!(table.bytes(), 100 * table.all().len());
            let owned = [0, 1].map(|owner| table.owned_by(Some(&format!("tenant-{owner}"))));
            prop_assert_eq!(owned, [0, 1].map(|owner| of(&|lease| lease.terms.number % 2 == owner).len()));
            prop_assert_eq!(table.owners.values().sum::<usize>(), table.all().len());
            let held: BTreeSet<HeldKey> = table.all().flat_map(|lease| {
                let plans = lease.terms.items.iter().map(Item::original_key);
                plans.map(|plan| HeldKey { base: lease.base().unwrap(), plan }).collect::<Vec<_>>()
            }).collect();
            prop_assert_eq!(table.plans().map(|(key, _)| key).collect::<BTreeSet<_>>(), held);
            for (key, holder) in table.plans() {
                prop_assert_eq!(table.holder(&key).unwrap().terms.number, holder.terms.number);
                prop_assert!(holder.base() == Some(key.base));
            }
        }
    }
}
