//! Against a model of the block layer: whatever it merges, splits and reorders, each queued I/O is one row with its own times.

use crate::support::decode_text;
use proptest::prelude::*;
use testdrive_core::{Opcode, SplitMix64};
use testdrive_traces::{Events, Options};

/// One I/O and what must come out of it.
#[derive(Clone, Copy, Debug)]
struct Expected {
    opcode: Opcode,
    sector: u64,
    sectors: u64,
    queue_ns: i64,
    issue_ns: i64,
    complete_ns: i64,
}

fn letters(opcode: Opcode) -> &'static str {
    match opcode {
        Opcode::Read => "R",
        Opcode::Write => "W",
        Opcode::Trim => "D",
        Opcode::WriteZeroes => "N",
        Opcode::Flush => unreachable!("the model has no flushes"),
    }
}

/// A trace of `groups` of adjacent I/Os, each group cut into requests at arbitrary sectors, in ns as trace-cmd prints it.
fn trace(seed: u64, groups: u64) -> (String, Vec<Expected>, usize) {
    let mut random = SplitMix64::new(seed);
    let (mut lines, mut expected, mut requests) = (Vec::<(i64, String)>::new(), Vec::new(), 0);
    let mut clock_ns = 3_000_000_000_i64;
    for group in 0..groups {
        let opcode =
            [Opcode::Read, Opcode::Write, Opcode::Trim, Opcode::WriteZeroes][random.below(4) as usize];
        let rwbs = letters(opcode);
        // Groups lie apart, so that a request never spans two of them.
        let start = group * 1000;
        let mut end = start;
        let mut bios = Vec::new();
        for _ in 0..=random.below(3) {
            clock_ns += 1 + random.below(50) as i64;
            let sectors = 1 + random.below(60);
            lines.push((clock_ns, format!("block_bio_queue: 7,0 {rwbs} {end} + {sectors} [x]")));
            bios.push(Expected {
                opcode,
                sector: end,
                sectors,
                queue_ns: clock_ns,
                issue_ns: 0,
                complete_ns: 0,
            });
            end += sectors;
        }
        let mut cuts: Vec<u64> =
            (0..random.below(3)).map(|_| start + 1 + random.below(end - start)).collect();
        cuts.extend([start, end]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut spans: Vec<(u64, u64)> = cuts.windows(2).map(|pair| (pair[0], pair[1])).collect();
        spans.rotate_left(random.below(cuts.len() as u64 - 1) as usize);
        for (from, to) in spans {
            let issue_ns = clock_ns + 100 + random.below(500) as i64;
            let complete_ns = issue_ns + 1 + random.below(100_000) as i64;
            clock_ns += 1;
            requests += 1;
            lines.push((issue_ns, format!("block_rq_issue: 7,0 {rwbs} 0 () {from} + {} [x]", to - from)));
            lines.push((complete_ns, format!("block_rq_complete: 7,0 {rwbs} () {from} + {} [0]", to - from)));
            for bio in &mut bios {
                if from < bio.sector + bio.sectors && bio.sector < to {
                    let first = bio.issue_ns == 0 || issue_ns < bio.issue_ns;
                    bio.issue_ns = if first { issue_ns } else { bio.issue_ns };
                    bio.complete_ns = bio.complete_ns.max(complete_ns);
                }
            }
        }
        expected.extend(bios);
    }
    lines.sort_by_key(|(time_ns, _)| *time_ns);
    let mut text = String::new();
    for (time_ns, words) in lines {
        text += &format!(" x-1 [000] {}.{:09}: {words}\n", time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    }
    (text, expected, requests)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_queued_io_is_one_row_with_its_times(seed in any::<u64>(), groups in 1_u64..200) {
        let (text, expected, requests) = trace(seed, groups);
        let (rows, decoded) = decode_text("trace-event", &text, &Options::default()).unwrap();
        prop_assert_eq!(rows.len(), expected.len());
        for (row, want) in rows.iter().zip(&expected) {
            prop_assert_eq!((row.opcode, row.offset_bytes), (want.opcode, want.sector as i64 * 512));
            prop_assert_eq!(row.length_bytes, want.sectors as i64 * 512);
            prop_assert_eq!(row.intended_ns + decoded.shift_ns, want.queue_ns);
            prop_assert_eq!(row.submit_ns + decoded.shift_ns, want.issue_ns);
            prop_assert_eq!(row.latency_ns, want.complete_ns - want.issue_ns);
        }
        prop_assert!(decoded.dropped.is_empty());
        let issued = Options { events: Some(Events::Issued), ..Options::default() };
        let (rows, _) = decode_text("trace-event", &text, &issued).unwrap();
        prop_assert_eq!(rows.len(), requests);
        let bytes = |rows: &[testdrive_core::IoRecord]| rows.iter().map(|row| row.length_bytes).sum::<i64>();
        prop_assert_eq!(bytes(&rows), expected.iter().map(|want| want.sectors as i64 * 512).sum::<i64>());
    }
}
