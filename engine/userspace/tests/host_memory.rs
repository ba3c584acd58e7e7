//! Memory of the host that a drive asks for: lent when it starts, again after a reset, and taken back before it is shut down. The
//! controller in memory writes to what it was lent all the time, and asserts that it is there.

use std::sync::Arc;
use testdrive_nvme::flush;
use testdrive_userspace::double::{Double, Faults, Model};
use testdrive_userspace::{Controller, Place, Queue};

const NOW: &dyn Fn() -> i64 = &|| 7;

fn asking(preferred: u32, least: u32) -> Model {
    Model { host_memory_pages: Some((preferred, least)), ..Model::default() }
}

/// What a drive has, and what the driver says that it has.
fn lent(model: Model) -> (u64, usize) {
    let double = Double::new(model);
    let controller = Controller::start(double.clone(), None).unwrap();
    assert_eq!(controller.host_memory_bytes(), double.lent().0);
    double.lent()
}

#[test]
fn a_drive_gets_the_memory_that_it_would_like_to_have() {
    assert_eq!(lent(asking(1024, 64)), (4 << 20, 1));
    assert_eq!(lent(Model::default()), (0, 0));
    // No more than what the kernel would give it.
    assert_eq!(lent(asking(1 << 16, 64)), (128 << 20, 1));
}

#[test]
fn a_drive_gets_less_where_there_is_less_and_nothing_where_that_is_of_no_use() {
    let with = |least, bytes| lent(Model { memory_bytes_max: bytes, ..asking(1024, least) });
    assert_eq!(with(64, 3 << 20), (2 << 20, 1));
    assert_eq!(with(512, 3 << 20), (2 << 20, 1));
    assert_eq!(with(513, 3 << 20), (0, 0));
    assert_eq!(lent(asking(1 << 17, 1 << 16)), (0, 0));
}

#[test]
fn memory_in_pieces_is_lent_as_far_as_the_drive_takes_so_many() {
    let in_pieces = |most| {
        let model = asking(1024, 64);
        lent(Model { scattered_bytes: Some(1 << 20), host_memory_pieces: most, ..model })
    };
    assert_eq!(in_pieces(0), (4 << 20, 4));
    assert_eq!(in_pieces(3), (2 << 20, 2));
}

#[test]
fn memory_is_lent_again_after_a_reset_and_taken_back_at_the_end() {
    let double = Double::new(asking(1024, 64));
    let controller = Arc::new(Controller::start(double.clone(), None).unwrap());
    let mut queue = Queue::open(&controller, 8).unwrap();
    double.set_faults(Faults { bus_error: true, ..Faults::default() });
    queue.check(NOW, |_| {}).unwrap();
    assert_eq!((double.starts(), double.lent()), (2, (4 << 20, 1)));
    queue.push(&flush(1), Place::None, 0);
    queue.ring();
    while queue.in_flight() > 0 {
        queue.reap(|_| {}).unwrap();
    }
    drop(queue);
    controller.retire(NOW);
    assert_eq!((double.lent(), double.shutdowns(), controller.take_events().len()), ((0, 0), 1, 2));
}

#[test]
fn a_drive_that_is_wanted_back_gives_its_memory_back_first() {
    let double = Double::new(asking(1024, 64));
    let controller = Arc::new(Controller::start(double.clone(), None).unwrap());
    let mut queue = Queue::open(&controller, 8).unwrap();
    double.set_faults(Faults { wanted_back: true, ..Faults::default() });
    queue.check(NOW, |_| {}).unwrap_err();
    assert_eq!((double.lent(), double.shutdowns()), ((0, 0), 1));
}

#[test]
fn a_drive_that_does_not_take_the_memory_does_without() {
    let double = Double::new(asking(1024, 64));
    double.set_faults(Faults { refuses_memory: true, ..Faults::default() });
    let controller = Controller::start(double.clone(), None).unwrap();
    assert_eq!((controller.host_memory_bytes(), double.lent()), (0, (0, 0)));
    // The memory of the admin queue and of its answers is all that is left.
    assert_eq!(double.memory_regions(), 2);
}

#[test]
fn a_drive_that_does_not_give_its_memory_back_is_stopped_before_the_memory_goes() {
    let double = Double::new(asking(1024, 64));
    let controller = Controller::start(double.clone(), None).unwrap();
    double.set_faults(Faults { refuses_memory: true, ..Faults::default() });
    drop(controller);
    assert!(double.is_put_away());
    assert_eq!((double.lent(), double.shutdowns()), ((0, 0), 1));
}
