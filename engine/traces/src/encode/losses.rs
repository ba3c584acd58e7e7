//! What a format has no place for, counted as rows pass.

use testdrive_core::IoRecord;

/// A column that the output does not carry, or not as exactly as the recording has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCarried {
    /// The recording's column.
    pub column: &'static str,
    /// What is lost of it.
    pub what: &'static str,
    /// Rows that it is lost of.
    pub ios: u64,
}

/// Counts rows by what is lost of them.
pub(super) struct Losses {
    of: &'static [(&'static str, &'static str)],
    ios: Vec<u64>,
    first_phase: Option<u16>,
    other_phases: u64,
}

impl Losses {
    /// What may be lost: columns, and what of them.
    pub fn new(of: &'static [(&'static str, &'static str)]) -> Losses {
        Losses { of, ios: vec![0; of.len()], first_phase: None, other_phases: 0 }
    }

    /// Counts a row where `lost` says that it loses what stands at `index`.
    pub fn count(&mut self, index: usize, lost: bool) {
        self.ios[index] += u64::from(lost);
    }

    /// Counts the row's phase, which no trace format has.
    pub fn count_phase(&mut self, row: &IoRecord) {
        let first = *self.first_phase.get_or_insert(row.phase);
        self.other_phases += u64::from(row.phase != first);
    }

    /// What was lost, without what nothing was lost of.
    pub fn list(self) -> Vec<NotCarried> {
        let counted = self.of.iter().zip(self.ios);
        let mut list: Vec<NotCarried> =
            counted.map(|(&(column, what), ios)| NotCarried { column, what, ios }).collect();
        let what = "which phase each I/O is of: all are one workload";
        list.push(NotCarried { column: "phase", what, ios: self.other_phases });
        list.retain(|lost| lost.ios > 0);
        list
    }
}
