//! Little-endian fields of the structures that a drive sends.

/// A fixed number of bytes at a place.
///
/// # Panics
/// When the structure is shorter: callers pass whole structures.
fn at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes[offset..offset + N].try_into().expect("the slice has N bytes")
}

pub(crate) fn le16(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(at(bytes, offset))
}

pub(crate) fn le32(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(at(bytes, offset))
}

pub(crate) fn le64(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(at(bytes, offset))
}

/// A counter of 128 bits, held to 64: none that a drive can reach is greater.
pub(crate) fn le128_saturating(bytes: &[u8], offset: usize) -> u64 {
    u64::try_from(u128::from_le_bytes(at(bytes, offset))).unwrap_or(u64::MAX)
}

/// Text that is padded with blanks. What is not printable ASCII, which some drives send, is left out.
pub(crate) fn text(bytes: &[u8], offset: usize, length: usize) -> String {
    let printable = bytes[offset..offset + length].iter().filter(|byte| (b' '..=b'~').contains(*byte));
    printable.map(|byte| char::from(*byte)).collect::<String>().trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_little_endian_and_a_counter_beyond_64_bits_is_held_there() {
        let mut bytes = [0_u8; 16];
        bytes[..8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((le16(&bytes, 0), le32(&bytes, 2)), (0x0201, 0x0605_0403));
        assert_eq!((le64(&bytes, 0), le128_saturating(&bytes, 0)), (0x0807_0605_0403_0201, le64(&bytes, 0)));
        bytes[8] = 1;
        assert_eq!(le128_saturating(&bytes, 0), u64::MAX);
    }

    #[test]
    fn text_is_trimmed_and_what_cannot_be_printed_is_left_out() {
        assert_eq!(text(b"  S4\x00EW \x01 ", 1, 8), "S4EW");
    }
}
