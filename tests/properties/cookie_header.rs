//! The Cookie header: whatever stands in it, a request is somebody's exactly if the plain reading of RFC 6265bis finds
//! one honest cookie under the exact name, and nothing under either name twice (attacks A18-A24, A26, A27).

use super::site::{self, RENEWAL, SESSION, Site};

/// `data` is a Cookie field; 0 begins another one; bytes from 0xF8 on stand for what random bytes never hit.
pub fn check(data: &[u8]) {
    site::with(|site| {
        let fields: Vec<Vec<u8>> = data.split(|byte| *byte == 0).map(|field| expanded(site, field)).collect();
        let Some(outcome) = site.ask(fields.iter().map(Vec::as_slice)) else { return };
        let (sessions, tokens) = (under(&fields, SESSION), under(&fields, RENEWAL));
        let honest = |values: &[&[u8]], value: &str| values == [value.as_bytes()];
        let is_duplicate = sessions.len() > 1 || tokens.len() > 1;
        let is_alice = !is_duplicate && (honest(&sessions, &site.session) || honest(&tokens, &site.token));
        assert_eq!(outcome.is_alice(), is_alice, "{fields:?}");
        // Only a renewal sets a cookie: never what was refused, never what is fresh.
        let renews = is_alice && !honest(&sessions, &site.session);
        assert_eq!(outcome.sets_cookies, renews, "{fields:?}");
    });
}

fn expanded(site: &Site, field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for byte in field {
        match byte {
            0xF8 => bytes.extend_from_slice(SESSION.as_bytes()),
            0xF9 => bytes.extend_from_slice(site.session.as_bytes()),
            0xFA => bytes.extend_from_slice(RENEWAL.as_bytes()),
            0xFB => bytes.extend_from_slice(site.token.as_bytes()),
            0xFC => bytes.extend_from_slice(format!("; {SESSION}={}", site.session).as_bytes()),
            0xFD => bytes.extend_from_slice(format!("; {RENEWAL}={}", site.token).as_bytes()),
            0xFE => bytes.extend_from_slice(b"%5F_Host-Http-session"),
            0xFF => bytes.extend_from_slice("\u{2000}".as_bytes()),
            byte => bytes.push(*byte),
        }
    }
    bytes
}

/// Every value under `name`, read as slowly and plainly as can be.
fn under<'a>(fields: &'a [Vec<u8>], name: &str) -> Vec<&'a [u8]> {
    let is_blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let pairs = fields.iter().flat_map(|field| field.split(|byte| *byte == b';')).map(|mut pair| {
        while pair.first().is_some_and(is_blank) {
            pair = &pair[1..];
        }
        while pair.last().is_some_and(is_blank) {
            pair = &pair[..pair.len() - 1];
        }
        pair
    });
    let split = |pair: &'a [u8]| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        (&pair[..at] == name.as_bytes()).then_some(&pair[at + 1..])
    };
    pairs.filter_map(split).collect()
}
