//! MQSim's ASCII traces.

use crate::format::{Carries, FoundBy};
use crate::options::{OptionName, TimeUnit};
use crate::rows::{reading_of, sample, TextFormat, ABSENT_OF_PLAIN};
use crate::simulator_words::{read_or_write, Words};
use crate::Options;

/// The format: time, device, first sector of 512 bytes, sectors, 1 for a read or 0 for a write. The unit of the times stands in the
/// file that describes the workload to the simulator; it is ns by default.
pub(crate) struct MqSim;

impl TextFormat for MqSim {
    const NAME: &'static str = "mqsim";
    const DESCRIPTION: &'static str =
        "MQSim ASCII: time (ns, or as --time-unit says), device, sector, sectors, 1 = read";
    const CARRIES: Carries = Carries { queue_events: false, completions: false, trims: false, volumes: true };
    const ABSENT: &'static [&'static str] = ABSENT_OF_PLAIN;
    const TAKES: &'static [OptionName] = &[OptionName::Volume, OptionName::TimeUnit];
    const FOUND_BY: FoundBy = FoundBy::Asking;
    type Parser = Words;

    fn parser(options: &Options) -> Words {
        let time_digits = options.time_unit.unwrap_or(TimeUnit::Ns).digits();
        Words { time_digits, has_fractions: false, opcode: read_or_write }
    }

    fn reading(head: &[u8]) -> Option<String> {
        let reading = reading_of(&sample(head, &mut MqSim::parser(&Options::default()))?)?;
        Some(format!("times in ns, or as --time-unit says; {reading}"))
    }
}
