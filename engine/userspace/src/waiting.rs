//! Waiting for what a controller or the kernel does by itself.

use std::thread;
use std::time::{Duration, Instant};

/// Looks again and again until there is something, or the limit is over; `None` then. The last look begins after the limit: what came
/// while this thread was held up is seen, and no drive is blamed for a busy host.
pub(crate) fn look_until<T, E>(
    limit: Duration,
    pause: Duration,
    mut look: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let began = Instant::now();
    loop {
        let is_over = began.elapsed() > limit;
        let found = look()?;
        if found.is_some() || is_over {
            return Ok(found);
        }
        thread::sleep(pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_micros(1);

    #[test]
    fn what_came_while_the_thread_was_held_up_is_seen() {
        let mut looks = 0;
        let found = look_until(Duration::from_millis(1), PAUSE, || {
            looks += 1;
            if looks == 1 {
                // Held up between the look and the clock.
                thread::sleep(Duration::from_millis(5));
            }
            Ok::<_, ()>((looks > 1).then_some("there"))
        });
        assert_eq!((found, looks), (Ok(Some("there")), 2));
    }

    #[test]
    fn what_never_comes_ends_with_the_limit_and_an_error_at_once() {
        assert_eq!(look_until(Duration::from_millis(1), PAUSE, || Ok::<Option<()>, ()>(None)), Ok(None));
        assert_eq!(look_until(Duration::MAX, PAUSE, || Err::<Option<()>, _>("gone")), Err("gone"));
    }
}
