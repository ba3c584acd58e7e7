//! What a submitter of a generated phase takes its I/Os from: one generator, or all of them where there is one submitter only.

use crate::feed_queue::Fed;
use crate::job_generated::ArrivalsJob;
use crate::source::{Peek, Planned, Source};
use crate::synthetic::Synthetic;
use crate::workload::Workload;

/// Generators whose I/Os one submitter issues.
pub struct Generated {
    parts: Vec<Synthetic>,
    turn: usize,
    /// What was found last, so that all generators are looked at once for an I/O.
    found: Option<Planned>,
    /// Times from elsewhere, which the generators take in turn.
    times: Option<Fed>,
}

impl Generated {
    /// The sources of so many submitters for the threads of a workload: as many, or one for all.
    ///
    /// # Panics
    /// When the submitters are neither as many as the threads nor one.
    pub fn sources(workload: &Workload, submitters: usize) -> Vec<Generated> {
        let threads = workload.threads;
        let parts = (0..threads).map(|index| Synthetic::new(workload, index, threads));
        if submitters == 1 {
            return vec![Generated::of(parts.collect())];
        }
        assert_eq!(submitters as u64, threads, "each submitter has a thread of its own");
        parts.map(|part| Generated::of(vec![part])).collect()
    }

    /// The sources of so many submitters for the streams of a phase, whose generators are dealt out to them.
    pub fn of_streams(streams: &[Workload], submitters: usize) -> Vec<Generated> {
        let mut dealt: Vec<Vec<Synthetic>> = (0..submitters).map(|_| Vec::new()).collect();
        let mut turn = 0;
        for stream in streams {
            let count = match stream.arrivals {
                // Their number is what makes their times.
                Some(ArrivalsJob::Act { .. } | ArrivalsJob::AfterCompletion { .. }) => stream.threads,
                // Of others it is not, so that each submitter takes its part.
                _ => submitters as u64,
            };
            for index in 0..count {
                dealt[turn % submitters].push(Synthetic::new(stream, index, count));
                turn += 1;
            }
        }
        dealt.into_iter().map(Generated::of).collect()
    }

    fn of(parts: Vec<Synthetic>) -> Generated {
        Generated { parts, turn: 0, found: None, times: None }
    }

    /// The same, at times that are fed.
    pub fn at(self, times: Fed) -> Generated {
        Generated { times: Some(times), ..self }
    }

    /// Whether enough times are known.
    pub fn is_primed(&self) -> bool {
        self.times.as_ref().is_none_or(Fed::is_primed)
    }

    fn peek_at(&mut self) -> Peek {
        let time = self.times.as_mut().map_or(Peek::End, Source::peek);
        match (time, self.parts[self.turn].peek()) {
            (Peek::Ready(time), Peek::Ready(planned)) => {
                Peek::Ready(Planned { due_ns: time.due_ns, ..planned })
            }
            (Peek::Ready(_), other) | (other, _) => other,
        }
    }
}

impl Source for Generated {
    /// The generators' next I/Os in the order of their times; those of a closed loop, which have none, in turn.
    #[inline]
    fn peek(&mut self) -> Peek {
        if self.times.is_some() {
            return self.peek_at();
        }
        if let [part] = &mut self.parts[..] {
            return part.peek();
        }
        if let Some(found) = self.found {
            return Peek::Ready(found);
        }
        let (count, first) = (self.parts.len(), self.turn);
        let mut nothing = Peek::End;
        for index in (first..count).chain(0..first) {
            match self.parts[index].peek() {
                Peek::Ready(planned) => {
                    if self.found.is_none_or(|found| planned.due_ns < found.due_ns) {
                        self.turn = index;
                        self.found = Some(Planned { part: index as u16, ..planned });
                    }
                    // Nothing is earlier; a closed loop need not look at every generator for each I/O.
                    if planned.due_ns <= 0 {
                        break;
                    }
                }
                Peek::HeldBack => nothing = Peek::HeldBack,
                Peek::Starved | Peek::End => {}
            }
        }
        self.found.map_or(nothing, Peek::Ready)
    }

    #[inline]
    fn take(&mut self) {
        if let Some(times) = &mut self.times {
            times.take();
        }
        self.found = None;
        self.parts[self.turn].take();
        if self.parts.len() > 1 {
            self.turn = (self.turn + 1) % self.parts.len();
        }
    }

    fn completed(&mut self, part: u16, at_ns: i64) {
        // Its next I/O may come before the one that was found.
        self.found = None;
        self.parts[usize::from(part)].completed(part, at_ns);
    }

    fn release(&mut self) {
        self.found = None;
        self.parts.iter_mut().for_each(Source::release);
    }
}
