//! The smallest network of each kind with enough endpoints, to compare kinds.

use crate::cost::network::{ENDPOINTS_MAX, Network, NetworkError, is_prime_power, slim_fly_degree};

/// A kind of network and its smallest member with enough endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name of the kind.
    pub kind: &'static str,
    /// The member.
    pub network: Network,
}

/// The smallest network with enough endpoints, of each kind that the source compares and of fat trees.
///
/// Square 2dfc with a quarter, a half and all of the bisection bandwidth (T = 2m, m and m/2), balanced Dragonflies
/// (a = 2p = 2h), Slim Flies with half as many endpoints at a switch as other ports, tori of three and five dimensions with sides
/// that differ by one at most and one endpoint at a switch.
///
/// * **Source.** Pham 2026, section 4.4.2 and figure 4.19.
/// * **Errors.** No endpoints, or more than a tenth of [`ENDPOINTS_MAX`]. **Cost.** O(∛endpoints).
pub fn choices(endpoints: u64) -> Result<Vec<Choice>, NetworkError> {
    if endpoints == 0 {
        return Err(NetworkError::Endpoints);
    }
    // The smallest member may have a few times as many.
    let max = ENDPOINTS_MAX / 10;
    if endpoints > max {
        return Err(NetworkError::TooMany {
            what: "endpoints of a comparison of networks",
            found: endpoints.into(),
            max,
        });
    }
    let dfc2 = |terminals: fn(u64) -> u64| {
        least(endpoints, 2, 1, move |m| Some(Network::Dfc2 { rows: m, columns: m, terminals: terminals(m) }))
    };
    let slim_fly = |q| {
        let terminals = slim_fly_degree(q).div_ceil(2);
        is_prime_power(q).then_some(Network::SlimFly { q, terminals })
    };
    let found = [
        ("2dfc, 1/4 bisection", dfc2(|m| 2 * m)),
        ("2dfc, 1/2 bisection", dfc2(|m| m)),
        ("2dfc, full bisection", dfc2(|m| m / 2)),
        ("Slim Fly", least(endpoints, 3, 1, slim_fly)),
        ("Dragonfly", least(endpoints, 1, 1, |h| Some(Network::DragonflyRouter { p: h, a: 2 * h, h }))),
        ("3-D torus", torus(endpoints, 3)),
        ("5-D torus", torus(endpoints, 5)),
        ("fat tree", least(endpoints, 2, 2, |k| Some(Network::FatTree { k }))),
    ];
    found.into_iter().map(|(kind, network)| Ok(Choice { kind, network: network.checked()? })).collect()
}

/// The first network with enough endpoints, from a size on in steps; all kinds grow with their size.
fn least(endpoints: u64, first: u64, step: u64, make: impl Fn(u64) -> Option<Network>) -> Network {
    let mut size = first;
    loop {
        match make(size) {
            Some(network) if network.wide_endpoints() >= endpoints.into() => return network,
            _ => size += step,
        }
    }
}

/// A torus whose sides differ by one at most, with as few switches as that allows.
fn torus(endpoints: u64, dimensions: usize) -> Network {
    let of = |side: u64, longer: usize| Network::Torus {
        extents: (0..dimensions).map(|place| side - u64::from(place >= longer)).collect(),
        terminals: 1,
    };
    let cube = least(endpoints, 3, 1, |side| Some(of(side, dimensions)));
    let side = match &cube {
        Network::Torus { extents, .. } => extents.first().copied().unwrap_or(3),
        _ => 3,
    };
    if side == 3 {
        return cube;
    }
    let fewer = (1..dimensions).map(|longer| of(side, longer));
    fewer.into_iter().find(|network| network.wide_endpoints() >= endpoints.into()).unwrap_or(cube)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_enough_and_its_next_smaller_member_has_not() {
        for endpoints in [1, 2, 100, 1000, 100_000, 12_345_678, ENDPOINTS_MAX / 10] {
            for Choice { kind, network } in choices(endpoints).unwrap() {
                let smaller = match network.clone() {
                    Network::Dfc2 { rows: 2, .. }
                    | Network::SlimFly { q: 3, .. }
                    | Network::DragonflyRouter { h: 1, .. }
                    | Network::FatTree { k: 2 } => continue,
                    Network::Dfc2 { rows, terminals, .. } => {
                        let terminals = if terminals < rows { (rows - 1) / 2 } else { terminals / rows * (rows - 1) };
                        Network::Dfc2 { rows: rows - 1, columns: rows - 1, terminals }
                    }
                    Network::DragonflyRouter { h, .. } => Network::DragonflyRouter { p: h - 1, a: 2 * h - 2, h: h - 1 },
                    Network::SlimFly { q, .. } => {
                        let q = (0..q).rev().find(|&q| is_prime_power(q)).unwrap();
                        Network::SlimFly { q, terminals: slim_fly_degree(q).div_ceil(2) }
                    }
                    Network::FatTree { k } => Network::FatTree { k: k - 2 },
                    Network::Torus { mut extents, terminals } => {
                        let last = extents.iter().rposition(|extent| *extent == extents[0]).unwrap();
                        extents[last] -= 1;
                        Network::Torus { extents, terminals }
                    }
                };
                assert!(network.wide_endpoints() >= endpoints.into(), "{kind} for {endpoints}");
                let is_least = matches!(&smaller, Network::Torus { extents, .. } if extents.contains(&2));
                assert!(is_least || smaller.wide_endpoints() < endpoints.into(), "{kind} for {endpoints}: {smaller}");
            }
        }
    }

    #[test]
    fn none_and_too_many_are_refused() {
        assert_eq!(choices(0), Err(NetworkError::Endpoints));
        assert!(choices(u64::MAX).unwrap_err().to_string().contains("are too many"));
    }
}
