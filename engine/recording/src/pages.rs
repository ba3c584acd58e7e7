//! Column chunks whose every page can be checked: zstd frames with a checksum of their content, and a CRC in the page's header.
//!
//! Readers verify a frame's checksum whenever they decompress it, without being asked to; the CRC is for those that check pages
//! without decompressing them. The Parquet crate writes neither, so that pages are compressed and framed here.

use bytes::Bytes;
use parquet::basic::{CompressionCodec, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::{get_column_writer, get_typed_column_writer, ColumnCloseResult};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::schema::types::SchemaDescPtr;
use zstd::bulk::Compressor;

/// A higher level takes several times as long and saves a few percent.
const ZSTD_LEVEL: i32 = 1;

/// Encodes column chunks, one after the other.
pub(crate) struct ChunkEncoder {
    schema: SchemaDescPtr,
    properties: WriterPropertiesPtr,
    compressor: Compressor<'static>,
    /// Of the page that is being compressed.
    compressed: Vec<u8>,
}

impl ChunkEncoder {
    /// An encoder for the columns of a schema; the properties ask for no compression, since that is done here.
    pub(crate) fn new(schema: SchemaDescPtr, properties: WriterPropertiesPtr) -> std::io::Result<Self> {
        let mut compressor = Compressor::new(ZSTD_LEVEL)?;
        compressor.include_checksum(true)?;
        Ok(ChunkEncoder { schema, properties, compressor, compressed: Vec::new() })
    }

    /// The chunk of one column, and what a row group has to know of it.
    pub(crate) fn encode<T: DataType>(
        &mut self,
        column: usize,
        values: &[T::T],
    ) -> Result<(Bytes, ColumnCloseResult)> {
        let mut chunk = Vec::with_capacity(std::mem::size_of_val(values) / 2);
        let pages = CheckedPages {
            chunk: &mut chunk,
            compressor: &mut self.compressor,
            compressed: &mut self.compressed,
        };
        let writer = get_column_writer(self.schema.column(column), self.properties.clone(), Box::new(pages));
        let mut writer = get_typed_column_writer::<T>(writer);
        writer.write_batch(values, None, None)?;
        let mut close = writer.close()?;
        let metadata = close.metadata.into_builder().set_compression_codec(CompressionCodec::ZSTD);
        close.metadata = metadata.build()?;
        Ok((Bytes::from(chunk), close))
    }
}

/// Takes the pages of a column as they are encoded, and adds them to its chunk.
struct CheckedPages<'a> {
    chunk: &'a mut Vec<u8>,
    compressor: &'a mut Compressor<'static>,
    compressed: &'a mut Vec<u8>,
}

impl PageWriter for CheckedPages<'_> {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        self.compressed.clear();
        self.compressed.reserve(zstd::zstd_safe::compress_bound(page.data().len()));
        self.compressor.compress_to_buffer(page.data(), self.compressed)?;
        let offset = self.chunk.len();
        let crc = crc32fast::hash(self.compressed);
        write_header(self.chunk, page.compressed_page(), self.compressed.len(), crc)?;
        let header_bytes = self.chunk.len() - offset;
        self.chunk.extend_from_slice(self.compressed);

        let mut spec = PageWriteSpec::new();
        spec.page_type = page.page_type();
        spec.uncompressed_size = page.data().len() + header_bytes;
        spec.compressed_size = self.compressed.len() + header_bytes;
        spec.num_values = page.num_values();
        spec.offset = offset as u64;
        spec.bytes_written = (self.chunk.len() - offset) as u64;
        Ok(spec)
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Types of Thrift's compact protocol, as they stand in the lower half of a field's first byte.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const STRUCT: u8 = 12;
/// Ends a struct.
const STOP: u8 = 0;

/// Writes the header of a page: Parquet's `PageHeader`, in Thrift's compact protocol.
fn write_header(out: &mut Vec<u8>, page: &Page, compressed_bytes: usize, crc: u32) -> Result<()> {
    let size = |bytes: usize| {
        i32::try_from(bytes).map_err(|_| ParquetError::General(format!("a page of {bytes} bytes")))
    };
    let page_type = if page.is_dictionary_page() { PageType::DICTIONARY_PAGE } else { PageType::DATA_PAGE };
    for value in [page_type as i32, size(page.buffer().len())?, size(compressed_bytes)?, crc.cast_signed()] {
        write_i32(out, value);
    }
    match page {
        Page::DataPage { num_values, encoding, def_level_encoding, rep_level_encoding, .. } => {
            out.push(1 << 4 | STRUCT);
            write_i32(out, num_values.cast_signed());
            for encoding in [encoding, def_level_encoding, rep_level_encoding] {
                write_i32(out, number(*encoding));
            }
        }
        Page::DictionaryPage { num_values, encoding, is_sorted, .. } => {
            // The seventh field, after the fourth.
            out.push(3 << 4 | STRUCT);
            write_i32(out, num_values.cast_signed());
            write_i32(out, number(*encoding));
            out.push(1 << 4 | if *is_sorted { TRUE } else { FALSE });
        }
        Page::DataPageV2 { .. } => {
            return Err(ParquetError::NYI("segments have data pages of version 1".into()));
        }
    }
    out.extend([STOP, STOP]);
    Ok(())
}

/// A field of 32 bits whose number is one more than that of the field before.
fn write_i32(out: &mut Vec<u8>, value: i32) {
    out.push(1 << 4 | I32);
    let mut rest = ((value << 1) ^ (value >> 31)).cast_unsigned();
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// What Parquet calls an encoding by.
fn number(encoding: Encoding) -> i32 {
    encoding as i32
}
