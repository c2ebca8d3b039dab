//! Clusters: hosts whose names are counted, around a switch, in a torus or below a fat tree.
//!
//! Source: SimGrid 3 `sg_platf.cpp`, `TorusZone.cpp` and `FatTreeZone.cpp`.

use std::collections::HashSet;

use canopy_topology::{Capacity, Latency, shorten};

use super::{Network, routes, units};
use crate::error::{FileError, ImportError};
use crate::xml::Element;

/// Most dimensions of a torus and levels of a fat tree.
const DIMENSIONS_MAX: usize = 32;

/// What every host of a cluster has.
struct Cluster<'a> {
    element: &'a Element,
    id: &'a str,
    hosts: Vec<usize>,
    /// Each direction of a host's link.
    capacity: Capacity,
    latency: Latency,
}

/// Adds a cluster; `gateways` are the names of nodes that routes lead to.
pub(super) fn add(network: &mut Network<'_>, element: &Element, gateways: &HashSet<&str>) -> Result<(), ImportError> {
    if element.attribute("limiter_link").is_some() {
        let problem = "a limit on what a host sends and receives together is not read; remove it, or lower bw";
        return Err(routes::at(element, "limiter_link", problem).into());
    }
    if element.attribute("loopback_bw").or_else(|| element.attribute("loopback_lat")).is_some() {
        network.notes.left_out.insert("loopbacks");
    }
    let bandwidth = rate(element, "bw", element.required("bw")?)?;
    let latency = latency(network, element, "lat", element.required("lat")?)?;
    let is_shared = match element.attribute("sharing_policy").unwrap_or("SPLITDUPLEX") {
        "SPLITDUPLEX" | "FULLDUPLEX" => false,
        "SHARED" => true,
        other => return Err(routes::unshared(element, "sharing_policy", other).into()),
    };
    let capacity = if is_shared { network.notes.half(element, "bw", bandwidth)? } else { bandwidth };
    let hosts = add_hosts(network, element)?;
    let cluster = Cluster { element, id: element.required("id")?, hosts, capacity, latency };
    match element.attribute("topology").unwrap_or("FLAT") {
        "FLAT" => cluster.add_switch(network, bandwidth, gateways),
        "TORUS" => cluster.add_torus(network),
        "FAT_TREE" => cluster.add_tree(network),
        "DRAGONFLY" => {
            let problem = "DRAGONFLY is not read; list its links as CSV, or use the expression `dragonfly-router`";
            Err(routes::at(element, "topology", problem).into())
        }
        other => Err(element.unusable("topology", other, "FLAT, TORUS or FAT_TREE").into()),
    }
}

fn rate(element: &Element, attribute: &str, text: &str) -> Result<Capacity, FileError> {
    units::rate(text).map_err(|problem| routes::at(element, attribute, &problem))
}

fn latency(network: &mut Network<'_>, element: &Element, attribute: &str, text: &str) -> Result<Latency, FileError> {
    let (latency, is_exact) = units::latency(text).map_err(|problem| routes::at(element, attribute, &problem))?;
    network.notes.rounded += usize::from(!is_exact);
    Ok(latency)
}

fn count_of(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Hosts are called by numbers such as `0-7,10` between a prefix and a suffix.
fn add_hosts(network: &mut Network<'_>, element: &Element) -> Result<Vec<usize>, ImportError> {
    let radical = element.required("radical")?;
    let unusable = || element.unusable("radical", radical, "numbers and ranges such as `0-7,10`");
    let mut ranges = Vec::new();
    let mut count = 0_usize;
    for item in radical.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| unusable());
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(unusable().into());
        }
        count = count.saturating_add(usize::try_from(last - first).unwrap_or(usize::MAX)).saturating_add(1);
        ranges.push(first..=last);
    }
    network.require(count, 0)?;
    let [prefix, suffix] = ["prefix", "suffix"].map(|name| element.attribute(name).unwrap_or_default());
    let mut hosts = Vec::with_capacity(count);
    for number in ranges.into_iter().flatten() {
        hosts.push(network.add_node(element, format!("{prefix}{number}{suffix}"), true)?);
    }
    Ok(hosts)
}

