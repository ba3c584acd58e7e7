//! A modelled drive by name, and one of the user's by the path of its file.

use std::fs;
use testdrive_drives::{Access, Consent, Target, TargetError};

fn open(uri: &str) -> Result<Target, TargetError> {
    Target::open(uri, Access::Write, &Consent::default(), None)
}

fn refusal(uri: &str) -> String {
    match open(uri) {
        Err(TargetError::Usage(message)) => message,
        Err(error) => panic!("{uri}: {error} is no mistake of usage"),
        Ok(_) => panic!("{uri} was opened"),
    }
}

/// A built-in model under another name.
const OWN: &str = include_str!("../../simulator/models/sata.toml");

#[test]
fn a_users_own_model_is_found_by_the_path_of_its_file_and_set_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    fs::write(&path, OWN.replace("name = \"sata\"", "name = \"mine\"")).unwrap();
    let target = open(&format!("sim:{}?capacity=64GiB&op=28%&seed=7", path.display())).unwrap();
    let identity = target.identity();
    assert_eq!((identity.model.as_str(), identity.modelled), ("mine", true));
    assert_eq!(identity.capacity_bytes, 64 << 30);
    assert_eq!(identity.settings["over_provisioning"], 0.28);
    assert_eq!(identity.settings["seed"], 7);
}

#[test]
fn a_file_that_is_no_model_is_named_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let uri = format!("sim:{}", path.display());
    assert!(refusal(&uri).contains("cannot be read"), "{}", refusal(&uri));
    fs::write(&path, OWN.replace("queue_depth = 32", "queue_depth = 0")).unwrap();
    assert!(refusal(&uri).contains("queue_depth"), "{}", refusal(&uri));
    fs::write(&path, "name = ").unwrap();
    assert!(refusal(&uri).contains("the model cannot be read"), "{}", refusal(&uri));
    assert!(refusal("sim:sata?op=200%").contains("over_provisioning"));
}
