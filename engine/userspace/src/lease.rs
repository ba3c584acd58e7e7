//! A function lent by its kernel driver: taken for a run, and given back whatever becomes of the run.
//!
//! Three things see to that. [`Lease::give_back`] does it at the end of a run. A guardian process, which outlives ours, does it where we
//! are killed. And where both are gone (a machine's whole control group was killed), a note on the disk of this boot tells the next run,
//! or `testdrive drives --release`, what to put back. The note is locked for as long as the run or its guardian lives, so that nobody
//! takes a live one for a forgotten one.

use crate::note::{Before, Note};
use crate::pci::{Bdf, PciFunction, Roots, VFIO_DRIVER};
use crate::waiting::look_until;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use testdrive_guardian::{Guardian, Step};

/// How long the kernel may take to bind or unbind a driver.
const BIND_LIMIT: Duration = Duration::from_secs(30);
/// How long the guardian of a run that was just killed may take.
const GUARDIAN_LIMIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Why a function could not be taken or given back.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// It is not there.
    #[error("there is no PCI function {0}: 'testdrive drives' lists the drives of this host")]
    Absent(Bdf),
    /// A run has it.
    #[error("{bdf} is in use by another run (process {pid}): wait for its end, or stop it")]
    InUse {
        /// The function.
        bdf: Bdf,
        /// Who has it, as its note says.
        pid: String,
    },
    /// Somebody else has it through VFIO.
    #[error("{bdf} is in use through VFIO: stop who has it first ({})", if by.is_empty() { "fuser -v /dev/vfio/*".into() } else { by.join(", ") })]
    Used {
        /// The function.
        bdf: Bdf,
        /// Who has it, as far as that can be seen.
        by: Vec<String>,
    },
    /// Neither the kernel's driver of its class nor ours has it.
    #[error("{bdf} is with the driver '{driver}', which testdrive did not bind and does not unbind: have whoever bound it give it back")]
    OtherDriver {
        /// The function.
        bdf: Bdf,
        /// Who has it.
        driver: String,
    },
    /// The kernel has no such driver.
    #[error("the kernel has no driver '{VFIO_DRIVER}': load it (modprobe {VFIO_DRIVER}), and try again")]
    NoVfio,
    /// It went while a run had it.
    #[error("{0} is gone from its slot, so that there is nothing to give back to the kernel: look at the kernel's log (dmesg) and at the drive; once it is back it takes 'echo 1 > /sys/bus/pci/rescan' to be seen")]
    Gone(Bdf),
    /// The kernel did not do what it was asked.
    #[error("{what}: {error}; {remedy}")]
    Kernel {
        /// What was asked.
        what: String,
        /// What it answered.
        error: io::Error,
        /// What to do now.
        remedy: String,
    },
}

/// A function that user space has.
pub struct Lease {
    function: PciFunction,
    before: Before,
    note: Option<Note>,
    guardian: Option<Guardian>,
}

