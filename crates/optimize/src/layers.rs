//! Layers of routes that cannot block each other: within a layer the waits of channels for channels have no cycle.
//!
//! A message that holds a channel while it waits for the next one makes the first wait for the second. Where these waits
//! have a cycle, messages may wait for ever (Dally and Seitz, *Deadlock-free message routing in multiprocessor
//! interconnection networks*, 1987); virtual channels, here layers, keep routes apart that would close one.

mod ascent;
mod order;

use order::DynamicOrder;

pub use ascent::Ascent;

/// Layers filled route by route: each route goes to the first layer that stays free of cycles.
///
/// * **Source.** LASH-sequential (Skeie et al. 2002, over single routes: Basu et al. 2024, §5.5). Fewest layers are NP-hard.
/// * **In.** Channels by number, `0 .. channel_count`.
/// * **Cost.** Of a route whose dependencies are known, O(channels + layers); each new dependency costs a layer a search
///   among the channels between its ends in the layer's order (Pearce and Kelly, *A dynamic topological sort algorithm for
///   directed acyclic graphs*, 2006). A dependency that closes a cycle by itself is remembered. 24 bytes for each channel and
///   layer, and 20 for each dependency and layer.
#[derive(Debug)]
pub struct Layers {
    channel_count: usize,
    layers_max: u32,
    /// By channel: the channels that are waited for while it is held, each with the number of the dependency.
    waits: Vec<Vec<(u32, u32)>>,
    dependency_count: u32,
    layers: Vec<Layer>,
    /// The route at hand as (channel, next channel, dependency).
    route: Vec<(u32, u32, u32)>,
}

/// What a layer knows of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    /// Some route of it has the dependency.
    Present,
    /// It closes a cycle with dependencies that stay.
    Closes,
}

#[derive(Debug)]
struct Layer {
    order: DynamicOrder,
    /// By dependency; those beyond its end are unknown.
    known: Vec<Known>,
}

impl Layers {
    /// Empty layers, with a limit on their number.
    ///
    /// # Panics
    /// There are 2³² channels or more.
    pub fn new(channel_count: usize, layers_max: u32) -> Self {
        assert!(u32::try_from(channel_count).is_ok(), "channels have numbers of 32 bits");
        let waits = vec![Vec::new(); channel_count];
        Self { channel_count, layers_max, waits, dependency_count: 0, layers: Vec::new(), route: Vec::new() }
    }

    /// Layers in use.
    pub fn count(&self) -> u32 {
        u32::try_from(self.layers.len()).expect("at most the limit")
    }

    /// Puts a route, channel after channel, into the first layer that stays without a cycle, and says which; `None`, and
    /// nothing changes, if none may.
    ///
    /// # Panics
    /// A channel is out of range.
    pub fn place(&mut self, route: &[u32]) -> Option<u32> {
        self.read(route);
        for (number, layer) in (0..).zip(&mut self.layers) {
            if layer.takes(&self.route, self.dependency_count) {
                return Some(number);
            }
        }
        let number = self.count();
        if number >= self.layers_max {
            return None;
        }
        let mut layer = Layer { order: DynamicOrder::new(self.channel_count), known: Vec::new() };
        if !layer.takes(&self.route, self.dependency_count) {
            return None;
        }
        self.layers.push(layer);
        Some(number)
    }

    /// Shortest ways from a node through one layer that need no change of its order: along channels that rise in it.
    ///
    /// `channels` are both ends of each channel and its length, at least 1, by number. None if there is no such layer.
    /// O(channels log channels).
    ///
    /// # Panics
    /// There are not as many channels as in the layers.
    pub fn ascent(&self, layer: u32, source: u32, node_count: usize, channels: &[(u32, u32, u64)]) -> Option<Ascent> {
        assert_eq!(channels.len(), self.channel_count, "each channel has ends");
        Some(Ascent::new(&self.layers.get(layer as usize)?.order, source, node_count, channels))
    }

    /// Puts a route into this layer, and returns whether that was possible.
    ///
    /// # Panics
    /// A channel is out of range.
    pub fn place_in(&mut self, layer: u32, route: &[u32]) -> bool {
        self.read(route);
        let count = self.dependency_count;
        self.layers.get_mut(layer as usize).is_some_and(|layer| layer.takes(&self.route, count))
    }

    /// Numbers the dependencies of a route.
    fn read(&mut self, route: &[u32]) {
        self.route.clear();
        assert!(route.iter().all(|&channel| (channel as usize) < self.channel_count), "channels are those stated");
        for pair in route.windows(2) {
            let waits = &mut self.waits[pair[0] as usize];
            let known = waits.iter().find(|(next, _)| *next == pair[1]);
            let dependency = known.map_or(self.dependency_count, |&(_, dependency)| dependency);
            if dependency == self.dependency_count {
                waits.push((pair[1], dependency));
                self.dependency_count = dependency.checked_add(1).expect("fewer than 2³² dependencies");
            }
            self.route.push((pair[0], pair[1], dependency));
        }
    }
}

impl Layer {
    /// Takes a route in if that closes no cycle.
    fn takes(&mut self, route: &[(u32, u32, u32)], dependency_count: u32) -> bool {
        if self.known.len() < dependency_count as usize {
            self.known.resize(dependency_count as usize, Known::Nothing);
        }
        if route.iter().any(|&(.., dependency)| self.known[dependency as usize] == Known::Closes) {
            return false;
        }
        for (at, &(from, to, dependency)) in route.iter().enumerate() {
            if self.known[dependency as usize] == Known::Present {
                continue;
            }
            if self.order.insert(from, to) {
                // Until the whole route is in, it is `Nothing`.
                continue;
            }
            let mut is_alone = true;
            for &(from, to, earlier) in route[..at].iter().rev() {
                if self.known[earlier as usize] == Known::Nothing {
                    self.order.remove(from, to);
                    is_alone = false;
                }
            }
            if is_alone {
                self.known[dependency as usize] = Known::Closes;
            }
            return false;
        }
        for &(.., dependency) in route {
            self.known[dependency as usize] = Known::Present;
        }
        true
    }
}

#[cfg(test)]
mod tests;
