//! What the files of a trace tell of themselves, put together.

use crate::format::Decoded;

/// Gathers the descriptions of files that were read to their end.
#[derive(Default)]
pub(super) struct Descriptions {
    files: usize,
    /// Columns that files lack, and how many files.
    absent: Vec<(&'static str, usize)>,
}

impl Descriptions {
    /// Takes what one file told of itself.
    pub fn take(&mut self, own: Decoded, decoded: &mut Decoded) {
        self.files += 1;
        for column in own.absent_columns {
            match self.absent.iter_mut().find(|(known, _)| *known == column) {
                Some((_, files)) => *files += 1,
                None => self.absent.push((column, 1)),
            }
        }
        for dropped in own.dropped {
            match decoded.dropped.iter_mut().find(|known| known.what == dropped.what) {
                Some(known) => known.count += dropped.count,
                None => decoded.dropped.push(dropped),
            }
        }
        for warning in own.warnings {
            if !decoded.warnings.contains(&warning) {
                decoded.warnings.push(warning);
            }
        }
        for note in own.notes {
            if !decoded.notes.contains(&note) {
                decoded.notes.push(note);
            }
        }
    }

    /// A column is absent where no file has it. One that some files have is there, with fillers in the rows of the others.
    pub fn finish(&self, decoded: &mut Decoded) {
        for &(column, files) in &self.absent {
            if files == self.files {
                decoded.absent(column);
                continue;
            }
            decoded.warn(
                "absent_in_some_files",
                format!("{files} of {} files have no {column}: figures made of it hold fillers", self.files),
                "import these files apart from the others",
            );
        }
    }
}
