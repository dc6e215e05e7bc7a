//! The verbs that a `Session` of tower-sessions calls.

use std::sync::Arc;

use async_trait::async_trait;
use tower_sessions_core::{
    SessionStore,
    session::{Id, Record},
    session_store,
};

use super::{Baseline, Data, Known, SessionData, date, json};
use crate::{
    events::SessionEvent,
    session::Snapshot,
    store::{
        contract::StoreError,
        registry::RegistryError,
        row::{FieldTag, Row},
        vault::DataKeys,
    },
};

impl SessionData {
    /// The keys of the session's data, derived once.
    fn keys(&self, snapshot: &Snapshot) -> Arc<DataKeys> {
        let mut state = self.state();
        let derive = || Arc::new(self.registry.vault.data_keys(snapshot.id(), *snapshot.stored_id()));
        Arc::clone(state.keys.get_or_insert_with(derive))
    }

    /// Loads the session's data. `None` if it is over.
    async fn fetch(&self, snapshot: &Snapshot) -> Result<Option<Data>, StoreError> {
        let loaded = self
            .registry
            .load(snapshot.stored_id())
            .await
            .inspect_err(|_| self.state().store_failed = true)?;
        let Some((Row { deadline, .. }, fields)) = loaded else {
            self.state().gone = true;
            return Ok(None);
        };
        let (baseline, data) = self.open_fields(snapshot, fields);
        let mut state = self.state();
        state.baseline = Some(baseline);
        state.deadline = deadline;
        Ok(Some(data))
    }

    /// Opens the fields of a session: the JSON of each, and its value.
    pub(super) fn open_fields(
        &self,
        snapshot: &Snapshot,
        fields: Vec<(FieldTag, Vec<u8>)>,
    ) -> (Baseline, Data) {
        let vault = &self.registry.vault;
        let keys = self.keys(snapshot);
        let mut baseline = Baseline::with_capacity(fields.len());
        let mut data = Data::with_capacity(fields.len());
        for (tag, sealed) in fields {
            let Some((name, json)) = vault.open_field(&keys, &tag, sealed) else {
                // One field that was tampered with does not make the others someone else's.
                let session = self.registry.session_ref(snapshot.stored_id());
                self.registry.event(SessionEvent::RecordTampered(session));
                continue;
            };
            let Ok(value) = serde_json::from_slice(&json) else {
                // Authentic all the same: nested deeper than JSON is read. It stays as it is.
                tracing::warn!(target: "portcullis", "a session value is nested too deeply to be read");
                continue;
            };
            data.insert(name.clone(), value);
            baseline.insert(name, Known { tag: Some(tag), json });
        }
        (baseline, data)
    }

    /// Writes what `record` has changed.
    pub(super) async fn write(&self, snapshot: &Snapshot, record: &Record) -> Result<(), StoreError> {
        if self.state().baseline.is_none() {
            // `clear` before any read: which fields there are is not known yet.
            self.fetch(snapshot).await?;
        }
        if self.is_dropped(snapshot) {
            return Ok(());
        }
        let vault = &self.registry.vault;
        let keys = self.keys(snapshot);
        let mut written = Vec::new();
        let mut fields = Vec::new();
        {
            let state = self.state();
            let baseline = state.baseline.as_ref();
            for (name, value) in &record.data {
                let json = json(value)?;
                let known = baseline.and_then(|baseline| baseline.get(name));
                if known.is_none_or(|known| known.differs(&json)) {
                    let tag = known.and_then(|known| known.tag).unwrap_or_else(|| vault.tag(&keys, name));
                    let sealed = vault.seal_field(&keys, name, &tag, &json).map_err(StoreError::new)?;
                    fields.push((tag, Some(sealed)));
                    written.push((name.clone(), Known { tag: Some(tag), json }));
                }
            }
            for (name, known) in baseline.into_iter().flatten() {
                if !record.data.contains_key(name) {
                    fields.push((known.tag.unwrap_or_else(|| vault.tag(&keys, name)), None));
                }
            }
        }
        let present = self.state().deadline;
        let deadline = self.wished_end(record).filter(|wished| *wished < present);
        if fields.is_empty() && deadline.is_none() {
            return Ok(());
        }
        let committed = self.registry.commit(snapshot, fields, deadline).await;
        let Some(row) = committed.inspect_err(|_| self.state().store_failed = true)? else {
            self.state().gone = true;
            self.is_dropped(snapshot);
            return Ok(());
        };
        self.committed(snapshot, record, written, &row, deadline.is_some());
        Ok(())
    }

