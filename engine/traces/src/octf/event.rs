//! `octf.proto.trace.Event`: what the tracer of Open CAS writes down, to the field.

use super::wire::{fields, Malformed};

/// One event, as far as it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Counts through all queues.
    pub sequence: u64,
    /// Fits 63 bits.
    pub time_ns: u64,
    pub what: What,
}

/// What an event is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Io(Io),
    Completion(Completion),
    /// A device's number and name, which are handed out by [`device`].
    Device,
    /// Files and file systems.
    Other,
}

/// An I/O as it was queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Io {
    pub sector: u64,
    pub sectors: u64,
    pub device: u64,
    /// 1 read, 2 write, 3 discard.
    pub operation: u64,
    pub flush: bool,
    pub fua: bool,
    pub metadata: bool,
    pub read_ahead: bool,
    /// Names it until it completes; 0 where the tracer gives none.
    pub id: u64,
}

/// The end of an I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Completion {
    pub failed: bool,
    pub device: u64,
    pub id: u64,
}

/// Reads an event. Fields that are not known are passed over, as protocol buffers have it.
pub(super) fn read(message: &[u8]) -> Result<Event, Malformed> {
    let (mut header, mut what) = (None, What::Other);
    for field in fields(message) {
        let (number, value) = field?;
        match number {
            1 => header = Some(read_header(value.bytes()?)?),
            2 => what = What::Io(read_io(value.bytes()?)?),
            3 => what = What::Device,
            5 => what = What::Completion(read_completion(value.bytes()?)?),
            _ => {}
        }
    }
    let (sequence, time_ns) = header.ok_or(Malformed("an event has no header"))?;
    if i64::try_from(time_ns).is_err() {
        return Err(Malformed("a time is beyond 292 years"));
    }
    Ok(Event { sequence, time_ns, what })
}

fn read_header(message: &[u8]) -> Result<(u64, u64), Malformed> {
    let (mut sequence, mut time_ns) = (0, 0);
    for field in fields(message) {
        match field? {
            (1, value) => sequence = value.number()?,
            (2, value) => time_ns = value.number()?,
            _ => {}
        }
    }
    Ok((sequence, time_ns))
}

fn read_io(message: &[u8]) -> Result<Io, Malformed> {
    let mut io = Io::default();
    for field in fields(message) {
        match field? {
            (1, value) => io.sector = value.number()?,
            (2, value) => io.sectors = value.number()?,
            (4, value) => io.device = value.number()?,
            (5, value) => io.operation = value.number()?,
            (6, value) => io.flush = value.number()? != 0,
            (7, value) => io.fua = value.number()? != 0,
            (9, value) => io.id = value.number()?,
            (10, value) => io.metadata = value.number()? != 0,
            (12, value) => io.read_ahead = value.number()? != 0,
            _ => {}
        }
    }
    Ok(io)
}

fn read_completion(message: &[u8]) -> Result<Completion, Malformed> {
    let mut completion = Completion::default();
    for field in fields(message) {
        match field? {
            (3, value) => completion.failed = value.number()? != 0,
            (4, value) => completion.device = value.number()?,
            (5, value) => completion.id = value.number()?,
            _ => {}
        }
    }
    Ok(completion)
}

/// The number and name of the device that an event describes, if it does.
pub(super) fn device(message: &[u8]) -> Result<Option<(u64, String)>, Malformed> {
    let mut found = None;
    for field in fields(message) {
        let (3, value) = field? else { continue };
        let (mut id, mut name) = (0, String::new());
        for field in fields(value.bytes()?) {
            match field? {
                (1, value) => id = value.number()?,
                (2, value) => name = String::from_utf8_lossy(value.bytes()?).into_owned(),
                _ => {}
            }
        }
        found = Some((id, name));
    }
    Ok(found)
}
