//! Lists of what an NVM subsystem has: namespaces and controllers, by identifier (Base 5.17.2.2, 5.17.2.12, 5.17.2.15).

use crate::bytes::le16;
use crate::controller::IDENTIFY_BYTES;

/// How many identifiers a list of namespaces holds. A full one goes on in another, above its last.
pub const NAMESPACE_LIST_MAX: usize = IDENTIFY_BYTES / 4;
/// How many identifiers a list of controllers holds, whose first word is their number.
pub const CONTROLLER_LIST_MAX: usize = IDENTIFY_BYTES / 2 - 1;
/// How many entries a list of secondary controllers holds, after a header as long as one of them.
pub const SECONDARY_LIST_MAX: usize = IDENTIFY_BYTES / SECONDARY_ENTRY_BYTES - 1;
const SECONDARY_ENTRY_BYTES: usize = 32;

/// The identifiers of a list of namespaces, which ends with its page or the first 0.
pub fn parse_namespace_list(bytes: &[u8; IDENTIFY_BYTES]) -> Vec<u32> {
    let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    words.take_while(|nsid| *nsid != 0).collect()
}

/// The identifiers of a list of controllers, as many as it says, at most those that a page has room for.
pub fn parse_controller_list(bytes: &[u8; IDENTIFY_BYTES]) -> Vec<u16> {
    let count = usize::from(le16(bytes, 0)).min(CONTROLLER_LIST_MAX);
    (1..=count).map(|index| le16(bytes, 2 * index)).collect()
}

/// A controller of a virtual function, as its primary controller has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondaryController {
    /// Its identifier.
    pub controller_id: u16,
    /// Whether it is online: one that is not takes no command of anybody.
    pub is_online: bool,
}

impl SecondaryController {
    /// The entries of a list of secondary controllers.
    pub fn parse_list(bytes: &[u8; IDENTIFY_BYTES]) -> Vec<SecondaryController> {
        let entries = bytes.chunks_exact(SECONDARY_ENTRY_BYTES).skip(1).take(usize::from(bytes[0]));
        entries
            .map(|entry| SecondaryController { controller_id: le16(entry, 0), is_online: entry[4] & 1 == 1 })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_end_at_the_first_zero_or_with_the_page() {
        let mut bytes = [0; IDENTIFY_BYTES];
        bytes[..16].copy_from_slice(&[1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!(parse_namespace_list(&bytes), [1, 0x102]);
        assert_eq!(parse_namespace_list(&[1; IDENTIFY_BYTES]).len(), NAMESPACE_LIST_MAX);
    }

    #[test]
    fn controllers_are_as_many_as_the_list_says_and_no_more_than_it_can_hold() {
        let mut bytes = [0; IDENTIFY_BYTES];
        bytes[..8].copy_from_slice(&[2, 0, 1, 0, 0x34, 0x12, 9, 0]);
        assert_eq!(parse_controller_list(&bytes), [1, 0x1234]);
        assert_eq!(parse_controller_list(&[0xff; IDENTIFY_BYTES]).len(), CONTROLLER_LIST_MAX);
    }

    #[test]
    fn secondary_controllers_tell_whether_they_are_online() {
        let mut bytes = [0; IDENTIFY_BYTES];
        bytes[0] = 2;
        bytes[32..37].copy_from_slice(&[7, 0, 1, 0, 1]);
        bytes[64..69].copy_from_slice(&[8, 0, 1, 0, 0]);
        bytes[96] = 9;
        let expected = [(7, true), (8, false)]
            .map(|(controller_id, is_online)| SecondaryController { controller_id, is_online });
        assert_eq!(SecondaryController::parse_list(&bytes), expected);
        assert_eq!(SecondaryController::parse_list(&[0xff; IDENTIFY_BYTES]).len(), SECONDARY_LIST_MAX);
    }
}
