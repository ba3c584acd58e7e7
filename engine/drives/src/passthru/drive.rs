//! A queue for passthrough: entries of 128 bytes and completions of 32 in a ring, each an NVMe command.

mod send;

use super::device::PassthruDevice;
use super::parts::{Follows, Parts};
use super::registered::{reads, takes_parts, Registered};
use super::WideLane;
use crate::buffers::{Buffers, Region};
use crate::clock::Clock;
use crate::drive::{Drive, QueueOptions, SubmitError, Wait};
use crate::nvme::target::NvmeTarget;
use crate::ring;
use crate::trims::Trims;
use io_uring::cqueue;
use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use testdrive_core::{Command, Completion, Opcode};
use testdrive_nvme::Status;
use testdrive_recording::DriveIdentity;

/// Marks the completion of a command of ranges, whose number is below.
const TRIM_TAG: u64 = 1 << 32;
/// What registered buffers are counted in.
const PAGE_BYTES: usize = 4096;
/// A drive behind its NVMe character device.
pub struct PassthruDrive {
    device: PassthruDevice,
    clock: Clock,
    /// For what the kernel cannot poll for: commands without data.
    plain: WideLane,
    /// Reads and writes that the kernel polls for, where the controller has queues for that.
    polled: Option<WideLane>,
    buffers: ManuallyDrop<Buffers>,
    trims: ManuallyDrop<Trims>,
    registered: Registered,
    registered_file: bool,
    ios: Vec<Parts>,
    /// I/Os with parts that are still to be sent.
    backlog: VecDeque<u32>,
    /// I/Os that completed without the drive.
    ready: Vec<Completion>,
    outstanding: usize,
}

