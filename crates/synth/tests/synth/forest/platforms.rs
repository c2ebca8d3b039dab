//! Platforms of SimGrid whose clusters hang on backbones, which all messages of a cluster share: bounds and plans against a
//! linear program of routes, in floating point, that shares nothing with how they are found.

use canopy_import::read;
use canopy_schedule::CollectiveKind::{Allgather, Allreduce, ReduceScatter};
use canopy_schedule::{Collective, CollectiveKind, Shares, certified_bound};
use canopy_synth::{Never, bound};
use canopy_topology::{Topology, TopologyLimits};
use good_lp::{Expression, ProblemVariables, Solution, SolverModel, Variable, constraint, microlp, variable};
use proptest::prelude::*;

use crate::forest::validator::plan;

/// Hosts of all clusters, at most: the program has a row for each set of them.
const HOSTS_MAX: usize = 6;

/// How clusters are joined.
#[derive(Clone, Copy, Debug)]
enum Joined {
    /// Each to a router.
    Star,
    /// Each to the next one.
    Chain,
}

/// Rates in bytes per second: round ones, which often are equal, and odd ones.
fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_000_000_000), (1..9_u64).prop_map(|tenths| tenths * 250_000_000), 20_000_000..3_000_000_000_u64]
}

/// A cluster of so many hosts: its element, without an id.
fn cluster() -> impl Strategy<Value = (usize, String)> {
    (1..=3_usize, rate(), rate(), 0..4_u8, any::<bool>()).prop_map(|(hosts, rate, other, backbone, is_shared)| {
        let backbone = match backbone {
            0 => String::new(),
            // No limit, as each message has as much on its host's link.
            1 => format!(" bb_bw=\"{}Bps\" bb_sharing_policy=\"FATPIPE\"", rate + other),
            _ => format!(" bb_bw=\"{other}Bps\" bb_lat=\"1us\""),
        };
        let policy = if is_shared { "SHARED" } else { "SPLITDUPLEX" };
        let text = format!(
            "radical=\"0-{}\" speed=\"1f\" bw=\"{rate}Bps\" lat=\"1us\" sharing_policy=\"{policy}\"{backbone}",
            hosts - 1
        );
        (hosts, text)
    })
}

/// A platform of several clusters.
fn platform() -> impl Strategy<Value = String> {
    let clusters = prop::collection::vec((cluster(), rate(), any::<bool>()), 2..=4);
    let joined = prop_oneof![Just(Joined::Star), Just(Joined::Chain)];
    (clusters, joined)
        .prop_filter("few hosts", |(clusters, _)| {
            clusters.iter().map(|((hosts, _), ..)| hosts).sum::<usize>() <= HOSTS_MAX
        })
        .prop_map(|(clusters, joined)| {
            let (mut zones, mut routes) = (String::new(), String::new());
            for (number, ((_, cluster), rate, is_shared)) in clusters.iter().enumerate() {
                zones += &format!(
                    "<zone id=\"z{number}\" routing=\"Full\"><cluster id=\"c{number}\" prefix=\"h{number}-\" suffix=\"\" {cluster}/></zone>\n"
                );
                let (to, router) = match joined {
                    Joined::Star => ("all".to_owned(), "r".to_owned()),
                    Joined::Chain if number + 1 < clusters.len() => {
                        (format!("z{}", number + 1), format!("h{0}-c{0}_router", number + 1))
                    }
                    Joined::Chain => continue,
                };
                let (policy, direction) = if *is_shared { ("SHARED", "NONE") } else { ("SPLITDUPLEX", "UP") };
                zones += &format!("<link id=\"l{number}\" bandwidth=\"{rate}Bps\" sharing_policy=\"{policy}\"/>\n");
                routes += &format!(
                    "<zoneRoute src=\"z{number}\" dst=\"{to}\" gw_src=\"h{number}-c{number}_router\" gw_dst=\"{router}\">\
                     <link_ctn id=\"l{number}\" direction=\"{direction}\"/></zoneRoute>\n"
                );
            }
            let router = if matches!(joined, Joined::Star) { "<router id=\"r\"/>\n" } else { "" };
            format!(
                "<platform version=\"4.1\"><zone id=\"all\" routing=\"Floyd\">\n{router}{zones}{routes}</zone></platform>"
            )
        })
}

fn imported(platform: &str) -> Topology {
    read(platform.as_bytes(), None, &TopologyLimits::STANDARD)
        .unwrap_or_else(|error| panic!("{error}: {platform}"))
        .topology
}

/// What ranks send to each other over routes that share the links: a variable for each pair of ranks, by sender, then by
/// receiver.
struct Routed {
    links: Vec<Vec<Variable>>,
    pairs: Vec<Vec<Variable>>,
}

impl Routed {
    fn new(topology: &Topology, variables: &mut ProblemVariables) -> Self {
        let ranks = topology.rank_count() as usize;
        let mut some = |count: usize| -> Vec<Vec<Variable>> {
            (0..ranks).map(|_| (0..count).map(|_| variables.add(variable().min(0))).collect()).collect()
        };
        Self { links: some(topology.links().len()), pairs: some(ranks) }
    }

    /// Everything that is sent from a rank leaves it, and arrives where it is meant to; what arrives nowhere is sent nowhere.
    fn with_flows<M: SolverModel>(&self, topology: &Topology, mut model: M) -> M {
        for (sender, (over_links, to)) in self.links.iter().zip(&self.pairs).enumerate() {
            model = model.with(constraint!(to[sender] <= 0));
            for node in (0..topology.nodes().len()).filter(|&node| node != sender) {
                let mut surplus = Expression::from(0);
                for (link, &flow) in topology.links().iter().zip(over_links) {
                    if link.to.index() == node {
                        surplus += flow;
                    }
                    if link.from.index() == node {
                        surplus -= flow;
                    }
                }
                let arrives = to.get(node).map_or(Expression::from(0), |&amount| amount.into());
                model = model.with(constraint!(surplus == arrives));
            }
        }
        model
    }

