//! The path for hosts that forbid io_uring: threads that block in pread, pwrite and their kin.

use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::device::{self, Device, DeviceKind};
use crate::drive::{Drive, QueueOptions, SubmitError, Wait};
use crossbeam_channel::{unbounded, Receiver, Sender, TryRecvError};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::RawFd;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use testdrive_core::{Command, Completion, Flags, Opcode};
use testdrive_recording::DriveIdentity;

/// More threads than this gain nothing: each holds one I/O, and drives that need more in flight have io_uring.
const THREADS_MAX: usize = 256;
/// While something is in flight, the wait for it is cut into such pieces to look at the deadline.
const WAIT_SLICE: Duration = Duration::from_millis(1);

/// What a thread of the pool is to do.
struct Task {
    slot: u32,
    command: Command,
    buffer: usize,
}

/// What a thread of the pool did.
struct Done {
    completion: Completion,
    begun_ns: i64,
}

/// Threads that each do one command at a time.
pub(crate) struct Pool {
    /// What no thread has yet: the caller reads the clock between `queue` and `kick`.
    queued: Vec<Task>,
    tasks: Sender<Task>,
    done: Receiver<Done>,
    in_flight: usize,
    /// By slot, when a thread began with what was reaped last.
    begun_ns: Vec<i64>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts `threads` threads over a device.
    pub(crate) fn start(device: &Device, clock: Clock, threads: usize) -> io::Result<Pool> {
        let (tasks, waiting) = unbounded::<Task>();
        let (finished, done) = unbounded();
        let mut started = Vec::new();
        for index in 0..threads.clamp(1, THREADS_MAX) {
            let (waiting, finished, device) = (waiting.clone(), finished.clone(), device.clone());
            // The threads end by themselves when the sender is dropped.
            let thread = thread::Builder::new().name(format!("io-{index}")).spawn(move || {
                for task in waiting {
                    let begun_ns = clock.now_ns();
                    let status = match execute(&device, &task) {
                        Ok(()) => 0,
                        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
                    };
                    let completion = Completion { slot: task.slot, complete_ns: clock.now_ns(), status };
                    if finished.send(Done { completion, begun_ns }).is_err() {
                        return;
                    }
                }
            })?;
            started.push(thread);
        }
        Ok(Pool { queued: Vec::new(), tasks, done, in_flight: 0, begun_ns: Vec::new(), threads: started })
    }

    /// Takes a command. `buffer` is where it reads from or writes to.
    pub(crate) fn queue(&mut self, slot: u32, command: Command, buffer: usize) {
        self.in_flight += 1;
        self.queued.push(Task { slot, command, buffer });
    }

    /// Hands what was taken to the threads that are free next.
    pub(crate) fn kick(&mut self) {
        for task in self.queued.drain(..) {
            self.tasks.send(task).expect("the threads outlive the pool");
        }
    }

    /// When a thread began with the command that was last reaped of a slot.
    pub(crate) fn begun_ns(&self, slot: u32) -> Option<i64> {
        self.begun_ns.get(slot as usize).copied()
    }

    /// Commands not yet reaped, those among them that were not handed over.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Takes what is done.
    pub(crate) fn reap(&mut self, completions: &mut Vec<Completion>) {
        loop {
            match self.done.try_recv() {
                Ok(done) => self.take(done, completions),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    unreachable!("a thread of the pool ended while the pool stands")
                }
            }
        }
    }

    /// Waits for one completion, at most `limit`.
    fn wait(&mut self, limit: Duration, completions: &mut Vec<Completion>) {
        if let Ok(done) = self.done.recv_timeout(limit) {
            self.take(done, completions);
        }
    }

    fn take(&mut self, done: Done, completions: &mut Vec<Completion>) {
        let slot = done.completion.slot as usize;
        if slot >= self.begun_ns.len() {
            self.begun_ns.resize(slot + 1, 0);
        }
        self.begun_ns[slot] = done.begun_ns;
        self.in_flight -= 1;
        completions.push(done.completion);
    }
}

