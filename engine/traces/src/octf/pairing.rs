//! I/Os and their completions, found by the number that the tracer gave them.

use super::event::{Completion, Io};
use std::collections::{HashMap, VecDeque};
use testdrive_core::{Flags, IoRecord, Opcode, NO_COMPLETION, SECTOR_BYTES};

/// The end of the largest drive whose bytes a recording can count.
const SECTORS_MAX: u64 = i64::MAX as u64 / SECTOR_BYTES;
/// What `status` is of an I/O that failed: the trace does not tell with which error.
const EIO: i32 = 5;
const READ: u64 = 1;
const WRITE: u64 = 2;
const DISCARD: u64 = 3;

/// An I/O, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceIo {
    pub device: u64,
    pub record: IoRecord,
}

/// What could not be used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub ios: u64,
    pub completions: u64,
    pub no_completion: u64,
    pub completions_without_io: u64,
    pub unknown_operation: u64,
    pub empty: u64,
    /// Of places that no drive has.
    pub beyond_drives: u64,
    /// Given up because too many were under way.
    pub given_up: u64,
}

struct UnderWay {
    /// Counts I/Os, so that a number that is used again names one I/O at a time.
    serial: u64,
    io: DeviceIo,
}

/// Pairs events that come in the order of time.
pub(super) struct Pairing {
    pub tally: Tally,
    under_way: HashMap<u64, UnderWay>,
    /// Numbers and serials in the order in which I/Os began; those that completed are taken out now and then.
    begun: VecDeque<(u64, u64)>,
    under_way_max: usize,
    /// Those whose record is whole, to be taken out.
    pub ended: Vec<DeviceIo>,
}

impl Pairing {
    /// Holds up to `under_way_max` I/Os that wait for their completion.
    pub fn new(under_way_max: usize) -> Pairing {
        Pairing {
            tally: Tally::default(),
            under_way: HashMap::new(),
            begun: VecDeque::new(),
            under_way_max,
            ended: Vec::new(),
        }
    }

    /// Takes an I/O that a queue of this number got.
    pub fn begin(&mut self, io: &Io, time_ns: i64, queue: i32) {
        let Some(opcode) = self.opcode(io) else { return };
        self.tally.ios += 1;
        let record = IoRecord {
            intended_ns: time_ns,
            submit_ns: time_ns,
            latency_ns: NO_COMPLETION,
            offset_bytes: if opcode == Opcode::Flush { 0 } else { bytes(io.sector) },
            length_bytes: bytes(io.sectors),
            stream: queue,
            status: 0,
            phase: 0,
            opcode,
            flags: flags(io, opcode),
        };
        let io_of_device = DeviceIo { device: io.device, record };
        if io.id == 0 {
            self.close(io_of_device);
            return;
        }
        let serial = self.tally.ios;
        let under_way = UnderWay { serial, io: io_of_device };
        if let Some(before) = self.under_way.insert(io.id, under_way) {
            self.close(before.io);
        }
        self.begun.push_back((io.id, serial));
        self.bound();
    }

    /// Takes a completion.
    pub fn end(&mut self, completion: &Completion, time_ns: i64) {
        self.tally.completions += 1;
        let Some(mut ended) = self.under_way.remove(&completion.id) else {
            self.tally.completions_without_io += 1;
            return;
        };
        let record = &mut ended.io.record;
        record.latency_ns = time_ns.saturating_sub(record.submit_ns).max(0);
        record.status = if completion.failed { EIO } else { 0 };
        self.close(ended.io);
    }

    /// Ends all that is under way, as not completed.
    pub fn finish(&mut self) {
        while let Some(oldest) = self.oldest() {
            self.close(oldest.io);
        }
    }

    fn opcode(&mut self, io: &Io) -> Option<Opcode> {
        let opcode = match io.operation {
            _ if io.flush && io.sectors == 0 => return Some(Opcode::Flush),
            READ => Opcode::Read,
            WRITE => Opcode::Write,
            DISCARD => Opcode::Trim,
            _ => {
                self.tally.unknown_operation += 1;
                return None;
            }
        };
        if io.sectors == 0 {
            self.tally.empty += 1;
            return None;
        }
        if io.sector.saturating_add(io.sectors) > SECTORS_MAX {
            self.tally.beyond_drives += 1;
            return None;
        }
        Some(opcode)
    }

    fn close(&mut self, io: DeviceIo) {
        self.tally.no_completion += u64::from(io.record.latency_ns == NO_COMPLETION);
        self.ended.push(io);
    }

    /// Takes the I/O out that has been under way the longest.
    fn oldest(&mut self) -> Option<UnderWay> {
        while let Some((id, serial)) = self.begun.pop_front() {
            if self.under_way.get(&id).is_some_and(|io| io.serial == serial) {
                return self.under_way.remove(&id);
            }
        }
        None
    }

    /// A trace whose completions are missing must not fill the memory.
    fn bound(&mut self) {
        if self.under_way.len() > self.under_way_max {
            if let Some(oldest) = self.oldest() {
                self.tally.given_up += 1;
                self.close(oldest.io);
            }
        }
        if self.begun.len() > 2 * self.under_way.len() + 1024 {
            let under_way = &self.under_way;
            self.begun.retain(|(id, serial)| under_way.get(id).is_some_and(|io| io.serial == *serial));
        }
    }
}

