//! Real loop devices for tests, each detached when its test ends, however it ends.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testdrive_drives::guard::{open_for_run, Access, Consent, GuardedTarget, OpenRequest};
use testdrive_drives::{DriveUri, Refusal};

pub const SIZE_BYTES: u64 = 32 << 20;

/// How long what must come in the end is waited for: far longer than any host is busy, since only a failure takes that long.
pub const LONG: Duration = Duration::from_secs(120);

/// Says that a test cannot run here; where everything must be there, that is a failure.
pub fn skip(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "missing with CI=true: {why}");
    eprintln!("SKIPPED: {why}");
}

/// One test at a time: a process that another test starts shares our open files until it has become its program, and with them the
/// claims that this test believes to have ended.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The turn of a test that needs loop devices, or `None` where there are none.
pub fn loop_turn() -> Option<MutexGuard<'static, ()>> {
    // SAFETY: geteuid takes nothing and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let has = is_root && Path::new("/dev/loop-control").exists() && has_program("losetup");
    if !has {
        skip("loop devices need root, /dev/loop-control and losetup");
    }
    has.then(turn)
}

pub fn has_program(name: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Runs a program of the host; its output, or `None` where it fails.
pub fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output =
        Command::new(program).args(arguments).env("PATH", path).stdin(Stdio::null()).output().ok()?;
    if !output.status.success() {
        eprintln!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

#[track_caller]
pub fn must(program: &str, arguments: &[&str]) -> String {
    run(program, arguments).unwrap_or_else(|| panic!("{program} {arguments:?} failed"))
}

/// An attached loop device, with the file under it.
pub struct Loop {
    pub path: String,
    pub backing: PathBuf,
    folder: Option<TempDir>,
}

impl Loop {
    pub fn new() -> Loop {
        Loop::with(&[])
    }

    /// Options go to losetup.
    pub fn with(options: &[&str]) -> Loop {
        let folder = tempfile::tempdir().unwrap();
        let backing = folder.path().join("backing.img");
        File::create(&backing).unwrap().set_len(SIZE_BYTES).unwrap();
        let mut device = Loop::over(&backing, options);
        device.folder = Some(folder);
        device
    }

    /// Over a file or device that is there.
    pub fn over(backing: &Path, options: &[&str]) -> Loop {
        let mut arguments = vec!["-f", "--show"];
        arguments.extend(options);
        arguments.push(backing.to_str().unwrap());
        // Another process may take the free device between the search and the use of it.
        let path = (0..5).find_map(|_| run("losetup", &arguments)).expect("losetup failed");
        Loop { path, backing: backing.to_path_buf(), folder: None }
    }

    pub fn name(&self) -> &str {
        self.path.strip_prefix("/dev/").unwrap()
    }

    /// The node of a partition, made known to the kernel by hand where it reads no partition tables.
    pub fn partition(&self) -> String {
        let script = format!("printf 'label: gpt\\nstart=2048,size=40960\\n' | sfdisk -q {}", self.path);
        must("sh", &["-c", &script]);
        let node = format!("{}p1", self.path);
        let is_there = || Path::new(&node).exists();
        if !wait_for(Duration::from_millis(500), is_there) {
            // It fails where the kernel was only slow.
            run("addpart", &[&self.path, "1", "2048", "40960"]);
        }
        assert!(wait_for(LONG, is_there), "the kernel shows no {node}");
        node
    }

    pub fn content(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    pub fn write(&self, offset: u64, bytes: &[u8]) {
        let file = OpenOptions::new().write(true).open(&self.path).unwrap();
        file.write_all_at(bytes, offset).unwrap();
        file.sync_all().unwrap();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if Path::new(&format!("{}p1", self.path)).exists() {
            run("partx", &["-d", &self.path]);
        }
        if run("losetup", &["-d", &self.path]).is_none() {
            eprintln!("{} could not be detached", self.path);
        }
    }
}

/// A mounted file system.
pub struct Mounted {
    pub point: TempDir,
}

impl Mounted {
    pub fn new(device: &str) -> Mounted {
        let point = tempfile::tempdir().unwrap();
        must("mount", &[device, point.path().to_str().unwrap()]);
        Mounted { point }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(self.point.path());
    }
}

/// Unmounts what is mounted there. The kernel keeps the files of a ring open for some time after its process is gone, so that this
/// is tried until it works.
pub fn unmount(point: &Path) {
    let place = format!(" {} ", point.display());
    let is_mounted = || fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&place);
    let is_gone = || !is_mounted() || run("umount", &[point.to_str().unwrap()]).is_some();
    assert!(wait_for(LONG, is_gone) || std::thread::panicking(), "{} is still mounted", point.display());
}

/// A process that is ended with its test.
pub struct Held(Child);

impl Held {
    /// Runs a shell script that prints a line when it is ready.
    pub fn by_shell(script: &str) -> Held {
        Held::ready(Command::new("bash").args(["-c", script]))
    }

    pub fn ready(command: &mut Command) -> Held {
        use std::io::{BufRead, BufReader};
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("ready")), "the holder ended before it was ready");
        Held(child)
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn wait_for(limit: Duration, done: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Opens a file for nothing but its claim.
pub fn claim(path: &str) -> File {
    OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(path).unwrap()
}

pub fn consent(erase: &str) -> Consent {
    Consent { erase: Some(erase.into()), erase_signatures: false }
}

pub fn both_consents(erase: &str) -> Consent {
    Consent { erase: Some(erase.into()), erase_signatures: true }
}

pub fn open(uri: &str, access: Access, consent: &Consent) -> Result<GuardedTarget, Refusal> {
    open_with_output(uri, access, consent, None)
}

pub fn open_with_output(
    uri: &str,
    access: Access,
    consent: &Consent,
    output: Option<&Path>,
) -> Result<GuardedTarget, Refusal> {
    let uri = DriveUri::parse(uri).unwrap();
    open_for_run(&OpenRequest { uri: &uri, access, consent, output })
}
