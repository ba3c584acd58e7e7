//! Captures the block I/O of devices live, through a tracefs instance of its own.
//!
//! The kernel writes the block layer's trace events of the captured devices into buffers of each CPU, as binary pages; we read the
//! pages, put the events in order, and the assembler of `testdrive-traces` makes I/Os of them. How to use it, what it costs and what
//! it needs are described in `docs/capture.md`.

mod decode;
mod ending;
mod error;
mod filter;
mod instance;
mod layout;
mod merge;
mod page;
mod politeness;
mod prepared;
mod progress;
mod recorder;
mod request;
mod route;
mod session;
mod stale;
mod stream;
mod target;
mod tracefs;
mod watch;

pub use error::CaptureError;
pub use filter::Recorded;
pub use progress::{DeviceProgress, Event, FinishedRecording, Progress, StartedDevice, Totals};
pub use request::CaptureRequest;
pub use session::{capture, HostRoots, Outcome};
pub use tracefs::Roots as TraceRoots;
