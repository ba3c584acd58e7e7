//! The queues of a trace as rows.

use super::event::What;
use super::pairing::{DeviceIo, Pairing};
use super::queue::{Placed, Queue};
use super::FILES;
use crate::format::Decoded;
use crate::merge::{self, Merge};
use crate::rows::{Block, Gather, RowReader};
use crate::time_order::{TimeOrder, Timed};
use crate::{Place, TraceError};
use std::collections::HashMap;
use std::path::PathBuf;

/// Events held to be put in order: a queue may note an interrupt's event before the one that it interrupted.
const ORDER_EVENTS: usize = 4096;
/// I/Os that may wait for their completion.
const UNDER_WAY_MAX: usize = 1 << 20;
/// More devices are none: the file is damaged in a way that still can be read.
const DEVICES_MAX: usize = 1 << 16;

/// Reads the events of all queues in the order of time.
pub(super) struct Reader {
    merge: Merge<Queue>,
    order: TimeOrder<merge::Placed<Placed>>,
    batch: Vec<merge::Placed<Placed>>,
    pairing: Pairing,
    /// The number of each file's queue.
    queues: Vec<i32>,
    names: HashMap<u64, String>,
    ended: bool,
}

impl Timed for merge::Placed<Placed> {
    fn time_ns(&self) -> i64 {
        self.item.event.time_ns as i64
    }
}

impl Reader {
    pub fn open(paths: &[PathBuf]) -> Result<Reader, TraceError> {
        let open = |path: &PathBuf| Queue::open(path, paths.len());
        let queues: Result<Vec<Queue>, TraceError> = paths.iter().map(open).collect();
        let number = |path: &PathBuf| FILES.number_of(path).and_then(|number| i32::try_from(number).ok());
        Ok(Reader {
            merge: Merge::new(queues?)?,
            order: TimeOrder::new(ORDER_EVENTS),
            batch: Vec::new(),
            pairing: Pairing::new(UNDER_WAY_MAX),
            queues: paths.iter().map(|path| number(path).unwrap_or(-1)).collect(),
            names: HashMap::new(),
            ended: false,
        })
    }

    fn take(&mut self, placed: merge::Placed<Placed>) -> Result<(), TraceError> {
        let (source, offset, time_ns) = (placed.source as usize, placed.item.offset, placed.time_ns());
        let is_full = self.order.push(placed).map_err(|late| TraceError::OutOfOrder {
            path: self.merge.sources[source].input.path.clone(),
            place: Place::Byte(offset),
            back_ns: late.latest_ns.saturating_sub(time_ns),
            latest_ns: late.latest_ns,
            time_ns,
            window: ORDER_EVENTS,
        })?;
        if is_full {
            if let Some(next) = self.order.pop() {
                self.pair(next);
            }
        }
        Ok(())
    }

    fn pair(&mut self, placed: merge::Placed<Placed>) {
        let time_ns = placed.time_ns();
        match placed.item.event.what {
            What::Io(io) => self.pairing.begin(&io, time_ns, self.queues[placed.source as usize]),
            What::Completion(completion) => self.pairing.end(&completion, time_ns),
            What::Device | What::Other => {}
        }
        if let Some((id, name)) = placed.item.device {
            if self.names.len() < DEVICES_MAX {
                self.names.insert(id, name);
            }
        }
    }
}

impl RowReader for Reader {
    fn read(&mut self, block: &mut Block, gather: &mut Gather) -> Result<bool, TraceError> {
        if self.ended {
            return Ok(false);
        }
        block.begin(0);
        let mut batch = std::mem::take(&mut self.batch);
        self.merge.fill(&mut batch)?;
        self.ended = batch.is_empty();
        for placed in batch.drain(..) {
            self.take(placed)?;
        }
        self.batch = batch;
        if self.ended {
            while let Some(placed) = self.order.pop() {
                self.pair(placed);
            }
            self.pairing.finish();
        }
        let names = &self.names;
        for DeviceIo { device, record } in self.pairing.ended.drain(..) {
            let name = || names.get(&device).cloned().unwrap_or_else(|| format!("device-{device}"));
            let volume = gather.volume(&device.to_le_bytes(), name);
            let volume = volume.map_err(|bad| TraceError::Usage(bad.reason()))?;
            block.push(gather, volume, record);
        }
        Ok(true)
    }

    fn file_bytes(&self) -> u64 {
        self.merge.bytes_read()
    }

    fn is_in_order_of_ends(&self) -> bool {
        true
    }

    fn describe(&self, decoded: &mut Decoded) {
        let tally = &self.pairing.tally;
        decoded.drop(
            tally.completions_without_io,
            "completions whose I/O was not seen to begin (begun before the trace, or its event was lost)",
        );
        decoded.drop(tally.unknown_operation, "I/Os of an operation that is none of read, write and discard");
        decoded.drop(tally.empty, "I/Os without a length");
        decoded.drop(tally.beyond_drives, "I/Os of places beyond the end of any drive");
        decoded.absent("submit_ns");
        if tally.completions == 0 {
            decoded.absent("latency_ns");
            decoded.absent("status");
        }
        decoded.warn_of_completions(
            tally.completions,
            (tally.no_completion, tally.ios),
            (
                "record it with a version of iotrace that traces completions",
                "give the files of all queues: completions stand in the file of the CPU that took the interrupt",
            ),
        );
        if tally.given_up > 0 {
            decoded.warn(
                "too_many_under_way",
                format!(
                    "{} I/Os were given up as not completed since too many were under way",
                    tally.given_up
                ),
                "give the files of all queues, so that completions are found",
            );
        }
        let cut = self.merge.sources.iter().filter(|queue| queue.truncated);
        let cut: Vec<String> = cut.map(|queue| queue.input.path.display().to_string()).collect();
        decoded.drop(cut.len() as u64, "events cut off at the end of a file");
        if !cut.is_empty() {
            let message =
                format!("the last event is cut off in {}: it was not written to its end", cut.join(", "));
            decoded.warn(
                "truncated",
                message,
                "check that the copy is whole; what stands before was imported",
            );
        }
    }
}
