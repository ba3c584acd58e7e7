//! The write buffer in DRAM: data is acknowledged once it has a place here, and leaves in one-shot programming units.

use crate::parameters::Parameters;
use crate::PAGE_BYTES;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// A programming unit on its way to the NAND, by its number: they are numbered in the order in which they were closed.
pub(crate) type UnitNumber = u64;

#[derive(Clone, Debug, Default)]
struct Unit {
    pages: Vec<u64>,
    programmed: bool,
}

/// Multiplies by an odd constant: enough for page numbers, and the same on every machine and in every run.
#[derive(Clone, Debug, Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("only page numbers are hashed");
    }
    fn write_u64(&mut self, page: u64) {
        // Rotated, since the table takes its bucket from the low bits and the product's high bits are the mixed ones.
        self.0 = page.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

/// A ring of pages: taken in the order of arrival, freed as units are programmed.
#[derive(Clone, Debug)]
pub(crate) struct WriteBuffer {
    free_pages: u64,
    unit_pages: usize,
    /// Gathers the next unit.
    open: Vec<u64>,
    /// Closed and not yet all programmed; the first has the number `first_unit`.
    units: VecDeque<Unit>,
    first_unit: UnitNumber,
    /// How often each page is in the buffer.
    copies: HashMap<u64, u32, BuildHasherDefault<PageHasher>>,
    /// Emptied page lists, kept for their memory.
    spare: Vec<Vec<u64>>,
}

impl WriteBuffer {
    pub(crate) fn new(parameters: &Parameters) -> WriteBuffer {
        WriteBuffer {
            free_pages: parameters.write_buffer_bytes / PAGE_BYTES,
            unit_pages: (parameters.program_unit_bytes / PAGE_BYTES) as usize,
            open: Vec::new(),
            units: VecDeque::new(),
            first_unit: 0,
            copies: HashMap::default(),
            spare: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.free_pages > 0
    }

    /// Takes one page in; true where that completes a unit, which is then to be closed.
    ///
    /// # Panics
    /// When there is no room.
    #[inline]
    pub(crate) fn take_in(&mut self, page: u64) -> bool {
        assert!(self.has_room(), "a page was put into a full write buffer");
        self.free_pages -= 1;
        *self.copies.entry(page).or_default() += 1;
        self.open.push(page);
        self.open.len() == self.unit_pages
    }

    /// Whether the newest data of the page is here, and not only in the NAND.
    #[inline]
    pub(crate) fn holds(&self, page: u64) -> bool {
        // An idle buffer answers without hashing.
        !self.copies.is_empty() && self.copies.contains_key(&page)
    }

    /// Closes the unit that is being gathered, full or not; returns its number, or `None` where nothing was gathered.
    pub(crate) fn close_unit(&mut self) -> Option<UnitNumber> {
        if self.open.is_empty() {
            return None;
        }
        let pages = std::mem::replace(&mut self.open, self.spare.pop().unwrap_or_default());
        self.units.push_back(Unit { pages, programmed: false });
        Some(self.closed_units() - 1)
    }

    /// How many units were ever closed: all that was taken in before is durable once so many were programmed.
    pub(crate) fn closed_units(&self) -> UnitNumber {
        self.first_unit + self.units.len() as u64
    }

    /// How many units were programmed without a gap.
    pub(crate) fn durable_units(&self) -> UnitNumber {
        self.first_unit
    }

    /// Frees the places of a unit that was programmed.
    ///
    /// # Panics
    /// When the unit is not on its way.
    pub(crate) fn programmed(&mut self, number: UnitNumber) {
        let index = number.checked_sub(self.first_unit).expect("a unit was programmed twice") as usize;
        let unit = &mut self.units[index];
        assert!(!std::mem::replace(&mut unit.programmed, true), "unit {number} was programmed twice");
        let mut pages = std::mem::take(&mut unit.pages);
        self.free_pages += pages.len() as u64;
        for page in pages.drain(..) {
            let copies = self.copies.get_mut(&page).expect("a buffered page is counted");
            *copies -= 1;
            if *copies == 0 {
                self.copies.remove(&page);
            }
        }
        self.spare.push(pages);
        while self.units.front().is_some_and(|unit| unit.programmed) {
            self.units.pop_front();
            self.first_unit += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    fn buffer(pages: u64, unit_pages: u64) -> WriteBuffer {
        let mut model = Model::builtin("enterprise-mixed").unwrap();
        let (unit, all) = ((unit_pages * PAGE_BYTES).to_string(), (pages * PAGE_BYTES).to_string());
        let sizes =
            [("nand_page_bytes", "4096"), ("program_unit_bytes", &unit), ("write_buffer_bytes", &all)];
        model.set_all(sizes).unwrap();
        WriteBuffer::new(model.parameters())
    }

    #[test]
    fn a_page_is_held_until_its_last_copy_is_programmed() {
        let mut buffer = buffer(8, 2);
        assert!(!buffer.take_in(5));
        assert!(buffer.take_in(6));
        assert_eq!(buffer.close_unit(), Some(0));
        buffer.take_in(5);
        assert_eq!(buffer.close_unit(), Some(1));
        assert_eq!(buffer.close_unit(), None);
        buffer.programmed(0);
        assert!(buffer.holds(5) && !buffer.holds(6));
        buffer.programmed(1);
        assert!(!buffer.holds(5));
    }

    #[test]
    fn places_come_back_when_a_unit_is_programmed_and_not_before() {
        let mut buffer = buffer(4, 2);
        for page in 0..4 {
            if buffer.take_in(page) {
                buffer.close_unit();
            }
        }
        assert!(!buffer.has_room());
        buffer.programmed(1);
        assert!(buffer.has_room());
    }

    #[test]
    fn durability_advances_without_gaps() {
        let mut buffer = buffer(8, 1);
        for page in 0..3 {
            buffer.take_in(page);
            buffer.close_unit();
        }
        buffer.programmed(1);
        assert_eq!(buffer.durable_units(), 0);
        buffer.programmed(0);
        assert_eq!((buffer.durable_units(), buffer.closed_units()), (2, 3));
    }
}
