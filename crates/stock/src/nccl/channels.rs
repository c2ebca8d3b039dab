//! The search for channels, in closed form: as many rings of a class as NICs and NVLinks carry.

use crate::nccl::machine::{Generation, Machine};
use crate::nccl::tables::{INSIDE, INSIDE_COARSE, OUTSIDE, OUTSIDE_COARSE};
use crate::nccl::version::Release;

/// Most channels that are looked for.
const CHANNELS_MAX: u32 = 32;

/// Most GPUs over which NVLS divides a message, however many a domain of NVLink has.
const HEADS_MAX: u32 = 32;

/// Channels of rings or trees. Each carries so much, in MB/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// How many.
    pub count: u32,
    /// Class inside a machine.
    pub inside: u64,
    /// Class between machines; that inside, if there is one machine.
    pub outside: u64,
}

/// GPUs over which NVLS or CollNet divides a message, and the classes of each in MB/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// How many.
    pub count: u32,
    /// Class inside a machine.
    pub inside: u64,
    /// Class between machines.
    pub outside: u64,
}

/// Classes that are tried, from fast to slow, in MB/s.
fn classes(machine: &Machine, is_across: bool, release: &Release) -> &'static [u64] {
    let row = match machine.generation {
        Generation::Volta | Generation::Ampere => 0,
        Generation::Hopper => 1,
        Generation::Blackwell => 2,
    };
    match (is_across, release.has_fine_classes) {
        (true, true) => OUTSIDE[row],
        (true, false) => OUTSIDE_COARSE[row],
        (false, true) => INSIDE[row],
        (false, false) => INSIDE_COARSE[row],
    }
}

/// How many rings of a class fit into a machine: each enters over a NIC, passes all GPUs in a line, and leaves over a NIC.
/// So the GPU where it leaves needs no NVLink for it.
fn rings_of(machine: &Machine, class: u64, is_across: bool) -> u32 {
    let Some(by_links) = machine.inside.checked_div(class) else { return 0 };
    if !is_across {
        return u32::try_from(by_links).unwrap_or(CHANNELS_MAX).min(CHANNELS_MAX);
    }
    let by_nics = u64::from(machine.nics) * (machine.outside() / class);
    let gpus = u64::from(machine.gpus.max(1));
    let fits = |rings: u64| machine.gpus <= 1 || (rings - rings / gpus) * class <= machine.inside;
    let rings = (1..=by_nics.min(CHANNELS_MAX.into())).take_while(|&rings| fits(rings)).last().unwrap_or(0);
    // Other NICs out than in come in pairs.
    let is_odd_one_out = !machine.nics_are_shared && machine.nics > 1 && rings % 2 == 1;
    u32::try_from(rings - u64::from(is_odd_one_out)).unwrap_or(CHANNELS_MAX)
}

/// The rings of a machine; `None` if its links are slower than all classes.
pub(crate) fn rings(machine: &Machine, is_across: bool, release: &Release) -> Option<Channels> {
    let top = if is_across { machine.outside() } else { machine.inside };
    let mut best: Option<(u32, u64)> = None;
    for &class in classes(machine, is_across, release).iter().filter(|&&class| class <= top) {
        // A class below .49 of the one found is not tried.
        if best.is_some_and(|(_, found)| class * 100 <= found * 49) {
            break;
        }
        let count = rings_of(machine, class, is_across);
        let total = |(count, class): (u32, u64)| u64::from(count) * class;
        if count > 0 && best.is_none_or(|best| total((count, class)) > total(best)) {
            best = Some((count, class));
        }
        if machine.gpus > 1 && best.is_some_and(|best| total(best) >= machine.inside) {
            break;
        }
    }
    let (mut count, mut class) = best?;
    // Fast channels are halved, few ones of new GPUs excepted.
    let stays = machine.generation > Generation::Ampere && class < 50_000 && count > 4;
    if class >= 25_000 && !stays && count * 2 <= CHANNELS_MAX {
        (count, class) = (count * 2, class / 2);
    }
    Some(Channels { count, inside: class, outside: class })
}

/// The trees: as many as rings, inside a machine up to twice as fast if links allow.
pub(crate) fn trees(machine: &Machine, is_across: bool, release: &Release) -> Option<Channels> {
    let rings = rings(machine, is_across, release)?;
    if !is_across || machine.gpus <= 1 {
        return Some(rings);
    }
    let (count, gpus) = (u64::from(rings.count), u64::from(machine.gpus));
    let mut inside = rings.inside;
    for &class in classes(machine, true, release).iter().rev() {
        let fits =
            count * class * (gpus - 1) <= machine.inside * gpus && (count - count / gpus) * class <= machine.inside;
        if class > inside && inside < 2 * rings.outside && fits {
            inside = class;
        }
    }
    Some(Channels { inside, ..rings })
}

/// The heads of NVLS; `None` where GPUs or switches have none, or links are slower than all classes. Each head pulls from
/// every GPU, and once from itself.
pub(crate) fn nvls(machine: &Machine, is_across: bool, release: &Release) -> Option<Heads> {
    if machine.generation < Generation::Hopper || !machine.has_nvls {
        return None;
    }
    let (top, wanted) = match is_across {
        true => (machine.outside(), machine.gpus.min(machine.nics)),
        false => (machine.inside, machine.gpus),
    };
    let wanted = wanted.min(HEADS_MAX);
    let mut best: Option<(u32, u64)> = None;
    for &class in classes(machine, is_across, release).iter().filter(|&&class| class <= top) {
        let by_links = u32::try_from(machine.inside / class).unwrap_or(wanted + 1).saturating_sub(1);
        let heads = wanted.min(by_links);
        let is_enough = heads > 0 && (is_across || heads == wanted);
        if is_enough && best.is_none_or(|(found, _)| heads > found) {
            best = Some((heads, class));
        }
        if best.is_some_and(|(found, _)| found == wanted) {
            break;
        }
    }
    let (count, inside) = best.filter(|&(count, _)| count > 1)?;
    let mut outside = inside;
    if is_across {
        // A second pass raises the class of the NIC, up to twice that inside.
        for &class in classes(machine, true, release).iter().rev() {
            if class > outside && class <= top && outside < 2 * inside {
                outside = class;
            }
        }
    }
    Some(Heads { count, inside, outside })
}

/// The heads of CollNet: a GPU for each NIC, at the fastest class that both ends of the NIC carry. Each sends its class to the other GPUs
/// of its machine in equal parts, and gets as much from them. Inside, the class is up to twice that outside.
pub(crate) fn collnet(machine: &Machine, release: &Release) -> Option<Heads> {
    let classes = classes(machine, true, release);
    let fits = |class: u64| machine.gpus <= 1 || 2 * class <= machine.inside;
    let outside = *classes.iter().find(|&&class| class <= machine.outside() && fits(class))?;
    let is_inside = |class: &&u64| **class > outside && **class <= 2 * outside && fits(**class);
    let inside = classes.iter().find(is_inside).copied().unwrap_or(outside);
    Some(Heads { count: machine.gpus.min(machine.nics).min(CHANNELS_MAX), inside, outside })
}
