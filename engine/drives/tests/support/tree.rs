//! Trees of sysfs, procfs and /dev laid out by hand, for hardware that a test machine does not have.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use testdrive_drives::sysfs::SystemRoots;

pub struct Tree {
    folder: TempDir,
}

impl Tree {
    pub fn new() -> Tree {
        let tree = Tree { folder: tempfile::tempdir().unwrap() };
        for folder in ["sys/block", "sys/class/block", "sys/dev/block", "proc/self/ns", "dev"] {
            fs::create_dir_all(tree.path(folder)).unwrap();
        }
        tree.write("proc/self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw\n");
        tree.write("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
        tree
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    pub fn roots(&self) -> SystemRoots {
        SystemRoots { sys: self.path("sys"), proc: self.path("proc"), dev: self.path("dev") }
    }

    /// The tree's sysfs beside the host's own procfs and nodes: a real device that claims to be other hardware.
    pub fn roots_with_real_nodes(&self) -> SystemRoots {
        SystemRoots { sys: self.path("sys"), ..SystemRoots::default() }
    }

    pub fn write(&self, relative: &str, content: impl AsRef<[u8]>) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn link(&self, relative: &str, to: &Path) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    /// A whole disk of 1 GiB with attributes beside the usual ones.
    pub fn disk(&self, name: &str, number: &str, attributes: &[(&str, &str)]) {
        let folder = format!("sys/devices/{name}");
        for (attribute, value) in [
            ("dev", number),
            ("size", "2097152"),
            ("ro", "0"),
            ("queue/logical_block_size", "512"),
            ("queue/physical_block_size", "4096"),
            ("queue/rotational", "0"),
            ("queue/discard_max_bytes", "2147450880"),
        ] {
            self.write(&format!("{folder}/{attribute}"), format!("{value}\n"));
        }
        for (attribute, value) in attributes {
            self.write(&format!("{folder}/{attribute}"), format!("{value}\n"));
        }
        for list in ["holders", "slaves"] {
            fs::create_dir_all(self.path(&format!("{folder}/{list}"))).unwrap();
        }
        self.write(&format!("dev/{name}"), "");
        self.link(&format!("sys/block/{name}"), &self.path(&folder));
        self.link_everywhere(name, number, &self.path(&folder));
    }

    pub fn partition(&self, disk: &str, name: &str, number: &str) {
        let folder = format!("sys/devices/{disk}/{name}");
        let attributes = [("dev", number), ("size", "1024"), ("ro", "0"), ("partition", "1")];
        for (attribute, value) in attributes {
            self.write(&format!("{folder}/{attribute}"), format!("{value}\n"));
        }
        fs::create_dir_all(self.path(&format!("{folder}/holders"))).unwrap();
        self.write(&format!("dev/{name}"), "");
        self.link_everywhere(name, number, &self.path(&folder));
    }

    fn link_everywhere(&self, name: &str, number: &str, folder: &Path) {
        self.link(&format!("sys/class/block/{name}"), folder);
        self.link(&format!("sys/dev/block/{number}"), folder);
    }

    /// Makes `upper` stand on `lower`, both paths below sys/devices.
    pub fn stack(&self, lower: &str, upper: &str) {
        let name = |path: &str| path.rsplit('/').next().unwrap().to_string();
        self.link(
            &format!("sys/devices/{lower}/holders/{}", name(upper)),
            &self.path(&format!("sys/devices/{upper}")),
        );
        self.link(
            &format!("sys/devices/{upper}/slaves/{}", name(lower)),
            &self.path(&format!("sys/devices/{lower}")),
        );
    }
}
