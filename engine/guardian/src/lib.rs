//! A small process of our own that outlives us by a moment: whatever ends us, even a kill, it puts back what we changed on the host.
//!
//! It is a fork that does nothing but wait on a pipe, in a session of its own, so that a kill of our process group does not reach it.
//! What it will do is written down before the fork, as a list of [`Step`]s. Where both are killed at once, what was left behind is found
//! by whoever left it, at the next start.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Attempts to remove a directory, and the pause between them: the kernel keeps a tracefs instance while files in it are open.
const ATTEMPTS: u32 = 600;
const PAUSE_NS: i64 = 50_000_000;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Removes an empty directory, and tries again for half a minute where it is busy.
    RemoveDirectory(PathBuf),
    /// Removes a file.
    RemoveFile(PathBuf),
    /// Writes a text to a file that is there, in one go, as the kernel's files want it.
    Write {
        /// The file.
        path: PathBuf,
        /// The text.
        text: String,
    },
}

/// A step as the child can do it: it must not allocate.
enum Prepared {
    RemoveDirectory(CString),
    RemoveFile(CString),
    Write(CString, Vec<u8>),
}

impl Prepared {
    fn of(step: &Step) -> io::Result<Prepared> {
        let c_path = |path: &PathBuf| CString::new(path.as_os_str().as_bytes());
        Ok(match step {
            Step::RemoveDirectory(path) => Prepared::RemoveDirectory(c_path(path)?),
            Step::RemoveFile(path) => Prepared::RemoveFile(c_path(path)?),
            Step::Write { path, text } => Prepared::Write(c_path(path)?, text.clone().into_bytes()),
        })
    }
}

/// The process that waits for our end.
pub struct Guardian {
    /// Closed by the kernel when we end, however that happens.
    pipe: Option<File>,
    pid: libc::pid_t,
}

impl Guardian {
    /// Starts a process that does the steps, one after the other and whatever becomes of each, once this one has ended without
    /// [`Guardian::dismiss`]. It keeps the descriptors of `kept` open until it is done.
    ///
    /// # Errors
    /// When the system has no process or pipe left, or a path holds a zero byte.
    pub fn start(steps: &[Step], kept: &[BorrowedFd<'_>]) -> io::Result<Guardian> {
        let steps = steps.iter().map(Prepared::of).collect::<io::Result<Vec<_>>>()?;
        let mut ends = [0; 2];
        // SAFETY: the array has room for the two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both descriptors were just made, and nobody else has them.
        let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        let mut kept: Vec<libc::c_int> = kept.iter().map(|descriptor| descriptor.as_raw_fd()).collect();
        kept.push(read.as_raw_fd());
        kept.sort_unstable();
        kept.dedup();
        // SAFETY: the child only calls functions that are safe after a fork of a process with threads: it allocates nothing and takes
        // no lock.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => wait_and_do(&steps, &kept, read.as_raw_fd()),
            pid => Ok(Guardian { pipe: Some(File::from(write)), pid }),
        }
    }

    /// Ends the process: there is nothing left to do.
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

impl Drop for Guardian {
    fn drop(&mut self) {
        if self.pipe.is_some() {
            // Without a word, the process does its work, and we wait for it.
            self.end(b"");
        }
    }
}

/// The child: waits until the pipe is closed, and does the steps unless it was told that there is nothing to do.
fn wait_and_do(steps: &[Prepared], kept: &[libc::c_int], pipe: libc::c_int) -> ! {
    // SAFETY: only system calls, on memory that the fork has copied; the descriptors are ours.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, c"testdrive-guard".as_ptr());
        libc::chdir(c"/".as_ptr());
        close_all_but(kept);
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
        let mut failed = 0;
        for step in steps {
            failed |= i32::from(!carry_out(step));
        }
        libc::_exit(failed)
    }
}

