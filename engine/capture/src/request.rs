//! What is asked of a capture.

use crate::error::CaptureError;
use crate::filter::Recorded;
use crate::target::Target;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testdrive_drives::sysfs::SystemRoots;
use testdrive_recording::RecordingError;

/// All CPUs' buffers together, unless that is too little or too much for one.
const BUFFERS_BYTES: u64 = 128 << 20;
const BUFFER_BYTES_MIN: u64 = 1 << 20;
const BUFFER_BYTES_MAX: u64 = 32 << 20;
/// The buffers take at most this share of the host's memory, unless somebody asks for more.
const MEMORY_SHARE: u64 = 16;

/// What to capture, and where to.
#[derive(Clone, Debug)]
pub struct CaptureRequest {
    /// Paths, kernel names or `major:minor`.
    pub devices: Vec<String>,
    /// The recording to make; with several devices, the folder for one each.
    pub output: PathBuf,
    /// How long; until it is stopped where there is none.
    pub duration: Option<Duration>,
    /// The recordings' size at which to end.
    pub size_max_bytes: Option<u64>,
    /// Which events.
    pub recorded: Recorded,
    /// The kernel's buffer for each CPU; chosen by the host's memory where there is none.
    pub buffer_bytes: Option<u64>,
}

impl CaptureRequest {
    /// The devices, each once.
    ///
    /// # Errors
    /// When one is none, or is named twice, or none is named.
    pub fn targets(&self, roots: &SystemRoots) -> Result<Vec<Target>, CaptureError> {
        let mut targets: Vec<Target> = Vec::new();
        for given in &self.devices {
            let target = Target::find(given, roots)?;
            if targets.iter().any(|other| other.number == target.number) {
                return Err(CaptureError::Usage(format!(
                    "{given} ({}) is named twice: leave one out",
                    target.name
                )));
            }
            targets.push(target);
        }
        if targets.is_empty() {
            return Err(CaptureError::Usage("no device was named: give one, such as /dev/nvme0n1".into()));
        }
        Ok(targets)
    }

    /// Where each target's recording goes.
    ///
    /// # Errors
    /// When something is there already.
    pub fn outputs(&self, targets: &[Target]) -> Result<Vec<PathBuf>, CaptureError> {
        if self.output.symlink_metadata().is_ok() {
            return Err(RecordingError::Exists { path: self.output.clone() }.into());
        }
        match targets {
            [_] => Ok(vec![self.output.clone()]),
            // The kernel writes an exclamation mark in names where the node has a folder.
            several => Ok(several
                .iter()
                .map(|target| self.output.join(format!("{}.rec", target.name.replace('!', "-"))))
                .collect()),
        }
    }

    /// How long it is to last, where that is said.
    pub fn planned_ns(&self) -> Option<u64> {
        self.duration.map(|duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The kernel's buffer for each of so many CPUs.
    pub fn buffer_bytes_per_cpu(&self, cpus: u64, memory_bytes: u64) -> u64 {
        let cpus = cpus.max(1);
        self.buffer_bytes.unwrap_or_else(|| {
            let wanted = (BUFFERS_BYTES / cpus).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
            wanted.min(memory_bytes / MEMORY_SHARE / cpus).max(64 << 10)
        })
    }
}

/// The folder that will hold `output`, as far as it is there.
pub fn existing_folder(output: &Path) -> PathBuf {
    let absolute = std::path::absolute(output).unwrap_or_else(|_| output.to_path_buf());
    absolute.ancestors().find(|folder| folder.is_dir()).map_or_else(|| PathBuf::from("/"), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdrive_traces::Device;

    fn request() -> CaptureRequest {
        CaptureRequest {
            devices: Vec::new(),
            output: "/nowhere/prod.rec".into(),
            duration: None,
            size_max_bytes: None,
            recorded: Recorded::ALL,
            buffer_bytes: None,
        }
    }

    #[test]
    fn buffers_are_large_on_small_hosts_and_bounded_on_large_ones() {
        let of = |cpus, memory_gib: u64| request().buffer_bytes_per_cpu(cpus, memory_gib << 30) >> 20;
        assert_eq!((of(2, 24), of(8, 64), of(64, 512), of(256, 1024)), (32, 16, 2, 1));
        assert_eq!((of(2, 1), of(1, 1)), (32, 32));
        assert_eq!(request().buffer_bytes_per_cpu(4, 512 << 20), 8 << 20);
        let chosen = CaptureRequest { buffer_bytes: Some(4096), ..request() };
        assert_eq!(chosen.buffer_bytes_per_cpu(64, 1 << 40), 4096);
    }

    #[test]
    fn one_device_is_recorded_in_the_output_and_several_each_by_name_in_it() {
        let target = |name: &str| Target::plain(name, Device { major: 8, minor: 0 });
        assert_eq!(request().outputs(&[target("sda")]).unwrap(), [PathBuf::from("/nowhere/prod.rec")]);
        let several = request().outputs(&[target("sda"), target("cciss!c0d0")]).unwrap();
        assert_eq!(
            several,
            ["/nowhere/prod.rec/sda.rec", "/nowhere/prod.rec/cciss-c0d0.rec"].map(PathBuf::from)
        );
        let taken = CaptureRequest { output: "/".into(), ..request() };
        assert_eq!(taken.outputs(&[target("sda")]).unwrap_err().kind(), "usage");
    }

    #[test]
    fn no_device_and_one_named_twice_are_refused() {
        let roots = SystemRoots::default();
        assert!(request().targets(&roots).unwrap_err().to_string().contains("no device"));
        assert_eq!(existing_folder(Path::new("/proc/no/such/x.rec")), Path::new("/proc"));
    }
}
