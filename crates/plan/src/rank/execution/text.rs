//! The text of a plan of one rank: its own entry, and of the others what the loader reads of them.

use std::fmt::Write as _;

use super::{ExecutionSlice, RankStub};
use crate::mscclpp::{write_plan_end, write_plan_head, write_rank, write_rank_links};

/// Bytes of a stub that says nothing, but for its number.
const EMPTY_STUB_BYTES: usize = 50;

/// The text of a slice: as [`write_execution_plan`](crate::write_execution_plan) writes the whole plan, but for what
/// the loader does not read of other ranks. The same slice gives the same bytes. O(ranks + operations).
pub fn write_execution_slice(slice: &ExecutionSlice) -> String {
    let mut out = String::with_capacity(slice.rank_count as usize * EMPTY_STUB_BYTES + (1 << 16));
    write_plan_head(&mut out, &slice.plan);
    let mut stubs = slice.stubs.iter().peekable();
    let own = slice.plan.ranks.first();
    for rank in 0..slice.rank_count {
        out.push_str(if rank == 0 { "\n" } else { ",\n" });
        match (own.filter(|own| own.id == rank), stubs.next_if(|(other, _)| **other == rank)) {
            (Some(own), _) => write_rank(&mut out, own),
            (None, Some((_, RankStub { channels, remote_buffers }))) => {
                out.write_fmt(format_args!("    {{\"id\": {rank},\n")).expect("writing to a text cannot fail");
                write_rank_links(&mut out, channels, remote_buffers);
                out.push('}');
            }
            (None, None) => {
                out.push_str("{\"id\":");
                push_number(&mut out, rank);
                out.push_str(",\"channels\":[],\"remote_buffers\":[]}");
            }
        }
    }
    write_plan_end(&mut out);
    out
}

/// A number in decimals: most of what is written.
fn push_number(out: &mut String, number: u32) {
    let mut digits = [0_u8; 10];
    let (mut left, mut count) = (number, 0);
    for digit in digits.iter_mut().rev() {
        (*digit, left, count) = (b'0' + u8::try_from(left % 10).unwrap_or(0), left / 10, count + 1);
        if left == 0 {
            break;
        }
    }
    out.extend(digits.iter().skip(digits.len() - count).map(|&digit| char::from(digit)));
}
