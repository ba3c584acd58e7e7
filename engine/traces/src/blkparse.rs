//! The text that `blkparse` prints by default, one event a line.
//!
//! | action | after `maj,min cpu sequence seconds.nanoseconds pid action RWBS` |
//! |---|---|
//! | Q, D, I, B, M, F, G, S | `sector + sectors [comm]` |
//! | C, R | `sector + sectors [error]` |
//! | A | `sector + sectors <- (maj,min) sector` |
//! | X | `sector / sector [comm]` |
//! | P, U, UT | `[comm]`, `[comm] number` |
//! | m | any text |
//!
//! An empty I/O has no `+ sectors`, and when it is queued or issued newer versions of blkparse leave the sector out too. Of commands
//! that were passed through to the driver the bytes are printed in place of the sector, and the command in brackets. With `-t`, the
//! time that an I/O took stands in brackets before the last word.

mod summary;

use crate::event::{BlockEvent, EventKind};
use crate::event_lines::{self, EventLines, Line};
use crate::format::{Carries, Confidence, Decoded, Format, Sink};
use crate::options::{OptionName, Options};
use crate::rwbs::{self, Rwbs};
use crate::words::{device, leading_number, origin, skip_spaces, word};
use crate::TraceError;
use std::path::PathBuf;
use testdrive_core::{Flags, Opcode, NS_PER_S};

/// The format.
pub(crate) struct Blkparse;

impl Format for Blkparse {
    fn name(&self) -> &'static str {
        "blkparse"
    }

    fn description(&self) -> &'static str {
        "text that blkparse prints by default, with its summary or without"
    }

    fn carries(&self) -> Carries {
        Carries { queue_events: true, completions: true, trims: true, volumes: false }
    }

    fn takes(&self) -> &'static [OptionName] {
        &[OptionName::Events, OptionName::Device]
    }

    fn detect(&self, head: &[u8], _file_name: &str) -> Confidence {
        event_lines::detect(&Lines, head)
    }

    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError> {
        event_lines::decode(&Lines, inputs, options, sink)
    }
}

struct Lines;

impl EventLines for Lines {
    const NAME: &'static str = "blkparse";
    const NO_EVENT: &'static str =
        "no line of blkparse's default output: print the trace again without -f and -F, or import the binary files themselves";
    const LOST_REMEDY: &'static str = "record again with larger or more buffers (blktrace -b, -n)";
    /// A few lines are damage; many are a format that was changed with -F.
    const UNREADABLE_PERCENT_MAX: u64 = 10;

    fn parse(&self, line: &[u8]) -> Line {
        let line = line.trim_ascii();
        if !line.first().is_some_and(u8::is_ascii_digit) {
            return summary::read(line);
        }
        match Header::parse(line) {
            Some(header) => header.meaning().unwrap_or(Line::Unreadable),
            None => Line::Unreadable,
        }
    }
}

/// What all lines of events start with.
struct Header<'l> {
    event: BlockEvent,
    action: &'l [u8],
    letters: &'l [u8],
    rest: &'l [u8],
}

