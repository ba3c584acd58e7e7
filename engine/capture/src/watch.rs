//! The running capture: buffers are read, events become rows, and it is decided when to end.

use crate::ending::{self, Facts};
use crate::error::CaptureError;
use crate::merge::Filled;
use crate::politeness::Politeness;
use crate::prepared::{monotonic_ns, Prepared};
use crate::progress::{Event, Meters};
use crate::recorder::{Recorder, RowSender};
use crate::request::CaptureRequest;
use crate::route::Router;
use crate::session::Outcome;
use crate::target::Target;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testdrive_recording::{Status, Warning};
use testdrive_traces::{Assembler, AssemblerLimits, BlockEvent, Decoded, Events, Options, Place, TraceError};

/// Between two looks at the buffers, unless they fill faster.
const ROUND: Duration = Duration::from_millis(100);
/// Between two progress lines, and between two times that finished rows are handed to the recordings.
const TELL_EVERY_NS: i64 = 500_000_000;

/// What a capture is about.
pub(crate) struct Setting<'a> {
    pub request: &'a CaptureRequest,
    pub targets: &'a [Target],
    pub recorders: &'a [Recorder],
    /// Becomes the number of a signal.
    pub signal: &'a AtomicUsize,
}

/// What a capture saw, apart from rows.
pub(crate) struct Seen {
    pub outcome: Outcome,
    pub facts: Facts,
    /// Of each target.
    pub decoded: Vec<Decoded>,
}

/// A capture that runs.
pub(crate) struct Watch<'a> {
    setting: &'a Setting<'a>,
    prepared: Prepared,
    router: Router,
    meters: Meters,
    assemblers: Vec<Assembler<'a>>,
    politeness: Politeness,
    start_ns: i64,
    events_lost: u64,
}

/// Which events become a target's rows.
fn row_events(request: &CaptureRequest, target: &Target) -> Option<Events> {
    let issued = !request.recorded.queue || target.gets_requests_from.is_some();
    // Of others it is decided by what comes first: a device may get I/Os that were queued elsewhere.
    issued.then_some(Events::Issued)
}

fn assembler<'a>(
    setting: &Setting<'_>,
    target: &Target,
    sender: &'a mut RowSender,
    start_ns: i64,
) -> Assembler<'a> {
    let options = Options {
        events: row_events(setting.request, target),
        device: Some(target.device),
        ..Options::default()
    };
    // The events come in order already.
    let limits = AssemblerLimits { order_events: 0, ..AssemblerLimits::default() };
    let mut assembler = Assembler::new(&options, limits, sender);
    assembler.begin_at(start_ns);
    assembler
}

/// Why a row could not be handed on.
fn why(error: &TraceError) -> Outcome {
    Outcome { status: Status::Failed, reason: Some(error.to_string()) }
}

