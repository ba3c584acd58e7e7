//! Questions that the engine answers with one line on standard output.

use std::fs::File;
use std::process::{Command, Stdio};

fn ask(question: &str, output: Stdio) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_testdrive-engine")).arg(question).stdout(output).output().unwrap()
}

#[test]
fn each_answer_is_one_json_list() {
    for question in ["models", "formats", "drives"] {
        let done = ask(question, Stdio::piped());
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(done.status.success() && text.lines().count() == 1, "{question}: {text}");
        assert!(serde_json::from_str::<Vec<serde_json::Value>>(&text).is_ok(), "{question}: {text}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error_and_one_that_nobody_wants_is_not() {
    for question in ["models", "formats", "drives"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let done = ask(question, full.into());
        assert_eq!(done.status.code(), Some(4), "{question}");
        let told = String::from_utf8(done.stderr).unwrap();
        assert!(told.starts_with("error: the answer cannot be written: No space left"), "{told}");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(ask(question, writer.into()).status.code(), Some(0), "{question}");
    }
}
