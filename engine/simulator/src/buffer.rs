//! The write buffer in DRAM: data is acknowledged once it has a place here, and leaves in one-shot programming units.

use crate::PAGE_BYTES;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A programming unit on its way to the NAND, by its number: they are numbered in the order in which they were closed.
pub(crate) type UnitNumber = u64;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Unit {
    /// Its place in the NAND.
    place: u32,
    pages: u32,
    programmed: bool,
}

/// A ring of pages: taken in the order of arrival, freed as units are programmed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WriteBuffer {
    pages: u64,
    free_pages: u64,
    /// Closed and not yet all programmed; the first has the number `first_unit`.
    units: VecDeque<Unit>,
    first_unit: UnitNumber,
    /// One bit for each unit of the NAND: whether its data is still here.
    held: Vec<u64>,
}

impl WriteBuffer {
    /// A buffer of so many bytes, for a NAND of so many units.
    pub(crate) fn new(bytes: u64, units: usize) -> WriteBuffer {
        WriteBuffer {
            pages: bytes / PAGE_BYTES,
            free_pages: bytes / PAGE_BYTES,
            units: VecDeque::new(),
            first_unit: 0,
            held: vec![0; units.div_ceil(64)],
        }
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.free_pages > 0
    }

    /// Takes one page in.
    ///
    /// # Panics
    /// When there is no room.
    #[inline]
    pub(crate) fn take_in(&mut self) {
        assert!(self.has_room(), "a page was put into a full write buffer");
        self.free_pages -= 1;
    }

    /// Notes that pages for this unit of the NAND are gathered here.
    #[inline]
    pub(crate) fn gather(&mut self, place: u32) {
        self.held[(place / 64) as usize] |= 1 << (place % 64);
    }

    /// Whether the data of this unit of the NAND is still here.
    #[inline]
    pub(crate) fn holds(&self, place: u32) -> bool {
        self.held[(place / 64) as usize] >> (place % 64) & 1 == 1
    }

    /// Closes the unit that was gathered; returns its number.
    pub(crate) fn close_unit(&mut self, place: u32, pages: u32) -> UnitNumber {
        self.units.push_back(Unit { place, pages, programmed: false });
        self.closed_units() - 1
    }

    /// How many units were ever closed: all that was taken in before is durable once so many were programmed.
    pub(crate) fn closed_units(&self) -> UnitNumber {
        self.first_unit + self.units.len() as u64
    }

    /// How many units were programmed without a gap.
    pub(crate) fn durable_units(&self) -> UnitNumber {
        self.first_unit
    }

    /// Empties it: power was lost.
    pub(crate) fn restart(&mut self) {
        self.first_unit = self.closed_units();
        self.units.clear();
        self.held.fill(0);
        self.free_pages = self.pages;
    }

    /// Frees the places of a unit that was programmed.
    ///
    /// # Panics
    /// When the unit is not on its way.
    pub(crate) fn programmed(&mut self, number: UnitNumber) {
        let index = number.checked_sub(self.first_unit).expect("a unit was programmed twice") as usize;
        let unit = &mut self.units[index];
        assert!(!std::mem::replace(&mut unit.programmed, true), "unit {number} was programmed twice");
        self.free_pages += u64::from(unit.pages);
        self.held[(unit.place / 64) as usize] &= !(1 << (unit.place % 64));
        while self.units.front().is_some_and(|unit| unit.programmed) {
            self.units.pop_front();
            self.first_unit += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_held_from_its_first_page_until_it_is_programmed() {
        let mut buffer = WriteBuffer::new(8 * PAGE_BYTES, 100);
        assert!(!buffer.holds(70));
        buffer.gather(70);
        buffer.take_in();
        assert!(buffer.holds(70));
        let number = buffer.close_unit(70, 1);
        buffer.programmed(number);
        assert!(!buffer.holds(70));
    }

    #[test]
    fn places_come_back_when_a_unit_is_programmed_and_not_before() {
        let mut buffer = WriteBuffer::new(4 * PAGE_BYTES, 100);
        for unit in 0..2 {
            buffer.take_in();
            buffer.take_in();
            buffer.close_unit(unit, 2);
        }
        assert!(!buffer.has_room());
        buffer.programmed(1);
        assert!(buffer.has_room());
    }

    #[test]
    fn durability_advances_without_gaps() {
        let mut buffer = WriteBuffer::new(8 * PAGE_BYTES, 100);
        for unit in 0..3 {
            buffer.take_in();
            buffer.close_unit(unit, 1);
        }
        buffer.programmed(1);
        assert_eq!(buffer.durable_units(), 0);
        buffer.programmed(0);
        assert_eq!((buffer.durable_units(), buffer.closed_units()), (2, 3));
    }
}
