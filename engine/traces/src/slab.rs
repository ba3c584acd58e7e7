//! Storage for things that come and go, addressed by small numbers.

use std::num::NonZeroU64;

/// A vector with a list of free places. A key names one thing only, ever: a place that was reused answers to its new key alone.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<(NonZeroU64, Option<T>)>,
    free: Vec<u32>,
    next_serial: NonZeroU64,
}

/// Names something in a [`Slab`]; keys made later are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// Never 0, so that an optional key takes no more memory than a key.
    serial: NonZeroU64,
    place: u32,
}

impl Key {
    /// Not above any key.
    pub const FIRST: Key = Key { serial: NonZeroU64::MIN, place: 0 };
}

impl<T> Slab<T> {
    pub fn new() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new(), next_serial: NonZeroU64::MIN }
    }

    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub fn insert(&mut self, value: T) -> Key {
        let serial = self.next_serial;
        // Not even at a billion a second is the end reached within centuries.
        self.next_serial = serial.saturating_add(1);
        let place = if let Some(place) = self.free.pop() {
            self.places[place as usize] = (serial, Some(value));
            place
        } else {
            self.places.push((serial, Some(value)));
            u32::try_from(self.places.len() - 1).expect("the tables are bounded far below 2^32")
        };
        Key { serial, place }
    }

    pub fn get(&self, key: Key) -> Option<&T> {
        let (serial, value) = self.places.get(key.place as usize)?;
        value.as_ref().filter(|_| *serial == key.serial)
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let (serial, value) = self.places.get_mut(key.place as usize)?;
        value.as_mut().filter(|_| *serial == key.serial)
    }

    pub fn remove(&mut self, key: Key) -> Option<T> {
        let (serial, value) = self.places.get_mut(key.place as usize)?;
        if *serial != key.serial {
            return None;
        }
        let taken = value.take();
        if taken.is_some() {
            self.free.push(key.place);
        }
        taken
    }

    /// Keys of all that is there, the oldest first.
    pub fn keys(&self) -> Vec<Key> {
        let live = self.places.iter().enumerate().filter(|(_, (_, value))| value.is_some());
        let mut keys: Vec<Key> =
            live.map(|(place, (serial, _))| Key { serial: *serial, place: place as u32 }).collect();
        keys.sort_unstable();
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_place_does_not_answer_to_its_old_key() {
        let mut slab = Slab::new();
        let (first, second) = (slab.insert('a'), slab.insert('b'));
        assert_eq!(slab.remove(first), Some('a'));
        let third = slab.insert('c');
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!((slab.get(second), slab.get(third)), (Some(&'b'), Some(&'c')));
        assert_eq!(slab.keys(), [second, third]);
        assert_eq!(slab.len(), 2);
    }
}
