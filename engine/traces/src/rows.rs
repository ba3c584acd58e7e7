//! Decoders of formats whose lines or records are whole I/Os.
//!
//! A format implements [`TextFormat`] with a [`LineParser`], or reads records of a fixed size by a [`RecordParser`]. What they share:
//! reading and merging files by time ([`decode`]), fields ([`cells::Cells`]), volumes, the time zero and the order of rows
//! ([`collect::Collector`]).
//!
//! One line becomes at most one row, and nothing is allocated for it. A line that cannot be read is an error with its number; what
//! a format has but a recording has not is counted with [`Gather::drop`].

pub(crate) mod cells;
mod collect;
mod descriptions;
mod files;
pub(crate) mod header;
mod lines;
mod reading;
pub(crate) mod records;
mod volumes;

use crate::format::{Carries, Confidence, Decoded, Events, Format, FoundBy, Sink};
use crate::input::Progress;
use crate::options::{OptionName, Options};
use crate::TraceError;
pub(crate) use cells::{Bad, Cells};
use collect::Collector;
use files::{Files, Run};
pub(crate) use lines::{sample, LineParser, Lines};
pub(crate) use reading::reading_of;
pub(crate) use records::{sample_records, RecordParser, Records};
use std::path::{Path, PathBuf};
use testdrive_core::{Flags, IoRecord, Opcode, NO_COMPLETION};
use volumes::Volumes;

/// About how many rows a reader hands over at once.
pub(crate) const BLOCK_ROWS: usize = 4096;

/// An I/O, whose it is, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub record: IoRecord,
    volume: u32,
    /// Lines or bytes from the start of its block; negative where it began in an earlier one.
    place: i32,
}

impl Row {
    /// When it began.
    fn time_ns(&self) -> i64 {
        self.record.intended_ns.min(self.record.submit_ns)
    }

    /// The time that rows are in order of: when they began, or where that is how they come, when they ended. `None` of what has no
    /// end, which comes at any time then.
    fn order_ns(&self, in_order_of_ends: bool) -> Option<i64> {
        if in_order_of_ends {
            self.record.complete_ns()
        } else {
            Some(self.time_ns())
        }
    }
}

/// An I/O of which nothing is known but what it does, when, and where.
pub(crate) fn plain(time_ns: i64, opcode: Opcode, offset_bytes: i64, length_bytes: i64) -> IoRecord {
    IoRecord {
        intended_ns: time_ns,
        submit_ns: time_ns,
        latency_ns: NO_COMPLETION,
        offset_bytes,
        length_bytes,
        stream: -1,
        status: 0,
        phase: 0,
        opcode,
        flags: Flags::NONE,
    }
}

/// Columns that a trace of nothing but [`plain`] I/Os does not have.
pub(crate) const ABSENT_OF_PLAIN: &[&str] = &["submit_ns", "latency_ns", "flags", "stream", "status"];

/// Notes that times are whole seconds.
pub(crate) fn warn_of_whole_seconds(decoded: &mut Decoded) {
    decoded.warn(
        "whole_seconds",
        "the trace has times in whole seconds: how I/Os follow each other within one is not known".into(),
        "import the trace in a format with finer times, where there is one",
    );
}

/// A trace being read: one file of it.
pub(crate) trait RowReader {
    /// Reads about [`BLOCK_ROWS`] rows into a block; false when there are no more.
    fn read(&mut self, block: &mut Block, gather: &mut Gather) -> Result<bool, TraceError>;
    /// Bytes read of the file so far.
    fn file_bytes(&self) -> u64;
    /// Whether rows come in the order in which their I/Os ended. One that took long comes late then, and is no sign of disorder.
    fn is_in_order_of_ends(&self) -> bool {
        false
    }
    /// Notes what the whole file told of itself.
    fn describe(&self, decoded: &mut Decoded);
}

/// Rows read together.
#[derive(Default)]
pub(crate) struct Block {
    rows: Vec<Row>,
    /// The line or byte that their places count from.
    base: u64,
    /// Where the next row stands.
    place: u64,
    /// Whether places are bytes, and not lines.
    is_bytes: bool,
}

impl Block {
    /// Empties it; places are lines, or of no use.
    pub fn begin(&mut self, base: u64) {
        self.rows.clear();
        self.base = base;
    }

    fn begin_bytes(&mut self, base: u64) {
        self.begin(base);
        self.is_bytes = true;
    }

    /// The line or byte that is being read.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Takes an I/O as [`Block::push`], which stands at an earlier place than what is being read.
    pub fn push_from(&mut self, place: u64, gather: &mut Gather, volume: u32, record: IoRecord) {
        let now = std::mem::replace(&mut self.place, place);
        self.push(gather, volume, record);
        self.place = now;
    }

    /// Takes an I/O of a volume, as [`Gather::volume`] numbers them; 0 where the format knows none. One that moves nothing is
    /// counted as dropped.
    pub fn push(&mut self, gather: &mut Gather, volume: u32, record: IoRecord) {
        if record.length_bytes == 0 && record.opcode != Opcode::Flush {
            gather.drop("I/Os without a length");
            return;
        }
        let place = self.place as i64 - self.base as i64;
        let place = place.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        self.rows.push(Row { record, volume, place });
    }
}

/// What is gathered beside the rows: the volumes, and counts of what was dropped.
#[derive(Default)]
pub(crate) struct Gather {
    volumes: Volumes,
    dropped: Vec<(&'static str, u64)>,
}

impl Gather {
    /// The number of a volume, which has this key in the trace. `name` makes its name of the key the first time.
    pub fn volume(&mut self, key: &[u8], name: impl FnOnce() -> String) -> Result<u32, Bad> {
        self.volumes.number(key, name)
    }

