//! Operations of other servers, which callers may ask any of them for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use canopy_database::{JobState, OperationNow};
use canopy_planner::PlanKey;
use canopy_wire::Priority;

use super::job::{Delivery, Made, Operation, State, Status, operation_name};
use super::table::words::{Facts, Success, decode_report};
use super::workers::Jobs;
use crate::failure::{KeptFailure, PlanFailure};
use crate::store::{Records, StoreError};

impl Jobs {
    /// The operation of this name at another server; `None` if no server knows it.
    ///
    /// # Errors
    /// The database failed.
    pub(crate) fn operation_elsewhere(&self, name: &str) -> Result<Option<Operation>, StoreError> {
        let (Some(table), Some(number)) = (&self.table, number_of(name)) else { return Ok(None) };
        let Some(now) = table.operation(number)? else { return Ok(None) };
        let Some(operation) = described(&now).filter(|operation| operation.name == name) else { return Ok(None) };
        self.with_plan(operation, &now).map(Some)
    }

    /// The latest operations of other servers by number, without their plans.
    ///
    /// # Errors
    /// The database failed.
    pub(crate) fn operations_elsewhere(&self, here: &BTreeSet<u64>) -> Result<BTreeMap<u64, Operation>, StoreError> {
        let Some(table) = &self.table else { return Ok(BTreeMap::new()) };
        let numbered = |now: OperationNow| Some((u64::try_from(now.operation).ok()?, described(&now)?));
        let others = table.operations()?.into_iter().filter_map(numbered);
        Ok(others.filter(|(number, _)| !here.contains(number)).collect())
    }

    /// Ends an operation, here or elsewhere; one that has ended stays as it is. `None` if no server knows it.
    ///
    /// # Errors
    /// The database failed; the operation may go on.
    pub(crate) fn cancel(&self, name: &str) -> Result<Option<Operation>, StoreError> {
        if let (Some(table), Some(number)) = (&self.table, number_of(name)) {
            table.cancel(number)?;
        }
        match self.queue.cancel(name) {
            Some(operation) => Ok(Some(operation)),
            None => self.operation_elsewhere(name),
        }
    }

    /// Forgets which plans are known not to be, at all servers within seconds; returns how many this server knew, or all together.
    ///
    /// # Errors
    /// The database failed.
    pub(crate) fn forget_refusals(&self) -> Result<u64, StoreError> {
        let shared = self.table.as_ref().map_or(Ok(0), |table| table.forget_refusals())?;
        Ok(shared.max(self.refusals.clear() as u64))
    }

    /// Adds the plan to an operation that has one; where that was evicted meanwhile, it has none any more.
    fn with_plan(&self, mut operation: Operation, now: &OperationNow) -> Result<Operation, StoreError> {
        if now.state != JobState::Succeeded || now.is_cancelled {
            return Ok(operation);
        }
        let success = Success::read(now.outcome.as_deref().unwrap_or_default());
        let key = success.plan().unwrap_or(PlanKey::from_bytes(now.key));
        let Some(plan) = self.plan_of_another(&key, Records::peek)? else {
            operation.result = Some(Err(Arc::new(PlanFailure::NotCached)));
            return Ok(operation);
        };
        let facts = Facts::read(&now.facts).unwrap_or_default();
        let (cache, timings) = (success.cache(now.is_first), success.timings());
        let delivery = Delivery { plan, cache, timings, warnings: facts.warnings(), puncture: facts.puncture() };
        operation.result = Some(Ok(delivery.made()));
        Ok(operation)
    }
}

fn number_of(name: &str) -> Option<u64> {
    name.rsplit_once('-')?.1.parse().ok()
}

/// An operation as its row says, without its plan. None: this build cannot read it.
fn described(now: &OperationNow) -> Option<Operation> {
    let facts = Facts::read(&now.facts)?;
    let number = u64::try_from(now.operation).ok()?;
    let failure = || Arc::new(KeptFailure::decode(now.outcome.as_deref().unwrap_or_default()));
    let (state, result) = match now.state {
        _ if now.is_cancelled => (State::Cancelled, Some(Err(Arc::new(PlanFailure::CancelledByOperator)))),
        JobState::Queued => (State::Queued, None),
        JobState::Running => (State::Running, None),
        JobState::Succeeded => (State::Succeeded, Some(Ok(Made::elsewhere()))),
        JobState::Failed => (State::Failed, Some(Err(failure()))),
        JobState::Cancelled => (State::Cancelled, Some(Err(failure()))),
    };
    let queued = || Status { stage: "queue".into(), ..Status::default() };
    let progress = result.is_none().then(|| now.report.as_deref().map_or_else(queued, decode_report));
    Some(Operation {
        name: operation_name(&facts.request(), number),
        request: facts.request(),
        state,
        priority: Priority::ALL.into_iter().find(|one| *one as i16 == now.priority)?,
        detached: now.is_detached,
        waiters: usize::try_from(now.waiters).unwrap_or(usize::MAX),
        kind: facts.kind()?,
        root: facts.root,
        progress,
        created_ms: facts.created_ms,
        ended_ms: now.ended_ms.filter(|_| result.is_some()),
        tenant: facts.tenant(),
        caller: facts.has_caller.then(|| facts.caller.clone()),
        result,
    })
}
