//! What a phase's generators are to do on a given drive: the job's shares and sizes become bytes and I/Os.

use crate::administer::Administration;
use crate::error::RunError;
use crate::job::PhaseJob;
use crate::job_generated::{ArrivalsJob, BlockBytes, BlockShare, HotSpot, Pattern, SyntheticJob};
use crate::job_prepare::{PrepareJob, PrepareMethod};
use crate::places::{Extent, Once, Places, Zone};
use crate::throttle::OnOff;
use testdrive_core::{Flags, SplitMix64};
use testdrive_recording::DriveIdentity;

/// When a phase ends; whichever comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// So many I/Os.
    pub ios: Option<u64>,
    /// So many bytes.
    pub bytes: Option<u64>,
    /// So many bytes written.
    pub written_bytes: Option<u64>,
}

impl Ends {
    /// What falls to the `index`-th of `count` generators.
    pub fn part(&self, index: u64, count: u64) -> Ends {
        let part = |whole: Option<u64>| whole.map(|whole| whole / count + u64::from(index < whole % count));
        Ends { ios: part(self.ios), bytes: part(self.bytes), written_bytes: part(self.written_bytes) }
    }
}

/// Generated I/Os, of all threads together.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Where.
    pub extent: Extent,
    /// In which order.
    pub pattern: Pattern,
    /// Share of reads.
    pub read_share: f64,
    /// Share of trims.
    pub trim_share: f64,
    /// Share of writes.
    pub write_share: f64,
    /// What writes have beside their place.
    pub write_flags: Flags,
    /// How long I/Os are.
    pub blocks: Vec<BlockShare>,
    /// Multiples for offsets.
    pub alignment_bytes: Option<u64>,
    /// Zones of the span.
    pub hot_spots: Vec<HotSpot>,
    /// When it ends.
    pub ends: Ends,
    /// Of everything that is drawn.
    pub seed: u64,
    /// How many generators share it.
    pub threads: u64,
    /// When I/Os go, of an open loop.
    pub arrivals: Option<ArrivalsJob>,
    /// When it rests.
    pub on_off: Option<OnOff>,
    /// Which of several streams it is.
    pub stream: Option<StreamPlace>,
}

/// A stream among those of its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPlace {
    /// Which.
    pub index: i32,
    /// Of how many.
    pub count: i32,
}

impl Workload {
    /// What a phase generates on a drive: one workload, or one for each of its streams; none for a replay, nor for what
    /// the drive does as a whole.
    ///
    /// # Errors
    /// A usage error where the phase does not fit the drive.
    pub fn all_of(phase: &PhaseJob, drive: &DriveIdentity) -> Result<Vec<Workload>, RunError> {
        let workloads = match phase {
            PhaseJob::Replay(_) => Vec::new(),
            _ if Administration::of(phase).is_some() => Vec::new(),
            PhaseJob::Prepare(job) => vec![Workload::of_prepare(job, drive)?],
            PhaseJob::Synthetic(job) if job.streams.is_empty() => vec![Workload::of_synthetic(job, drive)?],
            PhaseJob::Synthetic(job) => {
                let count = job.streams.len() as i32;
                let stream = |(part, index): (SyntheticJob, i32)| {
                    let workload = Workload::of_synthetic(&part, drive)?;
                    // Streams draw from sequences of their own, as threads do.
                    let seed = match index {
                        0 => workload.seed,
                        _ => SplitMix64::new(workload.seed.rotate_left(16) ^ index as u64).next_u64(),
                    };
                    Ok(Workload { seed, stream: Some(StreamPlace { index, count }), ..workload })
                };
                job.parts().into_iter().zip(0..).map(stream).collect::<Result<_, RunError>>()?
            }
        };
        for workload in &workloads {
            workload.check_zones()?;
            workload.check_parts()?;
        }
        Ok(workloads)
    }

    /// Where in its first gap a stream with constant arrivals begins, so that streams of one rate do not go together.
    pub fn stagger(&self) -> f64 {
        self.stream.map_or(0.0, |place| f64::from(place.index) / f64::from(place.count))
    }

    /// Each thread has a part of a sequential pass to itself, which must hold an I/O.
    fn check_parts(&self) -> Result<(), RunError> {
        let Workload { threads, extent, .. } = self;
        let part_bytes = extent.part(*threads - 1, *threads, self.grain_bytes()).length_bytes;
        if self.pattern != Pattern::Sequential || *threads == 1 || part_bytes >= self.grain_bytes() {
            return Ok(());
        }
        Err(RunError::usage(format!(
            "threads is {threads}, and the span of {} bytes does not hold an I/O of {} for each: give fewer, or a larger span",
            extent.length_bytes,
            self.grain_bytes()
        )))
    }

