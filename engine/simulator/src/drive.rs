//! The drive: the queue of its interface, and the way of each command through its parts.

mod accounts;
mod background;
mod faults;
mod overhead;
mod passage;
mod powering;
mod read;
mod write;

use crate::buffer::WriteBuffer;
use crate::command::status_of;
use crate::contents::Contents;
use crate::counts::HostCounters;
use crate::events::{Action, Events};
use crate::firmware::Firmware;
use crate::ftl::TranslationLayer;
use crate::log::EventLog;
use crate::mapping_cache::MappingCache;
use crate::model::Model;
use crate::nand::Nand;
use crate::placement::Placement;
use crate::server::Server;
use background::Background;
use faults::Faults;
use overhead::Overhead;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use testdrive_core::{Command, Completion};
use write::{Barrier, WaitingWrite};

/// The slot of reads that no command waits for.
const NOBODY: u32 = u32::MAX;

/// What a command waits for the NAND for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// The mapping of what it reads.
    Mapping,
    /// What it reads.
    Data,
    /// What it writes only a part of.
    Merge,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct InFlight {
    command: Command,
    status: i32,
    /// Groups of pages of a read still to come from the NAND.
    groups_left: u32,
    stage: Stage,
}

/// A modelled drive, in virtual time.
///
/// Its clock is what the caller says: nanoseconds from any origin, negative ones too. To let time pass, ask for
/// completions up to a time; to jump to the next one, ask up to `i64::MAX`.
///
/// ```
/// use testdrive_core::{Command, Flags, Opcode};
/// use testdrive_simulator::{Model, SimulatedDrive};
///
/// let mut drive = SimulatedDrive::new(Model::builtin("enterprise-mixed")?);
/// let read = Command { offset_bytes: 0, length_bytes: 4096, opcode: Opcode::Read, flags: Flags::NONE };
/// drive.submit(0, 0, &read);
/// let completion = drive.pop_completed(i64::MAX).expect("one command is in flight");
/// assert_eq!((completion.slot, completion.status), (0, 0));
/// # Ok::<(), testdrive_simulator::ModelError>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SimulatedDrive {
    model: Model,
    now_ns: i64,
    events: Events,
    slots: Vec<Option<InFlight>>,
    in_flight: usize,
    in_drive: u32,
    waiting_in_host: VecDeque<u32>,
    firmware: Firmware,
    link_in: Server,
    link_out: Server,
    translation: TranslationLayer,
    placement: Placement,
    buffer: WriteBuffer,
    waiting_writes: VecDeque<WaitingWrite>,
    barriers: VecDeque<Barrier>,
    overhead: Overhead,
    background: Background,
    mapping_cache: Option<MappingCache>,
    contents: Option<Contents>,
    faults: Faults,
    nand: Nand,
    completed: VecDeque<Completion>,
    buffered_pages_read: u64,
    unmapped_pages_read: u64,
    host: HostCounters,
    log: EventLog,
}

impl SimulatedDrive {
    /// A drive of this model, before its first command.
    pub fn new(model: Model) -> SimulatedDrive {
        let parameters = model.parameters();
        let translation = TranslationLayer::new(parameters);
        SimulatedDrive {
            now_ns: i64::MIN,
            events: Events::default(),
            slots: Vec::new(),
            in_flight: 0,
            in_drive: 0,
            waiting_in_host: VecDeque::new(),
            firmware: Firmware::new(parameters),
            link_in: Server::default(),
            link_out: Server::default(),
            placement: Placement::new(parameters, translation.cache_start()),
            buffer: WriteBuffer::new(parameters.write_buffer_bytes, translation.units()),
            overhead: Overhead::new(parameters, &translation),
            background: Background::default(),
            mapping_cache: MappingCache::new(parameters),
            contents: parameters.keeps_contents().then(|| Contents::new(parameters.pages())),
            faults: Faults::new(parameters),
            translation,
            waiting_writes: VecDeque::new(),
            barriers: VecDeque::new(),
            nand: Nand::new(parameters),
            completed: VecDeque::new(),
            buffered_pages_read: 0,
            unmapped_pages_read: 0,
            host: HostCounters::default(),
            log: EventLog::default(),
            model,
        }
    }

