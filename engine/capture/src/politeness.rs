//! How hard a thread of ours competes for the CPU: not at all while its buffer has room, with priority when it is about to overflow.
//!
//! The captured host has work to do. What can wait takes the CPU that nobody else wants; on a host without any to spare the buffers
//! fill, and before something is lost the thread takes what it needs, which is little, and steps back again.

/// Whatever else runs comes first.
const POLITE_NICE: i32 = 19;
/// Before ordinary programs, where we may; not before the kernel's own threads.
const URGENT_NICE: i32 = -10;
/// Full to this share, a buffer makes its thread urgent.
const URGENT_FROM: f64 = 0.5;
/// Full to less than this share, its thread is polite again.
const POLITE_BELOW: f64 = 0.25;

/// The politeness of the thread that made it.
pub(crate) struct Politeness {
    nice: i32,
    /// What the thread was before, and is again at the end.
    before: i32,
}

impl Politeness {
    /// Makes the calling thread polite.
    pub fn of_this_thread() -> Politeness {
        let before = niceness();
        set_nice(POLITE_NICE);
        Politeness { nice: POLITE_NICE, before }
    }

    /// Makes the thread what it was before: nothing more will be held up.
    pub fn end(&mut self) {
        set_nice(self.before);
        self.nice = self.before;
    }

    /// Goes by how full its buffer is, from 0 to 1. To be called by the same thread.
    pub fn adapt(&mut self, full_share: f64) {
        let nice = nice_for(self.nice, full_share);
        if nice != self.nice {
            set_nice(nice);
            self.nice = nice;
        }
    }
}

impl Drop for Politeness {
    fn drop(&mut self) {
        self.end();
    }
}

/// What follows a niceness; between the two shares it stays, so that it does not swing.
fn nice_for(nice: i32, full_share: f64) -> i32 {
    if full_share >= URGENT_FROM {
        URGENT_NICE
    } else if full_share < POLITE_BELOW {
        POLITE_NICE
    } else {
        nice
    }
}

fn niceness() -> i32 {
    // SAFETY: getpriority takes integers and returns one.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

fn set_nice(nice: i32) {
    // SAFETY: setpriority takes integers. On Linux the 0 means the calling thread. A refusal leaves it as it was, which only costs.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_urgent_from_half_full_until_its_buffer_has_room_again() {
        let mut nice = POLITE_NICE;
        let mut at = |share| {
            nice = nice_for(nice, share);
            nice
        };
        assert_eq!([at(0.0), at(0.3), at(0.49)], [POLITE_NICE; 3]);
        assert_eq!([at(0.5), at(0.3), at(1.0), at(0.25)], [URGENT_NICE; 4]);
        assert_eq!([at(0.24), at(0.3)], [POLITE_NICE; 2]);
    }

    #[test]
    fn the_niceness_is_of_the_thread_alone() {
        let before = niceness();
        let thread = std::thread::spawn(move || {
            let polite = Politeness::of_this_thread();
            let during = niceness();
            drop(polite);
            (during, niceness())
        });
        let (during, after) = thread.join().unwrap();
        assert_eq!((during, niceness()), (POLITE_NICE, before));
        // Only who may raise a priority gets the old one back.
        // SAFETY: geteuid takes nothing and cannot fail.
        assert!(after == before || unsafe { libc::geteuid() } != 0);
    }
}