impl Drop for Pool {
    /// Waits for the threads to let go of the device, unless one of them may be stuck in a dead drive.
    fn drop(&mut self) {
        if self.in_flight > 0 {
            return;
        }
        let (nobodys, _) = unbounded();
        drop(std::mem::replace(&mut self.tasks, nobodys));
        for thread in self.threads.drain(..) {
            // One that panicked was noticed by whoever waited for it.
            let _ = thread.join();
        }
    }
}

/// A drive behind blocking calls.
pub struct SyncDrive {
    device: Device,
    clock: Clock,
    buffers: ManuallyDrop<Buffers>,
    pool: Pool,
    depth: usize,
}

impl SyncDrive {
    /// A queue of `depth` slots, with a thread for each (at most 256).
    ///
    /// # Errors
    /// When memory or threads cannot be had.
    pub fn new(device: Device, options: &QueueOptions) -> io::Result<SyncDrive> {
        let QueueOptions { clock, depth, .. } = *options;
        let buffers = ManuallyDrop::new(Buffers::new(options)?);
        let pool = Pool::start(&device, clock, depth)?;
        Ok(SyncDrive { device, clock, buffers, pool, depth })
    }
}

impl Drop for SyncDrive {
    fn drop(&mut self) {
        if self.pool.in_flight() == 0 {
            // SAFETY: the buffers are dropped once, here, and no thread has a task that refers to them. With a task stuck in a
            // dead drive they are leaked instead, since the kernel may still write to them.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
    }
}

impl Drive for SyncDrive {
    fn identity(&self) -> &DriveIdentity {
        &self.device.identity
    }

    fn supports(&self, opcode: Opcode) -> bool {
        self.device.supports(opcode)
    }

    fn is_gone(&self) -> bool {
        self.device.is_gone()
    }

    fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    fn begun_ns(&self, slot: u32) -> Option<i64> {
        self.pool.begun_ns(slot)
    }

    fn submit(&mut self, slot: u32, command: &Command) -> Result<(), SubmitError> {
        if self.pool.in_flight() >= self.depth {
            return Err(SubmitError::Full);
        }
        self.device.check(command.opcode)?;
        let length = command.length_bytes as usize;
        // Here and not in `kick`, which is timed: a buffer may be filled.
        let buffer = match command.opcode {
            Opcode::Read => self.buffers.for_read(length) as usize,
            Opcode::Write => self.buffers.for_write(slot, length) as usize,
            Opcode::Trim | Opcode::Flush | Opcode::WriteZeroes => 0,
        };
        self.pool.queue(slot, *command, buffer);
        Ok(())
    }

    fn kick(&mut self) -> io::Result<()> {
        self.pool.kick();
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> io::Result<()> {
        let before = completions.len();
        self.pool.reap(completions);
        let (Wait::Until(deadline_ns) | Wait::Asleep(deadline_ns)) = wait else { return Ok(()) };
        while completions.len() == before {
            let left_ns = deadline_ns - self.clock.now_ns();
            if left_ns <= 0 {
                break;
            }
            if self.pool.in_flight() == 0 {
                // Asleep: whoever spins here takes a CPU from the threads that are to do the work.
                self.clock.sleep_until_ns(deadline_ns);
                break;
            }
            self.pool.wait(WAIT_SLICE.min(Duration::from_nanos(left_ns as u64)), completions);
        }
        self.pool.reap(completions);
        Ok(())
    }
}

fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// A transfer that is shorter than asked for is an error: the drive ended, or lies about its size.
fn whole(transferred: usize, length: usize) -> io::Result<()> {
    if transferred == length {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EIO))
    }
}

fn sync(fd: RawFd) -> io::Result<()> {
    // SAFETY: fdatasync reads nothing but its integer argument.
    check(unsafe { libc::fdatasync(fd) } as isize).map(|_| ())
}

fn allocate(fd: RawFd, mode: i32, command: &Command) -> io::Result<()> {
    let (offset, length) = (command.offset_bytes as libc::off_t, command.length_bytes as libc::off_t);
    // SAFETY: fallocate reads nothing but its integer arguments.
    check(unsafe { libc::fallocate(fd, mode, offset, length) } as isize).map(|_| ())
}

