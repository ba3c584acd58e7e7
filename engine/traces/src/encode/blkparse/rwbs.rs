//! The letters of what an I/O does, as the kernel prints them ([`crate::rwbs`] reads them).

use testdrive_core::{Flags, Opcode};

/// Of an I/O with a place.
pub(super) fn of(opcode: Opcode, flags: Flags) -> String {
    let operation = match opcode {
        Opcode::Read => "R",
        Opcode::Write => "W",
        Opcode::Trim => "D",
        Opcode::Flush => "F",
        // As kernels print it from 2026 on. Before, blkparse could not tell it from a write, which whoever knows no Z still reads.
        Opcode::WriteZeroes => "WZ",
    };
    let mut letters = String::new();
    if flags.contains(Flags::PREFLUSH) {
        letters.push('F');
    }
    letters.push_str(operation);
    if flags.contains(Flags::FUA) {
        letters.push('F');
    }
    letters + &modifiers(flags)
}

/// Of a flush as it is queued: an empty write with a preflush.
pub(super) fn queued_flush(flags: Flags) -> String {
    of(Opcode::Write, flags | Flags::PREFLUSH)
}

/// Of the request that the kernel makes for a flush.
pub(super) fn issued_flush(flags: Flags) -> String {
    String::from("FF") + &modifiers(flags)
}

/// Of the end of a flush as it was queued.
pub(super) fn ended_flush(flags: Flags) -> String {
    of(Opcode::Write, flags.without(Flags::PREFLUSH))
}

fn modifiers(flags: Flags) -> String {
    let letters = [(Flags::READ_AHEAD, 'A'), (Flags::SYNC, 'S'), (Flags::METADATA, 'M')];
    letters.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, letter)| letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rwbs::{parse, Rwbs};

    #[test]
    fn every_operation_and_flag_is_read_back() {
        for opcode in [Opcode::Read, Opcode::Write, Opcode::Trim, Opcode::WriteZeroes] {
            for bits in 0..32 {
                let text = of(opcode, Flags(bits));
                assert_eq!(parse(text.as_bytes(), 8), Some(Rwbs::Io(opcode, Flags(bits))), "{text}");
            }
        }
    }

    #[test]
    fn a_flush_is_a_flush_once_it_is_issued() {
        let flags = Flags::SYNC | Flags::METADATA;
        assert_eq!(queued_flush(flags), "FWSM");
        assert_eq!(parse(issued_flush(flags).as_bytes(), 0), Some(Rwbs::Io(Opcode::Flush, flags)));
        assert_eq!(ended_flush(flags | Flags::PREFLUSH), "WSM");
    }
}
