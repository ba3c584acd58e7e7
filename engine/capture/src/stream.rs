//! One CPU's buffer: pages as they are read, and the events in them.

use crate::decode::{Decoded, Decoder};
use crate::layout::PageLayout;
use crate::page::{parse_header, Cursor, Lost};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use testdrive_traces::{BlockEvent, Device};

/// What was seen beside the events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// Commands passed through to a driver, by device.
    pub passthrough: Vec<(Device, u64)>,
    /// Zone commands, by device.
    pub zone: Vec<(Device, u64)>,
    /// Records of an event that was asked for, and not understood.
    pub unreadable: u64,
    /// Pages that could not be read to their end.
    pub damaged_pages: u64,
    /// What was wrong with the first of them.
    pub first_damage: Option<String>,
    /// Events that pages say were lost before them; at least one for each page that does not say how many.
    pub lost: u64,
    /// The times of the first and the last page before which events were lost.
    pub lost_between_ns: Option<(i64, i64)>,
}

impl Noted {
    fn count(list: &mut Vec<(Device, u64)>, device: Device) {
        match list.iter_mut().find(|(own, _)| *own == device) {
            Some((_, count)) => *count += 1,
            None => list.push((device, 1)),
        }
    }

    fn lose(&mut self, count: u64, time_ns: i64) {
        self.lost += count;
        let (first, last) = self.lost_between_ns.unwrap_or((time_ns, time_ns));
        self.lost_between_ns = Some((first.min(time_ns), last.max(time_ns)));
    }

    fn damage(&mut self, error: &dyn std::fmt::Display) {
        self.damaged_pages += 1;
        self.first_damage.get_or_insert_with(|| error.to_string());
    }
}

/// Memory of pages, used again and again: new memory would have to be cleared by the kernel first.
#[derive(Default)]
pub struct PagePool {
    free: Vec<Vec<u8>>,
    in_use: usize,
    /// The most pages in use at once, of late.
    needed: usize,
}

impl PagePool {
    fn take(&mut self, bytes: usize) -> Vec<u8> {
        self.in_use += 1;
        self.needed = self.needed.max(self.in_use);
        self.free.pop().unwrap_or_else(|| vec![0; bytes])
    }

    fn give_back(&mut self, page: Vec<u8>) {
        self.in_use -= 1;
        self.free.push(page);
    }

    /// Lets go, little by little, of what a burst needed. To be called once a round.
    pub fn shrink(&mut self) {
        self.needed -= self.needed / 64;
        self.free.truncate(self.needed.saturating_sub(self.in_use).max(64));
    }
}

/// Where pages come from: the kernel, or a test.
pub trait PageSource {
    /// Reads a page; 0 where there is none now.
    ///
    /// # Errors
    /// When the system refuses.
    fn read_page(&mut self, page: &mut [u8]) -> io::Result<usize>;
}

/// `per_cpu/cpuN/trace_pipe_raw`.
pub struct RawPipe(File);

impl RawPipe {
    /// Opens the buffer of a CPU of an instance.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn open(instance: &Path, cpu: u32) -> io::Result<RawPipe> {
        let path = instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map(RawPipe)
    }

    /// For poll(2).
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl PageSource for RawPipe {
    fn read_page(&mut self, page: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(page) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A CPU that was never running has no buffer.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENODEV)) => {
                    return Ok(0)
                }
                result => return result,
            }
        }
    }
}

/// The events of one CPU, in the order in which it wrote them.
pub struct CpuStream<S> {
    cpu: i32,
    source: S,
    pages: VecDeque<(Vec<u8>, Cursor)>,
    head: Option<BlockEvent>,
    /// Every event before was read.
    read_to_ns: i64,
}

impl<S: PageSource> CpuStream<S> {
    /// Of a CPU.
    pub fn new(cpu: u32, source: S) -> CpuStream<S> {
        let cpu = i32::try_from(cpu).unwrap_or(-1);
        CpuStream { cpu, source, pages: VecDeque::new(), head: None, read_to_ns: i64::MIN }
    }

    /// Where its pages come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Reads what there is, at most `pages_max` pages, and says how many. `now_ns` is a time before the call; what was written until then was read if
    /// the buffer was emptied.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn fill(
        &mut self,
        now_ns: i64,
        pages_max: usize,
        layout: &PageLayout,
        pool: &mut PagePool,
        noted: &mut Noted,
    ) -> io::Result<usize> {
        for pages in 0..pages_max {
            let mut page = pool.take(layout.page_bytes);
            let length = self.source.read_page(&mut page)?;
            if length == 0 {
                pool.give_back(page);
                self.read_to_ns = self.read_to_ns.max(now_ns);
                return Ok(pages);
            }
            match parse_header(&page[..length.min(page.len())], layout) {
                Ok(header) => {
                    let time_ns = header.time_ns as i64;
                    match header.lost {
                        Lost::No => {}
                        Lost::Uncounted => noted.lose(1, time_ns),
                        Lost::Counted(count) => noted.lose(count, time_ns),
                    }
                    self.read_to_ns = self.read_to_ns.max(time_ns);
                    self.pages.push_back((page, Cursor::new(&header, layout)));
                }
                Err(error) => {
                    noted.damage(&error);
                    pool.give_back(page);
                }
            }
        }
        Ok(pages_max)
    }

    /// Every event before this time was read.
    pub fn read_to_ns(&self) -> i64 {
        self.read_to_ns
    }

    /// When its next event was written, if there is one.
    pub fn head_ns(&mut self, decoder: &Decoder, pool: &mut PagePool, noted: &mut Noted) -> Option<i64> {
        if self.head.is_none() {
            self.head = self.decode_next(decoder, pool, noted);
        }
        self.head.as_ref().map(|event| event.time_ns)
    }

    /// Takes the event that [`CpuStream::head_ns`] told of.
    pub fn take_head(&mut self) -> Option<BlockEvent> {
        self.head.take()
    }

    fn decode_next(
        &mut self,
        decoder: &Decoder,
        pool: &mut PagePool,
        noted: &mut Noted,
    ) -> Option<BlockEvent> {
        loop {
            let (page, cursor) = self.pages.front_mut()?;
            match cursor.next(page) {
                Ok(Some(record)) => {
                    match decoder.decode(&page[record.place], record.time_ns as i64, self.cpu) {
                        Decoded::Event(event) => return Some(event),
                        Decoded::Passthrough(device) => Noted::count(&mut noted.passthrough, device),
                        Decoded::Zone(device) => Noted::count(&mut noted.zone, device),
                        Decoded::Unreadable => noted.unreadable += 1,
                        Decoded::Other => {}
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => noted.damage(&error),
            }
            if let Some((page, _)) = self.pages.pop_front() {
                pool.give_back(page);
            }
        }
    }
}
