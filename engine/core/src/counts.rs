//! I/Os and bytes counted by opcode.

use crate::{IoRecord, Opcode};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A number of I/Os and the bytes that they cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoCount {
    /// I/Os.
    pub ios: u64,
    /// Sum of their `length_bytes`.
    pub bytes: u64,
    /// Those with a status other than 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// The largest `length_bytes`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub length_max_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl IoCount {
    /// Counts one I/O of this length.
    pub fn add(&mut self, length_bytes: u64) {
        self.ios += 1;
        // A trace may claim lengths that no drive has.
        self.bytes = self.bytes.saturating_add(length_bytes);
        self.length_max_bytes = self.length_max_bytes.max(length_bytes);
    }

    fn merge(&mut self, other: &IoCount) {
        self.ios = self.ios.saturating_add(other.ios);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.errors = self.errors.saturating_add(other.errors);
        self.length_max_bytes = self.length_max_bytes.max(other.length_max_bytes);
    }
}

/// An [`IoCount`] for each opcode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpcodeCounts {
    counts: [IoCount; Opcode::ALL.len()],
}

impl OpcodeCounts {
    /// Counts one I/O.
    pub fn add(&mut self, opcode: Opcode, length_bytes: u64) {
        self.counts[opcode as usize].add(length_bytes);
    }

    /// Counts one recorded I/O, with its status.
    pub fn add_record(&mut self, record: &IoRecord) {
        let count = &mut self.counts[record.opcode as usize];
        count.add(record.length_bytes.max(0) as u64);
        count.errors += u64::from(record.status != 0);
    }

    /// Counts I/Os of which only totals are known, the longest length not among them.
    pub fn add_many(&mut self, opcode: Opcode, ios: u64, bytes: u64, errors: u64) {
        self.counts[opcode as usize].merge(&IoCount { ios, bytes, errors, length_max_bytes: 0 });
    }

    /// Adds all that `other` counted.
    pub fn merge(&mut self, other: &OpcodeCounts) {
        for (own, other) in self.counts.iter_mut().zip(&other.counts) {
            own.merge(other);
        }
    }

    /// This, so many times over.
    #[must_use]
    pub fn times(&self, factor: u64) -> OpcodeCounts {
        let mut all = *self;
        for count in &mut all.counts {
            count.ios = count.ios.saturating_mul(factor);
            count.bytes = count.bytes.saturating_mul(factor);
            count.errors = count.errors.saturating_mul(factor);
        }
        all
    }

    /// What is left of this when `other` is taken away; never below 0. Lengths may differ between the two (clipped, widened), so
    /// only where I/Os are left do bytes remain.
    #[must_use]
    pub fn minus(&self, other: &OpcodeCounts) -> OpcodeCounts {
        let mut rest = *self;
        for (own, other) in rest.counts.iter_mut().zip(&other.counts) {
            own.ios = own.ios.saturating_sub(other.ios);
            own.bytes = if own.ios == 0 { 0 } else { own.bytes.saturating_sub(other.bytes) };
            own.errors = 0;
            own.length_max_bytes = if own.ios == 0 { 0 } else { own.length_max_bytes };
        }
        rest
    }

    /// What was counted of one opcode.
    pub fn of(&self, opcode: Opcode) -> IoCount {
        self.counts[opcode as usize]
    }

    /// Over all opcodes.
    pub fn total(&self) -> IoCount {
        let mut total = IoCount::default();
        for count in &self.counts {
            total.merge(count);
        }
        total
    }
}

impl Serialize for OpcodeCounts {
    /// As a map from the opcode's name; opcodes that were never seen are left out.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            Opcode::ALL
                .into_iter()
                .filter(|opcode| self.of(*opcode).ios > 0)
                .map(|opcode| (opcode.name(), self.of(opcode))),
        )
    }
}

impl<'de> Deserialize<'de> for OpcodeCounts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let by_name = BTreeMap::<String, IoCount>::deserialize(deserializer)?;
        let mut counts = OpcodeCounts::default();
        for (name, count) in by_name {
            let opcode = Opcode::from_name(&name)
                .ok_or_else(|| serde::de::Error::custom(format!("unknown opcode '{name}'")))?;
            counts.counts[opcode as usize] = count;
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_counts_equal_counting_the_whole() {
        let (mut whole, mut left, mut right) = <(OpcodeCounts, OpcodeCounts, OpcodeCounts)>::default();
        for (index, opcode) in Opcode::ALL.iter().cycle().take(37).enumerate() {
            whole.add(*opcode, index as u64 * 512);
            if index % 3 == 0 { &mut left } else { &mut right }.add(*opcode, index as u64 * 512);
        }
        left.merge(&right);
        assert_eq!(left, whole);
        assert_eq!(whole.total().ios, 37);
        assert_eq!(whole.total().length_max_bytes, 36 * 512);
    }

    #[test]
    fn lengths_that_no_drive_has_do_not_wrap_around() {
        let mut counts = OpcodeCounts::default();
        for _ in 0..3 {
            counts.add(Opcode::Read, i64::MAX as u64);
            counts.add(Opcode::Write, i64::MAX as u64);
        }
        assert_eq!((counts.of(Opcode::Read).ios, counts.of(Opcode::Read).bytes), (3, u64::MAX));
        let other = counts;
        counts.merge(&other);
        assert_eq!((counts.total().ios, counts.total().bytes), (12, u64::MAX));
    }
}
