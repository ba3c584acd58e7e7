//! DiskSim's ASCII traces, of version 4 and its SSD extension.

use crate::format::{Carries, FoundBy};
use crate::rows::{reading_of, sample, Bad, TextFormat, ABSENT_OF_PLAIN};
use crate::simulator_words::Words;
use crate::Options;
use testdrive_core::Opcode;

/// The format: time in ms, device, first block of 512 bytes, blocks, and flags in hexadecimal whose lowest bit is a read.
pub(crate) struct DiskSim;

impl TextFormat for DiskSim {
    const NAME: &'static str = "disksim";
    const DESCRIPTION: &'static str = "DiskSim ASCII: time (ms), device, block, blocks, flags";
    const CARRIES: Carries = Carries { queue_events: false, completions: false, trims: false, volumes: true };
    const ABSENT: &'static [&'static str] = ABSENT_OF_PLAIN;
    const FOUND_BY: FoundBy = FoundBy::Asking;
    type Parser = Words;

    fn parser(_options: &Options) -> Words {
        Words { time_digits: 6, has_fractions: true, opcode: flags }
    }

    fn reading(head: &[u8]) -> Option<String> {
        Some(format!(
            "times in ms; {}",
            reading_of(&sample(head, &mut DiskSim::parser(&Options::default()))?)?
        ))
    }
}

fn flags(word: &[u8]) -> Result<Opcode, Bad> {
    let text = std::str::from_utf8(word).ok().map(|text| text.strip_prefix("0x").unwrap_or(text));
    match text.and_then(|text| u32::from_str_radix(text, 16).ok()) {
        Some(flags) if flags & 1 == 1 => Ok(Opcode::Read),
        Some(_) => Ok(Opcode::Write),
        None => Err(Bad::cell("the flags", word, "is no hexadecimal number")),
    }
}
