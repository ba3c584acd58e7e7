//! Preparation, places, mixes and ends.

use crate::support::{loop_turn, must, Loop, Mounted};
use crate::{Bench, MIB, SIM};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use testdrive_core::Opcode;
use testdrive_recording::Status;

#[test]
fn a_drive_is_purged_then_filled_twice_then_written_at_random() {
    let bench = Bench::new();
    let phases = json!([
        {"kind": "prepare", "method": "purge"},
        {"kind": "prepare", "method": "sequential", "fills": 2},
        {"kind": "prepare", "method": "random", "fills": 1.5, "span_share": 0.5},
    ]);
    let ran = bench.run(json!({"uri": SIM}), phases).unwrap();
    assert_eq!(ran.outcome.status, Status::Complete);
    let written = |index: usize| {
        let counters = ran.manifest.phases[index].drive_counters.unwrap();
        counters.after.host_written_bytes.unwrap() - counters.before.host_written_bytes.unwrap()
    };
    assert_eq!((written(0), written(1), written(2)), (0, 128 * MIB, 48 * MIB));
    let purged = ran.manifest.phases[0].drive_counters.unwrap().after.trimmed_bytes;
    assert_eq!((purged, ran.accounting("purge")), (Some(64 * MIB), &json!("trim")));
    let random = ran.rows.iter().filter(|row| row.phase == 2);
    let ends: Vec<i64> = random.map(|row| row.offset_bytes + row.length_bytes).collect();
    assert!(ends.iter().all(|end| *end <= 32 * MIB as i64) && ends.len() as u64 * 4096 == 48 * MIB);
    assert!(!ran.manifest.phases.iter().any(|phase| phase.measured));
}

#[test]
fn a_limited_user_area_leaves_the_rest_of_a_file_alone() {
    let bench = Bench::new();
    fs::write(bench.path("drive.img"), vec![7_u8; 8 << 20]).unwrap();
    let phases = json!([
        {"kind": "prepare", "method": "purge", "offset_bytes": MIB, "span_share": 0.5},
        {"kind": "synthetic", "read_share": 0, "pattern": "random_once", "block_bytes": 65_536, "bytes": 2 * MIB,
         "offset_bytes": MIB, "span_bytes": 2 * MIB, "data": "zero"},
    ]);
    let drive = json!({"uri": bench.file_drive(8), "erase": bench.path("drive.img")});
    let ran = bench.run(drive, phases).unwrap();
    assert_eq!(ran.outcome.status, Status::Complete);
    let content = fs::read(bench.path("drive.img")).unwrap();
    let byte_of = |mib: usize| {
        let bytes: BTreeSet<u8> = content[mib << 20..(mib + 1) << 20].iter().copied().collect();
        bytes.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(
        (0..8).map(byte_of).collect::<Vec<_>>(),
        [vec![7], vec![0], vec![0], vec![0], vec![0], vec![7], vec![7], vec![7]]
    );
    let places: BTreeSet<i64> =
        ran.rows.iter().filter(|row| row.phase == 1).map(|row| row.offset_bytes).collect();
    assert_eq!(
        (places.len(), places.first(), places.last()),
        (32, Some(&(MIB as i64)), Some(&(3 * MIB as i64 - 65_536)))
    );
}

#[test]
fn a_drive_that_takes_no_trims_is_said_to_be_not_purged_and_refuses_a_mix_with_trims() {
    let Some(_turn) = loop_turn() else { return };
    // A file system that cannot punch holes.
    let mounted = Mounted { point: tempfile::tempdir().unwrap() };
    must("mount", &["-t", "ramfs", "ramfs", mounted.point.path().to_str().unwrap()]);
    let bench = Bench::new();
    // The kernel gives a ring's file back some time after its run, so that each run has a file of its own.
    let drive = |name: &str| {
        let path = mounted.point.path().join(name);
        json!({"uri": format!("file:{}?size=8MiB", path.display()), "erase": path})
    };
    let ran = bench.run(drive("purged.img"), json!([{"kind": "prepare", "method": "purge"}])).unwrap();
    assert_eq!((ran.outcome.status, ran.rows.len()), (Status::Complete, 0));
    assert!(ran.has_warning("not_purged"));
    assert_eq!(ran.accounting("purge"), &json!("none"));
    let mix = json!([{"kind": "synthetic", "name": "mix", "read_share": 0.5, "trim_share": 0.1, "ios": 1}]);
    let refused = bench.run(drive("mixed.img"), mix).err().unwrap();
    assert_eq!(refused.kind, testdrive_runner::ErrorKind::Usage);
    assert!(refused.message.starts_with("phase 'mix': trim_share is 0.1"), "{}", refused.message);
}

#[test]
fn a_loop_device_is_purged_in_ranges_and_mixed_with_trims() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    device.write(0, &[1; 4096]);
    let bench = Bench::new();
    let drive = json!({"uri": device.path, "erase": device.path});
    let phases = json!([
        {"kind": "prepare", "method": "purge", "block_bytes": 10 * MIB},
        {"kind": "synthetic", "read_share": 0.5, "trim_share": 0.1, "ios": 2_000},
    ]);
    let ran = bench.run(drive, phases).unwrap();
    assert_eq!(ran.outcome.status, Status::Complete, "{:?}", ran.outcome.reason);
    // They are handed over together, so that they have the same time and stand in the order in which they completed.
    let mut purge: Vec<(i64, i64)> = ran
        .rows
        .iter()
        .filter(|row| row.phase == 0)
        .map(|row| (row.offset_bytes >> 20, row.length_bytes >> 20))
        .collect();
    purge.sort_unstable();
    assert_eq!(purge, [(0, 10), (10, 10), (20, 10), (30, 2)]);
    let trims = ran.manifest.counts.by_opcode.of(Opcode::Trim).ios - 4;
    assert!((140..260).contains(&trims), "{trims}");
}

