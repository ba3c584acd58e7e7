//! A modelled drive behind the trait: the clock is the model's, and waiting for it takes no time.

use crate::buffers::WriteData;
use crate::drive::{Drive, SubmitError, Wait};
use crate::sim_state::{restore_state, save_state, SimStateError};
use serde_json::{Map, Value};
use std::io;
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use testdrive_core::{Command, Completion, Opcode};
use testdrive_recording::{
    DriveCounters, DriveEvent, DriveEvents, DriveIdentity, DriveSample, DroppedDriveEvents,
};
use testdrive_simulator::{Model, SimulatedDrive, TelemetrySample, TELEMETRY_STEP_NS};

/// Samples that may wait to be written.
const SAMPLES_WAITING_MAX: usize = 1024;

/// A drive in virtual time. Its state lasts over the phases of a run, so it is made once.
pub struct SimDrive {
    identity: DriveIdentity,
    simulated: SimulatedDrive,
    /// The model's own time at the beginning of this run, which is not its first where its state was restored.
    origin_ns: i64,
    /// From the beginning of this run.
    now_ns: i64,
    queued: Vec<(u32, Command)>,
    telemetry: Option<Telemetry>,
}

/// Where samples go, and when the next are due.
struct Telemetry {
    samples: SyncSender<DriveSample>,
    due_ns: i64,
}

impl SimDrive {
    /// A new drive of this model, at time 0.
    pub fn new(uri: &str, model: Model) -> SimDrive {
        let identity = identity_of(uri, &model);
        SimDrive {
            identity,
            simulated: SimulatedDrive::new(model),
            origin_ns: 0,
            now_ns: 0,
            queued: Vec::new(),
            telemetry: None,
        }
    }

    /// The drive of this model whose state is in a file: it goes on where it was saved, and that is time 0.
    ///
    /// # Errors
    /// When the file is no state of this drive.
    pub fn restored(uri: &str, model: &Model, path: &Path) -> Result<SimDrive, SimStateError> {
        let (simulated, origin_ns) = restore_state(model, path)?;
        let mut identity = identity_of(uri, model);
        identity.settings.insert("restored_from".into(), path.display().to_string().into());
        Ok(SimDrive { identity, simulated, origin_ns, now_ns: 0, queued: Vec::new(), telemetry: None })
    }

    /// Saves the drive as it is now.
    ///
    /// # Errors
    /// When the system refuses, or commands are in flight.
    pub fn save(&self, path: &Path) -> Result<(), SimStateError> {
        save_state(&self.simulated, self.model_now_ns(), path)
    }

    /// What writes carry from now on: a model that compresses stores less of it.
    pub fn set_write_data(&mut self, data: WriteData) {
        self.simulated.set_stored_share(match data {
            WriteData::Incompressible => 1.0,
            WriteData::Zero => 0.0,
            WriteData::CompressibleShare(share) => 1.0 - share.clamp(0.0, 1.0),
        });
    }

    /// The drive that is modelled, for its counters.
    pub fn simulated(&self) -> &SimulatedDrive {
        &self.simulated
    }

    /// Now, on the model's own clock.
    fn model_now_ns(&self) -> i64 {
        self.origin_ns + self.now_ns
    }

    /// Keeps telemetry from now on, for whoever takes it: where nobody does, the drive waits.
    pub fn keep_telemetry(&mut self) -> Receiver<DriveSample> {
        let (samples, taken) = sync_channel(SAMPLES_WAITING_MAX);
        self.simulated.keep_telemetry(self.origin_ns);
        self.telemetry = Some(Telemetry { samples, due_ns: self.now_ns });
        taken
    }

    /// Gives out what is left of the telemetry, and keeps no more.
    pub fn end_telemetry(&mut self) {
        if let Some(telemetry) = self.telemetry.take() {
            let left = self.simulated.finish_telemetry(self.model_now_ns());
            telemetry.send(left, self.origin_ns);
        }
    }

    fn tell_telemetry(&mut self) {
        let now_ns = self.model_now_ns();
        if let Some(telemetry) = self.telemetry.as_mut().filter(|telemetry| telemetry.due_ns <= self.now_ns) {
            telemetry.due_ns = (self.now_ns / TELEMETRY_STEP_NS + 1) * TELEMETRY_STEP_NS;
            telemetry.send(self.simulated.take_telemetry(now_ns), self.origin_ns);
        }
    }