    /// Counts something that does not become a row.
    pub fn drop(&mut self, what: &'static str) {
        self.drop_several(what, 1);
    }

    fn drop_several(&mut self, what: &'static str, several: u64) {
        match self.dropped.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += several,
            None => self.dropped.push((what, several)),
        }
    }

    /// Counts what another has counted too.
    fn take_dropped(&mut self, other: Gather) {
        other.dropped.into_iter().for_each(|(what, count)| self.drop_several(what, count));
    }

    fn describe(self, decoded: &mut Decoded) {
        for (what, count) in self.dropped {
            decoded.drop(count, what);
        }
    }
}

/// A text format with an I/O a line. Implementing it implements [`Format`].
pub(crate) trait TextFormat: Sync {
    /// See [`Format::name`].
    const NAME: &'static str;
    /// See [`Format::description`].
    const DESCRIPTION: &'static str;
    /// See [`Format::carries`].
    const CARRIES: Carries;
    /// Columns of a recording that it never has.
    const ABSENT: &'static [&'static str];
    /// See [`Format::takes`].
    const TAKES: &'static [OptionName] = &[OptionName::Volume];
    /// See [`Format::found_by`].
    const FOUND_BY: FoundBy = FoundBy::Content;
    /// What a row is, where the format tells.
    const EVENTS: Option<Events> = None;
    /// Reads its lines.
    type Parser: LineParser;

    /// A parser for a file.
    fn parser(options: &Options) -> Self::Parser;

    /// Whether a file that starts so is of the format: its lines can be read, and what else tells it from others.
    fn fits(head: &[u8]) -> bool {
        sample(head, &mut Self::parser(&Options::default())).is_some()
    }

    /// See [`Format::reading`].
    fn reading(_head: &[u8]) -> Option<String> {
        None
    }
}

impl<T: TextFormat> Format for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn description(&self) -> &'static str {
        T::DESCRIPTION
    }

    fn carries(&self) -> Carries {
        T::CARRIES
    }

    fn takes(&self) -> &'static [OptionName] {
        T::TAKES
    }

    fn detect(&self, head: &[u8], _file_name: &str) -> Confidence {
        // Binary files are told apart without reading them as lines.
        if !head.contains(&0) && T::fits(head) {
            Confidence::Content
        } else {
            Confidence::No
        }
    }

    fn found_by(&self) -> FoundBy {
        T::FOUND_BY
    }

    fn reading(&self, head: &[u8]) -> Option<String> {
        T::reading(head)
    }

    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError> {
        let open = |path: &Path| Lines::open(path, T::parser(options));
        let mut decoded = decode(inputs, options, sink, T::CARRIES.volumes, open)?;
        decoded.events = T::EVENTS;
        for column in T::ABSENT {
            decoded.absent(column);
        }
        Ok(decoded)
    }
}

/// Reads the files of a trace, in the order of time, and hands their rows out.
///
/// # Errors
/// When a file cannot be read or holds what the format does not know, when rows are too far out of order, when there are none; when
/// the sink fails.
pub(crate) fn decode<R: RowReader>(
    inputs: &[PathBuf],
    options: &Options,
    sink: &mut dyn Sink,
    has_volumes: bool,
    open: impl Fn(&Path) -> Result<R, TraceError>,
) -> Result<Decoded, TraceError> {
    let Some(first) = inputs.first() else {
        return Err(TraceError::Usage("no trace was named: give its file or files".into()));
    };
    let mut progress = Progress::over(inputs)?;
    let mut gather = Gather::default();
    let mut decoded = Decoded { files: inputs.to_vec(), ..Decoded::default() };
    let mut files = Files::open(inputs, open, &mut gather)?;
    let mut collector = Collector::new(sink, options.volume.clone(), has_volumes);
    while let Some(run) = files.next(&mut gather, &mut decoded)? {
        collector.take(run, &gather.volumes)?;
        let read = files.file_bytes();
        if progress.is_due(read) {
            collector.progress(read, progress.bytes_total)?;
        }
    }
    decoded.shift_ns = collector.finish(first, &gather.volumes)?;
    collector.progress(files.file_bytes(), progress.bytes_total)?;
    files.describe(&mut decoded);
    gather.describe(&mut decoded);
    Ok(decoded)
}

/// Hands out the rows of a reader that brings the files of a trace together itself; otherwise as [`decode`].
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_joined<R: RowReader>(
    mut reader: R,
    paths: &[PathBuf],
    options: &Options,
    sink: &mut dyn Sink,
    has_volumes: bool,
) -> Result<Decoded, TraceError> {
    let Some(first) = paths.first() else {
        return Err(TraceError::Usage("no trace was named: give its file or files".into()));
    };
    let mut progress = Progress::over(paths)?;
    let (mut gather, mut block) = (Gather::default(), Block::default());
    let mut collector = Collector::new(sink, options.volume.clone(), has_volumes);
    while reader.read(&mut block, &mut gather)? {
        collector.take(Run::of(first, &block, reader.is_in_order_of_ends()), &gather.volumes)?;
        let read = reader.file_bytes();
        if progress.is_due(read) {
            collector.progress(read, progress.bytes_total)?;
        }
    }
    let mut decoded = Decoded { files: paths.to_vec(), ..Decoded::default() };
    decoded.shift_ns = collector.finish(first, &gather.volumes)?;
    collector.progress(reader.file_bytes(), progress.bytes_total)?;
    gather.describe(&mut decoded);
    reader.describe(&mut decoded);
    Ok(decoded)
}
