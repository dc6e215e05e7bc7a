//! Revocations that the store has not taken yet, in memory and, if chosen, in a file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    base64url,
    clock::Timestamp,
    id::{StoredId, SubjectKey},
};

/// Something to be revoked when the store is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owed {
    /// A session.
    Session(StoredId),
    /// All sessions of a user, below this epoch if it is known.
    Subject(SubjectKey, Option<u64>),
    /// All sessions whose user was authenticated before an instant.
    Before(Timestamp),
}

/// What is owed to the store.
#[derive(Debug)]
pub(super) struct Backlog {
    owed: Mutex<Vec<Owed>>,
    file: Option<PathBuf>,
}

impl Backlog {
    /// What a file still holds from the last time, or nothing.
    ///
    /// # Errors
    /// If the file cannot be read and written.
    pub(super) fn open(file: Option<PathBuf>) -> io::Result<Self> {
        let mut owed = Vec::new();
        if let Some(path) = &file {
            drop(open(path, true)?);
            owed.extend(fs::read_to_string(path)?.lines().filter_map(parse));
        }
        let backlog = Self { owed: Mutex::new(owed), file };
        // Written anew, so that no line which a crash has cut off is left for the next to be glued to.
        backlog.remove(&[])?;
        Ok(backlog)
    }

    /// Notes what is owed. Whether that could be written to the file, if there is one.
    pub(super) fn add(&self, owed: Owed) -> io::Result<()> {
        let mut all = self.lock();
        if all.contains(&owed) {
            return Ok(());
        }
        all.push(owed);
        let Some(path) = &self.file else { return Ok(()) };
        let mut file = open(path, true)?;
        // A line of its own, also after one that could be written only in part.
        file.write_all(format!("\n{}", line(&owed)).as_bytes())?;
        file.sync_data()
    }

    /// What is owed at this moment.
    pub(super) fn all(&self) -> Vec<Owed> {
        self.lock().clone()
    }

    /// Strikes out what the store has taken.
    pub(super) fn remove(&self, taken: &[Owed]) -> io::Result<()> {
        let mut all = self.lock();
        all.retain(|owed| !taken.contains(owed));
        let Some(path) = &self.file else { return Ok(()) };
        // A new file in the place of the old: whoever dies in between leaves one of the two.
        let mut new = path.clone().into_os_string();
        new.push(".new");
        let mut file = open(&new, false)?;
        file.write_all(all.iter().map(line).collect::<String>().as_bytes())?;
        file.sync_data()?;
        fs::rename(&new, path)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Owed>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the file for its owner alone.
fn open(path: impl AsRef<Path>, keep: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(keep).write(true).truncate(!keep);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn line(owed: &Owed) -> String {
    match owed {
        Owed::Session(id) => format!("session {}\n", base64url::encode(id.as_bytes())),
        Owed::Subject(subject, epoch) => {
            let epoch = epoch.map(|epoch| format!(" {epoch}")).unwrap_or_default();
            format!("subject {}{epoch}\n", base64url::encode(subject.as_bytes()))
        }
        Owed::Before(moment) => format!("before {}\n", moment.as_millis()),
    }
}

/// A line that was cut off by a crash is none.
fn parse(line: &str) -> Option<Owed> {
    let (kind, name) = line.split_once(' ')?;
    match kind {
        "session" => base64url::decode_array(name.as_bytes()).map(StoredId::from_bytes).map(Owed::Session),
        "subject" => {
            let (name, epoch) = match name.split_once(' ') {
                Some((name, epoch)) => (name, Some(epoch.parse().ok()?)),
                None => (name, None),
            };
            base64url::decode_array(name.as_bytes())
                .map(|key| Owed::Subject(SubjectKey::from_bytes(key), epoch))
        }
        "before" => name.parse().ok().map(Timestamp::from_millis).map(Owed::Before),
        _ => None,
    }
}

#[cfg(test)]
#[path = "../../tests/unit/backlog.rs"]
mod tests;
