//! What becomes of an NVMe controller that the kernel's driver has, while a run goes on: its state in sysfs, looked at again and again.
//!
//! The kernel resets a controller that leaves a command without an answer, and tells whoever waits for the command no more than that it was
//! cancelled, or nothing, where it sends it again. A reset that is over between two looks is not seen.

use crate::drive_paths::is_namespace;
use crate::sysfs::{BlockDevice, SystemRoots};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use testdrive_recording::{DriveEvent, DriveEvents};

/// The controllers of a drive.
#[derive(Debug)]
pub struct ControllerWatch {
    watched: Mutex<Watched>,
}

#[derive(Debug)]
struct Watched {
    controllers: Vec<Controller>,
    events: Vec<DriveEvent>,
}

/// A controller, as it was when it was looked at last.
#[derive(Debug)]
struct Controller {
    state: PathBuf,
    /// Whether it worked when it was looked at before: what it was in the midst of when the run began is none of the run's.
    was_live: bool,
    /// Since when it has been in a reset.
    resets_since_ns: Option<i64>,
    is_gone: bool,
}

impl ControllerWatch {
    /// The controllers of the namespace that an open block device is, or is a partition of; `None` where it is none of an NVMe drive.
    pub fn of(block: &File, roots: &SystemRoots) -> Option<ControllerWatch> {
        let disk = roots.block_device(roots.number_of_handle(block)?).ok()?.whole_disk().ok()?;
        ControllerWatch::of_disk(&disk)
    }

    fn of_disk(disk: &BlockDevice) -> Option<ControllerWatch> {
        let owner = disk.link("device").filter(|_| is_namespace(&disk.name))?;
        let controllers: Vec<Controller> = states(&owner)
            .into_iter()
            .map(|state| {
                let was_live = fs::read_to_string(&state).is_ok_and(|state| state.trim() == "live");
                Controller { state, was_live, resets_since_ns: None, is_gone: false }
            })
            .collect();
        let watched = Mutex::new(Watched { controllers, events: Vec::new() });
        Some(ControllerWatch { watched })
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().expect("no holder of this lock panics")
    }

    /// Looks at each controller once.
    pub fn look(&self, now_ns: i64) {
        let Watched { controllers, events } = &mut *self.lock();
        for controller in controllers.iter_mut().filter(|controller| !controller.is_gone) {
            let state = match fs::read_to_string(&controller.state) {
                Ok(state) => state,
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        || error.raw_os_error() == Some(libc::ENODEV) =>
                {
                    String::new()
                }
                // It says nothing of the controller.
                Err(_) => continue,
            };
            match state.trim() {
                "live" => {
                    controller.was_live = true;
                    if let Some(start_ns) = controller.resets_since_ns.take() {
                        events.push(event("controller_reset", start_ns, now_ns));
                    }
                }
                _ if !controller.was_live => {}
                "new" | "resetting" | "connecting" => {
                    controller.resets_since_ns.get_or_insert(now_ns);
                }
                // Being deleted, given up, or no longer there.
                _ => {
                    controller.is_gone = true;
                    let start_ns = controller.resets_since_ns.take().unwrap_or(now_ns);
                    events.push(event("controller_gone", start_ns, now_ns));
                }
            }
        }
    }

    /// Looks once more, and takes what was seen so far; `None` where that is nothing. A reset that is not over is told as far as it went.
    pub fn take(&self, now_ns: i64) -> Option<DriveEvents> {
        self.look(now_ns);
        let Watched { controllers, events } = &mut *self.lock();
        let unfinished = controllers.iter_mut().filter_map(|controller| controller.resets_since_ns.take());
        events.extend(unfinished.map(|start_ns| event("controller_reset", start_ns, now_ns)));
        events.sort_by_key(|event| event.start_ns);
        let events = std::mem::take(events);
        (!events.is_empty()).then_some(DriveEvents { events, dropped: Vec::new() })
    }
}

/// The states of a controller, or of every controller of a subsystem.
fn states(owner: &Path) -> Vec<PathBuf> {
    let own = owner.join("state");
    if own.exists() {
        return vec![own];
    }
    let entries = fs::read_dir(owner).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path().join("state")).filter(|state| state.exists()).collect();
    found.sort();
    found
}

