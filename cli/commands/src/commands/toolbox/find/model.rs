//! What a collective on a network takes, exactly: so many steps of one latency, and the data over a node's bandwidth.

use std::str::FromStr;
use std::time::Duration;

use canopy_design::finder::{Choice, Line, choices};
use canopy_optimize::Fraction;
use canopy_proto::Exact as _;
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
            bandwidth: fraction(found.bandwidth.exact())?,
            reduce_scatter_bandwidth: fraction(found.reduce_scatter_bandwidth.exact())?,
            all_to_all_rate: fraction(found.all_to_all_rate.exact())?,
        })
    }
}

fn read_fraction(text: &str) -> Option<Fraction> {
    let (numerator, denominator) = text.split_once('/')?;
    Fraction::new(numerator.parse().ok()?, denominator.parse().ok()?)
}

/// What steps, bytes, sums and calls take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// α: latency of a step.
    pub(super) alpha_ns: u64,
    /// ε: what a call takes once.
    pub(super) launch_ns: u64,
    /// B: what a node sends over all its ports.
    pub(super) node_bytes_per_sec: u64,
    /// 1/γ: at which rate a node adds up; `None` if sums take no time.
    pub(super) reduce_bytes_per_sec: Option<u64>,
}

impl Costs {
    pub(super) fn new(
        alpha: Duration,
        launch: Option<Duration>,
        node_bw: Capacity,
        reduce_rate: Option<Capacity>,
    ) -> Result<Self, Failure> {
        let nanos = |time: Duration, option: &str| {
            u64::try_from(time.as_nanos()).map_err(|_| Failure::input(format!("{option} is over 584 years; give less")))
        };
        Ok(Self {
            alpha_ns: nanos(alpha, "--alpha")?,
            launch_ns: nanos(launch.unwrap_or_default(), "--launch")?,
            node_bytes_per_sec: node_bw.bytes_per_sec(),
            reduce_bytes_per_sec: reduce_rate.map(Capacity::bytes_per_sec),
        })
    }

    /// Weight of what a collective moves, and of what it adds up on the way.
    ///
    /// In steps that do not overlap with sums, a node adds up at most what it receives, so a reduce-scatter of weight `y`
    /// takes at most `y·M/B` and `y·M·γ`, exactly as long if its bandwidth is optimal: `y·(1 + γB)` in units of M/B. An
    /// allreduce of twice that weight takes `2y·(1 + γB/2)`, as if 1/B were 1/B + γ/2. Zhao 2026 §A.3.4, theorem 6.
    fn weight(self, moved: Fraction, added: Fraction) -> Option<Fraction> {
        let Some(rate) = self.reduce_bytes_per_sec else { return Some(moved) };
        let gamma_b = Fraction::new(self.node_bytes_per_sec.into(), rate.into())?;
        moved.checked_add(added.checked_mul(gamma_b)?)
    }
}

/// The numbers that all networks share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    nodes: u32,
    degree: u32,
    pub(super) costs: Costs,
}

impl Model {
    pub(super) const fn new(nodes: u32, degree: u32, costs: Costs) -> Self {
        Self { nodes, degree, costs }
    }

    /// Steps, and time over M/B. M is all data, of an all-to-all what one node sends, its own block included; a node's
    /// bandwidth is divided among its ports.
    ///
    /// An allreduce is a reduce-scatter and an allgather. `None` where it does not fit 128 bits, and of other collectives.
    pub(super) fn line(&self, network: &Network, kind: Kind) -> Option<Line> {
        let Network { steps, bandwidth, reduce_scatter_bandwidth, .. } = *network;
        Some(match kind {
            Kind::Allreduce => {
                let moved = bandwidth.checked_add(reduce_scatter_bandwidth)?;
                Line { steps: steps.checked_mul(2)?, weight: self.costs.weight(moved, reduce_scatter_bandwidth)? }
            }
            Kind::Allgather => Line { steps, weight: bandwidth },
            Kind::ReduceScatter => {
                let weight = self.costs.weight(reduce_scatter_bandwidth, reduce_scatter_bandwidth)?;
                Line { steps, weight }
            }
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
        let per = Fraction::new(u128::from(self.costs.alpha_ns) * u128::from(self.costs.node_bytes_per_sec), NANOS)?;
        let first = Fraction::new(from.numerator, per.denominator)?;
        let second = Fraction::new(per.numerator, from.denominator)?;
        let top = first.numerator.checked_mul(second.numerator)?;
        Some(top.div_ceil(first.denominator.checked_mul(second.denominator)?))
    }

    /// Time in microseconds, for people: of the call, of steps, and of data and sums.
    #[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
    pub(super) fn time_us(&self, line: Line, size_bytes: u64) -> f64 {
        let weight = line.weight.numerator as f64 / line.weight.denominator as f64;
        let Costs { alpha_ns, launch_ns, node_bytes_per_sec, .. } = self.costs;
        let data = weight * size_bytes as f64 / node_bytes_per_sec as f64;
        launch_ns as f64 / 1e3 + f64::from(line.steps) * alpha_ns as f64 / 1e3 + data * 1e6
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
        with(None, None)
    }

    fn with(launch: Option<Duration>, reduce_rate: Option<&str>) -> Model {
        let reduce_rate = reduce_rate.map(|rate| rate.parse().unwrap());
        let costs = Costs::new(Duration::from_micros(10), launch, "100Gbps".parse().unwrap(), reduce_rate).unwrap();
        Model::new(1024, 4, costs)
    }

    /// Zhao 2026 §A.3.4: an allreduce takes as long as if 1/B were 1/B + γ/2, and no other time changes but that of a
    /// reduce-scatter, whose sums take γ for each byte that it brings to a node.
    #[test]
    fn sums_cost_as_theorem_6_says() {
        let (plain, sums) = (with(None, None), with(None, Some("100GB/s")));
        let network = network(11, "1023/1024");
        let time = |model: &Model, kind| model.time_us(model.line(&network, kind).unwrap(), 100_000_000);
        let steps = 220.0;
        // 1/B is 80 ps a byte, γ is 10.
        let allreduce = (time(&plain, Kind::Allreduce) - steps) * 85.0 / 80.0 + steps;
        assert!((time(&sums, Kind::Allreduce) - allreduce).abs() < 1e-6);
        let reduce_scatter = (time(&plain, Kind::ReduceScatter) - steps / 2.0) * 90.0 / 80.0 + steps / 2.0;
        assert!((time(&sums, Kind::ReduceScatter) - reduce_scatter).abs() < 1e-6);
        for kind in [Kind::Allgather, Kind::AllToAll] {
            assert!((time(&sums, kind) - time(&plain, kind)).abs() < 1e-9, "{kind}");
        }
        // Sums make bytes dearer beside steps: choices change at 80/85 of the size.
        let networks = [self::network(5, "341/256"), self::network(8, "257/256")];
        let first = |model: &Model| model.choices(&networks, Kind::Allreduce)[1].1;
        assert_eq!((first(&plain), first(&sums)), (1_142_858, 1_075_631));
    }

    /// Zhao 2026 §A.1.2: 21.6 µs a call, whatever its size.
    #[test]
    fn a_launch_is_added_once() {
        let launched = with(Some(Duration::from_nanos(21_600)), None);
        let line = launched.line(&network(5, "341/256"), Kind::Allreduce).unwrap();
        for size in [0, 1 << 20] {
            assert!((launched.time_us(line, size) - model().time_us(line, size) - 21.6).abs() < 1e-9);
        }
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
