//! Whatever the bytes are, a decoder ends with rows or an error.

use crate::encode::{file, Layout, Record, LAYOUTS};
use crate::support::decode_text;
use proptest::prelude::*;
use testdrive_core::IoRecord;
use testdrive_traces::{formats, Events, OptionName, Options};

/// What every row must be, whatever it was made of.
pub fn check(rows: &[IoRecord]) {
    for row in rows {
        assert!(row.latency_ns >= -1 && row.length_bytes >= 0 && row.offset_bytes >= -1, "{row:?}");
        assert!(row.status >= 0 && row.stream >= -1, "{row:?}");
    }
}

fn options() -> impl Strategy<Value = Options> {
    prop_oneof![Just(None), Just(Some(Events::Queued)), Just(Some(Events::Issued))]
        .prop_map(|events| Options { events, ..Options::default() })
}

prop_compose! {
    fn record()(
        time_ns in 0_u64..200, sector in 0_u64..40, sectors in 0_u32..20, category in 0_u64..1 << 16,
        act in prop_oneof![Just(1_u64), Just(6), Just(7), Just(8), Just(15), 0_u64..20],
        error in prop_oneof![Just(0_i16), -200_i16..1], pdu in proptest::collection::vec(any::<u8>(), 0..20),
    ) -> Record {
        // Notes and passed-through commands would end most of the fun.
        Record { time_ns, sector, bytes: sectors * 512, category: category & !0x600, act, cpu: 0, error, pdu }
    }
}

fn layout() -> impl Strategy<Value = Layout> {
    proptest::sample::select(LAYOUTS.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_bytes_panic_any_decoder(bytes in proptest::collection::vec(any::<u8>(), 0..2000), options in options()) {
        for format in formats() {
            let _ = format.detect(&bytes, "trace.csv");
            let mut options = options.clone();
            if !format.takes().contains(&OptionName::Events) {
                options.events = None;
            }
            if format.takes().contains(&OptionName::Columns) {
                options.columns = vec![("time_us".into(), "0".into())];
            }
            if let Ok((rows, _)) = decode_text(format.name(), &bytes, &options) {
                check(&rows);
            }
        }
    }

    #[test]
    fn no_sequence_of_records_panics(
        records in proptest::collection::vec(record(), 1..200), layout in layout(), options in options(),
    ) {
        if let Ok((rows, _)) = decode_text("blktrace", file(&records, layout), &options) {
            check(&rows);
            let sectors: u64 = records.iter().map(|record| u64::from(record.bytes) / 512).sum();
            let bytes: i64 = rows.iter().map(|row| row.length_bytes).sum();
            prop_assert!(bytes as u64 <= sectors * 512);
        }
    }

    #[test]
    fn no_damage_to_a_trace_panics(
        records in proptest::collection::vec(record(), 1..50), layout in layout(),
        at in any::<proptest::sample::Index>(), value in any::<u8>(), cut in any::<proptest::sample::Index>(),
    ) {
        let mut content = file(&records, layout);
        let place = at.index(content.len());
        content[place] = value;
        content.truncate(cut.index(content.len()) + 1);
        if let Ok((rows, _)) = decode_text("blktrace", &content, &Options::default()) {
            check(&rows);
        }
    }

    #[test]
    fn no_line_panics(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "fio-1", "[001]", "1.000001:", "block_rq_issue:", "block:block_bio_queue:", "block_rq_complete:", "7,0", "WS",
            "FF", "4096", "()", "(", "8", "+", "[fio]", "[0]", "[-5]", "be,0,4", "<-", "(7,1)", "\n", "\u{e4}", "#", "[", "-",
            "18446744073709551616", "99999999999.9:",
        ]), 0..60), options in options(),
    ) {
        if let Ok((rows, _)) = decode_text("trace-event", words.join(" "), &options) {
            check(&rows);
        }
    }

    #[test]
    fn no_line_of_blkparse_panics(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "  8,16 0 1 0.000000001 7 Q R 8 + 8 [x]\n", "  8,16 0 1 0.000000003 7 C R 8 + 8 [0]\n", "\n  8,16", "0", "1",
            "0.000000002", "77", "Q", "D", "C", "R", "A", "m", "FWS", "FN", "N", "WS", "18446744073709551615", "+", "8", "[x]",
            "[0]", "[65531]", "(12 00)", "(  7)", "<-", "(8,17)", "99999999999.000000000", "Skips: 1 forward (", "\u{e4}",
        ]), 0..80), options in options(),
    ) {
        if let Ok((rows, _)) = decode_text("blkparse", words.join(" "), &options) {
            check(&rows);
        }
    }

    #[test]
    fn no_line_of_biosnoop_panics(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "\n0.5 fio 7 sda R 8 4096 0.50\n", "\n", "0.000001", "-0.5", "fio", "?", "7", "sda", "R", "FWFS", "DS", "N", "8", "-1",
            "4096", "1048576S", "10485761000.00", "0.50", "-1.000", "99999999999", "18446744073.709551", "18446744073709551615",
            "TIME(s)", "<unknown>", "1e18", "\u{e4}", "9223372036854775807", "9223372036.854775807",
        ]), 0..80)) {
        if let Ok((rows, _)) = decode_text("biosnoop", words.join(" "), &Options::default()) {
            check(&rows);
        }
    }
}
