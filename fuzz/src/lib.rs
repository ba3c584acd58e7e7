//! What every fuzz target shares: the invariants of decoding, files to decode, bytes as numbers, and seeds.
//!
//! A target calls the public interface of the crate that it tries, as `testdrive import` does. It fails by a panic: of the decoder
//! itself, or of a check here that found its result wrong.

pub mod check;
pub mod events;
pub mod files;
pub mod memory;
pub mod numbers;
pub mod octf;
pub mod options;
pub mod pages;
pub mod seeds;

/// The tests' own account of binary blktrace.
#[path = "../../engine/traces/tests/decoders/encode.rs"]
pub mod encode;
/// The tests' samples of every format.
#[allow(dead_code, reason = "the tests need more of it")]
#[path = "../../engine/traces/tests/decoders/samples.rs"]
mod samples;
/// What the samples need.
#[allow(dead_code, reason = "the tests need more of it")]
#[path = "../../engine/traces/tests/decoders/support.rs"]
mod support;

/// How a capture reads the kernel's binary pages: private parts of a crate that nobody else needs, and so taken by their files.
#[allow(dead_code, reason = "a capture needs more of it")]
#[path = "../../engine/capture/src/decode.rs"]
pub mod decode;
#[allow(dead_code, reason = "a capture needs more of it")]
#[path = "../../engine/capture/src/layout.rs"]
pub mod layout;
#[allow(dead_code, reason = "a capture needs more of it")]
#[path = "../../engine/capture/src/page.rs"]
pub mod page;
