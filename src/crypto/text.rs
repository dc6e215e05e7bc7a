//! The text form of the key ring, the same in a file and in a variable.
//!
//! ```text
//! # a comment; a semicolon ends a line as a line break does
//! 5f3a9c01 active 2026-11-30T12:00:00Z <base64url of 32 bytes>
//! index <base64url of 32 bytes>
//! ```
//!
//! Later versions must read what this one writes.

use std::env::VarError;

use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use zeroize::Zeroizing;

use super::{
    key_ring::{Entry, KeyRing, KeyRingError, KeyState},
    root_keys::{KeyId, Secret},
};
use crate::{base64url, clock::Timestamp};

impl KeyRing {
    /// Reads the text form from the environment variable `name` (lines joined by `;`).
    ///
    /// # Errors
    /// If the variable is not set or its text is no key ring; the error says what is wrong and what to do.
    pub fn from_env(name: &str) -> Result<Self, KeyRingError> {
        let place = format!("the environment variable {name}");
        let text = std::env::var(name).map_err(|error| match error {
            VarError::NotPresent => KeyRingError::new("it is not set", MAKE_ONE),
            VarError::NotUnicode(_) => KeyRingError::new("it is not text", MAKE_ONE),
        });
        text.and_then(|text| parse(&Zeroizing::new(text))).map_err(|error| error.at(&place))
    }

    /// Reads the text form: `id state created base64url` a line, `index base64url` once, `#` comments; a `;` ends a
    /// line as a line break does.
    ///
    /// # Errors
    /// If it is no key ring; the error names the line.
    pub fn from_text(text: &str) -> Result<Self, KeyRingError> {
        parse(text)
    }

    /// The text form, secrets included: keep it as you keep a password. Wiped when dropped.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        {
            let (entries, index) = self.parts();
            write(entries, index)
        }
    }
}

/// Parses the text form.
fn parse(text: &str) -> Result<KeyRing, KeyRingError> {
    let mut entries = Vec::new();
    let mut index = None;
    for (number, line) in (1..).zip(text.split(['\n', ';'])) {
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            ["index", secret] => {
                let secret = parse_secret(secret).ok_or_else(|| faulty_line(number, BAD_SECRET))?;
                if index.replace(secret).is_some() {
                    return Err(faulty_line(number, "states a second index secret"));
                }
            }
            [id, state, created, secret] => entries.push(Entry {
                id: parse_id(id)
                    .ok_or_else(|| faulty_line(number, "has an id that is not 8 digits of 0-9a-f"))?,
                state: parse_state(state).ok_or_else(|| {
                    faulty_line(number, "has a state other than pending, active, retired and revoked")
                })?,
                created: parse_created(created)
                    .ok_or_else(|| faulty_line(number, "has a date unlike 2026-11-30T12:00:00Z"))?,
                secret: parse_secret(secret).ok_or_else(|| faulty_line(number, BAD_SECRET))?,
            }),
            _ => return Err(faulty_line(number, "is neither a key nor the index secret")),
        }
    }
    if entries.is_empty() && index.is_none() {
        return Err(KeyRingError::new("the key ring is empty", MAKE_ONE));
    }
    let index = index.ok_or_else(|| {
        KeyRingError::new(
            "the key ring has no index secret",
            "copy the `index` line from the ring's first version; without it no stored session can be found",
        )
    })?;
    KeyRing::assemble(entries, index)
}

/// Writes the text form, one entry a line.
fn write(entries: &[Entry], index: &Secret) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(96 * (entries.len() + 1)));
    for entry in entries {
        let secret = Zeroizing::new(base64url::encode(&entry.secret.0));
        let state = state_name(entry.state);
        let created = write_created(entry.created);
        for part in
            [entry.id.to_string().as_str(), " ", state, " ", created.as_str(), " ", secret.as_str(), "\n"]
        {
            text.push_str(part);
        }
    }
    let secret = Zeroizing::new(base64url::encode(&index.0));
    for part in ["index ", secret.as_str(), "\n"] {
        text.push_str(part);
    }
    text
}

fn faulty_line(number: usize, fault: &str) -> KeyRingError {
    KeyRingError::new(format!("line {number} of the key ring {fault}"), LINE_REMEDY)
}

fn parse_id(text: &str) -> Option<KeyId> {
    let plain = text.len() == 8 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    plain.then(|| u32::from_str_radix(text, 16).ok())?.map(|id| KeyId(id.to_be_bytes()))
}

fn parse_state(text: &str) -> Option<KeyState> {
    [KeyState::Pending, KeyState::Active, KeyState::Retired, KeyState::Revoked]
        .into_iter()
        .find(|state| state_name(*state) == text)
}

const fn state_name(state: KeyState) -> &'static str {
    match state {
        KeyState::Pending => "pending",
        KeyState::Active => "active",
        KeyState::Retired => "retired",
        KeyState::Revoked => "revoked",
    }
}

fn parse_created(text: &str) -> Option<Timestamp> {
    let instant = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    u64::try_from(instant.unix_timestamp()).ok().map(Timestamp::from_seconds)
}

fn write_created(created: Timestamp) -> String {
    let seconds = i64::try_from(created.as_seconds()).unwrap_or(0);
    let instant = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    instant.format(&Rfc3339).unwrap_or_else(|_| "1970-01-01T00:00:00Z".into())
}

fn parse_secret(text: &str) -> Option<Secret> {
    base64url::decode_array(text.as_bytes()).map(Secret)
}

const BAD_SECRET: &str = "has a secret that is not 43 characters of base64url (32 bytes)";
const LINE_REMEDY: &str = "a key is `id state created secret`, the index secret `index secret`, a comment `# …`; a line break or \";\" ends each, and nothing is quoted";
const MAKE_ONE: &str = "put a ring's text there; KeyRing::generate()?.to_text() makes one";
