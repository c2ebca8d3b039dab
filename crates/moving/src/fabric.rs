//! Routes over one fabric: which NICs a rank's bytes leave by and enter by, each end for itself.

use canopy_optimize::Fraction;

use crate::matrix::{Matrix, Sums};
use crate::route::{Part, Route};
use crate::tiers::Tiers;

/// Bytes of a rank that one NIC takes.
#[derive(Clone, Copy, Debug)]
struct Segment {
    nic: u32,
    bytes: u64,
}

/// Appends routes for all bytes between boxes. Links take the time of the cuts, and a byte more where that is not
/// whole.
///
/// A rank's own NIC comes first; the rest goes over NICs with room whose ranks can relay.
pub(crate) fn across(tiers: &Tiers, matrix: &Matrix, sums: &Sums, time: Fraction, parts: &mut Vec<Part>) {
    let (ranks, size, rates) = (tiers.ranks(), tiers.box_size(), tiers.rates());
    let room = |rate: u64| {
        let bytes = (time.numerator * u128::from(rate)).div_ceil(time.denominator);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    };
    let rooms = |rates: &[u64]| rates.iter().map(|&rate| room(rate)).collect::<Vec<u64>>();
    let (nic_out, nic_in) = (rooms(&rates.outer_out), rooms(&rates.outer_in));
    let (switch_out, switch_in) = (rooms(&rates.inner_out), rooms(&rates.inner_in));
    let mut leaving: Vec<Vec<Segment>> = vec![Vec::new(); ranks];
    let mut entering: Vec<Vec<Segment>> = vec![Vec::new(); ranks];
    for first in (0..ranks).step_by(size) {
        let of_box = first..first + size;
        // What a link to or from the switch carries besides relayed bytes.
        let taken_in = |rank: usize| sums.inside_in[rank] + sums.across_in[rank].saturating_sub(nic_in[rank]);
        let taken_out = |rank: usize| sums.inside_out[rank] + sums.across_out[rank].saturating_sub(nic_out[rank]);
        let relay_in = |rank: usize| switch_in[rank].saturating_sub(taken_in(rank));
        let relay_out = |rank: usize| switch_out[rank].saturating_sub(taken_out(rank));
        spread(of_box.clone(), &sums.across_out, &nic_out, relay_in, &mut leaving);
        spread(of_box, &sums.across_in, &nic_in, relay_out, &mut entering);
    }
    join(tiers, matrix, &mut leaving, &mut entering, parts);
}

/// Divides what each rank of a box has among its NICs.
fn spread(
    ranks: std::ops::Range<usize>,
    bytes: &[u64],
    nics: &[u64],
    relays: impl Fn(usize) -> u64,
    segments: &mut [Vec<Segment>],
) {
    let name = |rank: usize| u32::try_from(rank).unwrap_or(u32::MAX);
    let mut rooms: Vec<(usize, u64)> = Vec::with_capacity(ranks.len());
    for rank in ranks.clone() {
        let own = bytes[rank].min(nics[rank]);
        if own > 0 {
            segments[rank].push(Segment { nic: name(rank), bytes: own });
        }
        rooms.push((rank, (nics[rank] - own).min(relays(rank))));
    }
    // Those with most room first, so that few bytes are divided.
    rooms.sort_by_key(|&(rank, room)| (std::cmp::Reverse(room), rank));
    let mut rooms = rooms.into_iter().peekable();
    for rank in ranks {
        let mut left = bytes[rank] - bytes[rank].min(nics[rank]);
        while left > 0 {
            let (relay, room) = rooms.peek_mut().expect("cuts leave room for all bytes");
            let taken = left.min(*room);
            if taken > 0 {
                segments[rank].push(Segment { nic: name(*relay), bytes: taken });
                left -= taken;
                *room -= taken;
            }
            if *room == 0 {
                rooms.next();
            }
        }
    }
}

/// Lays what each sender has, receiver by receiver, over its NICs, and what each receiver gets, sender by sender, over
/// its own.
fn join(
    tiers: &Tiers,
    matrix: &Matrix,
    leaving: &mut [Vec<Segment>],
    entering: &mut [Vec<Segment>],
    parts: &mut Vec<Part>,
) {
    let size = tiers.box_size();
    // The last is the one that bytes are taken from.
    leaving.iter_mut().chain(entering.iter_mut()).for_each(|segments| segments.reverse());
    for ((from, name), sending) in (0..tiers.ranks()).zip(0_u32..).zip(leaving) {
        for ((to, &bytes), receiver) in matrix.row(from).iter().enumerate().zip(0_u32..) {
            let mut left = if to / size == from / size { 0 } else { bytes };
            while left > 0 {
                let (Some(out), Some(into)) = (sending.last_mut(), entering[to].last_mut()) else {
                    unreachable!("segments add up to rows and columns");
                };
                let taken = left.min(out.bytes).min(into.bytes);
                let route = Route::Across { leaves: out.nic, enters: into.nic };
                parts.push(Part { from: name, to: receiver, route, bytes: taken });
                left -= taken;
                out.bytes -= taken;
                into.bytes -= taken;
                let (out_ends, into_ends) = (out.bytes == 0, into.bytes == 0);
                if out_ends {
                    sending.pop();
                }
                if into_ends {
                    entering[to].pop();
                }
            }
        }
    }
}