impl Cluster<'_> {
    /// A link each way between two nodes.
    fn join(&self, network: &mut Network<'_>, (a, b): (usize, usize), count: u64) -> Result<(), ImportError> {
        network.ask()?;
        network.add_links((a, b), count, self.capacity, self.latency);
        network.add_links((b, a), count, self.capacity, self.latency);
        Ok(())
    }

    /// All hosts around a switch. A backbone that limits them is a link between what they send to and receive from.
    fn add_switch(
        &self,
        network: &mut Network<'_>,
        bandwidth: Capacity,
        gateways: &HashSet<&str>,
    ) -> Result<(), ImportError> {
        let [prefix, suffix] = ["prefix", "suffix"].map(|name| self.element.attribute(name).unwrap_or_default());
        let router = self.element.attribute("router_id").map(str::to_owned);
        let router = router.unwrap_or_else(|| format!("{prefix}{}_router{suffix}", self.id));
        let is_gateway = gateways.contains(router.as_str());
        network.require(3, self.hosts.len().saturating_mul(2).saturating_add(3))?;
        let switch = network.add_node(self.element, router, false)?;
        let Some((backbone, delay)) = self.backbone(network, bandwidth)? else {
            return self.hosts.iter().try_for_each(|&host| self.join(network, (host, switch), 1));
        };
        let all = self.capacity.bytes_per_sec().saturating_mul(count_of(self.hosts.len()));
        let is_limit = backbone.is_some_and(|backbone| backbone.bytes_per_sec() < all);
        // Its latency is part of the way down, since every message goes up and down once.
        let (enters, leaves, down) = match is_gateway || is_limit {
            false => (switch, switch, self.latency.nanos().saturating_add(delay.nanos())),
            true => {
                let enters = match is_gateway {
                    true => network.add_node(self.element, format!("{}_in", self.id), false)?,
                    false => switch,
                };
                let leaves = network.add_node(self.element, format!("{}_out", self.id), false)?;
                let unlimited = Capacity::from_bytes_per_sec(all.saturating_mul(2)).unwrap_or(self.capacity);
                let capacity = backbone.unwrap_or(unlimited);
                network.add_links((enters, leaves), 1, capacity, delay);
                if is_gateway {
                    network.add_links((leaves, switch), 1, capacity, Latency::default());
                    network.add_links((switch, enters), 1, capacity, Latency::default());
                }
                (enters, leaves, self.latency.nanos())
            }
        };
        for &host in &self.hosts {
            network.ask()?;
            network.add_links((host, enters), 1, self.capacity, self.latency);
            network.add_links((leaves, host), 1, self.capacity, Latency::from_nanos(down));
        }
        Ok(())
    }

    /// What all messages pass, if there is a backbone: its rate, if it limits them together, and its latency.
    fn backbone(
        &self,
        network: &mut Network<'_>,
        bandwidth: Capacity,
    ) -> Result<Option<(Option<Capacity>, Latency)>, ImportError> {
        let delay = self.element.attribute("bb_lat").unwrap_or("0");
        let delay = latency(network, self.element, "bb_lat", delay)?;
        let Some(text) = self.element.attribute("bb_bw") else {
            if delay == Latency::default() {
                return Ok(None);
            }
            return Err(routes::at(self.element, "bb_lat", "a backbone needs a bandwidth; add bb_bw").into());
        };
        let capacity = rate(self.element, "bb_bw", text)?;
        match self.element.attribute("bb_sharing_policy").unwrap_or("SHARED") {
            "SHARED" => Ok(Some((Some(capacity), delay))),
            // What limits each message no more than its host's link limits nothing.
            "FATPIPE" if capacity >= bandwidth => Ok(Some((None, delay))),
            other => Err(routes::unshared(self.element, "bb_sharing_policy", other).into()),
        }
    }

    /// The sizes of a topology; their product must be the number of hosts.
    fn sizes(&self, text: &str) -> Result<Vec<usize>, ImportError> {
        let sizes: Option<Vec<usize>> = text.split(',').map(|size| size.trim().parse().ok()).collect();
        let is_size = |sizes: &Vec<usize>| sizes.len() <= DIMENSIONS_MAX && sizes.iter().all(|size| *size > 0);
        let unusable = || {
            let problem = format!("`{}` is no list of 1 to {DIMENSIONS_MAX} numbers from 1", shorten(text));
            routes::at(self.element, "topo_parameters", &format!("{problem}; write `4,4,2` or `2;4,4;1,2;1,2`"))
        };
        Ok(sizes.filter(is_size).ok_or_else(unusable)?)
    }

    fn check_hosts(&self, sizes: &[usize]) -> Result<(), FileError> {
        let product = sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
        if product == Some(self.hosts.len()) {
            return Ok(());
        }
        let found = self.hosts.len();
        let needed = product.map_or("more".to_owned(), |product| product.to_string());
        let problem = format!("it needs {needed} hosts, and radical has {found}; make them equal");
        Err(routes::at(self.element, "topo_parameters", &problem))
    }

    /// Neighbours in each dimension, of which the first counts fastest. Two hosts are neighbours once: the second link
    /// that SimGrid makes between them is on no route.
    fn add_torus(&self, network: &mut Network<'_>) -> Result<(), ImportError> {
        let extents = self.sizes(self.element.required("topo_parameters")?)?;
        self.check_hosts(&extents)?;
        let count = self.hosts.len();
        network.require(0, count.saturating_mul(2).saturating_mul(extents.len()))?;
        let mut stride = 1;
        for extent in extents {
            for (number, &host) in self.hosts.iter().enumerate() {
                let own = number / stride % extent;
                let is_last = own + 1 == extent;
                let next = if is_last { number - own * stride } else { number + stride };
                if extent > 2 || extent == 2 && !is_last {
                    let next = self.hosts.get(next).copied().unwrap_or(host);
                    self.join(network, (host, next), 1)?;
                }
            }
            stride *= extent;
        }
        Ok(())
    }

    /// Switches of each level of a fat tree, and the links to those above: `levels;down;up;parallel`.
    fn add_tree(&self, network: &mut Network<'_>) -> Result<(), ImportError> {
        let text = self.element.required("topo_parameters")?;
        let lists: Vec<Vec<usize>> = text.split(';').map(|list| self.sizes(list)).collect::<Result<_, _>>()?;
        let [levels, down, up, parallel] = &lists[..] else {
            let problem = "a fat tree has four parts; write `levels;down;up;parallel`, such as `2;4,4;1,2;1,2`";
            return Err(routes::at(self.element, "topo_parameters", problem).into());
        };
        if levels.len() != 1 || [down.len(), up.len(), parallel.len()].iter().any(|count| Some(count) != levels.first())
        {
            let problem = "down, up and parallel need one number for each level; write `2;4,4;1,2;1,2`";
            return Err(routes::at(self.element, "topo_parameters", problem).into());
        }
        self.check_hosts(down)?;
        let mut below = self.hosts.clone();
        // Numbers of the nodes of a level count the switches above a common host fastest.
        let mut fast = 1_usize;
        for (level, ((&down, &up), &parallel)) in (1..).zip(down.iter().zip(up).zip(parallel)) {
            let links = below.len().saturating_mul(up);
            let above = links / down;
            network.require(above, links.saturating_mul(2))?;
            let name = |number: usize| format!("{}_{level}_{number}", self.id);
            let above: Vec<usize> = (0..above)
                .map(|number| network.add_node(self.element, name(number), false))
                .collect::<Result<_, _>>()?;
            for (number, &child) in below.iter().enumerate() {
                let (low, high) = (number % fast, number / fast / down);
                let parents = above.iter().skip(low + high * fast * up).step_by(fast).take(up);
                parents.copied().try_for_each(|parent| self.join(network, (child, parent), count_of(parallel)))?;
            }
            (below, fast) = (above, fast.saturating_mul(up));
        }
        Ok(())
    }
}
