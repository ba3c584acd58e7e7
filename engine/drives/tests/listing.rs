//! The list of this host's drives, on real loop devices.

mod support;

use support::{loop_turn, must, Loop, Mounted};
use testdrive_drives::{list_drives, DriveListing};

fn entry(device: &Loop) -> DriveListing {
    let drives = list_drives().unwrap();
    drives.into_iter().find(|drive| drive.uri == device.path).expect("an attached loop device is listed")
}

#[test]
fn a_free_loop_device_is_erasable_by_its_path() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let drive = entry(&device);
    assert!(drive.erasable, "{:?}", drive.refusals);
    assert_eq!(
        (drive.erase_name.as_str(), drive.capacity_bytes),
        (device.path.as_str(), support::SIZE_BYTES)
    );
    assert_eq!(
        drive.paths.iter().map(|path| (path.path, &*path.uri)).collect::<Vec<_>>(),
        [("block", &*device.path)]
    );
    assert_eq!(drive.backing_file.as_deref(), Some(device.backing.as_path()));
    assert_eq!((drive.refusals, drive.signatures, drive.partition_table), (vec![], vec![], None));
}

#[test]
fn every_reason_is_listed_with_what_was_found() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::with(&["-P"]);
    let partition = device.partition();
    must("mkfs.ext4", &["-q", &partition]);
    let mounted = Mounted::new(&partition);
    let drive = entry(&device);
    assert!(!drive.erasable);
    assert_eq!(drive.mounted, [mounted.point.path().display().to_string()]);
    assert_eq!(drive.partition_table.as_deref(), Some("gpt"));
    assert_eq!(drive.partitions, [format!("{}p1", device.name())]);
    assert!(drive.signatures.iter().any(|each| each.name == "gpt" && each.offset_bytes == Some(512)));
    assert_eq!(drive.refusals.len(), 2, "{:?}", drive.refusals);
}

#[test]
fn a_claimed_drive_is_listed_as_in_use() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let _claim = support::claim(&device.path);
    let drive = entry(&device);
    assert!(!drive.erasable && drive.refusals[0].contains("has claimed it"), "{:?}", drive.refusals);
}

#[test]
fn listing_changes_nothing_and_keeps_no_claim() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let before = device.content();
    entry(&device);
    drop(support::claim(&device.path));
    assert!(device.content() == before);
}

#[test]
fn the_json_has_the_documented_keys() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    must("mkfs.ext4", &["-q", &device.path]);
    let json = serde_json::to_value(entry(&device)).unwrap();
    let documented = concat!(include_str!("../../../docs/job.md"), include_str!("../../../docs/safety.md"));
    for key in json.as_object().unwrap().keys() {
        assert!(
            documented.contains(&format!("`{key}`")),
            "neither docs/job.md nor docs/safety.md knows `{key}`"
        );
    }
    for key in ["uri", "read_only", "mounted", "holders", "partitions", "erase_name", "erasable", "refusals"]
    {
        assert!(!json[key].is_null(), "{key}");
    }
    let signature = &json["signatures"][0];
    assert_eq!((signature["name"].as_str(), signature["offset_bytes"].as_u64()), (Some("ext4"), Some(1080)));
    assert!(json["partition_table"].is_null() && json["swap"] == false);
}
