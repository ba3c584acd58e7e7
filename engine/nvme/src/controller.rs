//! What a controller says of itself: the Identify Controller structure (Base 5.17.2.1), and its limits for NVM commands (NVM 4.1.5.4).

use crate::bytes::{le128_saturating, le16, le32, le64, text};
use serde::Serialize;

/// The size of every identify structure.
pub const IDENTIFY_BYTES: usize = 4096;

/// What matters of the Identify Controller structure to whoever tests a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ControllerIdentity {
    /// Vendor by PCI.
    pub vendor: u16,
    /// Serial number.
    pub serial: String,
    /// Model number.
    pub model: String,
    /// Firmware revision.
    pub firmware: String,
    /// The longest transfer, as a power of two of the smallest memory page; 0 for no limit.
    pub mdts: u8,
    /// The controller's identifier in its subsystem.
    pub controller_id: u16,
    /// Version of the specification: major, minor, tertiary. 0.0.0 of drives before 1.2.
    pub version: (u16, u8, u8),
    /// Whether the subsystem may have more controllers than this (CMIC bit 1).
    pub may_have_other_controllers: bool,
    /// How long a shutdown may take, in microseconds (RTD3E); 0 where it does not say.
    pub shutdown_us: u32,
    /// Whether there is Format NVM (OACS bit 1).
    pub can_format: bool,
    /// Whether namespaces are made, deleted, attached and detached (OACS bit 3), so that some may be attached to no controller.
    pub can_manage_namespaces: bool,
    /// Whether it may be the primary of controllers of virtual functions (OACS bit 7).
    pub can_manage_virtualization: bool,
    /// How many commands may be aborted at a time.
    pub abort_limit: u16,
    /// How many entries the error log has.
    pub error_log_entries: u16,
    /// How many power states there are.
    pub power_states: u8,
    /// How much memory of the host it would like to have (HMPRE); 0 where it asks for none.
    pub host_memory_preferred_bytes: u64,
    /// With how much it can do something (HMMIN).
    pub host_memory_min_bytes: u64,
    /// No piece of that may be smaller (HMMINDS); 0 for no limit.
    pub host_memory_piece_min_bytes: u64,
    /// Into how many pieces it may be cut (HMMAXD); 0 for no limit.
    pub host_memory_pieces_max: u16,
    /// Whether it goes to other power states by itself (APSTA bit 0).
    pub has_autonomous_power_transitions: bool,
    /// Total capacity of the subsystem, held to 64 bits; 0 where it is not told.
    pub total_capacity_bytes: u64,
    /// What it can sanitize with.
    pub sanitize: SanitizeSupport,
    /// The greatest identifier that a namespace may have.
    pub namespaces_max: u32,
    /// Whether there is dataset management (ONCS bit 2).
    pub can_deallocate: bool,
    /// Whether there is write zeroes (ONCS bit 3).
    pub can_write_zeroes: bool,
    /// Whether a format changes every namespace, whichever it names (FNA bit 0).
    pub format_is_of_all: bool,
    /// Whether a secure erase by format erases every namespace (FNA bit 1).
    pub format_erase_is_of_all: bool,
    /// Whether a format can delete the key (FNA bit 2).
    pub can_format_cryptographic: bool,
    /// Whether there is a volatile write cache (VWC bit 0).
    pub has_volatile_write_cache: bool,
    /// The subsystem's name, empty where the drive is older than names.
    pub subsystem: String,
}

/// SANICAP: the ways to sanitize.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SanitizeSupport {
    /// By deleting the key.
    pub crypto_erase: bool,
    /// By erasing blocks.
    pub block_erase: bool,
    /// By writing over everything.
    pub overwrite: bool,
}

impl SanitizeSupport {
    /// Whether it can sanitize at all.
    pub fn any(self) -> bool {
        self.crypto_erase || self.block_erase || self.overwrite
    }
}

impl ControllerIdentity {
    /// Takes the structure apart.
    pub fn parse(bytes: &[u8; IDENTIFY_BYTES]) -> ControllerIdentity {
        let bit = |byte: usize, bit: u8| bytes[byte] >> bit & 1 == 1;
        let version = le32(bytes, 80);
        ControllerIdentity {
            vendor: le16(bytes, 0),
            serial: text(bytes, 4, 20),
            model: text(bytes, 24, 40),
            firmware: text(bytes, 64, 8),
            may_have_other_controllers: bit(76, 1),
            mdts: bytes[77],
            controller_id: le16(bytes, 78),
            version: ((version >> 16) as u16, (version >> 8) as u8, version as u8),
            can_format: bit(256, 1),
            shutdown_us: le32(bytes, 88),
            can_manage_namespaces: bit(256, 3),
            can_manage_virtualization: bit(256, 7),
            // These three are 0's based.
            abort_limit: u16::from(bytes[258]) + 1,
            error_log_entries: u16::from(bytes[262]) + 1,
            power_states: (bytes[263] & 0x1f) + 1,
            host_memory_preferred_bytes: u64::from(le32(bytes, 272)) * 4096,
            host_memory_min_bytes: u64::from(le32(bytes, 276)) * 4096,
            host_memory_piece_min_bytes: u64::from(le32(bytes, 332)) * 4096,
            host_memory_pieces_max: le16(bytes, 336),
            has_autonomous_power_transitions: bit(265, 0),
            total_capacity_bytes: le128_saturating(bytes, 280),
            sanitize: SanitizeSupport {
                crypto_erase: bit(328, 0),
                block_erase: bit(328, 1),
                overwrite: bit(328, 2),
            },
            namespaces_max: le32(bytes, 516),
            can_deallocate: bit(520, 2),
            can_write_zeroes: bit(520, 3),
            format_is_of_all: bit(524, 0),
            format_erase_is_of_all: bit(524, 1),
            can_format_cryptographic: bit(524, 2),
            has_volatile_write_cache: bit(525, 0),
            subsystem: text(bytes, 768, 256),
        }
    }
}

