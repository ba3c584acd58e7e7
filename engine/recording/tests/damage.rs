//! Damage of every kind done to a recording's files: it is told, with the file's name and what to do, or it changes nothing that is
//! read. No row is ever other than it was written.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testdrive_core::{Flags, IoRecord, Opcode, SplitMix64};
use testdrive_recording::{
    IntervalRow, Kept, Manifest, OrderBy, Recording, RecordingError, RecordingKind, RecordingWriter, Status,
    WriterLimits,
};

fn rows(count: i64) -> Vec<IoRecord> {
    let mut random = SplitMix64::new(7);
    (0..count)
        .map(|index| IoRecord {
            intended_ns: index * 10_000 + random.below(9_000) as i64,
            submit_ns: index * 10_000 + 9_500,
            latency_ns: 80_000 + random.below(1_000_000) as i64,
            offset_bytes: random.below(1 << 28) as i64 * 4096,
            length_bytes: 4096 << random.below(4),
            stream: random.below(4) as i32,
            status: if index == 11 { 5 } else { 0 },
            phase: 0,
            opcode: Opcode::from_number(random.below(5) as i32).unwrap(),
            flags: Flags::SYNC,
        })
        .collect()
}

fn write(folder: &Path, kept: Option<Kept>, rows: &[IoRecord], segment_rows: usize) -> PathBuf {
    let path = folder.join("a.rec");
    let limits =
        WriterLimits { segment_rows, segment_age: Duration::from_secs(3600), reserve_bytes: 1 << 16 };
    let manifest = Manifest { kept, ..Manifest::new(RecordingKind::Run, "tsc") };
    let mut writer = RecordingWriter::create(&path, manifest, limits).unwrap();
    writer.phase_starts().tell(0, 0, 0);
    rows.chunks(segment_rows).for_each(|rows| writer.append(rows).unwrap());
    writer.finish(Status::Complete, None).unwrap();
    path
}

/// Everything that a recording holds.
fn read(path: &Path) -> Result<(Vec<IoRecord>, Vec<IntervalRow>), RecordingError> {
    let recording = Recording::open(path)?;
    let mut rows = recording.ordered_rows(OrderBy::Began)?.collect::<Result<Vec<_>, _>>()?;
    recording.for_each_slowest(|slowest| rows.extend(slowest))?;
    let mut intervals = Vec::new();
    recording.for_each_interval(|entry| intervals.push(*entry))?;
    Ok((rows, intervals))
}

/// What is written in place of a file's content, and whether it was told. Panics where something else was read.
fn told(path: &Path, file: &Path, content: &[u8], whole: &(Vec<IoRecord>, Vec<IntervalRow>)) -> bool {
    fs::write(file, content).unwrap();
    match read(path) {
        Ok(found) => {
            assert!(found == *whole, "{} was believed", file.display());
            false
        }
        Err(error) => {
            let message = error.to_string();
            assert!(matches!(error, RecordingError::Damaged { .. }), "{message}");
            assert!(message.starts_with(&format!("{} is damaged: ", file.display())), "{message}");
            assert!(message.contains("copy") && !message.contains('\n'), "{message}");
            true
        }
    }
}

/// Changes every third byte of a segment, in one of several ways, and gives the share that was told.
fn change_bytes(path: &Path, file: &Path) -> f64 {
    let whole = read(path).unwrap();
    let sound = fs::read(file).unwrap();
    let (mut told_changes, mut changes) = (0.0, 0.0);
    for at in (0..sound.len()).step_by(3) {
        let mut content = sound.clone();
        content[at] ^= [0x01, 0x80, 0xff, 0x10][at % 4];
        changes += 1.0;
        told_changes += f64::from(u8::from(told(path, file, &content, &whole)));
    }
    fs::write(file, &sound).unwrap();
    told_changes / changes
}

#[test]
fn a_changed_byte_of_a_segment_is_told_or_means_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), None, &rows(100), 1000);
    let share = change_bytes(&path, &path.join("ios/00000.parquet"));
    // What is not told are the letters before the first page, and indexes of pages that nobody needs.
    assert!(share > 0.8, "{share}");
}

