//! Several instances of one plan side by side, to fill the channels of a runtime.
//!
//! Every share is cut into as many equal parts as there are instances, one after the other, and each instance does with
//! its part what the plan does with the whole share. So the bytes on every link stay what they were, while each
//! connection has as many queues and thread blocks to drive it as there are instances. Instances share no channel and no
//! chunk; a message needs `nchunksperloop` that many times.
//!
//! The one order that all blocks follow stays one: every piece of a tree, or every wave, is done by all instances in
//! turn, so what holds for the plan holds for all of them together, and they advance at the same pace.

use std::num::NonZeroU32;

use super::moves::Move;
use super::{LowerError, Stop, check_stop};

/// How many instances of a plan a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instances {
    /// This many. More thread blocks than may be resident at once are a matter of advice, as without instances.
    Exactly(NonZeroU32),
    /// The greatest number with which the file keeps every limit of its runtime and no rank has more thread blocks than
    /// are resident at once for certain; one where the plan alone has more.
    Auto,
}

impl Instances {
    /// The plan alone.
    pub const ONE: Self = Self::Exactly(NonZeroU32::MIN);
}

/// The moves of all instances, where those of one are given for shares of `share` chunks.
///
/// * **Cost.** O(moves · instances).
///
/// # Errors
/// `stop` returned true.
pub(super) fn copied(moves: Vec<Move>, share: u32, instances: u32, stop: Stop<'_>) -> Result<Vec<Move>, LowerError> {
    if instances == 1 {
        return Ok(moves);
    }
    let mut copies = Vec::with_capacity(moves.len() * instances as usize);
    for (index, group) in moves.chunk_by(|a, b| (a.piece, a.wave) == (b.piece, b.wave)).enumerate() {
        check_stop(stop, index)?;
        for instance in 0..instances {
            copies.extend(group.iter().map(|moving| copy(moving, share, instance, instances)));
        }
    }
    Ok(copies)
}

/// A move with the chunks of an instance in place of the plan's.
fn copy(moving: &Move, share: u32, instance: u32, instances: u32) -> Move {
    // Moves cross no border of a share, so all chunks go the same way up.
    let up = moving.chunks.start / share * share * (instances - 1) + instance * share;
    Move {
        chunks: moving.chunks.start + up..moving.chunks.end + up,
        piece: moving.piece.map(|piece| piece * u64::from(instances) + u64::from(instance)),
        instance,
        ..moving.clone()
    }
}

/// The greatest number from 1 to `most` that fits, where 1 does, and what came of trying it; `None` if that is 1. If some
/// number does not fit, greater ones are taken not to fit either. Tries O(log `most`) numbers, the greatest first.
///
/// # Errors
/// Those of `try_one`.
pub(super) fn greatest<T, E>(
    most: u32,
    mut try_one: impl FnMut(u32) -> Result<Option<T>, E>,
) -> Result<Option<(u32, T)>, E> {
    let (mut found, mut fits, mut fails) = (None, 1, most.saturating_add(1));
    let mut next = most;
    while fits < next && next < fails {
        match try_one(next)? {
            Some(made) => (found, fits) = (Some((next, made)), next),
            None => fails = next,
        }
        next = fits + (fails - fits) / 2;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_number_is_found_whatever_it_is() {
        for most in 0..20_u32 {
            for fitting in 0..20_u32 {
                let mut tries = 0;
                let found = greatest(most, |number| {
                    tries += 1;
                    Ok::<_, ()>((number <= fitting).then_some(number * 10))
                });
                let greatest = most.min(fitting);
                assert_eq!(found, Ok((greatest > 1).then_some((greatest, greatest * 10))), "{most} {fitting}");
                assert!(tries <= 6, "{tries}");
            }
        }
        assert_eq!(greatest(9, |number| if number == 9 { Ok(None::<()>) } else { Err(number) }), Err(5));
    }

    #[test]
    fn instances_have_the_parts_of_every_share_one_after_the_other() {
        let moving = |chunks, piece, wave| Move {
            from: 0,
            to: 1,
            chunks,
            action: canopy_schedule::Action::Copy,
            turn: 3,
            piece,
            instance: 0,
            wave,
            is_last_use: false,
        };
        // Two waves on shares of 4 chunks: of the shares 0 and 2, then of share 1.
        let moves = vec![moving(1..3, None, 0), moving(8..12, None, 0), moving(4..5, None, 1)];
        let copies = copied(moves, 4, 3, &|| false).unwrap();
        let found: Vec<_> = copies.iter().map(|copy| (copy.instance, copy.wave, copy.chunks.clone())).collect();
        let expected = [
            (0, 0, 1..3),
            (0, 0, 24..28),
            (1, 0, 5..7),
            (1, 0, 28..32),
            (2, 0, 9..11),
            (2, 0, 32..36),
            (0, 1, 12..13),
            (1, 1, 16..17),
            (2, 1, 20..21),
        ];
        assert_eq!(found, expected);
        let moves = vec![moving(0..1, Some(0), 0), moving(0..1, Some(0), 0), moving(1..2, Some(1), 0)];
        let pieces = copied(moves, 4, 2, &|| false).unwrap();
        let found: Vec<_> = pieces.iter().map(|copy| (copy.piece, copy.turn)).collect();
        assert_eq!(found, [0, 0, 1, 1, 2, 3].map(|piece| (Some(piece), 3)));
    }
}
