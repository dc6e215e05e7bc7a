//! The bridge to tower-sessions: one value per request that a `Session` takes for its store.
//!
//! It loads only when a handler reads, writes only what changed, never creates under an id that somebody sent, and
//! never brings back a session that ended. Deleting is put off: `flush` or `cycle_id` and what follows become one step
//! of the store, so a failure between the two loses nothing.
//!
//! ```text
//! bridge  the verbs that a `Session` calls: load what is read, write what changed
//! begin   the sessions that a request begins
//! ```

mod begin;
mod bridge;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::Value;
use time::OffsetDateTime;
use tower_sessions_core::{
    Expiry, Session,
    session::{Id, Record},
};
use zeroize::Zeroizing;

use super::{
    asking::Asking,
    contract::StoreError,
    registry::{Issued, Registry, SetCookies},
    row::FieldTag,
    vault::DataKeys,
};
use crate::{
    clock::Timestamp,
    id::StoredId,
    session::{Admitted, Private, Snapshot, Standing},
};

/// The session of one request.
pub(crate) struct SessionData {
    pub(crate) registry: Arc<Registry>,
    pub(crate) asking: Asking,
    /// Who was let in when the request began; what follows does not change it.
    initial: Option<Admitted>,
    /// The expiry the core was given. It states it again at every save; another one was set by a handler.
    given_expiry: OffsetDateTime,
    was_read: AtomicBool,
    wants_proof: AtomicBool,
    state: Mutex<State>,
}

/// What the response is to do with our cookies.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) enum CookieChange {
    /// Leave both as they are.
    #[default]
    None,
    /// Set the session cookie, and the token where there is a new one.
    Set(SetCookies),
    /// Remove both.
    Remove,
}

/// What the next new session is for.
#[allow(clippy::large_enum_variant, reason = "it lies in a box")]
pub(crate) enum Intent {
    /// Somebody signed in.
    Login { private: Private, remembered: bool },
    /// The user proved again who they are.
    Reauthentication { methods: Option<String> },
}

/// Each field as the store has it.
type Baseline = HashMap<String, Known>;

/// A field as the store has it.
struct Known {
    /// Where it lies, once that was needed.
    tag: Option<FieldTag>,
    json: Zeroizing<Vec<u8>>,
}

impl Known {
    /// Whether a handler has made something else of it.
    fn differs(&self, json: &[u8]) -> bool {
        *self.json != *json
    }
}

/// The fields as a handler sees them.
type Data = HashMap<String, Value>;

#[derive(Default)]
struct State {
    live: Option<Arc<Snapshot>>,
    /// The keys of its data, once they were needed.
    keys: Option<Arc<DataKeys>>,
    /// The name the core knows the session by: from its reference, so that a `{:?}` of a `Session` says nothing.
    alias: Option<Id>,
    /// None before the first load.
    baseline: Option<Baseline>,
    deadline: Timestamp,
    /// `delete` was called: what follows decides whether it was a flush or a new id.
    leaving: bool,
    /// After `delete` the data was asked for, and there was none: what is created then is a session of nobody.
    left_unread: bool,
    /// It was flushed or deleted, and saved empty: what is written next is a new session of nobody.
    left_empty: bool,
    /// The store says that the session is over: what is written to it is dropped.
    gone: bool,
    /// The user was authenticated in this request, and the session is bound to no device yet.
    authenticated: bool,
    /// A login or a new id did not come about: nothing of this request is written any more.
    abandoned: bool,
    intent: Option<Box<Intent>>,
    store_failed: bool,
    cookies: CookieChange,
}

impl SessionData {
    /// The session of a request, and the `Session` over it that a handler gets.
    pub(crate) fn begin_with(
        registry: &Arc<Registry>,
        asking: Asking,
        admitted: Option<Admitted>,
        cookies: CookieChange,
    ) -> (Arc<Self>, Session) {
        let (ends_at, live, alias) = match &admitted {
            Some(admitted) => {
                let alias = alias(registry, admitted.snapshot());
                (admitted.snapshot().fixed().ends_at, Some(admitted.shared()), Some(alias))
            }
            None => (asking.now + registry.timeouts.absolute_of(false), None, None),
        };
        let given_expiry = date(ends_at);
        // Written out where it is to lie: it is large, and this is on the way of every request.
        let data = Arc::new(Self {
            registry: Arc::clone(registry),
            asking,
            initial: admitted,
            given_expiry,
            was_read: AtomicBool::new(false),
            wants_proof: AtomicBool::new(false),
            state: Mutex::new(State { live, alias, cookies, ..State::default() }),
        });
        // An instant, because the other kinds of expiry read the clock inside the core.
        let session = Session::new(alias, Arc::clone(&data), Some(Expiry::AtDateTime(given_expiry)));
        (data, session)
    }

