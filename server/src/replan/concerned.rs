//! Which leases need other plans after a change of the known faults.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use canopy_faults::Loss;
use canopy_planner::PlanKey;
use tokio::task::AbortHandle;

use super::bases::Base;
use super::fault_logs::FaultLogs;
use super::leases::{Avoided, HeldLinks, Item, ValidPlan, digest};
use super::link_set::{LinkSet, touched};
use super::network::Network;
use super::placed::Placed;
use super::replan_queue::HeldPlan;
use super::scope::{Audience, Scope};
use super::suspects::Suspects;
use super::{Known, Shared};

/// What a held plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Its plan stays.
    Nothing,
    /// A plan for what counts now.
    Plan,
}

/// What counts as broken or slow in a network.
#[derive(Debug)]
struct Counting {
    losses: Arc<Vec<Loss>>,
    touched: LinkSet,
    digest: Avoided,
}

impl Counting {
    fn new(base: &Base, losses: Arc<Vec<Loss>>) -> Arc<Self> {
        Arc::new(Self { touched: touched(base, &losses), digest: digest(&losses), losses })
    }
}

/// What counts in a topology by where it is placed, found out once for each placement.
struct Views<'a> {
    fault_logs: &'a FaultLogs,
    key: PlanKey,
    base: Arc<Base>,
    suspects: Suspects,
    healthy: Arc<Counting>,
    known: HashMap<(Option<PlanKey>, Audience), Arc<Counting>>,
}

impl<'a> Views<'a> {
    fn new(fault_logs: &'a FaultLogs, key: PlanKey, base: &Arc<Base>) -> Self {
        let (base, healthy) = (Arc::clone(base), Counting::new(base, Arc::default()));
        Self { fault_logs, key, base, suspects: fault_logs.suspects(), healthy, known: HashMap::new() }
    }

    /// What counts for a plan by where its request places ranks, and whose reports count.
    fn of(&mut self, placed: Option<&Arc<Placed>>, audience: &Audience) -> Arc<Counting> {
        if !self.suspects.may_concern(&self.key, &self.base, placed.map(Arc::as_ref)) {
            return Arc::clone(&self.healthy);
        }
        let Self { fault_logs, key, base, known, .. } = self;
        let place = (placed.map(|placed| *placed.digest()), audience.clone());
        let found = known.entry(place).or_insert_with(|| {
            let network = Network::new(*key, Arc::clone(base), placed, audience.clone());
            Counting::new(base, network.count(fault_logs).losses)
        });
        Arc::clone(found)
    }

    /// Whether a held plan is on links that what counts is on.
    fn crosses(&mut self, held: &HeldLinks, audience: &Audience) -> bool {
        self.of(held.placed.as_ref(), audience).touched.meets_bytes(&held.links)
    }
}

impl Shared {
    /// Topologies whose leases are to be looked at where other things count in some scopes than before.
    pub(super) fn bases_of(&self, scopes: &[Scope]) -> Vec<PlanKey> {
        let mut found: BTreeSet<PlanKey> = scopes.iter().filter_map(Scope::base).copied().collect();
        let elsewhere = Suspects::of(scopes.iter().filter(|scope| scope.base().is_none()));
        if !elsewhere.machines.is_empty() || !elsewhere.clusters.is_empty() {
            for key in self.leases.bases() {
                // What cannot be read is told of where it is looked at.
                let Ok(Some(base)) = self.bases.get(&key) else { continue };
                let held = self.leases.held_on(&key);
                if held.iter().any(|held| elsewhere.may_concern(&key, &base, held.placed.as_deref())) {
                    found.insert(key);
                }
            }
        }
        found.into_iter().collect()
    }

    /// Leases that some scopes matter to, and whose plans cross what counts as broken or slow, or have until now.
    pub(super) fn concerned(&self, scopes: &[Scope]) -> BTreeSet<u64> {
        let mut concerned = BTreeSet::new();
        let changed = Suspects::of(scopes);
        for key in self.bases_of(scopes) {
            let Ok(Some(base)) = self.bases.get(&key) else { continue };
            let mut views = Views::new(&self.fault_logs, key, &base);
            let mut held = self.leases.held_on(&key);
            held.retain(|held| {
                changed.may_concern(&key, &base, held.placed.as_deref()) && {
                    let network = Network::new(key, Arc::clone(&base), held.placed.as_ref(), Audience::Everyone);
                    scopes.iter().any(|scope| network.has(scope))
                }
            });
            for held in &held {
                if !views.crosses(held, &Audience::Everyone) {
                    continue;
                }
                let holders = self.leases.holding(&key, std::iter::once(&held.plan)).into_iter();
                let is_crossed =
                    |number: &u64| self.leases.get(*number).is_some_and(|lease| views.crosses(held, &lease.audience()));
                concerned.extend(holders.filter(is_crossed));
            }
            let plans = held.iter().map(|held| held.plan).collect();
            concerned.append(&mut self.leases.moved_holding(&key, &plans));
        }
        let hears = |number: &u64| {
            let audience = self.leases.get(*number).map(|lease| lease.audience());
            audience.is_some_and(|audience| scopes.iter().any(|scope| audience.hears(scope)))
        };
        concerned.retain(hears);
        concerned
    }

