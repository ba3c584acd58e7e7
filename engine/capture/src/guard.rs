//! A small process of our own that outlives us by a moment: whatever ends the capture, even a kill, it takes the tracefs instance
//! away.
//!
//! It is a fork that does nothing but wait on a pipe, in a session of its own, so that a kill of our process group does not reach it.
//! Where both are killed at once, the next capture takes away what is left (`stale.rs`).

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Attempts to remove the instance, and the pause between them: the kernel keeps it while files in it are open.
const ATTEMPTS: u32 = 600;
const PAUSE_NS: i64 = 50_000_000;

/// The process that waits for our end.
pub struct Guard {
    /// Closed by the kernel when we end, however that happens.
    pipe: Option<File>,
    pid: libc::pid_t,
}

impl Guard {
    /// Starts a process that removes the instance at `path` once this one has ended without [`Guard::dismiss`].
    ///
    /// # Errors
    /// When the system has no process or pipe left.
    pub fn start(path: &Path) -> io::Result<Guard> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let mut ends = [0; 2];
        // SAFETY: the array has room for the two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both descriptors were just made, and nobody else has them.
        let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        // SAFETY: the child only calls functions that are safe after a fork of a process with threads: it allocates nothing and takes
        // no lock.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => wait_and_remove(&path, read.as_raw_fd()),
            pid => Ok(Guard { pipe: Some(File::from(write)), pid }),
        }
    }

    /// Ends the process: there is nothing left to remove.
    pub fn dismiss(mut self) {
        self.end(b"done");
    }

    fn end(&mut self, word: &[u8]) {
        if let Some(mut pipe) = self.pipe.take() {
            // Where the process is gone already, there is nobody to tell.
            let _ = pipe.write_all(word);
        }
        // SAFETY: the process is our child, and waiting for it needs no status.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.pipe.is_some() {
            // Without a word, the process does its work, and we wait for it.
            self.end(b"");
        }
    }
}

/// The child: waits until the pipe is closed, and removes the instance unless it was told that this is done.
fn wait_and_remove(path: &CString, pipe: libc::c_int) -> ! {
    // SAFETY: only system calls, on memory that the fork has copied; the pipe's descriptor is ours.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, c"testdrive-guard".as_ptr());
        libc::chdir(c"/".as_ptr());
        close_all_but(pipe);
        let mut word = [0_u8; 4];
        let told = loop {
            match libc::read(pipe, word.as_mut_ptr().cast(), word.len()) {
                -1 if *libc::__errno_location() == libc::EINTR => {}
                count => break count > 0,
            }
        };
        if told {
            libc::_exit(0);
        }
        for _ in 0..ATTEMPTS {
            if libc::rmdir(path.as_ptr()) == 0 || *libc::__errno_location() != libc::EBUSY {
                libc::_exit(0);
            }
            let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE_NS };
            libc::nanosleep(&pause, std::ptr::null_mut());
        }
        libc::_exit(1)
    }
}

/// Closes what the parent had open: whoever waits for the end of its output must not wait for ours, and files of an instance keep the
/// kernel from removing it.
///
/// # Safety
/// Nothing else in the process may use its descriptors.
unsafe fn close_all_but(kept: libc::c_int) {
    // SAFETY: closing descriptors that are not open is an error without effect.
    unsafe {
        let (below, above) = (kept as libc::c_uint, kept as libc::c_uint + 1);
        let closed = (below == 0 || libc::syscall(libc::SYS_close_range, 0, below - 1, 0) == 0)
            && libc::syscall(libc::SYS_close_range, above, libc::c_uint::MAX, 0) == 0;
        if !closed {
            // Linux before 5.9.
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            let most = limit.rlim_cur.min(1 << 20) as libc::c_int;
            (0..most).filter(|descriptor| *descriptor != kept).for_each(|descriptor| {
                libc::close(descriptor);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_guard_removes_what_was_left_and_leaves_alone_what_it_was_dismissed_from() {
        let folder = tempfile::tempdir().unwrap();
        let (left, kept) = (folder.path().join("left"), folder.path().join("kept"));
        fs::create_dir(&left).unwrap();
        fs::create_dir(&kept).unwrap();
        drop(Guard::start(&left).unwrap());
        Guard::start(&kept).unwrap().dismiss();
        assert!(!left.exists() && kept.exists());
    }
}
