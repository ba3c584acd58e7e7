//! `testdrive-engine capture` on real loop devices, as a person or the control plane calls it.

mod capturing;
mod completeness;
mod endings;
mod refusals;
#[path = "../../../drives/tests/support/mod.rs"]
mod support;
mod workload;
