//! Thousands of changes to right plans: the proof accepts none that matters.
//!
//! Whether a change matters is decided by running the plan, in several orders and with several lengths of chunks.

use canopy_plan::Buffer;
use canopy_plan::oneccl::{
    EmulateOptions, Local, Program, Receive, Scope, Send, Span, Step, emulate, lower, parse, prove, write,
};
use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;

use crate::oneccl::plans::options;

use crate::support::graphs::planned;

/// Changes tried for each plan.
const CHANGES: u64 = 700;
/// Changes that must matter in all.
const MATTER_MIN: usize = 3000;
/// Runs of a plan that the proof accepts.
const RUNS: u64 = 6;

/// One step of `SplitMix64`.
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, count: usize) -> usize {
        self.0 = mix(self.0);
        usize::try_from(self.0 % count.max(1) as u64).unwrap()
    }

    fn near(&mut self, number: u32) -> u32 {
        [number.wrapping_add(1), number.saturating_sub(1), 0, number + 2][self.below(4)]
    }

    fn span(&mut self, span: &mut Span) {
        match self.below(3) {
            0 => span.first = self.near(span.first),
            1 => span.count = self.near(span.count),
            _ => span.buffer = [Buffer::Input, Buffer::Output, Buffer::Scratch][self.below(3)],
        }
    }
}

/// Drops, doubles, or exchanges an element.
fn reorder<T: Clone>(list: &mut Vec<T>, chance: &mut Chance) {
    if list.is_empty() {
        return;
    }
    let (first, second) = (chance.below(list.len()), chance.below(list.len()));
    match chance.below(3) {
        0 => drop(list.remove(first)),
        1 => list.insert(second, list[first].clone()),
        _ => list.swap(first, second),
    }
}

fn change(program: &mut Program, chance: &mut Chance) {
    let ranks = program.ranks.len();
    let rank = &mut program.ranks[chance.below(ranks)];
    if rank.steps.is_empty() {
        return;
    }
    let count = rank.steps.len();
    let position = chance.below(count);
    if chance.below(12) == 0 {
        let steps: &mut Vec<Step> = &mut rank.steps;
        reorder(steps, chance);
        // Numbers alone would show it.
        (0..).zip(steps).for_each(|(index, step)| step.index = index);
        return;
    }
    let Step { sends, receives, completion, .. } = &mut rank.steps[position];
    match chance.below(8) {
        0 => reorder(sends, chance),
        1 => reorder(receives, chance),
        2 => {
            let chosen = chance.below(sends.len());
            let Some(Send { peer, span, .. }) = sends.get_mut(chosen) else { return };
            if chance.below(3) == 0 { *peer = chance.near(*peer) } else { chance.span(span) }
        }
        3 => {
            let chosen = chance.below(receives.len());
            let Some(Receive { peer, span }) = receives.get_mut(chosen) else { return };
            if chance.below(3) == 0 { *peer = chance.near(*peer) } else { chance.span(span) }
        }
        4 | 5 => {
            let locals = completion.iter_mut().flat_map(|completion| &mut completion.locals).collect::<Vec<_>>();
            let chosen = chance.below(locals.len());
            let Some(Local { is_reduction, source, destination }) = locals.into_iter().nth(chosen) else { return };
            match chance.below(3) {
                0 => *is_reduction = !*is_reduction,
                1 => source.first = chance.near(source.first),
                _ => destination.first = chance.near(destination.first),
            }
        }
        6 => match completion {
            Some(completion) if chance.below(3) == 0 => completion.scope = Scope::All,
            Some(completion) if chance.below(2) == 0 => completion.after = Some(Scope::All),
            _ => *completion = None,
        },
        _ => completion.iter_mut().for_each(|completion| reorder(&mut completion.locals, chance)),
    }
}

/// Whether some run shows that a plan is wrong.
fn is_wrong(program: &Program) -> bool {
    (0..RUNS / 3).any(|seed| {
        EmulateOptions::various(program, 100 * seed).iter().any(|options| emulate(program, options).is_err())
    })
}

#[test]
fn no_change_that_matters_is_accepted() {
    let (mut matter, mut harmless, mut careful) = (0, 0, 0);
    for (kind, expression, algorithm) in [
        (CollectiveKind::Allreduce, "ring:4", Algorithm::Forest),
        (CollectiveKind::AllToAll, "torus:2x3", Algorithm::Direct),
        (CollectiveKind::Allgather, "hypercube:3", Algorithm::Forest),
        (CollectiveKind::ReduceScatter, "ring:5", Algorithm::Forest),
        (CollectiveKind::Scatter, "mesh:5", Algorithm::Direct),
        (CollectiveKind::Reduce, "mesh:4", Algorithm::Forest),
    ] {
        for in_place in [false, true] {
            let right = lower(&planned(expression, kind, algorithm), &options(in_place), &|| false).unwrap();
            assert!(prove(&right).is_ok());
            for seed in 0..CHANGES {
                let mut changed = right.clone();
                let mut chance = Chance(mix(seed));
                for _ in 0..=seed % 2 {
                    change(&mut changed, &mut chance);
                }
                if changed == right {
                    continue;
                }
                // What the text can say at all, the reader says again.
                if let Ok(read) = parse(&write(&changed)) {
                    assert_eq!(read, changed);
                }
                match (prove(&changed).is_ok(), is_wrong(&changed)) {
                    (true, true) => panic!("{kind} on {expression}, change {seed} was accepted:\n{}", write(&changed)),
                    (false, true) => matter += 1,
                    (true, false) => harmless += 1,
                    (false, false) => careful += 1,
                }
            }
        }
    }
    assert!(matter >= MATTER_MIN, "only {matter} changes mattered; {harmless} did not, {careful} might");
    assert!(harmless > 0, "no change was harmless: the runs judge too much");
}
