//! Block events as the kernel's trace events print them: trace and trace_pipe, `trace-cmd report`, `perf script`.

mod details;
mod header;

use crate::assembler::{Assembler, AssemblerLimits};
use crate::event::BlockEvent;
use crate::format::{Carries, Confidence, Decoded, Format, Options, Sink};
use crate::input::{Input, Progress};
use crate::{Place, TraceError};
use memchr::memmem::Finder;
use std::path::{Path, PathBuf};

/// The format.
pub(crate) struct TraceEvent;

/// What one line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Event(BlockEvent),
    /// A block event that pairing does not need.
    Unneeded,
    Passthrough,
    Zone,
    /// So many events were lost; 0 where it does not say how many.
    Lost(u64),
    /// An event of something else, a comment, a heading.
    Other,
    /// Names an event that is needed, and cannot be read.
    Unreadable,
}

impl Format for TraceEvent {
    fn name(&self) -> &'static str {
        "trace-event"
    }

    fn description(&self) -> &'static str {
        "text of the kernel's block trace events: trace, trace_pipe, 'trace-cmd report' or 'perf script'"
    }

    fn carries(&self) -> Carries {
        Carries { queue_events: true, completions: true, trims: true }
    }

    fn detect(&self, head: &[u8], _file_name: &str) -> Confidence {
        let mut parser = Parser::new();
        // The last line of the head may be cut.
        let whole = head.iter().rposition(|&byte| byte == b'\n').map_or(head, |end| &head[..end]);
        let mut is_tracer = head.starts_with(b"# tracer:");
        for line in whole.split(|&byte| byte == b'\n') {
            match parser.parse(line.strip_suffix(b"\r").unwrap_or(line)) {
                Line::Event(_) | Line::Unneeded | Line::Passthrough | Line::Zone => {
                    return Confidence::Content
                }
                Line::Lost(_) => is_tracer = true,
                Line::Other | Line::Unreadable => {}
            }
        }
        if is_tracer {
            Confidence::Content
        } else {
            Confidence::No
        }
    }

    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError> {
        let [path] = inputs else {
            let message = "trace-event text is one file a trace: import the files one at a time, or merge their lines by time";
            return Err(TraceError::Usage(message.into()));
        };
        let mut decoded = Decoded { files: inputs.to_vec(), ..Decoded::default() };
        let mut input = Input::open(path)?;
        let mut progress = Progress::over(inputs)?;
        if progress.bytes_total == 0 && path.is_file() {
            return Err(TraceError::Empty { path: path.clone() });
        }
        let mut parser = Parser::new();
        let mut seen = Seen::default();
        let mut assembler = Assembler::new(options, AssemblerLimits::default(), sink);
        let mut number = 0;
        while let Some((line, ended)) = input.line()? {
            number += 1;
            if let Some(event) = seen.note(parser.parse(line), line, ended, number) {
                assembler.push(event, path, Place::Line(number))?;
            }
            if progress.is_due(input.offset) {
                assembler.progress(input.offset, progress.bytes_total)?;
            }
        }
        assembler.progress(input.offset, progress.bytes_total)?;
        seen.check(path)?;
        seen.describe(&mut decoded);
        assembler.finish(path, &mut decoded)?;
        Ok(decoded)
    }
}

/// Reads lines; holds what makes that fast.
struct Parser {
    block: Finder<'static>,
}

impl Parser {
    fn new() -> Parser {
        Parser { block: Finder::new(b"block_") }
    }

    fn parse(&mut self, line: &[u8]) -> Line {
        if self.block.find(line).is_none() {
            return lost(line).map_or(Line::Other, Line::Lost);
        }
        match header::parse(line) {
            Some(header) => details::parse(&header),
            // A line that only speaks of such an event, a comment for one, is none.
            None if line.starts_with(b"#") || !details::names_needed_event(line) => Line::Other,
            None => Line::Unreadable,
        }
    }
}

/// How many events were lost, as the three tools say it.
fn lost(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    if let Some((_, rest)) = text.split_once(" PERF_RECORD_LOST lost ") {
        return Some(rest.split_whitespace().next()?.parse().unwrap_or(0));
    }
    let (_, note) = text.trim().strip_prefix("CPU:")?.split_once('[')?;
    let note = note.strip_suffix(']')?;
    if !(note.contains("EVENTS") && (note.contains("LOST") || note.contains("DROPPED"))) {
        return None;
    }
    Some(note.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0))
}

/// Lines that are no I/O's.
#[derive(Default)]
struct Seen {
    events: u64,
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
                if self.first_unreadable.is_none() {
                    let shown = String::from_utf8_lossy(&line[..line.len().min(160)]).trim().to_string();
                    self.first_unreadable = Some((number, shown));
                }
            }
            Line::Passthrough => self.passthrough += 1,
            Line::Zone => self.zone += 1,
            Line::Lost(0) => self.lost_uncounted += 1,
            Line::Lost(count) => self.lost += count,
            Line::Unneeded | Line::Other => {}
        }
        None
    }

    /// An error where nothing could be read of what should have been.
    fn check(&self, path: &Path) -> Result<(), TraceError> {
        match &self.first_unreadable {
            Some((number, line)) if self.events == 0 => Err(TraceError::damaged(
                path,
                Place::Line(*number),
                format!("'{line}' is no block event as trace_pipe, 'trace-cmd report' or 'perf script' print it: print the trace with one of these"),
            )),
            _ => Ok(()),
        }
    }

    fn describe(&self, decoded: &mut Decoded) {
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
                "record again with a larger buffer (buffer_size_kb, trace-cmd record -b, perf record -m)",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_are_counted_as_each_tool_says_it() {
        assert_eq!(lost(b"CPU:1 [LOST 1234 EVENTS]"), Some(1234));
        assert_eq!(lost(b"CPU:0 [17 EVENTS DROPPED]"), Some(17));
        assert_eq!(lost(b"CPU:0 [EVENTS DROPPED]"), Some(0));
        assert_eq!(lost(b"perf 12 [000] 10.5: PERF_RECORD_LOST lost 9"), Some(9));
        assert_eq!(lost(b"CPU:1 [online]"), None);
        assert_eq!(lost(b"cpus=2"), None);
    }

    #[test]
    fn headings_comments_and_other_events_are_no_events() {
        let mut parser = Parser::new();
        for line in [
            "# tracer: nop",
            "cpus=2",
            "# events: block_bio_queue block_rq_issue",
            "  sh-1 [000] 1.000000: sched_switch: prev_comm=sh",
            "",
        ] {
            assert_eq!(parser.parse(line.as_bytes()), Line::Other, "{line}");
        }
        let line = b"  sh-1 [000] 1.000000: block_plug: [sh]";
        assert_eq!(parser.parse(line), Line::Unneeded);
        let line = b"  sh-1 [000] 1.000000: block_bio_queue: 8,0 R 12 + [sh]";
        assert_eq!(parser.parse(line), Line::Unreadable);
    }
}