    fn wait(&mut self, wait: Wait, completions: &mut Vec<Completion>) {
        let before = completions.len();
        self.take_completed(completions);
        let (Wait::Until(deadline_ns) | Wait::Asleep(deadline_ns)) = wait else { return };
        while completions.len() == before {
            match self.simulated.next_completion_ns().map(|next_ns| next_ns - self.origin_ns) {
                Some(next_ns) if next_ns <= deadline_ns => {
                    self.now_ns = self.now_ns.max(next_ns);
                    self.take_completed(completions);
                }
                _ => {
                    self.now_ns = self.now_ns.max(deadline_ns);
                    self.simulated.advance(self.model_now_ns());
                    return;
                }
            }
        }
    }

    fn take_completed(&mut self, completions: &mut Vec<Completion>) {
        while let Some(completion) = self.simulated.pop_completed(self.model_now_ns()) {
            let complete_ns = completion.complete_ns - self.origin_ns;
            completions.push(Completion { complete_ns, ..completion });
        }
    }
}

impl Telemetry {
    fn send(&self, samples: Vec<TelemetrySample>, origin_ns: i64) {
        for TelemetrySample { time_ns, energy_uj, power_mw, temperature_mc } in samples {
            let sample = DriveSample { time_ns: time_ns - origin_ns, energy_uj, power_mw, temperature_mc };
            // Who took them has given up, and said why.
            if self.samples.send(sample).is_err() {
                return;
            }
        }
    }
}

fn identity_of(uri: &str, model: &Model) -> DriveIdentity {
    let parameters = model.parameters();
    let settings: Map<String, Value> = match serde_json::to_value(parameters) {
        Ok(Value::Object(settings)) => settings,
        other => unreachable!("a model's parameters are a JSON object, not {other:?}"),
    };
    DriveIdentity {
        uri: uri.into(),
        path: "sim".into(),
        model: model.name().into(),
        serial: String::new(),
        firmware: String::new(),
        capacity_bytes: parameters.capacity_bytes,
        logical_block_bytes: parameters.logical_block_bytes,
        physical_block_bytes: parameters.indirection_unit_bytes,
        modelled: true,
        settings,
    }
}

impl Drive for SimDrive {
    fn identity(&self) -> &DriveIdentity {
        &self.identity
    }

    fn supports(&self, _opcode: Opcode) -> bool {
        true
    }

    fn now_ns(&self) -> i64 {
        self.now_ns
    }

    fn is_gone(&self) -> bool {
        self.simulated.is_gone()
    }

    fn counters(&self) -> Option<DriveCounters> {
        let counters = self.simulated.counters();
        Some(DriveCounters {
            host_read_bytes: Some(counters.host.read_bytes),
            host_written_bytes: Some(counters.host.written_bytes),
            trims: Some(counters.host.trims),
            trimmed_bytes: Some(counters.host.trimmed_bytes),
            nand_written_bytes: Some(self.simulated.nand_written_bytes()),
            moved_pages: Some(counters.pages.moved_pages),
            erases: Some(counters.erases),
            energy_uj: Some(counters.energy_uj),
        })
    }

    fn take_events(&mut self) -> Option<DriveEvents> {
        let now_ns = self.model_now_ns();
        self.simulated.book_power(now_ns);
        let (events, dropped) = self.simulated.take_events(now_ns);
        let events = events.into_iter().map(|event| DriveEvent {
            kind: event.kind.name().into(),
            start_ns: event.start_ns - self.origin_ns,
            end_ns: event.end_ns - self.origin_ns,
            busy_ns: event.busy_ns,
            amount: event.amount,
            unit: event.kind.unit().into(),
        });
        let dropped = dropped.into_iter().map(|(kind, lost)| DroppedDriveEvents {
            kind: kind.name().into(),
            events: lost.events,
            busy_ns: lost.busy_ns,
            amount: lost.amount,
            unit: kind.unit().into(),
        });
        Some(DriveEvents { events: events.collect(), dropped: dropped.collect() })
    }

    fn submit(&mut self, slot: u32, command: &Command) -> Result<(), SubmitError> {
        self.queued.push((slot, *command));
        Ok(())
    }

    fn kick(&mut self) -> io::Result<()> {
        let now_ns = self.model_now_ns();
        for (slot, command) in self.queued.drain(..) {
            self.simulated.submit(now_ns, slot, &command);
        }
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> io::Result<()> {
        self.wait(wait, completions);
        self.tell_telemetry();
        Ok(())
    }
}