impl<'a> Watch<'a> {
    /// Lets the kernel begin.
    ///
    /// # Errors
    /// When it does not.
    pub fn start(
        setting: &'a Setting<'a>,
        prepared: Prepared,
        senders: &'a mut [RowSender],
    ) -> Result<Watch<'a>, CaptureError> {
        let start_ns = monotonic_ns();
        prepared.instance.start()?;
        let pairs = setting.targets.iter().zip(senders);
        let assemblers = pairs.map(|(target, sender)| assembler(setting, target, sender, start_ns)).collect();
        let counted = if setting.request.recorded.queue { Events::Queued } else { Events::Issued };
        Ok(Watch {
            setting,
            prepared,
            router: Router::new(setting.targets),
            meters: Meters::new(setting.targets, counted, start_ns),
            assemblers,
            politeness: Politeness::of_this_thread(),
            start_ns,
            events_lost: 0,
        })
    }

    /// The kernel's buffer for each CPU.
    pub fn buffer_bytes(&self) -> u64 {
        self.prepared.buffer_bytes
    }

    /// Watches until there is a reason to end.
    pub fn run(&mut self, tell: &mut dyn FnMut(Event)) -> Outcome {
        loop {
            let now_ns = monotonic_ns();
            if let Some(end) = self.end(now_ns) {
                return end;
            }
            self.prepared.wait(self.left(now_ns).min(ROUND));
            if let Err(end) = self.round(tell) {
                return end;
            }
        }
    }

    /// Whether there is a reason to end, and which.
    fn end(&self, now_ns: i64) -> Option<Outcome> {
        let request = self.setting.request;
        let over = |status, reason: &str| Some(Outcome { status, reason: Some(reason.into()) });
        let complete = Some(Outcome { status: Status::Complete, reason: None });
        if self.setting.recorders.iter().any(|recorder| recorder.state().has_failed()) {
            return over(Status::Failed, "the recording cannot be written, or its disk is full");
        }
        match self.setting.signal.load(Ordering::Relaxed) as i32 {
            0 => {}
            libc::SIGPIPE => return over(Status::Interrupted, "whoever listened to the capture is gone"),
            // Without a time to end at, a signal is how a capture ends.
            _ if request.duration.is_none() => return complete,
            _ => return over(Status::Interrupted, "stopped by a signal before its time"),
        }
        if self.left(now_ns).is_zero() {
            return complete;
        }
        match request.size_max_bytes {
            Some(most) if self.recorded_bytes() >= most => {
                over(Status::Complete, "the recordings have reached --max-size")
            }
            _ => None,
        }
    }

    fn left(&self, now_ns: i64) -> Duration {
        let elapsed = Duration::from_nanos(now_ns.saturating_sub(self.start_ns).max(0) as u64);
        self.setting.request.duration.map_or(Duration::MAX, |duration| duration.saturating_sub(elapsed))
    }

    fn recorded_bytes(&self) -> u64 {
        self.setting.recorders.iter().map(|recorder| recorder.state().bytes()).sum()
    }

    /// Reads the buffers once, and now and then tells how far it is.
    fn round(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Outcome> {
        let now_ns = monotonic_ns();
        let filled = self.fill(now_ns)?;
        self.politeness.adapt(filled.fullest_share);
        self.pass_on(false)?;
        if now_ns - self.meters.told_ns() >= TELL_EVERY_NS {
            for assembler in &mut self.assemblers {
                assembler.hand_out().map_err(|error| why(&error))?;
            }
            // What cannot be counted now is counted at the end.
            self.events_lost = self.prepared.lost().unwrap_or(self.events_lost);
            tell(self.progress(now_ns));
        }
        Ok(())
    }

    fn progress(&mut self, now_ns: i64) -> Event {
        let (planned_ns, bytes) = (self.setting.request.planned_ns(), self.recorded_bytes());
        Event::Progress(self.meters.progress(now_ns, planned_ns, self.events_lost, bytes))
    }

    /// Reads what the kernel has.
    fn fill(&mut self, now_ns: i64) -> Result<Filled, Outcome> {
        self.prepared.merge.fill(now_ns).map_err(|error| Outcome {
            status: Status::Failed,
            reason: Some(format!("the kernel's buffers could not be read: {error}")),
        })
    }

    /// Hands events to the assemblers of their devices: those that no earlier one can follow, or all.
    fn pass_on(&mut self, all: bool) -> Result<(), Outcome> {
        let (router, meters, assemblers) = (&mut self.router, &mut self.meters, &mut self.assemblers);
        let take = |event: BlockEvent| {
            let mut result = Ok(());
            router.route(event, |index, event| {
                meters.count(index, &event);
                let pushed = assemblers[index].push(event, Path::new("tracefs"), Place::Byte(0));
                if pushed.is_err() {
                    result = pushed;
                }
            });
            result
        };
        let merge = &mut self.prepared.merge;
        let handed = if all { merge.hand_out_all(take) } else { merge.hand_out(take) };
        handed.map_err(|error: TraceError| why(&error))
    }

    /// Stops the kernel, takes what is left in the buffers, and leaves nothing behind.
    pub fn finish(mut self, mut outcome: Outcome, tell: &mut dyn FnMut(Event)) -> Seen {
        // An instance that cannot be stopped is removed all the same.
        let _ = self.prepared.instance.stop();
        let end_ns = monotonic_ns();
        self.politeness.end();
        if let Err(error) = self.drain() {
            if outcome.status != Status::Failed {
                outcome = error;
            }
        }
        self.events_lost = self.prepared.lost().unwrap_or(self.events_lost);
        tell(self.progress(end_ns));
        let request = self.setting.request;
        let facts = Facts {
            start_ns: self.start_ns,
            end_ns,
            events_lost: self.events_lost,
            noted: self.prepared.merge.noted().clone(),
            late_events: self.prepared.merge.late_events(),
            recorded: request.recorded,
            buffer_bytes: self.prepared.buffer_bytes,
            together: self.setting.targets.iter().map(|target| target.name.clone()).collect(),
        };
        let Prepared { merge, instance, .. } = self.prepared;
        drop(merge);
        if let Err(error) = instance.remove() {
            let remedy = "the capture's guard goes on trying; the next capture tries again".into();
            tell(Event::Warning(Warning {
                code: "instance_left".into(),
                message: error.to_string(),
                remedy,
            }));
        }
        let mut decoded = Vec::new();
        for assembler in self.assemblers {
            let mut own = Decoded::default();
            match ending::finished(assembler.finish(Path::new("tracefs"), &mut own)) {
                Err(error) if outcome.status != Status::Failed => outcome = why(&error),
                _ => {}
            }
            decoded.push(own);
        }
        Seen { outcome, facts, decoded }
    }

    /// Takes what is left once the kernel writes no more.
    fn drain(&mut self) -> Result<(), Outcome> {
        while self.fill(monotonic_ns())?.pages > 0 {
            self.pass_on(false)?;
        }
        self.pass_on(true)
    }
}
