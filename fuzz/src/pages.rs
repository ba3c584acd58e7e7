//! Pages of the kernel's ring buffer, mostly as the kernel would write them.

use crate::decode::{Decoder, TraceEvent};
use crate::layout::{parse_event_format, parse_page_header, EventLayout, PageLayout};
use crate::numbers::Numbers;

const PAGE_BYTES: usize = 4096;
const DATA_OFFSET: usize = 16;
const RECORD_BYTES: usize = 52;
const LETTERS: [&[u8]; 12] =
    [b"R", b"W", b"WS", b"FF", b"FWS", b"FWFSM", b"D", b"DS", b"WZ", b"NS", b"N", b"RASMB"];

/// `events/header_page` of a 64-bit kernel.
pub const PAGE_LAYOUT: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
";

/// The layout of a page on a 64-bit kernel.
pub fn page_layout() -> PageLayout {
    parse_page_header(PAGE_LAYOUT).expect("it is a kernel's")
}

const PLACE: [(&str, usize, usize); 4] =
    [("dev", 8, 4), ("sector", 16, 8), ("nr_sector", 24, 4), ("rwbs", 40, 10)];

/// A `format` of an event.
pub fn event_layout() -> String {
    format_text(100, &PLACE)
}

fn format_text(id: u16, fields: &[(&str, usize, usize)]) -> String {
    let mut text = format!("ID: {id}\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n");
    for (name, offset, size) in fields {
        text += &format!("\tfield:x {name};\toffset:{offset};\tsize:{size};\tsigned:0;\n");
    }
    text
}

fn format(id: u16, fields: &[(&str, usize, usize)]) -> EventLayout {
    parse_event_format(&format_text(id, fields)).expect("it is a kernel's")
}

/// A decoder of all events, with records of [`RECORD_BYTES`].
pub fn decoder() -> Decoder {
    let formats: Vec<(TraceEvent, EventLayout)> = (100..)
        .zip(TraceEvent::ALL)
        .map(|(id, event)| {
            let more: &[(&str, usize, usize)] = match event {
                TraceEvent::BioRemap => &[("old_dev", 28, 4), ("old_sector", 32, 8)],
                _ => &[("error", 28, 4)],
            };
            (event, format(id, &[&PLACE[..], more].concat()))
        })
        .collect();
    Decoder::new(&formats).expect("every field is there")
}

/// A page of records; now and then with a length that does not fit, or cut short.
pub fn page(numbers: &mut Numbers<'_>, time_ns: &mut u64) -> Vec<u8> {
    *time_ns = time_ns.wrapping_add(numbers.wide());
    let mut data = Vec::new();
    let records = 1 + numbers.below(12);
    for _ in 0..records {
        record(numbers, &mut data);
    }
    data.truncate(PAGE_BYTES - DATA_OFFSET - 8);
    let length = if numbers.below(16) == 0 { numbers.wide() } else { data.len() as u64 };
    let lost = [0, 0, 0, 0, 1 << 31, 3 << 30][usize::from(numbers.below(6))];
    let mut page = Vec::with_capacity(PAGE_BYTES);
    page.extend_from_slice(&time_ns.to_ne_bytes());
    page.extend_from_slice(&(length | lost).to_ne_bytes());
    page.extend_from_slice(&data);
    page.extend_from_slice(&numbers.wide().to_ne_bytes());
    if numbers.below(8) > 0 {
        page.resize(PAGE_BYTES, 0);
    }
    page
}

/// A first word: five bits of kind, 27 of time.
fn word(kind: u32, delta: u32) -> [u8; 4] {
    let (kind, delta) = (kind & 31, delta & ((1 << 27) - 1));
    let word = if cfg!(target_endian = "little") { delta << 5 | kind } else { kind << 27 | delta };
    word.to_ne_bytes()
}

fn record(numbers: &mut Numbers<'_>, data: &mut Vec<u8>) {
    let delta = u32::from(numbers.byte());
    match numbers.below(16) {
        // Times of their own, withdrawn records, and long ones.
        0 => data.extend([word(30, delta), u32::from(numbers.two()).to_ne_bytes()].concat()),
        1 => data.extend([word(31, delta), (numbers.wide() as u32).to_ne_bytes()].concat()),
        2 => data.extend([word(29, delta), (numbers.wide() as u32).to_ne_bytes()].concat()),
        3 => {
            data.extend([word(0, delta), (RECORD_BYTES as u32 + 4).to_ne_bytes()].concat());
            event(numbers, data);
        }
        4 => data.extend(word(u32::from(numbers.byte()), delta)),
        _ => {
            data.extend(word(RECORD_BYTES as u32 / 4, delta));
            event(numbers, data);
        }
    }
}

fn event(numbers: &mut Numbers<'_>, data: &mut Vec<u8>) {
    let start = data.len();
    data.resize(start + RECORD_BYTES, 0);
    let event = &mut data[start..];
    event[..2].copy_from_slice(&(100 + u16::from(numbers.below(8))).to_ne_bytes());
    event[8..12].copy_from_slice(&(8_u32 << 20 | u32::from(numbers.below(2))).to_ne_bytes());
    event[16..24].copy_from_slice(&numbers.wide().to_ne_bytes());
    event[24..28].copy_from_slice(&u32::from(numbers.below(20)).to_ne_bytes());
    event[28..32].copy_from_slice(&u32::from(numbers.below(4)).wrapping_neg().to_ne_bytes());
    let letters = LETTERS[usize::from(numbers.below(LETTERS.len() as u8))];
    event[40..40 + letters.len()].copy_from_slice(letters);
}
