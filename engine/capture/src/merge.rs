//! The events of all CPUs in the order of time, in bounded memory.

use crate::decode::Decoder;
use crate::layout::PageLayout;
use crate::stream::{CpuStream, Noted, PagePool, PageSource};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use testdrive_traces::BlockEvent;

/// An event may be stamped and not yet readable: its writer was interrupted between the two. So events are held back until they are
/// this old; one that is later still comes out of its turn.
const PATIENCE_NS: i64 = 20_000_000;

/// What was read at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Filled {
    /// Pages of all CPUs.
    pub pages: usize,
    /// How full the fullest CPU's buffer was, from 0 to 1.
    pub fullest_share: f64,
}

/// All CPUs of an instance.
pub struct Merge<S> {
    streams: Vec<CpuStream<S>>,
    decoder: Decoder,
    layout: PageLayout,
    /// A CPU whose buffer fills as fast as it is read must not keep the others waiting.
    pages_max: usize,
    pool: PagePool,
    noted: Noted,
    /// The next event of each CPU that has one.
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    has_head: Vec<bool>,
    last_ns: i64,
    late_events: u64,
}

impl<S: PageSource> Merge<S> {
    /// Of these CPUs, each with a buffer of `buffer_bytes`.
    pub fn new(
        streams: Vec<CpuStream<S>>,
        decoder: Decoder,
        layout: PageLayout,
        buffer_bytes: u64,
    ) -> Merge<S> {
        let pages = buffer_bytes / layout.page_bytes.max(1) as u64;
        let has_head = vec![false; streams.len()];
        Merge {
            streams,
            decoder,
            layout,
            pages_max: usize::try_from(pages).unwrap_or(usize::MAX).max(2),
            pool: PagePool::default(),
            noted: Noted::default(),
            heads: BinaryHeap::new(),
            has_head,
            last_ns: i64::MIN,
            late_events: 0,
        }
    }

    /// The CPUs.
    pub fn streams(&self) -> &[CpuStream<S>] {
        &self.streams
    }

    /// What was seen beside events.
    pub fn noted(&self) -> &Noted {
        &self.noted
    }

    /// Events that came after one that is later, and were given its time.
    pub fn late_events(&self) -> u64 {
        self.late_events
    }

    /// Reads what the kernel has. `now_ns` is a time before the call.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn fill(&mut self, now_ns: i64) -> io::Result<Filled> {
        let mut filled = Filled::default();
        for stream in &mut self.streams {
            let pages = stream.fill(now_ns, self.pages_max, &self.layout, &mut self.pool, &mut self.noted)?;
            filled.pages += pages;
            filled.fullest_share = filled.fullest_share.max(pages as f64 / self.pages_max as f64);
        }
        Ok(filled)
    }

    /// Hands out the events that no earlier one can follow.
    ///
    /// # Errors
    /// The error of `take`.
    pub fn hand_out<E>(&mut self, take: impl FnMut(BlockEvent) -> Result<(), E>) -> Result<(), E> {
        let read_to_ns = self.streams.iter().map(CpuStream::read_to_ns).min().unwrap_or(i64::MIN);
        self.hand_out_before(read_to_ns.saturating_sub(PATIENCE_NS), take)
    }

    /// Hands out all events that were read.
    ///
    /// # Errors
    /// The error of `take`.
    pub fn hand_out_all<E>(&mut self, take: impl FnMut(BlockEvent) -> Result<(), E>) -> Result<(), E> {
        self.hand_out_before(i64::MAX, take)
    }

    fn hand_out_before<E>(
        &mut self,
        before_ns: i64,
        mut take: impl FnMut(BlockEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        for index in 0..self.streams.len() {
            if !self.has_head[index] {
                if let Some(time_ns) =
                    self.streams[index].head_ns(&self.decoder, &mut self.pool, &mut self.noted)
                {
                    self.has_head[index] = true;
                    self.heads.push(Reverse((time_ns, index)));
                }
            }
        }
        while let Some(&Reverse((time_ns, index))) = self.heads.peek() {
            if time_ns >= before_ns {
                break;
            }
            self.heads.pop();
            self.has_head[index] = false;
            self.hand_out_run(index, before_ns, &mut take)?;
        }
        self.pool.shrink();
        Ok(())
    }

    /// Hands out the events of one CPU until it is another's turn: they come in runs.
    fn hand_out_run<E>(
        &mut self,
        index: usize,
        before_ns: i64,
        take: &mut impl FnMut(BlockEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        let other = self.heads.peek().map_or((before_ns, 0), |&Reverse(head)| head.min((before_ns, 0)));
        let stream = &mut self.streams[index];
        while let Some(time_ns) = stream.head_ns(&self.decoder, &mut self.pool, &mut self.noted) {
            if (time_ns, index) >= other {
                self.heads.push(Reverse((time_ns, index)));
                self.has_head[index] = true;
                break;
            }
            let Some(mut event) = stream.take_head() else { break };
            if event.time_ns < self.last_ns {
                self.late_events += 1;
                event.time_ns = self.last_ns;
            }
            self.last_ns = event.time_ns;
            take(event)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
