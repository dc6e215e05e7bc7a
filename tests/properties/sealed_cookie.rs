//! The sealed cookie: nothing but what was sealed here opens, under its own name, as it was (attacks A38-A42).

use super::{
    edits::{edited, without_blanks},
    site::{self, RENEWAL, SESSION, Site},
};

/// The first byte says what the others are: a value as it stands, changes to the honest value, changes to the bytes
/// below it, or to the plaintext, which is then sealed with the right key.
pub fn check(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    site::with(|site| match kind % 4 {
        0 => refused_unless_honest(site, data),
        1 => refused_unless_honest(site, &edited(site.session.as_bytes(), data)),
        2 => {
            let bytes = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(&site.session).unwrap();
            let value = base64_simd::URL_SAFE_NO_PAD.encode_to_string(edited(&bytes, data));
            refused_unless_honest(site, value.as_bytes());
        }
        _ => {
            let plaintext = edited(&site.forger.opened(&site.session), data);
            let value = site.forger.session_cookie(&plaintext);
            // Whoever holds the key may say what he likes; it must still be read without a fault.
            site.ask_with(SESSION, value.as_bytes());
        }
    });
}

fn refused_unless_honest(site: &Site, value: &[u8]) {
    if value.contains(&b';') {
        // That is another header, which `cookie_header` looks at.
        return;
    }
    if let Some(outcome) = site.ask_with(SESSION, value) {
        let honest = without_blanks(value) == site.session.as_bytes();
        assert_eq!((outcome.is_alice(), outcome.is_nobody()), (honest, !honest), "{value:?}");
    }
    if let Some(outcome) = site.ask_with(RENEWAL, value) {
        assert!(outcome.is_nobody() || without_blanks(value) == site.token.as_bytes(), "as token: {value:?}");
    }
}
