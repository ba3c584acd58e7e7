//! The data plane's one binary: talks to drives, decodes traces, simulates drives, and records every I/O.

mod capture;
mod drives;
mod duration;
mod export;
mod import;
mod lines;
mod models;
mod run;
mod signals;
mod words;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use testdrive_runner::{Event, RunError};

/// Runs jobs on drives, captures and imports workloads, and lists drives; the contracts are in docs/job.md.
#[derive(Parser)]
#[command(name = "testdrive-engine", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a job: JSON in, JSON lines out, a recording on disk
    Run(run::RunArgs),
    /// List the block devices of this host as JSON: what each is, and whether it may be erased
    Drives(drives::DrivesArgs),
    /// List the modelled drives as JSON
    Models,
    /// Make a recording of a foreign trace
    Import(import::ImportArgs),
    /// Record the I/O of block devices as it happens
    Capture(capture::CaptureArgs),
    /// List the trace formats that can be imported, as JSON
    Formats,
    /// Write a recording as a trace that other tools read
    Export(export::ExportArgs),
}

/// A defect of the engine is told like any other error, and ends the process at once: the recording, marked by its lock as given up,
/// is recovered by whoever opens it next.
fn tell_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        default(panic);
        let error = RunError::internal(format!("a defect of the engine, please report it: {panic}"));
        lines::tell_line(&Event::from(&error));
        std::process::exit(i32::from(error.kind.exit_status()));
    }));
}

fn main() -> ExitCode {
    tell_panics();
    match Cli::parse().command {
        Command::Run(args) => run::main(&args),
        Command::Drives(args) => drives::main(&args),
        Command::Models => models::main(),
        Command::Import(args) => import::run(args),
        Command::Capture(args) => capture::run(args),
        Command::Formats => import::formats(),
        Command::Export(args) => export::run(&args),
    }
}
