//! The second opinion on signatures: util-linux's blkid, where the host has it.

use crate::guard::signatures::Signature;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where distributions put it: the search path of a plain user often lacks these.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
/// Its exit status when formats contradict each other.
const AMBIVALENT: i32 = 8;

/// The program, or `None` where the host has none.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = FOLDERS.iter().map(PathBuf::from).chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join("blkid")).find(|program| program.is_file())
}

/// Adds what blkid sees on the open device and our own table does not.
pub fn join(file: &File, found: &mut Vec<Signature>) {
    let Some(program) = program() else { return };
    // An answer that does not come takes nothing away from what we found ourselves.
    let Ok(seen) = ask(program, file) else { return };
    for signature in seen {
        if !found.iter().any(|known| known.name == signature.name) {
            found.push(signature);
        }
    }
}

fn ask(program: PathBuf, file: &File) -> io::Result<Vec<Signature>> {
    // The open device is its standard input, so that it cannot be led to another by a path.
    let output = Command::new(program)
        .args(["-p", "-o", "export", "/dev/stdin"])
        .env_clear()
        .stdin(Stdio::from(file.try_clone()?))
        .stderr(Stdio::null())
        .output()?;
    let mut seen = parse(&String::from_utf8_lossy(&output.stdout));
    if output.status.code() == Some(AMBIVALENT) {
        seen.push(Signature {
            name: "several formats at once (blkid)".into(),
            offset_bytes: None,
            is_partition_table: false,
        });
    }
    Ok(seen)
}

/// Its `export` format: KEY=value lines, of which the type of content and of partition table matter.
fn parse(text: &str) -> Vec<Signature> {
    let values = |key: &'static str| text.lines().filter_map(move |line| line.strip_prefix(key));
    let named = |name: &str, is_partition_table| Signature {
        name: name.to_string(),
        offset_bytes: None,
        is_partition_table,
    };
    let contents = values("TYPE=").map(|name| named(name, false));
    contents.chain(values("PTTYPE=").map(|name| named(name, true))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_taken_and_the_entry_of_a_partition_is_not() {
        let text = "DEVNAME=/dev/stdin\nTYPE=ext4\nPTTYPE=dos\nPART_ENTRY_TYPE=0x83\nSEC_TYPE=ext2\n";
        let seen = parse(text);
        let names: Vec<_> = seen.iter().map(|each| (each.name.as_str(), each.is_partition_table)).collect();
        assert_eq!(names, [("ext4", false), ("dos", true)]);
        assert!(parse("").is_empty());
    }
}
