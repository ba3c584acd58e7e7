//! A submission queue and its completion queue: two rings in memory and two doorbells (NVM Express Base Specification 2.0, 3.3 and 4.2).
//!
//! The controller marks each completion with a phase bit that changes each time the ring comes round, so that a new entry is told from
//! an old one without a count. At most one less than the ring has entries is in flight, so that neither ring can overflow; the head of
//! the submission queue, which completions carry, is kept to as well.

use crate::function::Function;
use crate::memory::{after_phase, before_doorbell, DmaMemory, PAGE_BYTES};
use crate::prp;
use crate::registers::Capabilities;
use std::io;
use testdrive_nvme::{NvmCommand, Status, SQE_BYTES};

/// The size of a completion queue entry.
pub const CQE_BYTES: usize = 16;

/// What a controller says when a command is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What the command was pushed with.
    pub tag: u32,
    /// Its identifier, which is free again.
    pub cid: u16,
    /// How it ended.
    pub status: Status,
    /// Dword 0, whose meaning is the command's.
    pub result: u32,
}

/// What a command's pointers are to say.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// Nothing: it has no data.
    None,
    /// Where its data are; how many there are is the command's.
    Data {
        /// The memory.
        memory: &'a DmaMemory,
        /// Where in it they begin.
        offset: usize,
    },
    /// An address: that of a queue to be created.
    Address(u64),
}

/// A pair of queues, driven by one thread.
pub struct QueuePair {
    id: u16,
    entries: usize,
    memory: DmaMemory,
    completions_at: usize,
    lists_at: usize,
    list_bytes: usize,
    /// What a list is long enough for.
    transfer_bytes_max: usize,
    tail: usize,
    tail_told: usize,
    /// How far the controller has read, as its completions say.
    head: usize,
    completion_head: usize,
    phase: bool,
    /// The tags of commands in flight, by identifier.
    commands: Vec<Option<u32>>,
    free: Vec<u16>,
    doorbell: usize,
    completion_doorbell: usize,
}

