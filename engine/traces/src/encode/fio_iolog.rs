//! fio's iolog, version 3: `time_us file action [offset length]`, which `fio --read_iolog` replays.

use super::losses::Losses;
use super::{refuse, require, shift_ns, EncodeError, EncodeOptions, Encoded, Encoder, Order, Source, Times};
use crate::format::Dropped;
use std::io::Write;
use testdrive_core::{Flags, IoRecord, Opcode, OpcodeCounts, GIB, NS_PER_S};

/// The format.
pub(super) struct FioIolog;

/// fio opens what the trace names. Without `--target` that is nothing that exists, rather than a drive that somebody uses.
const TARGET: &str = "testdrive-target";
/// fio reads a name into so many bytes.
const TARGET_BYTES_MAX: usize = 255;
/// fio reads lengths as 32 bits; longer I/Os are written in pieces of this size.
const PIECE_BYTES: i64 = 2 * GIB as i64;
const LENGTH_BYTES_MAX: i64 = u32::MAX as i64;

const LATENCY: usize = 0;
const OTHER_TIME: usize = 1;
const FRACTION: usize = 2;
const FLAGS: usize = 3;
const STREAM: usize = 4;
const STATUS: usize = 5;
const INTENDED_LOSSES: [(&str, &str); 6] = [
    ("latency_ns", "when they completed"),
    ("submit_ns", "when they were submitted, where that differs from the intended time"),
    ("intended_ns", "the fraction of a microsecond"),
    ("flags", "FUA, preflush, sync, metadata, read-ahead"),
    ("stream", "who submitted them: fio replays one stream"),
    ("status", "that they failed"),
];
const SUBMIT_LOSSES: [(&str, &str); 6] = [
    INTENDED_LOSSES[LATENCY],
    ("intended_ns", "when they were intended, where that differs from the submit time"),
    ("submit_ns", "the fraction of a microsecond"),
    INTENDED_LOSSES[FLAGS],
    INTENDED_LOSSES[STREAM],
    INTENDED_LOSSES[STATUS],
];

impl Encoder for FioIolog {
    fn name(&self) -> &'static str {
        "fio-iolog"
    }

    fn description(&self) -> &'static str {
        "fio's iolog, version 3, to replay with `fio --read_iolog`: one time in us, place and length"
    }

    fn encode(
        &self,
        source: &dyn Source,
        options: &EncodeOptions,
        output: &mut dyn Write,
    ) -> Result<Encoded, EncodeError> {
        refuse(options.device.is_some(), "--device", "fio-iolog", "name the file or device with --target")?;
        require(source, "fio's iolog", &["opcode", "offset_bytes", "length_bytes"])?;
        let target = options.target.as_deref().unwrap_or(TARGET);
        check_target(target)?;
        let times = options.times.unwrap_or(Times::Intended);
        let mut log = Iolog {
            output,
            target,
            times,
            shift_ns: shift_ns(source)?,
            last_us: None,
            pieces: 0,
            written: OpcodeCounts::default(),
            no_word: 0,
            no_place: 0,
            losses: Losses::new(match times {
                Times::Intended => &INTENDED_LOSSES,
                Times::Submit => &SUBMIT_LOSSES,
            }),
        };
        let order = match times {
            Times::Intended => Order::Intended,
            Times::Submit => Order::Submit,
        };
        writeln!(log.output, "fio version 3 iolog")?;
        for row in source.rows(order).map_err(EncodeError::Source)? {
            log.write(&row.map_err(EncodeError::Source)?)?;
        }
        log.finish()
    }
}

fn check_target(target: &str) -> Result<(), EncodeError> {
    let reason = if target.is_empty() {
        "it is empty"
    } else if target.contains(char::is_whitespace) {
        "fio ends a name at white space"
    } else if target.len() > TARGET_BYTES_MAX {
        "fio reads names of up to 255 bytes"
    } else {
        return Ok(());
    };
    let message = format!("--target '{target}' cannot stand in an iolog: {reason}; give another name, and the real one to fio with --replay_redirect");
    Err(EncodeError::Usage(message))
}

