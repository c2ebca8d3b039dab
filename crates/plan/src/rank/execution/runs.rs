//! Rounds that a block does one after the other in one stage.

use std::collections::BTreeMap;

use super::rounds::{Message, Round};

/// Rounds of one stage that a block does.
pub(super) struct Run<'a> {
    pub(super) stage: Option<usize>,
    pub(super) lane: usize,
    pub(super) rounds: &'a [Round],
}

/// Rounds by stage and lane, in order.
pub(super) fn runs<'a>(rounds: &'a [Round], lanes: &'a [usize]) -> impl Iterator<Item = Run<'a>> {
    let key = |(round, lane): (&Round, &usize)| (round.at.map(|(stage, _)| stage), *lane);
    let mut left = rounds;
    std::iter::from_fn(move || {
        let lanes = lanes.get(rounds.len() - left.len()..)?;
        let (stage, lane) = left.iter().zip(lanes).map(key).next()?;
        let count = left.iter().zip(lanes).take_while(|&of| key(of) == (stage, lane)).count();
        let (rounds, rest) = left.split_at_checked(count)?;
        left = rest;
        Some(Run { stage, lane, rounds })
    })
}

/// All that rounds send to other boxes, at most one message to each rank at a time, those to one rank in order.
pub(super) fn waves(rounds: &[Round]) -> Vec<Vec<&Message>> {
    let mut waves: Vec<Vec<&Message>> = Vec::new();
    let mut next: BTreeMap<u32, usize> = BTreeMap::new();
    for step in rounds.iter().flat_map(|round| &round.steps).filter(|step| step.is_port) {
        for message in &step.sends {
            let number = next.entry(message.peer).or_default();
            match waves.get_mut(*number) {
                Some(wave) => wave.push(message),
                None => waves.push(vec![message]),
            }
            *number += 1;
        }
    }
    waves
}
