//! What can be set about a modelled drive, and which values make sense.

mod check;

use crate::PAGE_BYTES;
use serde::{Deserialize, Serialize};

/// What the drive holds before its first command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialState {
    /// Nothing: reads touch no NAND, and nothing needs reclaiming until the NAND is full.
    Empty,
    /// Every page was written once, in order: reclaiming begins once the over-provisioning is used up.
    Written,
    /// As long random writing to all of the drive leaves it: reclaiming goes on from the first write.
    Steady,
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

/// How pages find their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Translation {
    /// Each goes where there is room, and garbage collection makes room: what NAND needs.
    PageMapped,
    /// Each has a place of its own and is written over there: for memory that needs no erasing.
    InPlace,
}

/// What becomes of a write that finds the SLC cache full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlcWhenFull {
    /// It goes where data stays, past the cache.
    Direct,
    /// It waits until as much as it needs was moved from the cache to where data stays.
    Fold,
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

    /// tBERS of one erase block.
    pub erase_ns: i64,
    /// What a die erases at a time, over all of its planes.
    pub erase_block_bytes: u64,

    /// How pages find their places.
    pub translation: Translation,
    /// Spare over what the host sees: what garbage collection has beyond the host's data.
    pub over_provisioning: f64,
    /// Into how many superblocks the NAND is divided, or as near as whole programming units allow. More or fewer with the same
    /// over-provisioning change little as long as there are some hundreds.
    pub superblocks: u32,
    /// Whether moved pages get superblocks of their own instead of sharing them with what the host writes.
    pub separate_moved_data: bool,
    /// Pages programmed for each page of the host: 1 plus parity and metadata.
    pub programs_per_host_page: f64,
    /// The same for each page that garbage collection moves, with what it takes to read and to book it.
    pub programs_per_moved_page: f64,

    /// NAND that is kept for an SLC cache, beside the over-provisioning, as a share of the capacity; 0 for none.
    pub slc_static_share: f64,
    /// The share of the NAND that holds no data and is lent to the SLC cache, at one bit a cell.
    pub slc_dynamic_share: f64,
    /// tPROG of a unit of the cache.
    pub slc_program_ns: i64,
    /// What a die programs at a time in the cache.
    pub slc_unit_bytes: u64,
    /// What becomes of a write that finds the cache full.
    pub slc_when_full: SlcWhenFull,
    /// How long no write must have come before the cache is emptied in the background.
    pub slc_idle_ns: i64,
    /// The share of the NAND's time that this takes.
    pub slc_fold_share: f64,
    /// Programs for each page that goes from the cache to where it stays, with what it takes to read and to book it.
    pub programs_per_folded_page: f64,

    /// Memory for the mapping; 0 where all of it fits. Each MiB covers a GiB of the drive.
    pub mapping_cache_bytes: u64,
    /// The least share of what is written that is stored, of data that compresses best; 1 where the drive stores what it is given.
    pub compresses_to: f64,
    /// What the mapping tells apart: a smaller write reads the rest of it first.
    pub indirection_unit_bytes: u64,

    /// How often a read may interrupt one program or erase; 0 lets reads wait.
    pub suspends: u32,
    /// What an interruption takes before the read, and again before the program goes on.
    pub suspend_ns: i64,

    /// How often the drive looks after its NAND, which holds up everything; 0 for never.
    pub housekeeping_period_ns: i64,
    /// For how long.
    pub housekeeping_ns: i64,

    /// Drawn by a drive without commands.
    pub power_idle_mw: u64,
    /// Drawn by a drive that has commands, beside what its NAND draws.
    pub power_active_mw: u64,
    /// Drawn by a drive that sleeps.
    pub power_sleep_mw: u64,
    /// After how long without commands it sleeps; 0 for never.
    pub power_sleep_after_ns: i64,
    /// How long it takes to wake up.
    pub power_sleep_exit_ns: i64,
    /// What all may draw, over 10 ms; 0 for whatever it takes.
    pub power_limit_mw: u64,
    /// Supply of the NAND.
    pub nand_supply_mv: u64,
    /// Current of a plane that reads.
    pub nand_read_ma: u64,
    /// Current of a die that programs.
    pub nand_program_ma: u64,
    /// Current of a die that erases.
    pub nand_erase_ma: u64,
    /// Thousandths of a degree that the drive is warmer than the air for each watt; 0 where heat does not matter.
    pub thermal_resistance_mc_per_w: i64,
    /// In which time the difference to its final temperature falls to 1/e.
    pub thermal_time_constant_ns: i64,
    /// Of the air, in thousandths of a degree Celsius.
    pub thermal_ambient_mc: i64,
    /// From which temperature on the drive is throttled.
    pub thermal_throttle_mc: i64,
    /// Below which it no longer is.
    pub thermal_release_mc: i64,
    /// `power_limit_mw` while it is throttled.
    pub thermal_throttled_mw: u64,

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

    /// Whether it is kept which write of a page it holds, so that what a loss of power did can be asked.
    #[serde(default)]
    pub keep_contents: bool,
    /// Fault: the share of reads that fail, of those that touch the range below.
    #[serde(default)]
    pub fault_read_error_rate: f64,
    /// Fault: where reads fail.
    #[serde(default)]
    pub fault_read_error_offset_bytes: u64,
    /// Fault: over how many bytes.
    #[serde(default)]
    pub fault_read_error_length_bytes: u64,
    /// Fault: the share of commands that complete late.
    #[serde(default)]
    pub fault_outlier_rate: f64,
    /// Fault: by how much.
    #[serde(default)]
    pub fault_outlier_ns: i64,
    /// Fault: when the drive stands still, on its clock; 0 for never.
    #[serde(default)]
    pub fault_stall_at_ns: i64,
    /// Fault: for how long.
    #[serde(default)]
    pub fault_stall_ns: i64,
    /// Fault: how long after each stall the next begins, from beginning to beginning; 0 for one stall only.
    #[serde(default)]
    pub fault_stall_every_ns: i64,
    /// Fault: when power is lost; 0 for never. What was written is then kept as with `keep_contents`.
    #[serde(default)]
    pub fault_power_loss_at_ns: i64,
    /// Fault: for how long, with the drive's start.
    #[serde(default)]
    pub fault_power_loss_ns: i64,
    /// Fault: when the drive is no longer there; 0 for never.
    #[serde(default)]
    pub fault_gone_at_ns: i64,
}

impl Parameters {
    /// Dies over all channels.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Planes over all dies.
    pub fn planes(&self) -> u32 {
        self.dies() * self.planes_per_die
    }

    /// What the host sees, in pages.
    pub fn pages(&self) -> u32 {
        (self.capacity_bytes / PAGE_BYTES) as u32
    }

    /// Pages that a die programs at a time in the SLC cache.
    pub fn slc_unit_pages(&self) -> u32 {
        (self.slc_unit_bytes / PAGE_BYTES) as u32
    }

    /// Whether it is kept which write of a page the drive holds: where it is asked for, and where power is to be lost.
    pub fn keeps_contents(&self) -> bool {
        self.keep_contents || self.fault_power_loss_at_ns > 0
    }

    /// Pages that a die programs at a time.
    pub fn unit_pages(&self) -> u32 {
        (self.program_unit_bytes / PAGE_BYTES) as u32
    }
}
