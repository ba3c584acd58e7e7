//! The driver's logic on a controller in memory: rings that come round, answers in any order, and a controller that fails in every way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testdrive_nvme::{deallocate, encode_ranges, flush, read, write, LbaRange, Status, RANGE_BYTES};
use testdrive_userspace::double::{Double, Faults, Model};
use testdrive_userspace::memory::DmaMemory;
use testdrive_userspace::{Answer, Controller, ControllerError, EventKind, Function, Place, Queue};

type Started = Arc<Controller<Double>>;

fn start(model: Model) -> (Double, Started) {
    let double = Double::new(model);
    let controller = Arc::new(Controller::start(double.clone(), None).unwrap());
    (double, controller)
}

fn refused(model: Model, namespace: Option<u32>) -> String {
    match Controller::start(Double::new(model), namespace) {
        Ok(_) => panic!("it started"),
        Err(error) => error.to_string(),
    }
}

/// Takes answers until there are so many.
fn wait_for(queue: &mut Queue<Double>, count: usize) -> Vec<Answer> {
    let (began, mut answers) = (Instant::now(), Vec::new());
    while answers.len() < count {
        assert!(began.elapsed() < Duration::from_secs(60), "{} of {count} answers", answers.len());
        queue.reap(|answer| answers.push(answer)).unwrap();
    }
    answers
}

fn range(first: u64, blocks: u32) -> LbaRange {
    LbaRange { first, blocks }
}

/// A memory whose every block begins with its own number.
fn numbered(double: &Double, blocks: usize, block_bytes: usize) -> DmaMemory {
    let memory = double.allocate(blocks * block_bytes).unwrap();
    for block in 0..blocks {
        memory.write64(block * block_bytes, block as u64 + 1);
    }
    memory
}

const NOW: &dyn Fn() -> i64 = &|| 7;

#[test]
fn rings_come_round_many_times_and_every_answer_finds_its_command() {
    // Small and odd rings, so that they come round often and at every place.
    for (queue_entries, doorbell_stride) in [(2, 0), (3, 2), (7, 1), (64, 0)] {
        let (double, controller) = start(Model { queue_entries, doorbell_stride, ..Model::default() });
        let mut queue = Queue::open(&controller, 1000).unwrap();
        assert_eq!(queue.entries(), u32::from(queue_entries));
        let memory = numbered(&double, 64, 512);
        let (mut sent, mut answered) = (0_u32, BTreeSet::new());
        while answered.len() < 1000 {
            while queue.has_room() && sent < 1000 {
                let place = Place::Data { memory: &memory, offset: sent as usize % 64 * 512 };
                queue.push(&write(1, range(u64::from(sent), 1), 512, false), place, sent);
                sent += 1;
            }
            assert!(queue.in_flight() < usize::from(queue_entries));
            queue.ring();
            queue
                .reap(|answer| {
                    assert!(answer.status.is_success() && answered.insert(answer.tag), "{answer:?}");
                })
                .unwrap();
        }
        for block in 0..1000 {
            assert_eq!(double.content(block * 512, 1)[0] as usize, block % 64 + 1, "block {block}");
        }
    }
}

#[test]
fn a_doorbell_is_rung_once_for_everything_that_was_pushed() {
    let (double, controller) = start(Model::default());
    double.set_faults(Faults { silent: true, ..Faults::default() });
    let mut queue = Queue::open(&controller, 16).unwrap();
    (0..10).for_each(|tag| queue.push(&flush(1), Place::None, tag));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(double.io_commands().len(), 0, "nothing goes before the doorbell");
    queue.ring();
    double.set_faults(Faults::default());
    assert_eq!(wait_for(&mut queue, 10).iter().map(|answer| answer.tag).collect::<BTreeSet<_>>().len(), 10);
}

