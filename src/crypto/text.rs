//! The text form of the key ring, the same in a file and in a variable.
//!
//! ```text
//! # a comment; a semicolon ends a line as a line break does
//! 5f3a9c01 active 2026-11-30T12:00:00Z <base64url of 32 bytes>
//! index <base64url of 32 bytes>
//! ```
//!
//! Later versions must read what this one writes.

use std::{
    fmt, fs,
    io::{ErrorKind, Write as _},
    path::Path,
};

use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use zeroize::Zeroizing;

use crate::{
    base64url,
    clock::Timestamp,
    crypto::{
        key_ring::{Entry, KeyId, KeyRing, KeyState, Secret},
        random,
    },
};

/// Why there is no key ring, and what to do about it. Never shows a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyRingError {
    fault: String,
    remedy: &'static str,
}

impl KeyRingError {
    fn new(fault: impl Into<String>, remedy: &'static str) -> Self {
        Self { fault: fault.into(), remedy }
    }

    fn line(number: usize, fault: &str) -> Self {
        Self::new(format!("line {number} of the key ring {fault}"), LINE_REMEDY)
    }

    pub(crate) fn random() -> Self {
        Self::new(
            "the operating system gave no random bytes",
            "check that getrandom(2) works in this environment",
        )
    }

    pub(crate) fn variable(name: &str) -> Self {
        Self::new(format!("the environment variable {name} is not set"), "set it to a key ring's text form")
    }

    pub(crate) fn no_active_key() -> Self {
        Self::new(
            "the key ring has no active key",
            "give exactly one key the state `active`: it seals new cookies",
        )
    }

    pub(crate) fn underivable() -> Self {
        Self::new("a root secret gives no signing key", "replace it by a new one")
    }
}

impl fmt::Display for KeyRingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fault, self.remedy)
    }
}

impl fmt::Debug for KeyRingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRingError({self})")
    }
}

impl std::error::Error for KeyRingError {}

/// Parses the text form.
pub(crate) fn parse(text: &str) -> Result<KeyRing, KeyRingError> {
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
                let secret = parse_secret(secret).ok_or_else(|| KeyRingError::line(number, BAD_SECRET))?;
                if index.replace(secret).is_some() {
                    return Err(KeyRingError::line(number, "states a second index secret"));
                }
            }
            [id, state, created, secret] => entries.push(Entry {
                id: parse_id(id)
                    .ok_or_else(|| KeyRingError::line(number, "has an id that is not 8 digits of 0-9a-f"))?,
                state: parse_state(state).ok_or_else(|| {
                    KeyRingError::line(number, "has a state other than pending, active, retired and revoked")
                })?,
                created: parse_created(created)
                    .ok_or_else(|| KeyRingError::line(number, "has a date unlike 2026-11-30T12:00:00Z"))?,
                secret: parse_secret(secret).ok_or_else(|| KeyRingError::line(number, BAD_SECRET))?,
            }),
            _ => return Err(KeyRingError::line(number, "is neither a key nor the index secret")),
        }
    }
    let index = index.ok_or_else(|| {
        KeyRingError::new(
            "the key ring has no index secret",
            "copy the `index` line from the ring's first version; without it no stored session can be found",
        )
    })?;
    KeyRing::assemble(entries, index)
}

/// Checks what only the whole ring can show.
pub(crate) fn check(entries: &[Entry], index: &Secret) -> Result<(), KeyRingError> {
    let active = entries.iter().filter(|entry| entry.state == KeyState::Active).count();
    if active > 1 {
        return Err(KeyRingError::new(
            format!("the key ring has {active} active keys"),
            "leave one active and make the others `pending` or `retired`",
        ));
    }
    for (i, entry) in entries.iter().enumerate() {
        if entries.iter().skip(i + 1).any(|other| other.id == entry.id) {
            return Err(KeyRingError::new(
                format!("the key id {} stands twice", entry.id),
                "give each key its own id",
            ));
        }
        if entry.secret == *index || entries.iter().skip(i + 1).any(|other| other.secret == entry.secret) {
            return Err(KeyRingError::new(
                format!("the secret of key {} stands twice", entry.id),
                "generate a new key: a copied secret cannot be rotated away",
            ));
        }
    }
    let mut secrets = entries.iter().map(|entry| &entry.secret).chain([index]);
    if secrets.any(|secret| secret.0.iter().all(|byte| secret.0.first() == Some(byte))) {
        return Err(KeyRingError::new(
            "a secret is one byte repeated",
            "generate keys with KeyRing::generate; never write them by hand",
        ));
    }
    Ok(())
}

/// Writes the text form, one entry a line.
pub(crate) fn write(entries: &[Entry], index: &Secret) -> Zeroizing<String> {
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

/// Reads a ring from a file that only its owner and group can get at.
pub(crate) fn read_file(path: &Path) -> Result<KeyRing, KeyRingError> {
    let unreadable = |error: &std::io::Error| {
        KeyRingError::new(
            format!("the key file {} cannot be read ({})", path.display(), error.kind()),
            "check the path and that this process may read it",
        )
    };
    let metadata = fs::metadata(path).map_err(|error| unreadable(&error))?;
    check_mode(path, &metadata)?;
    let text = Zeroizing::new(fs::read_to_string(path).map_err(|error| unreadable(&error))?);
    parse(&text)
}

/// Reads a ring from a file, or makes the file.
pub(crate) fn read_or_make_file(path: &Path) -> Result<KeyRing, KeyRingError> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        make_file(path, &KeyRing::generate()?.to_text()).map_err(|error| {
            KeyRingError::new(
                format!("the key file {} cannot be made ({})", path.display(), error.kind()),
                "check that its folder exists and that this process may write there",
            )
        })?;
    }
    read_file(path)
}

/// Writes the file whole under another name and links it into place, so that nobody ever reads half of it and the first
/// of two processes wins.
fn make_file(path: &Path, text: &str) -> std::io::Result<()> {
    let suffix: [u8; 8] = random::bytes().map_err(std::io::Error::other)?;
    let mut name = path.file_name().map_or_else(Default::default, std::ffi::OsStr::to_os_string);
    name.push(format!(".{:016x}.tmp", u64::from_be_bytes(suffix)));
    let temporary = path.with_file_name(name);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let linked = written.and_then(|()| match fs::hard_link(&temporary, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    });
    let removed = fs::remove_file(&temporary);
    linked.and(removed)
}

#[cfg(unix)]
fn check_mode(path: &Path, metadata: &fs::Metadata) -> Result<(), KeyRingError> {
    let mode = std::os::unix::fs::MetadataExt::mode(metadata) & 0o777;
    if mode & 0o007 == 0 {
        return Ok(());
    }
    Err(KeyRingError::new(
        format!(
            "the key file {} has mode {mode:04o}: every user of this machine can get at it",
            path.display()
        ),
        "chmod 600 it; if others may have read it, replace the keys too",
    ))
}

#[cfg(not(unix))]
fn check_mode(_path: &Path, _metadata: &fs::Metadata) -> Result<(), KeyRingError> {
    Ok(())
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
const LINE_REMEDY: &str =
    "a key is `id state created secret`, the index secret `index secret`, a comment `# …`";
