//! The bridge to tower-sessions: one value per request that a `Session` takes for its store.
//!
//! It loads only when a handler reads, writes only what changed, never creates under an id that somebody sent, and
//! never brings back a session that ended. Deleting is put off: `flush` or `cycle_id` and what follows become one step
//! of the store, so a failure between the two loses nothing.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use http::HeaderValue;
use time::OffsetDateTime;
use tower_sessions_core::{
    Expiry, Session, SessionStore,
    session::{Id, Record},
    session_store,
};
use zeroize::Zeroizing;

use super::{
    contract::{Replacement, StoreError},
    registry::{Beginning, Continued, Issued, Registry, RegistryError},
    row::Row,
};
use crate::{
    clock::Timestamp,
    events::SessionEvent,
    id::StoredId,
    session::{Admitted, ClientContext, Private, Snapshot},
};

/// The session of one request.
pub(crate) struct SessionData {
    pub(crate) registry: Arc<Registry>,
    pub(crate) client: Client,
    /// Who was let in when the request began; what follows does not change it.
    initial: Option<Admitted>,
    /// The expiry the core was given. It states it again at every save; another one was set by a handler.
    given_expiry: OffsetDateTime,
    was_read: AtomicBool,
    state: Mutex<State>,
}

/// What the client of the request shows, kept until a session is created for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Client {
    pub(crate) user_agent: Option<HeaderValue>,
    pub(crate) address: Option<IpAddr>,
}

impl Client {
    pub(crate) fn context(&self) -> ClientContext<'_> {
        ClientContext {
            user_agent: self.user_agent.as_ref().map(HeaderValue::as_bytes),
            address: self.address,
        }
    }
}

/// What the response is to do with our cookies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum CookieChange {
    /// Leave both as they are.
    #[default]
    None,
    /// Set the session cookie, and the token where there is a new one.
    Set { cookie: String, token: Option<String>, ends_at: Timestamp },
    /// Remove both.
    Remove,
}

/// What the next new session is for.
pub(crate) enum Intent {
    /// Somebody signed in.
    Login { private: Private, remembered: bool },
    /// The user proved again who they are.
    Reauthentication { methods: Option<String> },
}

#[derive(Default)]
struct State {
    live: Option<Snapshot>,
    /// The name the core knows the session by: from its reference, so that a `{:?}` of a `Session` says nothing.
    alias: Option<Id>,
    /// The JSON of each field as the store has it; none before the first load.
    baseline: Option<HashMap<String, Zeroizing<Vec<u8>>>>,
    deadline: Timestamp,
    /// `delete` was called: what follows decides whether it was a flush or a new id.
    leaving: bool,
    /// The session ended, or a login failed: nothing of this request is written any more.
    closed: bool,
    intent: Option<Intent>,
    store_failed: bool,
    cookies: CookieChange,
}

