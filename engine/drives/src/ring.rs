//! What this kernel's io_uring can do: the flags that a ring takes, and whether it discards.

use io_uring::IoUring;
use std::io;

/// Sets up a ring with the best flags that this kernel takes; returns it with their names.
pub(crate) fn build_ring(
    entries: u32,
    completions: u32,
    polled: bool,
) -> io::Result<(IoUring, Vec<&'static str>)> {
    // The newest flags are dropped first: DEFER_TASKRUN is of Linux 6.1, SINGLE_ISSUER 6.0, COOP_TASKRUN 5.19.
    const FLAGS: [&str; 3] = ["defer_taskrun", "single_issuer", "coop_taskrun"];
    let mut dropped = 0;
    loop {
        let mut builder = IoUring::builder();
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

/// Whether the kernel discards asynchronously through io_uring: Linux 6.12 and later.
pub(crate) fn kernel_discards_asynchronously() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|text| text.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(12))
}
