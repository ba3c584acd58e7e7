//! On which CPUs the submitting threads run.

use crate::error::RunError;
use std::io;
use std::mem::{size_of, zeroed};

/// The CPUs that a kernel's set of fixed size can name.
pub const CPU_MAX: usize = 8 * size_of::<libc::cpu_set_t>();

/// Refuses CPUs that this process may not run on.
///
/// # Errors
/// A usage error that names the CPU.
pub fn check_cpus(cpus: &[usize]) -> Result<(), RunError> {
    if cpus.is_empty() {
        return Ok(());
    }
    // SAFETY: a set of CPUs is plain bits, of which all zero is the empty set.
    let mut allowed: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: the kernel writes at most the given size to the set, which lives here; 0 names this thread.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut allowed) } != 0 {
        // Only a host with more CPUs than the set can name does not tell; pinning itself will.
        return Ok(());
    }
    // SAFETY: the set is initialised, and the numbers are below its size by the check of the job.
    let refused = cpus.iter().find(|&&cpu| cpu >= CPU_MAX || !unsafe { libc::CPU_ISSET(cpu, &allowed) });
    match refused {
        None => Ok(()),
        Some(cpu) => Err(RunError::usage(format!(
            "cpus names {cpu}, on which this process may not run: give CPUs of its own (taskset -p $$ shows them)"
        ))),
    }
}

/// Keeps the calling thread, and those that it starts, on one CPU.
///
/// # Errors
/// What the system answers.
pub fn pin_this_thread(cpu: usize) -> io::Result<()> {
    // SAFETY: as above; the set is filled in before the kernel reads it.
    let mut wanted: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: the number was checked to be within the set.
    unsafe { libc::CPU_SET(cpu, &mut wanted) };
    // SAFETY: the kernel reads the given size of the set, which lives here; 0 names this thread.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &wanted) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_was_put() {
        // SAFETY: the call takes nothing.
        let here = usize::try_from(unsafe { libc::sched_getcpu() }).unwrap();
        check_cpus(&[here]).unwrap();
        std::thread::spawn(move || {
            pin_this_thread(here).unwrap();
            for _ in 0..100 {
                std::thread::yield_now();
                // SAFETY: as above.
                assert_eq!(unsafe { libc::sched_getcpu() }, here as i32);
            }
            // Of all CPUs, only that one is still this thread's.
            let all: Vec<usize> = (0..CPU_MAX).collect();
            assert!(check_cpus(&all).unwrap_err().message.contains("cpus names"));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_no_host_has_is_refused() {
        let refused = check_cpus(&[CPU_MAX]).unwrap_err();
        assert!(refused.message.starts_with("cpus names 1024"), "{refused}");
    }
}
