//! The sessions that a request begins: after a login, under a new id, or for somebody anonymous.

use tower_sessions_core::session::Record;

use super::{CookieChange, Intent, SessionData, json};
use crate::{
    clock::Timestamp,
    events::SessionEvent,
    session::{Private, Snapshot},
    store::{
        contract::{Replacement, StoreError},
        registry::{Beginning, Continued, Issued, RegistryError},
    },
};

enum Began {
    Login,
    Reauthentication,
    NewId,
    Anonymous,
}

impl SessionData {
    /// Creates the session that `record` is to be: after a login, under a new id, or for somebody anonymous.
    pub(super) async fn begin(&self, record: &mut Record) -> Result<(), RegistryError> {
        let (intent, live, flushed) = {
            let mut state = self.state();
            // After `flush` the core keeps the id it knew, after `cycle_id` it has made up another.
            let flushed = state.leaving && (state.left_unread || state.alias == Some(record.id));
            (state.intent.take().map(|intent| *intent), state.live.clone(), flushed)
        };
        if let (None, Some(old)) = (&intent, &live)
            && self.is_dropped(old)
        {
            return Ok(());
        }
        let fields = encoded(record).map_err(|_| RegistryError::Store)?;
        let (beginning, event) = match (intent, live) {
            (Some(Intent::Login { private, remembered }), old) => {
                let replaces = old.map(|old| Replacement::End(*old.stored_id()));
                (
                    Beginning { private, remembered, fields, replaces, continues: None, ends_by: None },
                    Began::Login,
                )
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
                    Beginning {
                        private,
                        remembered: false,
                        fields,
                        replaces,
                        continues: None,
                        ends_by: None,
                    },
                    Began::Anonymous,
                )
            }
        };
        let beginning = Beginning { ends_by: self.wished_end(record), ..beginning };
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
        let snapshot = issued.admitted.shared();
        let baseline =
            record.data.iter().filter_map(|(name, value)| Some((name.clone(), json(value).ok()?))).collect();
        let mut state = self.state();
        let ends_at = snapshot.fixed().ends_at;
        state.cookies = CookieChange::Set { cookie: issued.cookie, token: issued.token, ends_at };
        state.settle(&self.registry, snapshot);
        state.baseline = Some(baseline);
        state.leaving = false;
        state.left_unread = false;
        state.gone = false;
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
        let loaded = self.registry.load(old.stored_id()).await.map_err(|_| RegistryError::Store)?;
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
            ends_by: None,
        };
        Ok((beginning, continued))
    }
}

fn encoded(record: &Record) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
    record.data.iter().map(|(name, value)| Ok((name.clone(), json(value)?.to_vec()))).collect()
}
