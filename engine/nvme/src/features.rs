//! Get and Set Features (Base 5.15, 5.27), of those features that change what a test measures or that a queue needs.

use crate::background::{HOST_MEMORY_BYTES, POWER_TRANSITIONS_BYTES};
use crate::command::{AdminOpcode, NvmCommand};

/// A feature (Base 5.27.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Feature {
    /// The power state that the controller is in.
    PowerManagement = 0x02,
    /// Whether the volatile write cache is enabled.
    VolatileWriteCache = 0x06,
    /// How many I/O submission and completion queues the controller allocates.
    NumberOfQueues = 0x07,
    /// How long the controller may hold interrupts back to send one for several completions.
    InterruptCoalescing = 0x08,
    /// Which power states the controller goes to by itself when it is idle.
    AutonomousPowerTransitions = 0x0c,
    /// Memory of the host that the controller keeps its tables in.
    HostMemoryBuffer = 0x0d,
}

impl Feature {
    /// How many bytes come with its value.
    fn data_bytes(self) -> u32 {
        match self {
            Feature::AutonomousPowerTransitions => POWER_TRANSITIONS_BYTES as u32,
            Feature::HostMemoryBuffer => HOST_MEMORY_BYTES as u32,
            _ => 0,
        }
    }
}

/// Which of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FeatureSelect {
    /// In use.
    Current = 0,
    /// As the drive came.
    Default = 1,
    /// What the next power cycle brings back.
    Saved = 2,
}

/// Get Features; the value is dword 0 of the completion, and of some features data as well.
pub fn get_feature(feature: Feature, select: FeatureSelect) -> NvmCommand {
    let command = NvmCommand::admin(AdminOpcode::GetFeatures, 0, feature as u32 | (select as u32) << 8, 0);
    NvmCommand { data_bytes: feature.data_bytes(), ..command }
}

/// Nothing is saved: the next power cycle brings the drive's own setting back.
pub(crate) fn set_feature(feature: Feature, value: u32) -> NvmCommand {
    NvmCommand::admin(AdminOpcode::SetFeatures, 0, feature as u32, value)
}

/// Switches the volatile write cache (Base 5.27.1.4).
pub fn set_volatile_write_cache(enabled: bool) -> NvmCommand {
    set_feature(Feature::VolatileWriteCache, enabled.into())
}

/// Whether the volatile write cache is on, in a completion's dword 0.
pub fn volatile_write_cache_of(dword: u32) -> bool {
    dword & 1 == 1
}

/// Chooses a power state (Base 5.27.1.2), without a hint on the workload.
///
/// # Panics
/// When it is not below 32, the most that there can be.
pub fn set_power_state(state: u8) -> NvmCommand {
    assert!(state < 32, "power state {state}");
    set_feature(Feature::PowerManagement, state.into())
}

/// The power state in a completion's dword 0.
pub fn power_state_of(dword: u32) -> u8 {
    (dword & 0x1f) as u8
}

/// Asks for so many pairs of I/O queues (Base 5.27.1.5).
///
/// # Panics
/// When there are none, or more than a number of queues can say.
pub fn set_number_of_queues(pairs: u32) -> NvmCommand {
    assert!((1..=0xffff).contains(&pairs), "{pairs} pairs of queues");
    set_feature(Feature::NumberOfQueues, (pairs - 1) | (pairs - 1) << 16)
}

/// How many submission and completion queues there are, in the completion's dword 0.
pub fn queue_counts_of(dword: u32) -> (u32, u32) {
    ((dword & 0xffff) + 1, (dword >> 16) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_asked_for_by_number_and_kind() {
        let command = get_feature(Feature::PowerManagement, FeatureSelect::Saved);
        assert_eq!((command.opcode, command.nsid, command.cdw[0]), (0x0a, 0, 0x202));
        let command = get_feature(Feature::VolatileWriteCache, FeatureSelect::Current);
        assert_eq!(command.cdw[0], 0x006);
    }

    #[test]
    fn features_are_set_without_being_saved() {
        let command = set_volatile_write_cache(true);
        assert_eq!((command.opcode, command.cdw[..2].to_vec()), (9, vec![6, 1]));
        assert_eq!(set_volatile_write_cache(false).cdw[..2], [6, 0]);
        assert_eq!(set_power_state(3).cdw[..2], [2, 3]);
        assert_eq!(set_number_of_queues(4).cdw[..2], [7, 0x0003_0003]);
    }

    #[test]
    fn answers_are_taken_apart() {
        assert!(volatile_write_cache_of(1) && !volatile_write_cache_of(0));
        // The upper bits have the hint on the workload.
        assert_eq!(power_state_of(0x23), 3);
        assert_eq!(queue_counts_of(0x0007_0003), (4, 8));
    }
}
