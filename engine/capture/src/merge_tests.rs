//! Several CPUs' pages, built by hand and handed over in portions.

use super::*;
use crate::decode::TraceEvent;
use crate::layout::{parse_event_format, parse_page_header};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Pages to be read; an empty one says that there is nothing more for now.
struct Pages(VecDeque<Vec<u8>>);

impl PageSource for Pages {
    fn read_page(&mut self, page: &mut [u8]) -> io::Result<usize> {
        let next = self.0.pop_front().unwrap_or_default();
        page[..next.len()].copy_from_slice(&next);
        Ok(next.len())
    }
}

fn layout() -> PageLayout {
    let text = "field: u64 timestamp;\toffset:0;\tsize:8;\n\
        field: local_t commit;\toffset:8;\tsize:8;\n\
        field: char data;\toffset:16;\tsize:1008;\n";
    parse_page_header(text).unwrap()
}

fn decoder() -> Decoder {
    let mut text = String::from("ID: 7\n");
    for (name, offset, size) in
        [("common_type", 0, 2), ("dev", 4, 4), ("sector", 8, 8), ("nr_sector", 16, 4), ("rwbs", 20, 8)]
    {
        text += &format!("field:x {name};\toffset:{offset};\tsize:{size};\n");
    }
    Decoder::new(&[(TraceEvent::BioQueue, parse_event_format(&text).unwrap())]).unwrap()
}

/// A page of queued reads at these times, whose sectors say which they are.
fn page(events: &[(i64, u64)], flags: u64) -> Vec<u8> {
    let start = events.first().map_or(0, |event| event.0);
    let (mut data, mut before) = (Vec::new(), start);
    for (time_ns, sector) in events {
        let word = (time_ns - before) as u32;
        before = *time_ns;
        data.extend(
            if cfg!(target_endian = "little") { word << 5 | 7 } else { 7 << 27 | word }.to_ne_bytes(),
        );
        data.extend(7_u16.to_ne_bytes());
        data.extend([0; 2]);
        data.extend((8_u32 << 20).to_ne_bytes());
        data.extend(sector.to_ne_bytes());
        data.extend(8_u32.to_ne_bytes());
        data.extend(b"R\0\0\0\0\0\0\0");
    }
    let mut page = (start as u64).to_ne_bytes().to_vec();
    page.extend((data.len() as u64 | flags).to_ne_bytes());
    page.extend(data);
    page
}

fn merge(cpus: Vec<Vec<Vec<u8>>>) -> Merge<Pages> {
    let streams = cpus.into_iter().enumerate();
    let streams = streams.map(|(cpu, pages)| CpuStream::new(cpu as u32, Pages(pages.into()))).collect();
    Merge::new(streams, decoder(), layout(), 4096)
}

fn collect(merge: &mut Merge<Pages>, all: bool) -> Vec<(i64, u64, i32)> {
    let mut found = Vec::new();
    let take = |event: BlockEvent| {
        found.push((event.time_ns, event.sector, event.cpu));
        Ok::<(), ()>(())
    };
    if all { merge.hand_out_all(take) } else { merge.hand_out(take) }.unwrap();
    found
}

const MS: i64 = 1_000_000;

#[test]
fn events_wait_until_no_earlier_one_can_follow() {
    let first = vec![page(&[(10 * MS, 1), (90 * MS, 2)], 0), vec![], page(&[(130 * MS, 5)], 0)];
    let second = vec![page(&[(20 * MS, 3)], 0), vec![], page(&[(95 * MS, 4)], 0)];
    let mut merge = merge(vec![first, second]);
    merge.fill(100 * MS).unwrap();
    assert_eq!(collect(&mut merge, false), [(10 * MS, 1, 0), (20 * MS, 3, 1)]);
    merge.fill(200 * MS).unwrap();
    assert_eq!(collect(&mut merge, false), [(90 * MS, 2, 0), (95 * MS, 4, 1), (130 * MS, 5, 0)]);
    assert_eq!(merge.late_events(), 0);
}

#[test]
fn an_event_that_is_later_than_patience_keeps_the_order_and_is_counted() {
    let first = vec![page(&[(50 * MS, 1)], 0)];
    let second = vec![vec![], page(&[(40 * MS, 2)], 0)];
    let mut merge = merge(vec![first, second]);
    merge.fill(100 * MS).unwrap();
    assert_eq!(collect(&mut merge, false), [(50 * MS, 1, 0)]);
    merge.fill(200 * MS).unwrap();
    assert_eq!(collect(&mut merge, false), [(50 * MS, 2, 1)]);
    assert_eq!(merge.late_events(), 1);
}

#[test]
fn a_buffer_that_fills_faster_than_it_is_read_holds_back_what_it_may_precede() {
    // Four pages are read at once of a buffer of 4 KiB: the fifth waits.
    let busy = (0..5).map(|index| page(&[(index * 30 * MS, index as u64)], 0)).collect();
    let calm = vec![page(&[(110 * MS, 100)], 0)];
    let mut merge = merge(vec![busy, calm]);
    merge.fill(1000 * MS).unwrap();
    let handed: Vec<u64> = collect(&mut merge, false).iter().map(|event| event.1).collect();
    assert_eq!(handed, [0, 1, 2], "nothing beyond the last page's time less the patience");
    merge.fill(1000 * MS).unwrap();
    let handed: Vec<u64> = collect(&mut merge, false).iter().map(|event| event.1).collect();
    assert_eq!(handed, [3, 100, 4]);
}

#[test]
fn lost_events_and_damage_are_noted_with_their_time() {
    let lost = page(&[(70 * MS, 2)], 1 << 31);
    let mut counted = page(&[(80 * MS, 3)], 3 << 30);
    counted.extend(17_u64.to_ne_bytes());
    let mut damaged = page(&[(90 * MS, 4), (91 * MS, 5)], 0);
    damaged[8] -= 4;
    let mut merge = merge(vec![vec![page(&[(60 * MS, 1)], 0), lost, counted, damaged], vec![vec![0; 9]]]);
    merge.fill(1000 * MS).unwrap();
    assert_eq!(collect(&mut merge, true).len(), 4);
    let noted = merge.noted();
    assert_eq!((noted.lost, noted.lost_between_ns), (18, Some((70 * MS, 80 * MS))));
    assert_eq!(noted.damaged_pages, 2, "{noted:?}");
    assert!(noted.first_damage.is_some());
}

proptest! {
    #[test]
    fn all_events_come_out_once_and_in_order(
        cpus in proptest::collection::vec(proptest::collection::vec((0_i64..5 * MS, any::<bool>()), 0..60), 1..5)
    ) {
        let (mut total, mut pages) = (0, Vec::new());
        for gaps in cpus {
            let (mut time_ns, mut own, mut open) = (0, Vec::new(), Vec::new());
            for (gap_ns, cut) in gaps {
                time_ns += gap_ns;
                total += 1;
                open.push((time_ns, total));
                if cut || open.len() == 20 {
                    own.push(page(&std::mem::take(&mut open), 0));
                }
            }
            if !open.is_empty() {
                own.push(page(&open, 0));
            }
            pages.push(own);
        }
        let mut merge = merge(pages);
        let mut found = Vec::new();
        for round in 0..80 {
            merge.fill(round).unwrap();
            found.extend(collect(&mut merge, false));
        }
        found.extend(collect(&mut merge, true));
        prop_assert!(found.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        prop_assert_eq!(merge.late_events(), 0);
        let mut names: Vec<u64> = found.iter().map(|event| event.1).collect();
        names.sort_unstable();
        prop_assert_eq!(names, (1..=total).collect::<Vec<u64>>());
    }
}
