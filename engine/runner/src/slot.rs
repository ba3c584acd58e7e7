//! What a submitter keeps of an I/O in flight, and what becomes of it: a row, and an error where it failed.

use crate::job::OnError;
use crate::orders::Shared;
use crate::source::Planned;
use std::io;
use std::sync::atomic::Ordering;
use testdrive_core::{Command, Flags, IoRecord, Opcode};
use testdrive_nvme::Status as NvmeStatus;
use testdrive_recording::Status;

/// An I/O in flight, or the place for one.
#[derive(Clone, Copy)]
pub struct Slot {
    /// When it was to go.
    pub intended_ns: i64,
    /// When it went.
    pub submit_ns: i64,
    /// What it is.
    pub planned: Planned,
    /// Whether it is in flight.
    pub busy: bool,
}

impl Slot {
    /// A place with nothing in it.
    pub const FREE: Slot = Slot {
        intended_ns: 0,
        submit_ns: 0,
        planned: Planned {
            command: Command { offset_bytes: 0, length_bytes: 0, opcode: Opcode::Read, flags: Flags::NONE },
            due_ns: 0,
            gate: 0,
            sequence: 0,
            stream: 0,
            part: 0,
            opens_gates: false,
        },
        busy: false,
    };

    /// Its path began with it later than it was handed over. A closed loop's I/Os are never late.
    #[inline]
    pub fn begun(&mut self, begun_ns: i64, is_closed: bool) {
        self.submit_ns = self.submit_ns.max(begun_ns);
        if is_closed {
            self.intended_ns = self.submit_ns;
        }
    }

    /// The row of the I/O.
    #[inline]
    pub fn row(&self, latency_ns: i64, status: i32, phase: u16) -> IoRecord {
        let command = &self.planned.command;
        IoRecord {
            intended_ns: self.intended_ns,
            submit_ns: self.submit_ns,
            latency_ns,
            offset_bytes: command.offset_bytes as i64,
            length_bytes: command.length_bytes as i64,
            stream: self.planned.stream,
            status,
            phase,
            opcode: command.opcode,
            flags: command.flags,
        }
    }
}

/// Whether a status says that there is no drive any more.
pub fn is_gone(status: i32) -> bool {
    matches!(status, libc::ENODEV | libc::ENXIO | libc::ESHUTDOWN | libc::ENOMEDIUM | libc::EBADF)
}

/// A recorded status in words.
fn what_it_means(status: i32) -> String {
    match NvmeStatus::from_recorded(status) {
        Some(status) => status.to_string(),
        // What the system calls these says nothing of drives.
        None => match status {
            libc::ETIMEDOUT => {
                "the drive did not answer in time (io_timeout_s, or the kernel's own limit)".into()
            }
            libc::ECANCELED => "it went with a reset of the controller, or the kernel gave it up".into(),
            status => io::Error::from_raw_os_error(status).to_string(),
        },
    }
}

/// Counts a failed I/O, and stops the run where it must not go on.
pub fn count_failure(shared: &Shared, on_error: OnError, slot: &Slot, status: i32, gone: bool) {
    shared.errors.fetch_add(1, Ordering::Relaxed);
    if gone || on_error == OnError::Stop {
        let command = &slot.planned.command;
        let error = what_it_means(status);
        let what = if gone { "the drive is gone" } else { "an I/O failed" };
        let message = format!(
            "{what}: {} of {} bytes at offset {}: {error}",
            command.opcode.name(),
            command.length_bytes,
            command.offset_bytes
        );
        shared.stop.request(Status::Failed, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_that_was_not_answered_is_told_in_words_of_drives() {
        let said = [libc::ETIMEDOUT, libc::ECANCELED, libc::EIO].map(what_it_means);
        assert!(said[0].contains("did not answer in time") && said[1].contains("reset of the controller"));
        assert!(said[2].starts_with("Input/output error"), "{}", said[2]);
    }
}
