//! Text as `blkparse` prints it: queue (Q), issue (D) and completion (C) of every I/O, in the order of time.

mod merge;
mod rwbs;

use super::losses::Losses;
use super::{refuse, require, shift_ns, EncodeError, EncodeOptions, Encoded, Encoder, Source};
use crate::event::Device;
use crate::format::Dropped;
use merge::{Merge, Step, Steps};
use std::io::Write;
use testdrive_core::{Flags, IoRecord, Opcode, OpcodeCounts, NS_PER_S, SECTOR_BYTES};

/// The format.
pub(super) struct Blkparse;

const OFFSET: usize = 0;
const LENGTH: usize = 1;
const INTENDED: usize = 2;
const STREAM: usize = 3;
const STATUS: usize = 4;
const LOSSES: [(&str, &str); 5] = [
    ("offset_bytes", "where they begin within a sector of 512 bytes"),
    ("length_bytes", "how much of their sectors they cover"),
    ("intended_ns", "that they were intended later than submitted"),
    ("stream", "that it is not known: they stand on CPU 0"),
    ("status", "that they failed, as no completion says so"),
];

impl Encoder for Blkparse {
    fn name(&self) -> &'static str {
        "blkparse"
    }

    fn description(&self) -> &'static str {
        "text as blkparse prints it: queue, issue and completion of each I/O, in the order of time"
    }

    /// Reads the source once for each kind of event: however long an I/O waits or takes, none is held in memory meanwhile.
    fn encode(
        &self,
        source: &dyn Source,
        options: &EncodeOptions,
        output: &mut dyn Write,
    ) -> Result<Encoded, EncodeError> {
        refuse(options.target.is_some(), "--target", "blkparse", "name the device with --device MAJ:MIN")?;
        refuse(options.times.is_some(), "--times", "blkparse", "it has both times of each I/O")?;
        require(source, "blkparse text", &["opcode", "offset_bytes", "length_bytes"])?;
        let steps = Steps::of(source)?;
        let device = options.device.or_else(|| source.device()).unwrap_or(Device { major: 0, minor: 0 });
        let mut text = Text {
            output,
            device: format!("{},{}", device.major, device.minor),
            steps,
            shift_ns: shift_ns(source)?,
            sequence: 0,
            written: OpcodeCounts::default(),
            no_place: 0,
            losses: Losses::new(&LOSSES),
            stream_known: !source.lacks("stream"),
        };
        for next in Merge::new(source, steps)? {
            let (step, row) = next?;
            text.write(step, &row)?;
        }
        text.finish()
    }
}

/// Text being written.
struct Text<'o> {
    output: &'o mut dyn Write,
    device: String,
    steps: Steps,
    shift_ns: i64,
    sequence: u64,
    written: OpcodeCounts,
    no_place: u64,
    losses: Losses,
    stream_known: bool,
}

