//! A tracefs instance of our own: buffers and switches that no other tracer shares, and that are gone with it.

use crate::decode::{Decoder, TraceEvent};
use crate::error::CaptureError;
use crate::filter::EventFilter;
use crate::layout::{parse_event_format, parse_page_header, PageLayout};
use crate::stale;
use crate::tracefs::{refused, Roots};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use testdrive_guardian::{Guardian, Step};

/// Sub-buffers are at most so large where the kernel lets us choose (6.8 and newer): a system call moves one.
const SUB_BUFFER_KIB_MAX: u64 = 64;
/// A buffer has at least so many sub-buffers, of which the kernel gives away one at a time.
const SUB_BUFFERS_MIN: u64 = 8;
/// How full the buffers are when the kernel wakes us before our time.
const WAKE_PERCENT: u64 = 25;

/// What is not wanted of the options that an instance takes over from the host's own tracing. Recording the names of commands costs
/// every switch between tasks; stacks cost every event.
const OPTIONS: [&str; 7] = [
    "overwrite",
    "norecord-cmd",
    "norecord-tgid",
    "nostacktrace",
    "nouserstacktrace",
    "noevent-fork",
    "nopause-on-trace",
];

/// The instance. Dropped, it is removed.
pub struct Instance {
    path: PathBuf,
    guard: Option<Guardian>,
    roots: Roots,
}

/// What the kernel lost, in events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostEvents {
    /// Overwritten before they were read.
    pub overrun: u64,
    /// Not written at all.
    pub dropped: u64,
}

impl LostEvents {
    /// Both.
    pub fn total(self) -> u64 {
        self.overrun + self.dropped
    }
}

impl Instance {
    /// Makes an instance in the tracefs at `tracefs`, with a guard that removes it however we end.
    ///
    /// # Errors
    /// When the system refuses, with what to do about it.
    pub fn create(tracefs: &Path, roots: Roots) -> Result<Instance, CaptureError> {
        let instances = tracefs.join("instances");
        stale::sweep(&instances);
        let path = instances.join(stale::own_name());
        // The guard is there first, so that there is no moment at which a kill would leave the instance.
        let guard = Guardian::start(&[Step::RemoveDirectory(path.clone())], &[])
            .map_err(|error| refused("guard", &path, &error, &roots))?;
        if let Err(error) = fs::create_dir(&path) {
            guard.dismiss();
            return Err(refused("make", &path, &error, &roots));
        }
        Ok(Instance { path, guard: Some(guard), roots })
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets clock, options and buffers, and stands still until [`Instance::start`].
    ///
    /// # Errors
    /// When the kernel has no such clock or not so much memory.
    pub fn configure(&self, buffer_bytes_per_cpu: u64) -> Result<(), CaptureError> {
        self.set("tracing_on", "0")?;
        self.set("trace_clock", "mono")?;
        for option in OPTIONS {
            // A kernel without the option does not do what it would switch off.
            let _ = fs::write(self.path.join("trace_options"), option);
        }
        // Both are for speed alone: older kernels do without.
        let sub_buffer_kib = buffer_bytes_per_cpu / 1024 / SUB_BUFFERS_MIN;
        let sub_buffer_kib = sub_buffer_kib.clamp(4, SUB_BUFFER_KIB_MAX);
        let _ = fs::write(self.path.join("buffer_subbuf_size_kb"), sub_buffer_kib.to_string());
        let _ = fs::write(self.path.join("buffer_percent"), WAKE_PERCENT.to_string());
        self.set("buffer_size_kb", &buffer_bytes_per_cpu.div_ceil(1024).to_string())
    }

    /// Makes the kernel write these events down, once started, where their filter lets them pass.
    ///
    /// # Errors
    /// When the kernel lacks an event, or its layout is not understood.
    pub fn enable(&self, filters: &[EventFilter]) -> Result<Decoder, CaptureError> {
        let mut formats = Vec::new();
        for filter in filters {
            let folder = format!("events/block/{}", filter.event.name());
            let format = parse_event_format(&self.get(&format!("{folder}/format"))?)
                .map_err(|error| not_understood(filter.event, &error))?;
            formats.push((filter.event, format));
            self.set(&format!("{folder}/filter"), &filter.condition)?;
            self.set(&format!("{folder}/enable"), "1")?;
        }
        Decoder::new(&formats).map_err(|(event, error)| not_understood(event, &error))
    }

    /// How the pages of its buffers are laid out.
    ///
    /// # Errors
    /// When the kernel's description is not understood.
    pub fn page_layout(&self) -> Result<PageLayout, CaptureError> {
        let place = "events/header_page";
        parse_page_header(&self.get(place)?).map_err(|error| {
            let place = self.path.join(place);
            CaptureError::Unavailable(format!(
                "{} is not understood: {error}; please report it",
                place.display()
            ))
        })
    }

    /// Switches all events on at once.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(&self) -> Result<(), CaptureError> {
        self.set("tracing_on", "1")
    }

    /// Switches all events off; what was written can still be read.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn stop(&self) -> Result<(), CaptureError> {
        self.set("tracing_on", "0")
    }

    /// The CPUs that can have a buffer, also those that are not running now.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn cpus(&self) -> Result<Vec<u32>, CaptureError> {
        let folder = self.path.join("per_cpu");
        let entries = fs::read_dir(&folder).map_err(|error| refused("list", &folder, &error, &self.roots))?;
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut cpus: Vec<u32> =
            names.filter_map(|name| name.to_str()?.strip_prefix("cpu")?.parse().ok()).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// What was lost on all CPUs since the start.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn lost(&self, cpus: &[u32]) -> Result<LostEvents, CaptureError> {
        let mut lost = LostEvents::default();
        for cpu in cpus {
            let text = self.get(&format!("per_cpu/cpu{cpu}/stats"))?;
            let number = |key: &str| -> u64 {
                let value = text.lines().find_map(|line| line.strip_prefix(key));
                value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
            };
            lost.overrun += number("overrun:") + number("commit overrun:");
            lost.dropped += number("dropped events:");
        }
        Ok(lost)
    }

    /// Takes the instance away; its files must be closed.
    ///
    /// # Errors
    /// When the kernel keeps it; the guard goes on trying.
    pub fn remove(mut self) -> Result<(), CaptureError> {
        self.take_away().map_err(|error| refused("remove", &self.path, &error, &self.roots))
    }

    fn take_away(&mut self) -> io::Result<()> {
        let Some(guard) = self.guard.take() else { return Ok(()) };
        // Without a word of ours the guard removes what we could not.
        fs::remove_dir(&self.path)?;
        guard.dismiss();
        Ok(())
    }

    fn get(&self, relative: &str) -> Result<String, CaptureError> {
        let path = self.path.join(relative);
        read_at_once(&path).map_err(|error| refused("read", &path, &error, &self.roots))
    }

    fn set(&self, relative: &str, value: &str) -> Result<(), CaptureError> {
        let path = self.path.join(relative);
        fs::write(&path, value)
            .map_err(|error| refused(&format!("write '{value}' to"), &path, &error, &self.roots))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.take_away();
    }
}

/// Some files of tracefs say everything at the first read and nothing at a second, however little the first one took.
fn read_at_once(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let (mut text, mut portion) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut portion)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            length => text.extend_from_slice(&portion[..length]),
        }
    }
}

fn not_understood(event: TraceEvent, error: &dyn std::fmt::Display) -> CaptureError {
    let name = event.name();
    CaptureError::Unavailable(format!(
        "the kernel's event {name} is not understood: {error}; please report it"
    ))
}
