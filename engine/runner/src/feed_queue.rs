//! The queues between what decodes ahead and the submitters.

use crate::source::{Peek, Planned, Source};
use crate::stop::Stop;
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// I/Os decoded ahead for each submitter: 4 MiB.
const AHEAD: usize = 65_536;
/// How long the feeder sleeps when every submitter has enough.
const FULL_SLEEP: Duration = Duration::from_micros(200);

/// The queue from the feeder to one submitter.
pub struct Fed {
    queue: Consumer<Planned>,
    /// The feeder waits because some queue is full: then an empty one of several is not starved, its next I/O only comes later. A
    /// queue that is alone has nothing to be held back by.
    waiting: Option<Arc<AtomicBool>>,
}

/// The feeder's ends of the queues.
pub struct Feeds {
    queues: Vec<Producer<Planned>>,
    waiting: Arc<AtomicBool>,
}

/// A queue for each of `submitters`.
pub fn queues(submitters: usize) -> (Feeds, Vec<Fed>) {
    let waiting = Arc::new(AtomicBool::new(false));
    let (queues, feds) = (0..submitters)
        .map(|_| {
            let (producer, queue) = RingBuffer::new(AHEAD);
            (producer, Fed { queue, waiting: (submitters > 1).then(|| Arc::clone(&waiting)) })
        })
        .unzip();
    (Feeds { queues, waiting }, feds)
}

impl Fed {
    /// Whether the submitter may start: enough is decoded, or all is.
    pub fn is_primed(&self) -> bool {
        self.queue.slots() >= AHEAD / 2 || self.queue.is_abandoned() || self.is_held_back()
    }

    fn is_held_back(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.load(Ordering::Relaxed))
    }
}

impl Source for Fed {
    #[inline]
    fn peek(&mut self) -> Peek {
        if let Ok(planned) = self.queue.peek() {
            return Peek::Ready(*planned);
        }
        if !self.queue.is_abandoned() {
            return if self.is_held_back() { Peek::HeldBack } else { Peek::Starved };
        }
        // The feeder may have pushed its last between the two looks.
        match self.queue.peek() {
            Ok(planned) => Peek::Ready(*planned),
            Err(_) => Peek::End,
        }
    }

    #[inline]
    fn take(&mut self) {
        let _ = self.queue.pop();
    }
}

/// Whether feeding goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It does.
    GoOn,
    /// Nobody takes I/Os any more, but what the schedule still held is to be counted.
    CountOnly,
    /// The run stops, or there is nothing more to feed.
    End,
}

impl Feeds {
    /// How many submitters are fed.
    pub fn count(&self) -> usize {
        self.queues.len()
    }

    /// Hands over a time alone; false when nobody takes it any more.
    pub fn push_time(&mut self, submitter: usize, time: Planned, stop: &Stop) -> bool {
        self.push(submitter, time, stop) == Fate::GoOn
    }

    /// Hands over an I/O, and waits for room.
    pub fn push(&mut self, submitter: usize, planned: Planned, stop: &Stop) -> Fate {
        let queue = &mut self.queues[submitter];
        while queue.is_full() {
            self.waiting.store(true, Ordering::Relaxed);
            if stop.requested() {
                return Fate::End;
            }
            if queue.is_abandoned() {
                return Fate::CountOnly;
            }
            thread::sleep(FULL_SLEEP);
        }
        self.waiting.store(false, Ordering::Relaxed);
        if queue.is_abandoned() {
            return Fate::CountOnly;
        }
        match queue.push(planned) {
            Ok(()) => Fate::GoOn,
            Err(_) => unreachable!("only the feeder pushes, and there was room"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_of_several_submitters_can_be_held_back() {
        let (feeds, mut alone) = queues(1);
        feeds.waiting.store(true, Ordering::Relaxed);
        // Virtual time would go on for a submitter that is held back, while the feeder only has not come round yet.
        assert_eq!(alone[0].peek(), Peek::Starved);
        let (feeds, mut several) = queues(2);
        assert_eq!(several[0].peek(), Peek::Starved);
        feeds.waiting.store(true, Ordering::Relaxed);
        assert_eq!(several[0].peek(), Peek::HeldBack);
    }
}
