//! The Parquet schemas of a recording: plain integer columns, the int64 ones first.

use parquet::basic::{Encoding, Repetition, Type as PhysicalType};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnPath, Type};
use std::sync::Arc;

/// The columns of `ios/NNNNN.parquet` and `slowest/NNNNN.parquet`, in order.
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

/// The columns of `intervals/NNNNN.parquet`, in order.
pub const INTERVAL_COLUMN_NAMES: [&str; 11] = [
    "start_ns",
    "latency_ceiling_ns",
    "kept_from_ns",
    "count",
    "sum_ns",
    "max_ns",
    "bytes",
    "quantity",
    "opcode",
    "stream",
    "phase",
];

/// I/Os.
pub(crate) const IOS: Table = Table { name: "io", columns: &COLUMN_NAMES, wide: 5 };
/// Histograms.
pub(crate) const INTERVALS: Table = Table { name: "interval", columns: &INTERVAL_COLUMN_NAMES, wide: 7 };

/// A kind of segment.
pub(crate) struct Table {
    name: &'static str,
    /// The first are int64, the others int32.
    pub(crate) columns: &'static [&'static str],
    /// How many are int64.
    pub(crate) wide: usize,
}

impl Table {
    /// The message type of a segment.
    pub(crate) fn message_type(&self) -> Arc<Type> {
        let columns = self.columns.iter().enumerate().map(|(index, name)| {
            let physical = if index < self.wide { PhysicalType::INT64 } else { PhysicalType::INT32 };
            let column =
                Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED).build();
            Arc::new(column.expect("a plain integer column is valid"))
        });
        let message = Type::group_type_builder(self.name).with_fields(columns.collect()).build();
        Arc::new(message.expect("a group of distinct columns is valid"))
    }

    /// How segments are encoded. Spark before 3.5 cannot read BYTE_STREAM_SPLIT, so times use delta encoding. Compression is not
    /// among it: see `pages`.
    pub(crate) fn writer_properties(&self) -> WriterProperties {
        let mut builder = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(concat!("testdrive-engine ", env!("CARGO_PKG_VERSION")).to_string());
        for (index, name) in self.columns.iter().enumerate() {
            let path = ColumnPath::from(*name);
            if index < self.wide {
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
    pub(crate) fn mismatch(&self, found: &Type) -> Option<String> {
        let expected = self.message_type();
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
}