/// A log being written.
struct Iolog<'o> {
    output: &'o mut dyn Write,
    target: &'o str,
    times: Times,
    shift_ns: i64,
    last_us: Option<i64>,
    /// Pieces that long I/Os were written in, beyond the first of each.
    pieces: u64,
    written: OpcodeCounts,
    no_word: u64,
    no_place: u64,
    losses: Losses,
}

impl Iolog<'_> {
    fn write(&mut self, row: &IoRecord) -> Result<(), EncodeError> {
        let action = match row.opcode {
            Opcode::Read => "read",
            Opcode::Write => "write",
            Opcode::Trim => "trim",
            Opcode::Flush => "sync",
            Opcode::WriteZeroes => {
                self.no_word += 1;
                return Ok(());
            }
        };
        let is_flush = row.opcode == Opcode::Flush;
        if !is_flush && (row.offset_bytes < 0 || row.length_bytes <= 0) {
            self.no_place += 1;
            return Ok(());
        }
        let time_us = self.time_us(row)?;
        if is_flush {
            writeln!(self.output, "{time_us} {} {action} 0 0", self.target)?;
        } else {
            self.write_pieces(time_us, action, row)?;
        }
        self.written.add_record(row);
        self.count_losses(row);
        Ok(())
    }

    /// The time of a line; before the first, the lines that make the target known.
    fn time_us(&mut self, row: &IoRecord) -> Result<i64, EncodeError> {
        let time_ns = self.time_ns(row);
        if self.last_us.is_none() {
            // fio takes a time of 0 for none, and would not wait after it.
            if time_ns.saturating_sub(self.shift_ns) < 1000 {
                self.shift_ns = self.shift_ns.saturating_sub(NS_PER_S);
            }
            let first_us = time_ns.saturating_sub(self.shift_ns) / 1000;
            writeln!(self.output, "{first_us} {} add", self.target)?;
            writeln!(self.output, "{first_us} {} open", self.target)?;
        }
        let time_us = time_ns.saturating_sub(self.shift_ns) / 1000;
        self.last_us = Some(time_us);
        Ok(time_us)
    }

    fn time_ns(&self, row: &IoRecord) -> i64 {
        match self.times {
            Times::Intended => row.intended_ns,
            Times::Submit => row.submit_ns,
        }
    }

    fn write_pieces(&mut self, time_us: i64, action: &str, row: &IoRecord) -> std::io::Result<()> {
        let (mut offset, mut left) = (row.offset_bytes, row.length_bytes);
        while left > LENGTH_BYTES_MAX {
            writeln!(self.output, "{time_us} {} {action} {offset} {PIECE_BYTES}", self.target)?;
            offset = offset.saturating_add(PIECE_BYTES);
            left -= PIECE_BYTES;
            self.pieces += 1;
        }
        writeln!(self.output, "{time_us} {} {action} {offset} {left}", self.target)
    }

    fn count_losses(&mut self, row: &IoRecord) {
        let fraction = self.time_ns(row).rem_euclid(1000) != 0;
        self.losses.count(LATENCY, row.latency_ns >= 0);
        self.losses.count(OTHER_TIME, row.intended_ns != row.submit_ns);
        self.losses.count(FRACTION, fraction);
        self.losses.count(FLAGS, row.flags != Flags::NONE);
        self.losses.count(STREAM, row.stream >= 0);
        self.losses.count(STATUS, row.status != 0);
        self.losses.count_phase(row);
    }

    fn finish(self) -> Result<Encoded, EncodeError> {
        if let Some(last_us) = self.last_us {
            writeln!(self.output, "{last_us} {} close", self.target)?;
        }
        let dropped = [
            ("write_zeroes, for which an iolog has no word", self.no_word),
            ("I/Os without a place or a length", self.no_place),
        ];
        let mut notes = Vec::new();
        if self.written.of(Opcode::Trim).ios > 0 {
            notes.push(
                "some versions of fio, 3.33 for one, leave out the trims of an iolog, saying 'bad ddir: 2'"
                    .into(),
            );
        }
        if self.pieces > 0 {
            notes.push(format!(
                "I/Os longer than fio can read are written as several: {} lines more than I/Os",
                self.pieces
            ));
        }
        Ok(Encoded {
            written: self.written,
            shift_ns: self.shift_ns,
            dropped: Dropped::list(&dropped),
            not_carried: self.losses.list(),
            notes,
        })
    }
}
