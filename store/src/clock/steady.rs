//! A monotonic clock, and its distance from the system clock.
//!
//! Leases, faults and answers that are kept end after a time, and that time must not pass at once, nor stand still, because
//! somebody sets the clock of the system. So they go by a clock of their own: it begins with the time of day of the first
//! start on a data directory, and from there counts only the time that passes. What it says is written down from time
//! to time, so that the next process goes on with it. The time of day is for people: what they say is translated when
//! it comes in, what they are told when it goes out.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::{fs, io};

use rustix::time::{ClockId, clock_gettime};

/// What the time of day may differ from what it was, in milliseconds, before it counts as set.
const TOLERANCE_MS: u64 = 1000;

/// The clock of a process.
#[derive(Debug)]
pub struct Steady {
    /// What is added to the time since the start, in milliseconds.
    base_ms: AtomicU64,
    /// The time of day less the time of this clock, in milliseconds, as it was last seen.
    shift_ms: AtomicI64,
    /// How often that has changed.
    jumps: AtomicU64,
}

/// What is written down of the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub steady_ms: u64,
    /// The time of day, as it was shown.
    pub wall_ms: u64,
    /// Which start of the machine it was, and the time since; none where the system does not say.
    pub boot: Option<(String, u64)>,
}

impl Steady {
    /// A clock that shows the time of day at its start.
    pub const fn beginning_at(wall_ms: u64) -> Self {
        Self { base_ms: AtomicU64::new(wall_ms), shift_ms: AtomicI64::new(0), jumps: AtomicU64::new(0) }
    }

    /// The time, so long after the start.
    pub fn now_ms(&self, elapsed_ms: u64) -> u64 {
        self.base_ms.load(Ordering::Relaxed).saturating_add(elapsed_ms)
    }

    /// Goes on at a time that others say it is, so long after the start.
    pub fn go_on_at(&self, now_ms: u64, elapsed_ms: u64) {
        self.base_ms.store(now_ms.saturating_sub(elapsed_ms), Ordering::Relaxed);
    }

    /// Goes on where an earlier process was, given what it left and what the system says.
    pub fn resume(&self, mark: &Mark, (wall_ms, elapsed_ms): (u64, u64), boot: Option<&(String, u64)>) {
        let passed = match (&mark.boot, boot) {
            (Some((before, then)), Some((now, uptime))) if before == now => uptime.saturating_sub(*then),
            // The machine has been started since: only the time of day tells for how long it was off.
            _ => wall_ms.saturating_sub(mark.wall_ms),
        };
        let now = mark.steady_ms.saturating_add(passed);
        self.base_ms.store(now.saturating_sub(elapsed_ms), Ordering::Relaxed);
        let (before, shift) = (difference(mark.wall_ms, mark.steady_ms), difference(wall_ms, now));
        // What people were told stays what they are told, but where the time of day was set.
        let shift = if shift.abs_diff(before) <= TOLERANCE_MS { before } else { shift };
        self.shift_ms.store(shift, Ordering::Relaxed);
    }

    /// Compares with the time of day, and returns by how much that was set since it was last seen, if it was.
    pub fn observe(&self, wall_ms: u64, elapsed_ms: u64) -> Option<i64> {
        let shift = difference(wall_ms, self.now_ms(elapsed_ms));
        let before = self.shift_ms.load(Ordering::Relaxed);
        if shift.abs_diff(before) <= TOLERANCE_MS {
            return None;
        }
        // Of several that see it at the same time one has it.
        let is_first = self.shift_ms.compare_exchange(before, shift, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        is_first.then(|| {
            self.jumps.fetch_add(1, Ordering::Relaxed);
            shift.saturating_sub(before)
        })
    }

    /// A time of this clock as the time of day, as far as that is known.
    pub fn shown_ms(&self, steady_ms: u64) -> u64 {
        steady_ms.saturating_add_signed(self.shift_ms.load(Ordering::Relaxed))
    }

    /// A time of day as the time of this clock.
    pub fn meant_ms(&self, wall_ms: u64) -> u64 {
        wall_ms.saturating_add_signed(self.shift_ms.load(Ordering::Relaxed).saturating_neg())
    }

    /// How often the time of day was set.
    pub fn jump_count(&self) -> u64 {
        self.jumps.load(Ordering::Relaxed)
    }
}

fn difference(left: u64, right: u64) -> i64 {
    let size = i64::try_from(left.abs_diff(right)).unwrap_or(i64::MAX);
    if left < right { -size } else { size }
}

impl Mark {
    /// Where it is written down in a data directory.
    fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("clock")
    }

