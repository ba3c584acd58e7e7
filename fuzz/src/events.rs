//! Events of the block layer, and each of the three ways in which tools write them down.

use crate::encode::{self as blktrace, Layout, Record};
use crate::numbers::Numbers;
use std::fmt::Write as _;
use testdrive_core::{Flags, Opcode};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Queue,
    Issue,
    Complete,
    Requeue,
    Remap,
}

/// One event, of what every format can say.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub time_ns: u64,
    pub kind: Kind,
    /// Empty: a flush as it is queued (a write with preflush), its request, or the end of its sequence.
    pub sectors: u32,
    pub opcode: Opcode,
    pub flags: Flags,
    pub sector: u64,
    pub cpu: u32,
    pub errno: u8,
}

/// Events whose time never goes back, on few places so that they meet.
pub fn events(numbers: &mut Numbers<'_>) -> Vec<Event> {
    let mut events = Vec::new();
    let mut time_ns = u64::from(numbers.two()) * 100_000_000;
    while numbers.any() {
        time_ns += u64::from(numbers.byte());
        events.push(event(numbers, time_ns));
    }
    events
}

fn event(numbers: &mut Numbers<'_>, time_ns: u64) -> Event {
    let kinds = [
        Kind::Queue,
        Kind::Issue,
        Kind::Complete,
        Kind::Queue,
        Kind::Issue,
        Kind::Complete,
        Kind::Requeue,
        Kind::Remap,
    ];
    let kind = kinds[usize::from(numbers.below(8))];
    let opcodes = [Opcode::Read, Opcode::Write, Opcode::Trim, Opcode::WriteZeroes, Opcode::Flush];
    let opcode = opcodes[usize::from(numbers.below(5))];
    let mut event = Event {
        time_ns,
        kind,
        sectors: u32::from(numbers.below(12)) + 1,
        opcode,
        flags: Flags(numbers.below(32)),
        sector: u64::from(numbers.below(24)),
        cpu: u32::from(numbers.below(4)),
        errno: if kind == Kind::Complete && numbers.below(8) == 0 { numbers.below(128) } else { 0 },
    };
    if opcode == Opcode::Flush {
        event.sectors = 0;
        // blkparse prints no place of what is empty, but where it ends.
        event.sector = if kind == Kind::Complete { event.sector } else { 0 };
        match kind {
            Kind::Queue => (event.opcode, event.flags) = (Opcode::Write, event.flags | Flags::PREFLUSH),
            Kind::Complete if event.flags.contains(Flags::FUA) => {
                (event.opcode, event.flags) = (Opcode::Write, event.flags.without(Flags::PREFLUSH));
            }
            Kind::Requeue | Kind::Remap => {
                (event.kind, event.flags) = (Kind::Issue, flush_flags(event.flags))
            }
            _ => event.flags = flush_flags(event.flags),
        }
    }
    event
}

/// A flush request has neither preflush nor FUA of its own.
fn flush_flags(flags: Flags) -> Flags {
    flags.without(Flags::PREFLUSH | Flags::FUA)
}

/// As `blktrace` writes them.
pub fn binary(events: &[Event], big_endian: bool) -> Vec<u8> {
    let records: Vec<Record> = events.iter().map(record).collect();
    blktrace::file(&records, Layout { version: 8, big_endian })
}

fn record(event: &Event) -> Record {
    let operation = match event.opcode {
        Opcode::Read => blktrace::READ,
        Opcode::Write => blktrace::WRITE,
        Opcode::Trim => blktrace::WRITE | blktrace::DISCARD,
        Opcode::WriteZeroes => blktrace::WRITE | blktrace::WRITE_ZEROES,
        Opcode::Flush => blktrace::READ | blktrace::FLUSH,
    };
    let flags = [
        (Flags::PREFLUSH, blktrace::FLUSH),
        (Flags::FUA, blktrace::FUA),
        (Flags::SYNC, blktrace::SYNC),
        (Flags::METADATA, blktrace::META),
        (Flags::READ_AHEAD, 1 << 11),
    ];
    let bits: u64 = flags.iter().filter(|(flag, _)| event.flags.contains(*flag)).map(|(_, bit)| bit).sum();
    let act = match event.kind {
        Kind::Queue => blktrace::Q,
        Kind::Issue => blktrace::D,
        Kind::Complete => blktrace::C,
        Kind::Requeue => 6,
        Kind::Remap => blktrace::A,
    };
    let mut pdu = Vec::new();
    if event.kind == Kind::Remap {
        pdu.extend_from_slice(&ORIGIN.to_be_bytes());
        pdu.extend_from_slice(&blktrace::DEVICE.to_be_bytes());
        pdu.extend_from_slice(&(event.sector + 2048).to_be_bytes());
    }
    Record {
        time_ns: event.time_ns,
        sector: event.sector,
        bytes: event.sectors * 512,
        category: operation | bits,
        act,
        cpu: event.cpu,
        error: -i16::from(event.errno),
        pdu,
    }
}

