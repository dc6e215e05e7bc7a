//! What must not be admitted although its cookie is fresh. Asked on every request, so asking costs one load of an
//! atomic counter where nothing was revoked, takes no lock that all requests share, and never waits for a store.
//!
//! An entry lives as long as the freshest cookie it can matter to; the set drops nothing before.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
};

use tokio::sync::watch;

use super::revocation::Revocation;
use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
    session::Standing,
};

/// The revocations that still matter, and those who wait for one.
pub(crate) struct RevocationSet {
    /// How many entries or waiting tasks lie in each slot of the ids; a zero answers without a lock.
    counts: Box<[AtomicU32]>,
    shards: Box<[Mutex<Shard>]>,
    subjects: Mutex<HashMap<SubjectKey, SubjectEntry>>,
    subject_count: AtomicUsize,
    /// Milliseconds: who was authenticated before this is signed out. Nothing is gained by forgetting it.
    before: AtomicU64,
    synced: AtomicBool,
    /// Milliseconds: the feed misses nothing since then.
    complete_since: AtomicU64,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<StoredId, Entry>,
    /// The id before, of sessions that were given a newer one here; and until when its cookies can be fresh.
    older: HashMap<StoredId, (StoredId, Timestamp)>,
    watchers: HashMap<StoredId, Watcher>,
}

#[derive(Clone, Copy)]
struct Entry {
    revoked: bool,
    superseded: bool,
    claims_version: u64,
    until: Timestamp,
}

impl Entry {
    const fn until(until: Timestamp) -> Self {
        Self { revoked: false, superseded: false, claims_version: 0, until }
    }
}

#[derive(Clone, Copy)]
struct SubjectEntry {
    revoked_below: u64,
    /// The user was signed out, and the store has not taken it yet.
    owed: bool,
    /// Nor is it known below which epoch.
    all: bool,
    until: Timestamp,
}

struct Watcher {
    ended: watch::Sender<bool>,
    authenticated_at: Timestamp,
    subject: Option<(SubjectKey, u64)>,
}

