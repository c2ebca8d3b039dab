//! How fast the cables between switches are, level by level.

use std::collections::{BTreeSet, VecDeque};

use canopy_topology::Capacity;

use super::attach::Cable;
use super::rates::{LEVELS_MAX, Rates, level_name};
use crate::fabric::{Fabric, FabricHost};

/// Rates of the links of a fabric, by link.
pub(super) struct Uplinks {
    pub(super) rates: Vec<Option<Capacity>>,
    /// By link: the level that it leads up from, if its rate was assumed.
    assumed: Vec<Option<usize>>,
    oversubscription: (u64, u64),
}

impl Uplinks {
    /// Takes the rate that the file states, else the one for the level. Where neither is there, the links of a switch to the
    /// level above carry together what comes in from below, divided by the oversubscription; links within a level as much
    /// as the switch at the slower end takes in.
    ///
    /// `cables` are those of a machine; `None` if it is of no known kind. O(hosts · cables + switches + links).
    pub(super) fn of(fabric: &Fabric, rates: &Rates, cables: impl Fn(&FabricHost) -> Option<Vec<Cable>>) -> Self {
        let mut below = vec![0_u128; fabric.switches.len()];
        for host in &fabric.hosts {
            for cable in cables(host).into_iter().flatten() {
                below[cable.switch] += u128::from(cable.rate.bytes_per_sec());
            }
        }
        let levels = levels(fabric);
        let mut order: Vec<usize> = (0..fabric.switches.len()).collect();
        order.sort_by_key(|&switch| levels[switch]);
        let mut up = vec![Vec::new(); fabric.switches.len()];
        for (number, link) in fabric.links.iter().enumerate() {
            let (a, b) = link.ends;
            up[if levels[b] < levels[a] { b } else { a }].push(number);
        }
        let (numerator, denominator) = rates.oversubscription();
        let mut found = vec![None; fabric.links.len()];
        let mut assumed = vec![None; fabric.links.len()];
        for switch in order {
            let level = levels[switch];
            let count = up[switch].iter().map(|&link| fabric.links[link].count.unwrap_or(1)).sum::<u64>();
            for &number in &up[switch] {
                let link = &fabric.links[number];
                let other = if link.ends.0 == switch { link.ends.1 } else { link.ends.0 };
                let stated = link.rate.or_else(|| rates.uplink(level).filter(|_| levels[other] > level));
                let rate = stated.or_else(|| {
                    assumed[number] = Some(level);
                    let share = below[switch].saturating_mul(denominator.into()) / u128::from(numerator);
                    let one = share / u128::from(count.max(1));
                    Capacity::from_bytes_per_sec(u64::try_from(one).unwrap_or(u64::MAX))
                });
                if levels[other] > level {
                    let total = rate.map_or(0, |rate| u128::from(rate.bytes_per_sec()));
                    below[other] = below[other].saturating_add(total.saturating_mul(link.count.unwrap_or(1).into()));
                }
                found[number] = rate;
            }
        }
        Self { rates: found, assumed, oversubscription: (numerator, denominator) }
    }

    /// What was taken for what is not stated of these links, a sentence for each level.
    pub(super) fn assumed(&self, links: impl Iterator<Item = usize>) -> Vec<String> {
        let levels = links.filter_map(|link| self.assumed.get(link).copied().flatten());
        // Links that no machine reaches carry nothing.
        let levels: BTreeSet<usize> = levels.filter(|&level| level < usize::MAX).collect();
        let (numerator, denominator) = self.oversubscription;
        let ratio = if denominator == 1 { numerator.to_string() } else { format!("{numerator}/{denominator}") };
        let sentence = |level: usize| {
            let (lower, upper) = (level_name(level), level_name(level.saturating_add(1)));
            format!(
                "rates from {lower} to {upper} are not stated: what a {lower} switch takes in leaves it upwards, \
                 oversubscribed {ratio} to 1; state them with `{lower}-{upper}=800Gb/s` or `oversub=2`"
            )
        };
        levels.into_iter().take(LEVELS_MAX).map(sentence).collect()
    }
}

/// By switch: 0 where machines are joined, else one more than the nearest that is lower; switches without a way to a machine
/// come last.
fn levels(fabric: &Fabric) -> Vec<usize> {
    let mut neighbours = vec![Vec::new(); fabric.switches.len()];
    for link in &fabric.links {
        neighbours[link.ends.0].push(link.ends.1);
        neighbours[link.ends.1].push(link.ends.0);
    }
    let mut levels = vec![usize::MAX; fabric.switches.len()];
    let mut queue = VecDeque::new();
    for attachment in fabric.hosts.iter().flat_map(|host| &host.attachments) {
        if std::mem::replace(&mut levels[attachment.switch], 0) != 0 {
            queue.push_back(attachment.switch);
        }
    }
    while let Some(switch) = queue.pop_front() {
        for &other in &neighbours[switch] {
            if levels[other] == usize::MAX {
                levels[other] = levels[switch] + 1;
                queue.push_back(other);
            }
        }
    }
    levels
}
