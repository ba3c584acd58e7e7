//! What an NVMe drive is asked and told by its admin queue, on our own driver and a controller in memory.

use serde_json::json;
use std::thread;
use std::time::Duration;
use testdrive_core::{Command, Flags, Opcode};
use testdrive_drives::{
    Access, Clock, Drive, EraseError, FeatureChoice, FeaturesSet, NvmeTarget, PciQueues, QueueOptions, Wait,
    WriteData,
};
use testdrive_nvme::{SanitizeAction, SanitizeStatus, SecureErase};
use testdrive_recording::DriveIdentity;
use testdrive_userspace::double::{Double, Faults, Model};
use testdrive_userspace::Controller;

const CAPACITY_BYTES: u64 = 32_768 * 512;

fn open(model: Model, access: Access) -> (Double, PciQueues<Double>) {
    let double = Double::new(model);
    let controller = Controller::start_to_format(double.clone(), None).unwrap();
    let identity = DriveIdentity {
        uri: "pci:0000:01:00.0".into(),
        capacity_bytes: CAPACITY_BYTES,
        logical_block_bytes: 512,
        physical_block_bytes: 512,
        ..DriveIdentity::default()
    };
    (double, PciQueues::new(controller, identity, access, 1))
}

/// Reads and writes once each, in blocks of this size.
fn do_io(drive: &PciQueues<Double>, block_bytes: u64) -> Vec<i32> {
    let options = QueueOptions {
        clock: Clock::start(),
        depth: 2,
        io_bytes_max: 1 << 20,
        data: WriteData::Incompressible,
        data_seed: 1,
        refill: false,
    };
    let mut queue = drive.clone().open(&options).unwrap();
    for (slot, opcode) in [(0, Opcode::Write), (1, Opcode::Read)] {
        let offset_bytes = u64::from(slot) * block_bytes;
        let command = Command { opcode, offset_bytes, length_bytes: block_bytes, flags: Flags::NONE };
        queue.submit(slot, &command).unwrap();
    }
    queue.kick().unwrap();
    let (mut completions, deadline_ns) = (Vec::new(), queue.now_ns() + 60_000_000_000);
    while completions.len() < 2 && queue.now_ns() < deadline_ns {
        queue.poll(Wait::Until(deadline_ns), &mut completions).unwrap();
    }
    completions.iter().map(|completion| completion.status).collect()
}

fn usage(error: Result<impl Sized, EraseError>) -> String {
    match error {
        Err(EraseError::Usage(message)) => message,
        Err(EraseError::Drive(message)) => panic!("a failure of the drive: {message}"),
        Ok(_) => panic!("it was done"),
    }
}

#[test]
fn a_drive_is_formatted_to_other_blocks_and_driven_with_them() {
    let (double, mut drive) = open(Model::default(), Access::Format);
    double.set_content(0, &[7; 8192]);
    assert_eq!(do_io(&drive, 512), [0, 0]);
    let device: &dyn NvmeTarget = &drive;
    let after = device.identity_after_format(Some(4096)).unwrap();
    assert_eq!((after.logical_block_bytes, after.capacity_bytes), (4096, CAPACITY_BYTES));
    let format = device.format(Some(4096), SecureErase::None).unwrap();
    assert_eq!((format.index, format.block_bytes), (1, 4096));
    assert_eq!(device.identity().logical_block_bytes, 512, "until somebody looks again");
    drive.look_again().unwrap();
    let device: &dyn NvmeTarget = &drive;
    assert_eq!(device.identity(), &after);
    assert_eq!(device.namespace().format_index, 1);
    assert!(double.content(0, 8192).iter().all(|byte| *byte == 0));
    assert_eq!(do_io(&drive, 4096), [0, 0]);
    // EINVAL: no whole block any more.
    assert_eq!(do_io(&drive, 512), [22, 22]);
    let refused = usage(device.format(Some(8192), SecureErase::None));
    assert!(refused.contains("it has 512, 4096"), "{refused}");
}

