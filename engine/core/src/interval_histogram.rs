//! A histogram of one interval of a long run: made, written out and cleared again many times a second of the host's time.

use crate::histogram::{bucket_of, upper_edge_ns, BUCKET_COUNT};

/// What fell into one bucket of latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// I/Os.
    pub count: u64,
    /// Their latencies, added up.
    pub sum_ns: u64,
    /// The longest of them, exact.
    pub max_ns: u64,
    /// Their lengths, added up.
    pub bytes: u64,
}

/// Latencies by bucket, as [`Histogram`](crate::Histogram) divides them, each with the longest latency and the bytes.
///
/// Only the buckets that hold something are read or cleared, so that an interval of few I/Os costs little.
#[derive(Clone, Debug)]
pub struct IntervalHistogram {
    buckets: Box<[Bucket]>,
    touched: Vec<u16>,
}

impl Default for IntervalHistogram {
    fn default() -> Self {
        IntervalHistogram {
            buckets: vec![Bucket::default(); BUCKET_COUNT].into_boxed_slice(),
            touched: Vec::new(),
        }
    }
}

impl IntervalHistogram {
    /// Adds an I/O.
    #[inline]
    pub fn add(&mut self, latency_ns: u64, bytes: u64) {
        let index = bucket_of(latency_ns);
        let bucket = &mut self.buckets[index];
        if bucket.count == 0 {
            // A histogram has fewer buckets than a u16 has values.
            self.touched.push(index as u16);
        }
        bucket.count += 1;
        bucket.sum_ns = bucket.sum_ns.saturating_add(latency_ns);
        bucket.max_ns = bucket.max_ns.max(latency_ns);
        bucket.bytes = bucket.bytes.saturating_add(bytes);
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.touched.is_empty()
    }

    /// The buckets that hold something, by latency: each with the largest latency that falls in it.
    pub fn buckets(&mut self) -> impl Iterator<Item = (u64, Bucket)> + '_ {
        self.touched.sort_unstable();
        let buckets = &self.buckets;
        self.touched.iter().map(move |&index| (upper_edge_ns(index.into()), buckets[usize::from(index)]))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        for index in self.touched.drain(..) {
            self.buckets[usize::from(index)] = Bucket::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_holds_what_a_plain_histogram_holds(values in proptest::collection::vec(any::<u32>(), 0..300)) {
            let (mut interval, mut plain) = (IntervalHistogram::default(), Histogram::default());
            for round in 0..2 {
                interval.clear();
                plain.clear();
                for value in &values {
                    let latency_ns = u64::from(*value) << round;
                    interval.add(latency_ns, 512);
                    plain.add(latency_ns);
                }
            }
            let buckets: Vec<(u64, Bucket)> = interval.buckets().collect();
            prop_assert!(buckets.is_sorted_by_key(|(ceiling_ns, _)| *ceiling_ns));
            prop_assert_eq!(buckets.iter().map(|(_, bucket)| bucket.count).sum::<u64>(), plain.count());
            prop_assert_eq!(buckets.iter().map(|(_, bucket)| bucket.bytes).sum::<u64>(), 512 * plain.count());
            prop_assert_eq!(buckets.last().map_or(0, |(_, bucket)| bucket.max_ns), plain.max_ns());
            let sum: u64 = buckets.iter().map(|(_, bucket)| bucket.sum_ns).sum();
            prop_assert_eq!(plain.mean_ns().unwrap_or(0.0), sum as f64 / values.len().max(1) as f64);
            for (ceiling_ns, bucket) in buckets {
                prop_assert!(bucket.max_ns <= ceiling_ns && (ceiling_ns - bucket.max_ns) as f64 <= ceiling_ns as f64 / 128.0);
            }
            prop_assert_eq!(interval.is_empty(), values.is_empty());
        }
    }
}
