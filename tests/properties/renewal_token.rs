//! The renewal token and its JSON: nothing but an honest token renews, and what has a right MAC is read without a fault
//! (attacks A28, A40, A42-A46, A51).

use super::{
    edits::{edited, without_blanks},
    forge::Forger,
    site::{self, RENEWAL, Site},
};

/// The first byte says what the others are: a token as it stands, changes to the honest one, the payload of one whose
/// MAC is right, or changes to the honest payload, with the right MAC again.
pub fn check(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    site::with(|site| match kind % 4 {
        0 => refused_unless_honest(site, data),
        1 => refused_unless_honest(site, &edited(site.token.as_bytes(), data)),
        2 => refused(site, &site.forger.authentic(data, SIGNATURE)),
        _ => {
            let claims = Forger::claims_of(&site.token);
            let open = claims.strip_suffix('}').unwrap_or_default().to_owned() + ",\"jti\":\"";
            // The right MAC under another signature: never enough, whatever it says.
            refused(site, &site.forger.authentic(&edited(open.as_bytes(), data), SIGNATURE));
        }
    });
}

fn refused_unless_honest(site: &Site, value: &[u8]) {
    if value.contains(&b';') {
        return;
    }
    let Some(outcome) = site.ask_with(RENEWAL, value) else { return };
    let honest = without_blanks(value) == site.token.as_bytes();
    assert_eq!((outcome.is_alice(), outcome.is_nobody()), (honest, !honest), "{value:?}");
}

fn refused(site: &Site, token: &str) {
    let outcome = site.ask_with(RENEWAL, token.as_bytes()).expect("a token can stand in a field");
    assert!(outcome.is_nobody(), "{token}");
}

/// 64 bytes that are no signature, and are refused before any arithmetic: `r` and `s` are zero.
const SIGNATURE: &str =
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