    /// What the drive is a model of.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Commands submitted and not yet completed.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Lets so much be left of what is written from now on once it is compressed, if the drive does that: 0 of zeroes, 1 of random
    /// data.
    pub fn set_stored_share(&mut self, share: f64) {
        self.translation.set_stored_share(share);
    }

    /// Lets the drive do what it does by itself until a time. It is done in any case before the next command; whoever asks what the
    /// drive has become meanwhile calls this before.
    pub fn advance(&mut self, until_ns: i64) {
        while let Some((event_ns, action)) = self.events.pop(until_ns) {
            self.act(event_ns, action);
        }
    }

    /// Hands a command to the drive. Completions are named by the slot; small numbers keep the table of slots small.
    ///
    /// # Panics
    /// When time would run backwards (`now_ns` before a submission or a completion already seen), or the slot is in flight.
    pub fn submit(&mut self, now_ns: i64, slot: u32, command: &Command) {
        assert!(now_ns >= self.now_ns, "a command was submitted at {now_ns} ns, after {} ns", self.now_ns);
        // What the drive does by itself until now comes first, however the caller asked for completions in between.
        self.advance(now_ns);
        self.now_ns = now_ns;
        self.begin_background();
        let index = slot as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, None);
        }
        let status = status_of(command, self.model.parameters());
        if status == 0 && command.opcode.transfers() {
            self.translation.prefetch((command.offset_bytes / crate::PAGE_BYTES) as u32);
        }
        let entry = InFlight { command: *command, status, groups_left: 0, stage: Stage::Data };
        assert!(self.slots[index].replace(entry).is_none(), "slot {slot} was submitted while in flight");
        self.in_flight += 1;
        self.begin_to_draw();
        if self.faults.gone {
            return self.refuse(slot);
        }
        if self.in_drive < self.model.parameters().queue_depth {
            self.admit(now_ns, slot);
        } else {
            self.waiting_in_host.push_back(slot);
        }
    }

    /// A time before which nothing completes unless more is submitted, or `None` where nothing is in flight.
    ///
    /// It is the time of the drive's next step, which need not be a completion: after asking up to this time and getting
    /// none, ask again.
    pub fn next_completion_ns(&self) -> Option<i64> {
        match self.completed.front() {
            Some(completion) => Some(completion.complete_ns),
            None if self.in_flight == 0 => None,
            None => self.events.next_ns(),
        }
    }

    /// The next completion at `until_ns` or before: in the order of time, and those of one time always in the same order.
    ///
    /// The drive's clock moves to the completion, or else to the last step until then; nothing may be submitted before it.
    pub fn pop_completed(&mut self, until_ns: i64) -> Option<Completion> {
        // Without commands in flight the drive's own work can wait for the next submission.
        while self.completed.is_empty() && self.in_flight > 0 {
            let (event_ns, action) = self.events.pop(until_ns)?;
            self.act(event_ns, action);
        }
        if self.completed.front()?.complete_ns > until_ns {
            return None;
        }
        self.completed.pop_front()
    }

    fn act(&mut self, now_ns: i64, action: Action) {
        self.now_ns = now_ns;
        match action {
            Action::ReadDecoded(slot) => self.read(slot),
            Action::Sensed(plane) => self.nand.sensed(now_ns, plane, &mut self.events),
            Action::GroupTransferred(slot) => self.group_transferred(slot),
            Action::WriteArrived(slot) => self.write_arrived(slot),
            Action::MetadataDecoded(slot) => self.metadata_decoded(slot),
            Action::UnitTransferred(die) => self.nand.unit_transferred(now_ns, die, &mut self.events),
            Action::WorkDone(die) => self.work_done(die),
            Action::TrimSlice => self.work_on_trims(),
            Action::Fold => self.fold(),
            Action::Housekeeping => self.housekeeping(),
            Action::Stall => self.stall(),
            Action::PowerLoss => self.lose_power(),
            Action::Gone => self.disappear(),
            Action::TemperatureStep => self.step_temperature(),
            Action::Completed(slot) => self.complete(slot),
        }
    }

    fn command(&self, slot: u32) -> InFlight {
        self.slots[slot as usize].expect("an event is of a command in flight")
    }

    fn command_mut(&mut self, slot: u32) -> &mut InFlight {
        self.slots[slot as usize].as_mut().expect("an event is of a command in flight")
    }
}
