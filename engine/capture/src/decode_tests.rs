//! Records built by hand after the layouts of two kernels.

use super::*;
use crate::layout::parse_event_format;
use proptest::prelude::*;
use testdrive_core::{Flags, Opcode};

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";

/// A format of the fields that matter, at these offsets.
fn format(id: u16, fields: &[(&str, usize, usize)]) -> EventLayout {
    let mut text = format!("ID: {id}\nformat:\n{COMMON}");
    for (name, offset, size) in fields {
        text += &format!("\tfield:x {name};\toffset:{offset};\tsize:{size};\tsigned:0;\n");
    }
    parse_event_format(&text).unwrap()
}

/// Linux 6.18, and a kernel with shorter letters and other places.
fn decoder(new: bool) -> Decoder {
    let (letters, queue, complete) = if new { (10, 28, 34) } else { (8, 32, 40) };
    let queue =
        format(7, &[("dev", 8, 4), ("sector", 16, 8), ("nr_sector", 24, 4), ("rwbs", queue, letters)]);
    let complete = format(
        9,
        &[
            ("dev", 8, 4),
            ("sector", 16, 8),
            ("nr_sector", 24, 4),
            ("error", 28, 4),
            ("rwbs", complete, letters),
        ],
    );
    let remap = format(
        4,
        &[
            ("dev", 8, 4),
            ("sector", 16, 8),
            ("nr_sector", 24, 4),
            ("old_dev", 28, 4),
            ("old_sector", 32, 8),
            ("rwbs", 40, letters),
        ],
    );
    Decoder::new(&[
        (TraceEvent::BioQueue, queue),
        (TraceEvent::RqComplete, complete),
        (TraceEvent::BioRemap, remap),
    ])
    .unwrap()
}

/// A record of 64 bytes.
fn record(id: u16, dev: u32, sector: u64, sectors: u32, extra: &[(usize, &[u8])]) -> Vec<u8> {
    let mut record = vec![0; 64];
    let places: [(usize, &[u8]); 4] = [
        (0, &id.to_ne_bytes()),
        (8, &dev.to_ne_bytes()),
        (16, &sector.to_ne_bytes()),
        (24, &sectors.to_ne_bytes()),
    ];
    for (offset, bytes) in places.iter().chain(extra) {
        record[*offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    record
}

const DEV: u32 = 259 << 20 | 3;
const DEVICE: Device = Device { major: 259, minor: 3 };

fn event(kind: EventKind, opcode: Opcode, flags: Flags, status: i32) -> Decoded {
    let (sector, sectors) = (2048, 16);
    Decoded::Event(BlockEvent {
        time_ns: 5,
        device: DEVICE,
        kind,
        opcode,
        flags,
        sector,
        sectors,
        cpu: 1,
        status,
    })
}

#[test]
fn fields_are_read_where_the_kernel_says_that_they_are() {
    let expected = event(EventKind::Queue, Opcode::Write, Flags::FUA | Flags::SYNC, 0);
    assert_eq!(decoder(true).decode(&record(7, DEV, 2048, 16, &[(28, b"WFS\0xx")]), 5, 1), expected);
    assert_eq!(decoder(false).decode(&record(7, DEV, 2048, 16, &[(32, b"WFS\0")]), 5, 1), expected);
}

#[test]
fn a_completion_has_its_error_as_a_positive_number() {
    let complete = record(9, DEV, 2048, 16, &[(28, &(-5_i32).to_ne_bytes()), (34, b"RA")]);
    let expected = event(EventKind::Complete, Opcode::Read, Flags::READ_AHEAD, 5);
    assert_eq!(decoder(true).decode(&complete, 5, 1), expected);
}

#[test]
fn a_remap_has_where_it_came_from() {
    let old_dev = (253_u32 << 20 | 1).to_ne_bytes();
    let remap = record(4, DEV, 2048, 16, &[(28, &old_dev), (32, &99_u64.to_ne_bytes()), (40, b"DS")]);
    let kind = EventKind::Remap { from: Device { major: 253, minor: 1 }, from_sector: 99 };
    assert_eq!(decoder(true).decode(&remap, 5, 1), event(kind, Opcode::Trim, Flags::SYNC, 0));
}

#[test]
fn other_events_passthrough_and_strange_letters_are_told_apart() {
    let decode = |record: &[u8]| decoder(true).decode(record, 5, 1);
    assert_eq!(decode(&record(8, DEV, 0, 8, &[(28, b"R")])), Decoded::Other);
    assert_eq!(decode(&record(900, DEV, 0, 8, &[(28, b"R")])), Decoded::Other);
    assert_eq!(decode(&record(7, DEV, 0, 0, &[(28, b"N")])), Decoded::Other);
    assert_eq!(decode(&record(7, DEV, 0, 8, &[(28, b"?")])), Decoded::Unreadable);
    assert_eq!(decode(&record(7, DEV, 0, 8, &[(28, b"R")])[..30]), Decoded::Unreadable);
    assert_eq!(decode(&[7]), Decoded::Unreadable);
    let issue = format(11, &[("dev", 8, 4), ("sector", 16, 8), ("nr_sector", 24, 4), ("rwbs", 34, 10)]);
    let issues = Decoder::new(&[(TraceEvent::RqIssue, issue)]).unwrap();
    assert_eq!(issues.decode(&record(11, DEV, 0, 0, &[(34, b"N")]), 5, 1), Decoded::Passthrough(DEVICE));
    assert_eq!(issues.decode(&record(11, DEV, 0, 0, &[(34, b"ZR")]), 5, 1), Decoded::Zone(DEVICE));
}

#[test]
fn an_event_without_a_field_that_is_needed_is_refused_by_its_name() {
    let format = format(7, &[("dev", 8, 4), ("sector", 16, 8), ("rwbs", 28, 10)]);
    let (event, error) = Decoder::new(&[(TraceEvent::BioQueue, format)]).unwrap_err();
    assert_eq!(event.name(), "block_bio_queue");
    assert!(error.to_string().contains("nr_sector"), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), id in 4_u16..10) {
        let mut bytes = bytes;
        if bytes.len() >= 2 {
            bytes[..2].copy_from_slice(&id.to_ne_bytes());
        }
        let _ = decoder(true).decode(&bytes, 0, 0);
    }
}