impl<'l> Header<'l> {
    fn parse(line: &'l [u8]) -> Option<Header<'l>> {
        let (device, rest) = device(line)?;
        let (cpu, rest) = leading_number(spaces(rest)?)?;
        // The sequence is printed as a signed number, though it is none.
        let rest = spaces(rest)?;
        let (_, rest) = leading_number(rest.strip_prefix(b"-").unwrap_or(rest))?;
        let (time_ns, rest) = time(spaces(rest)?)?;
        let (_pid, rest) = leading_number(spaces(rest)?)?;
        let (action, rest) = word(spaces(rest)?)?;
        let (letters, rest) = word(spaces(rest)?)?;
        let event = BlockEvent {
            time_ns,
            device,
            kind: EventKind::Queue,
            opcode: Opcode::Read,
            flags: Flags::NONE,
            sector: 0,
            sectors: 0,
            cpu: i32::try_from(cpu).ok()?,
            status: 0,
        };
        Some(Header { event, action, letters, rest: skip_spaces(rest) })
    }

    /// What the line says; `None` where it does not say it as it should.
    fn meaning(mut self) -> Option<Line> {
        match self.action {
            b"Q" => self.begin(EventKind::Queue),
            b"D" => self.begin(EventKind::Issue),
            b"C" => self.end(EventKind::Complete),
            b"R" => self.end(EventKind::Requeue),
            b"A" => {
                let (from, from_sector) = origin(self.place()?)?;
                self.io(EventKind::Remap { from, from_sector })
            }
            b"M" | b"F" | b"G" | b"S" | b"I" | b"B" | b"X" | b"P" | b"U" | b"T" | b"UT" | b"m" => {
                Some(Line::Unneeded)
            }
            _ => None,
        }
    }

    /// `sector + sectors [comm]`, `sector [comm]`, `[comm]`, or of a command passed through `bytes (command) [comm]`.
    fn begin(mut self, kind: EventKind) -> Option<Line> {
        if self.rest.starts_with(b"[") {
            return self.io(kind);
        }
        let after = after_elapsed(self.place()?);
        // What has bytes and is no place is a command's; a flush has no bytes, but a place.
        let is_command = self.event.sectors == 0 && !self.letters.starts_with(b"F");
        if is_command && (kind == EventKind::Issue || after.starts_with(b"(")) {
            return Some(if kind == EventKind::Issue { Line::Passthrough } else { Line::Unneeded });
        }
        after.starts_with(b"[").then_some(())?;
        self.io(kind)
    }

    /// `sector + sectors [error]`, `sector [error]`, or of a command passed through `(command) [error]`.
    fn end(mut self, kind: EventKind) -> Option<Line> {
        let status = status(self.rest)?;
        if self.rest.starts_with(b"(") || self.rest.starts_with(b"[") {
            // Its issue was counted.
            return Some(Line::Unneeded);
        }
        after_elapsed(self.place()?).starts_with(b"[").then_some(())?;
        self.event.status = status;
        self.io(kind)
    }

    /// Takes in `sector + sectors`, or the sector of what is empty, and gives what follows.
    fn place(&mut self) -> Option<&'l [u8]> {
        let (sector, rest) = leading_number(self.rest)?;
        self.event.sector = sector;
        let rest = skip_spaces(rest);
        let Some(rest) = rest.strip_prefix(b"+") else { return Some(rest) };
        let (sectors, rest) = leading_number(skip_spaces(rest))?;
        self.event.sectors = sectors;
        Some(skip_spaces(rest))
    }

    fn io(self, kind: EventKind) -> Option<Line> {
        let (opcode, flags) = match opcode_and_flags(self.letters, self.event.sectors)? {
            Rwbs::Io(opcode, flags) => (opcode, flags),
            Rwbs::Passthrough if kind == EventKind::Issue => return Some(Line::Passthrough),
            Rwbs::Zone if kind == EventKind::Issue => return Some(Line::Zone),
            Rwbs::Passthrough | Rwbs::Zone => return Some(Line::Unneeded),
        };
        Some(Line::Event(BlockEvent { kind, opcode, flags, ..self.event }))
    }
}

/// Reads RWBS as blkparse makes it of the trace's bits: `N` is what neither writes nor has bytes. With `F` before it, it is a flush;
/// else it is the empty end of a flush sequence.
fn opcode_and_flags(letters: &[u8], sectors: u64) -> Option<Rwbs> {
    let (flush, rest) = match letters {
        [b'F', b'N', rest @ ..] => (true, rest),
        [b'N', rest @ ..] => (false, rest),
        _ => return rwbs::parse(letters, sectors),
    };
    let mut plain = [0_u8; 16];
    let plain = plain.get_mut(..=rest.len())?;
    plain[0] = if flush { b'F' } else { b'R' };
    plain[1..].copy_from_slice(rest);
    rwbs::parse(plain, sectors)
}

