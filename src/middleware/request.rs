//! Who is asking. The cheap questions come first: an anonymous request costs the search of a header, a forged cookie one
//! decryption, a forged token one MAC; only what is authentic costs a signature or a store call.

use std::sync::Arc;

use http::{Extensions, HeaderMap, Method, header};

use super::{
    attached::{Attached, CookieFields},
    site::Site,
};
use crate::{
    clock::Timestamp,
    cookie::{Found, find, near_miss},
    crypto::OpenError,
    events::{CookieFault, SessionEvent},
    session::{
        Admission, Admitted, AuthenticToken, ContextDigest, ContextRelation, Opened, Reason, Snapshot,
        Standing, TokenError, Verdict, VerifiedRenewal, admit,
    },
    store::{Client, CookieChange, Renewal},
};

/// What a request shows, taken out of it so that it can be judged while it waits.
pub(super) struct Asking {
    pub(super) site: Arc<Site>,
    pub(super) client: Client,
    pub(super) cookies: CookieFields,
    pub(super) now: Timestamp,
}

/// What kind of request it is; looked at only where a cookie is stale.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind<'a> {
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
}

impl Kind<'_> {
    fn is_upgrade(self) -> bool {
        self.method == Method::CONNECT || self.says("upgrade", "websocket")
    }

    fn is_prefetch(self) -> bool {
        self.says("sec-purpose", "prefetch")
    }

    fn is_cross_site_subresource(self) -> bool {
        self.says("sec-fetch-site", "cross-site") && !self.says("sec-fetch-mode", "navigate")
    }

    /// Whether a field says `token`, alone or as one of several.
    fn says(self, name: &'static str, token: &str) -> bool {
        self.headers.get_all(name).iter().any(|value| {
            let mut words = value.as_bytes().split(|byte| matches!(byte, b',' | b';' | b' ' | b'\t'));
            words.any(|word| word.eq_ignore_ascii_case(token.as_bytes()))
        })
    }
}

/// The first judgement, without waiting for anything.
pub(super) enum Judged {
    /// All is known: attach this.
    Attach(Attached),
    /// The verdict needs the store.
    Ask(Box<Asking>, Box<Question>),
    /// Answered without asking the application: come again when you mean it.
    ComeAgain,
}

/// What the store is to be asked.
pub(super) enum Question {
    /// Whether a fresh session still exists: the revocation feed was not read yet.
    Confirm(Admitted),
    /// What a token buys.
    Renew { token: VerifiedRenewal, relation: ContextRelation, shown: ContextDigest, is_upgrade: bool },
}

impl Asking {
    pub(super) fn of(site: &Arc<Site>, headers: &HeaderMap, extensions: &Extensions) -> Self {
        let mut user_agents = headers.get_all(header::USER_AGENT).iter();
        let user_agent = match (user_agents.next(), user_agents.next()) {
            (Some(user_agent), None) => Some(user_agent.clone()),
            _ => None,
        };
        let address = site.client_address.as_ref().and_then(|find| find(extensions));
        Self {
            site: Arc::clone(site),
            client: Client { user_agent, address },
            cookies: CookieFields::of(headers),
            now: site.registry.now(),
        }
    }

    /// Judges the request as far as that goes without waiting.
    pub(super) fn judge(self, kind: Kind<'_>) -> Judged {
        let site = Arc::clone(&self.site);
        let cookies = self.cookies.clone();
        match self.verdict(&cookies, kind) {
            Verdict::Admit(admitted) if site.registry.revocations.is_synced() => {
                Judged::Attach(self.attach(Some(admitted), CookieChange::None))
            }
            Verdict::Admit(admitted) => Judged::Ask(Box::new(self), Box::new(Question::Confirm(admitted))),
            Verdict::Renew(token) => {
                let context = self.client.context();
                let shown = context.digest(site.registry.vault.context_key());
                let relation = context.relation_to(token.context(), site.registry.vault.context_key());
                let is_upgrade = kind.is_upgrade();
                Judged::Ask(Box::new(self), Box::new(Question::Renew { token, relation, shown, is_upgrade }))
            }
            Verdict::Unavailable => Judged::ComeAgain,
            Verdict::Reject(session, reason) => {
                site.registry.event(SessionEvent::Refused(site.registry.session_ref(&session), reason));
                Judged::Attach(self.attach(None, CookieChange::None))
            }
            Verdict::Anonymous | Verdict::Challenge => Judged::Attach(self.attach(None, CookieChange::None)),
        }
    }

    /// Attaches to the request whom the checks let in.
    pub(super) fn attach(self, admitted: Option<Admitted>, change: CookieChange) -> Attached {
        Attached::new(&self.site, self.client, self.cookies, self.now, admitted, change)
    }

