//! A small trace of every format, for tests that go over all of them. Made for this; no line is from a real trace.

use crate::encode::{file, Record, C, D, LAYOUTS, Q, WRITE};
use crate::support::events;
use testdrive_traces::Options;

/// A trace of a format.
pub struct Sample {
    pub format: &'static str,
    pub content: Vec<u8>,
    pub options: Options,
    /// How many rows it has.
    pub rows: usize,
    /// Whether it is lines of text.
    pub is_text: bool,
}

impl Sample {
    fn text(format: &'static str, content: &str, rows: usize) -> Sample {
        let content = content.as_bytes().to_vec();
        Sample { format, content, options: Options::default(), rows, is_text: true }
    }

    fn binary(format: &'static str, content: Vec<u8>, rows: usize) -> Sample {
        Sample { format, content, options: Options::default(), rows, is_text: false }
    }
}

/// At least one for each format: a format without one is not tested against damage.
pub fn samples() -> Vec<Sample> {
    vec![
        Sample::binary("blktrace", blktrace(), 3),
        Sample::text("blkparse", BLKPARSE, 2),
        Sample::text(
            "trace-event",
            &events("1 Q W 0+8\n2 D W 0+8\n9 C W 0+8\n10 Q R 8+8\n11 D R 8+8\n19 C R 8+8\n"),
            2,
        ),
        Sample::binary("octf", crate::octf::small(), 2),
        Sample::text("biosnoop", BIOSNOOP, 3),
        Sample::text("msr", MSR, 4),
        Sample::text("spc", SPC, 3),
        Sample::text("alibaba", ALIBABA, 3),
        Sample::text("tencent", TENCENT, 3),
        Sample::text("systor17", SYSTOR17, 3),
        Sample::text("blkreplay", BLKREPLAY, 3),
        Sample::text("fio-iolog", FIO_V3, 4),
        Sample::text("fio-iolog", FIO_V2, 3),
        Sample::text("hfplayer", HFPLAYER, 3),
        Sample::text("disksim", DISKSIM, 3),
        Sample::text("ssdsim", SSDSIM, 3),
        Sample::text("mqsim", SSDSIM, 3),
        Sample::text("libcachesim-csv", LIBCACHESIM_CSV, 3),
        Sample::binary("vscsi", vscsi_v1(), 3),
        Sample::binary("vscsi", vscsi_v2(), 3),
        Sample::binary("oracle-general", oracle_general(), 3),
        csv(),
    ]
}

fn csv() -> Sample {
    let columns = [("time_us", "t"), ("op", "op"), ("length_bytes", "n")];
    let columns = columns.map(|(key, column)| (key.to_string(), column.to_string())).to_vec();
    let options = Options { columns, ..Options::default() };
    Sample { options, ..Sample::text("csv", "t,op,n\n1,R,4096\n2.5,W,512\n3,trim,8192\n", 3) }
}

pub const BLKPARSE: &str = "\
  8,16   0        1     0.000001000    77  Q   R 900 + 8 [fio]
  8,16   0        2     0.000002000    77  D   R 900 + 8 [fio]
  8,16   1        3     0.000050000     0  C   R 900 + 8 [0]
  8,16   0        4     0.000060000    77  Q   W 100 + 8 [fio]
  8,16   0        5     0.000061000    77  D   W 100 + 8 [fio]
  8,16   1        6     0.000070000     0  C   W 100 + 8 [0]
";

pub const BIOSNOOP: &str = "\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)
0.000000    fio            1234    nvme0n1   R 800        4096      0.12
0.000412    kworker/u8:2   77      nvme0n1   W 16         8192      0.30
1.500000    fio            1234    nvme0n1   R 0          512       0.01
";

pub const MSR: &str = "\
128166372003061629,usr,0,Read,7014609920,24576,41286
128166372016382155,usr,1,Write,2517696512,512,12963
128166372016382154,usr,0,Write,2517696512,4096,7
128166372026382245,src2,12,Read,0,1024,0
";

pub const SPC: &str = "0,303567,3584,w,0.000000\n1,55590,3072,R,0.026214\n0,303574,3584,W,1.5,7,x\n";

pub const ALIBABA: &str = "\
419,W,8792731648,16384,1577808000000046
725,R,123904,4096,1577808000000053
419,R,0,512,1577808001000000
";

pub const TENCENT: &str = "\
1538323200,12910952,128,0,1063
1538323200,6338688,8,1,1627
1538323201,1904106400,384,0,1063
";

pub const SYSTOR17: &str = "\
Timestamp,Response,IOType,LUN,Offset,Size
1456135200.013118000,0.001500,W,0,4096,8192
1456135200.113118000,,R,0,8192,4096
1456135202.013118000,,,0,4096,4096
1456135203.013118000,0.000806,R,1,899056122368,131072
";

