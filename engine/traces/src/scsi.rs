//! SCSI commands by their operation codes.

use testdrive_core::Opcode;

/// What a command is to a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// It reads, writes or flushes.
    Io(Opcode),
    /// It changes what is stored, but where is not in its operation code, address and transfer length.
    Elsewhere(&'static str),
    /// It is no I/O.
    Other,
}

/// What the operation code of a command descriptor block stands for.
pub(crate) fn command(operation_code: u8) -> Command {
    match operation_code {
        // READ(6), (10), (12) and (16).
        0x08 | 0x28 | 0xa8 | 0x88 => Command::Io(Opcode::Read),
        // WRITE(6), (10), (12) and (16); WRITE AND VERIFY(10), (12) and (16).
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Command::Io(Opcode::Write),
        // SYNCHRONIZE CACHE(10) and (16).
        0x35 | 0x91 => Command::Io(Opcode::Flush),
        0x42 => Command::Elsewhere("UNMAP commands, whose ranges the trace does not have"),
        0x41 | 0x93 => Command::Elsewhere("WRITE SAME commands, whose ranges the trace does not have"),
        0x89 => Command::Elsewhere("COMPARE AND WRITE commands, whose ranges the trace does not have"),
        _ => Command::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_all_lengths_are_understood_and_others_are_not_guessed() {
        assert_eq!(command(0x28), Command::Io(Opcode::Read));
        assert_eq!(command(0x2a), Command::Io(Opcode::Write));
        assert_eq!(command(0x91), Command::Io(Opcode::Flush));
        assert!(matches!(command(0x42), Command::Elsewhere(what) if what.contains("UNMAP")));
        let ios = (0..=255).filter(|&code| matches!(command(code), Command::Io(_))).count();
        assert_eq!((ios, command(0x12)), (4 + 7 + 2, Command::Other));
    }
}
