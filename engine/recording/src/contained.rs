//! Decoding of bytes that may be anything: the decoder's panic is one more way of saying that they are damaged.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Does something whose panic is caught and not told.
///
/// # Errors
/// What the panic said.
pub(crate) fn contained<T>(decode: impl FnOnce() -> T) -> Result<T, String> {
    quieten();
    CONTAINED.set(true);
    // What was begun is thrown away with the panic: nobody sees it half done.
    let result = panic::catch_unwind(AssertUnwindSafe(decode));
    CONTAINED.set(false);
    result.map_err(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
        format!("its content cannot be ({})", said.lines().next().unwrap_or_default())
    })
}

/// Panics elsewhere are told as they were; those that are caught here are not.
fn quieten() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !CONTAINED.get() {
                tell(panic);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_next_one_is_told_again() {
        assert_eq!(contained(|| 3), Ok(3));
        let at = [1, 2][..1].len();
        let error = contained(|| [1][at]).unwrap_err();
        assert_eq!(error, "its content cannot be (index out of bounds: the len is 1 but the index is 1)");
        assert!(!CONTAINED.get());
    }
}