/// `seconds.nanoseconds`, all nine digits of them.
fn time(text: &[u8]) -> Option<(i64, &[u8])> {
    let (seconds, rest) = leading_number(text)?;
    let fraction = rest.strip_prefix(b".")?;
    let (nanoseconds, rest) = leading_number(fraction)?;
    (fraction.len() - rest.len() == 9).then_some(())?;
    let time_ns = i64::try_from(seconds).ok()?.checked_mul(NS_PER_S)?.checked_add(nanoseconds as i64)?;
    Some((time_ns, rest))
}

/// Steps over the time that an I/O took, which `-t` adds: only digits in brackets, right-aligned. Commands are hexadecimal pairs.
fn after_elapsed(text: &[u8]) -> &[u8] {
    let inside = text.strip_prefix(b"(").map(skip_spaces);
    let after = inside.and_then(leading_number).and_then(|(_, rest)| rest.strip_prefix(b")"));
    after.map_or(text, skip_spaces)
}

/// The error in the last brackets, as a positive errno: blkparse prints the negative one as sixteen bits without a sign.
fn status(rest: &[u8]) -> Option<i32> {
    let inside = rest.strip_suffix(b"]")?;
    let open = inside.iter().rposition(|&byte| byte == b'[')?;
    let text = &inside[open + 1..];
    let (value, end) = leading_number(text.strip_prefix(b"-").unwrap_or(text))?;
    end.is_empty().then_some(())?;
    let value = i32::try_from(value).ok()?;
    Some(if (0x8000..=0xffff).contains(&value) { 0x1_0000 - value } else { value })
}

