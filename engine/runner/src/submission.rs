//! One submitter: it opens its queue on its own thread, waits for the others at the start line, and runs the pacing loop.

use crate::error::RunError;
use crate::feed_queue::Fed;
use crate::generated::Generated;
use crate::orders::{Orders, Pacing, Report};
use crate::phase::PhaseContext;
use crate::placement::pin_this_thread;
use crate::plan::PhasePlan;
use crate::recorder::RowQueue;
use crate::rounds::Rounds;
use crate::source::Source;
use crate::spawn::Verdict;
use crate::start_line::{CancelOnPanic, StartLine};
use crate::worker::Worker;
use serde_json::{Map, Value};
use std::thread;
use std::time::Duration;
use testdrive_core::Histogram;
use testdrive_drives::{
    Device, Drive, IoEngine, NullDrive, PassthruDevice, PassthruDrive, PciQueues, QueueOptions, SimDrive,
    SyncDrive, UringDrive,
};
use testdrive_recording::DriveIdentity;

/// The niceness of a submitting thread, where the process may ask for it. Without it, anything else that runs on the host takes turns
/// with the pacing loop, milliseconds long. -20 would keep the kernel's own threads, which complete the I/O, waiting too.
const SUBMITTER_NICE: i32 = -10;

/// Between the last submitter being ready and the phase's start, so that none starts late.
const START_AFTER_NS: i64 = 300_000;

/// A source that can say when it is ready to be timed.
pub trait Primed: Source + Send {
    /// Whether enough of it is decoded.
    fn is_primed(&self) -> bool;
}

impl Primed for Generated {
    fn is_primed(&self) -> bool {
        Generated::is_primed(self)
    }
}

impl Primed for Fed {
    fn is_primed(&self) -> bool {
        Fed::is_primed(self)
    }
}

/// What one submitter brings back.
pub struct Submitted<'a> {
    /// What it did.
    pub report: Report,
    /// Its end of the recorder's queue.
    pub rows: RowQueue<'a>,
    /// Latencies, of a run that keeps no rows.
    pub histogram: Option<Histogram>,
    /// When it was done.
    pub end_ns: i64,
    /// What its thread took of a CPU, from the start to the end; the kernel's work for it is in it.
    pub cpu_ns: i64,
    /// What the drive's path did.
    pub settings: Map<String, Value>,
}

impl Verdict for Option<Submitted<'_>> {
    fn is_stuck(&self) -> bool {
        self.as_ref().is_some_and(|submitted| submitted.report.unanswered > 0)
    }
}

/// What every submitter of a phase is told.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// What the phase comes to.
    pub plan: &'a PhasePlan<'a>,
    /// How its queue is made.
    pub options: QueueOptions,
    /// Where the submitters start together.
    pub line: &'a StartLine,
    /// The run around it.
    pub context: &'a PhaseContext<'a>,
    /// Which of them this one is.
    pub index: usize,
    /// How many there are.
    pub submitters: usize,
    /// By which the phase is judged while it runs.
    pub rounds: Option<&'a Rounds>,
}

