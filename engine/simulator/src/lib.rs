//! A drive in virtual time.
//!
//! [`SimulatedDrive`] takes commands at times that the caller chooses and says when each completes. It reads no clock and
//! no file and draws from a seeded generator only, so that the same commands always give the same completions. What it
//! models, what it leaves out and how it was checked is in `docs/modelled-drives.md`.
//!
//! A command's way through the modules, each of which is one part of a drive:
//!
//! | module | part |
//! |---|---|
//! | `drive` | the queue of the interface, and the way of each opcode through the parts below |
//! | `command` | whether a command can be done, and which pages it is about |
//! | `firmware` | one processor that serves every command, and the work that trims leave it with |
//! | `server` | first-come-first-served resources: the processor, either direction of the host link, each channel |
//! | `mapping` | which pages hold data, where they lie, and what writing one costs |
//! | `buffer` | the write buffer in DRAM, one-shot programming units, and who waits for durability |
//! | `nand` | channels, dies and planes |
//! | `events` | what happens next |
//!
//! Parts still to come have their place. The page-mapped translation layer and its garbage collection replace `mapping`,
//! which already answers where a page lies and what its write costs. An SLC cache is a second timing of a program unit,
//! which `nand` is told with each program. Misses of a mapping cache are reads that `nand` does before the read itself.
//! Power and energy are sums over what `nand` and `server` start; faults are statuses that `drive` already carries.

mod buffer;
mod command;
mod drive;
mod events;
mod firmware;
mod mapping;
mod model;
mod nand;
mod parameters;
mod quantity;
mod server;

pub use drive::{Counters, SimulatedDrive};
pub use model::{Figures, Model, ModelError};
pub use parameters::{InitialState, Parameters, ReadTime, TrimMode};

/// Bytes that one entry of the drive's mapping covers; a page is this much throughout the crate.
pub const PAGE_BYTES: u64 = 4096;
