//! What the person who imports asked for, and whether it fits the format.

use crate::event::Device;
use crate::format::{Events, Format};
use crate::TraceError;

/// What the person who imports asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Which events become rows; by default queued ones where the trace has them.
    pub events: Option<Events>,
    /// Which device's I/Os; by default the only one that has any.
    pub device: Option<Device>,
    /// Which volume's I/Os; by default those of each, apart.
    pub volume: Option<String>,
    /// For CSV: which column is what, as `key=column` each.
    pub columns: Vec<(String, String)>,
    /// What the times of a trace are counted in, where the format leaves that open.
    pub time_unit: Option<TimeUnit>,
    /// Of how many bytes the blocks are that objects are the numbers of, where the format leaves open whether they are.
    pub object_bytes: Option<u64>,
}

/// An option by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionName {
    /// `--events`
    Events,
    /// `--device`
    Device,
    /// `--volume`
    Volume,
    /// `--columns`
    Columns,
    /// `--time-unit`
    TimeUnit,
    /// `--object-bytes`
    ObjectBytes,
}

impl OptionName {
    /// As on the command line.
    pub fn flag(self) -> &'static str {
        match self {
            OptionName::Events => "--events",
            OptionName::Device => "--device",
            OptionName::Volume => "--volume",
            OptionName::Columns => "--columns",
            OptionName::TimeUnit => "--time-unit",
            OptionName::ObjectBytes => "--object-bytes",
        }
    }
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl TimeUnit {
    /// Every unit.
    pub const ALL: [TimeUnit; 4] = [TimeUnit::S, TimeUnit::Ms, TimeUnit::Us, TimeUnit::Ns];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::S => "s",
            TimeUnit::Ms => "ms",
            TimeUnit::Us => "us",
            TimeUnit::Ns => "ns",
        }
    }

    /// How many decimal digits it is above a nanosecond.
    pub(crate) fn digits(self) -> u32 {
        match self {
            TimeUnit::S => 9,
            TimeUnit::Ms => 6,
            TimeUnit::Us => 3,
            TimeUnit::Ns => 0,
        }
    }
}

impl Options {
    /// The options that were given.
    fn given(&self) -> impl Iterator<Item = OptionName> {
        let given = [
            (OptionName::Events, self.events.is_some()),
            (OptionName::Device, self.device.is_some()),
            (OptionName::Volume, self.volume.is_some()),
            (OptionName::Columns, !self.columns.is_empty()),
            (OptionName::TimeUnit, self.time_unit.is_some()),
            (OptionName::ObjectBytes, self.object_bytes.is_some()),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name)
    }

    /// Refuses an option that the format has no use for.
    pub(crate) fn check(&self, format: &dyn Format) -> Result<(), TraceError> {
        let takes = format.takes();
        let Some(foreign) = self.given().find(|name| !takes.contains(name)) else { return Ok(()) };
        let flags: Vec<&str> = takes.iter().map(|name| name.flag()).collect();
        let advice = match &flags[..] {
            [] => "it takes no options of its own".to_string(),
            _ => format!("it takes {}", flags.join(", ")),
        };
        let (flag, name) = (foreign.flag(), format.name());
        Err(TraceError::Usage(format!("{flag} does not fit traces of format {name}: {advice}")))
    }
}
