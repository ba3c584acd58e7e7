//! Rows of some phases: which row groups hold them, and when the first of them began.

use crate::error::RecordingError;
use crate::merge::{OrderBy, OrderedRows};
use crate::reader::{group_places, read_group, GroupPlace, Recording};
use std::collections::BTreeSet;
use testdrive_core::IoRecord;

/// The phases whose rows are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phases {
    /// Every row, also of phases that the manifest does not name.
    All,
    /// The rows of these.
    Only(BTreeSet<u16>),
}

impl Phases {
    /// Whether a row is wanted.
    pub fn contains(&self, row: &IoRecord) -> bool {
        match self {
            Phases::All => true,
            Phases::Only(phases) => phases.contains(&row.phase),
        }
    }

    /// Whether a row group whose phases lie in this range may hold a row that is wanted.
    fn meet(&self, (least, greatest): (u16, u16)) -> bool {
        match self {
            Phases::All => true,
            Phases::Only(phases) => phases.range(least..=greatest.max(least)).next().is_some(),
        }
    }

    /// Whether it is certain that every row of a row group whose phases lie in this range is wanted.
    fn hold(&self, (least, greatest): (u16, u16)) -> bool {
        match self {
            Phases::All => true,
            Phases::Only(phases) => least == greatest && phases.contains(&least),
        }
    }
}

impl Recording {
    /// Streams the rows of some phases in this order, in memory that does not grow with the recording's length. Row groups without
    /// such rows are not read.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn ordered_rows_of(&self, order: OrderBy, phases: &Phases) -> Result<OrderedRows, RecordingError> {
        let places = self.places_of(order, phases)?;
        Ok(OrderedRows::new(self.segments().to_vec(), places, order, phases.clone()))
    }

    /// How many rows are read for those of some phases: all of each row group that holds one.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn rows_read_of(&self, phases: &Phases) -> Result<u64, RecordingError> {
        Ok(self.places_of(OrderBy::Began, phases)?.iter().map(|place| place.rows as u64).sum())
    }

    /// The least intended or submit time of the rows of some phases; `None` where there is no such row.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn began_ns(&self, phases: &Phases) -> Result<Option<i64>, RecordingError> {
        let mut began_ns: Option<i64> = None;
        for place in self.places_of(OrderBy::Began, phases)? {
            if began_ns.is_some_and(|began_ns| began_ns <= place.first_ns) {
                continue;
            }
            // The statistics tell the time exactly where all rows of the group are wanted.
            let first_ns = if phases.hold(place.phases) {
                Some(place.first_ns)
            } else {
                let rows = read_group(&self.segments()[place.segment], place.group)?;
                let wanted = rows.iter().filter(|row| phases.contains(row));
                wanted.map(|row| OrderBy::Began.time_ns(row)).min()
            };
            began_ns = [began_ns, first_ns].into_iter().flatten().min();
        }
        Ok(began_ns)
    }

    fn places_of(&self, order: OrderBy, phases: &Phases) -> Result<Vec<GroupPlace>, RecordingError> {
        let mut places = Vec::new();
        for (segment, path) in self.segments().iter().enumerate() {
            places.extend(group_places(segment, path, order)?);
        }
        places.retain(|place| place.rows > 0 && phases.meet(place.phases));
        Ok(places)
    }
}
