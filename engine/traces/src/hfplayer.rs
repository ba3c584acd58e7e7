//! The CSV of hfplayer, the High Fidelity replay tool: I/Os seen at a storage controller, as they came in and went out.

mod pending;

use crate::format::{Carries, Decoded, Events};
use crate::rows::cells::{check_end, scaled_number, sectors_in_bytes, whole_number};
use crate::rows::header::Header;
use crate::rows::{plain, Bad, Block, Gather, LineParser, TextFormat};
use crate::Options;
use pending::{Pending, Waiting};
use testdrive_core::{IoRecord, Opcode, NO_COMPLETION};

/// The format: a header with names such as `ELAPSED_USECS.D`. Raw traces have a line when an I/O comes in and one when it goes out, in
/// which its latency stands; what is replayed has both in one line.
pub(crate) struct Hfplayer;

impl TextFormat for Hfplayer {
    const NAME: &'static str = "hfplayer";
    const DESCRIPTION: &'static str = "hfplayer CSV, raw or paired, with the header #DUMP_OFFSET.I,...";
    const CARRIES: Carries = Carries { queue_events: false, completions: true, trims: false, volumes: true };
    const ABSENT: &'static [&'static str] = &["intended_ns", "flags", "status"];
    const EVENTS: Option<Events> = Some(Events::Issued);
    type Parser = Parser;

    fn parser(_options: &Options) -> Parser {
        Parser::default()
    }
}

/// The columns, those that are needed first.
const NAMES: [&[&str]; 9] = [
    &["ELAPSED_USECS.D"],
    &["CMD.S"],
    &["LBA.I"],
    &["NBLKS.I"],
    &["LATENCY_USECS.D"],
    &["LUN_SSID.I"],
    &["SEQID.I"],
    &["ELAPSED_TICKS.I"],
    &["CORENUM.I"],
];
const NEEDED: usize = 7;
const TICKS: usize = 7;
const CORE: usize = 8;

#[derive(Default)]
pub(crate) struct Parser {
    header: Option<Header<9>>,
    /// The first line, whose time hfplayer gives as 0: it is worked out from the clock's ticks at the next one.
    first: Option<(i64, Waiting)>,
    pending: Pending,
}

/// What a line tells of its I/O.
enum Phase {
    /// It came in.
    In,
    /// It went out.
    Out,
    /// Both.
    Whole,
}

impl LineParser for Parser {
    fn is_header(&mut self, line: &[u8]) -> bool {
        self.header = Header::find(line, NAMES, NEEDED);
        self.header.is_some()
    }

    fn is_comment(&self, _line: &[u8]) -> bool {
        false
    }

    fn parse(&mut self, line: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad> {
        let Some(header) = self.header else {
            return Err(Bad::new(format!(
                "the first line does not name the columns, such as {}",
                NAMES[0][0]
            )));
        };
        let cells = header.cells(line)?;
        let [elapsed, command, ..] = cells;
        let (opcode, phase) = command_of(command)?;
        let time_ns = scaled_number(NAMES[0][0], elapsed, 3)?;
        let ticks = if header.has(TICKS) { Some(whole_number(NAMES[TICKS][0], cells[TICKS])?) } else { None };
        self.date_first(time_ns, ticks, block, gather)?;
        let number = whole_number(NAMES[6][0], cells[6])?;
        let latency_ns = scaled_number(NAMES[4][0], cells[4], 3)?;
        if matches!(phase, Phase::Out) {
            self.pending.complete(number, opcode, latency_ns, block, gather);
            return Ok(());
        }
        let record = row(&header, &cells, opcode, time_ns)?;
        let volume = volume(cells[5], gather)?;
        // A line of a raw trace has no latency yet; 0 is what stands there.
        let is_complete = matches!(phase, Phase::Whole) || latency_ns > 0;
        let latency_ns = if is_complete { latency_ns } else { NO_COMPLETION };
        let waiting = Waiting {
            number,
            place: block.place(),
            volume,
            is_complete,
            record: IoRecord { latency_ns, ..record },
        };
        match ticks {
            Some(ticks) if time_ns == 0 && ticks > 0 && self.pending.is_new() => {
                self.first = Some((ticks, waiting))
            }
            _ => self.pending.begin(waiting, block, gather),
        }
        Ok(())
    }

    fn finish(&mut self, block: &mut Block, gather: &mut Gather) {
        if let Some((_, first)) = self.first.take() {
            self.pending.begin(first, block, gather);
        }
        self.pending.finish(block, gather);
    }

    fn describe(&self, decoded: &mut Decoded) {
        if !self.header.is_some_and(|header| header.has(CORE)) {
            decoded.absent("stream");
        }
        self.pending.describe(decoded);
    }
}

impl Parser {
    /// Gives the first line its time, now that there is one to compare with.
    fn date_first(
        &mut self,
        time_ns: i64,
        ticks: Option<i64>,
        block: &mut Block,
        gather: &mut Gather,
    ) -> Result<(), Bad> {
        let Some((first_ticks, mut first)) = self.first.take() else { return Ok(()) };
        if let Some(ticks) = ticks.filter(|&ticks| ticks > 0 && time_ns > 0) {
            let exact = i128::from(first_ticks) * i128::from(time_ns) / i128::from(ticks);
            let first_ns =
                i64::try_from(exact).map_err(|_| Bad::new("the ticks of the first line are too many"))?;
            (first.record.intended_ns, first.record.submit_ns) = (first_ns, first_ns);
        }
        self.pending.begin(first, block, gather);
        Ok(())
    }
}

fn command_of(cell: &[u8]) -> Result<(Opcode, Phase), Bad> {
    Ok(match cell {
        b"RD_IN" => (Opcode::Read, Phase::In),
        b"WR_IN" => (Opcode::Write, Phase::In),
        b"RD_OUT" => (Opcode::Read, Phase::Out),
        b"WR_OUT" => (Opcode::Write, Phase::Out),
        b"RD" => (Opcode::Read, Phase::Whole),
        b"WR" => (Opcode::Write, Phase::Whole),
        _ => return Err(Bad::cell("CMD.S", cell, "is none of RD_IN, WR_IN, RD_OUT, WR_OUT, RD and WR")),
    })
}

fn row(header: &Header<9>, cells: &[&[u8]; 9], opcode: Opcode, time_ns: i64) -> Result<IoRecord, Bad> {
    let sectors = |at: usize| sectors_in_bytes(NAMES[at][0], whole_number(NAMES[at][0], cells[at])?);
    let (offset_bytes, length_bytes) = (sectors(2)?, sectors(3)?);
    check_end(offset_bytes, length_bytes)?;
    let stream = if header.has(CORE) { whole_number(NAMES[CORE][0], cells[CORE])? } else { -1 };
    let stream = i32::try_from(stream).map_err(|_| Bad::cell(NAMES[CORE][0], cells[CORE], "is too large"))?;
    Ok(IoRecord { stream, ..plain(time_ns, opcode, offset_bytes, length_bytes) })
}

fn volume(cell: &[u8], gather: &mut Gather) -> Result<u32, Bad> {
    gather.volume(cell, || String::from_utf8_lossy(cell).into_owned())
}
