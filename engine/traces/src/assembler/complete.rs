//! What completes: requests in whole or in part, flush sequences, and bios of devices that have no requests.

use super::bios::{overlap, Part, Span};
use super::few::Few;
use super::flushes::LastFlush;
use super::pairing::Pairing;
use super::requests::Request;
use crate::event::BlockEvent;
use crate::format::Events;
use crate::slab::Key;
use crate::TraceError;
use testdrive_core::Opcode;

/// EAGAIN, as the kernel's events have it on most architectures.
const WOULD_WAIT: i32 = 11;
/// I/Os whose first attempt is remembered until the next one.
const TURNED_AWAY_MAX: usize = 1 << 16;

impl Pairing<'_> {
    pub(super) fn complete(&mut self, event: &BlockEvent) -> Result<(), TraceError> {
        let span = (event.sector, event.end());
        if event.status == WOULD_WAIT {
            // Also where a request over the same place is under way: it is not this one's.
            if let Some(key) = self.bios.untouched(event.opcode, span) {
                return self.turn_away(key, event);
            }
        }
        if let Some(request) = self.requests.take_exact(event.opcode, span) {
            return self.complete_whole(request, event);
        }
        let Some(key) = self.requests.completed(event.opcode, span) else {
            return self.complete_from_queue(event);
        };
        let Some(request) = self.requests.requests.get_mut(key) else { return Ok(()) };
        if request.status == 0 {
            request.status = event.status;
        }
        if request.repeated {
            self.tally.issued_again = self.tally.issued_again.saturating_sub(1);
        }
        let done = (request.span.0, span.1.min(request.span.1));
        let parts = std::mem::take(&mut request.parts);
        let whole = done.1 == request.span.1;
        for part in parts.iter() {
            self.complete_part(part, done, event)?;
        }
        if whole {
            let request = self.requests.remove(key);
            return request.map_or(Ok(()), |request| self.close_request(&request, Some(event.time_ns)));
        }
        if let Some(request) = self.requests.requests.get_mut(key) {
            request.parts = parts;
        }
        self.requests.advance(key, done.1);
        Ok(())
    }

    fn complete_whole(&mut self, mut request: Request, event: &BlockEvent) -> Result<(), TraceError> {
        if request.status == 0 {
            request.status = event.status;
        }
        for part in request.parts.iter() {
            self.complete_part(part, request.span, event)?;
        }
        self.close_request(&request, Some(event.time_ns))
    }

    fn complete_part(&mut self, part: &Part, done: Span, event: &BlockEvent) -> Result<(), TraceError> {
        let Some(bio) = self.bios.bios.get_mut(part.bio) else { return Ok(()) };
        let shared = overlap(part.span, done);
        let sectors = shared.1.saturating_sub(shared.0);
        if sectors == 0 {
            return Ok(());
        }
        if bio.status == 0 {
            bio.status = event.status;
        }
        bio.complete_ns = bio.complete_ns.max(event.time_ns);
        bio.incomplete_sectors = bio.incomplete_sectors.saturating_sub(sectors);
        if bio.incomplete_sectors > 0 {
            return Ok(());
        }
        if bio.ends_with_flush {
            self.flushes.end_later(part.bio);
            return Ok(());
        }
        self.finish_bio(part.bio, true)
    }

    /// A completion without a request: of a device that has no requests, or whose issue events were not traced.
    fn complete_from_queue(&mut self, event: &BlockEvent) -> Result<(), TraceError> {
        let Some(key) = self.bios.untouched(event.opcode, (event.sector, event.end())) else {
            return self.complete_waiting(event);
        };
        if self.events == Events::Issued {
            self.tally.completions_without_issue += 1;
            self.bios.remove(key);
            return Ok(());
        }
        self.tally.completed_from_queue += 1;
        self.end_bio(key, event)
    }

    /// An attempt to queue an I/O without waiting, when the device has no request free: whoever wanted it queues it again. It counts
    /// from its first attempt then, and the attempt is no I/O.
    fn turn_away(&mut self, key: Key, event: &BlockEvent) -> Result<(), TraceError> {
        self.tally.turned_away += 1;
        if let Some(bio) = self.bios.bios.get(key) {
            if self.turned_away.len() >= TURNED_AWAY_MAX {
                self.turned_away.clear();
            }
            self.turned_away.insert((event.sector, event.opcode as u8), bio.intended_ns);
        }
        self.forget(key)
    }

    /// A completion of no single queued I/O: where a trace has no issue events at all, it is of a request that merged or split those
    /// that wait in its place.
    fn complete_waiting(&mut self, event: &BlockEvent) -> Result<(), TraceError> {
        let span = (event.sector, event.end());
        let unissued = self.events == Events::Queued && self.tally.issue_events == 0;
        let parts = if unissued { self.bios.cover(event.opcode, span) } else { Few::default() };
        if parts.is_empty() {
            self.tally.completions_without_issue += 1;
            return Ok(());
        }
        self.tally.completed_from_queue += 1;
        for part in parts.iter() {
            self.complete_part(part, span, event)?;
        }
        Ok(())
    }

    pub(super) fn complete_flush(&mut self, event: &BlockEvent) -> Result<(), TraceError> {
        let Some(flush) = self.flushes.in_flight.pop_front() else {
            if self.tally.issue_events == 0 && self.events == Events::Queued {
                return self.end_flush_sequence(event);
            }
            self.tally.completions_without_issue += 1;
            return Ok(());
        };
        self.flushes.last = Some(LastFlush { issue_ns: flush.issue_ns, status: event.status });
        self.close_flush(&flush, Some(event))
    }

    /// An empty completion: the end of a flush, or of a write with one.
    pub(super) fn end_flush_sequence(&mut self, event: &BlockEvent) -> Result<(), TraceError> {
        if self.events == Events::Issued {
            // The flush requests are the rows; this says no more than they do.
            return Ok(());
        }
        let Some(key) = self.flushes.take_ended(&self.bios, event.sector) else {
            self.tally.completions_without_issue += 1;
            return Ok(());
        };
        let Some(bio) = self.bios.bios.get_mut(key) else { return Ok(()) };
        if bio.opcode == Opcode::Flush && bio.issued.is_none() {
            match self.flushes.issued_for(bio.intended_ns) {
                Some(issue_ns) => bio.issued = Some((issue_ns, Key::FIRST)),
                None => self.tally.completed_from_queue += 1,
            }
            bio.status = self.flushes.last.map_or(0, |last| last.status);
        }
        self.end_bio(key, event)
    }

    fn end_bio(&mut self, key: Key, event: &BlockEvent) -> Result<(), TraceError> {
        if let Some(bio) = self.bios.bios.get_mut(key) {
            bio.complete_ns = bio.complete_ns.max(event.time_ns);
            if bio.status == 0 {
                bio.status = event.status;
            }
        }
        self.finish_bio(key, true)
    }
}
