//! What was handed to the driver and not yet completed.

use super::bios::{Part, Span};
use super::few::Few;
use super::rows::RowPlace;
use crate::slab::{Key, Slab};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
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
    /// The same was issued again since, so that this one is likely none of its own: see [`RequestTable::put_aside`].
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

/// By sector and opcode.
pub(crate) type PlaceMap<V> = HashMap<(u64, u8), V, BuildHasherDefault<PlaceHasher>>;

/// All requests under way, by where the rest of each starts.
pub(crate) struct RequestTable {
    pub requests: Slab<Request>,
    by_place: PlaceMap<Few<Key>>,
    /// Those that were put aside, the oldest first. Most never complete, and they must not be in the way of those that do.
    aside: PlaceMap<VecDeque<Key>>,
}

impl RequestTable {
    pub fn new() -> RequestTable {
        RequestTable { requests: Slab::new(), by_place: PlaceMap::default(), aside: PlaceMap::default() }
    }

    pub fn insert(&mut self, request: Request) -> Key {
        let place = (request.span.0, request.opcode as u8);
        let key = self.requests.insert(request);
        self.by_place.entry(place).or_default().push(key);
        key
    }

    pub fn remove(&mut self, key: Key) -> Option<Request> {
        let request = self.requests.remove(key)?;
        if request.repeated {
            self.take_from_aside(request.span.0, request.opcode, key);
        } else {
            self.unlist(request.span.0, request.opcode, key);
        }
        Some(request)
    }

    /// Puts a request aside of which the same was issued again: it is likely none of its own, until a second completion proves it.
    pub fn put_aside(&mut self, key: Key) {
        let Some(request) = self.requests.get_mut(key) else { return };
        request.repeated = true;
        let (sector, opcode) = (request.span.0, request.opcode);
        self.unlist(sector, opcode, key);
        self.aside.entry((sector, opcode as u8)).or_default().push_back(key);
    }

    /// Takes out the request over exactly this span, if it was not issued again since: nearly every completion is of such a one.
    pub fn take_exact(&mut self, opcode: Opcode, span: Span) -> Option<Request> {
        let Entry::Occupied(mut keys) = self.by_place.entry((span.0, opcode as u8)) else { return None };
        let requests = &self.requests;
        let is_exact = |key: &Key| requests.get(*key).is_some_and(|request| request.span == span);
        let key = keys.get().iter().copied().find(is_exact)?;
        keys.get_mut().retain(|other| *other != key);
        if keys.get().is_empty() {
            keys.remove();
        }
        self.requests.remove(key)
    }

    /// The request over exactly this span, if it was not issued again since.
    pub fn exact(&self, opcode: Opcode, span: Span) -> Option<Key> {
        self.find(opcode, span.0, |request| request.span == span)
    }

    /// The request that the driver gives back: over this span, or at least from its start.
    pub fn given_back(&self, opcode: Opcode, span: Span) -> Option<Key> {
        self.exact(opcode, span).or_else(|| self.find(opcode, span.0, |_| true))
    }

    /// The request that a completion of this span is of.
    ///
    /// The first of the same length; else the first that is longer, which completes in parts; else the last of those that were
    /// issued again, since a second completion shows that it was an I/O of its own; else the first from this sector.
    pub fn completed(&self, opcode: Opcode, span: Span) -> Option<Key> {
        self.exact(opcode, span)
            .or_else(|| self.find(opcode, span.0, |request| request.span.1 > span.1))
            .or_else(|| {
                let keys = self.aside.get(&(span.0, opcode as u8))?;
                let same = |key: &Key| self.requests.get(*key).is_some_and(|request| request.span == span);
                keys.iter().rev().copied().find(same)
            })
            .or_else(|| self.find(opcode, span.0, |_| true))
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

    fn take_from_aside(&mut self, sector: u64, opcode: Opcode, key: Key) {
        let place = (sector, opcode as u8);
        let Some(keys) = self.aside.get_mut(&place) else { return };
        // Mostly the last, which completed, or the first, which is given up.
        if keys.back() == Some(&key) {
            keys.pop_back();
        } else if let Some(at) = keys.iter().position(|other| *other == key) {
            keys.remove(at);
        }
        if keys.is_empty() {
            self.aside.remove(&place);
        }
    }

    fn unlist(&mut self, sector: u64, opcode: Opcode, key: Key) {
        if let Entry::Occupied(mut keys) = self.by_place.entry((sector, opcode as u8)) {
            keys.get_mut().retain(|other| *other != key);
            if keys.get().is_empty() {
                keys.remove();
            }
        }
    }
}
