//! Things that end in any order, handed out in the order in which they began, as far as a bounded window allows.

use std::collections::VecDeque;

/// The place of something in the order in which things began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BeginPlace(u64);

enum Entry<T> {
    /// It is under way.
    Open,
    /// It turned out to be none of its own.
    Cancelled,
    Closed(T),
}

/// Takes a place when something begins, and hands it out when it and all before it have ended.
///
/// What stays open while the window fills does not hold up the others for longer: it comes out of order, when it ends.
pub(crate) struct BeginOrder<T> {
    entries: VecDeque<Entry<T>>,
    /// The place of the first entry.
    first: u64,
    window: usize,
}

impl<T> BeginOrder<T> {
    pub fn new(window: usize) -> BeginOrder<T> {
        BeginOrder { entries: VecDeque::new(), first: 0, window }
    }

    /// Opens a place after all others. What is [`BeginOrder::next`] may be more than before.
    pub fn open(&mut self) -> BeginPlace {
        if self.entries.len() >= self.window && matches!(self.entries.front(), Some(Entry::Open)) {
            self.entries.pop_front();
            self.first += 1;
        }
        self.entries.push_back(Entry::Open);
        BeginPlace(self.first + self.entries.len() as u64 - 1)
    }

    /// Ends what began at a place. Gives it back where the window has gone on, so that it is to be handed out at once.
    #[must_use]
    pub fn close(&mut self, place: BeginPlace, value: T) -> Option<T> {
        match self.entry(place) {
            Some(entry) => {
                *entry = Entry::Closed(value);
                None
            }
            None => Some(value),
        }
    }

    /// Gives up what began at a place.
    pub fn cancel(&mut self, place: BeginPlace) {
        if let Some(entry) = self.entry(place) {
            *entry = Entry::Cancelled;
        }
    }

    /// What has ended, with all that began before it.
    pub fn next(&mut self) -> Option<T> {
        loop {
            if matches!(self.entries.front()?, Entry::Open) {
                return None;
            }
            self.first += 1;
            if let Some(Entry::Closed(value)) = self.entries.pop_front() {
                return Some(value);
            }
        }
    }

    fn entry(&mut self, place: BeginPlace) -> Option<&mut Entry<T>> {
        self.entries.get_mut(usize::try_from(place.0.checked_sub(self.first)?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<T>(order: &mut BeginOrder<T>) -> Vec<T> {
        std::iter::from_fn(|| order.next()).collect()
    }

    #[test]
    fn what_ends_first_waits_for_what_began_before() {
        let mut order = BeginOrder::new(8);
        let places: Vec<BeginPlace> = (0..4).map(|_| order.open()).collect();
        assert_eq!(order.close(places[2], 'c'), None);
        assert_eq!(all(&mut order), []);
        order.cancel(places[1]);
        assert_eq!(order.close(places[0], 'a'), None);
        assert_eq!(all(&mut order), ['a', 'c']);
        assert_eq!(order.close(places[3], 'd'), None);
        assert_eq!(all(&mut order), ['d']);
    }

    #[test]
    fn what_stays_open_past_the_window_comes_when_it_ends() {
        let mut order = BeginOrder::new(2);
        let stalled = order.open();
        for value in ['b', 'c', 'd'] {
            let place = order.open();
            assert_eq!(order.close(place, value), None);
        }
        assert_eq!(all(&mut order), ['b', 'c', 'd']);
        assert_eq!(order.close(stalled, 'a'), Some('a'));
        order.cancel(stalled);
    }
}
