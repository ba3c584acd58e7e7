//! One queue's file: messages, each with its length before it.

use super::event::{self, Event, What};
use super::wire::{varint, Malformed};
use crate::input::Input;
use crate::merge::Source;
use crate::{Place, TraceError};
use std::collections::VecDeque;
use std::path::Path;

/// Messages that are decoded at once.
const BLOCK_EVENTS: usize = 256;
/// Longer messages are none: the longest hold the name of a file.
const MESSAGE_BYTES_MAX: u64 = 64 << 10;
const LENGTH_BYTES_MAX: usize = 10;

/// An event and where it stands.
#[derive(Debug)]
pub(super) struct Placed {
    pub event: Event,
    pub offset: u64,
    /// Where the event describes one.
    pub device: Option<(u64, String)>,
}

/// One queue's file.
pub(super) struct Queue {
    pub input: Input,
    /// Whether the last message was cut off.
    pub truncated: bool,
    block: VecDeque<Placed>,
}

impl Queue {
    /// Opens one of so many files.
    pub fn open(path: &Path, files: usize) -> Result<Queue, TraceError> {
        Ok(Queue { input: Input::one_of(path, files)?, truncated: false, block: VecDeque::new() })
    }

    fn refill(&mut self) -> Result<(), TraceError> {
        while self.block.len() < BLOCK_EVENTS {
            let offset = self.input.offset;
            let start = self.input.peek(LENGTH_BYTES_MAX)?;
            if start.is_empty() {
                return Ok(());
            }
            let (length_bytes, length) = match message_length(start) {
                Ok(Some(lengths)) => lengths,
                Ok(None) => return self.truncate(),
                Err(malformed) => return Err(self.damaged(offset, malformed)),
            };
            let bytes = length_bytes + length;
            let message = self.input.peek(bytes)?;
            if message.len() < bytes {
                return self.truncate();
            }
            let (event, device) = match decode(&message[length_bytes..]) {
                Ok(decoded) => decoded,
                Err(malformed) => return Err(self.damaged(offset, malformed)),
            };
            self.input.skip(bytes)?;
            self.block.push_back(Placed { event, offset, device });
        }
        Ok(())
    }

    /// Notes that the last message is not whole, and ends the file there.
    fn truncate(&mut self) -> Result<(), TraceError> {
        self.truncated = true;
        self.input.skip(usize::MAX).map(|_| ())
    }

    fn damaged(&self, offset: u64, malformed: Malformed) -> TraceError {
        let advice = if offset == 0 {
            "is this a queue of an Open CAS trace (octf.trace.N)?".to_string()
        } else {
            format!("the file is damaged here; 'head -c {offset}' keeps what stands before")
        };
        let reason = format!("{}: {advice}", malformed.0);
        TraceError::damaged(&self.input.path, Place::Byte(offset), reason)
    }
}

impl Source for Queue {
    /// The time, and the number of the event among those of all queues.
    type Key = (u64, u64);
    type Item = Placed;

    fn next_key(&mut self) -> Result<Option<(u64, u64)>, TraceError> {
        if self.block.is_empty() {
            self.refill()?;
        }
        Ok(self.block.front().map(|placed| (placed.event.time_ns, placed.event.sequence)))
    }

    fn take(&mut self) -> Option<Placed> {
        self.block.pop_front()
    }

    fn bytes_read(&self) -> u64 {
        self.input.file_bytes()
    }
}

/// How many bytes a message's length takes, and the length; `None` where the bytes end before it does.
fn message_length(start: &[u8]) -> Result<Option<(usize, usize)>, Malformed> {
    let mut rest = start;
    match varint(&mut rest)? {
        Some(length) if length > MESSAGE_BYTES_MAX => Err(Malformed("a message is longer than any event")),
        Some(length) => Ok(Some((start.len() - rest.len(), length as usize))),
        None => Ok(None),
    }
}

/// An event, and the device that it describes.
fn decode(message: &[u8]) -> Result<(Event, Option<(u64, String)>), Malformed> {
    let event = event::read(message)?;
    let device = if event.what == What::Device { event::device(message)? } else { None };
    Ok((event, device))
}

/// Whether a file starts with the messages of a queue: every one that is whole is an event with a time.
pub(super) fn is_queue(head: &[u8]) -> bool {
    let (mut rest, mut events) = (head, 0);
    loop {
        match message_length(rest) {
            Err(_) => return false,
            Ok(None) => return events > 0,
            Ok(Some((length_bytes, length))) => {
                let Some(message) = rest.get(length_bytes..length_bytes + length) else { return events > 0 };
                match decode(message) {
                    Ok((event, _)) if event.time_ns > 0 => events += 1,
                    _ => return false,
                }
                rest = &rest[length_bytes + length..];
            }
        }
    }
}
