//! fio's iolog, versions 2 and 3: what `write_iolog` writes and `read_iolog` replays.

use crate::format::{Carries, Decoded};
use crate::rows::cells::check_end;
use crate::rows::{plain, Bad, Block, Cells, Gather, LineParser, TextFormat, ABSENT_OF_PLAIN};
use crate::Options;
use testdrive_core::Opcode;

/// The format. Version 2: `file action offset length`. Version 3 puts the time in us before that. Offset and length are in bytes.
pub(crate) struct FioIolog;

impl TextFormat for FioIolog {
    const NAME: &'static str = "fio-iolog";
    const DESCRIPTION: &'static str = "fio iolog, versions 2 and 3; version 2 has no times but waits";
    const CARRIES: Carries = Carries { queue_events: false, completions: false, trims: true, volumes: true };
    const ABSENT: &'static [&'static str] = ABSENT_OF_PLAIN;
    type Parser = Parser;

    fn parser(_options: &Options) -> Parser {
        Parser::default()
    }

    /// The first line says so; a log need not hold an I/O within its first lines.
    fn fits(head: &[u8]) -> bool {
        let end = head.iter().position(|&byte| byte == b'\n').unwrap_or(head.len());
        Version::of(head[..end].trim_ascii_end()).is_ok()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

impl Version {
    fn of(line: &[u8]) -> Result<Version, Bad> {
        match line {
            b"fio version 2 iolog" => Ok(Version::Two),
            b"fio version 3 iolog" => Ok(Version::Three),
            _ => Err(Bad::cell(
                "the first line",
                line,
                "is neither 'fio version 2 iolog' nor 'fio version 3 iolog'",
            )),
        }
    }
}

#[derive(Default)]
pub(crate) struct Parser {
    version: Option<Version>,
    /// Where the waits of version 2 have come to: each is relative to the one before.
    waited_ns: i64,
    has_waits: bool,
}

impl LineParser for Parser {
    fn is_header(&mut self, _line: &[u8]) -> bool {
        false
    }

    fn is_comment(&self, _line: &[u8]) -> bool {
        false
    }

    fn parse(&mut self, line: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad> {
        let Some(version) = self.version else {
            self.version = Some(Version::of(line.trim_ascii())?);
            return Ok(());
        };
        if line.starts_with(b"fio version") {
            let reason = "another log begins here, since fio adds to a log that is there already: split the file at this line and \
                          import one part at a time";
            return Err(Bad::new(reason));
        }
        let mut cells = Cells::words(line);
        let time_ns = match version {
            Version::Two => self.waited_ns,
            Version::Three => cells.scaled("the timestamp", 3)?,
        };
        let file = cells.cell("the file")?;
        let opcode = match cells.cell("the action")? {
            b"add" | b"open" | b"close" => return cells.end(),
            b"wait" if version == Version::Two => return self.wait(&mut cells),
            b"read" => Opcode::Read,
            b"write" => Opcode::Write,
            b"trim" => Opcode::Trim,
            b"sync" | b"datasync" => Opcode::Flush,
            action => return Err(Bad::cell("the action", action, "fio does not have")),
        };
        let offset_bytes = cells.whole("the offset")?;
        let length_bytes = cells.whole("the length")?;
        cells.end()?;
        check_end(offset_bytes, length_bytes)?;
        let volume = gather.volume(file, || String::from_utf8_lossy(file).into_owned())?;
        let record = match opcode {
            Opcode::Flush => plain(time_ns, opcode, 0, 0),
            _ => plain(time_ns, opcode, offset_bytes, length_bytes),
        };
        block.push(gather, volume, record);
        Ok(())
    }

    fn describe(&self, decoded: &mut Decoded) {
        if self.version == Some(Version::Two) && !self.has_waits {
            decoded.absent("intended_ns");
            decoded.warn(
                "no_times",
                "the log is of version 2 and has neither times nor waits: only the order of its I/Os is known".into(),
                "replay it with --pace asap, or write a log of version 3 with fio 3.31 or newer",
            );
        }
    }
}

impl Parser {
    fn wait(&mut self, cells: &mut Cells<'_>) -> Result<(), Bad> {
        let wait_ns = cells.scaled("the wait", 3)?;
        let waited_ns = self.waited_ns.checked_add(wait_ns);
        self.waited_ns = waited_ns.ok_or_else(|| Bad::new("the waits together are too large"))?;
        self.has_waits = true;
        Ok(())
    }
}
