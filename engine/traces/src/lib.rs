//! Foreign traces decoded into the rows of a recording, and rows encoded as foreign traces.
//!
//! One decoder a file ([`formats`] lists them), one encoder a file ([`encoders`]). The decoders of formats that carry the block
//! layer's events share the assembler, which makes I/Os of them. Everything streams: memory does not grow with the length of a
//! trace. What is read and written, how events become rows, and the limits are described in `docs/trace-formats.md`.

mod alibaba;
mod assembler;
mod begin_order;
mod biosnoop;
mod blkparse;
mod blkreplay;
mod blktrace;
mod csv;
mod decimal;
mod detection;
mod disksim;
mod encode;
mod error;
mod event;
mod event_lines;
mod fio_iolog;
mod format;
mod hfplayer;
mod input;
mod libcachesim_csv;
mod merge;
mod mqsim;
mod msr;
mod numbered_files;
mod octf;
mod options;
mod oracle_general;
mod rows;
mod rwbs;
mod scsi;
mod shown;
mod simulator_words;
mod slab;
mod spc;
mod ssdsim;
mod systor17;
mod tencent;
mod time_order;
mod trace_event;
mod unpack;
mod vscsi;
mod words;

pub use assembler::{Assembler, AssemblerLimits};
pub use detection::{by_name, detect};
pub use encode::{
    encoder_by_name, encoders, EncodeError, EncodeOptions, Encoded, Encoder, NotCarried, Order, Rows, Source,
    Times,
};
pub use error::{Place, TraceError};
pub use event::{BlockEvent, Device, EventKind};
pub use format::{
    decode, formats, Carries, Confidence, Decoded, Dropped, Events, Format, FoundBy, Sink, Volume, Warning,
};
pub use options::{OptionName, Options, TimeUnit};
pub use rwbs::{parse as parse_rwbs, Rwbs};
