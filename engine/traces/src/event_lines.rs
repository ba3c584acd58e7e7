//! Text of which some lines are block events: what the formats of that kind share.

use crate::assembler::{Assembler, AssemblerLimits};
use crate::event::BlockEvent;
use crate::format::{Confidence, Decoded, Sink};
use crate::input::{Input, Progress};
use crate::options::Options;
use crate::shown::shown;
use crate::{Place, TraceError};
use std::path::{Path, PathBuf};

/// Bytes of a line that are shown in a message.
const SHOWN_BYTES: usize = 160;

/// What one line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Event(BlockEvent),
    /// A block event that pairing does not need.
    Unneeded,
    /// Such an event that tells of I/Os, but not enough to make any of it.
    Accounting,
    Passthrough,
    Zone,
    /// So many events were lost; 0 where it does not say how many.
    Lost(u64),
    /// An event of something else, a comment, a heading.
    Other,
    /// Stands for an event that is needed, and cannot be read.
    Unreadable,
}

/// Reads the lines of one format.
pub(crate) trait EventLines {
    /// The format's name.
    const NAME: &'static str;
    /// What the first line is not that cannot be read, and what to do, after `'LINE' is`.
    const NO_EVENT: &'static str;
    /// What to do where the tool lost events.
    const LOST_REMEDY: &'static str;
    /// Above this share of unreadable lines, in percent of the lines that should be events, the file is taken for another tool's.
    const UNREADABLE_PERCENT_MAX: u64;

    fn parse(&self, line: &[u8]) -> Line;
}

/// Whether the start of a file has a line of the format.
pub(crate) fn detect<L: EventLines>(lines: &L, head: &[u8]) -> Confidence {
    // The last line of the head may be cut.
    let whole = head.iter().rposition(|&byte| byte == b'\n').map_or(head, |end| &head[..end]);
    for line in whole.split(|&byte| byte == b'\n') {
        match lines.parse(line.strip_suffix(b"\r").unwrap_or(line)) {
            Line::Other | Line::Unreadable => {}
            _ => return Confidence::Content,
        }
    }
    Confidence::No
}

/// Decodes the one file of a trace.
pub(crate) fn decode<L: EventLines>(
    lines: &L,
    inputs: &[PathBuf],
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<Decoded, TraceError> {
    let [path] = inputs else {
        let message = format!(
            "{} text is one file a trace: import the files one at a time, or merge their lines by time",
            L::NAME
        );
        return Err(TraceError::Usage(message));
    };
    let mut decoded = Decoded { files: inputs.to_vec(), ..Decoded::default() };
    let mut input = Input::open(path)?;
    let mut progress = Progress::over(inputs)?;
    if progress.bytes_total == 0 && path.is_file() {
        return Err(TraceError::Empty { path: path.clone() });
    }
    let mut seen = Seen::default();
    let mut assembler = Assembler::new(options, AssemblerLimits::default(), sink);
    let mut number = 0;
    while let Some((line, ended)) = input.line()? {
        number += 1;
        if let Some(event) = seen.note(lines.parse(line), line, ended, number) {
            assembler.push(event, path, Place::Line(number))?;
        }
        if progress.is_due(input.file_bytes()) {
            assembler.progress(input.file_bytes(), progress.bytes_total)?;
        }
    }
    assembler.progress(input.file_bytes(), progress.bytes_total)?;
    seen.check::<L>(path)?;
    seen.describe(L::LOST_REMEDY, &mut decoded);
    assembler.finish(path, &mut decoded)?;
    Ok(decoded)
}

/// Lines that are no I/O's.
#[derive(Default)]
struct Seen {
    events: u64,
    unneeded: u64,
    accounting: u64,
    passthrough: u64,
    zone: u64,
    lost: u64,
    lost_uncounted: u64,
    truncated: u64,
    unreadable: u64,
    first_unreadable: Option<(u64, String)>,
}

impl Seen {
    fn note(&mut self, parsed: Line, line: &[u8], ended: bool, number: u64) -> Option<BlockEvent> {
        match parsed {
            // A number at the end of a line that was cut may be cut too.
            Line::Event(_) | Line::Unreadable if !ended && !line.ends_with(b"]") => self.truncated += 1,
            Line::Event(event) => {
                self.events += 1;
                return Some(event);
            }
            Line::Unreadable => {
                self.unreadable += 1;
                self.first_unreadable.get_or_insert_with(|| (number, shown(line.trim_ascii(), SHOWN_BYTES)));
            }
            Line::Passthrough => self.passthrough += 1,
            Line::Zone => self.zone += 1,
            Line::Lost(0) => self.lost_uncounted += 1,
            Line::Lost(count) => self.lost = self.lost.saturating_add(count),
            Line::Unneeded => self.unneeded += 1,
            Line::Accounting => self.accounting += 1,
            Line::Other => {}
        }
        None
    }

    /// An error where the text is not what the format's tool prints.
    fn check<L: EventLines>(&self, path: &Path) -> Result<(), TraceError> {
        if self.events + self.unreadable == 0 && self.accounting > 0 {
            let reason = "of requests it has only block_io_start and block_io_done, which do not tell how long they were once \
                          others were merged: record block_rq_issue and block_rq_complete, and block_bio_queue with them";
            return Err(TraceError::NoIos { path: path.to_path_buf(), reason: reason.into() });
        }
        let Some((number, line)) = &self.first_unreadable else { return Ok(()) };
        let unneeded = self.unneeded + self.accounting + self.passthrough + self.zone;
        let lines = self.events + unneeded + self.unreadable;
        let few = self.unreadable <= L::UNREADABLE_PERCENT_MAX.saturating_mul(lines) / 100;
        if self.events > 0 && few {
            return Ok(());
        }
        let reason =
            format!("'{line}' is {} ({} of {lines} lines cannot be read)", L::NO_EVENT, self.unreadable);
        Err(TraceError::damaged(path, Place::Line(*number), reason))
    }

    fn describe(&self, lost_remedy: &str, decoded: &mut Decoded) {
        decoded.drop(self.passthrough, "commands passed through to the driver");
        decoded.drop(self.zone, "zone commands");
        decoded.drop(self.lost, "events that the tracer lost");
        decoded.drop(self.lost_uncounted, "times that the tracer lost events without saying how many");
        decoded.drop(self.truncated, "lines cut off at the end of the file");
        decoded.drop(self.unreadable, "lines that could not be read");
        if self.lost + self.lost_uncounted > 0 {
            decoded.warn(
                "events_lost",
                format!(
                    "the tracer lost {} events: I/Os and completions are missing",
                    self.lost.max(self.lost_uncounted)
                ),
                lost_remedy,
            );
        }
        if self.truncated > 0 {
            let message = "the last line is cut off: the trace was not written to its end".into();
            decoded.warn(
                "truncated",
                message,
                "check that the copy is whole; what stands before was imported",
            );
        }
        if let Some((number, line)) = &self.first_unreadable {
            decoded.warn(
                "unreadable_lines",
                format!(
                    "{} lines could not be read, the first being line {number}: '{line}'",
                    self.unreadable
                ),
                "check that nothing else was written into the trace",
            );
        }
    }
}
