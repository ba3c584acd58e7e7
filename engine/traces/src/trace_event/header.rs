//! The part of a line before an event's own words: `comm-pid [cpu] flags time: event: `.

use crate::words::{leading_number, skip_spaces, word};
use memchr::memchr_iter;

/// A line taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header<'l> {
    /// -1 where the line does not say.
    pub cpu: i32,
    pub time_ns: i64,
    /// Without `block:` before it.
    pub event: &'l [u8],
    pub details: &'l [u8],
}

/// Takes a line apart; `None` where it has no such shape.
///
/// The command's name may hold anything, spaces, colons and brackets among it. So every `[` is tried from the left, and the first
/// is taken after which cpu, time and event follow: the name is too short to hold all of them.
pub(super) fn parse(line: &[u8]) -> Option<Header<'_>> {
    for open in memchr_iter(b'[', line) {
        let Some((cpu, rest)) = leading_number(&line[open + 1..]) else { continue };
        let Some(rest) = rest.strip_prefix(b"]") else { continue };
        if let Some(header) = after_cpu(rest, i32::try_from(cpu).unwrap_or(-1)) {
            return Some(header);
        }
    }
    word_by_word(line)
}

/// `flags? time: event: details`
fn after_cpu(rest: &[u8], cpu: i32) -> Option<Header<'_>> {
    let rest = skip_spaces(rest);
    if let Some(header) = from_time(rest, cpu) {
        return Some(header);
    }
    let (_flags, rest) = word(rest)?;
    from_time(skip_spaces(rest), cpu)
}

/// `perf script` leaves the cpu out where it was not recorded; the latency format has it without brackets, before the flags.
fn word_by_word(line: &[u8]) -> Option<Header<'_>> {
    let mut rest = skip_spaces(line);
    let mut cpu = -1;
    loop {
        if let Some(header) = from_time(rest, cpu) {
            return Some(header);
        }
        let (passed, after) = word(rest)?;
        cpu = cpu_and_flags(passed).unwrap_or(-1);
        rest = skip_spaces(after);
    }
}

/// The cpu of `1d.h1.`: its flags begin with what the interrupts were.
fn cpu_and_flags(word: &[u8]) -> Option<i32> {
    let (cpu, flags) = leading_number(word)?;
    matches!(flags, [b'.' | b'd' | b'D' | b'b' | b'X', _, _, _, ..]).then_some(())?;
    i32::try_from(cpu).ok()
}

/// `time: event: details`
fn from_time(rest: &[u8], cpu: i32) -> Option<Header<'_>> {
    let (time_ns, rest) = time(rest).or_else(|| latency_time(rest))?;
    let rest = skip_spaces(after_difference(skip_spaces(rest)));
    let rest = rest.strip_prefix(b"block:").unwrap_or(rest);
    let length = rest.iter().position(|byte| !(byte.is_ascii_lowercase() || *byte == b'_'))?;
    let details = rest[length..].strip_prefix(b":")?;
    Some(Header { cpu, time_ns, event: &rest[..length], details: skip_spaces(details) })
}

/// `seconds.fraction:` to the nanosecond; a fraction of one to nine digits.
fn time(rest: &[u8]) -> Option<(i64, &[u8])> {
    let (seconds, rest) = leading_number(rest)?;
    let fraction = rest.strip_prefix(b".")?;
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 9 {
        return None;
    }
    let (value, rest) = leading_number(fraction)?;
    let rest = rest.strip_prefix(b":")?;
    let nanoseconds = value * 10_u64.pow(9 - digits as u32);
    let total = seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?;
    Some((i64::try_from(total).ok()?, rest))
}

/// The latency format's time, which counts from the trace's start: `29773us :`, with `+`, `!` or `#` for a long wait.
fn latency_time(rest: &[u8]) -> Option<(i64, &[u8])> {
    let (time_us, rest) = leading_number(rest)?;
    let mark = rest.strip_prefix(b"us")?;
    let rest = mark.get(1..)?.strip_prefix(b":")?;
    matches!(mark[0], b' ' | b'+' | b'!' | b'#' | b'*' | b'@' | b'$').then_some(())?;
    Some((i64::try_from(time_us.checked_mul(1000)?).ok()?, rest))
}

