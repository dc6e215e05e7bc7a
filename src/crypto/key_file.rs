//! The key ring in a file that only its owner and group can get at.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    path::Path,
};

use zeroize::Zeroizing;

use super::{
    key_ring::{KeyRing, KeyRingError},
    random,
};

impl KeyRing {
    /// Reads the text form from a file.
    ///
    /// # Errors
    /// If the file cannot be read, if anybody but its owner and group can get at it, or if its text is no key ring.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, KeyRingError> {
        read(path.as_ref())
    }

    /// Reads the text form from a file, and makes the file with a new ring (mode 0600) if there is none.
    ///
    /// Two processes that start together end up with the same ring. Meant for one machine; where several share a site,
    /// give all of them one ring.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file), and if the file cannot be made.
    pub fn from_file_or_generate(path: impl AsRef<Path>) -> Result<Self, KeyRingError> {
        read_or_make(path.as_ref())
    }
}

/// Reads a ring from a file that only its owner and group can get at.
fn read(path: &Path) -> Result<KeyRing, KeyRingError> {
    let unreadable = |error: &std::io::Error| {
        KeyRingError::new(
            format!("the key file {} cannot be read ({})", path.display(), error.kind()),
            "check the path and that this process may read it",
        )
    };
    let metadata = fs::metadata(path).map_err(|error| unreadable(&error))?;
    if metadata.is_dir() {
        return Err(KeyRingError::new(
            format!("the key file {} is a folder", path.display()),
            "name a file in it",
        ));
    }
    check_mode(path, &metadata)?;
    let text = Zeroizing::new(fs::read_to_string(path).map_err(|error| unreadable(&error))?);
    KeyRing::from_text(&text).map_err(|error| error.at(&format!("the key file {}", path.display())))
}

/// Reads a ring from a file, or makes the file.
fn read_or_make(path: &Path) -> Result<KeyRing, KeyRingError> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        make(path, &KeyRing::generate()?.to_text()).map_err(|error| {
            KeyRingError::new(
                format!("the key file {} cannot be made ({})", path.display(), error.kind()),
                "check that its folder exists and that this process may write there",
            )
        })?;
    }
    read(path)
}

/// Writes the file whole under another name and links it into place, so that nobody ever reads half of it and the first
/// of two processes wins.
fn make(path: &Path, text: &str) -> std::io::Result<()> {
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
