//! The wire format of protocol buffers, as far as it is needed to read messages whose fields are known.

/// A field's value. What it means is for the message to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'b> {
    /// Integers, booleans and enumerations.
    Varint(u64),
    /// Texts and messages.
    Bytes(&'b [u8]),
    /// Numbers of a fixed width, of which nothing here has any.
    Fixed,
}

impl<'b> Value<'b> {
    pub fn number(self) -> Result<u64, Malformed> {
        match self {
            Value::Varint(number) => Ok(number),
            _ => Err(Malformed("a field that should be a number is none")),
        }
    }

    pub fn bytes(self) -> Result<&'b [u8], Malformed> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed("a field that should be a message or a text is none")),
        }
    }
}

/// What cannot be a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub &'static str);

/// Takes a number from the start of `bytes`: seven bits a byte, the lowest first, the last byte without its top bit. `None` where the
/// bytes end within it.
pub(super) fn varint(bytes: &mut &[u8]) -> Result<Option<u64>, Malformed> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if index == 9 && bits > 1 {
            break;
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            *bytes = &bytes[index + 1..];
            return Ok(Some(value));
        }
    }
    if bytes.len() < 10 {
        return Ok(None);
    }
    Err(Malformed("a number has more than 64 bits"))
}

/// The fields of a message, in the order in which they stand. Ends after the first error.
pub(super) struct Fields<'b> {
    rest: &'b [u8],
}

/// Takes a message apart.
pub(super) fn fields(message: &[u8]) -> Fields<'_> {
    Fields { rest: message }
}

impl<'b> Fields<'b> {
    fn field(&mut self) -> Result<(u64, Value<'b>), Malformed> {
        const CUT: Malformed = Malformed("a field goes on beyond the end of its message");
        let key = varint(&mut self.rest)?.ok_or(CUT)?;
        let value = match key & 7 {
            0 => Value::Varint(varint(&mut self.rest)?.ok_or(CUT)?),
            1 => self.bytes(8).map(|_| Value::Fixed).ok_or(CUT)?,
            2 => {
                let length = varint(&mut self.rest)?.ok_or(CUT)?;
                Value::Bytes(self.bytes(length).ok_or(CUT)?)
            }
            5 => self.bytes(4).map(|_| Value::Fixed).ok_or(CUT)?,
            _ => return Err(Malformed("a field is of a kind that does not exist")),
        };
        match key >> 3 {
            0 => Err(Malformed("a field has the number 0")),
            number => Ok((number, value)),
        }
    }

    fn bytes(&mut self, length: u64) -> Option<&'b [u8]> {
        let length = usize::try_from(length).ok().filter(|&length| length <= self.rest.len())?;
        let (bytes, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(bytes)
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(u64, Value<'b>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_of_each_width_are_read_and_longer_ones_refused() {
        for (mut bytes, value) in [
            (&[0x00][..], 0),
            (&[0x7f], 127),
            (&[0xac, 0x02], 300),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], u64::MAX),
        ] {
            assert_eq!(varint(&mut bytes), Ok(Some(value)));
            assert!(bytes.is_empty());
        }
        assert_eq!(varint(&mut &[0x80, 0x80][..]), Ok(None));
        assert!(varint(&mut &[0xff; 11][..]).is_err());
        assert!(varint(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02][..]).is_err());
    }

    #[test]
    fn fields_of_every_kind_come_in_their_order() {
        let message = [
            &[0x08, 0x96, 0x01][..], // 1: 150
            &[0x12, 0x02, b'h', b'i'],
            &[0x19, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0x25, 1, 2, 3, 4],
            &[0x08, 0x07], // 1 again
        ]
        .concat();
        let found: Result<Vec<_>, _> = fields(&message).collect();
        let expected = [
            (1, Value::Varint(150)),
            (2, Value::Bytes(b"hi")),
            (3, Value::Fixed),
            (4, Value::Fixed),
            (1, Value::Varint(7)),
        ];
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_a_message_is_an_error_and_the_end() {
        for message in [&[0x08][..], &[0x12, 5, 1], &[0x0b], &[0x00, 1], &[0x19, 1], &[0x80]] {
            let all: Vec<_> = fields(message).collect();
            assert!(all.len() == 1 && all[0].is_err(), "{message:?}: {all:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_fields_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let fields: Vec<_> = fields(&bytes).collect();
            prop_assert!(fields.len() <= bytes.len());
        }
    }
}