/// Steps over the time since the line before, `(+4)`, which `trace-cmd report --ts-diff` adds.
fn after_difference(rest: &[u8]) -> &[u8] {
    let difference = rest.strip_prefix(b"(+").and_then(leading_number);
    difference.and_then(|(_, rest)| rest.strip_prefix(b")")).unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> (i32, i64, String, String) {
        let header = parse(line.as_bytes()).unwrap_or_else(|| panic!("{line}"));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (header.cpu, header.time_ns, text(header.event), text(header.details))
    }

    #[test]
    fn the_three_tools_lines_say_the_same() {
        let expected = (1, 1_162_282_435_000, "block_bio_queue".into(), "7,0 RA 8 + 16 [postgres]".into());
        for line in [
            "   postgres-10629   [001] d.h1.  1162.282435: block_bio_queue: 7,0 RA 8 + 16 [postgres]",
            "   postgres-10629  (  10629) [001] .....  1162.282435: block_bio_queue: 7,0 RA 8 + 16 [postgres]",
            "        postgres-10629 [001]  1162.282435000: block_bio_queue:      7,0 RA 8 + 16 [postgres]",
            "postgres 10629 [001]  1162.282435: block:block_bio_queue: 7,0 RA 8 + 16 [postgres]",
            "postgres 10629/10630 [001]  1162.282435000:    block:block_bio_queue: 7,0 RA 8 + 16 [postgres]",
        ] {
            assert_eq!(parsed(line), expected, "{line}");
        }
    }

    #[test]
    fn the_name_of_a_command_may_look_like_anything() {
        let tail = "-42 [003] ..... 5.000000001: block_rq_issue: 7,0 R 0 () 8 + 16 [x]";
        for name in [
            "block_rq_issue:",
            "[001] 1.5: x",
            "a-1 [0] 1.5: b",
            "kworker/u9:1-ev",
            "a b c",
            "]",
            "1.5:",
            "<...>",
        ] {
            let (cpu, time_ns, event, _) = parsed(&format!("{name}{tail}"));
            assert_eq!((cpu, time_ns, &event[..]), (3, 5_000_000_001, "block_rq_issue"), "{name}");
        }
    }

    #[test]
    fn a_line_without_a_cpu_is_read_too() {
        let line = "fio  9001 12.000345: block:block_rq_complete: 259,0 R () 8 + 8 none,0,0 [0]";
        assert_eq!(parsed(line).0, -1);
        assert_eq!(parsed(line).1, 12_000_345_000);
    }

    #[test]
    fn the_latency_format_and_differences_of_time_are_understood() {
        let words = "7,0 RA 8 + 16 [postgres]";
        for (line, time_ns) in [
            (format!("postgres-10629     1..... 29773us : block_bio_queue: {words}"), 29_773_000),
            (format!("postgres-10629     1d.h1. 29786us+: block_bio_queue: {words}"), 29_786_000),
            (
                format!("evx: postgres-10629    1..... 12189.713908: block_bio_queue:       {words}"),
                12_189_713_908_000,
            ),
            (
                format!("postgres-10629 [001] 12189.713908: (+4)     block_bio_queue:       {words}"),
                12_189_713_908_000,
            ),
            (
                format!("postgres-10629 [001] 12189.713908170: (+12345)     block_bio_queue: {words}"),
                12_189_713_908_170,
            ),
        ] {
            assert_eq!(parsed(&line), (1, time_ns, "block_bio_queue".into(), words.into()), "{line}");
        }
        assert_eq!(parse(b"a-1 1..... 29773us? block_bio_queue: 7,0 R 8 + 8 [a]"), None);
    }

    #[test]
    fn fractions_of_any_length_up_to_nanoseconds_are_exact() {
        let time_of = |text: &str| time(text.as_bytes()).map(|(time_ns, _)| time_ns);
        assert_eq!(time_of("12.3:"), Some(12_300_000_000));
        assert_eq!(time_of("12.000001:"), Some(12_000_001_000));
        assert_eq!(time_of("12.000000001:"), Some(12_000_000_001));
        for text in ["12:", "12.:", ".5:", "12.0000000001:", "99999999999999.0:", "12.5"] {
            assert_eq!(time_of(text), None, "{text}");
        }
    }
}
