//! Which calls an execution plan is for, as far as the plan itself says.

use canopy_schedule::CollectiveKind;

use super::contract::read_word;
use super::lower::ExecutionLowerError;
use super::profile::ExecutorProfile;
use super::program::ExecutionPlan;

impl ExecutionPlan {
    /// The collective that its word names. None for collectives with a root: the runtime has no word for them.
    pub fn stated_collective(&self) -> Option<CollectiveKind> {
        read_word(&self.collective)
    }

    /// The same for messages of this collective from this size on alone, in bytes of the whole message, so that another
    /// plan may serve smaller ones. 0: any.
    ///
    /// The runtime compares `min_message_size` with the output of an allgather and with the input of all others. Both are
    /// the whole message, except that of a gather.
    ///
    /// # Errors
    /// The plan is not used for any message so large; it is a gather, whose ranks do not know the size of the whole message.
    pub fn beginning_at(
        self,
        bytes_min: u64,
        profile: ExecutorProfile,
        collective: CollectiveKind,
    ) -> Result<Self, ExecutionLowerError> {
        if bytes_min > 0 && collective == CollectiveKind::Gather {
            return Err(ExecutionLowerError::Measure { profile });
        }
        match profile.bytes_max_inclusive(self.bytes_max) {
            Some(bytes_max) if bytes_min <= bytes_max => Ok(Self { bytes_min, ..self }),
            bytes_max => {
                Err(ExecutionLowerError::BytesMin { profile, bytes_min, bytes_max: bytes_max.unwrap_or_default() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(word: &str, bytes_max: u64) -> ExecutionPlan {
        ExecutionPlan {
            name: "plan".to_owned(),
            collective: word.to_owned(),
            is_ll: false,
            in_place: false,
            reuse_resources: false,
            double_scratch: false,
            alignment_bytes: 16,
            threads_per_block: 1024,
            bytes_min: 0,
            bytes_max,
            ranks: Vec::new(),
        }
    }

    #[test]
    fn a_plan_begins_at_a_size_that_its_version_uses_it_for() {
        let allgather = CollectiveKind::Allgather;
        for (profile, last) in
            [(ExecutorProfile::V08, 4095), (ExecutorProfile::V09, 4096), (ExecutorProfile::V10, 4096)]
        {
            for bytes_min in [0, 1, last] {
                let found = plan("allgather", 4096).beginning_at(bytes_min, profile, allgather).unwrap();
                assert_eq!(found, ExecutionPlan { bytes_min, ..plan("allgather", 4096) });
            }
            let beyond = plan("allgather", 4096).beginning_at(last + 1, profile, allgather);
            assert_eq!(beyond, Err(ExecutionLowerError::BytesMin { profile, bytes_min: last + 1, bytes_max: last }));
        }
    }

    #[test]
    fn a_gather_is_for_all_sizes() {
        let (profile, gather) = (ExecutorProfile::V10, CollectiveKind::Gather);
        assert!(plan("custom", 4096).beginning_at(0, profile, gather).is_ok());
        let refused = plan("custom", 4096).beginning_at(1, profile, gather);
        assert_eq!(refused, Err(ExecutionLowerError::Measure { profile }));
    }

    #[test]
    fn words_name_collectives_without_a_root_alone() {
        assert_eq!(plan("reducescatter", 1).stated_collective(), Some(CollectiveKind::ReduceScatter));
        assert_eq!(plan("custom", 1).stated_collective(), None);
    }
}