/// How many commands a reset took away, the kernel does not tell.
fn event(kind: &str, start_ns: i64, end_ns: i64) -> DriveEvent {
    DriveEvent {
        kind: kind.into(),
        start_ns,
        end_ns,
        busy_ns: end_ns - start_ns,
        amount: 1,
        unit: "times".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfs::DeviceNumber;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A namespace of two controllers, whose states are set by their names.
    fn host() -> (TempDir, ControllerWatch) {
        let folder = tempfile::tempdir().unwrap();
        let sys = folder.path();
        for name in ["subsystem/nvme0", "subsystem/nvme1", "subsystem/power", "disk", "dev/block"] {
            fs::create_dir_all(sys.join(name)).unwrap();
        }
        fs::write(sys.join("disk/dev"), "259:0\n").unwrap();
        fs::rename(sys.join("disk"), sys.join("nvme0n1")).unwrap();
        symlink(sys.join("subsystem"), sys.join("nvme0n1/device")).unwrap();
        symlink(sys.join("nvme0n1"), sys.join("dev/block/259:0")).unwrap();
        set(&folder, "nvme0", "live");
        set(&folder, "nvme1", "live");
        let roots = SystemRoots { sys: sys.into(), ..SystemRoots::default() };
        let disk = roots.block_device(DeviceNumber { major: 259, minor: 0 }).unwrap();
        let watch = ControllerWatch::of_disk(&disk).unwrap();
        (folder, watch)
    }

    fn set(folder: &TempDir, controller: &str, state: &str) {
        fs::write(folder.path().join("subsystem").join(controller).join("state"), format!("{state}\n"))
            .unwrap();
    }

    fn seen(watch: &ControllerWatch, now_ns: i64) -> Vec<(String, i64, i64)> {
        let events = watch.take(now_ns).map(|taken| taken.events).unwrap_or_default();
        events.into_iter().map(|event| (event.kind, event.start_ns, event.end_ns)).collect()
    }

    #[test]
    fn a_reset_is_told_once_from_its_first_sight_to_the_controllers_return() {
        let (folder, watch) = host();
        watch.look(1);
        assert_eq!(seen(&watch, 2), []);
        for (now_ns, state) in [(10, "resetting"), (20, "connecting"), (30, "live"), (40, "live")] {
            set(&folder, "nvme1", state);
            watch.look(now_ns);
        }
        assert_eq!(seen(&watch, 50), [("controller_reset".into(), 10, 30)]);
        assert_eq!(seen(&watch, 60), []);
    }

    #[test]
    fn what_a_controller_was_in_the_midst_of_when_the_run_began_is_none_of_the_runs() {
        let (folder, _) = host();
        set(&folder, "nvme0", "connecting");
        set(&folder, "nvme1", "dead");
        let roots = SystemRoots { sys: folder.path().into(), ..SystemRoots::default() };
        let disk = roots.block_device(DeviceNumber { major: 259, minor: 0 }).unwrap();
        let watch = ControllerWatch::of_disk(&disk).unwrap();
        watch.look(10);
        assert_eq!(seen(&watch, 20), []);
        for (now_ns, state) in [(30, "live"), (40, "resetting"), (50, "live")] {
            set(&folder, "nvme0", state);
            watch.look(now_ns);
        }
        assert_eq!(seen(&watch, 60), [("controller_reset".into(), 40, 50)]);
    }

    #[test]
    fn a_reset_that_is_not_over_and_a_controller_that_goes_are_told() {
        let (folder, watch) = host();
        set(&folder, "nvme0", "resetting");
        set(&folder, "nvme1", "deleting (no IO)");
        watch.look(10);
        watch.look(20);
        let expected = [("controller_reset".to_string(), 10, 25), ("controller_gone".into(), 10, 10)];
        let mut found = seen(&watch, 25);
        found.sort_by(|a, b| b.0.cmp(&a.0));
        assert_eq!(found, expected);
        fs::remove_dir_all(folder.path().join("subsystem/nvme0")).unwrap();
        watch.look(30);
        watch.look(40);
        assert_eq!(seen(&watch, 50), [("controller_gone".into(), 30, 30)]);
    }
}
