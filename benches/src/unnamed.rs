//! The same network under other names: what is left to plan by is its shape.

use canopy_topology::{
    Attributes, Capacity, DraftLink, DraftNode, Topology, TopologyDraft, TopologyError, TopologyLimits,
};

use crate::random::Random;

/// What all rates are multiplied by, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    /// In thousandths.
    pub thousandths: u64,
}

impl Factor {
    /// 1, 1.17, 0.83, or anything from a half to two, each one time in four.
    pub fn draw(random: &mut Random) -> Self {
        let thousandths = match random.below(4) {
            0 => 1000,
            1 => 1170,
            2 => 830,
            _ => random.between(500, 2000) as u64,
        };
        Self { thousandths }
    }

    /// So much of a rate, in whole bytes per second, at least one.
    fn of(self, capacity: Capacity) -> Capacity {
        let scaled = u128::from(capacity.bytes_per_sec()) * u128::from(self.thousandths) / 1000;
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX).max(1);
        Capacity::from_bytes_per_sec(scaled).unwrap_or(capacity)
    }
}

/// A network with its nodes and links in random order, ranks and ids at random, without names of hosts, boxes or rails,
/// and with all rates multiplied.
///
/// # Errors
/// The rates overflow.
pub fn unnamed(topology: &Topology, factor: Factor, random: &mut Random) -> Result<Topology, TopologyError> {
    let count = topology.nodes().len();
    let mut order: Vec<usize> = (0..count).collect();
    random.shuffle(&mut order);
    let mut ids = vec![String::new(); count];
    order.iter().enumerate().for_each(|(number, &node)| ids[node] = format!("x{number}"));
    let mut draft = TopologyDraft::default();
    for &node in &order {
        let kind = topology.nodes()[node].kind;
        draft.nodes.push(DraftNode { id: ids[node].clone(), kind, rank: None, attributes: Attributes::default() });
    }
    let links = topology.links().iter().map(|link| DraftLink {
        from: ids[link.from.index()].clone(),
        to: ids[link.to.index()].clone(),
        capacity: factor.of(link.capacity),
        latency: link.latency,
        count: 1,
    });
    draft.links = links.collect();
    random.shuffle(&mut draft.links);
    draft.build(&TopologyLimits::STANDARD)
}

#[cfg(test)]
mod tests {
    use canopy_canonical::{Budget, Comparison, WORK_STANDARD, compare, graph_of};
    use canopy_topology::generate;

    use super::*;

    /// Same shape, no name left, other ranks.
    #[test]
    fn only_the_shape_is_left() {
        let budget = Budget { work_max: WORK_STANDARD, stop: &|| false };
        for expression in ["dgx-a100:boxes=4", "mi250:boxes=2", "random-euler:n=20,switches=5,seed=1"] {
            let named = generate(expression, &TopologyLimits::STANDARD).unwrap();
            let plain = unnamed(&named, Factor { thousandths: 1000 }, &mut Random::new(1)).unwrap();
            assert!(plain.nodes().iter().all(|node| node.attributes == Attributes::default()));
            assert!(plain.nodes().iter().zip(named.nodes()).all(|(one, other)| one.id != other.id));
            let [named, plain] = [&named, &plain].map(|topology| graph_of(topology, &[]).unwrap());
            assert!(matches!(compare(&named, &plain, budget).unwrap(), Comparison::Same { .. }), "{expression}");
        }
    }

    #[test]
    fn rates_are_multiplied_and_the_seed_decides() {
        let named = generate("ring:5", &TopologyLimits::STANDARD).unwrap();
        let with = |seed| unnamed(&named, Factor { thousandths: 1170 }, &mut Random::new(seed)).unwrap();
        assert!(with(3).links().iter().all(|link| link.capacity.bytes_per_sec() == 29_250_000_000));
        assert_eq!(with(3), with(3));
        assert_ne!(with(3), with(4));
    }
}