impl PassthruDrive {
    /// A queue of `depth` slots. To be made on the thread that uses it: the ring takes submissions from one thread only.
    ///
    /// # Errors
    /// When io_uring is forbidden here or has no passthrough (before Linux 5.19), or memory cannot be had.
    pub fn new(mut device: PassthruDevice, options: &QueueOptions) -> io::Result<PassthruDrive> {
        if let Some(what) = device.hindrance() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, format!("it {what}")));
        }
        let QueueOptions { clock, depth, .. } = *options;
        // A long I/O is several commands.
        let commands = depth * 4;
        let (mut plain, flags) = WideLane::new(commands, false)?;
        let polls = device.options.polls(device.block.polled, ring::kernel_polls_passthrough_soundly());
        let mut polled = if polls { WideLane::new(commands, true).ok().map(|(lane, _)| lane) } else { None };
        let mut buffers = Buffers::new(options)?;
        let mut trim_limits = device.limits.trim;
        trim_limits.ranges = trim_limits.ranges.min(device.options.trim_ranges as usize);
        let mut trims = Trims::new(depth, trim_limits, Region::map)?;
        let rings = || std::iter::once(&plain).chain(&polled).map(|lane| &*lane.ring);
        // A ring keeps what it has registered until its last command has ended, also beyond the end of this process: the claims with it.
        let files = device.files();
        let tied = rings().map(|ring| ring.submitter().register_files(&files));
        let registered_file = match tied.collect::<io::Result<()>>() {
            Ok(()) => true,
            Err(error) if device.block.writable => {
                let message = format!("the claim on the drive cannot be tied to its commands ({error})");
                return Err(io::Error::new(error.kind(), message));
            }
            Err(_) => false,
        };
        // Kernels count the pages of a registered buffer from a command's data to the buffer's end as the command's own.
        let transfer_bytes = device.limits.transfer_blocks as usize * device.block_size.bytes() as usize;
        let piece_bytes = (transfer_bytes / PAGE_BYTES * PAGE_BYTES).max(PAGE_BYTES);
        let mut pieces = buffers.pieces(piece_bytes);
        pieces.extend(trims.pieces(piece_bytes));
        // SAFETY: the regions stay mapped until the rings are gone: `drop` unmaps them last, or never.
        let mut registered = unsafe { Registered::with(rings(), &pieces) };
        let block_bytes = device.block_size.bytes();
        if !takes_parts(&mut plain.ring, device.fd(), device.nsid, block_bytes, &registered)? {
            registered = Registered::none();
        }
        let place = buffers.for_read(block_bytes as usize) as u64;
        let place = (place, registered.index_of(place, block_bytes));
        if let Some(mut lane) = polled.take() {
            // SAFETY: the buffers stay mapped until the rings are gone.
            match unsafe { reads(&mut lane.ring, device.fd(), device.nsid, block_bytes, place) } {
                Ok(true) => polled = Some(lane),
                // SAFETY: it is dropped once, here, and nothing is in flight on it.
                Ok(false) => unsafe { lane.close() },
                // Something may be in flight, and kernels are known that do not survive that such a ring is closed.
                Err(_) => {}
            }
        }
        let settings = &mut device.block.identity.settings;
        settings.insert("ring_flags".into(), flags.into());
        settings.insert("registered_buffers".into(), registered.is_some().into());
        settings.insert("registered_file".into(), registered_file.into());
        settings.insert("poll_queues".into(), device.block.polled.into());
        settings.insert("polled_completions".into(), polled.is_some().into());
        settings.insert("asynchronous_trim".into(), true.into());
        settings.insert("trim_ranges".into(), trim_limits.ranges.into());
        Ok(PassthruDrive {
            plain,
            polled,
            buffers: ManuallyDrop::new(buffers),
            trims: ManuallyDrop::new(trims),
            registered,
            registered_file,
            ios: vec![Parts::NONE; depth],
            backlog: VecDeque::with_capacity(depth),
            ready: Vec::with_capacity(depth),
            outstanding: 0,
            device,
            clock,
        })
    }

    /// The outcome of a command: the kernel answers a negative errno where the drive did not answer, else the drive's status field.
    fn status_of(result: i32) -> i32 {
        match -result {
            // It was sent, and the kernel gave it up: it timed out there, or went with a reset of the controller. No call was interrupted.
            libc::EINTR => libc::ECANCELED,
            errno if errno > 0 => errno,
            _ => Status::from_field(result as u16).recorded(),
        }
    }

    fn reap(&mut self, completions: &mut Vec<Completion>) {
        let before = completions.len();
        if !self.ready.is_empty() {
            completions.append(&mut self.ready);
        }
        let PassthruDrive { plain, polled, trims, ios, backlog, clock, .. } = self;
        for lane in std::iter::once(plain).chain(polled) {
            let take = |entry: &cqueue::Entry32, complete_ns| {
                let status = Self::status_of(entry.result());
                let mut part_is_done = |slot: u32| match ios[slot as usize].done(status) {
                    Follows::Nothing => {}
                    Follows::MoreParts => backlog.push_back(slot),
                    Follows::Completion(status) => completions.push(Completion { slot, complete_ns, status }),
                };
                let number = entry.user_data() as u32;
                match entry.user_data() & TRIM_TAG {
                    0 => part_is_done(number),
                    _ => trims.done(number, part_is_done),
                }
                true
            };
            lane.reap(|| clock.now_ns(), take);
        }
        self.outstanding -= completions.len() - before;
        // What completed made room.
        if !self.backlog.is_empty() || self.trims.has_ready() {
            self.send();
        }
    }

    /// Submits what is queued, and brings completions in without waiting.
    fn collect_all(&mut self) -> io::Result<()> {
        self.plain.collect()?;
        self.polled.as_mut().map_or(Ok(()), WideLane::collect)
    }

    /// Whether everything in flight wakes a sleeper: what the kernel polls for does not.
    fn may_sleep(&self) -> bool {
        self.ready.is_empty()
            && self.plain.in_flight() > 0
            && self.polled.as_ref().is_none_or(|lane| lane.in_flight() == 0)
    }

    fn sleep(&mut self, deadline_ns: i64) -> io::Result<()> {
        let left_ns = (deadline_ns - self.clock.now_ns()).max(0) as u64;
        match self.plain.sleep(left_ns)? {
            true => Ok(()),
            // Such kernels are waited for awake.
            false => self.collect_all(),
        }
    }

    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        match wait {
            Wait::Asleep(deadline_ns) if self.may_sleep() => self.sleep(deadline_ns),
            _ => self.collect_all(),
        }
    }

    fn has_queued(&self) -> bool {
        self.plain.has_queued() || self.polled.as_ref().is_some_and(WideLane::has_queued)
    }
}