    /// What was written down. None where nothing was, or nothing that can be read: the time of day has to do then.
    pub fn read(data_dir: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(Self::path(data_dir)).ok()?)
    }

    /// Writes it down; a crash leaves this or what was there before.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        let path = Self::path(data_dir);
        let new = path.with_extension("new");
        fs::write(&new, self.text())?;
        fs::rename(new, path)
    }

    fn text(&self) -> String {
        let (id, uptime) = self.boot.clone().unwrap_or_else(|| ("-".to_owned(), 0));
        format!("canopy-clock 1 {} {} {id} {uptime}\n", self.steady_ms, self.wall_ms)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.trim_end().split(' ');
        if (words.next()?, words.next()?) != ("canopy-clock", "1") {
            return None;
        }
        let (steady_ms, wall_ms) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (id, uptime): (&str, u64) = (words.next()?, words.next()?.parse().ok()?);
        let boot = (id != "-").then(|| (id.to_owned(), uptime));
        words.next().is_none().then_some(Self { steady_ms, wall_ms, boot })
    }
}

/// Which start of the machine this is, and the milliseconds since (Linux).
pub(super) fn boot() -> Option<(String, u64)> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
    let since = clock_gettime(ClockId::Monotonic);
    let millis = |nanos: i64| u64::try_from(nanos / 1_000_000).unwrap_or(0);
    let since_ms = u64::try_from(since.tv_sec).unwrap_or(0).saturating_mul(1000).saturating_add(millis(since.tv_nsec));
    let is_word = !id.is_empty() && id != "-" && !id.contains(char::is_whitespace);
    is_word.then_some((id, since_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 24 * 3_600_000;
    const START: u64 = 100 * DAY_MS;

    #[test]
    fn the_time_that_passes_is_the_same_whatever_the_clock_on_the_wall_is_set_to() {
        let clock = Steady::beginning_at(START);
        assert_eq!((clock.now_ms(0), clock.observe(START, 0)), (START, None));
        assert_eq!(clock.observe(START + 5_900, 5_000), None, "it may run a little faster or slower");
        assert_eq!(clock.observe(START + 8 * DAY_MS + 6_000, 6_000), Some(8 * 24 * 3_600_000));
        assert_eq!(clock.now_ms(6_000), START + 6_000);
        assert_eq!(clock.shown_ms(START + 6_000), START + 8 * DAY_MS + 6_000);
        assert_eq!(clock.observe(START + 10_000, 10_000), Some(-8 * 24 * 3_600_000));
        assert_eq!((clock.jump_count(), clock.shown_ms(START)), (2, START));
        let back = clock.observe(START - 3_600_000 + 11_000, 11_000);
        assert_eq!(back, Some(-3_600_000));
        let meant = clock.meant_ms(START - 3_600_000 + 11_000);
        assert_eq!(meant, clock.now_ms(11_000), "what is seen now is meant for now");
    }

    #[test]
    fn the_next_process_goes_on_with_the_time_of_the_one_before() {
        let boot = |id: &str, uptime| Some((id.to_owned(), uptime));
        let mark = Mark { steady_ms: START, wall_ms: START + 8 * DAY_MS, boot: boot("a", 1_000) };
        for (wall_ms, boot, expected) in [
            // The clock was right again, or wrong otherwise: the machine knows how long it was.
            (START + 5_000, boot("a", 6_000), START + 5_000),
            (0, boot("a", 6_000), START + 5_000),
            // Another start of the machine.
            (START + 9 * DAY_MS, boot("b", 50), START + DAY_MS),
            (START, boot("b", 50), START),
            (START + 8 * DAY_MS + 70, None, START + 70),
        ] {
            let clock = Steady::beginning_at(wall_ms.saturating_sub(40));
            clock.resume(&mark, (wall_ms, 40), boot.as_ref());
            assert_eq!(clock.now_ms(40), expected, "{wall_ms} {boot:?}");
            assert_eq!(clock.observe(wall_ms, 40), None, "that is no jump");
            assert_eq!(clock.shown_ms(expected), wall_ms);
        }
        // A little off is not set: what was shown before is shown still.
        let clock = Steady::beginning_at(START);
        clock.resume(&mark, (START + 8 * DAY_MS + 5_300, 40), boot("a", 6_000).as_ref());
        assert_eq!(clock.shown_ms(START), START + 8 * DAY_MS);
    }

    #[test]
    fn a_mark_is_read_back_and_anything_else_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Mark::read(folder.path()), None);
        for boot in [None, boot(), Some(("a-b".to_owned(), 7))] {
            let mark = Mark { steady_ms: START, wall_ms: 5, boot };
            mark.write(folder.path()).unwrap();
            assert_eq!(Mark::read(folder.path()), Some(mark));
        }
        for text in
            ["", "canopy-clock 1", "canopy-clock 2 1 2 - 0", "canopy-clock 1 x 2 - 0", "canopy-clock 1 1 2 - 0 0"]
        {
            assert_eq!(Mark::parse(text), None, "{text}");
        }
    }
}
