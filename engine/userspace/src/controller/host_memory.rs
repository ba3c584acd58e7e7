//! Memory that a drive without its own asks its host for, to keep its tables in (Base 8.9): lent when the controller was started, taken
//! back before it is shut down.

use super::admin::{Admin, ADMIN_LIMIT};
use super::Controller;
use crate::error::ControllerError;
use crate::function::Function;
use crate::memory::{before_doorbell, DmaMemory, PAGE_BYTES};
use std::time::Duration;
use testdrive_nvme::{
    disable_host_memory_buffer, host_memory_descriptor, set_host_memory_buffer, ControllerIdentity,
};

/// No drive gets more, as it gets no more of the kernel unless somebody says so.
const LENT_BYTES_MAX: u64 = 128 << 20;
/// How long a drive may take to give its memory back. One that does not is stopped with it.
const RETURN_LIMIT: Duration = Duration::from_secs(2);

/// Memory that the controller has, until it is stopped or says that it does without.
pub(super) struct HostMemory {
    memory: DmaMemory,
    /// The list of its pieces, which the controller may read again.
    list: DmaMemory,
    pieces: u32,
}

impl HostMemory {
    /// As much as the drive prefers, or half of that and so on, down to the least that is of use to it; `None` where it asks for none, or
    /// there is none that suits it.
    fn for_drive(function: &impl Function, drive: &ControllerIdentity) -> Option<HostMemory> {
        let least = drive.host_memory_min_bytes.max(PAGE_BYTES as u64);
        let mut bytes = drive.host_memory_preferred_bytes.min(LENT_BYTES_MAX);
        while bytes >= least {
            let length = (bytes as usize).next_multiple_of(PAGE_BYTES);
            let lent =
                function.allocate(length).ok().and_then(|memory| HostMemory::of(function, memory, drive));
            if lent.is_some() {
                return lent;
            }
            bytes /= 2;
        }
        None
    }

    /// Memory with the list of its pieces, where these are as the drive wants them.
    fn of(function: &impl Function, memory: DmaMemory, drive: &ControllerIdentity) -> Option<HostMemory> {
        let pieces = pieces_of(&memory);
        let most = usize::from(drive.host_memory_pieces_max);
        let is_small = |(_, bytes): &(u64, u64)| *bytes < drive.host_memory_piece_min_bytes;
        if (most > 0 && pieces.len() > most) || pieces.iter().any(is_small) {
            return None;
        }
        let entries: Vec<u8> =
            pieces.iter().flat_map(|(address, bytes)| host_memory_descriptor(*address, *bytes)).collect();
        let list = function.allocate(entries.len().next_multiple_of(PAGE_BYTES)).ok()?;
        list.write(0, &entries);
        let in_one_piece = list.is_contiguous(0, entries.len());
        in_one_piece.then_some(HostMemory { memory, list, pieces: pieces.len() as u32 })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.memory.length() as u64
    }
}

/// Where memory is for the controller, in as few pieces as it is in: their addresses and sizes.
fn pieces_of(memory: &DmaMemory) -> Vec<(u64, u64)> {
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    for offset in (0..memory.length()).step_by(PAGE_BYTES) {
        let address = memory.address(offset);
        match pieces.last_mut() {
            Some((start, bytes)) if *start + *bytes == address => *bytes += PAGE_BYTES as u64,
            _ => pieces.push((address, PAGE_BYTES as u64)),
        }
    }
    pieces
}

impl<F: Function> Controller<F> {
    /// Lends the drive memory where it asks for that. One that gets none, or refuses it, does without.
    ///
    /// # Errors
    /// When it does not answer: it may have the memory then, and has to be stopped.
    pub(super) fn lend_memory(&self, admin: &mut Admin) -> Result<(), ControllerError> {
        if !self.function.may_lend_memory() {
            return Ok(());
        }
        let Some(lent) = HostMemory::for_drive(&self.function, &self.identity) else { return Ok(()) };
        let command = set_host_memory_buffer(lent.bytes(), lent.list.address(0), lent.pieces);
        before_doorbell();
        let taken = self.execute(admin, "use memory of the host", &command, ADMIN_LIMIT);
        if let Err(ControllerError::Refused { .. }) = taken {
            return Ok(());
        }
        // Whatever it answers, or not: it stays where it is until the controller was stopped.
        admin.host_memory = Some(lent);
        admin.keep_feature(&command);
        taken.map(drop)
    }

    /// Takes the memory back, so that the drive can bring home what it has there. One that does not answer is stopped with it.
    pub(super) fn take_memory_back(&self, admin: &mut Admin) {
        if admin.host_memory.is_some() {
            let command = disable_host_memory_buffer();
            let _ = self.execute(admin, "do without memory of the host", &command, RETURN_LIMIT);
        }
    }

    /// How much memory of the host the drive was lent; 0 where it asked for none, or there was none.
    pub fn host_memory_bytes(&self) -> u64 {
        self.lock().host_memory.as_ref().map_or(0, HostMemory::bytes)
    }
}
