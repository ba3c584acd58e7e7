//! Generated I/Os: each is made when it is asked for, so that a workload of any length needs no memory.

use crate::arrivals::Arrivals;
use crate::job_generated::BlockShare;
use crate::places::{unit, Places};
use crate::source::{Peek, Planned, Source};
use crate::throttle::OnOff;
use crate::workload::Workload;
use testdrive_core::{Command, Flags, Opcode, SplitMix64};

/// A generator that makes each I/O when it is asked for.
pub struct Synthetic {
    places: Places,
    read_share: f64,
    trim_from: f64,
    write_flags: Flags,
    blocks: Vec<BlockShare>,
    ios_left: u64,
    bytes_left: u64,
    written_bytes_left: u64,
    sequence: u64,
    stream: i32,
    arrivals: Arrivals,
    /// A closed loop rests at the submitter instead.
    stretch: Option<OnOff>,
    random: SplitMix64,
    next: Option<Planned>,
}

impl Synthetic {
    /// The `index`-th of `count` generators that share a workload.
    pub fn new(workload: &Workload, index: u64, count: u64) -> Synthetic {
        let ends = workload.ends.part(index, count);
        let seed = thread_seed(workload.seed, index);
        let mut share_until = 0.0;
        let mut blocks = workload.blocks.clone();
        for block in &mut blocks {
            share_until += block.share;
            block.share = share_until;
        }
        Synthetic {
            // The order of `random_once` is one that all threads share; everything else is drawn by each for itself.
            places: workload.places(index, count, workload.seed),
            read_share: workload.read_share,
            trim_from: if workload.write_share > 0.0 {
                1.0 - workload.trim_share
            } else {
                workload.read_share
            },
            write_flags: workload.write_flags,
            blocks,
            ios_left: ends.ios.unwrap_or(u64::MAX),
            bytes_left: ends.bytes.unwrap_or(u64::MAX),
            written_bytes_left: ends.written_bytes.unwrap_or(u64::MAX),
            sequence: 0,
            stream: workload.stream.map_or(index as i32, |place| place.index),
            arrivals: Arrivals::new(workload.arrivals.as_ref(), (index, count), seed, workload.stagger()),
            stretch: workload.on_off.filter(|_| workload.arrivals.is_some()),
            random: SplitMix64::new(seed),
            next: None,
        }
    }

    /// A fraction of I/Os has each length, by cumulated shares.
    #[inline]
    fn length_bytes(&mut self) -> u64 {
        if let [block] = self.blocks[..] {
            return block.bytes;
        }
        let drawn = unit(&mut self.random);
        let last = self.blocks.len() - 1;
        self.blocks[self.blocks[..last].partition_point(|block| block.share <= drawn)].bytes
    }

    #[inline]
    fn due_ns(&mut self) -> i64 {
        let due_ns = self.arrivals.next_ns();
        self.stretch.map_or(due_ns, |on_off| on_off.stretched(due_ns))
    }

    #[inline]
    fn opcode(&mut self) -> Opcode {
        if self.read_share >= 1.0 {
            return Opcode::Read;
        }
        if self.read_share <= 0.0 && self.trim_from >= 1.0 {
            return Opcode::Write;
        }
        match unit(&mut self.random) {
            drawn if drawn < self.read_share => Opcode::Read,
            drawn if drawn >= self.trim_from => Opcode::Trim,
            _ => Opcode::Write,
        }
    }
}

/// Each thread draws from a sequence of its own.
fn thread_seed(seed: u64, index: u64) -> u64 {
    match index {
        0 => seed,
        index => SplitMix64::new(seed.rotate_left(32) ^ index).next_u64(),
    }
}

impl Source for Synthetic {
    #[inline]
    fn peek(&mut self) -> Peek {
        if let Some(planned) = self.next {
            return Peek::Ready(planned);
        }
        if self.ios_left == 0 || self.bytes_left == 0 || self.written_bytes_left == 0 {
            return Peek::End;
        }
        if self.arrivals.is_waiting() {
            return Peek::HeldBack;
        }
        let length_bytes = self.length_bytes();
        let (offset_bytes, length_bytes) = self.places.next(length_bytes, &mut self.random);
        let opcode = self.opcode();
        let flags = if opcode == Opcode::Write { self.write_flags } else { Flags::NONE };
        let command = Command { offset_bytes, length_bytes, opcode, flags };
        let planned = Planned {
            command,
            due_ns: self.due_ns(),
            gate: 0,
            sequence: self.sequence,
            stream: self.stream,
            part: 0,
            opens_gates: false,
        };
        self.next = Some(planned);
        Peek::Ready(planned)
    }

