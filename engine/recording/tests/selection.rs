//! Rows of some phases, in each order that there is.

use proptest::prelude::*;
use std::path::Path;
use std::time::Duration;
use testdrive_core::{Flags, IoRecord, Opcode, SplitMix64};
use testdrive_recording::{
    Manifest, OrderBy, Phases, Recording, RecordingKind, RecordingWriter, Status, WriterLimits,
};

fn rows(seed: u64, count: u64) -> Vec<IoRecord> {
    let mut random = SplitMix64::new(seed);
    (0..count)
        .map(|index| {
            let intended_ns = (index * 10 + random.below(200)) as i64;
            IoRecord {
                intended_ns,
                submit_ns: intended_ns + random.below(300) as i64 - 100,
                latency_ns: [-1, 0, random.below(50) as i64, random.below(5000) as i64]
                    [random.below(4) as usize],
                offset_bytes: index as i64 * 4096,
                length_bytes: 4096,
                stream: 0,
                status: 0,
                // Long stretches of one phase, and one where two alternate.
                phase: if index % 500 < 100 { (index % 2) as u16 } else { (index / 500) as u16 },
                opcode: Opcode::Write,
                flags: Flags::NONE,
            }
        })
        .collect()
}

fn write(directory: &Path, rows: &[IoRecord], segment_rows: usize) -> Recording {
    let limits =
        WriterLimits { segment_rows, segment_age: Duration::from_secs(3600), reserve_bytes: 1 << 16 };
    let manifest = Manifest::new(RecordingKind::Run, "virtual");
    let mut writer = RecordingWriter::create(directory, manifest, limits).unwrap();
    rows.chunks(50).for_each(|batch| writer.append(batch).unwrap());
    writer.finish(Status::Complete, None).unwrap();
    Recording::open(directory).unwrap()
}

fn complete_ns(row: &IoRecord) -> i64 {
    row.submit_ns + row.latency_ns
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_rows_wanted_come_all_and_in_order(seed in any::<u64>(), segment_rows in 50_usize..900, mask in 0_u16..32) {
        let all = rows(seed, 2500);
        let folder = tempfile::tempdir().unwrap();
        let recording = write(&folder.path().join("a.rec"), &all, segment_rows);
        let phases = Phases::Only((0..5).filter(|phase| mask & 1 << phase != 0).collect());
        let mut wanted: Vec<IoRecord> = all.iter().copied().filter(|row| phases.contains(row)).collect();
        prop_assert_eq!(
            recording.began_ns(&phases).unwrap(),
            wanted.iter().map(|row| row.intended_ns.min(row.submit_ns)).min()
        );
        prop_assert!(recording.rows_read_of(&phases).unwrap() >= wanted.len() as u64);
        for order in [OrderBy::Intended, OrderBy::Submit, OrderBy::Began, OrderBy::Completion] {
            let found: Vec<IoRecord> =
                recording.ordered_rows_of(order, &phases).unwrap().map(Result::unwrap).collect();
            if order == OrderBy::Completion {
                wanted.retain(|row| row.latency_ns >= 0);
                let keys: Vec<_> = found.iter().map(|row| (complete_ns(row), row.latency_ns == 0)).collect();
                prop_assert!(keys.is_sorted());
            }
            prop_assert!(found.is_sorted_by_key(|row| order.time_ns(row)));
            let sorted = |rows: &[IoRecord]| {
                let mut rows = rows.to_vec();
                rows.sort_by_key(|row| row.offset_bytes);
                rows
            };
            prop_assert_eq!(sorted(&found), sorted(&wanted));
        }
    }
}

#[test]
fn row_groups_of_other_phases_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = rows(7, 3000);
    for (index, row) in all.iter_mut().enumerate() {
        row.phase = u16::from(index >= 1000);
    }
    let recording = write(&folder.path().join("a.rec"), &all, 500);
    let second = Phases::Only([1].into());
    assert_eq!(recording.rows_read_of(&second).unwrap(), 2000);
    assert_eq!(recording.rows_read_of(&Phases::All).unwrap(), 3000);
    assert_eq!(recording.rows_read_of(&Phases::Only([9].into())).unwrap(), 0);
    assert_eq!(recording.began_ns(&Phases::Only([9].into())).unwrap(), None);
}
