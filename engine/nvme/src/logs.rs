//! Log pages: SMART and health, errors, sanitize (Base 5.16.1).

use crate::bytes::{le128_saturating, le16, le32, le64};
use crate::status::Status;
use serde::Serialize;

/// The size of the SMART log.
pub const SMART_LOG_BYTES: usize = 512;
/// The size of one entry of the error log.
pub const ERROR_LOG_ENTRY_BYTES: usize = 64;
/// What is read of the sanitize log.
pub const SANITIZE_LOG_BYTES: usize = 32;

/// The SMART and health log (Base 5.16.1.3). Counters of 128 bits are held to 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SmartLog {
    /// Bits of what is wrong; 0 for nothing.
    pub critical_warning: u8,
    /// Composite temperature.
    pub temperature_kelvin: u16,
    /// Spare that is left.
    pub available_spare_percent: u8,
    /// Where the drive says that it is too little.
    pub available_spare_threshold_percent: u8,
    /// Of the life that the vendor expects, which can be beyond 100.
    pub percentage_used: u8,
    /// Read by the host, in units of 512,000 bytes, rounded up.
    pub data_units_read: u64,
    /// Written by the host, in the same units.
    pub data_units_written: u64,
    /// Reads by the host.
    pub host_reads: u64,
    /// Writes by the host.
    pub host_writes: u64,
    /// Minutes that the controller was busy.
    pub controller_busy_minutes: u64,
    /// Power cycles.
    pub power_cycles: u64,
    /// Hours under power.
    pub power_on_hours: u64,
    /// Power cycles without a shutdown before.
    pub unsafe_shutdowns: u64,
    /// Errors of the medium or of integrity that could not be recovered.
    pub media_errors: u64,
    /// Entries that the error log ever had.
    pub error_log_entries: u64,
    /// Minutes above the warning temperature.
    pub warning_temperature_minutes: u32,
    /// Minutes above the critical temperature.
    pub critical_temperature_minutes: u32,
    /// Of each sensor; 0 where there is none.
    pub temperature_sensors_kelvin: [u16; 8],
    /// How often the drive went to a lower power state for heat, lightly and heavily.
    pub thermal_transitions: [u32; 2],
    /// How long it stayed there.
    pub thermal_seconds: [u32; 2],
}

impl SmartLog {
    /// Takes the log apart.
    pub fn parse(bytes: &[u8; SMART_LOG_BYTES]) -> SmartLog {
        let counter = |offset| le128_saturating(bytes, offset);
        SmartLog {
            critical_warning: bytes[0],
            temperature_kelvin: le16(bytes, 1),
            available_spare_percent: bytes[3],
            available_spare_threshold_percent: bytes[4],
            percentage_used: bytes[5],
            data_units_read: counter(32),
            data_units_written: counter(48),
            host_reads: counter(64),
            host_writes: counter(80),
            controller_busy_minutes: counter(96),
            power_cycles: counter(112),
            power_on_hours: counter(128),
            unsafe_shutdowns: counter(144),
            media_errors: counter(160),
            error_log_entries: counter(176),
            warning_temperature_minutes: le32(bytes, 192),
            critical_temperature_minutes: le32(bytes, 196),
            temperature_sensors_kelvin: std::array::from_fn(|index| le16(bytes, 200 + 2 * index)),
            thermal_transitions: [le32(bytes, 216), le32(bytes, 220)],
            thermal_seconds: [le32(bytes, 224), le32(bytes, 228)],
        }
    }
}

/// An entry of the error log (Base 5.16.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorLogEntry {
    /// The number of the error since the drive was made; entries are told apart by it.
    pub error_count: u64,
    /// The queue that the command was of; 0xffff where it was of none.
    pub queue: u16,
    /// The command's identifier.
    pub command_id: u16,
    /// How it ended.
    pub status: Status,
    /// The first block that failed, where the status is about one.
    pub lba: u64,
    /// The namespace.
    pub nsid: u32,
}

impl ErrorLogEntry {
    /// Takes a log apart, the newest entry first. Unused entries, whose count is 0, and a rest that is no whole entry are left out.
    pub fn parse_log(bytes: &[u8]) -> Vec<ErrorLogEntry> {
        let entries = bytes.chunks_exact(ERROR_LOG_ENTRY_BYTES).map(|entry| ErrorLogEntry {
            error_count: le64(entry, 0),
            queue: le16(entry, 8),
            command_id: le16(entry, 10),
            // Bit 0 is the phase.
            status: Status::from_completion(le16(entry, 12)),
            lba: le64(entry, 16),
            nsid: le32(entry, 24),
        });
        entries.filter(|entry| entry.error_count != 0).collect()
    }
}

/// What became of the last sanitize.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SanitizeStatus {
    /// There was none.
    Never,
    /// It is done.
    Done,
    /// It runs.
    Running,
    /// It failed.
    Failed,
    /// The drive says something that the specification has not.
    Unknown(u8),
}

