//! How many commands a modelled drive takes for each second of CPU time (Linux):
//! `cargo run --release --example speed -- [NAME [key=value ...]]`.

use std::time::Duration;
use testdrive_core::{Command, Flags, Histogram, Opcode, SplitMix64};
use testdrive_simulator::{Model, SimulatedDrive};

const DEPTH: u32 = 32;
const COMMANDS: u64 = 5_000_000;
/// The mapping's memory is taken at first touch, which is no part of steady state.
const WARM_UP_MAX: u64 = 20_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:<28} {:>16} {:>16} {:>8}", "4 KiB random, depth 32", "reads/CPU s", "writes/CPU s", "WA");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (settings, names): (Vec<_>, Vec<_>) = arguments.iter().partition(|argument| argument.contains('='));
    for name in
        Model::builtin_names().filter(|name| names.is_empty() || names.iter().any(|wanted| wanted == name))
    {
        let mut model = Model::builtin(name)?;
        model.set_all(settings.iter().filter_map(|setting| setting.split_once('=')))?;
        let (reads, _) = commands_per_cpu_s(&model, Opcode::Read)?;
        let (writes, amplification) = commands_per_cpu_s(&model, Opcode::Write)?;
        println!("{name:<28} {reads:>16.0} {writes:>16.0} {amplification:>8.2}");
    }
    Ok(())
}

/// A closed loop with a histogram of its latencies, by the time that it was given the CPU; and its write amplification.
fn commands_per_cpu_s(model: &Model, opcode: Opcode) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let pages = model.parameters().capacity_bytes / 4096;
    let mut random = SplitMix64::new(1);
    let mut next = move || Command {
        offset_bytes: random.below(pages) * 4096,
        length_bytes: 4096,
        opcode,
        flags: Flags::NONE,
    };
    let mut drive = SimulatedDrive::new(model.clone());
    let (mut latencies, mut submitted_ns) = (Histogram::default(), [0_i64; DEPTH as usize]);
    for slot in 0..DEPTH {
        drive.submit(0, slot, &next());
    }
    let warm_up = pages.min(WARM_UP_MAX);
    let (mut start, mut before) = (Duration::ZERO, drive.counters().pages);
    for index in 0..warm_up + COMMANDS {
        if index == warm_up {
            (start, before) = (cpu_time()?, drive.counters().pages);
        }
        let completion = drive.pop_completed(i64::MAX).expect("a closed loop never runs dry");
        let submitted_ns = &mut submitted_ns[completion.slot as usize];
        latencies.add((completion.complete_ns - *submitted_ns) as u64);
        *submitted_ns = completion.complete_ns;
        drive.submit(completion.complete_ns, completion.slot, &next());
    }
    let per_s = COMMANDS as f64 / (cpu_time()? - start).as_secs_f64();
    assert_eq!(latencies.count(), warm_up + COMMANDS);
    Ok((per_s, drive.counters().pages.since(&before).write_amplification()))
}

/// The first number of the scheduler's statistics: nanoseconds on a CPU. Other work on the machine does not count in it.
fn cpu_time() -> Result<Duration, Box<dyn std::error::Error>> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let on_cpu_ns = statistics.split_whitespace().next().ok_or("the scheduler keeps no statistics")?;
    Ok(Duration::from_nanos(on_cpu_ns.parse()?))
}
