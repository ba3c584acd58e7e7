//! What went wrong between the driver and the controller, for the recording.

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Commands got no answer for as long as an I/O may take.
    CommandTimeout,
    /// The controller was asked to abort commands.
    Abort,
    /// The controller was reset.
    ControllerReset,
    /// The controller said that it failed (CSTS.CFS).
    ControllerFatalStatus,
    /// The bus to the controller had an error that it could not mend.
    BusError,
    /// The controller is no longer there, or no longer ours.
    ControllerGone,
    /// The controller did not say that it was shut down: it was stopped without, as if its power had failed.
    ShutdownIncomplete,
}

impl EventKind {
    /// The name in a recording.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::CommandTimeout => "command_timeout",
            EventKind::Abort => "command_abort",
            EventKind::ControllerReset => "controller_reset",
            EventKind::ControllerFatalStatus => "controller_fatal_status",
            EventKind::BusError => "bus_error",
            EventKind::ControllerGone => "controller_gone",
            EventKind::ShutdownIncomplete => "shutdown_incomplete",
        }
    }
}

/// One of them, with times of the clock of whoever drives the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// From when.
    pub start_ns: i64,
    /// Until when.
    pub end_ns: i64,
    /// How many commands it concerned: of a reset, those of all queues that it took away.
    pub commands: u64,
}