#[test]
fn a_phase_ends_on_drive_fills_in_virtual_time() {
    let bench = Bench::new();
    let blocks = json!([{"bytes": 4096, "share": 0.9}, {"bytes": 131_072, "share": 0.1}]);
    let phase = json!({"kind": "synthetic", "read_share": 0.2, "block_bytes": blocks, "drive_fills": 1.5,
        "duration_ns": 3_600_000_000_000_i64});
    let ran = bench.phase(SIM, phase);
    let written = ran.bytes_of(Opcode::Write);
    assert!((96 * MIB..96 * MIB + 131_072).contains(&written), "{written}");
    assert_eq!(ran.outcome.status, Status::Complete);
}

#[test]
fn wrong_values_are_refused_with_the_phase_and_the_key() {
    let bench = Bench::new();
    for (rest, wanted) in [
        (json!({"ios": 1, "nonsense": 1}), "phase 0 ('wrong'): unknown field `nonsense`"),
        (json!({"ios": 1, "block_bytes": "4K"}), "phase 0 ('wrong'): block_bytes is an integer, or a list"),
        (json!({"depth": 1}), "phase 0 ('wrong'): an end is absent"),
        (json!({"ios": 1, "span_bytes": 128 * MIB}), "phase 'wrong': "),
        (json!({"ios": 1, "trim_share": 0.1}), "phase 0 ('wrong'): read_share + trim_share is 1.1"),
        (json!({"ios": 1, "refill": true, "data": "zero"}), "phase 0 ('wrong'): refill is true"),
        (json!({"ios": 1, "refill": true, "depth": 64, "block_bytes": 32 * MIB}), "more than 1 GiB"),
        (json!({"drive_fills": 1}), "phase 0 ('wrong'): drive_fills is 1"),
        (json!({"ios": 1, "span_bytes": 4096, "span_share": 0.5}), "phase 0 ('wrong'): span_share is 0.5"),
        (
            json!({"ios": 1, "block_bytes": [{"bytes": 4096, "share": 0.5}]}),
            "the sum of the shares of block_bytes is 0.5",
        ),
        (
            json!({"ios": 1, "pattern": "sequential", "hot_spots": [{"span_share": 0.1, "access_share": 0.5}]}),
            "hot_spots is 1",
        ),
    ] {
        let mut phase = json!({"kind": "synthetic", "name": "wrong"});
        phase.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let refused = bench.run(json!({"uri": SIM}), json!([phase])).err().unwrap();
        assert_eq!(refused.kind, testdrive_runner::ErrorKind::Usage);
        assert!(refused.message.contains(wanted), "{}", refused.message);
    }
}

/// How many different blocks of 4 KiB a file holds.
fn distinct_blocks(path: &std::path::Path) -> usize {
    let content = fs::read(path).unwrap();
    content.chunks(4096).collect::<BTreeSet<_>>().len()
}

#[test]
fn refilled_writes_never_repeat_themselves_over_threads_and_rounds() {
    let bench = Bench::new();
    for engine in ["io_uring", "sync"] {
        for (refill, blocks) in [(false, 4096), (true, 8192)] {
            let name = format!("{engine}-{refill}.img");
            let uri = format!("file:{}?size=32MiB&engine={engine}", bench.path(&name).display());
            let phase = json!({"kind": "prepare", "method": "sequential", "depth": 8, "refill": refill});
            let ran = bench.phase(&uri, phase);
            assert_eq!(ran.outcome.status, Status::Complete, "{:?}", ran.outcome.reason);
            assert_eq!(distinct_blocks(&bench.path(&name)), blocks, "{engine}");
        }
    }
    let uri = format!("file:{}?size=8MiB", bench.path("threads.img").display());
    let phase = json!({"kind": "synthetic", "read_share": 0, "pattern": "sequential", "threads": 4, "bytes": 8 * MIB});
    bench.phase(&uri, phase);
    assert_eq!(distinct_blocks(&bench.path("threads.img")), 2048);
}
