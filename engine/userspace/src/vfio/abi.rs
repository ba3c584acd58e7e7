//! The kernel's VFIO interface (linux/vfio.h): numbers and structures, for the type 1 IOMMU and for none.

use libc::c_ulong;

const fn number(offset: c_ulong) -> c_ulong {
    // _IO(';', 100 + offset): without direction or size.
    (b';' as c_ulong) << 8 | (100 + offset)
}

pub const GET_API_VERSION: c_ulong = number(0);
pub const CHECK_EXTENSION: c_ulong = number(1);
pub const SET_IOMMU: c_ulong = number(2);
pub const GROUP_GET_STATUS: c_ulong = number(3);
pub const GROUP_SET_CONTAINER: c_ulong = number(4);
pub const GROUP_GET_DEVICE_FD: c_ulong = number(6);
pub const DEVICE_GET_REGION_INFO: c_ulong = number(8);
pub const DEVICE_GET_IRQ_INFO: c_ulong = number(9);
pub const DEVICE_SET_IRQS: c_ulong = number(10);
pub const IOMMU_GET_INFO: c_ulong = number(12);
pub const IOMMU_MAP_DMA: c_ulong = number(13);
pub const IOMMU_UNMAP_DMA: c_ulong = number(14);

pub const API_VERSION: i32 = 0;
pub const TYPE1_IOMMU: c_ulong = 1;
pub const TYPE1V2_IOMMU: c_ulong = 3;
pub const NOIOMMU_IOMMU: c_ulong = 8;
pub const GROUP_VIABLE: u32 = 1;
pub const REGION_BAR0: u32 = 0;
pub const REGION_CONFIG: u32 = 7;
pub const REGION_MMAP: u32 = 4;
pub const IRQ_MSIX: u32 = 2;
pub const IRQ_ERROR: u32 = 3;
pub const IRQ_REQUEST: u32 = 4;
pub const IRQ_SET_NONE_TRIGGER: u32 = 1 | 1 << 5;
pub const IRQ_SET_EVENTFD_TRIGGER: u32 = 1 << 2 | 1 << 5;
pub const DMA_READ_WRITE: u32 = 3;
pub const INFO_CAPABILITIES: u32 = 2;
pub const CAPABILITY_IOVA_RANGE: u16 = 1;

#[repr(C)]
#[derive(Default)]
pub struct GroupStatus {
    pub argsz: u32,
    pub flags: u32,
}

#[repr(C)]
#[derive(Default)]
pub struct RegionInfo {
    pub argsz: u32,
    pub flags: u32,
    pub index: u32,
    pub cap_offset: u32,
    pub size: u64,
    pub offset: u64,
}

#[repr(C)]
#[derive(Default)]
pub struct IrqInfo {
    pub argsz: u32,
    pub flags: u32,
    pub index: u32,
    pub count: u32,
}

/// The head of `vfio_irq_set`; descriptors follow.
#[repr(C)]
#[derive(Default)]
pub struct IrqSet {
    pub argsz: u32,
    pub flags: u32,
    pub index: u32,
    pub start: u32,
    pub count: u32,
}

#[repr(C)]
#[derive(Default)]
pub struct DmaMap {
    pub argsz: u32,
    pub flags: u32,
    pub vaddr: u64,
    pub iova: u64,
    pub size: u64,
}

#[repr(C)]
#[derive(Default)]
pub struct DmaUnmap {
    pub argsz: u32,
    pub flags: u32,
    pub iova: u64,
    pub size: u64,
}
