//! Puts events that arrive nearly in order into order.

use std::collections::VecDeque;

/// Something that happened at a time.
pub(crate) trait Timed {
    fn time_ns(&self) -> i64;
}

/// Holds the last events back, so that one that comes late can still be put in its place.
///
/// The CPUs' buffers of a trace are each in order, or nearly (an interrupt may stamp its event before the one that it
/// interrupted); a merged text may be off where a buffer was read late.
pub(crate) struct TimeOrder<T> {
    held: VecDeque<T>,
    window: usize,
    released_ns: i64,
}

/// An event earlier than one that was passed on already.
pub(crate) struct TooLate {
    /// The time of the latest event that was passed on.
    pub latest_ns: i64,
}

impl<T: Timed> TimeOrder<T> {
    pub fn new(window: usize) -> TimeOrder<T> {
        TimeOrder { held: VecDeque::with_capacity(window + 1), window, released_ns: i64::MIN }
    }

    pub fn window(&self) -> usize {
        self.window
    }

    /// Takes an event, and says whether more are held than need be, so that the earliest is to be taken out. Equal times keep the order
    /// in which they came.
    #[inline]
    pub fn push(&mut self, event: T) -> Result<bool, TooLate> {
        if event.time_ns() < self.released_ns {
            return Err(TooLate { latest_ns: self.released_ns });
        }
        if self.held.back().is_none_or(|last| last.time_ns() <= event.time_ns()) {
            self.held.push_back(event);
        } else {
            self.insert(event);
        }
        Ok(self.held.len() > self.window)
    }

    /// Whether an event is the next one as it is, because none is held back; it then counts as passed on.
    #[inline]
    pub fn passes(&mut self, event: &T) -> bool {
        let passes = self.window == 0 && self.held.is_empty() && event.time_ns() >= self.released_ns;
        if passes {
            self.released_ns = event.time_ns();
        }
        passes
    }

    /// The earliest event that is still held, where it stands: millions pass, and need not be moved once more.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.held.front()
    }

    #[cold]
    fn insert(&mut self, event: T) {
        let mut place = self.held.len();
        while place > 0 && self.held[place - 1].time_ns() > event.time_ns() {
            place -= 1;
        }
        self.held.insert(place, event);
    }

    /// Takes out the earliest event that is still held.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let event = self.held.pop_front()?;
        self.released_ns = event.time_ns();
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time and a number to know it by.
    impl Timed for (i64, u64) {
        fn time_ns(&self) -> i64 {
            self.0
        }
    }

    #[test]
    fn late_events_are_put_in_their_place_and_ties_stay() {
        let mut order = TimeOrder::new(3);
        let mut out = Vec::new();
        for (time_ns, sector) in [(10, 0), (30, 1), (20, 2), (30, 3), (25, 4), (40, 5)] {
            if order.push((time_ns, sector)).is_ok_and(|full| full) {
                out.extend(order.pop());
            }
        }
        out.extend(std::iter::from_fn(|| order.pop()));
        let sectors: Vec<u64> = out.iter().map(|event| event.1).collect();
        assert_eq!(sectors, [0, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn an_event_past_the_window_is_refused() {
        let mut order = TimeOrder::new(1);
        for time_ns in [10, 20, 30] {
            if order.push((time_ns, 0)).is_ok_and(|full| full) {
                let first = order.front().copied();
                assert_eq!(order.pop(), first);
            }
        }
        assert_eq!(order.push((19, 0)).err().unwrap().latest_ns, 20);
        assert!(order.push((20, 0)).is_ok());
    }

    #[test]
    fn without_a_window_an_event_in_order_passes_unheld_and_an_earlier_one_is_refused() {
        let mut order = TimeOrder::new(0);
        assert!([(10, 0), (10, 1), (20, 2)].iter().all(|event| order.passes(event)));
        assert!(!order.passes(&(19, 3)));
        assert_eq!(order.push((19, 3)).err().unwrap().latest_ns, 20);
        assert!(order.passes(&(20, 4)));
        // With a window, what comes may still have to wait.
        assert!(!TimeOrder::new(1).passes(&(10, 0)));
    }
}