impl Lease {
    /// Takes a function from its driver. `kept` are descriptors that must stay open until it is given back, also after a kill: those of
    /// memory that the function may still write to. `unbound` is called once its driver has let go of it.
    ///
    /// # Errors
    /// When somebody has it, it has no driver to be given back to, or the kernel refuses; it is then as it was.
    pub fn take(
        function: &PciFunction,
        kept: &[BorrowedFd<'_>],
        unbound: impl FnOnce(),
    ) -> Result<Lease, LeaseError> {
        let roots = function.roots();
        if !roots.sys.join("bus/pci/drivers").join(VFIO_DRIVER).is_dir() {
            return Err(LeaseError::NoVfio);
        }
        let failed = |what: &str| {
            let (what, bdf) = (format!("{what} {}", function.bdf), function.bdf);
            move |error| LeaseError::Kernel { what, error, remedy: remedy(bdf) }
        };
        let mut note = lock_note(function)?;
        let Some(driver) = function.driver() else {
            note.remove();
            let error = io::Error::new(io::ErrorKind::NotFound, "no driver has it");
            return Err(failed("there is nobody to take it from:")(error));
        };
        let before = Before { driver, driver_override: function.driver_override() };
        note.write(&before).map_err(failed("cannot keep a note of"))?;
        let mut steps = before.steps(function);
        steps.push(Step::RemoveFile(note.path.clone()));
        let mut descriptors = vec![note.file.as_fd()];
        descriptors.extend_from_slice(kept);
        // The guardian is there first, so that there is no moment at which a kill would leave the function without its driver.
        let guardian =
            Guardian::start(&steps, &descriptors).map_err(failed("cannot start a guardian for"))?;
        let mut lease =
            Lease { function: function.clone(), before, note: Some(note), guardian: Some(guardian) };
        let taken = lease.bind_to_vfio(unbound);
        match taken {
            Ok(()) => Ok(lease),
            Err(error) => {
                let error = failed("the kernel does not hand over")(error);
                // Whatever came of it: the first error tells more.
                let _ = lease.put_back();
                Err(error)
            }
        }
    }

    fn bind_to_vfio(&self, unbound: impl FnOnce()) -> io::Result<()> {
        let (function, bdf) = (&self.function, self.function.bdf.to_string());
        write_to(&function.directory().join("driver_override"), VFIO_DRIVER)?;
        write_to(&function.unbind_file(&self.before.driver), &bdf)?;
        unbound();
        write_to(&function.probe_file(), &bdf)?;
        wait_for_driver(function, VFIO_DRIVER)
    }

    /// Gives the function back to its driver. Everything of it must be closed.
    ///
    /// # Errors
    /// When the kernel does not bind the driver; the note stays then. When the function is gone there is nothing to be noted any more.
    pub fn give_back(mut self) -> Result<(), LeaseError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), LeaseError> {
        let Some(note) = self.note.take() else { return Ok(()) };
        let restored = restore(&self.function, &self.before);
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
        if matches!(restored, Ok(()) | Err(LeaseError::Gone(_))) {
            note.remove();
        }
        restored
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Err(error) = self.put_back() {
            eprintln!("testdrive: {error}");
        }
    }
}

/// What [`release`] found to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Released {
    /// It has a kernel driver already: this one.
    Bound(String),
    /// It was given back to this driver.
    Restored(String),
}

/// Gives a function that a killed run left behind, or that somebody bound to vfio-pci, back to the kernel. `users` tells who has it through
/// VFIO; `None` where nobody has.
///
/// # Errors
/// When somebody has it, another driver for user space does, or the kernel does not bind a driver.
pub fn release(
    roots: &Roots,
    bdf: Bdf,
    users: impl FnOnce(&PciFunction) -> Option<Vec<String>>,
) -> Result<Released, LeaseError> {
    let function = PciFunction::find(roots, bdf).map_err(|_| LeaseError::Absent(bdf))?;
    let (note, before) = locked_before(&function)?;
    if let Err(error) = check_unused(&function, users) {
        // A note that says nothing was made just now.
        if before.is_none() {
            note.remove();
        }
        return Err(error);
    }
    // Bound by somebody else, or by nobody: the driver of its class is what it goes back to.
    let is_noted = before.is_some();
    let outcome = before.unwrap_or_else(|| Before { driver: "nvme".into(), driver_override: None });
    match function.driver() {
        Some(driver) if driver == outcome.driver && !is_noted => {
            note.remove();
            return Ok(Released::Bound(driver));
        }
        Some(driver) if driver != outcome.driver && driver != VFIO_DRIVER => {
            // Whoever bound it has made the note untrue.
            note.remove();
            return Err(LeaseError::OtherDriver { bdf, driver });
        }
        _ => {}
    }
    restore(&function, &outcome)?;
    note.remove();
    Ok(Released::Restored(outcome.driver))
}

/// Gives a function back that a killed run left behind; whether there was one. Nothing is done to what somebody else bound, or has taken since.
///
/// # Errors
/// As [`release`].
pub fn repair(
    function: &PciFunction,
    users: impl FnOnce(&PciFunction) -> Option<Vec<String>>,
) -> Result<bool, LeaseError> {
    if !Note::path_of(function).exists() {
        return Ok(false);
    }
    let (note, before) = locked_before(function)?;
    let Some(before) = before else {
        note.remove();
        return Ok(false);
    };
    if function.driver().is_some_and(|driver| driver != VFIO_DRIVER && driver != before.driver) {
        // Whoever bound it since then has made the note untrue.
        note.remove();
        return Ok(false);
    }
    check_unused(function, users)?;
    restore(function, &before)?;
    note.remove();
    Ok(true)
}

