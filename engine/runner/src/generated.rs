//! What a submitter of a generated phase takes its I/Os from: one generator, or all of them where there is one submitter only.

use crate::feeder::Fed;
use crate::source::{Peek, Planned, Source};
use crate::synthetic::Synthetic;
use crate::workload::Workload;

/// Generators whose I/Os one submitter issues.
pub struct Generated {
    parts: Vec<Synthetic>,
    turn: usize,
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
            return vec![Generated { parts: parts.collect(), turn: 0, times: None }];
        }
        assert_eq!(submitters as u64, threads, "each submitter has a thread of its own");
        parts.map(|part| Generated { parts: vec![part], turn: 0, times: None }).collect()
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
        let (count, first) = (self.parts.len(), self.turn);
        let mut found: Option<(usize, Peek, i64)> = None;
        for index in (first..count).chain(0..first) {
            if let peeked @ Peek::Ready(planned) = self.parts[index].peek() {
                if found.is_none_or(|(_, _, due_ns)| planned.due_ns < due_ns) {
                    found = Some((index, peeked, planned.due_ns));
                }
                // Nothing is earlier; a closed loop need not look at every generator for each I/O.
                if planned.due_ns <= 0 {
                    break;
                }
            }
        }
        let Some((index, peeked, _)) = found else { return Peek::End };
        self.turn = index;
        peeked
    }

    #[inline]
    fn take(&mut self) {
        if let Some(times) = &mut self.times {
            times.take();
        }
        self.parts[self.turn].take();
        if self.parts.len() > 1 {
            self.turn = (self.turn + 1) % self.parts.len();
        }
    }
}
