//! Makes I/Os of the events of one device: which request covers which bio, and which completion is of which request.

use super::bios::{Bio, BioTable};
use super::flushes::Flushes;
use super::requests::{PlaceMap, RequestTable};
use super::rows::{RowPlace, RowWindow};
use crate::event::{BlockEvent, EventKind};
use crate::format::Events;
use crate::slab::Key;
use crate::TraceError;
use testdrive_core::{Flags, Opcode, SECTOR_BYTES};

/// The end of the largest drive whose bytes a recording can count.
const SECTORS_MAX: u64 = i64::MAX as u64 / SECTOR_BYTES;

/// What was seen and what could not be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// With those that were queued elsewhere and mapped onto the device: either says when an I/O was wanted.
    pub queue_events: u64,
    pub issue_events: u64,
    pub completion_events: u64,
    /// Requests issued again before they completed.
    pub issued_again: u64,
    pub completions_without_issue: u64,
    /// Where queued I/Os are rows: requests that no queued I/O was seen for.
    pub issues_without_queue: u64,
    /// Attempts to queue an I/O that were turned away, since it would have had to wait.
    pub turned_away: u64,
    /// I/Os whose latency counts from the queue event, since no issue was seen.
    pub completed_from_queue: u64,
    pub empty_ios: u64,
    /// Events of what no drive has: a recording could not say where it is.
    pub beyond_drives: u64,
    /// Given up because too many were under way.
    pub given_up: u64,
}

/// Pairs the events of one device, in the order of time.
pub(crate) struct Pairing<'s> {
    pub(super) events: Events,
    pub rows: RowWindow<'s>,
    pub tally: Tally,
    pub(super) bios: BioTable,
    pub(super) requests: RequestTable,
    pub(super) flushes: Flushes,
    pub(super) given_back: PlaceMap<i64>,
    /// When I/Os were first queued that were turned away, until they are queued again.
    pub(super) turned_away: PlaceMap<i64>,
    pub(super) pending_max: usize,
    cpus_known: bool,
}

impl<'s> Pairing<'s> {
    pub fn new(events: Events, rows: RowWindow<'s>, pending_max: usize) -> Pairing<'s> {
        Pairing {
            events,
            rows,
            tally: Tally::default(),
            bios: BioTable::new(),
            requests: RequestTable::new(),
            flushes: Flushes::default(),
            given_back: PlaceMap::default(),
            turned_away: PlaceMap::default(),
            pending_max,
            cpus_known: false,
        }
    }

    pub fn events(&self) -> Events {
        self.events
    }

    pub fn cpus_known(&self) -> bool {
        self.cpus_known
    }

    pub fn push(&mut self, event: &BlockEvent) -> Result<(), TraceError> {
        self.cpus_known |= event.cpu >= 0;
        if event.sectors > 0 && event.end() > SECTORS_MAX {
            self.tally.beyond_drives += 1;
            return Ok(());
        }
        match event.kind {
            EventKind::Queue => self.queue(event),
            EventKind::Remap { .. } => self.remap(event),
            EventKind::Issue if event.opcode == Opcode::Flush || event.sectors == 0 => {
                self.issue_flush(event)
            }
            EventKind::Issue => self.issue(event),
            EventKind::Requeue => self.give_back(event),
            EventKind::Complete => {
                self.tally.completion_events += 1;
                match (event.opcode, event.sectors) {
                    (Opcode::Flush, _) => self.complete_flush(event),
                    (_, 0) => self.end_flush_sequence(event),
                    _ => self.complete(event),
                }
            }
        }
    }

    fn queue(&mut self, event: &BlockEvent) -> Result<(), TraceError> {
        self.tally.queue_events += 1;
        self.rows.begin(event.time_ns);
        if event.sectors == 0 {
            return self.queue_flush(event);
        }
        if let Some(known) = self.bios.untouched(event.opcode, (event.sector, event.end())) {
            if self.bios.bios.get(known).is_some_and(|bio| bio.remapped) {
                self.forget(known)?;
            }
        }
        let row = self.open_if(Events::Queued)?;
        let mut bio = Bio::new(event, row, false);
        if !self.turned_away.is_empty() {
            let first_ns = self.turned_away.remove(&(event.sector, event.opcode as u8));
            bio.intended_ns = first_ns.unwrap_or(event.time_ns);
        }
        self.bios.insert(bio);
        self.bound()
    }

    fn queue_flush(&mut self, event: &BlockEvent) -> Result<(), TraceError> {
        if event.opcode != Opcode::Flush && !event.flags.contains(Flags::PREFLUSH) {
            self.tally.empty_ios += 1;
            return Ok(());
        }
        let row = self.open_if(Events::Queued)?;
        let mut bio = Bio::new(event, row, false);
        bio.opcode = Opcode::Flush;
        // Some kernels have the last of all sectors for the place of what has none.
        bio.span = (0, 0);
        // The preflush of an empty write is the whole of it.
        bio.flags = Flags(bio.flags.0 & !Flags::PREFLUSH.0);
        let key = self.bios.insert(bio);
        self.flushes.queue(key);
        self.bound()
    }

    /// A bio that was mapped onto this device without being queued on it, unless a queue event of it follows.
    fn remap(&mut self, event: &BlockEvent) -> Result<(), TraceError> {
        if event.sectors == 0 {
            return Ok(());
        }
        self.tally.queue_events += 1;
        self.rows.begin(event.time_ns);
        let row = self.open_if(Events::Queued)?;
        self.bios.insert(Bio::new(event, row, true));
        self.bound()
    }

    pub(super) fn open_if(&mut self, events: Events) -> Result<Option<RowPlace>, TraceError> {
        (self.events == events).then(|| self.rows.open()).transpose()
    }

    pub(super) fn forget(&mut self, key: Key) -> Result<(), TraceError> {
        match self.bios.remove(key).and_then(|bio| bio.row) {
            Some(row) => self.rows.cancel(row),
            None => Ok(()),
        }
    }
}
