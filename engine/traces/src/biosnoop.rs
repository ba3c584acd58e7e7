//! What bcc's `biosnoop` prints, of its Python and its libbpf kind: one I/O a line, when it completes.
//!
//! | kind | columns |
//! |---|---|
//! | Python | `TIME(s) COMM PID DISK T SECTOR BYTES [P] [QUE(ms)] LAT(ms)`, where T is R or W |
//! | libbpf | `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`, where T is RWBS |
//!
//! The command may hold spaces and anything else, so that lines are read from the right.

mod line;

use crate::format::{Carries, Decoded, Events};
use crate::rows::cells::check_end;
use crate::rows::{Bad, Block, Gather, LineParser, TextFormat};
use crate::Options;
use line::Line;
use testdrive_core::{IoRecord, Opcode};

/// The format.
pub(crate) struct Biosnoop;

impl TextFormat for Biosnoop {
    const NAME: &'static str = "biosnoop";
    const DESCRIPTION: &'static str =
        "text that bcc's biosnoop prints, in Python or libbpf, with -Q, -P and -d or without";
    const CARRIES: Carries = Carries { queue_events: true, completions: true, trims: true, volumes: true };
    const ABSENT: &'static [&'static str] = &["stream", "status"];
    const EVENTS: Option<Events> = Some(Events::Issued);
    type Parser = Parser;

    fn parser(_options: &Options) -> Parser {
        Parser::default()
    }
}

/// Reads lines, and notes what they have in common.
#[derive(Default)]
pub(crate) struct Parser {
    /// Events that biosnoop did not get.
    lost: u64,
    has_queue_times: bool,
    /// Whether a line said more than R or W of what an I/O does.
    has_letters: bool,
}

impl LineParser for Parser {
    const IN_ORDER_OF_ENDS: bool = true;

    fn is_header(&mut self, line: &[u8]) -> bool {
        line.starts_with(b"TIME(s)")
    }

    fn is_comment(&self, line: &[u8]) -> bool {
        line.starts_with(b"#") || line.starts_with(b"Tracing ") || line.trim_ascii() == b"^C"
    }

    fn parse(&mut self, line: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad> {
        if let Some(count) = lost(line) {
            self.lost = self.lost.saturating_add(count);
            return Ok(());
        }
        if line.starts_with(b"TIME(s)") {
            let reason = "here another output of biosnoop begins, whose times count from another start: import one at a time";
            return Err(Bad::new(reason));
        }
        if line.starts_with(b"TIMESTAMP") {
            let reason = "with -t biosnoop prints when it printed a line, not when the I/O completed: record again without -t";
            return Err(Bad::new(reason));
        }
        let line = Line::read(line)?;
        let Some(disk) = line.disk else {
            gather.drop("I/Os whose disk and place biosnoop did not know");
            return Ok(());
        };
        self.has_queue_times |= line.queue_ns.is_some();
        self.has_letters |= !matches!(line.letters, b"R" | b"W");
        let Some((opcode, flags)) = line.opcode_and_flags(gather)? else { return Ok(()) };
        let volume = gather.volume(disk, || String::from_utf8_lossy(disk).into_owned())?;
        let submit_ns = line.end_ns.saturating_sub(line.latency_ns);
        let record = IoRecord {
            intended_ns: submit_ns.saturating_sub(line.queue_ns.unwrap_or(0)),
            submit_ns,
            latency_ns: line.latency_ns,
            offset_bytes: match (opcode, line.sector) {
                (Opcode::Flush, _) => 0,
                (_, Some(sector)) => line::bytes(sector)?,
                (_, None) => -1,
            },
            length_bytes: line.length_bytes,
            stream: -1,
            status: 0,
            phase: 0,
            opcode,
            flags,
        };
        check_end(record.offset_bytes, record.length_bytes)?;
        block.push(gather, volume, record);
        Ok(())
    }

    fn describe(&self, decoded: &mut Decoded) {
        decoded.drop(self.lost, "events that biosnoop lost");
        if self.lost > 0 {
            decoded.warn(
                "events_lost",
                format!("biosnoop lost {} events: I/Os are missing", self.lost),
                "record again with less to print (-d DISK), or with blktrace",
            );
        }
        if !self.has_queue_times {
            decoded.absent("intended_ns");
        }
        if !self.has_letters {
            decoded.absent("flags");
            decoded.warn(
                "trims_unknown",
                "every line says R or W, as biosnoop in Python does: trims and what else is no write stand as R".into(),
                "where there are trims, record with the libbpf kind of biosnoop, or with blktrace",
            );
        }
    }
}

/// Events lost, as the two kinds say it: `Possibly lost 12 samples`, `lost 12 events on CPU #3`.
fn lost(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"Possibly ").unwrap_or(line).strip_prefix(b"lost ")?;
    let (count, rest) = crate::words::leading_number(rest)?;
    (rest.starts_with(b" samples") || rest.starts_with(b" events")).then_some(count)
}
