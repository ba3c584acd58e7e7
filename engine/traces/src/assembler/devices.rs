//! Which device's events are taken.

use crate::event::{BlockEvent, Device, EventKind};
use crate::TraceError;
use std::path::Path;

#[derive(Clone, Copy, Debug)]
struct Seen {
    device: Device,
    queued: u64,
    issued: u64,
    completed_before_choice: u64,
}

impl Seen {
    fn ios(&self) -> u64 {
        self.queued.max(self.issued)
    }
}

/// Counts what each device does, and admits the events of one.
pub(crate) struct Devices {
    wanted: Option<Device>,
    choice: Option<Device>,
    seen: Vec<Seen>,
    last: usize,
}

impl Devices {
    /// `wanted`, or the first that has I/O.
    pub fn new(wanted: Option<Device>) -> Devices {
        Devices { wanted, choice: wanted, seen: Vec::new(), last: 0 }
    }

    /// Whether to take the event. A partition never counts as a device of its own: its bios are mapped onto the disk and
    /// queued there, so that it only ever stands as the origin of a remap.
    pub fn admit(&mut self, event: &BlockEvent) -> bool {
        let choice = self.choice;
        let seen = self.seen_of(event.device);
        match event.kind {
            EventKind::Queue => seen.queued += 1,
            EventKind::Issue => seen.issued += 1,
            EventKind::Complete if choice.is_none() => seen.completed_before_choice += 1,
            EventKind::Complete | EventKind::Requeue | EventKind::Remap { .. } => {}
        }
        if choice.is_none() && matches!(event.kind, EventKind::Queue | EventKind::Issue) {
            self.choice = Some(event.device);
        }
        // A remap comes before the first queue event that would choose its device.
        self.choice == Some(event.device)
    }

    /// Completions of the chosen device that came before anything else of it.
    pub fn completions_before(&self) -> u64 {
        let chosen = self.seen.iter().find(|seen| Some(seen.device) == self.choice);
        chosen.map_or(0, |seen| seen.completed_before_choice)
    }

    /// The device whose I/Os were taken.
    pub fn chosen(&self, first_path: &Path) -> Result<Device, TraceError> {
        let mut with_ios: Vec<(Device, u64)> =
            self.seen.iter().filter(|seen| seen.ios() > 0).map(|seen| (seen.device, seen.ios())).collect();
        with_ios.sort_unstable_by_key(|&(device, ios)| (std::cmp::Reverse(ios), device));
        match (self.wanted, &with_ios[..]) {
            (Some(device), devices) if devices.iter().all(|(other, _)| *other != device) => {
                Err(TraceError::NoSuchDevice { device, devices: with_ios })
            }
            (Some(device), _) => Ok(device),
            (None, [(device, _)]) => Ok(*device),
            (None, []) => Err(TraceError::NoIos {
                path: first_path.to_path_buf(),
                reason: "there is no event of an I/O that was queued or issued; record the trace with queue, issue and \
                         complete events"
                    .into(),
            }),
            (None, _) => Err(TraceError::SeveralDevices { devices: with_ios }),
        }
    }

    fn seen_of(&mut self, device: Device) -> &mut Seen {
        if self.seen.get(self.last).is_none_or(|seen| seen.device != device) {
            self.last = self.seen.iter().position(|seen| seen.device == device).unwrap_or_else(|| {
                self.seen.push(Seen { device, queued: 0, issued: 0, completed_before_choice: 0 });
                self.seen.len() - 1
            });
        }
        &mut self.seen[self.last]
    }
}
