//! What is handed to the driver: requests, the bios that they cover, and requests that come back.

use super::bios::{overlap, Part, Span};
use super::few::Few;
use super::flushes::FlushRequest;
use super::pairing::Pairing;
use super::requests::Request;
use crate::event::BlockEvent;
use crate::format::Events;
use crate::slab::Key;
use crate::TraceError;
use testdrive_core::{Flags, Opcode};

/// Requests given back whose queue time is remembered until they are issued again.
const GIVEN_BACK_MAX: usize = 1 << 16;

impl Pairing<'_> {
    pub(super) fn issue(&mut self, event: &BlockEvent) -> Result<(), TraceError> {
        self.tally.issue_events += 1;
        if self.events == Events::Issued {
            self.rows.begin(event.time_ns);
        }
        let span = (event.sector, event.end());
        self.supersede(event.opcode, span)?;
        let row = self.open_if(Events::Issued)?;
        let parts = self.bios.cover(event.opcode, span);
        let given_back = if self.given_back.is_empty() {
            None
        } else {
            self.given_back.remove(&(event.sector, event.opcode as u8))
        };
        let queued = parts.iter().filter_map(|part| Some(self.bios.bios.get(part.bio)?.intended_ns)).min();
        let request = Request {
            row,
            intended_ns: [queued, given_back, Some(event.time_ns)].into_iter().flatten().min().unwrap_or(0),
            issue_ns: event.time_ns,
            span,
            sectors: event.sectors,
            start: event.sector,
            opcode: event.opcode,
            flags: event.flags,
            cpu: event.cpu,
            status: 0,
            parts: Few::default(),
            repeated: false,
        };
        let key = self.requests.insert(request);
        match self.events {
            Events::Queued => self.issue_parts(key, event, parts),
            Events::Issued => self.drop_covered(&parts),
        }
        self.bound()
    }

    /// Notes on queued I/Os that they were issued.
    fn issue_parts(&mut self, key: Key, event: &BlockEvent, parts: Few<Part>) {
        if parts.is_empty() {
            self.tally.issues_without_queue += 1;
        }
        for part in parts.iter() {
            let Some(bio) = self.bios.bios.get_mut(part.bio) else { continue };
            let preflush = bio.flags.contains(Flags::PREFLUSH);
            let flushed = if preflush { self.flushes.issued_for(bio.intended_ns) } else { None };
            bio.issued.get_or_insert((flushed.unwrap_or(event.time_ns), key));
            // A drive that cannot do FUA gets the data without it and a flush after.
            bio.ends_with_flush =
                preflush || bio.flags.contains(Flags::FUA) && !event.flags.contains(Flags::FUA);
        }
        if let Some(request) = self.requests.requests.get_mut(key) {
            request.parts = parts;
        }
    }

    /// Where requests are rows, a queued I/O has served once it is covered.
    fn drop_covered(&mut self, parts: &Few<Part>) {
        for part in parts.iter() {
            if self.bios.bios.get(part.bio).is_some_and(|bio| bio.unissued.is_empty()) {
                self.bios.remove(part.bio);
            }
        }
    }

    /// Finds out whether an issue repeats one that is under way, which drivers that were busy do without a requeue event.
    ///
    /// Where queue events tell that nothing waits for these sectors, it surely does. Where there are none it most likely does,
    /// but two equal I/Os may be under way at once: the earlier one is put aside until a second completion proves it.
    fn supersede(&mut self, opcode: Opcode, span: Span) -> Result<(), TraceError> {
        let Some(earlier) = self.requests.exact(opcode, span) else { return Ok(()) };
        if self.tally.queue_events == 0 {
            self.tally.issued_again += 1;
            self.requests.put_aside(earlier);
        } else if !self.bios.is_waited_for(opcode, span.0) {
            self.tally.issued_again += 1;
            self.take_back(earlier)?;
        }
        Ok(())
    }

    pub(super) fn give_back(&mut self, event: &BlockEvent) -> Result<(), TraceError> {
        if event.opcode == Opcode::Flush || event.sectors == 0 {
            match self.flushes.in_flight.pop_back().and_then(|flush| flush.row) {
                Some(row) => self.rows.cancel(row),
                None => Ok(()),
            }
        } else {
            match self.requests.given_back(event.opcode, (event.sector, event.end())) {
                Some(key) => self.take_back(key),
                None => Ok(()),
            }
        }
    }

    /// Undoes an issue.
    fn take_back(&mut self, key: Key) -> Result<(), TraceError> {
        let Some(request) = self.requests.remove(key) else { return Ok(()) };
        for part in request.parts.iter() {
            let span = overlap(part.span, request.span);
            if span.0 < span.1 {
                self.bios.uncover(Part { span, ..*part }, key);
            }
        }
        let Some(row) = request.row else { return Ok(()) };
        if self.given_back.len() >= GIVEN_BACK_MAX {
            self.given_back.clear();
        }
        // Without queue events nothing tells when it was wanted; its first issue is no such time.
        if self.tally.queue_events > 0 {
            self.given_back.insert((request.span.0, request.opcode as u8), request.intended_ns);
        }
        self.rows.cancel(row)
    }

    pub(super) fn issue_flush(&mut self, event: &BlockEvent) -> Result<(), TraceError> {
        self.tally.issue_events += 1;
        let row = self.open_if(Events::Issued)?;
        let mut intended_ns = event.time_ns;
        if self.events == Events::Issued {
            self.rows.begin(event.time_ns);
            while let Some(key) = self.flushes.queued.pop_front() {
                if let Some(bio) = self.bios.remove(key) {
                    intended_ns = intended_ns.min(bio.intended_ns);
                }
            }
        }
        let flush = FlushRequest {
            row,
            intended_ns,
            issue_ns: event.time_ns,
            flags: Flags(event.flags.0 & !Flags::PREFLUSH.0),
            cpu: event.cpu,
        };
        match self.flushes.issue(flush) {
            Some(forgotten) => self.close_flush(&forgotten, None),
            None => Ok(()),
        }
    }
}
