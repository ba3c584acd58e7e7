//! A resource that serves one customer at a time, first come, first served.

use serde::{Deserialize, Serialize};
use testdrive_core::NS_PER_S;

/// When a resource is free again.
///
/// Customers must be brought in the order in which they arrive. Then the time at which each is done is known on arrival, and
/// no event is needed for the start of its service.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Server {
    free_ns: i64,
}

impl Default for Server {
    /// Free since ever, since times may be negative.
    fn default() -> Self {
        Server { free_ns: i64::MIN }
    }
}

impl Server {
    /// Serves a customer that arrives at `arrival_ns`; returns when it is done.
    #[inline]
    pub(crate) fn serve(&mut self, arrival_ns: i64, service_ns: i64) -> i64 {
        self.free_ns = self.free_ns.max(arrival_ns) + service_ns;
        self.free_ns
    }

    /// When it is free again.
    #[inline]
    pub(crate) fn free_ns(&self) -> i64 {
        self.free_ns
    }
}

/// How long a transfer takes, rounded up to a nanosecond.
#[inline]
pub(crate) fn transfer_ns(bytes: u64, rate_bytes_per_s: u64) -> i64 {
    let per_s = NS_PER_S.cast_unsigned();
    match bytes.checked_mul(per_s) {
        Some(product) => product.div_ceil(rate_bytes_per_s).cast_signed(),
        // Above 18 GB the product needs more than 64 bits, which is slower to divide.
        None => (u128::from(bytes) * u128::from(per_s)).div_ceil(u128::from(rate_bytes_per_s)) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_server_makes_the_next_one_wait_and_an_idle_one_does_not() {
        let mut server = Server::default();
        assert_eq!(server.serve(100, 10), 110);
        assert_eq!(server.serve(105, 10), 120);
        assert_eq!(server.serve(200, 10), 210);
    }

    #[test]
    fn a_transfer_takes_its_bytes_over_the_rate_rounded_up() {
        assert_eq!(transfer_ns(4096, 1_000_000_000), 4096);
        assert_eq!(transfer_ns(1, 3_000_000_000), 1);
        assert_eq!(transfer_ns(0, 1), 0);
        assert_eq!(transfer_ns(1 << 40, 1 << 30), 1024 * NS_PER_S);
    }
}
