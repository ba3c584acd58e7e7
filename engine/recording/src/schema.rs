//! The Parquet schema of `ios/NNNNN.parquet`.

use parquet::basic::{Compression, Encoding, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnPath, Type};
use std::sync::Arc;

/// The columns, in order. The first [`WIDE_COLUMNS`] are int64, the others int32.
pub const COLUMN_NAMES: [&str; 10] = [
    "intended_ns",
    "submit_ns",
    "latency_ns",
    "offset_bytes",
    "length_bytes",
    "opcode",
    "flags",
    "stream",
    "status",
    "phase",
];

/// How many of [`COLUMN_NAMES`] are int64.
pub(crate) const WIDE_COLUMNS: usize = 5;

/// The message type of a segment.
pub(crate) fn message_type() -> Arc<Type> {
    let columns = COLUMN_NAMES.iter().enumerate().map(|(index, name)| {
        let physical = if index < WIDE_COLUMNS { PhysicalType::INT64 } else { PhysicalType::INT32 };
        let column =
            Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED).build();
        Arc::new(column.expect("a plain integer column is valid"))
    });
    let message = Type::group_type_builder("io").with_fields(columns.collect()).build();
    Arc::new(message.expect("a group of distinct columns is valid"))
}

/// How segments are encoded. Spark before 3.5 cannot read BYTE_STREAM_SPLIT, so times use delta encoding.
pub(crate) fn writer_properties() -> WriterProperties {
    let level = ZstdLevel::try_new(1).expect("zstd has a level 1");
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("testdrive-engine ", env!("CARGO_PKG_VERSION")).to_string());
    for (index, name) in COLUMN_NAMES.iter().enumerate() {
        let path = ColumnPath::from(*name);
        if index < WIDE_COLUMNS {
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        } else {
            builder = builder.set_column_dictionary_enabled(path, true);
        }
    }
    builder.build()
}

/// What is wrong with a segment's schema, or `None` when it is the format's.
pub(crate) fn mismatch(found: &Type) -> Option<String> {
    let expected = message_type();
    for column in expected.get_fields() {
        let Some(own) = found.get_fields().iter().find(|own| own.name() == column.name()) else {
            return Some(format!("it has no column '{}'", column.name()));
        };
        if !own.is_primitive() || own.get_physical_type() != column.get_physical_type() {
            return Some(format!("its column '{}' is not {}", column.name(), column.get_physical_type()));
        }
        if own.is_optional() {
            return Some(format!("its column '{}' may hold nulls", column.name()));
        }
    }
    let expected_names = expected.get_fields().iter().map(|column| column.name());
    if !found.get_fields().iter().map(|column| column.name()).eq(expected_names) {
        return Some("its columns are not those of the format, in their order".into());
    }
    None
}
