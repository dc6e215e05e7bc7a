//! The sessions of a user: the index, the epoch, and the end of all of them.

use super::{
    super::{contract::StoreError, row::Row, steps::is_live},
    Shared,
    keys::{PARTITIONS, partition},
};
use crate::{
    clock::Timestamp,
    id::{StoredId, SubjectKey},
};

/// What became of a session that was to be removed.
pub(super) enum Dropped {
    /// It was live, and not superseded.
    Live,
    /// It was over already, or superseded.
    Over,
    /// It stays: it began later.
    Kept,
}

impl Shared {
    /// Enters a session that is about to be written into its user's index. The epoch it begins in.
    pub(super) async fn enter(
        &self,
        subject: &SubjectKey,
        id: &StoredId,
        ends_at: Timestamp,
    ) -> Result<u64, StoreError> {
        let call = self
            .call(
                &self.scripts.enter,
                partition(subject.as_bytes()),
                [self.keys.epoch(subject), self.keys.index(subject)],
            )
            .arg(id.as_bytes().as_slice())
            .arg(ends_at.as_millis())
            .arg(KEPT_BEYOND);
        call.run(&self.link).await.map_err(StoreError::new)
    }

    /// Raises the epoch, by one or to at least `epoch`, and ends the sessions below it. How many there were.
    ///
    /// Once the epoch is raised they are dead to whoever renews; what follows only clears them away. Each stays in the index
    /// until it is cleared, so whoever comes after one that was cut off clears the rest.
    pub(super) async fn end_all(&self, subject: &SubjectKey, epoch: Option<u64>) -> Result<u64, StoreError> {
        let at = partition(subject.as_bytes());
        let keys = [self.keys.epoch(subject), self.keys.index(subject), self.keys.feed(at)];
        let call = self
            .call(&self.scripts.raise, at, keys)
            .arg(self.place(at))
            .arg(subject.as_bytes().as_slice())
            .arg(epoch.map(|epoch| epoch.to_string()).unwrap_or_default());
        let (epoch, ids): (u64, Vec<Vec<u8>>) = self.publishing(at, true, &call).await?;
        let mut ended = 0;
        let mut cleared = Vec::new();
        for id in stored_ids(ids) {
            match self.drop_one(&id, epoch).await? {
                Dropped::Live => ended += 1,
                Dropped::Over => {}
                Dropped::Kept => continue,
            }
            cleared.push(id);
        }
        if !cleared.is_empty() {
            self.forget(subject, &cleared).await.map_err(StoreError::new)?;
        }
        Ok(ended)
    }

    /// Signs out everybody who was authenticated before `moment`: noted in every partition. Whoever is cut off in the middle
    /// has not done it, and does it again.
    pub(super) async fn end_before(&self, moment: Timestamp) -> Result<(), StoreError> {
        for at in 0..PARTITIONS {
            let keys = [self.keys.meta(at), self.keys.feed(at)];
            let call = self.call(&self.scripts.before, at, keys).arg(self.place(at)).arg(moment.as_millis());
            let _: u8 = self.publishing(at, true, &call).await?;
        }
        Ok(())
    }

    /// Removes a session that began before `epoch`, without a word.
    pub(super) async fn drop_one(&self, id: &StoredId, epoch: u64) -> Result<Dropped, StoreError> {
        let call =
            self.call(&self.scripts.drop, partition(id.as_bytes()), [self.keys.session(id)]).arg(epoch);
        match call.run::<u8>(&self.link).await.map_err(StoreError::new)? {
            1 => Ok(Dropped::Live),
            2 => Ok(Dropped::Kept),
            _ => Ok(Dropped::Over),
        }
    }

    /// The user's sessions that are not over and not superseded, oldest first.
    pub(super) async fn list(&self, subject: &SubjectKey) -> Result<Vec<(StoredId, Row)>, StoreError> {
        let call = self.call(
            &self.scripts.list,
            partition(subject.as_bytes()),
            [self.keys.epoch(subject), self.keys.index(subject)],
        );
        let (epoch, ids): (u64, Vec<Vec<u8>>) = call.run(&self.link).await.map_err(StoreError::new)?;
        let mut rows = Vec::new();
        for id in stored_ids(ids) {
            let read = self.read(&id, false).await?;
            let live = read.filter(|read| {
                is_live(&read.row, epoch, read.now)
                    && read.row.superseded_at.is_none()
                    && read.row.subject.as_ref() == Some(subject)
            });
            rows.extend(live.map(|read| (id, read.row)));
        }
        rows.sort_by_key(|(id, row)| (row.created_at, *id));
        Ok(rows)
    }
}

fn stored_ids(ids: Vec<Vec<u8>>) -> Vec<StoredId> {
    ids.into_iter().filter_map(|id| Some(StoredId::from_bytes(id.try_into().ok()?))).collect()
}

/// Milliseconds that an index is kept beyond the end of its last session.
const KEPT_BEYOND: u64 = 60_000;
