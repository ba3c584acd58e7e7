//! What erases the drive as a whole: Format NVM and Sanitize (Base 5.14 and 5.24).

use super::{Entry, State};

/// The statuses that commands have meanwhile, and afterwards.
const FORMAT_IN_PROGRESS: u16 = 0x0084;
const SANITIZE_IN_PROGRESS: u16 = 0x001d;
const SANITIZE_FAILED: u16 = 0x001c;
const INTERNAL_ERROR: u16 = 0x0006;
const INVALID_FORMAT: u16 = 0x410a;
const INVALID_FIELD: u16 = 0x4002;

/// A format that was begun. A reset ends it without an end.
#[derive(Clone, Copy)]
pub(super) struct Formatting {
    pub(super) cid: u16,
    pub(super) index: u8,
}

/// What became of the last sanitize. No reset changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sanitized {
    #[default]
    Never,
    Running,
    Done,
    Failed,
}

impl State {
    /// Begins a format; `None` where it has begun, and is answered when it is done.
    pub(super) fn format(&mut self, entry: &Entry, cid: u16, dword10: u32) -> Option<u16> {
        let index = (dword10 & 0xf | (dword10 >> 12 & 3) << 4) as u8;
        let nsid = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
        assert_eq!(dword10 >> 4 & 0x1f, 0, "no metadata within the data, and no protection information");
        match self.refusal() {
            Some(status) => Some(status),
            None if usize::from(index) >= self.formats.len() => Some(INVALID_FORMAT),
            None if nsid != u32::MAX && !self.model.namespaces.contains(&nsid) => Some(0x400b),
            None if self.formatting.is_some() => Some(FORMAT_IN_PROGRESS),
            None => {
                self.formatting = Some(Formatting { cid, index });
                None
            }
        }
    }

    /// Begins a sanitize, or leaves the failure of one behind.
    pub(super) fn sanitize(&mut self, dword10: u32) -> u16 {
        let (action, unrestricted) = (dword10 & 7, dword10 >> 3 & 1 == 1);
        let has = |bit: u32| self.model.sanitize >> bit & 1 == 1;
        match (action, self.sanitized) {
            (_, Sanitized::Running) => SANITIZE_IN_PROGRESS,
            (1, Sanitized::Failed) if self.may_leave_failure => {
                self.sanitized = Sanitized::Never;
                0
            }
            (1, Sanitized::Failed) => SANITIZE_FAILED,
            (1, _) => 0,
            (2, _) if has(1) => self.begin_sanitize(unrestricted),
            (3, _) if has(2) => self.begin_sanitize(unrestricted),
            (4, _) if has(0) => self.begin_sanitize(unrestricted),
            _ => INVALID_FIELD,
        }
    }

    fn begin_sanitize(&mut self, unrestricted: bool) -> u16 {
        (self.sanitized, self.may_leave_failure) = (Sanitized::Running, unrestricted);
        0
    }

    /// Goes on with what was begun, unless a test holds it.
    pub(super) fn go_on_erasing(&mut self) {
        if self.faults.unending {
            return;
        }
        if self.sanitized == Sanitized::Running {
            self.sanitized = if self.faults.erase_fails { Sanitized::Failed } else { Sanitized::Done };
            self.storage.fill(0);
        }
        if let Some(Formatting { cid, index }) = self.formatting.take() {
            if self.faults.erase_fails {
                return self.complete(0, cid, INTERNAL_ERROR, 0);
            }
            let (block_bytes, metadata_bytes) = self.formats[usize::from(index)];
            self.format_index = index;
            self.model.blocks = self.storage.len() as u64 / u64::from(block_bytes);
            (self.model.block_bytes, self.model.metadata_bytes) = (block_bytes, metadata_bytes);
            self.storage.fill(0);
            self.complete(0, cid, 0, 0);
        }
    }

    /// The status of commands that a format or sanitize keeps from being done.
    pub(super) fn refusal(&self) -> Option<u16> {
        match self.sanitized {
            Sanitized::Running => Some(SANITIZE_IN_PROGRESS),
            Sanitized::Failed => Some(SANITIZE_FAILED),
            _ if self.formatting.is_some() => Some(FORMAT_IN_PROGRESS),
            _ => None,
        }
    }

    /// Share of a running format that is left, in percent.
    pub(super) fn format_percent_left(&self) -> u8 {
        self.formatting.map_or(0, |_| 100 - self.faults.done_percent)
    }
}