/// Where remapped I/Os were queued: a partition, 8,17.
const ORIGIN: u32 = 8 << 20 | 17;

fn letters(event: &Event) -> String {
    let mut text = String::new();
    if event.flags.contains(Flags::PREFLUSH) {
        text.push('F');
    }
    text.push_str(match event.opcode {
        Opcode::Read => "R",
        Opcode::Write => "W",
        Opcode::Trim => "D",
        Opcode::WriteZeroes => "WZ",
        Opcode::Flush => "FF",
    });
    for (flag, letter) in
        [(Flags::FUA, 'F'), (Flags::READ_AHEAD, 'A'), (Flags::SYNC, 'S'), (Flags::METADATA, 'M')]
    {
        if event.flags.contains(flag) {
            text.push(letter);
        }
    }
    text
}

/// As `blkparse` prints them.
pub fn blkparse(events: &[Event]) -> String {
    let mut text = String::new();
    for (index, event) in events.iter().enumerate() {
        let (seconds, fraction) = (event.time_ns / 1_000_000_000, event.time_ns % 1_000_000_000);
        let (action, end) = match event.kind {
            Kind::Queue => ("Q", "[fio]".to_string()),
            Kind::Issue => ("D", "[fio]".to_string()),
            Kind::Complete => ("C", format!("[{}]", 0_u16.wrapping_sub(u16::from(event.errno)))),
            Kind::Requeue => ("R", "[0]".to_string()),
            Kind::Remap => ("A", format!("<- (8,17) {}", event.sector + 2048)),
        };
        let place = match (event.sectors, event.kind) {
            (0, Kind::Complete) => format!("{} ", event.sector),
            (0, _) => String::new(),
            (sectors, _) => format!("{} + {sectors} ", event.sector),
        };
        let (cpu, letters) = (event.cpu, letters(event));
        writeln!(text, "  8,16 {cpu:>3} {index:>8} {seconds:>5}.{fraction:09} {:>5} {action:>2} {letters:>3} {place}{end}", 7)
            .expect("a string takes all");
    }
    text
}

/// As the kernel's trace events are printed.
pub fn trace_events(events: &[Event]) -> String {
    let mut text = String::from("# tracer: nop\n");
    for event in events {
        let (seconds, fraction) = (event.time_ns / 1_000_000_000, event.time_ns % 1_000_000_000);
        let (letters, sector, sectors) = (letters(event), event.sector, event.sectors);
        let words = match event.kind {
            Kind::Queue => format!("block_bio_queue: 8,16 {letters} {sector} + {sectors} [fio]"),
            Kind::Issue => {
                format!("block_rq_issue: 8,16 {letters} {} () {sector} + {sectors} [fio]", sectors * 512)
            }
            Kind::Complete => {
                format!(
                    "block_rq_complete: 8,16 {letters} () {sector} + {sectors} [{}]",
                    -i32::from(event.errno)
                )
            }
            Kind::Requeue => format!("block_rq_requeue: 8,16 {letters} () {sector} + {sectors} [0]"),
            Kind::Remap => {
                format!("block_bio_remap: 8,16 {letters} {sector} + {sectors} <- (8,17) {}", sector + 2048)
            }
        };
        writeln!(text, "  fio-7  [{:03}] ..... {seconds}.{fraction:09}: {words}", event.cpu)
            .expect("a string takes all");
    }
    text
}
