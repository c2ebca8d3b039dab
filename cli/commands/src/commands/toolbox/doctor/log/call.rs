//! A line that states a call of a collective, as NCCL prints them with the subsystem COLL.

use canopy_bundle::Operator;
use canopy_schedule::CollectiveKind;

use super::{Communicator, word_after};

/// A call, without what differs from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct LoggedCall {
    /// What is called.
    pub(in super::super) collective: CollectiveKind,
    pub(in super::super) ranks: u32,
    /// Bytes of the whole message.
    pub(in super::super) bytes: u64,
    pub(in super::super) in_place: bool,
    pub(in super::super) element_bytes: u64,
    operator: u64,
}

impl LoggedCall {
    /// Reads `AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 8 datatype 7 op 0 root 0 comm 0x3 [nranks=4] stream
    /// 0x4`.
    pub(super) fn read<'a>(words: &str, communicator: impl Fn(&str) -> Option<&'a Communicator>) -> Option<Self> {
        let (name, rest) = words.split_once(": opCount ")?;
        let kind = CollectiveKind::spelt(name.trim()).ok()?;
        let number = |name: &str| word_after(rest, name)?.parse::<u64>().ok();
        let address = |name: &str| word_after(rest, name).and_then(address);
        let count = number("count")?;
        let element_bytes = element_bytes(number("datatype")?)?;
        let known = word_after(rest, "comm").and_then(communicator);
        let stated = rest.split_once("[nranks=").and_then(|(_, rest)| rest.split_once(']')?.0.parse().ok());
        let ranks: u32 = stated.or(known.map(|communicator| communicator.ranks)).filter(|&ranks| ranks > 0)?;
        // The count of collectives with shares is that of one share.
        let share_bytes = count.checked_mul(element_bytes)?;
        let bytes = share_bytes.checked_mul(if kind.has_shares() { u64::from(ranks) } else { 1 })?;
        let offset = || share_bytes.checked_mul(u64::from(known?.rank));
        let (send, receive) = (address("sendbuff")?, address("recvbuff")?);
        let in_place = match kind {
            CollectiveKind::Allgather | CollectiveKind::Gather => receive.checked_add(offset()?) == Some(send),
            CollectiveKind::ReduceScatter | CollectiveKind::Scatter => send.checked_add(offset()?) == Some(receive),
            _ => send == receive,
        };
        Some(Self { collective: kind, ranks, bytes, in_place, element_bytes, operator: number("op").unwrap_or(0) })
    }

    /// How elements are combined.
    pub(in super::super) const fn operator(self) -> Operator {
        match self.operator {
            0 => Operator::Sum,
            1 => Operator::Product,
            2 => Operator::Max,
            3 => Operator::Min,
            4 => Operator::Average,
            _ => Operator::Custom,
        }
    }
}

/// An address: `0x7f00` or `(nil)`.
fn address(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => (word == "(nil)").then_some(0),
    }
}

/// Bytes of an element, by NCCL's number of its type.
const fn element_bytes(datatype: u64) -> Option<u64> {
    match datatype {
        0 | 1 | 10 | 11 => Some(1),
        6 | 9 => Some(2),
        2 | 3 | 7 => Some(4),
        4 | 5 | 8 => Some(8),
        _ => None,
    }
}
