//! Binary blktrace: `NAME.blktrace.CPU`, as the kernel writes it and `blktrace` and `btrace` keep it.

mod record;
mod source;

use crate::assembler::{Assembler, AssemblerLimits};
use crate::format::{Carries, Confidence, Decoded, Format, Sink};
use crate::input::Progress;
use crate::merge::{Merge, Placed};
use crate::numbered_files::NumberedFiles;
use crate::options::{OptionName, Options};
use crate::{Place, TraceError};
use record::ByteOrder;
use source::{Skipped, Source};
use std::path::{Path, PathBuf};

/// One file for each CPU.
pub(crate) const FILES: NumberedFiles = NumberedFiles {
    infix: ".blktrace.",
    name: None,
    pattern: "NAME.blktrace.CPU",
    numbers: "CPUs",
    missing_code: "cpu_files_missing",
};

/// The format, versions 7 and 8, of either byte order.
pub(crate) struct Blktrace;

impl Format for Blktrace {
    fn name(&self) -> &'static str {
        "blktrace"
    }

    fn description(&self) -> &'static str {
        "binary blktrace, versions 7 and 8: NAME.blktrace.CPU files of one trace, or the folder that holds them"
    }

    fn carries(&self) -> Carries {
        Carries { queue_events: true, completions: true, trims: true, volumes: false }
    }

    fn takes(&self) -> &'static [OptionName] {
        &[OptionName::Events, OptionName::Device]
    }

    fn detect(&self, head: &[u8], _file_name: &str) -> Confidence {
        match ByteOrder::of_magic(head) {
            Some(_) => Confidence::Content,
            None => Confidence::No,
        }
    }

    fn takes_folder(&self, folder: &Path) -> bool {
        FILES.are_in(folder)
    }

    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError> {
        let mut decoded = Decoded::default();
        let paths = FILES.of_trace(inputs, &mut decoded)?;
        let mut progress = Progress::over(&paths)?;
        let mut assembler = Assembler::new(options, AssemblerLimits::default(), sink);
        let open = |path: &PathBuf| Source::open(path, paths.len());
        let sources: Result<Vec<Source>, TraceError> = paths.iter().map(open).collect();
        let merge = Merge::new(sources?)?.read_ahead(|batch| {
            for &Placed { item: (event, offset), source } in &batch.items {
                assembler.push(event, &paths[source as usize], Place::Byte(offset))?;
            }
            if progress.is_due(batch.bytes_read) {
                assembler.progress(batch.bytes_read, progress.bytes_total)?;
            }
            Ok(())
        })?;
        assembler.progress(merge.bytes_read(), progress.bytes_total)?;
        describe(&merge.sources, &mut decoded);
        assembler.finish(&paths[0], &mut decoded)?;
        decoded.files = paths;
        Ok(decoded)
    }
}

/// Notes what of the files is no event of an I/O.
fn describe(sources: &[Source], decoded: &mut Decoded) {
    let sum = |count: fn(&Skipped) -> u64| sources.iter().map(|source| count(&source.skipped)).sum();
    decoded.drop(sum(|skipped| skipped.passthrough), "commands passed through to the driver");
    decoded.drop(sum(|skipped| skipped.zone), "zone commands");
    let truncated: u64 = sum(|skipped| skipped.truncated);
    decoded.drop(truncated, "records cut off at the end of a file");
    if truncated > 0 {
        let cut = sources.iter().filter(|source| source.skipped.truncated > 0);
        let names: Vec<String> = cut.map(|source| source.input.path.display().to_string()).collect();
        decoded.warn(
            "truncated",
            format!(
                "the last record is cut off in {}: the trace was not written to its end",
                names.join(", ")
            ),
            "check that the copy is whole; what stands before was imported",
        );
    }
}
