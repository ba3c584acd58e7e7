//! Where the submitters of a phase wait until all are ready, so that they start at one time; or until one of them cannot.

use crate::error::RunError;
use std::sync::{Condvar, Mutex, MutexGuard};

/// The start that all submitters of a phase agree on.
pub struct StartLine {
    state: Mutex<State>,
    changed: Condvar,
    submitters: usize,
}

#[derive(Default)]
struct State {
    ready: usize,
    start_ns: Option<i64>,
    cancelled: bool,
    error: Option<RunError>,
}

impl StartLine {
    /// A line for so many submitters.
    pub fn new(submitters: usize) -> StartLine {
        StartLine { state: Mutex::default(), changed: Condvar::new(), submitters }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// Waits until all are ready; the last one says when to start. `None` where the phase cannot start.
    pub fn wait(&self, start_ns: impl FnOnce() -> i64) -> Option<i64> {
        let mut state = self.state();
        state.ready += 1;
        if state.ready == self.submitters {
            state.start_ns = Some(start_ns());
            self.changed.notify_all();
        }
        while state.start_ns.is_none() && !state.cancelled {
            state = self.changed.wait(state).expect("no holder of this lock panics");
        }
        state.start_ns.filter(|_| !state.cancelled)
    }

    /// Lets everybody go: the phase cannot start.
    pub fn cancel(&self) {
        self.state().cancelled = true;
        self.changed.notify_all();
    }

    /// Lets everybody go, and notes why; the first reason stands.
    pub fn fail(&self, error: RunError) {
        self.state().error.get_or_insert(error);
        self.cancel();
    }

    /// The start on the drive's clock, once it is set.
    pub fn start_ns(&self) -> Option<i64> {
        self.state().start_ns
    }

    /// Why the phase could not start.
    pub fn error(&self) -> Option<RunError> {
        self.state().error.take()
    }
}

/// Cancels the start when the thread that holds it panics, so that the others do not wait for it.
pub struct CancelOnPanic<'a>(pub &'a StartLine);

impl Drop for CancelOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_start_at_the_time_that_the_last_one_says() {
        let line = StartLine::new(3);
        let starts: Vec<Option<i64>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| line.wait(|| 42))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(starts, [Some(42); 3]);
    }

    #[test]
    fn one_that_cannot_start_lets_the_others_go() {
        let line = StartLine::new(2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| line.wait(|| 42));
            line.fail(RunError::drive("no queue".into()));
            assert_eq!(waiting.join().unwrap(), None);
        });
        assert_eq!(line.error().unwrap().message, "no queue");
    }
}
