//! Decoders as a whole: files in, rows out.

mod assembly;
mod biosnoop;
mod blkparse;
mod blktrace;
mod csv;
mod damage;
mod encode;
mod fuzz;
mod limits;
mod live;
mod model;
mod octf;
mod peers;
mod real_text;
mod row_formats;
mod rows;
mod samples;
mod support;
mod trace_event;
