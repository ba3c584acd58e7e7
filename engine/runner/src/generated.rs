//! What a submitter of a generated phase takes its I/Os from: one generator, or all of them where there is one submitter only.

use crate::source::{Peek, Source};
use crate::synthetic::Synthetic;
use crate::workload::Workload;

/// Generators whose I/Os one submitter issues.
pub struct Generated {
    parts: Vec<Synthetic>,
    turn: usize,
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
            return vec![Generated { parts: parts.collect(), turn: 0 }];
        }
        assert_eq!(submitters as u64, threads, "each submitter has a thread of its own");
        parts.map(|part| Generated { parts: vec![part], turn: 0 }).collect()
    }
}

impl Source for Generated {
    /// The generators' next I/Os in the order of their times; those of a closed loop, which have none, in turn.
    #[inline]
    fn peek(&mut self) -> Peek {
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
            }
        }
        let Some((index, peeked, _)) = found else { return Peek::End };
        self.turn = index;
        peeked
    }

    #[inline]
    fn take(&mut self) {
        self.parts[self.turn].take();
        if self.parts.len() > 1 {
            self.turn = (self.turn + 1) % self.parts.len();
        }
    }
}
