//! The files of a trace as one stream of rows in the order of time, whichever order they are named in.

use super::descriptions::Descriptions;
use super::{Block, Gather, Row, RowReader};
use crate::format::Decoded;
use crate::{Place, TraceError};
use std::path::{Path, PathBuf};

/// More files than this do not overlap in time: each that is open holds buffers.
const OPEN_MAX: usize = 128;

/// Rows of one file that come next.
pub(crate) struct Run<'r> {
    pub path: &'r Path,
    pub rows: &'r [Row],
    /// See [`RowReader::is_in_order_of_ends`].
    pub in_order_of_ends: bool,
    base: u64,
    is_bytes: bool,
}

impl<'r> Run<'r> {
    /// All rows of a block.
    pub fn of(path: &'r Path, block: &'r Block, in_order_of_ends: bool) -> Run<'r> {
        Run { path, rows: &block.rows, in_order_of_ends, base: block.base, is_bytes: block.is_bytes }
    }

    /// Where one of its rows stands.
    pub fn place(&self, row: &Row) -> Place {
        let at = self.base.saturating_add_signed(row.place.into());
        if self.is_bytes {
            Place::Byte(at)
        } else {
            Place::Line(at)
        }
    }
}

/// A file whose rows are being handed out.
struct Active<R> {
    path: PathBuf,
    reader: R,
    block: Block,
    /// How many rows of the block are handed out.
    taken: usize,
    more: bool,
}

impl<R: RowReader> Active<R> {
    fn open(path: &Path, reader: R) -> Active<R> {
        Active { path: path.to_path_buf(), reader, block: Block::default(), taken: 0, more: true }
    }

    /// When its next row began, `None` at its end. Reads on where there are none in memory.
    fn next_ns(&mut self, gather: &mut Gather) -> Result<Option<i64>, TraceError> {
        while self.taken == self.block.rows.len() && self.more {
            self.taken = 0;
            self.more = self.reader.read(&mut self.block, gather)?;
        }
        Ok(self.block.rows.get(self.taken).map(Row::time_ns))
    }

    /// Takes its next rows, up to the first that begins after `until_ns`, but one at least.
    fn take(&mut self, until_ns: i64) -> Run<'_> {
        let from = self.taken;
        let rest = &self.block.rows[from..];
        let count = if until_ns == i64::MAX {
            rest.len()
        } else {
            rest.iter().skip(1).take_while(|row| row.time_ns() <= until_ns).count() + 1
        };
        self.taken = from + count;
        let whole = Run::of(&self.path, &self.block, self.reader.is_in_order_of_ends());
        Run { rows: &self.block.rows[from..self.taken], ..whole }
    }
}

/// A file that is opened once its first row comes next.
struct Waiting {
    path: PathBuf,
    first_ns: i64,
}

/// The files of a trace.
pub(crate) struct Files<R, O> {
    open: O,
    active: Vec<Active<R>>,
    /// The earliest last.
    waiting: Vec<Waiting>,
    /// Of files that were read to their end.
    done_bytes: u64,
    descriptions: Descriptions,
}

impl<R: RowReader, O: Fn(&Path) -> Result<R, TraceError>> Files<R, O> {
    /// Opens a trace. Of several files the first rows are read to put them in order; files without a row are passed over.
    pub fn open(inputs: &[PathBuf], open: O, gather: &mut Gather) -> Result<Files<R, O>, TraceError> {
        let descriptions = Descriptions::default();
        let mut files = Files { open, active: Vec::new(), waiting: Vec::new(), done_bytes: 0, descriptions };
        if let [path] = inputs {
            let mut file = Active::open(path, (files.open)(path)?);
            if file.next_ns(gather)?.is_none() && file.reader.file_bytes() == 0 {
                return Err(TraceError::Empty { path: path.clone() });
            }
            files.active.push(file);
            return Ok(files);
        }
        for path in inputs {
            if !path.is_file() {
                let message = format!(
                    "{} is no regular file: several files are put in order by their first rows, so that each is opened twice",
                    path.display()
                );
                return Err(TraceError::Usage(message));
            }
            let mut file = Active::open(path, (files.open)(path)?);
            let mut counted = Gather::default();
            match file.next_ns(&mut counted)? {
                // What is counted here is counted again when the file is read.
                Some(first_ns) => files.waiting.push(Waiting { path: path.clone(), first_ns }),
                None => {
                    gather.take_dropped(counted);
                    files.done_bytes += file.reader.file_bytes();
                }
            }
        }
        files.waiting.sort_by_key(|file| std::cmp::Reverse(file.first_ns));
        Ok(files)
    }

    /// The rows that come next; `None` when all were handed out.
    pub fn next(
        &mut self,
        gather: &mut Gather,
        decoded: &mut Decoded,
    ) -> Result<Option<Run<'_>>, TraceError> {
        let Some((index, until_ns)) = self.earliest(gather, decoded)? else { return Ok(None) };
        Ok(Some(self.active[index].take(until_ns)))
    }

    /// Notes what the files together lack, once all of them were read.
    pub fn describe(&self, decoded: &mut Decoded) {
        self.descriptions.finish(decoded);
    }

    /// Bytes read of all files.
    pub fn file_bytes(&self) -> u64 {
        self.done_bytes + self.active.iter().map(|file| file.reader.file_bytes()).sum::<u64>()
    }

    /// The open file whose next row is the earliest, and when the earliest of the other files' rows begins.
    fn earliest(
        &mut self,
        gather: &mut Gather,
        decoded: &mut Decoded,
    ) -> Result<Option<(usize, i64)>, TraceError> {
        loop {
            let (mut best, mut best_ns, mut second_ns, mut index) = (None, i64::MAX, i64::MAX, 0);
            while index < self.active.len() {
                let Some(time_ns) = self.active[index].next_ns(gather)? else {
                    let done = self.active.swap_remove(index);
                    self.done_bytes += done.reader.file_bytes();
                    let mut own = Decoded::default();
                    done.reader.describe(&mut own);
                    self.descriptions.take(own, decoded);
                    continue;
                };
                if best.is_none() || time_ns < best_ns {
                    second_ns = best_ns;
                    (best, best_ns) = (Some(index), time_ns);
                } else {
                    second_ns = second_ns.min(time_ns);
                }
                index += 1;
            }
            match self.waiting.last() {
                Some(waiting) if best.is_none() || waiting.first_ns <= best_ns => self.open_next()?,
                Some(waiting) => return Ok(best.map(|best| (best, second_ns.min(waiting.first_ns)))),
                None => return Ok(best.map(|best| (best, second_ns))),
            }
        }
    }

    fn open_next(&mut self) -> Result<(), TraceError> {
        let Some(waiting) = self.waiting.pop() else { return Ok(()) };
        if self.active.len() >= OPEN_MAX {
            let message = format!(
                "more than {OPEN_MAX} of the files hold I/Os of the same time, the latest {}: import fewer at a time",
                waiting.path.display()
            );
            return Err(TraceError::Usage(message));
        }
        let reader = (self.open)(&waiting.path)?;
        self.active.push(Active::open(&waiting.path, reader));
        Ok(())
    }
}
