//! Fields of a request, read as bytes.

use http::{HeaderMap, HeaderName};

/// The value of a field that stands exactly once.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then_some(value.as_bytes())
}

/// Whether one of the field's values is exactly this.
pub(super) fn has_one(headers: &HeaderMap, name: &HeaderName, wanted: &[u8]) -> bool {
    headers.get_all(name).iter().any(|value| value.as_bytes() == wanted)
}

/// Whether a field says `token`, alone or as one of several.
pub(super) fn says(headers: &HeaderMap, name: &HeaderName, token: &[u8]) -> bool {
    headers.get_all(name).iter().any(|value| {
        let mut words = value.as_bytes().split(|byte| matches!(byte, b',' | b';' | b' ' | b'\t'));
        words.any(|word| word.eq_ignore_ascii_case(token))
    })
}

/// The last of the values in a field that is a list.
pub(super) fn last<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let value = headers.get_all(name).iter().next_back()?;
    value.as_bytes().rsplit(|byte| *byte == b',').next().map(<[u8]>::trim_ascii)
}