#[test]
fn metadata_is_formatted_away_and_nothing_is_transferred_before() {
    let model = Model { metadata_bytes: 8, other_formats: vec![(4096, 0), (512, 0)], ..Model::default() };
    let double = Double::new(model.clone());
    let refused = Controller::start(double, None).err().unwrap().to_string();
    assert!(refused.contains("metadata"), "{refused}");
    let (_, mut drive) = open(model, Access::Format);
    let device: &dyn NvmeTarget = &drive;
    assert!(device.hindrance().is_some_and(|what| what.contains("metadata")));
    let options = QueueOptions {
        clock: Clock::start(),
        depth: 2,
        io_bytes_max: 4096,
        data: WriteData::Incompressible,
        data_seed: 1,
        refill: false,
    };
    let error = drive.clone().open(&options).err().unwrap();
    assert!(error.to_string().contains("metadata"), "{error}");
    assert_eq!(device.identity_after_format(None).unwrap().logical_block_bytes, 512);
    let format = device.format(Some(4096), SecureErase::None).unwrap();
    assert_eq!((format.block_bytes, format.metadata_bytes), (4096, 0));
    drive.look_again().unwrap();
    assert_eq!((&drive as &dyn NvmeTarget).hindrance(), None);
    assert_eq!(do_io(&drive, 4096), [0, 0]);
}

#[test]
fn a_format_tells_how_far_it_is_and_nothing_ends_it() {
    let (double, drive) = open(Model::default(), Access::Format);
    double.set_faults(Faults { unending: true, done_percent: 37, ..Faults::default() });
    let device: &dyn NvmeTarget = &drive;
    thread::scope(|scope| {
        let formatting = scope.spawn(|| device.format(None, SecureErase::UserData));
        while device.format_done_share().unwrap() != Some(0.37) {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(!formatting.is_finished() && double.starts() == 1);
        double.set_faults(Faults { erase_fails: true, ..Faults::default() });
        let error = formatting.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("was not formatted: internal error"), "{error}");
    });
}