/// The kernel would wait for a user of VFIO to let go, and take the function as soon as it does.
fn check_unused(
    function: &PciFunction,
    users: impl FnOnce(&PciFunction) -> Option<Vec<String>>,
) -> Result<(), LeaseError> {
    if function.driver().as_deref() != Some(VFIO_DRIVER) {
        return Ok(());
    }
    match users(function) {
        Some(by) => Err(LeaseError::Used { bdf: function.bdf, by }),
        None => Ok(()),
    }
}

fn locked_before(function: &PciFunction) -> Result<(Note, Option<Before>), LeaseError> {
    let mut note = lock_note(function)?;
    let before = note.read().map_err(|error| LeaseError::Kernel {
        what: format!("the note {} cannot be read", note.path.display()),
        error,
        remedy: "remove it, and try again".into(),
    })?;
    Ok((note, before))
}

/// Locks the note, and waits a moment for the guardian of a run that was just killed.
fn lock_note(function: &PciFunction) -> Result<Note, LeaseError> {
    let began = Instant::now();
    loop {
        let locked = Note::lock(function).map_err(|error| LeaseError::Kernel {
            what: format!("the note {} cannot be made", Note::path_of(function).display()),
            error,
            remedy: "run as root".into(),
        })?;
        if let Some(note) = locked {
            return Ok(note);
        }
        let text = fs::read_to_string(Note::path_of(function)).unwrap_or_default();
        let pid = text.lines().find_map(|line| line.strip_prefix("pid ")).unwrap_or("unknown").to_string();
        let is_alive = PathBuf::from("/proc").join(&pid).exists();
        if is_alive || began.elapsed() > GUARDIAN_LIMIT {
            return Err(LeaseError::InUse { bdf: function.bdf, pid });
        }
        thread::sleep(PAUSE);
    }
}

fn restore(function: &PciFunction, before: &Before) -> Result<(), LeaseError> {
    for step in before.steps(function) {
        let Step::Write { path, text } = step else { continue };
        // A driver that does not have it cannot let go of it: what counts is who has it in the end.
        let _ = write_to(&path, &text);
    }
    let bound = wait_for_driver(function, &before.driver);
    bound.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => LeaseError::Gone(function.bdf),
        _ => LeaseError::Kernel {
            what: format!(
                "{} could not be given back to the kernel's driver '{}'",
                function.bdf, before.driver
            ),
            error,
            remedy: remedy(function.bdf),
        },
    })?;
    wait_until_live(function);
    Ok(())
}

fn remedy(bdf: Bdf) -> String {
    format!(
        "look at the kernel's log (dmesg), then give the drive back with 'testdrive drives --release {bdf}'"
    )
}

fn write_to(path: &std::path::Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).truncate(true).open(path)?.write_all(text.as_bytes())
}

/// Waits until a driver has the function; not for one that is not there any more, which is an error of the kind `NotFound`.
fn wait_for_driver(function: &PciFunction, driver: &str) -> io::Result<()> {
    let found = look_until(BIND_LIMIT, PAUSE, || {
        if function.driver().as_deref() == Some(driver) {
            return Ok(Some(()));
        }
        match function.directory().exists() {
            true => Ok(None),
            false => Err(io::Error::new(io::ErrorKind::NotFound, "it is gone")),
        }
    });
    found?.ok_or_else(|| {
        let has = function.driver().unwrap_or_else(|| "no driver".into());
        io::Error::new(io::ErrorKind::TimedOut, format!("{has} has it, not {driver}"))
    })
}

/// The kernel's driver starts a controller in the background: whoever comes next is to find the drive. It is no error where that
/// takes long, since the driver has it.
fn wait_until_live(function: &PciFunction) {
    let began = Instant::now();
    while began.elapsed() < BIND_LIMIT {
        let controllers = function.nvme_controllers();
        let state = |name: &String| function.attribute(&format!("nvme/{name}/state"));
        if controllers.first().and_then(state).is_none_or(|state| state == "live" || state == "dead") {
            return;
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