#[test]
fn a_changed_byte_of_histograms_and_of_the_slowest_rows_is_told_or_means_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept { slowest_per_second: 10, ..Kept::default() };
    let path = write(folder.path(), Some(kept), &rows(60), 1000);
    for file in ["intervals/00000.parquet", "slowest/00000.parquet"] {
        let share = change_bytes(&path, &path.join(file));
        assert!(share > 0.8, "{file}: {share}");
    }
}

#[test]
fn many_changed_bytes_of_a_segment_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), None, &rows(5000), 10_000);
    let file = path.join("ios/00000.parquet");
    let (whole, sound) = (read(&path).unwrap(), fs::read(&file).unwrap());
    let mut random = SplitMix64::new(11);
    for _ in 0..60 {
        let mut content = sound.clone();
        for _ in 0..=random.below(20) {
            let at = random.below(content.len() as u64 - 300) as usize + 4;
            content[at..][..random.below(200) as usize].fill(random.next_u64() as u8);
        }
        told(&path, &file, &content, &whole);
    }
}

#[test]
fn a_segment_that_was_cut_short_is_told_wherever_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), None, &rows(100), 1000);
    let file = path.join("ios/00000.parquet");
    let (whole, sound) = (read(&path).unwrap(), fs::read(&file).unwrap());
    for length in (0..sound.len()).step_by(37) {
        assert!(told(&path, &file, &sound[..length], &whole), "cut to {length} bytes");
    }
    let longer = [&sound[..], b"and more"].concat();
    assert!(told(&path, &file, &longer, &whole));
}

#[test]
fn a_segment_that_is_gone_is_told_until_somebody_decides_to_do_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), None, &rows(300), 100);
    let whole = read(&path).unwrap().0;
    let gone = path.join("ios/00001.parquet");
    fs::remove_file(&gone).unwrap();
    let error = read(&path).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{} is damaged: its segments hold 200 I/Os, and its manifest counts 300; ios/00001.parquet is missing: \
             restore it from a copy, or make an empty file ios/00001.parquet.damaged to do without its I/Os",
            path.display()
        )
    );
    fs::write(path.join("ios/00001.parquet.damaged"), b"").unwrap();
    assert_eq!(read(&path).unwrap().0, [&whole[..100], &whole[200..]].concat());
    let warning = Recording::open(&path).unwrap().manifest.warnings.pop().unwrap();
    assert_eq!(warning.code, "segments_left_out");
    assert!(warning.message.contains("ios/00001.parquet.damaged is left out"), "{}", warning.message);
}

#[test]
fn segments_that_are_not_the_recordings_own_are_told_and_their_order_is_not_theirs_to_keep() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), None, &rows(300), 100);
    let whole = read(&path).unwrap();
    let segment = |number: u32| path.join(format!("ios/{number:05}.parquet"));
    // Rows are put in order by their times, so that segments in each other's place mean nothing.
    fs::rename(segment(0), segment(9)).unwrap();
    fs::rename(segment(2), segment(0)).unwrap();
    fs::rename(segment(9), segment(2)).unwrap();
    assert!(read(&path).unwrap() == whole);
    fs::copy(segment(0), segment(3)).unwrap();
    let message = read(&path).unwrap_err().to_string();
    assert!(message.contains("hold 400 I/Os, and its manifest counts 300; move segments away"), "{message}");
}

#[test]
fn what_is_no_file_is_told_and_never_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), None, &rows(10), 100);
    for name in ["ios/00000.parquet", "manifest.json"] {
        let file = path.join(name);
        let sound = fs::read(&file).unwrap();
        let refusal = || read(&path).unwrap_err().to_string();
        fs::write(&file, b"").unwrap();
        assert!(refusal().starts_with(&format!("{} is damaged: ", file.display())), "{}", refusal());
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(refusal().contains("is damaged: it is a directory, not a file; restore it"), "{}", refusal());
        fs::remove_dir(&file).unwrap();
        let name = std::ffi::CString::new(file.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: the name ends with a zero byte and lives through the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert!(refusal().contains("is damaged: it is not a regular file; restore it"), "{}", refusal());
        fs::remove_file(&file).unwrap();
        fs::write(&file, sound).unwrap();
    }
    assert_eq!(read(&path).unwrap().0.len(), 10);
}
