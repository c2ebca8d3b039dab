//! Switched fabrics with one rank per host: three-level fat trees and leaf-spine networks.

use crate::draft::TopologyDraft;
use crate::generate::arguments::{Arguments, value_error};
use crate::generate::error::ExpressionError;
use crate::generate::size::{Size, product, sum};
use crate::limits::TopologyLimits;
use crate::units::{Capacity, Latency};

/// Rate between a host and its switch where nothing is said: a 200 Gbps port.
const DEFAULT_HOST_RATE: u64 = 25_000_000_000;

/// `fat-tree:k=16,oversub=1`: k pods of k/2 edge and k/2 aggregation switches, (k/2)² cores, k/2 ranks per edge switch.
///
/// Source: Al-Fares, Loukissas, Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008, §2.2:
/// core i·k/2 + j is linked with aggregation switch i of every pod. Links above the hosts have host-bw / oversub.
pub(super) fn fat_tree(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let k = arguments.count("k", None)?;
    if let (Some(argument), false) = (arguments.find("k"), k.is_multiple_of(2)) {
        return Err(value_error(argument, "an even number from 2"));
    }
    let half = k / 2;
    let (oversub, host_rate) = (arguments.count("oversub", Some(1))?, arguments.rate("host-bw", DEFAULT_HOST_RATE)?);
    let ranks = product(&[k, half, half]);
    let switches = sum(&[product(&[2, k, half]), product(&[half, half])]);
    Size { ranks, switches, links: ranks.saturating_mul(6) }.check(limits)?;
    let upper = divided(host_rate, 1, oversub as u128, "links above the hosts", "host-bw, oversub")?;
    let mut draft = TopologyDraft::default();
    for core in 0..half * half {
        draft.add_switch(format!("c{core}"));
    }
    let mut host = 0;
    // In each pod, k/2 edge switches with k/2 hosts each, and a link from each of them to each of k/2 aggregation switches.
    for pod in 0..k {
        for level in ["e", "a"] {
            (0..half).for_each(|index| draft.add_switch(format!("p{pod}{level}{index}")));
        }
        for edge in 0..half {
            let edge = format!("p{pod}e{edge}");
            for _ in 0..half {
                let id = format!("h{host}");
                draft.add_compute(id.as_str());
                draft.add_both(&id, &edge, host_rate, Latency::default());
                host += 1;
            }
            for aggregation in 0..half {
                draft.add_both(&edge, &format!("p{pod}a{aggregation}"), upper, Latency::default());
            }
        }
        for core in 0..half * half {
            draft.add_both(&format!("p{pod}a{}", core / half), &format!("c{core}"), upper, Latency::default());
        }
    }
    Ok(draft)
}

/// `leaf-spine:leaves=32,hosts=32,spines=16,oversub=2`: hosts ranks per leaf, every leaf linked with every spine at
/// hosts · host-bw / (spines · oversub).
pub(super) fn leaf_spine(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let (leaves, hosts) = (arguments.count("leaves", None)?, arguments.count("hosts", None)?);
    let (spines, oversub) = (arguments.count("spines", None)?, arguments.count("oversub", Some(1))?);
    let host_rate = arguments.rate("host-bw", DEFAULT_HOST_RATE)?;
    let ranks = product(&[leaves, hosts]);
    let pairs = sum(&[ranks, product(&[leaves, spines])]);
    let switches = sum(&[leaves as u128, spines as u128]);
    Size { ranks, switches, links: pairs.saturating_mul(2) }.check(limits)?;
    let keys = "hosts, host-bw, spines, oversub";
    let uplink = divided(host_rate, hosts as u128, product(&[spines, oversub]), "uplinks of a leaf", keys)?;
    let mut draft = TopologyDraft::default();
    (0..spines).for_each(|spine| draft.add_switch(format!("spine{spine}")));
    for leaf in 0..leaves {
        let id = format!("leaf{leaf}");
        draft.add_switch(id.as_str());
        for host in leaf * hosts..(leaf + 1) * hosts {
            let host = format!("h{host}");
            draft.add_compute(host.as_str());
            draft.add_both(&host, &id, host_rate, Latency::default());
        }
        (0..spines).for_each(|spine| draft.add_both(&id, &format!("spine{spine}"), uplink, Latency::default()));
    }
    Ok(draft)
}

/// `dragonfly-router:p=4,a=8,h=4`: a·h + 1 groups of a routers; each router with p ranks, a link to every other router
/// of its group, and h links to other groups, so that every two groups share one.
///
/// Source: Kim, Dally, Scott, Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008, §3.1, at its
/// greatest size. Port j of a group, which is port j mod h of its router ⌊j / h⌋, leads to the j-th of the other groups.
pub(super) fn dragonfly_router(
    arguments: &Arguments<'_>,
    limits: &TopologyLimits,
) -> Result<TopologyDraft, ExpressionError> {
    let (hosts, routers) = (arguments.count("p", None)?, arguments.count("a", None)?);
    let ports = arguments.count("h", None)?;
    let groups = sum(&[product(&[routers, ports]), 1]);
    let switches = groups.saturating_mul(routers as u128);
    let pairs = sum(&[
        switches.saturating_mul(hosts as u128),
        switches.saturating_mul(routers as u128 - 1) / 2,
        switches.saturating_mul(ports as u128) / 2,
    ]);
    let ranks = switches.saturating_mul(hosts as u128);
    Size { ranks, switches, links: pairs.saturating_mul(2) }.check(limits)?;
    let host_rate = arguments.rate("host-bw", DEFAULT_HOST_RATE)?;
    let (local, global) = (arguments.rate("local", DEFAULT_HOST_RATE)?, arguments.rate("global", DEFAULT_HOST_RATE)?);
    let group_count = routers * ports + 1;
    let router = |group: usize, index: usize| format!("g{group}r{index}");
    let mut draft = TopologyDraft::default();
    // In each group, the hosts of each router, and a link between every two routers.
    for group in 0..group_count {
        (0..routers).for_each(|index| draft.add_switch(router(group, index)));
        for index in 0..routers {
            for host in 0..hosts {
                let host = format!("h{}", (group * routers + index) * hosts + host);
                draft.add_compute(host.as_str());
                draft.add_both(&host, &router(group, index), host_rate, Latency::default());
            }
            for other in index + 1..routers {
                draft.add_both(&router(group, index), &router(group, other), local, Latency::default());
            }
        }
    }
    for group in 0..group_count {
        for other in group + 1..group_count {
            // Of the other groups, `other` is number `other - 1` for this one, and this one number `group` for it.
            let (here, there) = (router(group, (other - 1) / ports), router(other, group / ports));
            draft.add_both(&here, &there, global, Latency::default());
        }
    }
    Ok(draft)
}

/// `rate · factor / divisor`, which must be whole.
pub(super) fn divided(
    rate: Capacity,
    factor: u128,
    divisor: u128,
    link: &'static str,
    keys: &'static str,
) -> Result<Capacity, ExpressionError> {
    let numerator = u128::from(rate.bytes_per_sec()).saturating_mul(factor);
    let whole = numerator.is_multiple_of(divisor).then(|| numerator / divisor);
    let rate = whole.and_then(|rate| u64::try_from(rate).ok()).and_then(Capacity::from_bytes_per_sec);
    rate.ok_or(ExpressionError::NotExact { link, numerator, divisor, keys })
}
