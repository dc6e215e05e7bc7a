//! Inputs as changes of something honest: random bytes alone never come past the first check.

/// Changes `bytes` as `script` says, in steps of three bytes: where (two bytes) and what. A value below 0xC0 is written
/// there, above that the byte is removed, doubled, or the rest cut off.
pub fn edited(bytes: &[u8], script: &[u8]) -> Vec<u8> {
    let mut edited = bytes.to_vec();
    for step in script.chunks_exact(3) {
        if edited.is_empty() {
            break;
        }
        let at = usize::from(u16::from_be_bytes([step[0], step[1]])) % edited.len();
        match step[2] {
            0xC0..=0xCF => {
                edited.remove(at);
            }
            0xD0..=0xDF => edited.insert(at, edited[at]),
            0xE0..=0xEF => edited.truncate(at),
            0xF0..=0xFF => edited[at] ^= 1 << (step[2] & 7),
            byte => edited[at] = byte,
        }
    }
    edited
}

/// The bytes without the blanks at their end, which are no part of a cookie's value.
pub fn without_blanks(mut bytes: &[u8]) -> &[u8] {
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}
