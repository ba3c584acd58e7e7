//! What a decoder is, and which there are.

use crate::event::Device;
use crate::options::{OptionName, Options};
use crate::{
    alibaba, biosnoop, blkparse, blkreplay, blktrace, csv, disksim, fio_iolog, hfplayer, libcachesim_csv,
    mqsim, msr, octf, oracle_general, spc, ssdsim, systor17, tencent, trace_event, vscsi, TraceError,
};
use std::path::{Path, PathBuf};
use testdrive_core::IoRecord;

/// Columns of a recording that a trace may lack, in the order of the recording.
const COLUMNS: [&str; 9] = [
    "intended_ns",
    "submit_ns",
    "latency_ns",
    "offset_bytes",
    "length_bytes",
    "opcode",
    "flags",
    "stream",
    "status",
];

/// A trace format: one implementation a file, listed in [`formats`].
pub trait Format: Sync {
    /// Its name for `--format`.
    fn name(&self) -> &'static str;
    /// What it is and which tool writes it, in one line.
    fn description(&self) -> &'static str;
    /// What traces of it can hold.
    fn carries(&self) -> Carries;
    /// The options that it has a use for.
    fn takes(&self) -> &'static [OptionName];
    /// How sure it is that a file of this name whose content starts with `head` is of this format. What packs the file is neither in
    /// the name nor in the content.
    fn detect(&self, head: &[u8], file_name: &str) -> Confidence;
    /// How it is found where it is not named.
    fn found_by(&self) -> FoundBy {
        FoundBy::Content
    }
    /// What a file that starts with `head` would mean in this format, in a few words, where formats look alike.
    fn reading(&self, _head: &[u8]) -> Option<String> {
        None
    }
    /// Whether a folder holds a trace of this format that is imported as a whole.
    fn takes_folder(&self, _folder: &Path) -> bool {
        false
    }
    /// Decodes files that belong together into rows, by options that fit: call [`decode`], which sees to that.
    ///
    /// # Errors
    /// When a file cannot be read, is not what it should be, or does not fit the options; or when the sink fails.
    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError>;
}

/// Every format that can be decoded. Adding one is adding its file and a line here.
pub fn formats() -> &'static [&'static dyn Format] {
    &[
        &blktrace::Blktrace,
        &blkparse::Blkparse,
        &trace_event::TraceEvent,
        &octf::Octf,
        &biosnoop::Biosnoop,
        &msr::Msr,
        &spc::Spc,
        &alibaba::Alibaba,
        &tencent::Tencent,
        &systor17::Systor17,
        &blkreplay::Blkreplay,
        &fio_iolog::FioIolog,
        &hfplayer::Hfplayer,
        &vscsi::Vscsi,
        &libcachesim_csv::LibCacheSimCsv,
        &oracle_general::OracleGeneral,
        &disksim::DiskSim,
        &ssdsim::SsdSim,
        &mqsim::MqSim,
        &csv::Csv,
    ]
}

/// What traces of a format can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carries {
    /// When the workload queued an I/O, apart from when it was issued.
    pub queue_events: bool,
    /// When I/Os completed.
    pub completions: bool,
    /// Trims.
    pub trims: bool,
    /// Which volume an I/O is of, so that there may be several.
    pub volumes: bool,
}

/// How a format is found where it is not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// By what stands in the file.
    Content,
    /// By the file's name.
    Name,
    /// Several formats look alike: it has to be named.
    Asking,
}

impl FoundBy {
    /// As in lists of formats.
    pub fn name(self) -> &'static str {
        match self {
            FoundBy::Content => "content",
            FoundBy::Name => "name",
            FoundBy::Asking => "asking",
        }
    }
}

/// How sure a format is of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It is something else.
    No,
    /// The name fits and the content does not speak against it.
    Name,
    /// The content fits.
    Content,
}

/// Which events become rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// One row for each I/O that the workload queued.
    Queued,
    /// One row for each request that was handed to the device.
    Issued,
}

impl Events {
    /// As on the command line and in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Events::Queued => "queued",
            Events::Issued => "issued",
        }
    }
}

/// A volume of a trace that tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume<'a> {
    /// Volumes are numbered from 0 as they are first seen; numbers may be left out.
    pub index: usize,
    /// As the trace has it.
    pub name: &'a str,
}

