//! Threads that may never end: a submitter whose drive went silent cannot leave, since the kernel keeps a thread until its
//! requests are answered. A scope would wait for it for ever, and the recording would never be closed.

use std::sync::mpsc::{sync_channel, Receiver, TryRecvError};
use std::thread::{self, Builder, JoinHandle};

/// What a thread brings back.
pub trait Verdict {
    /// Whether the thread has requests out that the drive does not answer, so that it must not be waited for.
    fn is_stuck(&self) -> bool;
}

/// A thread that borrows from its caller, and hands over its result before it ends.
pub struct Borrower<T: Verdict> {
    thread: Option<JoinHandle<()>>,
    result: Receiver<T>,
    taken: Option<T>,
}

impl<T: Verdict + Send> Borrower<T> {
    /// Starts `body` on a thread of its own.
    ///
    /// # Errors
    /// When the system has no thread left.
    ///
    /// # Safety
    /// The `Borrower` must be dropped, not leaked, while everything that `body` and its result borrow is still alive: dropping waits
    /// until the body has returned, after which its thread touches nothing that is borrowed.
    pub unsafe fn spawn<'a, F>(name: &str, body: F) -> std::io::Result<Borrower<T>>
    where
        F: FnOnce() -> T + Send + 'a,
        T: 'a,
    {
        let (hand_over, result) = sync_channel(1);
        let whole = move || {
            let outcome = body();
            let stuck = outcome.is_stuck();
            // The receiver lives until it has this, by the contract of `spawn`.
            let _ = hand_over.send(outcome);
            drop(hand_over);
            if stuck {
                loop {
                    thread::park();
                }
            }
        };
        // SAFETY: what `whole` borrows outlives its use: the caller keeps it alive until the result has been handed over, and from
        // then on the thread only drops an empty sender and parks or returns.
        let thread = unsafe { Builder::new().name(name.into()).spawn_unchecked(whole) }?;
        Ok(Borrower { thread: Some(thread), result, taken: None })
    }

    /// Whether the body has returned.
    ///
    /// # Panics
    /// When the body did.
    pub fn is_done(&mut self) -> bool {
        if self.taken.is_none() {
            match self.result.try_recv() {
                Ok(outcome) => self.taken = Some(outcome),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => panic!("a submitter panicked"),
            }
        }
        true
    }

    /// Waits for the body, and takes what it returned.
    ///
    /// # Panics
    /// When the body did.
    pub fn join(mut self) -> T {
        let outcome = match self.taken.take() {
            Some(outcome) => outcome,
            None => self.result.recv().expect("a submitter panicked"),
        };
        if !outcome.is_stuck() {
            if let Some(thread) = self.thread.take() {
                thread.join().expect("a submitter panicked");
            }
        }
        self.thread = None;
        outcome
    }
}

impl<T: Verdict> Drop for Borrower<T> {
    fn drop(&mut self) {
        if self.thread.is_some() && self.taken.is_none() {
            // An error means that the body panicked, and so has returned too.
            let _ = self.result.recv();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Outcome(u32, bool);

    impl Verdict for Outcome {
        fn is_stuck(&self) -> bool {
            self.1
        }
    }

    #[test]
    fn a_stuck_thread_hands_over_its_result_and_is_not_waited_for() {
        let count = AtomicU32::new(0);
        let body = || Outcome(count.fetch_add(1, Ordering::Relaxed) + 7, true);
        // SAFETY: the borrower is joined below, before `count` goes.
        let borrower = unsafe { Borrower::spawn("stuck", body) }.unwrap();
        assert_eq!(borrower.join().0, 7);
        assert_eq!(count.into_inner(), 1);
    }

    #[test]
    fn dropping_waits_until_the_body_has_returned() {
        let count = AtomicU32::new(0);
        let body = || {
            thread::sleep(std::time::Duration::from_millis(50));
            Outcome(count.fetch_add(1, Ordering::Relaxed), false)
        };
        // SAFETY: the borrower is dropped at once, before `count` goes.
        drop(unsafe { Borrower::spawn("slow", body) }.unwrap());
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
}
