//! What was queued and not yet completed.

use super::few::Few;
use super::rows::RowPlace;
use crate::event::BlockEvent;
use crate::slab::{Key, Slab};
use std::collections::BTreeSet;
use testdrive_core::{Flags, Opcode};

/// Sectors from the first up to but not including the second.
pub(crate) type Span = (u64, u64);

/// What two spans share; empty where the end is not above the start.
pub(crate) fn overlap(one: Span, other: Span) -> Span {
    (one.0.max(other.0), one.1.min(other.1))
}

/// One I/O as the workload queued it.
#[derive(Debug)]
pub(crate) struct Bio {
    /// Its row, where queued I/Os are rows.
    pub row: Option<RowPlace>,
    pub intended_ns: i64,
    /// When the first request that covers it was issued, and which one that was.
    pub issued: Option<(i64, Key)>,
    pub span: Span,
    /// Sectors that no request covers yet.
    pub unissued: Few<Span>,
    /// Sectors not yet completed.
    pub incomplete_sectors: u64,
    pub complete_ns: i64,
    pub status: i32,
    pub opcode: Opcode,
    pub flags: Flags,
    pub cpu: i32,
    /// Its data goes through a flush sequence of the kernel, which ends with an empty completion.
    pub ends_with_flush: bool,
    /// Known only from a remap; a queue event of the same place takes its stead.
    pub remapped: bool,
}

impl Bio {
    pub fn new(event: &BlockEvent, row: Option<RowPlace>, remapped: bool) -> Bio {
        let span = (event.sector, event.end());
        Bio {
            row,
            intended_ns: event.time_ns,
            issued: None,
            span,
            unissued: if event.sectors > 0 { Few::one(span) } else { Few::default() },
            incomplete_sectors: event.sectors,
            complete_ns: event.time_ns,
            status: 0,
            opcode: event.opcode,
            flags: event.flags,
            cpu: event.cpu,
            ends_with_flush: false,
            remapped,
        }
    }

    pub fn is_untouched(&self) -> bool {
        self.issued.is_none() && self.unissued.iter().eq(std::iter::once(&self.span))
    }

    /// Where the span without a request ends in which this sector lies.
    fn unissued_from(&self, sector: u64) -> Option<u64> {
        self.unissued.iter().find(|span| span.0 <= sector && sector < span.1).map(|span| span.1)
    }

    fn next_unissued_after(&self, sector: u64) -> Option<u64> {
        self.unissued.iter().map(|span| span.0).filter(|&start| start > sector).min()
    }

    fn issue(&mut self, taken: Span) {
        let mut left = Few::default();
        for &(from, to) in self.unissued.iter() {
            if taken.1 <= from || to <= taken.0 {
                left.push((from, to));
                continue;
            }
            if from < taken.0 {
                left.push((from, taken.0));
            }
            if taken.1 < to {
                left.push((taken.1, to));
            }
        }
        self.unissued = left;
    }
}

/// The part of a bio that a request covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub bio: Key,
    pub span: Span,
}

/// Bios of one opcode that still wait for a request, by where they start.
#[derive(Default)]
struct Waiting {
    by_sector: BTreeSet<(u64, Key)>,
    longest_sectors: u64,
}

/// All bios under way.
pub(crate) struct BioTable {
    pub bios: Slab<Bio>,
    waiting: [Waiting; Opcode::ALL.len()],
}

impl BioTable {
    pub fn new() -> BioTable {
        BioTable { bios: Slab::new(), waiting: Default::default() }
    }

    pub fn insert(&mut self, bio: Bio) -> Key {
        let (opcode, span, waits) = (bio.opcode, bio.span, !bio.unissued.is_empty());
        let key = self.bios.insert(bio);
        if waits {
            self.wait(opcode, span, key);
        }
        key
    }

    pub fn remove(&mut self, key: Key) -> Option<Bio> {
        let bio = self.bios.remove(key)?;
        self.waiting[bio.opcode as usize].by_sector.remove(&(bio.span.0, key));
        Some(bio)
    }

