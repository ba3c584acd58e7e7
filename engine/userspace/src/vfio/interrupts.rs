//! A function's interrupts, each a count on a descriptor: those of its queues, and what the kernel has to say of the function itself.

use super::abi::{self, IrqInfo, IrqSet};
use super::{call, call_with};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

/// More interrupts than queues that are used.
const INTERRUPTS_MAX: u32 = 257;
/// One for the admin queue, and one for a pair at least.
const INTERRUPTS_MIN: u32 = 2;

/// The interrupts of the function's queues, by vector: as many as it has and the host gives it.
///
/// # Errors
/// When there are too few for a queue pair, or the kernel refuses.
pub fn of_queues(device: &File) -> io::Result<Vec<OwnedFd>> {
    let mut descriptors = Vec::new();
    for _ in 0..count(device, abi::IRQ_MSIX)?.min(INTERRUPTS_MAX) {
        descriptors.push(counter()?);
    }
    let granted =
        as_many_as_granted(descriptors.len() as u32, |count| ask(device, &descriptors[..count as usize]))?;
    descriptors.truncate(granted as usize);
    Ok(descriptors)
}

/// Asks for fewer each time that the host has not so many: the kernel then gives none, and answers how many there are.
fn as_many_as_granted(wanted: u32, mut ask: impl FnMut(u32) -> io::Result<i32>) -> io::Result<u32> {
    let mut count = wanted;
    while count >= INTERRUPTS_MIN {
        match ask(count)? {
            left if left > 0 => count = (left as u32).min(count - 1),
            _ => return Ok(count),
        }
    }
    let message = format!(
        "the controller has {wanted} MSI-X interrupts and the host {count} left, too few for its queues: leave interrupts=yes out"
    );
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

fn ask(device: &File, descriptors: &[OwnedFd]) -> io::Result<i32> {
    let descriptors: Vec<RawFd> = descriptors.iter().map(|descriptor| descriptor.as_raw_fd()).collect();
    trigger(device, abi::IRQ_MSIX, &descriptors)
}

/// Has each interrupt of a kind, from the first on, come as a count on a descriptor.
fn trigger(device: &File, index: u32, descriptors: &[RawFd]) -> io::Result<i32> {
    let count = descriptors.len() as u32;
    let argsz = size_of::<IrqSet>() as u32 + 4 * count;
    let mut words = vec![argsz, abi::IRQ_SET_EVENTFD_TRIGGER, index, 0, count];
    debug_assert_eq!(words.len() * 4, size_of::<IrqSet>());
    words.extend(descriptors.iter().map(|descriptor| *descriptor as u32));
    call(device.as_raw_fd(), abi::DEVICE_SET_IRQS, words.as_mut_ptr() as libc::c_ulong)
}

/// Ends the interrupts of queues. The kernel does the same when the function is closed.
pub fn end(device: &File) {
    let argsz = size_of::<IrqSet>() as u32;
    let mut none =
        IrqSet { argsz, flags: abi::IRQ_SET_NONE_TRIGGER, index: abi::IRQ_MSIX, ..IrqSet::default() };
    let _ = call_with(device.as_raw_fd(), abi::DEVICE_SET_IRQS, &mut none);
}

/// How many interrupts of a kind the function has.
fn count(device: &File, index: u32) -> io::Result<u32> {
    let mut info = IrqInfo { argsz: size_of::<IrqInfo>() as u32, index, ..IrqInfo::default() };
    call_with(device.as_raw_fd(), abi::DEVICE_GET_IRQ_INFO, &mut info)?;
    Ok(info.count)
}

fn counter() -> io::Result<OwnedFd> {
    // SAFETY: the call takes integers only.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A word of the kernel about the function.
pub struct Notice(OwnedFd);

impl Notice {
    /// Has the kernel tell; `None` where it cannot, as of errors on a bus that reports none.
    pub fn of(device: &File, index: u32) -> Option<Notice> {
        let told = counter().ok().filter(|_| count(device, index).is_ok_and(|count| count > 0))?;
        trigger(device, index, &[told.as_raw_fd()]).ok().filter(|answer| *answer == 0)?;
        Some(Notice(told))
    }

    /// Whether it was told since the last look.
    pub fn take(&self) -> bool {
        let mut count = 0_u64;
        // SAFETY: the descriptor is an eventfd, which gives eight bytes, for which there is room, and does not block.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) == 8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What came of it where the host has so many vectors, and for how many it was asked.
    fn asked(wanted: u32, host: u32) -> (Option<u32>, Vec<u32>) {
        let mut asked = Vec::new();
        let granted = as_many_as_granted(wanted, |count| {
            asked.push(count);
            // vfio_msi_enable: nothing is enabled, and the answer is how many there are.
            Ok(if count > host { host as i32 } else { 0 })
        });
        (granted.ok(), asked)
    }

    #[test]
    fn where_the_host_has_fewer_vectors_so_many_are_asked_for() {
        assert_eq!(asked(65, 200), (Some(65), vec![65]));
        assert_eq!(asked(65, 9), (Some(9), vec![65, 9]));
        assert_eq!(asked(65, 1), (None, vec![65]));
        assert_eq!(asked(1, 200), (None, vec![]));
        let refused = as_many_as_granted(8, |_| Err(io::Error::from_raw_os_error(libc::EINVAL)));
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EINVAL));
        // A kernel that answers nonsense does not keep us asking.
        assert!(as_many_as_granted(8, |count| Ok(count as i32)).is_err());
    }

    #[test]
    fn a_notice_is_taken_once() {
        let notice = Notice(counter().unwrap());
        assert!(!notice.take());
        // SAFETY: eight bytes are given to an eventfd.
        unsafe { libc::write(notice.0.as_raw_fd(), (&raw const ONE).cast(), 8) };
        assert!(notice.take() && !notice.take());
    }

    static ONE: u64 = 1;
}