    #[inline]
    fn take(&mut self) {
        let Some(planned) = self.next.take() else { return };
        let Command { length_bytes, opcode, .. } = planned.command;
        self.ios_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(length_bytes);
        if opcode == Opcode::Write {
            self.written_bytes_left = self.written_bytes_left.saturating_sub(length_bytes);
        }
        self.sequence += 1;
    }

    fn completed(&mut self, _part: u16, at_ns: i64) {
        self.arrivals.completed(at_ns);
    }

    fn release(&mut self) {
        self.arrivals.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::PhaseJob;
    use serde_json::{json, Value};
    use testdrive_recording::DriveIdentity;

    const CAPACITY_BYTES: u64 = (1 << 20) + 4096;

    fn workload(phase: &Value) -> Result<Workload, String> {
        let phase: PhaseJob = serde_json::from_value(phase.clone()).unwrap();
        let drive = DriveIdentity {
            uri: "drive".into(),
            capacity_bytes: CAPACITY_BYTES,
            logical_block_bytes: 4096,
            ..DriveIdentity::default()
        };
        Workload::all_of(&phase, &drive).map(|mut all| all.remove(0)).map_err(|error| error.to_string())
    }

    fn all(phase: Value) -> Vec<Command> {
        let mut source = Synthetic::new(&workload(&phase).unwrap(), 0, 1);
        let mut commands = Vec::new();
        while let Peek::Ready(planned) = source.peek() {
            commands.push(planned.command);
            source.take();
        }
        commands
    }

    fn share(commands: &[Command], of: impl Fn(&Command) -> bool) -> f64 {
        commands.iter().filter(|command| of(command)).count() as f64 / commands.len() as f64
    }

    #[test]
    fn a_fill_writes_every_byte_once_also_the_last_partial_block() {
        let commands = all(json!({"kind": "prepare", "method": "sequential"}));
        assert_eq!(commands.len(), 9);
        let mut end = 0;
        for command in commands {
            assert_eq!((command.offset_bytes, command.opcode), (end, Opcode::Write));
            end += command.length_bytes;
        }
        assert_eq!(end, CAPACITY_BYTES);
    }

    #[test]
    fn fills_go_over_the_span_as_often_as_asked() {
        let commands =
            all(json!({"kind": "prepare", "method": "sequential", "fills": 2.5, "span_share": 0.75}));
        // Three quarters are 769 KiB and 6 blocks of 128 KiB and 1 KiB, of which no block is left over.
        let span_bytes = CAPACITY_BYTES * 3 / 4 / 131_072 * 131_072;
        assert_eq!(commands.len(), 15);
        assert_eq!(commands.iter().map(|command| command.length_bytes).sum::<u64>(), span_bytes * 5 / 2);
        assert!(commands.iter().all(|command| command.offset_bytes + command.length_bytes <= span_bytes));
        let random = all(json!({"kind": "prepare", "method": "random", "fills": 3, "offset_bytes": 8192}));
        assert_eq!(random.len() as u64, 3 * (CAPACITY_BYTES - 8192) / 4096);
        assert!(random.iter().all(|command| command.opcode == Opcode::Write && command.offset_bytes >= 8192));
    }

    #[test]
    fn a_purge_trims_every_byte_once() {
        let commands = all(json!({"kind": "prepare", "method": "purge", "block_bytes": 524_288}));
        let ranges: Vec<(u64, u64)> =
            commands.iter().map(|command| (command.offset_bytes, command.length_bytes)).collect();
        assert_eq!(ranges, [(0, 524_288), (524_288, 524_288), (1 << 20, 4096)]);
        assert!(commands.iter().all(|command| command.opcode == Opcode::Trim));
        assert_eq!(all(json!({"kind": "prepare", "method": "purge"})).len(), 1);
    }

    #[test]
    fn a_mix_has_its_shares_of_opcodes_and_lengths_and_stays_in_its_span() {
        let commands = all(json!({
            "kind": "synthetic", "read_share": 0.7, "trim_share": 0.1, "ios": 20_000, "seed": 3,
            "block_bytes": [{"bytes": 4096, "share": 0.75}, {"bytes": 65_536, "share": 0.25}],
            "offset_bytes": 8192, "span_bytes": 1 << 19,
        }));
        assert!((share(&commands, |command| command.opcode == Opcode::Read) - 0.7).abs() < 0.015);
        assert!((share(&commands, |command| command.opcode == Opcode::Trim) - 0.1).abs() < 0.01);
        assert!((share(&commands, |command| command.length_bytes == 65_536) - 0.25).abs() < 0.015);
        for command in &commands {
            let offset_bytes = command.offset_bytes - 8192;
            assert!(offset_bytes + command.length_bytes <= 1 << 19);
            assert_eq!(offset_bytes % command.length_bytes, 0);
        }
    }

    #[test]
    fn shares_of_a_whole_leave_no_writes() {
        let commands = all(json!({"kind": "synthetic", "read_share": 0.7, "trim_share": 0.3, "ios": 20_000}));
        assert!(commands.iter().all(|command| command.opcode != Opcode::Write));
        let commands = all(json!({"kind": "synthetic", "read_share": 0, "trim_share": 1, "ios": 100}));
        assert!(commands.iter().all(|command| command.opcode == Opcode::Trim));
    }

    #[test]
    fn of_a_mix_that_is_forced_only_the_writes_are() {
        let mix =
            json!({"kind": "synthetic", "read_share": 0.5, "trim_share": 0.1, "ios": 1_000, "fua": true});
        for command in all(mix) {
            assert_eq!(command.flags.contains(Flags::FUA), command.opcode == Opcode::Write);
        }
        let plain = all(json!({"kind": "synthetic", "read_share": 0, "ios": 100}));
        assert!(plain.iter().all(|command| command.flags == Flags::NONE));
    }

    #[test]
    fn whichever_end_comes_first_ends_it() {
        let phase = |rest: Value| {
            let mut phase = json!({"kind": "synthetic", "read_share": 0.5});
            phase.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            phase
        };
        assert_eq!(all(phase(json!({"ios": 10, "bytes": 1 << 20}))).len(), 10);
        assert_eq!(all(phase(json!({"ios": 10_000, "bytes": 40_961}))).len(), 11);
        let commands = all(phase(json!({"drive_fills": 2, "ios": 10_000})));
        let written = commands.iter().filter(|command| command.opcode == Opcode::Write).count() as u64;
        assert_eq!(written * 4096, 2 * CAPACITY_BYTES);
        assert_eq!(workload(&phase(json!({"bytes": 40_961}))).unwrap().planned_ios(), Some(11));
        assert_eq!(workload(&phase(json!({"drive_fills": 1}))).unwrap().planned_ios(), None);
    }

    #[test]
    fn threads_have_sequences_of_their_own_and_share_the_ends() {
        let phase = json!({"kind": "synthetic", "read_share": 0.5, "ios": 100, "bytes": 40_960_000});
        let workload = workload(&phase).unwrap();
        let drawn = |index| {
            let mut source = Synthetic::new(&workload, index, 3);
            let mut offsets = Vec::new();
            while let Peek::Ready(planned) = source.peek() {
                assert_eq!(planned.stream, index as i32);
                offsets.push(planned.command.offset_bytes);
                source.take();
            }
            offsets
        };
        let (first, second, third) = (drawn(0), drawn(1), drawn(2));
        assert_eq!((first.len(), second.len(), third.len()), (34, 33, 33));
        assert_eq!(first, drawn(0));
        assert!(first[..33] != second && second != third);
    }

    #[test]
    fn hot_spots_get_their_share_of_the_ios() {
        let spots =
            json!([{"span_share": 0.25, "access_share": 0.9}, {"span_share": 0.25, "access_share": 0}]);
        let commands = all(json!({"kind": "synthetic", "ios": 20_000, "hot_spots": spots}));
        let quarter = 64 * 4096;
        assert!((share(&commands, |command| command.offset_bytes < quarter) - 0.9).abs() < 0.01);
        assert_eq!(share(&commands, |command| (quarter..2 * quarter).contains(&command.offset_bytes)), 0.0);
        let all_hot = json!([{"span_share": 0.1, "access_share": 1}]);
        let commands = all(json!({"kind": "synthetic", "ios": 1_000, "hot_spots": all_hot}));
        assert!(commands.iter().all(|command| command.offset_bytes < CAPACITY_BYTES / 10));
    }

    #[test]
    fn what_does_not_fit_the_drive_is_refused() {
        let refused = |rest: Value| {
            let mut phase = json!({"kind": "synthetic", "ios": 1});
            phase.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            workload(&phase).unwrap_err()
        };
        assert!(refused(json!({"span_bytes": 2 << 20})).contains("span of 2097152"));
        assert!(refused(json!({"offset_bytes": 4096, "span_share": 1})).contains("span_share"));
        assert!(refused(json!({"offset_bytes": 4 << 20})).contains("offset_bytes"));
        assert!(refused(json!({"block_bytes": 512})).contains("block_bytes is 512"));
        assert!(refused(json!({"alignment_bytes": 512})).contains("alignment_bytes is 512"));
        assert!(refused(json!({"block_bytes": 2 << 20})).contains("needs 2097152"));
        let spots = json!([{"span_share": 0.001, "access_share": 0.5}]);
        assert!(refused(json!({"hot_spots": spots})).contains("hot_spots[0]"));
    }
}
