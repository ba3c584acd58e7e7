//! Formats that lose something keep all the rest: what was exported is imported again.

use crate::support::{decode, encode, encode_with, Memory};
use proptest::prelude::*;
use testdrive_core::{Flags, IoRecord, Opcode, SplitMix64, NO_COMPLETION};
use testdrive_traces::{EncodeOptions, Times};

/// Rows as a block layer would make them: on whole sectors, and never two under way at the same place, since events have no number
/// to tell them apart by. Flush sequences come one after another, as the kernel does them.
fn block_layer_rows(seed: u64, count: usize) -> Vec<IoRecord> {
    let mut random = SplitMix64::new(seed);
    let mut intended_ns = 5_123_456_789_i64;
    let mut flushed_ns = 0_i64;
    let mut rows = Vec::new();
    for index in 0..count as i64 {
        intended_ns += 1 + random.below(1 << 20) as i64;
        let opcode = Opcode::ALL[random.below(5) as usize];
        let mut flags = Flags(random.below(32) as u8);
        let mut submit_ns = intended_ns + random.below(1 << 21) as i64 * random.below(2) as i64;
        let mut latency_ns = random.below(1 << 24) as i64;
        let is_flush = opcode == Opcode::Flush;
        if is_flush || flags.contains(Flags::PREFLUSH) {
            intended_ns = intended_ns.max(flushed_ns + 1);
            submit_ns = submit_ns.max(intended_ns);
            flushed_ns = submit_ns + latency_ns;
        } else if random.below(8) == 0 {
            latency_ns = NO_COMPLETION;
        }
        if is_flush {
            flags = flags.without(Flags::PREFLUSH | Flags::READ_AHEAD);
        } else if opcode != Opcode::Write {
            flags = flags.without(Flags::PREFLUSH | Flags::FUA);
        }
        let seen = latency_ns != NO_COMPLETION;
        rows.push(IoRecord {
            intended_ns,
            submit_ns,
            latency_ns,
            offset_bytes: if is_flush { 0 } else { (index * 8192 + random.below(8) as i64) * 512 },
            length_bytes: if is_flush { 0 } else { (1 + random.below(4096) as i64) * 512 },
            stream: random.below(64) as i32,
            status: if seen && random.below(10) == 0 { 1 + random.below(132) as i32 } else { 0 },
            phase: 0,
            opcode,
            flags,
        });
    }
    rows
}

fn shifted(rows: &[IoRecord], by_ns: i64) -> Vec<IoRecord> {
    rows.iter()
        .map(|row| IoRecord {
            intended_ns: row.intended_ns - by_ns,
            submit_ns: row.submit_ns - by_ns,
            ..*row
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn blkparse_text_keeps_everything_to_the_nanosecond(seed in any::<u64>(), count in 1_usize..300) {
        let rows = block_layer_rows(seed, count);
        let (text, encoded) = encode("blkparse", &Memory::of(&rows));
        let (found, decoded) = decode("blkparse", &text);
        prop_assert_eq!(decoded.shift_ns, 0);
        prop_assert_eq!(found.len(), rows.len());
        for (found, row) in found.iter().zip(shifted(&rows, encoded.shift_ns)) {
            prop_assert_eq!(*found, row);
        }
        prop_assert!(decoded.dropped.is_empty() && encoded.dropped.is_empty());
        prop_assert!(encoded.not_carried.is_empty());
    }

    #[test]
    fn an_iolog_keeps_order_places_and_sizes_and_times_to_the_microsecond(
        seed in any::<u64>(), count in 1_usize..300, submit in any::<bool>(),
    ) {
        let mut rows = block_layer_rows(seed, count);
        let times = if submit { Times::Submit } else { Times::Intended };
        let options = EncodeOptions { times: Some(times), ..EncodeOptions::default() };
        let written = rows.iter().any(|row| row.opcode != Opcode::WriteZeroes);
        prop_assume!(written);
        let (text, encoded) = encode_with("fio-iolog", &Memory::of(&rows), &options).unwrap();
        let time_ns = |row: &IoRecord| if submit { row.submit_ns } else { row.intended_ns };
        rows.sort_by_key(time_ns);
        rows.retain(|row| row.opcode != Opcode::WriteZeroes);
        let (found, decoded) = decode("fio-iolog", &text);
        let shift_ns = encoded.shift_ns + decoded.shift_ns;
        prop_assert_eq!(found.len(), rows.len());
        for (found, row) in found.iter().zip(&rows) {
            prop_assert_eq!(found.intended_ns, (time_ns(row) - shift_ns) / 1000 * 1000);
            prop_assert_eq!(
                (found.opcode, found.offset_bytes, found.length_bytes),
                (row.opcode, row.offset_bytes, row.length_bytes)
            );
        }
    }

    #[test]
    fn requests_without_queue_events_come_back_as_requests(seed in any::<u64>(), count in 1_usize..300) {
        let mut rows = block_layer_rows(seed, count);
        rows.iter_mut().for_each(|row| row.intended_ns = row.submit_ns);
        rows.sort_by_key(|row| row.submit_ns);
        // What the kernel flushes in its own name has neither flag.
        rows.iter_mut().filter(|row| row.opcode == Opcode::Flush).for_each(|row| row.flags = row.flags.without(Flags::FUA));
        rows[0].latency_ns = rows[0].latency_ns.max(1);
        let (text, encoded) = encode("blkparse", &Memory { absent: vec!["intended_ns"], ..Memory::of(&rows) });
        let (found, decoded) = decode("blkparse", &text);
        prop_assert_eq!(decoded.absent_columns, ["intended_ns"]);
        prop_assert_eq!(found, shifted(&rows, encoded.shift_ns));
    }

    #[test]
    fn whatever_the_rows_are_none_gets_lost_in_blkparse_text(seed in any::<u64>(), count in 1_usize..200) {
        let rows = crate::support::any_rows(seed, count);
        let (text, encoded) = encode("blkparse", &Memory::of(&rows));
        let (found, _) = decode("blkparse", &text);
        prop_assert_eq!(found.len() as u64, encoded.written.total().ios);
        for opcode in Opcode::ALL {
            let ios = found.iter().filter(|row| row.opcode == opcode).count() as u64;
            prop_assert_eq!(ios, encoded.written.of(opcode).ios, "{}", opcode.name());
        }
    }
}
