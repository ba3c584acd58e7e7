//! What becomes a row, and what is left at the end.

use super::flushes::FlushRequest;
use super::pairing::Pairing;
use super::requests::Request;
use crate::event::BlockEvent;
use crate::format::Events;
use crate::slab::Key;
use crate::TraceError;
use testdrive_core::{IoRecord, Opcode, NO_COMPLETION, SECTOR_BYTES};

impl Pairing<'_> {
    pub(super) fn finish_bio(&mut self, key: Key, completed: bool) -> Result<(), TraceError> {
        let Some(bio) = self.bios.remove(key) else { return Ok(()) };
        let Some(row) = bio.row else { return Ok(()) };
        let submit_ns = bio.issued.map_or(bio.intended_ns, |(issue_ns, _)| issue_ns);
        let record = IoRecord {
            intended_ns: bio.intended_ns,
            submit_ns,
            latency_ns: if completed { (bio.complete_ns - submit_ns).max(0) } else { NO_COMPLETION },
            offset_bytes: bytes(bio.span.0),
            length_bytes: bytes(bio.span.1 - bio.span.0),
            stream: bio.cpu,
            status: if completed { bio.status } else { 0 },
            phase: 0,
            opcode: bio.opcode,
            flags: bio.flags,
        };
        self.rows.close(row, record)
    }

    pub(super) fn close_request(
        &mut self,
        request: &Request,
        complete_ns: Option<i64>,
    ) -> Result<(), TraceError> {
        let Some(row) = request.row else { return Ok(()) };
        let latency_ns = complete_ns.map_or(NO_COMPLETION, |time_ns| (time_ns - request.issue_ns).max(0));
        let record = IoRecord {
            intended_ns: request.intended_ns,
            submit_ns: request.issue_ns,
            latency_ns,
            offset_bytes: bytes(request.start),
            length_bytes: bytes(request.sectors),
            stream: request.cpu,
            status: request.status,
            phase: 0,
            opcode: request.opcode,
            flags: request.flags,
        };
        self.rows.close(row, record)
    }

    pub(super) fn close_flush(
        &mut self,
        flush: &FlushRequest,
        end: Option<&BlockEvent>,
    ) -> Result<(), TraceError> {
        let Some(row) = flush.row else { return Ok(()) };
        let latency_ns = end.map_or(NO_COMPLETION, |event| (event.time_ns - flush.issue_ns).max(0));
        let record = IoRecord {
            intended_ns: flush.intended_ns,
            submit_ns: flush.issue_ns,
            latency_ns,
            offset_bytes: 0,
            length_bytes: 0,
            stream: flush.cpu,
            status: end.map_or(0, |event| event.status),
            phase: 0,
            opcode: Opcode::Flush,
            flags: flush.flags,
        };
        self.rows.close(row, record)
    }

    /// Gives up the older half when too much is under way: a trace without completions must not fill the memory.
    pub(super) fn bound(&mut self) -> Result<(), TraceError> {
        if self.bios.bios.len() > self.pending_max {
            let keys = self.bios.bios.keys();
            self.give_up_bios(&keys[..keys.len() / 2])?;
            self.count_given_up(Events::Queued, keys.len() / 2);
        }
        if self.requests.requests.len() > self.pending_max {
            let keys = self.requests.requests.keys();
            self.give_up_requests(&keys[..keys.len() / 2])?;
            self.count_given_up(Events::Issued, keys.len() / 2);
        }
        Ok(())
    }

    /// Only what would have been a row counts as lost.
    fn count_given_up(&mut self, of: Events, count: usize) {
        if self.events == of {
            self.tally.given_up += count as u64;
        }
    }

    fn give_up_bios(&mut self, keys: &[Key]) -> Result<(), TraceError> {
        for &key in keys {
            let Some(bio) = self.bios.bios.get(key) else { continue };
            if bio.remapped && bio.issued.is_none() {
                self.forget(key)?;
            } else {
                // Data that is complete counts, though the end of its flush sequence was not seen.
                let completed = bio.ends_with_flush && bio.incomplete_sectors == 0;
                self.finish_bio(key, completed)?;
            }
        }
        Ok(())
    }

    fn give_up_requests(&mut self, keys: &[Key]) -> Result<(), TraceError> {
        for &key in keys {
            let Some(request) = self.requests.remove(key) else { continue };
            match request.row {
                Some(row) if request.repeated => self.rows.cancel(row)?,
                _ => self.close_request(&request, None)?,
            }
        }
        Ok(())
    }

    /// Closes everything that is still under way as not completed, and hands out all rows.
    pub fn finish(&mut self) -> Result<(), TraceError> {
        let keys = self.bios.bios.keys();
        self.give_up_bios(&keys)?;
        let keys = self.requests.requests.keys();
        self.give_up_requests(&keys)?;
        while let Some(flush) = self.flushes.in_flight.pop_front() {
            self.close_flush(&flush, None)?;
        }
        self.rows.hand_out_closed()
    }
}

fn bytes(sectors: u64) -> i64 {
    i64::try_from(sectors.saturating_mul(SECTOR_BYTES)).unwrap_or(i64::MAX)
}
