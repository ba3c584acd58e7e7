//! What a read would return: not bytes, but which write of a page it was.

use crate::buffer::UnitNumber;
use crate::ftl::LazyArray;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Range;

/// Versions of pages: the newest, and the newest that survives a loss of power.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contents {
    newest: LazyArray,
    durable: LazyArray,
    next_version: u32,
    /// What is in the unit that is being gathered.
    open: Vec<(u32, u32)>,
    /// What is in the units that are not yet programmed, in order; the first is of the number `first_unit`.
    units: VecDeque<Option<Vec<(u32, u32)>>>,
    first_unit: UnitNumber,
}

impl Contents {
    pub(crate) fn new(pages: u32) -> Contents {
        Contents {
            newest: LazyArray::new(pages as usize),
            durable: LazyArray::new(pages as usize),
            next_version: 1,
            open: Vec::new(),
            units: VecDeque::new(),
            first_unit: 0,
        }
    }

    /// From now on, with units on their way whose pages are of before.
    pub(crate) fn with_units(pages: u32, numbers: Range<UnitNumber>) -> Contents {
        let units = numbers.clone().map(|_| Some(Vec::new())).collect();
        Contents { units, first_unit: numbers.start, ..Contents::new(pages) }
    }

    /// The version of a page; 0 was there before the first command, or is what a trim leaves.
    pub(crate) fn version_of(&self, page: u32) -> u32 {
        self.newest[page as usize]
    }

    pub(crate) fn write(&mut self, page: u32) {
        self.newest[page as usize] = self.next_version;
        self.open.push((page, self.next_version));
        self.next_version += 1;
    }

    pub(crate) fn close_unit(&mut self) {
        let pages = std::mem::take(&mut self.open);
        self.units.push_back(Some(pages));
    }

    pub(crate) fn programmed(&mut self, number: UnitNumber) {
        let at = (number - self.first_unit) as usize;
        for (page, version) in self.units[at].take().expect("a unit is programmed once") {
            // Units are not programmed in order.
            let durable = &mut self.durable[page as usize];
            *durable = version.max(*durable);
        }
        while self.units.front().is_some_and(Option::is_none) {
            self.units.pop_front();
            self.first_unit += 1;
        }
    }

    /// A trim is durable at once: what is buffered of its pages must not come back with a unit that is programmed later.
    pub(crate) fn trim(&mut self, pages: Range<u32>) {
        let units = self.units.iter().flatten().flatten();
        let oldest_buffered = units.chain(&self.open).map(|(_, version)| *version).next().unwrap_or(u32::MAX);
        let mut buffered = false;
        for page in pages.clone() {
            let newest = std::mem::take(&mut self.newest[page as usize]);
            if newest != 0 {
                self.durable[page as usize] = 0;
                buffered |= newest >= oldest_buffered;
            }
        }
        if buffered {
            let units = self.units.iter_mut().flatten().chain([&mut self.open]);
            units.for_each(|unit| unit.retain(|(page, _)| !pages.contains(page)));
        }
    }

    /// Power is lost; `saved` tells that what was buffered is written out with what is stored for that. Returns how many pages went
    /// back to an older version.
    pub(crate) fn lose_power(&mut self, saved: bool) -> u64 {
        let mut lost = 0;
        let units = self.units.drain(..).flatten().flatten();
        for (page, version) in units.chain(self.open.drain(..)) {
            let page = page as usize;
            if self.newest[page] != version {
                continue;
            }
            if saved {
                self.durable[page] = version;
            } else {
                self.newest[page] = self.durable[page];
                lost += 1;
            }
        }
        lost
    }

    /// Lets units be numbered from here on, after power was lost.
    pub(crate) fn restart_at(&mut self, first_unit: UnitNumber) {
        self.first_unit = first_unit;
    }
}