impl<'a> Submission<'a> {
    /// What the `index`-th submitter is told.
    pub fn of(self, index: usize) -> Submission<'a> {
        let depth = self.plan.depth(index, self.submitters);
        let options = QueueOptions { depth, data_seed: 1 + index as u64, ..self.options };
        Submission { index, options, ..self }
    }

    /// Goes to the submitter's CPU, where it has one. To be done before its queue is made, whose memory and helpers are the CPU's then.
    fn take_place(&self) -> Option<()> {
        let Some(cpu) = self.plan.cpu(self.index) else { return Some(()) };
        let Err(error) = pin_this_thread(cpu) else { return Some(()) };
        self.line.fail(RunError::usage(format!("a submitter cannot be kept on CPU {cpu}: {error}")));
        None
    }

    /// Runs on a modelled drive.
    pub fn run_model<S: Primed>(
        &self,
        drive: &mut SimDrive,
        source: S,
        rows: RowQueue<'a>,
    ) -> Option<Submitted<'a>> {
        self.take_place()?;
        self.run(drive, source, rows)
    }

    /// Opens a queue of the null drive on this thread, and runs on it.
    pub fn run_null<S: Primed>(
        &self,
        identity: DriveIdentity,
        source: S,
        rows: RowQueue<'a>,
    ) -> Option<Submitted<'a>> {
        self.take_place()?;
        let mut drive = NullDrive::new(identity, self.options.clock, self.options.depth);
        self.run(&mut drive, source, rows)
    }

    /// Opens a queue of the device on this thread, and runs on it.
    pub fn run_device<S: Primed>(
        &self,
        device: Device,
        engine: IoEngine,
        source: S,
        rows: RowQueue<'a>,
    ) -> Option<Submitted<'a>> {
        self.take_place()?;
        let mut device = device;
        device.identity.settings.insert("submitter_nice".into(), self.take_priority().into());
        let name = device.identity.uri.clone();
        let opened = match engine {
            IoEngine::Sync => {
                return match SyncDrive::new(device, &self.options) {
                    Ok(mut drive) => self.run(&mut drive, source, rows),
                    Err(error) => self.fail(&name, &error),
                }
            }
            IoEngine::IoUring => UringDrive::new(device, &self.options),
        };
        match opened {
            Ok(mut drive) => self.run(&mut drive, source, rows),
            Err(error) => self.fail(&name, &error),
        }
    }

    /// Opens a queue for passthrough on this thread, and runs on it.
    pub fn run_passthru<S: Primed>(
        &self,
        mut device: PassthruDevice,
        source: S,
        rows: RowQueue<'a>,
    ) -> Option<Submitted<'a>> {
        self.take_place()?;
        device.block.identity.settings.insert("submitter_nice".into(), self.take_priority().into());
        let name = device.block.identity.uri.clone();
        match PassthruDrive::new(device, &self.options) {
            Ok(mut drive) => self.run(&mut drive, source, rows),
            Err(error) => self.fail(&name, &error),
        }
    }

    /// Opens a queue of our own driver on this thread, and runs on it.
    pub fn run_pci<S: Primed>(
        &self,
        mut queues: PciQueues,
        source: S,
        rows: RowQueue<'a>,
    ) -> Option<Submitted<'a>> {
        self.take_place()?;
        queues.identity.settings.insert("submitter_nice".into(), self.take_priority().into());
        let name = queues.identity.uri.clone();
        match queues.open(&self.options) {
            Ok(mut drive) => self.run(&mut drive, source, rows),
            Err(error) => self.fail(&name, &error),
        }
    }

    /// Takes the niceness of a submitter, and tells it. To be done before a ring is made: the kernel's helper threads of the ring are as
    /// nice as the thread that made it. A closed loop has no time to keep, and would only take turns from the threads that serve its drive.
    fn take_priority(&self) -> i32 {
        match self.plan.pacing() {
            Pacing::Closed(_) => niceness(),
            Pacing::Timed | Pacing::Gated => prioritise_this_thread(),
        }
    }

    fn fail(&self, name: &str, error: &std::io::Error) -> Option<Submitted<'a>> {
        self.line.fail(RunError::drive(format!("cannot open a queue to {name}: {error}")));
        None
    }

    /// Runs on an open queue; `None` where another submitter could not open its own.
    fn run<D: Drive, S: Primed>(
        &self,
        drive: &mut D,
        source: S,
        rows: RowQueue<'a>,
    ) -> Option<Submitted<'a>> {
        let _cancel = CancelOnPanic(self.line);
        while !source.is_primed() && !self.context.shared.stop.requested() {
            thread::sleep(Duration::from_millis(1));
        }
        let lead_ns = if drive.identity().modelled { 0 } else { START_AFTER_NS };
        let start_ns = self.line.wait(|| drive.now_ns() + lead_ns)?;
        // Before the first I/O, so that its row finds it.
        let streams = self.plan.stream_names().len() as u16;
        self.context.shared.phase_starts.tell(self.context.index, start_ns, streams);
        let orders = Orders {
            pacing: self.plan.pacing(),
            depth: self.options.depth,
            // Only a replay has an order that its submitters share.
            shared_order: self.submitters > 1 && self.plan.is_replay(),
            start_ns,
            end_ns: self.plan.duration_ns().map(|duration_ns| start_ns + duration_ns),
            limits: self.plan.limits(self.submitters),
            max_lag: self.plan.max_lag(),
            tells_completions: self.plan.follows_completions(),
            counts_overdue: !self.plan.is_replay(),
            io_timeout_ns: self.context.io_timeout_ns,
            on_error: self.context.on_error,
            phase: self.context.index,
        };
        let settings = drive.identity().settings.clone();
        let worker = Worker::new(drive, source, orders, self.context.shared, rows).judged_by(self.rounds);
        let cpu_before_ns = thread_cpu_ns();
        let (report, rows, histogram) = worker.run();
        let cpu_ns = thread_cpu_ns() - cpu_before_ns;
        Some(Submitted { report, rows, histogram, end_ns: drive.now_ns(), cpu_ns, settings })
    }
}

/// Asks for [`SUBMITTER_NICE`] for the calling thread; returns the niceness that it has then.
fn prioritise_this_thread() -> i32 {
    // SAFETY: the call takes integers only; 0 names the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, SUBMITTER_NICE) };
    niceness()
}

/// What the calling thread has taken of a CPU so far.
fn thread_cpu_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills in the structure that it is given, which lives until it returns.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The niceness of the calling thread.
fn niceness() -> i32 {
    // SAFETY: the call takes integers only; 0 names the calling thread.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}
