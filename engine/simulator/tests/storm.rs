//! Bursts of trims under a database's load tell the built-in models apart.
//!
//! The load has the shape of the sample workload: 3,500 I/Os a second at times of their own, a log that is written and
//! flushed, and three bursts of trims of 1.5, 3 and 4.5 GiB. The oracle is the work that the trims leave: it is known for
//! each model from its parameters, and so is how long the firmware needs for it at its share.

mod common;

use common::{command, FLUSH};
use testdrive_core::{Command, Opcode, SplitMix64, GIB, KIB};
use testdrive_simulator::{Model, SimulatedDrive, TrimMode};

const DURATION_MS: i64 = 90_000;
const WINDOW_MS: i64 = 100;
/// When each burst begins, and what it trims.
const BURSTS: [(i64, u64); 3] = [(25_000, 3 * GIB / 2), (50_000, 3 * GIB), (70_000, 9 * GIB / 2)];
const BURST_MS: i64 = 1_000;
const TRIM_BYTES: u64 = 256 * KIB;
/// A filesystem's trim comes as many of the drive's at one moment.
const TRIMS_AT_A_TIME: u64 = 512;
const MS: i64 = 1_000_000;

/// The whole load, in the order of time.
fn load() -> Vec<(i64, Command)> {
    let mut random = SplitMix64::new(5);
    let mut load = Vec::new();
    let mut at = |now_ns, command| load.push((now_ns, command));
    for index in 0..DURATION_MS * 7 / 10 {
        // 700 transactions a second: three reads, a page written back, and the log written and flushed.
        let start_ns = index * MS * 10 / 7 + random.below(1_000_000) as i64;
        let mut page = || 5 * GIB + random.below(5 * GIB / (8 * KIB)) * 8 * KIB;
        for read in 0..3 {
            at(start_ns + read * 50_000, command(Opcode::Read, page(), 8 * KIB));
        }
        at(start_ns + 150_000, command(Opcode::Write, page(), 8 * KIB));
        at(start_ns + 200_000, command(Opcode::Write, 5 * GIB + index as u64 * 8 * KIB, 8 * KIB));
        at(start_ns + 700_000, FLUSH);
    }
    for (start_ms, bytes) in BURSTS {
        let trims = bytes / TRIM_BYTES;
        for index in 0..trims {
            let moment = index - index % TRIMS_AT_A_TIME;
            let now_ns = start_ms * MS + BURST_MS * MS * moment as i64 / trims as i64;
            at(now_ns, command(Opcode::Trim, index * TRIM_BYTES, TRIM_BYTES));
        }
    }
    load.sort_by_key(|(now_ns, _)| *now_ns);
    load
}

/// The mean latency of the reads and writes of each window, by when they were submitted.
fn window_means_ns(model: Model, load: &[(i64, Command)]) -> Vec<f64> {
    let mut drive = SimulatedDrive::new(model);
    let windows = (DURATION_MS / WINDOW_MS) as usize;
    let (mut sums, mut counts) = (vec![0_i64; windows], vec![0_i64; windows]);
    let mut done = Vec::new();
    for (slot, (now_ns, command)) in load.iter().enumerate() {
        drive.submit(*now_ns, slot as u32, command);
        done.extend(std::iter::from_fn(|| drive.pop_completed(*now_ns)));
    }
    done.extend(common::drain(&mut drive));
    assert_eq!(done.len(), load.len());
    for completion in done {
        let (submitted_ns, command) = load[completion.slot as usize];
        let window = (submitted_ns / MS / WINDOW_MS) as usize;
        if command.opcode.transfers() && window < windows {
            sums[window] += completion.complete_ns - submitted_ns;
            counts[window] += 1;
        }
    }
    sums.iter().zip(&counts).map(|(sum, count)| *sum as f64 / *count as f64).collect()
}

/// The calm level, and how long after each burst's beginning the last window before the next burst was above three times it.
fn elevations_ms(means_ns: &[f64]) -> (f64, Vec<i64>) {
    let mut calm = means_ns[..(BURSTS[0].0 / WINDOW_MS) as usize].to_vec();
    calm.sort_by(f64::total_cmp);
    let calm_ns = calm[calm.len() / 2];
    let ends_ms = BURSTS[1..].iter().map(|(start_ms, _)| *start_ms).chain([DURATION_MS]);
    let spans = BURSTS.iter().zip(ends_ms).map(|((start_ms, _), end_ms)| {
        let windows = &means_ns[(start_ms / WINDOW_MS) as usize..(end_ms / WINDOW_MS) as usize];
        let last = windows.iter().rposition(|mean_ns| *mean_ns > 3.0 * calm_ns);
        last.map_or(0, |index| (index as i64 + 1) * WINDOW_MS)
    });
    (calm_ns, spans.collect())
}

/// How long the firmware needs at its share for what each burst leaves it, if nothing was left before.
fn expected_ms(model: &Model) -> Vec<f64> {
    let parameters = model.parameters();
    let share = if parameters.trim_mode == TrimMode::Background { parameters.trim_share } else { 1.0 };
    let work_ns = |bytes: u64| {
        let trims = (bytes / TRIM_BYTES) as f64 * parameters.trim_per_range_ns as f64;
        trims + (bytes / (4 * KIB)) as f64 * parameters.trim_per_page_ns as f64
    };
    BURSTS.iter().map(|(_, bytes)| work_ns(*bytes) / share / MS as f64).collect()
}

#[test]
fn the_models_recover_from_bursts_of_trims_at_once_soon_in_seconds_or_never() {
    let load = load();
    let recover = |name: &str| {
        let model = Model::builtin(name).unwrap();
        let expected_ms = expected_ms(&model);
        let (calm_ns, elevated_ms) = elevations_ms(&window_means_ns(model, &load));
        println!("{name}: calm {calm_ns:.0} ns, elevated {elevated_ms:?} ms, work at its share {expected_ms:.0?} ms");
        (elevated_ms, expected_ms)
    };
    assert_eq!(recover("enterprise-mixed").0, [0, 0, 0]);
    assert_eq!(recover("enterprise-read").0, [0, 0, 0]);

    let (bump_ms, _) = recover("consumer-highend");
    assert!(
        bump_ms.iter().all(|elevated_ms| (1..=BURST_MS + WINDOW_MS).contains(elevated_ms)),
        "{bump_ms:?}"
    );

    for name in ["sata", "consumer-dramless-small-slc", "consumer-dramless"] {
        let (elevated_ms, expected_ms) = recover(name);
        for (elevated_ms, expected_ms) in elevated_ms.iter().zip(expected_ms) {
            // Work begins with the burst and lasts at least as long; what other commands take of the firmware comes on top.
            let expected_ms = expected_ms.max(BURST_MS as f64);
            let off = *elevated_ms as f64 / expected_ms;
            assert!((0.8..1.3).contains(&off), "{name}: {elevated_ms} ms against {expected_ms} ms");
        }
    }
    let (elevated_ms, _) = recover("consumer-qlc");
    assert_eq!(elevated_ms, [25_000, 20_000, 20_000], "elevated to the end of each span");
}