impl QueuePair {
    /// Rings for `entries` entries, and lists for transfers of at most `transfer_bytes_max`. The controller does not know of it yet.
    ///
    /// # Errors
    /// When there is no memory for it, or not in one piece where the controller wants that.
    ///
    /// # Panics
    /// With fewer than two entries or more than 65536.
    pub fn new(
        function: &impl Function,
        capabilities: &Capabilities,
        id: u16,
        entries: usize,
        transfer_bytes_max: usize,
    ) -> io::Result<QueuePair> {
        assert!((2..=1 << 16).contains(&entries), "a queue of {entries} entries");
        let completions_at = (entries * SQE_BYTES).next_multiple_of(PAGE_BYTES);
        let lists_at = completions_at + (entries * CQE_BYTES).next_multiple_of(PAGE_BYTES);
        // Lists, ranges and logs are a page.
        let transfer_bytes_max = transfer_bytes_max.max(PAGE_BYTES);
        let list_bytes = prp::list_pages(transfer_bytes_max) * PAGE_BYTES;
        let memory = function.allocate(lists_at + (entries - 1) * list_bytes)?;
        let rings = [(0, entries * SQE_BYTES), (completions_at, entries * CQE_BYTES)];
        if !rings.into_iter().all(|(at, length)| memory.is_contiguous(at, length)) {
            let message =
                format!("a queue of {entries} entries is not in one piece of memory: ask for less in flight");
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, message));
        }
        let doorbell = capabilities.doorbell(id);
        let mut queue = QueuePair {
            id,
            entries,
            memory,
            completions_at,
            lists_at,
            list_bytes,
            transfer_bytes_max,
            tail: 0,
            tail_told: 0,
            head: 0,
            completion_head: 0,
            phase: true,
            commands: vec![None; entries - 1],
            free: Vec::with_capacity(entries - 1),
            doorbell,
            completion_doorbell: doorbell + capabilities.doorbell_stride,
        };
        queue.restart(|_| {});
        Ok(queue)
    }

    /// Its number.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Entries of each ring.
    pub fn entries(&self) -> u32 {
        self.entries as u32
    }

    /// Where the submission queue is for the controller.
    pub fn submission_address(&self) -> u64 {
        self.memory.address(0)
    }

    /// Where the completion queue is for the controller.
    pub fn completion_address(&self) -> u64 {
        self.memory.address(self.completions_at)
    }

    /// Commands in flight.
    pub fn in_flight(&self) -> usize {
        self.commands.len() - self.free.len()
    }

    /// Whether another command can be pushed.
    #[inline]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() && (self.tail + 1) % self.entries != self.head
    }

    /// The identifier that the next command gets: what belongs to a command may be kept by it until it is answered.
    ///
    /// # Panics
    /// When there is no room.
    #[inline]
    pub fn next_cid(&self) -> u16 {
        *self.free.last().expect("the caller looked whether there is room")
    }

    /// The identifiers of the commands in flight with this tag.
    pub fn cids_of(&self, tag: u32) -> impl Iterator<Item = u16> + '_ {
        let tagged = self.commands.iter().enumerate().filter(move |(_, command)| **command == Some(tag));
        tagged.map(|(cid, _)| cid as u16)
    }

    /// Puts a command into the ring, for [`QueuePair::ring`] to tell of; its identifier.
    ///
    /// # Panics
    /// When there is no room, or more data than the queue was made for: callers look first.
    #[inline]
    pub fn push(&mut self, command: &NvmCommand, place: Place<'_>, tag: u32) -> u16 {
        assert!(self.has_room(), "a command for a full queue");
        let length = command.data_bytes as usize;
        assert!(
            length <= self.transfer_bytes_max,
            "{length} bytes by a queue for {}",
            self.transfer_bytes_max
        );
        let cid = self.free.pop().expect("there is room, by the check above");
        let (prp1, prp2) = match place {
            Place::None => (0, 0),
            Place::Address(address) => (address, 0),
            Place::Data { memory, offset } => {
                let list_at = self.lists_at + usize::from(cid) * self.list_bytes;
                prp::describe(memory, offset, length, &self.memory, list_at)
            }
        };
        self.memory.write(self.tail * SQE_BYTES, &command.entry(cid, prp1, prp2));
        self.commands[usize::from(cid)] = Some(tag);
        self.tail = (self.tail + 1) % self.entries;
        cid
    }

    /// Tells the controller of everything that was pushed, with one write.
    #[inline]
    pub fn ring(&mut self, function: &impl Function) {
        if self.tail != self.tail_told {
            before_doorbell();
            function.write32(self.doorbell, self.tail as u32);
            self.tail_told = self.tail;
        }
    }

    /// Hands every new completion to `take`, and gives their places back with one write.
    ///
    /// # Errors
    /// When the controller completes what was not asked of it, or says that it read what was not written: it cannot be trusted then.
    #[inline]
    pub fn reap(&mut self, function: &impl Function, mut take: impl FnMut(Answer)) -> io::Result<()> {
        let before = (self.completion_head, self.phase);
        let outcome = loop {
            match self.next_answer() {
                Ok(Some(answer)) => take(answer),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if (self.completion_head, self.phase) != before {
            before_doorbell();
            function.write32(self.completion_doorbell, self.completion_head as u32);
        }
        outcome
    }

    /// Takes the next completion out of its ring, if there is one; its place is not given back by this.
    #[inline]
    fn next_answer(&mut self) -> io::Result<Option<Answer>> {
        let at = self.completions_at + self.completion_head * CQE_BYTES;
        let last = self.memory.read32(at + 12);
        if (last >> 16 & 1 == 1) != self.phase {
            return Ok(None);
        }
        after_phase();
        let (result, queues) = (self.memory.read32(at), self.memory.read32(at + 8));
        self.completion_head += 1;
        if self.completion_head == self.entries {
            (self.completion_head, self.phase) = (0, !self.phase);
        }
        let (cid, head) = (last as u16, usize::from(queues as u16));
        let Some(tag) = self.commands.get_mut(usize::from(cid)).and_then(Option::take) else {
            let what = format!("it completed command {cid} of queue {}, which was not in flight", self.id);
            return Err(nonsense(what));
        };
        self.free.push(cid);
        if !self.was_written(head) {
            let what = format!("it says that it has read up to entry {head} of queue {}", self.id);
            return Err(nonsense(what));
        }
        self.head = head;
        let status = Status::from_completion((last >> 16) as u16);
        Ok(Some(Answer { tag, cid, status, result }))
    }

    /// Whether the controller can have read up to here: it lies between the last place that it told of and the tail.
    fn was_written(&self, head: usize) -> bool {
        let distance = |to: usize| (to + self.entries - self.head) % self.entries;
        head < self.entries && distance(head) <= distance(self.tail)
    }

    /// Makes the rings as new, for a controller that was stopped. What it had answered before that goes to `take`; returned are the tags of
    /// what it had not, one for each command.
    pub fn restart(&mut self, mut take: impl FnMut(Answer)) -> Vec<u32> {
        // What follows an answer to nothing is not believed either.
        while let Ok(Some(answer)) = self.next_answer() {
            take(answer);
        }
        self.memory.clear();
        let lost = self.commands.iter_mut().filter_map(Option::take).collect();
        self.free = (0..self.commands.len() as u16).rev().collect();
        (self.tail, self.tail_told, self.head, self.completion_head, self.phase) = (0, 0, 0, 0, true);
        lost
    }
}

fn nonsense(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the controller cannot be trusted: {what}"))
}
