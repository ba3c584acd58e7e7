//! Which recording an event belongs to, and where it is on that recording's device.

use crate::target::{Target, Window};
use std::collections::HashMap;
use testdrive_traces::{BlockEvent, Device, EventKind};

/// Sends events to targets.
pub struct Router {
    /// The targets whose events carry a number: a disk and its partitions may be captured at once. There are few devices, and a list
    /// is searched faster than a table.
    by_device: Vec<(Device, Vec<usize>)>,
    windows: Vec<Option<Window>>,
    /// Paths that were seen to carry the I/Os of a multipath head.
    paths: HashMap<Device, Device>,
    heads: Vec<Device>,
}

impl Router {
    /// For these targets.
    pub fn new(targets: &[Target]) -> Router {
        let mut by_device: Vec<(Device, Vec<usize>)> = Vec::new();
        for (index, target) in targets.iter().enumerate() {
            match by_device.iter_mut().find(|(device, _)| *device == target.device) {
                Some((_, indices)) => indices.push(index),
                None => by_device.push((target.device, vec![index])),
            }
        }
        let heads =
            targets.iter().filter(|target| target.has_hidden_paths).map(|target| target.device).collect();
        let windows = targets.iter().map(|target| target.window).collect();
        Router { by_device, windows, paths: HashMap::new(), heads }
    }

    /// The targets that count something of a device.
    pub fn targets_of(&self, device: Device) -> &[usize] {
        let device = *self.paths.get(&device).unwrap_or(&device);
        self.by_device.iter().find(|(own, _)| *own == device).map_or(&[], |(_, indices)| indices)
    }

    /// Hands each target its own view of the event.
    pub fn route(&mut self, mut event: BlockEvent, mut take: impl FnMut(usize, BlockEvent)) {
        if let EventKind::Remap { from, .. } = event.kind {
            if self.heads.contains(&from) {
                self.paths.insert(event.device, from);
                return;
            }
        }
        if !self.paths.is_empty() {
            event.device = *self.paths.get(&event.device).unwrap_or(&event.device);
        }
        for &index in self.targets_of(event.device) {
            match &self.windows[index] {
                None => take(index, event),
                Some(window) => clip(event, window).into_iter().for_each(|event| take(index, event)),
            }
        }
    }
}

/// The part of an event that lies in a partition, with places counted from its start.
fn clip(mut event: BlockEvent, window: &Window) -> Option<BlockEvent> {
    let (first, end) = (window.first_sector, window.end_sector());
    if event.sectors == 0 {
        // A flush has no place, and is of the whole drive. The end of a flush sequence stands at its write, or right behind it.
        if event.sector == 0 || event.sector == u64::MAX {
            return Some(event);
        }
        event.sector = event.sector.checked_sub(first).filter(|sector| *sector <= window.sectors)?;
        return Some(event);
    }
    // The kernel may merge over the partition's edges: what is beyond them belongs to others.
    let (start, stop) = (event.sector.max(first), event.end().min(end));
    if start >= stop {
        return None;
    }
    (event.sector, event.sectors) = (start - first, stop - start);
    Some(event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdrive_core::{Flags, Opcode};

    const DISK: Device = Device { major: 259, minor: 0 };
    const PATH: Device = Device { major: 259, minor: 9 };

    fn event(device: Device, kind: EventKind, sector: u64, sectors: u64) -> BlockEvent {
        let (opcode, flags) = (Opcode::Write, Flags::NONE);
        BlockEvent { time_ns: 1, device, kind, opcode, flags, sector, sectors, cpu: 0, status: 0 }
    }

    /// Each target with sector and length.
    fn routed(router: &mut Router, event: BlockEvent) -> Vec<(usize, u64, u64)> {
        let mut found = Vec::new();
        router.route(event, |index, event| found.push((index, event.sector, event.sectors)));
        found
    }

    #[test]
    fn a_disk_and_its_partition_each_see_their_own_places() {
        let disk = Target::plain("sda", DISK);
        let mut partition = Target::plain("sda1", DISK);
        partition.window = Some(Window { first_sector: 100, sectors: 50, margin_sectors: 0 });
        let mut router = Router::new(&[disk, partition]);
        let mut at = |sector, sectors| routed(&mut router, event(DISK, EventKind::Issue, sector, sectors));
        assert_eq!(at(120, 8), [(0, 120, 8), (1, 20, 8)]);
        assert_eq!(at(90, 20), [(0, 90, 20), (1, 0, 10)]);
        assert_eq!(at(140, 20), [(0, 140, 20), (1, 40, 10)]);
        assert_eq!(at(80, 200), [(0, 80, 200), (1, 0, 50)]);
        assert_eq!(at(150, 8), [(0, 150, 8)]);
        assert_eq!(at(92, 8), [(0, 92, 8)]);
        // Flushes are of every partition; the end of a flush sequence is of the one with its write.
        assert_eq!(at(0, 0), [(0, 0, 0), (1, 0, 0)]);
        assert_eq!(at(u64::MAX, 0), [(0, u64::MAX, 0), (1, u64::MAX, 0)]);
        assert_eq!(at(120, 0), [(0, 120, 0), (1, 20, 0)]);
        assert_eq!(at(160, 0), [(0, 160, 0)]);
    }

    #[test]
    fn a_hidden_path_is_learned_from_the_first_remap_onto_it() {
        let mut head = Target::plain("nvme0n1", DISK);
        head.has_hidden_paths = true;
        let mut router = Router::new(&[head]);
        assert_eq!(routed(&mut router, event(PATH, EventKind::Issue, 8, 8)), []);
        let remap = EventKind::Remap { from: DISK, from_sector: 8 };
        assert_eq!(routed(&mut router, event(PATH, remap, 8, 8)), []);
        assert_eq!(routed(&mut router, event(PATH, EventKind::Issue, 8, 8)), [(0, 8, 8)]);
        assert_eq!(router.targets_of(PATH), [0]);
    }

    #[test]
    fn events_of_other_devices_go_nowhere() {
        let mut router = Router::new(&[Target::plain("sda", DISK)]);
        assert_eq!(routed(&mut router, event(PATH, EventKind::Queue, 8, 8)), []);
        assert!(router.targets_of(PATH).is_empty());
    }
}
