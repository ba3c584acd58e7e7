//! The kernel's descriptions of its records: any text is a layout within bounds, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testdrive_fuzz::decode::{Decoder, TraceEvent};
use testdrive_fuzz::layout::{parse_event_format, parse_page_header};
use testdrive_fuzz::page::{parse_header, Cursor};

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let page = [0xa5_u8; 512];
    if let Ok(layout) = parse_page_header(text) {
        if let Ok(header) = parse_header(&page, &layout) {
            let mut cursor = Cursor::new(&header, &layout);
            while let Ok(Some(record)) = cursor.next(&page) {
                assert!(record.place.end <= page.len());
            }
        }
    }
    if let Ok(format) = parse_event_format(text) {
        for event in TraceEvent::ALL {
            if let Ok(decoder) = Decoder::new(&[(event, format.clone())]) {
                let mut record = page;
                record[..2].copy_from_slice(&format.id.to_ne_bytes());
                let _ = (decoder.decode(&record, 0, 0), decoder.decode(&record[..4], 0, 0));
            }
        }
    }
});