fn execute(device: &Device, task: &Task) -> io::Result<()> {
    let (fd, command) = (device.fd(), &task.command);
    let (length, offset) = (command.length_bytes as usize, command.offset_bytes as libc::off_t);
    match command.opcode {
        Opcode::Read => {
            // SAFETY: the queue handed out `length` bytes of its read region, which is unmapped only when no task is left;
            // what is read there is never looked at.
            let transferred =
                check(unsafe { libc::pread(fd, task.buffer as *mut libc::c_void, length, offset) })?;
            whole(transferred, length)
        }
        Opcode::Write => {
            if command.flags.contains(Flags::PREFLUSH) {
                sync(fd)?;
            }
            let vector = libc::iovec { iov_base: task.buffer as *mut libc::c_void, iov_len: length };
            let flags = if command.flags.contains(Flags::FUA) { libc::RWF_DSYNC } else { 0 };
            // SAFETY: the vector names `length` bytes of the write region, which is only read.
            whole(check(unsafe { libc::pwritev2(fd, &vector, 1, offset, flags) })?, length)
        }
        Opcode::Flush => sync(fd),
        Opcode::Trim => match device.kind {
            DeviceKind::Block => device::discard(fd, command.offset_bytes, command.length_bytes),
            DeviceKind::File => allocate(fd, device::PUNCH_HOLE, command),
        },
        Opcode::WriteZeroes => allocate(fd, device.zeroes_mode(), command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    const BYTES: usize = 4096;

    #[test]
    fn no_thread_has_a_command_before_it_was_kicked_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
        file.write_all_at(&[7; BYTES], 0).unwrap();
        let file = Arc::new(file);
        let identity = DriveIdentity::default();
        let kind = DeviceKind::File;
        let device =
            Device { file: Arc::clone(&file), kind, writable: true, trims: true, polled: false, identity };
        let clock = Clock::start();
        let mut pool = Pool::start(&device, clock, 2).unwrap();
        let zeroes = Command {
            offset_bytes: 0,
            length_bytes: BYTES as u64,
            opcode: Opcode::WriteZeroes,
            flags: Flags::NONE,
        };
        let content = || {
            let mut bytes = [1; BYTES];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        pool.queue(0, zeroes, 0);
        // Far more time than a thread takes that was given something.
        thread::sleep(Duration::from_millis(100));
        assert_eq!((pool.in_flight(), content()), (1, [7; BYTES]));
        let submit_ns = clock.now_ns();
        pool.kick();
        let mut completions = Vec::new();
        while completions.is_empty() {
            pool.wait(WAIT_SLICE, &mut completions);
        }
        assert_eq!((completions[0].status, pool.in_flight(), content()), (0, 0, [0; BYTES]));
        assert!(completions[0].complete_ns >= submit_ns);
        // Whoever is done with the pool has the device to itself.
        drop(pool);
        drop(device);
        assert_eq!(Arc::strong_count(&file), 1);
    }

    #[test]
    fn a_command_that_waits_for_a_free_thread_has_not_begun() {
        let folder = tempfile::tempdir().unwrap();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(folder.path().join("drive"))
            .unwrap();
        file.write_all_at(&[7; 2 * BYTES], 0).unwrap();
        let device = Device {
            file: Arc::new(file),
            kind: DeviceKind::File,
            writable: true,
            trims: true,
            polled: false,
            identity: DriveIdentity::default(),
        };
        let clock = Clock::start();
        let mut pool = Pool::start(&device, clock, 1).unwrap();
        for slot in 0..2 {
            let command = Command {
                offset_bytes: u64::from(slot) * BYTES as u64,
                length_bytes: BYTES as u64,
                opcode: Opcode::WriteZeroes,
                flags: Flags::NONE,
            };
            pool.queue(slot, command, 0);
        }
        let kicked_ns = clock.now_ns();
        pool.kick();
        let mut completions = Vec::new();
        while completions.len() < 2 {
            pool.wait(WAIT_SLICE, &mut completions);
        }
        // The only thread does one after the other, in their order.
        assert!(pool.begun_ns[0] >= kicked_ns);
        assert!(pool.begun_ns[1] >= completions[0].complete_ns);
        assert!(completions[1].complete_ns >= pool.begun_ns[1]);
    }
}
