//! Reads: each of its plane, and when one may overtake what waits for the die or interrupt what runs there.

use super::{GroupRead, Nand, Suspended, Work};
use crate::events::{Action, Events};
use crate::parameters::ReadTime;

impl Nand {
    /// Brings a read of so many pages to a plane.
    #[inline]
    pub(crate) fn read(&mut self, now_ns: i64, plane: u32, slot: u32, pages: u32, events: &mut Events) {
        self.arrivals += 1;
        self.counters.reads += 1;
        self.planes[plane as usize].waiting.push_back(GroupRead { order: self.arrivals, slot, pages });
        if self.suspends > 0 && self.planes[plane as usize].sensing.is_none() {
            self.interrupt(now_ns, plane / self.planes_per_die, events);
        }
        self.start_read(now_ns, plane, events);
    }

    /// The plane has sensed: its page goes to the channel, and the plane to the next read.
    #[inline]
    pub(crate) fn sensed(&mut self, now_ns: i64, plane: u32, events: &mut Events) {
        let die = plane / self.planes_per_die;
        let read = self.planes[plane as usize].sensing.take().expect("a plane that sensed was sensing");
        self.dies[die as usize].planes_sensing -= 1;
        let transfer_ns = self.page_transfer_ns * i64::from(read.pages);
        let chunk_ns = self.chunk_transfer_ns;
        let done_ns = self.channel_of(die).read(now_ns, transfer_ns, chunk_ns);
        events.schedule(done_ns, Action::GroupTransferred(read.slot));
        self.start_read(now_ns, plane, events);
        self.start_work(now_ns, die, events);
    }

    pub(super) fn start_reads(&mut self, now_ns: i64, die: u32, events: &mut Events) {
        for plane in die * self.planes_per_die..(die + 1) * self.planes_per_die {
            self.start_read(now_ns, plane, events);
        }
    }

    /// Interrupts what the die does if reads wait for it and it may be.
    pub(super) fn let_reads_interrupt(&mut self, now_ns: i64, die: u32, events: &mut Events) {
        let waits = |plane: u32| !self.planes[plane as usize].waiting.is_empty();
        if self.suspends > 0 && (die * self.planes_per_die..(die + 1) * self.planes_per_die).any(waits) {
            self.interrupt(now_ns, die, events);
        }
    }

    fn interrupt(&mut self, now_ns: i64, die: u32, events: &mut Events) {
        let state = &mut self.dies[die as usize];
        // While its data is on the channel there is nothing to interrupt yet.
        let (Some(work), Some(done_ns)) = (state.working, state.done_ns) else { return };
        if state.suspends_left == 0 || work == Work::Housekeeping || done_ns <= now_ns {
            return;
        }
        state.suspends_left -= 1;
        self.counters.suspends += 1;
        let left_ns = done_ns - now_ns + self.suspend_ns;
        state.suspended = Some(Suspended { work, left_ns, reads_left: self.reads_before_program.max(1) });
        (state.working, state.done_ns) = (None, None);
        self.start_reads(now_ns, die, events);
    }

    /// Starts the plane's next read if the plane is idle and the read's turn has come.
    #[inline]
    fn start_read(&mut self, now_ns: i64, plane: u32, events: &mut Events) {
        let state = &mut self.planes[plane as usize];
        let die = &mut self.dies[(plane / self.planes_per_die) as usize];
        let Some(&read) = state.waiting.front() else { return };
        if state.sensing.is_some() || die.working.is_some() {
            return;
        }
        let mut delay_ns = 0;
        if let Some(suspended) = &mut die.suspended {
            if suspended.reads_left == 0 {
                return;
            }
            suspended.reads_left -= 1;
            delay_ns = self.suspend_ns;
        } else if die.waiting.front().is_some_and(|(order, _)| *order < read.order) {
            if die.reads_overtaken >= self.reads_before_program {
                return;
            }
            die.reads_overtaken += 1;
        }
        state.waiting.pop_front();
        state.sensing = Some(read);
        die.planes_sensing += 1;
        let read_ns = self.draw_read_ns();
        let wait_ns = self.draw(now_ns + delay_ns, self.plane_read_mw, read_ns);
        events.schedule(now_ns + delay_ns + wait_ns + read_ns, Action::Sensed(plane));
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
