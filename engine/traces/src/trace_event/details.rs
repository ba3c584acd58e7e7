//! What a block event prints after its name.
//!
//! | event | words |
//! |---|---|
//! | `block_bio_queue` | `maj,min RWBS sector + sectors [comm]` |
//! | `block_bio_complete` | `maj,min RWBS sector + sectors [error]` |
//! | `block_bio_remap` | `maj,min RWBS sector + sectors <- (maj,min) sector` |
//! | `block_rq_issue` | `maj,min RWBS bytes (command) sector + sectors [priority] [comm]` |
//! | `block_rq_complete`, `block_rq_requeue` | `maj,min RWBS (command) sector + sectors [priority] [error]` |
//!
//! `block_io_start` and `block_io_done` (since Linux 6.5) say when a request is accounted, and not how long it is: `block_io_done` has
//! no length, and what was merged meanwhile is in neither. So they cannot stand in for issue and completion.
//!
//! The bytes of an issue are 0 on older kernels, so they are not used; the priority (`be,0,4`) is there since Linux 6.9.

use super::header::Header;
use crate::event::{BlockEvent, EventKind};
use crate::event_lines::Line;
use crate::rwbs::{self, Rwbs};
use crate::words::{device, leading_number, origin, skip_spaces, word};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    Queue,
    Remap,
    Issue,
    Requeue,
    Complete,
    BioComplete,
}

fn needed(event: &[u8]) -> Option<Needed> {
    match event {
        b"block_bio_queue" => Some(Needed::Queue),
        b"block_bio_remap" => Some(Needed::Remap),
        b"block_rq_issue" => Some(Needed::Issue),
        b"block_rq_requeue" => Some(Needed::Requeue),
        b"block_rq_complete" => Some(Needed::Complete),
        b"block_bio_complete" => Some(Needed::BioComplete),
        _ => None,
    }
}

/// Whether a line that could not be taken apart has the name of an event that is needed, with the colon that follows it.
pub(super) fn names_needed_event(line: &[u8]) -> bool {
    line.split(|&byte| byte == b' ').any(|word| {
        let word = word.strip_prefix(b"block:").unwrap_or(word);
        word.strip_suffix(b":").is_some_and(|name| needed(name).is_some())
    })
}

/// Reads an event's own words.
pub(super) fn parse(header: &Header<'_>) -> Line {
    match needed(header.event) {
        Some(needed) => parse_needed(header, needed).unwrap_or(Line::Unreadable),
        None if matches!(header.event, b"block_io_start" | b"block_io_done") => Line::Accounting,
        None if header.event.starts_with(b"block_") => Line::Unneeded,
        None => Line::Other,
    }
}

fn parse_needed(header: &Header<'_>, needed: Needed) -> Option<Line> {
    let (device, rest) = device(header.details)?;
    let (letters, rest) = word(skip_spaces(rest))?;
    let mut rest = skip_spaces(rest);
    if needed == Needed::Issue {
        rest = skip_spaces(leading_number(rest)?.1);
    }
    if matches!(needed, Needed::Issue | Needed::Requeue | Needed::Complete) {
        rest = skip_spaces(after_command(rest)?);
    }
    let (sector, rest) = leading_number(rest)?;
    let rest = skip_spaces(rest).strip_prefix(b"+")?;
    let (sectors, rest) = leading_number(skip_spaces(rest))?;
    let rest = skip_spaces(rest);
    let (kind, status) = match needed {
        Needed::Queue => (EventKind::Queue, 0),
        Needed::Issue => (EventKind::Issue, 0),
        Needed::Requeue => (EventKind::Requeue, 0),
        Needed::Complete | Needed::BioComplete => (EventKind::Complete, status(rest)?),
        Needed::Remap => {
            let (from, from_sector) = origin(rest)?;
            (EventKind::Remap { from, from_sector }, 0)
        }
    };
    let (opcode, flags) = match rwbs::parse(letters, sectors)? {
        Rwbs::Io(opcode, flags) => (opcode, flags),
        // One command has several events; its issue is counted.
        Rwbs::Passthrough if kind == EventKind::Issue => return Some(Line::Passthrough),
        Rwbs::Zone if kind == EventKind::Issue => return Some(Line::Zone),
        Rwbs::Passthrough | Rwbs::Zone => return Some(Line::Unneeded),
    };
    let (time_ns, cpu) = (header.time_ns, header.cpu);
    Some(Line::Event(BlockEvent { time_ns, device, kind, opcode, flags, sector, sectors, cpu, status }))
}