#[test]
fn data_arrive_whatever_the_place_in_memory_and_the_length() {
    // With huge pages that are apart, as without an IOMMU, and in one piece.
    for scattered_bytes in [None, Some(64 << 10)] {
        let (double, controller) = start(Model { mdts: 9, scattered_bytes, ..Model::default() });
        let mut queue = Queue::open(&controller, 4).unwrap();
        let memory = double.allocate(3 << 20).unwrap();
        let bytes: Vec<u8> =
            (0..3 << 20).map(|index: u32| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        memory.write(0, &bytes);
        for (offset, blocks) in [(0, 1), (512, 8), (4092, 9), (4096, 4096), (2048, 4096), (100, 17)] {
            let place = Place::Data { memory: &memory, offset };
            queue.push(&write(1, range(3, blocks), 512, false), place, 0);
            queue.ring();
            assert!(wait_for(&mut queue, 1)[0].status.is_success());
            let length = blocks as usize * 512;
            assert_eq!(
                double.content(3 * 512, length),
                bytes[offset..offset + length],
                "{blocks} at {offset}"
            );
            let back = double.allocate(length + 8192).unwrap();
            queue.push(&read(1, range(3, blocks), 512, false), Place::Data { memory: &back, offset: 4 }, 0);
            queue.ring();
            assert!(wait_for(&mut queue, 1)[0].status.is_success());
            let mut read_back = vec![0; length];
            back.read(4, &mut read_back);
            assert_eq!(read_back, bytes[offset..offset + length]);
        }
    }
}

#[test]
fn a_trim_reads_as_zeroes_and_an_error_has_the_drives_own_status() {
    let (double, controller) = start(Model::default());
    let mut queue = Queue::open(&controller, 4).unwrap();
    double.set_content(0, &[7; 16 * 512]);
    let memory = double.allocate(4096).unwrap();
    let mut ranges = [0; RANGE_BYTES];
    encode_ranges(&[range(4, 8)], &mut ranges);
    memory.write(64, &ranges);
    queue.push(&deallocate(1, 1), Place::Data { memory: &memory, offset: 64 }, 0);
    queue.ring();
    assert!(wait_for(&mut queue, 1)[0].status.is_success());
    assert!(double.content(4 * 512, 8 * 512).iter().all(|byte| *byte == 0));
    assert!(double.content(0, 4 * 512).iter().chain(&double.content(12 * 512, 512)).all(|byte| *byte == 7));
    let mut status_of = |first, blocks| {
        queue.push(&read(1, range(first, blocks), 512, false), Place::Data { memory: &memory, offset: 0 }, 3);
        queue.ring();
        wait_for(&mut queue, 1)[0].status
    };
    assert_eq!(status_of(32_768, 1), Status::from_field(0x4080));
    assert_eq!(status_of(32_767, 2), Status::from_field(0x4080));
    double.set_faults(Faults { bad_block: Some(5), ..Faults::default() });
    assert_eq!((status_of(4, 4), status_of(6, 1)), (Status::from_field(0x281), Status::SUCCESS));
}

#[test]
fn queues_are_deleted_and_the_controller_is_shut_down_and_cut_off_in_the_end() {
    let (double, controller) = start(Model { pairs: 2, ..Model::default() });
    assert_eq!((controller.pairs(), controller.identity().serial.as_str()), (2, "DOUBLE-1"));
    let first = Queue::open(&controller, 8).unwrap();
    let second = Queue::open(&controller, 8).unwrap();
    assert!(matches!(Queue::open(&controller, 8), Err(ControllerError::NoQueue(2))));
    assert_eq!(double.queues(), (2, 2));
    let id = first.id();
    drop(first);
    // Its number is free again.
    let third = Queue::open(&controller, 8).unwrap();
    assert_eq!(third.id(), id);
    drop((second, third));
    assert_eq!((double.queues(), double.is_put_away()), ((0, 0), false));
    drop(controller);
    assert!(double.is_put_away());
    assert_eq!(double.memory_regions(), 0, "all memory is given back");
}

#[test]
fn a_queue_that_goes_with_commands_in_flight_leaves_no_memory_that_the_controller_would_write_to() {
    let (double, controller) = start(Model::default());
    let memory = double.allocate(1 << 16).unwrap();
    double.set_faults(Faults { silent: true, ..Faults::default() });
    let mut queue = Queue::open(&controller, 8).unwrap();
    (0..8).for_each(|tag| {
        queue.push(&read(1, range(0, 8), 512, false), Place::Data { memory: &memory, offset: 0 }, tag)
    });
    queue.ring();
    drop(queue);
    drop(memory);
    // The double ends the test with a panic of its thread where it uses memory that is gone: a poisoned lock.
    double.set_faults(Faults::default());
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(double.queues(), (0, 0));
}

#[test]
fn an_abort_that_works_brings_the_command_back_without_a_reset() {
    let (double, controller) = start(Model::default());
    let mut queue = Queue::open(&controller, 8).unwrap();
    double.set_faults(Faults { silent: true, aborts_work: true, ..Faults::default() });
    (10..13).for_each(|tag| queue.push(&flush(1), Place::None, tag));
    queue.ring();
    // An abort of what it has not fetched is in vain.
    while double.io_commands().len() < 3 {
        std::thread::yield_now();
    }
    let mut answers = Vec::new();
    let lost =
        queue.rescue(&[10, 12], NOW, |answer| answers.push((answer.tag, answer.status.field()))).unwrap();
    answers.sort_unstable();
    assert_eq!((lost, answers), (vec![], vec![(10, 7), (12, 7)]));
    assert_eq!((queue.in_flight(), double.starts()), (1, 1));
    double.set_faults(Faults::default());
    assert_eq!(wait_for(&mut queue, 1)[0].tag, 11);
    let kinds: Vec<EventKind> = controller.take_events().iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::CommandTimeout, EventKind::Abort]);
}

