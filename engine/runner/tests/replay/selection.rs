//! What of a source is replayed, and where: filters, places beyond the drive's end, and what a source does not tell.

use crate::{quiet, read, read_at, Bench, MIB, SIM};
use serde_json::json;
use testdrive_core::{IoRecord, Opcode};
use testdrive_runner::ErrorKind;

#[test]
fn an_io_that_is_longer_than_its_manifest_tells_is_left_out_and_counted() {
    let bench = Bench::new();
    let source = bench.source_of("source.rec", &[read_at(0, 256, 5120), read_at(0, 0, 4096)]);
    let manifest = source.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace(r#""length_max_bytes": 5120"#, r#""length_max_bytes": 4096"#))
        .unwrap();
    let drive = bench.path("drive.img");
    std::fs::write(&drive, vec![0; 1 << 20]).unwrap();
    let replayed = bench.replay(&format!("file:{}", drive.display()), "a.rec", &source, json!({})).unwrap();
    replayed.assert_accounted();
    assert_eq!((replayed.ios("issued"), replayed.ios("unsupported")), (1, 1));
}

#[test]
fn filters_leave_out_what_they_say_and_account_for_it() {
    let bench = Bench::new();
    let source = bench.source(1_000, 64 * MIB);
    let without = bench.replay(SIM, "a.rec", &source, json!({"without": ["trim"]})).unwrap();
    without.assert_accounted();
    assert_eq!(without.accounting["filtered"]["trim"]["ios"], 200);
    let only = bench.replay(SIM, "b.rec", &source, json!({"only": ["read", "flush"]})).unwrap();
    only.assert_accounted();
    assert_eq!(only.rows.len(), 400);
    let error =
        bench.replay(SIM, "c.rec", &source, json!({"only": ["read"], "without": ["read"]})).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(!bench.path("c.rec").exists(), "a refused job leaves nothing behind");
}

#[test]
fn a_filter_that_leaves_nothing_in_the_window_ends_at_once() {
    let bench = Bench::new();
    let template = read(&bench.source(1, 64 * MIB))[0];
    let trim = IoRecord { intended_ns: 1_000_000, submit_ns: 1_000_000, opcode: Opcode::Trim, ..template };
    let source = bench.source_of("one-trim.rec", &[template, trim]);
    let settings =
        json!({"only": ["trim"], "to_ns": 500_000, "pace": "asap", "duration_ns": 1_000_000_000_i64});
    assert_eq!(bench.replay(SIM, "a.rec", &source, settings).unwrap().rows, []);
}

#[test]
fn every_lba_mode_accounts_for_what_does_not_fit() {
    let bench = Bench::new();
    let source = bench.source(1_000, 128 * MIB);
    for mode in ["skip", "wrap", "scale", "scale-excess"] {
        let replayed = bench.replay(SIM, &format!("{mode}.rec"), &source, json!({"lba": mode})).unwrap();
        replayed.assert_accounted();
        assert!(replayed.rows.iter().all(|row| (row.offset_bytes + row.length_bytes) as u64 <= 64 * MIB));
        let beyond = read(&source)
            .iter()
            .filter(|row| (row.offset_bytes + row.length_bytes) as u64 > 64 * MIB)
            .count();
        assert!(beyond > 300, "the source must not fit for this test to mean anything");
        match mode {
            "skip" => assert_eq!(replayed.ios("skipped"), beyond as u64),
            "wrap" => assert_eq!((replayed.ios("skipped"), replayed.ios("wrapped")), (0, beyond as u64)),
            "scale-excess" => {
                assert_eq!((replayed.ios("skipped"), replayed.ios("scaled")), (0, beyond as u64))
            }
            _ => assert!(replayed.ios("scaled") > 700, "scale moves every offset but those at the start"),
        }
    }
}

#[test]
fn a_drive_on_which_nothing_fits_is_refused_before_anything_is_made() {
    let bench = Bench::new();
    let far = IoRecord { offset_bytes: 1 << 40, ..read(&bench.source(1, 64 * MIB))[0] };
    let source = bench.source_of("far.rec", &[far]);
    let error = bench.replay(SIM, "a.rec", &source, json!({})).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(error.message.contains("--lba"), "{error}");
    assert!(!bench.path("a.rec").exists());
}

#[test]
fn a_source_without_offsets_cannot_be_replayed() {
    let bench = Bench::new();
    let source = bench.source(10, 64 * MIB);
    let manifest = std::fs::read_to_string(source.join("manifest.json")).unwrap();
    let absent = manifest.replace("\"absent_columns\": []", "\"absent_columns\": [\"offset_bytes\"]");
    std::fs::write(source.join("manifest.json"), absent).unwrap();
    let error = bench.replay(SIM, "a.rec", &source, json!({})).err().unwrap();
    assert!(error.message.contains("does not tell offset_bytes"), "{error}");
}

#[test]
fn a_run_can_be_replayed_itself_and_only_its_measured_phases_are() {
    let bench = Bench::new();
    let source = bench.source(500, 64 * MIB);
    let phases = json!([
        {"kind": "prepare", "method": "sequential"},
        {"kind": "replay", "recording": source, "lba": "scale"},
    ]);
    let outcome = quiet(&bench.job(SIM, "first.rec", phases)).unwrap();
    assert_eq!(outcome.counts.ios, 512 + 500);
    let again = bench.replay(SIM, "again.rec", &bench.path("first.rec"), json!({})).unwrap();
    assert_eq!(again.rows.len(), 500);
    assert_eq!(again.rows[0].intended_ns, 0);
    again.assert_accounted();
}
