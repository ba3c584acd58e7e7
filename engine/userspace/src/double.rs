//! A controller in memory that behaves as the specification says, with the faults that a test asks for.
//!
//! It is written from the specification's side: it reads rings, lists and ranges by the addresses that it is given, and knows nothing of
//! the driver. Commands of the admin queue are done at once. Those of I/O queues are done by a thread, in any order, so that the driver's
//! memory accesses race with it as with a real one.

use crate::function::Function;
use crate::memory::{Addresses, DmaMemory, PAGE_BYTES};
use crate::registers::{
    ACQ, AQA, ASQ, CAP, CC, CC_ENABLE, CC_SHUTDOWN_MASK, CSTS, CSTS_FATAL, CSTS_READY,
    CSTS_SHUTDOWN_COMPLETE, DOORBELLS, VS,
};
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::Duration;

/// What the controller is to be.
#[derive(Clone, Debug)]
pub struct Model {
    /// The size of a logical block.
    pub block_bytes: u32,
    /// How many blocks there are.
    pub blocks: u64,
    /// Metadata of each block.
    pub metadata_bytes: u16,
    /// The identifiers of its namespaces; all are the same.
    pub namespaces: Vec<u32>,
    /// The longest transfer, as a power of two of pages; 0 for any.
    pub mdts: u8,
    /// The most entries of a queue.
    pub queue_entries: u16,
    /// Doorbells are 4 << this bytes apart.
    pub doorbell_stride: u8,
    /// I/O queue pairs.
    pub pairs: u16,
    /// Whether it deallocates, and writes zeroes.
    pub can_trim: bool,
    /// Pages of memory are apart for the controller, as in huge pages without an IOMMU.
    pub scattered_bytes: Option<usize>,
}

impl Default for Model {
    fn default() -> Self {
        Model {
            block_bytes: 512,
            blocks: 32_768,
            metadata_bytes: 0,
            namespaces: vec![1],
            mdts: 4,
            queue_entries: 64,
            doorbell_stride: 0,
            pairs: 4,
            can_trim: true,
            scattered_bytes: None,
        }
    }
}

/// Faults; each holds until it is switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// I/O queues are not served.
    pub silent: bool,
    /// The admin queue neither.
    pub admin_silent: bool,
    /// Aborts bring the command back, with its status.
    pub aborts_work: bool,
    /// It does not become ready.
    pub never_ready: bool,
    /// Its registers read as all ones.
    pub gone: bool,
    /// I/O commands to this block fail with "unrecovered read error".
    pub bad_block: Option<u64>,
    /// It completes a command that nobody sent.
    pub nonsense: bool,
}

struct Region {
    id: usize,
    start: usize,
    length: usize,
    addresses: Addresses,
}

#[derive(Default)]
struct Submission {
    base: u64,
    entries: u32,
    head: u32,
    tail: u32,
    completion: u16,
}

#[derive(Default)]
struct Completion {
    base: u64,
    entries: u32,
    tail: u32,
    head: u32,
    phase: bool,
}

type Entry = [u8; 64];

struct State {
    model: Model,
    faults: Faults,
    cc: u32,
    csts: u32,
    aqa: u32,
    asq: u64,
    acq: u64,
    regions: Vec<Region>,
    next_region: (usize, u64),
    submissions: BTreeMap<u16, Submission>,
    completions: BTreeMap<u16, Completion>,
    /// Fetched and not done, with the head at which each was fetched.
    pending: Vec<(u16, Entry)>,
    storage: Vec<u8>,
    log: Vec<Entry>,
    random: u64,
    cut_off: bool,
    resets: u32,
}

/// A controller in memory. Copies are of the same one.
#[derive(Clone)]
pub struct Double {
    state: Arc<Mutex<State>>,
    _running: Arc<Running>,
}

