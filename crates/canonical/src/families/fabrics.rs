//! Switched fabrics with one link per rank: which fat trees, leaf-spine networks and dragonflies would have such counts.

use canopy_topology::Capacity;

use crate::families::summary::Summary;

/// `fat-tree:k=16,oversub=1,host-bw=25GB/s`.
pub(crate) fn fat_tree(summary: &Summary<'_>) -> Vec<String> {
    let (Some(host), Some(upper)) = (summary.host_rate(), only(summary)) else { return Vec::new() };
    // k³/4 ranks and 5k²/4 switches.
    let k = (4 * summary.switches / 5).isqrt();
    let fits = k.is_multiple_of(2) && 5 * k * k == 4 * summary.switches && k * k * k == 4 * summary.ranks;
    let oversub = whole_quotient(host, 1, upper, 1).filter(|_| fits);
    oversub.map(|oversub| format!("k={k},oversub={oversub},host-bw={host}")).into_iter().collect()
}

/// `leaf-spine:leaves=32,hosts=32,spines=16,oversub=2,host-bw=25GB/s`.
pub(crate) fn leaf_spine(summary: &Summary<'_>) -> Vec<String> {
    let (Some(host), Some(uplink)) = (summary.host_rate(), only(summary)) else { return Vec::new() };
    let leaves = summary.sides_of_switches().iter().filter(|side| side.to_ranks.is_some()).count();
    let spines = summary.switches - leaves;
    let links: usize = summary.among_switches.values().sum();
    if spines == 0 || !summary.ranks.is_multiple_of(leaves) || links != 2 * leaves * spines {
        return Vec::new();
    }
    let hosts = summary.ranks / leaves;
    let oversub = whole_quotient(host, hosts, uplink, spines);
    let named = |oversub| format!("leaves={leaves},hosts={hosts},spines={spines},oversub={oversub},host-bw={host}");
    oversub.map(named).into_iter().collect()
}

/// `dragonfly-router:p=4,a=8,h=4,host-bw=25GB/s,local=25GB/s,global=25GB/s`, all groups there are.
///
/// S = a·(a·h + 1) routers have a − 1 links within their group and h to others. Where there are as many of both, either
/// rate may be that within groups.
pub(crate) fn dragonfly_router(summary: &Summary<'_>) -> Vec<String> {
    let Some(host) = summary.host_rate() else { return Vec::new() };
    let routers = summary.switches;
    if !summary.ranks.is_multiple_of(routers) {
        return Vec::new();
    }
    let hosts = summary.ranks / routers;
    let links: usize = summary.among_switches.values().sum();
    let mut found = Vec::new();
    for a in (1..=routers.isqrt()).filter(|&a| routers.is_multiple_of(a)) {
        let others = routers / a - 1;
        let h = others / a;
        if h == 0 || !others.is_multiple_of(a) || links != routers * (a - 1 + h) {
            continue;
        }
        let rates: Vec<(Capacity, usize)> =
            summary.among_switches.iter().map(|(&rate, &count)| (rate, count)).collect();
        let pairs = match *rates.as_slice() {
            [(rate, _)] => vec![(rate, rate)],
            [(one, of_one), (other, of_other)] => {
                let is_local = |count| count == routers * (a - 1);
                let pairs = [((one, other), is_local(of_one)), ((other, one), is_local(of_other))];
                pairs.into_iter().filter(|&(_, fits)| fits).map(|(pair, _)| pair).collect()
            }
            _ => Vec::new(),
        };
        for (local, global) in pairs {
            // A group of one router has no links within.
            let local = if a == 1 { String::new() } else { format!("local={local},") };
            found.push(format!("p={hosts},a={a},h={h},host-bw={host},{local}global={global}"));
        }
    }
    found
}

/// The capacity of all links between switches, if they are alike.
fn only(summary: &Summary<'_>) -> Option<Capacity> {
    let mut rates = summary.among_switches.keys();
    rates.next().copied().filter(|_| rates.next().is_none())
}

/// `rate · factor / (other · divisor)`, if that is a whole number.
fn whole_quotient(rate: Capacity, factor: usize, other: Capacity, divisor: usize) -> Option<u128> {
    let scaled = |rate: Capacity, by: usize| u128::from(rate.bytes_per_sec()) * by as u128;
    let (numerator, denominator) = (scaled(rate, factor), scaled(other, divisor));
    numerator.is_multiple_of(denominator).then(|| numerator / denominator)
}
