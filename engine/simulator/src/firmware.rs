//! One processor that serves every command, and the work that trims leave it with.

use crate::parameters::{Parameters, TrimMode};
use crate::server::Server;
use serde::{Deserialize, Serialize};

/// The processor: commands are served one at a time, in the order in which the drive took them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Firmware {
    processor: Server,
    read_ns: i64,
    read_page_ns: i64,
    write_ns: i64,
    write_page_ns: i64,
    metadata_ns: i64,
    trims: TrimWork,
}

/// What trims cost and what is still to be done for them.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct TrimWork {
    mode: TrimMode,
    per_range_ns: i64,
    per_page_ns: i64,
    slice_ns: i64,
    share: f64,
    /// Accepted and not yet worked off.
    owed_ns: i64,
    /// The pages that this is for.
    owed_pages: u64,
    /// When the next slice may begin without taking more than the share, also of work that is still to come.
    next_slice_ns: i64,
    /// Whether a slice is scheduled, so that one chain of slices works off what any number of trims left.
    scheduled: bool,
}

impl TrimWork {
    /// How many of the pages owed for this much of the work is for; for all of it, all.
    fn pages_of(&self, work_ns: i64) -> u64 {
        let share = u128::from(work_ns.cast_unsigned()) * u128::from(self.owed_pages);
        (share / u128::from(self.owed_ns.cast_unsigned()).max(1)) as u64
    }
}

/// A slice of the work on trims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slice {
    /// When the processor works on it.
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// The pages that it is for.
    pub(crate) pages: u64,
    /// When the next slice is due, if one is.
    pub(crate) next_ns: Option<i64>,
}

impl Firmware {
    pub(crate) fn new(parameters: &Parameters) -> Firmware {
        Firmware {
            processor: Server::default(),
            read_ns: parameters.firmware_read_ns,
            read_page_ns: parameters.firmware_read_page_ns,
            write_ns: parameters.firmware_write_ns,
            write_page_ns: parameters.firmware_write_page_ns,
            metadata_ns: parameters.firmware_metadata_ns,
            trims: TrimWork {
                mode: parameters.trim_mode,
                per_range_ns: parameters.trim_per_range_ns,
                per_page_ns: parameters.trim_per_page_ns,
                slice_ns: parameters.trim_slice_ns,
                share: parameters.trim_share,
                owed_ns: 0,
                owed_pages: 0,
                next_slice_ns: i64::MIN,
                scheduled: false,
            },
        }
    }

    /// Takes a read of so many pages; returns when the firmware is done with it. The same of the others below.
    #[inline]
    pub(crate) fn read(&mut self, now_ns: i64, pages: u64) -> i64 {
        self.processor.serve(now_ns, work_ns(self.read_ns, self.read_page_ns, pages))
    }

    #[inline]
    pub(crate) fn write(&mut self, now_ns: i64, pages: u64) -> i64 {
        self.processor.serve(now_ns, work_ns(self.write_ns, self.write_page_ns, pages))
    }

    /// A command without data.
    pub(crate) fn metadata(&mut self, now_ns: i64) -> i64 {
        self.processor.serve(now_ns, self.metadata_ns)
    }

    pub(crate) fn trim(&mut self, now_ns: i64, pages: u64) -> i64 {
        let service_ns = self.trims_at_once_ns(pages).unwrap_or(self.metadata_ns);
        self.processor.serve(now_ns, service_ns)
    }

    /// What a trim of so many pages takes when all of its work is done at once; `None` where it costs no more than any command.
    pub(crate) fn trims_at_once_ns(&self, pages: u64) -> Option<i64> {
        let TrimWork { mode, per_range_ns, per_page_ns, .. } = self.trims;
        (mode == TrimMode::Firmware).then(|| work_ns(per_range_ns, per_page_ns, pages))
    }

    /// Does nothing for so long, behind what it was given before.
    pub(crate) fn stall(&mut self, now_ns: i64, length_ns: i64) {
        self.processor.serve(now_ns, length_ns);
    }

    /// Goes on with trims after everything that was scheduled was forgotten; returns when a slice is due, if any work is left.
    pub(crate) fn resume_trims(&mut self, now_ns: i64) -> Option<i64> {
        self.trims.scheduled = self.trims.owed_ns > 0;
        self.trims.scheduled.then_some(self.trims.next_slice_ns.max(now_ns))
    }

