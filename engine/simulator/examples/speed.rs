//! How many commands a modelled drive takes for each second of CPU time: `cargo run --release --example speed` (Linux).

use std::time::Duration;
use testdrive_core::{Command, Flags, Opcode, SplitMix64};
use testdrive_simulator::{Model, SimulatedDrive};

const DEPTH: u32 = 32;
const COMMANDS: u32 = 5_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:<28} {:>20} {:>20}", "4 KiB random, depth 32", "reads/CPU s", "writes/CPU s");
    let only: Vec<String> = std::env::args().skip(1).collect();
    for name in
        Model::builtin_names().filter(|name| only.is_empty() || only.iter().any(|wanted| wanted == name))
    {
        let model = Model::builtin(name)?;
        let reads = commands_per_cpu_s(&model, Opcode::Read)?;
        let writes = commands_per_cpu_s(&model, Opcode::Write)?;
        println!("{name:<28} {reads:>20.0} {writes:>20.0}");
    }
    Ok(())
}

/// A closed loop, by the time that it was given the CPU.
fn commands_per_cpu_s(model: &Model, opcode: Opcode) -> Result<f64, Box<dyn std::error::Error>> {
    let pages = model.parameters().capacity_bytes / 4096;
    let mut random = SplitMix64::new(1);
    let mut next = move || Command {
        offset_bytes: random.below(pages) * 4096,
        length_bytes: 4096,
        opcode,
        flags: Flags::NONE,
    };
    let mut drive = SimulatedDrive::new(model.clone());
    for slot in 0..DEPTH {
        drive.submit(0, slot, &next());
    }
    let start = cpu_time()?;
    for _ in 0..COMMANDS {
        let completion = drive.pop_completed(i64::MAX).expect("a closed loop never runs dry");
        drive.submit(completion.complete_ns, completion.slot, &next());
    }
    Ok(f64::from(COMMANDS) / (cpu_time()? - start).as_secs_f64())
}

/// The first number of the scheduler's statistics: nanoseconds on a CPU. Other work on the machine does not count in it.
fn cpu_time() -> Result<Duration, Box<dyn std::error::Error>> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let on_cpu_ns = statistics.split_whitespace().next().ok_or("the scheduler keeps no statistics")?;
    Ok(Duration::from_nanos(on_cpu_ns.parse()?))
}
