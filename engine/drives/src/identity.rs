//! What a block device is: model, serial, firmware, capacity and block sizes, from sysfs.

use crate::sysfs::BlockDevice;
use std::path::PathBuf;
use testdrive_recording::DriveIdentity;

/// What a drive says of itself beyond its identity in a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// Whether it seeks, as far as the kernel knows.
    pub rotational: bool,
    /// The longest trim that it takes; 0 where it takes none.
    pub discard_max_bytes: u64,
    /// Whether it has queues that can be polled for completions.
    pub polled: bool,
}

/// The identity of a whole disk or partition. A partition has the model, serial and firmware of its disk.
///
/// # Errors
/// When sysfs does not have its disk.
pub fn identify(uri: &str, device: &BlockDevice) -> std::io::Result<DriveIdentity> {
    let whole = device.whole_disk()?;
    let logical_block_bytes = whole.attribute_number("queue/logical_block_size").unwrap_or(512);
    Ok(DriveIdentity {
        uri: uri.to_string(),
        model: model(&whole),
        serial: serial(&whole),
        firmware: first(&whole, &["device/firmware_rev", "device/rev", "device/fwrev"]),
        capacity_bytes: device.size_bytes(),
        logical_block_bytes,
        physical_block_bytes: whole
            .attribute_number("queue/physical_block_size")
            .unwrap_or(logical_block_bytes),
        ..DriveIdentity::default()
    })
}

/// What the device's queue can do.
///
/// # Errors
/// When sysfs does not have its disk.
pub fn features(device: &BlockDevice) -> std::io::Result<Features> {
    let whole = device.whole_disk()?;
    let is_set = |name| whole.attribute(name).as_deref() == Some("1");
    Ok(Features {
        rotational: is_set("queue/rotational"),
        discard_max_bytes: whole.attribute_number("queue/discard_max_bytes").unwrap_or(0),
        polled: is_set("queue/io_poll"),
    })
}

/// What `--erase` must say: the serial, or the node of a device that has none.
pub fn erase_name(serial: &str, node: &std::path::Path) -> String {
    if serial.is_empty() {
        node.display().to_string()
    } else {
        serial.to_string()
    }
}

/// The path of the file or device under a loop device; `None` for any other.
pub fn backing_file(device: &BlockDevice) -> Option<PathBuf> {
    device.whole_disk().ok()?.loop_backing_file()
}

fn first(device: &BlockDevice, names: &[&str]) -> String {
    names.iter().find_map(|name| device.attribute(name).filter(|text| !text.is_empty())).unwrap_or_default()
}

/// NVMe and MMC have the whole name in one attribute; SCSI splits off the vendor, which is a bare `ATA` for SATA drives.
fn model(whole: &BlockDevice) -> String {
    let model = first(whole, &["device/model", "device/name"]);
    let vendor = whole.attribute("device/vendor").unwrap_or_default();
    // Other buses have a number there.
    if model.is_empty() || vendor.is_empty() || vendor == "ATA" || vendor.starts_with("0x") {
        return model;
    }
    format!("{vendor} {model}")
}

/// The serial by which consent is given; empty where there is none that could tell one drive from another.
fn serial(whole: &BlockDevice) -> String {
    let scsi = whole.attribute_bytes("device/vpd_pg80").and_then(|page| unit_serial(&page));
    // NVMe and MMC, SCSI and SATA, virtio; then names that are worldwide unique in place of a serial.
    let candidates = [
        whole.attribute("device/serial"),
        scsi,
        whole.attribute("serial"),
        whole.attribute("device/wwid"),
        whole.attribute("wwid"),
    ];
    candidates.into_iter().flatten().find(|text| tells_apart(text)).unwrap_or_default()
}

/// Some bridges report a serial of blanks or zeroes for every drive.
fn tells_apart(serial: &str) -> bool {
    serial.chars().any(|c| !matches!(c, '0' | ' ' | '.' | '-' | 'x'))
}

/// The serial of a SCSI Unit Serial Number page (SPC-4, 7.8.15): four bytes of header, the last two its length.
fn unit_serial(page: &[u8]) -> Option<String> {
    let (header, rest) = page.split_at_checked(4)?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[1] != 0x80 {
        return None;
    }
    let text = String::from_utf8_lossy(&rest[..length.min(rest.len())]).into_owned();
    Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serial_page_is_cut_to_its_length() {
        assert_eq!(unit_serial(b"\x00\x80\x00\x08  S4EWNXtrailing"), Some("S4EWNX".into()));
        assert_eq!(unit_serial(b"\x00\x80\x00\xffS4"), Some("S4".into()));
        assert_eq!(unit_serial(b"\x00\x83\x00\x02S4"), None);
        assert_eq!(unit_serial(b"\x00\x80"), None);
    }

    #[test]
    fn a_serial_that_every_drive_has_is_none() {
        for text in ["", "0000000000000000", "   ", "0x00000000"] {
            assert!(!tells_apart(text), "{text:?}");
        }
        assert!(tells_apart("0000S4"));
    }
}