fn flags(io: &Io, opcode: Opcode) -> Flags {
    let mut flags = Flags::NONE;
    for (set, flag) in [
        (io.flush && opcode != Opcode::Flush, Flags::PREFLUSH),
        (io.fua && opcode != Opcode::Flush, Flags::FUA),
        (io.metadata, Flags::METADATA),
        (io.read_ahead, Flags::READ_AHEAD),
    ] {
        if set {
            flags |= flag;
        }
    }
    flags
}

fn bytes(sectors: u64) -> i64 {
    i64::try_from(sectors.saturating_mul(SECTOR_BYTES)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(id: u64, sector: u64) -> Io {
        Io { id, sector, sectors: 8, operation: WRITE, device: 7, ..Io::default() }
    }

    fn end(id: u64) -> Completion {
        Completion { id, ..Completion::default() }
    }

    fn rows(pairing: &mut Pairing) -> Vec<(i64, i64, i64)> {
        pairing
            .ended
            .drain(..)
            .map(|io| (io.record.submit_ns, io.record.latency_ns, io.record.offset_bytes / 512))
            .collect()
    }

    #[test]
    fn completions_end_the_ios_of_their_number() {
        let mut pairing = Pairing::new(100);
        pairing.begin(&write(1, 0), 10, 0);
        pairing.begin(&write(2, 8), 11, 1);
        pairing.end(&end(2), 20);
        assert_eq!(rows(&mut pairing), [(11, 9, 8)]);
        pairing.end(&Completion { failed: true, ..end(1) }, 30);
        assert_eq!(pairing.ended[0].record.status, EIO);
        assert_eq!(rows(&mut pairing), [(10, 20, 0)]);
        assert_eq!(pairing.tally.no_completion, 0);
    }

    #[test]
    fn a_number_that_is_used_again_is_of_the_io_that_used_it_last() {
        let mut pairing = Pairing::new(100);
        pairing.begin(&write(1, 0), 10, 0);
        pairing.end(&end(1), 12);
        pairing.begin(&write(1, 8), 20, 0);
        // Its completion was lost.
        pairing.begin(&write(1, 16), 30, 0);
        pairing.end(&end(1), 35);
        pairing.end(&end(1), 36);
        assert_eq!(rows(&mut pairing), [(10, 2, 0), (20, -1, 8), (30, 5, 16)]);
        assert_eq!((pairing.tally.no_completion, pairing.tally.completions_without_io), (1, 1));
    }

    #[test]
    fn flushes_are_told_by_having_no_sectors_and_other_empty_ios_are_counted() {
        let mut pairing = Pairing::new(100);
        let flush = Io { id: 1, flush: true, operation: WRITE, sector: 9, ..Io::default() };
        pairing.begin(&flush, 10, 0);
        pairing.begin(&Io { sectors: 0, ..write(2, 0) }, 11, 0);
        pairing.begin(&Io { operation: 9, ..write(3, 0) }, 12, 0);
        pairing.begin(&Io { flush: true, fua: true, ..write(4, 0) }, 13, 0);
        pairing.begin(&write(5, u64::MAX), 14, 0);
        pairing.begin(&write(6, SECTORS_MAX - 7), 15, 0);
        pairing.finish();
        let found = std::mem::take(&mut pairing.ended);
        let kinds: Vec<(Opcode, Flags)> =
            found.iter().map(|io| (io.record.opcode, io.record.flags)).collect();
        assert_eq!(kinds, [(Opcode::Flush, Flags::NONE), (Opcode::Write, Flags::PREFLUSH | Flags::FUA)]);
        assert_eq!((pairing.tally.empty, pairing.tally.unknown_operation), (1, 1));
        assert_eq!(pairing.tally.beyond_drives, 2);
    }

    #[test]
    fn a_trace_without_completions_does_not_fill_the_memory() {
        let mut pairing = Pairing::new(100);
        let mut found = 0;
        for index in 0..10_000 {
            pairing.begin(&write(index + 1, index * 8), index as i64, 0);
            found += rows(&mut pairing).len();
            assert!(pairing.under_way.len() <= 100 && pairing.begun.len() <= 1300);
        }
        pairing.finish();
        assert_eq!(found + rows(&mut pairing).len(), 10_000);
        assert_eq!(pairing.tally.given_up, 9900);
    }

    #[test]
    fn one_io_that_stalls_does_not_keep_the_numbers_of_the_others() {
        let mut pairing = Pairing::new(100);
        pairing.begin(&write(u64::MAX, 0), 0, 0);
        for index in 0..10_000 {
            pairing.begin(&write(index + 1, index * 8), index as i64, 0);
            pairing.end(&end(index + 1), index as i64 + 5);
            rows(&mut pairing);
            assert!(pairing.begun.len() <= 1100, "{}", pairing.begun.len());
        }
        pairing.end(&end(u64::MAX), 20_000);
        assert_eq!(rows(&mut pairing), [(0, 20_000, 0)]);
    }
}
