//! A channel to the dies: data of reads and of programs take turns on it.

use crate::server::Server;
use serde::{Deserialize, Serialize};

/// One channel. Programs bring long transfers, which reads interrupt after every chunk; while a program is under way, chunks and
/// reads alternate, so that neither holds up the other without end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Channel {
    reads: Server,
    /// When the transfers of programs end, one behind the other, as far as is known.
    programs_end_ns: i64,
    /// How long reads have held up programs in all.
    delayed_ns: i64,
}

/// A transfer of a program under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transfer {
    end_ns: i64,
    delayed_before_ns: i64,
}

impl Default for Channel {
    /// Free since ever, since times may be negative.
    fn default() -> Self {
        Channel { reads: Server::default(), programs_end_ns: i64::MIN, delayed_ns: 0 }
    }
}

impl Channel {
    /// Moves the data of a read; returns when it is through.
    #[inline]
    pub(crate) fn read(&mut self, now_ns: i64, transfer_ns: i64, chunk_ns: i64) -> i64 {
        let free_ns = self.reads.free_ns().max(now_ns);
        let program_left_ns = self.programs_end_ns.saturating_sub(free_ns);
        if program_left_ns <= 0 {
            return self.reads.serve(now_ns, transfer_ns);
        }
        // On an idle channel the chunk that is being moved ends first; behind another read a whole one passes.
        let wait_ns =
            if free_ns == now_ns { program_left_ns % chunk_ns.max(1) } else { program_left_ns.min(chunk_ns) };
        self.programs_end_ns += transfer_ns;
        self.delayed_ns += transfer_ns;
        self.reads.serve(now_ns, wait_ns + transfer_ns)
    }

    /// Begins to move the data of a program behind those before it; returns when it is through if no read comes.
    pub(crate) fn begin_program(&mut self, now_ns: i64, transfer_ns: i64) -> (i64, Transfer) {
        self.programs_end_ns = self.programs_end_ns.max(self.reads.free_ns()).max(now_ns) + transfer_ns;
        let transfer = Transfer { end_ns: self.programs_end_ns, delayed_before_ns: self.delayed_ns };
        (transfer.end_ns, transfer)
    }

    /// Asks at its end whether the transfer is through: `None`, or when to ask again since reads came between.
    pub(crate) fn end_program(&mut self, transfer: &mut Transfer) -> Option<i64> {
        let delay_ns = self.delayed_ns - transfer.delayed_before_ns;
        if delay_ns == 0 {
            return None;
        }
        transfer.end_ns += delay_ns;
        transfer.delayed_before_ns = self.delayed_ns;
        Some(transfer.end_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK_NS: i64 = 10;

    #[test]
    fn reads_pass_an_idle_channel_one_behind_the_other() {
        let mut channel = Channel::default();
        assert_eq!(channel.read(100, 5, CHUNK_NS), 105);
        assert_eq!(channel.read(102, 5, CHUNK_NS), 110);
    }

    #[test]
    fn a_read_waits_for_the_chunk_that_is_moved_and_delays_the_program_by_its_own_length() {
        let mut channel = Channel::default();
        let (end_ns, mut transfer) = channel.begin_program(0, 100);
        assert_eq!(end_ns, 100);
        assert_eq!(channel.read(33, 5, CHUNK_NS), 33 + 7 + 5);
        assert_eq!(channel.end_program(&mut transfer), Some(105));
        assert_eq!(channel.end_program(&mut transfer), None);
    }

    #[test]
    fn reads_without_end_leave_programs_every_second_turn() {
        let mut channel = Channel::default();
        let (mut end_ns, mut transfer) = channel.begin_program(0, 100);
        let mut reads_end_ns = 0;
        for _ in 0..1000 {
            reads_end_ns = channel.read(0, 5, CHUNK_NS);
        }
        while let Some(later_ns) = channel.end_program(&mut transfer) {
            end_ns = later_ns;
        }
        // Ten chunks with ten reads between them, and then reads alone: the program is counted to the last read that met it.
        assert!((100 + 9 * 5..=100 + 11 * 5).contains(&end_ns), "{end_ns}");
        assert!(reads_end_ns >= 1000 * 5 + 90, "{reads_end_ns}");
    }
}
