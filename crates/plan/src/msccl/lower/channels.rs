//! Which channel carries a move.

use std::collections::BTreeMap;

use super::moves::Move;

/// How the connections of all ranks spread over channels: the moves of a connection take turns at as many channels as
/// it needs for the steps of its blocks, and each turn is `spread` channels wide, which divide the peers of a rank. Each
/// instance of the plan has channels of its own.
pub(super) struct Channels {
    rank_count: u32,
    /// Turns of connections that need more than one.
    turns: BTreeMap<(u32, u32), u32>,
    spread: u32,
    instances: u32,
}

impl Channels {
    /// One channel for each instance.
    pub(super) const fn one_each(rank_count: u32, instances: u32) -> Self {
        Self { rank_count, turns: BTreeMap::new(), spread: 1, instances }
    }

    /// Channel of a move. Any rank has peers at distinct distances, so each of the `spread` channels gets at most its
    /// part of them, rounded up.
    pub(super) fn of(&self, moving: &Move) -> u32 {
        let distance = (moving.to + self.rank_count - moving.from) % self.rank_count;
        let turn = moving.turn % self.turns_of((moving.from, moving.to));
        (turn * self.spread + distance * self.spread / self.rank_count) * self.instances + moving.instance
    }

    /// Channels that may be used.
    pub(super) fn count(&self) -> u32 {
        let turns = self.turns.values().copied().max().unwrap_or(1);
        turns.saturating_mul(self.spread).saturating_mul(self.instances)
    }

    fn turns_of(&self, connection: (u32, u32)) -> u32 {
        self.turns.get(&connection).copied().unwrap_or(1)
    }

    /// Whether some connection takes turns at several channels.
    pub(super) fn are_divided(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Gives each channel fewer peers, where one has `peers` of which `limit` are allowed. False where that takes more
    /// than `most` channels.
    pub(super) fn spread_peers(&mut self, peers: u32, limit: u32, most: u32) -> bool {
        self.spread = more(self.spread, peers, limit).min(most.saturating_add(1));
        self.count() <= most
    }

    /// Divides the moves of a connection whose block has `steps`, so that each part has at most `limit`. False where
    /// that takes more than `most` channels.
    pub(super) fn divide(&mut self, connection: (u32, u32), steps: u32, limit: u32, most: u32) -> bool {
        let before = self.turns_of(connection);
        self.turns.insert(connection, more(before, steps, limit).min(most.saturating_add(1)));
        self.count() <= most
    }
}

/// Parts for something of which `parts` are too few, as the largest has `found` of at most `limit`. Parts differ in
/// size, so the exact number may not do: it is at least one more.
fn more(parts: u32, found: u32, limit: u32) -> u32 {
    let exact = (u64::from(parts) * u64::from(found)).div_ceil(u64::from(limit.max(1)));
    u32::try_from(exact).unwrap_or(u32::MAX).max(parts.saturating_add(1))
}
