//! Formats and sanitizes followed to their end, on our own driver and a controller in memory.

use super::*;
use crate::job::OnError;
use crate::orders::Shared;
use std::sync::atomic::AtomicUsize;
use std::sync::Mutex;
use testdrive_drives::{Clock, PciQueues};
use testdrive_userspace::double::{Double, Faults, Model};
use testdrive_userspace::Controller;

fn of(phase: Value) -> Option<Administration> {
    Administration::of(&serde_json::from_value(phase).unwrap())
}

#[test]
fn only_formats_and_sanitizes_are_of_the_drive_as_a_whole() {
    let purge = |how| of(json!({"kind": "prepare", "method": "purge", "how": how}));
    assert_eq!(of(json!({"kind": "prepare", "method": "purge"})), None);
    assert_eq!(purge("trim"), None);
    assert_eq!(purge("format"), Some(Administration::Format(None, SecureErase::UserData)));
    assert_eq!(purge("sanitize"), Some(Administration::Sanitize));
    let format = of(json!({"kind": "prepare", "method": "format", "logical_block_bytes": 4096}));
    assert_eq!(format, Some(Administration::Format(Some(4096), SecureErase::None)));
    assert_eq!(format.unwrap().access(), Access::Format);
    assert_eq!(of(json!({"kind": "prepare", "method": "sequential"})), None);
}

#[test]
fn a_path_that_cannot_is_told_which_can() {
    let target = Target::open("null:", Access::Write, &testdrive_drives::Consent::default(), None).unwrap();
    let identity = target.identity().clone();
    let error = Administration::Sanitize.identity_after(&target, &identity).unwrap_err();
    assert!(error.to_string().contains("/dev/ng0n1"), "{error}");
}

fn controller(model: Model) -> (Double, PciQueues<Double>) {
    let double = Double::new(model);
    let started = Controller::start(double.clone(), None).unwrap();
    let identity = DriveIdentity { uri: "pci:0000:01:00.0".into(), ..DriveIdentity::default() };
    (double, PciQueues::new(started, identity, Access::Sanitize, 1))
}

/// What it came to, why the run is to stop, and the codes of warnings.
type Followed = (Result<Map<String, Value>, RunError>, Option<String>, Vec<String>);

/// Has a drive do something. `react` sees each share that is told, and the number that a signal would set.
fn followed(
    what: Administration,
    device: &mut PciQueues<Double>,
    mut react: impl FnMut(Option<f64>, &AtomicUsize),
) -> Followed {
    let (shared, live, signal) = (Shared::default(), Mutex::default(), AtomicUsize::new(0));
    let context = PhaseContext {
        controller: None,
        index: 3,
        round: None,
        clock: Clock::uncalibrated(),
        shared: &shared,
        live: &live,
        signal: &signal,
        io_timeout_ns: 1,
        on_error: OnError::Stop,
    };
    let mut warnings = Vec::new();
    let mut tell = |event| match event {
        Event::Progress(progress) => react(progress.done_share, &signal),
        Event::Warning(warning) => warnings.push(warning.code),
        other => panic!("{other:?}"),
    };
    let mut following = Following { context: &context, start_ns: 0, tell: &mut tell };
    let outcome = carry_out(what, device, &mut following);
    let reason = shared.stop.reason().map(|reason| {
        assert_eq!(reason.status, Status::Interrupted);
        reason.message
    });
    (outcome, reason, warnings)
}

/// A drive that is a quarter done, and stays so.
fn unending() -> Faults {
    Faults { unending: true, done_percent: 25, ..Faults::default() }
}

#[test]
fn a_sanitize_is_followed_by_its_log_until_it_is_done() {
    let (double, mut device) = controller(Model::default());
    double.set_faults(unending());
    let mut shares = Vec::new();
    let (outcome, reason, warnings) = followed(Administration::Sanitize, &mut device, |share, _| {
        shares.push(share);
        let faults = Faults { done_percent: 75, unending: shares.len() < 2, ..unending() };
        double.set_faults(faults);
    });
    assert_eq!(outcome.unwrap()["sanitize"], json!({"action": "block_erase", "status": "done"}));
    assert_eq!((shares, reason, warnings.len()), (vec![Some(0.25), Some(0.75)], None, 0));
}

#[test]
fn a_sanitize_that_fails_is_a_failure_of_the_drive() {
    let (double, mut device) = controller(Model::default());
    double.set_faults(Faults { erase_fails: true, ..Faults::default() });
    let (outcome, ..) = followed(Administration::Sanitize, &mut device, |_, _| {});
    let error = outcome.unwrap_err();
    assert!(error.to_string().contains("the sanitize of pci:0000:01:00.0 failed"), "{error}");
    assert_eq!(error.kind.exit_status(), 4);
}

#[test]
fn a_signal_leaves_a_sanitize_to_the_drive() {
    let (double, mut device) = controller(Model::default());
    double.set_faults(unending());
    let (outcome, reason, _) =
        followed(Administration::Sanitize, &mut device, |_, signal| signal.store(2, Ordering::Relaxed));
    assert_eq!(outcome.unwrap()["sanitize"]["status"], "running");
    assert!(reason.unwrap().contains("the sanitize goes on in the drive"));
    assert_eq!((&device as &dyn NvmeTarget).sanitize_log().unwrap().status, SanitizeStatus::Running);
    assert_eq!(double.starts(), 1);
}

#[test]
fn a_format_is_waited_for_although_a_signal_came() {
    let (double, mut device) = controller(Model::default());
    double.set_faults(unending());
    let mut shares = Vec::new();
    let format = Administration::Format(Some(4096), SecureErase::UserData);
    let (outcome, reason, warnings) = followed(format, &mut device, |share, signal| {
        shares.extend(share);
        signal.store(15, Ordering::Relaxed);
        double.set_faults(Faults { unending: shares.len() < 2, ..unending() });
    });
    assert_eq!(outcome.unwrap()["format"]["logical_block_bytes"], 4096);
    assert_eq!(shares, [0.25, 0.25]);
    assert!(reason.unwrap().contains("the format was waited for"));
    assert_eq!(warnings, ["format_goes_on"]);
    assert_eq!((device.identity.logical_block_bytes, double.starts()), (4096, 1));
}
