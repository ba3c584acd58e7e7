//! Binary blktrace: `NAME.blktrace.CPU`, as the kernel writes it and `blktrace` and `btrace` keep it.

mod files;
mod merge;
mod record;
mod source;

use crate::assembler::{Assembler, AssemblerLimits};
use crate::format::{Carries, Confidence, Decoded, Format, Sink};
use crate::input::Progress;
use crate::options::{OptionName, Options};
use crate::{Place, TraceError};
use merge::Merge;
use record::ByteOrder;
use std::path::{Path, PathBuf};

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
        files::in_folder(folder).is_ok_and(|found| !found.is_empty())
    }

    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError> {
        let mut decoded = Decoded::default();
        let paths = files::of_trace(inputs, &mut decoded)?;
        let mut progress = Progress::over(&paths)?;
        let mut assembler = Assembler::new(options, AssemblerLimits::default(), sink);
        let merge = Merge::open(&paths)?.read_ahead(|batch| {
            for placed in &batch.events {
                let source = placed.source as usize;
                assembler.push(placed.event, &paths[source], Place::Byte(placed.offset))?;
            }
            if progress.is_due(batch.bytes_read) {
                assembler.progress(batch.bytes_read, progress.bytes_total)?;
            }
            Ok(())
        })?;
        assembler.progress(merge.bytes_read(), progress.bytes_total)?;
        merge.describe(&mut decoded);
        assembler.finish(&paths[0], &mut decoded)?;
        decoded.files = paths;
        Ok(decoded)
    }
}
