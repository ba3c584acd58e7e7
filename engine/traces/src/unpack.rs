//! What a file holds, whether or not it is packed: gzip and zstd are unpacked while they are read.

use crate::TraceError;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

const BUFFER_BYTES: usize = 64 << 10;
/// Enough to tell how a file is packed.
const MAGIC_BYTES: usize = 4;

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Packing {
    fn of(head: &[u8]) -> Packing {
        match head {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
            _ => Packing::None,
        }
    }
}

/// The name of a file without what its packing added: `prod.load` of `prod.load.gz`.
pub(crate) fn plain_name(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let packed = [".gz", ".zst"].iter().find_map(|suffix| name.strip_suffix(suffix));
    packed.map_or(name.clone(), String::from)
}

enum Stream {
    Plain(Source),
    Gzip(Box<MultiGzDecoder<BufReader<Source>>>),
    Zstd(Box<zstd::Decoder<'static, BufReader<Source>>>),
}

/// The content of a file. What is wrong with its packing is an [`std::io::Error`] that [`Content::error`] puts into words.
pub(crate) struct Content {
    path: PathBuf,
    stream: Stream,
    packing: Packing,
    file_bytes: Arc<AtomicU64>,
    /// Bytes handed out.
    offset: u64,
}

impl Content {
    pub fn open(path: &Path) -> Result<Content, TraceError> {
        let mut file = File::open(path).map_err(TraceError::io("open", path))?;
        // What was read of a pipe cannot be read again, so that it is put in front of the rest.
        let mut head = Vec::with_capacity(MAGIC_BYTES);
        Read::by_ref(&mut file)
            .take(MAGIC_BYTES as u64)
            .read_to_end(&mut head)
            .map_err(TraceError::io("read", path))?;
        let packing = Packing::of(&head);
        let file_bytes = Arc::new(AtomicU64::new(head.len() as u64));
        let source = Source { head, file, bytes: Arc::clone(&file_bytes) };
        let stream = match packing {
            Packing::None => Stream::Plain(source),
            Packing::Gzip => Stream::Gzip(Box::new(MultiGzDecoder::new(buffered(source)))),
            Packing::Zstd => {
                let decoder = zstd::Decoder::with_buffer(buffered(source));
                Stream::Zstd(Box::new(decoder.map_err(TraceError::io("unpack", path))?))
            }
        };
        Ok(Content { path: path.to_path_buf(), stream, packing, file_bytes, offset: 0 })
    }

    /// A count of the bytes that were read of the file itself, which grows as the content is read.
    pub fn file_bytes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.file_bytes)
    }

    /// What to say of an error while reading.
    pub fn error(&self, error: std::io::Error) -> TraceError {
        let packing = match self.packing {
            Packing::None => return TraceError::io("read", &self.path)(error),
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
        };
        if error.raw_os_error().is_some() {
            return TraceError::io("read", &self.path)(error);
        }
        let reason = format!(
            "after so much of its content the {packing} data is cut off or damaged ({error}): copy the file again"
        );
        TraceError::damaged(&self.path, crate::Place::Byte(self.offset), reason)
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = match &mut self.stream {
            Stream::Plain(source) => source.read(buffer),
            Stream::Gzip(decoder) => decoder.read(buffer),
            Stream::Zstd(decoder) => decoder.read(buffer),
        }?;
        self.offset += count as u64;
        Ok(count)
    }
}

fn buffered(source: Source) -> BufReader<Source> {
    BufReader::with_capacity(BUFFER_BYTES, source)
}

/// The file, with a count of what was read of it. It need not be a regular one.
struct Source {
    /// What was read to look at it.
    head: Vec<u8>,
    file: File,
    bytes: Arc<AtomicU64>,
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let again = self.head.len().min(buffer.len());
        buffer[..again].copy_from_slice(&self.head[..again]);
        let count = self.file.read(&mut buffer[again..])?;
        self.head.drain(..again);
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(again + count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn read(packed: &[u8]) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        std::fs::write(&path, packed).unwrap();
        let mut content = Content::open(&path).unwrap();
        let mut plain = Vec::new();
        let result = content.read_to_end(&mut plain).map_err(|error| content.error(error).to_string());
        assert!(content.file_bytes().load(Ordering::Relaxed) <= packed.len() as u64);
        result.map(|_| plain)
    }

    #[test]
    fn plain_and_packed_content_is_the_same() {
        let plain: Vec<u8> = (0..200_000_u32).flat_map(|n| (n % 251).to_string().into_bytes()).collect();
        assert_eq!(read(&plain).unwrap(), plain);
        assert_eq!(read(&gzip(&plain)).unwrap(), plain);
        assert_eq!(read(&zstd::encode_all(&plain[..], 1).unwrap()).unwrap(), plain);
        assert_eq!(read(b"").unwrap(), b"");
        assert_eq!(read(b"\x1f").unwrap(), b"\x1f");
    }

    #[test]
    fn members_that_were_joined_are_read_one_after_the_other() {
        assert_eq!(read(&[gzip(b"one "), gzip(b"two")].concat()).unwrap(), b"one two");
        let frames = [zstd::encode_all(&b"one "[..], 1).unwrap(), zstd::encode_all(&b"two"[..], 1).unwrap()];
        assert_eq!(read(&frames.concat()).unwrap(), b"one two");
    }

    #[test]
    fn packed_data_that_is_cut_off_or_damaged_is_said_to_be_so() {
        let plain: Vec<u8> = (0..50_000_u32).flat_map(|n| n.to_le_bytes()).collect();
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(&plain).unwrap();
        for packed in [gzip(&plain), encoder.finish().unwrap()] {
            let message = read(&packed[..packed.len() / 2]).unwrap_err();
            assert!(message.contains("cut off or damaged") && message.contains("byte "), "{message}");
            let mut damaged = packed.clone();
            damaged[packed.len() / 2] ^= 0xff;
            damaged[packed.len() / 2 + 1] ^= 0xff;
            assert!(read(&damaged).is_err_and(|message| message.contains("cut off or damaged")));
        }
    }

    #[test]
    fn the_name_of_a_packed_file_is_that_of_its_content() {
        assert_eq!(plain_name(Path::new("/a/prod.load.gz")), "prod.load");
        assert_eq!(plain_name(Path::new("prod.csv")), "prod.csv");
    }
}
