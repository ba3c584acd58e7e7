//! Block events as the kernel's trace events print them: trace and trace_pipe, `trace-cmd report`, `perf script`.

mod details;
mod header;

use crate::event_lines::{self, EventLines, Line};
use crate::format::{Carries, Confidence, Decoded, Format, Sink};
use crate::options::{OptionName, Options};
use crate::TraceError;
use memchr::memmem::Finder;
use std::path::PathBuf;

/// The format.
pub(crate) struct TraceEvent;

impl Format for TraceEvent {
    fn name(&self) -> &'static str {
        "trace-event"
    }

    fn description(&self) -> &'static str {
        "text of the kernel's block trace events: trace, trace_pipe, 'trace-cmd report' or 'perf script'"
    }

    fn carries(&self) -> Carries {
        Carries { queue_events: true, completions: true, trims: true, volumes: false }
    }

    fn takes(&self) -> &'static [OptionName] {
        &[OptionName::Events, OptionName::Device]
    }

    fn detect(&self, head: &[u8], _file_name: &str) -> Confidence {
        if head.starts_with(b"# tracer:") {
            return Confidence::Content;
        }
        let parser = Parser::new();
        match event_lines::detect(&parser, head) {
            // Printed without times, say: the decoder tells what is missing.
            Confidence::No if names_event(head) => Confidence::Name,
            confidence => confidence,
        }
    }

    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError> {
        event_lines::decode(&Parser::new(), inputs, options, sink)
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
}

impl EventLines for Parser {
    const NAME: &'static str = "trace-event";
    const NO_EVENT: &'static str =
        "no block event as trace_pipe, 'trace-cmd report' or 'perf script' print it: print the trace with one of these";
    const LOST_REMEDY: &'static str =
        "record again with a larger buffer (buffer_size_kb, trace-cmd record -b, perf record -m)";
    const UNREADABLE_PERCENT_MAX: u64 = 50;

    fn parse(&self, line: &[u8]) -> Line {
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

/// Whether a line has the name of an event that is needed, though no line can be read.
fn names_event(head: &[u8]) -> bool {
    head.split(|&byte| byte == b'\n').any(|line| !line.starts_with(b"#") && details::names_needed_event(line))
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
        let parser = Parser::new();
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