/// The controller's limits for commands that transfer nothing or name ranges; 0 is no limit that is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NvmLimits {
    /// The longest write zeroes, as a power of two of the smallest memory page (WZSL).
    pub write_zeroes_size: u8,
    /// Ranges of a deallocate (DMRL).
    pub deallocate_ranges: u8,
    /// Blocks of one of its ranges (DMRSL).
    pub deallocate_range_blocks: u32,
    /// Blocks of all of its ranges (DMSL).
    pub deallocate_blocks: u64,
}

impl NvmLimits {
    /// Takes the structure apart. Drives that do not have it fail the command instead.
    pub fn parse(bytes: &[u8; IDENTIFY_BYTES]) -> NvmLimits {
        NvmLimits {
            write_zeroes_size: bytes[1],
            deallocate_ranges: bytes[3],
            deallocate_range_blocks: le32(bytes, 4),
            deallocate_blocks: le64(bytes, 8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The structure of a drive after the tables of the specification, bytes set where they stand there.
    fn structure() -> [u8; IDENTIFY_BYTES] {
        let mut bytes = [0; IDENTIFY_BYTES];
        bytes[..4].copy_from_slice(&[0x4d, 0x14, 0x4d, 0x14]);
        bytes[4..24].copy_from_slice(b"S4EWNX0M123         ");
        bytes[24..64].copy_from_slice(b"EXAMPLE SSD 990                         ");
        bytes[64..72].copy_from_slice(b"2B2QEXM7");
        bytes[76..80].copy_from_slice(&[0x02, 5, 0x34, 0x12]);
        // 1.4.0
        bytes[80..84].copy_from_slice(&[0, 4, 1, 0]);
        bytes[88..92].copy_from_slice(&[0x80, 0x96, 0x98, 0]);
        bytes[256..258].copy_from_slice(&[0x9f, 0]);
        bytes[258] = 7;
        bytes[262..264].copy_from_slice(&[63, 4]);
        bytes[265] = 1;
        bytes[272..280].copy_from_slice(&[0, 0x40, 0, 0, 0, 8, 0, 0]);
        bytes[332..338].copy_from_slice(&[16, 0, 0, 0, 8, 0]);
        bytes[280..296].copy_from_slice(&1_000_204_886_016_u128.to_le_bytes());
        bytes[328..332].copy_from_slice(&[0x03, 0, 0, 0]);
        bytes[516..520].copy_from_slice(&[32, 0, 0, 0]);
        bytes[520..522].copy_from_slice(&[0x5f, 0]);
        bytes[524..526].copy_from_slice(&[0x05, 0x07]);
        bytes[768..791].copy_from_slice(b"nqn.2014.08.org.example");
        bytes
    }

    #[test]
    fn every_field_is_read_where_the_specification_has_it() {
        let identity = ControllerIdentity::parse(&structure());
        let expected = ControllerIdentity {
            vendor: 0x144d,
            serial: "S4EWNX0M123".into(),
            model: "EXAMPLE SSD 990".into(),
            firmware: "2B2QEXM7".into(),
            mdts: 5,
            controller_id: 0x1234,
            version: (1, 4, 0),
            shutdown_us: 10_000_000,
            may_have_other_controllers: true,
            can_format: true,
            can_manage_namespaces: true,
            can_manage_virtualization: true,
            abort_limit: 8,
            error_log_entries: 64,
            power_states: 5,
            host_memory_preferred_bytes: 64 << 20,
            host_memory_min_bytes: 8 << 20,
            host_memory_piece_min_bytes: 64 << 10,
            host_memory_pieces_max: 8,
            has_autonomous_power_transitions: true,
            total_capacity_bytes: 1_000_204_886_016,
            sanitize: SanitizeSupport { crypto_erase: true, block_erase: true, overwrite: false },
            namespaces_max: 32,
            can_deallocate: true,
            can_write_zeroes: true,
            format_is_of_all: true,
            format_erase_is_of_all: false,
            can_format_cryptographic: true,
            has_volatile_write_cache: true,
            subsystem: "nqn.2014.08.org.example".into(),
        };
        assert_eq!(identity, expected);
    }

    #[test]
    fn a_structure_of_zeroes_promises_nothing() {
        let identity = ControllerIdentity::parse(&[0; IDENTIFY_BYTES]);
        assert!(!identity.can_manage_namespaces && !identity.can_manage_virtualization);
        assert!(!identity.can_format && !identity.can_deallocate && !identity.sanitize.any());
        assert!(!identity.can_write_zeroes && !identity.has_volatile_write_cache);
    }

    #[test]
    fn the_limits_of_nvm_commands_are_read_where_they_stand() {
        let mut bytes = [0; IDENTIFY_BYTES];
        bytes[..8].copy_from_slice(&[1, 7, 2, 16, 0, 0, 1, 0]);
        bytes[8..16].copy_from_slice(&(1_u64 << 33).to_le_bytes());
        let expected = NvmLimits {
            write_zeroes_size: 7,
            deallocate_ranges: 16,
            deallocate_range_blocks: 65_536,
            deallocate_blocks: 1 << 33,
        };
        assert_eq!(NvmLimits::parse(&bytes), expected);
    }
}
