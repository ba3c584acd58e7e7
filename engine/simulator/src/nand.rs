//! Dies and planes.
//!
//! A plane reads one NAND page at a time and hands it to the die's channel. A die programs one unit or erases one block at a
//! time. Reads may overtake a waiting program a bounded number of times, and interrupt one that runs as often as the drive lets them.

mod reads;

use crate::buffer::UnitNumber;
use crate::channel::{Channel, Transfer};
use crate::events::{Action, Events};
use crate::parameters::{Parameters, ReadTime};
use crate::power::Power;
use crate::server::transfer_ns;
use crate::PAGE_BYTES;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use testdrive_core::SplitMix64;

/// A read of pages that lie in one NAND page.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct GroupRead {
    order: u64,
    slot: u32,
    pages: u32,
}

/// What occupies a whole die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Programs a unit of the write buffer.
    Host(UnitNumber),
    /// Programs a unit of the write buffer into the SLC cache.
    HostCached(UnitNumber),
    /// Programs pages from the SLC cache.
    Folded,
    /// Programs pages that reclaiming moved.
    Moved,
    /// Programs parity and what the drive keeps for itself.
    Overhead,
    /// Erases a block.
    Erase,
    /// What the drive does for its NAND's sake.
    Housekeeping,
}

/// A program or an erase that was interrupted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Suspended {
    work: Work,
    left_ns: i64,
    /// Reads that may still go before it goes on.
    reads_left: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Plane {
    waiting: VecDeque<GroupRead>,
    sensing: Option<GroupRead>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Die {
    waiting: VecDeque<(u64, Work)>,
    working: Option<Work>,
    /// When the work is done, once its data is there: an event at another time is of work that was interrupted.
    done_ns: Option<i64>,
    suspended: Option<Suspended>,
    suspends_left: u32,
    transfer: Transfer,
    planes_sensing: u32,
    reads_overtaken: u32,
}

/// What the NAND did, or was told to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NandCounters {
    pub(crate) reads: u64,
    pub(crate) host_programs: u64,
    pub(crate) cached_programs: u64,
    pub(crate) folded_programs: u64,
    pub(crate) suspends: u64,
    pub(crate) moved_programs: u64,
    pub(crate) overhead_programs: u64,
    pub(crate) erases: u64,
}

/// All of the NAND.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Nand {
    channels: Vec<Channel>,
    dies: Vec<Die>,
    planes: Vec<Plane>,
    planes_per_die: u32,
    reads_before_program: u32,
    page_transfer_ns: i64,
    chunk_transfer_ns: i64,
    unit_transfer_ns: i64,
    read_ns: i64,
    read_spread_ns: i64,
    read_time: ReadTime,
    cached_unit_transfer_ns: i64,
    program_ns: i64,
    slc_program_ns: i64,
    erase_ns: i64,
    housekeeping_ns: i64,
    suspends: u32,
    suspend_ns: i64,
    plane_read_mw: u64,
    program_mw: u64,
    erase_mw: u64,
    pub(crate) power: Power,
    /// How long work waited for the power budget since it was last asked.
    waited_for_power_ns: i64,
    arrivals: u64,
    random: SplitMix64,
    pub(crate) counters: NandCounters,
}

impl Nand {
    pub(crate) fn new(parameters: &Parameters) -> Nand {
        let rate = parameters.channel_bytes_per_s;
        let chunk_transfer_ns = transfer_ns(parameters.nand_page_bytes, rate);
        let chunks = parameters.program_unit_bytes / parameters.nand_page_bytes;
        Nand {
            channels: vec![Channel::default(); parameters.channels as usize],
            dies: vec![Die::default(); parameters.dies() as usize],
            planes: vec![Plane::default(); parameters.planes() as usize],
            planes_per_die: parameters.planes_per_die,
            reads_before_program: parameters.reads_before_program,
            page_transfer_ns: transfer_ns(PAGE_BYTES, rate),
            chunk_transfer_ns,
            unit_transfer_ns: chunk_transfer_ns * chunks as i64,
            read_ns: parameters.nand_read_ns,
            read_spread_ns: parameters.nand_read_spread_ns,
            read_time: parameters.nand_read_time,
            cached_unit_transfer_ns: chunk_transfer_ns
                * (parameters.slc_unit_bytes / parameters.nand_page_bytes) as i64,
            program_ns: parameters.program_ns,
            slc_program_ns: parameters.slc_program_ns,
            erase_ns: parameters.erase_ns,
            housekeeping_ns: parameters.housekeeping_ns,
            suspends: parameters.suspends,
            suspend_ns: parameters.suspend_ns,
            plane_read_mw: parameters.nand_supply_mv * parameters.nand_read_ma / 1000,
            program_mw: parameters.nand_supply_mv * parameters.nand_program_ma / 1000,
            erase_mw: parameters.nand_supply_mv * parameters.nand_erase_ma / 1000,
            power: Power::new(parameters),
            waited_for_power_ns: 0,
            arrivals: 0,
            random: SplitMix64::new(parameters.seed ^ 0x6e61_6e64),
            counters: NandCounters::default(),
        }
    }