    /// Puts those in line whose plans on a topology do not do any more. O(plans held on it · links / 8 + leases concerned + held plans).
    pub(super) fn look_at(&self, key: &PlanKey, base: &Arc<Base>) {
        let mut views = Views::new(&self.fault_logs, *key, base);
        let held = self.leases.held_on(key);
        let crossing = held.iter().filter(|held| views.crosses(held, &Audience::Everyone));
        let crossing: Vec<PlanKey> = crossing.map(|held| held.plan).collect();
        let placements: HashMap<PlanKey, Option<Arc<Placed>>> =
            held.into_iter().map(|HeldLinks { plan, placed, .. }| (plan, placed)).collect();
        let mut numbers = self.leases.holding(key, crossing.iter());
        numbers.append(&mut self.leases.moved(key));
        {
            // Those whose plan is made for what counts no more are concerned as well.
            let state = self.state.lock();
            numbers.extend(state.replan_queue.held_plans().chain(state.held_plans.keys()).map(|(number, _)| number));
        }
        let (mut added, now) = (HashMap::new(), self.elapsed_ms());
        let concerned = numbers.into_iter().filter_map(|number| self.leases.get(number));
        for lease in concerned.filter(|lease| lease.base().as_ref() == Some(key)) {
            for ((number, item), valid) in (0..).zip(&lease.terms.items).zip(&lease.state.items) {
                let held_plan: HeldPlan = (lease.terms.number, number);
                let known = self.state.lock().held_plans.get(&held_plan).cloned().unwrap_or_default();
                let placed = placements.get(&item.original_key()).and_then(Option::as_ref);
                let all = views.of(placed, &lease.audience());
                if let Some(running) = &known.running {
                    // It has had its time, and its plan would be for what does not count any more.
                    if running.digest != all.digest && running.begun_ms.saturating_add(self.window_ms) <= now {
                        running.abort.iter().for_each(AbortHandle::abort);
                    }
                    continue;
                }
                match all.need(base, item, valid, &known, &mut added) {
                    Need::Nothing => self.state.lock().replan_queue.strike(held_plan),
                    Need::Plan => self.state.lock().replan_queue.enter(held_plan, lease.priority(), 0),
                }
            }
        }
    }
}

/// By what counts, and by what plans avoid: the links touched by what counts beside it.
type Beside = HashMap<(Avoided, Vec<u8>), Option<LinkSet>>;

impl Counting {
    /// What a held plan needs. `added` is worked out on the way.
    fn need(&self, base: &Base, item: &Item, valid: &ValidPlan, known: &Known, added: &mut Beside) -> Need {
        if !self.touched.meets_bytes(&item.links) {
            // The original does: it stays, or comes back.
            return if valid.avoided.is_empty() { Need::Nothing } else { Need::Plan };
        }
        if valid.avoided == self.digest {
            return if valid.is_provisional { Need::Plan } else { Need::Nothing };
        }
        if valid.avoided.is_empty() || valid.plan.is_empty() {
            return Need::Plan;
        }
        let Some((_, links)) = known.links.as_ref().filter(|(plan, _)| *plan == valid.plan) else { return Need::Plan };
        let beside = added.entry((self.digest, valid.avoided.clone())).or_insert_with(|| {
            let avoided: Vec<Loss> = valid.faults.iter().map(|text| text.parse()).collect::<Result<_, _>>().ok()?;
            let still = avoided.iter().all(|loss| self.losses.binary_search(loss).is_ok());
            let is_whole = digest(&avoided).as_slice() == valid.avoided;
            let new: Vec<Loss> =
                self.losses.iter().filter(|loss| avoided.binary_search(loss).is_err()).cloned().collect();
            (still && is_whole).then(|| touched(base, &new))
        });
        match beside {
            Some(beside) if !beside.meets(links) => Need::Nothing,
            _ => Need::Plan,
        }
    }
}