/// The sanitize log (Base 5.16.1.25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SanitizeLog {
    /// How far it is, in parts of 65,536; 65,535 where none runs.
    pub progress: u16,
    /// What became of the last one.
    pub status: SanitizeStatus,
    /// Whether nothing was written since it was done.
    pub is_erased: bool,
    /// How long an overwrite takes, where the drive tells.
    pub overwrite_seconds: Option<u32>,
    /// How long erasing blocks takes, where the drive tells.
    pub block_erase_seconds: Option<u32>,
    /// How long deleting the key takes, where the drive tells.
    pub crypto_erase_seconds: Option<u32>,
}

impl SanitizeLog {
    /// Takes the log apart.
    pub fn parse(bytes: &[u8; SANITIZE_LOG_BYTES]) -> SanitizeLog {
        let told = |offset| Some(le32(bytes, offset)).filter(|seconds| *seconds != u32::MAX);
        SanitizeLog {
            progress: le16(bytes, 0),
            status: match bytes[2] & 7 {
                0 => SanitizeStatus::Never,
                // 4 is done as well, with blocks deallocated although that was not asked for.
                1 | 4 => SanitizeStatus::Done,
                2 => SanitizeStatus::Running,
                3 => SanitizeStatus::Failed,
                other => SanitizeStatus::Unknown(other),
            },
            is_erased: bytes[3] & 1 == 1,
            overwrite_seconds: told(8),
            block_erase_seconds: told(12),
            crypto_erase_seconds: told(16),
        }
    }

    /// How much of a running sanitize is done.
    pub fn done_share(&self) -> f64 {
        f64::from(self.progress) / 65_536.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smart_counters_are_read_where_the_specification_has_them() {
        let mut bytes = [0; SMART_LOG_BYTES];
        bytes[..6].copy_from_slice(&[4, 0x40, 0x01, 98, 10, 3]);
        for (index, offset) in (32..192).step_by(16).enumerate() {
            bytes[offset] = index as u8 + 1;
        }
        bytes[192..200].copy_from_slice(&[11, 0, 0, 0, 12, 0, 0, 0]);
        bytes[200..204].copy_from_slice(&[0x41, 1, 0x42, 1]);
        bytes[216..232].copy_from_slice(&[13, 0, 0, 0, 14, 0, 0, 0, 15, 0, 0, 0, 16, 0, 0, 0]);
        let expected = SmartLog {
            critical_warning: 4,
            temperature_kelvin: 320,
            available_spare_percent: 98,
            available_spare_threshold_percent: 10,
            percentage_used: 3,
            data_units_read: 1,
            data_units_written: 2,
            host_reads: 3,
            host_writes: 4,
            controller_busy_minutes: 5,
            power_cycles: 6,
            power_on_hours: 7,
            unsafe_shutdowns: 8,
            media_errors: 9,
            error_log_entries: 10,
            warning_temperature_minutes: 11,
            critical_temperature_minutes: 12,
            temperature_sensors_kelvin: [321, 322, 0, 0, 0, 0, 0, 0],
            thermal_transitions: [13, 14],
            thermal_seconds: [15, 16],
        };
        assert_eq!(SmartLog::parse(&bytes), expected);
    }

    #[test]
    fn error_entries_are_read_and_unused_ones_left_out() {
        let mut bytes = [0; 2 * ERROR_LOG_ENTRY_BYTES + 5];
        bytes[..8].copy_from_slice(&77_u64.to_le_bytes());
        // LBA out of range, do not retry, with the phase bit set.
        bytes[8..16].copy_from_slice(&[1, 0, 0x34, 0x12, 0x01, 0x81, 0xff, 0xff]);
        bytes[16..24].copy_from_slice(&0x1_0000_0000_u64.to_le_bytes());
        bytes[24..28].copy_from_slice(&[1, 0, 0, 0]);
        let expected = ErrorLogEntry {
            error_count: 77,
            queue: 1,
            command_id: 0x1234,
            status: Status::from_field(0x4080),
            lba: 0x1_0000_0000,
            nsid: 1,
        };
        assert_eq!(ErrorLogEntry::parse_log(&bytes), [expected]);
    }

    #[test]
    fn a_running_sanitize_tells_how_far_it_is() {
        let mut bytes = [0; SANITIZE_LOG_BYTES];
        bytes[..4].copy_from_slice(&[0, 0x40, 2, 0]);
        bytes[8..20].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 60, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        let log = SanitizeLog::parse(&bytes);
        assert_eq!((log.status, log.done_share()), (SanitizeStatus::Running, 0.25));
        assert_eq!((log.overwrite_seconds, log.block_erase_seconds), (None, Some(60)));
        bytes[2..4].copy_from_slice(&[1, 1]);
        assert_eq!(SanitizeLog::parse(&bytes).status, SanitizeStatus::Done);
        assert!(SanitizeLog::parse(&bytes).is_erased);
        bytes[2] = 3;
        assert_eq!(SanitizeLog::parse(&bytes).status, SanitizeStatus::Failed);
        bytes[2] = 7;
        assert_eq!(SanitizeLog::parse(&bytes).status, SanitizeStatus::Unknown(7));
    }
}
