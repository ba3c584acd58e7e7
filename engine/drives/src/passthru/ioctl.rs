//! What the kernel takes at an NVMe character device: admin commands by ioctl, I/O commands by io_uring.

use crate::nvme::admin::{AdminData, AdminError, AdminQueue};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;
use testdrive_nvme::{NvmCommand, Status};

/// `_IO('N', 0x40)` of linux/nvme_ioctl.h: the namespace's identifier.
const NVME_IOCTL_ID: u32 = 0x4e40;
/// `_IOWR('N', 0x47, struct nvme_passthru_cmd64)`.
const NVME_IOCTL_ADMIN64_CMD: u32 = 0xc050_4e47;
/// `_IOWR('N', 0x80, struct nvme_uring_cmd)`: an I/O command as an entry of a ring.
pub(crate) const NVME_URING_CMD_IO: u32 = 0xc048_4e80;

/// `struct nvme_passthru_cmd64`.
#[repr(C)]
#[derive(Default)]
struct PassthruCommand {
    opcode: u8,
    flags: u8,
    reserved1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    cdw10: [u32; 6],
    timeout_ms: u32,
    reserved2: u32,
    result: u64,
}

/// The identifier of the namespace behind an open block or character device.
///
/// # Errors
/// When it is no NVMe device, or is gone.
pub(crate) fn namespace_id(file: &File) -> io::Result<u32> {
    // SAFETY: the request takes no argument.
    match unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ID as _) } {
        -1 => Err(io::Error::last_os_error()),
        nsid => Ok(nsid as u32),
    }
}

/// The command part of an entry of a ring: `struct nvme_uring_cmd`, whose 72 bytes end before the entry's 80 do.
pub(crate) fn uring_command(command: &NvmCommand, address: u64) -> [u8; 80] {
    let mut bytes = [0; 80];
    bytes[0] = command.opcode;
    bytes[4..8].copy_from_slice(&command.nsid.to_ne_bytes());
    bytes[24..32].copy_from_slice(&address.to_ne_bytes());
    bytes[36..40].copy_from_slice(&command.data_bytes.to_ne_bytes());
    for (index, dword) in command.cdw.iter().enumerate() {
        bytes[40 + 4 * index..][..4].copy_from_slice(&dword.to_ne_bytes());
    }
    bytes
}

/// The admin queue of a controller, by the ioctl of its namespace's device.
#[derive(Clone, Debug)]
pub struct CharacterAdmin {
    file: Arc<File>,
}

impl CharacterAdmin {
    /// Through an open character or block device of a namespace.
    pub fn new(file: Arc<File>) -> CharacterAdmin {
        CharacterAdmin { file }
    }
}

impl AdminQueue for CharacterAdmin {
    fn admin(
        &mut self,
        command: &NvmCommand,
        data: AdminData<'_>,
        timeout: Duration,
    ) -> Result<u32, AdminError> {
        let address = match data {
            AdminData::None => 0,
            AdminData::Read(bytes) => {
                assert_eq!(bytes.len(), command.data_bytes as usize, "the buffer is that of the command");
                bytes.as_mut_ptr() as u64
            }
        };
        let mut request = PassthruCommand {
            opcode: command.opcode,
            nsid: command.nsid,
            address,
            data_bytes: command.data_bytes,
            cdw10: command.cdw,
            timeout_ms: u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX),
            ..PassthruCommand::default()
        };
        // SAFETY: the request is the structure that the ioctl takes, and the buffer that it names is as long as it says; both live, and
        // are borrowed, until the call returns.
        let answer = unsafe {
            libc::ioctl(self.file.as_raw_fd(), NVME_IOCTL_ADMIN64_CMD as _, std::ptr::from_mut(&mut request))
        };
        match answer {
            0 => Ok(request.result as u32),
            -1 => Err(AdminError::Path(io::Error::last_os_error())),
            status => Err(AdminError::Status(Status::from_field(status as u16))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdrive_nvme::{write, LbaRange};

    #[test]
    fn the_requests_carry_the_size_of_their_structures() {
        assert_eq!(std::mem::size_of::<PassthruCommand>(), 80);
        assert_eq!(NVME_IOCTL_ADMIN64_CMD >> 16 & 0x3fff, 80);
        assert_eq!(NVME_URING_CMD_IO >> 16 & 0x3fff, 72);
    }

    #[test]
    fn a_command_of_a_ring_is_laid_out_as_the_kernel_has_it() {
        let command = write(1, LbaRange { first: 0x1_0000_0002, blocks: 8 }, 512, true);
        let bytes = uring_command(&command, 0x1122_3344_5566_7788);
        let mut expected = [0_u8; 80];
        expected[0] = 1;
        expected[4] = 1;
        expected[24..32].copy_from_slice(&0x1122_3344_5566_7788_u64.to_ne_bytes());
        expected[36..40].copy_from_slice(&4096_u32.to_ne_bytes());
        expected[40..44].copy_from_slice(&2_u32.to_ne_bytes());
        expected[44..48].copy_from_slice(&1_u32.to_ne_bytes());
        expected[48..52].copy_from_slice(&0x4000_0007_u32.to_ne_bytes());
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_file_that_is_no_namespace_has_no_identifier() {
        assert!(namespace_id(&tempfile::tempfile().unwrap()).is_err());
    }
}
