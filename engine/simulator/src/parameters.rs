//! What can be set about a modelled drive, and which values make sense.

use crate::PAGE_BYTES;
use serde::{Deserialize, Serialize};

/// What the drive holds before its first command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialState {
    /// Nothing: reads touch no NAND, and writes cost `programs_per_new_page`.
    Empty,
    /// Every page was written: the state that preconditioning leaves.
    Written,
}

/// How the time to read a NAND page is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadTime {
    /// Always `nand_read_ns`.
    Fixed,
    /// Evenly within `nand_read_spread_ns` to either side of `nand_read_ns`, as the pages of multi-level cells differ.
    Uniform,
    /// Exponentially with the mean `nand_read_ns`: unlike NAND, but queueing theory has closed forms for it.
    Exponential,
}

/// What the drive does with a trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrimMode {
    /// Notes it at the price of any command without data; what remains to do never holds up the host.
    Free,
    /// Does all of its work at once in the firmware, which serves nothing else meanwhile.
    Firmware,
    /// Notes it at the price of any command without data, and does its work later, in slices of firmware time.
    Background,
}

/// Every parameter of a modelled drive.
///
/// A page is 4096 bytes here, the unit of the drive's mapping; a NAND page is larger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// What the host sees.
    pub capacity_bytes: u64,
    /// Offsets and lengths of commands are multiples of it.
    pub logical_block_bytes: u64,
    /// Commands that the drive takes at a time; more wait in the host.
    pub queue_depth: u32,
    /// Of the host link, in each direction.
    pub host_link_bytes_per_s: u64,

    /// Firmware time that a read occupies, whatever its length.
    pub firmware_read_ns: i64,
    /// Firmware time that each page of a read occupies.
    pub firmware_read_page_ns: i64,
    /// Firmware time that a write occupies, whatever its length.
    pub firmware_write_ns: i64,
    /// Firmware time that each page of a write occupies.
    pub firmware_write_page_ns: i64,
    /// Firmware time that a command without data occupies: flush, write-zeroes, and a trim unless `trim_mode` is `firmware`.
    pub firmware_metadata_ns: i64,
    /// Added to each read without occupying anything: the depth of the pipeline.
    pub read_pipeline_ns: i64,
    /// Between the decision to acknowledge a command other than a read and the host seeing it.
    pub acknowledge_ns: i64,

    /// Acknowledged data that is not yet programmed; a write waits where there is no place.
    pub write_buffer_bytes: u64,
    /// Buffered data is durable: flush and FUA wait for nothing.
    pub power_loss_protection: bool,

    /// Channels to the NAND.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes of a die, each of which reads on its own; a program occupies the whole die.
    pub planes_per_die: u32,
    /// Of one channel.
    pub channel_bytes_per_s: u64,
    /// What one plane reads at a time.
    pub nand_page_bytes: u64,
    /// tR: from the NAND's cells to its register, on average.
    pub nand_read_ns: i64,
    /// How far `nand_read_time = "uniform"` goes to either side.
    pub nand_read_spread_ns: i64,
    /// How the time to read is distributed.
    pub nand_read_time: ReadTime,
    /// tPROG of one unit.
    pub program_ns: i64,
    /// What a die programs at a time, over all of its planes and levels.
    pub program_unit_bytes: u64,
    /// How many reads may overtake a program that waits for its die; 0 keeps the order of arrival.
    pub reads_before_program: u32,

    /// Pages programmed for each page written where nothing was: 1 plus metadata and parity.
    pub programs_per_new_page: f64,
    /// Pages programmed for each page written over another: write amplification and the other costs of reclaiming, in one
    /// constant for a drive in steady state.
    pub programs_per_overwritten_page: f64,

    /// What the drive does with a trim.
    pub trim_mode: TrimMode,
    /// Work of a trim, whatever its length.
    pub trim_per_range_ns: i64,
    /// Work of each page of a trim.
    pub trim_per_page_ns: i64,
    /// `background` only: for how long the firmware works on trims at a time.
    pub trim_slice_ns: i64,
    /// `background` only: the share of firmware time that goes to trims while any work is left.
    pub trim_share: f64,

    /// What the drive holds before its first command.
    pub initial_state: InitialState,
    /// Where everything random comes from.
    pub seed: u64,
}

/// Beyond it a wrong unit is likelier than a drive, and sums of times stay far from overflowing.
const TIME_MAX_NS: i64 = 1_000_000_000_000;
const CAPACITY_MAX_BYTES: u64 = 64 << 40;
const RATE_MIN_BYTES_PER_S: u64 = 1_000;
const PARTS_MAX: u32 = 256;
const PROGRAMS_PER_PAGE_MAX: f64 = 1000.0;

impl Parameters {
    /// Dies over all channels.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Planes over all dies.
    pub fn planes(&self) -> u32 {
        self.dies() * self.planes_per_die
    }

