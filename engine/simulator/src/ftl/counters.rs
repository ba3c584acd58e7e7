//! What a translation layer counts.

use super::PARTS;
use serde::{Deserialize, Serialize};

/// What a translation layer did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCounters {
    /// Pages that the host wrote.
    pub host_pages: u64,
    /// Valid pages that reclaiming moved.
    pub moved_pages: u64,
    /// Pages that went from the SLC cache to where data stays.
    pub folded_pages: u64,
    /// Superblocks emptied.
    pub reclaimed_superblocks: u64,
    /// Pages left unused in units that were programmed before they were full.
    pub unused_pages: u64,
    /// What compression saved over all pages programmed, in 64ths of a page.
    pub saved_parts: u64,
}

impl PageCounters {
    /// What was programmed for what the host wrote, less what compression saved; 1 before the first.
    pub fn write_amplification(&self) -> f64 {
        match self.host_pages {
            0 => 1.0,
            host => {
                let pages = (host + self.moved_pages + self.folded_pages) as f64;
                (pages - self.saved_parts as f64 / f64::from(PARTS)) / host as f64
            }
        }
    }

    /// What was done since `before`.
    #[must_use]
    pub fn since(&self, before: &PageCounters) -> PageCounters {
        PageCounters {
            host_pages: self.host_pages - before.host_pages,
            moved_pages: self.moved_pages - before.moved_pages,
            folded_pages: self.folded_pages - before.folded_pages,
            reclaimed_superblocks: self.reclaimed_superblocks - before.reclaimed_superblocks,
            unused_pages: self.unused_pages - before.unused_pages,
            saved_parts: self.saved_parts - before.saved_parts,
        }
    }
}
