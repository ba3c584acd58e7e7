//! Flush sequences: what the kernel makes of a flush, or of a write with preflush or FUA that the drive cannot do in one.
//!
//! The bio that was queued (`FWS`) waits; an empty flush request (`FF`) of the kernel's own is issued and completed, one for all
//! bios that wait at that time; a write's data is issued between; and at last each bio ends with an empty completion.

use super::bios::BioTable;
use super::rows::RowPlace;
use crate::slab::Key;
use std::collections::VecDeque;
use testdrive_core::Flags;

/// Beyond so many the oldest is forgotten: a trace that never completes a flush must not grow the list for ever.
const FLUSHES_MAX: usize = 1 << 16;

/// A flush request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlushRequest {
    /// Its row, where requests are rows.
    pub row: Option<RowPlace>,
    pub intended_ns: i64,
    pub issue_ns: i64,
    pub flags: Flags,
    pub cpu: i32,
}

/// The flush request that was completed last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastFlush {
    pub issue_ns: i64,
    pub status: i32,
}

/// Flushes of one device.
#[derive(Default)]
pub(crate) struct Flushes {
    /// Empty flushes that were queued, the oldest first.
    pub queued: VecDeque<Key>,
    /// Writes whose data is completed and whose end is not.
    pub ending: VecDeque<Key>,
    pub in_flight: VecDeque<FlushRequest>,
    pub last: Option<LastFlush>,
}

impl Flushes {
    pub fn queue(&mut self, bio: Key) {
        bounded_push(&mut self.queued, bio);
    }

    pub fn end_later(&mut self, bio: Key) {
        bounded_push(&mut self.ending, bio);
    }

    /// Adds a request; gives back one that is forgotten for it.
    pub fn issue(&mut self, request: FlushRequest) -> Option<FlushRequest> {
        bounded_push(&mut self.in_flight, request)
    }

    /// When the flush was issued that a bio of this time waited for, if it was.
    pub fn issued_for(&self, intended_ns: i64) -> Option<i64> {
        self.last.map(|last| last.issue_ns).filter(|&issue_ns| issue_ns >= intended_ns)
    }

    /// Takes the bio that an empty completion at this sector ends.
    ///
    /// The kernel ends bios in the order in which they were queued. A write's end stands at its first sector, or after its last
    /// on older kernels; an empty flush's at 0.
    pub fn take_ended(&mut self, bios: &BioTable, sector: u64) -> Option<Key> {
        while self.queued.front().is_some_and(|&key| bios.bios.get(key).is_none()) {
            self.queued.pop_front();
        }
        let here =
            |key: &Key| bios.bios.get(*key).is_some_and(|bio| bio.span.0 == sector || bio.span.1 == sector);
        let write = self.ending.iter().position(here);
        let empty = self.queued.front().copied().filter(|&key| {
            write.is_none()
                || bios.bios.get(key).is_some_and(|bio| self.issued_for(bio.intended_ns).is_some())
        });
        match (write, empty) {
            (Some(place), Some(empty)) if empty < self.ending[place] => self.queued.pop_front(),
            (Some(place), _) => self.ending.remove(place),
            (None, Some(_)) => self.queued.pop_front(),
            (None, None) => self.ending.pop_front(),
        }
    }
}

fn bounded_push<T>(list: &mut VecDeque<T>, value: T) -> Option<T> {
    list.push_back(value);
    if list.len() > FLUSHES_MAX {
        list.pop_front()
    } else {
        None
    }
}