/// Takes the rows as they are decoded.
pub trait Sink {
    /// Takes rows of a volume, as [`Sink::rows`]. All volumes of a trace share one time zero. By default volumes are not kept apart.
    ///
    /// # Errors
    /// As [`Sink::rows`].
    fn volume_rows(
        &mut self,
        _volume: Volume<'_>,
        rows: &[IoRecord],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.rows(rows)
    }
    /// Takes rows, in the order in which they stand in the recording.
    ///
    /// # Errors
    /// When they cannot be kept; decoding ends with this error.
    fn rows(&mut self, rows: &[IoRecord]) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
    /// Hears how far decoding has come, in bytes of the input.
    ///
    /// # Errors
    /// When decoding shall end.
    fn progress(
        &mut self,
        bytes_read: u64,
        bytes_total: u64,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// Events that did not become rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// What they were and why they were dropped.
    pub what: String,
    /// How many.
    pub count: u64,
}

impl Dropped {
    /// What was dropped, without what nothing was dropped of.
    pub(crate) fn list(counted: &[(&str, u64)]) -> Vec<Dropped> {
        let some = counted.iter().filter(|(_, count)| *count > 0);
        some.map(|(what, count)| Dropped { what: (*what).into(), count: *count }).collect()
    }
}

/// Something that makes the figures less valid than they look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Stable name.
    pub code: &'static str,
    /// What is so.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// What became of a trace, apart from its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// Every file that was read.
    pub files: Vec<PathBuf>,
    /// What a row is; `None` where the format does not tell.
    pub events: Option<Events>,
    /// Whose I/Os they are, where the format tells.
    pub device: Option<Device>,
    /// What was subtracted from the trace's times: whole seconds.
    pub shift_ns: i64,
    /// Attempts to queue an I/O that were turned away because it would have had to wait; they are no rows, and their I/Os count from
    /// the first attempt.
    pub turned_away: u64,
    /// Columns of the recording that hold fillers.
    pub absent_columns: Vec<&'static str>,
    /// What was lost or could not be used.
    pub dropped: Vec<Dropped>,
    /// What to beware of.
    pub warnings: Vec<Warning>,
    /// What was done beyond what was asked, in sentences.
    pub notes: Vec<String>,
}

impl Decoded {
    /// Notes events that did not become rows, if there were any.
    pub(crate) fn drop(&mut self, count: u64, what: &str) {
        if count > 0 {
            self.dropped.push(Dropped { what: what.into(), count });
        }
    }

    /// Notes a column that the trace does not have.
    pub(crate) fn absent(&mut self, column: &'static str) {
        if !self.absent_columns.contains(&column) {
            self.absent_columns.push(column);
        }
    }

    /// Warns where completions are missing: of all I/Os, or of more than one in a thousand. The remedies are for either.
    pub(crate) fn warn_of_completions(
        &mut self,
        completions: u64,
        (no_completion, ios): (u64, u64),
        (remedy_for_all, remedy_for_some): (&str, &str),
    ) {
        if completions == 0 {
            let message = "the trace has no completions: there are no latencies".into();
            self.warn("no_completions", message, remedy_for_all);
        } else if no_completion.saturating_mul(1000) > ios {
            let share = 100.0 * no_completion as f64 / ios as f64;
            let message =
                format!("{no_completion} of {ios} I/Os ({share:.1} %) have no completion in the trace");
            self.warn("completions_missing", message, remedy_for_some);
        }
    }

    pub(crate) fn warn(&mut self, code: &'static str, message: String, remedy: &str) {
        let warning = Warning { code, message, remedy: remedy.into() };
        // Of several files each may say the same of the trace.
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// Decodes files that belong together into rows.
///
/// # Errors
/// When an option does not fit the format; and as [`Format::decode`].
pub fn decode(
    format: &dyn Format,
    inputs: &[PathBuf],
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<Decoded, TraceError> {
    options.check(format)?;
    let mut decoded = format.decode(inputs, options, sink)?;
    decoded.absent_columns.sort_by_key(|column| COLUMNS.iter().position(|other| other == column));
    Ok(decoded)
}
