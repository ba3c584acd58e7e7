//! The path without an operating system: our own driver's queues on an NVMe controller.

mod drive;
mod pieces;
mod slots;

pub use drive::{UserspaceDrive, UserspaceOptions};

use testdrive_core::Opcode;
use testdrive_userspace::Limits;

/// Whether a namespace takes the opcode.
pub(crate) fn supports(limits: &Limits, opcode: Opcode) -> bool {
    match opcode {
        Opcode::Trim => limits.trims.is_some(),
        Opcode::WriteZeroes => limits.write_zeroes,
        Opcode::Read | Opcode::Write | Opcode::Flush => true,
    }
}
