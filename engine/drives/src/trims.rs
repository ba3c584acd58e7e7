//! Trims on their way into commands: one range a command, or, where that is asked for, as many of a burst as a command takes.

use crate::buffers::Region;
use std::collections::VecDeque;
use std::io;
use testdrive_nvme::{deallocate, encode_ranges, LbaRange, NvmCommand, TrimLimits};
use testdrive_userspace::memory::DmaMemory;

/// The ranges of one command.
#[derive(Default)]
struct Group {
    slots: Vec<u32>,
    ranges: Vec<LbaRange>,
    blocks: u64,
}

/// Groups of ranges, each to be one command, and the memory that the drive reads them from.
pub(crate) struct Trims {
    limits: TrimLimits,
    groups: Vec<Group>,
    free: Vec<u32>,
    open: Option<u32>,
    closed: VecDeque<u32>,
    memory: Region,
    place_bytes: usize,
}

impl Trims {
    /// For so many commands at a time, of at most `limits.ranges` ranges each. All memory is taken here.
    ///
    /// # Errors
    /// When the system has not the memory.
    pub fn new(
        commands: usize,
        limits: TrimLimits,
        region: impl FnOnce(usize) -> io::Result<Region>,
    ) -> io::Result<Trims> {
        let group = || Group {
            slots: Vec::with_capacity(limits.ranges),
            ranges: Vec::with_capacity(limits.ranges),
            blocks: 0,
        };
        let place_bytes = limits.place_bytes();
        Ok(Trims {
            limits,
            groups: (0..commands).map(|_| group()).collect(),
            free: (0..commands as u32).rev().collect(),
            open: None,
            closed: VecDeque::with_capacity(commands),
            memory: region(commands * place_bytes)?,
            place_bytes,
        })
    }

    /// The memory that ranges are read from, in pieces of so many bytes.
    pub fn pieces(&mut self, piece_bytes: usize) -> Vec<libc::iovec> {
        self.memory.cut(piece_bytes)
    }

    /// The most ranges of a command.
    pub fn ranges_max(&self) -> usize {
        self.limits.ranges
    }

    /// Adds a range of the I/O in a slot; false where every command is taken.
    pub fn add(&mut self, slot: u32, range: LbaRange) -> bool {
        let fits = |group: &Group| self.limits.admits(group.ranges.len(), group.blocks, range);
        if self.open.is_some_and(|open| !fits(&self.groups[open as usize])) {
            self.close();
        }
        let Some(index) = self.open.or_else(|| self.free.pop()) else { return false };
        let group = &mut self.groups[index as usize];
        group.slots.push(slot);
        group.ranges.push(range);
        group.blocks += u64::from(range.blocks);
        self.open = Some(index);
        if group.ranges.len() == self.limits.ranges {
            self.close();
        }
        true
    }

    /// The burst is over: what was gathered is a command.
    pub fn close(&mut self) {
        self.closed.extend(self.open.take());
    }

    /// Whether a command is ready to be sent.
    pub fn has_ready(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Takes the next command: its number, itself, and where its ranges are.
    pub fn take(&mut self, nsid: u32) -> Option<(u32, NvmCommand, u64)> {
        let index = self.closed.pop_front()?;
        let start = index as usize * self.place_bytes;
        let ranges = &self.groups[index as usize].ranges;
        let place = &mut self.memory.bytes_mut()[start..start + self.place_bytes];
        encode_ranges(ranges, place);
        Some((index, deallocate(nsid, ranges.len()), place.as_ptr() as u64))
    }

    /// The memory that the drive reads a command's ranges from, and where they are in it; for [`Trims::take`]'s address in memory for DMA.
    ///
    /// # Panics
    /// When the memory is not for DMA.
    pub fn dma_of(&self, address: u64) -> (&DmaMemory, usize) {
        self.memory.dma_of(address as *const u8)
    }

    /// The commands with a range of one of these slots.
    pub fn commands_of<'a>(&'a self, slots: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        let has = |group: &Group| group.slots.iter().any(|slot| slots.contains(slot));
        self.groups.iter().enumerate().filter(move |(_, group)| has(group)).map(|(index, _)| index as u32)
    }

    /// Forgets every command: none of them will be done.
    pub fn clear(&mut self) {
        self.open = None;
        self.closed.clear();
        self.free.clear();
        self.free.extend((0..self.groups.len() as u32).rev());
        for group in &mut self.groups {
            group.slots.clear();
            group.ranges.clear();
            group.blocks = 0;
        }
    }

    /// Frees a command that is done, and hands the slot of each of its ranges on.
    pub fn done(&mut self, index: u32, mut each: impl FnMut(u32)) {
        let group = &mut self.groups[index as usize];
        group.slots.drain(..).for_each(&mut each);
        group.ranges.clear();
        group.blocks = 0;
        self.free.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64) -> LbaRange {
        LbaRange { first, blocks: 8 }
    }

    #[test]
    fn without_coalescing_each_range_is_a_command() {
        let mut trims =
            Trims::new(2, TrimLimits { ranges: 1, ..TrimLimits::default() }, Region::map).unwrap();
        assert!(trims.add(5, range(0)) && trims.add(6, range(8)) && !trims.add(7, range(16)));
        let (first, command, _) = trims.take(1).unwrap();
        assert_eq!((command.cdw[0], command.data_bytes), (0, 16));
        assert_eq!(trims.take(1).map(|(index, ..)| index), Some(1));
        assert!(trims.take(1).is_none());
        let mut slots = Vec::new();
        trims.done(first, |slot| slots.push(slot));
        assert_eq!(slots, [5]);
        assert!(trims.add(7, range(16)));
    }

    #[test]
    fn a_burst_is_one_command_of_up_to_256_ranges() {
        let mut trims = Trims::new(4, TrimLimits::default(), Region::map).unwrap();
        for slot in 0..300 {
            assert!(trims.add(slot, range(u64::from(slot) * 8)));
        }
        assert!(trims.has_ready());
        let (index, command, address) = trims.take(1).unwrap();
        assert_eq!((command.cdw[0], command.data_bytes), (255, 4096));
        // SAFETY: the address is of 4096 bytes of the trims' own memory, which nobody else has.
        let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, 4096) };
        assert_eq!(bytes[4096 - 16..], [0, 0, 0, 0, 8, 0, 0, 0, 0xf8, 7, 0, 0, 0, 0, 0, 0]);
        assert!(!trims.has_ready());
        trims.close();
        assert_eq!(trims.take(1).unwrap().1.cdw[0], 43);
        let mut slots = Vec::new();
        trims.done(index, |slot| slots.push(slot));
        assert_eq!(slots, (0..256).collect::<Vec<_>>());
    }

    #[test]
    fn a_slot_leads_to_its_commands_and_what_is_forgotten_is_free() {
        let mut trims =
            Trims::new(2, TrimLimits { ranges: 2, ..TrimLimits::default() }, Region::map).unwrap();
        for slot in 5..8 {
            assert!(trims.add(slot, range(u64::from(slot))));
        }
        let (first, ..) = trims.take(1).unwrap();
        assert_eq!(trims.commands_of(&[6]).collect::<Vec<_>>(), [first]);
        assert_eq!(trims.commands_of(&[5, 7]).count(), 2);
        trims.clear();
        assert_eq!((trims.commands_of(&[5, 6, 7]).count(), trims.has_ready()), (0, false));
        assert!((0..4).all(|slot| trims.add(slot, range(0))) && !trims.add(4, range(0)));
    }
}
