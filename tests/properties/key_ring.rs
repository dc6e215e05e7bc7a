//! The text of a key ring: read or refused, never half of it, and neither its error nor its `Debug` tells a secret.

use portcullis::KeyRing;

use super::edits::edited;

/// The first byte says what the others are: a text as it stands, or changes to an honest one.
pub fn check(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let bytes = if kind % 2 == 0 { data.to_vec() } else { edited(HONEST.as_bytes(), data) };
    let Ok(text) = String::from_utf8(bytes) else { return };
    match KeyRing::from_text(&text) {
        Ok(ring) => {
            let written = ring.to_text();
            let again = KeyRing::from_text(&written).expect("it reads what it writes");
            assert_eq!(*again.to_text(), *written, "{text}");
            mute(&text, &format!("{ring:?}"));
        }
        Err(error) => mute(&text, &format!("{error} {error:?}")),
    }
}

/// No run of twelve characters that could be a part of a secret is repeated. Words of the text may be.
fn mute(text: &str, said: &str) {
    // The one long word that messages have of their own: their example of a date.
    let said = said.replace("2026-11-30T12:00:00Z", "");
    let words = text.split([' ', '\t', '\n', '\r', ';']).filter(|word| word.len() >= 40 && word.is_ascii());
    for word in words {
        let is_secret = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let leaked = word.as_bytes().windows(12).find(|part| {
            part.iter().all(is_secret) && said.contains(std::str::from_utf8(part).unwrap_or_default())
        });
        assert_eq!(leaked, None, "{said:?} tells a part of {word:?}");
    }
}

const HONEST: &str = "# kept like a password\n\
    5f3a9c01 active 2026-11-30T12:00:00Z AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE\n\
    5f3a9c02 retired 2026-10-30T12:00:00Z AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI\n\
    5f3a9c03 revoked 2026-09-30T12:00:00Z AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM\n\
    5f3a9c04 pending 2026-12-01T12:00:00Z BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ\n\
    index BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU\n";
