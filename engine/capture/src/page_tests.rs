//! Pages built by hand, and pages of arbitrary bytes.

use super::*;
use proptest::prelude::*;

const LAYOUT: PageLayout = PageLayout {
    timestamp: Field { offset: 0, size: 8 },
    commit: Field { offset: 8, size: 8 },
    data_offset: 16,
    page_bytes: 4096,
};

fn first_word(kind: u32, delta: u32) -> [u8; 4] {
    let word = if cfg!(target_endian = "little") { delta << 5 | kind } else { kind << 27 | delta };
    word.to_ne_bytes()
}

/// A page of 4 KiB from its time, its data, and the flags of its length.
fn page(time_ns: u64, data: &[u8], flags: u64, behind: &[u8]) -> Vec<u8> {
    let mut page = Vec::new();
    page.extend(time_ns.to_ne_bytes());
    page.extend((data.len() as u64 | flags).to_ne_bytes());
    page.extend(data);
    page.extend(behind);
    page.resize(4096, 0);
    page
}

fn short(delta: u32, content: &[u8]) -> Vec<u8> {
    assert!(content.len().is_multiple_of(4) && (4..=112).contains(&content.len()));
    [&first_word(content.len() as u32 / 4, delta)[..], content].concat()
}

fn long(delta: u32, content: &[u8]) -> Vec<u8> {
    let length = content.len() as u32 + 4;
    [&first_word(0, delta)[..], &length.to_ne_bytes(), content].concat()
}

fn two_words(kind: u32, delta: u32, second: u32) -> Vec<u8> {
    [first_word(kind, delta), second.to_ne_bytes()].concat()
}

/// Times and contents of all records.
fn read(page: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, PageError> {
    let header = parse_header(page, &LAYOUT)?;
    let mut cursor = Cursor::new(&header, &LAYOUT);
    let mut found = Vec::new();
    while let Some(record) = cursor.next(page)? {
        found.push((record.time_ns, page[record.place].to_vec()));
    }
    Ok(found)
}

#[test]
fn records_are_found_with_the_sum_of_the_times_before() {
    let data = [short(5, &[1; 8]), short(0, &[2; 4]), long(7, &[3; 120]), short(100, &[4; 112])].concat();
    let found = read(&page(1000, &data, 0, &[])).unwrap();
    let expected = [(1005, vec![1; 8]), (1005, vec![2; 4]), (1012, vec![3; 120]), (1112, vec![4; 112])];
    assert_eq!(found, expected);
}

#[test]
fn a_time_that_does_not_fit_a_record_stands_before_it() {
    let extend = two_words(TIME_EXTEND, 3, 2);
    let data = [short(1, &[1; 4]), extend, short(0, &[2; 4]), short(4, &[3; 4])].concat();
    let far = 1001 + (2 << 27 | 3);
    let found = read(&page(1000, &data, 0, &[])).unwrap();
    assert_eq!(found.iter().map(|(time, _)| *time).collect::<Vec<_>>(), [1001, far, far + 4]);
}

#[test]
fn an_absolute_time_replaces_what_was_counted_and_keeps_the_bits_above() {
    let stamp = two_words(TIME_STAMP, 9, 1);
    let data = [stamp.clone(), short(2, &[1; 4])].concat();
    assert_eq!(read(&page(77, &data, 0, &[])).unwrap()[0].0, (1 << 27 | 9) + 2);
    let above = 3 << 59;
    assert_eq!(read(&page(above | 77, &data, 0, &[])).unwrap()[0].0, above + (1 << 27 | 9) + 2);
    // The page began just before the 59 bits ran over.
    let late = above | ((1 << 59) - 5);
    assert_eq!(read(&page(late, &data, 0, &[])).unwrap()[0].0, (4 << 59) + (1 << 27 | 9) + 2);
}

#[test]
fn withdrawn_records_and_the_unwritten_rest_are_skipped() {
    let withdrawn = [two_words(PADDING, 6, 12), vec![0xee; 8]].concat();
    let unwritten = [&first_word(PADDING, 0)[..], &[0xff; 40]].concat();
    let data = [withdrawn, short(1, &[1; 4]), unwritten].concat();
    assert_eq!(read(&page(10, &data, 0, &[])).unwrap(), [(17, vec![1; 4])]);
}

#[test]
fn lost_records_are_told_with_their_number_where_it_is_known() {
    let data = short(1, &[1; 4]);
    let lost = |flags, behind: &[u8]| parse_header(&page(1, &data, flags, behind), &LAYOUT).unwrap().lost;
    assert_eq!(lost(0, &[]), Lost::No);
    assert_eq!(lost(LOST, &[]), Lost::Uncounted);
    assert_eq!(lost(LOST | LOST_COUNTED, &4321_u64.to_ne_bytes()), Lost::Counted(4321));
    assert_eq!(read(&page(1, &data, LOST | LOST_COUNTED, &[9; 8])).unwrap().len(), 1);
    // A full page has no room for the number.
    let full = short(1, &[1; 4]).repeat(4080 / 8);
    let header = parse_header(&page(1, &full, LOST | LOST_COUNTED, &[]), &LAYOUT).unwrap();
    assert_eq!((header.lost, header.end), (Lost::Uncounted, 4096));
}

#[test]
fn an_empty_page_has_no_records_and_a_cut_one_is_an_error() {
    assert_eq!(read(&page(1, &[], 0, &[])).unwrap(), []);
    assert!(read(&[0; 15]).is_err());
    assert!(read(&page(1, &[0; 4080], 0, &[])[..100]).unwrap_err().reason.contains("length"));
    let beyond = [first_word(28, 1).to_vec(), vec![0; 8]].concat();
    assert_eq!(read(&page(1, &beyond, 0, &[])).unwrap_err().offset, 16);
    // A long record that is shorter than its own length word.
    let tiny = two_words(0, 1, 0);
    assert!(read(&page(1, &tiny, 0, &[])).is_err());
}

proptest! {
    #[test]
    fn any_bytes_end_in_records_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_records_in_a_page_of_their_length_end_in_order_or_an_error(
        kinds in proptest::collection::vec((0_u32..32, 0_u32..1 << 27, any::<u32>()), 0..200),
        flags in 0_u64..4,
    ) {
        let data: Vec<u8> = kinds.iter().flat_map(|&(kind, delta, second)| two_words(kind, delta, second % 64)).collect();
        let page = page(1 << 40, &data[..data.len().min(4080)], flags << 30, &[]);
        if let Ok(found) = read(&page) {
            prop_assert!(found.iter().all(|(_, content)| content.len() <= data.len()));
        }
    }

    #[test]
    fn what_is_written_is_read_back(records in proptest::collection::vec((0_u32..1 << 27, 1_usize..40, any::<u8>()), 0..24)) {
        let (mut data, mut time_ns, mut expected) = (Vec::new(), 5_000_u64, Vec::new());
        for (delta, words, filler) in records {
            let content = vec![filler; words * 4];
            data.extend(if words <= 28 { short(delta, &content) } else { long(delta, &content) });
            time_ns += u64::from(delta);
            expected.push((time_ns, content));
        }
        prop_assert_eq!(read(&page(5_000, &data, 0, &[])).unwrap(), expected);
    }
}
