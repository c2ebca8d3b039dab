//! How much memory this process may have: what the machine has, or what its control group allows.

use std::fs;
use std::path::Path;

/// Where control groups are mounted.
const GROUPS: &str = "/sys/fs/cgroup";
/// Most memory that planning takes by itself where no limit is set: the machine has other programs.
const UNLIMITED_BYTES_MAX: u64 = 8 << 30;

/// What is known of it, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Of the machine.
    pub machine: Option<u64>,
    /// What the control groups of this process allow; `None`: all of the machine.
    pub limit: Option<u64>,
}

impl Memory {
    /// That of this process.
    pub fn of_process() -> Self {
        let (groups, figures) = (fs::read_to_string("/proc/self/cgroup"), fs::read_to_string("/proc/meminfo"));
        let machine = figures.ok().and_then(|text| total(&text));
        let limit = groups.ok().and_then(|text| limit_below(Path::new(GROUPS), &text));
        // Version 1 says "no limit" with a large number.
        Self { machine, limit: limit.filter(|limit| machine.is_none_or(|machine| *limit < machine)) }
    }

    /// What the process may have.
    pub const fn in_all(self) -> Option<u64> {
        if self.limit.is_some() { self.limit } else { self.machine }
    }

    /// What planning may have by default: three quarters of a limit, or half of the machine up to 8 GiB.
    pub fn for_plans(self) -> u64 {
        match self {
            Self { limit: Some(limit), .. } => limit - limit / 4,
            Self { machine: Some(machine), .. } => (machine / 2).min(UNLIMITED_BYTES_MAX),
            Self { .. } => UNLIMITED_BYTES_MAX,
        }
    }

    /// What requests that wait may have by default, at most `wanted`: an eighth of a limit.
    pub fn for_requests(self, wanted: usize) -> usize {
        self.limit.map_or(wanted, |limit| wanted.min(usize::try_from(limit / 8).unwrap_or(usize::MAX)))
    }
}

/// The memory that `/proc/meminfo` states.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The least limit of the groups that `/proc/self/cgroup` names, and of those around them.
fn limit_below(root: &Path, groups: &str) -> Option<u64> {
    let mut least = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let (folder, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        // In a container, the path may be that of the host, and only the root of it be there.
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let text = fs::read_to_string(folder.join(group).join(file)).unwrap_or_default();
            let limit = text.trim().parse::<u64>().ok();
            least = least.min(limit).or(least).or(limit);
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_least_limit_of_all_groups_around_a_process_counts() {
        let root = tempfile::tempdir().unwrap();
        let set = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let limit = |groups: &str| limit_below(root.path(), groups);
        assert_eq!(limit("0::/system.slice/canopyd.service\n"), None);
        set("system.slice/canopyd.service/memory.max", "max\n");
        assert_eq!(limit("0::/system.slice/canopyd.service\n"), None);
        set("system.slice/memory.max", "4294967296\n");
        assert_eq!(limit("0::/system.slice/canopyd.service\n"), Some(4 * GIB));
        set("system.slice/canopyd.service/memory.max", "1073741824\n");
        assert_eq!(limit("0::/system.slice/canopyd.service\n"), Some(GIB));
        // Version 1, where only the root of a container is mounted, and words that are not groups.
        set("memory/memory.limit_in_bytes", "2147483648\n");
        assert_eq!(limit("9:cpu,memory:/docker/0123\n3:cpuset:/docker/0123\nnonsense\n"), Some(2 * GIB));
    }

    #[test]
    fn planning_has_three_quarters_of_a_limit_and_never_all_of_a_machine() {
        let memory = |machine, limit| Memory { machine, limit };
        assert_eq!(memory(Some(64 * GIB), Some(4 * GIB)).for_plans(), 3 * GIB);
        assert_eq!(memory(Some(64 * GIB), None).for_plans(), 8 * GIB);
        assert_eq!(memory(Some(4 * GIB), None).for_plans(), 2 * GIB);
        assert_eq!(Memory::default().for_plans(), 8 * GIB);
        assert_eq!(memory(Some(64 * GIB), Some(GIB)).for_requests(512 << 20), 128 << 20);
        assert_eq!(memory(Some(64 * GIB), None).for_requests(512 << 20), 512 << 20);
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       24692520 kB\n"), Some(24_692_520 << 10));
        assert_eq!(total("MemTotal: x kB\n"), None);
        assert!(Memory::of_process().machine.is_some());
    }
}
