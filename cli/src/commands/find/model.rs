//! What a collective on a network takes, exactly: so many steps of one latency, and the data over a node's bandwidth.

use std::str::FromStr;
use std::time::Duration;

use canopy_finder::{Choice, Line, choices};
use canopy_optimize::Fraction;
use canopy_proto::v1::FoundTopology;
use canopy_schedule::CollectiveKind as Kind;
use canopy_topology::Capacity;

use crate::args::size_bytes;
use crate::exit::Failure;

/// Collectives to choose a network by.
const KINDS: [Kind; 4] = [Kind::Allreduce, Kind::Allgather, Kind::ReduceScatter, Kind::AllToAll];

/// A collective, and its size if one is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Workload {
    pub(super) kind: Kind,
    pub(super) size_bytes: Option<u64>,
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, size) = text.split_once(':').map_or((text, None), |(name, size)| (name, Some(size)));
        let kind = KINDS.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let name: String = name.chars().take(80).collect();
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name()).collect();
            format!("`{name}` is not a workload; write one of {} and a size, such as allreduce:1MiB", names.join(", "))
        })?;
        Ok(Self { kind, size_bytes: size.map(size_bytes).transpose()? })
    }
}

/// A network's numbers.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) expression: String,
    pub(super) steps: u32,
    pub(super) diameter: u32,
    pub(super) bandwidth: Fraction,
    pub(super) reduce_scatter_bandwidth: Fraction,
    pub(super) all_to_all_rate: Fraction,
}

impl Network {
    /// Reads what a server sent.
    pub(super) fn read(found: &FoundTopology) -> Result<Self, Failure> {
        let fraction = |text: &str| {
            read_fraction(text)
                .filter(|fraction| *fraction != Fraction::ZERO)
                .ok_or_else(|| Failure::fault(format!("the server sent `{text}`, which is not a positive fraction")))
        };
        Ok(Self {
            expression: found.expression.clone(),
            steps: found.steps,
            diameter: found.diameter,
            bandwidth: fraction(&found.bandwidth)?,
            reduce_scatter_bandwidth: fraction(&found.reduce_scatter_bandwidth)?,
            all_to_all_rate: fraction(&found.all_to_all_rate)?,
        })
    }
}

fn read_fraction(text: &str) -> Option<Fraction> {
    let (numerator, denominator) = text.split_once('/')?;
    Fraction::new(numerator.parse().ok()?, denominator.parse().ok()?)
}

/// The numbers that all networks share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    nodes: u32,
    degree: u32,
    pub(super) alpha_ns: u64,
    pub(super) node_bytes_per_sec: u64,
}

impl Model {
    pub(super) fn new(nodes: u32, degree: u32, alpha: Duration, node_bw: Capacity) -> Result<Self, Failure> {
        let alpha_ns =
            u64::try_from(alpha.as_nanos()).map_err(|_| Failure::input("--alpha is over 584 years; give less"))?;
        Ok(Self { nodes, degree, alpha_ns, node_bytes_per_sec: node_bw.bytes_per_sec() })
    }

    /// Steps, and time over M/B. M is all data, of an all-to-all what one node sends, its own block included; a node's
    /// bandwidth is divided among its ports.
    ///
    /// An allreduce is a reduce-scatter and an allgather. `None` where it does not fit 128 bits, and of other collectives.
    pub(super) fn line(&self, network: &Network, kind: Kind) -> Option<Line> {
        let Network { steps, bandwidth, reduce_scatter_bandwidth, .. } = *network;
        Some(match kind {
            Kind::Allreduce => {
                Line { steps: steps.checked_mul(2)?, weight: bandwidth.checked_add(reduce_scatter_bandwidth)? }
            }
            Kind::Allgather => Line { steps, weight: bandwidth },
            Kind::ReduceScatter => Line { steps, weight: reduce_scatter_bandwidth },
            Kind::AllToAll => {
                let Fraction { numerator, denominator } = network.all_to_all_rate;
                let top = denominator.checked_mul(self.degree.into())?;
                let weight = Fraction::new(top, numerator.checked_mul(self.nodes.into())?)?;
                Line { steps: network.diameter, weight }
            }
            _ => return None,
        })
    }

