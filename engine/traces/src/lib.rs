//! Foreign traces decoded into the rows of a recording.
//!
//! One decoder a file ([`formats`] lists them). Those that carry the block layer's events share the assembler, which makes I/Os
//! of them. Everything streams: memory does not grow with the length of a trace. What is read, how events become rows, and the
//! limits are described in `docs/trace-formats.md`.

mod assembler;
mod blkparse;
mod blktrace;
mod csv;
mod error;
mod event;
mod event_lines;
mod format;
mod input;
mod rwbs;
mod slab;
mod trace_event;
mod words;

pub use assembler::{Assembler, AssemblerLimits};
pub use error::{Place, TraceError};
pub use event::{BlockEvent, Device, EventKind};
pub use format::{
    by_name, detect, formats, Carries, Confidence, Decoded, Dropped, Events, Format, Options, Sink, Warning,
};
pub use rwbs::{parse as parse_rwbs, Rwbs};
