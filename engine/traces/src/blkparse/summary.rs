//! What blkparse and blktrace print that is no event.

use crate::event_lines::Line;
use crate::words::leading_number;

/// A line of the summary, or what blktrace says of what it dropped.
pub(super) fn read(line: &[u8]) -> Line {
    const STARTS: [&[u8]; 18] = [
        b"Reads ",
        b"Read ",
        b"Writes ",
        b"PC ",
        b"IO unplugs",
        b"Allocation wait",
        b"Dispatch wait",
        b"Completion wait",
        b"CPU",
        b"Total",
        b"Throughput",
        b"Events (",
        b"Skips:",
        b"Input file",
        b"===",
        b"You have ",
        b"Consider ",
        b"discarded traces ",
    ];
    if let Some(lost) = lost(line) {
        return if lost > 0 { Line::Lost(lost) } else { Line::Other };
    }
    let is_process = || {
        let inside = line.strip_suffix(b")").and_then(|line| Some(&line[memchr::memrchr(b'(', line)? + 1..]));
        inside.and_then(leading_number).is_some_and(|(_, rest)| rest.is_empty() || rest == b", ...")
    };
    if line.is_empty() || STARTS.iter().any(|start| line.starts_with(start)) || is_process() {
        return Line::Other;
    }
    Line::Unreadable
}

/// Events lost, as the two tools say it: `Skips: 2 forward (1,234 -   0.1%)`, `(dropped 7)`, `You have 7 (  0.1%) dropped events`.
fn lost(line: &[u8]) -> Option<u64> {
    let after = |start: &[u8]| memchr::memmem::find(line, start).map(|at| &line[at + start.len()..]);
    let text = if line.starts_with(b"Skips:") {
        after(b"forward (")
    } else if line.starts_with(b"Total:") {
        after(b"(dropped ")
    } else if line.ends_with(b"dropped events") {
        after(b"You have ")
    } else {
        None
    }?;
    // The thousands are separated as the locale has it.
    let number = text.iter().take_while(|&&byte| !matches!(byte, b'-' | b'(' | b')'));
    let digits = number.filter(|byte| byte.is_ascii_digit());
    Some(digits.fold(0_u64, |value, digit| value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_no_event_and_tells_what_was_lost() {
        for text in [
            "",
            "CPU0 (sda):",
            " Reads Queued:           0,        0KiB\t Writes Queued:           2,       50KiB",
            " PC Reads Compl.:        2\t\t PC Writes Compl.:        0",
            " IO unplugs:             1        \t Timer unplugs:           1",
            "Total (sda):",
            "Throughput (R/W): 0KiB/s / 57KiB/s",
            "Events (sda): 2,398 entries",
            "Skips: 0 forward (0 -   0.0%)",
            "Input file sda.blktrace.0 added",
            "swapper/1 (0)",
            "kworker/0:1H (276, ...)",
            " Dispatch wait:   18446691228727086        \t Dispatch wait:           0",
            "=== sda ===",
            "  CPU  0:                   12 events,        1 KiB data",
            "  Total:                    12 events (dropped 0),        1 KiB data",
        ] {
            assert_eq!(read(text.trim().as_bytes()), Line::Other, "{text}");
        }
        assert_eq!(read("Skips: 3 forward (1,234 -   0.1%)".trim().as_bytes()), Line::Lost(1234));
        assert_eq!(
            read("  Total:        12 events (dropped 7),        1 KiB data".trim().as_bytes()),
            Line::Lost(7)
        );
        assert_eq!(read("You have 7 (  0.1%) dropped events".trim().as_bytes()), Line::Lost(7));
    }
}
