//! A PCI function as sysfs shows it: its address, its driver, and what it shares an IOMMU group with.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Class, subclass and interface of an NVMe controller (PCI Code and ID Assignment, 1.9).
pub const NVME_CLASS: u32 = 0x01_08_02;
/// Class and subclass of a bridge between PCI buses, which may share an IOMMU group with what is behind it.
const BRIDGE_CLASS: u32 = 0x06_04;
/// The driver that hands functions to user space.
pub const VFIO_DRIVER: &str = "vfio-pci";

/// Where the kernel's file systems are. Other places than the usual serve tests, on trees laid out by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// sysfs.
    pub sys: PathBuf,
    /// Device nodes.
    pub dev: PathBuf,
    /// Where notes of taken drives are kept until the next boot.
    pub notes: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots { sys: "/sys".into(), dev: "/dev".into(), notes: "/run/testdrive".into() }
    }
}

/// The address of a function: domain, bus, device and function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bdf {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

impl Bdf {
    /// Parses `0000:01:00.0`; the domain may be left out where it is 0.
    pub fn parse(text: &str) -> Option<Bdf> {
        let hex = |text: &str, digits: std::ops::RangeInclusive<usize>| {
            let valid = digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            valid.then(|| u32::from_str_radix(text, 16).ok()).flatten()
        };
        let parts: Vec<&str> = text.split(':').collect();
        let (domain, bus, rest) = match parts.as_slice() {
            [bus, rest] => (0, bus, rest),
            // Domains of virtual controllers (VMD) have five digits.
            [domain, bus, rest] => (hex(domain, 4..=8)?, bus, rest),
            _ => return None,
        };
        let (device, function) = rest.split_once('.')?;
        let (bus, device, function) = (hex(bus, 2..=2)?, hex(device, 2..=2)?, hex(function, 1..=1)?);
        let valid = device < 32 && function < 8;
        valid.then_some(Bdf { domain, bus: bus as u8, device: device as u8, function: function as u8 })
    }
}

impl fmt::Display for Bdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

/// A function that is there.
#[derive(Clone, Debug)]
pub struct PciFunction {
    /// Its address.
    pub bdf: Bdf,
    roots: Roots,
}

impl PciFunction {
    /// The function at an address.
    ///
    /// # Errors
    /// When there is none, or sysfs is not there.
    pub fn find(roots: &Roots, bdf: Bdf) -> io::Result<PciFunction> {
        let function = PciFunction { bdf, roots: roots.clone() };
        fs::metadata(function.directory())?;
        Ok(function)
    }

    /// Its directory in sysfs.
    pub fn directory(&self) -> PathBuf {
        self.roots.sys.join("bus/pci/devices").join(self.bdf.to_string())
    }

    /// Where the kernel's file systems are.
    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    /// The driver that it is bound to.
    pub fn driver(&self) -> Option<String> {
        last_of_link(&self.directory().join("driver"))
    }

    /// Class, subclass and interface.
    pub fn class(&self) -> Option<u32> {
        let text = self.attribute("class")?;
        u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
    }

    /// The only driver that it may be bound to, where one is named.
    pub fn driver_override(&self) -> Option<String> {
        self.attribute("driver_override").filter(|text| !text.is_empty() && text != "(null)")
    }

    /// The number of its IOMMU group, where there is an IOMMU.
    pub fn iommu_group(&self) -> Option<String> {
        last_of_link(&self.directory().join("iommu_group"))
    }

    /// Others of its IOMMU group that keep it from being handed to user space, by address and driver: what they do by DMA could not be
    /// told from what it does.
    ///
    /// # Errors
    /// When the group cannot be listed.
    pub fn group_hindrances(&self) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.directory().join("iommu_group/devices"))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let Some(bdf) = Bdf::parse(&name).filter(|bdf| *bdf != self.bdf) else { continue };
            let other = PciFunction { bdf, roots: self.roots.clone() };
            let is_bridge = other.class().is_some_and(|class| class >> 8 == BRIDGE_CLASS);
            match other.driver() {
                Some(driver) if !is_bridge && driver != VFIO_DRIVER && driver != "pci-stub" => {
                    found.push(format!("{name} ({driver})"));
                }
                _ => {}
            }
        }
        found.sort();
        Ok(found)
    }

    /// The kernel's names of the NVMe controller on it (`nvme0`); none while another driver has it.
    pub fn nvme_controllers(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory().join("nvme")).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// An attribute, trimmed.
    pub fn attribute(&self, relative: &str) -> Option<String> {
        Some(fs::read_to_string(self.directory().join(relative)).ok()?.trim().to_string())
    }

    /// The file that detaches it from a driver.
    pub(crate) fn unbind_file(&self, driver: &str) -> PathBuf {
        self.roots.sys.join("bus/pci/drivers").join(driver).join("unbind")
    }

    /// The file that has the kernel look for a driver for it.
    pub(crate) fn probe_file(&self) -> PathBuf {
        self.roots.sys.join("bus/pci/drivers_probe")
    }
}

fn last_of_link(link: &Path) -> Option<String> {
    Some(fs::read_link(link).ok()?.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_and_without_its_domain() {
        let full = Bdf::parse("0000:01:0a.3").unwrap();
        assert_eq!((Bdf::parse("01:0a.3"), full.to_string().as_str()), (Some(full), "0000:01:0a.3"));
        assert_eq!(Bdf::parse("10000:E1:00.0").unwrap().to_string(), "10000:e1:00.0");
    }

    #[test]
    fn what_is_no_address_is_none() {
        for text in [
            "",
            "nvme0",
            "01:00",
            "0000:01:20.0",
            "0000:01:00.8",
            "0:1:0.0",
            "0000:01:00.0x",
            "1:0000:01:00.0",
            "0000:+1:00.0",
        ] {
            assert_eq!(Bdf::parse(text), None, "{text}");
        }
    }
}
