//! The assembler fed by somebody who watches live.

use crate::support::{assemble, briefs};
use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;
use testdrive_core::{Flags, IoRecord, Opcode, Opcode::Read};
use testdrive_traces::{
    Assembler, AssemblerLimits, BlockEvent, Decoded, Device, EventKind, Events, Options, Place, Sink,
};

/// Rows that can be looked at while the assembler holds the sink.
#[derive(Clone, Default)]
struct Seen(Rc<RefCell<Vec<IoRecord>>>);

impl Sink for Seen {
    fn rows(&mut self, rows: &[IoRecord]) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.0.borrow_mut().extend_from_slice(rows);
        Ok(())
    }
    fn progress(&mut self, _: u64, _: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

fn event(kind: EventKind, time_ns: i64) -> BlockEvent {
    BlockEvent {
        time_ns,
        device: Device { major: 7, minor: 0 },
        kind,
        opcode: Opcode::Read,
        flags: Flags::NONE,
        sector: 8,
        sectors: 8,
        cpu: 0,
        status: 0,
    }
}

#[test]
fn closed_rows_are_handed_out_on_demand_with_a_time_zero_that_was_set() {
    let seen = Seen::default();
    let mut sink = seen.clone();
    let options = Options { device: Some(Device { major: 7, minor: 0 }), ..Options::default() };
    let limits = AssemblerLimits { order_events: 0, ..AssemblerLimits::default() };
    let mut assembler = Assembler::new(&options, limits, &mut sink);
    assembler.begin_at(5_900_000_000);
    let path = Path::new("live");
    for (kind, time_ns) in [
        (EventKind::Queue, 7_000_000_100),
        (EventKind::Issue, 7_000_000_200),
        (EventKind::Complete, 7_000_000_500),
        (EventKind::Queue, 7_000_000_600),
    ] {
        assembler.push(event(kind, time_ns), path, Place::Byte(0)).unwrap();
    }
    assert!(seen.0.borrow().is_empty());
    assembler.hand_out().unwrap();
    let times = |row: &IoRecord| (row.intended_ns, row.submit_ns, row.latency_ns);
    assert_eq!(seen.0.borrow().iter().map(times).collect::<Vec<_>>(), [(2_000_000_100, 2_000_000_200, 300)]);
    let mut decoded = Decoded::default();
    assembler.finish(path, &mut decoded).unwrap();
    assert_eq!((seen.0.borrow().len(), decoded.shift_ns), (2, 5_000_000_000));
}

#[test]
fn an_attempt_that_was_turned_away_is_no_row_and_the_io_counts_from_it() {
    let short = "
        10 Q R 0+8
        11 B R 0+8 err=-11
        20 Q R 0+8
        30 D R 0+8
        40 C R 0+8
        50 Q R 0+8
        51 D R 0+8
        52 Q R 0+8
        53 B R 0+8 err=-11
        60 C R 0+8
        70 Q R 8+8
        71 B R 8+8 err=-5";
    let (rows, decoded) = assemble(short, &Options::default());
    let expected = [(Read, 0, 8, 10, 30, 10, 0), (Read, 0, 8, 50, 51, 9, 0), (Read, 8, 8, 70, 70, 1, 5)];
    assert_eq!(briefs(&rows), expected);
    assert_eq!((decoded.turned_away, decoded.dropped.len()), (2, 0));
    let (rows, _) = assemble(short, &Options { events: Some(Events::Issued), ..Options::default() });
    assert_eq!(briefs(&rows), [(Read, 0, 8, 10, 30, 10, 0), (Read, 0, 8, 50, 51, 9, 0)]);
}

#[test]
fn completions_of_merged_and_split_ios_are_found_where_nothing_tells_of_issues() {
    let short = "
        10 Q R 0+8
        11 Q R 8+8
        12 Q R 100+32
        20 C R 0+16
        30 C R 100+16
        40 C R 116+16
        50 C R 300+8";
    let options = Options { events: Some(Events::Queued), ..Options::default() };
    let (rows, decoded) = assemble(short, &options);
    let expected = [(Read, 0, 8, 10, 10, 10, 0), (Read, 8, 8, 11, 11, 9, 0), (Read, 100, 32, 12, 12, 28, 0)];
    assert_eq!(briefs(&rows), expected);
    assert_eq!(decoded.dropped.len(), 1, "the last completion is of nothing that was queued: {decoded:?}");
    assert_eq!(decoded.absent_columns, ["submit_ns"]);
}
