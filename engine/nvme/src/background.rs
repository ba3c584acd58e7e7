//! Features by which a drive does something behind its host's back: it goes to sleep, keeps its tables in the host's memory, holds
//! interrupts back (Base 5.27.1.6, 5.27.1.9, 5.27.1.10).

use crate::bytes::{le32, le64};
use crate::command::NvmCommand;
use crate::features::{set_feature, Feature};
use serde::Serialize;

/// The size of the table of power transitions.
pub const POWER_TRANSITIONS_BYTES: usize = 256;
/// The size of what is told of a host memory buffer.
pub const HOST_MEMORY_BYTES: usize = 4096;
/// What a host memory buffer is counted in where the memory page is of this size, as it is for everybody.
const PAGE_BYTES: u64 = 4096;
/// Enable, of both features.
const ENABLE: u32 = 1;

/// One power state that is left by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PowerTransition {
    /// The state.
    pub from_state: u8,
    /// Where it goes.
    pub to_state: u8,
    /// After so long without a command.
    pub idle_ms: u32,
}

/// Which power states a drive goes to when it is idle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PowerTransitions {
    /// Whether it goes to any.
    pub enabled: bool,
    /// Of which states, in order.
    pub transitions: Vec<PowerTransition>,
}

impl PowerTransitions {
    /// From dword 0 of the completion and the table, one word of 64 bits for each power state.
    pub fn of(dword: u32, table: &[u8; POWER_TRANSITIONS_BYTES]) -> PowerTransitions {
        let words = (0..POWER_TRANSITIONS_BYTES / 8).map(|state| (state as u8, le64(table, state * 8)));
        // A state that is not left has no time.
        let transitions =
            words.filter(|(_, word)| word >> 8 & 0xff_ffff != 0).map(|(from_state, word)| PowerTransition {
                from_state,
                to_state: (word >> 3 & 0x1f) as u8,
                idle_ms: (word >> 8 & 0xff_ffff) as u32,
            });
        PowerTransitions { enabled: dword & ENABLE != 0, transitions: transitions.collect() }
    }
}

/// The memory of the host that a drive has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostMemoryBuffer {
    /// Whether it uses any.
    pub enabled: bool,
    /// How much it was given.
    pub bytes: u64,
}

impl HostMemoryBuffer {
    /// From dword 0 of the completion and the attributes.
    pub fn of(dword: u32, attributes: &[u8; HOST_MEMORY_BYTES]) -> HostMemoryBuffer {
        HostMemoryBuffer { enabled: dword & ENABLE != 0, bytes: u64::from(le32(attributes, 0)) * PAGE_BYTES }
    }
}

/// How long a drive may wait to send one interrupt for several completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct InterruptCoalescing {
    /// For so many completions at most; 1 holds nothing back.
    pub completions: u32,
    /// For so long at most; 0 holds nothing back.
    pub time_us: u32,
}

impl InterruptCoalescing {
    /// From dword 0 of the completion.
    pub fn of(dword: u32) -> InterruptCoalescing {
        InterruptCoalescing { completions: (dword & 0xff) + 1, time_us: (dword >> 8 & 0xff) * 100 }
    }
}

/// Gives the drive memory: so many bytes, in so many pieces, which a list at this address names.
///
/// # Panics
/// When the memory is no whole number of pages, or the list does not begin at a multiple of 16.
pub fn set_host_memory_buffer(bytes: u64, list_address: u64, pieces: u32) -> NvmCommand {
    assert!(
        bytes.is_multiple_of(PAGE_BYTES) && list_address.is_multiple_of(16),
        "{bytes} bytes, {list_address:#x}"
    );
    let mut command = set_feature(Feature::HostMemoryBuffer, ENABLE);
    command.cdw[2] = (bytes / PAGE_BYTES) as u32;
    (command.cdw[3], command.cdw[4]) = (list_address as u32, (list_address >> 32) as u32);
    command.cdw[5] = pieces;
    command
}

/// Takes the memory back.
pub fn disable_host_memory_buffer() -> NvmCommand {
    set_feature(Feature::HostMemoryBuffer, 0)
}

/// One piece of a host memory buffer, as its list has it.
pub fn host_memory_descriptor(address: u64, bytes: u64) -> [u8; 16] {
    let mut entry = [0; 16];
    entry[..8].copy_from_slice(&address.to_le_bytes());
    entry[8..12].copy_from_slice(&((bytes / PAGE_BYTES) as u32).to_le_bytes());
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_power_transitions_is_read_state_by_state() {
        let mut table = [0; POWER_TRANSITIONS_BYTES];
        // State 0 goes to 3 after 100 ms, state 3 to 4 after 2 s; state 1 has a target and no time.
        table[..8].copy_from_slice(&(3_u64 << 3 | 100 << 8).to_le_bytes());
        table[8..16].copy_from_slice(&(3_u64 << 3).to_le_bytes());
        table[24..32].copy_from_slice(&(4_u64 << 3 | 2_000 << 8).to_le_bytes());
        let transitions = vec![
            PowerTransition { from_state: 0, to_state: 3, idle_ms: 100 },
            PowerTransition { from_state: 3, to_state: 4, idle_ms: 2_000 },
        ];
        assert_eq!(PowerTransitions::of(1, &table), PowerTransitions { enabled: true, transitions });
        assert!(!PowerTransitions::of(0, &table).enabled);
    }

    #[test]
    fn a_host_memory_buffer_is_given_in_pages_and_read_back_in_bytes() {
        let command = set_host_memory_buffer(64 << 20, 0x1_2345_6780, 3);
        assert_eq!((command.opcode, command.cdw), (9, [0x0d, 1, 16_384, 0x2345_6780, 1, 3]));
        assert_eq!(disable_host_memory_buffer().cdw, [0x0d, 0, 0, 0, 0, 0]);
        let mut attributes = [0; HOST_MEMORY_BYTES];
        attributes[..4].copy_from_slice(&16_384_u32.to_le_bytes());
        let read = HostMemoryBuffer { enabled: true, bytes: 64 << 20 };
        assert_eq!(HostMemoryBuffer::of(3, &attributes), read);
        assert_eq!(host_memory_descriptor(0x1000, 8192)[..12], [0, 16, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
    }

    #[test]
    fn interrupts_are_held_back_in_units_of_a_tenth_of_a_millisecond() {
        let read = InterruptCoalescing { completions: 8, time_us: 300 };
        assert_eq!(InterruptCoalescing::of(0x0307), read);
    }

    #[test]
    fn features_with_data_are_asked_for_with_room_for_them() {
        use crate::features::{get_feature, FeatureSelect};
        let bytes = |feature| get_feature(feature, FeatureSelect::Current).data_bytes;
        assert_eq!(bytes(Feature::AutonomousPowerTransitions), 256);
        assert_eq!((bytes(Feature::HostMemoryBuffer), bytes(Feature::InterruptCoalescing)), (4096, 0));
    }
}
