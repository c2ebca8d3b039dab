//! Ids of requests that change something: a repeat does nothing twice.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

/// A unique UUID (RFC 9562, version 4 or 8).
///
/// Make one for each change, put it into the `request_id` of the message, and keep it for every try: a server that has
/// already made the change repeats its first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(u128);

impl RequestId {
    /// A random id: 122 bits from the operating system.
    pub fn random() -> Self {
        // Each state has keys of its own, which the standard library takes from the operating system.
        let bits = || u128::from(RandomState::new().hash_one(std::process::id()));
        Self::from_bits(bits() << 64 | bits(), 4)
    }

    /// The id of a change that several processes ask for, each by itself: 122 bits of a digest of what they ask, so
    /// that the server makes the change once.
    pub const fn of_digest(digest: [u8; 16]) -> Self {
        Self::from_bits(u128::from_be_bytes(digest), 8)
    }

    /// The id of these bits, with the six that name the version set.
    const fn from_bits(bits: u128, version: u128) -> Self {
        const VERSION: u128 = 0xF << 76;
        const VARIANT: u128 = 0b11 << 62;
        Self(bits & !VERSION & !VARIANT | version << 76 | 0b10 << 62)
    }
}

/// Prints 8-4-4-4-12 hexadecimal digits.
impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |from: u32, digits: u32| self.0 >> (from * 4) & ((1 << (digits * 4)) - 1);
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(24, 8),
            part(20, 4),
            part(16, 4),
            part(12, 4),
            part(0, 12)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_whether_it_is_one_by_chance() {
        assert_eq!(RequestId::from_bits(0, 4).to_string(), "00000000-0000-4000-8000-000000000000");
        assert_eq!(RequestId::from_bits(u128::MAX, 4).to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        let bits = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef_u128;
        assert_eq!(RequestId::from_bits(bits, 4).to_string(), "01234567-89ab-4def-8123-456789abcdef");
        assert_eq!(RequestId::of_digest(bits.to_be_bytes()).to_string(), "01234567-89ab-8def-8123-456789abcdef");
    }

    #[test]
    fn no_two_are_alike() {
        let ids: std::collections::HashSet<RequestId> = (0..1000).map(|_| RequestId::random()).collect();
        assert_eq!(ids.len(), 1000);
    }
}
