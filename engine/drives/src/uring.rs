//! The default path: io_uring on a block device or file, with registered file and buffers.

mod entries;

use self::entries::{outcome_of, Entries, FileHandle};
use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::device::{Device, DeviceKind};
use crate::drive::{Drive, QueueOptions, SubmitError, Wait};
use crate::lane::Lane;
use crate::ring::kernel_discards_asynchronously;
use crate::sync::Pool;
use io_uring::{cqueue, IoUring};
use serde_json::Value;
use std::io;
use std::mem::ManuallyDrop;
use testdrive_core::{Command, Completion, Flags, Opcode};
use testdrive_recording::DriveIdentity;

/// Threads that trim where the kernel cannot do so asynchronously.
const TRIM_THREADS: usize = 16;

/// A drive behind io_uring.
pub struct UringDrive {
    plain: Lane,
    /// Reads and writes that the kernel polls for: such a ring cannot flush or trim.
    polled: Option<Lane>,
    device: Device,
    clock: Clock,
    buffers: ManuallyDrop<Buffers>,
    entries: Entries,
    /// Trims by helper threads, where the kernel has no asynchronous discard.
    trim_pool: Option<Pool>,
    /// What a linked flush answered, until its write completes.
    preflush_status: Vec<i32>,
    depth: usize,
}

impl UringDrive {
    /// Whether this host lets the process use io_uring.
    ///
    /// # Errors
    /// The system's answer where it does not.
    pub fn is_available() -> io::Result<()> {
        IoUring::new(2).map(|_| ())
    }

    /// A queue of `depth` slots. To be made on the thread that uses it: the ring takes submissions from one thread only.
    ///
    /// # Errors
    /// When io_uring is forbidden here, or memory cannot be had.
    pub fn new(mut device: Device, options: &QueueOptions) -> io::Result<UringDrive> {
        let QueueOptions { clock, depth, .. } = *options;
        // A write with a preflush takes two entries.
        let entries = depth * 2;
        let (plain, flags) = Lane::new(entries, false)?;
        let polled = if device.polled { Lane::new(entries, true).ok().map(|(lane, _)| lane) } else { None };
        let buffers = Buffers::new(options)?;
        let rings = || std::iter::once(&plain).chain(&polled).map(|lane| &*lane.ring);
        let registered_file = rings().all(|ring| ring.submitter().register_files(&[device.fd()]).is_ok());
        // SAFETY: the regions stay mapped until the rings are gone: `drop` unmaps them last, or never.
        let fixed_buffers =
            rings().all(|ring| unsafe { ring.submitter().register_buffers(&buffers.iovecs()) }.is_ok());
        let asynchronous_trim = device.kind == DeviceKind::File || kernel_discards_asynchronously();
        let trim_pool = if device.trims && device.writable && !asynchronous_trim {
            Some(Pool::start(&device, clock, TRIM_THREADS)?)
        } else {
            None
        };
        let settings = &mut device.identity.settings;
        settings.insert("ring_flags".into(), flags.into());
        settings.insert("registered_buffers".into(), fixed_buffers.into());
        settings.insert("registered_file".into(), registered_file.into());
        settings.insert("polled_completions".into(), polled.is_some().into());
        settings.insert(
            "asynchronous_trim".into(),
            if device.trims { asynchronous_trim.into() } else { Value::Null },
        );
        let file = if registered_file { FileHandle::Registered } else { FileHandle::Plain(device.fd()) };
        Ok(UringDrive {
            plain,
            polled,
            entries: Entries { file, fixed_buffers },
            device,
            clock,
            buffers: ManuallyDrop::new(buffers),
            trim_pool,
            preflush_status: vec![0; depth],
            depth,
        })
    }

    fn outstanding(&self) -> usize {
        let polled = self.polled.as_ref().map_or(0, Lane::in_flight);
        self.plain.in_flight() + polled + self.trim_pool.as_ref().map_or(0, Pool::in_flight)
    }

    fn reap_all(&mut self, completions: &mut Vec<Completion>) {
        let UringDrive { plain, polled, clock, preflush_status, .. } = self;
        for lane in std::iter::once(plain).chain(polled) {
            let take = |entry: &cqueue::Entry, complete_ns| {
                let outcome = outcome_of(entry, preflush_status);
                completions.extend(outcome.map(|(slot, status)| Completion { slot, complete_ns, status }));
                outcome.is_some()
            };
            lane.reap(|| clock.now_ns(), take);
        }
        if let Some(pool) = &mut self.trim_pool {
            pool.reap(completions);
        }
    }

