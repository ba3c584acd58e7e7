//! Decodes a recording ahead of the submitters, places its I/Os on the drive, and queues them; never on a submitting thread.

use crate::accounting::{Accounting, Depth};
use crate::error::RunError;
use crate::gates::Gates;
use crate::job::{Events, Pace, ReplayJob, TRANSFER_MAX_BYTES};
use crate::source::{Peek, Planned, Source};
use crate::stop::Stop;
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use testdrive_core::{Command, IoRecord, LbaMap, Opcode, Placement};
use testdrive_recording::{OrderBy, Recording, RecordingError};

/// I/Os decoded ahead for each submitter: 4 MiB.
const AHEAD: usize = 65_536;
/// How long the feeder sleeps when every submitter has enough.
const FULL_SLEEP: Duration = Duration::from_micros(200);

/// The queue from the feeder to one submitter.
pub struct Fed {
    queue: Consumer<Planned>,
    /// The feeder waits because some queue is full: then an empty one of several is not starved, its next I/O only comes later. A
    /// queue that is alone has nothing to be held back by.
    waiting: Option<Arc<AtomicBool>>,
}

/// The feeder's ends of the queues.
pub struct Feeds {
    queues: Vec<Producer<Planned>>,
    waiting: Arc<AtomicBool>,
}

/// A queue for each of `submitters`.
pub fn queues(submitters: usize) -> (Feeds, Vec<Fed>) {
    let waiting = Arc::new(AtomicBool::new(false));
    let (queues, feds) = (0..submitters)
        .map(|_| {
            let (producer, queue) = RingBuffer::new(AHEAD);
            (producer, Fed { queue, waiting: (submitters > 1).then(|| Arc::clone(&waiting)) })
        })
        .unzip();
    (Feeds { queues, waiting }, feds)
}

impl Fed {
    /// Whether the submitter may start: enough is decoded, or all is.
    pub fn is_primed(&self) -> bool {
        self.queue.slots() >= AHEAD / 2 || self.queue.is_abandoned() || self.is_held_back()
    }

    fn is_held_back(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.load(Ordering::Relaxed))
    }
}

impl Source for Fed {
    #[inline]
    fn peek(&mut self) -> Peek {
        if let Ok(planned) = self.queue.peek() {
            return Peek::Ready(*planned);
        }
        if !self.queue.is_abandoned() {
            return if self.is_held_back() { Peek::HeldBack } else { Peek::Starved };
        }
        // The feeder may have pushed its last between the two looks.
        match self.queue.peek() {
            Ok(planned) => Peek::Ready(*planned),
            Err(_) => Peek::End,
        }
    }

    #[inline]
    fn take(&mut self) {
        let _ = self.queue.pop();
    }
}

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

/// Whether feeding goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    GoOn,
    /// Nobody takes I/Os any more, but what the schedule still held is to be counted.
    CountOnly,
    End,
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
            let time_ns = order.time_ns(&row) - base_ns;
            if time_ns < self.job.from_ns {
                continue;
            }
            if self.job.to_ns.is_some_and(|to_ns| time_ns >= to_ns) {
                break;
            }
            rows += 1;
            first_ns.get_or_insert(time_ns);
            last_ns = time_ns;
            let issue_ns = ((time_ns - self.job.from_ns) as f64 / self.job.speed) as i64 + state.offset_ns;
            if self.feed(row, issue_ns, feeds, state, stop) == Fate::End {
                return Ok(Fate::End);
            }
        }
        let length_ns = match (self.job.to_ns, first_ns) {
            (Some(to_ns), _) => to_ns - self.job.from_ns,
            // Without an end of its own, a pass ends one mean gap after its last I/O.
            (None, Some(first_ns)) => last_ns - self.job.from_ns + (last_ns - first_ns) / (rows - 1).max(1),
            (None, None) => 0,
        };
        state.offset_ns += (length_ns as f64 / self.job.speed) as i64;
        Ok(Fate::GoOn)
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
            issue_ns + ((complete_ns - order_ns) as f64 / self.job.speed) as i64
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
        let submitters = feeds.queues.len();
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

