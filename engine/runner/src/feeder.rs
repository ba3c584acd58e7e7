//! Decodes a recording ahead of the submitters, places its I/Os on the drive, and queues them; never on a submitting thread.

use crate::accounting::{Accounting, Depth};
use crate::feed_queue::{Fate, Feeds};
use crate::gates::Gates;
use crate::job::{Events, Pace, ReplayJob};
use crate::source::Planned;
use crate::stop::Stop;
use testdrive_core::{Command, IoRecord, LbaMap, Opcode, Placement};
use testdrive_recording::{OrderBy, Recording, RecordingError};

/// A replay's source and how its I/Os are changed on their way.
pub struct Feeder<'a> {
    /// What to replay.
    pub recording: &'a Recording,
    /// How.
    pub job: &'a ReplayJob,
    /// Where on the drive.
    pub map: LbaMap,
    /// What the drive's path cannot do.
    pub unsupported: Vec<Opcode>,
    /// The longest transfer that the submitters have buffers for.
    pub transfer_max_bytes: u64,
}

impl Feeder<'_> {
    /// Feeds until the source, the loops or the duration end, or the run stops. Returns the source's part of the accounting.
    ///
    /// # Errors
    /// When a segment of the source cannot be read.
    pub fn run(&self, mut feeds: Feeds, stop: &Stop) -> Result<Accounting, RecordingError> {
        let mut state = Feeding::default();
        let loops = match (self.job.loops, self.job.duration_ns) {
            (Some(loops), _) => u64::from(loops),
            (None, Some(_)) => u64::MAX,
            (None, None) => 1,
        };
        for _ in 0..loops {
            let before = state.sequence;
            let fate = self.feed_once(&mut feeds, &mut state, stop)?;
            // A pass that issues nothing would be repeated for ever without a pause.
            if fate == Fate::End || state.sequence == before {
                break;
            }
        }
        state.accounting.source_depth = Depth::of(&state.gates.finish());
        Ok(state.accounting)
    }

    fn order(&self) -> OrderBy {
        match self.job.events {
            Events::Queued => OrderBy::Intended,
            Events::Issued => OrderBy::Submit,
        }
    }

    fn feed_once(&self, feeds: &mut Feeds, state: &mut Feeding, stop: &Stop) -> Result<Fate, RecordingError> {
        let order = self.order();
        let base_ns = self.base_ns();
        let (mut first_ns, mut last_ns, mut rows) = (None, 0, 0_i64);
        for row in self.recording.ordered_rows(order)? {
            let row = row?;
            if stop.requested() {
                return Ok(Fate::End);
            }
            if !self.is_measured(&row) {
                continue;
            }
            let time_ns = order.time_ns(&row).saturating_sub(base_ns);
            if time_ns < self.job.from_ns {
                continue;
            }
            if self.job.to_ns.is_some_and(|to_ns| time_ns >= to_ns) {
                break;
            }
            rows += 1;
            first_ns.get_or_insert(time_ns);
            last_ns = time_ns;
            let issue_ns = self.at_speed(time_ns - self.job.from_ns).saturating_add(state.offset_ns);
            if self.feed(row, issue_ns, feeds, state, stop) == Fate::End {
                return Ok(Fate::End);
            }
        }
        let length_ns = match (self.job.to_ns, first_ns) {
            (Some(to_ns), _) => to_ns - self.job.from_ns,
            // Without an end of its own, a pass ends one mean gap after its last I/O.
            (None, Some(first_ns)) => {
                (last_ns - self.job.from_ns).saturating_add((last_ns - first_ns) / (rows - 1).max(1))
            }
            (None, None) => 0,
        };
        state.offset_ns = state.offset_ns.saturating_add(self.at_speed(length_ns));
        Ok(Fate::GoOn)
    }

    /// A time of the source as the replay takes it. Beyond what a clock can tell, which a year at a millionth of its speed is, it is the
    /// end of time: such an I/O is never due.
    fn at_speed(&self, time_ns: i64) -> i64 {
        (time_ns as f64 / self.job.speed) as i64
    }

    /// Where the source's time zero lies on its recording's clock: a run is replayed from the start of its measured phase.
    fn base_ns(&self) -> i64 {
        let measured = self.recording.manifest.phases.iter().find(|phase| phase.measured);
        measured.map_or(0, |phase| phase.start_ns)
    }

    fn is_measured(&self, row: &IoRecord) -> bool {
        self.recording.manifest.phases.get(usize::from(row.phase)).is_some_and(|phase| phase.measured)
    }

    fn feed(
        &self,
        row: IoRecord,
        issue_ns: i64,
        feeds: &mut Feeds,
        state: &mut Feeding,
        stop: &Stop,
    ) -> Fate {
        let timed = self.job.pace == Pace::Timed;
        if timed && self.job.duration_ns.is_some_and(|duration_ns| issue_ns >= duration_ns) {
            return Fate::End;
        }
        let Some((command, sequence)) = self.place(&row, state) else { return Fate::GoOn };
        if state.count_only {
            return Fate::GoOn;
        }
        let complete_ns = row.complete_ns().map(|complete_ns| {
            let order_ns = self.order().time_ns(&row);
            issue_ns.saturating_add(self.at_speed(complete_ns.saturating_sub(order_ns)))
        });
        let (due_ns, gate) = match self.job.pace {
            Pace::Asap => (0, 0),
            Pace::Timed => {
                state.gates.pass(issue_ns, complete_ns);
                (issue_ns, 0)
            }
            Pace::Depth => {
                let gate = state.gates.pass(issue_ns, complete_ns);
                (gate.think_ns, gate.completions)
            }
        };
        let planned = Planned {
            command,
            due_ns,
            gate,
            sequence,
            stream: row.stream,
            part: 0,
            opens_gates: complete_ns.is_some(),
        };
        let submitters = feeds.count();
        let submitter = row.stream.rem_euclid(submitters as i32) as usize;
        let fate = feeds.push(submitter, planned, stop);
        if fate == Fate::CountOnly {
            // A timed replay whose duration is over is late with what is left; without a schedule nothing was due.
            state.count_only = timed;
            return if timed { Fate::GoOn } else { Fate::End };
        }
        fate
    }

    /// Counts an I/O and says where it goes; `None` where it goes nowhere.
    fn place(&self, row: &IoRecord, state: &mut Feeding) -> Option<(Command, u64)> {
        let accounting = &mut state.accounting;
        let (opcode, length_bytes) = (row.opcode, row.length_bytes.max(0) as u64);
        accounting.source.add(opcode, length_bytes);
        if !self.job.keeps(opcode) {
            accounting.filtered.add(opcode, length_bytes);
            return None;
        }
        let too_long = opcode.transfers() && length_bytes > self.transfer_max_bytes;
        if too_long || self.unsupported.contains(&opcode) {
            accounting.unsupported.add(opcode, length_bytes);
            return None;
        }
        let command =
            Command { offset_bytes: row.offset_bytes.max(0) as u64, length_bytes, opcode, flags: row.flags };
        let has_place = opcode == Opcode::Flush || row.offset_bytes >= 0;
        let Some(Placement::At(command, changes)) = has_place.then(|| self.map.place(command)) else {
            accounting.skipped.add(opcode, length_bytes);
            return None;
        };
        // So only where a manifest tells of shorter I/Os than its rows are: no submitter has a buffer for it.
        if opcode.transfers() && command.length_bytes > self.transfer_max_bytes {
            accounting.unsupported.add(opcode, length_bytes);
            return None;
        }
        for (changed, counts) in [
            (changes.wrapped, &mut accounting.wrapped),
            (changes.scaled, &mut accounting.scaled),
            (changes.clipped, &mut accounting.clipped),
            (changes.widened, &mut accounting.widened),
        ] {
            if changed {
                counts.add(opcode, command.length_bytes);
            }
        }
        state.sequence += 1;
        Some((command, state.sequence - 1))
    }
}

/// What the feeder knows of its own progress.
#[derive(Default)]
struct Feeding {
    count_only: bool,
    accounting: Accounting,
    gates: Gates,
    offset_ns: i64,
    sequence: u64,
}