    /// Notes the work that a trim, now accepted, leaves for later; returns when a slice of it is due, unless one is scheduled.
    pub(crate) fn owe_for_trim(&mut self, now_ns: i64, pages: u64) -> Option<i64> {
        let trims = &mut self.trims;
        if trims.mode != TrimMode::Background {
            return None;
        }
        let work = work_ns(trims.per_range_ns, trims.per_page_ns, pages);
        trims.owed_ns = trims.owed_ns.saturating_add(work);
        trims.owed_pages += pages;
        let first = trims.owed_ns > 0 && !std::mem::replace(&mut trims.scheduled, true);
        first.then(|| trims.next_slice_ns.max(now_ns))
    }

    /// Works on trims for one slice, behind the commands that came before it.
    ///
    /// Slices come so often that trims get their share of the firmware, and never before the last one was served: a firmware
    /// that is busy with commands works off less, not ever more slices in a row.
    pub(crate) fn work_on_trims(&mut self, now_ns: i64) -> Slice {
        let trims = &mut self.trims;
        let slice_ns = trims.slice_ns.min(trims.owed_ns);
        let pages = trims.pages_of(slice_ns);
        trims.owed_ns -= slice_ns;
        trims.owed_pages -= pages;
        let end_ns = self.processor.serve(now_ns, slice_ns);
        trims.next_slice_ns = end_ns.max(now_ns + (slice_ns as f64 / trims.share) as i64);
        trims.scheduled = trims.owed_ns > 0;
        let next_ns = trims.scheduled.then_some(trims.next_slice_ns);
        Slice { start_ns: end_ns - slice_ns, end_ns, pages, next_ns }
    }

    /// Work that trims left and that is not yet done, in firmware time.
    pub(crate) fn owed_ns(&self) -> i64 {
        self.trims.owed_ns
    }
}

/// The time of one command. Saturates far beyond any run, for a trim of a whole large drive at a high cost a page.
#[inline]
fn work_ns(once_ns: i64, page_ns: i64, pages: u64) -> i64 {
    const LONGEST_NS: i64 = i64::MAX >> 12;
    let pages = i64::try_from(pages).unwrap_or(i64::MAX);
    page_ns.saturating_mul(pages).saturating_add(once_ns).min(LONGEST_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    /// A processor on which trims of 1 us each wait for slices of at most 50 us at a tenth of the time.
    fn background() -> Firmware {
        let mut model = Model::builtin("enterprise-read").unwrap();
        let trims = [
            ("trim_per_range", "1us"),
            ("trim_per_page", "0ns"),
            ("trim_slice", "50us"),
            ("trim_share", "0.1"),
        ];
        model.set_all(trims).unwrap();
        Firmware::new(model.parameters())
    }

    #[test]
    fn many_small_trims_get_no_more_than_the_share() {
        let mut firmware = background();
        let (mut due_ns, mut now_ns, mut owed_in_all_ns) = (None, 0, 0);
        // Each leaves less than a slice and comes when the one before is worked off: three times the share in all.
        while now_ns < 1_000_000 {
            due_ns = due_ns.or(firmware.owe_for_trim(now_ns, 1));
            owed_in_all_ns += 1_000;
            now_ns += 3_333;
            while let Some(slice_ns) = due_ns.filter(|slice_ns| *slice_ns <= now_ns) {
                due_ns = firmware.work_on_trims(slice_ns).next_ns;
            }
        }
        let done_ns = owed_in_all_ns - firmware.owed_ns();
        assert!((90_000..=150_000).contains(&done_ns), "{done_ns} ns of {now_ns} ns");
    }

    #[test]
    fn only_the_first_trim_schedules_a_slice() {
        let mut firmware = background();
        assert_eq!(firmware.owe_for_trim(5, 1), Some(5));
        assert_eq!(firmware.owe_for_trim(6, 1), None);
        let slice = Slice { start_ns: 6, end_ns: 2_006, pages: 2, next_ns: None };
        assert_eq!(firmware.work_on_trims(6), slice, "both fit in one slice");
        assert_eq!(firmware.owe_for_trim(7, 1), Some(6 + 20_000), "2 us at a tenth of the time");
    }

    #[test]
    fn a_huge_trim_at_a_huge_cost_does_not_overflow() {
        let mut model = Model::builtin("sata").unwrap();
        model.set_all([("trim_per_page", "1000s"), ("capacity", "4TiB")]).unwrap();
        let mut firmware = Firmware::new(model.parameters());
        let done_ns = (0..100).map(|_| firmware.trim(0, 1 << 30)).last();
        assert!(done_ns.is_some_and(|done_ns| done_ns > 0));
    }
}
