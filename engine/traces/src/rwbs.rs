//! The letters that the kernel prints for what an I/O does: RWBS.
//!
//! In this order: `F` (preflush), the operation, `F` (FUA), `A` (read-ahead), `S` (sync), `M` (metadata), and `U` (atomic).
//! Operations: `R`, `W`, `D` (`DE` is a secure erase), `F` (a flush by itself), `WZ` (write zeroes, kernels from 2026), `ZA`,
//! `ZR`, ... (zone commands), and `N` for all others. Kernels before `WZ` print write zeroes as `N`, the letter of
//! passthrough commands too; but only write zeroes has a place and a length.

use testdrive_core::{Flags, Opcode};

/// What the kernel's letters for an operation (RWBS) mean, or why the event cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rwbs {
    /// An I/O.
    Io(Opcode, Flags),
    /// A command passed through to the driver, or none at all.
    Passthrough,
    /// Zone management and zone append.
    Zone,
}

/// Reads the letters of an event over `sectors` sectors; `None` where they are not such letters.
pub fn parse(text: &[u8], sectors: u64) -> Option<Rwbs> {
    let mut flags = Flags::NONE;
    let mut rest = text;
    if let [b'F', b'R' | b'W' | b'D' | b'F' | b'N' | b'Z', ..] = rest {
        flags |= Flags::PREFLUSH;
        rest = &rest[1..];
    }
    let (&letter, mut rest) = rest.split_first()?;
    let opcode = match letter {
        b'R' => Opcode::Read,
        b'W' => match rest.split_first() {
            Some((b'Z', after)) => {
                rest = after;
                Opcode::WriteZeroes
            }
            _ => Opcode::Write,
        },
        b'D' => {
            rest = rest.strip_prefix(b"E").unwrap_or(rest);
            Opcode::Trim
        }
        b'F' => Opcode::Flush,
        b'N' if sectors > 0 => Opcode::WriteZeroes,
        b'N' => return Some(Rwbs::Passthrough),
        b'Z' => return Some(Rwbs::Zone),
        _ => return None,
    };
    for &modifier in rest {
        match modifier {
            b'F' => flags |= Flags::FUA,
            b'A' => flags |= Flags::READ_AHEAD,
            b'S' => flags |= Flags::SYNC,
            b'M' => flags |= Flags::METADATA,
            // Barriers of kernels before 2.6.37, untorn writes, and integrity payloads have no flag of their own here.
            b'B' | b'U' | b'I' => {}
            _ => return None,
        }
    }
    // A flush has no preflush or FUA: its letters FF are the operation and the reason for it.
    if opcode == Opcode::Flush {
        flags = Flags(flags.0 & !(Flags::PREFLUSH.0 | Flags::FUA.0));
    }
    Some(Rwbs::Io(opcode, flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(text: &str) -> (Opcode, Flags) {
        match parse(text.as_bytes(), 8) {
            Some(Rwbs::Io(opcode, flags)) => (opcode, flags),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn an_f_before_the_operation_is_a_preflush_and_after_it_fua() {
        assert_eq!(io("FWS"), (Opcode::Write, Flags::PREFLUSH | Flags::SYNC));
        assert_eq!(io("WFS"), (Opcode::Write, Flags::FUA | Flags::SYNC));
        let both = Flags::PREFLUSH | Flags::FUA | Flags::SYNC | Flags::METADATA;
        assert_eq!(io("FWFSM"), (Opcode::Write, both));
    }

    #[test]
    fn a_flush_by_itself_is_told_from_a_preflush() {
        assert_eq!(io("FF"), (Opcode::Flush, Flags::NONE));
        assert_eq!(io("F"), (Opcode::Flush, Flags::NONE));
        assert_eq!(io("FS"), (Opcode::Flush, Flags::SYNC));
        assert_eq!(io("FFS"), (Opcode::Flush, Flags::SYNC));
    }

    #[test]
    fn trims_and_their_secure_kind_are_trims() {
        assert_eq!(io("D"), (Opcode::Trim, Flags::NONE));
        assert_eq!(io("DS"), (Opcode::Trim, Flags::SYNC));
        assert_eq!(io("DES"), (Opcode::Trim, Flags::SYNC));
    }

    #[test]
    fn write_zeroes_is_known_by_its_length_where_it_has_no_letter() {
        assert_eq!(io("NS"), (Opcode::WriteZeroes, Flags::SYNC));
        assert_eq!(io("WZS"), (Opcode::WriteZeroes, Flags::SYNC));
        assert_eq!(parse(b"N", 0), Some(Rwbs::Passthrough));
    }

    #[test]
    fn reads_keep_their_modifiers_and_other_letters_are_refused() {
        assert_eq!(io("RA"), (Opcode::Read, Flags::READ_AHEAD));
        assert_eq!(io("RSM"), (Opcode::Read, Flags::SYNC | Flags::METADATA));
        assert_eq!(parse(b"ZR", 8), Some(Rwbs::Zone));
        assert_eq!(parse(b"", 8), None);
        assert_eq!(parse(b"X", 8), None);
        assert_eq!(parse(b"RQ", 8), None);
    }
}
