//! The sessions that a request begins: after a login, under a new id, or for somebody anonymous.

use std::sync::Arc;

use serde_json::Value;
use tower_sessions_core::session::Record;

use super::{Baseline, CookieChange, Data, Intent, Known, SessionData, json};
use crate::{
    clock::Timestamp,
    events::SessionEvent,
    session::{Private, Snapshot},
    store::{
        contract::{Replacement, Seen},
        registry::{Beginning, Continued, Issued, RegistryError},
    },
};

/// What a `create` of the core turns out to be.
#[allow(clippy::large_enum_variant, reason = "it lives for one match")]
enum Begun {
    /// Somebody signed in.
    Login { private: Private, remembered: bool, old: Option<Arc<Snapshot>> },
    /// The same session under a new id, with a new authentication or without.
    GoesOn { old: Arc<Snapshot>, authentication: Option<Option<String>> },
    /// Somebody who is not signed in.
    Anonymous { old: Option<Arc<Snapshot>> },
    /// None: nothing was written, or nothing may be.
    Nothing,
}

impl SessionData {
    /// Creates the session that `record` is to be.
    pub(super) async fn begin(&self, record: &mut Record) -> Result<(), RegistryError> {
        let begun = self.begun(record);
        // After a login the same session may get another id yet, and is to be offered a device all the same.
        let is_authenticated = match &begun {
            Begun::Login { .. } | Begun::GoesOn { authentication: Some(_), .. } => true,
            Begun::GoesOn { authentication: None, .. } => self.state().authenticated,
            Begun::Anonymous { .. } | Begun::Nothing => false,
        };
        let (issued, event): (Issued, fn(_) -> _) = match begun {
            Begun::Nothing => return Ok(()),
            Begun::GoesOn { old, authentication } => {
                let event = match authentication {
                    Some(_) => SessionEvent::Reauthenticated,
                    None => SessionEvent::IdCycled,
                };
                match self.go_on(&old, record, authentication.as_ref()).await? {
                    Some(issued) => (issued, event),
                    None => return self.stay(&old, record, authentication).await,
                }
            }
            Begun::Login { private, remembered, old } => {
                (self.begin_anew(private, remembered, old, record).await?, SessionEvent::LoggedIn)
            }
            Begun::Anonymous { old } => {
                (self.begin_anew(self.anonymous(), false, old, record).await?, SessionEvent::Created)
            }
        };
        let session = self.registry.session_ref(issued.admitted.snapshot().stored_id());
        self.registry.event(event(session));
        self.settle_on(issued, record, is_authenticated);
        Ok(())
    }

    /// Tells what the core wants: it says `create` for all of it.
    fn begun(&self, record: &Record) -> Begun {
        let mut state = self.state();
        // After `flush` the core keeps the id it knew, after `cycle_id` it has made up another. Emptied after that, it was
        // flushed as well.
        let had_data = state.baseline.as_ref().is_some_and(|baseline| !baseline.is_empty());
        let flushed = state.leaving
            && (state.left_unread
                || state.left_empty
                || state.alias == Some(record.id)
                || (record.data.is_empty() && had_data));
        let (old, intent) = (state.live.clone(), state.intent.take());
        match (intent.map(|intent| *intent), old) {
            (Some(Intent::Login { private, remembered }), old) => Begun::Login { private, remembered, old },
            (Some(Intent::Reauthentication { methods }), Some(old)) => {
                Begun::GoesOn { old, authentication: Some(methods) }
            }
            (_, Some(old)) => {
                drop(state);
                match self.is_dropped(&old) {
                    true => Begun::Nothing,
                    false if !flushed => Begun::GoesOn { old, authentication: None },
                    false => self.begun_by_nobody(record, Some(old)),
                }
            }
            (_, None) => {
                drop(state);
                self.begun_by_nobody(record, None)
            }
        }
    }

    fn begun_by_nobody(&self, record: &Record, old: Option<Arc<Snapshot>>) -> Begun {
        if record.data.is_empty() {
            // Nothing was written: nothing is created. The core takes the id it made up; it leads nowhere.
            let mut state = self.state();
            state.left_empty = state.leaving;
            return Begun::Nothing;
        }
        if self.asking.keeps_cookies {
            self.registry.event(SessionEvent::WriteOfRefusedRequest);
            return Begun::Nothing;
        }
        Begun::Anonymous { old }
    }

    async fn begin_anew(
        &self,
        private: Private,
        remembered: bool,
        old: Option<Arc<Snapshot>>,
        record: &Record,
    ) -> Result<Issued, RegistryError> {
        let beginning = Beginning {
            private,
            remembered,
            fields: encoded(&record.data)?,
            replaces: old.map(|old| Replacement::End(*old.stored_id())),
            seen: None,
            continues: None,
            ends_by: self.wished_end(record),
        };
        self.registry.begin(beginning).await
    }

    /// Puts a session under a new id. What others write to it meanwhile is not lost: the store compares, and where there
    /// was something, it is read and merged again.
    async fn go_on(
        &self,
        old: &Snapshot,
        record: &mut Record,
        authentication: Option<&Option<String>>,
    ) -> Result<Option<Issued>, RegistryError> {
        // A copy: where this fails, or nobody waits for it any more, the handler still sees its session as it was.
        let wanted = record.data.clone();
        for _ in 0..MOST_TRIES {
            let Some((merged, beginning)) = self.read_on(old, &wanted, authentication).await? else {
                return Ok(None);
            };
            let beginning = Beginning { ends_by: self.wished_end(record), ..beginning };
            match self.registry.begin(beginning).await {
                Err(RegistryError::Changed) => {}
                done => {
                    record.data = merged;
                    return done.map(Some);
                }
            }
        }
        Err(RegistryError::Store)
    }