#[test]
fn a_controller_that_never_answers_is_reset_and_works_again_for_every_queue() {
    let (double, controller) = start(Model::default());
    let (mut queue, mut other) = (Queue::open(&controller, 8).unwrap(), Queue::open(&controller, 8).unwrap());
    double.set_faults(Faults { silent: true, ..Faults::default() });
    (0..3).for_each(|tag| queue.push(&flush(1), Place::None, tag));
    other.push(&flush(1), Place::None, 9);
    queue.ring();
    other.ring();
    let mut lost = queue.rescue(&[0], NOW, |_| panic!("nothing was answered")).unwrap();
    lost.sort_unstable();
    assert_eq!((lost, double.starts()), (vec![0, 1, 2], 2));
    let events = controller.take_events();
    let told: Vec<_> = events.iter().map(|event| (event.kind, event.commands)).collect();
    assert_eq!(
        told,
        [(EventKind::CommandTimeout, 1), (EventKind::Abort, 1), (EventKind::ControllerReset, 3)]
    );
    double.set_faults(Faults::default());
    // The other queue finds out, and neither resets the controller once more.
    assert!(other.is_stale() && !queue.is_stale());
    assert_eq!(other.rescue(&[9], NOW, |_| {}).unwrap(), [9]);
    assert_eq!(double.starts(), 2);
    for queue in [&mut queue, &mut other] {
        assert_eq!(queue.in_flight(), 0);
        queue.push(&flush(1), Place::None, 5);
        queue.ring();
        assert!(wait_for(queue, 1)[0].status.is_success());
    }
}

#[test]
fn a_fatal_status_is_seen_and_ends_in_a_reset() {
    let (double, controller) = start(Model::default());
    let mut queue = Queue::open(&controller, 8).unwrap();
    assert_eq!(queue.check(NOW, |_| {}).unwrap(), []);
    double.fail();
    queue.push(&flush(1), Place::None, 4);
    queue.ring();
    assert_eq!(queue.check(NOW, |_| {}).unwrap(), [4]);
    let kinds: Vec<EventKind> = controller.take_events().iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::ControllerFatalStatus, EventKind::ControllerReset]);
    queue.push(&flush(1), Place::None, 5);
    queue.ring();
    assert_eq!(wait_for(&mut queue, 1)[0].tag, 5);
}

