//! Runs a job: paces I/Os to a drive, records every one, and accounts for what was asked.
//!
//! | thread | does |
//! |---|---|
//! | caller | opens everything, runs phase after phase, tells progress, passes signals on, closes the recording |
//! | feeder | decodes the source ahead and places its I/Os (`feeder`) |
//! | submitter, one or more | the pacing loop (`worker`): nothing but the drive, the clock and two lock-free queues |
//! | recorder | writes rows, keeps the figures for the progress (`recorder`) |

mod accounting;
mod administer;
mod arrivals;
mod book;
mod completed;
mod error;
mod event;
mod feed_queue;
mod feeder;
mod gates;
mod generate;
mod generated;
mod group;
mod host_state;
mod inputs;
mod job;
mod job_check;
mod job_check_generated;
mod job_check_streams;
mod job_defaults;
mod job_generated;
mod job_prepare;
mod job_rounds;
mod job_streams;
mod orders;
mod phase;
mod phase_outcome;
mod placement;
mod places;
mod plan;
mod recorder;
mod replay_check;
mod resume;
mod rounds;
mod run;
mod sequence;
mod slot;
mod source;
mod spawn;
mod start_line;
mod steady_state;
mod stop;
mod submission;
mod submitters;
mod synthetic;
mod telemetry;
mod throttle;
mod warnings;
mod watch;
mod worker;
mod workload;

pub use error::{ErrorKind, RunError};
pub use event::{Event, Progress, RoundOver, RoundPosition, TrackedOver};
pub use job::{
    Data, DriveChoice, Events, Job, OnError, Pace, PhaseJob, ReplayJob, Step, Streams, JOB_VERSION,
};
pub use job_generated::{BlockBytes, BlockShare, HotSpot, Measure, Pattern, SteadyStateJob, SyntheticJob};
pub use job_prepare::{PrepareJob, PrepareMethod};
pub use job_rounds::{RoundsJob, Tracked};
pub use rounds::SteadyProgress;
pub use run::{run, Outcome};
pub use steady_state::Fit;
