//! Which communicators a runtime cannot tell apart: it compares numbers of ranks, and seldom their devices.

use crate::runtime::{Rules, Runtime};

/// A communicator of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Communicator<'a> {
    /// Number of its ranks.
    pub ranks: u32,
    /// Ranks on each machine, where that is known.
    pub ranks_per_node: Option<u32>,
    /// Numbers that stand for the devices of its ranks, where files state them.
    pub devices: Option<&'a [u32]>,
    /// Stands for its network and for which rank is where in it: equal exactly where a plan for one is as good for the
    /// other, rank by rank.
    pub wiring: &'a [u8],
}

/// What a communicator's calls get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Files of its own.
    Own {
        /// Communicators on other wiring get them, too.
        is_contested: bool,
    },
    /// Files of an earlier communicator, by its position, made for equal wiring.
    Shared {
        /// The earlier one.
        with: usize,
    },
    /// Files of an earlier communicator, by its position, although made for other wiring.
    Ambiguous {
        /// The earlier one.
        with: usize,
    },
}

/// What each communicator's calls get, if each collective has files for the first communicator of those that the runtime
/// cannot tell apart. O(communicators²).
pub fn standings(runtime: Runtime, communicators: &[Communicator<'_>]) -> Vec<Standing> {
    let told = |rules: Rules| (rules.tells_ranks, rules.tells_ranks_per_node, rules.tells_devices);
    let (by_ranks, by_shape, by_devices) = runtime.rules().map_or((true, true, false), told);
    // A file that does not say how many ranks a machine has is for any number.
    let like_shape = |a: &Communicator<'_>, b: &Communicator<'_>| match (a.ranks_per_node, b.ranks_per_node) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    let like_devices = |a: &Communicator<'_>, b: &Communicator<'_>| match (a.devices, b.devices) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    let alike = |a: &Communicator<'_>, b: &Communicator<'_>| {
        (!by_ranks || a.ranks == b.ranks) && (!by_shape || like_shape(a, b)) && (!by_devices || like_devices(a, b))
    };
    let mut standings: Vec<Standing> = Vec::with_capacity(communicators.len());
    for (position, communicator) in communicators.iter().enumerate() {
        let earlier = communicators.iter().take(position).zip(&standings).enumerate();
        let owner = earlier
            .filter(|(_, (_, standing))| matches!(standing, Standing::Own { .. }))
            .find(|(_, (other, _))| alike(other, communicator))
            .map(|(with, (other, _))| (with, *other));
        let standing = match owner {
            None => Standing::Own { is_contested: false },
            Some((with, other)) if other.ranks == communicator.ranks && other.wiring == communicator.wiring => {
                Standing::Shared { with }
            }
            Some((with, _)) => Standing::Ambiguous { with },
        };
        if let Standing::Ambiguous { with } = standing
            && let Some(owner) = standings.get_mut(with)
        {
            *owner = Standing::Own { is_contested: true };
        }
        standings.push(standing);
    }
    standings
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn on(ranks: u32, wiring: &[u8]) -> Communicator<'_> {
        Communicator { ranks, ranks_per_node: None, devices: None, wiring }
    }

    const OWN: Standing = Standing::Own { is_contested: false };
    const CONTESTED: Standing = Standing::Own { is_contested: true };

    #[test]
    fn equal_numbers_on_equal_wiring_share_files() {
        let found = standings(Runtime::Msccl, &[on(8, b"x"), on(8, b"x"), on(4, b"y"), on(8, b"x")]);
        assert_eq!(found, [OWN, Standing::Shared { with: 0 }, OWN, Standing::Shared { with: 0 }]);
    }

    #[test]
    fn equal_numbers_on_other_wiring_are_ambiguous() {
        for runtime in [Runtime::Msccl, Runtime::MscclExecutor, Runtime::RcclMsccl, Runtime::OneCcl] {
            let found = standings(runtime, &[on(8, b"x"), on(8, b"y"), on(4, b"z")]);
            assert_eq!(found, [CONTESTED, Standing::Ambiguous { with: 0 }, OWN], "{runtime}");
        }
        let found = standings(Runtime::Msccl, &[on(8, b"x"), on(8, b"y"), on(8, b"y"), on(8, b"x")]);
        let other = Standing::Ambiguous { with: 0 };
        assert_eq!(found, [CONTESTED, other, other, Standing::Shared { with: 0 }]);
    }

    #[test]
    fn who_does_not_count_ranks_takes_one_number_of_them() {
        let found = standings(Runtime::Mscclpp08, &[on(8, b"x"), on(4, b"y"), on(8, b"x")]);
        assert_eq!(found, [CONTESTED, Standing::Ambiguous { with: 0 }, Standing::Shared { with: 0 }]);
    }

    #[test]
    fn who_compares_devices_tells_communicators_apart_by_them() {
        let at = |devices| Communicator { devices, ..on(8, b"x") };
        let (here, there) = (at(Some(&[0, 1])), at(Some(&[2, 3])));
        assert_eq!(standings(Runtime::OneCcl, &[here, there, here]), [OWN, OWN, Standing::Shared { with: 0 }]);
        // Where nothing is stated, files are for any devices.
        assert_eq!(standings(Runtime::OneCcl, &[at(None), there])[1], Standing::Shared { with: 0 });
        assert_eq!(standings(Runtime::Msccl, &[here, there])[1], Standing::Shared { with: 0 });
    }

    #[test]
    fn who_counts_ranks_of_a_machine_tells_more_apart() {
        let four = Communicator { ranks_per_node: Some(4), ..on(8, b"x") };
        let eight = Communicator { ranks_per_node: Some(8), ..on(8, b"y") };
        assert_eq!(standings(Runtime::Mscclpp09, &[four, eight]), [OWN, OWN]);
        let any = on(8, b"y");
        let found = standings(Runtime::Mscclpp09, &[any, four, eight]);
        assert_eq!(found, [CONTESTED, Standing::Ambiguous { with: 0 }, Standing::Shared { with: 0 }]);
        assert_eq!(standings(Runtime::Msccl, &[four, eight]), [CONTESTED, Standing::Ambiguous { with: 0 }]);
    }
}
