//! The Cookie header, byte for byte (RFC 6265bis §5.8.3 read from the server's side).
//!
//! All Cookie fields in order; split on `;` alone; spaces and tabs stripped from a pair's ends, nothing else; split at
//! the first `=`; names compared as bytes. No decoding, no quoting, no case folding, no Unicode: each of those is a way
//! to pass a cookie off as ours that a browser did not protect (attacks A18-A23). Junk in a pair spoils that pair only.
//!
//! There is no limit on length or number: a sibling subdomain can fill a browser's jar with 180 large cookies (0.7 MB),
//! and a limit would turn that into a logout. The cost is one linear search of what the HTTP server let through.

use memchr::memchr;

/// What a request holds under one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// No such cookie.
    Nothing,
    /// One, with this value.
    One(&'a [u8]),
    /// More than one: neither can be trusted, whatever their order (attack A18).
    Several,
}

/// Finds the cookies called `names` in the Cookie fields of a request.
pub(crate) fn find<'a, const N: usize>(
    fields: impl IntoIterator<Item = &'a [u8]>,
    names: [&str; N],
) -> [Found<'a>; N] {
    let mut found = [Found::Nothing; N];
    for field in fields {
        for pair in pairs(field) {
            for (slot, name) in found.iter_mut().zip(names) {
                if let Some(value) = value_of(pair, name) {
                    *slot = if *slot == Found::Nothing { Found::One(value) } else { Found::Several };
                }
            }
        }
    }
    found
}

/// Every value under `name`: to end what they name, never to let anybody in.
pub(crate) fn all_of<'a>(
    fields: impl IntoIterator<Item = &'a [u8]>,
    name: &str,
) -> impl Iterator<Item = &'a [u8]> {
    fields.into_iter().flat_map(pairs).filter_map(move |pair| value_of(pair, name))
}

/// The fields as one, each pair replaced by what `change` makes of its name and value, or left out; `None` where it leaves
/// all as they are. A pair without a name is left as it is.
pub(crate) fn rewritten<'a>(
    fields: impl IntoIterator<Item = &'a [u8]>,
    mut change: impl FnMut(&[u8], &[u8]) -> Option<Pair>,
) -> Option<Vec<u8>> {
    let (mut out, mut changed) = (Vec::new(), false);
    for pair in fields.into_iter().flat_map(pairs) {
        let halves = memchr(b'=', pair).and_then(|at| Some((pair.get(..at)?, pair.get(at + 1..)?)));
        let new = halves.and_then(|(name, value)| Some((name, change(name, value)?)));
        changed |= new.is_some();
        let kept = match &new {
            None => vec![pair],
            Some((name, Pair::Value(value))) => vec![*name, b"=", value],
            Some((_, Pair::LeaveOut)) => continue,
        };
        if !out.is_empty() {
            out.extend_from_slice(b"; ");
        }
        kept.iter().for_each(|part| out.extend_from_slice(part));
    }
    changed.then_some(out)
}

/// What becomes of a pair.
pub(crate) enum Pair {
    Value(Vec<u8>),
    LeaveOut,
}

/// The pairs of one Cookie field, stripped of spaces and tabs.
pub(super) fn pairs(field: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(field);
    std::iter::from_fn(move || {
        let bytes = rest?;
        let (pair, tail) = match memchr(b';', bytes).and_then(|at| bytes.split_at_checked(at)) {
            Some((pair, tail)) => (pair, tail.get(1..)),
            None => (bytes, None),
        };
        rest = tail;
        Some(strip(pair))
    })
}

fn value_of<'a>(pair: &'a [u8], name: &str) -> Option<&'a [u8]> {
    // The `=` first: nearly every foreign pair is told by that one byte.
    let (start, value) = pair.split_at_checked(name.len() + 1)?;
    (start.last() == Some(&b'=') && start.starts_with(name.as_bytes())).then_some(value)
}

pub(super) fn strip(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
#[path = "../../tests/vectors/request_cookies.rs"]
mod vectors;
