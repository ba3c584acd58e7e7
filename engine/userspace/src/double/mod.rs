//! A controller in memory that behaves as the specification says, with the faults that a test asks for.
//!
//! It is written from the specification's side: it reads rings, lists and ranges by the addresses that it is given, and knows nothing of
//! the driver. Commands of the admin queue are done at once, but for formats. Those of I/O queues are done by a thread, in any order, so
//! that the driver's memory accesses race with it as with a real one.

mod admin;
mod commands;
mod logs;
mod memory;
mod rings;
mod whole;

pub use memory::{heap_memory, walk};

use crate::function::Function;
use crate::memory::DmaMemory;
use crate::registers::{ACQ, AQA, ASQ, CAP, CC, CSTS, CSTS_FATAL, CSTS_READY, DOORBELLS, VS};
use logs::{Counters, Features};
use memory::Region;
use rings::{Completion, Submission};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;
use whole::{Formatting, Sanitized};

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
    /// The most ranges of a deallocate that it tells; 0 for none.
    pub trim_ranges: u8,
    /// What it can be formatted to beside what it is: the size of a block, and its metadata.
    pub other_formats: Vec<(u32, u16)>,
    /// Whether a format is of every namespace.
    pub format_is_of_all: bool,
    /// How it can be sanitized (SANICAP): bit 0 by deleting the key, 1 by erasing blocks, 2 by writing everything over.
    pub sanitize: u32,
    /// How many power states there are.
    pub power_states: u8,
    /// Whether there is a volatile write cache.
    pub has_cache: bool,
    /// Pages of memory are apart for the controller, as in huge pages without an IOMMU.
    pub scattered_bytes: Option<usize>,
    /// How many pages of the host's memory it would like to have, and needs at least; `None` of one that asks for none.
    pub host_memory_pages: Option<(u32, u32)>,
    /// Into how many pieces that may be cut; 0 for any.
    pub host_memory_pieces: u16,
    /// More than this is not to be had of the host in one go.
    pub memory_bytes_max: usize,
    /// Whether it goes to other power states by itself.
    pub sleeps: bool,
    /// How long it says that it may take to become ready, in half seconds.
    pub ready_limit: u8,
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
            trim_ranges: 0,
            other_formats: vec![(4096, 0), (512, 8)],
            format_is_of_all: false,
            sanitize: 2,
            power_states: 3,
            has_cache: true,
            scattered_bytes: None,
            host_memory_pages: None,
            host_memory_pieces: 0,
            memory_bytes_max: usize::MAX,
            sleeps: false,
            ready_limit: 1,
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
    /// The host wants it back.
    pub wanted_back: bool,
    /// The bus had an error; told once.
    pub bus_error: bool,
    /// It is asked for its status a few times before it is ready.
    pub starts_slowly: bool,
    /// It completes a command that nobody sent.
    pub nonsense: bool,
    /// Formats and sanitizes do not end, and are as far as `done_percent`.
    pub unending: bool,
    /// How far, of 100.
    pub done_percent: u8,
    /// Formats and sanitizes fail in the end.
    pub erase_fails: bool,
    /// It makes no submission queue.
    pub refuses_queues: bool,
    /// It deletes no completion queue.
    pub keeps_queues: bool,
    /// It fails when it is told to shut down.
    pub fails_to_shut_down: bool,
    /// It takes no memory of the host.
    pub refuses_memory: bool,
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
    /// How many commands of I/O queues it has answered.
    answered: usize,
    /// What it can be formatted to.
    formats: Vec<(u32, u16)>,
    format_index: u8,
    formatting: Option<Formatting>,
    sanitized: Sanitized,
    /// Whether the failure of a sanitize may be left behind.
    may_leave_failure: bool,
    counters: Counters,
    features: Features,
    random: u64,
    cut_off: bool,
    resets: u32,
    /// How many more looks at its status it takes until it is ready.
    starting: u32,
    shutdowns: u32,
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
        let mut formats = vec![(model.block_bytes, model.metadata_bytes)];
        formats.extend(&model.other_formats);
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
            answered: 0,
            formats,
            format_index: 0,
            formatting: None,
            sanitized: Sanitized::Never,
            may_leave_failure: false,
            counters: Counters::default(),
            features: Features::default(),
            random: 0x9e37_79b9_7f4a_7c15,
            cut_off: false,
            resets: 0,
            starting: 0,
            shutdowns: 0,
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

    /// How many commands of I/O queues it has answered.
    pub fn io_answers(&self) -> usize {
        self.lock().answered
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

    /// How often it was shut down in order.
    pub fn shutdowns(&self) -> u32 {
        self.lock().shutdowns
    }

    /// Whether it was stopped, and cut off from memory.
    pub fn is_put_away(&self) -> bool {
        let state = self.lock();
        state.cut_off && state.csts & CSTS_READY == 0
    }

    /// Lets it reach memory again, as whoever opens a function does.
    pub fn let_in(&self) {
        self.lock().cut_off = false;
    }

    /// How much memory of the host it has for its own things, and in how many pieces.
    pub fn lent(&self) -> (u64, usize) {
        let lent = &self.lock().features.lent;
        (lent.iter().map(|(_, bytes)| bytes).sum(), lent.len())
    }

    /// How many pieces of memory it can reach.
    pub fn memory_regions(&self) -> usize {
        self.lock().regions.len()
    }
}

impl Function for Double {
    fn read32(&self, offset: usize) -> u32 {
        let mut state = self.lock();
        let cap = state.cap();
        match offset {
            _ if state.faults.gone => u32::MAX,
            CAP => cap as u32,
            4 => (cap >> 32) as u32,
            VS => 0x0002_0000,
            CC => state.cc,
            CSTS => state.status(),
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
        if length_bytes > self.lock().model.memory_bytes_max {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(memory::allocate(&self.state, length_bytes))
    }

    fn interrupt(&self, _: u16) -> Option<RawFd> {
        None
    }

    fn interrupts(&self) -> u16 {
        0
    }

    fn is_wanted_back(&self) -> bool {
        self.lock().faults.wanted_back
    }

    fn take_bus_error(&self) -> bool {
        std::mem::take(&mut self.lock().faults.bus_error)
    }

    fn cut_off(&self) {
        self.lock().cut_off = true;
    }
}
