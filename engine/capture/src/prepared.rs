//! Everything that a capture needs of the kernel, made ready and standing still.

use crate::error::CaptureError;
use crate::filter::filters;
use crate::instance::Instance;
use crate::merge::Merge;
use crate::request::CaptureRequest;
use crate::session::HostRoots;
use crate::stream::{CpuStream, RawPipe};
use crate::target::Target;
use crate::tracefs::{self, refused};
use std::time::Duration;
use testdrive_recording::this_host;

/// The kernel wakes us early when the buffers are a quarter full; an old one does as soon as there is anything.
const ROUND_MIN: Duration = Duration::from_millis(5);

/// An instance with its buffers open.
pub(crate) struct Prepared {
    // Closed before the instance is removed: the kernel keeps an instance with open files.
    pub merge: Merge<RawPipe>,
    pub instance: Instance,
    pub buffer_bytes: u64,
    cpus: Vec<u32>,
}

impl Prepared {
    /// Makes an instance for these targets.
    ///
    /// # Errors
    /// When this host does not let us, with what to do about it.
    pub fn new(
        request: &CaptureRequest,
        targets: &[Target],
        roots: &HostRoots,
    ) -> Result<Prepared, CaptureError> {
        let tracefs = tracefs::find(&roots.trace)?;
        let instance = Instance::create(&tracefs, roots.trace.clone())?;
        let host = this_host();
        let buffer_bytes = request.buffer_bytes_per_cpu(host.cpus, host.memory_bytes);
        instance.configure(buffer_bytes)?;
        let decoder = instance.enable(&filters(targets, request.recorded))?;
        let layout = instance.page_layout()?;
        let cpus = instance.cpus()?;
        let mut streams = Vec::new();
        for &cpu in &cpus {
            let pipe = RawPipe::open(instance.path(), cpu)
                .map_err(|error| refused("read the buffers of", instance.path(), &error, &roots.trace))?;
            streams.push(CpuStream::new(cpu, pipe));
        }
        let merge = Merge::new(streams, decoder, layout, buffer_bytes);
        Ok(Prepared { instance, merge, cpus, buffer_bytes })
    }

    /// Sleeps until the buffers fill, a signal comes, or so long.
    pub fn wait(&self, most: Duration) {
        let mut waiting: Vec<libc::pollfd> = self
            .merge
            .streams()
            .iter()
            .map(|stream| libc::pollfd { fd: stream.source().descriptor(), events: libc::POLLIN, revents: 0 })
            .collect();
        let milliseconds = i32::try_from(most.as_millis()).unwrap_or(i32::MAX);
        let before_ns = monotonic_ns();
        // SAFETY: the array lives for the whole call, and its length is given.
        unsafe { libc::poll(waiting.as_mut_ptr(), waiting.len() as libc::nfds_t, milliseconds) };
        let waited = Duration::from_nanos(monotonic_ns().abs_diff(before_ns));
        std::thread::sleep(ROUND_MIN.min(most).saturating_sub(waited));
    }

    /// Events that were lost so far.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn lost(&self) -> Result<u64, CaptureError> {
        let counted = self.instance.lost(&self.cpus)?.total();
        Ok(counted.max(self.merge.noted().lost))
    }
}

/// CLOCK_MONOTONIC, which is the clock that the instance stamps its events with.
pub(crate) fn monotonic_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives for the whole call, and every kernel has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
