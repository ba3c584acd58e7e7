//! A histogram of one interval of a long run: made, written out and cleared again many times a second of the host's time.

use crate::histogram::{bucket_of, upper_edge_ns, BUCKET_COUNT};
use std::sync::LazyLock;

/// Where the edges at 1, 2, 4 ... ms begin.
const MS_NS: u64 = 1_000_000;
/// The octave of the first of them: 2^19 <= 1 ms < 2^20 ns.
const MS_OCTAVE: u32 = 19;
/// The octaves from there on, each of which has one such edge.
const MS_EDGES: usize = (u64::BITS - MS_OCTAVE) as usize;
const COUNT: usize = BUCKET_COUNT + MS_EDGES;

/// The largest value that falls in each bucket.
static CEILINGS_NS: LazyLock<Box<[u64]>> = LazyLock::new(|| {
    let whole = (0..BUCKET_COUNT).map(upper_edge_ns);
    let mut ceilings: Vec<u64> = whole.chain((0..MS_EDGES).map(|k| (MS_NS << k) - 1)).collect();
    ceilings.sort_unstable();
    ceilings.into_boxed_slice()
});

/// The bucket of a value: those of the plain histogram, of which those that hold 1, 2, 4 ... ms are cut in two there.
#[inline]
fn cut_bucket_of(value_ns: u64) -> usize {
    let bucket = bucket_of(value_ns);
    if value_ns < 1 << MS_OCTAVE {
        return bucket;
    }
    let octave = 63 - value_ns.leading_zeros() - MS_OCTAVE;
    bucket + octave as usize + usize::from(value_ns >= MS_NS << octave)
}

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
/// There are edges at every power of two of a microsecond and of a millisecond, so that counts from such a threshold on are exact:
/// the former are edges anyway, and at the latter a bucket is cut in two.
///
/// Only the buckets that hold something are read or cleared, so that an interval of few I/Os costs little.
#[derive(Clone, Debug)]
pub struct IntervalHistogram {
    buckets: Box<[Bucket]>,
    touched: Vec<u16>,
}

impl Default for IntervalHistogram {
    fn default() -> Self {
        IntervalHistogram { buckets: vec![Bucket::default(); COUNT].into_boxed_slice(), touched: Vec::new() }
    }
}

impl IntervalHistogram {
    /// Adds an I/O.
    #[inline]
    pub fn add(&mut self, latency_ns: u64, bytes: u64) {
        let index = cut_bucket_of(latency_ns);
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
        self.touched.iter().map(move |&index| (CEILINGS_NS[usize::from(index)], buckets[usize::from(index)]))
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

    #[test]
    fn counts_from_every_power_of_two_of_a_microsecond_and_a_millisecond_on_are_exact() {
        for unit_ns in [1_000_u64, MS_NS] {
            for power in 0..34 {
                let edge_ns = unit_ns << power;
                let mut interval = IntervalHistogram::default();
                [edge_ns - 1, edge_ns, edge_ns + 1].iter().for_each(|&value_ns| interval.add(value_ns, 1));
                let buckets: Vec<(u64, Bucket)> = interval.buckets().collect();
                let (ceiling_ns, below) = buckets[0];
                assert_eq!((ceiling_ns, below.count), (edge_ns - 1, 1), "at {edge_ns}");
                assert_eq!(buckets[1..].iter().map(|(_, bucket)| bucket.count).sum::<u64>(), 2);
            }
        }
        let mut interval = IntervalHistogram::default();
        interval.add(u64::MAX, 1);
        assert_eq!(interval.buckets().next().unwrap().0, u64::MAX);
    }

    proptest! {
        #[test]
        fn a_value_falls_in_the_first_bucket_whose_ceiling_holds_it(value_ns in any::<u64>()) {
            let bucket = cut_bucket_of(value_ns);
            prop_assert!(value_ns <= CEILINGS_NS[bucket]);
            prop_assert!(bucket == 0 || value_ns > CEILINGS_NS[bucket - 1]);
        }

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
