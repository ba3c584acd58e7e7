//! The block layer's trace events in binary, decoded by the layout that the running kernel gives.

use crate::layout::{EventLayout, Field, LayoutError};
use crate::page::number;
use testdrive_traces::{parse_rwbs, BlockEvent, Device, EventKind, Rwbs};

/// The events that a capture may need, by the kernel's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraceEvent {
    /// A bio entered the block layer.
    BioQueue,
    /// A bio of another device was mapped onto this one.
    BioRemap,
    /// A bio ended that was never a request: of device mapper and other devices without requests, or failed early.
    BioComplete,
    /// A request was handed to the driver.
    RqIssue,
    /// The driver gave a request back.
    RqRequeue,
    /// A request completed.
    RqComplete,
}

impl TraceEvent {
    /// All of them.
    pub const ALL: [TraceEvent; 6] = [
        TraceEvent::BioQueue,
        TraceEvent::BioRemap,
        TraceEvent::BioComplete,
        TraceEvent::RqIssue,
        TraceEvent::RqRequeue,
        TraceEvent::RqComplete,
    ];

    /// Its folder below `events/block`.
    pub fn name(self) -> &'static str {
        match self {
            TraceEvent::BioQueue => "block_bio_queue",
            TraceEvent::BioRemap => "block_bio_remap",
            TraceEvent::BioComplete => "block_bio_complete",
            TraceEvent::RqIssue => "block_rq_issue",
            TraceEvent::RqRequeue => "block_rq_requeue",
            TraceEvent::RqComplete => "block_rq_complete",
        }
    }

    /// Whether it is of a request, and not of a bio.
    pub fn is_of_request(self) -> bool {
        matches!(self, TraceEvent::RqIssue | TraceEvent::RqRequeue | TraceEvent::RqComplete)
    }
}

/// Where one event's fields are.
#[derive(Clone, Debug)]
struct Layout {
    event: TraceEvent,
    dev: Field,
    sector: Field,
    nr_sector: Field,
    rwbs: Field,
    error: Option<Field>,
    old: Option<(Field, Field)>,
}

impl Layout {
    fn new(event: TraceEvent, format: &EventLayout) -> Result<Layout, LayoutError> {
        let rwbs = format.find("rwbs").map_or_else(|| format.field("rwbs", &[8]), Ok)?;
        let old = match event {
            TraceEvent::BioRemap => {
                Some((format.field("old_dev", &[4])?, format.field("old_sector", &[4, 8])?))
            }
            _ => None,
        };
        let completes = matches!(event, TraceEvent::BioComplete | TraceEvent::RqComplete);
        Ok(Layout {
            event,
            dev: format.field("dev", &[4])?,
            sector: format.field("sector", &[4, 8])?,
            nr_sector: format.field("nr_sector", &[4])?,
            rwbs,
            // Kernels before 4.14 call it otherwise for requests; they are told apart by the name that is there.
            error: ["error", "errors"].into_iter().filter_map(|name| format.find(name)).find(|_| completes),
            old,
        })
    }

    fn kind(&self, record: &[u8]) -> Option<EventKind> {
        Some(match self.event {
            TraceEvent::BioQueue => EventKind::Queue,
            TraceEvent::RqIssue => EventKind::Issue,
            TraceEvent::RqRequeue => EventKind::Requeue,
            TraceEvent::RqComplete | TraceEvent::BioComplete => EventKind::Complete,
            TraceEvent::BioRemap => {
                let (old_dev, old_sector) = self.old?;
                let from = Device::from_kernel(number(record, old_dev)? as u32);
                EventKind::Remap { from, from_sector: number(record, old_sector)? }
            }
        })
    }

    fn decode(&self, record: &[u8], time_ns: i64, cpu: i32) -> Option<Decoded> {
        let device = Device::from_kernel(number(record, self.dev)? as u32);
        let (sector, sectors) = (number(record, self.sector)?, number(record, self.nr_sector)?);
        let letters = record.get(self.rwbs.offset..self.rwbs.end())?;
        let letters = letters.split(|&byte| byte == 0).next()?;
        let kind = self.kind(record)?;
        let (opcode, flags) = match parse_rwbs(letters, sectors)? {
            Rwbs::Io(opcode, flags) => (opcode, flags),
            // One command has several events; its issue is counted.
            Rwbs::Passthrough if kind == EventKind::Issue => return Some(Decoded::Passthrough(device)),
            Rwbs::Zone if kind == EventKind::Issue => return Some(Decoded::Zone(device)),
            Rwbs::Passthrough | Rwbs::Zone => return Some(Decoded::Other),
        };
        let status = match self.error {
            Some(field) => (number(record, field)? as u32 as i32).saturating_abs(),
            None => 0,
        };
        Some(Decoded::Event(BlockEvent {
            time_ns,
            device,
            kind,
            opcode,
            flags,
            sector,
            sectors,
            cpu,
            status,
        }))
    }
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// An event of an I/O.
    Event(BlockEvent),
    /// A command passed through to the driver was issued.
    Passthrough(Device),
    /// A zone command was issued.
    Zone(Device),
    /// Of an event that was not asked for, or needs no counting.
    Other,
    /// Of an event that was asked for, and not understood.
    Unreadable,
}

/// Decodes the records of one kernel.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// By the difference of the event's number to the first.
    layouts: Vec<Option<Layout>>,
    first_id: u16,
}

impl Decoder {
    /// A decoder of these events.
    ///
    /// # Errors
    /// When an event lacks a field that is needed; the error names the event.
    pub fn new(formats: &[(TraceEvent, EventLayout)]) -> Result<Decoder, (TraceEvent, LayoutError)> {
        let first_id = formats.iter().map(|(_, format)| format.id).min().unwrap_or(0);
        let last_id = formats.iter().map(|(_, format)| format.id).max().unwrap_or(0);
        let mut layouts = vec![None; usize::from(last_id - first_id) + 1];
        for (event, format) in formats {
            let layout = Layout::new(*event, format).map_err(|error| (*event, error))?;
            layouts[usize::from(format.id - first_id)] = Some(layout);
        }
        Ok(Decoder { layouts, first_id })
    }

    /// Decodes a record that a CPU wrote.
    pub fn decode(&self, record: &[u8], time_ns: i64, cpu: i32) -> Decoded {
        let Some(id) = number(record, Field { offset: 0, size: 2 }) else { return Decoded::Unreadable };
        let index = (id as usize).checked_sub(usize::from(self.first_id));
        let Some(Some(layout)) = index.and_then(|index| self.layouts.get(index)) else {
            return Decoded::Other;
        };
        layout.decode(record, time_ns, cpu).unwrap_or(Decoded::Unreadable)
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
