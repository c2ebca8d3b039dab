//! How much room there is on the disk of a store, and how much of it is left to what must be written.

use std::path::Path;

/// Most bytes that are kept free for leases, faults, events and the engine.
const RESERVE_MAX: u64 = 256 << 20;
/// The reserve of a small disk is the disk divided by this.
const RESERVE_SHARE: u64 = 20;

/// The room of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    /// Bytes that this process may still write.
    pub free: u64,
    /// Bytes in all.
    pub total: u64,
}

impl DiskRoom {
    /// The room of the disk that this folder is on; none where the system does not say.
    pub fn of(folder: &Path) -> Option<Self> {
        let figures = rustix::fs::statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(figures.f_frsize);
        Some(Self { free: bytes(figures.f_bavail), total: bytes(figures.f_blocks) })
    }

    /// Bytes that plans may still take.
    pub fn for_plans(self) -> u64 {
        self.free.saturating_sub((self.total / RESERVE_SHARE).min(RESERVE_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_leave_a_twentieth_of_a_small_disk_and_256_mib_of_a_large_one() {
        let for_plans = |free, total| DiskRoom { free, total }.for_plans();
        assert_eq!(for_plans(10 << 20, 20 << 20), 9 << 20);
        assert_eq!(for_plans(1 << 20, 40 << 20), 0);
        assert_eq!(for_plans(1 << 40, 2 << 40), (1 << 40) - (256 << 20));
        let folder = tempfile::tempdir().unwrap();
        let room = DiskRoom::of(folder.path()).unwrap();
        assert!(room.total > 0 && room.free <= room.total, "{room:?}");
        assert_eq!(DiskRoom::of(&folder.path().join("missing")), None);
    }
}
