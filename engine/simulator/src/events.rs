//! What happens next: future events in time order, and those of one time in the order in which they were scheduled.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens inside the drive at a moment known in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Action {
    /// The firmware is done with the read of this slot.
    ReadDecoded(u32),
    /// This plane has sensed the NAND page that it was reading.
    Sensed(u32),
    /// The channel has moved one group of pages of the read of this slot.
    GroupTransferred(u32),
    /// The data of the write of this slot has crossed the host link.
    WriteArrived(u32),
    /// The firmware is done with the flush, trim or write-zeroes of this slot.
    MetadataDecoded(u32),
    /// The channel should have moved what this die is about to program.
    UnitTransferred(u32),
    /// This die has programmed its unit or erased its block.
    WorkDone(u32),
    /// It is time for the next slice of the work that trims left behind.
    TrimSlice,
    /// It may be time to empty some of the SLC cache.
    Fold,
    /// It is time for the drive to look after its NAND.
    Housekeeping,
    /// It is time to look at the drive's temperature.
    TemperatureStep,
    /// Faults: the drive stands still, loses its power, or is no longer there.
    Stall,
    PowerLoss,
    Gone,
    /// The host sees the completion of this slot.
    Completed(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Event {
    time_ns: i64,
    order: u64,
    action: Action,
}

impl Event {
    /// Time first, then the order of scheduling, as one number: it compares in one step, and no two events are equal.
    fn key(&self) -> u128 {
        u128::from(self.time_ns.cast_unsigned() ^ (1 << 63)) << 64 | u128::from(self.order)
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The queue of events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Events {
    #[serde(with = "in_order")]
    heap: BinaryHeap<Reverse<Event>>,
    scheduled: u64,
}

/// Saved in the order of time, so that equal drives are equal bytes however their events came together.
mod in_order {
    use super::{BinaryHeap, Event, Reverse};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        heap: &BinaryHeap<Reverse<Event>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        heap.clone().into_sorted_vec().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BinaryHeap<Reverse<Event>>, D::Error> {
        Vec::deserialize(deserializer).map(BinaryHeap::from)
    }
}

impl Events {
    /// Lets `action` happen at `time_ns`.
    #[inline]
    pub(crate) fn schedule(&mut self, time_ns: i64, action: Action) {
        self.heap.push(Reverse(Event { time_ns, order: self.scheduled, action }));
        self.scheduled += 1;
    }

    /// Forgets what is not wanted.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&Action) -> bool) {
        self.heap.retain(|Reverse(event)| wanted(&event.action));
    }

    /// Takes everything out; returns what is wanted of it, in order.
    pub(crate) fn take_all(&mut self, wanted: impl Fn(&Action) -> bool) -> Vec<(i64, Action)> {
        let mut all: Vec<Event> = self.heap.drain().map(|Reverse(event)| event).collect();
        all.sort_unstable();
        all.into_iter()
            .filter(|event| wanted(&event.action))
            .map(|event| (event.time_ns, event.action))
            .collect()
    }

    /// When the next event is.
    #[inline]
    pub(crate) fn next_ns(&self) -> Option<i64> {
        self.heap.peek().map(|event| event.0.time_ns)
    }

    /// Takes the next event if it is at `until_ns` or before.
    #[inline]
    pub(crate) fn pop(&mut self, until_ns: i64) -> Option<(i64, Action)> {
        if self.next_ns()? > until_ns {
            return None;
        }
        self.heap.pop().map(|event| (event.0.time_ns, event.0.action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_time_order_and_ties_in_the_order_of_scheduling() {
        let mut events = Events::default();
        for (time_ns, slot) in [(5, 0), (-3, 1), (5, 2), (0, 3), (5, 4)] {
            events.schedule(time_ns, Action::Completed(slot));
        }
        let order: Vec<_> = std::iter::from_fn(|| events.pop(i64::MAX)).collect();
        let expected = [(-3, 1), (0, 3), (5, 0), (5, 2), (5, 4)];
        assert_eq!(order, expected.map(|(time_ns, slot)| (time_ns, Action::Completed(slot))));
    }

    #[test]
    fn what_is_later_than_asked_for_stays() {
        let mut events = Events::default();
        events.schedule(10, Action::TrimSlice);
        assert_eq!(events.pop(9), None);
        assert_eq!(events.pop(10), Some((10, Action::TrimSlice)));
    }
}