    /// What whole parts of the span are made of.
    fn grain_bytes(&self) -> u64 {
        self.longest_bytes().max(self.alignment_bytes.unwrap_or(0))
    }

    fn of_prepare(job: &PrepareJob, drive: &DriveIdentity) -> Result<Workload, RunError> {
        let block_bytes = job.block_bytes();
        check_multiple("block_bytes", block_bytes, drive)?;
        let purge = job.method == PrepareMethod::Purge;
        // A trim has no least length, so a small drive is purged all the same.
        let least_bytes = if purge { drive.logical_block_bytes } else { block_bytes };
        let span = Span { offset_bytes: job.offset_bytes, bytes: job.span_bytes, share: job.span_share };
        let extent = span.on(drive, least_bytes, least_bytes)?;
        let random = job.method == PrepareMethod::Random;
        let once = if random {
            extent.length_bytes / block_bytes
        } else {
            extent.length_bytes.div_ceil(block_bytes)
        };
        Ok(Workload {
            extent,
            pattern: if random { Pattern::Random } else { Pattern::Sequential },
            read_share: 0.0,
            trim_share: if purge { 1.0 } else { 0.0 },
            write_share: if purge { 0.0 } else { 1.0 },
            write_flags: Flags::NONE,
            blocks: BlockBytes::One(block_bytes).shares(drive.logical_block_bytes),
            alignment_bytes: None,
            hot_spots: Vec::new(),
            ends: Ends { ios: Some((job.fills * once as f64).ceil() as u64), ..Ends::default() },
            seed: job.seed,
            threads: 1,
            arrivals: None,
            on_off: None,
            stream: None,
        })
    }

    fn of_synthetic(job: &SyntheticJob, drive: &DriveIdentity) -> Result<Workload, RunError> {
        let blocks = job.block_bytes.shares(drive.logical_block_bytes);
        for block in &blocks {
            check_multiple("block_bytes", block.bytes, drive)?;
        }
        let alignment_bytes =
            job.alignment_bytes.or_else(|| job.block_bytes.alignment_bytes(drive.logical_block_bytes));
        if let Some(alignment_bytes) = alignment_bytes {
            check_multiple("alignment_bytes", alignment_bytes, drive)?;
        }
        let longest_bytes = blocks.iter().map(|block| block.bytes).max().unwrap_or(0);
        let grain_bytes = longest_bytes.max(alignment_bytes.unwrap_or(0));
        let span = Span { offset_bytes: job.offset_bytes, bytes: job.span_bytes, share: job.span_share };
        let filled_bytes = |fills: f64| (fills * drive.capacity_bytes as f64).ceil() as u64;
        Ok(Workload {
            extent: span.on(drive, longest_bytes, grain_bytes)?,
            pattern: job.pattern,
            read_share: job.read_share,
            trim_share: job.trim_share,
            write_share: job.write_share(),
            write_flags: if job.fua { Flags::FUA } else { Flags::NONE },
            blocks,
            alignment_bytes,
            hot_spots: job.hot_spots.clone(),
            ends: Ends { ios: job.ios, bytes: job.bytes, written_bytes: job.drive_fills.map(filled_bytes) },
            seed: job.seed,
            threads: u64::from(job.threads),
            arrivals: job.arrivals.clone(),
            on_off: job.on_off(),
            stream: None,
        })
    }

    /// The longest transfer; trims transfer nothing.
    pub fn transfer_bytes_max(&self) -> u64 {
        if self.trim_share >= 1.0 {
            return 0;
        }
        self.longest_bytes()
    }

