//! What an encoder is, and which there are: recordings written as traces that other tools read.

mod blkparse;
mod csv;
mod error;
mod fio_iolog;
mod losses;

use crate::event::Device;
use crate::format::Dropped;
use std::error::Error;
use std::io::Write;
use testdrive_core::{IoRecord, OpcodeCounts, NS_PER_S};

pub use error::EncodeError;
pub use losses::NotCarried;

/// A format that recordings can be written in: one implementation a file, listed in [`encoders`].
pub trait Encoder: Sync {
    /// Its name for `--format`.
    fn name(&self) -> &'static str;
    /// What it is and which tool reads it, in one line.
    fn description(&self) -> &'static str;
    /// Writes the rows of a source, as a stream: memory does not grow with their number.
    ///
    /// # Errors
    /// When there is nothing to write, the format has no way to say what the source has or what the options ask for, the source
    /// cannot be read, or the output fails.
    fn encode(
        &self,
        source: &dyn Source,
        options: &EncodeOptions,
        output: &mut dyn Write,
    ) -> Result<Encoded, EncodeError>;
}

/// Every format that can be encoded. Adding one is adding its file and a line here.
pub fn encoders() -> &'static [&'static dyn Encoder] {
    &[&fio_iolog::FioIolog, &blkparse::Blkparse, &csv::Csv]
}

/// The encoder of a name.
///
/// # Errors
/// When there is none of this name.
pub fn encoder_by_name(name: &str) -> Result<&'static dyn Encoder, EncodeError> {
    let found = encoders().iter().find(|encoder| encoder.name() == name);
    found.copied().ok_or_else(|| {
        let known: Vec<&str> = encoders().iter().map(|encoder| encoder.name()).collect();
        EncodeError::Usage(format!("nothing is exported as '{name}'; the formats are {}", known.join(", ")))
    })
}

/// The order in which rows are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By the intended time.
    Intended,
    /// By the submit time.
    Submit,
    /// By the earlier of both.
    Began,
    /// By the completion. Rows whose completion was not seen are left out; of those that complete at the same time, the ones that
    /// took no time at all come last.
    Completion,
}

/// Rows, or why there are no more.
pub type Rows<'s> = Box<dyn Iterator<Item = Result<IoRecord, Box<dyn Error + Send + Sync>>> + 's>;

/// Gives the rows that are to be written; the counterpart of [`crate::Sink`].
pub trait Source {
    /// Every row, in this order; equal times keep the order in which they were recorded.
    ///
    /// # Errors
    /// When they cannot be read.
    fn rows(&self, order: Order) -> Result<Rows<'_>, Box<dyn Error + Send + Sync>>;
    /// The least intended or submit time of all rows; `None` where there is no row.
    ///
    /// # Errors
    /// When it cannot be read.
    fn began_ns(&self) -> Result<Option<i64>, Box<dyn Error + Send + Sync>>;
    /// Whether a column holds fillers because its source had none.
    fn lacks(&self, column: &str) -> bool;
    /// Whose I/Os they are, where that is known.
    fn device(&self) -> Option<Device>;
}

/// Which time is written where a format has room for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// When the workload wanted it.
    Intended,
    /// When it was handed to the device.
    Submit,
}

impl Times {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Times::Intended => "intended",
            Times::Submit => "submit",
        }
    }
}

/// What the person who exports asked for.
#[derive(Clone, Debug, Default)]
pub struct EncodeOptions {
    /// For fio: the file or device that the trace names.
    pub target: Option<String>,
    /// For fio: which time is written; the intended one by default.
    pub times: Option<Times>,
    /// For blkparse: the device that the trace names; by default the source's.
    pub device: Option<Device>,
}

/// What became of the rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Encoded {
    /// Rows that stand in the output.
    pub written: OpcodeCounts,
    /// What was subtracted from the recording's times: whole seconds.
    pub shift_ns: i64,
    /// Rows that do not stand in the output.
    pub dropped: Vec<Dropped>,
    /// What the output does not say of the rows that stand in it.
    pub not_carried: Vec<NotCarried>,
    /// What was done beyond what was asked, in sentences.
    pub notes: Vec<String>,
}

/// What is subtracted from all times, so that the first I/O falls in second 0 and fractions still match the recording's.
fn shift_ns(source: &dyn Source) -> Result<i64, EncodeError> {
    let began_ns = source.began_ns().map_err(EncodeError::Source)?.ok_or(EncodeError::NoIos)?;
    Ok(began_ns.div_euclid(NS_PER_S).saturating_mul(NS_PER_S))
}

/// Refuses a source that lacks what the format cannot do without.
fn require(source: &dyn Source, format: &str, columns: &[&'static str]) -> Result<(), EncodeError> {
    match columns.iter().find(|column| source.lacks(column)) {
        Some(column) => Err(EncodeError::Usage(format!(
            "the recording has no {column}, which {format} cannot do without: export it as csv, which leaves out what is absent"
        ))),
        None => Ok(()),
    }
}

/// Refuses an option that the format has no use for.
fn refuse(given: bool, option: &str, format: &str, why: &str) -> Result<(), EncodeError> {
    if given {
        return Err(EncodeError::Usage(format!("{option} does not fit {format}: {why}")));
    }
    Ok(())
}
