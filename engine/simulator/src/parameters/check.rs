//! Which values of parameters make sense.

use super::{Parameters, Translation};
use crate::ftl::{ENTRIES_MAX, PARTS};
use crate::PAGE_BYTES;

/// Beyond it a wrong unit is likelier than a drive, and sums of times stay far from overflowing.
const TIME_MAX_NS: i64 = 1_000_000_000_000;
/// More often than that it would be all that a drive does.
const HOUSEKEEPING_PERIOD_MIN_NS: i64 = 1_000_000;
const RATE_MIN_BYTES_PER_S: u64 = 1_000;
const PARTS_MAX: u32 = 256;
const PROGRAMS_PER_PAGE_MAX: f64 = 1000.0;
/// Less than half of what the mapping's numbers can name: the rest is for over-provisioning and the cache.
const CAPACITY_MAX_BYTES: u64 = 4 << 40;
const SPARE_MIN: f64 = 0.005;
const SPARE_MAX: f64 = 0.9;
const SUPERBLOCKS_MIN: u32 = 8;
const SUPERBLOCKS_MAX: u32 = 1 << 20;
const _: () =
    assert!((CAPACITY_MAX_BYTES / PAGE_BYTES) as f64 * (1.0 + SPARE_MAX + 2.0) * 1.02 < ENTRIES_MAX as f64);

impl Parameters {
    /// The first parameter whose value makes no sense, and what would.
    pub(crate) fn fault(&self) -> Option<(&'static str, String)> {
        self.time_fault()
            .or_else(|| self.size_fault())
            .or_else(|| self.shape_fault())
            .or_else(|| self.power_fault())
    }