    fn longest_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).max().unwrap_or(0)
    }

    /// I/Os to come, where every end that counts can be told in I/Os.
    pub fn planned_ios(&self) -> Option<u64> {
        let Ends { ios, bytes, written_bytes } = self.ends;
        let in_ios = |bytes: u64| match self.blocks[..] {
            [block] => Some(bytes.div_ceil(block.bytes)),
            _ => None,
        };
        let counted = [
            ios.map(Some),
            bytes.map(in_ios),
            written_bytes.map(|bytes| in_ios(bytes).filter(|_| self.write_share == 1.0)),
        ];
        let counted: Option<Vec<u64>> = counted.into_iter().flatten().collect();
        counted?.into_iter().min()
    }

    /// The places of the `index`-th of `count` generators. Each has a part of a sequential pass to itself.
    pub fn places(&self, index: u64, count: u64, seed: u64) -> Places {
        let alignment_bytes = self.alignment_bytes;
        match self.pattern {
            Pattern::Random if self.hot_spots.is_empty() => {
                Places::Random { extent: self.extent, alignment_bytes, counted: (0, 0) }
            }
            Pattern::Random => Places::Zones { zones: self.zones(), alignment_bytes },
            Pattern::Sequential => {
                let extent = self.extent.part(index, count, self.grain_bytes());
                Places::Sequential { extent, alignment_bytes, cursor_bytes: 0 }
            }
            Pattern::RandomOnce => {
                let length_bytes = self.longest_bytes();
                Places::Once(Once::new(self.extent, length_bytes, alignment_bytes, seed, (index, count)))
            }
        }
    }

    /// The hot spots from the span's start on, and what is left of it.
    fn zones(&self) -> Vec<Zone> {
        let grain_bytes = self.grain_bytes();
        let Extent { offset_bytes, length_bytes } = self.extent;
        let (mut span_until, mut access_until, mut end_bytes) = (0.0, 0.0, 0);
        let mut zones = Vec::with_capacity(self.hot_spots.len() + 1);
        for spot in &self.hot_spots {
            (span_until, access_until) = (span_until + spot.span_share, access_until + spot.access_share);
            let start_bytes = end_bytes;
            let wanted_bytes = (span_until * length_bytes as f64).round() as u64;
            end_bytes = (wanted_bytes / grain_bytes * grain_bytes).min(length_bytes);
            let extent =
                Extent { offset_bytes: offset_bytes + start_bytes, length_bytes: end_bytes - start_bytes };
            zones.push(Zone { extent, access_until });
        }
        let rest = Extent { offset_bytes: offset_bytes + end_bytes, length_bytes: length_bytes - end_bytes };
        if access_until > 1.0 - 1e-6 {
            // Rounding must not send I/Os beyond the last zone that has a share.
            zones.iter_mut().for_each(|zone| zone.access_until /= access_until);
        } else {
            zones.push(Zone { extent: rest, access_until: 1.0 });
        }
        zones
    }

    fn check_zones(&self) -> Result<(), RunError> {
        if self.hot_spots.is_empty() {
            return Ok(());
        }
        let mut access_before = 0.0;
        for (index, zone) in self.zones().iter().enumerate() {
            let (has_ios, bytes) = (zone.access_until > access_before, zone.extent.length_bytes);
            if has_ios && bytes < self.longest_bytes() {
                let which = match self.hot_spots.get(index) {
                    Some(_) => format!("hot_spots[{index}] comes to"),
                    None => "hot_spots leave".into(),
                };
                return Err(RunError::usage(format!(
                    "{which} {bytes} bytes, less than one I/O of {}: give larger shares, or a larger span",
                    self.longest_bytes()
                )));
            }
            access_before = zone.access_until;
        }
        Ok(())
    }
}

/// A span as the job has it.
struct Span {
    offset_bytes: u64,
    bytes: Option<u64>,
    share: Option<f64>,
}

impl Span {
    /// Where it is on a drive: a share is rounded down to whole grains.
    fn on(&self, drive: &DriveIdentity, least_bytes: u64, grain_bytes: u64) -> Result<Extent, RunError> {
        let (offset_bytes, capacity_bytes) = (self.offset_bytes, drive.capacity_bytes);
        check_multiple("offset_bytes", offset_bytes, drive)?;
        if let Some(span_bytes) = self.bytes {
            check_multiple("span_bytes", span_bytes, drive)?;
        }
        let rest_bytes = capacity_bytes.saturating_sub(offset_bytes);
        let (length_bytes, key) = match (self.bytes, self.share) {
            (Some(bytes), _) => (bytes, "span_bytes"),
            (None, Some(share)) if share < 1.0 => {
                ((share * capacity_bytes as f64) as u64 / grain_bytes * grain_bytes, "span_share")
            }
            (None, Some(_)) => (capacity_bytes, "span_share"),
            (None, None) => (rest_bytes, "offset_bytes"),
        };
        if length_bytes > rest_bytes || length_bytes < least_bytes {
            return Err(RunError::usage(format!(
                "{} has {capacity_bytes} bytes; {key} leaves a span of {length_bytes} from {offset_bytes} on, where {} fit and \
                 one I/O needs {least_bytes}: give another span, a smaller block_bytes or a larger drive",
                drive.uri, rest_bytes
            )));
        }
        Ok(Extent { offset_bytes, length_bytes })
    }
}

fn check_multiple(key: &str, bytes: u64, drive: &DriveIdentity) -> Result<(), RunError> {
    if bytes.is_multiple_of(drive.logical_block_bytes) {
        return Ok(());
    }
    let DriveIdentity { uri, logical_block_bytes, .. } = drive;
    Err(RunError::usage(format!(
        "{key} is {bytes}, and {uri} has blocks of {logical_block_bytes}: give a multiple"
    )))
}