    /// Which network is fastest from how many bytes on, by position; the first from 0 on.
    pub(super) fn choices(&self, networks: &[Network], kind: Kind) -> Vec<(usize, u128)> {
        let lines: Option<Vec<Line>> = networks.iter().map(|network| self.line(network, kind)).collect();
        let places = choices(&lines.unwrap_or_default());
        places.into_iter().filter_map(|Choice { index, from }| Some((index, self.bytes(from)?))).collect()
    }

    /// M of this M/(α·B), rounded up to a byte.
    fn bytes(&self, from: Fraction) -> Option<u128> {
        const NANOS: u128 = 1_000_000_000;
        // α·B in bytes is a fraction of the denominator 10⁹.
        let per = Fraction::new(u128::from(self.alpha_ns) * u128::from(self.node_bytes_per_sec), NANOS)?;
        let first = Fraction::new(from.numerator, per.denominator)?;
        let second = Fraction::new(per.numerator, from.denominator)?;
        let top = first.numerator.checked_mul(second.numerator)?;
        Some(top.div_ceil(first.denominator.checked_mul(second.denominator)?))
    }

    /// Time in microseconds, for people.
    #[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
    pub(super) fn time_us(&self, line: Line, size_bytes: u64) -> f64 {
        let weight = line.weight.numerator as f64 / line.weight.denominator as f64;
        let data = weight * size_bytes as f64 / self.node_bytes_per_sec as f64;
        f64::from(line.steps) * self.alpha_ns as f64 / 1e3 + data * 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(steps: u32, bandwidth: &str) -> Network {
        let bandwidth = read_fraction(bandwidth).unwrap();
        let all_to_all_rate = read_fraction("1/1024").unwrap();
        let expression = String::new();
        Network { expression, steps, diameter: steps, bandwidth, reduce_scatter_bandwidth: bandwidth, all_to_all_rate }
    }

    fn model() -> Model {
        Model::new(1024, 4, Duration::from_micros(10), "100Gbps".parse().unwrap()).unwrap()
    }

    /// Table 3.4: 10 µs, 100 Gbps, 1 MiB.
    #[test]
    fn published_times() {
        for (steps, bandwidth, printed) in [(5, "341/256", 323.5), (8, "257/256", 328.4), (11, "1/1", 387.8)] {
            let line = model().line(&network(steps, bandwidth), Kind::Allreduce).unwrap();
            let time = model().time_us(line, 1 << 20);
            assert!((time - printed).abs() < 0.05, "{time}");
        }
    }

    /// α·B is 125,000 bytes; the first two cross at 64/7 of it, a little over 1 MiB.
    #[test]
    fn sizes_where_the_choice_changes() {
        let networks = [network(5, "341/256"), network(8, "257/256"), network(11, "1/1")];
        let found = model().choices(&networks, Kind::Allreduce);
        assert_eq!(found, [(0, 0), (1, 1_142_858), (2, 96_000_000)]);
    }

    #[test]
    fn an_all_to_all_divides_a_nodes_bandwidth_among_its_ports() {
        let line = model().line(&network(5, "1/1"), Kind::AllToAll).unwrap();
        assert_eq!((line.steps, line.weight), (5, Fraction::new(4, 1).unwrap()));
    }

    #[test]
    fn workloads_have_a_name_and_perhaps_a_size() {
        let of = |kind, size_bytes| Ok(Workload { kind, size_bytes });
        assert_eq!("allreduce:1MiB".parse(), of(Kind::Allreduce, Some(1 << 20)));
        assert_eq!("all-to-all".parse(), of(Kind::AllToAll, None));
        for bad in ["", "gossip:1MiB", "allreduce:", "allreduce:0", "allreduce:1MiB:2", ":1MiB"] {
            assert!(bad.parse::<Workload>().is_err(), "{bad}");
        }
    }
}
