//! Which column of a CSV is what.

use crate::TraceError;

/// What a column can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Intended,
    Submit,
    Latency,
    Complete,
    Response,
    Op,
    Offset,
    Length,
    Flags,
    Stream,
    Status,
}

const KEY_COUNT: usize = 11;

/// How a column's cells become what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A time: so many powers of ten to nanoseconds.
    Time(i32),
    /// A whole number of so many.
    Times(i64),
    Word,
}

const TIMES: [(&str, Key); 6] = [
    ("intended", Key::Intended),
    ("time", Key::Intended),
    ("submit", Key::Submit),
    ("latency", Key::Latency),
    ("complete", Key::Complete),
    ("response", Key::Response),
];

const TIME_UNITS: [(&str, i32); 4] = [("s", 9), ("ms", 6), ("us", 3), ("ns", 0)];

const OTHERS: [(&str, Key, Unit); 8] = [
    ("op", Key::Op, Unit::Word),
    ("flags", Key::Flags, Unit::Word),
    ("offset_bytes", Key::Offset, Unit::Times(1)),
    ("offset_sectors", Key::Offset, Unit::Times(512)),
    ("length_bytes", Key::Length, Unit::Times(1)),
    ("length_sectors", Key::Length, Unit::Times(512)),
    ("stream", Key::Stream, Unit::Times(1)),
    ("status", Key::Status, Unit::Times(1)),
];

/// What a name on the left of `=` stands for.
fn key_of(name: &str) -> Option<(Key, Unit)> {
    if let Some((_, key, unit)) = OTHERS.iter().find(|(other, ..)| *other == name) {
        return Some((*key, *unit));
    }
    let (base, unit) = name.rsplit_once('_')?;
    let (_, key) = TIMES.iter().find(|(time, _)| *time == base)?;
    let (_, scale) = TIME_UNITS.iter().find(|(suffix, _)| *suffix == unit)?;
    Some((*key, Unit::Time(*scale)))
}

/// Whether a line is a header that names nothing but keys, several of them and a time among them.
pub(super) fn names_keys_only(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)) else {
        return false;
    };
    let keys: Option<Vec<Key>> = line.split(',').map(|name| Some(key_of(name.trim())?.0)).collect();
    keys.is_some_and(|keys| {
        keys.len() > 1 && keys.iter().any(|key| matches!(key, Key::Intended | Key::Submit))
    })
}

/// A column that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub index: usize,
    pub unit: Unit,
    /// As messages call it: `latency_us (column 'lat', index 3)`.
    pub shown: String,
}

/// The columns that are used, by what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    by_key: [Option<Column>; KEY_COUNT],
    /// Whether the first line names the columns.
    pub has_header: bool,
}

impl Columns {
    pub fn get(&self, key: Key) -> Option<&Column> {
        self.by_key[key as usize].as_ref()
    }

    /// Finds out, from what was asked for and the first line, which column is what.
    ///
    /// Without a map, columns whose names are keys stand for themselves.
    pub fn find(wanted: &[(String, String)], first_line: &[String]) -> Result<Columns, TraceError> {
        let own: Vec<(String, String)> = if wanted.is_empty() {
            let names = first_line.iter().filter(|name| key_of(name).is_some());
            names.map(|name| (name.clone(), name.clone())).collect()
        } else {
            wanted.to_vec()
        };
        if own.is_empty() {
            let message = format!(
                "say which column is what, as in --columns time_us=0,op=1,offset_bytes=2,length_bytes=3; the first line is: {}",
                first_line.join(", ")
            );
            return Err(TraceError::Usage(message));
        }
        let has_header = is_header(&own, first_line);
        let mut columns = Columns { has_header, ..Columns::default() };
        for (name, value) in &own {
            columns.add(name, value, first_line)?;
        }
        columns.check()
    }

    fn add(&mut self, name: &str, value: &str, first_line: &[String]) -> Result<(), TraceError> {
        let Some((key, unit)) = key_of(name) else {
            let message = format!(
                "'{name}' is no key of --columns; the keys are time, intended, submit, latency, complete and response, each \
                 followed by _s, _ms, _us or _ns; and op, flags, offset_bytes, offset_sectors, length_bytes, length_sectors, \
                 stream and status"
            );
            return Err(TraceError::Usage(message));
        };
        let index = self.index_of(name, value, first_line)?;
        let header = if self.has_header { first_line.get(index) } else { None };
        let shown = match header {
            Some(header) => format!("{name} (column '{header}')"),
            None => format!("{name} (column index {index})"),
        };
        let place = &mut self.by_key[key as usize];
        if let Some(other) = place {
            let message =
                format!("--columns has {} and {shown} for the same thing: leave one out", other.shown);
            return Err(TraceError::Usage(message));
        }
        *place = Some(Column { index, unit, shown });
        Ok(())
    }

