//! A drive in virtual time.
//!
//! [`SimulatedDrive`] takes commands at times that the caller chooses and says when each completes. It reads no clock and
//! no file and draws from a seeded generator only, so that the same commands always give the same completions. What it
//! models, what it leaves out and how it was checked is in `docs/modelled-drive.md`.
//!
//! A command's way through the modules, each of which is one part of a drive:
//!
//! | module | part |
//! |---|---|
//! | `drive` | the queue of the interface, and the way of each opcode through the parts below |
//! | `command` | whether a command can be done, and which pages it is about |
//! | `firmware` | one processor that serves every command, and the work that trims leave it with |
//! | `server` | first-come-first-served resources: the processor, either direction of the host link, each channel |
//! | `ftl` | the translation layer: where each page lies, garbage collection |
//! | `mapping_cache` | the part of the mapping that is in memory |
//! | `contents` | which write of a page it holds, for faults |
//! | `placement` | which die and plane a page's place is on |
//! | `buffer` | the write buffer in DRAM, one-shot programming units, and who waits for durability |
//! | `nand`, `channel` | channels, dies and planes |
//! | `power`, `thermal` | what is drawn, the budget, and the heat |
//! | `events` | what happens next |
//! | `state` | all of it as bytes, and back |
//! | `log`, `counts` | what happened: work of the drive's own with its times, and sums as SMART has them |

mod buffer;
mod channel;
mod command;
mod contents;
mod counts;
mod drive;
mod events;
mod firmware;
mod ftl;
mod log;
mod mapping_cache;
mod model;
mod nand;
mod parameters;
mod placement;
mod power;
mod quantity;
mod server;
mod state;
mod telemetry;
mod thermal;

pub use counts::{Counters, HostCounters};
pub use drive::SimulatedDrive;
pub use ftl::{closed_form_write_amplification, ClosedUnit, PageCounters, ReclaimStep, TranslationLayer};
pub use log::{DriveEvent, DroppedEvents, EventKind, EventLog, EVENTS_MAX, PAUSE_NS_MAX, PIECE_NS};
pub use model::{Figures, Model, ModelError};
pub use parameters::{InitialState, Parameters, ReadTime, SlcWhenFull, Translation, TrimMode};
pub use power::PowerSeries;
pub use state::{StateError, STATE_VERSION};
pub use telemetry::{TelemetrySample, TELEMETRY_STEP_NS};

/// Bytes that one entry of the drive's mapping covers; a page is this much throughout the crate.
pub const PAGE_BYTES: u64 = 4096;
