//! Names of tracefs instances, and those that captures left behind which were killed together with their guard.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

const PREFIX: &str = "testdrive-";
/// An owner in another container cannot be seen. It opens its instance at once, and the kernel then keeps it; before that it is
/// younger than this.
const YOUNG: Duration = Duration::from_secs(60);

/// Who made an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    pid: u32,
    /// When it started, in clock ticks since boot: numbers of processes come again.
    start_ticks: u64,
    /// In which namespace the number counts.
    pid_namespace: u64,
    /// Which of its instances it is.
    serial: u32,
}

impl Owner {
    fn this_process() -> Owner {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (pid, serial) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Owner { pid, start_ticks: start_ticks(pid).unwrap_or(0), pid_namespace: pid_namespace(), serial }
    }

    fn parse(name: &str) -> Option<Owner> {
        let mut parts = name.strip_prefix(PREFIX)?.split('-');
        let owner = Owner {
            pid: parts.next()?.parse().ok()?,
            start_ticks: parts.next()?.parse().ok()?,
            pid_namespace: parts.next()?.parse().ok()?,
            serial: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(owner)
    }

    fn name(&self) -> String {
        format!("{PREFIX}{}-{}-{}-{}", self.pid, self.start_ticks, self.pid_namespace, self.serial)
    }

    /// Whether it lives; `None` where it cannot be told from here.
    fn is_alive(&self) -> Option<bool> {
        (self.pid_namespace == pid_namespace()).then(|| start_ticks(self.pid) == Some(self.start_ticks))
    }
}

/// A name for an instance of this process.
pub fn own_name() -> String {
    Owner::this_process().name()
}

fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name may hold spaces and brackets, so fields are counted from its last bracket: state is the third.
    stat[stat.rfind(')')? + 1..].split_whitespace().nth(19)?.parse().ok()
}

fn pid_namespace() -> u64 {
    let link = fs::read_link("/proc/self/ns/pid").ok();
    let text = link.as_deref().and_then(Path::to_str).unwrap_or_default();
    text.trim_start_matches("pid:[").trim_end_matches(']').parse().unwrap_or(0)
}

/// Removes the instances of captures that have ended; the kernel refuses to remove one that is in use.
pub fn sweep(instances: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(instances).into_iter().flatten().flatten();
    let stale = entries.filter(|entry| {
        let name = entry.file_name();
        match name.to_str().and_then(Owner::parse).map(|owner| owner.is_alive()) {
            Some(Some(alive)) => !alive,
            Some(None) => is_old(&entry.path()),
            None => false,
        }
    });
    stale.map(|entry| entry.path()).filter(|path| fs::remove_dir(path).is_ok()).collect()
}

fn is_old(path: &Path) -> bool {
    let made = fs::metadata(path).and_then(|metadata| metadata.modified());
    made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > YOUNG))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instances_of_processes_that_are_gone_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let alive = Owner::this_process();
        let mut reused = alive.clone();
        reused.start_ticks += 1;
        let gone = Owner { pid: u32::MAX, ..alive.clone() };
        let elsewhere = Owner { pid_namespace: alive.pid_namespace + 1, ..alive.clone() };
        let names = [alive.name(), reused.name(), gone.name(), elsewhere.name()];
        for name in names.iter().map(String::as_str).chain(["testdrive-x", "testdrive-1-2-3-4-5", "other"]) {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let mut removed = sweep(folder.path());
        removed.sort();
        let mut expected = vec![folder.path().join(&names[1]), folder.path().join(&names[2])];
        expected.sort();
        assert_eq!(removed, expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
    }

    #[test]
    fn a_name_says_who_made_it() {
        let owner = Owner::this_process();
        assert_eq!(Owner::parse(&owner.name()), Some(owner));
        assert_eq!(Owner::parse("testdrive-7"), None);
    }
}
