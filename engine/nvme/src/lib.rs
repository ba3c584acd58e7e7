//! The vocabulary of NVMe: commands, statuses, and what a drive tells of itself. Bytes and numbers only: nothing here does I/O, so that
//! every path that speaks NVMe says and understands the same.
//!
//! Sections are those of the NVM Express Base Specification 2.0 ("Base") and the NVM Command Set Specification 1.0 ("NVM"). Namespace,
//! LBA and NLB are the terms of both.

mod admin;
mod background;
mod bytes;
mod command;
mod controller;
mod features;
mod lists;
mod logs;
mod namespace;
mod split;
mod status;
mod trim;

pub use admin::{
    abort, create_completion_queue, create_submission_queue, delete_completion_queue,
    delete_submission_queue, format_nvm, get_log_page, identify, sanitize, FormatNvm, IdentifyWhat, LogPage,
    SanitizeAction, SecureErase,
};
pub use background::{
    disable_host_memory_buffer, host_memory_descriptor, set_host_memory_buffer, HostMemoryBuffer,
    InterruptCoalescing, PowerTransition, PowerTransitions, HOST_MEMORY_BYTES, POWER_TRANSITIONS_BYTES,
};
pub use command::{
    deallocate, flush, read, write, write_zeroes, AdminOpcode, LbaRange, NvmCommand, NvmOpcode,
    ALL_NAMESPACES, SQE_BYTES,
};
pub use controller::{ControllerIdentity, NvmLimits, SanitizeSupport, IDENTIFY_BYTES};
pub use features::{
    get_feature, power_state_of, queue_counts_of, set_number_of_queues, set_power_state,
    set_volatile_write_cache, volatile_write_cache_of, Feature, FeatureSelect,
};
pub use lists::{
    parse_controller_list, parse_namespace_list, SecondaryController, CONTROLLER_LIST_MAX,
    NAMESPACE_LIST_MAX, SECONDARY_LIST_MAX,
};
pub use logs::{
    ErrorLogEntry, SanitizeLog, SanitizeStatus, SmartLog, ERROR_LOG_ENTRY_BYTES, SANITIZE_LOG_BYTES,
    SMART_LOG_BYTES,
};
pub use namespace::{DeallocatedReads, LbaFormat, NamespaceIdentity};
pub use split::{blocks_max_of_mdts, parts, BlockRange, BlockSize, NLB_MAX};
pub use status::{Status, StatusKind, RECORDED_NVME};
pub use trim::{encode_ranges, TrimLimits, RANGES_MAX, RANGE_BYTES};
