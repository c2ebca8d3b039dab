//! Where messages begin and end in the body of a gRPC call.

/// Bytes before each message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// Follows the bytes of one direction of a call.
#[derive(Debug, Default)]
pub(super) struct Messages {
    prefix: [u8; PREFIX_BYTES],
    prefix_length: usize,
    /// Bytes that the current message has had, and will have in all once its prefix is there.
    arrived: u64,
    length: u64,
}

impl Messages {
    /// Takes the next bytes and reports the length of each message that ends in them. O(messages).
    pub(super) fn take(&mut self, data: &[u8], mut ended: impl FnMut(u64)) {
        let mut rest = data;
        while !rest.is_empty() {
            if let Some(missing) = self.prefix.get_mut(self.prefix_length..).filter(|missing| !missing.is_empty()) {
                let count = missing.len().min(rest.len());
                let (head, tail) = rest.split_at(count);
                missing[..count].copy_from_slice(head);
                self.prefix_length += count;
                rest = tail;
                let [_, a, b, c, d] = self.prefix;
                self.length = u64::from(u32::from_be_bytes([a, b, c, d]));
            }
            if self.prefix_length < PREFIX_BYTES {
                return;
            }
            let missing = usize::try_from(self.length - self.arrived).unwrap_or(usize::MAX);
            let (head, tail) = rest.split_at(missing.min(rest.len()));
            self.arrived += head.len() as u64;
            rest = tail;
            if self.arrived == self.length {
                ended(self.length);
                *self = Self::default();
            }
        }
    }

    /// The length of a message that has not ended, once it is known.
    pub(super) fn announced(&self) -> Option<u64> {
        (self.prefix_length == PREFIX_BYTES).then_some(self.length)
    }

    /// Bytes of a message that has not ended.
    pub(super) const fn arrived(&self) -> u64 {
        self.arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(lengths: &[u32]) -> Vec<u8> {
        let message = |&length: &u32| {
            let payload = std::iter::repeat_n(7, length as usize);
            [0].into_iter().chain(length.to_be_bytes()).chain(payload).collect::<Vec<u8>>()
        };
        lengths.iter().flat_map(message).collect()
    }

    #[test]
    fn messages_are_found_however_the_bytes_are_cut() {
        let lengths = [3, 0, 300, 1, 0];
        let body = body(&lengths);
        for step in [1, 2, 4, 5, 7, 64, body.len()] {
            let (mut messages, mut found) = (Messages::default(), Vec::new());
            body.chunks(step).for_each(|chunk| messages.take(chunk, |length| found.push(length)));
            assert_eq!(found, lengths.map(u64::from), "{step} at a time");
            assert_eq!(messages.arrived(), 0);
        }
    }

    #[test]
    fn a_message_that_goes_on_is_known_so_far() {
        let mut messages = Messages::default();
        messages.take(&body(&[100])[..35], |_| panic!("it has not ended"));
        assert_eq!(messages.arrived(), 30);
    }

    #[test]
    fn the_greatest_length_overflows_nothing() {
        let mut messages = Messages::default();
        messages.take(&[0, 255, 255, 255, 255, 1, 2], |_| panic!("it has not ended"));
        assert_eq!(messages.arrived(), 2);
    }
}