#[test]
fn a_sanitize_is_followed_to_its_end_or_its_failure() {
    let (double, drive) = open(Model { sanitize: 5, ..Model::default() }, Access::Sanitize);
    let device: &dyn NvmeTarget = &drive;
    double.set_content(0, &[7; 8192]);
    double.set_faults(Faults { unending: true, done_percent: 50, ..Faults::default() });
    assert_eq!(device.start_sanitize().unwrap(), SanitizeAction::CryptoErase);
    let log = device.sanitize_log().unwrap();
    assert_eq!((log.status, log.done_share()), (SanitizeStatus::Running, 0.5));
    // Sanitize in progress, as recordings have it; then sanitize failed.
    assert_eq!(do_io(&drive, 512), [0x1_001d, 0x1_001d]);
    double.set_faults(Faults { erase_fails: true, ..Faults::default() });
    while device.sanitize_log().unwrap().status == SanitizeStatus::Running {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(device.sanitize_log().unwrap().status, SanitizeStatus::Failed);
    assert_eq!(do_io(&drive, 512), [0x1_001c, 0x1_001c]);
    // Another one is the way out.
    double.set_faults(Faults::default());
    device.start_sanitize().unwrap();
    while device.sanitize_log().unwrap().status == SanitizeStatus::Running {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(
        (device.sanitize_log().unwrap().status, do_io(&drive, 512)),
        (SanitizeStatus::Done, vec![0, 0])
    );
}

#[test]
fn what_it_was_not_opened_for_or_cannot_do_is_refused() {
    let (_, drive) = open(Model::default(), Access::Write);
    let device: &dyn NvmeTarget = &drive;
    assert!(usage(device.format(None, SecureErase::None)).contains("not opened to be erased as a whole"));
    assert!(usage(device.start_sanitize()).contains("not opened to be erased as a whole"));
    let (_, drive) = open(Model { sanitize: 0, ..Model::default() }, Access::Sanitize);
    assert!(usage((&drive as &dyn NvmeTarget).start_sanitize()).contains("has no sanitize command"));
}

#[test]
fn health_and_errors_are_told_and_features_last_until_they_are_dropped() {
    let (double, drive) = open(Model::default(), Access::Write);
    let device: &dyn NvmeTarget = &drive;
    let account = device.account();
    assert_eq!(account["controller"]["serial"], json!("DOUBLE-1"));
    assert_eq!(account["namespace"]["formats"][1]["block_bytes"], json!(4096));
    assert_eq!(account["before"]["errors"], json!([]));
    double.set_faults(Faults { bad_block: Some(1), ..Faults::default() });
    do_io(&drive, 512);
    let health = device.health();
    assert_eq!((&health["smart"]["host_writes"], &health["smart"]["host_reads"]), (&json!(1), &json!(1)));
    let error = &health["errors"][0];
    assert_eq!((&error["status"], &error["lba"], &error["nsid"]), (&json!(0x1_0281), &json!(1), &json!(1)));
    let choice = FeatureChoice { volatile_write_cache: Some(false), power_state: Some(2) };
    let told = || {
        let health = device.health();
        (health["volatile_write_cache"].clone(), health["power_state"].clone())
    };
    let set = FeaturesSet::set(device, choice).unwrap();
    assert_eq!(told(), (json!(false), json!(2)));
    drop(set);
    assert_eq!(told(), (json!(true), json!(0)));
    let refused = usage(FeaturesSet::set(device, FeatureChoice { power_state: Some(3), ..choice }));
    assert!(refused.contains("has 3 power states, and power_state is 3"), "{refused}");
    assert_eq!(told(), (json!(true), json!(0)), "what was set until then is set back");
}

#[test]
fn features_that_outlast_the_drive_set_nothing_back_and_keep_nothing() {
    let (double, drive) = open(Model::default(), Access::Write);
    let choice = FeatureChoice { volatile_write_cache: Some(false), power_state: None };
    let set = FeaturesSet::set(&drive, choice).unwrap();
    drop(drive);
    assert!(double.is_put_away() && double.memory_regions() == 0);
    drop(set);
}

#[test]
fn a_drive_that_is_not_shut_down_in_order_tells_so_when_it_is_given_back() {
    let (double, drive) = open(Model::default(), Access::Write);
    double.set_faults(Faults { fails_to_shut_down: true, ..Faults::default() });
    assert_eq!(drive.take_events(), None);
    let somebody_else = drive.clone();
    assert_eq!((drive.retire(&|| 7), double.shutdowns()), (None, 0));
    let events = somebody_else.retire(&|| 7).unwrap().unwrap().events;
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!((kinds, double.is_put_away()), (vec!["shutdown_incomplete"], true));
    // Nothing is told of one that is.
    let (_, drive) = open(Model::default(), Access::Write);
    assert_eq!(drive.retire(&|| 7), Some(None));
}

#[test]
fn what_a_drive_does_by_itself_is_told_with_its_health() {
    let asking = Model { host_memory_pages: Some((1024, 512)), sleeps: true, ..Model::default() };
    let (_, drive) = open(asking.clone(), Access::ReadOnly);
    let device: &dyn NvmeTarget = &drive;
    let health = device.health();
    assert_eq!(health["host_memory_buffer"], json!({"enabled": true, "bytes": 4 << 20}));
    assert_eq!(health["autonomous_power_transitions"], json!({"enabled": false, "transitions": []}));
    assert_eq!(health["interrupt_coalescing"], json!({"completions": 1, "time_us": 0}));
    let account = device.account();
    assert_eq!(account["controller"]["host_memory_preferred_bytes"], json!(4 << 20));
    assert_eq!(device.background().warnings("pci:01:00.0", device.controller(), None), []);
    // There is less than the drive can do with.
    let (_, drive) = open(Model { memory_bytes_max: 1 << 20, ..asking }, Access::ReadOnly);
    let device: &dyn NvmeTarget = &drive;
    let warnings = device.background().warnings("pci:01:00.0", device.controller(), None);
    let codes: Vec<&str> = warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(
        (codes, device.health()["host_memory_buffer"]["bytes"].as_u64()),
        (vec!["host_memory_buffer_off"], Some(0))
    );
    // A drive that has none of it is not asked, since what it refuses counts as an error.
    let (_, drive) = open(Model::default(), Access::ReadOnly);
    let device: &dyn NvmeTarget = &drive;
    let health = device.health();
    assert!(health["host_memory_buffer"].is_null() && health["autonomous_power_transitions"].is_null());
}