    fn power_fault(&self) -> Option<(&'static str, String)> {
        let powers = [
            ("power_idle_mw", self.power_idle_mw),
            ("power_active_mw", self.power_active_mw),
            ("power_sleep_mw", self.power_sleep_mw),
            ("nand_supply_mv", self.nand_supply_mv),
            ("nand_read_ma", self.nand_read_ma),
            ("nand_program_ma", self.nand_program_ma),
            ("nand_erase_ma", self.nand_erase_ma),
        ];
        if let Some((name, _)) = powers.into_iter().find(|(_, value)| *value > 100_000) {
            return Some((name, "a number from 0 to 100000".into()));
        }
        let least_mw = self.power_active_mw + 100;
        if self.power_limit_mw != 0 && !(least_mw..=1_000_000).contains(&self.power_limit_mw) {
            let text = format!("0, or at least {least_mw}: 100 mW more than power_active_mw");
            return Some(("power_limit_mw", text));
        }
        if self.thermal_resistance_mc_per_w == 0 {
            return None;
        }
        if !(1..=1_000_000).contains(&self.thermal_resistance_mc_per_w) {
            return Some(("thermal_resistance_mc_per_w", "a number from 0 to 1000000".into()));
        }
        if self.thermal_time_constant_ns == 0 {
            return Some(("thermal_time_constant_ns", "more than 0".into()));
        }
        if !(least_mw..=1_000_000).contains(&self.thermal_throttled_mw) {
            let text = format!("at least {least_mw}: 100 mW more than power_active_mw");
            return Some(("thermal_throttled_mw", text));
        }
        let (release, throttle) = (self.thermal_release_mc, self.thermal_throttle_mc);
        if !(-100_000..=500_000).contains(&self.thermal_ambient_mc) {
            return Some(("thermal_ambient_mc", "from -100000 to 500000".into()));
        }
        if release > throttle || throttle > 500_000 || release <= self.thermal_ambient_mc {
            let text =
                "more than thermal_ambient_mc, and at most thermal_throttle_mc, which is at most 500000";
            return Some(("thermal_release_mc", text.into()));
        }
        None
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
            ("erase_ns", self.erase_ns),
            ("slc_program_ns", self.slc_program_ns),
            ("slc_idle_ns", self.slc_idle_ns),
            ("suspend_ns", self.suspend_ns),
            ("housekeeping_ns", self.housekeeping_ns),
            ("power_sleep_after_ns", self.power_sleep_after_ns),
            ("power_sleep_exit_ns", self.power_sleep_exit_ns),
            ("thermal_time_constant_ns", self.thermal_time_constant_ns),
            ("fault_outlier_ns", self.fault_outlier_ns),
            ("fault_stall_at_ns", self.fault_stall_at_ns),
            ("fault_stall_ns", self.fault_stall_ns),
            ("fault_power_loss_at_ns", self.fault_power_loss_at_ns),
            ("fault_power_loss_ns", self.fault_power_loss_ns),
            ("fault_gone_at_ns", self.fault_gone_at_ns),
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
        let period = self.housekeeping_period_ns;
        if period != 0 && !(HOUSEKEEPING_PERIOD_MIN_NS..=TIME_MAX_NS).contains(&period) {
            let text =
                format!("0 for never, or a time from {HOUSEKEEPING_PERIOD_MIN_NS} to {TIME_MAX_NS} ns");
            return Some(("housekeeping_period_ns", text));
        }
        let every = self.fault_stall_every_ns;
        if every != 0 && !(self.fault_stall_ns.max(1)..=TIME_MAX_NS).contains(&every) {
            let text = format!("0 for one stall only, or a time from fault_stall_ns to {TIME_MAX_NS} ns");
            return Some(("fault_stall_every_ns", text));
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
        let unit = block.max(PAGE_BYTES);
        if capacity == 0 || !capacity.is_multiple_of(unit) || capacity > CAPACITY_MAX_BYTES {
            return Some(("capacity_bytes", format!("a multiple of {unit} bytes from {unit} to 4TiB")));
        }
        for (name, bytes) in [
            ("nand_page_bytes", self.nand_page_bytes),
            ("program_unit_bytes", self.program_unit_bytes),
            ("slc_unit_bytes", self.slc_unit_bytes),
        ] {
            if bytes == 0 || !bytes.is_multiple_of(PAGE_BYTES) || bytes > 64 << 20 {
                return Some((name, "a multiple of 4096 bytes from 4096 to 64MiB".into()));
            }
        }
        if self.translation == Translation::InPlace && self.program_unit_bytes != PAGE_BYTES {
            return Some(("program_unit_bytes", "4096 where translation is in-place".into()));
        }
        for (name, bytes) in
            [("program_unit_bytes", self.program_unit_bytes), ("slc_unit_bytes", self.slc_unit_bytes)]
        {
            if !bytes.is_multiple_of(self.nand_page_bytes) {
                return Some((name, "a multiple of nand_page_bytes".into()));
            }
        }
        let cache = self.slc_static_share > 0.0 || self.slc_dynamic_share > 0.0;
        if cache && self.slc_unit_bytes > self.program_unit_bytes {
            return Some(("slc_unit_bytes", "at most program_unit_bytes".into()));
        }
        let block = self.erase_block_bytes;
        if block < self.program_unit_bytes
            || !block.is_multiple_of(self.program_unit_bytes)
            || block > 4 << 30
        {
            return Some(("erase_block_bytes", "a multiple of program_unit_bytes to 4GiB".into()));
        }
        let unit = self.indirection_unit_bytes;
        if !unit.is_power_of_two()
            || !(PAGE_BYTES..=1 << 20).contains(&unit)
            || !capacity.is_multiple_of(unit)
        {
            let text = "a power of two from 4096 to 1MiB that divides capacity_bytes";
            return Some(("indirection_unit_bytes", text.into()));
        }
        if !(1.0 / f64::from(PARTS)..=1.0).contains(&self.compresses_to) {
            return Some(("compresses_to", "a share from 0.016 to 1".into()));
        }
        let cache = self.slc_static_share + self.slc_dynamic_share > 0.0;
        if self.compresses_to < 1.0 && (cache || self.translation == Translation::InPlace) {
            return Some(("compresses_to", "1 with an SLC cache, and where translation is in-place".into()));
        }
        let slots = capacity as f64 / PAGE_BYTES as f64 * (1.0 + SPARE_MAX) / self.compresses_to;
        let superblock_parts = slots / f64::from(self.superblocks.max(1)) * f64::from(PARTS);
        if self.compresses_to < 1.0 && (slots > ENTRIES_MAX as f64 / 1.1 || superblock_parts > 2e9) {
            let text = "1 for a capacity as large as this, or with as few superblocks";
            return Some(("compresses_to", text.into()));
        }
        if self.mapping_cache_bytes > 1 << 40 {
            return Some(("mapping_cache_bytes", "0 where all fits, or up to 1TiB".into()));
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
            ("programs_per_host_page", self.programs_per_host_page),
            ("programs_per_moved_page", self.programs_per_moved_page),
            ("programs_per_folded_page", self.programs_per_folded_page),
        ];
        let outside = programs.into_iter().find(|(_, count)| !(1.0..=PROGRAMS_PER_PAGE_MAX).contains(count));
        if let Some((name, _)) = outside {
            return Some((name, format!("a number from 1 to {PROGRAMS_PER_PAGE_MAX}")));
        }
        if !(0.001..=1.0).contains(&self.trim_share) {
            return Some(("trim_share", "a share from 0.001 to 1".into()));
        }
        let shares = [
            ("slc_static_share", self.slc_static_share),
            ("slc_dynamic_share", self.slc_dynamic_share),
            ("fault_read_error_rate", self.fault_read_error_rate),
            ("fault_outlier_rate", self.fault_outlier_rate),
        ];
        if let Some((name, _)) = shares.into_iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            return Some((name, "a share from 0 to 1".into()));
        }
        if !(0.001..=1.0).contains(&self.slc_fold_share) {
            return Some(("slc_fold_share", "a share from 0.001 to 1".into()));
        }
        if self.translation == Translation::InPlace && self.slc_static_share + self.slc_dynamic_share > 0.0 {
            return Some((
                "slc_static_share",
                "0, as slc_dynamic_share, where translation is in-place".into(),
            ));
        }
        if !(SPARE_MIN..=SPARE_MAX).contains(&self.over_provisioning) {
            return Some((
                "over_provisioning",
                format!("a share from {SPARE_MIN} to {SPARE_MAX}, such as 0.07 or 7%"),
            ));
        }
        if !(SUPERBLOCKS_MIN..=SUPERBLOCKS_MAX).contains(&self.superblocks) {
            return Some(("superblocks", format!("a number from {SUPERBLOCKS_MIN} to {SUPERBLOCKS_MAX}")));
        }
        if self.queue_depth == 0 {
            return Some(("queue_depth", "at least 1".into()));
        }
        None
    }
}
