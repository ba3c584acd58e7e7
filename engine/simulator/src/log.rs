//! What the drive did of its own accord, and when: the log that explains a burst of latency.
//!
//! The parts of the drive say when they begin and end work that the host did not ask for, or not then. What is close together
//! becomes one event, so that the log has the size of what can be told apart in a recording and not of what was done.

mod kinds;

pub use kinds::EventKind;

use kinds::KINDS;
use serde::{Deserialize, Serialize};

/// A stretch of work of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveEvent {
    /// What.
    pub kind: EventKind,
    /// From when.
    pub start_ns: i64,
    /// Until when.
    pub end_ns: i64,
    /// How much of that time was spent on it: pauses shorter than [`PAUSE_NS_MAX`] do not end an event.
    pub busy_ns: i64,
    /// How much was done, in the kind's unit.
    pub amount: u64,
}

impl DriveEvent {
    fn length_ns(&self) -> i64 {
        self.end_ns - self.start_ns
    }
}

/// What did not fit in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedEvents {
    /// How many events.
    pub events: u64,
    /// What they came to.
    pub busy_ns: i64,
    /// How much was done in them.
    pub amount: u64,
}

/// Work that goes on after a pause of at most this is the same event: half of the least window in which bursts are looked for.
pub const PAUSE_NS_MAX: i64 = 50_000_000;
/// Work that goes on and on is divided into events of about this length, so that it can be told what of it fell into a burst.
pub const PIECE_NS: i64 = 1_000_000_000;
/// Events kept of each kind: four hours of work without an end, in less than a megabyte.
pub const EVENTS_MAX: usize = 16_384;

/// The log of a drive. Times are the drive's own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventLog {
    /// One for each kind, in the order of [`KINDS`].
    activities: Vec<Activity>,
}

/// What is known of one kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Activity {
    kind: EventKind,
    /// How many parts of the drive are at it.
    busy_parts: u32,
    current: Option<DriveEvent>,
    kept: Vec<DriveEvent>,
    dropped: DroppedEvents,
}

impl Default for EventLog {
    fn default() -> Self {
        let activity = |kind| Activity {
            kind,
            busy_parts: 0,
            current: None,
            kept: Vec::new(),
            dropped: DroppedEvents::default(),
        };
        EventLog { activities: KINDS.iter().map(|(kind, _, _)| activity(*kind)).collect() }
    }
}

impl EventLog {
    /// A part of the drive begins with work of this kind. Several parts may be at it; the time of all of them together counts.
    pub fn begin(&mut self, kind: EventKind, now_ns: i64) {
        self.activities[kind as usize].begin(now_ns);
    }

    /// So much was done until now. Outside of [`EventLog::begin`] and [`EventLog::end`] it is something that takes no time of its
    /// own.
    pub fn extend(&mut self, kind: EventKind, now_ns: i64, amount: u64) {
        self.activities[kind as usize].extend(now_ns, amount);
    }

    /// A part of the drive that began with work of this kind is done with it.
    ///
    /// # Panics
    /// When none began.
    pub fn end(&mut self, kind: EventKind, now_ns: i64) {
        let activity = &mut self.activities[kind as usize];
        activity.extend(now_ns, 0);
        activity.busy_parts = activity.busy_parts.checked_sub(1).expect("only work that began can end");
    }

    /// Ends everything that began: the drive lost its power.
    pub(crate) fn stop_all(&mut self, now_ns: i64) {
        for activity in &mut self.activities {
            if activity.busy_parts > 0 {
                activity.extend(now_ns, 0);
                activity.busy_parts = 0;
            }
        }
    }

    /// Work of this kind whose beginning and end are known, which may be to come. Of one kind they follow each other.
    pub fn note(&mut self, kind: EventKind, start_ns: i64, end_ns: i64, amount: u64) {
        self.activities[kind as usize].cover(start_ns, end_ns, end_ns - start_ns, amount);
    }

    /// Takes all events until now, in the order of time, and what was dropped of each kind. Work that goes on is divided here.
    pub fn take(&mut self, now_ns: i64) -> (Vec<DriveEvent>, Vec<(EventKind, DroppedEvents)>) {
        let (mut events, mut dropped) = (Vec::new(), Vec::new());
        for activity in &mut self.activities {
            activity.take(now_ns, &mut events);
            let lost = std::mem::take(&mut activity.dropped);
            if lost.events > 0 {
                dropped.push((activity.kind, lost));
            }
        }
        events.sort_by_key(|event| (event.start_ns, event.kind));
        (events, dropped)
    }
}

impl Activity {
    fn begin(&mut self, now_ns: i64) {
        self.extend(now_ns, 0);
        self.busy_parts += 1;
    }

    fn extend(&mut self, now_ns: i64, amount: u64) {
        let since_ns = self.current.filter(|_| self.busy_parts > 0).map_or(now_ns, |event| event.end_ns);
        let busy_ns = (now_ns - since_ns).max(0);
        self.cover(since_ns.min(now_ns), now_ns, busy_ns, amount);
    }

    /// Adds a stretch to the current event, or begins another with it.
    fn cover(&mut self, start_ns: i64, end_ns: i64, busy_ns: i64, amount: u64) {
        if let Some(event) = &mut self.current {
            let start_all_ns = event.start_ns.min(start_ns);
            let end_all_ns = event.end_ns.max(end_ns);
            if start_ns - event.end_ns <= PAUSE_NS_MAX && end_all_ns - start_all_ns <= PIECE_NS {
                (event.start_ns, event.end_ns) = (start_all_ns, end_all_ns);
                event.busy_ns += busy_ns;
                event.amount += amount;
                return;
            }
        }
        let event = DriveEvent { kind: self.kind, start_ns, end_ns, busy_ns, amount };
        if let Some(before) = self.current.replace(event) {
            self.keep(before);
        }
    }

