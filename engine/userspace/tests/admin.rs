//! The admin queue on a controller in memory: what takes long, what is asked meanwhile, what is never answered, and what a reset undoes.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use testdrive_nvme::{
    flush, format_nvm, get_feature, get_log_page, identify, power_state_of, sanitize, set_power_state,
    Feature, FeatureSelect, FormatNvm, IdentifyWhat, LogPage, NamespaceIdentity, SanitizeAction, SanitizeLog,
    SanitizeStatus, SecureErase, SmartLog, ALL_NAMESPACES, IDENTIFY_BYTES, SANITIZE_LOG_BYTES,
    SMART_LOG_BYTES,
};
use testdrive_userspace::double::{Double, Faults, Model};
use testdrive_userspace::{Controller, ControllerError, Place, Queue};

type Started = Arc<Controller<Double>>;

const LONG: Duration = Duration::from_secs(60);

fn start(model: Model) -> (Double, Started) {
    let double = Double::new(model);
    let controller = Arc::new(Controller::start(double.clone(), None).unwrap());
    (double, controller)
}

fn to_format(lba_format: u8) -> FormatNvm {
    FormatNvm { nsid: 1, lba_format, secure_erase: SecureErase::UserData }
}

fn smart(controller: &Started, limit: Duration) -> Result<SmartLog, ControllerError> {
    let mut bytes = [0; SMART_LOG_BYTES];
    let command = get_log_page(LogPage::Smart, ALL_NAMESPACES, SMART_LOG_BYTES as u32);
    controller.ask("tell its health", &command, &mut bytes, limit).map(|_| SmartLog::parse(&bytes))
}

fn sanitize_log(controller: &Started) -> SanitizeLog {
    let mut bytes = [0; SANITIZE_LOG_BYTES];
    let command = get_log_page(LogPage::Sanitize, ALL_NAMESPACES, SANITIZE_LOG_BYTES as u32);
    controller.ask("tell of its sanitize", &command, &mut bytes, LONG).unwrap();
    SanitizeLog::parse(&bytes)
}

/// How much of a format is left, by the drive.
fn percent_left(controller: &Started) -> Option<u8> {
    let mut bytes = [0; IDENTIFY_BYTES];
    controller.ask("identify", &identify(IdentifyWhat::Namespace(1)), &mut bytes, LONG).unwrap();
    NamespaceIdentity::parse(&bytes).format_percent_left
}

#[test]
fn what_a_command_of_the_admin_queue_brings_is_the_askers_own() {
    let (double, controller) = start(Model::default());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(smart(&controller, LONG).unwrap().temperature_kelvin, 310);
                    assert_eq!(percent_left(&controller), Some(0));
                }
            });
        }
    });
    assert_eq!(double.starts(), 1);
}

#[test]
fn a_format_that_takes_long_leaves_the_queue_to_others_and_the_geometry_is_read_again() {
    let (double, controller) = start(Model::default());
    double.set_content(0, &[7; 8192]);
    double.set_faults(Faults { unending: true, done_percent: 37, ..Faults::default() });
    thread::scope(|scope| {
        let formatting = scope.spawn(|| controller.ask("format", &format_nvm(to_format(1)), &mut [], LONG));
        while percent_left(&controller) != Some(63) {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(smart(&controller, LONG).is_ok() && !formatting.is_finished());
        double.set_faults(Faults::default());
        formatting.join().unwrap().unwrap();
    });
    assert_eq!(controller.limits().block.bytes(), 512, "what the driver knows changes when it looks");
    controller.look_again().unwrap();
    let limits = controller.limits();
    assert_eq!((limits.block.bytes(), limits.blocks, limits.transfer_blocks), (4096, 4096, 16));
    assert_eq!((controller.namespace().1.format_index, percent_left(&controller)), (1, Some(0)));
    assert!(double.content(0, 8192).iter().all(|byte| *byte == 0) && double.starts() == 1);
}

#[test]
fn a_format_to_blocks_with_metadata_cannot_be_driven_any_more_and_one_that_fails_is_told() {
    let (double, controller) = start(Model::default());
    double.set_faults(Faults { erase_fails: true, ..Faults::default() });
    let error = controller.ask("format", &format_nvm(to_format(1)), &mut [], LONG).unwrap_err();
    assert!(error.to_string().contains("refused to format: internal error"), "{error}");
    double.set_faults(Faults::default());
    let error = controller.ask("format", &format_nvm(to_format(9)), &mut [], LONG).unwrap_err();
    assert!(error.to_string().contains("invalid format"), "{error}");
    controller.ask("format", &format_nvm(to_format(2)), &mut [], LONG).unwrap();
    let error = controller.look_again().unwrap_err();
    assert!(matches!(&error, ControllerError::Unsupported(what) if what.contains("metadata")), "{error}");
}

#[test]
fn a_reset_ends_a_format_and_whoever_waits_for_it_is_told_at_once() {
    let (double, controller) = start(Model::default());
    double.set_faults(Faults { unending: true, silent: true, ..Faults::default() });
    let mut queue = Queue::open(&controller, 4).unwrap();
    thread::scope(|scope| {
        let formatting = scope.spawn(|| controller.ask("format", &format_nvm(to_format(1)), &mut [], LONG));
        while percent_left(&controller) != Some(100) {
            thread::sleep(Duration::from_millis(1));
        }
        queue.push(&flush(1), Place::None, 0);
        queue.ring();
        assert_eq!(queue.rescue(&[0], &|| 0, |_| {}).unwrap(), [0]);
        let error = formatting.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("was reset while it was asked to format"), "{error}");
    });
    assert_eq!(double.starts(), 2);
}

