//! Questions whose slices all servers answer.

use canopy_faults::{Loss, Remaining};
use canopy_planner::{Left, WhatIf};
use canopy_synth::Never;
use canopy_topology::FaultKind;

use super::*;
use crate::jobs::questions::Asked;
use crate::jobs::slices::Part;

/// A network whose links all differ, so that there are many groups.
const NETWORK: &str = "dgx-a100:boxes=2,degrade=b0g1-ib*1/2+b0g2-ib*1/3";

fn question(site: &Site) -> (Arc<WhatIf>, Vec<Part>) {
    let order = Arc::new(Order::on(NETWORK, CollectiveKind::Allreduce));
    let what_if = site.jobs.what_if(&order, &Never).unwrap();
    let groups = what_if.groups(&[FaultKind::Links, FaultKind::Gpus], &Never).unwrap();
    let loss = |target: &canopy_faults::Target| Loss { target: target.clone(), remaining: Remaining::GONE };
    let part = |group: &canopy_faults::EquivalentFaults| Part {
        order: Arc::clone(&order),
        losses: group.targets.iter().take(2).map(loss).collect(),
    };
    (what_if, groups.iter().map(part).collect())
}

impl Site {
    fn ask(&self) -> (Vec<Vec<Left>>, Asked) {
        let (what_if, parts) = question(self);
        let expected = parts.iter().map(|part| {
            part.losses.iter().map(|loss| what_if.left(&what_if.directory(), loss, &Never).unwrap()).collect()
        });
        (expected.collect(), self.jobs.ask(&what_if, parts, Priority::Interactive).unwrap())
    }
}

fn answers(asked: &mut Asked, count: usize) -> Vec<(usize, Vec<Left>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut found = Vec::new();
        while found.len() < count {
            let next = tokio::time::timeout(PATIENCE, asked.next()).await.expect("a slice is answered").unwrap();
            found.push((next.0, next.1.unwrap()));
        }
        found
    })
}

/// All answers, in the order of the slices.
fn all_answers(asked: &mut Asked, count: usize) -> Vec<Vec<Left>> {
    let mut found = answers(asked, count);
    found.sort_by_key(|(slice, _)| *slice);
    assert!(found.iter().map(|(slice, _)| *slice).eq(0..count), "each slice is answered once");
    found.into_iter().map(|(_, answer)| answer).collect()
}

#[test]
fn each_slice_is_answered_once_whoever_asks() {
    let Some(place) = Place::new() else { return };
    let (one, other) = (place.site(0), place.site(0));
    let ((expected, mut asked), (_, mut same)) = (one.ask(), other.ask());
    assert!(expected.len() > 5, "{} groups", expected.len());
    let _workers = [place.site(1), place.site(1)];
    assert_eq!(all_answers(&mut asked, expected.len()), expected);
    assert_eq!(all_answers(&mut same, expected.len()), expected);
    let count = |condition: &str| place.query(&format!("select count(*) from canopy.jobs where {condition}"));
    assert_eq!(count("state = 2 and slice is not null"), expected.len().to_string());
    assert_eq!(count("state <> 2 or starts <> 1"), "0");
    assert_eq!(place.query("select count(*) from canopy.operations"), "0", "slices have no names");
}

#[test]
fn slices_of_a_server_that_stops_are_answered_by_others() {
    let Some(place) = Place::new() else { return };
    let front = place.site(0);
    let (expected, mut asked) = front.ask();
    let mut first = place.site(1);
    let mut found = answers(&mut asked, 1);
    first.stop();
    let _second = place.site(1);
    found.extend(answers(&mut asked, expected.len() - 1));
    found.sort_by_key(|(slice, _)| *slice);
    assert!(found.into_iter().map(|(_, answer)| answer).eq(expected));
}

#[test]
fn slices_that_wait_for_nobody_are_cancelled() {
    let Some(place) = Place::new() else { return };
    let front = place.site(0);
    let (_, asked) = front.ask();
    let waiting = || place.query("select count(*) from canopy.jobs where state = 0");
    assert_ne!(waiting(), "0");
    drop(asked);
    wait_until("they are cancelled", || waiting() == "0");
    assert_eq!(place.query("select count(*) from canopy.jobs where state <> 4"), "0");
}

#[test]
fn slices_are_entered_again_where_their_jobs_have_gone() {
    let Some(place) = Place::new() else { return };
    let front = place.site(0);
    let (expected, mut asked) = front.ask();
    place.query("delete from canopy.jobs");
    wait_until("they are there again", || {
        place.query("select count(*) from canopy.jobs where state = 0") == expected.len().to_string()
    });
    let _worker = place.site(1);
    assert_eq!(all_answers(&mut asked, expected.len()), expected);
}
