//! The CPUs' files as one stream in the order of time, read ahead by a thread of its own.

use super::source::{Skipped, Source};
use crate::event::BlockEvent;
use crate::format::Decoded;
use crate::TraceError;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::sync::mpsc::{channel, sync_channel, Receiver, SyncSender};

/// Events handed over at once.
const BATCH_EVENTS: usize = 1024;
/// Batches that are read ahead: enough to bridge a pause of the disk, and less than a file's buffer.
const BATCHES_AHEAD: usize = 8;

/// An event, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Placed {
    pub event: BlockEvent,
    /// Which file.
    pub source: u32,
    /// Which byte of it.
    pub offset: u64,
}

/// Events in the order of time.
#[derive(Default)]
pub(super) struct Batch {
    pub events: Vec<Placed>,
    /// Bytes read of all files up to here.
    pub bytes_read: u64,
}

/// The CPUs' files as one stream, in the order of time.
pub(super) struct Merge {
    sources: Vec<Source>,
    /// When the next event of each file is and which file it is, the earliest on top.
    heads: BinaryHeap<Reverse<(i64, u32)>>,
}

impl Merge {
    pub fn open(paths: &[PathBuf]) -> Result<Merge, TraceError> {
        let mut merge = Merge { sources: Vec::new(), heads: BinaryHeap::new() };
        for (index, path) in (0..).zip(paths) {
            let mut source = Source::open(path)?;
            if let Some(time_ns) = source.next_ns()? {
                merge.heads.push(Reverse((time_ns, index)));
            }
            merge.sources.push(source);
        }
        Ok(merge)
    }

    /// Reads all events in a thread of its own and hands them to `take` in this one, batch by batch.
    pub fn read_ahead(
        mut self,
        mut take: impl FnMut(&Batch) -> Result<(), TraceError>,
    ) -> Result<Merge, TraceError> {
        std::thread::scope(|scope| {
            let (sender, batches) = sync_channel(BATCHES_AHEAD);
            let (give_back, spares) = channel();
            let reader = scope.spawn(move || self.send(&sender, &spares).map(|()| self));
            let mut taken = Ok(());
            for batch in batches.iter() {
                taken = take(&batch);
                if taken.is_err() {
                    break;
                }
                // The reader may have come to its end.
                let _ = give_back.send(batch);
            }
            // A reader that waits for a place in the queue hears so that nobody takes any more.
            drop(batches);
            let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            taken.and(read)
        })
    }

    /// Sends all events, until the receiver is gone.
    fn send(&mut self, sender: &SyncSender<Batch>, spares: &Receiver<Batch>) -> Result<(), TraceError> {
        loop {
            let mut batch = spares.try_recv().unwrap_or_default();
            batch.events.clear();
            let filled = self.fill(&mut batch.events);
            batch.bytes_read = self.bytes_read();
            // Events before an error are good.
            let is_last = batch.events.len() < BATCH_EVENTS;
            if sender.send(batch).is_err() || is_last || filled.is_err() {
                return filled;
            }
        }
    }

    /// Adds the next events; fewer than a batch only at the end.
    fn fill(&mut self, events: &mut Vec<Placed>) -> Result<(), TraceError> {
        while events.len() < BATCH_EVENTS {
            let Some(mut head) = self.heads.peek_mut() else { return Ok(()) };
            let Reverse((_, source)) = *head;
            let file = &mut self.sources[source as usize];
            if let Some((event, offset)) = file.take() {
                events.push(Placed { event, source, offset });
            }
            match file.next_ns()? {
                // Its place in the heap is found again when `head` is dropped.
                Some(time_ns) => head.0 .0 = time_ns,
                None => {
                    PeekMut::pop(head);
                }
            }
        }
        Ok(())
    }

    pub fn bytes_read(&self) -> u64 {
        self.sources.iter().map(|source| source.input.file_bytes()).sum()
    }

    pub fn describe(&self, decoded: &mut Decoded) {
        let sum = |count: fn(&Skipped) -> u64| self.sources.iter().map(|source| count(&source.skipped)).sum();
        decoded.drop(sum(|skipped| skipped.passthrough), "commands passed through to the driver");
        decoded.drop(sum(|skipped| skipped.zone), "zone commands");
        let truncated: u64 = sum(|skipped| skipped.truncated);
        decoded.drop(truncated, "records cut off at the end of a file");
        if truncated > 0 {
            let cut = self.sources.iter().filter(|source| source.skipped.truncated > 0);
            let names: Vec<String> = cut.map(|source| source.input.path.display().to_string()).collect();
            decoded.warn(
                "truncated",
                format!(
                    "the last record is cut off in {}: the trace was not written to its end",
                    names.join(", ")
                ),
                "check that the copy is whole; what stands before was imported",
            );
        }
    }
}
