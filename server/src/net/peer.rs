//! Who is at the other end, and how much of what all share one caller may have.

mod places;

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

pub(crate) use self::places::{Full, Places};

/// A host that calls, as far as an address tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    /// This one: the user of the server or root, through a Unix socket.
    Local,
    /// This one: another of its users, through a Unix socket.
    User(u32),
    /// The one at this address.
    Address(IpAddr),
}

impl Host {
    /// The host of an address. One host has a whole network of IPv6 addresses: they count as one.
    pub(crate) fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            address @ IpAddr::V4(_) => address,
        })
    }

    /// Whether it is this one.
    pub(crate) fn is_here(self) -> bool {
        match self {
            Self::Local | Self::User(_) => true,
            Self::Address(address) => address.is_loopback() || address == IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        }
    }
}

/// Prints an address, or `unix`.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local | Self::User(_) => f.write_str("unix"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// A connection and its other end; goes with every request that comes over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peer {
    pub(crate) host: Host,
    /// Tells connections of this process apart.
    pub(crate) connection: u64,
}

/// How much each caller has of something; clones share it. Callers that have nothing take no memory.
#[derive(Clone, Debug)]
pub(crate) struct Shares<K>(Arc<Mutex<HashMap<K, u64>>>);

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Copy + Eq + Hash> Shares<K> {
    /// Gives a caller one more, up to `limit`. None: it has that many.
    pub(crate) fn take(&self, caller: K, limit: u64) -> Option<Share<K>> {
        let mut share = self.empty(caller);
        (share.grow(1) <= limit).then_some(share)
    }

    /// A share of nothing yet.
    pub(crate) fn empty(&self, caller: K) -> Share<K> {
        Share { shares: self.clone(), caller, amount: 0 }
    }
}

/// What somebody has; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Share<K: Copy + Eq + Hash> {
    shares: Shares<K>,
    caller: K,
    amount: u64,
}

impl<K: Copy + Eq + Hash> Share<K> {
    /// Takes so much more, and returns how much its caller has by now.
    pub(crate) fn grow(&mut self, by: u64) -> u64 {
        self.amount = self.amount.saturating_add(by);
        let mut shares = self.shares.0.lock();
        let all = shares.entry(self.caller).or_default();
        *all = all.saturating_add(by);
        *all
    }

    /// Gives so much back, at most all.
    pub(crate) fn shrink(&mut self, by: u64) {
        let by = by.min(self.amount);
        self.amount -= by;
        let mut shares = self.shares.0.lock();
        if let Some(all) = shares.get_mut(&self.caller) {
            *all = all.saturating_sub(by);
            if *all == 0 {
                shares.remove(&self.caller);
            }
        }
    }
}

impl<K: Copy + Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        self.shrink(self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_no_more_than_its_share_and_leaves_nothing_behind() {
        let shares = Shares::default();
        let (first, second) = (shares.take('a', 2), shares.take('a', 2));
        assert!(first.is_some() && second.is_some() && shares.take('a', 2).is_none());
        assert!(shares.take('b', 2).is_some(), "others have theirs");
        drop(first);
        assert!(shares.take('a', 2).is_some());
        let mut bytes = shares.empty('c');
        assert_eq!((bytes.grow(5), bytes.grow(2)), (5, 7));
        bytes.shrink(100);
        drop((second, bytes));
        assert!(shares.0.lock().is_empty());
    }

    #[test]
    fn addresses_of_one_host_are_one() {
        let host = |text: &str| Host::at(text.parse().unwrap());
        assert_eq!(host("2001:db8:0:1::7"), host("2001:db8:0:1:ffff::1"));
        assert_ne!(host("2001:db8:0:1::7"), host("2001:db8:0:2::7"));
        assert_eq!(host("::ffff:10.0.0.1"), host("10.0.0.1"));
        assert_ne!(host("10.0.0.1"), host("10.0.0.2"));
        assert!(["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"].iter().all(|here| host(here).is_here()));
        assert!(["10.0.0.1", "2001:db8::1", "0.0.0.0"].iter().all(|there| !host(there).is_here()));
        assert!(Host::Local.is_here());
    }
}