    /// Into each set of ranks, or out of it, must pass what is rooted in none of it.
    fn with_cuts<M: SolverModel>(&self, roots: &[Expression], spreads: bool, mut model: M) -> M {
        for set in 1..(1_usize << roots.len()) - 1 {
            let is_inside = |rank: usize| set >> rank & 1 == 1;
            let outside = (0..roots.len()).filter(|&rank| !is_inside(rank));
            let wanted: Expression = outside.map(|rank| roots[rank].clone()).sum();
            let mut passing = Expression::from(0);
            for (sender, to) in self.pairs.iter().enumerate() {
                for (receiver, &amount) in to.iter().enumerate() {
                    let (from, to) = if spreads { (sender, receiver) } else { (receiver, sender) };
                    if !is_inside(from) && is_inside(to) {
                        passing += amount;
                    }
                }
            }
            model = model.with(constraint!(passing >= wanted));
        }
        model
    }
}

/// The greatest algbw, in bytes per second: trees of hops from rank to rank, which Edmonds packs as cuts allow, and each hop on
/// routes. An allreduce is rooted wherever that is best (Zhao 2026, appendix B.7).
#[expect(clippy::cast_precision_loss, reason = "a program in floating point")]
fn optimum(topology: &Topology, kind: CollectiveKind) -> f64 {
    let ranks = topology.rank_count() as usize;
    let capacities: Vec<f64> = topology.links().iter().map(|link| link.capacity.bytes_per_sec() as f64).collect();
    let unit = capacities.iter().copied().fold(1.0, f64::max);
    let mut variables = ProblemVariables::new();
    let phases = match kind {
        Allgather => vec![true],
        ReduceScatter => vec![false],
        _ => vec![true, false],
    };
    let routed: Vec<Routed> = phases.iter().map(|_| Routed::new(topology, &mut variables)).collect();
    let own: Vec<Variable> = (0..ranks).map(|_| variables.add(variable().min(0))).collect();
    let roots: Vec<Expression> =
        own.iter().map(|&root| if kind == Allreduce { root.into() } else { own[0].into() }).collect();
    let rate: Expression = roots.iter().cloned().sum();
    let mut model = variables.maximise(rate.clone()).using(microlp);
    for &root in &own {
        model = model.with(constraint!(root <= 1_000));
    }
    for (link, capacity) in capacities.iter().enumerate() {
        let load: Expression = routed.iter().flat_map(|routed| routed.links.iter().map(|links| links[link])).sum();
        model = model.with(constraint!(load <= capacity / unit));
    }
    for (routed, &spreads) in routed.iter().zip(&phases) {
        model = routed.with_cuts(&roots, spreads, routed.with_flows(topology, model));
    }
    let solution = model.solve().unwrap();
    unit * solution.eval(rate)
}

/// The bound is certified, as the program says, and planned.
fn check(platform: &str, kinds: &[CollectiveKind]) -> Result<(), TestCaseError> {
    let topology = imported(platform);
    for &kind in kinds {
        let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
        let found = bound(&topology, collective, &Shares::Equal, &Never).unwrap();
        let certified = certified_bound(&topology, collective, &Shares::Equal, &found.certificate);
        prop_assert_eq!(certified.as_ref(), Ok(&found.upper));
        let (best, upper) = (optimum(&topology, kind), found.upper.gigabytes_per_sec() * 1e9);
        prop_assert!((upper / best - 1.0).abs() < 1e-6, "{kind}: the bound is {upper} and {best} the best: {platform}");
        let reached = plan(&topology, kind).algbw.gigabytes_per_sec() * 1e9;
        prop_assert!(reached > 0.999 * best, "{kind}: {reached} of {best}: {platform}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn clusters_on_backbones_are_planned_at_their_optimum(platform in platform()) {
        check(&platform, &[Allgather, ReduceScatter, Allreduce])?;
    }
}

/// By hand: two clusters of two hosts at 1 GB/s. Eight of the twelve hops of an allgather pass each backbone of 0.5 GB/s, the
/// six that arrive behind it and two that leave: that takes 16 ns for each byte of a share, and there are four.
#[test]
fn a_narrow_backbone_limits_all_that_its_hosts_send_and_take_in() {
    let cluster = |number: u32| {
        format!(
            "<zone id=\"z{number}\" routing=\"Full\"><cluster id=\"c{number}\" prefix=\"h{number}-\" suffix=\"\" radical=\"0-1\" \
             speed=\"1f\" bw=\"1GBps\" lat=\"1us\" bb_bw=\"500MBps\"/></zone>"
        )
    };
    let platform = format!(
        "<platform version=\"4.1\"><zone id=\"all\" routing=\"Full\">{}{}\
         <link id=\"l\" bandwidth=\"10GBps\" sharing_policy=\"SPLITDUPLEX\"/>\
         <zoneRoute src=\"z0\" dst=\"z1\" gw_src=\"h0-c0_router\" gw_dst=\"h1-c1_router\">\
         <link_ctn id=\"l\" direction=\"UP\"/></zoneRoute></zone></platform>",
        cluster(0),
        cluster(1)
    );
    check(&platform, &[Allgather, ReduceScatter, Allreduce]).unwrap();
    let topology = imported(&platform);
    let rate = optimum(&topology, Allgather);
    assert!((rate - 250_000_000.0).abs() < 1.0, "{rate}");
}
