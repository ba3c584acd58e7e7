//! A function opened through VFIO: its registers mapped, its memory made reachable, its interrupts as descriptors.

mod abi;
mod bar;
mod huge;
mod interrupts;
mod iova;
mod pinned;

pub use huge::HugePages;

use crate::function::Function;
use crate::memory::{Addresses, DmaMemory, PAGE_BYTES};
use crate::pci::PciFunction;
use crate::registers::{Capabilities, CAP};
use abi::{GroupStatus, RegionInfo};
use bar::Registers;
use huge::{Mapping, HUGE_BYTES};
use interrupts::Notice;
use iova::IovaSpace;
use pinned::{Iommu, Pinned};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The command register in a function's configuration, and its bits for memory and for being bus master.
const COMMAND: u64 = 4;
const COMMAND_MEMORY: u16 = 1 << 1;
const COMMAND_BUS_MASTER: u16 = 1 << 2;
/// The doorbells of so many queue pairs are mapped.
const PAIRS_MAX: u16 = 256;

/// How a function is opened.
pub struct VfioOptions {
    /// Whether queues may interrupt.
    pub interrupts: bool,
    /// Huge pages to do without an IOMMU with; `None` where there is one.
    pub without_iommu: Option<Arc<HugePages>>,
}

/// A function that is open.
pub struct VfioFunction {
    registers: Registers,
    interrupts: Vec<OwnedFd>,
    /// Told when somebody wants the function back.
    request: Option<Notice>,
    wanted_back: AtomicBool,
    /// Told of an error of the bus that the bus could not mend.
    bus_error: Option<Notice>,
    memory: MemorySource,
    device: File,
    config_offset: u64,
    _group: File,
}

/// Where memory for DMA comes from.
enum MemorySource {
    Iommu(Arc<Iommu>),
    Physical { pages: Arc<HugePages>, _container: File },
}

fn call(fd: RawFd, number: libc::c_ulong, argument: libc::c_ulong) -> io::Result<i32> {
    // SAFETY: for callers in this file, the number takes an integer, or a pointer to a structure that lives during the call.
    match unsafe { libc::ioctl(fd, number as _, argument) } {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}

fn call_with<T>(fd: RawFd, number: libc::c_ulong, argument: &mut T) -> io::Result<i32> {
    call(fd, number, std::ptr::from_mut(argument) as libc::c_ulong)
}

fn because(what: String) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn open(path: &std::path::Path) -> io::Result<File> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(because(format!("{} cannot be opened", path.display())))
}

impl VfioFunction {
    /// Opens a function that is bound to vfio-pci, and lets it reach memory.
    ///
    /// # Errors
    /// When VFIO is not there, the function's IOMMU group is not ours alone, or the kernel refuses; each with what is missing.
    pub fn open(function: &PciFunction, options: &VfioOptions) -> io::Result<VfioFunction> {
        let vfio = function.roots().dev.join("vfio");
        let group = function.iommu_group().ok_or_else(|| {
            let message = "it has no IOMMU group: switch the IOMMU on (docs/direct-paths.md)";
            io::Error::new(io::ErrorKind::Unsupported, message)
        })?;
        let container = open(&vfio.join("vfio"))?;
        if call(container.as_raw_fd(), abi::GET_API_VERSION, 0)? != abi::API_VERSION {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel has another VFIO than this driver knows",
            ));
        }
        let name = if options.without_iommu.is_some() { format!("noiommu-{group}") } else { group };
        let group = open(&vfio.join(&name))?;
        let mut status = GroupStatus { argsz: size_of::<GroupStatus>() as u32, flags: 0 };
        call_with(group.as_raw_fd(), abi::GROUP_GET_STATUS, &mut status)?;
        if status.flags & abi::GROUP_VIABLE == 0 {
            let message = format!(
                "IOMMU group {name} holds another function that its driver still has: unbind that first"
            );
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
        }
        let mut descriptor = container.as_raw_fd();
        call_with(group.as_raw_fd(), abi::GROUP_SET_CONTAINER, &mut descriptor)
            .map_err(because(format!("IOMMU group {name} cannot be used")))?;
        let memory = memory_source(container, options)?;
        let bdf = CString::new(function.bdf.to_string())?;
        let device = call(group.as_raw_fd(), abi::GROUP_GET_DEVICE_FD, bdf.as_ptr() as libc::c_ulong)
            .map_err(because(format!("{} cannot be opened", function.bdf)))?;
        // SAFETY: the kernel just made the descriptor for us.
        let device = File::from(unsafe { OwnedFd::from_raw_fd(device) });
        let config_offset = region(&device, abi::REGION_CONFIG)?.offset;
        let registers = Registers::map(&device, |first| {
            let cap = u64::from(first.read32(CAP)) | u64::from(first.read32(CAP + 4)) << 32;
            Capabilities::decode(cap).registers_of(PAIRS_MAX)
        })?;
        let interrupts = if options.interrupts { interrupts::of_queues(&device)? } else { Vec::new() };
        let opened = VfioFunction {
            registers,
            interrupts,
            // Without it the kernel waits for the end of the run, and so does whoever takes the drive out of its slot.
            request: Notice::of(&device, abi::IRQ_REQUEST),
            wanted_back: AtomicBool::new(false),
            bus_error: Notice::of(&device, abi::IRQ_ERROR),
            memory,
            device,
            config_offset,
            _group: group,
        };
        opened.change_command(COMMAND_MEMORY | COMMAND_BUS_MASTER, 0)?;
        Ok(opened)
    }

    /// Sets and clears bits of the command register.
    fn change_command(&self, set: u16, clear: u16) -> io::Result<()> {
        let at = self.config_offset + COMMAND;
        let mut bytes = [0; 2];
        self.device.read_exact_at(&mut bytes, at)?;
        let command = u16::from_le_bytes(bytes) & !clear | set;
        self.device.write_all_at(&command.to_le_bytes(), at)
    }
}

