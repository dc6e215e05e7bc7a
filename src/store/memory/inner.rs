//! What lies in memory, and the small steps over it. Whoever holds it holds the lock.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    time::Duration,
};

use super::super::{
    contract::{CreateError, Seen},
    revocation::Revocation,
    row::{FieldTag, Row},
    steps::{is_as_seen, is_live},
    uniform::Uniform,
};
use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
};

#[derive(Default)]
pub(super) struct Inner {
    pub(super) sessions: HashMap<StoredId, Stored, Uniform>,
    pub(super) subjects: HashMap<SubjectKey, Subject, Uniform>,
    pub(super) feed: VecDeque<(u64, Revocation, Timestamp)>,
    pub(super) last: u64,
    pub(super) index: Option<[u8; 16]>,
    /// Who was authenticated before this is signed out.
    pub(super) before: Timestamp,
    /// The largest window that anybody purges with.
    pub(super) window: Duration,
}

pub(super) struct Stored {
    pub(super) row: Row,
    pub(super) fields: BTreeMap<FieldTag, Vec<u8>>,
}

impl Stored {
    pub(super) fn fields(&self) -> Vec<(FieldTag, Vec<u8>)> {
        self.fields.iter().map(|(tag, value)| (*tag, value.clone())).collect()
    }

    pub(super) fn check(&self, seen: Option<&Seen>) -> Result<(), CreateError> {
        let fields = if seen.is_some() { self.fields() } else { Vec::new() };
        if is_as_seen(seen, &self.row, &fields) { Ok(()) } else { Err(CreateError::ReplacedChanged) }
    }
}

#[derive(Default)]
pub(super) struct Subject {
    pub(super) epoch: u64,
    pub(super) ids: BTreeSet<StoredId>,
}

impl Inner {
    pub(super) fn epoch(&self, subject: &SubjectKey) -> u64 {
        self.subjects.get(subject).map_or(0, |subject| subject.epoch)
    }

    pub(super) fn live(&self, id: &StoredId, now: Timestamp) -> Option<&Stored> {
        let stored = self.sessions.get(id)?;
        let epoch = stored.row.subject.map_or(0, |subject| self.epoch(&subject));
        (is_live(&stored.row, epoch, now) && stored.row.authenticated_at >= self.before).then_some(stored)
    }

    pub(super) fn live_mut(&mut self, id: &StoredId, now: Timestamp) -> Option<&mut Stored> {
        let stored = self.sessions.get_mut(id)?;
        let subject = stored.row.subject.and_then(|subject| self.subjects.get(&subject));
        let live = is_live(&stored.row, subject.map_or(0, |subject| subject.epoch), now);
        (live && stored.row.authenticated_at >= self.before).then_some(stored)
    }

    pub(super) fn write(&mut self, id: &StoredId, row: Row) {
        if let Some(stored) = self.sessions.get_mut(id) {
            stored.row = row;
        }
    }

    pub(super) fn remove(&mut self, id: &StoredId) -> Option<Stored> {
        let stored = self.sessions.remove(id)?;
        if let Some(subject) = stored.row.subject.and_then(|subject| self.subjects.get_mut(&subject)) {
            subject.ids.remove(id);
        }
        Some(stored)
    }

    /// Ends a session and those whose newer id it is. Published also where nothing is found: a cookie may be out there.
    pub(super) fn end(&mut self, id: &StoredId, now: Timestamp) {
        let mut next = Some(*id);
        while let Some(id) = next {
            self.publish(Revocation::Session(id), now);
            next = self.remove(&id).and_then(|stored| stored.row.predecessor);
        }
    }

    /// Raises a user's epoch to at least `epoch`, and ends the sessions below it. How many there were.
    pub(super) fn end_all(&mut self, subject: SubjectKey, epoch: u64, now: Timestamp) -> u64 {
        let entry = self.subjects.entry(subject).or_default();
        entry.epoch = entry.epoch.max(epoch);
        let ids = entry.ids.clone();
        let mut ended = 0;
        for id in ids {
            if let Some(row) = self.sessions.get(&id).map(|stored| &stored.row)
                && row.epoch < epoch
            {
                ended += u64::from(is_live(row, 0, now) && row.superseded_at.is_none());
                self.remove(&id);
            }
        }
        self.publish(Revocation::Subject(subject, epoch), now);
        ended
    }

    pub(super) fn publish(&mut self, revocation: Revocation, now: Timestamp) {
        self.last += 1;
        self.feed.push_back((self.last, revocation, now));
    }
}
