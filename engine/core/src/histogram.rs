//! A latency histogram with a bounded relative error and no ceiling.

/// Buckets for each power of two: a bucket is never wider than 1/128 of its lower edge.
const BUCKETS_PER_OCTAVE_LOG2: u32 = 7;
const BUCKETS_PER_OCTAVE: u64 = 1 << BUCKETS_PER_OCTAVE_LOG2;
pub(crate) const BUCKET_COUNT: usize =
    ((64 - BUCKETS_PER_OCTAVE_LOG2 as usize) + 1) << BUCKETS_PER_OCTAVE_LOG2;

/// Counts and latency sums by bucket, over the whole range of `u64`.
///
/// Values below 256 ns have a bucket each; above, buckets are at most 0.79 % wide. Keeping the sum beside the count makes the
/// latency-weighted distribution exact at bucket edges.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64]>,
    sums_ns: Box<[u64]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Histogram { count, sum_ns, max_ns, .. } = self;
        write!(formatter, "Histogram {{ count: {count}, sum_ns: {sum_ns}, max_ns: {max_ns} }}")
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            counts: vec![0; BUCKET_COUNT].into_boxed_slice(),
            sums_ns: vec![0; BUCKET_COUNT].into_boxed_slice(),
            count: 0,
            sum_ns: 0,
            max_ns: 0,
        }
    }
}

/// The bucket that a value falls in.
#[inline]
pub(crate) fn bucket_of(value_ns: u64) -> usize {
    if value_ns < BUCKETS_PER_OCTAVE {
        return value_ns as usize;
    }
    let octave = 63 - value_ns.leading_zeros();
    let shift = octave - BUCKETS_PER_OCTAVE_LOG2;
    ((u64::from(shift) << BUCKETS_PER_OCTAVE_LOG2) + (value_ns >> shift)) as usize
}

/// The largest value that falls in a bucket.
pub(crate) fn upper_edge_ns(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < BUCKETS_PER_OCTAVE * 2 {
        return bucket;
    }
    let shift = (bucket >> BUCKETS_PER_OCTAVE_LOG2) - 1;
    let mantissa = (bucket & (BUCKETS_PER_OCTAVE - 1)) + BUCKETS_PER_OCTAVE;
    (mantissa << shift) + ((1 << shift) - 1)
}

impl Histogram {
    /// Adds one latency.
    #[inline]
    pub fn add(&mut self, latency_ns: u64) {
        let bucket = bucket_of(latency_ns);
        self.counts[bucket] += 1;
        self.sums_ns[bucket] = self.sums_ns[bucket].saturating_add(latency_ns);
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Adds all that `other` holds.
    pub fn merge(&mut self, other: &Histogram) {
        for (own, other) in self.counts.iter_mut().zip(&other.counts) {
            *own += other;
        }
        for (own, other) in self.sums_ns.iter_mut().zip(&other.sums_ns) {
            *own = own.saturating_add(*other);
        }
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.sums_ns.fill(0);
        (self.count, self.sum_ns, self.max_ns) = (0, 0, 0);
    }

    /// Values added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest value added, exact; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The mean, exact; `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// The upper edge of the bucket that holds the element of rank ceil(p * n): at most 1/128 above the true value.
    /// `None` when empty.
    pub fn percentile_ns(&self, p: f64) -> Option<u64> {
        let rank = ((p * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(upper_edge_ns(bucket).min(self.max_ns));
            }
        }
        None
    }

    /// The share of all latency that belongs to values in buckets up to and including the one of `value_ns`; `None` when empty.
    pub fn latency_weighted_share(&self, value_ns: u64) -> Option<f64> {
        let below: u64 = self.sums_ns[..=bucket_of(value_ns)].iter().sum();
        (self.sum_ns > 0).then(|| below as f64 / self.sum_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_million_fast_ios_and_one_stall() {
        let mut histogram = Histogram::default();
        for _ in 0..1_000_000 {
            histogram.add(5_000);
        }
        histogram.add(1_000_000_000);
        let share = histogram.latency_weighted_share(5_000).unwrap();
        assert!((share - 5.0 / 6.0).abs() < 1e-12, "{share}");
        assert_eq!(histogram.percentile_ns(0.999_999), Some(upper_edge_ns(bucket_of(5_000))));
        assert_eq!(histogram.max_ns(), 1_000_000_000);
    }

    #[test]
    fn an_empty_histogram_has_no_percentile() {
        let empty = Histogram::default();
        assert_eq!(empty.percentile_ns(0.5), None);
        assert_eq!(empty.mean_ns(), None);
        assert_eq!(empty.latency_weighted_share(10), None);
    }

    proptest! {
        #[test]
        fn buckets_are_narrow_and_in_order(value in any::<u64>()) {
            let edge = upper_edge_ns(bucket_of(value));
            prop_assert!(edge >= value);
            prop_assert!((edge - value) as f64 <= value as f64 / 128.0);
            prop_assert!(edge == u64::MAX || bucket_of(edge + 1) == bucket_of(value) + 1);
        }

        #[test]
        fn percentiles_are_within_a_bucket_of_the_nearest_rank(
            mut values in proptest::collection::vec(0_u64..1 << 40, 1..300), p in 0.001_f64..1.0
        ) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            values.sort_unstable();
            let exact = values[((p * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1];
            let found = histogram.percentile_ns(p).unwrap();
            prop_assert!(found >= exact && (found - exact) as f64 <= exact as f64 / 128.0);
        }

        #[test]
        fn merged_histograms_equal_the_whole(
            left in proptest::collection::vec(0_u64..1 << 40, 0..100),
            right in proptest::collection::vec(0_u64..1 << 40, 0..100),
        ) {
            let (mut whole, mut a, mut b) = (Histogram::default(), Histogram::default(), Histogram::default());
            for &value in &left { whole.add(value); a.add(value); }
            for &value in &right { whole.add(value); b.add(value); }
            a.merge(&b);
            prop_assert_eq!(&a.counts, &whole.counts);
            prop_assert_eq!(&a.sums_ns, &whole.sums_ns);
            prop_assert_eq!((a.count, a.sum_ns, a.max_ns), (whole.count, whole.sum_ns, whole.max_ns));
        }
    }
}