impl Feeds {
    /// How many submitters are fed.
    pub fn count(&self) -> usize {
        self.queues.len()
    }

    /// Hands over a time alone; false when nobody takes it any more.
    pub fn push_time(&mut self, submitter: usize, time: Planned, stop: &Stop) -> bool {
        self.push(submitter, time, stop) == Fate::GoOn
    }

    fn push(&mut self, submitter: usize, planned: Planned, stop: &Stop) -> Fate {
        let queue = &mut self.queues[submitter];
        while queue.is_full() {
            self.waiting.store(true, Ordering::Relaxed);
            if stop.requested() {
                return Fate::End;
            }
            if queue.is_abandoned() {
                return Fate::CountOnly;
            }
            thread::sleep(FULL_SLEEP);
        }
        self.waiting.store(false, Ordering::Relaxed);
        if queue.is_abandoned() {
            return Fate::CountOnly;
        }
        match queue.push(planned) {
            Ok(()) => Fate::GoOn,
            Err(_) => unreachable!("only the feeder pushes, and there was room"),
        }
    }
}

/// Refuses a source that cannot be replayed as the job asks.
///
/// # Errors
/// A usage error that says what the source lacks.
pub fn check_source(recording: &Recording, job: &ReplayJob) -> Result<(), RunError> {
    if let Some(reason) = recording.not_every_row() {
        return Err(RunError::usage(format!("it cannot be replayed: {reason}")));
    }
    let name = recording.directory().display();
    let absent = |column: &str| recording.manifest.absent_columns.iter().any(|absent| absent == column);
    for column in ["offset_bytes", "length_bytes", "opcode"] {
        if absent(column) {
            let message = format!(
                "{name} does not tell {column}, so it cannot be replayed: import it with that column"
            );
            return Err(RunError::usage(message));
        }
    }
    let counts = &recording.manifest.counts;
    if counts.ios == 0 {
        return Err(RunError::usage(format!("{name} holds no I/Os: there is nothing to replay")));
    }
    let kept = Opcode::ALL.into_iter().any(|opcode| counts.by_opcode.of(opcode).ios > 0 && job.keeps(opcode));
    if !kept {
        return Err(RunError::usage(format!(
            "'only' and 'without' leave no I/O of {name}: it has {}",
            names(recording)
        )));
    }
    if job.pace == Pace::Depth && counts.no_completion == counts.ios {
        let message =
            format!("{name} has no completions, which pace 'depth' needs: use pace 'timed' or 'asap'");
        return Err(RunError::usage(message));
    }
    let transfer_max_bytes =
        [Opcode::Read, Opcode::Write].map(|opcode| counts.by_opcode.of(opcode).length_max_bytes);
    if transfer_max_bytes.into_iter().any(|bytes| bytes > TRANSFER_MAX_BYTES) {
        let message = format!("{name} has a transfer of more than 256 MiB, which no drive takes: is the unit of its lengths right?");
        return Err(RunError::usage(message));
    }
    Ok(())
}

fn names(recording: &Recording) -> String {
    let counts = recording.manifest.counts.by_opcode;
    let seen = Opcode::ALL.into_iter().filter(|opcode| counts.of(*opcode).ios > 0);
    seen.map(Opcode::name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_of_several_submitters_can_be_held_back() {
        let (feeds, mut alone) = queues(1);
        feeds.waiting.store(true, Ordering::Relaxed);
        // Virtual time would go on for a submitter that is held back, while the feeder only has not come round yet.
        assert_eq!(alone[0].peek(), Peek::Starved);
        let (feeds, mut several) = queues(2);
        assert_eq!(several[0].peek(), Peek::Starved);
        feeds.waiting.store(true, Ordering::Relaxed);
        assert_eq!(several[0].peek(), Peek::HeldBack);
    }
}
