//! Faults that were asked for, as whoever drives through the trait meets them.

use proptest::prelude::*;
use std::collections::BTreeMap;
use testdrive_core::{Command, Completion, Flags, Opcode};
use testdrive_drives::{Access, Consent, Drive, SimDrive, Target, Wait};
use testdrive_simulator::Model;

const PAGE: u64 = 4096;
const PAGES: u64 = 64;
const MS: i64 = 1_000_000;

fn drive(uri: &str) -> SimDrive {
    match Target::open(uri, Access::Write, &Consent::default(), None) {
        Ok(Target::Sim(drive)) => *drive,
        Ok(_) => panic!("{uri} is not a modelled drive"),
        Err(error) => panic!("{error}"),
    }
}

fn command(opcode: Opcode, page: u64, flags: Flags) -> Command {
    let length_bytes = if opcode == Opcode::Flush { 0 } else { PAGE };
    Command { offset_bytes: page * PAGE, length_bytes, opcode, flags }
}

/// Lets time pass, and takes what completes meanwhile.
fn wait(drive: &mut SimDrive, until_ns: i64) -> Vec<Completion> {
    let mut done = Vec::new();
    while drive.now_ns() < until_ns {
        drive.poll(Wait::Until(until_ns), &mut done).unwrap();
    }
    done
}

/// What may stand in a page after power was lost: the newest write that was made durable, or any after it.
#[derive(Clone, Debug, Default)]
struct Page {
    /// The version that a completed flush, a completed FUA write or a trim made durable.
    durable: u32,
    /// Versions that were acknowledged since.
    since: Vec<u32>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// One command after the other, so that the version of each write is known once it was acknowledged; then the power goes.
    #[test]
    fn after_a_loss_of_power_every_page_holds_what_was_durable_or_newer(
        steps in prop::collection::vec((0_u32..12, 0..PAGES, 0_i64..3 * MS), 1..200),
        name in prop::sample::select(Model::builtin_names().collect::<Vec<_>>()), protected in any::<bool>(),
    ) {
        let settings = format!("capacity=64MiB&power_loss_protection={protected}&write_buffer=4MiB");
        let mut drive = drive(&format!("sim:{name}?{settings}&fault_power_loss_at=60s&fault_power_loss=1s"));
        let mut pages: BTreeMap<u64, Page> = BTreeMap::new();
        let mut done = Vec::new();
        for (kind, page, pause_ns) in steps {
            let (opcode, flags) = match kind {
                0 => (Opcode::Flush, Flags::NONE),
                1 => (Opcode::Trim, Flags::NONE),
                2 => (Opcode::Write, Flags::FUA),
                _ => (Opcode::Write, Flags::NONE),
            };
            drive.submit(0, &command(opcode, page, flags)).unwrap();
            drive.kick().unwrap();
            done.clear();
            while done.is_empty() {
                drive.poll(Wait::Until(i64::MAX), &mut done).unwrap();
            }
            prop_assert_eq!(done[0].status, 0);
            match opcode {
                // Everything acknowledged before it.
                Opcode::Flush => pages.values_mut().for_each(|page| {
                    page.durable = page.since.pop().unwrap_or(page.durable);
                    page.since.clear();
                }),
                Opcode::Trim => *pages.entry(page).or_default() = Page::default(),
                _ => {
                    let version = drive.simulated().version_of(page as u32).unwrap();
                    let known = pages.entry(page).or_default();
                    prop_assert!(version > known.durable && known.since.last().is_none_or(|last| version > *last));
                    if flags == Flags::FUA {
                        *known = Page { durable: version, since: Vec::new() };
                    } else {
                        known.since.push(version);
                    }
                }
            }
            let now_ns = drive.now_ns();
            wait(&mut drive, now_ns + pause_ns);
        }
        let last_ns = drive.now_ns();
        prop_assume!(last_ns < 59_000 * MS);
        // Just before, so that nothing has become durable by itself, and the read is in flight as the power goes.
        wait(&mut drive, 60_000 * MS - 1_000);
        drive.submit(0, &command(Opcode::Read, PAGES + 1, Flags::NONE)).unwrap();
        drive.kick().unwrap();
        let cut = wait(&mut drive, 62_000 * MS);
        prop_assert_eq!((cut.len(), cut[0].status, cut[0].complete_ns), (1, libc::EIO, 60_000 * MS));
        for (number, page) in pages {
            let holds = drive.simulated().version_of(number as u32).unwrap();
            let newest = page.since.last().copied().unwrap_or(page.durable);
            if protected {
                prop_assert_eq!(holds, newest, "page {}: {:?}", number, page);
            } else {
                let allowed = holds == page.durable || page.since.contains(&holds);
                prop_assert!(allowed, "page {} holds {}: {:?}", number, holds, page);
            }
        }
        // And it works again.
        drive.submit(0, &command(Opcode::Write, 0, Flags::FUA)).unwrap();
        drive.kick().unwrap();
        let after = wait(&mut drive, 70_000 * MS);
        prop_assert_eq!((after.len(), after[0].status), (1, 0));
    }
}

#[test]
fn what_is_flushed_survives_and_what_is_only_acknowledged_may_not() {
    let mut drive = drive("sim:consumer-dramless?capacity=1GiB&fault_power_loss_at=10ms&fault_power_loss=1s");
    drive.submit(0, &command(Opcode::Write, 1, Flags::NONE)).unwrap();
    drive.kick().unwrap();
    wait(&mut drive, MS);
    drive.submit(0, &command(Opcode::Flush, 0, Flags::NONE)).unwrap();
    drive.kick().unwrap();
    wait(&mut drive, 9 * MS);
    for (slot, page) in [(0, 1), (1, 2)] {
        drive.submit(slot, &command(Opcode::Write, page, Flags::NONE)).unwrap();
    }
    drive.kick().unwrap();
    let acknowledged = wait(&mut drive, 9 * MS + 900_000);
    assert_eq!(acknowledged.iter().map(|done| done.status).collect::<Vec<_>>(), [0, 0]);
    assert_eq!([1, 2].map(|page| drive.simulated().version_of(page)), [Some(2), Some(3)]);
    drive.submit(0, &command(Opcode::Read, 1, Flags::NONE)).unwrap();
    drive.kick().unwrap();
    wait(&mut drive, 5_000 * MS);
    assert_eq!([1, 2].map(|page| drive.simulated().version_of(page)), [Some(1), Some(0)]);
    let events = drive.take_events().unwrap().events;
    let lost = events.iter().find(|event| event.kind == "power_loss").unwrap();
    assert_eq!((lost.start_ns, lost.end_ns, lost.amount), (10 * MS, 1_010 * MS, 2));
}

#[test]
fn a_drive_that_disappears_says_so_as_a_vanished_one_does() {
    let mut drive = drive("sim:sata?capacity=1GiB&fault_gone_at=5ms");
    drive.submit(0, &command(Opcode::Read, 0, Flags::NONE)).unwrap();
    drive.kick().unwrap();
    assert_eq!(wait(&mut drive, 4 * MS)[0].status, 0);
    assert!(!drive.is_gone());
    wait(&mut drive, 6 * MS);
    drive.submit(0, &command(Opcode::Read, 0, Flags::NONE)).unwrap();
    drive.kick().unwrap();
    assert_eq!(wait(&mut drive, 7 * MS)[0].status, libc::ENODEV);
    assert!(drive.is_gone());
}
