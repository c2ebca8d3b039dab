//! Data rates of InfiniBand links by width and speed.

use canopy_topology::Capacity;

/// The speed of one lane.
#[derive(Debug)]
pub(super) struct Speed {
    name: &'static str,
    /// Signalling rate in Gbit/s, as `iblinkinfo` prints it.
    signalling: &'static str,
    /// Data rate in bit/s, after the encoding or the error correction: numerator and denominator.
    data: (u64, u64),
}

const fn speed(name: &'static str, signalling: &'static str, data: (u64, u64)) -> Speed {
    Speed { name, signalling, data }
}

/// SDR to QDR send 8 bits as 10, FDR10 to EDR send 64 bits as 66, later speeds correct errors. FDR is the only one
/// that is not round: 14.0625 Gbit/s · 64 / 66 = 150 / 11.
const SPEEDS: [Speed; 9] = [
    speed("SDR", "2.5", (2_000_000_000, 1)),
    speed("DDR", "5.0", (4_000_000_000, 1)),
    speed("QDR", "10.0", (8_000_000_000, 1)),
    speed("FDR10", "10.3125", (10_000_000_000, 1)),
    speed("FDR", "14.0625", (150_000_000_000, 11)),
    speed("EDR", "25.78125", (25_000_000_000, 1)),
    speed("HDR", "53.125", (50_000_000_000, 1)),
    speed("NDR", "106.25", (100_000_000_000, 1)),
    speed("XDR", "212.5", (200_000_000_000, 1)),
];

const LANES: [u64; 5] = [1, 2, 4, 8, 12];

impl Speed {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        SPEEDS.iter().find(|speed| speed.name == name)
    }

    pub(super) fn signalled(gigabits: &str) -> Option<&'static Self> {
        SPEEDS.iter().find(|speed| speed.signalling == gigabits)
    }

    /// Rate of a link of so many lanes in each direction, in whole bytes per second, rounded down.
    pub(super) fn over(&self, lanes: &str) -> Option<Capacity> {
        let lanes = lanes.parse().ok().filter(|lanes| LANES.contains(lanes))?;
        let (bits, denominator) = self.data;
        Capacity::from_bytes_per_sec(bits * lanes / (8 * denominator))
    }
}
