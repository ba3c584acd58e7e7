//! Files read piece by piece, packed or not, with a count of what was read.

use crate::unpack::Content;
use crate::TraceError;
use memchr::memchr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

const BUFFER_BYTES: usize = 256 << 10;
const BUFFER_BYTES_MIN: usize = 16 << 10;
/// Of all files that are read at once.
const BUFFERS_BYTES: usize = 8 << 20;
/// Longer lines are no line of a trace.
const LINE_BYTES_MAX: usize = 64 << 10;

/// What editors put before UTF-8 text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The size of a file.
pub(crate) fn size_bytes(path: &Path) -> Result<u64, TraceError> {
    std::fs::metadata(path).map(|metadata| metadata.len()).map_err(TraceError::io("read", path))
}

/// A file's content, unpacked where it is packed, and how far it was read.
pub(crate) struct Input {
    pub path: PathBuf,
    content: Content,
    buffer: Vec<u8>,
    /// What of the buffer is not handed out yet.
    start: usize,
    end: usize,
    /// The first part of the last line that was too long.
    long: Vec<u8>,
    /// Bytes of the content handed out.
    pub offset: u64,
    file_bytes: Arc<AtomicU64>,
    ended: bool,
}

impl Input {
    pub fn open(path: &Path) -> Result<Input, TraceError> {
        Input::one_of(path, 1)
    }

    /// Opens one of so many files that are read at once: together they take no more memory than a few.
    pub fn one_of(path: &Path, files: usize) -> Result<Input, TraceError> {
        let content = Content::open(path)?;
        let buffer_bytes = (BUFFERS_BYTES / files.max(1)).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES);
        Ok(Input {
            path: path.to_path_buf(),
            file_bytes: content.file_bytes(),
            content,
            buffer: vec![0; buffer_bytes],
            start: 0,
            end: 0,
            long: Vec::new(),
            offset: 0,
            ended: false,
        })
    }

    /// Bytes read of the file itself, for the progress: fewer than of the content where it is packed, and ahead by a buffer.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::Relaxed)
    }

    /// Looks at up to `count` bytes ahead; fewer only at the end of the file.
    pub fn peek(&mut self, count: usize) -> Result<&[u8], TraceError> {
        while self.end - self.start < count && self.fill()? {}
        let end = self.end.min(self.start + count);
        Ok(&self.buffer[self.start..end])
    }

    /// Looks at all that is in memory, at least `least` bytes; fewer only at the end of the file.
    pub fn ahead(&mut self, least: usize) -> Result<&[u8], TraceError> {
        while self.end - self.start < least && self.fill()? {}
        Ok(&self.buffer[self.start..self.end])
    }

    /// Steps over `count` bytes; says how many there were.
    pub fn skip(&mut self, count: usize) -> Result<usize, TraceError> {
        let mut left = count;
        loop {
            let step = left.min(self.end - self.start);
            self.advance(step);
            left -= step;
            if left == 0 || !self.fill()? {
                return Ok(count - left);
            }
        }
    }

    /// The next line without its end, nor a byte order mark before the first, and whether it had one; `None` at the end of the file. Of a line that is too long to be
    /// one of a trace only the first part is handed out.
    pub fn line(&mut self) -> Result<Option<(&[u8], bool)>, TraceError> {
        if self.offset == 0 && self.peek(BYTE_ORDER_MARK.len())? == BYTE_ORDER_MARK {
            self.advance(BYTE_ORDER_MARK.len());
        }
        let mut searched = 0;
        loop {
            let have = &self.buffer[self.start..self.end];
            if let Some(length) = memchr(b'\n', &have[searched..]).map(|at| at + searched) {
                let line = self.start..self.start + length;
                self.advance(length + 1);
                return Ok(Some((trim_return(&self.buffer[line]), true)));
            }
            searched = have.len();
            if searched > LINE_BYTES_MAX {
                return self.long_line().map(Some);
            }
            if !self.fill()? {
                let line = self.start..self.end;
                self.advance(line.len());
                return Ok((!line.is_empty()).then(|| (&self.buffer[line], false)));
            }
        }
    }

    /// Steps over a line that is too long, and keeps its first part.
    fn long_line(&mut self) -> Result<(&[u8], bool), TraceError> {
        self.long.clear();
        self.long.extend_from_slice(&self.buffer[self.start..self.start + LINE_BYTES_MAX]);
        loop {
            let have = &self.buffer[self.start..self.end];
            if let Some(length) = memchr(b'\n', have) {
                self.advance(length + 1);
                break;
            }
            self.advance(have.len());
            if !self.fill()? {
                break;
            }
        }
        Ok((&self.long, true))
    }

    fn advance(&mut self, count: usize) {
        self.start += count;
        self.offset += count as u64;
    }

    /// Reads on; false at the end of the file.
    fn fill(&mut self) -> Result<bool, TraceError> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let count = loop {
            match self.content.read(&mut self.buffer[self.end..]) {
                Ok(count) => break count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.content.error(error)),
            }
        };
        self.ended = count == 0;
        self.end += count;
        Ok(count > 0)
    }
}

/// Says now and then how far a set of files was read.
pub(crate) struct Progress {
    pub bytes_total: u64,
    said_bytes: u64,
}

impl Progress {
    /// Between two reports.
    const STEP_BYTES: u64 = 4 << 20;

    pub fn over(paths: &[PathBuf]) -> Result<Progress, TraceError> {
        let sizes: Result<Vec<u64>, TraceError> = paths.iter().map(|path| size_bytes(path)).collect();
        Ok(Progress { bytes_total: sizes?.iter().sum(), said_bytes: 0 })
    }

    /// Whether it is time to say so.
    pub fn is_due(&mut self, bytes_read: u64) -> bool {
        let due = bytes_read.saturating_sub(self.said_bytes) >= Progress::STEP_BYTES;
        if due {
            self.said_bytes = bytes_read;
        }
        due
    }
}

fn trim_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(content: &[u8]) -> Vec<(Vec<u8>, bool)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, content).unwrap();
        let mut input = Input::open(&path).unwrap();
        let mut lines = Vec::new();
        while let Some((line, ended)) = input.line().unwrap() {
            lines.push((line.to_vec(), ended));
        }
        assert_eq!(input.offset, content.len() as u64);
        lines
    }

    #[test]
    fn lines_come_without_their_end_and_the_last_one_says_that_it_has_none() {
        let lines = lines_of(b"one\r\n\ntwo\nthr");
        let expected: [(&[u8], bool); 4] = [(b"one", true), (b"", true), (b"two", true), (b"thr", false)];
        assert!(lines.iter().map(|(line, ended)| (&line[..], *ended)).eq(expected));
    }

    #[test]
    fn a_line_without_end_is_cut_and_what_follows_is_read() {
        let mut content = vec![b'x'; 3 * BUFFER_BYTES + 17];
        content.extend_from_slice(b"\nnext\n");
        let lines = lines_of(&content);
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].0.len(), &lines[1].0[..]), (LINE_BYTES_MAX, &b"next"[..]));
    }

    #[test]
    fn many_buffers_of_lines_are_the_same_lines() {
        let content: Vec<u8> = (0..100_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        let lines = lines_of(&content);
        assert_eq!(lines.len(), 100_000);
        assert_eq!(lines[99_999].0, b"line 99999");
    }
}