/// Steps over `(command)`, which is empty but for commands passed through.
fn after_command(text: &[u8]) -> Option<&[u8]> {
    let inside = text.strip_prefix(b"(")?;
    let end = inside.iter().position(|&byte| byte == b')')?;
    Some(&inside[end + 1..])
}

/// The error in the last brackets, as a positive errno.
fn status(rest: &[u8]) -> Option<i32> {
    let open = rest.iter().rposition(|&byte| byte == b'[')?;
    let inside = &rest[open + 1..];
    let (value, rest) = leading_number(inside.strip_prefix(b"-").unwrap_or(inside))?;
    rest.starts_with(b"]").then_some(())?;
    i32::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Device;
    use testdrive_core::{Flags, Opcode};

    fn event(name: &str, details: &str) -> Line {
        let header = Header { cpu: 1, time_ns: 5, event: name.as_bytes(), details: details.as_bytes() };
        parse(&header)
    }

    fn expect(kind: EventKind, opcode: Opcode, flags: Flags, sector: u64, sectors: u64, status: i32) -> Line {
        let device = Device { major: 259, minor: 3 };
        Line::Event(BlockEvent { time_ns: 5, device, kind, opcode, flags, sector, sectors, cpu: 1, status })
    }

    #[test]
    fn old_and_new_kernels_print_the_same_issue_and_completion() {
        let issue = expect(EventKind::Issue, Opcode::Write, Flags::SYNC, 2048, 16, 0);
        for details in [
            "259,3 WS 0 () 2048 + 16 [fio]",
            "259,3 WS 8192 () 2048 + 16 [a [b] c]",
            "259,3 WS 8192 () 2048 + 16 be,0,4 [fio]",
            "259,3 WS 8192 () 2048 + 16 0x2,0,4 [fio]",
        ] {
            assert_eq!(event("block_rq_issue", details), issue, "{details}");
        }
        let complete = expect(EventKind::Complete, Opcode::Write, Flags::SYNC, 2048, 16, 5);
        for details in ["259,3 WS () 2048 + 16 [-5]", "259,3 WS () 2048 + 16 none,0,0 [-5]"] {
            assert_eq!(event("block_rq_complete", details), complete, "{details}");
        }
    }

    #[test]
    fn a_remap_says_where_it_came_from() {
        let kind = EventKind::Remap { from: Device { major: 259, minor: 4 }, from_sector: 100 };
        let line = event("block_bio_remap", "259,3 DS 2148 + 8 <- (259,4) 100");
        assert_eq!(line, expect(kind, Opcode::Trim, Flags::SYNC, 2148, 8, 0));
    }

    #[test]
    fn commands_passed_through_are_told_from_ios() {
        let line = event("block_rq_issue", "259,3 N 36 (12 00 00 00 24 00) 0 + 0 [smartctl]");
        assert_eq!(line, Line::Passthrough);
        let line = event("block_rq_complete", "259,3 N (12 00 00 00 24 00) 0 + 0 [0]");
        assert_eq!(line, Line::Unneeded);
    }

    #[test]
    fn a_cut_or_foreign_line_is_unreadable() {
        for details in [
            "",
            "259",
            "259,3",
            "259,3 W",
            "259,3 W 5",
            "259,3 W 5 +",
            "259,3 Q 5 + 8 [x]",
            "x,y W 5 + 8 [x]",
        ] {
            assert_eq!(event("block_bio_queue", details), Line::Unreadable, "{details}");
        }
        assert_eq!(event("block_rq_complete", "259,3 W () 5 + 8"), Line::Unreadable);
        assert_eq!(event("block_rq_complete", "259,3 W () 5 + 8 [fio]"), Line::Unreadable);
    }
}