    /// A bio of exactly this span that no request touched.
    pub fn untouched(&self, opcode: Opcode, span: Span) -> Option<Key> {
        let waiting = &self.waiting[opcode as usize].by_sector;
        let candidates = waiting.iter_from(span.0).take_while(|(start, _)| *start == span.0);
        candidates
            .map(|(_, key)| *key)
            .find(|&key| self.bios.get(key).is_some_and(|bio| bio.span == span && bio.is_untouched()))
    }

    /// Whether a bio waits for a request that covers this sector.
    pub fn is_waited_for(&self, opcode: Opcode, sector: u64) -> bool {
        self.oldest_at(opcode, sector).is_some()
    }

    /// Takes the bios that a request over `span` covers, each sector from the bio that waited for it the longest.
    pub fn cover(&mut self, opcode: Opcode, span: Span) -> Few<Part> {
        let mut parts = Few::default();
        if self.waiting[opcode as usize].by_sector.is_empty() {
            return parts;
        }
        let mut cursor = span.0;
        while cursor < span.1 {
            let Some((key, end)) = self.oldest_at(opcode, cursor) else {
                match self.next_start(opcode, cursor, span.1) {
                    Some(start) => cursor = start,
                    None => break,
                }
                continue;
            };
            let taken = (cursor, end.min(span.1));
            parts.push(Part { bio: key, span: taken });
            let bio = self.bios.get_mut(key).expect("bios that wait are in the table");
            bio.issue(taken);
            if bio.unissued.is_empty() {
                let start = bio.span.0;
                self.waiting[opcode as usize].by_sector.remove(&(start, key));
            }
            cursor = taken.1;
        }
        parts
    }

    /// Takes back that a request covered this part.
    pub fn uncover(&mut self, part: Part, request: Key) {
        let Some(bio) = self.bios.get_mut(part.bio) else { return };
        bio.unissued.push(part.span);
        if bio.issued.is_some_and(|(_, by)| by == request) {
            bio.issued = None;
        }
        let (opcode, span) = (bio.opcode, bio.span);
        self.wait(opcode, span, part.bio);
    }

    fn wait(&mut self, opcode: Opcode, span: Span, key: Key) {
        let waiting = &mut self.waiting[opcode as usize];
        waiting.longest_sectors = waiting.longest_sectors.max(span.1 - span.0);
        waiting.by_sector.insert((span.0, key));
    }

    /// The oldest bio that waits for a request over this sector, and how far it does.
    fn oldest_at(&self, opcode: Opcode, sector: u64) -> Option<(Key, u64)> {
        let waiting = &self.waiting[opcode as usize];
        let first = sector.saturating_sub(waiting.longest_sectors);
        let near = waiting.by_sector.iter_from(first).take_while(|(start, _)| *start <= sector);
        let waits = near.filter_map(|&(_, key)| Some((key, self.bios.get(key)?.unissued_from(sector)?)));
        waits.min()
    }

    /// The next sector after `after` and before `before` that some bio waits for.
    fn next_start(&self, opcode: Opcode, after: u64, before: u64) -> Option<u64> {
        let waiting = &self.waiting[opcode as usize];
        let first = after.saturating_sub(waiting.longest_sectors);
        let near = waiting.by_sector.iter_from(first).take_while(|(start, _)| *start < before);
        let starts = near.filter_map(|&(_, key)| self.bios.get(key)?.next_unissued_after(after));
        starts.min().filter(|&start| start < before)
    }
}

trait IterFrom {
    fn iter_from(&self, sector: u64) -> impl Iterator<Item = &(u64, Key)>;
}

impl IterFrom for BTreeSet<(u64, Key)> {
    fn iter_from(&self, sector: u64) -> impl Iterator<Item = &(u64, Key)> {
        self.range((sector, Key::FIRST)..)
    }
}
