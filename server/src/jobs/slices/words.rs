//! Slices and their answers as servers send them to each other. In all layouts fields are only ever added.

use std::sync::Arc;

use canopy_planner::{Left, Request as Order};
use canopy_wire::{loss_read, loss_written};
use prost::Message as _;
use prost::bytes::Bytes;

use super::Part;

/// The faults of a slice; its request is written down beside them.
#[derive(Clone, PartialEq, prost::Message)]
struct Faults {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    losses: Vec<Bytes>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(message, repeated, tag = "1")]
    left: Vec<KeptLeft>,
}

/// What a fault leaves.
#[derive(Clone, PartialEq, prost::Message)]
struct KeptLeft {
    /// The bound; empty where there is none.
    #[prost(string, tag = "1")]
    bound: String,
    /// Number of parts that cannot reach each other; 0 where all can.
    #[prost(uint32, tag = "2")]
    components: u32,
    #[prost(bool, tag = "3")]
    is_root_lost: bool,
}

impl Part {
    /// Its faults, to be read by [`Part::read`].
    pub(crate) fn written(&self) -> Vec<u8> {
        Faults { losses: self.losses.iter().map(loss_written).collect() }.encode_to_vec()
    }

    /// A part of a question about a request. None: it is damaged, or this build does not know it.
    pub(crate) fn read(order: Order, faults: &[u8]) -> Option<Self> {
        let losses = Faults::decode(faults).ok()?.losses.into_iter().map(loss_read).collect::<Option<_>>()?;
        Some(Self { order: Arc::new(order), losses })
    }

    /// Tells it from other parts, and its job from those that make plans.
    pub(crate) fn key(&self, request: &[u8; 32]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("canopy slice 1");
        hasher.update(request).update(&self.written());
        *hasher.finalize().as_bytes()
    }
}

/// Writes an answer down for those who wait elsewhere.
pub(crate) fn encode_answer(answer: &[Left]) -> Vec<u8> {
    let kept = |left: &Left| match left {
        Left::TooFewRanks => KeptLeft::default(),
        Left::Apart(components) => KeptLeft { components: *components, ..KeptLeft::default() },
        Left::RootLost => KeptLeft { is_root_lost: true, ..KeptLeft::default() },
        Left::Bound(rate) => KeptLeft { bound: rate.to_string(), ..KeptLeft::default() },
    };
    Answer { left: answer.iter().map(kept).collect() }.encode_to_vec()
}

/// Reads what [`encode_answer`] wrote. None: it is damaged.
pub(crate) fn decode_answer(bytes: &[u8]) -> Option<Vec<Left>> {
    let left = |KeptLeft { bound, components, is_root_lost }: KeptLeft| {
        Some(match (&*bound, components, is_root_lost) {
            ("", 0, false) => Left::TooFewRanks,
            ("", 0, true) => Left::RootLost,
            ("", components, _) => Left::Apart(components),
            (bound, ..) => Left::Bound(bound.parse().ok()?),
        })
    };
    Answer::decode(bytes).ok()?.left.into_iter().map(left).collect()
}

#[cfg(test)]
mod tests {
    use canopy_schedule::CollectiveKind;

    use super::*;

    #[test]
    fn slices_and_answers_are_read_as_they_were_written() {
        let order = Order::on("ring:6", CollectiveKind::Allgather);
        let losses = ["link:a>b*1/2", "gpu:3"].map(|loss| loss.parse().unwrap()).to_vec();
        let part = Part { order: Arc::new(order.clone()), losses };
        assert_eq!(Part::read(order.clone(), &part.written()).as_ref(), Some(&part));
        assert_eq!(Part::read(order.clone(), b"\xff\xff"), None);
        let other = Part { losses: part.losses[..1].to_vec(), ..part.clone() };
        assert_ne!(part.key(&[0; 32]), other.key(&[0; 32]));
        assert_ne!(part.key(&[0; 32]), part.key(&[1; 32]));

        let answer =
            vec![Left::TooFewRanks, Left::Apart(3), Left::RootLost, Left::Bound("1000000000000/3".parse().unwrap())];
        let written = encode_answer(&answer);
        assert_eq!(decode_answer(&written), Some(answer));
        assert_eq!(decode_answer(&written[..written.len() - 1]), None);
        let damaged = Answer { left: vec![KeptLeft { bound: "x".to_owned(), ..KeptLeft::default() }] };
        assert_eq!(decode_answer(&damaged.encode_to_vec()), None);
    }
}
