//! What files and devices stand on: on trees laid out by hand, and on a real loop device.

mod support;
#[path = "support/tree.rs"]
mod tree;

use std::collections::BTreeSet;
use support::{loop_turn, Loop};
use testdrive_drives::sysfs::{DeviceNumber, SystemRoots};
use testdrive_drives::{devices_beneath, devices_beneath_path};
use tree::Tree;

fn numbers(texts: &[&str]) -> BTreeSet<DeviceNumber> {
    texts.iter().map(|text| DeviceNumber::parse(text).unwrap()).collect()
}

#[test]
fn a_volume_stands_on_the_partitions_and_disks_below_it() {
    let tree = Tree::new();
    tree.disk("nvme0n1", "259:0", &[]);
    tree.disk("nvme1n1", "259:1", &[]);
    tree.partition("nvme0n1", "nvme0n1p1", "259:2");
    tree.disk("md0", "9:0", &[]);
    tree.disk("dm-0", "253:0", &[]);
    tree.stack("nvme0n1/nvme0n1p1", "md0");
    tree.stack("nvme1n1", "md0");
    tree.stack("md0", "dm-0");
    let of = |number: &str| devices_beneath(&tree.roots(), DeviceNumber::parse(number).unwrap());
    assert_eq!(of("253:0"), numbers(&["253:0", "9:0", "259:2", "259:0", "259:1"]));
    assert_eq!(of("259:2"), numbers(&["259:2", "259:0"]));
    assert_eq!(of("259:1"), numbers(&["259:1"]));
}

#[test]
fn a_loop_device_stands_on_the_device_behind_it_and_a_circle_ends() {
    let tree = Tree::new();
    tree.disk("sda", "8:0", &[]);
    tree.disk("loop0", "7:0", &[("loop/backing_file", "/dev/sda")]);
    tree.stack("loop0", "sda");
    let found = devices_beneath(&tree.roots(), DeviceNumber { major: 7, minor: 0 });
    assert_eq!(found, numbers(&["7:0", "8:0"]));
}

#[test]
fn a_file_on_a_loop_device_stands_on_the_files_disk_too() {
    let Some(_turn) = loop_turn() else { return };
    let device = Loop::new();
    let roots = SystemRoots::default();
    let number = roots.number_of_path(device.path.as_ref()).unwrap();
    let beneath = devices_beneath(&roots, number);
    assert!(beneath.contains(&number));
    assert!(beneath.is_superset(&devices_beneath_path(&roots, &device.backing)));
    assert!(devices_beneath_path(&roots, "/proc/self/stat".as_ref()).is_empty());
}