/// Ends the thread with the last copy.
struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Double {
    /// A controller with a thread that serves its queues.
    pub fn new(model: Model) -> Double {
        let storage = vec![0; model.blocks as usize * model.block_bytes as usize];
        let state = State {
            model,
            faults: Faults::default(),
            cc: 0,
            csts: 0,
            aqa: 0,
            asq: 0,
            acq: 0,
            regions: Vec::new(),
            next_region: (0, 0x1_0000_0000),
            submissions: BTreeMap::new(),
            completions: BTreeMap::new(),
            pending: Vec::new(),
            storage,
            log: Vec::new(),
            random: 0x9e37_79b9_7f4a_7c15,
            cut_off: false,
            resets: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let running = Arc::new(AtomicBool::new(true));
        let (serving, goes_on) = (Arc::clone(&state), Arc::clone(&running));
        thread::spawn(move || {
            while goes_on.load(Ordering::Relaxed) {
                let is_idle = {
                    let mut state = serving.lock().expect("no test holds this lock in a panic");
                    state.serve();
                    state.pending.is_empty()
                };
                // Tests run side by side: an idle controller must not take their CPU.
                if is_idle {
                    thread::sleep(Duration::from_micros(20));
                } else {
                    thread::yield_now();
                }
            }
        });
        Double { state, _running: Arc::new(Running(running)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test holds this lock in a panic")
    }

    /// Switches faults.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Says that it failed, until it is reset.
    pub fn fail(&self) {
        self.lock().csts |= CSTS_FATAL;
    }

    /// The commands of I/O queues that it fetched, in order.
    pub fn io_commands(&self) -> Vec<[u8; 64]> {
        self.lock().log.clone()
    }

    /// The bytes of the medium.
    pub fn content(&self, offset: usize, length: usize) -> Vec<u8> {
        self.lock().storage[offset..offset + length].to_vec()
    }

    /// Changes the medium behind the controller's back.
    pub fn set_content(&self, offset: usize, bytes: &[u8]) {
        self.lock().storage[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// How many I/O queues there are: submission, completion.
    pub fn queues(&self) -> (usize, usize) {
        let state = self.lock();
        (
            state.submissions.keys().filter(|id| **id > 0).count(),
            state.completions.keys().filter(|id| **id > 0).count(),
        )
    }

    /// How often it was enabled.
    pub fn starts(&self) -> u32 {
        self.lock().resets
    }

    /// Whether it was stopped, and cut off from memory.
    pub fn is_put_away(&self) -> bool {
        let state = self.lock();
        state.cut_off && state.csts & CSTS_READY == 0
    }

    /// How many pieces of memory it can reach.
    pub fn memory_regions(&self) -> usize {
        self.lock().regions.len()
    }
}

impl Function for Double {
    fn read32(&self, offset: usize) -> u32 {
        let state = self.lock();
        let cap = state.cap();
        match offset {
            _ if state.faults.gone => u32::MAX,
            CAP => cap as u32,
            4 => (cap >> 32) as u32,
            VS => 0x0002_0000,
            CC => state.cc,
            CSTS => state.csts,
            _ => 0,
        }
    }

    fn write32(&self, offset: usize, value: u32) {
        let mut state = self.lock();
        let half = |old: u64, high: bool| match high {
            false => old & !0xffff_ffff | u64::from(value),
            true => old & 0xffff_ffff | u64::from(value) << 32,
        };
        match offset {
            _ if state.faults.gone => {}
            CC => state.configure(value),
            AQA => state.aqa = value,
            ASQ => state.asq = half(state.asq, false),
            0x2c => state.asq = half(state.asq, true),
            ACQ => state.acq = half(state.acq, false),
            0x34 => state.acq = half(state.acq, true),
            _ if offset >= DOORBELLS => state.doorbell(offset, value),
            _ => {}
        }
    }

    fn registers_bytes(&self) -> usize {
        0x2000
    }

    fn allocate(&self, length_bytes: usize) -> io::Result<DmaMemory> {
        let length = length_bytes.next_multiple_of(PAGE_BYTES);
        let mut state = self.lock();
        let (id, start) = state.next_region;
        let addresses = match state.model.scattered_bytes {
            None => Addresses::Contiguous(start),
            // Every second piece is somebody else's.
            Some(bytes) => Addresses::Pieces {
                bytes,
                starts: (0..length.div_ceil(bytes) as u64)
                    .rev()
                    .map(|piece| start + 2 * piece * bytes as u64)
                    .collect(),
            },
        };
        // Never the same addresses again, so that what is used after it was freed is found.
        state.next_region = (id + 1, start + 4 * length.next_multiple_of(1 << 21) as u64);
        let heap = Heap::new(length);
        let start = heap.start;
        state.regions.push(Region {
            id,
            start: start.as_ptr() as usize,
            length,
            addresses: addresses.clone(),
        });
        let owner = Registered { id, state: Arc::downgrade(&self.state), _heap: heap };
        // SAFETY: the heap's memory lives as long as its owner.
        Ok(unsafe { DmaMemory::new(start, length, addresses, Box::new(owner)) })
    }

    fn interrupt(&self, _: u16) -> Option<RawFd> {
        None
    }

    fn interrupts(&self) -> u16 {
        0
    }

    fn cut_off(&self) {
        self.lock().cut_off = true;
    }
}

impl State {
    fn cap(&self) -> u64 {
        let entries = u64::from(self.model.queue_entries - 1);
        // TO is 1: half a second.
        entries | 1 << 16 | 1 << 24 | u64::from(self.model.doorbell_stride) << 32 | 1 << 37 | 4 << 52
    }

    fn configure(&mut self, value: u32) {
        let (was, is) = (self.cc & CC_ENABLE != 0, value & CC_ENABLE != 0);
        self.cc = value;
        if was && !is {
            // A reset: no queue outlives it, and what is pending is never done.
            self.submissions.clear();
            self.completions.clear();
            self.pending.clear();
            self.csts = 0;
        }
        if is && !was && !self.faults.never_ready {
            self.resets += 1;
            assert_eq!(value >> 16 & 0xff, 0x46, "entries of 64 and 16 bytes");
            let (submission, completion) = ((self.aqa & 0xfff) + 1, (self.aqa >> 16 & 0xfff) + 1);
            self.submissions
                .insert(0, Submission { base: self.asq, entries: submission, ..Submission::default() });
            self.completions.insert(
                0,
                Completion { base: self.acq, entries: completion, phase: true, ..Completion::default() },
            );
            self.csts |= CSTS_READY;
        }
        if value & CC_SHUTDOWN_MASK != 0 {
            self.csts |= CSTS_SHUTDOWN_COMPLETE;
        }
    }

    fn doorbell(&mut self, offset: usize, value: u32) {
        let index = (offset - DOORBELLS) / (4 << self.model.doorbell_stride);
        let id = (index / 2) as u16;
        if index % 2 == 1 {
            if let Some(queue) = self.completions.get_mut(&id) {
                assert!(value < queue.entries, "a head beyond the queue");
                queue.head = value;
            }
            return;
        }
        if let Some(queue) = self.submissions.get_mut(&id) {
            assert!(value < queue.entries, "a tail beyond the queue");
            queue.tail = value;
        }
        if id == 0 {
            self.serve_admin();
        }
    }

    /// Where an address of the driver's is for us. Whatever is not its memory is a fault that no IOMMU would let through.
    fn resolve(&self, address: u64, length: usize) -> usize {
        assert!(!self.cut_off, "DMA to {address:#x} after it was cut off");
        for region in &self.regions {
            let offset = match &region.addresses {
                Addresses::Contiguous(start) => address.checked_sub(*start).map(|offset| offset as usize),
                Addresses::Pieces { bytes, starts } => {
                    starts.iter().enumerate().find_map(|(index, start)| {
                        let within = address.checked_sub(*start)? as usize;
                        (within + length <= *bytes).then_some(index * bytes + within)
                    })
                }
            };
            if let Some(offset) = offset.filter(|offset| offset + length <= region.length) {
                return region.start + offset;
            }
        }
        panic!("DMA of {length} bytes to {address:#x}, which is not mapped");
    }

    fn load(&self, address: u64, bytes: &mut [u8]) {
        let from = self.resolve(address, bytes.len()) as *const u8;
        // SAFETY: `resolve` found so many bytes of a region that is still registered, and the lock keeps it so.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
    }

    fn store(&self, address: u64, bytes: &[u8]) {
        let to = self.resolve(address, bytes.len()) as *mut u8;
        // SAFETY: as in `load`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    fn word(&self, address: u64) -> u64 {
        let mut bytes = [0; 8];
        self.load(address, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn data_of(&self, entry: &Entry, length: usize) -> Vec<(u64, usize)> {
        let pointer = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().expect("eight bytes"));
        walk(pointer(24), pointer(32), length, |address| self.word(address))
    }

    fn fetch(&mut self, id: u16) -> Option<Entry> {
        let queue = self.submissions.get(&id).filter(|queue| queue.head != queue.tail)?;
        let mut entry = [0; 64];
        self.load(queue.base + u64::from(queue.head) * 64, &mut entry);
        let queue = self.submissions.get_mut(&id)?;
        queue.head = (queue.head + 1) % queue.entries;
        Some(entry)
    }

    fn complete(&mut self, id: u16, cid: u16, status: u16, result: u32) {
        let Some(submission) = self.submissions.get(&id) else { return };
        let (head, completion) = (submission.head, submission.completion);
        let Some(queue) = self.completions.get(&completion) else { return };
        assert_ne!((queue.tail + 1) % queue.entries, queue.head, "the completion queue is full");
        let at = queue.base + u64::from(queue.tail) * 16;
        let last = u32::from(cid) | u32::from(queue.phase) << 16 | u32::from(status) << 17;
        self.store(at, &result.to_le_bytes());
        self.store(at + 8, &(head | u32::from(id) << 16).to_le_bytes());
        let place = self.resolve(at + 12, 4) as *mut u32;
        // The driver must not see the phase before the rest.
        fence(Ordering::Release);
        // SAFETY: the word lies in registered memory and is aligned, as entries of 16 bytes are.
        unsafe { place.write_volatile(last.to_le()) };
        let queue = self.completions.get_mut(&completion).expect("it was just there");
        queue.tail += 1;
        if queue.tail == queue.entries {
            (queue.tail, queue.phase) = (0, !queue.phase);
        }
    }

    /// Fetches what is there, and completes one of it, whichever.
    fn serve(&mut self) {
        let ids: Vec<u16> = self.submissions.keys().copied().filter(|id| *id > 0).collect();
        for id in ids {
            while let Some(entry) = self.fetch(id) {
                self.log.push(entry);
                self.pending.push((id, entry));
            }
        }
        // What was fetched stays so, as in a controller whose medium hangs.
        if self.faults.silent || self.csts & CSTS_FATAL != 0 {
            return;
        }
        if self.pending.is_empty() {
            return;
        }
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let chosen = (self.random >> 33) as usize % self.pending.len();
        let (id, entry) = self.pending.swap_remove(chosen);
        let status = self.carry_out(&entry);
        let cid = u16::from_le_bytes([entry[2], entry[3]]);
        if self.faults.nonsense {
            self.complete(id, cid ^ 0x7000, 0, 0);
        }
        self.complete(id, cid, status, 0);
    }

    /// Does one I/O command; its status.
    fn carry_out(&mut self, entry: &Entry) -> u16 {
        const OUT_OF_RANGE: u16 = 0x4080;
        let dword =
            |index: usize| u32::from_le_bytes(entry[index * 4..][..4].try_into().expect("four bytes"));
        if !self.model.namespaces.contains(&dword(1)) {
            return 0x400b;
        }
        let block = self.model.block_bytes as usize;
        let first = u64::from(dword(10)) | u64::from(dword(11)) << 32;
        let blocks = u64::from(dword(12) & 0xffff) + 1;
        let within =
            |first: u64, blocks: u64| first.checked_add(blocks).is_some_and(|end| end <= self.model.blocks);
        match entry[0] {
            0x00 => 0,
            0x01 | 0x02 | 0x08 if !within(first, blocks) => OUT_OF_RANGE,
            0x01 | 0x02 | 0x08
                if self.faults.bad_block.is_some_and(|bad| (first..first + blocks).contains(&bad)) =>
            {
                0x281
            }
            opcode @ (0x01 | 0x02) => {
                let length = blocks as usize * block;
                if self.model.mdts > 0 && length > PAGE_BYTES << self.model.mdts {
                    return 0x4002;
                }
                let mut at = first as usize * block;
                for (address, bytes) in self.data_of(entry, length) {
                    if opcode == 0x01 {
                        let mut piece = vec![0; bytes];
                        self.load(address, &mut piece);
                        self.storage[at..at + bytes].copy_from_slice(&piece);
                    } else {
                        self.store(address, &self.storage[at..at + bytes]);
                    }
                    at += bytes;
                }
                0
            }
            0x08 => {
                let at = first as usize * block;
                self.storage[at..at + blocks as usize * block].fill(0);
                0
            }
            0x09 => self.deallocate(entry, dword(10), dword(11)),
            _ => 0x4001,
        }
    }

    fn deallocate(&mut self, entry: &Entry, ranges: u32, attributes: u32) -> u16 {
        assert_eq!(attributes, 4, "deallocate and nothing else");
        let length = (ranges as usize & 0xff) * 16 + 16;
        let mut bytes = Vec::new();
        for (address, count) in self.data_of(entry, length) {
            let mut piece = vec![0; count];
            self.load(address, &mut piece);
            bytes.extend(piece);
        }
        let block = self.model.block_bytes as usize;
        for range in bytes.chunks_exact(16) {
            let count = u32::from_le_bytes(range[4..8].try_into().expect("four bytes"));
            let first = u64::from_le_bytes(range[8..].try_into().expect("eight bytes"));
            if first + u64::from(count) > self.model.blocks {
                return 0x4080;
            }
            self.storage[first as usize * block..][..count as usize * block].fill(0);
        }
        0
    }

    fn serve_admin(&mut self) {
        if self.faults.admin_silent {
            return;
        }
        while let Some(entry) = self.fetch(0) {
            let cid = u16::from_le_bytes([entry[2], entry[3]]);
            let (status, result) = self.administer(&entry);
            self.complete(0, cid, status, result);
        }
    }

    fn administer(&mut self, entry: &Entry) -> (u16, u32) {
        let dword =
            |index: usize| u32::from_le_bytes(entry[index * 4..][..4].try_into().expect("four bytes"));
        let prp1 = u64::from_le_bytes(entry[24..32].try_into().expect("eight bytes"));
        let (id, entries) = (dword(10) as u16, (dword(10) >> 16) + 1);
        match entry[0] {
            0x05 if id == 0 || id > self.model.pairs || self.completions.contains_key(&id) => (0x4101, 0),
            0x05 | 0x01 if entries > u32::from(self.model.queue_entries) => (0x4102, 0),
            0x05 => {
                assert_eq!(
                    (prp1 % 4096, dword(11) & 1),
                    (0, 1),
                    "a queue in one piece, at the start of a page"
                );
                self.completions
                    .insert(id, Completion { base: prp1, entries, phase: true, ..Completion::default() });
                (0, 0)
            }
            0x01 => {
                let completion = (dword(11) >> 16) as u16;
                if id == 0
                    || self.submissions.contains_key(&id)
                    || !self.completions.contains_key(&completion)
                {
                    return (0x4101, 0);
                }
                assert_eq!(
                    (prp1 % 4096, dword(11) & 1),
                    (0, 1),
                    "a queue in one piece, at the start of a page"
                );
                self.submissions
                    .insert(id, Submission { base: prp1, entries, completion, ..Submission::default() });
                (0, 0)
            }
            0x00 => {
                self.pending.retain(|(queue, _)| *queue != id);
                (if self.submissions.remove(&id).is_some() { 0 } else { 0x4101 }, 0)
            }
            0x04 => {
                let in_use = self.submissions.values().any(|queue| queue.completion == id);
                match (in_use, self.completions.remove(&id)) {
                    (false, Some(_)) => (0, 0),
                    _ => (0x410c, 0),
                }
            }
            0x06 => self.identify(entry, dword(1), dword(10) & 0xff),
            0x08 => {
                let (queue, cid) = (dword(10) as u16, (dword(10) >> 16) as u16);
                let found = self
                    .pending
                    .iter()
                    .position(|(id, entry)| *id == queue && entry[2..4] == cid.to_le_bytes());
                match found.filter(|_| self.faults.aborts_work) {
                    Some(index) => {
                        self.pending.swap_remove(index);
                        self.complete(queue, cid, 0x0007, 0);
                        (0, 0)
                    }
                    None => (0, 1),
                }
            }
            0x09 if dword(10) == 7 => {
                let granted = (dword(11) & 0xffff).min(u32::from(self.model.pairs) - 1);
                (0, granted | granted << 16)
            }
            _ => (0x4001, 0),
        }
    }

    fn identify(&self, entry: &Entry, nsid: u32, structure: u32) -> (u16, u32) {
        let mut bytes = [0_u8; 4096];
        match structure {
            0x00 => {
                for offset in [0, 8] {
                    bytes[offset..offset + 8].copy_from_slice(&self.model.blocks.to_le_bytes());
                }
                let format =
                    u32::from(self.model.metadata_bytes) | self.model.block_bytes.trailing_zeros() << 16;
                bytes[128..132].copy_from_slice(&format.to_le_bytes());
            }
            0x01 => {
                bytes[4..24].copy_from_slice(b"DOUBLE-1            ");
                bytes[24..64].copy_from_slice(b"A controller in memory                  ");
                bytes[64..72].copy_from_slice(b"1.0     ");
                bytes[77] = self.model.mdts;
                bytes[520] = if self.model.can_trim { 0x0c } else { 0 };
            }
            0x02 => {
                let above = self.model.namespaces.iter().filter(|id| **id > nsid);
                above
                    .zip(bytes.chunks_exact_mut(4))
                    .for_each(|(id, place)| place.copy_from_slice(&id.to_le_bytes()));
            }
            _ => return (0x4002, 0),
        }
        let mut at = 0;
        for (address, count) in self.data_of(entry, bytes.len()) {
            self.store(address, &bytes[at..at + count]);
            at += count;
        }
        (0, 0)
    }
}

/// The pieces of memory that two entries and their list name, by the specification alone (Base 4.1.1).
pub fn walk(prp1: u64, prp2: u64, length: usize, word: impl Fn(u64) -> u64) -> Vec<(u64, usize)> {
    let page = PAGE_BYTES as u64;
    let first = ((page - prp1 % page) as usize).min(length);
    let mut pieces = vec![(prp1, first)];
    let mut left = length - first;
    if left > 0 && left <= PAGE_BYTES {
        assert_eq!(prp2 % page, 0, "a second entry that is no start of a page");
        pieces.push((prp2, left));
        return pieces;
    }
    let mut at = prp2;
    while left > 0 {
        let is_last_of_page = at % page == page - 8;
        let entry = word(at);
        assert_eq!(entry % page, 0, "an entry that is no start of a page");
        if is_last_of_page && left > PAGE_BYTES {
            at = entry;
            continue;
        }
        let bytes = left.min(PAGE_BYTES);
        pieces.push((entry, bytes));
        left -= bytes;
        at += 8;
    }
    pieces
}

/// Zeroed pages of the heap.
struct Heap {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory has one owner, and no thread's.
unsafe impl Send for Heap {}
// SAFETY: nothing is reached through a shared reference to it.
unsafe impl Sync for Heap {}

impl Heap {
    fn new(length: usize) -> Heap {
        let layout = Layout::from_size_align(length, PAGE_BYTES).expect("a test's memory is not that large");
        // SAFETY: the layout has a size.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).expect("a test's memory is there");
        Heap { start, layout }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and is freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Memory that the double reaches until this is dropped.
struct Registered {
    id: usize,
    state: Weak<Mutex<State>>,
    _heap: Heap,
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(state) = self.state.upgrade() {
            state
                .lock()
                .expect("no test holds this lock in a panic")
                .regions
                .retain(|region| region.id != self.id);
        }
    }
}

/// Memory with these addresses, of no controller.
pub fn heap_memory(length: usize, addresses: Addresses) -> DmaMemory {
    let heap = Heap::new(length);
    // SAFETY: the heap's memory lives as long as its owner.
    unsafe { DmaMemory::new(heap.start, length, addresses, Box::new(heap)) }
}
