//! The drive: the queue of its interface, and the way of each command through its parts.

mod background;
mod faults;
mod overhead;
mod powering;
mod read;
mod write;

use crate::buffer::WriteBuffer;
use crate::command::{status_of, touched_pages, whole_pages};
use crate::contents::Contents;
use crate::counts::{Counters, HostCounters};
use crate::events::{Action, Events};
use crate::firmware::Firmware;
use crate::ftl::TranslationLayer;
use crate::log::{DriveEvent, DroppedEvents, EventKind, EventLog};
use crate::mapping_cache::MappingCache;
use crate::model::Model;
use crate::nand::Nand;
use crate::placement::Placement;
use crate::server::{transfer_ns, Server};
use background::Background;
use faults::Faults;
use overhead::Overhead;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use testdrive_core::{Command, Completion, Opcode};
use write::{AfterBarrier, Barrier, WaitingWrite};

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

    /// What the drive's parts did so far.
    pub fn counters(&self) -> Counters {
        let nand = &self.nand.counters;
        Counters {
            host: self.host,
            nand_reads: nand.reads,
            buffered_pages_read: self.buffered_pages_read,
            unmapped_pages_read: self.unmapped_pages_read,
            mapping_hits: self.mapping_cache.as_ref().map_or(0, |cache| cache.hits),
            mapping_misses: self.mapping_cache.as_ref().map_or(0, |cache| cache.misses),
            host_programs: nand.host_programs,
            cached_programs: nand.cached_programs,
            folded_programs: nand.folded_programs,
            suspends: nand.suspends,
            moved_programs: nand.moved_programs,
            overhead_programs: nand.overhead_programs,
            erases: nand.erases,
            pages: self.translation.counters(),
            energy_uj: self.nand.power.energy_pj() / 1_000_000,
            trim_owed_ns: self.firmware.owed_ns(),
        }
    }

    /// Lets so much be left of what is written from now on once it is compressed, if the drive does that: 0 of zeroes, 1 of random
    /// data.
    pub fn set_stored_share(&mut self, share: f64) {
        self.translation.set_stored_share(share);
    }

    /// Bytes that the NAND was given to program so far.
    pub fn nand_written_bytes(&self) -> u64 {
        self.counters().nand_written_bytes(self.model.parameters().program_unit_bytes)
    }

    /// Takes what the drive logged of its own work until now, and what the log had to drop of each kind.
    ///
    /// What the drive would do until then without a further command is in it after [`SimulatedDrive::advance`] only.
    pub fn take_events(&mut self, now_ns: i64) -> (Vec<DriveEvent>, Vec<(EventKind, DroppedEvents)>) {
        self.log.take(now_ns)
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

    /// Takes a command from the host into the drive.
    fn admit(&mut self, now_ns: i64, slot: u32) {
        self.in_drive += 1;
        let InFlight { command, status, .. } = self.command(slot);
        let pages = touched_pages(&command);
        let count = u64::from(pages.end - pages.start);
        let parameters = self.model.parameters();
        let (at_ns, action) = match command.opcode {
            _ if status != 0 => {
                (self.firmware.metadata(now_ns) + parameters.acknowledge_ns, Action::Completed(slot))
            }
            Opcode::Read => {
                (self.firmware.read(now_ns, count) + parameters.read_pipeline_ns, Action::ReadDecoded(slot))
            }
            Opcode::Write => {
                let decoded_ns = self.firmware.write(now_ns, count);
                let link_ns = transfer_ns(command.length_bytes, parameters.host_link_bytes_per_s);
                (self.link_in.serve(decoded_ns, link_ns), Action::WriteArrived(slot))
            }
            Opcode::Trim => {
                let done_ns = self.firmware.trim(now_ns, count);
                if let Some(work_ns) = self.firmware.trims_at_once_ns(count) {
                    self.log.note(EventKind::TrimService, done_ns - work_ns, done_ns, count);
                }
                (done_ns, Action::MetadataDecoded(slot))
            }
            Opcode::Flush | Opcode::WriteZeroes => {
                (self.firmware.metadata(now_ns), Action::MetadataDecoded(slot))
            }
        };
        self.events.schedule(at_ns, action);
    }

    fn metadata_decoded(&mut self, slot: u32) {
        let command = self.command(slot).command;
        if command.opcode == Opcode::Flush {
            return self.await_durability(slot, AfterBarrier::Acknowledge);
        }
        let pages = touched_pages(&command);
        if command.opcode == Opcode::Trim {
            if let Some(slice_ns) =
                self.firmware.owe_for_trim(self.now_ns, u64::from(pages.end - pages.start))
            {
                self.events.schedule(slice_ns, Action::TrimSlice);
            }
        }
        self.translation.unmap(whole_pages(&command));
        if let Some(contents) = &mut self.contents {
            contents.trim(whole_pages(&command));
        }
        self.acknowledge(slot);
    }

    fn work_on_trims(&mut self) {
        let slice = self.firmware.work_on_trims(self.now_ns);
        self.log.note(EventKind::TrimService, slice.start_ns, slice.end_ns, slice.pages);
        if let Some(next_ns) = slice.next_ns {
            self.events.schedule(next_ns, Action::TrimSlice);
        }
    }

    fn acknowledge(&mut self, slot: u32) {
        let at_ns = self.now_ns + self.model.parameters().acknowledge_ns + self.outlier_ns();
        self.events.schedule(at_ns, Action::Completed(slot));
    }

    fn complete(&mut self, slot: u32) {
        let entry = self.slots[slot as usize].take().expect("a command that completes is in flight");
        if entry.status == 0 {
            self.host.count(&entry.command);
        }
        self.completed.push_back(Completion { slot, complete_ns: self.now_ns, status: entry.status });
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.nand.power.rest(self.now_ns);
        }
        self.in_drive -= 1;
        if let Some(next) = self.waiting_in_host.pop_front() {
            self.admit(self.now_ns, next);
        }
    }

    fn command(&self, slot: u32) -> InFlight {
        self.slots[slot as usize].expect("an event is of a command in flight")
    }

    fn command_mut(&mut self, slot: u32) -> &mut InFlight {
        self.slots[slot as usize].as_mut().expect("an event is of a command in flight")
    }
}
