//! Names that a laxer parser would take for ours: signs of an attack, for events only.
//!
//! Looked for only where a request did not come with one good cookie of ours, so the hot path never pays for it.

use super::parse::pairs;

/// How a cookie's name resembles a protected one without being it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NearMiss {
    /// In another case (`__host-…`), which browsers treat as a prefix and servers must not.
    Case,
    /// Percent-encoded (`__%48ost-…`): a browser applies no prefix rule to it.
    Percent,
    /// With white space that browsers keep and some servers strip (U+2000, U+0085, …).
    WhiteSpace,
    /// With `.`, `[` or a space where the name has `_`.
    Punctuation,
    /// Without a name, the value being `name=…`.
    Nameless,
    /// `$Version`, `$Path`, `$Domain`, `$Port`: a switch into the parsing rules of RFC 2109.
    LegacyDollar,
}

/// The first near miss of `name` in the Cookie fields.
pub(crate) fn near_miss<'a>(fields: impl IntoIterator<Item = &'a [u8]>, name: &str) -> Option<NearMiss> {
    fields.into_iter().flat_map(pairs).find_map(|pair| judge(pair, name))
}

fn judge(pair: &[u8], protected: &str) -> Option<NearMiss> {
    let protected = protected.as_bytes();
    let split = pair.iter().position(|byte| *byte == b'=').and_then(|at| pair.split_at_checked(at));
    let Some((name, _)) = split.filter(|(name, _)| !name.is_empty()) else {
        let value = pair.strip_prefix(b"=").unwrap_or(pair);
        return value.starts_with(protected).then_some(NearMiss::Nameless);
    };
    if is_legacy(name) {
        return Some(NearMiss::LegacyDollar);
    }
    if name.len() == protected.len() {
        return same_length(name, protected);
    }
    // Decoding and trimming only make a name shorter, and nearly every foreign name is shorter already.
    let suspicious = |byte: &u8| matches!(byte, b'%' | 0..=b' ' | 0x7f..);
    if name.len() > protected.len() && name.len() <= 16 * protected.len() && name.iter().any(suspicious) {
        return longer(name, protected);
    }
    None
}

fn same_length(name: &[u8], protected: &[u8]) -> Option<NearMiss> {
    if name == protected {
        return None;
    }
    if name.eq_ignore_ascii_case(protected) {
        return Some(NearMiss::Case);
    }
    alike(&mapped(name, protected), protected).then_some(NearMiss::Punctuation)
}

fn longer(name: &[u8], protected: &[u8]) -> Option<NearMiss> {
    let decoded = percent_decoded(name);
    if alike(&trimmed(name), protected) {
        return Some(NearMiss::WhiteSpace);
    }
    alike(&mapped(&trimmed(&decoded), protected), protected).then_some(NearMiss::Percent)
}

/// Whether a parser that decodes, trims or unquotes names would take `name` for `protected`, which it is not.
pub(crate) fn resembles(name: &[u8], protected: &[u8]) -> bool {
    let name = trimmed(&percent_decoded(&trimmed(name)));
    let name = name.strip_prefix(b"\"").and_then(|open| open.strip_suffix(b"\"")).unwrap_or(&name);
    name == protected
}

fn alike(name: &[u8], protected: &[u8]) -> bool {
    name.eq_ignore_ascii_case(protected)
}

fn is_legacy(name: &[u8]) -> bool {
    if !matches!(name, [b'$' | b'"', ..]) {
        return false;
    }
    let name = name.strip_prefix(b"\"").unwrap_or(name);
    let name = name.strip_suffix(b"\"").unwrap_or(name);
    ["$version", "$path", "$domain", "$port"]
        .iter()
        .any(|legacy| name.eq_ignore_ascii_case(legacy.as_bytes()))
}

pub(super) fn percent_decoded(name: &[u8]) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(name.len());
    let mut rest = name;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        let mut byte = *byte;
        if let (b'%', [high, low, after @ ..]) = (byte, tail)
            && let (Some(high), Some(low)) = (digit(high), digit(low))
        {
            byte = high << 4 | low;
            rest = after;
        }
        decoded.push(byte);
    }
    decoded
}

/// The name without what some language or other trims: Unicode white space and the invisible characters beside it, as
/// UTF-8 or as single bytes.
fn trimmed(name: &[u8]) -> Vec<u8> {
    let invisible = |c: char| c.is_whitespace() || c.is_control() || "\u{200b}\u{180e}\u{feff}".contains(c);
    match std::str::from_utf8(name) {
        Ok(text) => text.trim_matches(invisible).as_bytes().to_vec(),
        Err(_) => {
            let text: String = name.iter().map(|byte| char::from(*byte)).collect();
            text.trim_matches(invisible).as_bytes().to_vec()
        }
    }
}

fn mapped(name: &[u8], protected: &[u8]) -> Vec<u8> {
    let map =
        |(byte, wanted): (&u8, &u8)| if *wanted == b'_' && b". [".contains(byte) { b'_' } else { *byte };
    if name.len() == protected.len() { name.iter().zip(protected).map(map).collect() } else { name.to_vec() }
}
