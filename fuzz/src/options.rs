//! Options of an import, chosen by a byte of the input among those that the format has a use for.

use testdrive_traces::{Events, Format, OptionName, Options, TimeUnit};

/// Maps of CSV columns, each as on the command line. The first is none: the header's own keys.
const COLUMNS: [&str; 4] = [
    "",
    "time_us=0,op=1,offset_bytes=2,length_bytes=3",
    "submit_s=0,response_ms=1,op=op,offset_sectors=3,length_sectors=4,stream=5,status=6",
    "intended_ns=0,submit_ns=1,complete_us=2,flags=3",
];

/// The options that a byte stands for.
pub fn options(format: &dyn Format, byte: u8) -> Options {
    let takes = format.takes();
    let choice = usize::from(byte);
    let mut options = Options::default();
    if takes.contains(&OptionName::Events) {
        options.events = [None, Some(Events::Queued), Some(Events::Issued)][choice % 3];
    }
    if takes.contains(&OptionName::Columns) {
        let pairs = COLUMNS[choice % COLUMNS.len()].split(',').filter_map(|pair| pair.split_once('='));
        options.columns = pairs.map(|(key, column)| (key.into(), column.into())).collect();
    }
    if takes.contains(&OptionName::TimeUnit) && choice % 5 > 0 {
        options.time_unit = Some(TimeUnit::ALL[choice % 5 - 1]);
    }
    if takes.contains(&OptionName::ObjectBytes) {
        options.object_bytes = [None, Some(512), Some(1), Some(u64::MAX)][choice % 4];
    }
    if takes.contains(&OptionName::Volume) && choice % 16 == 15 {
        options.volume = Some("0".into());
    }
    options
}
