//! Units that are being gathered: where the next one lies, for whom, and what is known of it once it is closed.

use super::frontier::{ClosedUnit, Frontier, OpenUnit};
use super::TranslationLayer;
use serde::{Deserialize, Serialize};

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Writer {
    Host,
    Reclaim,
    Fold,
}

impl TranslationLayer {
    pub(super) fn open_unit(&mut self, writer: Writer) -> u32 {
        let cached = if writer == Writer::Host { self.next_cached_unit() } else { None };
        if writer != Writer::Reclaim && cached.is_none() {
            self.keep_room_for_victim();
        }
        let slot = cached.or_else(|| self.next_unit(writer)).unwrap_or_else(|| self.open_superblock(writer));
        *self.unit(writer) = OpenUnit { first_slot: Some(slot), pages: 0, parts: 0 };
        slot
    }

    /// Goes on in an empty superblock; returns the first slot of its first unit.
    pub(super) fn open_superblock(&mut self, writer: Writer) -> u32 {
        if writer != Writer::Reclaim {
            self.make_room();
            // Reclaiming may have opened one for both of them.
            if let Some(slot) = self.next_unit(writer) {
                return slot;
            }
        }
        let superblock = self.superblocks.open();
        if writer != Writer::Reclaim {
            self.choose_victim();
        }
        self.frontier(writer).go_on_in(superblock);
        self.next_unit(writer).expect("a superblock has units")
    }

    pub(super) fn next_unit(&mut self, writer: Writer) -> Option<u32> {
        let geometry = self.geometry;
        self.frontier(writer).next_unit(&geometry)
    }

    pub(super) fn frontier(&mut self, writer: Writer) -> &mut Frontier {
        match (&mut self.moved_frontier, writer) {
            (Some(frontier), Writer::Reclaim) => frontier,
            _ => &mut self.host_frontier,
        }
    }

    pub(super) fn unit(&mut self, writer: Writer) -> &mut OpenUnit {
        match writer {
            Writer::Host => &mut self.host_unit,
            Writer::Reclaim => &mut self.moved_unit,
            Writer::Fold => &mut self.folded_unit,
        }
    }

    pub(super) fn close(&mut self, writer: Writer) -> Option<ClosedUnit> {
        let OpenUnit { first_slot, pages, parts } = std::mem::take(self.unit(writer));
        let first_slot = first_slot?;
        let cached = self.slc.as_ref().filter(|slc| first_slot >= slc.first_slot);
        let (slots, room) = match cached {
            Some(slc) => (slc.unit_pages(), slc.unit_pages()),
            None => (self.geometry.unit_slots, self.geometry.unit_parts()),
        };
        for unused in pages..slots {
            self.map.leave_unused(first_slot + unused);
        }
        let parts = if cached.is_some() { pages } else { parts };
        self.counters.unused_pages += u64::from((room - parts) / self.geometry.whole);
        let cached = cached.is_some();
        if !cached && !self.in_place {
            self.superblocks.close_unit(self.geometry.superblock_of(first_slot));
        }
        Some(ClosedUnit { unit: self.unit_of(first_slot), pages, cached })
    }
}
