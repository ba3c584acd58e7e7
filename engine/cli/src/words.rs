//! A capture's progress in words, for a person at a terminal of a host that has nothing else of testdrive.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};
use testdrive_capture::{Event, FinishedRecording, Progress};
use testdrive_drives::size_text;
use testdrive_recording::Status;

/// Between two lines where they stay.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How words are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// Nobody reads them.
    Silent,
    /// Progress is a line every few seconds.
    Lines,
    /// Progress is one line that is written again and again.
    Live,
}

/// Shows what happens, on standard error.
pub struct Words {
    style: Style,
    told: Option<Instant>,
    /// A line stands that is to be written over.
    is_open: bool,
}

impl Words {
    /// Words where a person looks: on a terminal, or where JSON would go to one.
    pub fn for_terminals() -> Words {
        let style = match (std::io::stderr().is_terminal(), std::io::stdout().is_terminal()) {
            (true, _) => Style::Live,
            (false, true) => Style::Lines,
            (false, false) => Style::Silent,
        };
        Words { style, told: None, is_open: false }
    }

    /// Shows an event.
    pub fn tell(&mut self, event: &Event) {
        if self.style == Style::Silent {
            return;
        }
        match event {
            Event::Progress(progress) if self.style == Style::Live => {
                self.write_over(&progress_text(progress))
            }
            Event::Progress(progress) => {
                if self.told.is_none_or(|told| told.elapsed() >= LINE_EVERY) {
                    self.told = Some(Instant::now());
                    self.line(&progress_text(progress));
                }
            }
            other => sentences(other).iter().for_each(|sentence| self.line(sentence)),
        }
    }

    fn line(&mut self, text: &str) {
        let end_of_open = if std::mem::take(&mut self.is_open) { "\n" } else { "" };
        // Whoever closed standard error does not want to know.
        let _ = writeln!(std::io::stderr(), "{end_of_open}{text}");
    }

    fn write_over(&mut self, text: &str) {
        self.is_open = true;
        let mut error = std::io::stderr();
        let _ = write!(error, "\r\x1b[K{text}").and_then(|()| error.flush());
    }
}

/// What is said of anything but progress.
fn sentences(event: &Event) -> Vec<String> {
    match event {
        Event::Started { devices, buffer_bytes_per_cpu, planned_ns, .. } => {
            let ends =
                planned_ns.map_or("until Ctrl-C".into(), |planned| format!("for {}", clock_text(planned)));
            let mut said: Vec<String> = devices
                .iter()
                .map(|device| {
                    let named = [&device.drive.model, &device.drive.serial];
                    let named: Vec<&str> =
                        named.into_iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
                    let size = size_text(device.drive.capacity_bytes);
                    let what = if named.is_empty() { size } else { format!("{}, {size}", named.join(" ")) };
                    format!("capturing {} ({what}) into {}", device.device, device.output.display())
                })
                .collect();
            let buffer = size_text(*buffer_bytes_per_cpu);
            said.push(format!("{ends}; the kernel has a buffer of {buffer} for each CPU"));
            said
        }
        Event::Progress(progress) => vec![progress_text(progress)],
        Event::Warning(warning) => vec![format!("warning: {}; {}", warning.message, warning.remedy)],
        Event::Finished { status, reason, events_lost, recordings, .. } => {
            let mut said: Vec<String> = recordings.iter().map(recording_text).collect();
            if *status != Status::Complete || reason.is_some() {
                let status = if *status == Status::Failed { "failed" } else { "ended early" };
                said.push(format!("{status}: {}", reason.as_deref().unwrap_or("no reason is known")));
            }
            said.push(match events_lost {
                0 => "no event was lost".into(),
                lost => format!("{} events were lost: the recording says so in every report", grouped(*lost)),
            });
            let names: Vec<String> =
                recordings.iter().map(|each| each.output.display().to_string()).collect();
            said.push(format!("next: testdrive inspect {}", names.join(" ")));
            said
        }
    }
}

fn recording_text(recording: &FinishedRecording) -> String {
    let span = clock_text(u64::try_from(recording.counts.span_ns).unwrap_or(0));
    let ios = grouped(recording.counts.ios);
    format!("{}: {ios} I/Os over {span} in {}", recording.device, recording.output.display())
}

fn progress_text(progress: &Progress) -> String {
    let total = &progress.total;
    let share = progress.done_share.map_or(String::new(), |share| format!("{:3.0} %  ", 100.0 * share));
    format!(
        "{}  {share}{} I/Os  {} IOPS  {}/s  {} recorded  {} events lost",
        clock_text(progress.elapsed_ns),
        grouped(total.ios),
        grouped(total.iops as u64),
        size_text(total.throughput_bytes_per_s as u64),
        size_text(progress.recorded_bytes),
        grouped(progress.events_lost),
    )
}

/// `1:05` or `2:00:00`; below a second in milliseconds.
fn clock_text(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match (seconds, seconds / 3600) {
        (0, _) => format!("{} ms", ns / 1_000_000),
        (_, 0) => format!("{}:{:02}", seconds / 60, seconds % 60),
        (_, hours) => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// `1,234,567`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdrive_capture::DeviceProgress;

    #[test]
    fn progress_is_one_line_with_rates_and_losses() {
        let total = DeviceProgress {
            ios: 1_234_567,
            iops: 98_765.4,
            throughput_bytes_per_s: 4.04e8,
            ..DeviceProgress::default()
        };
        let progress = Progress {
            elapsed_ns: 12_500_000_000,
            done_share: Some(0.21),
            events_lost: 0,
            recorded_bytes: 12_000_000,
            total,
            devices: Vec::new(),
        };
        let text = progress_text(&progress);
        assert_eq!(
            text,
            "0:12   21 %  1,234,567 I/Os  98,765 IOPS  404 MB/s  12.0 MB recorded  0 events lost"
        );
    }

    #[test]
    fn the_end_says_what_was_lost_and_what_to_do_next() {
        let event = Event::Finished {
            status: Status::Interrupted,
            reason: Some("stopped".into()),
            output: "a.rec".into(),
            counts: Default::default(),
            events_lost: 1000,
            recordings: vec![FinishedRecording {
                device: "sda".into(),
                output: "a.rec".into(),
                status: Status::Interrupted,
                counts: Default::default(),
                dropped: Vec::new(),
            }],
        };
        let said = sentences(&event);
        assert_eq!(said[0], "sda: 0 I/Os over 0 ms in a.rec");
        assert_eq!(said[1], "ended early: stopped");
        assert!(said[2].contains("1,000 events were lost"));
        assert_eq!(said[3], "next: testdrive inspect a.rec");
    }

    #[test]
    fn times_and_numbers_read_easily() {
        let texts: Vec<String> = [999_000_000, 65_000_000_000, 7_200_000_000_000].map(clock_text).into();
        assert_eq!(texts, ["999 ms", "1:05", "2:00:00"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
