//! Writes binary blktrace, to test what reads it: an independent account of the format's layout.

/// Which layout to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub version: u32,
    pub big_endian: bool,
}

pub const LAYOUTS: [Layout; 4] = [
    Layout { version: 7, big_endian: false },
    Layout { version: 7, big_endian: true },
    Layout { version: 8, big_endian: false },
    Layout { version: 8, big_endian: true },
];

pub const READ: u64 = 1 << 0;
pub const WRITE: u64 = 1 << 1;
pub const FLUSH: u64 = 1 << 2;
pub const SYNC: u64 = 1 << 3;
pub const PASSTHROUGH: u64 = 1 << 9;
pub const NOTIFY: u64 = 1 << 10;
pub const META: u64 = 1 << 12;
pub const DISCARD: u64 = 1 << 13;
pub const FUA: u64 = 1 << 15;
pub const ZONE_RESET: u64 = 1 << 17;
pub const WRITE_ZEROES: u64 = 1 << 22;

pub const Q: u64 = 1;
pub const D: u64 = 7;
pub const C: u64 = 8;
pub const A: u64 = 15;
pub const CGROUP: u64 = 0x100;

/// One record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub time_ns: u64,
    pub sector: u64,
    pub bytes: u32,
    pub category: u64,
    pub act: u64,
    pub cpu: u32,
    pub error: i16,
    pub pdu: Vec<u8>,
}

pub const DEVICE: u32 = 8 << 20 | 16;

impl Record {
    pub fn io(time_ns: u64, act: u64, category: u64, sector: u64, sectors: u32) -> Record {
        Record { time_ns, act, category, sector, bytes: sectors * 512, ..Record::default() }
    }

    /// The record's bytes.
    pub fn encode(&self, layout: Layout, out: &mut Vec<u8>) {
        let action = self.category << 16 | self.act;
        let mut writer = Writer { out, big: layout.big_endian };
        writer.u32(0x6561_7400 | layout.version);
        writer.u32(1);
        writer.u64(self.time_ns);
        writer.u64(self.sector);
        writer.u32(self.bytes);
        if layout.version == 7 {
            writer.u32(u32::try_from(action).expect("version 7 has 16 categories"));
            writer.u32(4711);
        } else {
            writer.u32(4711);
            writer.u64(action);
        }
        writer.u32(DEVICE);
        writer.u32(self.cpu);
        writer.u16(self.error as u16);
        writer.u16(self.pdu.len() as u16);
        if layout.version == 8 {
            writer.out.extend_from_slice(&[0; 12]);
        }
        writer.out.extend_from_slice(&self.pdu);
    }
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    big: bool,
}

impl Writer<'_> {
    fn u16(&mut self, value: u16) {
        self.out.extend_from_slice(&if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
    }
    fn u32(&mut self, value: u32) {
        self.out.extend_from_slice(&if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
    }
    fn u64(&mut self, value: u64) {
        self.out.extend_from_slice(&if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
    }
}

/// A whole file.
pub fn file(records: &[Record], layout: Layout) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        record.encode(layout, &mut out);
    }
    out
}