impl Drive for PassthruDrive {
    fn identity(&self) -> &DriveIdentity {
        &self.device.block.identity
    }

    fn supports(&self, opcode: Opcode) -> bool {
        self.device.supports(opcode)
    }

    fn trims_together(&self) -> usize {
        self.trims.ranges_max()
    }

    fn is_gone(&self) -> bool {
        self.device.block.is_gone()
    }

    #[inline]
    fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    fn submit(&mut self, slot: u32, command: &Command) -> Result<(), SubmitError> {
        if self.outstanding >= self.ios.len() {
            return Err(SubmitError::Full);
        }
        if command.opcode.modifies() && !self.device.block.writable {
            return Err(SubmitError::ReadOnly);
        }
        if !self.device.supports(command.opcode) {
            return Err(SubmitError::Unsupported);
        }
        self.outstanding += 1;
        let status = match Parts::of(command, self.device.block_size) {
            // Also the block layer answers so, without the drive.
            None => Some(libc::EINVAL),
            Some(io) if io.is_empty() => Some(0),
            Some(mut io) => {
                let length = command.length_bytes as usize;
                io.address = match command.opcode {
                    Opcode::Read => self.buffers.for_read(length) as u64,
                    Opcode::Write => self.buffers.for_write(slot, length) as u64,
                    Opcode::Trim | Opcode::Flush | Opcode::WriteZeroes => 0,
                };
                self.ios[slot as usize] = io;
                None
            }
        };
        match status {
            Some(status) => self.ready.push(Completion { slot, complete_ns: self.clock.now_ns(), status }),
            None if self.backlog.is_empty() && self.send_parts(slot) => {}
            None => self.backlog.push_back(slot),
        }
        Ok(())
    }

    fn kick(&mut self) -> io::Result<()> {
        // The burst of trims is over. The poll that follows submits with the same system call that brings completions in.
        self.trims.close();
        self.send();
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> io::Result<()> {
        let before = completions.len();
        self.trims.close();
        self.send();
        if self.has_queued() {
            // One system call submits, and waits if it may.
            self.enter(wait)?;
        }
        self.reap(completions);
        while completions.len() == before {
            // Entered at least once, also when the deadline has passed: completions come in only then.
            self.enter(wait)?;
            self.reap(completions);
            let (Wait::Until(deadline_ns) | Wait::Asleep(deadline_ns)) = wait else { break };
            if completions.len() > before || self.clock.now_ns() >= deadline_ns {
                break;
            }
            if self.outstanding == 0 {
                self.clock.wait_until_ns(deadline_ns);
                break;
            }
        }
        Ok(())
    }
}

impl Drop for PassthruDrive {
    fn drop(&mut self) {
        if self.outstanding > 0 {
            // Closing a ring waits for what is in flight, which a dead drive never answers, and the kernel may still write to the
            // buffers: all are left to the end of the process, and so is the drive itself.
            std::mem::forget(self.device.clone());
            return;
        }
        // The kernel takes rings apart in its own time, and whoever comes next is to find the drive unclaimed.
        for lane in std::iter::once(&self.plain).chain(&self.polled) {
            let _ = lane.ring.submitter().unregister_files();
        }
        // SAFETY: each is dropped once, here; nothing is in flight, and the rings go before the buffers that they have registered.
        unsafe {
            self.plain.close();
            self.polled.as_mut().into_iter().for_each(|lane| lane.close());
            ManuallyDrop::drop(&mut self.trims);
            ManuallyDrop::drop(&mut self.buffers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_the_kernel_gave_up_is_cancelled_and_not_interrupted() {
        let statuses = [0, 0x281, -libc::EINTR, -libc::EINVAL].map(PassthruDrive::status_of);
        assert_eq!(statuses, [0, 0x1_0281, libc::ECANCELED, libc::EINVAL]);
    }
}
