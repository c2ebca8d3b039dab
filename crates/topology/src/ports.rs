//! A network without switches as a graph whose edges are ports, which degrees and lower bounds count.

use canopy_direct::Digraph;
use num_integer::Integer as _;

use crate::generate::generated;
use crate::limits::TopologyLimits;
use crate::model::{NodeKind, Topology};
use crate::port_graph::Ports;
use crate::units::Capacity;

impl Topology {
    /// Its ports; `None` if it has nodes without a rank.
    ///
    /// A topology that is what the expression in its name generates has the ports of that expression: four of 25 GB/s to two
    /// neighbours are not two of 50 GB/s. Of any other the rate of a port is the greatest that all links and loops are
    /// multiples of, unless there were more than the limit on links then.
    ///
    /// O(nodes + links + ports), and what it costs to generate the expression.
    pub fn ports(&self, limits: &TopologyLimits) -> Option<Ports> {
        if self.nodes().iter().any(|node| node.kind != NodeKind::Compute) {
            return None;
        }
        let as_generated = self.name().and_then(|name| generated(name, limits).ok());
        match as_generated {
            Some((topology, Some(ports))) if topology == *self => Some(ports),
            _ => self.ports_of_common_rate(limits),
        }
    }

    fn ports_of_common_rate(&self, limits: &TopologyLimits) -> Option<Ports> {
        let links =
            self.links().iter().map(|link| (link.from.number(), link.to.number(), link.capacity.bytes_per_sec()));
        let loops = (0_u32..)
            .zip(self.nodes())
            .filter_map(|(index, node)| node.attributes.loops.map(|loops| (index, index, loops.bytes_per_sec())));
        let all: Vec<(u32, u32, u64)> = links.chain(loops).collect();
        let common = all.iter().fold(0_u64, |common, &(.., rate)| common.gcd(&rate));
        let count: u128 = all.iter().map(|&(.., rate)| u128::from(rate / common.max(1))).sum();
        let rate = Capacity::from_bytes_per_sec(common).filter(|_| count <= limits.links_max as u128);
        let edges = all.iter().flat_map(|&(from, to, capacity)| {
            let copies = rate.map_or(1, |rate| capacity / rate.bytes_per_sec());
            (0..copies).map(move |_| (from, to))
        });
        let graph = Digraph::new(self.rank_count(), edges).ok()?;
        Some(Ports { graph, rate })
    }
}

#[cfg(test)]
mod tests {
    use canopy_direct::facts;

    use super::*;
    use crate::document::{read_document, to_yaml};
    use crate::generate::generate;

    const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

    /// Degree and rate in tenths of GB/s of the ports of an expression, and of those of its links alone.
    fn degrees(expression: &str) -> [Option<(Option<u32>, Option<u64>)>; 2] {
        let topology = generate(expression, &LIMITS).unwrap();
        let plain = topology.clone().with_name(Some("anything".to_owned()));
        [topology, plain].map(|topology| {
            let ports = topology.ports(&LIMITS)?;
            Some((facts(&ports.graph).degree, ports.rate.map(|rate| rate.bytes_per_sec() / 100_000_000)))
        })
    }

    #[test]
    fn ports_are_those_of_the_expression_or_of_the_links() {
        let both = |degree, rate| Some((Some(degree), Some(rate)));
        assert_eq!(degrees("biring:n=8,d=4"), [both(4, 250), both(2, 500)]);
        assert_eq!(degrees("genkautz:n=32,d=4"), [both(4, 250), both(4, 250)]);
        assert_eq!(degrees("line(debruijn:d=2,n=3):bw=3GB/s"), [both(2, 30), both(2, 30)]);
        assert_eq!(degrees("dgx-a100"), [None, None]);
        // Every rank has three links of 400 GB/s and one of 200 GB/s.
        assert_eq!(degrees("dragonfly:4x5"), [both(7, 2000), both(7, 2000)]);
        assert_eq!(degrees("uniring:n=4,d=2,down=0>1"), [Some((None, Some(500))), Some((None, Some(500)))]);
        assert_eq!(degrees("mesh:2x3"), [Some((None, Some(250))), Some((None, Some(250)))]);
        let odd = degrees("product(ring:3,bw=1GB/s;ring:3,bw=1000000001B/s)");
        assert_eq!(odd, [Some((Some(4), None)), Some((Some(4), None))]);
    }

    #[test]
    fn a_name_is_believed_only_where_it_is_true() {
        let topology = generate("biring:n=8,d=4", &LIMITS).unwrap();
        let read =
            |text: String| read_document(text.as_bytes(), None, &LIMITS).unwrap().topology.ports(&LIMITS).unwrap();
        assert_eq!(facts(&read(to_yaml(&topology)).graph).degree, Some(4));
        let changed = to_yaml(&topology).replacen("50GB/s", "25GB/s", 1);
        assert_eq!(facts(&read(changed).graph).degree, None);
    }
}
