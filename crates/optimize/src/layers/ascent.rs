//! Ways through a layer that rise in its order.

use super::order::DynamicOrder;

/// Shortest ways from one node to all others along channels that rise in the order of a layer.
///
/// Taking one into the layer closes no cycle, since all edges rise in the order then as before. Channels are looked at in
/// this order, and each prolongs the shortest way so far to where it starts.
#[derive(Debug)]
pub struct Ascent {
    /// By node: length of the shortest way and its last channel.
    best: Vec<Option<(u64, Option<u32>)>>,
    /// By channel: the one before it on the way that it prolonged.
    before: Vec<Option<u32>>,
}

impl Ascent {
    pub(super) fn new(order: &DynamicOrder, source: u32, node_count: usize, channels: &[(u32, u32, u64)]) -> Self {
        let mut rising: Vec<(u32, u32)> =
            (0..).zip(channels).map(|(channel, _)| (order.position(channel), channel)).collect();
        rising.sort_unstable();
        let mut best = vec![None; node_count];
        let mut before = vec![None; channels.len()];
        if let Some(start) = best.get_mut(source as usize) {
            *start = Some((0, None));
        }
        for (_, channel) in rising {
            let (from, to, length) = channels[channel as usize];
            let Some((so_far, last)) = best.get(from as usize).copied().flatten() else { continue };
            let total = u64::saturating_add(so_far, length.max(1));
            let Some(end) = best.get_mut(to as usize) else { continue };
            if end.is_none_or(|(shortest, _)| total < shortest) {
                *end = Some((total, Some(channel)));
                before[channel as usize] = last;
            }
        }
        Self { best, before }
    }

    /// Length of the way to a node and its channels in order; none where no way rises. It passes no node twice.
    pub fn way_to(&self, node: u32) -> Option<(u64, Vec<u32>)> {
        let (length, mut last) = self.best.get(node as usize).copied().flatten()?;
        let mut way = Vec::new();
        while let Some(channel) = last {
            way.push(channel);
            last = self.before[channel as usize];
        }
        way.reverse();
        Some((length, way))
    }
}