    /// Whether everything in flight wakes a sleeper: what helper threads do, or what the kernel polls for, does not.
    fn may_sleep(&self) -> bool {
        self.plain.in_flight() > 0
            && self.polled.as_ref().is_none_or(|lane| lane.in_flight() == 0)
            && self.trim_pool.as_ref().is_none_or(|pool| pool.in_flight() == 0)
    }

    /// Submits what is queued and sleeps until something completes, or the deadline.
    fn sleep(&mut self, deadline_ns: i64) -> io::Result<()> {
        let left_ns = (deadline_ns - self.clock.now_ns()).max(0) as u64;
        match self.plain.sleep(left_ns)? {
            true => Ok(()),
            // Such kernels are waited for awake.
            false => self.collect_all(),
        }
    }

    /// Lets the kernel bring completions in, and hands it what it would not take before.
    fn collect_all(&mut self) -> io::Result<()> {
        self.plain.collect()?;
        self.polled.as_mut().map_or(Ok(()), Lane::collect)
    }

    fn has_queued(&self) -> bool {
        self.plain.has_queued() || self.polled.as_ref().is_some_and(Lane::has_queued)
    }
}

impl Drive for UringDrive {
    fn identity(&self) -> &DriveIdentity {
        &self.device.identity
    }

    fn begun_ns(&self, slot: u32) -> Option<i64> {
        // Of a command that went by the ring it is at most the begin of an earlier one with its slot, from before it was submitted.
        self.trim_pool.as_ref()?.begun_ns(slot)
    }

    fn supports(&self, opcode: Opcode) -> bool {
        self.device.supports(opcode)
    }

    fn is_gone(&self) -> bool {
        self.device.is_gone()
    }

    #[inline]
    fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    fn submit(&mut self, slot: u32, command: &Command) -> Result<(), SubmitError> {
        if self.outstanding() >= self.depth {
            return Err(SubmitError::Full);
        }
        self.device.check(command.opcode)?;
        if let Some(pool) = self.trim_pool.as_mut().filter(|_| command.opcode == Opcode::Trim) {
            pool.queue(slot, *command, 0);
            return Ok(());
        }
        let preflush = command.opcode == Opcode::Write && command.flags.contains(Flags::PREFLUSH);
        let polls = command.opcode.transfers() && !preflush;
        let entry = self.entries.of(slot, command, &self.device, &mut self.buffers);
        let flush = preflush.then(|| self.entries.preflush(slot));
        let lane = match &mut self.polled {
            Some(lane) if polls => lane,
            _ => &mut self.plain,
        };
        if !lane.has_room_for(2) {
            return Err(SubmitError::Full);
        }
        // SAFETY: what the entries point to are the buffers, mapped until the ring is gone, and the registered file.
        unsafe { lane.push(flush.iter().chain(Some(&entry))) };
        Ok(())
    }

    fn kick(&mut self) -> io::Result<()> {
        if let Some(pool) = &mut self.trim_pool {
            pool.kick();
        }
        // The poll that follows submits to the ring, with the same system call that brings completions in.
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> io::Result<()> {
        let before = completions.len();
        if self.has_queued() {
            // One system call submits, and waits if it may.
            match wait {
                Wait::Asleep(deadline_ns) if self.may_sleep() => self.sleep(deadline_ns)?,
                _ => self.collect_all()?,
            }
        }
        self.reap_all(completions);
        while completions.len() == before {
            // Entered at least once, also when the deadline has passed: completions come in only then.
            match wait {
                Wait::Asleep(deadline_ns) if self.may_sleep() => self.sleep(deadline_ns)?,
                _ => self.collect_all()?,
            }
            self.reap_all(completions);
            let (Wait::Until(deadline_ns) | Wait::Asleep(deadline_ns)) = wait else { break };
            if completions.len() > before || self.clock.now_ns() >= deadline_ns {
                break;
            }
            if self.outstanding() == 0 {
                self.clock.wait_until_ns(deadline_ns);
                break;
            }
        }
        Ok(())
    }
}

impl Drop for UringDrive {
    fn drop(&mut self) {
        if self.outstanding() > 0 {
            // Closing a ring waits for what is in flight, which a dead drive never answers, and the kernel may still write to the
            // buffers: all are left to the end of the process, and so is the drive itself.
            std::mem::forget(self.device.clone());
            return;
        }
        // SAFETY: each is dropped once, here; nothing is in flight, and the rings go before the buffers that they have registered.
        unsafe {
            self.plain.close();
            self.polled.as_mut().into_iter().for_each(|lane| lane.close());
            ManuallyDrop::drop(&mut self.buffers);
        }
    }
}