fn memory_source(container: File, options: &VfioOptions) -> io::Result<MemorySource> {
    let fd = container.as_raw_fd();
    let has = |kind| call(fd, abi::CHECK_EXTENSION, kind).is_ok_and(|answer| answer == 1);
    let (kind, name) = match (&options.without_iommu, has(abi::TYPE1V2_IOMMU)) {
        (Some(_), _) => (abi::NOIOMMU_IOMMU, "no IOMMU"),
        (None, true) => (abi::TYPE1V2_IOMMU, "the IOMMU"),
        (None, false) => (abi::TYPE1_IOMMU, "the IOMMU"),
    };
    call(fd, abi::SET_IOMMU, kind).map_err(because(format!("VFIO cannot be used with {name}")))?;
    Ok(match &options.without_iommu {
        Some(pages) => MemorySource::Physical { pages: Arc::clone(pages), _container: container },
        None => {
            let space = Mutex::new(IovaSpace::of(&iommu_info(fd)?));
            MemorySource::Iommu(Arc::new(Iommu { container, space }))
        }
    })
}

/// The answer of `VFIO_IOMMU_GET_INFO`, with its capabilities.
fn iommu_info(fd: RawFd) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0_u64; 3];
    loop {
        let length = (bytes.len() * 8) as u32;
        // The structure begins with its size.
        bytes[0] =
            u64::from_ne_bytes([length.to_ne_bytes(), [0; 4]].concat().try_into().expect("eight bytes"));
        call(fd, abi::IOMMU_GET_INFO, bytes.as_mut_ptr() as libc::c_ulong)?;
        let [a, b, c, d, ..] = bytes[0].to_ne_bytes();
        let needed = u32::from_ne_bytes([a, b, c, d]);
        if needed <= length {
            return Ok(bytes.iter().flat_map(|word| word.to_ne_bytes()).collect());
        }
        bytes = vec![0; (needed as usize).div_ceil(8)];
    }
}

/// The size of the host's pages, in which it maps memory and lets it be reached.
fn host_page_bytes() -> usize {
    // SAFETY: the call takes an integer only.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(PAGE_BYTES)
}

/// So many bytes in whole pages, those of the host and those of the controller.
fn whole_pages(length_bytes: usize, host_page_bytes: usize) -> usize {
    length_bytes.next_multiple_of(host_page_bytes.max(PAGE_BYTES))
}

fn region(device: &File, index: u32) -> io::Result<RegionInfo> {
    let mut info = RegionInfo { argsz: size_of::<RegionInfo>() as u32, index, ..RegionInfo::default() };
    call_with(device.as_raw_fd(), abi::DEVICE_GET_REGION_INFO, &mut info)?;
    Ok(info)
}

impl Function for VfioFunction {
    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        self.registers.read32(offset)
    }

    #[inline]
    fn write32(&self, offset: usize, value: u32) {
        self.registers.write32(offset, value);
    }

    fn registers_bytes(&self) -> usize {
        self.registers.length
    }

    fn allocate(&self, length_bytes: usize) -> io::Result<DmaMemory> {
        match &self.memory {
            MemorySource::Iommu(iommu) => Pinned::map(iommu, whole_pages(length_bytes, host_page_bytes())),
            MemorySource::Physical { pages, .. } => {
                let mapping = pages.map(length_bytes)?;
                let Mapping { start, length, ref physical, .. } = mapping;
                let addresses = Addresses::Pieces { bytes: HUGE_BYTES, starts: physical.clone() };
                // SAFETY: the mapping is readable and writable, and lasts as long as its owner.
                Ok(unsafe { DmaMemory::new(start, length, addresses, Box::new(mapping)) })
            }
        }
    }

    fn interrupt(&self, vector: u16) -> Option<RawFd> {
        self.interrupts.get(usize::from(vector)).map(|descriptor| descriptor.as_raw_fd())
    }

    fn interrupts(&self) -> u16 {
        self.interrupts.len() as u16
    }

    fn is_wanted_back(&self) -> bool {
        // Once told it stays so: every queue is to see it.
        if self.request.as_ref().is_some_and(Notice::take) {
            self.wanted_back.store(true, Ordering::Relaxed);
        }
        self.wanted_back.load(Ordering::Relaxed)
    }

    fn take_bus_error(&self) -> bool {
        self.bus_error.as_ref().is_some_and(Notice::take)
    }

    /// Without an IOMMU nothing holds a drive to what it was lent, and the huge pages are for I/O.
    fn may_lend_memory(&self) -> bool {
        matches!(self.memory, MemorySource::Iommu(_))
    }

    fn cut_off(&self) {
        if let Err(error) = self.change_command(0, COMMAND_BUS_MASTER) {
            eprintln!("testdrive: the controller could not be kept from memory: {error}");
        }
    }
}

impl Drop for VfioFunction {
    fn drop(&mut self) {
        self.cut_off();
        if !self.interrupts.is_empty() {
            interrupts::end(&self.device);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_for_a_drive_is_whole_pages_of_the_host() {
        assert_eq!(
            (whole_pages(1, 4096), whole_pages(4096, 4096), whole_pages(4097, 4096)),
            (4096, 4096, 8192)
        );
        assert_eq!((whole_pages(4096, 65_536), whole_pages(65_537, 65_536)), (65_536, 131_072));
        assert!(host_page_bytes().is_power_of_two());
    }
}