#[test]
fn a_sanitize_is_told_of_by_the_log_and_outlives_a_reset() {
    let (double, controller) = start(Model::default());
    assert_eq!(sanitize_log(&controller).status, SanitizeStatus::Never);
    double.set_faults(Faults { unending: true, done_percent: 25, ..Faults::default() });
    let order = sanitize(SanitizeAction::BlockErase);
    controller.ask("sanitize", &order, &mut [], LONG).unwrap();
    let log = sanitize_log(&controller);
    assert_eq!((log.status, log.done_share()), (SanitizeStatus::Running, 0.25));
    let error = controller.ask("sanitize", &order, &mut [], LONG).unwrap_err();
    assert!(error.to_string().contains("sanitize in progress"), "{error}");
    // As when the drive goes back to the kernel meanwhile.
    drop(controller);
    double.let_in();
    let controller = Arc::new(Controller::start(double.clone(), None).unwrap());
    assert_eq!(sanitize_log(&controller).status, SanitizeStatus::Running);
    double.set_faults(Faults { erase_fails: true, ..Faults::default() });
    while sanitize_log(&controller).status == SanitizeStatus::Running {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(sanitize_log(&controller).status, SanitizeStatus::Failed);
    controller.ask("recover", &sanitize(SanitizeAction::ExitFailure), &mut [], LONG).unwrap();
    assert_eq!(sanitize_log(&controller).status, SanitizeStatus::Never);
}

#[test]
fn features_are_set_again_after_a_reset() {
    let (double, controller) = start(Model::default());
    let state = || {
        let command = get_feature(Feature::PowerManagement, FeatureSelect::Current);
        power_state_of(controller.ask("tell its power state", &command, &mut [], LONG).unwrap())
    };
    let set = |state| controller.ask("change its power state", &set_power_state(state), &mut [], LONG);
    assert_eq!(state(), 0);
    set(1).unwrap();
    set(2).unwrap();
    assert!(set(3).unwrap_err().to_string().contains("invalid field"));
    let mut queue = Queue::open(&controller, 4).unwrap();
    double.fail();
    queue.check(&|| 0, |_| {}).unwrap();
    assert_eq!((state(), double.starts()), (2, 2));
}

#[test]
fn commands_without_an_answer_are_left_to_the_drive_and_their_late_answers_are_nobodys() {
    let (double, controller) = start(Model::default());
    double.set_faults(Faults { admin_silent: true, ..Faults::default() });
    for _ in 0..40 {
        let error = smart(&controller, Duration::from_millis(1)).unwrap_err();
        assert!(matches!(error, ControllerError::Silent { .. }), "{error}");
    }
    assert!(!controller.has_failed() && double.starts() == 1);
    double.set_faults(Faults::default());
    // Once they are there, they make room.
    let began = Instant::now();
    let answered = loop {
        match smart(&controller, LONG) {
            Ok(log) => break log,
            Err(error) => assert!(began.elapsed() < LONG, "{error}"),
        }
        thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(answered.temperature_kelvin, 310);
}

#[test]
fn a_queue_of_which_it_is_not_certain_that_it_is_gone_has_the_controller_given_up() {
    let (double, controller) = start(Model::default());
    double.set_faults(Faults { refuses_queues: true, ..Faults::default() });
    assert!(matches!(Queue::open(&controller, 4), Err(ControllerError::Refused { .. })));
    assert_eq!((double.queues(), controller.has_failed()), ((0, 0), false));
    double.set_faults(Faults { refuses_queues: true, keeps_queues: true, ..Faults::default() });
    assert!(matches!(Queue::open(&controller, 4), Err(ControllerError::Refused { .. })));
    assert!(controller.has_failed() && double.is_put_away());
    assert!(matches!(smart(&controller, LONG), Err(ControllerError::Lost)));
    assert!(matches!(Queue::open(&controller, 4), Err(ControllerError::Lost)));
}
