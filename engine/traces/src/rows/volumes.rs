//! The volumes of a trace, numbered as they are first seen.

use super::Bad;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// More are no volumes: the column is another one.
const VOLUMES_MAX: usize = 1 << 20;

/// Volumes by what stands for them in the trace.
#[derive(Default)]
pub(crate) struct Volumes {
    numbers: HashMap<Box<[u8]>, u32, BuildHasherDefault<KeyHasher>>,
    names: Vec<String>,
    /// Different keys may be of one volume, where spaces stand in one of them.
    by_name: HashMap<String, u32>,
    /// Runs of rows are of one volume, mostly.
    last_key: Vec<u8>,
    last: u32,
}

impl Volumes {
    /// The number of a volume; its name is made when it is new.
    pub fn number(&mut self, key: &[u8], name: impl FnOnce() -> String) -> Result<u32, Bad> {
        if self.last_key == key && !self.names.is_empty() {
            return Ok(self.last);
        }
        let number = match self.numbers.get(key) {
            Some(number) => *number,
            None => self.add(key, name())?,
        };
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.last = number;
        Ok(number)
    }

    #[cold]
    fn add(&mut self, key: &[u8], name: String) -> Result<u32, Bad> {
        if self.numbers.len() >= VOLUMES_MAX {
            let reason = format!(
                "this would be one of more than {VOLUMES_MAX} volumes: is the trace of the format it is read as?"
            );
            return Err(Bad::new(reason));
        }
        let number = *self.by_name.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            self.names.len() as u32 - 1
        });
        self.numbers.insert(key.into(), number);
        Ok(number)
    }

    pub fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }
}

/// Multiplies and rotates eight bytes at a time: keys are short, and the default hasher takes longer than reading a line.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_keeps_its_number_and_name() {
        let mut volumes = Volumes::default();
        for (key, number) in [("hm,0", 0), ("hm,1", 1), ("hm,0", 0), ("", 2), ("hm, 1", 1)] {
            let name = || key.replace(", ", ",").replace(',', "_");
            assert_eq!(volumes.number(key.as_bytes(), name).ok(), Some(number));
        }
        assert_eq!((volumes.name(0), volumes.name(1), volumes.name(2)), ("hm_0", "hm_1", ""));
    }
}
