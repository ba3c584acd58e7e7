//! Encoders as a whole: rows in, text out, and back through our own decoders.

mod blkparse;
mod csv;
mod fio_iolog;
mod round_trip;
mod support;
