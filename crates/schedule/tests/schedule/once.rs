//! Stepped schedules judged by their sends: the verdict of their transfer graphs, or nothing said.

use std::collections::BTreeMap;

use canopy_schedule::{
    Action, Carrier, CheckError, CollectiveKind, RouteIndex, Schedule, Send, Shape, Shares, Steps, Verdict, check,
    check_steps_until, compile, judge_until,
};
use canopy_topology::{Rank, Topology};
use proptest::prelude::*;

use crate::forests::{Random, complete_with_switch, number, shortest_route};
use crate::in_network::capable;
use crate::shapes::random_steps;

/// Damages a stepped schedule on a topology.
type Damage = fn(&Topology, &mut Schedule, &mut Random);

/// Kinds of damage, by name.
const DAMAGES: [(&str, Damage); 15] = [
    ("drop a send", |_, schedule, random| {
        let sends = &mut steps(schedule).sends;
        sends.remove(random.below(sends.len()));
    }),
    ("repeat a send", |_, schedule, random| {
        let sends = &mut steps(schedule).sends;
        let send = random.below(sends.len());
        sends.insert(send, sends[send].clone());
    }),
    ("repeat a send at the end", |_, schedule, random| {
        let sends = &mut steps(schedule).sends;
        let again = Send { step: sends[sends.len() - 1].step + 1, ..sends[random.below(sends.len())].clone() };
        sends.push(again);
    }),
    ("swap two sends", |_, schedule, random| {
        let sends = &mut steps(schedule).sends;
        let (a, b) = (random.below(sends.len()), random.below(sends.len()));
        sends.swap(a, b);
    }),
    ("swap the steps of two sends", |_, schedule, random| {
        let sends = &mut steps(schedule).sends;
        let (a, b) = (random.below(sends.len()), random.below(sends.len()));
        (sends[a].step, sends[b].step) = (sends[b].step, sends[a].step);
        sends.sort_by_key(|send| send.step);
    }),
    ("be early", |_, schedule, random| {
        let sends = &mut steps(schedule).sends;
        let send = random.below(sends.len());
        sends[send].step = sends[send].step.saturating_sub(1);
        sends.sort_by_key(|send| send.step);
    }),
    ("be late", |_, schedule, random| {
        let sends = &mut steps(schedule).sends;
        let send = random.below(sends.len());
        sends[send].step += 1;
        sends.sort_by_key(|send| send.step);
    }),
    ("shift a chunk range", |_, schedule, random| {
        let send = any_send(schedule, random);
        send.chunks = send.chunks.start + 1..send.chunks.end + 1;
    }),
    ("lengthen a chunk range", |_, schedule, random| {
        let steps = steps(schedule);
        let send = random.below(steps.sends.len());
        steps.sends[send].chunks.end += 1;
        steps.carriers[steps.sends[send].carriers.start as usize].chunk_count += 1;
    }),
    ("change a carrier's count", |_, schedule, random| {
        let steps = steps(schedule);
        let carrier = random.below(steps.carriers.len());
        let count = &mut steps.carriers[carrier].chunk_count;
        *count = if random.below(2) == 0 { *count + 1 } else { *count - 1 };
    }),
    ("change a route", |_, schedule, random| {
        let steps = steps(schedule);
        let (carrier, route) = (random.below(steps.carriers.len()), random.below(steps.routes.len() + 1));
        steps.carriers[carrier].route = RouteIndex::new(number(route));
    }),
    ("come from another rank", |topology, schedule, random| reroute(topology, schedule, random, true)),
    ("go to another rank", |topology, schedule, random| reroute(topology, schedule, random, false)),
    ("turn copy into reduce or back", |_, schedule, random| {
        let send = any_send(schedule, random);
        send.action = if send.action == Action::Copy { Action::Reduce } else { Action::Copy };
    }),
    ("change the promise", |topology, schedule, random| match random.below(3) {
        0 => steps(schedule).chunks_per_share = random.below(4) as u64,
        1 => schedule.shares = Shares::Weighted((0..topology.rank_count()).map(|_| random.below(3) as u64).collect()),
        _ => {
            let kind = CollectiveKind::ALL[random.below(8)];
            let root = kind.has_root().then(|| Rank::new(number(random.below(topology.rank_count() as usize))));
            schedule.collective = canopy_schedule::Collective::new(kind, root, topology.rank_count()).unwrap();
        }
    }),
];

fn steps(schedule: &mut Schedule) -> &mut Steps {
    match &mut schedule.shape {
        Shape::Steps(steps) => steps,
        other => panic!("not in steps: {}", other.name()),
    }
}

fn any_send<'a>(schedule: &'a mut Schedule, random: &mut Random) -> &'a mut Send {
    let sends = &mut steps(schedule).sends;
    let send = random.below(sends.len());
    &mut sends[send]
}

