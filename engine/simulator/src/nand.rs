//! Channels, dies and planes.
//!
//! A plane reads one NAND page at a time and hands it to the die's channel. A die programs one unit at a time, which its
//! channel brings in chunks of a NAND page, so that reads of other dies pass between them. Reads may overtake a waiting
//! program a bounded number of times; one that runs is not suspended.

use crate::buffer::UnitNumber;
use crate::events::{Action, Events};
use crate::parameters::{Parameters, ReadTime};
use crate::server::{transfer_ns, Server};
use crate::PAGE_BYTES;
use std::collections::VecDeque;
use testdrive_core::SplitMix64;

/// A read of pages that lie in one NAND page.
#[derive(Clone, Copy, Debug)]
struct GroupRead {
    order: u64,
    slot: u32,
    pages: u32,
}

/// What a die is to program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// A unit of the write buffer.
    Host(UnitNumber),
    /// Data that reclaiming moves, or metadata.
    Reclaim,
}

#[derive(Clone, Debug, Default)]
struct Plane {
    waiting: VecDeque<GroupRead>,
    sensing: Option<GroupRead>,
}

#[derive(Clone, Debug, Default)]
struct Die {
    waiting: VecDeque<(u64, Program)>,
    programming: Option<Program>,
    chunks_to_transfer: u64,
    planes_sensing: u32,
    reads_overtaken: u32,
}

/// All of the NAND.
#[derive(Clone, Debug)]
pub(crate) struct Nand {
    channels: Vec<Server>,
    dies: Vec<Die>,
    planes: Vec<Plane>,
    planes_per_die: u32,
    reads_before_program: u32,
    page_transfer_ns: i64,
    chunk_transfer_ns: i64,
    chunks_per_unit: u64,
    read_ns: i64,
    read_spread_ns: i64,
    read_time: ReadTime,
    program_ns: i64,
    arrivals: u64,
    next_die: u32,
    random: SplitMix64,
    pub(crate) reads: u64,
    pub(crate) host_programs: u64,
    pub(crate) reclaim_programs: u64,
}

impl Nand {
    pub(crate) fn new(parameters: &Parameters) -> Nand {
        let rate = parameters.channel_bytes_per_s;
        Nand {
            channels: vec![Server::default(); parameters.channels as usize],
            dies: vec![Die::default(); parameters.dies() as usize],
            planes: vec![Plane::default(); parameters.planes() as usize],
            planes_per_die: parameters.planes_per_die,
            reads_before_program: parameters.reads_before_program,
            page_transfer_ns: transfer_ns(PAGE_BYTES, rate),
            chunk_transfer_ns: transfer_ns(parameters.nand_page_bytes, rate),
            chunks_per_unit: parameters.program_unit_bytes / parameters.nand_page_bytes,
            read_ns: parameters.nand_read_ns,
            read_spread_ns: parameters.nand_read_spread_ns,
            read_time: parameters.nand_read_time,
            program_ns: parameters.program_ns,
            arrivals: 0,
            next_die: 0,
            random: SplitMix64::new(parameters.seed ^ 0x6e61_6e64),
            reads: 0,
            host_programs: 0,
            reclaim_programs: 0,
        }
    }

    /// Brings a read of so many pages to a plane.
    #[inline]
    pub(crate) fn read(&mut self, now_ns: i64, plane: u32, slot: u32, pages: u32, events: &mut Events) {
        self.arrivals += 1;
        self.reads += 1;
        self.planes[plane as usize].waiting.push_back(GroupRead { order: self.arrivals, slot, pages });
        self.start_read(now_ns, plane, events);
    }

    /// Brings a program to the next die: units are striped over channels first.
    pub(crate) fn program(&mut self, now_ns: i64, program: Program, events: &mut Events) {
        self.arrivals += 1;
        match program {
            Program::Host(_) => self.host_programs += 1,
            Program::Reclaim => self.reclaim_programs += 1,
        }
        let die = self.next_die;
        self.next_die = (die + 1) % self.dies.len() as u32;
        self.dies[die as usize].waiting.push_back((self.arrivals, program));
        self.start_program(now_ns, die, events);
    }

