//! Bytes of the fuzzer taken as numbers; zeroes once there are no more.

/// Bytes not yet taken.
pub struct Numbers<'b>(pub &'b [u8]);

impl Numbers<'_> {
    /// Whether there are any left.
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    /// The next byte, as a number below `end`.
    pub fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    /// The next two bytes.
    pub fn two(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A number that is mostly small, and now and then as large as there are.
    pub fn wide(&mut self) -> u64 {
        match self.byte() {
            0 => u64::MAX,
            1 => u64::from(self.two()) << 48,
            2 => u64::from(self.two()) << 32,
            3 => u64::from(self.two()) << 16,
            4..8 => u64::from(self.two()),
            small => u64::from(small),
        }
    }
}
