//! The loads of blkreplay: `start ; sector ; length ; op ; replay_delay ; replay_duration`, after some text.

use crate::format::{Carries, Decoded};
use crate::options::OptionName;
use crate::rows::cells::check_end;
use crate::rows::{plain, Bad, Block, Cells, Gather, LineParser, TextFormat};
use crate::rwbs::{self, Rwbs};
use crate::Options;
use testdrive_core::{Flags, IoRecord, Opcode};

/// A row that repeats the one before within so long was probably seen twice on its way, at two queues.
const REPEAT_NS: i64 = 1_000_000;
/// Of so many rows, one that repeats another is worth a word.
const REPEATS_PER: u64 = 20;

/// The format. Times are in s, sectors of 512 bytes. What blkreplay writes has the delay and duration of each I/O as well; in what it
/// reads they are zeroes, as the header then says.
pub(crate) struct Blkreplay;

impl TextFormat for Blkreplay {
    const NAME: &'static str = "blkreplay";
    const DESCRIPTION: &'static str =
        "blkreplay's .load, and its results: start ; sector ; length ; op ; delay ; duration";
    const CARRIES: Carries = Carries { queue_events: false, completions: true, trims: true, volumes: false };
    const ABSENT: &'static [&'static str] = &["stream", "status"];
    const TAKES: &'static [OptionName] = &[];
    type Parser = Parser;

    fn parser(_options: &Options) -> Parser {
        Parser::default()
    }
}

#[derive(Default)]
pub(crate) struct Parser {
    /// Whether the text before the rows is over.
    began: bool,
    /// Whether delays and durations were measured.
    is_result: bool,
    rows: u64,
    repeats: u64,
    last: Option<IoRecord>,
}

impl LineParser for Parser {
    fn is_header(&mut self, _line: &[u8]) -> bool {
        false
    }

    fn parse(&mut self, line: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad> {
        if !self.began {
            let line = line.trim_ascii_start();
            if let Some(columns) = line.strip_prefix(b"start") {
                self.began = columns.contains(&b';');
                self.is_result = self.began && !columns.contains(&b'=');
                return Ok(());
            }
            let is_row = line.first().is_some_and(u8::is_ascii_digit) && line.contains(&b';');
            if !is_row {
                return Ok(());
            }
            self.began = true;
        }
        let record = self.row(line)?;
        self.rows += 1;
        self.repeats += u64::from(self.last.is_some_and(|last| repeats(&last, &record)));
        self.last = Some(record);
        block.push(gather, 0, record);
        Ok(())
    }

    fn describe(&self, decoded: &mut Decoded) {
        if !self.is_result {
            decoded.absent("submit_ns");
            decoded.absent("latency_ns");
        }
        if self.repeats * REPEATS_PER >= self.rows && self.repeats > 0 {
            let message = format!(
                "{} of {} I/Os repeat the one before within 1 ms: they may have been seen at two queues of the same system",
                self.repeats, self.rows
            );
            let remedy = "mind that the workload may have been half as much; nothing was left out";
            decoded.warn("repeated_ios", message, remedy);
        }
    }
}

impl Parser {
    fn row(&self, line: &[u8]) -> Result<IoRecord, Bad> {
        let mut cells = Cells::separated(line, b';');
        let intended_ns = cells.scaled("start", 9)?;
        let offset_bytes = cells.sectors("the sector")?;
        let length_bytes = cells.sectors("the length")?;
        let (opcode, flags) = operation(cells.cell("op")?)?;
        let delay_ns = cells.scaled("the delay", 9)?;
        let duration_ns = cells.scaled("the duration", 9)?;
        cells.end()?;
        check_end(offset_bytes, length_bytes)?;
        let plain = IoRecord { flags, ..plain(intended_ns, opcode, offset_bytes, length_bytes) };
        if !self.is_result {
            return Ok(plain);
        }
        let submit_ns =
            intended_ns.checked_add(delay_ns).ok_or_else(|| Bad::new("the delay is too large"))?;
        Ok(IoRecord { submit_ns, latency_ns: duration_ns, ..plain })
    }
}

/// The letters are those of the kernel's traces, from which loads are made.
fn operation(cell: &[u8]) -> Result<(Opcode, Flags), Bad> {
    match rwbs::parse(cell, 1) {
        Some(Rwbs::Io(opcode, flags)) => Ok((opcode, flags)),
        _ => Err(Bad::cell("op", cell, "is no operation: R, W, D or F, with letters after it as in RA")),
    }
}

fn repeats(last: &IoRecord, record: &IoRecord) -> bool {
    last.opcode == record.opcode
        && last.offset_bytes == record.offset_bytes
        && last.length_bytes == record.length_bytes
        && record.intended_ns - last.intended_ns < REPEAT_NS
}
