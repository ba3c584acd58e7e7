//! Which process writes a recording, and on which host: for people, who may have to find it.

use crate::manifest::{Host, Writer};
use std::fs;

fn trimmed(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_string()).unwrap_or_default()
}

/// The start time of a process in clock ticks since boot: with the pid it names a process for as long as the host is up.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name may hold spaces and brackets, so fields are counted from its last bracket: state is the third.
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_whitespace().nth(19)?.parse().ok()
}

/// This process, as a manifest names it.
pub(crate) fn this_writer() -> Writer {
    let pid = std::process::id();
    Writer {
        pid,
        start_ticks: start_ticks(pid).unwrap_or(0),
        boot_id: trimmed("/proc/sys/kernel/random/boot_id"),
    }
}

/// This host, as a manifest names it.
pub fn this_host() -> Host {
    let meminfo = trimmed("/proc/meminfo");
    let memory_kib: u64 = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse().ok())
        .unwrap_or(0);
    let cpuinfo = trimmed("/proc/cpuinfo");
    let cpu_model = cpuinfo
        .lines()
        .find_map(|line| {
            line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_string())
        })
        .unwrap_or_else(|| std::env::consts::ARCH.to_string());
    Host {
        hostname: trimmed("/proc/sys/kernel/hostname"),
        kernel: trimmed("/proc/sys/kernel/osrelease"),
        cpu_model,
        cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        memory_bytes: memory_kib * 1024,
    }
}
