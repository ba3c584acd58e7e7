//! Every built-in model does what drives of its class do: within 5 % of its reference figures, in closed loops.

mod common;

use common::{assert_close, closed_loop, command, latency_alone_ns, random_4k, sequential_128k};
use testdrive_core::{Opcode, KIB};
use testdrive_simulator::{Figures, Model, SimulatedDrive};

const TOLERANCE: f64 = 0.05;

fn each_model(mut check: impl FnMut(&str, &Model, Figures)) {
    for name in Model::builtin_names() {
        let model = Model::builtin(name).unwrap();
        let figures = *model.figures().expect("every built-in model has figures");
        check(name, &model, figures);
    }
}

fn span_bytes(model: &Model, figures: &Figures) -> u64 {
    figures.random_span_bytes.unwrap_or(model.parameters().capacity_bytes)
}

#[test]
fn random_reads_reach_the_reference_figure() {
    each_model(|name, model, figures| {
        let next = random_4k(Opcode::Read, span_bytes(model, &figures), 1);
        let mut drive = SimulatedDrive::new(model.clone());
        let measured = closed_loop(&mut drive, figures.random_depth, 5_000, 50_000, next);
        println!("{name}: {:.0} random reads/s", measured.ios_per_s);
        assert_close(name, measured.ios_per_s, figures.random_read_iops, TOLERANCE);
    });
}

#[test]
fn random_writes_settle_at_the_reference_figure() {
    each_model(|name, model, figures| {
        let next = random_4k(Opcode::Write, span_bytes(model, &figures), 2);
        // The warm-up fills the buffer, which takes what the NAND cannot yet.
        let buffer_pages = model.parameters().write_buffer_bytes / (4 * KIB);
        let mut drive = SimulatedDrive::new(model.clone());
        drive.set_stored_share(figures.stored_share.unwrap_or(1.0));
        let measured = closed_loop(&mut drive, figures.random_depth, 4 * buffer_pages, 100_000, next);
        println!("{name}: {:.0} random writes/s", measured.ios_per_s);
        assert_close(name, measured.ios_per_s, figures.random_write_iops, TOLERANCE);
    });
}

#[test]
fn sequential_reads_reach_the_reference_figure() {
    each_model(|name, model, figures| {
        // Such figures are those of a drive that was written in order.
        let mut model = model.clone();
        model.set("initial_state", "written").unwrap();
        let next = sequential_128k(Opcode::Read, model.parameters().capacity_bytes);
        let mut drive = SimulatedDrive::new(model);
        let measured = closed_loop(&mut drive, 32, 200, 5_000, next);
        let bytes_per_s = measured.ios_per_s * (128 * KIB) as f64;
        println!("{name}: {:.0} MB/s sequential reads", bytes_per_s / 1e6);
        assert_close(name, bytes_per_s, figures.sequential_read_bytes_per_s, TOLERANCE);
    });
}

#[test]
fn sequential_writes_to_an_empty_drive_reach_the_reference_figure() {
    each_model(|name, model, figures| {
        let mut model = model.clone();
        model.set("initial_state", "empty").unwrap();
        let next = sequential_128k(Opcode::Write, model.parameters().capacity_bytes);
        let mut drive = SimulatedDrive::new(model);
        drive.set_stored_share(figures.stored_share.unwrap_or(1.0));
        let measured = closed_loop(&mut drive, 32, 1_000, 5_000, next);
        let bytes_per_s = measured.ios_per_s * (128 * KIB) as f64;
        println!("{name}: {:.0} MB/s sequential writes", bytes_per_s / 1e6);
        assert_close(name, bytes_per_s, figures.sequential_write_bytes_per_s, TOLERANCE);
    });
}

#[test]
fn the_cross_point_model_reads_in_the_reference_latency_and_never_collects_garbage() {
    let mut model = Model::builtin("xpoint").unwrap();
    model.set("capacity", "64MiB").unwrap();
    let mut drive = SimulatedDrive::new(model);
    let latency_ns = latency_alone_ns(&mut drive, -1_000_000, &command(Opcode::Read, 1 << 20, 4 * KIB));
    assert_close("read", latency_ns as f64, 8_900.0, 0.01);
    // Every page is written over thirteen times, and the last thousands are as fast as the first.
    let measured = closed_loop(&mut drive, 64, 200_000, 20_000, random_4k(Opcode::Write, 64 << 20, 3));
    assert_close("random writes", measured.ios_per_s, 500e3, TOLERANCE);
    let counters = drive.counters();
    assert_eq!((counters.pages.moved_pages, counters.erases, counters.moved_programs), (0, 0, 0));
    assert_eq!(counters.pages.write_amplification(), 1.0);
}

#[test]
fn the_sata_model_has_the_reference_latencies_at_depth_1() {
    for (opcode, reference_us) in [(Opcode::Read, 110.0), (Opcode::Write, 52.0)] {
        let mut drive = SimulatedDrive::new(Model::builtin("sata").unwrap());
        let mut next = random_4k(opcode, 1 << 30, 3);
        // 17 ms apart, so that what the one write leaves to program is done before the next.
        let sum_ns: i64 = (0..200).map(|index| latency_alone_ns(&mut drive, index << 24, &next())).sum();
        assert_close(opcode.name(), sum_ns as f64 / 200e3, reference_us, TOLERANCE);
    }
}