#[test]
fn a_controller_that_does_not_come_back_is_given_up_and_cut_off() {
    let (double, controller) = start(Model::default());
    let (mut queue, mut other) = (Queue::open(&controller, 8).unwrap(), Queue::open(&controller, 8).unwrap());
    double.set_faults(Faults { silent: true, admin_silent: true, never_ready: true, ..Faults::default() });
    queue.push(&flush(1), Place::None, 0);
    queue.ring();
    let error = queue.rescue(&[0], NOW, |_| {}).unwrap_err();
    assert!(matches!(error, ControllerError::NotReady { what: "become ready", .. }), "{error}");
    assert!(controller.has_failed() && double.is_put_away());
    assert!(other.is_stale() && matches!(other.reconnect(|_| {}), Err(ControllerError::Lost)));
    drop((queue, other, controller));
}

#[test]
fn a_controller_that_is_pulled_is_gone() {
    let (double, controller) = start(Model::default());
    let mut queue = Queue::open(&controller, 8).unwrap();
    double.set_faults(Faults { gone: true, ..Faults::default() });
    assert!(matches!(queue.check(NOW, |_| {}), Err(ControllerError::Gone)));
    assert!(controller.has_failed());
    let kinds: Vec<EventKind> = controller.take_events().iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::ControllerGone]);
    assert!(refused_gone().contains("registers do not answer"));
}

fn refused_gone() -> String {
    let double = Double::new(Model::default());
    double.set_faults(Faults { gone: true, ..Faults::default() });
    Controller::start(double, None).err().expect("it is gone").to_string()
}

#[test]
fn an_answer_to_nothing_is_an_error_and_no_panic() {
    let (double, controller) = start(Model::default());
    let mut queue = Queue::open(&controller, 8).unwrap();
    double.set_faults(Faults { nonsense: true, ..Faults::default() });
    queue.push(&flush(1), Place::None, 0);
    queue.ring();
    let began = Instant::now();
    let error = loop {
        assert!(began.elapsed() < Duration::from_secs(60));
        if let Err(error) = queue.reap(|_| {}) {
            break error;
        }
    };
    assert!(error.to_string().contains("which was not in flight"), "{error}");
}

#[test]
fn what_the_driver_cannot_do_is_refused_with_what_to_do() {
    let model = Model::default;
    assert!(refused(Model { metadata_bytes: 8, ..model() }, None).contains("format it without"));
    assert!(
        refused(Model { namespaces: vec![1, 3], ..model() }, None).contains("choose one with ?namespace=N")
    );
    assert!(refused(Model { namespaces: vec![1, 3], ..model() }, Some(2))
        .contains("no namespace 2: the drive has 1, 3"));
    assert!(refused(Model { namespaces: vec![], ..model() }, None).contains("no active namespace"));
    // Doorbells that are not within reach of what is mapped: of the admin queue, and of the first pair.
    assert!(refused(Model { doorbell_stride: 10, ..model() }, None).contains("4096 bytes apart"));
    assert!(refused(Model { doorbell_stride: 9, ..model() }, None).contains("no I/O queue for us"));
    let controller =
        Controller::start(Double::new(Model { namespaces: vec![1, 3], ..model() }), Some(3)).unwrap();
    assert_eq!(controller.namespace().0, 3);
    let no_trims = Controller::start(Double::new(Model { can_trim: false, ..model() }), None).unwrap();
    assert!(no_trims.limits().trims.is_none() && !no_trims.limits().write_zeroes);
    // No limit of its own for write zeroes: that of transfers counts.
    assert_eq!((no_trims.limits().transfer_bytes_max(), no_trims.limits().zeroes_blocks), (65_536, 128));
}

#[test]
fn a_controller_that_does_not_become_ready_is_told_of_with_its_own_limit() {
    let double = Double::new(Model::default());
    double.set_faults(Faults { never_ready: true, ..Faults::default() });
    let error = Controller::start(double.clone(), None).err().expect("it does not start").to_string();
    assert!(error.contains("did not become ready within 500ms"), "{error}");
    assert_eq!(double.memory_regions(), 0);
}
