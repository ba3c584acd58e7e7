//! The kernel's trace file system: where it is, and in plain words why it cannot be used.

use crate::error::CaptureError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the kernel's file systems are. Other places than the usual serve tests.
#[derive(Clone, Debug)]
pub struct Roots {
    /// Where tracefs should be.
    pub usual: PathBuf,
    /// The table of mounts.
    pub mounts: PathBuf,
    /// The kernel's state of lockdown.
    pub lockdown: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots {
            usual: "/sys/kernel/tracing".into(),
            mounts: "/proc/self/mounts".into(),
            lockdown: "/sys/kernel/security/lockdown".into(),
        }
    }
}

/// Where tracefs is mounted, with the block layer's events in it.
///
/// # Errors
/// When it is not mounted, may not be looked at, or has no such events.
pub fn find(roots: &Roots) -> Result<PathBuf, CaptureError> {
    let mounts = fs::read_to_string(&roots.mounts).unwrap_or_default();
    let mut places: Vec<PathBuf> = mounts.lines().filter_map(mount_point).collect();
    // Some hosts show it in two places; the usual one is the one that people know.
    places.sort_by_key(|place| *place != roots.usual);
    let Some(place) = places.into_iter().next() else { return Err(not_mounted(roots)) };
    match fs::metadata(place.join("events/block")) {
        Ok(_) => Ok(place),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(CaptureError::Unavailable(format!(
            "{} has no block events: this kernel was built without CONFIG_BLOCK or CONFIG_EVENT_TRACING; capture on another \
             kernel, or trace with a tool that needs neither and import that",
            place.display()
        ))),
        Err(error) => Err(refused("look into", &place, &error, roots)),
    }
}

/// The mount point of a line of the table, if it is a tracefs.
fn mount_point(line: &str) -> Option<PathBuf> {
    let mut words = line.split(' ');
    let (_source, place, kind) = (words.next()?, words.next()?, words.next()?);
    (kind == "tracefs").then(|| PathBuf::from(place.replace("\\040", " ")))
}

fn not_mounted(roots: &Roots) -> CaptureError {
    let usual = roots.usual.display();
    let message = if roots.usual.is_dir() {
        format!(
            "tracefs, in which the kernel tells of I/O, is not mounted: run 'mount -t tracefs tracefs {usual}' as root (in a \
             container, pass {usual} of the host in), then capture again"
        )
    } else {
        format!(
            "there is no {usual}: this kernel has no tracing (CONFIG_TRACING), or the container hides it; capture on the host, \
             or pass {usual} of the host in"
        )
    };
    CaptureError::Unavailable(message)
}

/// An answer of the system on tracefs, in words that say what to do.
pub fn refused(action: &str, path: &Path, error: &io::Error, roots: &Roots) -> CaptureError {
    let shown = path.display();
    let locked = fs::read_to_string(&roots.lockdown).is_ok_and(|state| state.contains("[confidentiality]"));
    // SAFETY: geteuid takes nothing and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let message = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) if locked => format!(
            "cannot {action} {shown}: the kernel is locked down (confidentiality), which forbids tracing even to root; boot it \
             without lockdown=confidentiality to capture here"
        ),
        Some(libc::EPERM | libc::EACCES) if !is_root => {
            format!("cannot {action} {shown}: capturing needs root; run it with sudo")
        }
        Some(libc::EPERM | libc::EACCES) => format!(
            "cannot {action} {shown} ({error}) although this is root: in a container, run it with --privileged or on the host"
        ),
        Some(libc::EROFS) => format!(
            "cannot {action} {shown}: tracefs is read-only here; in a container, run it with --privileged or on the host"
        ),
        Some(libc::ENOMEM) => format!(
            "cannot {action} {shown}: the kernel has not so much memory for the buffers; give a smaller --buffer"
        ),
        _ => format!("cannot {action} {shown}: {error}"),
    };
    CaptureError::Unavailable(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Host(tempfile::TempDir, Roots);

    /// A host whose tracefs is a folder.
    fn host(mounted: bool) -> Host {
        let folder = tempfile::tempdir().unwrap();
        let usual = folder.path().join("tracing");
        fs::create_dir_all(usual.join("events/block")).unwrap();
        let line = format!("none {} tracefs rw 0 0\n", usual.display());
        let mounts = folder.path().join("mounts");
        fs::write(&mounts, if mounted { &line } else { "proc /proc proc rw 0 0\n" }).unwrap();
        let lockdown = folder.path().join("lockdown");
        Host(folder, Roots { usual, mounts, lockdown })
    }

    #[test]
    fn the_usual_place_wins_over_the_one_in_debugfs() {
        let Host(folder, roots) = host(true);
        let other = folder.path().join("debug/tracing");
        fs::create_dir_all(other.join("events/block")).unwrap();
        let lines =
            format!("a {} tracefs rw 0 0\nb {} tracefs rw 0 0\n", other.display(), roots.usual.display());
        fs::write(&roots.mounts, lines).unwrap();
        assert_eq!(find(&roots).unwrap(), roots.usual);
    }

    #[test]
    fn what_is_missing_is_said_with_what_to_do() {
        let Host(_folder, roots) = host(false);
        let said = find(&roots).unwrap_err();
        assert!(said.to_string().contains("mount -t tracefs tracefs"), "{said}");
        assert_eq!((said.kind(), said.exit_status()), ("unavailable", 2));
        fs::remove_dir_all(&roots.usual).unwrap();
        assert!(find(&roots).unwrap_err().to_string().contains("CONFIG_TRACING"));
        let Host(_folder, roots) = host(true);
        fs::remove_dir(roots.usual.join("events/block")).unwrap();
        assert!(find(&roots).unwrap_err().to_string().contains("no block events"));
    }

    #[test]
    fn a_refusal_says_which_right_or_state_is_in_the_way() {
        let Host(_folder, roots) = host(true);
        let said =
            |errno| refused("make", &roots.usual, &io::Error::from_raw_os_error(errno), &roots).to_string();
        assert!(said(libc::EROFS).contains("read-only"));
        assert!(said(libc::ENOMEM).contains("--buffer"));
        // SAFETY: geteuid takes nothing and cannot fail.
        let remedy = if unsafe { libc::geteuid() } == 0 { "--privileged" } else { "sudo" };
        assert!(said(libc::EACCES).contains(remedy), "{}", said(libc::EACCES));
        fs::write(&roots.lockdown, "none integrity [confidentiality]\n").unwrap();
        assert!(said(libc::EPERM).contains("locked down"));
    }
}
