//! The finite set of plans that the load asks for.

use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    Collective, CollectiveSpec, Fault, FaultPolicy, LinkTarget, OutputFormat, OutputSpec, PlanSpec, TopologySource,
    fault,
};

/// Networks of jobs with leases, whose links break and are whole again.
pub(super) const LEASED: [&str; 2] = ["dgx-a100:boxes=2", "torus:4x4"];
/// Links of each of them that break: few, so that the plans around them are few.
const BREAKING: [[(&str, &str); 3]; 2] =
    [[("b0g0", "ib"), ("b0g3", "ib"), ("b1g5", "ib")], [("00", "01"), ("11", "21"), ("32", "33")]];
/// Different new plans.
pub(super) const NEW_COUNT: usize = 600;
/// Different stored topologies.
pub(super) const TOPOLOGY_COUNT: usize = 64;

/// A generator expression as a source.
pub(super) fn expression(text: &str) -> TopologySource {
    TopologySource { source: Some(Source::Expression(text.to_owned())) }
}

/// A request for the plan of a network.
pub(super) fn request(network: &str, collective: Collective) -> PlanSpec {
    PlanSpec {
        topology: Some(expression(network)),
        collective: Some(CollectiveSpec { kind: collective.into(), root: None }),
        // Faults have requests of their own.
        fault_policy: FaultPolicy::Ignore.into(),
        ..PlanSpec::default()
    }
}

/// Plans that are asked for all the time.
pub(super) fn cached() -> Vec<PlanSpec> {
    let with_xml = |request: PlanSpec| {
        let outputs = [OutputFormat::Json, OutputFormat::MscclXml]
            .map(|format| OutputSpec { format: format.into(), ..OutputSpec::default() });
        PlanSpec { outputs: outputs.to_vec(), ..request }
    };
    vec![
        request("dgx-a100:boxes=2", Collective::Allgather),
        with_xml(request("dgx-a100:boxes=2", Collective::Allreduce)),
        request("ring:8", Collective::ReduceScatter),
        request("torus:4x4", Collective::Allreduce),
        request("torus:4x4", Collective::AllToAll),
        request("mi250:boxes=1", Collective::Allgather),
    ]
}

/// The new plan of this number, below [`NEW_COUNT`].
pub(super) fn new(number: usize) -> PlanSpec {
    const COLLECTIVES: [Collective; 4] =
        [Collective::Allgather, Collective::Allreduce, Collective::ReduceScatter, Collective::AllToAll];
    let collective = COLLECTIVES[number % COLLECTIVES.len()];
    let size = number / 20;
    let network = match number % 5 {
        0 => format!("ring:{}", 9 + size),
        1 => format!("torus:{}x{}", 2 + size % 3, 5 + size / 3),
        2 => format!("random-regular:n={},d=4,seed={number}", 12 + 4 * (size % 4)),
        3 => format!("dgx-a100:boxes=2,degrade=b0g{}-ib*{}/100", number % 8, 20 + size),
        _ => format!("random-euler:n={},switches=4,seed={number}", 8 + 2 * (size % 4)),
    };
    request(&network, collective)
}

/// A leased plan, around the faults that are known.
pub(super) fn leased(network: usize) -> PlanSpec {
    let collective = if network == 0 { Collective::Allgather } else { Collective::Allreduce };
    PlanSpec { fault_policy: FaultPolicy::Apply.into(), ..request(LEASED[network], collective) }
}

/// Faults of a leased network, by its index.
pub(super) fn faults(network: usize) -> Vec<Fault> {
    let fault = |&(from, to): &(&str, &str)| {
        let link = LinkTarget { from: from.to_owned(), to: to.to_owned(), one_way: false };
        Fault { target: Some(fault::Target::Link(link)), remaining: None }
    };
    BREAKING[network].iter().map(fault).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    /// Else prefetches that are cancelled would end plans that others always ask for.
    #[test]
    fn new_plans_are_none_of_those_that_are_cached_or_leased() {
        let wanted = |request: &PlanSpec| (request.topology.clone(), request.collective);
        let fixed: Vec<_> = cached().iter().chain(&[leased(0), leased(1)]).map(wanted).collect();
        for number in 0..NEW_COUNT {
            assert!(!fixed.contains(&wanted(&new(number))), "{number}");
        }
    }

    #[test]
    fn every_network_exists_and_new_plans_differ() {
        let mut seen = BTreeSet::new();
        for request in (0..NEW_COUNT).map(new).chain(cached()).chain([leased(0), leased(1)]) {
            let Some(Source::Expression(text)) = request.topology.clone().and_then(|topology| topology.source) else {
                panic!("an expression")
            };
            generate(&text, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{text}: {error}"));
            seen.insert((text, request.collective.map(|collective| collective.kind)));
        }
        for (network, text) in LEASED.iter().enumerate() {
            let network_of_text = generate(text, &TopologyLimits::STANDARD).unwrap();
            for fault in faults(network) {
                let Some(fault::Target::Link(link)) = fault.target else { panic!("a link") };
                let is_known = |id: &str| network_of_text.nodes().iter().any(|node| node.id == id);
                assert!(is_known(&link.from) && is_known(&link.to), "{text}: {link:?}");
            }
        }
        assert!(seen.len() > NEW_COUNT * 9 / 10, "{}", seen.len());
    }
}