    /// Who was let in when the request began.
    pub(crate) const fn initial(&self) -> Option<&Admitted> {
        self.initial.as_ref()
    }

    /// The session as it is now: after a login another one than at the beginning.
    pub(crate) fn current(&self) -> Option<Arc<Snapshot>> {
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

    /// The handler wants a proof of the session's device that is newer than the last one.
    pub(crate) fn want_proof(&self) {
        self.wants_proof.store(true, Ordering::Relaxed);
    }

    pub(crate) fn wants_proof(&self) -> bool {
        self.wants_proof.load(Ordering::Relaxed)
    }

    /// The store failed under a handler, which may have answered as if nothing was wrong.
    pub(crate) fn store_failed(&self) -> bool {
        self.state().store_failed
    }

    /// What is to be done with our cookies: nothing, where the session ended while the request ran. A late answer must
    /// not overwrite the cookies of the next login (attacks A08, A09).
    pub(crate) fn take_cookies(&self) -> CookieChange {
        let mut state = self.state();
        let cookies = std::mem::take(&mut state.cookies);
        let ended = |live: &Arc<Snapshot>| {
            self.registry.standing(live) == Standing::Revoked
                || self.registry.revocations.is_superseded(live.stored_id())
        };
        match cookies {
            CookieChange::Set(_) if state.gone || state.live.as_ref().is_some_and(ended) => {
                CookieChange::None
            }
            other => other,
        }
    }

    /// The end that a handler has set with `Session::set_expiry`, if it did.
    fn wished_end(&self, record: &Record) -> Option<Timestamp> {
        (record.expiry_date != self.given_expiry).then(|| instant(record.expiry_date))
    }

    /// The next new session is for this.
    pub(crate) fn intend(&self, intent: Intent) {
        self.state().intent = Some(Box::new(intent));
    }

    /// A login or a new id that did not come about: nothing half-done may be written, and the old session stays.
    pub(crate) fn abandon(&self) {
        let mut state = self.state();
        state.intent = None;
        state.leaving = false;
        state.abandoned = true;
    }

    /// The session ended by the user's will: its cookies go, and what is written afterwards is a new session's.
    pub(crate) fn leave(&self) {
        let mut state = self.state();
        *state = State { cookies: CookieChange::Remove, ..State::default() };
    }

    /// Takes a changed session cookie, the session being the same.
    pub(crate) fn reissued(&self, issued: Issued) {
        let mut state = self.state();
        let mut set = issued.cookies;
        // A token that was won in this request is sent all the same.
        if let CookieChange::Set(SetCookies { token, .. }) = std::mem::take(&mut state.cookies) {
            set.token = set.token.or(token);
        }
        state.cookies = CookieChange::Set(set);
        state.live = Some(issued.admitted.shared());
    }

    /// The session to be offered a device: its user was authenticated in this request.
    pub(crate) fn authenticated(&self) -> Option<StoredId> {
        let state = self.state();
        state.live.as_ref().filter(|_| state.authenticated).map(|live| *live.stored_id())
    }

    /// A lone `flush` or `delete`, with nothing written after it: the session to be ended.
    pub(crate) fn left(&self) -> Option<StoredId> {
        let state = self.state();
        state
            .live
            .as_ref()
            .filter(|_| state.leaving && !state.gone && !state.abandoned)
            .map(|snapshot| *snapshot.stored_id())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Held for a few instructions at a time, never over an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn settle(&mut self, registry: &Registry, snapshot: Arc<Snapshot>) {
        self.alias = Some(alias(registry, &snapshot));
        self.live = Some(snapshot);
        self.keys = None;
    }
}

/// Mute: its Cookie fields are credentials.
impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asking(..)")
    }
}

impl fmt::Debug for SessionData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionData(..)")
    }
}

/// The name that the core knows a session by.
fn alias(registry: &Registry, snapshot: &Snapshot) -> Id {
    Id(i128::from_le_bytes(registry.session_ref(snapshot.stored_id()).0))
}

fn instant(date: OffsetDateTime) -> Timestamp {
    let millis = u64::try_from(date.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
    Timestamp::from_millis(millis)
}

pub(crate) fn date(at: Timestamp) -> OffsetDateTime {
    let seconds = i64::try_from(at.as_seconds()).unwrap_or(i64::MAX);
    let latest = time::PrimitiveDateTime::MAX.assume_utc();
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(latest)
}

fn json(value: &Value) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    serde_json::to_vec(value).map(Zeroizing::new).map_err(StoreError::new)
}
