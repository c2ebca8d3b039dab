//! Addresses in the lab, all below 10.99.0.0/16.
//!
//! They exist in the lab's own namespaces alone, so they cannot meet addresses of the machine.

use std::fmt::Write as _;

/// Most nodes of a lab.
pub const NODES_MAX: usize = 40;
/// TCP port at which each rank is reached.
pub const PORT: u16 = 7000;
/// Network of the addresses that name ranks.
pub const RANK_NET: &str = "10.99.0.0/24";
/// Network without rate limits, for launchers alone.
pub const MANAGEMENT_NET: &str = "10.99.255.0/24";

/// Most routes at a time: as many addresses as there are from 10.99.128.0 to below the management network.
pub(crate) const ROUTES_MAX: u32 = ROUTES_PER_NET * 127;
/// Addresses of routes in one /24.
const ROUTES_PER_NET: u32 = 250;
/// First third byte of the addresses of routes.
const ROUTES_FIRST: u32 = 128;
/// First third byte of the networks of links.
const LINKS_FIRST: usize = 64;

// Every pair of nodes has a network of four addresses, 64 in each /24.
const _: () = assert!(NODES_MAX * (NODES_MAX - 1) / 2 <= 64 * 64 && NODES_MAX < 250);

/// The address that names a rank, whatever link it is reached by.
pub fn rank_address(rank: u32) -> String {
    format!("10.99.0.{}", rank + 1)
}

/// The address of a rank in the management network.
pub fn management_address(rank: u32) -> String {
    format!("10.99.255.{}", rank + 1)
}

/// The address of a route by its number, below [`ROUTES_MAX`].
pub(crate) fn route_address(number: u32) -> String {
    format!("10.99.{}.{}", ROUTES_FIRST + number / ROUTES_PER_NET, number % ROUTES_PER_NET + 1)
}

/// The addresses of the two ends of a pair's link: of the first node, of the second.
pub(crate) fn link_addresses(pair: usize) -> [String; 2] {
    [1, 2].map(|end| {
        let mut text = String::from("10.99.");
        let _never_fails = write!(text, "{}.{}", LINKS_FIRST + pair / 64, pair % 64 * 4 + end);
        text
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_address_is_used_twice() {
        let nodes = u32::try_from(NODES_MAX).unwrap();
        let pairs = NODES_MAX * (NODES_MAX - 1) / 2;
        let all: Vec<String> = (0..nodes)
            .flat_map(|rank| [rank_address(rank), management_address(rank)])
            .chain((0..ROUTES_MAX).map(route_address))
            .chain((0..pairs).flat_map(link_addresses))
            .collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for address in &all {
            address.parse::<std::net::Ipv4Addr>().unwrap_or_else(|error| panic!("{address}: {error}"));
        }
    }
}