/// Does one step; whether it worked.
///
/// # Safety
/// As for the child of a fork: nothing is allocated.
unsafe fn carry_out(step: &Prepared) -> bool {
    // SAFETY: the paths end with a zero byte, the text has its length, and the descriptor is used only where it is one.
    unsafe {
        match step {
            Prepared::RemoveDirectory(path) => {
                for _ in 0..ATTEMPTS {
                    if libc::rmdir(path.as_ptr()) == 0 {
                        return true;
                    }
                    if *libc::__errno_location() != libc::EBUSY {
                        return false;
                    }
                    let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE_NS };
                    libc::nanosleep(&pause, std::ptr::null_mut());
                }
                false
            }
            Prepared::RemoveFile(path) => libc::unlink(path.as_ptr()) == 0,
            Prepared::Write(path, text) => {
                let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_TRUNC | libc::O_CLOEXEC);
                if file < 0 {
                    return false;
                }
                let written = libc::write(file, text.as_ptr().cast(), text.len());
                libc::close(file);
                written == text.len() as isize
            }
        }
    }
}

/// Closes what the parent had open: whoever waits for the end of its output must not wait for ours, and files of an instance keep the
/// kernel from removing it.
///
/// # Safety
/// Nothing else in the process may use its descriptors.
unsafe fn close_all_but(kept: &[libc::c_int]) {
    // SAFETY: closing descriptors that are not open is an error without effect.
    unsafe {
        // The gaps between the kept ones, which are in order.
        let mut next: libc::c_uint = 0;
        let mut closed = true;
        for descriptor in kept {
            let descriptor = *descriptor as libc::c_uint;
            if descriptor > next {
                closed &= libc::syscall(libc::SYS_close_range, next, descriptor - 1, 0) == 0;
            }
            next = descriptor + 1;
        }
        closed &= libc::syscall(libc::SYS_close_range, next, libc::c_uint::MAX, 0) == 0;
        if !closed {
            // Linux before 5.9.
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            let most = limit.rlim_cur.min(1 << 20) as libc::c_int;
            (0..most).filter(|descriptor| !kept.contains(descriptor)).for_each(|descriptor| {
                libc::close(descriptor);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsFd as _;

    #[test]
    fn a_guardian_removes_what_was_left_and_leaves_alone_what_it_was_dismissed_from() {
        let folder = tempfile::tempdir().unwrap();
        let (left, kept) = (folder.path().join("left"), folder.path().join("kept"));
        fs::create_dir(&left).unwrap();
        fs::create_dir(&kept).unwrap();
        drop(Guardian::start(&[Step::RemoveDirectory(left.clone())], &[]).unwrap());
        Guardian::start(&[Step::RemoveDirectory(kept.clone())], &[]).unwrap().dismiss();
        assert!(!left.exists() && kept.exists());
    }

    #[test]
    fn every_step_is_tried_in_order_whatever_became_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let (written, note) = (folder.path().join("written"), folder.path().join("note"));
        fs::write(&written, "before").unwrap();
        fs::write(&note, "").unwrap();
        let write = |path: PathBuf, text: &str| Step::Write { path, text: text.into() };
        let steps = [
            write(folder.path().join("absent"), "x"),
            write(written.clone(), "after!"),
            Step::RemoveFile(note.clone()),
        ];
        drop(Guardian::start(&steps, &[]).unwrap());
        assert_eq!(fs::read_to_string(&written).unwrap(), "after!");
        assert!(!note.exists() && !folder.path().join("absent").exists());
    }

    #[test]
    fn what_is_kept_stays_open_for_as_long_as_the_guardian_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locked");
        let file = File::create(&path).unwrap();
        // SAFETY: flock takes a descriptor, which is open, and an integer.
        let lock = |file: &File| unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
        assert_eq!(lock(&file), 0);
        let guardian = Guardian::start(&[], &[file.as_fd()]).unwrap();
        drop(file);
        let other = File::open(&path).unwrap();
        assert_ne!(lock(&other), 0, "the guardian has the lock");
        guardian.dismiss();
        assert_eq!(lock(&other), 0);
    }
}