    /// The plane has sensed: its page goes to the channel, and the plane to the next read.
    #[inline]
    pub(crate) fn sensed(&mut self, now_ns: i64, plane: u32, events: &mut Events) {
        let die = plane / self.planes_per_die;
        let read = self.planes[plane as usize].sensing.take().expect("a plane that sensed was sensing");
        self.dies[die as usize].planes_sensing -= 1;
        let transfer_ns = self.page_transfer_ns * i64::from(read.pages);
        let done_ns = self.channel_of(die).serve(now_ns, transfer_ns);
        events.schedule(done_ns, Action::GroupTransferred(read.slot));
        self.start_read(now_ns, plane, events);
        self.start_program(now_ns, die, events);
    }

    /// A chunk is in the die's register: the next one follows, or programming begins.
    pub(crate) fn chunk_transferred(&mut self, now_ns: i64, die: u32, events: &mut Events) {
        let state = &mut self.dies[die as usize];
        state.chunks_to_transfer -= 1;
        if state.chunks_to_transfer > 0 {
            self.transfer_chunk(now_ns, die, events);
        } else {
            events.schedule(now_ns + self.program_ns, Action::Programmed(die));
        }
    }

    /// The die has programmed; returns what.
    pub(crate) fn programmed(&mut self, now_ns: i64, die: u32, events: &mut Events) -> Program {
        let programmed = self.dies[die as usize].programming.take().expect("a die that programmed was at it");
        for plane in die * self.planes_per_die..(die + 1) * self.planes_per_die {
            self.start_read(now_ns, plane, events);
        }
        self.start_program(now_ns, die, events);
        programmed
    }

    /// Starts the plane's next read if the plane is idle and the read's turn has come.
    #[inline]
    fn start_read(&mut self, now_ns: i64, plane: u32, events: &mut Events) {
        let state = &mut self.planes[plane as usize];
        let die = &mut self.dies[(plane / self.planes_per_die) as usize];
        let Some(&read) = state.waiting.front() else { return };
        if state.sensing.is_some() || die.programming.is_some() {
            return;
        }
        if die.waiting.front().is_some_and(|(order, _)| *order < read.order) {
            if die.reads_overtaken >= self.reads_before_program {
                return;
            }
            die.reads_overtaken += 1;
        }
        state.waiting.pop_front();
        state.sensing = Some(read);
        die.planes_sensing += 1;
        events.schedule(now_ns + self.draw_read_ns(), Action::Sensed(plane));
    }

    /// Starts the die's next program if nothing runs there. Reads are started before it at every step, so that what still
    /// waits on a plane then may not overtake.
    #[inline]
    fn start_program(&mut self, now_ns: i64, die: u32, events: &mut Events) {
        let state = &mut self.dies[die as usize];
        if state.programming.is_some() || state.planes_sensing > 0 {
            return;
        }
        let Some((_, program)) = state.waiting.pop_front() else { return };
        state.programming = Some(program);
        state.reads_overtaken = 0;
        state.chunks_to_transfer = self.chunks_per_unit;
        self.transfer_chunk(now_ns, die, events);
    }

    fn transfer_chunk(&mut self, now_ns: i64, die: u32, events: &mut Events) {
        let chunk_ns = self.chunk_transfer_ns;
        let done_ns = self.channel_of(die).serve(now_ns, chunk_ns);
        events.schedule(done_ns, Action::ChunkTransferred(die));
    }

    fn channel_of(&mut self, die: u32) -> &mut Server {
        let channel = die as usize % self.channels.len();
        &mut self.channels[channel]
    }

    fn draw_read_ns(&mut self) -> i64 {
        match self.read_time {
            ReadTime::Fixed => self.read_ns,
            ReadTime::Uniform => {
                let width = self.read_spread_ns.cast_unsigned() * 2 + 1;
                self.read_ns - self.read_spread_ns + self.random.below(width) as i64
            }
            ReadTime::Exponential => {
                // 53 random bits, and never 0, whose logarithm is infinite.
                let uniform = ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                (-uniform.ln() * self.read_ns as f64).round() as i64
            }
        }
    }
}