pub const BLKREPLAY: &str = "\
Copyright of nobody; made for a test.

This load was not captured: 1 ; 2 ; 3
#################################################################
start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0
      0.000000000 ;     37766853 ;   64 ; W ; 0.0 ; 0.0
      0.449518165 ;            0 ;    1 ; R ; 0.0 ; 0.0
      2.110378217 ;          128 ;    8 ; RA ; 0.0 ; 0.0
";

pub const FIO_V3: &str = "\
fio version 3 iolog
30 /dev/nvme0n1 add
31 /dev/nvme0n1 open
40 /dev/nvme0n1 write 0 4096
1000043 /dev/nvme0n1 trim 4096 2147483648
1000043 /dev/nvme0n1 sync 4096 0
1000050 /dev/nvme0n1 read 8192 512
1000060 /dev/nvme0n1 close
";

pub const FIO_V2: &str = "\
fio version 2 iolog
/tmp/a add
/tmp/a open
/tmp/a write 0 4096
/tmp/a wait 1500 0
/tmp/a read 4096 4096
/tmp/a wait 1000 0
/tmp/a datasync 0 0
/tmp/a close
";

pub const HFPLAYER: &str = "\
#DUMP_OFFSET.I,ELAPSED_USECS.D,ELAPSED_TICKS.I,CMD.S,TS.I,SEQID.I,LUN_SSID.I,LBA.I,NBLKS.I,LATENCY_TICKS.I,LATENCY_USECS.D
1,0,1999000,RD_IN,1,10,0,64,8,0,0.000
2,1000.500,2001000,WR_IN,2,11,0,72,16,0,0.000
3,1001.000,2002000,WR_OUT,3,11,0,0,0,1000,0.500
4,1002.250,2004500,WR_IN,4,12,0,128,8,0,0.000
5,1003.000,2006000,RD_OUT,5,10,0,0,0,7000,3.500
";

pub const DISKSIM: &str = "5265.313 0 6357144 8 0\n5265.703 1 6307768 8 1\n6297.450 0 33701824 64 40\n";

pub const SSDSIM: &str = "0 0 303567 7 0\n26214000 1 240840 6 0\n1078643005 1 55596 6 1\n";

pub const LIBCACHESIM_CSV: &str =
    "version,time,op,size,lbn\n1,33898,2a,512,42932745\n1,33898,28,6656,8\n1,33899,2a,4096,6160447\n";

/// A record of version 1: operation code, bytes, block and time in us.
pub fn vscsi_record_v1(code: u16, bytes: u32, block: u64, time_us: u64) -> Vec<u8> {
    let mut record = Vec::new();
    for field in [7_u32, bytes, 1] {
        record.extend(field.to_le_bytes());
    }
    record.extend(code.to_le_bytes());
    record.extend(0x0100_u16.to_le_bytes());
    record.extend(block.to_le_bytes());
    record.extend(time_us.to_le_bytes());
    record
}

pub fn vscsi_v1() -> Vec<u8> {
    [(0x2a, 512, 42_932_745, 1_000_000), (0x28, 6656, 8, 1_000_250), (0x88, 4096, 0, 3_000_000)]
        .into_iter()
        .flat_map(|(code, bytes, block, time_us)| vscsi_record_v1(code, bytes, block, time_us))
        .collect()
}

pub fn vscsi_v2() -> Vec<u8> {
    let mut content = Vec::new();
    for (code, bytes, block, time_us) in
        [(0x2a_u16, 512_u32, 16_u64, 1_000_000_u64), (0x28, 4096, 8, 1_000_100), (0x35, 0, 0, 1_000_200)]
    {
        content.extend(code.to_le_bytes());
        content.extend(0x0200_u16.to_le_bytes());
        for field in [7, bytes, 1] {
            content.extend(field.to_le_bytes());
        }
        for field in [block, time_us, 90] {
            content.extend(field.to_le_bytes());
        }
    }
    content
}

pub fn oracle_general() -> Vec<u8> {
    let mut content = Vec::new();
    for (time_s, object, bytes, next) in
        [(5_u32, 16_u64, 512_u32, 2_i64), (5, 99, 4096, -1), (7, 16, 512, -1)]
    {
        content.extend(time_s.to_le_bytes());
        content.extend(object.to_le_bytes());
        content.extend(bytes.to_le_bytes());
        content.extend(next.to_le_bytes());
    }
    content
}

fn blktrace() -> Vec<u8> {
    let io = |index: u64, act, after_ns| Record::io(index * 1000 + after_ns, act, WRITE, index * 8, 8);
    let records: Vec<Record> =
        (0..3).flat_map(|index| [io(index, Q, 0), io(index, D, 100), io(index, C, 300)]).collect();
    file(&records, LAYOUTS[0])
}
