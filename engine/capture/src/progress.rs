//! What a capture tells while it runs, one JSON object a line. Documented in `docs/job.md`.

use crate::target::Target;
use serde::Serialize;
use std::path::PathBuf;
use testdrive_core::SECTOR_BYTES;
use testdrive_recording::{Counts, DriveIdentity, Dropped, Status, Warning};
use testdrive_traces::{BlockEvent, EventKind, Events};

/// What is told.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The kernel writes events down from now on.
    Started {
        /// As asked for.
        output: PathBuf,
        /// Each with its recording.
        devices: Vec<StartedDevice>,
        /// The kernel's buffer for each CPU.
        buffer_bytes_per_cpu: u64,
        /// How long it is to last.
        planned_ns: Option<u64>,
    },
    /// How far it is.
    Progress(Progress),
    /// Something that makes the figures less valid than they look.
    Warning(Warning),
    /// The recordings are closed.
    Finished {
        /// How.
        status: Status,
        /// Why, where that is not as planned.
        reason: Option<String>,
        /// As asked for.
        output: PathBuf,
        /// What all recordings hold together.
        counts: Totals,
        /// Events that the kernel lost.
        events_lost: u64,
        /// Each device's.
        recordings: Vec<FinishedRecording>,
    },
}

/// A device that is captured.
#[derive(Clone, Debug, Serialize)]
pub struct StartedDevice {
    /// The kernel's name.
    pub device: String,
    /// Its recording.
    pub output: PathBuf,
    /// What it is.
    pub drive: DriveIdentity,
}

/// Figures so far; rates are of the last interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// Since the start.
    pub elapsed_ns: u64,
    /// Done, from 0 to 1, where it can be told.
    pub done_share: Option<f64>,
    /// Events that the kernel lost so far.
    pub events_lost: u64,
    /// Bytes of the recordings so far.
    pub recorded_bytes: u64,
    /// All devices together.
    #[serde(flatten)]
    pub total: DeviceProgress,
    /// Each device.
    pub devices: Vec<DeviceProgress>,
}

/// Figures of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceProgress {
    /// The kernel's name; empty for all together.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// I/Os seen.
    pub ios: u64,
    /// Bytes that they read and write.
    pub bytes: u64,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub throughput_bytes_per_s: f64,
}

/// What recordings hold together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Rows.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that failed.
    pub errors: u64,
    /// From the first to the last, the longest.
    pub span_ns: i64,
}

impl Totals {
    /// Adds a recording's.
    pub fn add(&mut self, counts: &Counts) {
        self.ios += counts.ios;
        self.bytes += counts.bytes;
        self.errors += counts.errors;
        self.span_ns = self.span_ns.max(counts.span_ns);
    }
}

/// A recording that was closed.
#[derive(Clone, Debug, Serialize)]
pub struct FinishedRecording {
    /// The kernel's name of the device.
    pub device: String,
    /// Where it is.
    pub output: PathBuf,
    /// How it ended.
    pub status: Status,
    /// What it holds.
    pub counts: Counts,
    /// What was lost or could not be used.
    pub dropped: Vec<Dropped>,
}

/// Counts what is seen of one device, as it is seen.
#[derive(Clone, Debug, Default)]
struct Meter {
    device: String,
    ios: u64,
    bytes: u64,
    told_ios: u64,
    told_bytes: u64,
}

/// Counts what is seen of all devices.
pub struct Meters {
    meters: Vec<Meter>,
    counted: EventKind,
    told_ns: i64,
    start_ns: i64,
}

impl Meters {
    /// For devices of which queued or issued I/Os are counted, from a time on.
    pub fn new(targets: &[Target], counted: Events, start_ns: i64) -> Meters {
        let meters = targets.iter().map(|target| Meter { device: target.name.clone(), ..Meter::default() });
        let counted = if counted == Events::Queued { EventKind::Queue } else { EventKind::Issue };
        Meters { meters: meters.collect(), counted, told_ns: start_ns, start_ns }
    }

    /// Counts an event of a device.
    #[inline]
    pub fn count(&mut self, index: usize, event: &BlockEvent) {
        if event.kind == self.counted {
            let meter = &mut self.meters[index];
            meter.ios += 1;
            if event.opcode.transfers() {
                meter.bytes = meter.bytes.saturating_add(event.sectors.saturating_mul(SECTOR_BYTES));
            }
        }
    }

    /// When progress was told last.
    pub fn told_ns(&self) -> i64 {
        self.told_ns
    }

    /// What there is to tell now.
    pub fn progress(
        &mut self,
        now_ns: i64,
        planned_ns: Option<u64>,
        events_lost: u64,
        recorded_bytes: u64,
    ) -> Progress {
        let interval_s = (now_ns - self.told_ns).max(1) as f64 / 1e9;
        self.told_ns = now_ns;
        let devices: Vec<DeviceProgress> = self
            .meters
            .iter_mut()
            .map(|meter| {
                let (ios, bytes) = (meter.ios - meter.told_ios, meter.bytes - meter.told_bytes);
                (meter.told_ios, meter.told_bytes) = (meter.ios, meter.bytes);
                DeviceProgress {
                    device: meter.device.clone(),
                    ios: meter.ios,
                    bytes: meter.bytes,
                    iops: ios as f64 / interval_s,
                    throughput_bytes_per_s: bytes as f64 / interval_s,
                }
            })
            .collect();
        let mut total = DeviceProgress::default();
        for device in &devices {
            total.ios += device.ios;
            total.bytes += device.bytes;
            total.iops += device.iops;
            total.throughput_bytes_per_s += device.throughput_bytes_per_s;
        }
        let elapsed_ns = (now_ns - self.start_ns).max(0) as u64;
        let done_share = planned_ns.map(|planned| (elapsed_ns as f64 / planned.max(1) as f64).min(1.0));
        Progress { elapsed_ns, done_share, events_lost, recorded_bytes, total, devices }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdrive_core::{Flags, Opcode};
    use testdrive_traces::Device;

    #[test]
    fn rates_are_of_the_last_interval_and_trims_move_no_bytes() {
        let device = Device { major: 8, minor: 0 };
        let targets = [Target::plain("sda", device), Target::plain("sdb", device)];
        let mut meters = Meters::new(&targets, Events::Queued, 0);
        let event = |opcode, kind| BlockEvent {
            time_ns: 0,
            device,
            kind,
            opcode,
            flags: Flags::NONE,
            sector: 0,
            sectors: 8,
            cpu: 0,
            status: 0,
        };
        for _ in 0..10 {
            meters.count(0, &event(Opcode::Read, EventKind::Queue));
            meters.count(0, &event(Opcode::Read, EventKind::Complete));
            meters.count(1, &event(Opcode::Trim, EventKind::Queue));
        }
        let told = meters.progress(500_000_000, Some(1_000_000_000), 7, 0);
        assert_eq!((told.total.ios, told.total.bytes, told.total.iops), (20, 40_960, 40.0));
        assert_eq!((told.devices[1].iops, told.devices[1].bytes), (20.0, 0));
        assert_eq!((told.done_share, told.events_lost), (Some(0.5), 7));
        let told = meters.progress(1_500_000_000, Some(1_000_000_000), 7, 0);
        assert_eq!((told.total.ios, told.total.iops, told.done_share), (20, 0.0, Some(1.0)));
        let json = serde_json::to_value(Event::Progress(told)).unwrap();
        assert_eq!(
            (&json["event"], &json["ios"], &json["devices"][0]["device"]),
            (&"progress".into(), &20.into(), &"sda".into())
        );
        assert!(json.get("device").is_none());
    }
}
