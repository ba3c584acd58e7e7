//! Files of one trace, each in order, as one stream in the order of time, read ahead by a thread of its own.

use crate::TraceError;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::BinaryHeap;
use std::sync::mpsc::{channel, sync_channel, Receiver, SyncSender};

/// Items handed over at once.
const BATCH_ITEMS: usize = 1024;
/// Batches that are read ahead: enough to bridge a pause of the disk, and less than a file's buffer.
const BATCHES_AHEAD: usize = 8;

/// One file of several.
pub(crate) trait Source: Send {
    /// What the items are in order of.
    type Key: Ord + Copy + Send;
    /// What the file holds.
    type Item: Send;

    /// The key of the next item; `None` at the end of the file.
    ///
    /// # Errors
    /// When the file cannot be read, or is not what it should be.
    fn next_key(&mut self) -> Result<Option<Self::Key>, TraceError>;
    /// Hands out the item that [`Source::next_key`] spoke of.
    fn take(&mut self) -> Option<Self::Item>;
    /// Bytes read so far.
    fn bytes_read(&self) -> u64;
}

/// An item, and which file it is of.
#[derive(Clone, Copy)]
pub(crate) struct Placed<T> {
    pub item: T,
    pub source: u32,
}

/// Items in order.
pub(crate) struct Batch<T> {
    pub items: Vec<Placed<T>>,
    /// Bytes read of all files up to here.
    pub bytes_read: u64,
}

/// The files as one stream. Where keys are equal, the file that was named first comes first.
pub(crate) struct Merge<S: Source> {
    pub sources: Vec<S>,
    /// The key of the next item of each file and which file it is, the least on top.
    heads: BinaryHeap<Reverse<(S::Key, u32)>>,
}

impl<S: Source> Merge<S> {
    pub fn new(mut sources: Vec<S>) -> Result<Merge<S>, TraceError> {
        let mut heads = BinaryHeap::with_capacity(sources.len());
        for (index, source) in (0..).zip(&mut sources) {
            if let Some(key) = source.next_key()? {
                heads.push(Reverse((key, index)));
            }
        }
        Ok(Merge { sources, heads })
    }

    /// Bytes read of all files.
    pub fn bytes_read(&self) -> u64 {
        self.sources.iter().map(Source::bytes_read).sum()
    }

    /// Reads all items in a thread of its own and hands them to `take` in this one, batch by batch.
    ///
    /// # Errors
    /// Those of the files, and those of `take`, which end the reading.
    pub fn read_ahead(
        mut self,
        mut take: impl FnMut(&mut Batch<S::Item>) -> Result<(), TraceError>,
    ) -> Result<Merge<S>, TraceError> {
        std::thread::scope(|scope| {
            let (sender, batches) = sync_channel(BATCHES_AHEAD);
            let (give_back, spares) = channel();
            let reader = scope.spawn(move || self.send(&sender, &spares).map(|()| self));
            let mut taken = Ok(());
            for mut batch in batches.iter() {
                taken = take(&mut batch);
                if taken.is_err() {
                    break;
                }
                // The reader may have come to its end.
                let _ = give_back.send(batch.items);
            }
            // A reader that waits for a place in the queue hears so that nobody takes any more.
            drop(batches);
            let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            taken.and(read)
        })
    }

    /// Sends all items, until the receiver is gone.
    fn send(
        &mut self,
        sender: &SyncSender<Batch<S::Item>>,
        spares: &Receiver<Vec<Placed<S::Item>>>,
    ) -> Result<(), TraceError> {
        loop {
            let mut items = spares.try_recv().unwrap_or_default();
            items.clear();
            let filled = self.fill(&mut items);
            // Items before an error are good.
            let is_last = items.len() < BATCH_ITEMS;
            let batch = Batch { items, bytes_read: self.bytes_read() };
            if sender.send(batch).is_err() || is_last || filled.is_err() {
                return filled;
            }
        }
    }

    /// Adds the next items; fewer than a batch only at the end.
    ///
    /// # Errors
    /// Those of the files. Items that were added before are good.
    pub fn fill(&mut self, items: &mut Vec<Placed<S::Item>>) -> Result<(), TraceError> {
        while items.len() < BATCH_ITEMS {
            let Some(mut head) = self.heads.peek_mut() else { return Ok(()) };
            let Reverse((_, source)) = *head;
            let file = &mut self.sources[source as usize];
            items.extend(file.take().map(|item| Placed { item, source }));
            match file.next_key()? {
                // Its place in the heap is found again when `head` is dropped.
                Some(key) => head.0 .0 = key,
                None => {
                    PeekMut::pop(head);
                }
            }
        }
        Ok(())
    }
}
