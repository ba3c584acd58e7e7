//! Models as text: the built-in ones, parameters set by name, and what is said about wrong ones.

use testdrive_simulator::{Model, ReadTime, TrimMode};

fn model() -> Model {
    Model::builtin("consumer-dramless").unwrap()
}

/// What setting this says.
fn refusal(key: &str, value: &str) -> String {
    let (mut changed, before) = (model(), model());
    let message = changed.set(key, value).expect_err("this value was to be refused").to_string();
    assert_eq!(changed, before, "a refused value changes nothing");
    message
}

#[test]
fn every_built_in_model_is_found_by_the_name_in_its_file() {
    assert!(Model::builtin_names().len() >= 4);
    for name in Model::builtin_names() {
        let model = Model::builtin(name).unwrap();
        assert_eq!(model.name(), name);
        assert!(model.figures().is_some() && model.description().len() > 20);
    }
}

#[test]
fn every_number_in_a_model_file_says_where_it_is_from() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let mut numbers = 0;
    for name in Model::builtin_names() {
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
        for line in text.lines() {
            let Some((_, value)) = line.split_once(" = ") else { continue };
            if value.starts_with(|letter: char| letter.is_ascii_digit()) {
                numbers += 1;
                assert!(value.contains("# source: ") || value.contains("# assumed"), "{name}: {line}");
            }
        }
    }
    assert!(numbers > 100, "only {numbers} numbers were looked at");
}

#[test]
fn the_models_take_trims_in_each_way() {
    let mode = |name| Model::builtin(name).unwrap().parameters().trim_mode;
    assert_eq!(mode("enterprise-mixed"), TrimMode::Free);
    assert_eq!(mode("consumer-highend"), TrimMode::Firmware);
    assert_eq!(mode("consumer-qlc"), TrimMode::Background);
}

#[test]
fn parameters_are_set_with_a_unit_in_the_value_or_in_the_name() {
    let mut model = model();
    model.set("capacity", "64GiB").unwrap();
    assert_eq!(model.parameters().capacity_bytes, 64 << 30);
    model.set("capacity_bytes", "68719480832").unwrap();
    assert_eq!(model.parameters().capacity_bytes, (64 << 30) + 4096);
    model.set("trim_per_range", "1.5us").unwrap();
    assert_eq!(model.parameters().trim_per_range_ns, 1_500);
    model.set("host_link", "2GB/s").unwrap();
    assert_eq!(model.parameters().host_link_bytes_per_s, 2_000_000_000);
    model
        .set_all([
            ("seed", "7"),
            ("trim_mode", "free"),
            ("power_loss_protection", "true"),
            ("trim_share", "0.25"),
        ])
        .unwrap();
    let parameters = model.parameters();
    assert_eq!((parameters.seed, parameters.trim_mode), (7, TrimMode::Free));
    assert!(parameters.power_loss_protection && parameters.trim_share == 0.25);
    model.set("op", "28%").unwrap();
    assert_eq!(model.parameters().over_provisioning, 0.28);
    model.set("over_provisioning", "0.07").unwrap();
    assert_eq!(model.parameters().over_provisioning, 0.07);
    model.set("nand_read_time", "exponential").unwrap();
    assert_eq!(model.parameters().nand_read_time, ReadTime::Exponential);
}

#[test]
fn values_that_make_sense_only_together_are_set_together() {
    // The buffer of the model is smaller than such a unit, so that neither order of single steps would do for both ways.
    let mut model = model();
    assert!(model.set("program_unit", "8MiB").is_err());
    model.set_all([("program_unit", "8MiB"), ("write_buffer", "32MiB"), ("erase_block", "1GiB")]).unwrap();
    assert!(model.set("write_buffer", "4MiB").is_err());
    model.set_all([("write_buffer", "4MiB"), ("program_unit", "192KiB"), ("erase_block", "24MiB")]).unwrap();
    assert_eq!(model, self::model());
}

#[test]
fn an_unknown_parameter_is_named_with_those_that_there_are() {
    let message = refusal("trim_per_rang", "1us");
    assert!(message.contains("'trim_per_rang'") && message.contains("trim_per_range_ns"), "{message}");
    assert!(message.contains("capacity_bytes") && message.contains("seed"), "{message}");
}

#[test]
fn a_value_that_makes_no_sense_is_named_with_what_would() {
    for (key, value, expected) in [
        ("capacity", "64", "64GiB"),
        ("capacity", "64G", "64GiB"),
        ("capacity", "4097B", "multiple of 4096"),
        ("capacity_bytes", "-4096", "another value"),
        ("trim_per_page", "700", "0.7us"),
        ("trim_mode", "lazy", "background"),
        ("trim_share", "0", "from 0.001 to 1"),
        ("trim_share", "NaN", "from 0.001 to 1"),
        ("seed", "seven", "whole number"),
        ("power_loss_protection", "yes", "true or false"),
        ("channels", "0", "from 1 to 256"),
        ("channels", "1.5", "whole number"),
        ("queue_depth", "0", "at least 1"),
        ("nand_read_spread", "1s", "from 0 to nand_read_ns"),
        ("write_buffer", "4KiB", "program_unit_bytes"),
        ("program_unit", "20KiB", "multiple of nand_page_bytes"),
        ("logical_block", "1000B", "power of two"),
        ("programs_per_host_page", "0.5", "from 1 to 1000"),
        ("over_provisioning", "0%", "such as 0.07 or 7%"),
        ("op", "lots", "a number"),
        ("superblocks", "1", "from 8"),
        ("capacity", "9TiB", "to 4TiB"),
        ("host_link", "1B", "MB/s"),
    ] {
        let message = refusal(key, value);
        assert!(message.contains(key) && message.contains(expected), "{key}={value}: {message}");
    }
}

#[test]
fn an_unknown_model_is_named_with_those_that_there_are() {
    let message = Model::builtin("enterprise").unwrap_err().to_string();
    assert!(
        message.contains("'enterprise'") && message.contains("enterprise-mixed, enterprise-read"),
        "{message}"
    );
}

#[test]
fn a_file_of_a_model_must_have_every_parameter_and_no_other() {
    let text = include_str!("../models/sata.toml");
    assert_eq!(Model::from_toml(text), Model::builtin("sata"));
    let without = text.replace("seed = 1", "");
    assert!(Model::from_toml(&without).unwrap_err().to_string().contains("seed"));
    let with_more = text.replace("seed = 1", "seed = 1\nsede = 2");
    assert!(Model::from_toml(&with_more).unwrap_err().to_string().contains("sede"));
    let senseless = text.replace("queue_depth = 32", "queue_depth = 0");
    assert!(Model::from_toml(&senseless).unwrap_err().to_string().contains("queue_depth"));
}