    /// The first parameter whose value makes no sense, and what would.
    pub(crate) fn fault(&self) -> Option<(&'static str, String)> {
        self.time_fault().or_else(|| self.size_fault()).or_else(|| self.shape_fault())
    }

    fn time_fault(&self) -> Option<(&'static str, String)> {
        let times = [
            ("firmware_read_ns", self.firmware_read_ns),
            ("firmware_read_page_ns", self.firmware_read_page_ns),
            ("firmware_write_ns", self.firmware_write_ns),
            ("firmware_write_page_ns", self.firmware_write_page_ns),
            ("firmware_metadata_ns", self.firmware_metadata_ns),
            ("read_pipeline_ns", self.read_pipeline_ns),
            ("acknowledge_ns", self.acknowledge_ns),
            ("nand_read_ns", self.nand_read_ns),
            ("program_ns", self.program_ns),
            ("trim_per_range_ns", self.trim_per_range_ns),
            ("trim_per_page_ns", self.trim_per_page_ns),
        ];
        let outside = times.into_iter().find(|(_, time_ns)| !(0..=TIME_MAX_NS).contains(time_ns));
        if let Some((name, _)) = outside {
            return Some((name, format!("a time from 0 to {TIME_MAX_NS} ns")));
        }
        if !(0..=self.nand_read_ns).contains(&self.nand_read_spread_ns) {
            return Some(("nand_read_spread_ns", "a time from 0 to nand_read_ns".into()));
        }
        // A slice of no length would never finish the work.
        if !(1..=TIME_MAX_NS).contains(&self.trim_slice_ns) {
            return Some(("trim_slice_ns", format!("a time from 1 to {TIME_MAX_NS} ns")));
        }
        None
    }

    fn size_fault(&self) -> Option<(&'static str, String)> {
        let block = self.logical_block_bytes;
        if !block.is_power_of_two() || !(512..=65536).contains(&block) {
            return Some(("logical_block_bytes", "a power of two from 512 to 65536".into()));
        }
        let capacity = self.capacity_bytes;
        if capacity == 0 || !capacity.is_multiple_of(block.max(PAGE_BYTES)) || capacity > CAPACITY_MAX_BYTES {
            let unit = block.max(PAGE_BYTES);
            return Some(("capacity_bytes", format!("a multiple of {unit} bytes from {unit} to 64TiB")));
        }
        for (name, bytes) in
            [("nand_page_bytes", self.nand_page_bytes), ("program_unit_bytes", self.program_unit_bytes)]
        {
            if bytes == 0 || !bytes.is_multiple_of(PAGE_BYTES) || bytes > 64 << 20 {
                return Some((name, "a multiple of 4096 bytes from 4096 to 64MiB".into()));
            }
        }
        if !self.program_unit_bytes.is_multiple_of(self.nand_page_bytes) {
            return Some(("program_unit_bytes", "a multiple of nand_page_bytes".into()));
        }
        let buffer = self.write_buffer_bytes;
        if buffer < self.program_unit_bytes || !buffer.is_multiple_of(PAGE_BYTES) || buffer > 64 << 30 {
            let text = "a multiple of 4096 bytes from program_unit_bytes to 64GiB: a unit is gathered there";
            return Some(("write_buffer_bytes", text.into()));
        }
        None
    }

    fn shape_fault(&self) -> Option<(&'static str, String)> {
        let parts = [
            ("channels", self.channels),
            ("dies_per_channel", self.dies_per_channel),
            ("planes_per_die", self.planes_per_die),
        ];
        if let Some((name, _)) = parts.into_iter().find(|(_, parts)| !(1..=PARTS_MAX).contains(parts)) {
            return Some((name, format!("a number from 1 to {PARTS_MAX}")));
        }
        let rates = [
            ("host_link_bytes_per_s", self.host_link_bytes_per_s),
            ("channel_bytes_per_s", self.channel_bytes_per_s),
        ];
        if let Some((name, _)) = rates.into_iter().find(|(_, rate)| *rate < RATE_MIN_BYTES_PER_S) {
            return Some((name, format!("at least {RATE_MIN_BYTES_PER_S} bytes per second")));
        }
        let programs = [
            ("programs_per_new_page", self.programs_per_new_page),
            ("programs_per_overwritten_page", self.programs_per_overwritten_page),
        ];
        let outside = programs.into_iter().find(|(_, count)| !(1.0..=PROGRAMS_PER_PAGE_MAX).contains(count));
        if let Some((name, _)) = outside {
            return Some((name, format!("a number from 1 to {PROGRAMS_PER_PAGE_MAX}")));
        }
        if !(0.001..=1.0).contains(&self.trim_share) {
            return Some(("trim_share", "a share from 0.001 to 1".into()));
        }
        if self.queue_depth == 0 {
            return Some(("queue_depth", "at least 1".into()));
        }
        None
    }
}