    fn committed(
        &self,
        snapshot: &Snapshot,
        record: &Record,
        written: Vec<(String, Known)>,
        row: &Row,
        shortened: bool,
    ) {
        {
            let mut state = self.state();
            state.deadline = row.deadline;
            if let Some(baseline) = &mut state.baseline {
                baseline.retain(|name, _| record.data.contains_key(name));
                baseline.extend(written);
            }
        }
        if shortened && let Ok(issued) = self.registry.reissue(snapshot, row) {
            self.reissued(issued);
        }
    }

    /// Whether a write to this session is dropped because it is over; then it is an event.
    pub(super) fn is_dropped(&self, snapshot: &Snapshot) -> bool {
        let gone = self.state().gone;
        if gone {
            let session = self.registry.session_ref(snapshot.stored_id());
            self.registry.event(SessionEvent::WriteToEndedSession(session));
        }
        gone
    }
}

#[async_trait]
impl SessionStore for SessionData {
    async fn create(&self, record: &mut Record) -> session_store::Result<()> {
        if self.state().abandoned {
            return Err(unavailable());
        }
        let begun = self.begin(record).await;
        begun.map_err(|error| {
            if let (RegistryError::Gone, Some(old)) = (&error, self.current()) {
                self.state().gone = true;
                self.is_dropped(&old);
            }
            self.state().store_failed |= matches!(error, RegistryError::Store | RegistryError::Random);
            self.abandon();
            unavailable()
        })
    }

    async fn save(&self, record: &Record) -> session_store::Result<()> {
        let live = {
            let state = self.state();
            if state.leaving && (!state.left_empty || record.data.is_empty()) {
                // Deleted, and not created anew: it ends when the request does, whatever is in it.
                return Ok(());
            }
            state.live.clone().filter(|_| !state.leaving)
        };
        match live {
            Some(snapshot) => self.write(&snapshot, record).await.map_err(|_| unavailable()),
            // An empty create led nowhere, and something was written after it, or it is written over and over.
            None => {
                let mut record = record.clone();
                self.create(&mut record).await
            }
        }
    }

    async fn load(&self, id: &Id) -> session_store::Result<Option<Record>> {
        self.mark_read();
        let live = {
            let mut state = self.state();
            if state.leaving || state.alias != Some(*id) {
                state.left_unread = state.leaving;
                return Ok(None);
            }
            state.live.clone()
        };
        let Some(snapshot) = live else { return Ok(None) };
        let data = self.fetch(&snapshot).await.map_err(|_| unavailable())?;
        // A session that ended reads as empty. It keeps its id, so that what is written to it comes to `save`, which
        // drops it, and not to `create`.
        let expiry_date = date(self.state().deadline);
        Ok(Some(Record { id: *id, data: data.unwrap_or_default(), expiry_date }))
    }

    async fn delete(&self, id: &Id) -> session_store::Result<()> {
        let mut state = self.state();
        if state.alias == Some(*id) && !state.abandoned {
            // A second time, as by `flush` and then `cycle_id`: what comes now is nobody's.
            state.left_empty |= state.leaving;
            state.leaving = true;
        }
        Ok(())
    }
}

/// What a handler's `Session` says when the store does not answer: no detail, it may end in a response.
fn unavailable() -> session_store::Error {
    session_store::Error::Backend("the session store did not answer as it should".into())
}
