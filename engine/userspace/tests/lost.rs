//! A controller that the host wants back, that the bus has lost for a moment, or that is found in the midst of something.

use std::sync::Arc;
use testdrive_nvme::flush;
use testdrive_userspace::double::{Double, Faults, Model};
use testdrive_userspace::{Answer, Controller, ControllerError, EventKind, Function, Place, Queue};

const NOW: &dyn Fn() -> i64 = &|| 7;

fn start() -> (Double, Arc<Controller<Double>>, Queue<Double>) {
    let double = Double::new(Model::default());
    let controller = Arc::new(Controller::start(double.clone(), None).unwrap());
    let queue = Queue::open(&controller, 8).unwrap();
    (double, controller, queue)
}

fn kinds(controller: &Controller<Double>) -> Vec<EventKind> {
    controller.take_events().iter().map(|event| event.kind).collect()
}

fn push(queue: &mut Queue<Double>, tags: std::ops::Range<u32>) {
    tags.for_each(|tag| queue.push(&flush(1), Place::None, tag));
    queue.ring();
}

/// Waits until the controller has answered so many commands.
fn wait_for_answers(double: &Double, count: usize) {
    while double.io_answers() < count {
        std::thread::yield_now();
    }
}

#[test]
fn a_drive_that_is_wanted_back_is_shut_down_in_order_and_let_go_of() {
    let (double, controller, mut queue) = start();
    let mut other = Queue::open(&controller, 8).unwrap();
    push(&mut queue, 0..2);
    wait_for_answers(&double, 2);
    double.set_faults(Faults { silent: true, wanted_back: true, ..Faults::default() });
    push(&mut queue, 2..4);
    assert!(matches!(queue.check(NOW, |_| {}), Err(ControllerError::WantedBack)));
    assert!(matches!(other.check(NOW, |_| {}), Err(ControllerError::WantedBack)));
    assert!(controller.has_failed() && double.is_put_away());
    assert_eq!((double.shutdowns(), kinds(&controller)), (1, vec![EventKind::ControllerGone]));
    let mut answers = Vec::new();
    queue.abandon(|answer: Answer| answers.push(answer.tag));
    answers.sort_unstable();
    assert_eq!((answers, queue.in_flight()), (vec![0, 1], 0));
    drop((queue, other, controller));
    assert_eq!(double.shutdowns(), 1);
}

#[test]
fn an_error_of_the_bus_ends_in_one_reset() {
    let (double, controller, mut queue) = start();
    push(&mut queue, 0..1);
    wait_for_answers(&double, 1);
    double.set_faults(Faults { silent: true, bus_error: true, ..Faults::default() });
    push(&mut queue, 1..2);
    let mut answers = Vec::new();
    assert_eq!(queue.check(NOW, |answer| answers.push(answer.tag)).unwrap(), [1]);
    assert_eq!((answers, queue.check(NOW, |_| {}).unwrap()), (vec![0], vec![]));
    assert_eq!(kinds(&controller), [EventKind::BusError, EventKind::ControllerReset]);
    double.set_faults(Faults::default());
    push(&mut queue, 0..1);
    wait_for_answers(&double, 2);
}

#[test]
fn a_controller_that_somebody_left_starting_is_not_stopped_before_it_has_started() {
    let double = Double::new(Model::default());
    double.set_faults(Faults { starts_slowly: true, ..Faults::default() });
    // Enabled, with entries of 64 and 16 bytes.
    double.write32(0x14, 6 << 16 | 4 << 20 | 1);
    Controller::start(double.clone(), None).unwrap();
    assert_eq!(double.starts(), 2);
}

#[test]
fn a_controller_that_fails_while_it_shuts_down_is_stopped_all_the_same() {
    let (double, controller, queue) = start();
    drop(queue);
    double.fail();
    drop(controller);
    assert!(double.is_put_away());
}

#[test]
fn an_answer_that_was_there_before_a_rescue_by_another_queues_reset_is_not_lost() {
    let (double, controller, mut queue) = start();
    let mut other = Queue::open(&controller, 8).unwrap();
    push(&mut other, 0..3);
    wait_for_answers(&double, 3);
    double.set_faults(Faults { silent: true, ..Faults::default() });
    push(&mut other, 3..4);
    push(&mut queue, 0..1);
    assert_eq!(queue.rescue(&[0], NOW, |_| {}).unwrap(), [0]);
    let mut answers = Vec::new();
    assert_eq!(other.rescue(&[3], NOW, |answer| answers.push(answer.tag)).unwrap(), [3]);
    answers.sort_unstable();
    assert_eq!(answers, [0, 1, 2]);
}