    fn keep(&mut self, event: DriveEvent) {
        // A part that begins where a piece ended leaves a stretch of no time and nothing done.
        if event.length_ns() == 0 && event.amount == 0 {
            return;
        }
        self.kept.push(event);
        // Twice as many at most, so that the short ones are looked for seldom.
        if self.kept.len() >= 2 * EVENTS_MAX {
            self.drop_shortest();
        }
    }

    /// Keeps the longest events; of equal ones the first.
    fn drop_shortest(&mut self) {
        self.kept.sort_by_key(|event| (-event.length_ns(), event.start_ns));
        for event in self.kept.drain(EVENTS_MAX.min(self.kept.len())..) {
            self.dropped.events += 1;
            self.dropped.busy_ns += event.busy_ns;
            self.dropped.amount += event.amount;
        }
    }

    fn take(&mut self, now_ns: i64, events: &mut Vec<DriveEvent>) {
        if self.busy_parts > 0 {
            self.extend(now_ns, 0);
        }
        if let Some(event) = self.current.take() {
            self.keep(event);
        }
        if self.busy_parts > 0 {
            self.cover(now_ns, now_ns, 0, 0);
        }
        if self.kept.len() > EVENTS_MAX {
            self.drop_shortest();
        }
        events.append(&mut self.kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EventKind::{GarbageCollection, Stall, TrimService};

    const MS: i64 = 1_000_000;

    #[test]
    fn the_table_of_kinds_is_in_their_order_and_its_names_are_their_own() {
        for (at, (kind, name, _)) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, at);
            assert_eq!(toml::Value::try_from(kind).unwrap().as_str(), Some(*name));
        }
    }

    fn event(kind: EventKind, start_ns: i64, end_ns: i64, busy_ns: i64, amount: u64) -> DriveEvent {
        DriveEvent { kind, start_ns, end_ns, busy_ns, amount }
    }

    #[test]
    fn the_time_of_several_parts_together_is_one_event_with_what_all_did() {
        let mut log = EventLog::default();
        log.begin(GarbageCollection, 10);
        log.begin(GarbageCollection, 20);
        log.extend(GarbageCollection, 25, 3);
        log.end(GarbageCollection, 30);
        log.extend(GarbageCollection, 35, 4);
        log.end(GarbageCollection, 40);
        let (events, dropped) = log.take(100);
        assert_eq!(events, [event(GarbageCollection, 10, 40, 30, 7)]);
        assert!(dropped.is_empty());
        assert!(log.take(200).0.is_empty());
    }

    #[test]
    fn a_short_pause_is_bridged_without_counting_as_work_and_a_long_one_is_not() {
        let mut log = EventLog::default();
        log.note(TrimService, 0, MS, 1);
        log.note(TrimService, MS + PAUSE_NS_MAX, 2 * MS + PAUSE_NS_MAX, 2);
        log.note(TrimService, 2 * MS + 2 * PAUSE_NS_MAX + 1, 3 * MS + 2 * PAUSE_NS_MAX, 4);
        let (events, _) = log.take(i64::MAX);
        let second_ns = 2 * MS + 2 * PAUSE_NS_MAX + 1;
        assert_eq!(events[0], event(TrimService, 0, 2 * MS + PAUSE_NS_MAX, 2 * MS, 3));
        assert_eq!(events[1..], [event(TrimService, second_ns, second_ns + MS - 1, MS - 1, 4)]);
    }

    #[test]
    fn work_without_an_end_is_divided_into_pieces_that_lose_nothing() {
        let mut log = EventLog::default();
        log.begin(GarbageCollection, -5 * MS);
        for at in 0..3_000 {
            log.extend(GarbageCollection, at * MS, 2);
        }
        log.end(GarbageCollection, 3_000 * MS);
        let (events, _) = log.take(i64::MAX);
        assert_eq!(events.len(), 4);
        assert_eq!((events[0].start_ns, events[3].end_ns), (-5 * MS, 3_000 * MS));
        assert!(events.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
        assert!(events
            .iter()
            .all(|event| event.busy_ns == event.length_ns() && event.length_ns() <= PIECE_NS));
        assert_eq!(events.iter().map(|event| event.amount).sum::<u64>(), 6_000);
    }

    #[test]
    fn work_that_goes_on_while_the_log_is_taken_goes_on_in_the_next() {
        let mut log = EventLog::default();
        log.begin(Stall, 0);
        assert_eq!(log.take(10).0, [event(Stall, 0, 10, 10, 0)]);
        log.end(Stall, 30);
        assert_eq!(log.take(40).0, [event(Stall, 10, 30, 20, 0)]);
    }

    #[test]
    fn a_full_log_keeps_the_longest_of_each_kind_and_counts_the_others() {
        let mut log = EventLog::default();
        let events = 5 * EVENTS_MAX as i64;
        for at in 0..events {
            // Every fifth is longer, by as much as it is late.
            let length_ns = if at % 5 == 0 { MS + at } else { 1_000 };
            log.note(TrimService, at * 100 * MS, at * 100 * MS + length_ns, 1);
        }
        log.note(Stall, 7, 8, 1);
        let (kept, dropped) = log.take(i64::MAX);
        assert_eq!(kept.len(), EVENTS_MAX + 1);
        assert!(kept.iter().filter(|event| event.kind == TrimService).all(|event| event.busy_ns >= MS));
        assert!(kept.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns));
        let lost = 4 * EVENTS_MAX as u64;
        let expected = DroppedEvents { events: lost, busy_ns: 1_000 * lost as i64, amount: lost };
        assert_eq!(dropped, [(TrimService, expected)]);
    }
}
