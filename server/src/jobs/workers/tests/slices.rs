//! Slices of questions beside plans, at one server alone.

use std::time::Duration;

use canopy_faults::{Loss, Remaining};
use canopy_topology::FaultKind;

use super::*;
use crate::jobs::questions::Asked;
use crate::jobs::slices::Part;

fn ask(shop: &Shop, expression: &str) -> Asked {
    let order = Arc::new(Order::on(expression, CollectiveKind::Allgather));
    let what_if = shop.jobs.what_if(&order, &Never).unwrap();
    let groups = what_if.groups(&[FaultKind::Links], &Never).unwrap();
    let losses: Vec<Loss> =
        groups[0].targets.iter().map(|target| Loss { target: target.clone(), remaining: Remaining::GONE }).collect();
    let parts = losses.chunks(1).map(|losses| Part { order: Arc::clone(&order), losses: losses.to_vec() });
    shop.jobs.ask(&what_if, parts.collect(), Priority::Interactive).unwrap()
}

fn next(asked: &mut Asked, within: Duration) -> Option<crate::jobs::slices::SliceOutcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let next = runtime.block_on(async { tokio::time::timeout(within, asked.next()).await });
    next.ok().map(|next| next.expect("it is asked").1)
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn slices_and_plans_take_turns() {
    let (begins, has_begun) = mpsc::channel();
    let (passes, may_pass) = mpsc::channel::<()>();
    let gate = Mutex::new((begins, may_pass));
    let shop = Shop::open(move |_| {
        let (begins, may_pass) = &*gate.lock();
        begins.send(()).unwrap();
        may_pass.recv().unwrap();
    });
    let plans = ["ring:4", "ring:5"].map(|expression| shop.submit(expression));
    has_begun.recv_timeout(PATIENCE).unwrap();
    while shop.jobs.queue.waiting() > 1 {
        thread::yield_now();
    }
    let mut asked = ask(&shop, "ring:6");
    assert!(next(&mut asked, Duration::from_millis(50)).is_none(), "the worker makes a plan");
    passes.send(()).unwrap();
    assert!(next(&mut asked, PATIENCE).unwrap().is_ok(), "one slice comes after a plan");
    has_begun.recv_timeout(PATIENCE).unwrap();
    assert!(next(&mut asked, Duration::from_millis(50)).is_none(), "then the next plan");
    passes.send(()).unwrap();
    for _ in 1..6 {
        assert!(next(&mut asked, PATIENCE).unwrap().is_ok(), "the rest of them");
    }
    for plan in plans {
        end(plan).unwrap();
    }
}

#[test]
fn a_server_that_stops_ends_questions_too() {
    let shop = Shop::with_planners(0, |_| {});
    let mut asked = ask(&shop, "ring:6");
    shop.jobs.queue.abort();
    assert!(matches!(*next(&mut asked, PATIENCE).unwrap().unwrap_err(), PlanFailure::Draining));
    let order = Arc::new(Order::on("ring:6", CollectiveKind::Allgather));
    let what_if = shop.jobs.what_if(&order, &Never).unwrap();
    let refused = shop.jobs.ask(&what_if, vec![Part { order, losses: Vec::new() }], Priority::Interactive);
    assert!(matches!(refused.err(), Some(PlanFailure::Draining)));
}

/// A server that drains answers what was asked before.
#[test]
fn questions_are_answered_to_the_end_of_a_drain() {
    let mut shop = Shop::with_planners(0, |_| {});
    let mut asked = ask(&shop, "ring:6");
    shop.jobs.queue.close();
    let late = Workers::start(&shop.jobs, 1).unwrap();
    for _ in 0..6 {
        assert!(next(&mut asked, PATIENCE).unwrap().is_ok());
    }
    late.join();
    shop.workers.take().into_iter().for_each(Workers::join);
}

#[test]
fn a_question_that_panics_fails_alone() {
    struct Panicking;
    impl Planner for Panicking {
        fn prepare(&self, _: &Order, _: &dyn Stop) -> Result<Prepared, PlanFailure> {
            panic!("as if there were a bug")
        }

        fn produce(&self, _: &Order, _: &Prepared, _: &dyn Stop, _: &dyn Watch) -> Result<Produced, PlanFailure> {
            Err(PlanFailure::Stopped)
        }
    }
    let real = Shop::open(|_| {});
    let order = Arc::new(Order::on("ring:6", CollectiveKind::Allgather));
    let what_if = real.jobs.what_if(&order, &Never).unwrap();
    let shop = Shop::with(1, Panicking);
    let part = Part { order, losses: Vec::new() };
    let mut asked = shop.jobs.ask(&what_if, vec![part.clone(), part], Priority::Interactive).unwrap();
    for _ in 0..2 {
        let failure = next(&mut asked, PATIENCE).unwrap().unwrap_err();
        assert!(matches!(*failure, PlanFailure::Panicked { .. }), "{failure:?}");
    }
}

#[test]
fn there_is_an_end_to_questions_that_wait() {
    let shop = Shop::with_planners(0, |_| {});
    let order = Arc::new(Order::on("ring:6", CollectiveKind::Allgather));
    let what_if = shop.jobs.what_if(&order, &Never).unwrap();
    let ask = || {
        let part = Part { order: Arc::clone(&order), losses: Vec::new() };
        shop.jobs.ask(&what_if, vec![part], Priority::Interactive)
    };
    let mut waiting: Vec<Asked> = (0..64).map(|_| ask().unwrap()).collect();
    assert!(matches!(ask().err(), Some(PlanFailure::QueueFull { waiting: 64, limit: 64 })));
    waiting.pop();
    waiting.push(ask().unwrap());
    drop(waiting);
    let large = Arc::new(Order::on(&"x".repeat(1 << 20), CollectiveKind::Allgather));
    let of_large = || {
        let part = Part { order: Arc::clone(&large), losses: Vec::new() };
        shop.jobs.ask(&what_if, vec![part], Priority::Interactive)
    };
    let alone = of_large().unwrap();
    assert!(matches!(ask().err(), Some(PlanFailure::QueueBudget { .. })));
    drop(alone);
    ask().unwrap();
}