    /// How many dies there are.
    pub(crate) fn dies(&self) -> u32 {
        self.dies.len() as u32
    }

    /// Stops everything: power was lost. What was being programmed is as if it never was.
    pub(crate) fn restart(&mut self) {
        self.channels.fill(Channel::default());
        self.dies.fill(Die::default());
        self.planes.fill(Plane::default());
    }

    /// Brings a program or an erase to a die.
    pub(crate) fn work(&mut self, now_ns: i64, die: u32, work: Work, events: &mut Events) {
        self.arrivals += 1;
        match work {
            Work::Host(_) => self.counters.host_programs += 1,
            Work::HostCached(_) => self.counters.cached_programs += 1,
            Work::Folded => self.counters.folded_programs += 1,
            Work::Moved => self.counters.moved_programs += 1,
            Work::Overhead => self.counters.overhead_programs += 1,
            Work::Erase => self.counters.erases += 1,
            Work::Housekeeping => {}
        }
        self.dies[die as usize].waiting.push_back((self.arrivals, work));
        self.start_work(now_ns, die, events);
    }

    /// The data of a program should be in the die's register: programming begins, unless reads held it up.
    pub(crate) fn unit_transferred(&mut self, now_ns: i64, die: u32, events: &mut Events) {
        let channel = die as usize % self.channels.len();
        let state = &mut self.dies[die as usize];
        if let Some(later_ns) = self.channels[channel].end_program(&mut state.transfer) {
            return events.schedule(later_ns, Action::UnitTransferred(die));
        }
        let cached = matches!(state.working, Some(Work::HostCached(_)));
        let program_ns = if cached { self.slc_program_ns } else { self.program_ns };
        let wait_ns = self.draw(now_ns, self.program_mw, program_ns);
        self.occupy(now_ns, die, wait_ns + program_ns, events);
        self.let_reads_interrupt(now_ns, die, events);
    }

    /// The die is busy for so long from now on.
    fn occupy(&mut self, now_ns: i64, die: u32, busy_ns: i64, events: &mut Events) {
        self.dies[die as usize].done_ns = Some(now_ns + busy_ns);
        events.schedule(now_ns + busy_ns, Action::WorkDone(die));
    }

    /// The die is done, unless it was interrupted meanwhile; returns with what.
    pub(crate) fn work_done(&mut self, now_ns: i64, die: u32, events: &mut Events) -> Option<Work> {
        let state = &mut self.dies[die as usize];
        if state.done_ns != Some(now_ns) {
            return None;
        }
        state.done_ns = None;
        let done = state.working.take().expect("a die that is done was at work");
        self.start_reads(now_ns, die, events);
        self.start_work(now_ns, die, events);
        Some(done)
    }

    /// Starts the die's next program or erase if nothing runs there. Reads are started before it at every step, so that what still
    /// waits on a plane then may not overtake.
    #[inline]
    fn start_work(&mut self, now_ns: i64, die: u32, events: &mut Events) {
        let state = &mut self.dies[die as usize];
        if state.working.is_some() || state.planes_sensing > 0 {
            return;
        }
        if let Some(Suspended { work, left_ns, .. }) = state.suspended.take() {
            state.working = Some(work);
            self.occupy(now_ns, die, left_ns, events);
            return self.let_reads_interrupt(now_ns, die, events);
        }
        let Some((_, work)) = state.waiting.pop_front() else { return };
        state.working = Some(work);
        state.reads_overtaken = 0;
        state.suspends_left = self.suspends;
        let transfer_ns = match work {
            Work::Erase => {
                let wait_ns = self.draw(now_ns, self.erase_mw, self.erase_ns);
                return self.occupy(now_ns, die, wait_ns + self.erase_ns, events);
            }
            Work::Housekeeping => return self.occupy(now_ns, die, self.housekeeping_ns, events),
            Work::HostCached(_) => self.cached_unit_transfer_ns,
            Work::Host(_) | Work::Folded | Work::Moved | Work::Overhead => self.unit_transfer_ns,
        };
        let (end_ns, transfer) = self.channel_of(die).begin_program(now_ns, transfer_ns);
        self.dies[die as usize].transfer = transfer;
        events.schedule(end_ns, Action::UnitTransferred(die));
    }

    /// Books the energy of what begins; returns how long it has to wait for it.
    #[inline]
    fn draw(&mut self, now_ns: i64, power_mw: u64, length_ns: i64) -> i64 {
        let wait_ns = self.power.draw(now_ns, power_mw, length_ns);
        self.waited_for_power_ns += wait_ns;
        wait_ns
    }

    /// How long work waited for the power budget since this was last asked.
    pub(crate) fn take_waited_for_power_ns(&mut self) -> i64 {
        std::mem::take(&mut self.waited_for_power_ns)
    }

    fn channel_of(&mut self, die: u32) -> &mut Channel {
        let channel = die as usize % self.channels.len();
        &mut self.channels[channel]
    }
}