    /// A session that is bound to a device goes on under its own id, which its browser knows it by: a copy of its cookie is dead
    /// within minutes under any id. What was written is saved, and a new authentication noted.
    async fn stay(
        &self,
        old: &Snapshot,
        record: &mut Record,
        authentication: Option<Option<String>>,
    ) -> Result<(), RegistryError> {
        if let Some(methods) = authentication {
            let client = self.asking.context();
            let context = client.digest(self.registry.vault.context_key());
            let (methods, label) = (methods.as_deref(), client.label());
            let issued = self.registry.authenticate_again(old, methods, context, &label).await?;
            // A cookie from before the binding is no device: its browser has a newer one.
            if old.fixed().bound_to().is_some() {
                self.reissued(issued);
            }
        }
        self.write(old, record).await.map_err(|_| RegistryError::Store)?;
        if self.state().gone {
            return Err(RegistryError::Gone);
        }
        let mut state = self.state();
        (state.leaving, state.left_unread, state.left_empty) = (false, false, false);
        if let Some(alias) = state.alias {
            record.id = alias;
        }
        Ok(())
    }

    /// Reads the session that goes on, and lays what this request has changed over what is there. `None` if it is bound to a
    /// device, whatever its cookie says: that may be older than the binding.
    async fn read_on(
        &self,
        old: &Snapshot,
        wanted: &Data,
        authentication: Option<&Option<String>>,
    ) -> Result<Option<(Data, Beginning)>, RegistryError> {
        let loaded = self.registry.load(old.stored_id()).await.map_err(|_| RegistryError::Store)?;
        let (row, fields) = loaded.ok_or(RegistryError::Gone)?;
        if row.device.is_some() {
            return Ok(None);
        }
        let private = self.registry.vault.open_private(old.stored_id(), &row).ok_or(RegistryError::Gone)?;
        let seen = Some(Seen { claims_version: row.claims_version, is_bound: false, fields: fields.clone() });
        let merged = self.merged(self.open_fields(old, fields).1, wanted);
        let mut continued = Continued { created_at: row.created_at, authenticated_at: None, ends_at: None };
        let (private, replaces) = match authentication {
            Some(methods) => {
                let Private { subject, methods: before, claims, .. } = private;
                let methods = methods.clone().unwrap_or(before);
                let private = Private { subject, methods, claims, ..self.anonymous() };
                (private, Replacement::Supersede(*old.stored_id()))
            }
            None => {
                continued.authenticated_at = Some(row.authenticated_at);
                continued.ends_at = Some(row.ends_at);
                (private, Replacement::Move(*old.stored_id()))
            }
        };
        let beginning = Beginning {
            private,
            remembered: row.remembered,
            fields: encoded(&merged)?,
            replaces: Some(replaces),
            seen,
            continues: Some(continued),
            ends_by: None,
        };
        Ok(Some((merged, beginning)))
    }

    /// What is there now, with this request's own changes: those against what it had read.
    fn merged(&self, mut there: Data, wanted: &Data) -> Data {
        let state = self.state();
        let Some(read) = state.baseline.as_ref() else {
            // Cleared without having been read.
            return wanted.clone();
        };
        there.retain(|name, _| wanted.contains_key(name) || !read.contains_key(name));
        for (name, value) in wanted {
            let is_changed =
                json(value).map_or(true, |json| read.get(name).is_none_or(|known| known.differs(&json)));
            if is_changed {
                there.insert(name.clone(), value.clone());
            }
        }
        there
    }

    fn settle_on(&self, issued: Issued, record: &mut Record, is_authenticated: bool) {
        let known = |(name, value): (&String, &Value)| {
            Some((name.clone(), Known { tag: None, json: json(value).ok()? }))
        };
        let baseline: Baseline = record.data.iter().filter_map(known).collect();
        let mut state = self.state();
        state.settle(&self.registry, issued.admitted.shared());
        state.cookies = CookieChange::Set(issued.cookies);
        state.authenticated = is_authenticated;
        state.baseline = Some(baseline);
        (state.leaving, state.left_unread, state.left_empty, state.gone) = (false, false, false, false);
        state.deadline = Timestamp::MAX;
        if let Some(alias) = state.alias {
            record.id = alias;
        }
    }

    /// The private part of a session of nobody, bound to this client.
    pub(crate) fn anonymous(&self) -> Private {
        let client = self.asking.context();
        let context = client.digest(self.registry.vault.context_key());
        Private { context, client: client.label(), ..Private::default() }
    }
}

fn encoded(data: &Data) -> Result<Vec<(String, Vec<u8>)>, RegistryError> {
    let field = |(name, value): (&String, &Value)| Some((name.clone(), json(value).ok()?.to_vec()));
    data.iter().map(field).collect::<Option<_>>().ok_or(RegistryError::Store)
}

/// A session that others write to all the time may take several; more is a sign of something else.
const MOST_TRIES: usize = 8;
