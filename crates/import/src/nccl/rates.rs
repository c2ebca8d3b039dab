//! Bandwidths as NCCL and RCCL assign them, in bytes per second and direction, exact.
//!
//! Source: NVIDIA/nccl `src/graph/topo.h` (tables) and `topo.cc` (`ncclTopoGetInterCpuBw`, `ncclTopoAddGpu`);
//! ROCm/rccl, the same files, for xGMI. NCCL keeps them as floats of GB/s with at most one decimal.

use crate::error::NcclError;
use crate::xml::Element;

/// 10⁸ bytes per second, the unit of the tables: their rates have one decimal of GB/s.
const TENTH_GB: u64 = 100_000_000;
/// Rate of what is no bottleneck (`LOC_BW`): 5,000 GB/s.
pub(super) const LOCAL: u64 = 50_000 * TENTH_GB;

/// Link of a PCI device or switch to its parent: lanes × rate of the generation / 80.
///
/// The table holds 100 Mbit/s per lane after coding overhead; an unknown speed counts as 8 GT/s, no width as 16 lanes.
pub(super) fn pci(device: &Element) -> Result<u64, NcclError> {
    let lanes = match device.number("link_width")? {
        None | Some(0) => 16,
        Some(lanes) => lanes,
    };
    let speed = device.attribute("link_speed").unwrap_or_default();
    let transfers = speed.split_ascii_whitespace().next().unwrap_or_default();
    let lane_rate = match transfers.strip_suffix(".0").unwrap_or(transfers) {
        "2.5" => 15,
        "5" => 30,
        "16" => 120,
        "32" => 240,
        "64" => 480,
        _ => 60,
    };
    scaled(device, lanes, lane_rate * TENTH_GB / 8)
}

/// An `nvlink` element: its count × the rate of one link of a compute capability (`sm`, such as 90).
///
/// The tables end with sm 100 (B200, GB200): 103 (B300) and later have its rate, as NCCL takes them.
pub(super) fn nvlink(link: &Element, sm: Option<u64>) -> Result<u64, NcclError> {
    let one = match sm.unwrap_or(80) {
        100.. => 401,
        90..=99 => 206,
        86 => 120,
        70..=89 => 200,
        60..=69 => 180,
        _ => 200,
    };
    scaled(link, count(link)?, one * TENTH_GB)
}

/// An `xgmi` element: its count × the rate of one link of an architecture (`gcn`).
///
/// Older files give the architecture as a number: 910 is gfx90a, 940 to 942 are gfx94x. For gfx95x (MI350, MI355X) RCCL
/// takes the rate of gfx94x, though its links are faster; versions that do not know it take that of the oldest.
pub(super) fn xgmi(link: &Element, gcn: &str) -> Result<u64, NcclError> {
    let architecture = gcn.strip_prefix("gfx").unwrap_or(gcn);
    let one = match architecture {
        "910" => 360,
        _ if architecture.starts_with("90a") => 360,
        _ if architecture.starts_with("94") || architecture.starts_with("95") => 480,
        _ => 240,
    };
    scaled(link, count(link)?, one * TENTH_GB)
}

/// A `c2c` element: count × bw, which is in MB/s.
pub(super) fn c2c(link: &Element) -> Result<u64, NcclError> {
    let megabytes = link.number("bw")?.unwrap_or(0);
    let one = scaled(link, megabytes, 1_000_000)?;
    scaled(link, count(link)?, one)
}

/// A `net` element: its speed, which is in Mbit/s; `None` where the port does not know.
pub(super) fn net(port: &Element) -> Result<Option<u64>, NcclError> {
    let megabits = port.number("speed")?.filter(|speed| *speed > 0);
    megabits.map(|megabits| scaled(port, megabits, 125_000)).transpose()
}

/// What NCCL takes for a port that does not know its speed: 10 Gbit/s.
pub(super) const UNKNOWN_PORT: u64 = 1_250_000_000;

/// Rate between two CPUs of one host, by what the first of them is; `None` for a make the tables do not know.
///
/// `rccl` files know fewer generations of Intel's.
pub(super) fn between_cpus(cpu: &Element, rccl: bool) -> Result<Option<u64>, NcclError> {
    let (family, model) = (cpu.number("familyid")?.unwrap_or(0), cpu.number("modelid")?.unwrap_or(0));
    let (arch, vendor) = (cpu.attribute("arch").unwrap_or_default(), cpu.attribute("vendor").unwrap_or_default());
    Ok(between_cpus_of(arch, vendor, (family, model), rccl))
}

/// The same, by the words and numbers that CPUs state of themselves.
pub(crate) fn between_cpus_of(arch: &str, vendor: &str, (family, model): (u64, u64), rccl: bool) -> Option<u64> {
    let gigabytes = match (arch, vendor) {
        ("arm64" | "aarch64", _) => 6,
        ("ppc64" | "ppc64le", _) => 32,
        (_, "AuthenticAMD") => 16,
        (_, "GenuineIntel") => match model {
            0xcf.. if !rccl => 40,
            0x8f.. if !rccl => 22,
            0x55.. => 10,
            _ => 6,
        },
        (_, "CentaurHauls" | "Shanghai") if (family, model) == (7, 0x5b) => 9,
        (_, "CentaurHauls" | "Shanghai") => 6,
        _ => return None,
    };
    Some(gigabytes * 10 * TENTH_GB)
}

/// Rate between CPUs of an unknown make: the lowest of the tables.
pub(super) const UNKNOWN_CPUS: u64 = 60 * TENTH_GB;

fn count(link: &Element) -> Result<u64, NcclError> {
    let count = link.required("count")?;
    Ok(link.number("count")?.ok_or_else(|| link.unusable("count", count, "a whole number from 0"))?)
}

fn scaled(element: &Element, factor: u64, rate: u64) -> Result<u64, NcclError> {
    let overflow = || NcclError::RateOverflow { line: element.line, element: element.name.clone() };
    factor.checked_mul(rate).ok_or_else(overflow)
}
