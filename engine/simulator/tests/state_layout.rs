//! The layout of a saved state, beside its version: a change of the one forces a change of the other.
//!
//! What is held is the name of every field, in order, with the kind of its value: that is what decides whether an older state would be
//! read as something else. Widths of integers are not held, since their encoding does not depend on them.

mod common;

use common::{drain, idle_model};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::path::Path;
use testdrive_core::{Command, Flags, Opcode, SplitMix64, KIB};
use testdrive_simulator::{SimulatedDrive, STATE_VERSION};

/// Walks through a JSON document in its own order, and notes each path once.
struct Walk<'a> {
    path: String,
    seen: &'a mut Vec<String>,
}

impl Walk<'_> {
    fn note(self, kind: &str) {
        let line = format!("{} {kind}", self.path);
        if !self.seen.contains(&line) {
            self.seen.push(line);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.note("bool");
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.note("integer");
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.note("integer");
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.note("float");
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.note("text");
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.note("nothing");
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let path = format!("{}[]", self.path);
        while items.next_element_seed(Walk { path: path.clone(), seen: self.seen })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            fields.next_value_seed(Walk { path: format!("{}.{name}", self.path), seen: self.seen })?;
        }
        Ok(())
    }
}

/// A drive in the midst of its work, with every part that there is but those that exclude each other.
fn busy_drive(others: &[(&str, &str)]) -> SimulatedDrive {
    let common = [
        ("capacity", "32MiB"),
        ("superblocks", "40"),
        ("initial_state", "steady"),
        ("separate_moved_data", "true"),
        ("mapping_cache", "8KiB"),
        ("keep_contents", "true"),
        ("power_loss_protection", "false"),
        ("thermal_resistance_mc_per_w", "5000"),
        ("housekeeping_period", "1s"),
        ("housekeeping", "1ms"),
        ("program", "2ms"),
        ("trim_mode", "background"),
        ("trim_per_page", "1ms"),
        ("trim_share", "0.5"),
    ];
    let mut drive = SimulatedDrive::new(idle_model(&[&common, others].concat()));
    let (mut random, mut now_ns) = (SplitMix64::new(1), 0);
    for slot in 0..4_000 {
        now_ns += 100_000;
        let opcode = if slot % 50 == 0 { Opcode::Trim } else { Opcode::Write };
        let offset_bytes = random.below(8_000) * 4 * KIB;
        let write = Command { offset_bytes, length_bytes: 4 * KIB, opcode, flags: Flags::NONE };
        drive.submit(now_ns, slot, &write);
    }
    drain(&mut drive);
    drive
}

#[test]
fn a_state_of_another_layout_has_another_version() {
    let mut seen = Vec::new();
    let cache = [("slc_static_share", "0.1"), ("slc_when_full", "fold"), ("slc_idle", "1s")];
    for others in [&cache[..], &[("compresses_to", "0.5")]] {
        let text = serde_json::to_string(&busy_drive(others)).unwrap();
        let mut reader = serde_json::Deserializer::from_str(&text);
        Walk { path: String::new(), seen: &mut seen }.deserialize(&mut reader).unwrap();
    }
    let found = seen.join("\n") + "\n";
    let known =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/state_layouts/{STATE_VERSION}.txt"));
    if std::fs::read_to_string(&known).is_ok_and(|known| known == found) {
        return;
    }
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("state_layout.txt");
    std::fs::write(&made, found).unwrap();
    panic!(
        "{} is not the layout of a saved state, which is {}. If fields changed, raise STATE_VERSION, and put the new layout \
         beside the old under the new number; the layout of a version that was released is never changed",
        known.display(),
        made.display()
    );
}