    /// The table of verdicts, row by row.
    fn verdict(&self, cookies: &CookieFields, kind: Kind<'_>) -> Verdict {
        let registry = &self.site.registry;
        let names @ [session_name, _] = self.site.cookies.names();
        let [session, token] = find(cookies.iter(), names);
        if session == Found::Several || token == Found::Several {
            registry.event(if session == Found::Several {
                SessionEvent::SessionCookieRefused(CookieFault::Duplicate)
            } else {
                SessionEvent::RenewalTokenRefused(CookieFault::Duplicate)
            });
            return Verdict::Anonymous;
        }
        let opened = match session {
            Found::One(value) => self.open(value),
            Found::Nothing | Found::Several => None,
        };
        let stale = match opened {
            Some(opened) => match self.judge_opened(opened) {
                Admission::Admitted(admitted) => return Verdict::Admit(admitted),
                Admission::Rejected(session, reason) => return Verdict::Reject(session, reason),
                Admission::Stale(opened) => Some(opened),
            },
            None => None,
        };
        if let Found::One(token) = token {
            return self.judge_token(token, stale.as_ref(), kind);
        }
        if let Some(stale) = stale {
            return Verdict::Reject(*stale.snapshot().stored_id(), Reason::Expired);
        }
        // Looked for only where nothing of ours came: the hot path never pays for it.
        if let Some(kind) = near_miss(cookies.iter(), session_name) {
            registry.event(SessionEvent::CookieNearMiss(kind));
        }
        Verdict::Anonymous
    }

    fn open(&self, value: &[u8]) -> Option<Opened> {
        let registry = &self.site.registry;
        let opened = registry.cookie.open(value);
        let snapshot = opened.and_then(|bytes| Snapshot::parse(bytes).ok_or(OpenError::Malformed));
        match snapshot {
            Ok(snapshot) => Some(Opened::from_seal(snapshot)),
            Err(error) => {
                registry.event(SessionEvent::SessionCookieRefused(match error {
                    OpenError::Malformed => CookieFault::Malformed,
                    OpenError::UnknownKey => CookieFault::UnknownKey,
                    OpenError::Forged => CookieFault::Forged,
                }));
                None
            }
        }
    }

    fn judge_opened(&self, opened: Opened) -> Admission {
        let registry = &self.site.registry;
        let snapshot = opened.snapshot();
        let fixed = snapshot.fixed();
        let relation = self.client.context().relation_to(&fixed.context, registry.vault.context_key());
        if let ContextRelation::Changed(signal) = relation
            && !fixed.context_changed
        {
            registry.event(SessionEvent::ContextChanged(registry.session_ref(snapshot.stored_id()), signal));
        }
        let standing = registry.standing(snapshot);
        admit(opened, self.now, relation, standing)
    }

    fn judge_token(&self, token: &[u8], stale: Option<&Opened>, kind: Kind<'_>) -> Verdict {
        let registry = &self.site.registry;
        let authentic = match registry.tokens.authenticate(token, self.now) {
            Ok(authentic) => authentic,
            Err(error) => return self.refuse_token(error),
        };
        let stored_id = registry.vault.stored_id(authentic.digest());
        if let Some(stale) = stale
            && *stale.snapshot().stored_id() != stored_id
        {
            return Verdict::Reject(*stale.snapshot().stored_id(), Reason::Mismatch);
        }
        if registry.revocations.standing(&stored_id, u64::MAX) == Standing::Revoked {
            return Verdict::Reject(stored_id, Reason::Revoked);
        }
        let context_key = registry.vault.context_key();
        if self.client.context().relation_to(authentic.context(), context_key) == ContextRelation::Rejected {
            return Verdict::Reject(stored_id, Reason::Context);
        }
        self.renewal_of(&authentic, kind)
    }

    /// An authentic token renews, unless the request is of a kind that must not.
    fn renewal_of(&self, authentic: &AuthenticToken<'_>, kind: Kind<'_>) -> Verdict {
        if kind.is_prefetch() {
            // Its answer may never be looked at. A browser that is told 503 asks again when the page is wanted.
            return Verdict::Unavailable;
        }
        if kind.is_cross_site_subresource() {
            // The browser drops the new cookies of such a response, and with them the only copy of the new token.
            return Verdict::Anonymous;
        }
        match self.site.registry.tokens.verify(authentic) {
            Ok(verified) => Verdict::Renew(verified),
            Err(error) => self.refuse_token(error),
        }
    }

    fn refuse_token(&self, error: TokenError) -> Verdict {
        self.site.registry.event(SessionEvent::RenewalTokenRefused(match error {
            TokenError::Forged => CookieFault::Forged,
            TokenError::NotForHere => CookieFault::NotForHere,
        }));
        Verdict::Anonymous
    }

    /// Asks the store; `None` if it does not answer.
    pub(super) async fn ask(self, question: Question) -> Option<Attached> {
        let registry = Arc::clone(&self.site.registry);
        match question {
            Question::Confirm(admitted) => {
                let stored_id = *admitted.snapshot().stored_id();
                let exists = registry.load(&stored_id).await.ok()?.is_some();
                if !exists {
                    registry.event(SessionEvent::Refused(registry.session_ref(&stored_id), Reason::Revoked));
                }
                Some(self.attach(exists.then_some(admitted), CookieChange::None))
            }
            Question::Renew { token, relation, shown, is_upgrade } => {
                match registry.renew(&token, relation, shown, is_upgrade).await {
                    Renewal::Issued(issued) => {
                        let ends_at = issued.admitted.snapshot().fixed().ends_at;
                        let change =
                            CookieChange::Set { cookie: issued.cookie, token: issued.token, ends_at };
                        Some(self.attach(Some(issued.admitted), change))
                    }
                    Renewal::Upgraded(admitted) => {
                        let mut attached = self.attach(Some(admitted), CookieChange::None);
                        attached.upgrade = true;
                        Some(attached)
                    }
                    Renewal::Refused => Some(self.attach(None, CookieChange::None)),
                    Renewal::Unavailable => None,
                }
            }
        }
    }
}