impl Text<'_> {
    fn write(&mut self, step: Step, row: &IoRecord) -> Result<(), EncodeError> {
        let is_flush = row.opcode == Opcode::Flush;
        let has_place = is_flush || row.offset_bytes >= 0 && row.length_bytes > 0;
        if step == self.steps.first() {
            if has_place {
                self.count(row);
            } else {
                self.no_place += 1;
            }
        }
        if !has_place {
            return Ok(());
        }
        let time_ns = step.time_ns(row);
        match (step, is_flush) {
            (Step::Queue, true) => {
                self.line("Q", time_ns, &rwbs::queued_flush(row.flags), row, "[testdrive]")
            }
            (Step::Issue, true) => {
                self.line("D", time_ns, &rwbs::issued_flush(row.flags), row, "[testdrive]")
            }
            (Step::Complete, true) => self.complete_flush(time_ns, row),
            (Step::Queue, false) => {
                self.line("Q", time_ns, &rwbs::of(row.opcode, row.flags), row, "[testdrive]")
            }
            (Step::Issue, false) => {
                self.line("D", time_ns, &rwbs::of(row.opcode, self.issued(row)), row, "[testdrive]")
            }
            (Step::Complete, false) => self.complete(time_ns, row),
        }
    }

    /// The flags of the request of an I/O. Where the I/O was queued with a preflush, the kernel flushes first and issues the data
    /// without it.
    fn issued(&self, row: &IoRecord) -> Flags {
        if self.steps.queue {
            row.flags.without(Flags::PREFLUSH)
        } else {
            row.flags
        }
    }

    /// The end of the kernel's own flush request, then the end of what was queued, which is empty.
    fn complete_flush(&mut self, time_ns: i64, row: &IoRecord) -> Result<(), EncodeError> {
        let end = format!("[{}]", error(row.status));
        if self.steps.issue {
            self.line("C", time_ns, &rwbs::issued_flush(row.flags), row, &end)?;
        }
        if self.steps.queue {
            self.line("C", time_ns, &rwbs::ended_flush(row.flags), row, &end)?;
        }
        Ok(())
    }

    /// The end of the data, and where it was queued with a preflush the end of the whole, which is empty.
    fn complete(&mut self, time_ns: i64, row: &IoRecord) -> Result<(), EncodeError> {
        let end = format!("[{}]", error(row.status));
        self.line("C", time_ns, &rwbs::of(row.opcode, self.issued(row)), row, &end)?;
        if self.steps.queue && self.steps.issue && row.flags.contains(Flags::PREFLUSH) {
            let empty = IoRecord { length_bytes: 0, ..*row };
            self.line("C", time_ns, &rwbs::of(row.opcode, self.issued(row)), &empty, &end)?;
        }
        Ok(())
    }

    fn line(
        &mut self,
        action: &str,
        time_ns: i64,
        rwbs: &str,
        row: &IoRecord,
        end: &str,
    ) -> Result<(), EncodeError> {
        self.sequence += 1;
        let time_ns = time_ns.saturating_sub(self.shift_ns);
        let (seconds, fraction) = (time_ns / NS_PER_S, time_ns % NS_PER_S);
        let (device, cpu, sequence) = (&self.device, row.stream.max(0), self.sequence);
        write!(
            self.output,
            "{device} {cpu:>4} {sequence:>8} {seconds:>5}.{fraction:09} {:>5} {action:>2} {rwbs:>3} ",
            0
        )?;
        let (first, sectors) = sectors(row);
        if sectors > 0 {
            writeln!(self.output, "{first} + {sectors} {end}")?;
        } else if action == "C" {
            writeln!(self.output, "{first} {end}")?;
        } else {
            writeln!(self.output, "{end}")?;
        }
        Ok(())
    }

    fn count(&mut self, row: &IoRecord) {
        let sector = SECTOR_BYTES as i64;
        let is_flush = row.opcode == Opcode::Flush;
        self.written.add_record(row);
        self.losses.count(OFFSET, !is_flush && row.offset_bytes % sector != 0);
        self.losses.count(LENGTH, !is_flush && row.length_bytes % sector != 0);
        self.losses.count(INTENDED, row.intended_ns > row.submit_ns);
        self.losses.count(STREAM, self.stream_known && row.stream < 0);
        self.losses.count(STATUS, row.status != 0 && (row.latency_ns < 0 || !self.steps.complete));
        self.losses.count_phase(row);
    }

    fn finish(self) -> Result<Encoded, EncodeError> {
        let dropped = [("I/Os without a place or a length", self.no_place)];
        Ok(Encoded {
            written: self.written,
            shift_ns: self.shift_ns,
            dropped: Dropped::list(&dropped),
            not_carried: self.losses.list(),
            notes: Vec::new(),
        })
    }
}

/// A status as blkparse prints it: the kernel's negative errno, as sixteen bits without a sign.
fn error(status: i32) -> i32 {
    match status {
        1..=0x7fff => 0x1_0000 - status,
        other => other,
    }
}

/// First sector and sectors of an I/O, widened to whole ones; nothing for what has no length.
fn sectors(row: &IoRecord) -> (i64, i64) {
    let sector = SECTOR_BYTES as i64;
    if row.opcode == Opcode::Flush {
        return (0, 0);
    }
    let first = row.offset_bytes / sector;
    if row.length_bytes == 0 {
        return (first, 0);
    }
    let last = row.offset_bytes.saturating_add(row.length_bytes - 1) / sector;
    (first, last - first + 1)
}
