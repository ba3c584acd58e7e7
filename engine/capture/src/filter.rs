//! Which events the kernel writes down: those of the captured devices, so that the others cost nothing.

use crate::decode::TraceEvent;
use crate::target::Target;
use testdrive_traces::Device;

/// Which of the events of an I/O are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// What the workload queued.
    pub queue: bool,
    /// What was issued to the drive.
    pub issue: bool,
    /// What completed.
    pub complete: bool,
}

impl Recorded {
    /// All of them.
    pub const ALL: Recorded = Recorded { queue: true, issue: true, complete: true };

    /// From `queue,issue,complete`, in any order.
    ///
    /// # Errors
    /// When a name is none of these, or nothing could become a row: a sentence.
    pub fn parse(text: &str) -> Result<Recorded, String> {
        let mut recorded = Recorded { queue: false, issue: false, complete: false };
        for name in text.split(',').map(str::trim) {
            match name {
                "queue" => recorded.queue = true,
                "issue" => recorded.issue = true,
                "complete" => recorded.complete = true,
                _ => return Err(format!("'{name}' is none of queue, issue and complete")),
            }
        }
        if recorded.queue || recorded.issue {
            Ok(recorded)
        } else {
            Err("completions alone make no I/Os: record queue or issue events too".into())
        }
    }

    /// As on the command line.
    pub fn names(self) -> Vec<&'static str> {
        let all = [("queue", self.queue), ("issue", self.issue), ("complete", self.complete)];
        all.into_iter().filter(|(_, wanted)| *wanted).map(|(name, _)| name).collect()
    }

    fn wants(self, event: TraceEvent) -> bool {
        match event {
            TraceEvent::BioQueue | TraceEvent::BioRemap => self.queue,
            TraceEvent::RqIssue | TraceEvent::RqRequeue => self.issue,
            TraceEvent::BioComplete | TraceEvent::RqComplete => self.complete,
        }
    }
}

/// An event with what it must be of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// The event.
    pub event: TraceEvent,
    /// In the kernel's own words.
    pub condition: String,
}

/// The kernel's number of a device: twelve bits of major above twenty of minor.
pub fn kernel_number(device: Device) -> u32 {
    device.major << 20 | device.minor
}

/// The filters for a capture of these devices. An event that none of them needs is left out.
pub fn filters(targets: &[Target], recorded: Recorded) -> Vec<EventFilter> {
    let mut filters = Vec::new();
    for event in TraceEvent::ALL.into_iter().filter(|event| recorded.wants(*event)) {
        let mut conditions: Vec<String> = Vec::new();
        for condition in targets.iter().flat_map(|target| conditions_of(target, event)) {
            if !conditions.contains(&condition) {
                conditions.push(condition);
            }
        }
        if !conditions.is_empty() {
            let condition =
                conditions.iter().map(|each| format!("({each})")).collect::<Vec<_>>().join(" || ");
            filters.push(EventFilter { event, condition });
        }
    }
    filters
}

fn conditions_of(target: &Target, event: TraceEvent) -> Vec<String> {
    let device = kernel_number(target.device);
    if event == TraceEvent::BioRemap {
        return remaps(target, device);
    }
    let mut condition = format!("dev == {device}");
    if target.has_hidden_paths && event.is_of_request() {
        // The paths' own numbers are told by no file; they share the driver's.
        let major = target.device.major;
        condition = format!("dev >= {} && dev < {}", major << 20, (major + 1) << 20);
    }
    if let Some(window) = &target.window {
        // A request may begin before the partition, where the kernel merged over its edge; a flush has no place.
        let first = window.first_sector.saturating_sub(window.margin_sectors);
        let end = window.end_sector();
        condition = format!("{condition} && (nr_sector == 0 || (sector >= {first} && sector <= {end}))");
    }
    vec![condition]
}

fn remaps(target: &Target, device: u32) -> Vec<String> {
    if target.has_hidden_paths {
        return vec![format!("old_dev == {device}")];
    }
    let from = target.remapped_from.iter().map(|from| kernel_number(*from));
    from.map(|from| format!("dev == {device} && old_dev == {from}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Window;

    fn target(minor: u32) -> Target {
        Target::plain("nvme0n1", Device { major: 259, minor })
    }

    fn condition(targets: &[Target], event: TraceEvent) -> Option<String> {
        let filters = filters(targets, Recorded::ALL);
        filters.into_iter().find(|filter| filter.event == event).map(|filter| filter.condition)
    }

    const NUMBER: u32 = 259 << 20;

    #[test]
    fn a_disk_is_filtered_by_its_number_and_needs_no_remaps() {
        let targets = [target(0)];
        for event in TraceEvent::ALL.into_iter().filter(|event| *event != TraceEvent::BioRemap) {
            assert_eq!(condition(&targets, event), Some(format!("(dev == {NUMBER})")));
        }
        assert_eq!(condition(&targets, TraceEvent::BioRemap), None);
    }

    #[test]
    fn several_devices_are_taken_together_and_each_once() {
        let found = condition(&[target(0), target(3), target(0)], TraceEvent::RqIssue);
        assert_eq!(found, Some(format!("(dev == {NUMBER}) || (dev == {})", NUMBER + 3)));
    }

    #[test]
    fn a_partition_takes_its_sectors_and_all_flushes() {
        let mut partition = target(0);
        partition.window = Some(Window { first_sector: 2048, sectors: 100, margin_sectors: 2560 });
        let found = condition(&[partition.clone()], TraceEvent::BioQueue).unwrap();
        assert_eq!(
            found,
            format!("(dev == {NUMBER} && (nr_sector == 0 || (sector >= 0 && sector <= 2148)))")
        );
        partition.window = Some(Window { first_sector: 10_000, sectors: 100, margin_sectors: 2560 });
        assert!(condition(&[partition], TraceEvent::RqComplete).unwrap().contains("sector >= 7440 "));
    }

    #[test]
    fn remaps_are_taken_of_those_that_queue_nothing_and_of_multipath_heads() {
        let mut member = target(0);
        member.remapped_from = vec![Device { major: 9, minor: 127 }];
        let found = condition(&[member], TraceEvent::BioRemap).unwrap();
        assert_eq!(found, format!("(dev == {NUMBER} && old_dev == {})", (9 << 20) + 127));
        let mut head = target(1);
        head.has_hidden_paths = true;
        let head = [head];
        assert_eq!(condition(&head, TraceEvent::BioRemap).unwrap(), format!("(old_dev == {})", NUMBER + 1));
        let issues = condition(&head, TraceEvent::RqIssue).unwrap();
        assert_eq!(issues, format!("(dev >= {NUMBER} && dev < {})", 260 << 20));
        assert_eq!(condition(&head, TraceEvent::BioQueue).unwrap(), format!("(dev == {})", NUMBER + 1));
    }

    #[test]
    fn what_is_not_recorded_is_not_switched_on() {
        let recorded = Recorded::parse("issue, complete").unwrap();
        let events: Vec<TraceEvent> =
            filters(&[target(0)], recorded).iter().map(|filter| filter.event).collect();
        use TraceEvent::{BioComplete, RqComplete, RqIssue, RqRequeue};
        assert_eq!(events, [BioComplete, RqIssue, RqRequeue, RqComplete]);
        assert_eq!(recorded.names(), ["issue", "complete"]);
        assert!(Recorded::parse("complete").unwrap_err().contains("alone"));
        assert!(Recorded::parse("queue,isue").unwrap_err().contains("'isue'"));
    }
}