impl SessionData {
    pub(crate) fn new(
        registry: Arc<Registry>,
        client: Client,
        admitted: Option<Admitted>,
        cookies: CookieChange,
        now: Timestamp,
    ) -> Self {
        let mut state = State { cookies, ..State::default() };
        let mut ends_at = now + registry.timeouts.absolute_of(false);
        if let Some(admitted) = &admitted {
            ends_at = admitted.snapshot().fixed().ends_at;
            state.settle(&registry, admitted.snapshot().clone());
        }
        Self {
            registry,
            client,
            initial: admitted,
            given_expiry: date(ends_at),
            was_read: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }

    /// The `Session` over this value that a handler gets.
    pub(crate) fn session(self: &Arc<Self>) -> Session {
        // An instant, because the other kinds of expiry read the clock inside the core.
        Session::new(self.state().alias, Arc::clone(self), Some(Expiry::AtDateTime(self.given_expiry)))
    }

    /// Who was let in when the request began.
    pub(crate) const fn initial(&self) -> Option<&Admitted> {
        self.initial.as_ref()
    }

    /// The session as it is now: after a login another one than at the beginning.
    pub(crate) fn current(&self) -> Option<Snapshot> {
        self.state().live.clone()
    }

    /// Whether a handler read the session, so that the response depends on the cookie.
    pub(crate) fn was_read(&self) -> bool {
        self.was_read.load(Ordering::Relaxed)
    }

    /// The response depends on who is signed in.
    pub(crate) fn mark_read(&self) {
        self.was_read.store(true, Ordering::Relaxed);
    }

    /// The store failed under a handler, which may have answered as if nothing was wrong.
    pub(crate) fn store_failed(&self) -> bool {
        self.state().store_failed
    }

    /// What is to be done with our cookies.
    pub(crate) fn take_cookies(&self) -> CookieChange {
        std::mem::take(&mut self.state().cookies)
    }

    /// The next new session is for this.
    pub(crate) fn intend(&self, intent: Intent) {
        self.state().intent = Some(intent);
    }

    /// A login or a new id that did not come about: nothing half-done may be written, and the old session stays.
    pub(crate) fn abandon(&self) {
        let mut state = self.state();
        state.intent = None;
        state.leaving = false;
        state.closed = true;
    }

    /// The session ended by the user's will: its cookies go, and what is written afterwards is a new session's.
    pub(crate) fn leave(&self) {
        let mut state = self.state();
        *state = State { cookies: CookieChange::Remove, ..State::default() };
    }

    /// Takes a changed session cookie, the session being the same.
    pub(crate) fn reissued(&self, issued: Issued) {
        let mut state = self.state();
        let ends_at = issued.admitted.snapshot().fixed().ends_at;
        // A token that was won in this request is sent all the same.
        let token = match std::mem::take(&mut state.cookies) {
            CookieChange::Set { token, .. } => token,
            CookieChange::None | CookieChange::Remove => None,
        };
        state.cookies = CookieChange::Set { cookie: issued.cookie, token, ends_at };
        state.live = Some(issued.admitted.snapshot().clone());
    }

    /// A lone `flush` or `delete`, with nothing written after it: the session to be ended.
    pub(crate) fn left(&self) -> Option<StoredId> {
        let state = self.state();
        state.live.as_ref().filter(|_| state.leaving && !state.closed).map(|snapshot| *snapshot.stored_id())
    }

    /// Loads the session's data. `None` if it is over.
    async fn fetch(
        &self,
        snapshot: &Snapshot,
    ) -> Result<Option<HashMap<String, serde_json::Value>>, StoreError> {
        let loaded = self
            .registry
            .load(snapshot.stored_id())
            .await
            .inspect_err(|_| self.state().store_failed = true)?;
        let Some((row, fields)) = loaded else {
            self.state().closed = true;
            return Ok(None);
        };
        let id = snapshot.id();
        let keys = self.registry.vault.data_keys(&id, *snapshot.stored_id());
        let mut baseline = HashMap::with_capacity(fields.len());
        let mut data = HashMap::with_capacity(fields.len());
        for (tag, sealed) in fields {
            let opened = keys.open(&tag, sealed);
            let Some((name, json, value)) = opened
                .and_then(|(name, json)| serde_json::from_slice(&json).ok().map(|value| (name, json, value)))
            else {
                // One field that was tampered with does not make the others someone else's.
                self.registry
                    .event(SessionEvent::RecordTampered(self.registry.session_ref(snapshot.stored_id())));
                continue;
            };
            data.insert(name.clone(), value);
            baseline.insert(name, json);
        }
        let mut state = self.state();
        state.baseline = Some(baseline);
        state.deadline = row.deadline;
        Ok(Some(data))
    }

    /// Writes what `record` has changed.
    async fn write(&self, snapshot: &Snapshot, record: &Record) -> Result<(), StoreError> {
        if self.state().baseline.is_none() {
            // `clear` before any read: which fields there are is not known yet.
            self.fetch(snapshot).await?;
        }
        if self.state().closed {
            self.dropped(snapshot);
            return Ok(());
        }
        let id = snapshot.id();
        let keys = self.registry.vault.data_keys(&id, *snapshot.stored_id());
        let mut written = Vec::new();
        let mut fields = Vec::new();
        {
            let state = self.state();
            let baseline = state.baseline.as_ref();
            for (name, value) in &record.data {
                let json = json(value)?;
                if baseline.and_then(|baseline| baseline.get(name)).is_none_or(|old| **old != *json) {
                    let (tag, sealed) = keys.seal(name, &json).map_err(StoreError::new)?;
                    fields.push((tag, Some(sealed)));
                    written.push((name.clone(), json));
                }
            }
            for name in
                baseline.into_iter().flat_map(HashMap::keys).filter(|name| !record.data.contains_key(*name))
            {
                fields.push((keys.tag(name), None));
            }
        }
        let deadline = instant(record.expiry_date);
        let shortened = record.expiry_date != self.given_expiry && deadline < self.state().deadline;
        let deadline = shortened.then_some(deadline);
        if fields.is_empty() && deadline.is_none() {
            return Ok(());
        }
        let committed = self.registry.commit(snapshot, fields, deadline).await;
        let Some(row) = committed.inspect_err(|_| self.state().store_failed = true)? else {
            self.state().closed = true;
            self.dropped(snapshot);
            return Ok(());
        };
        self.committed(snapshot, record, written, &row, shortened);
        Ok(())
    }

    fn committed(
        &self,
        snapshot: &Snapshot,
        record: &Record,
        written: Vec<(String, Zeroizing<Vec<u8>>)>,
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

    fn dropped(&self, snapshot: &Snapshot) {
        self.registry
            .event(SessionEvent::WriteToEndedSession(self.registry.session_ref(snapshot.stored_id())));
    }

    /// Creates the session that `record` is to be: after a login, under a new id, or for somebody anonymous.
    async fn begin(&self, record: &mut Record) -> Result<(), RegistryError> {
        let (intent, live, leaving, alias) = {
            let mut state = self.state();
            (state.intent.take(), state.live.clone(), state.leaving, state.alias)
        };
        // After `flush` the core keeps the id it knew, after `cycle_id` it has made up another.
        let flushed = leaving && alias == Some(record.id);
        let fields = encoded(record).map_err(RegistryError::Store)?;
        let (beginning, event) = match (intent, live) {
            (Some(Intent::Login { private, remembered }), old) => {
                let replaces = old.map(|old| Replacement::End(*old.stored_id()));
                (Beginning { private, remembered, fields, replaces, continues: None }, Began::Login)
            }
            (Some(Intent::Reauthentication { methods }), Some(old)) => {
                let (mut beginning, continued) = self.going_on(&old, fields, true).await?;
                if let Some(methods) = methods {
                    beginning.private.methods = methods;
                }
                beginning.continues = Some(continued);
                (beginning, Began::Reauthentication)
            }
            (None, Some(old)) if !flushed => {
                let (mut beginning, continued) = self.going_on(&old, fields, false).await?;
                beginning.continues = Some(continued);
                (beginning, Began::NewId)
            }
            (_, old) => {
                if record.data.is_empty() {
                    // Nothing was written: nothing is created. The core takes the id it made up; it leads nowhere.
                    return Ok(());
                }
                let private = self.anonymous();
                let replaces = old.map(|old| Replacement::End(*old.stored_id()));
                (
                    Beginning { private, remembered: false, fields, replaces, continues: None },
                    Began::Anonymous,
                )
            }
        };
        let issued = self.registry.begin(beginning).await?;
        let session = self.registry.session_ref(issued.admitted.snapshot().stored_id());
        self.registry.event(match event {
            Began::Login => SessionEvent::LoggedIn(session),
            Began::Reauthentication => SessionEvent::Reauthenticated(session),
            Began::NewId => SessionEvent::IdCycled(session),
            Began::Anonymous => SessionEvent::Created(session),
        });
        self.began(issued, record);
        Ok(())
    }

    fn began(&self, issued: Issued, record: &mut Record) {
        let snapshot = issued.admitted.snapshot().clone();
        let baseline =
            record.data.iter().filter_map(|(name, value)| Some((name.clone(), json(value).ok()?))).collect();
        let mut state = self.state();
        let ends_at = snapshot.fixed().ends_at;
        state.cookies = CookieChange::Set { cookie: issued.cookie, token: issued.token, ends_at };
        state.settle(&self.registry, snapshot);
        state.baseline = Some(baseline);
        state.leaving = false;
        state.deadline = Timestamp::MAX;
        if let Some(alias) = state.alias {
            record.id = alias;
        }
    }

    /// A session under a new id that keeps its user: with a new authentication, or without.
    async fn going_on(
        &self,
        old: &Snapshot,
        fields: Vec<(String, Vec<u8>)>,
        authenticated: bool,
    ) -> Result<(Beginning, Continued), RegistryError> {
        let loaded = self.registry.load(old.stored_id()).await.map_err(RegistryError::Store)?;
        let (row, _) = loaded.ok_or(RegistryError::Gone)?;
        let mut private =
            self.registry.vault.open_private(old.stored_id(), &row).ok_or(RegistryError::Gone)?;
        let mut continued = Continued { created_at: row.created_at, authenticated_at: None, ends_at: None };
        let replaces = if authenticated {
            let here = self.anonymous();
            private = Private {
                subject: private.subject,
                methods: private.methods,
                claims: private.claims,
                ..here
            };
            Replacement::Supersede(*old.stored_id())
        } else {
            continued.authenticated_at = Some(row.authenticated_at);
            continued.ends_at = Some(row.ends_at);
            Replacement::Move(*old.stored_id())
        };
        let beginning = Beginning {
            private,
            remembered: row.remembered,
            fields,
            replaces: Some(replaces),
            continues: None,
        };
        Ok((beginning, continued))
    }

    /// The private part of a session of nobody, bound to this client.
    pub(crate) fn anonymous(&self) -> Private {
        let client = self.client.context();
        let context = client.digest(self.registry.vault.context_key());
        Private { context, client: client.label(), ..Private::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Held for a few instructions at a time, never over an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn settle(&mut self, registry: &Registry, snapshot: Snapshot) {
        self.alias = Some(Id(i128::from_le_bytes(registry.session_ref(snapshot.stored_id()).0)));
        self.live = Some(snapshot);
    }
}

#[async_trait]
impl SessionStore for SessionData {
    async fn create(&self, record: &mut Record) -> session_store::Result<()> {
        if self.state().closed {
            return Err(unavailable());
        }
        let begun = self.begin(record).await;
        begun.map_err(|error| {
            self.state().store_failed |= matches!(error, RegistryError::Store(_));
            self.abandon();
            unavailable()
        })
    }

    async fn save(&self, record: &Record) -> session_store::Result<()> {
        let live = { self.state().live.clone() };
        match live {
            Some(snapshot) => self.write(&snapshot, record).await.map_err(|_| unavailable()),
            // An empty create led nowhere, and something was written after it.
            None => {
                let mut record = record.clone();
                self.create(&mut record).await
            }
        }
    }

    async fn load(&self, id: &Id) -> session_store::Result<Option<Record>> {
        self.mark_read();
        let live = {
            let state = self.state();
            if state.leaving || state.alias != Some(*id) {
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
        if state.alias == Some(*id) && !state.closed {
            state.leaving = true;
        }
        Ok(())
    }
}

impl fmt::Debug for SessionData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionData(..)")
    }
}

enum Began {
    Login,
    Reauthentication,
    NewId,
    Anonymous,
}

/// What a handler's `Session` says when the store does not answer: no detail, it may end in a response.
fn unavailable() -> session_store::Error {
    session_store::Error::Backend("the session store did not answer as it should".into())
}

fn encoded(record: &Record) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
    record.data.iter().map(|(name, value)| Ok((name.clone(), json(value)?.to_vec()))).collect()
}

fn json(value: &serde_json::Value) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    serde_json::to_vec(value).map(Zeroizing::new).map_err(StoreError::new)
}

pub(crate) fn date(at: Timestamp) -> OffsetDateTime {
    let seconds = i64::try_from(at.as_seconds()).unwrap_or(i64::MAX);
    let latest = time::PrimitiveDateTime::MAX.assume_utc();
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(latest)
}

fn instant(date: OffsetDateTime) -> Timestamp {
    let millis = u64::try_from(date.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
    Timestamp::from_millis(millis)
}