/// Gives a send another end, with a route that fits.
fn reroute(topology: &Topology, schedule: &mut Schedule, random: &mut Random, sender: bool) {
    let other = Rank::new(number(random.below(topology.rank_count() as usize)));
    let steps = steps(schedule);
    let send = random.below(steps.sends.len());
    let send = &mut steps.sends[send];
    *(if sender { &mut send.from } else { &mut send.to }) = other;
    if send.from != send.to {
        let route = steps.routes.push(&shortest_route(topology, send.from.number(), send.to.number()));
        for carrier in &mut steps.carriers[send.carriers.start as usize..send.carriers.end as usize] {
            carrier.route = route;
        }
    }
}

/// Judges steps both ways: whatever is said by sends is the verdict by the graph.
fn judged(topology: &Topology, schedule: &Schedule) -> (Option<Verdict>, bool) {
    let by_sends = check_steps_until(topology, schedule, &|| false).unwrap();
    let by_graph = compile(topology, schedule).ok().and_then(|graph| check(topology, &graph).ok());
    if let Some(found) = &by_sends {
        assert_eq!(Some(found), by_graph.as_ref(), "{schedule:#?}");
        assert_eq!(&judge_until(topology, schedule, &|| false).unwrap(), found);
    }
    (by_sends, by_graph.is_some())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Trees written as steps use no place twice, and get the very verdict that their transfer graphs get.
    #[test]
    fn verdicts_are_those_of_transfer_graphs(ranks in 2..7_u32, seed: u64) {
        let plain = complete_with_switch(ranks);
        let mut random = Random(seed);
        for kind in CollectiveKind::ALL {
            let schedule = random_steps(&plain, kind, &mut random);
            let (by_sends, _) = judged(&plain, &schedule);
            prop_assert!(by_sends.is_some(), "{kind}");
            // What switches save is for the graph to say.
            let (by_sends, is_right) = judged(&capable(&plain, &["s0"]), &schedule);
            prop_assert!(by_sends.is_none() && is_right);
        }
    }
}

/// Nothing is said of damaged schedules that their transfer graphs do not say; and each kind of damage is noticed.
#[test]
fn nothing_wrong_is_accepted() {
    let mut random = Random(99);
    let mut noticed: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut harmless, mut silent) = (0, 0);
    for round in 0..60 {
        let topology = complete_with_switch(2 + round % 5);
        for kind in CollectiveKind::ALL {
            let schedule = random_steps(&topology, kind, &mut random);
            for (name, damage) in DAMAGES {
                let mut mutant = schedule.clone();
                damage(&topology, &mut mutant, &mut random);
                match judged(&topology, &mutant) {
                    (None, false) => *noticed.entry(name).or_default() += 1,
                    (None, true) => silent += 1,
                    (Some(_), _) => harmless += 1,
                }
            }
        }
    }
    assert!(DAMAGES.iter().all(|(name, _)| noticed.get(name).is_some_and(|&count| count >= 10)), "{noticed:#?}");
    // Some changes do no harm, such as a send that may as well be later; few leave a schedule that is right in another way.
    assert!(harmless >= 100 && 20 * silent <= harmless, "{harmless} harmless, {silent} right in another way");
}

/// A place that is written twice says nothing by itself, right or wrong.
#[test]
fn places_used_again_are_left_to_the_graph() {
    let topology = complete_with_switch(3);
    let mut schedule = random_steps(&topology, CollectiveKind::AllToAll, &mut Random(5));
    let carrier = |route: RouteIndex| Carrier { route, chunk_count: 1 };
    let steps = steps(&mut schedule);
    let (there, back) =
        (steps.routes.push(&shortest_route(&topology, 0, 1)), steps.routes.push(&shortest_route(&topology, 1, 0)));
    // The block of rank 0 for itself goes to rank 1 and stays there: of no use, and no harm.
    let first = number(steps.carriers.len());
    steps.carriers.extend([carrier(there), carrier(back)]);
    let step = steps.sends[steps.sends.len() - 1].step;
    let (from, to, action) = (Rank::new(0), Rank::new(1), Action::Copy);
    steps.sends.push(Send { step, action, from, to, chunks: 0..1, carriers: first..first + 1 });
    assert!(matches!(judged(&topology, &schedule), (Some(_), true)));
    // Sent back, it overwrites itself.
    let sends = &mut self::steps(&mut schedule).sends;
    sends.push(Send { step: step + 1, action, from: to, to: from, chunks: 0..1, carriers: first + 1..first + 2 });
    assert!(matches!(judged(&topology, &schedule), (None, false)));
    assert_eq!(check_steps_until(&topology, &schedule, &|| true), Err(CheckError::Stopped));
}
