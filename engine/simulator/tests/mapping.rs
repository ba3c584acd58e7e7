//! A mapping that is not all in memory, and one that is coarser than what is written.

mod common;

use common::{assert_close, closed_loop, command, idle_model, latency_alone_ns, random_4k};
use testdrive_core::{Opcode, KIB};
use testdrive_simulator::SimulatedDrive;

#[test]
fn a_read_whose_mapping_is_not_in_memory_reads_the_nand_twice() {
    let mut drive = SimulatedDrive::new(idle_model(&[
        ("nand_read", "50us"),
        ("mapping_cache", "64MiB"),
        ("capacity", "256GiB"),
    ]));
    let read = command(Opcode::Read, 1 << 30, 4 * KIB);
    assert_eq!(latency_alone_ns(&mut drive, 0, &read) / 1_000, 100);
    assert_eq!(latency_alone_ns(&mut drive, 1 << 30, &read) / 1_000, 50);
    // A page of the mapping covers 4 MiB.
    let near = command(Opcode::Read, (1 << 30) + 4096 * KIB - 4 * KIB, 4 * KIB);
    assert_eq!(latency_alone_ns(&mut drive, 2 << 30, &near) / 1_000, 50);
    assert_eq!((drive.counters().mapping_hits, drive.counters().mapping_misses), (2, 1));
}

/// The hit rate is the cache over the span, and so the mean latency at depth 1 is tR * (2 - cache / span).
#[test]
fn random_reads_hit_at_the_share_of_their_span_that_is_covered() {
    for span_gib in [32, 64, 128, 256] {
        let mut drive = SimulatedDrive::new(idle_model(&[
            ("nand_read", "50us"),
            ("mapping_cache", "64MiB"),
            ("capacity", "256GiB"),
        ]));
        // Filled first: one read in each 4 MiB, as far as there is room.
        for page in 0..span_gib * 256 {
            latency_alone_ns(&mut drive, page as i64 * 200_000, &command(Opcode::Read, page << 22, 4 * KIB));
        }
        let before = drive.counters();
        let mut next = random_4k(Opcode::Read, span_gib << 30, 7);
        let mut sum_ns = 0;
        for index in 0..100_000 {
            sum_ns += latency_alone_ns(&mut drive, 100_000_000_000 + index * 200_000, &next());
        }
        let after = drive.counters();
        let hits = after.mapping_hits - before.mapping_hits;
        let expected = (64.0 / span_gib as f64).min(1.0);
        assert_close("hits", hits as f64, 100_000.0 * expected, 0.01);
        assert_close("latency", sum_ns as f64 / 100_000.0, 50_000.0 * (2.0 - expected), 0.01);
    }
}

#[test]
fn a_write_of_a_part_reads_the_rest_first() {
    let overrides = [("nand_read", "50us"), ("logical_block_bytes", "512")];
    let mut drive = SimulatedDrive::new(idle_model(&overrides));
    assert_eq!(latency_alone_ns(&mut drive, 0, &command(Opcode::Write, 0, 4 * KIB)) / 1_000, 0);
    assert_eq!(latency_alone_ns(&mut drive, 1 << 30, &command(Opcode::Write, 1 << 20, 512)) / 1_000, 50);
    // Both ends of it are parts, of two pages that lie on two planes.
    assert_eq!(
        latency_alone_ns(&mut drive, 2 << 30, &command(Opcode::Write, (2 << 20) - 512, 1024)) / 1_000,
        50
    );
    assert_eq!(drive.counters().nand_reads, 1 + 2);
    assert_eq!(drive.counters().pages.host_pages, 1 + 1 + 2);
    // What was never written has no rest to be read.
    let mut empty =
        SimulatedDrive::new(idle_model(&[overrides[0], overrides[1], ("initial_state", "empty")]));
    assert_eq!(latency_alone_ns(&mut empty, 0, &command(Opcode::Write, 0, 512)) / 1_000, 0);
}

#[test]
fn small_writes_to_large_units_amplify_by_their_ratio() {
    let mut drive = SimulatedDrive::new(idle_model(&[
        ("indirection_unit_bytes", "16384"),
        ("capacity", "8GiB"),
        ("nand_read", "10us"),
        ("program", "100us"),
    ]));
    closed_loop(&mut drive, 32, 0, 20_000, random_4k(Opcode::Write, 8 << 30, 3));
    let counters = drive.counters();
    assert_close("pages", counters.pages.host_pages as f64, 4.0 * 20_000.0, 0.02);
    assert!(counters.nand_reads > 19_000, "each reads the three pages beside it at once");
}
