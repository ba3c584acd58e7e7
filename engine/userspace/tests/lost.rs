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
    let mut answers = Vec::new();
    let checked = queue.check(NOW, |answer| answers.push(answer.tag));
    assert!(matches!(checked, Err(ControllerError::WantedBack)));
    assert!(matches!(other.check(NOW, |_| {}), Err(ControllerError::WantedBack)));
    assert!(controller.has_failed() && double.is_put_away());
    assert_eq!((double.shutdowns(), kinds(&controller)), (1, vec![EventKind::ControllerGone]));
    queue.abandon(|answer: Answer| answers.push(answer.tag));
    answers.sort_unstable();
    assert_eq!((answers, queue.in_flight()), (vec![0, 1], 0));
    drop((queue, other, controller));
    assert_eq!(double.shutdowns(), 1);
}

#[test]
fn what_is_in_flight_on_any_queue_ends_before_a_drive_that_is_wanted_back_is_shut_down() {
    let (double, controller, mut queue) = start();
    let mut other = Queue::open(&controller, 8).unwrap();
    // This one's owner was away during a reset, so that the controller has no such queue.
    let stale = Queue::open(&controller, 8).unwrap();
    double.set_faults(Faults { bus_error: true, ..Faults::default() });
    assert_eq!(queue.check(NOW, |_| {}).unwrap(), Vec::<u32>::new());
    assert_eq!(other.reconnect(|_| {}).unwrap(), Vec::<u32>::new());
    double.set_faults(Faults { wanted_back: true, ..Faults::default() });
    push(&mut queue, 0..3);
    push(&mut other, 3..5);
    wait_for_answers(&double, 5);
    let mut answers = Vec::new();
    let error = queue.check(NOW, |answer| answers.push(answer.tag)).unwrap_err();
    assert!(matches!(error, ControllerError::WantedBack) && controller.has_failed());
    // The double asserts that no queue is left when it is shut down.
    assert_eq!((double.queues(), double.shutdowns(), queue.in_flight()), ((0, 0), 1, 0));
    other.abandon(|answer| answers.push(answer.tag));
    answers.sort_unstable();
    assert_eq!((answers, other.in_flight(), stale.in_flight()), (vec![0, 1, 2, 3, 4], 0, 0));
    assert_eq!(
        kinds(&controller),
        [EventKind::BusError, EventKind::ControllerReset, EventKind::ControllerGone]
    );
}

#[test]
fn a_drive_that_is_wanted_back_and_answers_nothing_any_more_is_stopped_all_the_same() {
    let (double, controller, mut queue) = start();
    double.set_faults(Faults { admin_silent: true, silent: true, wanted_back: true, ..Faults::default() });
    assert!(matches!(queue.check(NOW, |_| {}), Err(ControllerError::WantedBack)));
    assert!(controller.has_failed() && double.is_put_away());
}

#[test]
fn a_controller_that_never_became_ready_is_not_told_to_shut_down() {
    let double = Double::new(Model::default());
    double.set_faults(Faults { never_ready: true, ..Faults::default() });
    assert!(matches!(Controller::start(double.clone(), None), Err(ControllerError::NotReady { .. })));
    assert_eq!((double.is_put_away(), double.shutdowns()), (true, 0));
}

#[test]
fn a_shutdown_that_is_not_completed_is_noted() {
    let (double, controller, queue) = start();
    drop(queue);
    double.set_faults(Faults { fails_to_shut_down: true, ..Faults::default() });
    controller.retire(NOW);
    assert_eq!(kinds(&controller), [EventKind::ShutdownIncomplete]);
    assert!(double.is_put_away() && controller.has_failed());
    // Once is enough.
    controller.retire(NOW);
    drop(Arc::into_inner(controller));
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

/// How many commands each reset or loss took away.
fn lost_by_resets(controller: &Controller<Double>) -> Vec<(EventKind, u64)> {
    let is_one = |kind| matches!(kind, EventKind::ControllerReset | EventKind::ControllerGone);
    let events = controller.take_events().into_iter().filter(|event| is_one(event.kind));
    events.map(|event| (event.kind, event.commands)).collect()
}

#[test]
fn a_reset_is_noted_with_the_commands_of_all_queues_that_it_took_away_and_no_others() {
    let (double, controller, mut queue) = start();
    let mut other = Queue::open(&controller, 8).unwrap();
    push(&mut other, 0..2);
    wait_for_answers(&double, 2);
    double.set_faults(Faults { silent: true, ..Faults::default() });
    push(&mut other, 2..5);
    push(&mut queue, 0..4);
    assert_eq!(queue.rescue(&[0], NOW, |_| {}).unwrap().len(), 4);
    assert_eq!(other.reconnect(|_| {}).unwrap().len(), 3);
    assert_eq!(lost_by_resets(&controller), [(EventKind::ControllerReset, 7)]);
}

#[test]
fn a_controller_that_does_not_come_back_is_noted_with_all_that_went_with_it() {
    let (double, controller, mut queue) = start();
    let mut other = Queue::open(&controller, 8).unwrap();
    double.set_faults(Faults { silent: true, never_ready: true, ..Faults::default() });
    push(&mut other, 0..3);
    push(&mut queue, 0..1);
    assert!(queue.rescue(&[0], NOW, |_| {}).is_err());
    queue.abandon(|_| {});
    other.abandon(|_| {});
    assert_eq!(lost_by_resets(&controller), [(EventKind::ControllerReset, 4)]);
}

#[test]
fn a_controller_that_somebody_left_starting_is_not_stopped_before_it_has_started() {
    // How often it is looked at counts, however long the driver is kept from looking.
    let double = Double::new(Model { ready_limit: 240, ..Model::default() });
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