impl RevocationSet {
    pub(crate) fn new() -> Self {
        Self {
            counts: (0..SLOTS).map(|_| AtomicU32::new(0)).collect(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            subjects: Mutex::default(),
            subject_count: AtomicUsize::new(0),
            before: AtomicU64::new(0),
            synced: AtomicBool::new(false),
            complete_since: AtomicU64::new(u64::MAX),
        }
    }

    /// Whether this set knows of every revocation that can matter to a cookie minted at that instant. Where it does not,
    /// because the feed is not being read or the store is younger than the cookie, the store must be asked.
    pub(crate) fn covers(&self, minted_at: Timestamp) -> bool {
        self.synced.load(Ordering::Acquire)
            && minted_at.as_millis() >= self.complete_since.load(Ordering::Relaxed)
    }

    /// The whole window of the feed was read, which misses nothing since then.
    pub(crate) fn set_synced(&self, complete_since: Timestamp) {
        self.complete_since.store(complete_since.as_millis(), Ordering::Relaxed);
        self.synced.store(true, Ordering::Release);
    }

    /// Nobody reads the feed any more.
    pub(crate) fn set_unsynced(&self) {
        self.synced.store(false, Ordering::Release);
    }

    /// Whether a session has a newer id, as far as this set knows.
    pub(crate) fn is_superseded(&self, id: &StoredId) -> bool {
        self.count(id).load(Ordering::Acquire) != 0
            && self.shard(id).entries.get(id).is_some_and(|entry| entry.superseded)
    }

    /// Judges a session whose cookie carries `claims_version`.
    pub(crate) fn standing(&self, id: &StoredId, claims_version: u64) -> Standing {
        if self.count(id).load(Ordering::Acquire) == 0 {
            return Standing::Clear;
        }
        match self.shard(id).entries.get(id) {
            Some(entry) if entry.revoked => Standing::Revoked,
            Some(entry) if claims_version < entry.claims_version => Standing::Outdated,
            _ => Standing::Clear,
        }
    }

    /// Whether everybody who was authenticated at that instant is signed out.
    pub(crate) fn is_before(&self, authenticated_at: Timestamp) -> bool {
        authenticated_at.as_millis() < self.before.load(Ordering::Acquire)
    }

    /// Whether any user was signed out everywhere; only then is the key of a user worth computing.
    pub(crate) fn knows_subjects(&self) -> bool {
        self.subject_count.load(Ordering::Acquire) != 0
    }

    /// Whether a session of `subject` that began in `epoch` was ended with all others.
    pub(crate) fn is_subject_revoked(&self, subject: &SubjectKey, epoch: u64) -> bool {
        lock(&self.subjects).get(subject).is_some_and(|entry| entry.all || epoch < entry.revoked_below)
    }

    /// Takes an entry that matters until `until`, and tells those who wait for it.
    pub(crate) fn insert(&self, revocation: Revocation, until: Timestamp) {
        match revocation {
            Revocation::Session(id) => {
                self.insert_with_older(&id, Entry { revoked: true, ..Entry::until(until) });
            }
            Revocation::Claims(id, claims_version) => {
                self.insert_entry(&id, Entry { claims_version, ..Entry::until(until) });
                if let Some(older) = self.older(&id) {
                    self.insert_with_older(&older, Entry { claims_version: u64::MAX, ..Entry::until(until) });
                }
            }
            Revocation::Superseded(id) => {
                self.insert_entry(&id, Entry { superseded: true, ..Entry::until(until) });
            }
            Revocation::Subject(subject, epoch) => self.insert_subject(subject, epoch, until),
            Revocation::Before(moment) => {
                if self.before.fetch_max(moment.as_millis(), Ordering::AcqRel) < moment.as_millis() {
                    self.tell_watchers(|watcher| watcher.authenticated_at < moment);
                }
            }
        }
    }

    /// Notes that `newer` is the newer id of `older`, whose cookies are fresh until `until` at most.
    pub(crate) fn link(&self, newer: &StoredId, older: StoredId, until: Timestamp) {
        let mut shard = self.shard(newer);
        shard.older.insert(*newer, (older, until));
        let has_ended = shard.entries.get(newer).is_some_and(|entry| entry.revoked);
        drop(shard);
        if has_ended {
            // Another request ended it before this one could tell.
            self.insert_with_older(&older, Entry { revoked: true, ..Entry::until(until) });
        }
    }

    /// Drops what matters to no cookie any more.
    pub(crate) fn prune(&self, now: Timestamp) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            shard.entries.retain(|id, entry| {
                let keep = now < entry.until;
                if !keep {
                    self.count(id).fetch_sub(1, Ordering::AcqRel);
                }
                keep
            });
            shard.older.retain(|_, (_, until)| now < *until);
            shard.watchers.retain(|_, watcher| watcher.ended.receiver_count() > 0);
        }
        let mut subjects = lock(&self.subjects);
        subjects.retain(|_, entry| entry.owed || now < entry.until);
        self.subject_count.store(subjects.len(), Ordering::Release);
    }

    /// A receiver that turns true when the session ends.
    pub(crate) fn watch(
        &self,
        id: &StoredId,
        authenticated_at: Timestamp,
        subject: Option<(SubjectKey, u64)>,
    ) -> watch::Receiver<bool> {
        let mut shard = self.shard(id);
        let ended = shard.entries.get(id).is_some_and(|entry| entry.revoked)
            || self.is_before(authenticated_at)
            || subject.is_some_and(|(subject, epoch)| self.is_subject_revoked(&subject, epoch));
        let watcher = shard.watchers.entry(*id).or_insert_with(|| Watcher {
            ended: watch::Sender::new(ended),
            authenticated_at,
            subject,
        });
        watcher.ended.subscribe()
    }

    /// Takes an entry for a session and for the ids it had before: what a store tells of each through the feed is known
    /// here at once.
    fn insert_with_older(&self, id: &StoredId, new: Entry) {
        let mut next = Some(*id);
        // Where one is known already, those before it are: each was inserted with them.
        while let Some(id) = next.filter(|id| !self.knows(id, &new)) {
            self.insert_entry(&id, new);
            next = self.older(&id);
        }
    }

    fn older(&self, id: &StoredId) -> Option<StoredId> {
        self.shard(id).older.get(id).map(|(older, _)| *older)
    }

    /// Whether an entry would change nothing.
    fn knows(&self, id: &StoredId, new: &Entry) -> bool {
        self.shard(id).entries.get(id).is_some_and(|old| {
            old.revoked >= new.revoked && old.claims_version >= new.claims_version && old.until >= new.until
        })
    }

    fn insert_entry(&self, id: &StoredId, new: Entry) {
        let mut shard = self.shard(id);
        let merged = match shard.entries.get(id) {
            Some(old) => Entry {
                revoked: old.revoked || new.revoked,
                superseded: old.superseded || new.superseded,
                claims_version: old.claims_version.max(new.claims_version),
                until: old.until.max(new.until),
            },
            None => {
                self.count(id).fetch_add(1, Ordering::AcqRel);
                new
            }
        };
        shard.entries.insert(*id, merged);
        if merged.revoked
            && let Some(watcher) = shard.watchers.get(id)
        {
            watcher.ended.send_replace(true);
        }
    }

    fn insert_subject(&self, subject: SubjectKey, epoch: u64, until: Timestamp) {
        {
            let mut subjects = lock(&self.subjects);
            let entry = subjects.entry(subject).or_insert(SubjectEntry {
                revoked_below: 0,
                owed: false,
                all: false,
                until,
            });
            let is_news = epoch > entry.revoked_below;
            entry.revoked_below = entry.revoked_below.max(epoch);
            entry.until = entry.until.max(until);
            self.subject_count.store(subjects.len(), Ordering::Release);
            if !is_news {
                // The window is read again and again; those who wait were told the first time.
                return;
            }
        }
        self.tell_watchers_of(&subject, epoch);
    }

    /// Holds the sessions of a user to be ended, below an epoch or, where none is known, all of them until the store has taken
    /// it and the feed tells.
    pub(crate) fn owe_subject(&self, subject: &SubjectKey, below: Option<u64>, until: Timestamp) {
        self.insert_subject(*subject, below.unwrap_or(0), until);
        if let Some(entry) = lock(&self.subjects).get_mut(subject) {
            entry.owed = true;
            entry.all |= below.is_none();
        }
        self.tell_watchers_of(subject, below.unwrap_or(u64::MAX));
    }

    /// Whether a user's sign-out everywhere has still to be written.
    pub(crate) fn is_owed(&self, subject: &SubjectKey) -> bool {
        lock(&self.subjects).get(subject).is_some_and(|entry| entry.owed)
    }

    /// The store has taken it, and what it said of the epoch was heard.
    pub(crate) fn subject_is_paid(&self, subject: &SubjectKey) {
        if let Some(entry) = lock(&self.subjects).get_mut(subject) {
            (entry.owed, entry.all) = (false, false);
        }
    }

    fn tell_watchers_of(&self, subject: &SubjectKey, epoch: u64) {
        self.tell_watchers(|watcher| {
            watcher.subject.is_some_and(|(watched, began)| watched == *subject && began < epoch)
        });
    }

    fn tell_watchers(&self, are_out: impl Fn(&Watcher) -> bool) {
        for shard in &self.shards {
            for watcher in lock(shard).watchers.values().filter(|watcher| are_out(watcher)) {
                watcher.ended.send_replace(true);
            }
        }
    }

    fn count(&self, id: &StoredId) -> &AtomicU32 {
        static NEVER: AtomicU32 = AtomicU32::new(1);
        // A slot that is not there sends the question to the shard, which is always right.
        self.counts.get(usize::from(id.spread()) % SLOTS).unwrap_or(&NEVER)
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "the index is taken modulo the number of shards, which is fixed"
    )]
    fn shard(&self, id: &StoredId) -> MutexGuard<'_, Shard> {
        lock(&self.shards[usize::from(id.spread()) % SHARDS])
    }
}

impl fmt::Debug for RevocationSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RevocationSet").field("synced", &self.synced).finish_non_exhaustive()
    }
}

/// A panic elsewhere leaves the map as it was: no step here is done by halves.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// 64 KiB of counters: with 10,000 entries one request in seven asks a shard.
const SLOTS: usize = 1 << 14;
const SHARDS: usize = 64;

#[cfg(test)]
#[path = "../../tests/unit/revocations.rs"]
mod tests;
