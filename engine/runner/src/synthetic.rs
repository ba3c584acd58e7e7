//! Generated I/Os for a closed loop: sequential fills and uniform random mixes.

use crate::job::{Pattern, PrepareJob, SyntheticJob};
use crate::source::{Peek, Planned, Source};
use testdrive_core::{Command, Flags, Opcode, SplitMix64};

/// A generator that makes each I/O when it is asked for.
pub struct Synthetic {
    pattern: Pattern,
    read_share: f64,
    block_bytes: u64,
    span_bytes: u64,
    left: u64,
    cursor_bytes: u64,
    sequence: u64,
    random: SplitMix64,
    next: Option<Planned>,
}

impl Synthetic {
    /// Writes every byte of the drive once.
    pub fn fill(job: &PrepareJob, capacity_bytes: u64) -> Synthetic {
        Synthetic::new(Pattern::Sequential, 0.0, job.block_bytes, capacity_bytes, None, 0)
    }

    /// What a `synthetic` phase asks for.
    pub fn generate(job: &SyntheticJob, capacity_bytes: u64) -> Synthetic {
        let span_bytes = job.span_bytes.unwrap_or(capacity_bytes).min(capacity_bytes);
        let ios = Some(job.ios.unwrap_or(u64::MAX));
        Synthetic::new(job.pattern, job.read_share, job.block_bytes, span_bytes, ios, job.seed)
    }

    fn new(
        pattern: Pattern,
        read_share: f64,
        block_bytes: u64,
        span_bytes: u64,
        ios: Option<u64>,
        seed: u64,
    ) -> Self {
        Synthetic {
            pattern,
            read_share,
            block_bytes,
            span_bytes,
            left: ios.unwrap_or(span_bytes.div_ceil(block_bytes)),
            cursor_bytes: 0,
            sequence: 0,
            random: SplitMix64::new(seed),
            next: None,
        }
    }

    fn offset_bytes(&mut self) -> u64 {
        match self.pattern {
            Pattern::Random => {
                self.random.below((self.span_bytes / self.block_bytes).max(1)) * self.block_bytes
            }
            Pattern::Sequential => {
                let offset_bytes = self.cursor_bytes;
                self.cursor_bytes += self.block_bytes;
                if self.cursor_bytes >= self.span_bytes {
                    self.cursor_bytes = 0;
                }
                offset_bytes
            }
        }
    }

    fn opcode(&mut self) -> Opcode {
        let read = match self.read_share {
            share if share >= 1.0 => true,
            share if share <= 0.0 => false,
            // 53 random bits are a uniform number in 0..1 that a double holds exactly.
            share => (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 <= share,
        };
        if read {
            Opcode::Read
        } else {
            Opcode::Write
        }
    }
}

impl Source for Synthetic {
    #[inline]
    fn peek(&mut self) -> Peek {
        if let Some(planned) = self.next {
            return Peek::Ready(planned);
        }
        if self.left == 0 || self.span_bytes == 0 {
            return Peek::End;
        }
        let offset_bytes = self.offset_bytes();
        let length_bytes = self.block_bytes.min(self.span_bytes - offset_bytes);
        let command = Command { offset_bytes, length_bytes, opcode: self.opcode(), flags: Flags::NONE };
        let planned =
            Planned { command, due_ns: 0, gate: 0, sequence: self.sequence, stream: 0, opens_gates: false };
        self.next = Some(planned);
        Peek::Ready(planned)
    }

    #[inline]
    fn take(&mut self) {
        self.next = None;
        self.left -= 1;
        self.sequence += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut source: Synthetic) -> Vec<Command> {
        let mut commands = Vec::new();
        while let Peek::Ready(planned) = source.peek() {
            commands.push(planned.command);
            source.take();
        }
        commands
    }

    #[test]
    fn a_fill_writes_every_byte_once_also_the_last_partial_block() {
        let commands = all(Synthetic::new(Pattern::Sequential, 0.0, 128 << 10, (1 << 20) + 4096, None, 0));
        assert_eq!(commands.len(), 9);
        let mut end = 0;
        for command in commands {
            assert_eq!((command.offset_bytes, command.opcode), (end, Opcode::Write));
            end += command.length_bytes;
        }
        assert_eq!(end, (1 << 20) + 4096);
    }

    #[test]
    fn a_mix_has_its_share_of_reads_and_stays_in_its_span() {
        let commands = all(Synthetic::new(Pattern::Random, 0.7, 4096, 1 << 20, Some(20_000), 3));
        let reads = commands.iter().filter(|command| command.opcode == Opcode::Read).count();
        assert!((13_700..14_300).contains(&reads), "{reads}");
        assert!(commands.iter().all(|command| command.offset_bytes + command.length_bytes <= 1 << 20));
    }
}
