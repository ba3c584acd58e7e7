//! `testdrive-engine models`: the modelled drives with their figures.

use crate::lines::answer;
use serde_json::json;
use std::process::ExitCode;
use testdrive_simulator::Model;

/// Prints every built-in model as one JSON list.
pub fn main() -> ExitCode {
    let models: Vec<_> = Model::builtin_names()
        .map(|name| {
            let model = Model::builtin(name).expect("a built-in model is valid");
            json!({
                "name": model.name(),
                "uri": format!("sim:{name}"),
                "description": model.description(),
                "figures": model.figures(),
                "parameters": model.parameters(),
            })
        })
        .collect();
    answer(&models)
}
