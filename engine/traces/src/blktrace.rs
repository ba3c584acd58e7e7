//! Binary blktrace: `NAME.blktrace.CPU`, as the kernel writes it and `blktrace` and `btrace` keep it.

mod files;
mod record;

use crate::assembler::{Assembler, AssemblerLimits};
use crate::event::BlockEvent;
use crate::format::{Carries, Confidence, Decoded, Format, Options, Sink};
use crate::input::{Input, Progress};
use crate::{Place, TraceError};
use record::{ByteOrder, Header, Meaning, HEADER_BYTES_MAX};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

/// The format, versions 7 and 8, of either byte order.
pub(crate) struct Blktrace;

impl Format for Blktrace {
    fn name(&self) -> &'static str {
        "blktrace"
    }

    fn description(&self) -> &'static str {
        "binary blktrace, versions 7 and 8: NAME.blktrace.CPU files of one trace, or the folder that holds them"
    }

    fn carries(&self) -> Carries {
        Carries { queue_events: true, completions: true, trims: true }
    }

    fn detect(&self, head: &[u8], _file_name: &str) -> Confidence {
        match ByteOrder::of_magic(head) {
            Some(_) => Confidence::Content,
            None => Confidence::No,
        }
    }

    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError> {
        let mut decoded = Decoded::default();
        let paths = files::of_trace(inputs, &mut decoded)?;
        let mut progress = Progress::over(&paths)?;
        let mut merge = Merge::open(&paths)?;
        let mut assembler = Assembler::new(options, AssemblerLimits::default(), sink);
        while let Some((event, source)) = merge.next()? {
            let offset = merge.sources[source].event_offset;
            assembler.push(event, &paths[source], Place::Byte(offset))?;
            if progress.is_due(merge.bytes_read()) {
                assembler.progress(merge.bytes_read(), progress.bytes_total)?;
            }
        }
        assembler.progress(merge.bytes_read(), progress.bytes_total)?;
        merge.describe(&mut decoded);
        assembler.finish(&paths[0], &mut decoded)?;
        decoded.files = paths;
        Ok(decoded)
    }
}

/// What of a file's records is no event of an I/O.
#[derive(Clone, Copy, Debug, Default)]
struct Skipped {
    passthrough: u64,
    zone: u64,
    truncated: u64,
}

/// One CPU's file.
struct Source {
    input: Input,
    order: Option<ByteOrder>,
    /// Where the event stands that was read last.
    event_offset: u64,
    skipped: Skipped,
}

impl Source {
    /// The next event of an I/O; `None` at the end of the file.
    fn next(&mut self) -> Result<Option<BlockEvent>, TraceError> {
        loop {
            let offset = self.input.offset;
            let Some((header, header_bytes)) = self.header(offset)? else { return Ok(None) };
            let record_bytes = header_bytes + usize::from(header.pdu_bytes);
            let record = self.input.peek(record_bytes)?;
            if record.len() < record_bytes {
                self.truncated()?;
                return Ok(None);
            }
            let meaning = header.meaning(&record[header_bytes..]);
            self.input.skip(record_bytes)?;
            self.event_offset = offset;
            match meaning {
                Meaning::Event(event) => return Ok(Some(event)),
                Meaning::Passthrough => self.skipped.passthrough += 1,
                Meaning::Zone => self.skipped.zone += 1,
                Meaning::Nothing => {}
            }
        }
    }

    fn header(&mut self, offset: u64) -> Result<Option<(Header, usize)>, TraceError> {
        let bytes = self.input.peek(HEADER_BYTES_MAX)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.len() < 4 {
            self.truncated()?;
            return Ok(None);
        }
        // A trace is of one byte order; the first record says which.
        let order = self.order.or_else(|| ByteOrder::of_magic(bytes));
        let parsed = order.and_then(|order| Header::parse(bytes, order));
        self.order = order;
        match parsed {
            Some(Ok(header)) => Ok(Some(header)),
            Some(Err(record::Short)) => {
                self.truncated()?;
                Ok(None)
            }
            None => Err(self.no_record(offset)),
        }
    }

    fn no_record(&mut self, offset: u64) -> TraceError {
        let found = match self.input.peek(4) {
            Ok(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
            Err(error) => return error,
        };
        let advice = if offset == 0 {
            "give a file of blktrace, or name another format with --format".to_string()
        } else {
            format!("the file is damaged here; 'head -c {offset}' keeps what stands before")
        };
        let reason = format!("{found} is no record of blktrace version 7 or 8: {advice}");
        TraceError::damaged(&self.input.path, Place::Byte(offset), reason)
    }

    /// Notes that the last record is not whole, and ends the file there.
    fn truncated(&mut self) -> Result<(), TraceError> {
        self.skipped.truncated += 1;
        self.input.skip(usize::MAX).map(|_| ())
    }
}

/// The CPUs' files as one stream, in the order of time.
struct Merge {
    sources: Vec<Source>,
    /// The next event of each file: time and file, the earliest on top.
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    events: Vec<Option<BlockEvent>>,
}

impl Merge {
    fn open(paths: &[PathBuf]) -> Result<Merge, TraceError> {
        let mut merge = Merge { sources: Vec::new(), heads: BinaryHeap::new(), events: Vec::new() };
        for (index, path) in paths.iter().enumerate() {
            let input = Input::open(path)?;
            merge.sources.push(Source { input, order: None, event_offset: 0, skipped: Skipped::default() });
            merge.events.push(None);
            merge.refill(index)?;
        }
        Ok(merge)
    }

    fn refill(&mut self, index: usize) -> Result<(), TraceError> {
        let event = self.sources[index].next()?;
        self.events[index] = event;
        if let Some(event) = event {
            self.heads.push(Reverse((event.time_ns, index)));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<(BlockEvent, usize)>, TraceError> {
        let Some(Reverse((_, index))) = self.heads.pop() else { return Ok(None) };
        let event = self.events[index].take();
        self.refill(index)?;
        Ok(event.map(|event| (event, index)))
    }

    fn bytes_read(&self) -> u64 {
        self.sources.iter().map(|source| source.input.offset).sum()
    }

    fn describe(&self, decoded: &mut Decoded) {
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
