//! An I/O that is under way: what is still to be sent of it, what is in flight, and what went wrong first.

use crate::nvme::commands::{flushes_first, forces_unit_access};
use testdrive_core::{Command, Opcode};
use testdrive_nvme::{BlockRange, BlockSize, LbaRange};

/// One I/O, from its submission to the completion of its last part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    /// What it does.
    pub opcode: Opcode,
    /// Whether its commands force unit access.
    pub fua: bool,
    /// Where in the buffers the next part's data are.
    pub address: u64,
    /// A flush that has to be done before the rest.
    pub preflush: bool,
    /// A flush that is the I/O itself.
    flush: bool,
    awaits_flush: bool,
    left: BlockRange,
    in_flight: u32,
    status: i32,
}

impl Parts {
    /// A place with nothing in it.
    pub const NONE: Parts = Parts {
        opcode: Opcode::Read,
        fua: false,
        address: 0,
        preflush: false,
        flush: false,
        awaits_flush: false,
        left: BlockRange { first: 0, blocks: 0 },
        in_flight: 0,
        status: 0,
    };

    /// The I/O that a command asks for; `None` where its range does not begin and end with a block.
    pub fn of(command: &Command, block: BlockSize) -> Option<Parts> {
        let flush = command.opcode == Opcode::Flush;
        let left = match flush {
            true => BlockRange { first: 0, blocks: 0 },
            false => block.range(command.offset_bytes, command.length_bytes)?,
        };
        Some(Parts {
            opcode: command.opcode,
            fua: forces_unit_access(command),
            preflush: flushes_first(command),
            flush,
            left,
            ..Parts::NONE
        })
    }

    /// Takes the flush that is to be sent next, if one is.
    pub fn take_flush(&mut self) -> bool {
        let due = self.preflush || self.flush;
        if due {
            (self.preflush, self.flush, self.awaits_flush) = (false, false, true);
            self.in_flight += 1;
        }
        due
    }

    /// Whether a flush is to be sent next, and everything else waits for it.
    pub fn flushes_next(&self) -> bool {
        self.preflush || self.flush
    }

    /// The next part, of at most so many blocks; `None` where all have been taken.
    pub fn next(&self, blocks_max: u32) -> Option<LbaRange> {
        let blocks = self.left.blocks.min(blocks_max.into()) as u32;
        (blocks > 0).then_some(LbaRange { first: self.left.first, blocks })
    }

    /// Notes that the next part is sent.
    pub fn took(&mut self, part: LbaRange, block: BlockSize) {
        self.left.first += u64::from(part.blocks);
        self.left.blocks -= u64::from(part.blocks);
        self.address += u64::from(part.blocks) * u64::from(block.bytes());
        self.in_flight += 1;
    }

    /// Notes that a part is done; returns what is to follow.
    pub fn done(&mut self, status: i32) -> Follows {
        self.in_flight -= 1;
        if self.status == 0 {
            self.status = status;
        }
        if std::mem::take(&mut self.awaits_flush) && self.left.blocks > 0 {
            // What should have come after the flush does not, if that failed.
            return if self.status == 0 { Follows::MoreParts } else { Follows::Completion(self.status) };
        }
        match (self.in_flight, self.left.blocks) {
            (0, 0) => Follows::Completion(self.status),
            // The rest waits for room already.
            _ => Follows::Nothing,
        }
    }

    /// Whether nothing is to be sent, and nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.left.blocks == 0 && self.in_flight == 0 && !self.flushes_next()
    }
}

/// What follows a part that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    /// Other parts are in flight.
    Nothing,
    /// Parts are still to be sent.
    MoreParts,
    /// The I/O is complete, with this status.
    Completion(i32),
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdrive_core::Flags;

    fn parts(opcode: Opcode, flags: Flags, blocks: u64) -> Parts {
        let block = BlockSize::new(512).unwrap();
        let command = Command { opcode, flags, offset_bytes: 5120, length_bytes: blocks * 512 };
        Parts::of(&command, block).unwrap()
    }

    #[test]
    fn an_io_completes_with_its_last_part_and_the_first_error() {
        let block = BlockSize::new(512).unwrap();
        let mut io = parts(Opcode::Write, Flags::NONE, 20);
        let mut sent = Vec::new();
        while let Some(part) = io.next(8) {
            io.took(part, block);
            sent.push((part.first, part.blocks));
        }
        assert_eq!(sent, [(10, 8), (18, 8), (26, 4)]);
        assert_eq!(io.address, 20 * 512);
        assert_eq!(io.done(0), Follows::Nothing);
        assert_eq!(io.done(7), Follows::Nothing);
        assert_eq!(io.done(9), Follows::Completion(7));
    }

    #[test]
    fn an_io_whose_rest_waits_for_room_is_not_complete_though_a_part_failed() {
        let block = BlockSize::new(512).unwrap();
        let mut io = parts(Opcode::Write, Flags::NONE, 16);
        io.took(io.next(8).unwrap(), block);
        assert_eq!(io.done(7), Follows::Nothing);
        io.took(io.next(8).unwrap(), block);
        assert_eq!(io.done(0), Follows::Completion(7));
    }

    #[test]
    fn a_write_waits_for_its_preflush_and_does_not_follow_one_that_failed() {
        let mut io = parts(Opcode::Write, Flags::PREFLUSH | Flags::FUA, 8);
        assert!(io.flushes_next() && io.fua && io.take_flush() && !io.flushes_next());
        assert_eq!(io.done(0), Follows::MoreParts);
        let mut io = parts(Opcode::Write, Flags::PREFLUSH, 8);
        assert!(io.take_flush());
        assert_eq!(io.done(5), Follows::Completion(5));
    }

    #[test]
    fn a_flush_is_one_command_and_a_read_has_no_preflush() {
        let mut io = parts(Opcode::Flush, Flags::NONE, 0);
        assert!(!io.is_empty() && io.take_flush());
        assert_eq!(io.done(0), Follows::Completion(0));
        assert!(!parts(Opcode::Read, Flags::PREFLUSH, 1).flushes_next());
        assert!(parts(Opcode::Read, Flags::NONE, 0).is_empty());
    }

    #[test]
    fn what_is_no_whole_block_is_no_io() {
        let block = BlockSize::new(4096).unwrap();
        let command =
            Command { opcode: Opcode::Read, flags: Flags::NONE, offset_bytes: 512, length_bytes: 4096 };
        assert!(Parts::of(&command, block).is_none());
    }
}
