//! What this kernel's io_uring can do: the flags that a ring takes, and whether it discards.

use io_uring::{cqueue, squeue, types, IoUring};
use std::io;
use std::time::Duration;

/// IORING_ENTER_GETEVENTS: the kernel runs deferred completions only for a caller that asks.
const ENTER_GETEVENTS: u32 = 1;

/// Sets up a ring with the best flags that this kernel takes; returns it with their names.
pub(crate) fn build_ring<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    entries: u32,
    completions: u32,
    polled: bool,
) -> io::Result<(IoUring<S, C>, Vec<&'static str>)> {
    // The newest flags are dropped first: DEFER_TASKRUN is of Linux 6.1, SINGLE_ISSUER 6.0, COOP_TASKRUN 5.19.
    const FLAGS: [&str; 3] = ["defer_taskrun", "single_issuer", "coop_taskrun"];
    let mut dropped = 0;
    loop {
        let mut builder = IoUring::<S, C>::builder();
        builder.dontfork().setup_clamp().setup_cqsize(completions);
        for flag in &FLAGS[dropped..] {
            match *flag {
                "defer_taskrun" => builder.setup_defer_taskrun(),
                "single_issuer" => builder.setup_single_issuer(),
                _ => builder.setup_coop_taskrun(),
            };
        }
        if polled {
            builder.setup_iopoll();
        }
        match builder.build(entries) {
            Ok(ring) => return Ok((ring, FLAGS[dropped..].to_vec())),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && dropped < FLAGS.len() => dropped += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Enters the kernel so that it takes what is queued and runs deferred completions, without waiting. Returns how many entries it took.
pub(crate) fn collect<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    ring: &IoUring<S, C>,
    to_submit: usize,
) -> io::Result<usize> {
    // SAFETY: no argument is passed, so there is nothing that must outlive the call.
    let result =
        unsafe { ring.submitter().enter::<libc::sigset_t>(to_submit as u32, 0, ENTER_GETEVENTS, None) };
    match result {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => Ok(0),
        result => result,
    }
}

/// Submits what is queued and sleeps until something completes, or so long. Returns how many entries were taken; `None` where this
/// kernel cannot limit a wait, and nothing was done.
pub(crate) fn sleep<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    ring: &IoUring<S, C>,
    left_ns: u64,
) -> io::Result<Option<usize>> {
    let limit = types::Timespec::from(Duration::from_nanos(left_ns));
    match ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&limit)) {
        Ok(submitted) => Ok(Some(submitted)),
        Err(error) => match error.raw_os_error() {
            Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(Some(0)),
            // Before Linux 5.11 a wait has no limit.
            Some(libc::EINVAL | libc::EBADF) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Whether the kernel discards asynchronously through io_uring: Linux 6.12 and later.
pub(crate) fn kernel_discards_asynchronously() -> bool {
    kernel_is((6, 12))
}

/// Whether a command of NVMe passthrough may be polled for without risking the host: Linux 6.16 and later.
///
/// Until then a command could be completed by a thread that polls for another ring's commands on the same queue. The change that mended
/// it (`nvme: always punt polled uring_cmd end_io work to task_work`) went back to 6.1.y and 6.6.y as well, where the place that it
/// writes the address of a function to is the one that polling takes the request's address from (`cookie` and `task_work_cb` of `struct
/// io_uring_cmd`): there a command that ended and was not collected yet is followed as if that function were a bio or a request. Two
/// failed reads in flight on one ring are enough (6.1.192), or a ring that is closed with one in flight. Releases as distributions name
/// them do not tell whether a kernel has the change: 6.1.0-56 is 6.1.192.
pub(crate) fn kernel_polls_passthrough_soundly() -> bool {
    kernel_is((6, 16))
}

/// Whether the kernel is of this version or later.
fn kernel_is(least: (u32, u32)) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release_is(&release, least)
}

/// Whether a release is of this version or later; one that cannot be read is not.
fn release_is(release: &str, least: (u32, u32)) -> bool {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|text| text.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_compared_by_its_first_two_numbers() {
        let sound = |release| release_is(release, (6, 16));
        assert!(sound("6.16.0-rc1") && sound("6.18\n") && sound("7.0.1-2-pve"));
        assert!(!sound("6.1.0-56-amd64") && !sound("6.12.48+deb13-amd64") && !sound("5.14.0-611.el9.x86_64"));
        assert!(!sound("") && !sound("unknown"));
    }
}
