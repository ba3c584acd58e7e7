//! SSDSim's ASCII traces.

use crate::format::{Carries, FoundBy};
use crate::rows::{reading_of, sample, TextFormat, ABSENT_OF_PLAIN};
use crate::simulator_words::{read_or_write, Words};
use crate::Options;

/// The format: time in ns, device, first sector of 512 bytes, sectors, 1 for a read or 0 for a write.
pub(crate) struct SsdSim;

impl TextFormat for SsdSim {
    const NAME: &'static str = "ssdsim";
    const DESCRIPTION: &'static str = "SSDSim ASCII: time (ns), device, sector, sectors, 1 = read";
    const CARRIES: Carries = Carries { queue_events: false, completions: false, trims: false, volumes: true };
    const ABSENT: &'static [&'static str] = ABSENT_OF_PLAIN;
    const FOUND_BY: FoundBy = FoundBy::Asking;
    type Parser = Words;

    fn parser(_options: &Options) -> Words {
        Words { time_digits: 0, has_fractions: false, opcode: read_or_write }
    }

    fn reading(head: &[u8]) -> Option<String> {
        Some(format!(
            "times in ns; {}",
            reading_of(&sample(head, &mut SsdSim::parser(&Options::default()))?)?
        ))
    }
}