/// Spaces of which there must be at least one.
fn spaces(text: &[u8]) -> Option<&[u8]> {
    let rest = skip_spaces(text);
    (rest.len() < text.len()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Device;

    fn line(text: &str) -> Line {
        Lines.parse(text.as_bytes())
    }

    fn event(action_and_more: &str) -> Line {
        line(&format!("  8,16   3      702     1.000000005  4020 {action_and_more}"))
    }

    fn io(kind: EventKind, opcode: Opcode, flags: Flags, place: (u64, u64), status: i32) -> Line {
        let (device, (sector, sectors)) = (Device { major: 8, minor: 16 }, place);
        let time_ns = 1_000_000_005;
        Line::Event(BlockEvent { time_ns, device, kind, opcode, flags, sector, sectors, cpu: 3, status })
    }

    #[test]
    fn the_four_events_of_an_io_are_read_whatever_the_command_is_called() {
        let queue = io(EventKind::Queue, Opcode::Write, Flags::SYNC, (1024, 8), 0);
        for comm in ["java", "(null)", "my proc] [x", "kworker/0:1H", "(7) [0"] {
            assert_eq!(event(&format!(" Q  WS 1024 + 8 [{comm}]")), queue, "{comm}");
        }
        assert_eq!(
            event(" D  WS 1024 + 8 [java]"),
            io(EventKind::Issue, Opcode::Write, Flags::SYNC, (1024, 8), 0)
        );
        assert_eq!(
            event(" C  WS 1024 + 8 [0]"),
            io(EventKind::Complete, Opcode::Write, Flags::SYNC, (1024, 8), 0)
        );
        assert_eq!(
            event(" R  WS 1024 + 8 [0]"),
            io(EventKind::Requeue, Opcode::Write, Flags::SYNC, (1024, 8), 0)
        );
    }

    #[test]
    fn an_error_is_an_errno_whether_it_has_its_sign_or_not() {
        let failed = io(EventKind::Complete, Opcode::Read, Flags::NONE, (8, 8), 5);
        assert_eq!(event(" C   R 8 + 8 [65531]"), failed);
        assert_eq!(event(" C   R 8 + 8 [-5]"), failed);
    }

    #[test]
    fn the_time_that_t_adds_is_stepped_over() {
        let issue = io(EventKind::Issue, Opcode::Read, Flags::READ_AHEAD, (8, 8), 0);
        assert_eq!(event(" D  RA 8 + 8 (18446691228727086750) [unknown]"), issue);
        let complete = io(EventKind::Complete, Opcode::Read, Flags::READ_AHEAD, (8, 8), 0);
        assert_eq!(event(" C  RA 8 + 8 (   52783) [0]"), complete);
    }

    #[test]
    fn empty_ios_are_flushes_and_the_ends_of_flush_sequences() {
        let preflush = Flags::PREFLUSH | Flags::SYNC;
        let queue = io(EventKind::Queue, Opcode::Write, preflush, (0, 0), 0);
        assert_eq!((event(" Q FWS [jbd2]"), event(" Q FWS 0 [jbd2]")), (queue, queue));
        let issue = io(EventKind::Issue, Opcode::Flush, Flags::NONE, (0, 0), 0);
        assert_eq!((event(" D  FN [jbd2]"), event(" D  FN 0 [jbd2]")), (issue, issue));
        let last = u64::MAX;
        assert_eq!(
            event(" C  FN 18446744073709551615 [0]"),
            io(EventKind::Complete, Opcode::Flush, Flags::NONE, (last, 0), 0)
        );
        assert_eq!(event(" C  NS 0 [0]"), io(EventKind::Complete, Opcode::Read, Flags::SYNC, (0, 0), 0));
    }

    #[test]
    fn commands_passed_through_are_counted_once() {
        for text in [" D   R 36 (12 00 00 00 24 00 ..) [smartctl]", " D   R 36 [smartctl]", " D   W 0 [x]"] {
            assert_eq!(event(text), Line::Passthrough, "{text}");
        }
        for text in [" C   R (12 00 00 00 24 00 ..) [0]", " C   N [65531]", " Q   R 36 (12 00) [x]"] {
            assert_eq!(event(text), Line::Unneeded, "{text}");
        }
    }

    #[test]
    fn remaps_say_where_they_came_from_and_other_actions_are_not_needed() {
        let kind = EventKind::Remap { from: Device { major: 8, minor: 17 }, from_sector: 850 };
        let flags = Flags::READ_AHEAD;
        assert_eq!(event(" A  RA 900 + 8 <- (8,17) 850"), io(kind, Opcode::Read, flags, (900, 8), 0));
        for text in [
            " m   N hello 8,0 Q R 5",
            " P   N [java]",
            " U   N [java] 1",
            "UT   N [java] 1",
            " X   R 8 / 12 [java]",
            " G   R 8 + 8 [java]",
            " M   W 8 + 8 [java]",
            " I  RS 8 + 8 [java]",
        ] {
            assert_eq!(event(text), Line::Unneeded, "{text}");
        }
    }

    #[test]
    fn numbers_that_wrapped_or_grew_beyond_their_columns_are_read() {
        let text = "1048575,1048575 128 -2147483648 100000.000000001 4194304  C  RS 8 + 8 [0]";
        let Line::Event(event) = line(text) else { panic!("{:?}", line(text)) };
        assert_eq!((event.cpu, event.time_ns, event.device.minor), (128, 100_000_000_000_001, 1_048_575));
    }

    #[test]
    fn what_is_not_the_default_output_is_unreadable() {
        for text in [
            "Q R 1024 4096 0 5",
            "8,16 3 702 1.5 4020 Q R 1024 + 8 [x]",
            "8,16 3 702 1.000000005 4020 Q R 1024 8",
            "8,16 3 702 1.000000005 4020 C R 1024 + 8 [java]",
            "8,16 3 702 1.000000005 4020 Z R 1024 + 8 [java]",
            "8,16 3 702 99999999999.000000005 4020 Q R 1024 + 8 [java]",
            "8,16 3 702 1.000000005 4020 Q Y 1024 + 8 [java]",
            "8,16 3 702 1.000000005 4020 A R 1024 + 8 [java]",
            "8,16 3",
        ] {
            assert_eq!(line(text), Line::Unreadable, "{text}");
        }
    }
}
