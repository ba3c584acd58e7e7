//! Messages of Open CAS telemetry: lengths that fit, fields and values that need not.

use crate::numbers::Numbers;

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3, out);
    varint(value, out);
}

fn nested(field: u64, message: &[u8], out: &mut Vec<u8>) {
    varint(field << 3 | 2, out);
    varint(message.len() as u64, out);
    out.extend_from_slice(message);
}

/// A queue of a device, of one read and of one write that completes; what the samples call for.
pub fn small() -> Vec<u8> {
    let mut out = Vec::new();
    let mut device = Vec::new();
    number(1, 1, &mut device);
    nested(2, b"nvme0n1", &mut device);
    out.extend(whole(1, 7_000_000_000, 3, &device));
    for (sequence, operation) in [(2, 1), (3, 2)] {
        let mut io = Vec::new();
        for (field, value) in [(1, 8 * sequence), (2, 8), (4, 1), (5, operation), (9, sequence)] {
            number(field, value, &mut io);
        }
        out.extend(whole(sequence, 7_000_000_000 + sequence * 1000, 2, &io));
    }
    let mut end = Vec::new();
    number(4, 1, &mut end);
    number(5, 3, &mut end);
    out.extend(whole(4, 7_000_090_000, 5, &end));
    out
}

/// An event with its header and its length.
fn whole(sequence: u64, time_ns: u64, field: u64, message: &[u8]) -> Vec<u8> {
    let (mut header, mut event, mut out) = (Vec::new(), Vec::new(), Vec::new());
    number(1, sequence, &mut header);
    number(2, time_ns, &mut header);
    nested(1, &header, &mut event);
    nested(field, message, &mut event);
    varint(event.len() as u64, &mut out);
    out.extend_from_slice(&event);
    out
}

/// An event of a queue, with its length before it: mostly an I/O, an end of one or a device, now and then something else.
pub fn event(numbers: &mut Numbers<'_>, sequence: &mut u64, time_ns: &mut u64) -> Vec<u8> {
    *sequence += if numbers.below(16) == 0 { u64::from(numbers.byte()) } else { 1 };
    *time_ns = time_ns.wrapping_add(numbers.wide());
    let mut header = Vec::new();
    number(1, *sequence, &mut header);
    number(2, *time_ns, &mut header);
    let mut message = Vec::new();
    let field = match numbers.below(8) {
        0..3 => {
            io(numbers, &mut message);
            2
        }
        3..6 => {
            number(3, u64::from(numbers.below(4) == 0), &mut message);
            number(4, u64::from(numbers.below(3)), &mut message);
            number(5, u64::from(numbers.byte()), &mut message);
            5
        }
        6 => {
            number(1, u64::from(numbers.below(3)), &mut message);
            nested(2, b"nvme0n1", &mut message);
            3
        }
        _ => {
            for _ in 0..numbers.below(6) {
                number(u64::from(numbers.below(16)), numbers.wide(), &mut message);
            }
            u64::from(numbers.below(9))
        }
    };
    let (mut event, mut out) = (Vec::new(), Vec::new());
    nested(1, &header, &mut event);
    nested(field, &message, &mut event);
    // Now and then a length that does not fit.
    let length = if numbers.below(64) == 63 { numbers.wide() } else { event.len() as u64 };
    varint(length, &mut out);
    out.extend_from_slice(&event);
    out
}

/// Place, length, device, operation, flags and number of an I/O.
fn io(numbers: &mut Numbers<'_>, message: &mut Vec<u8>) {
    number(1, numbers.wide(), message);
    number(2, numbers.wide(), message);
    number(4, u64::from(numbers.below(3)), message);
    number(5, u64::from(numbers.below(6)), message);
    for field in [3, 6, 7, 8] {
        if numbers.below(4) == 0 {
            number(field, numbers.wide(), message);
        }
    }
    number(9, u64::from(numbers.byte()), message);
}
