//! What was handed to the driver and not yet completed.

use super::bios::{Part, Span};
use super::few::Few;
use super::rows::RowPlace;
use crate::slab::{Key, Slab};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use testdrive_core::{Flags, Opcode};

/// One request under way.
#[derive(Debug)]
pub(crate) struct Request {
    /// Its row, where requests are rows.
    pub row: Option<RowPlace>,
    pub intended_ns: i64,
    pub issue_ns: i64,
    /// What is not yet completed of it.
    pub span: Span,
    pub sectors: u64,
    pub start: u64,
    pub opcode: Opcode,
    pub flags: Flags,
    pub cpu: i32,
    pub status: i32,
    /// What it covers, where queued I/Os are rows.
    pub parts: Few<Part>,
    /// The same was issued again since, so that this one is likely none of its own.
    pub repeated: bool,
}

/// Hashes a place on a drive: one multiplication, since millions are looked up and nobody chooses them with malice that a
/// bounded table could not bear.
#[derive(Default)]
pub(crate) struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }
}

type PlaceMap<V> = HashMap<(u64, u8), V, BuildHasherDefault<PlaceHasher>>;

/// All requests under way, by where the rest of each starts.
pub(crate) struct RequestTable {
    pub requests: Slab<Request>,
    by_place: PlaceMap<Few<Key>>,
}

impl RequestTable {
    pub fn new() -> RequestTable {
        RequestTable { requests: Slab::new(), by_place: PlaceMap::default() }
    }

    pub fn insert(&mut self, request: Request) -> Key {
        let place = (request.span.0, request.opcode as u8);
        let key = self.requests.insert(request);
        self.by_place.entry(place).or_default().push(key);
        key
    }

    pub fn remove(&mut self, key: Key) -> Option<Request> {
        let request = self.requests.remove(key)?;
        self.unlist(request.span.0, request.opcode, key);
        Some(request)
    }

    /// The request over exactly this span, if it was not issued again since.
    pub fn exact(&self, opcode: Opcode, span: Span) -> Option<Key> {
        self.find(opcode, span.0, |request| !request.repeated && request.span == span)
    }

    /// The request that the driver gives back: over this span, or at least from its start.
    pub fn given_back(&self, opcode: Opcode, span: Span) -> Option<Key> {
        self.exact(opcode, span).or_else(|| self.find(opcode, span.0, |request| !request.repeated))
    }

    /// The request that a completion of this span is of.
    ///
    /// The first of the same length; else the first that is longer, which completes in parts; else the last of those that were
    /// issued again, since a second completion shows that it was an I/O of its own; else the first from this sector.
    pub fn completed(&self, opcode: Opcode, span: Span) -> Option<Key> {
        self.exact(opcode, span)
            .or_else(|| self.find(opcode, span.0, |request| !request.repeated && request.span.1 > span.1))
            .or_else(|| {
                let keys = self.by_place.get(&(span.0, opcode as u8))?;
                keys.iter().rev().copied().find(|&key| {
                    self.requests.get(key).is_some_and(|request| request.repeated && request.span == span)
                })
            })
            .or_else(|| self.find(opcode, span.0, |request| !request.repeated))
    }

    /// Notes that a request is completed up to a sector inside it.
    pub fn advance(&mut self, key: Key, to: u64) {
        let Some(request) = self.requests.get_mut(key) else { return };
        let (from, opcode) = (request.span.0, request.opcode);
        request.span.0 = to;
        self.unlist(from, opcode, key);
        self.by_place.entry((to, opcode as u8)).or_default().push(key);
    }

    fn find(&self, opcode: Opcode, sector: u64, fits: impl Fn(&Request) -> bool) -> Option<Key> {
        let keys = self.by_place.get(&(sector, opcode as u8))?;
        keys.iter().copied().find(|&key| self.requests.get(key).is_some_and(&fits))
    }

    fn unlist(&mut self, sector: u64, opcode: Opcode, key: Key) {
        let place = (sector, opcode as u8);
        if let Some(keys) = self.by_place.get_mut(&place) {
            keys.retain(|other| *other != key);
            if keys.is_empty() {
                self.by_place.remove(&place);
            }
        }
    }
}
