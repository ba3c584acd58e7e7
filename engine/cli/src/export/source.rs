//! A recording as the source of an export: the rows of the chosen phases, with progress told and signals heeded.

use super::ExportError;
use crate::lines::tell_line;
use crate::signals::Stopped;
use serde_json::{json, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::error::Error;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testdrive_core::IoRecord;
use testdrive_recording::{OrderBy, Phases, Recording, RecordingError};
use testdrive_traces::{Device, Order, Rows, Source};

/// Between two progress lines.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// Rows between two looks at the clock and the signals.
const LOOK_EVERY: u64 = 4096;

/// The phases that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// Those whose metrics count.
    Measured,
    /// Every row.
    All,
    /// Those of these names.
    Named(Vec<String>),
}

impl FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> Result<Chosen, String> {
        match text {
            "measured" => Ok(Chosen::Measured),
            "all" => Ok(Chosen::All),
            names => Ok(Chosen::Named(names.split(',').map(|name| name.trim().to_string()).collect())),
        }
    }
}

impl Chosen {
    /// The phases of a recording that this names.
    fn of(&self, recording: &Recording) -> Result<Phases, ExportError> {
        let all = &recording.manifest.phases;
        let named = match self {
            Chosen::All => return Ok(Phases::All),
            Chosen::Measured => all.iter().filter(|phase| phase.measured).map(|phase| phase.index).collect(),
            Chosen::Named(names) => {
                let mut indices = BTreeSet::new();
                for name in names {
                    let of_name = all.iter().filter(|phase| phase.name == *name).map(|phase| phase.index);
                    let before = indices.len();
                    indices.extend(of_name);
                    if indices.len() == before {
                        let known: Vec<&str> = all.iter().map(|phase| phase.name.as_str()).collect();
                        let message = format!(
                            "the recording has no phase '{name}' beside those named before; its phases are {}",
                            known.join(", ")
                        );
                        return Err(ExportError::Usage(message));
                    }
                }
                indices
            }
        };
        Ok(Phases::Only(named))
    }
}

/// The chosen rows of a recording.
pub(super) struct RecordingSource<'r> {
    recording: &'r Recording,
    phases: Phases,
    rows_of_a_pass: u64,
    state: State,
}

/// How far all passes together have come.
struct State {
    stop: Arc<AtomicBool>,
    passes: Cell<u64>,
    rows: Cell<u64>,
    rows_total: Cell<u64>,
    told: RefCell<Option<Instant>>,
}

impl<'r> RecordingSource<'r> {
    pub fn new(
        recording: &'r Recording,
        chosen: &Chosen,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, ExportError> {
        if let Some(reason) = recording.not_every_row() {
            return Err(ExportError::Usage(format!("it cannot be exported: {reason}")));
        }
        let phases = chosen.of(recording)?;
        let rows_of_a_pass = recording.rows_read_of(&phases)?;
        let state = State {
            stop,
            passes: Cell::new(0),
            rows: Cell::new(0),
            rows_total: Cell::new(0),
            told: RefCell::new(None),
        };
        Ok(RecordingSource { recording, phases, rows_of_a_pass, state })
    }

    /// Tells that everything was read: rows that an order leaves out are not seen one by one.
    pub fn tell_end(&self) {
        self.state.tell(self.state.rows_total.get());
    }
}

impl State {
    fn tell(&self, rows: u64) {
        let passes = self.passes.get().max(1);
        let line = json!({
            "event": "progress", "rows": rows / passes, "rows_total": self.rows_total.get() / passes,
        });
        tell_line(&line);
    }

    /// Counts a row that was read; now and then tells of it and looks for a signal.
    fn seen(&self) -> Result<(), Stopped> {
        let rows = self.rows.get() + 1;
        self.rows.set(rows);
        if !rows.is_multiple_of(LOOK_EVERY) {
            return Ok(());
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        let mut told = self.told.borrow_mut();
        if told.is_none_or(|told| told.elapsed() >= PROGRESS_EVERY) {
            *told = Some(Instant::now());
            self.tell(rows);
        }
        Ok(())
    }
}

impl Source for RecordingSource<'_> {
    fn rows(&self, order: Order) -> Result<Rows<'_>, Box<dyn Error + Send + Sync>> {
        let order = match order {
            Order::Intended => OrderBy::Intended,
            Order::Submit => OrderBy::Submit,
            Order::Began => OrderBy::Began,
            Order::Completion => OrderBy::Completion,
        };
        self.state.passes.set(self.state.passes.get() + 1);
        self.state.rows_total.set(self.state.rows_total.get() + self.rows_of_a_pass);
        let rows = self.recording.ordered_rows_of(order, &self.phases)?;
        Ok(Box::new(rows.map(|row| self.take(row))))
    }

    fn began_ns(&self) -> Result<Option<i64>, Box<dyn Error + Send + Sync>> {
        Ok(self.recording.began_ns(&self.phases)?)
    }

    fn lacks(&self, column: &str) -> bool {
        self.recording.manifest.absent_columns.iter().any(|absent| absent == column)
    }

    fn device(&self) -> Option<Device> {
        self.recording.manifest.source.get("device").and_then(Value::as_str).and_then(Device::parse)
    }
}

impl RecordingSource<'_> {
    fn take(&self, row: Result<IoRecord, RecordingError>) -> Result<IoRecord, Box<dyn Error + Send + Sync>> {
        let row = row?;
        self.state.seen()?;
        Ok(row)
    }
}