    /// A header's name, or else an index that counts from 0.
    fn index_of(&self, name: &str, value: &str, first_line: &[String]) -> Result<usize, TraceError> {
        let by_name = first_line.iter().position(|header| header == value);
        let by_other_case = || first_line.iter().position(|header| header.eq_ignore_ascii_case(value));
        if let (true, Some(index)) = (self.has_header, by_name.or_else(by_other_case)) {
            return Ok(index);
        }
        let index = value.parse::<usize>().ok().filter(|&index| index < first_line.len());
        index.ok_or_else(|| {
            TraceError::Usage(format!(
                "there is no column '{value}' for {name}; the {} columns are: {} (by index from 0 to {})",
                first_line.len(),
                first_line.join(", "),
                first_line.len().saturating_sub(1)
            ))
        })
    }

    fn check(self) -> Result<Columns, TraceError> {
        let has = |key: Key| self.get(key).is_some();
        if !has(Key::Intended) && !has(Key::Submit) {
            let message = "a time is needed: name its column as time_us=..., intended_us=... or submit_us=... (or _s, _ms, _ns)";
            return Err(TraceError::Usage(message.into()));
        }
        let ends = [Key::Latency, Key::Complete, Key::Response].iter().filter(|&&key| has(key)).count();
        if ends > 1 {
            let message = "latency, complete and response say the same in three ways: name one of them";
            return Err(TraceError::Usage(message.into()));
        }
        Ok(self)
    }
}

/// Whether the first line names columns: when a name in the map stands in it, or, where the map has indices only, when none of
/// the numbers that are wanted of it is a number.
fn is_header(wanted: &[(String, String)], first_line: &[String]) -> bool {
    let names = |value: &String| value.parse::<usize>().is_err() && !value.is_empty();
    if wanted.iter().any(|(_, value)| names(value)) {
        return true;
    }
    let numeric = wanted.iter().filter(|(name, _)| key_of(name).is_none_or(|(_, unit)| unit != Unit::Word));
    let cells = numeric.filter_map(|(_, value)| first_line.get(value.parse::<usize>().ok()?));
    let mut any = false;
    for cell in cells {
        if crate::decimal::scaled(cell.as_bytes(), 0).is_ok() {
            return false;
        }
        any |= !cell.is_empty() && !cell.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(map: &str, first_line: &str) -> Result<Columns, String> {
        let pair = |item: &str| item.split_once('=').map(|(key, value)| (key.into(), value.into()));
        let wanted: Vec<(String, String)> = map.split(',').filter_map(pair).collect();
        let line: Vec<String> = first_line.split(',').map(String::from).collect();
        Columns::find(&wanted, &line).map_err(|error| error.to_string())
    }

    #[test]
    fn names_and_indices_find_columns_and_names_come_first() {
        let columns = find("time_us=ts,op=0,length_bytes=2", "2,ts,size").unwrap();
        assert!(columns.has_header);
        assert_eq!(
            columns.get(Key::Intended).map(|column| (column.index, column.unit)),
            Some((1, Unit::Time(3)))
        );
        assert_eq!(columns.get(Key::Op).unwrap().index, 0);
        assert_eq!(columns.get(Key::Length).unwrap().index, 0, "the column whose name is 2");
    }

    #[test]
    fn with_indices_only_a_first_line_without_numbers_is_a_header() {
        assert!(find("time_us=0,op=1", "time,op").unwrap().has_header);
        assert!(!find("time_us=0,op=1", "17.5,R").unwrap().has_header);
        assert!(!find("time_us=0,op=1", "17.5x,R").unwrap().has_header, "a damaged number is no name");
        assert!(!find("time_us=0,length_bytes=1", "17.5,size").unwrap().has_header);
    }

    #[test]
    fn columns_named_as_keys_need_no_map() {
        let columns = find("", "submit_ns,latency_ms,color").unwrap();
        assert_eq!(columns.get(Key::Latency).unwrap().unit, Unit::Time(6));
        assert!(find("", "a,b").unwrap_err().contains("a, b"));
    }

    #[test]
    fn a_header_of_keys_alone_is_told_from_others() {
        assert!(names_keys_only(b"intended_ns,op,flags\r"));
        assert!(names_keys_only(b"\xef\xbb\xbftime_us, op"));
        for line in [&b"intended_ns"[..], b"op,status", b"time_us,op,color", b"17,R", b"", b"\xff,time_us"] {
            assert!(!names_keys_only(line), "{line:?}");
        }
    }

    #[test]
    fn maps_that_make_no_sense_say_what_is_wrong() {
        for (map, message) in [
            ("time_us=when", "no column 'when' for time_us"),
            ("time_us=7", "no column '7' for time_us"),
            ("time_min=0", "'time_min' is no key"),
            ("op=1", "a time is needed"),
            ("time_us=0,intended_ms=1", "for the same thing"),
            ("time_us=0,latency_us=1,complete_us=2", "name one of them"),
        ] {
            let error = find(map, "time,op,size").unwrap_err();
            assert!(error.contains(message), "{map}: {error}");
        }
    }
}
